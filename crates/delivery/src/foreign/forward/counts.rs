//! What became of a push in numbers that add up. Must not look or send.

use std::collections::BTreeMap;

use domain::intent::{Intent, IntentState};

use super::Forwarded;
use crate::foreign::entry::Entry;

impl Forwarded {
    /// Cases by how far they are; together they are the cases of all intents. A case of which everything was refused is
    /// rejected, however far the rest of its intent is.
    pub fn cases(&self) -> BTreeMap<IntentState, u64> {
        let mut cases = BTreeMap::new();
        for intent in &self.intents {
            let (all, refused) = (u64::from(intent.cases), refused_cases(intent));
            for (state, count) in
                [(intent.state, all.saturating_sub(refused)), (IntentState::Rejected, refused.min(all))]
            {
                if count > 0 {
                    *cases.entry(state).or_default() += count;
                }
            }
        }
        cases
    }
}

/// Cases of an intent of which everything was refused.
fn refused_cases(intent: &Intent) -> u64 {
    if intent.refused.is_empty() {
        return 0;
    }
    // One that can't be read is said elsewhere.
    let entries: Vec<Entry> = serde_json::from_slice(&intent.body).unwrap_or_default();
    entries.iter().filter(|entry| entry.is_refused_in(intent)).count() as u64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use domain::intent::{IntentId, RefusedItem};
    use domain::marker::{ContentTag, Marker, WriteId};
    use domain::{CycleName, ItemName, ProjectId, PushKey, RoundId, Status};

    use super::*;
    use crate::foreign::entry::CaseId;

    fn item(name: &str) -> ItemName {
        ItemName::new(["s"], Some("c"), name)
    }

    fn entry(case: &str, items: &[&str]) -> Entry {
        Entry {
            case: CaseId::new(case),
            title: case.to_owned(),
            status: Status::Passed,
            duration_us: None,
            message: None,
            at_ms: 0,
            items: items.iter().map(|name| item(name)).collect(),
            marker: Marker { write: WriteId(1), content: ContentTag::of(&[Status::Passed]), ordinal: None },
        }
    }

    fn intent(state: IntentState, entries: &[Entry], refused: &[&str]) -> Intent {
        let refused = refused.iter().map(|name| RefusedItem::new(item(name).to_string(), "no"));
        Intent {
            id: IntentId(1),
            target: "there".to_owned(),
            project: ProjectId::parse("shop").unwrap(),
            cycle: CycleName::parse("main").unwrap(),
            round: RoundId::parse("run:1").unwrap(),
            key: PushKey::parse("k").unwrap(),
            number: 0,
            cases: entries.len() as u32,
            state,
            sends: 1,
            planned_ms: 0,
            changed_ms: 0,
            sent_ms: None,
            seen_ms: None,
            cycle_there: None,
            flags: BTreeSet::new(),
            cause: None,
            refused: refused.collect(),
            body: serde_json::to_vec(entries).unwrap(),
        }
    }

    #[test]
    fn cases_by_state_are_all_cases_and_a_refused_one_is_no_acked_one() {
        let entries = [entry("1", &["a"]), entry("2", &["b", "c"]), entry("3", &["d"])];
        let intents = vec![
            intent(IntentState::Acked, &entries, &["a", "b"]),
            intent(IntentState::Rejected, &entries[..1], &["a"]),
            intent(IntentState::Found, &entries[2..], &[]),
        ];
        let cases = Forwarded { intents, ..Forwarded::default() }.cases();
        let expected = [(IntentState::Acked, 2), (IntentState::Rejected, 2), (IntentState::Found, 1)];
        assert_eq!(cases, BTreeMap::from(expected));
    }
}
