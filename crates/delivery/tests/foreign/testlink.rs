//! `TestLink`: the adapter against the stub.

use std::collections::BTreeMap;
use std::sync::Arc;

use delivery::foreign::{
    Adapter, CaseChoice, CaseId, CaseWanted, Closing, CycleId, CycleWanted, Entry, Kind, RowStatus, TargetSettings,
    Trouble,
};
use domain::marker::{ContentTag, Found};
use domain::{ItemName, Status};
use proof::stubs::testlink::Options;
use proof::stubs::{Admin, Damage, Fault, Quirks, Stub, TestLink};
use serde_json::{Value, json};

use crate::given::{entry, faults_of_a_write, item, next_write, opened, settings, wanted};
use crate::keyed::outcome;

fn configured(stub: &Stub<TestLink>, own: Value) -> TargetSettings {
    let mut settings = settings(Kind::Testlink, stub, own);
    "Shop".clone_into(&mut settings.project);
    settings
}

fn target(stub: &Stub<TestLink>) -> Arc<dyn Adapter> {
    opened(configured(stub, json!({"plan": "Automated"}))).unwrap()
}

/// A build, and so many planned cases with an entry for each.
fn build_of(options: Options, count: usize) -> (Stub<TestLink>, CycleId, Vec<Entry>) {
    let mut vendor = TestLink::new(options);
    let build = vendor.add_build("b");
    let cases: Vec<u64> = (0..count).map(|n| vendor.add_case(&format!("case {n}"), true)).collect();
    let entry_of = |case: u64| {
        let mut entry = entry(case, Status::Failed);
        entry.case = CaseId::new(format!("P-{case}"));
        entry
    };
    (Stub::start(vendor).unwrap(), CycleId::new(build.to_string()), cases.into_iter().map(entry_of).collect())
}

fn known(choice: &CaseChoice) -> Option<&str> {
    if let CaseChoice::Known(case) = choice { Some(case.id.as_str()) } else { None }
}

async fn choose(target: &dyn Adapter, items: &[ItemName]) -> Vec<CaseChoice> {
    let wanted: Vec<_> = items.iter().map(|item| CaseWanted { item, external_ids: &[], mapped: None }).collect();
    target.cases(&wanted).await.unwrap()
}

#[tokio::test]
async fn cases_are_found_by_id_mapping_and_name() {
    let mut vendor = TestLink::new(Options::default());
    for name in ["pkg.Cart.adds", "pays", "twice", "twice"] {
        vendor.add_case(name, true);
    }
    let stub = Stub::start(vendor).unwrap();
    let target = target(&stub);
    let class = ItemName::new(["s"], Some("pkg.Cart"), "adds");
    let items = [class, item("pays"), item("twice"), item("UTF-8"), item("[P-77] refunds"), item("mapped")];
    let mut wanted: Vec<_> = items.iter().map(|item| CaseWanted { item, external_ids: &[], mapped: None }).collect();
    let mapped = CaseId::new("P-9");
    wanted[5].mapped = Some(&mapped);
    let choices = target.cases(&wanted).await.unwrap();
    let ids: Vec<_> = choices.iter().map(known).collect();
    assert_eq!(ids, [Some("P-1"), Some("P-2"), None, None, Some("P-77"), Some("P-9")]);
    let CaseChoice::Unmatched { why } = &choices[2] else { panic!("{choices:?}") };
    assert!(why.contains("P-3, P-4"), "{why}");
    let both = [item("[P-1] [P-2] both")];
    let both = target.cases(&[CaseWanted { item: &both[0], external_ids: &[], mapped: None }]).await.unwrap();
    assert_eq!(both[0].clone().into_parts().0.len(), 2, "{both:?}");
    let lists = stub.log().iter().filter(|event| event.kind.what() == "getTestCasesForTestPlan").count();
    assert_eq!(lists, 2, "one a call");
}

#[tokio::test]
async fn cases_are_made_once_and_put_into_the_plan() {
    let stub = Stub::start(TestLink::new(Options::default())).unwrap();
    let mut settings = configured(&stub, json!({"plan": 3}));
    settings.create_cases = true;
    assert!(opened(settings.clone()).unwrap_err().to_string().starts_with("suite is missing"));
    settings.options = delivery::foreign::Options::new(serde_json::from_value(json!({"plan": 3, "suite": 2})).unwrap());
    let target = opened(settings.clone()).unwrap();
    let items = [item("new"), item("new")];
    let first = choose(&*target, &items).await;
    assert_eq!([known(&first[0]), known(&first[1])], [Some("P-1"); 2]);
    // Made, and not in the plan yet.
    assert_eq!(known(&choose(&*opened(settings).unwrap(), &items).await[0]), Some("P-1"));
    let cycle = target.create_cycle(&wanted("r")).await.unwrap();
    let cases = [CaseId::new("P-1"), CaseId::new("P-99")];
    for _ in 0..2 {
        let refused = target.add_cases(&cycle, &cases).await.unwrap();
        assert_eq!(refused.iter().map(|(case, _)| case.as_str()).collect::<Vec<_>>(), ["P-99"]);
    }
    let added = stub.log().iter().filter(|event| event.kind.what() == "addTestCaseToTestPlan").count();
    assert_eq!(added, 1);
}

#[tokio::test]
async fn a_build_is_made_once_for_a_round() {
    let stub = Stub::start(TestLink::new(Options::default())).unwrap();
    let target = target(&stub);
    let wish = CycleWanted { name: "ä".repeat(200), ..wanted("r") };
    assert_eq!(target.find_cycles(&wish).await.unwrap(), []);
    let made = target.create_cycle(&wish).await.unwrap();
    assert!(matches!(target.create_cycle(&wish).await, Err(Trouble::Exists(_))));
    let found = target.find_cycles(&wish).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0].id, found[0].closed, found[0].name.chars().count()), (&made, false, 100));
    assert!(found[0].name.ends_with(&wish.tag()));
    assert_eq!(target.find_cycles(&wanted("other")).await.unwrap(), []);
    target.close_cycle(&made, Closing::Complete).await.unwrap();
    assert!(target.find_cycles(&wish).await.unwrap()[0].closed);
    let given = CycleWanted { given: Some(CycleId::new("99")), ..wish };
    assert!(matches!(target.find_cycles(&given).await, Err(Trouble::Gone(_))));
}

#[tokio::test]
async fn a_build_that_is_there_may_be_given_by_its_name() {
    let (stub, number, entries) = build_of(Options::default(), 1);
    let (target, named) = (target(&stub), CycleId::new("b"));
    target.write(&named, &entries).await.unwrap();
    let rows = target.rows(&named, &[]).await.unwrap();
    assert_eq!(rows, target.rows(&number, &[]).await.unwrap());
    target.amend(&named, &rows[0].id, &entries[0]).await.unwrap();
    target.close_cycle(&named, Closing::Complete).await.unwrap();
    let nowhere = CycleId::new("c");
    assert!(matches!(target.write(&nowhere, &entries).await, Err(Trouble::Gone(_))));
}

#[tokio::test]
async fn results_are_appended_and_come_back() {
    for platforms in [BTreeMap::new(), BTreeMap::from([(7, "linux".to_owned()), (8, "mac".to_owned())])] {
        let own = if platforms.is_empty() {
            json!({"plan": "Automated"})
        } else {
            json!({"plan": "Automated", "platform": "mac"})
        };
        let (stub, build, entries) = build_of(Options { platforms, ..Options::default() }, 3);
        let target = opened(configured(&stub, own)).unwrap();
        assert_eq!(target.rows(&build, &[]).await.unwrap(), []);
        for entry in &entries {
            let written = target.write(&build, std::slice::from_ref(entry)).await.unwrap();
            assert!(written.refused.is_empty() && written.rows[0].is_some());
        }
        let rows = target.rows(&build, &[]).await.unwrap();
        assert_eq!(rows.len(), 3);
        for (row, entry) in rows.iter().zip(&entries) {
            assert_eq!(
                (&row.case, row.marker, &row.status),
                (&entry.case, Found::Whole(entry.marker), &RowStatus::Is(Status::Failed))
            );
            assert_eq!(row.text, "expected <1> & \"was\" 2");
            assert!(row.at_ms.is_some());
        }
        // The repeat rule: that is why it is read back.
        target.write(&build, &entries[..1]).await.unwrap();
        assert_eq!(stub.doubled().get("P-1"), Some(&1));
        let rows = target.rows(&build, &[entries[0].case.clone()]).await.unwrap();
        assert_eq!(rows.len(), 2);
        // Only the newest can be rewritten.
        let mut passed = Entry { status: Status::Passed, ..entries[0].clone() };
        passed.marker.content = ContentTag::of(&[Status::Passed]);
        assert!(matches!(target.amend(&build, &rows[0].id, &passed).await, Err(Trouble::Refused(_))));
        target.amend(&build, &rows[1].id, &passed).await.unwrap();
        for _ in 0..2 {
            target.delete(&build, &rows[0].id).await.unwrap();
        }
        let rows = target.rows(&build, &[entries[0].case.clone()]).await.unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].marker, &rows[0].status), (Found::Whole(passed.marker), &RowStatus::Is(Status::Passed)));
        assert!(matches!(target.delete_cycle(&build).await, Err(Trouble::Refused(_))));
    }
}

#[tokio::test]
async fn every_fault_of_a_write_is_told_apart() {
    for (fault, expected, applied) in faults_of_a_write() {
        let (stub, build, entries) = build_of(Options::default(), 1);
        let target = target(&stub);
        stub.set_plan(next_write(fault.clone()));
        let written = target.write(&build, &entries).await;
        // TestLink says no by normal answers alone: a page with 403 is of something in between, about this one call.
        let by_page = matches!(fault, Fault::Refused { status: 403, .. });
        assert_eq!(outcome(&written), if by_page { "refused" } else { expected }, "{fault:?}: {written:?}");
        assert_eq!(stub.ledger().count(), usize::from(applied), "{fault:?}");
        assert_eq!(target.rows(&build, &[entries[0].case.clone()]).await.unwrap().len(), usize::from(applied));
    }
}

#[tokio::test]
async fn errors_that_are_normal_answers_are_told_apart() {
    let (stub, build, mut entries) = build_of(Options { deletes: false, ..Options::default() }, 1);
    let target = target(&stub);
    let written = target.write(&build, &entries).await.unwrap();
    let row = written.rows[0].clone().unwrap();
    assert!(matches!(target.delete(&build, &row).await, Err(Trouble::Refused(_))));
    entries[0].case = CaseId::new("P-99");
    let written = target.write(&build, &entries).await.unwrap();
    assert_eq!(written.refused.len(), 1);
    assert!(written.refused[0].1.contains("5040"), "{written:?}");
    assert!(stub.admin(&Admin::DeleteCycle(build.to_string())));
    assert!(matches!(target.write(&build, &build_of(Options::default(), 1).2).await, Err(Trouble::Gone(_))));
    let mut stranger = configured(&stub, json!({"plan": 3}));
    stranger.token = Some(delivery::Secret::new("guessed"));
    assert!(matches!(opened(stranger).unwrap().find_cycles(&wanted("r")).await, Err(Trouble::Denied(_))));
    let elsewhere = configured(&stub, json!({"plan": "Nowhere"}));
    assert!(matches!(opened(elsewhere).unwrap().find_cycles(&wanted("r")).await, Err(Trouble::Gone(_))));
}

#[tokio::test]
async fn notes_that_the_product_changes_still_hold_the_marker() {
    let (stub, build, entries) = build_of(Options::default(), 1);
    let damage = vec![Damage::HtmlEscaped, Damage::LinesCrlf, Damage::Trimmed];
    stub.set_quirks(Quirks { damage, ..Quirks::default() });
    let target = target(&stub);
    let mut wild = entries[0].clone();
    wild.message = Some("\u{1b}[31mred\u{1b}[0m ]]> \u{fffe} ü".to_owned());
    target.write(&build, std::slice::from_ref(&wild)).await.unwrap();
    let rows = target.rows(&build, &[wild.case.clone()]).await.unwrap();
    assert_eq!(rows[0].marker, Found::Whole(wild.marker));
    stub.set_quirks(Quirks { damage: vec![Damage::CutTo(50)], ..Quirks::default() });
    target.write(&build, &entries).await.unwrap();
    assert_eq!(target.rows(&build, &[wild.case]).await.unwrap()[1].marker, Found::Mangled);
}
