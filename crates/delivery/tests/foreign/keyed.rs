//! What the tests of products share in which items are their own cases.

use std::sync::Arc;

use delivery::foreign::{Adapter, CaseChoice, CaseId, CaseWanted, CycleId, Entry, Row, RowStatus, Trouble, Written};
use domain::marker::Found;
use domain::{ExternalId, ItemName, Status};
use proof::stubs::{Door, Plan, Select, Stub, Vendor};

use crate::given::{class, entry, faults_of_a_write, item};

/// The case of an item that names none.
pub(crate) fn case_of(name: &str) -> String {
    format!("item{}", item(name).hash())
}

/// An entry of such an item.
pub(crate) fn of(name: &str, status: Status) -> Entry {
    entry(case_of(name).as_str(), status)
}

/// So many of them.
pub(crate) fn many(count: usize) -> Vec<Entry> {
    (0..count).map(|n| of(&format!("t{n}"), Status::Passed)).collect()
}

pub(crate) async fn choose(target: &dyn Adapter, item: &ItemName, ids: &[&str], mapped: Option<&str>) -> CaseChoice {
    let ids: Vec<ExternalId> = ids.iter().map(|id| ExternalId::from((*id).to_owned())).collect();
    let mapped = mapped.map(CaseId::new);
    let wanted = CaseWanted { item, external_ids: &ids, mapped: mapped.as_ref() };
    target.cases(&[wanted]).await.unwrap().remove(0)
}

pub(crate) async fn case(target: &dyn Adapter, item: &ItemName, ids: &[&str], mapped: Option<&str>) -> Option<String> {
    let (cases, _) = choose(target, item, ids, mapped).await.into_parts();
    assert!(cases.len() < 2, "{cases:?}");
    cases.first().map(|case| case.id.as_str().to_owned())
}

/// What came of a write, in a word or two.
pub(crate) fn outcome(written: &Result<Written, Trouble>) -> String {
    match written {
        Ok(written) if written.refused.is_empty() => "written".to_owned(),
        Ok(_) => "refused".to_owned(),
        Err(trouble) => class(trouble),
    }
}

/// One write under each fault of the call `what`, each at a product of its own. `recorded`: whether the product has it.
pub(crate) async fn under_each_fault<V: Vendor>(
    what: &str,
    start: impl AsyncFn() -> (Stub<V>, Arc<dyn Adapter>, CycleId),
    recorded: impl Fn(&Door) -> bool,
) {
    for (fault, class, applied) in faults_of_a_write() {
        let (stub, target, cycle) = start().await;
        stub.set_plan(Plan::on(Select::writes().what(what).nth(1), fault.clone()));
        let written = target.write(&cycle, &[of("adds", Status::Failed)]).await;
        assert_eq!(outcome(&written), class, "{fault:?}: {written:?}");
        assert_eq!(recorded(&stub), applied, "{fault:?}");
        assert!(stub.doubled().is_empty(), "{fault:?}: the adapter sent it again by itself");
    }
}

/// The rows of a cycle say what these entries said, each once.
#[track_caller]
pub(crate) fn say(rows: &[Row], entries: &[Entry]) {
    let said = |row: &Row| (row.case.clone(), row.status.clone(), row.marker);
    let mut found: Vec<_> = rows.iter().map(said).collect();
    let wanted = |entry: &Entry| (entry.case.clone(), RowStatus::Is(entry.status), Found::Whole(entry.marker));
    let mut wanted: Vec<_> = entries.iter().map(wanted).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    wanted.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(found, wanted);
    assert!(rows.iter().all(|row| !row.text.contains("tly")), "{rows:?}");
}
