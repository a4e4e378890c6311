//! Cycles that somebody deletes or ends, and cycles of which something else is refused: the one is no reason for the other.

use delivery::foreign::{CycleId, Halt, Load, Strategy, Visible};
use domain::Status::{Failed, Passed};
use domain::intent::{Flag, IntentState};
use domain::marker::WriteId;

use crate::book::MemoryBook;
use crate::desk::{LONG_MS, forward, site};
use crate::faults::Fault;
use crate::plain::{load, names, outcome};

fn attempt(number: u64) -> Load {
    let status = if number.is_multiple_of(2) { Failed } else { Passed };
    load("run:7", Some(number), (0..3).map(|n| outcome(&format!("case{n}"), status)).collect())
}

fn first_cycle(book: &MemoryBook) -> CycleId {
    CycleId::new(book.intents()[0].cycle_there.clone().unwrap())
}

#[tokio::test]
async fn what_was_planned_for_a_cycle_that_is_gone_is_nothing_to_look_at_once_it_is_elsewhere() {
    for (adds_blindly, refuses) in [(true, true), (true, false), (false, true)] {
        let (world, mut product, book) = site();
        product.adds_blindly = adds_blindly;
        forward(&world, &product, &book, attempt(1), LONG_MS).await.unwrap().unwrap();
        // The second one is on its way when somebody deletes it.
        *product.script.lock().unwrap() = vec![Fault::AnswerLost];
        forward(&world, &product, &book, attempt(2), 1000).await.unwrap().unwrap_err();
        let places = if refuses { &product.deleted } else { &product.gone };
        places.lock().unwrap().insert(first_cycle(&book));
        product.deleted.lock().unwrap().insert(first_cycle(&book));
        product.forget_rows();
        let done = forward(&world, &product, &book, attempt(2), LONG_MS).await.unwrap().unwrap();
        assert!(done.is_settled() && done.all_flags().is_empty(), "{done:?}");
        assert_eq!((product.recorded().len(), product.cycles()), (3, 2));
        let doubt: Vec<_> = book.intents().into_iter().filter(domain::intent::Intent::is_in_doubt).collect();
        assert!(doubt.is_empty(), "{doubt:?}");
        let left = book.intents().into_iter().find(|intent| intent.state == IntentState::Parked);
        let cause = left.and_then(|intent| intent.cause).unwrap_or_default();
        assert!(cause.contains("is gone: what it was to hold is in"), "{cause}");
    }
}

#[tokio::test]
async fn a_cycle_that_somebody_ended_is_not_replaced() {
    let (world, product, book) = site();
    forward(&world, &product, &book, attempt(1), LONG_MS).await.unwrap().unwrap();
    product.ended.lock().unwrap().insert(first_cycle(&book));
    for blind in [0, 1] {
        // The search may not reach back so far.
        *product.blind.lock().unwrap() = blind;
        let refused = forward(&world, &product, &book, attempt(2 + 2 * u64::from(blind)), LONG_MS).await.unwrap();
        assert!(matches!(&refused, Err(Halt::Gone(what)) if what.contains("is completed")), "{refused:?}");
        assert_eq!(product.cycles(), 1);
    }
}

#[tokio::test]
async fn a_cycle_is_not_replaced_for_what_is_refused_of_something_else() {
    let (world, product, book) = site();
    forward(&world, &product, &book, attempt(1), LONG_MS).await.unwrap().unwrap();
    *product.refuses_rows.lock().unwrap() = true;
    *product.blind.lock().unwrap() = 1;
    let refused = forward(&world, &product, &book, attempt(2), LONG_MS).await.unwrap();
    assert!(matches!(&refused, Err(Halt::Refused(what)) if what.contains("no such status")), "{refused:?}");
    *product.refuses_rows.lock().unwrap() = false;
    *product.blind.lock().unwrap() = 0;
    let done = forward(&world, &product, &book, attempt(2), LONG_MS).await.unwrap().unwrap();
    assert!(done.is_settled() && done.all_flags().is_empty(), "{done:?}");
    assert_eq!((product.cycles(), product.recorded().len()), (1, 6));
}

#[tokio::test]
async fn what_is_open_is_not_parked_for_what_is_refused_of_something_else() {
    let (world, product, book) = site();
    *product.script.lock().unwrap() = vec![Fault::None, Fault::AnswerLost];
    forward(&world, &product, &book, attempt(1), 1000).await.unwrap().unwrap_err();
    *product.refuses_rows.lock().unwrap() = true;
    let refused = forward(&world, &product, &book, attempt(1), LONG_MS).await.unwrap();
    assert!(matches!(refused, Err(Halt::Refused(_))), "{refused:?}");
    assert!(!book.intents()[0].state.is_settled(), "it goes on once the settings are mended");
    *product.refuses_rows.lock().unwrap() = false;
    let done = forward(&world, &product, &book, attempt(1), LONG_MS).await.unwrap().unwrap();
    assert_eq!((done.intents[0].state, product.recorded().len()), (IntentState::Found, 3));
}

#[tokio::test]
async fn a_doubled_cycle_that_is_seen_when_another_one_is_looked_for_is_said() {
    let (world, product, book) = site();
    forward(&world, &product, &book, attempt(1), LONG_MS).await.unwrap().unwrap();
    let gone = first_cycle(&book);
    // Two other machines have made one each meanwhile.
    product.deleted.lock().unwrap().insert(gone);
    for _ in 0..2 {
        *product.blind.lock().unwrap() = 2;
        let other = MemoryBook::new(&world);
        let beside = Load { key: domain::PushKey::parse("run:7:job:b").unwrap(), ..attempt(1) };
        forward(&world, &product, &other, beside, LONG_MS).await.unwrap().unwrap();
    }
    let done = forward(&world, &product, &book, attempt(2), LONG_MS).await.unwrap().unwrap();
    assert_eq!(done.all_flags(), [Flag::CycleDoubled]);
}

#[tokio::test]
async fn what_a_container_shows_in_part_is_kept() {
    let (world, mut product, book) = site();
    product.facts.strategies = &[Strategy::Container];
    product.facts.visible = Visible::Later(5000);
    // One row is never shown whole.
    *product.script.lock().unwrap() = vec![Fault::None, Fault::Mangled];
    let done = forward(&world, &product, &book, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
    assert!(done.all_flags().contains(&Flag::MarkerMangled), "{done:?}");
    assert_eq!(book.flags(), done.all_flags(), "whoever asks the ledger hears the same");
}

#[tokio::test]
async fn a_container_that_was_given_up_lists_what_was_refused_once() {
    let (world, mut product, book) = site();
    product.facts.strategies = &[Strategy::Container];
    product.no_cases.insert(delivery::foreign::CaseId::new("case0"));
    // The first one is given up.
    *product.script.lock().unwrap() = vec![Fault::None, Fault::Part];
    let done = forward(&world, &product, &book, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
    assert!(done.is_settled() && product.cycles() == 2, "{done:?}");
    assert_eq!(done.refused().len(), 1, "{:?}", done.refused());
}

#[tokio::test]
async fn containers_keep_their_numbers_when_a_person_takes_them_up() {
    let (world, mut product, book) = site();
    product.facts.strategies = &[Strategy::Container];
    product.mute_cases.insert(delivery::foreign::CaseId::new("case1"));
    let mut push = load("run:7", Some(1), names(3));
    push.wanted.id = WriteId(7);
    forward(&world, &product, &book, push.clone(), 24 * LONG_MS).await.unwrap().unwrap();
    let parked = book.intents().remove(0);
    assert_eq!((parked.state, product.cycles()), (IntentState::Parked, 8));
    crate::halts::person(&world, &product, &book, None).await;
    assert_eq!(book.intents()[0].sends, parked.sends, "what was given up stays so");
}
