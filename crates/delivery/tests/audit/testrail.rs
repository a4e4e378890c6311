//! `TestRail`, which deletes no result: its adapter against its stub, audited, repaired and probed.

use std::sync::Arc;

use delivery::foreign::audit::{Audit, AuditOptions, Finding};
use delivery::foreign::patience::Patience;
use delivery::foreign::probe::{Deed, ProbeOptions, probe};
use delivery::foreign::repair::{Becoming, How, RepairOptions, apply, plan};
use delivery::foreign::{Adapter, Case, CaseId, CycleId, Kind, Strategy, VerdictRule};
use delivery::{Clock as _, Stop, SystemClock};
use domain::Status;
use proof::stubs::testrail::Options;
use proof::stubs::{Stamp, Stub, TestRail};
use rand::SeedableRng as _;
use serde_json::json;

use crate::targets::{entry, opened, settings, wanted};

fn given() -> (Stub<TestRail>, Arc<dyn Adapter>, [u64; 3]) {
    let stub = Stub::start(TestRail::new(Options::default())).unwrap();
    let cases = ["adds", "pays", "ships"].map(|title| stub.vendor().add_case(title, None));
    let target = opened(settings(Kind::Testrail, &stub, json!({}))).unwrap();
    (stub, target, cases)
}

async fn patiently<T>(work: impl AsyncFnOnce(&mut Patience<'_>) -> T) -> T {
    let (clock, stop, mut random) = (SystemClock::new(), Stop::new(), rand::rngs::StdRng::seed_from_u64(1));
    let deadline_ms = clock.now_ms() + 300_000;
    work(&mut Patience::new(&clock, &mut random, &stop, deadline_ms)).await
}

async fn audit(target: &dyn Adapter) -> Audit {
    let options = AuditOptions::new(VerdictRule::Appends);
    patiently(async |patience| Audit::of(target, &wanted("round 1"), None, options, patience).await).await.unwrap()
}

#[tokio::test]
async fn a_batch_that_was_sent_twice_is_found_and_its_repeat_is_marked() {
    let (stub, target, cases) = given();
    let run: CycleId = target.create_cycle(&wanted("round 1")).await.unwrap();
    let ids = cases.map(|case| CaseId::new(case.to_string()));
    target.add_cases(&run, &ids).await.unwrap();
    // Our batch twice, and a batch of another client twice.
    let batch = cases.map(|case| entry(case, Status::Failed));
    for _ in 0..2 {
        target.write(&run, &batch).await.unwrap();
    }
    let (number, start_ms) = (run.as_str().parse().unwrap(), 1_790_000_000_000);
    for again in 0..2 {
        for case in cases {
            let at = Stamp { unix_ms: start_ms + again * 60_000, ..Stamp::default() };
            stub.vendor().foreign_result(at, number, case, 1, "by another client").unwrap();
        }
    }
    let found = audit(&*target).await;
    assert_eq!((found.counts.doubled_rows, found.counts.likely_doubled_rows, found.counts.rows), (3, 3, 12));
    let batches = found
        .findings
        .iter()
        .filter(|finding| matches!(finding, Finding::LikelyDoubled { batch: Some(batch), .. } if batch.cases == 3));
    assert_eq!(batches.count(), 3);

    let mends = plan(&found, target.facts().repair, RepairOptions { likely: true });
    assert_eq!((mends.mends.len(), mends.not_possible.len()), (6, 0));
    assert!(mends.mends.iter().all(|mend| matches!(mend.how, How::MarkAsRepeat { .. })), "nothing can be deleted");
    let mut records = 0;
    let mut record = |_: &_| {
        records += 1;
        Ok(())
    };
    let applied = patiently(async |patience| apply(&*target, &mends, patience, &mut record).await).await;
    assert!(applied.done.iter().all(|done| done.becoming == Becoming::Marked && done.alarm.is_none()), "{applied:?}");
    assert_eq!(records, 6);
    let after = audit(&*target).await;
    assert!(after.is_clean(), "{:?}", after.findings);
    assert_eq!((after.counts.rows, after.counts.marked_repeats), (12, 6));
    assert!(plan(&after, target.facts().repair, RepairOptions { likely: true }).is_empty());
    // The verdict of a test is that of its newest result: it is what it was.
    let rows = target.rows(&run, &ids[..1]).await.unwrap();
    assert_eq!(rows.iter().filter(|row| row.text.starts_with("Repeat of ")).count(), 2, "{rows:?}");
}

#[tokio::test]
async fn a_probe_measures_what_the_facts_say() {
    let (stub, target, cases) = given();
    let cases = cases.map(|case| Case { id: CaseId::new(case.to_string()), title: "t".to_owned() });
    let options = ProbeOptions { writers: 4, late_max_ms: 2000, ..ProbeOptions::default() };
    let probed = patiently(async |patience| probe(&*target, &cases, &options, patience).await).await.unwrap();
    assert_eq!(probed.contradicts, Vec::<String>::new());
    assert_eq!(probed.allows, [Strategy::Reconcile, Strategy::Container]);
    assert_eq!((probed.measured.twice.rows_after, probed.measured.at_once.rows), (2, 4));
    assert_eq!((probed.says.verdict, probed.says.atomic), (Some(VerdictRule::Appends), Some(true)));
    assert_eq!(probed.measured.amend, Deed::Done);
    assert!(matches!(probed.measured.delete, Deed::Refused { .. }));
    assert!(probed.left.is_empty() && stub.ledger().count() == 0, "{:?}", probed.left);
}
