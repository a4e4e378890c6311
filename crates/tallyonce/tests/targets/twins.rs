//! Two cycles of one round, made because an answer came too late: `audit` finds the second one on every product, by whatever
//! the product is searched.

use std::time::Duration;

use proof::stubs::{Fault, Plan, Select, When};
use serde_json::Value;

use crate::products::{ALL, OUTCOMES, Product, Start};

const PATIENCE: Duration = Duration::from_mins(4);
/// The stubs' words for the call that makes a cycle, where it makes a second one of the same name.
const MAKES: [&str; 8] = [
    "add_run",
    "TestRun.create",
    "createTestExecution",
    "issue",
    "testcycles",
    "testrun",
    "create_run",
    "create_launch",
];

fn makes_a_twin(product: &Product) -> Option<&'static str> {
    MAKES.into_iter().find(|what| product.writes.contains(what))
}

#[test]
fn a_second_cycle_of_the_round_is_found_on_every_product() {
    let stubs = ALL.iter().filter(|product| matches!(product.start, Start::Stub(_)));
    let twins: Vec<(&Product, &str)> = stubs.filter_map(|one| Some((one, makes_a_twin(one)?))).collect();
    assert!(twins.len() >= 11, "{} products make a second cycle", twins.len());
    std::thread::scope(|scope| {
        for (product, what) in twins {
            scope.spawn(move || found(product, what));
        }
    });
}

fn found(product: &Product, what: &str) {
    let (name, site) = (product.name, product.stub_with(OUTCOMES).unwrap());
    site.door().set_plan(Plan::on(Select::writes().what(what).nth(1), Fault::DeliveredLate(When::Told)));
    let machine = site.machine(product.strategies[0]);
    // Where cycles show late, a push that got no answer waits for longer than others.
    let pushed = machine.pushing(&[]).timeout(PATIENCE).output().unwrap();
    assert_eq!(pushed.code, Some(0), "{name}: {pushed}");
    let audit = || {
        let audited = machine.run(&["audit", "there", "--cycle", "main", "--json"]).output().unwrap();
        let object: Value =
            serde_json::from_str(audited.stdout.trim()).unwrap_or_else(|e| panic!("{name}: {e} {audited}"));
        let audits = object["audits"].as_array().unwrap().iter();
        let findings = audits.flat_map(|audit| audit["findings"].as_array().unwrap());
        let doubled = findings.filter(|finding| finding["finding"] == "duplicate-cycles").cloned().collect::<Vec<_>>();
        (audited, doubled)
    };
    site.door().release();
    let late = |event: &proof::stubs::Event| !event.faults.is_empty() && event.applied.is_some_and(|told| told < 300);
    assert!(site.door().wait_for(PATIENCE, |log| log.iter().any(late)).is_some(), "{name}: it never came");
    let (after, doubled) = audit();
    assert_eq!(after.code, Some(1), "{name}: {after}");
    assert_eq!(doubled.len(), 1, "{name}: {after}");
    assert_eq!(doubled[0]["shared"], "tag", "{name}: {after}");
    assert_eq!(doubled[0]["cycles"].as_array().unwrap().len(), 2, "{name}: {after}");
}
