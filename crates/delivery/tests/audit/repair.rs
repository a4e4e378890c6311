//! What a repair takes away, what it leaves, and what it does when calls get lost or somebody else is there too.

use std::io;

use delivery::foreign::audit::Audit;
use delivery::foreign::patience::GaveUp;
use delivery::foreign::repair::{Applied, Becoming, Done, Halted, How, Plan, Removed, RepairOptions, apply, plan};
use delivery::foreign::{CycleId, KeyOnWrite, Repair, RowId, VerdictRule};
use domain::Status;

use crate::audit::audit;
use crate::given::{comment, facts, marker, patiently};
use crate::product::{Fault, Product};

const T0: u64 = 1_790_000_000_000;

pub(crate) async fn repair(product: &Product, plan: &Plan) -> (Applied, Vec<Removed>) {
    let mut removed = Vec::new();
    let mut record = |one: &Removed| {
        removed.push(one.clone());
        Ok(())
    };
    let applied = patiently(product, async |patience| apply(product, plan, patience, &mut record).await).await;
    (applied, removed)
}

pub(crate) fn planned(product: &Product, audit: &Audit, likely: bool) -> Plan {
    plan(audit, product.facts.repair, RepairOptions { likely })
}

/// A case that one delivery stands there for three times.
fn tripled() -> (Product, CycleId, [RowId; 3]) {
    let product = Product::new(facts(VerdictRule::Appends, KeyOnWrite::None));
    let cycle = product.cycle();
    let text = comment("boom", marker(1, Status::Failed, Some(1)));
    let rows = [0, 1, 2].map(|at| product.put(&cycle, "1", Status::Failed, &text, T0 + at));
    (product, cycle, rows)
}

fn ids(product: &Product) -> Vec<String> {
    product.there().iter().map(|row| row.id.to_string()).collect()
}

#[tokio::test]
async fn the_oldest_stays_and_the_record_holds_the_others() {
    let (product, _, [first, second, third]) = tripled();
    let plan = planned(&product, &audit(&product, None).await, false);
    let (applied, removed) = repair(&product, &plan).await;
    assert!(applied.halted.is_none());
    assert!(applied.done.iter().all(|done| done.becoming == Becoming::Removed && done.alarm.is_none()));
    assert_eq!(ids(&product), [first.as_str()]);
    let recorded: Vec<&RowId> = removed.iter().map(|one| &one.row.row).collect();
    assert_eq!(recorded, [&second, &third]);
    let line = serde_json::to_value(&removed[0]).unwrap();
    assert_eq!((line["row"]["text"].as_str(), line["row"]["status"].as_str()), (Some("boom"), Some("failed")));
    assert_eq!((line["how"].as_str(), line["kept"].as_str()), (Some("delete"), Some(first.as_str())));
    assert!(audit(&product, None).await.is_clean());
    // The old plan again, and a new one.
    let (again, removed) = repair(&product, &plan).await;
    assert!(again.done.iter().all(|done| done.becoming == Becoming::AlreadyDone) && removed.is_empty());
    assert!(planned(&product, &audit(&product, None).await, true).is_empty());
}

#[tokio::test]
async fn what_people_edited_stays() {
    let (product, _, [first, second, third]) = tripled();
    product.edit(&second, &comment("boom, see bug 12", marker(1, Status::Failed, Some(1))));
    let plan = planned(&product, &audit(&product, None).await, true);
    assert_eq!(plan.not_possible.len(), 1);
    assert!(plan.not_possible[0].why.contains("text differs"), "{}", plan.not_possible[0].why);
    repair(&product, &plan).await;
    assert_eq!(ids(&product), [first.as_str(), second.as_str()]);
    // Edited after the audit.
    let (product, _, [first, second, third_too]) = tripled();
    let plan = planned(&product, &audit(&product, None).await, true);
    product.edit(&second, &comment("boom, see bug 12", marker(1, Status::Failed, Some(1))));
    let (applied, _) = repair(&product, &plan).await;
    assert!(matches!(&applied.done[0].becoming, Becoming::Left { why } if why.contains("changed")), "{applied:?}");
    assert_eq!(ids(&product), [first.as_str(), second.as_str()]);
    assert_eq!((applied.mended(), third), (1, third_too));
}

#[tokio::test]
async fn a_row_stays_if_the_one_that_was_to_stay_is_gone() {
    let (product, _, [first, second, third]) = tripled();
    let plan = planned(&product, &audit(&product, None).await, false);
    product.remove(&first);
    let (applied, removed) = repair(&product, &plan).await;
    assert!(applied.done.iter().all(|done| matches!(&done.becoming, Becoming::Left { .. })), "{applied:?}");
    assert!(removed.is_empty());
    // The next audit chooses another one.
    let plan = planned(&product, &audit(&product, None).await, false);
    repair(&product, &plan).await;
    assert_eq!(ids(&product), [second.as_str()]);
    assert_ne!(second, third);
}

#[tokio::test]
async fn likely_repeats_are_touched_only_on_demand() {
    let product = Product::new(facts(VerdictRule::Appends, KeyOnWrite::None));
    let cycle = product.cycle();
    let rows = [0, 1].map(|at| product.put(&cycle, "1", Status::Passed, "same", T0 + at));
    let found = audit(&product, None).await;
    let cautious = planned(&product, &found, false);
    assert!(cautious.is_empty() && cautious.only_likely.len() == 1);
    repair(&product, &planned(&product, &found, true)).await;
    assert_eq!(ids(&product), [rows[0].as_str()]);
    assert!(audit(&product, None).await.is_clean());
}

#[tokio::test]
async fn what_stands_in_two_cycles_is_left_to_a_person() {
    let (product, _, [first, ..]) = tripled();
    let other = product.cycle();
    let text = comment("boom", marker(1, Status::Failed, Some(1)));
    let elsewhere = product.put(&other, "1", Status::Failed, &text, T0 + 9);
    let plan = planned(&product, &audit(&product, None).await, false);
    assert_eq!(plan.not_possible.len(), 1);
    assert!(plan.not_possible[0].why.contains("which cycle counts"), "{}", plan.not_possible[0].why);
    repair(&product, &plan).await;
    assert_eq!(ids(&product), [first.as_str(), elsewhere.as_str()]);
}

#[tokio::test]
async fn where_nothing_can_be_deleted_repeats_are_marked_and_keep_their_verdict() {
    let (mut product, _, [first, second, third]) = tripled();
    product.facts.repair = Repair { delete: false, amend: true, delete_cycle: false };
    product.ways.deletes = false;
    let plan = planned(&product, &audit(&product, None).await, false);
    assert!(plan.mends.iter().all(|mend| matches!(mend.how, How::MarkAsRepeat { status: Status::Failed, .. })));
    let (applied, removed) = repair(&product, &plan).await;
    assert!(applied.done.iter().all(|done| done.becoming == Becoming::Marked), "{applied:?}");
    assert_eq!((removed.len(), removed[0].row.text.as_str()), (2, "boom"));
    let after = audit(&product, None).await;
    assert!(after.is_clean());
    assert_eq!((after.counts.rows, after.counts.marked_repeats, after.counts.doubled_rows), (3, 2, 0));
    let there = product.there();
    assert_eq!(there[0].comment, comment("boom", marker(1, Status::Failed, Some(1))));
    assert!(there[1].comment.starts_with(&format!("Repeat of {first}:")), "{}", there[1].comment);
    // A mark says nothing for a row that it doesn't repeat: without the first, the others are outcomes again.
    product.remove(&first);
    assert_eq!(audit(&product, None).await.counts.marked_repeats, 0);
    assert_ne!(second, third);
}

#[tokio::test]
async fn what_an_installation_refuses_to_delete_is_marked() {
    let (mut product, _, [first, ..]) = tripled();
    product.ways.deletes = false;
    let plan = planned(&product, &audit(&product, None).await, false);
    assert!(plan.mends.iter().all(|mend| mend.how == How::Delete));
    let (applied, removed) = repair(&product, &plan).await;
    assert!(applied.done.iter().all(|done| done.becoming == Becoming::Marked), "{applied:?}");
    let marked = removed.iter().filter(|one| matches!(one.how, How::MarkAsRepeat { status: Status::Failed, .. }));
    assert_eq!((marked.count(), removed.len()), (2, 4), "recorded as what was tried, and as what was done");
    let after = audit(&product, None).await;
    assert!(after.is_clean());
    assert_eq!((after.counts.rows, after.counts.marked_repeats), (3, 2));
    assert!(product.there()[1].comment.starts_with(&format!("Repeat of {first}:")));
    let (again, removed) = repair(&product, &plan).await;
    assert!(again.done.iter().all(|done| matches!(done.becoming, Becoming::Left { .. })) && removed.is_empty());
}

#[tokio::test]
async fn where_nothing_can_be_mended_it_says_so() {
    let (mut product, ..) = tripled();
    product.facts.repair = Repair { delete: false, amend: false, delete_cycle: false };
    let plan = planned(&product, &audit(&product, None).await, false);
    assert!(plan.is_empty());
    assert!(plan.not_possible.iter().all(|row| row.why.contains("neither delete nor change")), "{plan:?}");
    assert_eq!(plan.not_possible.len(), 2);
}

#[tokio::test]
async fn lost_answers_and_refusals_leave_one_row_or_say_why_not() {
    for (fault, left, records) in [
        (Fault::AnswerLost, 1, 2),
        (Fault::RequestLost, 1, 2),
        (Fault::Wait, 1, 2),
        (Fault::Refused, 2, 2),
        (Fault::Denied, 2, 2),
    ] {
        for marks in [false, true] {
            let (mut product, ..) = tripled();
            if marks {
                product.facts.repair.delete = false;
            }
            *product.faults.lock().unwrap() = vec![fault];
            let plan = planned(&product, &audit(&product, None).await, false);
            let (applied, removed) = repair(&product, &plan).await;
            // What isn't deleted is marked instead, and recorded again as that.
            let refused = matches!(fault, Fault::Refused | Fault::Denied);
            let (left, records) = if refused && !marks { (1, 3) } else { (left, records) };
            let after = audit(&product, None).await;
            assert_eq!(after.counts.rows - after.counts.marked_repeats, left, "{fault:?} {applied:?}");
            assert_eq!(removed.len(), records, "{fault:?}: each row is recorded once, before it is touched");
            assert!(applied.halted.is_none(), "{fault:?} {applied:?}");
        }
    }
}

#[tokio::test]
async fn whoever_may_read_nothing_any_more_mends_nothing_more() {
    let (product, ..) = tripled();
    let plan = planned(&product, &audit(&product, None).await, false);
    product.denies_reads.store(true, std::sync::atomic::Ordering::SeqCst);
    let (applied, removed) = repair(&product, &plan).await;
    assert!(matches!(applied.halted, Some(Halted::GaveUp(GaveUp::Denied(_)))), "{applied:?}");
    assert_eq!((ids(&product).len(), removed.len()), (3, 0));
}

#[tokio::test]
async fn without_a_record_nothing_is_removed() {
    let (product, ..) = tripled();
    let plan = planned(&product, &audit(&product, None).await, false);
    let mut full = |_: &Removed| Err(io::Error::other("disk full"));
    let applied = patiently(&product, async |patience| apply(&product, &plan, patience, &mut full).await).await;
    assert!(matches!(applied.halted, Some(Halted::Record(_))), "{applied:?}");
    assert_eq!(ids(&product).len(), 3);
}

#[tokio::test]
async fn a_wish_to_stop_and_the_deadline_end_it_between_two_rows() {
    for stops in [true, false] {
        let (product, _, [first, _, third]) = tripled();
        let plan = planned(&product, &audit(&product, None).await, false);
        let (stop, mut random) = (delivery::Stop::new(), <rand::rngs::StdRng as rand::SeedableRng>::seed_from_u64(1));
        let clock: &dyn delivery::Clock = &*product.world;
        let deadline_ms = product.world.now() + 60_000;
        let mut patience = delivery::foreign::patience::Patience::new(clock, &mut random, &stop, deadline_ms);
        let mut record = |_: &Removed| {
            if stops {
                stop.request();
            } else {
                product.world.pass(60_000);
            }
            Ok(())
        };
        let applied = apply(&product, &plan, &mut patience, &mut record).await;
        assert_eq!(ids(&product), [first.as_str(), third.as_str()]);
        assert!(matches!(&applied.done[..], [Done { becoming: Becoming::Removed, .. }]), "{applied:?}");
        match (stops, &applied.halted) {
            (true, Some(Halted::GaveUp(GaveUp::Stopped(_)))) | (false, Some(Halted::GaveUp(GaveUp::Over(_)))) => {}
            (_, other) => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_list_that_lags_is_waited_for() {
    let (mut product, ..) = tripled();
    product.facts.visible = delivery::foreign::Visible::Later(5000);
    product.ways.lag_ms = 5000;
    let plan = planned(&product, &audit(&product, None).await, false);
    let (applied, _) = repair(&product, &plan).await;
    assert!(applied.done.iter().all(|done| done.becoming == Becoming::Removed), "{applied:?}");
    assert_eq!(ids(&product).len(), 1);
}

/// Repairs are futures that a server may run on any of its threads.
#[test]
fn repairs_can_be_sent() {
    fn sent<T: Send>(_: &T) {}
    let (product, ..) = tripled();
    let (stop, mut random) = (delivery::Stop::new(), <rand::rngs::StdRng as rand::SeedableRng>::seed_from_u64(1));
    let clock: &dyn delivery::Clock = &*product.world;
    let mut patience = delivery::foreign::patience::Patience::new(clock, &mut random, &stop, 0);
    let plan = Plan::default();
    let mut record = |_: &Removed| Ok(());
    sent(&apply(&product, &plan, &mut patience, &mut record));
    sent(&delivery::foreign::probe::probe(
        &product,
        &[],
        &delivery::foreign::probe::ProbeOptions::default(),
        &mut patience,
    ));
}
