//! The strategy `container`: a cycle of its own for each try of a push, ended last. What comes late lands in a container that
//! was given up (`facts/idempotency.md`, 4.2, M5). Must not know products.

use std::collections::BTreeSet;

use domain::intent::{Flag, Intent, IntentEvent, IntentState};
use domain::marker::WriteId;

use super::adopt::{has_followed, says_the_same};
use super::cycle::There;
use super::offer::Offer;
use super::plan;
use super::reading::{set, unseen};
use super::send::Sent;
use super::settle::Hand;
use super::sweep::judge_count;
use super::{Forwarded, Forwarder, Halt, Load, Of, Turn};
use crate::foreign::adapter::{Closing, Listing};
use crate::foreign::entry::{CaseId, CycleId, CycleWanted, Entry};

/// Containers that are begun for one push before a person has to look.
pub(super) const CONTAINERS_MAX: u32 = 8;
/// How often a container that was ended is looked into until all of it is shown.
const LOOKS_MAX: u32 = 3;

impl Forwarder<'_> {
    /// Forwards a load into a container of its own.
    pub(super) async fn contain(&mut self, turn: Turn, load: &Load, done: &mut Forwarded) -> Result<(), Halt> {
        let entries = self.entries(load, &mut done.unmatched).await?;
        self.settle_others(turn, load, &entries).await?;
        if entries.is_empty() {
            return Ok(());
        }
        let newest = self.newest_container(turn, load).await?;
        // Whoever deletes a container and pushes again wants another one: its intent is one of its own.
        let mut instead_of = CycleId::new("");
        loop {
            let is_first = instead_of.as_str().is_empty();
            let repeated = newest.as_ref().filter(|newest| is_first && says_the_same(&newest.entries, &entries));
            // By whatever attempt.
            let known = if let Some(newest) = repeated {
                newest.intent.clone()
            } else {
                let whole = plan::intents(self.target, load, &instead_of, &entries, entries.len(), self.clock);
                let whole = whole.into_iter().map(|intent| Intent { cycle_there: None, ..intent }).collect();
                let Some(known) = self.book.plan(turn, whole).await?.pop() else { return Ok(()) };
                known
            };
            // It comes back after another content, so that the container that has it is not the newest any more.
            if let Some(newest) =
                newest.as_ref().filter(|newest| is_first && has_followed(newest, &known, load.ordinal))
            {
                instead_of = newest.cycle.clone();
                continue;
            }
            let was_settled = known.state.is_settled();
            let mut intent = self.settle_container(turn, known, &load.wanted).await?;
            if was_settled && let Some(gone) = self.gone_container(&intent, &load.wanted).await? {
                intent.flags.extend([Flag::Vanished, Flag::GivenUp]);
                intent.cause = Some(format!("its container {gone} is not there any more: another one was begun"));
                intent.changed_ms = self.clock.unix_ms();
                self.book.advance(turn, intent.state, &intent).await?;
                instead_of = gone;
                continue;
            }
            if was_settled && intent.cycle_there.is_some() {
                intent = self.look(turn, vec![intent.clone()], false).await?.pop().unwrap_or(intent);
            }
            done.cycle = intent.cycle_there.clone().map(CycleId::new);
            done.intents.push(intent);
            return Ok(());
        }
    }

    /// Settles what is open of other contents of the push. What the load says again is not begun anew: a container of it
    /// counts only if it is whole.
    async fn settle_others(&mut self, turn: Turn, load: &Load, entries: &[Entry]) -> Result<(), Halt> {
        let marked = |entries: &[Entry]| entries.iter().map(|entry| entry.marker).collect::<BTreeSet<_>>();
        let offer = Offer::of(load, entries);
        for intent in self.book.known(self.target, Of::Push(&load.project, &load.key)).await? {
            let mut hand = Hand::of(turn, intent)?;
            if hand.intent.state.is_settled() || marked(&hand.entries) == marked(entries) {
                continue;
            }
            if !offer.says_all_of(&hand) {
                self.settle_container(turn, hand.intent, &load.wanted).await?;
                continue;
            }
            while !hand.intent.state.is_settled() {
                match hand.intent.state {
                    IntentState::Planned | IntentState::Absent => self.leave_for_newer(&mut hand).await?,
                    _ => self.find_out(&mut hand).await?,
                }
            }
        }
        Ok(())
    }

    /// Nothing is begun for it: a newer attempt is there, or on its way. What was begun was given up.
    pub(super) async fn leave_for_newer(&mut self, hand: &mut Hand) -> Result<(), Halt> {
        unseen(&mut hand.intent);
        hand.intent.flags.insert(Flag::Stale);
        hand.intent.cycle_there = None;
        self.step(hand, IntentEvent::Seen).await
    }

    /// The container that held all of a settled intent, if it isn't there any more.
    async fn gone_container(&mut self, intent: &Intent, base: &CycleWanted) -> Result<Option<CycleId>, Halt> {
        let confirmed = matches!(intent.state, IntentState::Acked | IntentState::Found);
        let Some(cycle) = intent.cycle_there.clone().map(CycleId::new).filter(|_| confirmed) else { return Ok(None) };
        let adapter = self.adapter;
        for number in 0..intent.sends {
            let wanted = numbered(base, intent, number);
            let found = self.asking(|| adapter.find_cycles(&wanted)).await?;
            if found.iter().any(|found| found.id == cycle) {
                return Ok(None);
            }
        }
        // Both questions: a search alone may lag behind.
        Ok((self.there(&cycle).await? == There::Gone).then_some(cycle))
    }

    /// Brings the container of an intent to its end.
    pub(super) async fn settle_container(
        &mut self,
        turn: Turn,
        intent: Intent,
        base: &CycleWanted,
    ) -> Result<Intent, Halt> {
        let mut hand = Hand::of(turn, intent)?;
        while !hand.intent.state.is_settled() {
            match hand.intent.state {
                IntentState::Planned | IntentState::Absent => self.fill_another(&mut hand, base).await?,
                _ => self.find_out(&mut hand).await?,
            }
        }
        self.confirm_container(&mut hand).await?;
        Ok(hand.intent)
    }

    /// The next step in finding out what became of the container that was begun last.
    async fn find_out(&mut self, hand: &mut Hand) -> Result<(), Halt> {
        match hand.intent.state {
            IntentState::Sending => self.found_sending(hand).await,
            IntentState::Unknown => self.after_quiet(std::slice::from_mut(hand)).await,
            IntentState::Reconciling => self.judge_container(hand).await,
            _ => Ok(()),
        }
    }

    /// Where what is taken is shown later, the product's word is not enough (W13). Another container would be no better.
    async fn confirm_container(&mut self, hand: &mut Hand) -> Result<(), Halt> {
        let Some(lag_ms) = self.lag_ms().filter(|_| hand.intent.flags.contains(&Flag::AcceptedNotConfirmed)) else {
            return Ok(());
        };
        let Some(cycle) = hand.intent.cycle_there.clone().map(CycleId::new) else { return Ok(()) };
        let (flags, seen_ms) = (hand.intent.flags.clone(), hand.intent.seen_ms);
        for look in 0..LOOKS_MAX {
            if look > 0 && self.pause(lag_ms << (look - 1), "taken; waiting until it is shown").await.is_err() {
                break;
            }
            // What is there twice is not waited for: later there is only more of it.
            if self.is_whole(hand, &cycle).await? || hand.intent.flags.contains(&Flag::DuplicateDetected) {
                break;
            }
        }
        // Also that a part of it alone is shown, or something else.
        if (&hand.intent.flags, hand.intent.seen_ms) != (&flags, seen_ms) {
            self.book.advance(hand.turn, hand.intent.state, &hand.intent).await?;
        }
        Ok(())
    }

    async fn fill_another(&mut self, hand: &mut Hand, base: &CycleWanted) -> Result<(), Halt> {
        unseen(&mut hand.intent);
        if self.is_known_newer(hand).await? {
            return self.leave_for_newer(hand).await;
        }
        if hand.intent.sends >= CONTAINERS_MAX {
            return self.step(hand, IntentEvent::GivenUp).await;
        }
        if self.adopts(hand, base).await? {
            return self.step(hand, IntentEvent::Seen).await;
        }
        let wanted = numbered(base, &hand.intent, hand.intent.sends);
        // A process whose ledger is gone may have filled it.
        if let Some(there) = self.first_there(hand, &wanted).await? {
            if self.sole && hand.intent.sent_ms.is_none() {
                hand.intent.flags.insert(Flag::LedgerRestored);
            }
            hand.intent.cycle_there = Some(there.to_string());
            hand.intent.sends += 1;
            let next = numbered(base, &hand.intent, hand.intent.sends);
            if self.first_there(hand, &next).await?.is_some() {
                // Another one was begun after it: it was given up, whatever came into it since.
                return Ok(());
            }
            if self.is_whole(hand, &there).await? {
                self.end(&there).await?;
                return self.step(hand, IntentEvent::Seen).await;
            }
            // Another process may be filling it right now, or what one has sent comes late.
            hand.intent.sent_ms = Some(self.clock.unix_ms());
            hand.intent.cause = Some("a container of this push is there, and not whole".to_owned());
            self.step(hand, IntentEvent::Sent).await?;
            return self.step(hand, IntentEvent::Silence).await;
        }
        if let Some(later) = self.begun_later(hand, base).await? {
            hand.intent.sends = later;
            return Ok(());
        }
        let cycle = self.begin(hand, &wanted).await?;
        match self.fill(hand, &cycle, &wanted).await? {
            // Two writers at once fill one container (R2, R3). Whoever ends it last sees both, where it can be seen by now.
            None if self.lag_ms().is_none() && !self.is_whole(hand, &cycle).await? => {
                hand.intent.cause = Some("taken, but the container holds something else: another writer?".to_owned());
                self.step(hand, IntentEvent::Silence).await
            }
            None => {
                if hand.intent.flags.contains(&Flag::CycleUnseen) {
                    let listed = self.listed_with(&wanted, &cycle).await?;
                    set(&mut hand.intent, Flag::CycleUnseen, !listed.iter().any(|found| found.id == cycle));
                }
                self.end(&cycle).await?;
                hand.intent.cause = None;
                set(&mut hand.intent, Flag::AcceptedNotConfirmed, self.lag_ms().is_some());
                self.step(hand, IntentEvent::Confirmed).await
            }
            Some(unclear) => {
                hand.intent.cause = Some(unclear);
                self.step(hand, IntentEvent::Silence).await
            }
        }
    }

    /// Makes a container, and keeps which one it is.
    async fn begin(&mut self, hand: &mut Hand, wanted: &CycleWanted) -> Result<CycleId, Halt> {
        hand.intent.sends += 1;
        hand.intent.sent_ms = Some(self.clock.unix_ms());
        hand.intent.cycle_there = None;
        self.step(hand, IntentEvent::Sent).await?;
        let made = self.found_or_made(wanted, &mut Vec::new()).await?;
        let listed = self.first_there(hand, wanted).await?;
        set(&mut hand.intent, Flag::CycleUnseen, listed.is_none());
        let cycle = listed.unwrap_or(made.cycle);
        hand.intent.cycle_there = Some(cycle.to_string());
        self.book.advance(hand.turn, IntentState::Sending, &hand.intent).await?;
        hand.cycle = cycle.clone();
        Ok(cycle)
    }

    /// The next number that is there, on a product where a container that was given up is gone: without a ledger the later
    /// one alone says that it ever was.
    async fn begun_later(&mut self, hand: &mut Hand, base: &CycleWanted) -> Result<Option<u32>, Halt> {
        if !self.adapter.deletes_abandoned() {
            return Ok(None);
        }
        for number in hand.intent.sends + 1..CONTAINERS_MAX {
            let wanted = numbered(base, &hand.intent, number);
            if self.first_there(hand, &wanted).await?.is_some() {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Flags what was ended here although another process took it for given up, and began the next one: each of the two
    /// counts its own.
    pub(super) async fn look_for_later(&mut self, turn: Turn, intents: &mut [Intent]) -> Result<(), Halt> {
        for intent in intents.iter_mut().filter(|intent| intent.sends > 0 && intent.cycle_there.is_some()) {
            let base = CycleWanted { name: String::new(), id: WriteId(0), link: None, given: None };
            let (adapter, wanted) = (self.adapter, numbered(&base, intent, intent.sends));
            let later = self.asking(|| adapter.find_cycles(&wanted)).await?;
            if !later.is_empty() && intent.flags.insert(Flag::CycleDoubled) {
                self.book.advance(turn, intent.state, intent).await?;
            }
        }
        Ok(())
    }

    /// The oldest of a number, whether it has ended or not: one that is made again later, or late, never takes its place.
    pub(super) async fn first_there(&mut self, hand: &mut Hand, wanted: &CycleWanted) -> Result<Option<CycleId>, Halt> {
        let adapter = self.adapter;
        let found = self.asking(|| adapter.find_cycles(wanted)).await?;
        if found.len() > 1 {
            hand.intent.flags.insert(Flag::CycleDoubled);
        }
        Ok(found.into_iter().next().map(|found| found.id))
    }

    /// Writes everything. `Some`: a part may be written or not.
    async fn fill(&mut self, hand: &mut Hand, cycle: &CycleId, wanted: &CycleWanted) -> Result<Option<String>, Halt> {
        let mut left_out = Vec::new();
        let entries = self.writable(cycle, hand.entries.clone(), &mut left_out).await?;
        hand.refuse(left_out);
        let items_max = self.adapter.facts().bulk.items_max.max(1);
        for batch in entries.chunks(items_max) {
            let mut out = Vec::new();
            let sent = self.send(hand, batch, items_max, &mut out).await?;
            let refused = !out.is_empty() || matches!(sent, Sent::Denied(Halt::Refused(_) | Halt::Gone(_)));
            if refused && self.is_closed(cycle, wanted).await? {
                // By another writer of this push: nothing of it is about the outcomes.
                return Ok(Some("the container was ended while it was filled".to_owned()));
            }
            hand.refuse(out);
            match sent {
                Sent::Taken(_) => {}
                Sent::Unknown(what) => return Ok(Some(what)),
                Sent::NotAll(halt) | Sent::Denied(halt) => return Err(halt),
            }
        }
        Ok(None)
    }

    async fn is_closed(&mut self, cycle: &CycleId, wanted: &CycleWanted) -> Result<bool, Halt> {
        let (adapter, given) = (self.adapter, CycleWanted { given: Some(cycle.clone()), ..wanted.clone() });
        let found = self.asking(|| adapter.find_cycles(&given)).await?;
        Ok(found.iter().any(|found| found.closed))
    }

    async fn judge_container(&mut self, hand: &mut Hand) -> Result<(), Halt> {
        let Some(cycle) = hand.intent.cycle_there.clone().map(CycleId::new) else {
            // It died before it had one; the next search finds what it made all the same.
            hand.intent.sends = hand.intent.sends.saturating_sub(1);
            return self.step(hand, IntentEvent::Missing).await;
        };
        match self.is_whole(hand, &cycle).await {
            Ok(true) => {
                self.end(&cycle).await?;
                return self.step(hand, IntentEvent::Seen).await;
            }
            Ok(false) => self.give_up(&cycle).await?,
            // Deleted, by a person or by another writer who gave it up: another one is begun.
            Err(halt @ (Halt::Refused(_) | Halt::Gone(_))) => {
                if self.there(&cycle).await? != There::Gone && !matches!(halt, Halt::Gone(_)) {
                    return Err(halt);
                }
                hand.intent.cause = Some(format!("the container {cycle}: {halt}"));
            }
            Err(halt) => return Err(halt),
        }
        self.step(hand, IntentEvent::Missing).await
    }

    /// True if a container holds everything once, and nothing else of it.
    pub(super) async fn is_whole(&mut self, hand: &mut Hand, cycle: &CycleId) -> Result<bool, Halt> {
        let adapter = self.adapter;
        if adapter.listing() == Listing::Counts {
            let entries: Vec<Entry> = hand.entries.iter().filter(|entry| !hand.is_refused(entry)).cloned().collect();
            let count = self.asking(|| adapter.count(cycle, &entries)).await?;
            judge_count(&mut hand.intent, count.unwrap_or(0), entries.len() as u64, self.clock.unix_ms());
            return Ok(count == Some(entries.len() as u64));
        }
        let cases: Vec<CaseId> = hand.entries.iter().map(|entry| entry.case.clone()).collect();
        let picture = self.rows(cycle, &cases).await?;
        let needs = self.judge(hand, &picture);
        Ok(needs.are_met() && needs.flags.is_empty())
    }

    pub(super) async fn end(&mut self, cycle: &CycleId) -> Result<(), Halt> {
        let adapter = self.adapter;
        self.changing(|| adapter.close_cycle(cycle, Closing::Complete)).await
    }

    /// Nothing is taken from it any more; where the product can't say so, another one counts all the same.
    async fn give_up(&mut self, cycle: &CycleId) -> Result<(), Halt> {
        let adapter = self.adapter;
        match self.changing(|| adapter.close_cycle(cycle, Closing::Abandoned)).await {
            Err(Halt::Refused(_) | Halt::Gone(_)) => Ok(()),
            other => other,
        }
    }
}

/// The container of a try: the same for every process that tries the same content so often.
pub(super) fn numbered(base: &CycleWanted, intent: &Intent, number: u32) -> CycleWanted {
    let name = if number == 0 { base.name.clone() } else { format!("{}, container {}", base.name, number + 1) };
    CycleWanted { name, id: container_id(intent, number), link: base.link.clone(), given: None }
}

/// The id of an intent's container of this number, from 0.
pub fn container_id(intent: &Intent, number: u32) -> WriteId {
    let round = format!("{}\0{}\0{}", intent.round, intent.id, number);
    WriteId::of_cycle(&intent.project, intent.cycle.as_str(), &round)
}
