//! What was refused: of one case and not of another, offered again, and never taken for the word of a whole cycle.

use delivery::Clock as _;
use delivery::foreign::{CaseId, Halt, KeyOnWrite, Listing, VerdictRule, Visible};
use domain::Status::{Failed, Passed};
use domain::intent::{Flag, IntentState};

use crate::desk::{Desk, LONG_MS, cases, forward, site_of};
use crate::faults::Fault;
use crate::plain::{load, names, outcome};

#[tokio::test]
async fn a_refused_case_of_an_item_keeps_no_other_of_it_back() {
    // The other one's call is told to wait beyond the deadline, or is lost.
    for (fault, deadline_ms) in [(Fault::Wait, 4000), (Fault::RequestLost, LONG_MS)] {
        let (world, mut product, book) = site_of(VerdictRule::Appends, KeyOnWrite::None);
        product.bad_cases.insert(CaseId::new("a"));
        *product.script.lock().unwrap() = vec![Fault::None, fault];
        let push = || load("run:7", Some(1), vec![outcome("a and b", Failed)]);
        let first = forward(&world, &product, &book, push(), deadline_ms).await.unwrap();
        assert_eq!(first.is_err(), fault == Fault::Wait);
        let done = forward(&world, &product, &book, push(), LONG_MS).await.unwrap().unwrap();
        assert_eq!(cases(&product), ["b"], "{fault:?}");
        let refused: Vec<_> = done.refused().into_iter().map(|refused| (refused.item, refused.case)).collect();
        assert_eq!(refused, [("a and b".to_owned(), Some("a".to_owned()))]);
        assert!(done.is_settled() && done.all_flags().is_empty(), "{done:?}");
        // What is there is watched, and what was refused is not.
        assert_eq!(Desk { world: &world, product: &product, book: &book, sole: true }.sweep().await, []);
        product.take_away("b");
        let flags = Desk { world: &world, product: &product, book: &book, sole: true }.sweep().await;
        assert_eq!(flags, [Flag::Vanished], "{fault:?}");
    }
}

#[tokio::test]
async fn an_item_that_is_refused_for_each_of_its_cases_is_not_there() {
    let (world, mut product, book) = site_of(VerdictRule::Appends, KeyOnWrite::None);
    product.bad_cases.extend(["a", "b"].map(CaseId::new));
    let push = load("run:7", Some(1), vec![outcome("a and b", Failed)]);
    let done = forward(&world, &product, &book, push, LONG_MS).await.unwrap().unwrap();
    assert_eq!((done.intents[0].state, done.refused().len()), (IntentState::Rejected, 2), "{done:?}");
    assert_eq!(cases(&product).len(), 0);
}

#[tokio::test]
async fn what_was_there_once_is_not_sent_again_for_a_neighbour_that_was_refused() {
    for (key, listing) in [
        (KeyOnWrite::None, Listing::Cycle),
        (KeyOnWrite::Collapses, Listing::Cycle),
        (KeyOnWrite::Collapses, Listing::Nothing),
    ] {
        let (world, mut product, book) = site_of(VerdictRule::Appends, key);
        product.listing = listing;
        product.bad_cases.insert(CaseId::new("case0"));
        let push = || load("run:7", Some(1), names(3));
        forward(&world, &product, &book, push(), LONG_MS).await.unwrap().unwrap();
        assert_eq!(cases(&product), ["case1", "case2"]);
        // A person has a reason.
        product.take_away("case1");
        for _ in 0..2 {
            let again = forward(&world, &product, &book, push(), LONG_MS).await.unwrap().unwrap();
            assert_eq!((cases(&product), again.refused().len()), (vec!["case2".to_owned()], 1), "{key:?} {listing:?}");
        }
        product.bad_cases.clear();
        // The answer is lost, and a process dies over it: it is still only what was refused.
        let script = if listing == Listing::Cycle { vec![Fault::RequestLost, Fault::Dies] } else { vec![Fault::Dies] };
        *product.script.lock().unwrap() = script;
        assert!(forward(&world, &product, &book, push(), LONG_MS).await.is_none());
        book.bury();
        let whole = forward(&world, &product, &book, push(), LONG_MS).await.unwrap().unwrap();
        assert_eq!((cases(&product), whole.refused()), (vec!["case0".to_owned(), "case2".to_owned()], vec![]));
        if listing == Listing::Cycle {
            let flags = Desk { world: &world, product: &product, book: &book, sole: false }.sweep().await;
            assert!(flags.contains(&Flag::Vanished), "{flags:?}");
        }
    }
}

#[tokio::test]
async fn what_a_person_gave_up_is_not_offered_again() {
    let (world, mut product, book) = site_of(VerdictRule::Appends, KeyOnWrite::None);
    product.bad_cases.insert(CaseId::new("case0"));
    let push = || load("run:7", Some(1), names(3));
    forward(&world, &product, &book, push(), LONG_MS).await.unwrap().unwrap();
    crate::halts::person(&world, &product, &book, Some("case0 is none of ours")).await;
    product.bad_cases.clear();
    forward(&world, &product, &book, push(), LONG_MS).await.unwrap().unwrap();
    assert_eq!(cases(&product), ["case1", "case2"]);
}

#[tokio::test]
async fn what_was_taken_and_is_not_shown_yet_is_not_sent_again_for_a_neighbour() {
    let (world, mut product, book) = site_of(VerdictRule::Appends, KeyOnWrite::None);
    (product.facts.visible, product.lag_ms, product.names_rows) = (Visible::Later(5000), LONG_MS, true);
    product.bad_cases.insert(CaseId::new("case0"));
    let push = || load("run:7", Some(1), names(3));
    for _ in 0..2 {
        let done = forward(&world, &product, &book, push(), 10_000).await.unwrap().unwrap();
        assert_eq!(done.all_flags(), [Flag::AcceptedNotConfirmed], "{done:?}");
        assert_eq!(cases(&product), ["case1", "case2"]);
    }
}

#[tokio::test]
async fn a_refused_question_is_no_word_on_a_cycle() {
    let (world, product, book) = site_of(VerdictRule::Appends, KeyOnWrite::None);
    forward(&world, &product, &book, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
    let desk = Desk { world: &world, product: &product, book: &book, sole: true };
    *product.refuses.lock().unwrap() = true;
    let swept = desk.sweep_of(book.intents()).await;
    assert!(matches!(&swept, Err(Halt::Refused(what)) if what.contains("no such status")), "{swept:?}");
    assert_eq!(book.flags(), [], "nothing was seen to vanish");
    *product.refuses.lock().unwrap() = false;
    assert_eq!(desk.sweep().await, []);
}

#[tokio::test]
async fn an_attempt_that_was_refused_took_nobodys_place() {
    let (world, mut product, book) = site_of(VerdictRule::Appends, KeyOnWrite::None);
    let push = |number, status| load("run:7", Some(number), vec![outcome("case0", status), outcome("case1", status)]);
    forward(&world, &product, &book, push(1, Passed), LONG_MS).await.unwrap().unwrap();
    product.bad_cases.insert(CaseId::new("case0"));
    forward(&world, &product, &book, push(2, Failed), LONG_MS).await.unwrap().unwrap();
    let desk = Desk { world: &world, product: &product, book: &book, sole: true };
    assert_eq!(desk.sweep().await, []);
    // One that got there did, also where the row of the first is deleted.
    let rows = product.take_away("case1").into_iter().filter(|(_, row)| row.entry.status == Failed);
    product.put(rows.collect::<Vec<_>>());
    assert_eq!(desk.sweep().await, []);
    product.take_away("case0");
    assert_eq!(desk.sweep().await, [Flag::Vanished]);
}

#[tokio::test]
async fn what_was_read_before_the_turn_is_not_written_after_it() {
    let (world, mut product, book) = site_of(VerdictRule::Appends, KeyOnWrite::None);
    product.bad_cases.insert(CaseId::new("case0"));
    let push = || load("run:7", Some(1), names(3));
    forward(&world, &product, &book, push(), LONG_MS).await.unwrap().unwrap();
    let before = book.intents();
    world.sleep(LONG_MS).await;
    product.bad_cases.clear();
    forward(&world, &product, &book, push(), LONG_MS).await.unwrap().unwrap();
    let mended = book.intents().remove(0);
    product.take_away("case1");
    let desk = Desk { world: &world, product: &product, book: &book, sole: true };
    desk.sweep_of(before).await.unwrap();
    let swept = book.intents().remove(0);
    assert!(swept.flags.contains(&Flag::Vanished), "{swept:?}");
    assert_eq!((swept.refused, swept.sends, swept.sent_ms), (vec![], mended.sends, mended.sent_ms));
}

#[tokio::test]
async fn a_product_that_is_away_for_some_minutes_is_nothing_that_a_person_has_to_look_at() {
    for (listing, away_ms) in [(Listing::Nothing, 30_000), (Listing::Nothing, 500_000), (Listing::Cycle, 500_000)] {
        let (world, mut product, book) = site_of(VerdictRule::Appends, KeyOnWrite::Collapses);
        product.listing = listing;
        *product.away_until_ms.lock().unwrap() = world.now() + away_ms;
        let push = || load("run:7", Some(1), names(9));
        let done = forward(&world, &product, &book, push(), 600_000).await.unwrap().unwrap();
        assert!(done.is_settled() && done.all_flags().is_empty(), "{away_ms}: {done:?}");
        assert_eq!(cases(&product).len(), 9);
        let calls = product.calls.lock().unwrap().1;
        assert!(calls < 200, "{calls} writes in {away_ms} ms");
    }
    // One entry that is never answered is given to a person all the same.
    let (world, mut product, book) = site_of(VerdictRule::Appends, KeyOnWrite::Collapses);
    product.mute_cases.insert(CaseId::new("case1"));
    let done = forward(&world, &product, &book, load("run:7", Some(1), names(6)), LONG_MS).await.unwrap().unwrap();
    assert_eq!((done.intents[0].state, cases(&product).len()), (IntentState::Parked, 5));
}
