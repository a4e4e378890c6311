//! Rows against the intents of a ledger: what is confirmed and not there, and what is there and nobody's.
//! Must not know how intents are kept.

use std::collections::{BTreeMap, BTreeSet};

use domain::intent::{Intent, IntentState};
use domain::marker::{ContentTag, Found, WriteId};

use super::{Audit, AuditError, AuditOptions, Finding, Seen};
use crate::foreign::entry::{CaseId, CycleId, Entry};
use crate::foreign::facts::VerdictRule;

/// All that intents mean to write.
pub(super) struct Known<'a> {
    /// What is confirmed, oldest first; what was refused of it left out.
    confirmed: Vec<(&'a Intent, Entry)>,
    /// What anybody may find there.
    markers: BTreeSet<(WriteId, ContentTag)>,
}

impl<'a> Known<'a> {
    /// Reads intents.
    pub(super) fn of(intents: impl IntoIterator<Item = &'a Intent>) -> Result<Self, AuditError> {
        let mut known = Self { confirmed: Vec::new(), markers: BTreeSet::new() };
        for intent in intents {
            let entries = entries_of(intent)?;
            let confirmed = matches!(intent.state, IntentState::Acked | IntentState::Found);
            for entry in entries {
                known.markers.insert((entry.marker.write, entry.marker.content));
                if confirmed && !entry.is_refused_in(intent) {
                    known.confirmed.push((intent, entry));
                }
            }
        }
        // Attempts are planned in their order; within one millisecond only their numbers tell.
        known.confirmed.sort_by_key(|(intent, entry)| (intent.planned_ms, entry.marker.ordinal, intent.number));
        Ok(known)
    }

    /// Rows with a marker that no intent knows.
    pub(super) fn orphans(&self, rows: &[Seen], sole: bool) -> Vec<Finding> {
        let unknown = rows.iter().filter(|row| row.said().is_some_and(|said| !self.markers.contains(&said)));
        unknown.map(|row| Finding::Orphan { row: row.clone(), perhaps_anothers: !sole }).collect()
    }

    /// What is confirmed, and not there.
    pub(super) fn missing(&self, cases: &BTreeMap<CaseId, Vec<Seen>>, verdict: VerdictRule) -> Vec<Finding> {
        let replaces = matches!(verdict, VerdictRule::Replaces | VerdictRule::ReplacesLatest);
        let mut newest: BTreeMap<&CaseId, usize> = BTreeMap::new();
        for (at, (_, entry)) in self.confirmed.iter().enumerate() {
            newest.insert(&entry.case, at);
        }
        let mut missing = Vec::new();
        for (at, (intent, entry)) in self.confirmed.iter().enumerate() {
            // Where verdicts are replaced, only the newest one can be there.
            if replaces && newest.get(&entry.case) != Some(&at) {
                continue;
            }
            let rows = cases.get(&entry.case).map_or(&[][..], Vec::as_slice);
            if !rows.iter().any(|row| stands_for(row, entry)) {
                missing.push(Finding::Missing {
                    case: entry.case.clone(),
                    title: entry.title.clone(),
                    marker: entry.marker,
                    intent: intent.id,
                    key: intent.key.clone(),
                    sent_ms: intent.sent_ms,
                    mangled_there: rows.iter().any(|row| row.marker == Found::Mangled),
                });
            }
        }
        missing
    }
}

impl Audit {
    /// Tells of cycles that are not there any more, and of all that is confirmed of them.
    pub(super) fn miss_all_of(
        &mut self,
        gone: Vec<CycleId>,
        ledger: &[Intent],
        options: AuditOptions,
    ) -> Result<(), AuditError> {
        let of_gone = |intent: &&Intent| gone.iter().any(|id| intent.cycle_there.as_deref() == Some(id.as_str()));
        let missing = Known::of(ledger.iter().filter(of_gone))?.missing(&BTreeMap::new(), options.verdict);
        self.counts.missing += missing.len();
        self.findings.extend(missing);
        self.gone = gone;
        Ok(())
    }
}

/// The outcome itself, or one of a newer attempt that it was left out for.
fn stands_for(row: &Seen, entry: &Entry) -> bool {
    let newer = |row: &Seen| row.ordinal() > entry.marker.ordinal;
    row.said()
        .is_some_and(|(write, content)| write == entry.marker.write && (content == entry.marker.content || newer(row)))
}

/// What an intent means to write.
pub(super) fn entries_of(intent: &Intent) -> Result<Vec<Entry>, AuditError> {
    serde_json::from_slice(&intent.body)
        .map_err(|error| AuditError::Ledger { intent: intent.id, why: error.to_string() })
}
