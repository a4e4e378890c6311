//! What an audit calls a repeat, and what it must not.

use std::collections::BTreeSet;

use delivery::foreign::audit::{Audit, AuditError, AuditOptions, Batch, Finding};
use delivery::foreign::{CaseId, CycleId, Entry, KeyOnWrite, VerdictRule};
use domain::intent::{Intent, IntentId, IntentState, RefusedItem};
use domain::marker::Marker;
use domain::{CycleName, ItemName, ProjectId, PushKey, RoundId, Status};

use crate::given::{comment, facts, marker, patiently, wanted};
use crate::product::Product;

const T0: u64 = 1_790_000_000_000;

pub(crate) fn product() -> (Product, CycleId) {
    let product = Product::new(facts(VerdictRule::Appends, KeyOnWrite::None));
    let cycle = product.cycle();
    (product, cycle)
}

pub(crate) async fn audit(product: &Product, ledger: Option<&[Intent]>) -> Audit {
    let options = AuditOptions::new(product.facts.verdict);
    patiently(product, async |patience| Audit::of(product, &wanted(), ledger, options, patience).await).await.unwrap()
}

pub(crate) fn words(audit: &Audit) -> Vec<&'static str> {
    audit.findings.iter().map(Finding::word).collect()
}

fn rows_of(finding: &Finding) -> Vec<&str> {
    match finding {
        Finding::Doubled { rows, .. } | Finding::LikelyDoubled { rows, .. } | Finding::ReExecuted { rows, .. } => {
            rows.iter().map(|row| row.row.as_str()).collect()
        }
        Finding::Orphan { row, .. } | Finding::MarkerMangled { row } => vec![row.row.as_str()],
        Finding::DuplicateCycles { .. }
        | Finding::LikelyDuplicateCycles { .. }
        | Finding::CountDiffers { .. }
        | Finding::Missing { .. } => vec![],
    }
}

#[tokio::test]
async fn one_delivery_that_stands_there_twice_is_certain() {
    let (product, cycle) = product();
    let text = comment("m", marker(1, Status::Passed, Some(1)));
    product.put(&cycle, "1", Status::Passed, &text, T0 + 3_000_000);
    let first = product.put(&cycle, "1", Status::Passed, &text, T0);
    product.put(&cycle, "2", Status::Passed, &comment("m", marker(2, Status::Passed, Some(1))), T0);
    let audit = audit(&product, None).await;
    assert_eq!(words(&audit), ["doubled"]);
    assert_eq!(rows_of(&audit.findings[0])[0], first.as_str(), "the oldest first, however far apart");
    assert!(!audit.is_clean());
    assert_eq!((audit.counts.cases, audit.counts.rows, audit.counts.doubled_rows), (2, 3, 1));
    let lines = audit.lines();
    assert_eq!(lines.len(), 2);
    assert_eq!((lines[0].at.as_str(), lines[0].status.as_str()), ("2026-09-21T14:13:20.000Z", "passed"));
    assert_eq!(lines[0].marker, marker(1, Status::Passed, Some(1)).to_string());
    let json = serde_json::to_value(&audit).unwrap();
    assert_eq!(json["findings"][0]["finding"], "doubled");
    assert_eq!(json["findings"][0]["rows"][0]["status"], "passed");
}

#[tokio::test]
async fn an_equal_outcome_of_a_later_attempt_is_a_repeat_and_one_that_came_back_is_not() {
    let (product, cycle) = product();
    let put = |case: &str, status, ordinal, at| {
        product.put(&cycle, case, status, &comment("m", marker(1, status, ordinal)), T0 + at);
    };
    put("equal", Status::Passed, Some(1), 0);
    put("equal", Status::Passed, Some(2), 1);
    put("back", Status::Failed, Some(1), 0);
    put("back", Status::Passed, Some(2), 1);
    put("back", Status::Failed, Some(3), 2);
    put("unnumbered", Status::Failed, None, 0);
    put("unnumbered", Status::Passed, None, 1);
    put("unnumbered", Status::Failed, None, 2);
    // The first attempt, once more and late: by its number it is no new one.
    put("late", Status::Failed, Some(1), 0);
    put("late", Status::Passed, Some(2), 1);
    put("late", Status::Failed, Some(1), 2);
    let audit = audit(&product, None).await;
    let found: Vec<(&str, String, usize)> = audit
        .findings
        .iter()
        .map(|finding| match finding {
            Finding::Doubled { case, rows } | Finding::ReExecuted { case, rows } => {
                (finding.word(), case.to_string(), rows.len())
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        ("re-executed", "back", 3),
        ("doubled", "equal", 2),
        ("doubled", "late", 2),
        ("re-executed", "late", 2),
        ("re-executed", "unnumbered", 3),
    ];
    assert_eq!(found, expected.map(|(word, case, rows)| (word, case.to_owned(), rows)));
}

#[tokio::test]
async fn re_executions_are_listed_and_nothing_is_wrong_with_them() {
    let (product, cycle) = product();
    // Another content, another push, another client with another text, the same client much later.
    for (row, (status, text)) in [
        (Status::Failed, comment("m", marker(1, Status::Failed, Some(1)))),
        (Status::Passed, comment("m", marker(1, Status::Passed, Some(2)))),
        (Status::Passed, comment("m", marker(2, Status::Passed, Some(1)))),
        (Status::Passed, "took 1 s".to_owned()),
        (Status::Passed, "took 2 s".to_owned()),
    ]
    .into_iter()
    .enumerate()
    {
        product.put(&cycle, "1", status, &text, T0 + row as u64 * 1000);
    }
    product.put(&cycle, "2", Status::Passed, "took 1 s", T0);
    product.put(&cycle, "2", Status::Passed, "took 1 s", T0 + 600_001);
    let audit = audit(&product, None).await;
    assert_eq!(words(&audit), ["re-executed", "re-executed"]);
    assert_eq!(audit.findings.iter().map(|finding| rows_of(finding).len()).collect::<Vec<_>>(), [5, 2]);
    assert!(audit.is_clean());
    assert_eq!(audit.counts.re_executed_cases, 2);
}

#[tokio::test]
async fn other_clients_equal_rows_are_likely_and_a_whole_batch_is_more_likely() {
    let (product, cycle) = product();
    for again in 0..2_u64 {
        for case in ["1", "2", "3"] {
            product.put(&cycle, case, Status::Passed, "", T0 + again * 60_000);
        }
        if again == 0 {
            product.put(&cycle, "alone", Status::Failed, "boom", T0 + 1000);
        }
    }
    product.put(&cycle, "alone", Status::Failed, "boom", T0 + 90_000);
    product.put(&cycle, "between", Status::Failed, "boom", T0);
    product.put(&cycle, "between", Status::Passed, "", T0 + 1);
    product.put(&cycle, "between", Status::Failed, "boom", T0 + 2);
    let audit = audit(&product, None).await;
    let expected = ["likely-doubled", "likely-doubled", "likely-doubled", "likely-doubled", "re-executed"];
    let mut found = words(&audit);
    found.sort_unstable();
    assert_eq!(found, expected);
    for finding in &audit.findings {
        if let Finding::LikelyDoubled { case, batch, apart_ms, .. } = finding {
            let (expected, apart) = match case.as_str() {
                "alone" => (None, 89_000),
                _ => (Some(Batch { cases: 3, again_at_ms: T0 + 60_000 }), 60_000),
            };
            assert_eq!((*batch, *apart_ms), (expected, apart), "{case}");
        }
    }
    assert!(!audit.is_clean());
    assert_eq!((audit.counts.likely_doubled_rows, audit.counts.doubled_rows), (4, 0));
}

#[tokio::test]
async fn rows_that_name_no_case_repeat_nothing() {
    let (product, cycle) = product();
    for (case, at) in [("", T0), ("", T0 + 1000), ("1", T0)] {
        product.put(&cycle, case, Status::Passed, "", at);
    }
    product.put(&cycle, "", Status::Failed, "boom", T0 + 2000);
    let found = audit(&product, None).await;
    assert_eq!(
        (words(&found), found.counts.cases, found.counts.rows),
        (vec![], 1, 4),
        "nor was a case carried out again"
    );
    // The same write twice is a repeat, whatever it is of.
    let text = comment("m", marker(1, Status::Passed, Some(1)));
    product.put(&cycle, "", Status::Passed, &text, T0);
    product.put(&cycle, "", Status::Passed, &text, T0 + 1000);
    assert_eq!(words(&audit(&product, None).await), ["doubled"]);
}

#[tokio::test]
async fn the_window_is_the_callers() {
    let (product, cycle) = product();
    product.put(&cycle, "1", Status::Passed, "", T0);
    product.put(&cycle, "1", Status::Passed, "", T0 + 2000);
    for (window_ms, word) in [(1999, "re-executed"), (2000, "likely-doubled")] {
        let options = AuditOptions { window_ms, ..AuditOptions::new(VerdictRule::Appends) };
        let audit = patiently(&product, async |p| Audit::of(&product, &wanted(), None, options, p).await).await;
        assert_eq!(words(&audit.unwrap()), [word]);
    }
}

#[tokio::test]
async fn a_case_that_was_refused_hides_no_other_of_its_item() {
    let (product, _) = product();
    let at = |case: &str, write| entry(case, marker(write, Status::Passed, Some(1)), Status::Passed);
    let item = at("one", 1).items;
    let mut intent = intent(1, IntentState::Acked, &[at("one", 1), Entry { items: item.clone(), ..at("two", 2) }]);
    intent.refused = vec![RefusedItem::for_case(item[0].to_string(), "one", "no")];
    let found = audit(&product, Some(&[intent])).await;
    assert!(matches!(&found.findings[..], [Finding::Missing { case, .. }] if case.as_str() == "two"), "{found:?}");
}

pub(crate) fn entry(case: &str, marker: Marker, status: Status) -> Entry {
    Entry {
        case: CaseId::new(case),
        title: format!("title of {case}"),
        status,
        duration_us: None,
        message: None,
        at_ms: 0,
        items: vec![ItemName::new(None::<&str>, None, case)],
        marker,
    }
}

pub(crate) fn intent(id: u128, state: IntentState, entries: &[Entry]) -> Intent {
    Intent {
        id: IntentId(id),
        target: "there".to_owned(),
        project: ProjectId::parse("shop").unwrap(),
        cycle: CycleName::parse("main").unwrap(),
        round: RoundId::parse("run:7").unwrap(),
        key: PushKey::parse("run:7:job:e2e").unwrap(),
        number: 0,
        cases: entries.len() as u32,
        state,
        sends: 1,
        planned_ms: T0 + id as u64,
        changed_ms: T0,
        sent_ms: Some(T0),
        seen_ms: None,
        cycle_there: Some("R1".to_owned()),
        flags: BTreeSet::new(),
        cause: None,
        refused: Vec::new(),
        body: serde_json::to_vec(entries).unwrap(),
    }
}

#[tokio::test]
async fn with_the_ledger_what_is_missing_and_what_is_nobodys_is_found() {
    let (product, cycle) = product();
    let of = |write| marker(write, Status::Passed, Some(1));
    let at = |case: &str, write| entry(case, of(write), Status::Passed);
    product.put(&cycle, "there", Status::Passed, &comment("", of(1)), T0);
    product.put(&cycle, "nobodys", Status::Passed, &comment("", of(99)), T0);
    product.put(&cycle, "uncertain", Status::Passed, &comment("", of(3)), T0);
    // Left out because a newer attempt is there.
    product.put(&cycle, "stale", Status::Failed, &comment("", marker(5, Status::Failed, Some(2))), T0);
    let stale = intent(5, IntentState::Acked, &[entry("stale", marker(5, Status::Failed, Some(2)), Status::Failed)]);
    let mut refused = intent(6, IntentState::Acked, &[at("refused", 6)]);
    refused.refused = vec![RefusedItem::new("refused", "no")];
    let ledger = [
        intent(1, IntentState::Acked, &[at("there", 1), at("gone", 2)]),
        intent(2, IntentState::Unknown, &[at("uncertain", 3), at("never sent", 4)]),
        intent(3, IntentState::Found, &[at("stale", 5)]),
        stale,
        refused,
    ];
    let found = audit(&product, Some(&ledger)).await;
    assert_eq!(words(&found), ["orphan", "missing"]);
    assert!(matches!(&found.findings[0], Finding::Orphan { row, .. } if row.case.as_str() == "nobodys"));
    assert!(
        matches!(&found.findings[1], Finding::Missing { case, mangled_there: false, .. } if case.as_str() == "gone")
    );
    assert_eq!((found.counts.orphans, found.counts.missing), (1, 1));
    // Where other jobs have ledgers of their own, only what is missing is wrong.
    let beside = AuditOptions { sole: false, ..AuditOptions::new(VerdictRule::Appends) };
    let found =
        patiently(&product, async |p| Audit::of(&product, &wanted(), Some(&ledger), beside, p).await).await.unwrap();
    assert_eq!((words(&found), found.counts.orphans), (vec!["orphan", "missing"], 1));
    let wrong: Vec<&str> = found.findings.iter().filter(|one| one.is_wrong()).map(Finding::word).collect();
    assert_eq!(wrong, ["missing"]);
    assert!(audit(&product, None).await.is_clean(), "without a ledger nothing is known of either");
    let mut broken = ledger[0].clone();
    broken.body = b"no entries".to_vec();
    let options = AuditOptions::new(VerdictRule::Appends);
    let unread = patiently(&product, async |p| Audit::of(&product, &wanted(), Some(&[broken]), options, p).await).await;
    assert!(matches!(unread, Err(AuditError::Ledger { .. })), "{unread:?}");
}

#[tokio::test]
async fn where_verdicts_are_replaced_only_the_newest_one_can_be_missing() {
    let product = Product::new(facts(VerdictRule::Replaces, KeyOnWrite::None));
    let cycle = product.cycle();
    let (old, new) = (marker(1, Status::Failed, Some(1)), marker(1, Status::Passed, Some(2)));
    let ledger = [
        intent(1, IntentState::Acked, &[entry("1", old, Status::Failed)]),
        intent(2, IntentState::Acked, &[entry("1", new, Status::Passed)]),
    ];
    let row = product.put(&cycle, "1", Status::Passed, &comment("", new), T0);
    assert!(audit(&product, Some(&ledger)).await.is_clean());
    product.edit(&row, &comment("", old));
    assert_eq!(words(&audit(&product, Some(&ledger)).await), ["missing"]);
}

#[tokio::test]
async fn a_changed_marker_is_found() {
    let (product, cycle) = product();
    let whole = marker(1, Status::Passed, Some(1)).to_string();
    product.put(&cycle, "1", Status::Passed, &whole[..30], T0);
    let ledger = [intent(1, IntentState::Acked, &[entry("1", marker(1, Status::Passed, Some(1)), Status::Passed)])];
    let audit = audit(&product, Some(&ledger)).await;
    assert_eq!(words(&audit), ["marker-mangled", "missing"]);
    assert!(matches!(&audit.findings[1], Finding::Missing { mangled_there: true, .. }));
    assert_eq!(audit.counts.mangled, 1);
}
