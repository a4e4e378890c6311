//! What the ledger knows of what was sent, for questions that the repository alone doesn't answer: was it this ledger that
//! wrote what is there (windows W5, W6, W14), and, where nothing can be read, what was sent before (W12). Must not read there.

use std::collections::{BTreeMap, BTreeSet};

use domain::intent::{Flag, Intent, IntentEvent, IntentId, IntentState};
use domain::marker::{ContentTag, Found, Marker, WriteId};
use domain::{Ordinal, ProjectId, PushKey};

use super::decide::{Needs, Picture};
use super::settle::Hand;
use super::{BookError, Forwarder, Halt, Need, Of};
use crate::foreign::entry::{Entry, Row, RowId, RowStatus};
use crate::foreign::facts::Strategy;

/// What is there and older than the push by more than this was not written by it, in milliseconds. Longer than clocks and
/// time zones differ: some products show times without a zone.
pub(super) const OLDER_MS: u64 = 24 * 60 * 60 * 1000;

/// The intents of one push, as far as they were sent.
#[derive(Debug, Default)]
pub(super) struct Known {
    sent: BTreeSet<(WriteId, ContentTag, IntentId)>,
    /// When the first of the push was recorded or planned.
    first_ms: Option<u64>,
    /// What may be there, and nobody knows.
    uncertain: BTreeSet<(WriteId, ContentTag)>,
    /// Every entry that may be there, and whether it surely is.
    rows: Vec<(IntentId, bool, Row)>,
    /// The newest attempt that is there, of each write in each cycle there.
    newest: BTreeMap<(String, WriteId), Ordinal>,
    /// When what is there of each write was planned last, and what it said.
    planned: BTreeMap<WriteId, (u64, ContentTag)>,
}

impl Known {
    fn of(intents: Vec<Intent>) -> Result<Self, BookError> {
        let mut known = Self::default();
        for intent in intents {
            let hand = Hand::of(super::Turn(0), intent)?;
            let intent = &hand.intent;
            let times = hand.entries.iter().map(|entry| entry.at_ms).chain([intent.planned_ms]);
            known.first_ms = known.first_ms.into_iter().chain(times).min();
            // What had no effect is planned again, however often it was tried.
            let sent = !matches!(intent.state, IntentState::Planned | IntentState::Rejected);
            for entry in hand.entries.iter().filter(|entry| !hand.is_refused(entry)) {
                if intent.sends > 0 || intent.state == IntentState::Found {
                    known.sent.insert((entry.marker.write, entry.marker.content, intent.id));
                }
                if intent.state.is_uncertain() {
                    known.uncertain.insert((entry.marker.write, entry.marker.content));
                }
                let is_there = matches!(intent.state, IntentState::Acked | IntentState::Found);
                if is_there && !intent.flags.contains(&Flag::Stale) {
                    let now = (intent.planned_ms, entry.marker.content);
                    let last = known.planned.entry(entry.marker.write).or_insert(now);
                    *last = if last.0 > now.0 { *last } else { now };
                }
                if let (true, Some(ordinal)) = (is_there, entry.marker.ordinal) {
                    let cycle = intent.cycle_there.clone().unwrap_or_default();
                    let newest = known.newest.entry((cycle, entry.marker.write)).or_insert(ordinal);
                    *newest = ordinal.max(*newest);
                }
                if sent {
                    known.rows.push((intent.id, is_there, as_row(entry, intent)));
                }
            }
        }
        Ok(known)
    }

    /// True if another content of an entry's write was planned after its intent, and by no newer attempt.
    pub(super) fn has_followed(&self, entry: &Entry, hand: &Hand) -> bool {
        let newest = self.newest.get(&(hand.cycle.to_string(), entry.marker.write)).copied();
        let last = self.planned.get(&entry.marker.write);
        newest <= entry.marker.ordinal
            && last.is_some_and(|(ms, content)| *ms > hand.intent.planned_ms && *content != entry.marker.content)
    }

    /// True if another intent than this one wrote it, or saw it.
    fn has_sent(&self, marker: &Marker, but: IntentId) -> bool {
        let (write, content) = (marker.write, marker.content);
        let all = self.sent.range((write, content, IntentId(0))..=(write, content, IntentId(u128::MAX)));
        all.into_iter().any(|(.., intent)| *intent != but)
    }
}

/// What a product that lists nothing holds as far as anybody knows.
fn as_row(entry: &Entry, intent: &Intent) -> Row {
    Row {
        id: RowId::new(intent.id.to_string()),
        case: entry.case.clone(),
        status: RowStatus::Is(entry.status),
        marker: Found::Whole(entry.marker),
        at_ms: intent.sent_ms,
        text: String::new(),
    }
}

/// What the ledger knows, asked for once a push.
#[derive(Debug, Default)]
pub(super) struct Memory(BTreeMap<(ProjectId, PushKey), Known>);

impl Forwarder<'_> {
    pub(super) async fn known<'m>(&mut self, memory: &'m mut Memory, intent: &Intent) -> Result<&'m Known, Halt> {
        let push = (intent.project.clone(), intent.key.clone());
        if !memory.0.contains_key(&push) {
            let intents = self.book.known(self.target, Of::Push(&push.0, &push.1)).await?;
            memory.0.insert(push.clone(), Known::of(intents)?);
        }
        Ok(memory.0.entry(push).or_default())
    }

    /// Intents as the ledger has them now: what was read before this turn may have gone on since.
    pub(super) async fn as_kept(&mut self, intents: Vec<Intent>) -> Result<Vec<Intent>, Halt> {
        let wanted: BTreeSet<IntentId> = intents.iter().map(|intent| intent.id).collect();
        let pushes: BTreeSet<(&ProjectId, &PushKey)> =
            intents.iter().map(|intent| (&intent.project, &intent.key)).collect();
        let mut kept = BTreeMap::new();
        for (project, key) in pushes {
            let known = self.book.known(self.target, Of::Push(project, key)).await?;
            kept.extend(known.into_iter().filter(|now| wanted.contains(&now.id)).map(|now| (now.id, now)));
        }
        Ok(intents.into_iter().filter_map(|intent| kept.remove(&intent.id)).collect())
    }

    /// What was sent of the pushes of these intents: all that can be known where nothing is read. Themselves are left out,
    /// but for what comes back: that was taken once.
    pub(super) async fn sent_before(&mut self, memory: &mut Memory, hands: &[&mut Hand]) -> Result<Picture, Halt> {
        self.remembered(memory, hands, |hand, intent, _| {
            intent != hand.intent.id || hand.intent.state == IntentState::Absent
        })
        .await
    }

    /// What other intents of the pushes of these are known to have brought there.
    pub(super) async fn confirmed_before(&mut self, memory: &mut Memory, hands: &[&mut Hand]) -> Result<Picture, Halt> {
        self.remembered(memory, hands, |hand, intent, is_there| is_there && intent != hand.intent.id).await
    }

    async fn remembered(
        &mut self,
        memory: &mut Memory,
        hands: &[&mut Hand],
        counts: impl Fn(&Hand, IntentId, bool) -> bool,
    ) -> Result<Picture, Halt> {
        let mut rows = Vec::new();
        for hand in hands {
            let known = self.known(memory, &hand.intent).await?;
            let cases: BTreeSet<_> = hand.entries.iter().map(|entry| &entry.case).collect();
            let of_hand = |(intent, is_there, row): &&(IntentId, bool, Row)| {
                counts(hand, *intent, *is_there) && cases.contains(&row.case)
            };
            rows.extend(known.rows.iter().filter(of_hand).map(|(.., row)| row.clone()));
        }
        Ok(Picture::of(rows))
    }

    /// An older attempt never follows a newer one that this ledger knows of, also where that one found its outcome there
    /// already, so that no row tells of it.
    pub(super) async fn leave_what_is_known_newer(
        &mut self,
        memory: &mut Memory,
        hand: &mut Hand,
        needs: &mut Needs,
    ) -> Result<(), Halt> {
        if needs.to_write().is_empty() || hand.entries.iter().all(|entry| entry.marker.ordinal.is_none()) {
            return Ok(());
        }
        let known = self.known(memory, &hand.intent).await?;
        let cycle = hand.cycle.to_string();
        let mut stale = false;
        for (entry, need) in hand.entries.iter().zip(&mut needs.of) {
            let newest = known.newest.get(&(cycle.clone(), entry.marker.write)).copied();
            if *need == Need::Write && newest > entry.marker.ordinal {
                (*need, stale) = (Need::Leave(Flag::Stale), true);
            }
        }
        if stale {
            hand.intent.flags.insert(Flag::Stale);
        }
        Ok(())
    }

    /// True if this ledger knows of a newer attempt of each outcome that a container is to hold. Where attempts have no
    /// numbers, the last to come is the newest.
    pub(super) async fn is_known_newer(&mut self, hand: &Hand) -> Result<bool, Halt> {
        let mut memory = Memory::default();
        let known = self.known(&mut memory, &hand.intent).await?;
        let newer = |entry: &Entry| {
            let mut attempts = known.newest.iter().filter(|((_, write), _)| *write == entry.marker.write);
            match entry.marker.ordinal {
                Some(_) => attempts.any(|(_, attempt)| Some(*attempt) > entry.marker.ordinal),
                None => known.planned.get(&entry.marker.write).is_some_and(|(ms, _)| *ms > hand.intent.planned_ms),
            }
        };
        Ok(!hand.entries.is_empty() && hand.entries.iter().all(newer))
    }

    /// Nothing of an intent is to be sent. Where nothing can be read, that may be because it was sent before without an answer.
    pub(super) async fn event_of_all_there(
        &mut self,
        hand: &mut Hand,
        memory: &mut Memory,
    ) -> Result<IntentEvent, Halt> {
        if self.strategy == Strategy::AtMostOnce {
            let known = self.known(memory, &hand.intent).await?;
            let said = |entry: &Entry| (entry.marker.write, entry.marker.content);
            if hand.entries.iter().any(|entry| known.uncertain.contains(&said(entry))) {
                hand.intent.cause = Some("it was sent before, and no answer said what came of it".to_owned());
                return Ok(IntentEvent::GivenUp);
            }
        }
        Ok(IntentEvent::Seen)
    }

    /// What of an intent is there though it was never sent: by whom, only somebody who alone forwards there can ask. True if
    /// it is older than the push, so that it isn't this push's.
    pub(super) async fn is_strange(
        &mut self,
        memory: &mut Memory,
        hand: &mut Hand,
        needs: &Needs,
    ) -> Result<bool, Halt> {
        if !self.sole || hand.intent.sends > 0 || !needs.show_any() {
            return Ok(false);
        }
        if self.is_older(memory, hand, needs).await? {
            hand.intent.cause = Some("what is there is older than the push".to_owned());
            return Ok(true);
        }
        let (known, intent) = (self.known(memory, &hand.intent).await?, &hand.intent);
        let there = hand.entries.iter().zip(&needs.of).filter(|(_, need)| **need == Need::Nothing);
        let unsent = there.into_iter().any(|(entry, _)| !known.has_sent(&entry.marker, intent.id));
        if unsent {
            hand.intent.flags.insert(Flag::LedgerRestored);
        }
        Ok(false)
    }

    /// What is there can't be of this push: it is older than all that was ever planned of it (W14).
    pub(super) async fn is_older(&mut self, memory: &mut Memory, hand: &mut Hand, needs: &Needs) -> Result<bool, Halt> {
        let planned = hand.entries.iter().map(|entry| entry.at_ms).chain([hand.intent.planned_ms]).min();
        let older = |than: Option<u64>| {
            needs.oldest_ms.zip(than).is_some_and(|(oldest, than)| oldest.saturating_add(OLDER_MS) < than)
        };
        // The ledger is asked only where it matters.
        if !self.sole || !older(planned) {
            return Ok(false);
        }
        let known = self.known(memory, &hand.intent).await?;
        if !older(known.first_ms.into_iter().chain(planned).min()) {
            return Ok(false);
        }
        hand.intent.flags.insert(Flag::SuspiciousMatch);
        Ok(true)
    }

    /// The product had an id of ours before this ledger ever sent it.
    pub(super) async fn note_existed(&mut self, hand: &mut Hand, existed: &[Marker]) -> Result<(), Halt> {
        if !self.sole || hand.intent.sends > 1 || existed.is_empty() {
            return Ok(());
        }
        let (mut memory, id) = (Memory::default(), hand.intent.id);
        let known = self.known(&mut memory, &hand.intent).await?;
        if existed.iter().any(|marker| !known.has_sent(marker, id)) {
            hand.intent.flags.insert(Flag::LedgerRestored);
        }
        Ok(())
    }
}
