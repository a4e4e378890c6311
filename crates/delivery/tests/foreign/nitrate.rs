//! Nitrate: the adapter against the stub, for what the real server can't be made to do.

use std::sync::Arc;

use delivery::foreign::{Adapter, CaseId, CycleId, Entry, Kind, RowStatus};
use domain::Status;
use domain::marker::Found;
use proof::stubs::nitrate::Options;
use proof::stubs::{Fault, Nitrate, Plan, Select, Stub};
use serde_json::json;

use crate::given::{entry, faults_of_a_write, next_write, opened_for, settings, settled, wanted};
use crate::keyed::outcome;

fn target(stub: &Stub<Nitrate>, fault: &Fault) -> Arc<dyn Adapter> {
    let mut settings = settings(Kind::Nitrate, stub, json!({"plan": "Automated", "version": "1.0"}));
    "Shop".clone_into(&mut settings.project);
    opened_for(fault, settings)
}

/// A run of three cases, and an entry for each.
fn run_of_three(writes_faults: bool) -> (Stub<Nitrate>, CycleId, [Entry; 3]) {
    let mut vendor = Nitrate::new(Options { writes_faults, ..Options::default() });
    let cases = ["adds", "pays", "ships"].map(|name| vendor.add_case(name));
    let run = vendor.add_run("r", &cases);
    let entries = cases.map(|case| entry(case, Status::Failed));
    (Stub::start(vendor).unwrap(), CycleId::new(run.to_string()), entries)
}

#[tokio::test]
async fn every_fault_of_a_write_is_told_apart_and_a_repeat_doubles_nothing() {
    for (fault, expected, applied) in faults_of_a_write() {
        let (stub, run, entries) = run_of_three(false);
        let target = target(&stub, &fault);
        // The session and the statuses are known before: the first write is that of a verdict.
        target.rows(&run, &[]).await.unwrap();
        stub.set_plan(next_write(fault.clone()));
        let written = target.write(&run, &entries).await;
        // Nitrate takes one outcome a call, and a page with 403 is of something in between, about this one call.
        let by_page = matches!(fault, Fault::Refused { status: 403, .. });
        assert_eq!(outcome(&written), if by_page { "refused" } else { expected }, "{fault:?}: {written:?}");
        settled(&stub, applied);
        assert_eq!(stub.ledger().count(), if by_page { 2 } else { usize::from(applied) }, "{fault:?}");
        stub.set_plan(Plan::pass());
        for _ in 0..2 {
            assert_eq!(target.write(&run, &entries).await.unwrap().refused, []);
        }
        let rows = target.rows(&run, &[]).await.unwrap();
        for (row, entry) in rows.iter().zip(&entries) {
            assert_eq!((row.marker, &row.status), (Found::Whole(entry.marker), &RowStatus::Is(Status::Failed)));
        }
        assert_eq!((stub.ledger().count(), stub.doubled().len()), (3, 0), "{fault:?}");
    }
}

#[tokio::test]
async fn what_exists_is_known_by_reading_whatever_the_fault_says() {
    for writes_faults in [false, true] {
        let (stub, _, entries) = run_of_three(writes_faults);
        let target = target(&stub, &Fault::ResponseDropped);
        let run = target.create_cycle(&wanted("1")).await.unwrap();
        let cases: Vec<CaseId> = entries.iter().map(|entry| entry.case.clone()).collect();
        // The answer of the first is lost; the others are refused as a whole if the first is sent with them again.
        stub.set_plan(Plan::on(Select::writes().what("TestRun.add_cases").nth(1), Fault::ResponseDropped));
        assert_eq!(target.add_cases(&run, &cases).await.unwrap(), [], "read back at the end");
        assert_eq!(target.add_cases(&run, &cases).await.unwrap(), []);
        let found = target.find_cycles(&wanted("1")).await.unwrap();
        assert_eq!(found.iter().map(|cycle| &cycle.id).collect::<Vec<_>>(), [&run]);
        let nobody = target.add_cases(&run, &[CaseId::new("999999")]).await.unwrap();
        assert!(nobody[0].1.contains("no case TC-999999"), "{nobody:?}");
    }
}

#[tokio::test]
async fn writers_that_add_at_once_share_one_row() {
    let (stub, _, entries) = run_of_three(false);
    let one = target(&stub, &Fault::ResponseDropped);
    let run = one.create_cycle(&wanted("1")).await.unwrap();
    let cases: Vec<CaseId> = entries.iter().map(|entry| entry.case.clone()).collect();
    let meet = Fault::Meet { point: "two".to_owned(), size: 2 };
    stub.set_plan(Plan::on(Select::writes().what("TestRun.add_cases").first(2), meet));
    let other = target(&stub, &Fault::ResponseDropped);
    let (a, b) = tokio::join!(one.add_cases(&run, &cases), other.add_cases(&run, &cases));
    assert_eq!((a.unwrap(), b.unwrap()), (vec![], vec![]));
    one.write(&run, &entries).await.unwrap();
    assert_eq!((stub.ledger().count(), stub.doubled().len()), (3, 0));
}
