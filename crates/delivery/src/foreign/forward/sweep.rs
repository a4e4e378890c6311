//! Looks again at what is settled: the one way to see what came, or went, after the last reading (windows W1, W2, W4, W5, W7,
//! W8, W10, W11). Must not send or delete anything.

use std::collections::{BTreeMap, BTreeSet};

use domain::intent::{Flag, Intent, IntentEvent, IntentState};
use domain::marker::{Found, Marker, WriteId};

use super::cycle::There;
use super::decide::{Needs, Picture, whole};
use super::known::Memory;
use super::planned::Planned;
use super::reading::{seen, set};
use super::settle::Hand;
use super::{Forwarded, Forwarder, Halt, Turn};
use crate::foreign::adapter::Listing;
use crate::foreign::entry::{CaseId, CycleId, CycleWanted, Entry};
use crate::foreign::facts::{Strategy, VerdictRule};
use crate::foreign::trouble::Trouble;

/// How often what an answer took by name is looked for before its flag is left to sweeps.
const LOOKS_MAX: u32 = 4;
/// So many cases are read at a time where each is a call.
const CASES_AT_ONCE: usize = 20;
/// So long what was taken and isn't shown is not called lost, in milliseconds.
const UNSHOWN_MS: u64 = 60 * 60 * 1000;

impl Forwarder<'_> {
    /// Two writers at once both find nothing: whoever looks last sees both (R2), and says so. What an answer took by name is
    /// looked for until it is usually shown.
    pub(super) async fn look_once_more(&mut self, turn: Turn, forwarded: &mut Forwarded) -> Result<(), Halt> {
        if self.strategy == Strategy::Idempotent && !self.is_readable() {
            return Ok(());
        }
        for look in 0..LOOKS_MAX {
            let unshown = |intent: &Intent| is_only_accepted(intent) && intent.state == IntentState::Acked;
            let waits = forwarded.intents.iter().any(unshown);
            if look > 0 && !waits {
                break;
            }
            if let Some(lag_ms) = self.lag_ms().filter(|_| waits)
                && self.pause(lag_ms << look, "accepted; waiting until it can be read").await.is_err()
            {
                // It is taken, and never sent again: what is left to say is its flag's.
                break;
            }
            self.look_at_unseen(turn, forwarded).await?;
        }
        Ok(())
    }

    async fn look_at_unseen(&mut self, turn: Turn, forwarded: &mut Forwarded) -> Result<(), Halt> {
        let unseen =
            |intent: &Intent| intent.sends > 0 && (intent.seen_ms.is_none() || intent.seen_ms < intent.sent_ms);
        let looked = forwarded.intents.iter().filter(|intent| unseen(intent)).cloned().collect();
        let mut looked = self.look(turn, looked, false).await?.into_iter().peekable();
        for intent in &mut forwarded.intents {
            if let Some(other) = looked.next_if(|looked| looked.id == intent.id) {
                *intent = other;
            }
        }
        Ok(())
    }

    /// Reads settled intents back: what stands there twice, what is not there any more, and, by whoever alone forwards there,
    /// what no intent knows, is flagged. A flag that is not true any more goes.
    ///
    /// # Errors
    /// Some of it can't be read; all else was read, and what it showed is kept.
    pub async fn sweep(&mut self, intents: Vec<Intent>) -> Result<Vec<Intent>, Halt> {
        let turn = self.turn().await?;
        let done = self.sweep_in(turn, intents).await;
        let ended = self.book.end_turn(self.target, turn).await;
        let done = done?;
        ended?;
        Ok(done)
    }

    async fn sweep_in(&mut self, turn: Turn, intents: Vec<Intent>) -> Result<Vec<Intent>, Halt> {
        let mut intents = self.as_kept(intents).await?;
        intents.retain(|intent| intent.state.is_settled());
        let mut looked = self.look(turn, intents, true).await?;
        if self.strategy == Strategy::Container {
            self.look_for_later(turn, &mut looked).await?;
        }
        Ok(looked)
    }

    /// Intents as they are after a look, in their order. One reading a cycle, of `all` that is in it or of these cases.
    pub(super) async fn look(&mut self, turn: Turn, intents: Vec<Intent>, all: bool) -> Result<Vec<Intent>, Halt> {
        let readable = self.adapter.listing() != Listing::Nothing;
        let mut hands = intents.into_iter().map(|intent| Hand::of(turn, intent)).collect::<Result<Vec<_>, _>>()?;
        for hand in &mut hands {
            hand.swept = all;
        }
        let mut by_cycle: BTreeMap<CycleId, Vec<&mut Hand>> = BTreeMap::new();
        let looked_at = |intent: &Intent| is_looked_at(intent) || (all && may_have_come(intent));
        for hand in hands.iter_mut().filter(|hand| readable && looked_at(&hand.intent)) {
            by_cycle.entry(hand.cycle.clone()).or_default().push(hand);
        }
        // The newest first: late arrivals are to be expected there, and time may not be enough for all.
        let mut by_cycle: Vec<_> = by_cycle.into_iter().collect();
        by_cycle.sort_by_key(|(_, hands)| std::cmp::Reverse(hands.iter().map(|hand| hand.intent.changed_ms).max()));
        let mut unread = None;
        for (cycle, mut hands) in by_cycle {
            let known: Vec<BTreeSet<Flag>> = hands.iter().map(|hand| hand.intent.flags.clone()).collect();
            let seen: Vec<Option<u64>> = hands.iter().map(|hand| hand.intent.seen_ms).collect();
            match self.look_into(turn, &cycle, &mut hands, all).await {
                // One cycle that can't be read hides no other.
                Err(Halt::Refused(_) | Halt::Gone(_)) if all && self.there(&cycle).await? == There::Gone => {
                    let was_there =
                        |intent: &Intent| !matches!(intent.state, IntentState::Parked | IntentState::Rejected);
                    for hand in hands.iter_mut().filter(|hand| was_there(&hand.intent)) {
                        hand.intent.flags.insert(Flag::Vanished);
                    }
                }
                Err(Halt::Refused(what) | Halt::Gone(what)) => {
                    unread.get_or_insert(what);
                    continue;
                }
                looked => looked?,
            }
            for ((hand, flags), seen_ms) in hands.into_iter().zip(known).zip(seen) {
                self.keep_look(hand, &flags, seen_ms).await?;
            }
        }
        match unread {
            Some(what) => Err(Halt::Refused(what)),
            None => Ok(hands.into_iter().map(|hand| hand.intent).collect()),
        }
    }

    /// A look that changes what is known is kept.
    async fn keep_look(&mut self, hand: &mut Hand, flags: &BTreeSet<Flag>, seen_ms: Option<u64>) -> Result<(), Halt> {
        let intent = &mut hand.intent;
        // When it was seen last matters only where it wasn't before, or for the last time: a look that shows the same needs no
        // write.
        let first = intent.seen_ms.is_some() != seen_ms.is_some();
        let before = Intent { seen_ms, body: Vec::new(), ..intent.clone() };
        if intent.flags == *flags && !first && intent.is_at_rest() == before.is_at_rest() {
            return Ok(());
        }
        if intent.flags != *flags {
            intent.changed_ms = self.clock.unix_ms();
        }
        self.book.advance(hand.turn, intent.state, intent).await?;
        Ok(())
    }

    async fn look_into(&mut self, turn: Turn, cycle: &CycleId, hands: &mut [&mut Hand], all: bool) -> Result<(), Halt> {
        if self.adapter.listing() == Listing::Counts {
            for hand in hands {
                self.look_at_counts(hand).await?;
            }
            return Ok(());
        }
        let sole = all && self.sole;
        // One call a case: those of others that are settled are read when their turn comes.
        let by_case = self.adapter.listing() == Listing::Case;
        let cases: BTreeSet<&CaseId> = hands
            .iter()
            .flat_map(|hand| hand.entries.iter().map(|entry| &entry.case))
            .filter(|_| !sole || by_case)
            .collect();
        let cases: Vec<CaseId> = cases.into_iter().cloned().collect();
        let picture = self.rows_if_there(cycle, cases).await?;
        let (mut planned, mut memory) = (None, Memory::default());
        for hand in hands.iter_mut() {
            if hand.intent.state == IntentState::Rejected {
                self.look_at_refused(hand, &picture).await?;
                continue;
            }
            let needs = self.judge(hand, &picture);
            self.is_older(&mut memory, hand, &needs).await?;
            self.look_at(hand, &needs, &picture, &mut planned).await?;
        }
        if all {
            self.look_for_doubled_cycle(cycle, hands).await?;
        }
        if sole { self.look_for_orphans(turn, (cycle, &mut planned, !by_case), hands, &picture).await } else { Ok(()) }
    }

    /// What was refused after a silence: an earlier send of it may have come late. Then it is there, and nobody is told any more
    /// that it was refused.
    async fn look_at_refused(&mut self, hand: &mut Hand, picture: &Picture) -> Result<(), Halt> {
        let is_there = |entry: &Entry| picture.rows(&entry.case).iter().any(|row| whole(row) == Some(entry.marker));
        let there: Vec<&Entry> = hand.entries.iter().filter(|entry| is_there(entry)).collect();
        if there.is_empty() {
            return Ok(());
        }
        hand.intent.refused.retain(|refused| !there.iter().any(|entry| entry.is_named_by(refused)));
        hand.intent.cause = None;
        self.judge(hand, picture);
        self.step(hand, IntentEvent::Seen).await
    }

    /// Of a cycle that was deleted there, nothing. Where each case is a call, so many at a time that a wish to stop is heard.
    async fn rows_if_there(&mut self, cycle: &CycleId, cases: Vec<CaseId>) -> Result<Picture, Halt> {
        let adapter = self.adapter;
        let (at_once, mut rows) =
            (if adapter.listing() == Listing::Case { CASES_AT_ONCE } else { usize::MAX }, Vec::new());
        // No case is named where all are meant.
        let pieces = if cases.is_empty() { vec![&cases[..]] } else { cases.chunks(at_once).collect() };
        for piece in pieces {
            self.may_go_on("it was being read back")?;
            let read = self
                .asking(|| {
                    Box::pin(async {
                        match adapter.rows(cycle, piece).await {
                            Err(Trouble::Gone(_)) => Ok(Vec::new()),
                            rows => rows,
                        }
                    })
                })
                .await?;
            rows.extend(read);
        }
        Ok(self.pictured(cycle, rows))
    }

    /// It was there, and nobody sends it again: a person may have had a reason.
    async fn look_at(
        &mut self,
        hand: &mut Hand,
        needs: &Needs,
        picture: &Picture,
        planned: &mut Option<Planned>,
    ) -> Result<(), Halt> {
        let missing = needs.to_write();
        if hand.intent.state == IntentState::Parked {
            return Ok(());
        }
        if is_only_accepted(&hand.intent) && self.is_young(&hand.intent) {
            return Ok(());
        }
        let replaces = self.adapter.facts().verdict != VerdictRule::Appends;
        let mut lost = Vec::new();
        for at in missing {
            let (marker, rows) = (hand.entries[at].marker, picture.rows(&hand.entries[at].case));
            // It stands there, and something newer of the same push beside it; or it does, and nobody can read whose it is.
            let said = |row: Marker| (row.write, row.content) == (marker.write, marker.content);
            if rows.iter().any(|row| row.marker == Found::Mangled || whole(row).is_some_and(said)) {
                continue;
            }
            let planned = self.planned_in(&hand.cycle, planned).await?;
            // A newer attempt took its place, or it was left out for that one.
            if planned.has_newer_than(marker) {
                continue;
            }
            // A later push of this ledger took its place, as it should; an older attempt of the same one never does.
            let older = |row: Marker| row.write == marker.write && row.ordinal < marker.ordinal;
            let later = |row: Marker| !older(row) && planned.is_as_late_as(row, hand.intent.planned_ms);
            if replaces && rows.iter().filter_map(whole).any(|row| row != marker && later(row)) {
                continue;
            }
            lost.push(!replaces || rows.is_empty());
        }
        if lost.is_empty() && !needs.flags.contains(&Flag::MarkerMangled) && !needs.are_met() {
            // All that isn't there was rightly replaced.
            seen(&mut hand.intent, self.clock.unix_ms());
        }
        mark_lost(&mut hand.intent, &lost);
        Ok(())
    }

    /// True if what was taken of it may still be on its way.
    fn is_young(&self, intent: &Intent) -> bool {
        self.clock.unix_ms().saturating_sub(intent.sent_ms.unwrap_or(0)) < UNSHOWN_MS
    }

    /// Two writers that each made the round's cycle may see each other's only later (R3).
    async fn look_for_doubled_cycle(&mut self, cycle: &CycleId, hands: &mut [&mut Hand]) -> Result<(), Halt> {
        let Some(first) = hands.first().map(|hand| &hand.intent) else { return Ok(()) };
        let ids =
            [first.round.as_str(), ""].map(|round| WriteId::of_cycle(&first.project, first.cycle.as_str(), round));
        let adapter = self.adapter;
        for id in ids {
            if self.book.cycle(self.target, id).await?.as_ref() != Some(cycle) {
                continue;
            }
            let itself = CycleWanted::by_id(cycle.clone());
            let itself = match self.asking(|| adapter.find_cycles(&itself)).await {
                Err(Halt::Refused(_) | Halt::Gone(_)) => continue,
                found => found?.into_iter().next(),
            };
            let Some(itself) = itself else { continue };
            let mut wanted = CycleWanted { name: itself.name, id, link: None, given: None };
            wanted.name = wanted.name.replace(&wanted.tag(), "").trim().into();
            let found = self.asking(|| adapter.find_cycles(&wanted)).await?;
            for hand in hands.iter_mut().filter(|hand| is_looked_at(&hand.intent)) {
                set(&mut hand.intent, Flag::CycleDoubled, found.len() > 1);
                if found.iter().any(|found| found.id == *cycle) {
                    set(&mut hand.intent, Flag::CycleUnseen, false);
                }
            }
        }
        Ok(())
    }

    async fn look_at_counts(&mut self, hand: &mut Hand) -> Result<(), Halt> {
        // Of what was refused nothing is missed, and a count doesn't tell whose it is.
        if hand.intent.state == IntentState::Rejected {
            return Ok(());
        }
        let wanted: Vec<Entry> = hand.entries.iter().filter(|entry| !hand.is_refused(entry)).cloned().collect();
        let (adapter, cycle) = (self.adapter, hand.cycle.clone());
        let count = self.asking(|| adapter.count(&cycle, &wanted)).await?.unwrap_or(0);
        let intent = &mut hand.intent;
        judge_count(intent, count, wanted.len() as u64, self.clock.unix_ms());
        if intent.state != IntentState::Parked {
            let missing = count < wanted.len() as u64;
            mark_lost(intent, if missing { &[true] } else { &[] });
        }
        Ok(())
    }

    /// Rows of ours that no intent knows (W5): said at the oldest one of the cycle, and nowhere else.
    async fn look_for_orphans(
        &mut self,
        turn: Turn,
        (cycle, planned, whole): (&CycleId, &mut Option<Planned>, bool),
        hands: &mut [&mut Hand],
        picture: &Picture,
    ) -> Result<(), Halt> {
        self.planned_in(cycle, planned).await?;
        let planned = planned.take().unwrap_or_default();
        let orphan = picture.has_orphans(cycle, |marker| planned.knows(marker));
        let says = planned.eldest.into_iter().map(|intent| (intent, orphan));
        for (mut other, orphan) in says.chain(planned.orphaned.into_iter().map(|intent| (intent, false))) {
            if let Some(hand) = hands.iter_mut().find(|hand| hand.intent.id == other.id) {
                set(&mut hand.intent, Flag::Orphan, orphan);
            } else if (orphan || whole) && other.flags.contains(&Flag::Orphan) != orphan {
                set(&mut other, Flag::Orphan, orphan);
                self.book.advance(turn, other.state, &other).await?;
            }
        }
        Ok(())
    }
}

/// True if an answer took it, and no reading has shown it yet.
fn is_only_accepted(intent: &Intent) -> bool {
    intent.flags.contains(&Flag::AcceptedNotConfirmed)
}

pub(super) fn is_looked_at(intent: &Intent) -> bool {
    matches!(intent.state, IntentState::Acked | IntentState::Found | IntentState::Parked)
        && !intent.flags.contains(&Flag::AtMostOnce)
        // What was left out for a newer attempt may have no place at all.
        && intent.cycle_there.is_some()
}

/// True if it was refused, and sent before that too: what no answer came to may have been carried out.
fn may_have_come(intent: &Intent) -> bool {
    intent.state == IntentState::Rejected && intent.sends > 1 && intent.cycle_there.is_some()
}

/// What is missing of a settled intent, each with whether nothing else is in its place: lost if the product's word is all that
/// was ever heard of it, taken away or written over by somebody if not.
fn mark_lost(intent: &mut Intent, missing: &[bool]) {
    let by_product = intent.state == IntentState::Acked && intent.seen_ms.is_none();
    set(intent, Flag::VendorLost, by_product && missing.contains(&true));
    set(intent, Flag::Vanished, if by_product { missing.contains(&false) } else { !missing.is_empty() });
}

/// What a product that only counts says of an intent.
pub(super) fn judge_count(intent: &mut Intent, count: u64, wanted: u64, now_ms: u64) {
    if count == wanted {
        set(intent, Flag::DuplicateDetected, false);
        return seen(intent, now_ms);
    }
    let times = count.checked_rem(wanted).is_some_and(|rest| rest == 0) && count != u64::MAX;
    set(intent, Flag::DuplicateDetected, times && count > wanted);
    set(intent, Flag::Partial, 0 < count && count < wanted);
    set(intent, Flag::CountContradicts, count > wanted && !times);
}
