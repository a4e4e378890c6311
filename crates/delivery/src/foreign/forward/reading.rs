//! Reading what is there, once for many intents, and what a reading says of each of them: its flags come and go with what
//! is seen. Must not write there, nor decide what follows.

use std::collections::BTreeSet;

use domain::intent::{Flag, Intent};

use super::decide::{Needs, Picture, whole};
use super::settle::Hand;
use super::{Forwarder, Halt, Need};
use crate::foreign::entry::{CaseId, CycleId, Entry, Row, RowStatus};
use crate::foreign::facts::VerdictRule;

/// What stops being so once all of it was seen.
const HEALED: [Flag; 5] =
    [Flag::AcceptedNotConfirmed, Flag::CountContradicts, Flag::Partial, Flag::Vanished, Flag::VendorLost];

/// Raises a flag, or takes it away.
pub(super) fn set(intent: &mut Intent, flag: Flag, is_so: bool) {
    if is_so {
        intent.flags.insert(flag);
    } else {
        intent.flags.remove(&flag);
    }
}

/// Takes down that all of it was seen.
pub(super) fn seen(intent: &mut Intent, now_ms: u64) {
    intent.seen_ms = Some(now_ms);
    for flag in HEALED {
        intent.flags.remove(&flag);
    }
}

/// Nothing was seen of it where it is written now.
pub(super) fn unseen(intent: &mut Intent) {
    intent.seen_ms = None;
    for flag in HEALED.into_iter().chain([Flag::DuplicateDetected, Flag::MarkerMangled]) {
        intent.flags.remove(&flag);
    }
}

impl Forwarder<'_> {
    /// One picture of all that intents of one cycle are about.
    pub(super) async fn picture(&mut self, hands: &[&mut Hand]) -> Result<Picture, Halt> {
        let Some(first) = hands.first() else { return Ok(Picture::default()) };
        let cycle = first.cycle.clone();
        let cases: BTreeSet<&CaseId> =
            hands.iter().flat_map(|hand| hand.entries.iter().map(|entry| &entry.case)).collect();
        let cases: Vec<CaseId> = cases.into_iter().cloned().collect();
        self.rows(&cycle, &cases).await
    }

    pub(super) async fn rows(&mut self, cycle: &CycleId, cases: &[CaseId]) -> Result<Picture, Halt> {
        let adapter = self.adapter;
        let rows = self.asking(|| adapter.rows(cycle, cases)).await?;
        Ok(self.pictured(cycle, rows))
    }

    /// Where one row a case is to count, those that a repair has marked don't stand beside it.
    pub(super) fn pictured(&self, cycle: &CycleId, rows: Vec<Row>) -> Picture {
        let picture = Picture::of(rows);
        let one_place = self.adapter.facts().verdict == VerdictRule::Replaces;
        if one_place { picture.without_repeats(cycle) } else { picture }
    }

    /// What is there of an intent; what was refused of it is not missed.
    pub(super) fn judge(&self, hand: &mut Hand, picture: &Picture) -> Needs {
        let mut needs = picture.needs(&hand.entries, self.adapter.facts().verdict);
        hand.leave_out(&mut needs);
        for (at, need) in needs.of.iter_mut().enumerate() {
            let entry = &hand.entries[at];
            // The product would take it for the repeat of one that something else was written after.
            let again = self.is_keyed() && picture.rows(&entry.case).iter().any(|row| whole(row) == Some(entry.marker));
            if *need == Need::Write && again {
                *need = Need::Leave(Flag::Overtaken);
                needs.flags.push(Flag::Overtaken);
            }
        }
        let intent = &mut hand.intent;
        for flag in [Flag::DuplicateDetected, Flag::MarkerMangled, Flag::Overtaken] {
            set(intent, flag, needs.flags.contains(&flag));
        }
        // What was replaced can't be read any more: that it was there is said until the next sweep.
        if hand.swept || needs.flags.contains(&Flag::RowsAmbiguous) {
            set(intent, Flag::RowsAmbiguous, needs.flags.contains(&Flag::RowsAmbiguous));
        }
        // What a newer attempt took the place of was left out, also when that one is gone.
        let stale = needs.flags.contains(&Flag::Stale);
        if stale != intent.flags.contains(&Flag::Stale) && !intent.state.is_settled() && (stale || needs.are_met()) {
            set(intent, Flag::Stale, stale);
        }
        // Before it was sent, a part is what another push of the same outcomes left.
        let was_sent = intent.sends > 0 || intent.state.is_settled();
        set(intent, Flag::Partial, was_sent && needs.show_a_part());
        if needs.are_met() && needs.show_any() && !needs.of.contains(&Need::Missed) {
            seen(intent, self.clock.unix_ms());
        }
        needs
    }

    /// Two pushes of a round that say something of one case have one place on some products: a worse verdict is not replaced
    /// by a better one in silence.
    pub(super) fn note_what_is_replaced(&self, hand: &mut Hand, picture: &Picture, entries: &[Entry]) {
        let worse = |entry: &Entry, row: &Row| {
            let other = whole(row).is_some_and(|marker| marker.write != entry.marker.write);
            other && matches!(row.status, RowStatus::Is(status) if status.badness() > entry.status.badness())
        };
        let one_place = self.adapter.facts().verdict != VerdictRule::Appends;
        if one_place && entries.iter().any(|entry| picture.rows(&entry.case).iter().any(|row| worse(entry, row))) {
            hand.intent.flags.insert(Flag::RowsAmbiguous);
        }
    }
}
