//! One fault at a time, and what must come of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use delivery::Stop;
use delivery::foreign::{
    Adapter as _, CaseId, CycleWanted, Forwarded, Forwarder, Halt, KeyOnWrite, Load, TargetName, VerdictRule,
};
use domain::intent::{Flag, IntentState};
use domain::marker::WriteId;
use domain::{CycleName, Ordinal, Outcome, ProjectId, PushKey, RoundId, Status};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::book::MemoryBook;
use crate::product::{Fault, Product, facts};
use crate::world::World;

pub(crate) fn outcome(name: &str, status: Status) -> Outcome {
    serde_json::from_value(serde_json::json!({"item": {"name": name}, "status": status.word()})).unwrap()
}

pub(crate) fn load(key: &str, ordinal: Option<u64>, outcomes: Vec<Outcome>) -> Load {
    let project = ProjectId::parse("shop").unwrap();
    let wanted = CycleWanted {
        name: "main, run 7".to_owned(),
        id: WriteId::of_cycle(&project, "main", "run:7"),
        link: None,
        given: None,
    };
    Load {
        project,
        cycle: CycleName::parse("main").unwrap(),
        round: RoundId::parse("run:7").unwrap(),
        key: PushKey::parse(key).unwrap(),
        ordinal: ordinal.map(Ordinal),
        outcomes,
        at_ms: 1,
        wanted,
    }
}

/// A process that forwards, with so much time.
pub(crate) async fn forward(
    world: &Arc<World>,
    product: &Product,
    book: &MemoryBook,
    load: Load,
    deadline_ms: u64,
) -> Option<Result<Forwarded, Halt>> {
    let target = TargetName::parse("sim").unwrap();
    let (stop, mapping) = (Stop::new(), BTreeMap::new());
    let mut random = StdRng::seed_from_u64(world.below(u64::MAX));
    let mut forwarder = Forwarder {
        target: &target,
        adapter: product,
        mapping: &mapping,
        strategy: product.facts().default_strategy(),
        quiet_ms: product.facts().quiet_ms,
        book,
        clock: &**world,
        random: &mut random,
        stop: &stop,
        deadline_ms: world.now() + deadline_ms,
        progress: &mut |_| {},
    };
    world.process(forwarder.forward(load)).await
}

const LONG_MS: u64 = 3_600_000;

fn names(count: usize) -> Vec<Outcome> {
    (0..count).map(|n| outcome(&format!("case{n}"), Status::Passed)).collect()
}

async fn under(fault: Fault) -> (Vec<(CaseId, domain::marker::Marker)>, Forwarded) {
    let world = Arc::new(World::new(1));
    let product = Product::new(&world, facts(VerdictRule::Appends, KeyOnWrite::None));
    // The first draw is the cycle's.
    *product.script.lock().unwrap() = vec![Fault::None, fault];
    let book = MemoryBook::new(&world);
    let done = forward(&world, &product, &book, load("run:7", Some(1), names(6)), LONG_MS).await.unwrap().unwrap();
    (product.recorded(), done)
}

fn each_once(recorded: &[(CaseId, domain::marker::Marker)], count: usize) {
    let mut cases: Vec<&CaseId> = recorded.iter().map(|(case, _)| case).collect();
    cases.sort();
    cases.dedup();
    assert_eq!((recorded.len(), cases.len()), (count, count), "{recorded:?}");
}

#[tokio::test]
async fn every_fault_within_the_quiet_time_leaves_every_outcome_once() {
    for fault in [
        Fault::None,
        Fault::AnswerLost,
        Fault::RequestLost,
        Fault::Late(59_000),
        Fault::Part,
        Fault::NotSent,
        Fault::Wait,
    ] {
        let (recorded, done) = under(fault).await;
        each_once(&recorded, 6);
        assert!(done.is_settled(), "{fault:?}: {done:?}");
        assert_eq!(done.all_flags(), vec![], "{fault:?}");
    }
}

#[tokio::test]
async fn a_marker_that_comes_back_changed_stops_it_and_is_said() {
    let world = Arc::new(World::new(1));
    let product = Product::new(&world, facts(VerdictRule::Appends, KeyOnWrite::None));
    *product.script.lock().unwrap() = vec![Fault::None, Fault::Mangled];
    let (one, two) = (MemoryBook::new(&world), MemoryBook::new(&world));
    let first = forward(&world, &product, &one, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
    assert_eq!(first.all_flags(), vec![Flag::MarkerMangled]);
    // A process that knows nothing of the first doesn't double it.
    let again = forward(&world, &product, &two, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
    assert_eq!(again.intents[0].state, IntentState::Parked);
    each_once(&product.recorded(), 3);
}

#[tokio::test]
async fn a_bad_case_spoils_nobody_else() {
    let world = Arc::new(World::new(1));
    let mut product = Product::new(&world, facts(VerdictRule::Appends, KeyOnWrite::None));
    product.bad_cases.insert(CaseId::new("case2"));
    let book = MemoryBook::new(&world);
    let mut outcomes = names(6);
    outcomes.push(outcome("unmatched", Status::Failed));
    let done = forward(&world, &product, &book, load("run:7", Some(1), outcomes), LONG_MS).await.unwrap().unwrap();
    each_once(&product.recorded(), 5);
    let refused: Vec<String> = done.refused().into_iter().map(|refused| refused.item).collect();
    assert_eq!(refused, ["unmatched", "case2"]);
    assert!(done.is_settled());
}

#[tokio::test]
async fn a_repeat_by_anybody_writes_nothing_and_a_re_execution_what_differs() {
    for (verdict, rows_after) in [(VerdictRule::Appends, 4), (VerdictRule::Replaces, 3)] {
        let world = Arc::new(World::new(1));
        let product = Product::new(&world, facts(verdict, KeyOnWrite::None));
        for _ in 0..2 {
            let book = MemoryBook::new(&world);
            forward(&world, &product, &book, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
        }
        each_once(&product.recorded(), 3);
        let mut outcomes = names(3);
        outcomes[1].status = Status::Failed;
        let book = MemoryBook::new(&world);
        forward(&world, &product, &book, load("run:7", Some(2), outcomes), LONG_MS).await.unwrap().unwrap();
        assert_eq!(product.recorded().len(), rows_after, "{verdict:?}");
        // The first attempt comes late once more, from a machine of its own.
        let book = MemoryBook::new(&world);
        let stale = forward(&world, &product, &book, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
        assert_eq!(stale.all_flags(), [Flag::Stale]);
        assert_eq!(product.recorded().len(), rows_after);
        assert_eq!(product.cycles(), 1);
    }
}

#[tokio::test]
async fn what_the_deadline_cuts_goes_on_with_the_next_process() {
    let world = Arc::new(World::new(1));
    let product = Product::new(&world, facts(VerdictRule::Appends, KeyOnWrite::None));
    *product.script.lock().unwrap() = vec![Fault::None, Fault::AnswerLost];
    let book = MemoryBook::new(&world);
    let cut = forward(&world, &product, &book, load("run:7", Some(1), names(3)), 1000).await.unwrap();
    assert!(matches!(cut, Err(Halt::Over(_))), "{cut:?}");
    assert_eq!(book.intents()[0].state, IntentState::Unknown);
    let done = forward(&world, &product, &book, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
    assert_eq!(done.intents[0].state, IntentState::Found);
    each_once(&product.recorded(), 3);
}

#[tokio::test]
async fn a_product_that_knows_our_ids_needs_no_reading() {
    for key_on_write in [KeyOnWrite::Collapses, KeyOnWrite::Refuses] {
        let world = Arc::new(World::new(1));
        let product = Product::new(&world, facts(VerdictRule::Appends, key_on_write));
        *product.script.lock().unwrap() = vec![Fault::None, Fault::AnswerLost, Fault::Late(7_000_000), Fault::Part];
        let book = MemoryBook::new(&world);
        let done = forward(&world, &product, &book, load("run:7", Some(1), names(4)), LONG_MS).await.unwrap().unwrap();
        assert!(done.is_settled());
        delivery::Clock::sleep(&*world, 8_000_000).await;
        each_once(&product.recorded(), 4);
    }
}

#[tokio::test]
async fn a_sweep_sees_what_came_after_the_last_reading_and_what_went() {
    let world = Arc::new(World::new(1));
    let product = Product::new(&world, facts(VerdictRule::Appends, KeyOnWrite::None));
    *product.script.lock().unwrap() = vec![Fault::None, Fault::Late(600_000)];
    let book = MemoryBook::new(&world);
    let done = forward(&world, &product, &book, load("run:7", Some(1), names(2)), LONG_MS).await.unwrap().unwrap();
    assert_eq!(done.all_flags(), vec![], "nobody can know yet");
    delivery::Clock::sleep(&*world, LONG_MS).await;
    assert_eq!(product.recorded().len(), 4, "the window that stays open");
    assert_eq!(sweep(&world, &product, &book).await, [Flag::DuplicateDetected]);
    product.forget_rows();
    assert_eq!(sweep(&world, &product, &book).await, [Flag::DuplicateDetected, Flag::Vanished]);
}

pub(crate) async fn sweep(world: &Arc<World>, product: &Product, book: &MemoryBook) -> Vec<Flag> {
    let target = TargetName::parse("sim").unwrap();
    let (stop, mapping) = (Stop::new(), BTreeMap::new());
    let mut random = StdRng::seed_from_u64(1);
    let mut forwarder = Forwarder {
        target: &target,
        adapter: product,
        mapping: &mapping,
        strategy: product.facts().default_strategy(),
        quiet_ms: product.facts().quiet_ms,
        book,
        clock: &**world,
        random: &mut random,
        stop: &stop,
        deadline_ms: world.now() + LONG_MS,
        progress: &mut |_| {},
    };
    let seen = forwarder.sweep(book.intents()).await.unwrap();
    let mut flags: Vec<Flag> = seen.into_iter().flat_map(|intent| intent.flags).collect();
    flags.sort_unstable();
    flags.dedup();
    flags
}
