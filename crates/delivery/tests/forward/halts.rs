//! What stops one outcome, or the intents of one cycle, and nothing else; and what is not sent again.

use std::sync::Arc;

use delivery::Clock as _;
use delivery::foreign::{CaseId, CycleId, Halt, KeyOnWrite, Strategy, VerdictRule, Visible};
use domain::intent::{Flag, IntentState};
use domain::marker::WriteId;

use crate::book::MemoryBook;
use crate::desk::{Desk, LONG_MS, cases, forward, site, sweep};
use crate::faults::{Fault, facts};
use crate::plain::{each_once, load, names};
use crate::product::Product;
use crate::world::World;

#[tokio::test]
async fn the_quiet_time_is_counted_from_the_last_request() {
    // Told to wait longer than the quiet time, and then no answer; the request is carried out within the quiet time.
    for waits in [1, 13, 20] {
        let (world, product, book) = site();
        let faults = std::iter::repeat_n(Fault::Wait, waits).chain([Fault::Late(59_000)]);
        *product.script.lock().unwrap() = [Fault::None].into_iter().chain(faults).collect();
        let done = forward(&world, &product, &book, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
        assert_eq!((done.all_flags(), cases(&product).len()), (vec![], 3), "{waits}");
    }
}

#[tokio::test]
async fn a_request_of_a_process_that_died_has_its_quiet_time_too() {
    let (world, product, book) = site();
    // It dies in its second call, which is carried out late.
    let mut product = product;
    product.bad_cases.insert(CaseId::new("case3"));
    *product.script.lock().unwrap() = vec![Fault::None, Fault::Dies];
    assert!(forward(&world, &product, &book, load("run:7", Some(1), names(4)), LONG_MS).await.is_none());
    book.bury();
    let begun_ms = world.now();
    let done = forward(&world, &product, &book, load("run:7", Some(1), names(4)), LONG_MS).await.unwrap().unwrap();
    assert!(done.is_settled(), "{done:?}");
    assert!(world.now() - begun_ms >= 60_000, "it may still have been carried out");
    assert_eq!(cases(&product), ["case0", "case1", "case2"]);
    // A day later nothing can be on its way.
    let (world, product, book) = site();
    *product.script.lock().unwrap() = vec![Fault::None, Fault::Dies];
    assert!(forward(&world, &product, &book, load("run:7", Some(1), names(4)), LONG_MS).await.is_none());
    book.bury();
    world.sleep(24 * LONG_MS).await;
    let begun_ms = world.now();
    forward(&world, &product, &book, load("run:7", Some(1), names(4)), LONG_MS).await.unwrap().unwrap();
    assert!(world.now() - begun_ms < 5000);
}

#[tokio::test]
async fn a_refused_call_that_was_carried_out_in_part_is_not_doubled() {
    let (world, mut product, book) = site();
    product.facts.bulk.atomic = false;
    product.bad_cases.insert(CaseId::new("case2"));
    let done = forward(&world, &product, &book, load("run:7", Some(1), names(4)), LONG_MS).await.unwrap().unwrap();
    assert_eq!(cases(&product), ["case0", "case1", "case3"]);
    assert_eq!((done.all_flags(), done.refused().len()), (vec![], 1));
}

#[tokio::test]
async fn one_case_that_nobody_can_tell_of_stops_no_other() {
    let (world, product, book) = site();
    *product.script.lock().unwrap() = vec![Fault::None, Fault::Mangled];
    forward(&world, &product, &MemoryBook::new(&world), load("run:7", Some(1), names(1)), LONG_MS)
        .await
        .unwrap()
        .unwrap();
    let done = forward(&world, &product, &book, load("run:7", Some(2), names(4)), LONG_MS).await.unwrap().unwrap();
    assert_eq!(cases(&product), ["case0", "case1", "case2", "case3"]);
    assert_eq!((done.all_flags(), done.intents[0].state), (vec![Flag::MarkerMangled], IntentState::Parked));
}

#[tokio::test]
async fn one_entry_that_silences_the_product_keeps_no_other_from_it() {
    for mute in 0..4 {
        let (world, mut product, book) = site();
        product.mute_cases.insert(CaseId::new(format!("case{mute}")));
        let load = load("run:7", Some(1), names(4));
        let done = forward(&world, &product, &book, load, LONG_MS).await.unwrap().unwrap();
        assert_eq!(done.intents[0].state, IntentState::Parked);
        let others: Vec<String> = (0..4).filter(|n| *n != mute).map(|n| format!("case{n}")).collect();
        assert_eq!(cases(&product), others, "each once");
    }
}

#[tokio::test]
async fn a_cycle_that_was_deleted_stops_its_own_intents_and_nothing_else() {
    let (world, product, book) = site();
    *product.script.lock().unwrap() = vec![Fault::None, Fault::AnswerLost];
    let cut = forward(&world, &product, &book, load("run:7", Some(1), names(3)), 1000).await.unwrap();
    assert!(matches!(cut, Err(Halt::Over(_))));
    product.deleted.lock().unwrap().insert(CycleId::new(book.intents()[0].cycle_there.clone().unwrap()));
    let mut other = load("run:8", Some(1), names(2));
    other.wanted.id = WriteId(8);
    let done = forward(&world, &product, &book, other, LONG_MS).await.unwrap().unwrap();
    assert!(done.is_settled() && done.all_flags().is_empty(), "{done:?}");
    let left = &book.intents()[0];
    assert_eq!(left.state, IntentState::Parked);
    assert!(left.cause.as_deref().unwrap().contains("can't be used any more"), "{left:?}");
}

#[tokio::test]
async fn a_cycle_that_was_deleted_is_made_anew_for_the_next_attempt() {
    let (world, product, book) = site();
    forward(&world, &product, &book, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
    product.deleted.lock().unwrap().insert(CycleId::new(book.intents()[0].cycle_there.clone().unwrap()));
    product.forget_rows();
    for _ in 0..2 {
        let done = forward(&world, &product, &book, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
        assert!(done.is_settled() && done.all_flags().is_empty(), "{done:?}");
        assert_eq!(cases(&product).len(), 3);
    }
    // What was there is gone, and says so; the sweep goes on to what is newer.
    assert_eq!(sweep(&world, &product, &book).await, [Flag::Vanished]);
    assert_eq!(book.intents()[1].flags.len(), 0);
}

#[tokio::test]
async fn a_container_that_was_deleted_is_filled_anew() {
    let (world, mut product, book) = site();
    product.facts.strategies = &[Strategy::Container];
    let push = load("run:7", Some(1), names(3));
    let first = forward(&world, &product, &book, push.clone(), LONG_MS).await.unwrap().unwrap();
    product.deleted.lock().unwrap().insert(first.cycle.clone().unwrap());
    product.forget_rows();
    for _ in 0..2 {
        let again = forward(&world, &product, &book, push.clone(), LONG_MS).await.unwrap().unwrap();
        assert!(again.is_settled() && again.all_flags().is_empty(), "{again:?}");
        assert_ne!(again.cycle, first.cycle);
        assert_eq!(cases(&product).len(), 3);
    }
    // Rows that went are said as well.
    product.take_away("case1");
    let again = forward(&world, &product, &book, push, LONG_MS).await.unwrap().unwrap();
    assert!(again.all_flags().contains(&Flag::Vanished), "{again:?}");
}

#[tokio::test]
async fn a_container_that_is_deleted_while_it_is_judged_is_given_up() {
    let (world, mut product, book) = site();
    product.facts.strategies = &[Strategy::Container];
    *product.script.lock().unwrap() = vec![Fault::None, Fault::AnswerLost];
    let push = load("run:7", Some(1), names(3));
    forward(&world, &product, &book, push.clone(), 1000).await.unwrap().unwrap_err();
    product.deleted.lock().unwrap().insert(CycleId::new(book.intents()[0].cycle_there.clone().unwrap()));
    product.forget_rows();
    let done = forward(&world, &product, &book, push, LONG_MS).await.unwrap().unwrap();
    assert!(done.is_settled(), "{done:?}");
    assert_eq!(cases(&product).len(), 3);
}

#[tokio::test]
async fn what_an_answer_named_is_never_sent_again() {
    let (world, mut product, book) = site();
    product.facts.visible = Visible::Later(5000);
    product.names_rows = true;
    // Its list shows nothing for an hour.
    product.lag_ms = LONG_MS;
    let done = forward(&world, &product, &book, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
    assert_eq!((done.all_flags(), done.intents[0].state), (vec![Flag::AcceptedNotConfirmed], IntentState::Acked));
    assert_eq!(cases(&product).len(), 3);
    world.sleep(2 * LONG_MS).await;
    assert_eq!(sweep(&world, &product, &book).await, [], "seen by now");
}

#[tokio::test]
async fn whoever_made_a_cycle_looks_for_twins_once_all_is_written() {
    let (world, product, book) = site();
    let other = MemoryBook::new(&world);
    // The first one's cycle is not shown to the second, nor the second's at its first look.
    forward(&world, &product, &other, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
    *product.blind.lock().unwrap() = 2;
    let done = forward(&world, &product, &book, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
    assert_eq!(product.cycles(), 2);
    assert_eq!(done.all_flags(), [Flag::DuplicateDetected, Flag::CycleDoubled]);
    let seen = Desk { world: &world, product: &product, book: &other, sole: false }.sweep().await;
    assert_eq!(seen, [Flag::CycleDoubled]);
}

#[tokio::test]
async fn a_cycle_that_is_never_listed_is_said_and_written_into() {
    for (looks, flags) in [(3, &[][..]), (99, &[Flag::CycleUnseen])] {
        let (world, product, book) = site();
        *product.blind.lock().unwrap() = looks;
        let done = forward(&world, &product, &book, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
        assert_eq!((done.all_flags().as_slice(), book.flags().as_slice()), (flags, flags), "{looks}");
        assert_eq!((cases(&product).len(), product.cycles()), (3, 1));
        // The ledger knows it: the next push makes no other.
        forward(&world, &product, &book, load("run:7", Some(2), names(3)), LONG_MS).await.unwrap().unwrap();
        assert_eq!(product.cycles(), 1);
        *product.blind.lock().unwrap() = 0;
        assert_eq!(sweep(&world, &product, &book).await, [], "listed by now");
    }
}

#[tokio::test]
async fn a_sweep_rests_a_day_after() {
    let (world, product, book) = site();
    forward(&world, &product, &book, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
    assert_eq!(sweep(&world, &product, &book).await, []);
    assert!(!book.intents()[0].is_at_rest());
    world.sleep(25 * LONG_MS).await;
    assert_eq!(sweep(&world, &product, &book).await, []);
    assert!(book.intents()[0].is_at_rest());
}

/// A person says something of the one intent of a ledger: why it is left, or that it is taken up again.
pub(crate) async fn person(world: &Arc<World>, product: &Product, book: &MemoryBook, leaves: Option<&str>) {
    let intent = book.intents().remove(0);
    let desk = Desk { world, product, book, sole: false };
    let said = desk.doing(1, LONG_MS, async |forwarder| {
        if let Some(why) = leaves {
            return forwarder.leave(intent, why).await.map(drop);
        }
        forwarder.take_up(intent).await?;
        forwarder.resume().await.map(drop)
    });
    said.await.unwrap();
}

#[tokio::test]
async fn what_is_parked_goes_on_or_rests_as_a_person_says() {
    let (world, mut product, book) = site();
    product.mute_cases.insert(CaseId::new("case1"));
    let push = load("run:7", Some(1), names(3));
    forward(&world, &product, &book, push.clone(), LONG_MS).await.unwrap().unwrap();
    assert!(book.intents()[0].is_in_doubt());
    person(&world, &product, &book, Some("case1 is red anyway")).await;
    let left = book.intents().remove(0);
    assert!(!left.is_in_doubt() && left.state == IntentState::Parked, "{left:?}");
    assert_eq!(left.cause.as_deref(), Some("case1 is red anyway"));
    let again = forward(&world, &product, &book, push, LONG_MS).await.unwrap().unwrap();
    assert!(again.is_settled() && cases(&product).len() == 2, "nobody is asked twice: {again:?}");
    // The product answers again.
    product.mute_cases.clear();
    person(&world, &product, &book, None).await;
    let there = book.intents().remove(0);
    assert!(!there.is_in_doubt() && there.flags.is_empty(), "{there:?}");
    assert_eq!(
        (there.state, cases(&product)),
        (IntentState::Acked, ["case0", "case1", "case2"].map(String::from).to_vec())
    );
}

#[tokio::test]
async fn what_was_refused_is_there_once_the_push_comes_again_after_it_was_mended() {
    let keyed = (VerdictRule::Appends, KeyOnWrite::Refuses);
    for (rule, key) in [(VerdictRule::Appends, KeyOnWrite::None), (VerdictRule::Replaces, KeyOnWrite::None), keyed] {
        // One of several, and all that there is.
        for count in [6, 1] {
            let world = Arc::new(World::new(1));
            let mut product = Product::new(&world, facts(rule, key));
            product.bad_cases.insert(CaseId::new("case0"));
            let book = MemoryBook::new(&world);
            let push = || load("run:7", Some(1), names(count));
            for _ in 0..10 {
                let partly = forward(&world, &product, &book, push(), LONG_MS).await.unwrap().unwrap();
                assert_eq!(partly.refused().len(), 1);
                assert!(partly.is_settled(), "{partly:?}");
                each_once(&product.recorded(), count - 1);
            }
            product.bad_cases.clear();
            let whole = forward(&world, &product, &book, push(), LONG_MS).await.unwrap().unwrap();
            assert!(whole.refused().is_empty() && whole.all_flags().is_empty(), "{whole:?}");
            each_once(&product.recorded(), count);
        }
    }
}
