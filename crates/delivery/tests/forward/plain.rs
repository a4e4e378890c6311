//! One fault at a time, and what must come of it.

use std::sync::Arc;

use delivery::foreign::{CaseId, CycleWanted, Forwarded, Halt, KeyOnWrite, Listing, Load, VerdictRule, Visible};
use domain::intent::{Flag, Intent, IntentState};
use domain::marker::WriteId;
use domain::{CycleName, Ordinal, Outcome, ProjectId, PushKey, RoundId, Status};

use crate::book::MemoryBook;
use crate::desk::{Desk, LONG_MS, forward, sweep};
use crate::faults::{Fault, facts};
use crate::product::Product;
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

pub(crate) fn names(count: usize) -> Vec<Outcome> {
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

pub(crate) fn each_once(recorded: &[(CaseId, domain::marker::Marker)], count: usize) {
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
async fn an_item_of_several_cases_is_there_once_for_each() {
    let world = Arc::new(World::new(1));
    let product = Product::new(&world, facts(VerdictRule::Appends, KeyOnWrite::None));
    let outcomes = || vec![outcome("a and b and gone", Status::Failed), outcome("b", Status::Passed)];
    for _ in 0..2 {
        let book = MemoryBook::new(&world);
        let done =
            forward(&world, &product, &book, load("run:7", Some(1), outcomes()), LONG_MS).await.unwrap().unwrap();
        each_once(&product.recorded(), 2);
        let refused: Vec<String> = done.refused().into_iter().map(|refused| refused.item).collect();
        assert_eq!(refused, ["a and b and gone"]);
        assert!(done.is_settled());
    }
}

#[tokio::test]
async fn a_case_whose_making_was_not_answered_is_looked_for_after_the_quiet_time() {
    let world = Arc::new(World::new(1));
    let product = Product::new(&world, facts(VerdictRule::Appends, KeyOnWrite::None));
    *product.silent_cases.lock().unwrap() = 1;
    let book = MemoryBook::new(&world);
    forward(&world, &product, &book, load("run:7", Some(1), names(1)), LONG_MS).await.unwrap().unwrap();
    let asked = product.asked_for_cases.lock().unwrap().clone();
    assert!(asked.len() == 2 && asked[1] - asked[0] >= product.facts.quiet_ms, "{asked:?}");
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
    let keys = [KeyOnWrite::Collapses, KeyOnWrite::Refuses];
    for (key_on_write, listing) in keys.into_iter().flat_map(|key| [(key, Listing::Cycle), (key, Listing::Nothing)]) {
        let world = Arc::new(World::new(1));
        let mut product = Product::new(&world, facts(VerdictRule::Appends, key_on_write));
        product.listing = listing;
        *product.script.lock().unwrap() = vec![Fault::None, Fault::AnswerLost, Fault::Late(7_000_000), Fault::Part];
        let book = MemoryBook::new(&world);
        let done = forward(&world, &product, &book, load("run:7", Some(1), names(4)), LONG_MS).await.unwrap().unwrap();
        assert!(done.is_settled() && done.refused().is_empty(), "{key_on_write:?} {listing:?} {done:?}");
        delivery::Clock::sleep(&*world, 8_000_000).await;
        each_once(&product.recorded(), 4);
    }
}

#[tokio::test]
async fn what_exists_under_our_id_is_no_failure() {
    for listing in [Listing::Cycle, Listing::Nothing] {
        let world = Arc::new(World::new(1));
        let mut product = Product::new(&world, facts(VerdictRule::Appends, KeyOnWrite::Refuses));
        product.listing = listing;
        for sole in [false, true] {
            // Of a machine whose ledger is gone, some are there.
            let book = MemoryBook::new(&world);
            let desk = Desk { world: &world, product: &product, book: &book, sole };
            let count = if sole { 6 } else { 3 };
            let done = desk.forward(load("run:7", Some(1), names(count)), LONG_MS).await.unwrap().unwrap();
            assert!(done.is_settled() && done.refused().is_empty(), "{listing:?} {done:?}");
            // Whoever alone forwards there knows that its ledger is older than that.
            let flags: &[Flag] = if sole { &[Flag::LedgerRestored] } else { &[] };
            assert_eq!(done.all_flags(), flags, "{listing:?}");
            each_once(&product.recorded(), count);
        }
    }
}

#[tokio::test]
async fn one_absence_is_no_reason_to_send_again() {
    let world = Arc::new(World::new(1));
    let mut product = Product::new(&world, facts(VerdictRule::Appends, KeyOnWrite::None));
    // A list that shows it between the first reading and the second.
    product.lag_ms = 60_500;
    *product.script.lock().unwrap() = vec![Fault::None, Fault::AnswerLost];
    let book = MemoryBook::new(&world);
    let done = forward(&world, &product, &book, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
    assert_eq!(done.intents[0].state, IntentState::Found);
    each_once(&product.recorded(), 3);
}

#[tokio::test]
async fn what_comes_between_two_readings_is_not_sent_again() {
    let world = Arc::new(World::new(1));
    let product = Product::new(&world, facts(VerdictRule::Appends, KeyOnWrite::None));
    *product.script.lock().unwrap() = vec![Fault::None, Fault::Late(60_500)];
    let book = MemoryBook::new(&world);
    let done = forward(&world, &product, &book, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
    delivery::Clock::sleep(&*world, LONG_MS).await;
    each_once(&product.recorded(), 3);
    assert_eq!(done.all_flags(), vec![]);
}

#[tokio::test]
async fn a_wait_that_outlasts_the_deadline_ends_at_once() {
    let world = Arc::new(World::new(1));
    let product = Product::new(&world, facts(VerdictRule::Appends, KeyOnWrite::None));
    // It asks for five seconds.
    *product.script.lock().unwrap() = vec![Fault::None, Fault::Wait];
    let (book, begun_ms) = (MemoryBook::new(&world), world.now());
    let cut = forward(&world, &product, &book, load("run:7", Some(1), names(3)), 4000).await.unwrap();
    let Err(Halt::Over(why)) = cut else { panic!("{cut:?}") };
    assert!(why.contains("too fast; to be asked again in 5 s, which is after the deadline"), "{why}");
    assert_eq!((world.now(), product.calls.lock().unwrap().1), (begun_ms, 1), "neither waited nor asked again");
    assert_eq!(book.intents()[0].state, IntentState::Planned);
    let done = forward(&world, &product, &book, load("run:7", Some(1), names(3)), 4000).await.unwrap().unwrap();
    assert!(done.is_settled());
    each_once(&product.recorded(), 3);
}

#[tokio::test]
async fn what_is_shown_later_is_waited_for_once() {
    let world = Arc::new(World::new(1));
    let mut product = Product::new(&world, facts(VerdictRule::Appends, KeyOnWrite::None));
    product.facts.visible = Visible::Later(5000);
    product.facts.bulk.items_max = 1;
    product.lag_ms = 4000;
    let (book, begun_ms) = (MemoryBook::new(&world), world.now());
    let done = forward(&world, &product, &book, load("run:7", Some(1), names(200)), LONG_MS).await.unwrap().unwrap();
    assert_eq!((world.now() - begun_ms, *product.calls.lock().unwrap()), (5000, (2, 200)));
    assert!(done.intents.iter().all(|intent| intent.state == IntentState::Found && intent.seen_ms.is_some()));
    assert_eq!(done.all_flags(), vec![]);
    sweep(&world, &product, &book).await;
    assert_eq!(product.calls.lock().unwrap().0, 3, "one reading for all");
    each_once(&product.recorded(), 200);
}

#[tokio::test]
async fn what_was_accepted_before_a_crash_is_looked_for_and_not_sent_again() {
    for steps in 0..60 {
        let world = Arc::new(World::new(1));
        let mut product = Product::new(&world, facts(VerdictRule::Appends, KeyOnWrite::None));
        product.facts.visible = Visible::Later(5000);
        product.facts.bulk.items_max = 1;
        product.lag_ms = 4000;
        let book = MemoryBook::new(&world);
        world.light(steps);
        let load = load("run:7", Some(1), names(5));
        if forward(&world, &product, &book, load.clone(), LONG_MS).await.is_none() {
            book.bury();
            // What has no answer is told from what was accepted, whatever died.
            let told = |intent: &Intent| intent.flags.contains(&Flag::AcceptedNotConfirmed);
            let unknown = |intent: &&Intent| intent.state == IntentState::Unknown;
            assert!(book.intents().iter().filter(unknown).all(told), "{steps}: {:?}", book.intents());
        }
        let done = forward(&world, &product, &book, load, LONG_MS).await.unwrap().unwrap();
        assert!(done.is_settled() && done.all_flags().is_empty(), "{steps}: {done:?}");
        each_once(&product.recorded(), 5);
    }
}

#[tokio::test]
async fn a_silent_product_is_not_sent_everything_at_once() {
    let world = Arc::new(World::new(1));
    let mut product = Product::new(&world, facts(VerdictRule::Appends, KeyOnWrite::None));
    product.facts.bulk.items_max = 1;
    *product.script.lock().unwrap() = vec![Fault::None, Fault::RequestLost, Fault::RequestLost];
    let book = MemoryBook::new(&world);
    let cut = forward(&world, &product, &book, load("run:7", Some(1), names(9)), 30_000).await.unwrap();
    assert!(matches!(cut, Err(Halt::Over(_))), "{cut:?}");
    assert_eq!(product.calls.lock().unwrap().1, 2, "what became of these comes first");
}
