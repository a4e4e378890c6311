//! The same push again with equal outcomes, or with one that comes back, or under a mended mapping: each outcome is there once,
//! and the newest one last.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use delivery::Clock as _;
use delivery::foreign::{Forwarded, KeyOnWrite, Listing, Strategy, VerdictRule};
use domain::Status::{self, Failed, Passed};
use domain::intent::{Flag, IntentState};

use crate::book::MemoryBook;
use crate::desk::{Desk, LONG_MS, forward, site, site_of, sweep};
use crate::faults::Fault;
use crate::plain::{load, names, outcome};
use crate::product::Product;
use crate::world::World;

fn contained() -> (Arc<World>, Product, MemoryBook) {
    let (world, mut product, book) = site();
    product.facts.strategies = &[Strategy::Container];
    (world, product, book)
}

async fn says(
    (world, product, book): (&Arc<World>, &Product, &MemoryBook),
    number: Option<u64>,
    status: Status,
) -> Forwarded {
    let load = load("run:7", number, vec![outcome("case0", status), outcome("case1", Passed)]);
    let done = forward(world, product, book, load, LONG_MS).await.unwrap().unwrap();
    world.sleep(1000).await;
    done
}

/// What is shown of the first case, the oldest first.
fn shown(product: &Product) -> Vec<Status> {
    let first = |row: &crate::product::Stored| row.entry.case.as_str() == "case0";
    let mut rows: Vec<_> = product.rows_there().into_iter().map(|(_, row)| row).filter(first).collect();
    rows.sort_by_key(|row| row.at_ms);
    rows.into_iter().map(|row| row.entry.status).collect()
}

#[tokio::test]
async fn a_retry_that_says_the_same_makes_no_other_container() {
    let (world, product, book) = contained();
    let at = (&world, &product, &book);
    let first = says(at, Some(1), Failed).await;
    for number in [2, 4] {
        let again = says(at, Some(number), Failed).await;
        assert_eq!((again.cycle, again.flags), (first.cycle.clone(), vec![]), "attempt {number}");
        assert_eq!(product.published().0, 1, "attempt {number}");
    }
    // What says something else does, and what comes back after it.
    says(at, Some(5), Passed).await;
    says(at, Some(6), Failed).await;
    assert_eq!((product.published().0, shown(&product)), (3, vec![Failed, Passed, Failed]));
    assert_eq!(sweep(&world, &product, &book).await, []);
}

#[tokio::test]
async fn a_retry_on_another_machine_finds_the_container_of_the_attempt_before() {
    let (world, product, _) = contained();
    for number in [1, 2] {
        let book = MemoryBook::new(&world);
        let done = says((&world, &product, &book), Some(number), Failed).await;
        assert!(done.is_settled() && done.all_flags().is_empty(), "{done:?}");
        assert_eq!(product.published().0, 1, "attempt {number}");
        assert_eq!(sweep(&world, &product, &book).await, []);
    }
    says((&world, &product, &MemoryBook::new(&world)), Some(3), Passed).await;
    assert_eq!(product.published().0, 2);
}

#[tokio::test]
async fn a_container_that_comes_back_without_a_number_is_made_anew() {
    let (world, product, book) = contained();
    let at = (&world, &product, &book);
    for status in [Failed, Passed, Failed, Failed, Passed] {
        says(at, None, status).await;
    }
    assert_eq!(shown(&product), [Failed, Passed, Failed, Passed]);
    assert_eq!(sweep(&world, &product, &book).await, []);
}

#[tokio::test]
async fn an_outcome_that_comes_back_without_a_number_is_written_again() {
    for (verdict, shows) in
        [(VerdictRule::Appends, &[Failed, Passed, Failed, Passed][..]), (VerdictRule::Replaces, &[Passed])]
    {
        let (world, product, book) = site_of(verdict, KeyOnWrite::None);
        let at = (&world, &product, &book);
        for status in [Failed, Passed, Failed, Failed, Passed] {
            let done = says(at, None, status).await;
            assert!(done.is_settled() && done.all_flags().is_empty(), "{done:?}");
            assert_eq!(shown(&product).last(), Some(&status), "{verdict:?}");
        }
        assert_eq!(shown(&product), shows, "{verdict:?}");
        assert_eq!(product.recorded().iter().filter(|(case, _)| case.as_str() == "case1").count(), 1);
        assert_eq!(sweep(&world, &product, &book).await, [], "{verdict:?}");
    }
}

#[tokio::test]
async fn where_nothing_can_be_read_an_outcome_that_comes_back_is_sent_or_said() {
    // Without ids, the ledger says what is there.
    let (world, mut product, book) = site();
    (product.listing, product.facts.strategies) = (Listing::Nothing, &[Strategy::AtMostOnce]);
    for status in [Failed, Passed, Failed, Failed] {
        assert!(says((&world, &product, &book), None, status).await.is_settled());
    }
    assert_eq!(shown(&product), [Failed, Passed, Failed]);
    assert_eq!(product.recorded().iter().filter(|(case, _)| case.as_str() == "case1").count(), 1);
    // With them, the product would take it for a repeat.
    let (world, mut product, book) = site_of(VerdictRule::Appends, KeyOnWrite::Collapses);
    product.listing = Listing::Nothing;
    let at = (&world, &product, &book);
    says(at, None, Failed).await;
    says(at, None, Passed).await;
    let third = says(at, None, Failed).await;
    assert_eq!((third.all_flags(), third.intents[0].state), (vec![Flag::Overtaken], IntentState::Parked));
}

#[tokio::test]
async fn a_retry_under_other_ids_sends_nothing_that_the_ledger_has_confirmed() {
    let (world, mut product, book) = site_of(VerdictRule::Appends, KeyOnWrite::Collapses);
    product.listing = Listing::Nothing;
    let at = (&world, &product, &book);
    says(at, Some(1), Failed).await;
    says(at, Some(2), Failed).await;
    assert_eq!(product.recorded().len(), 2, "{:?}", product.recorded());
    says(at, Some(3), Passed).await;
    assert_eq!((product.recorded().len(), shown(&product)), (3, vec![Failed, Passed]));
}

#[tokio::test]
async fn an_attempt_without_a_number_beside_a_numbered_one_is_said() {
    let (world, product, book) = site();
    let at = (&world, &product, &book);
    says(at, Some(1), Failed).await;
    let other = says(at, None, Passed).await;
    assert_eq!((other.all_flags(), other.intents[0].state), (vec![Flag::Overtaken], IntentState::Parked));
}

#[tokio::test]
async fn what_waits_goes_to_the_case_of_a_mended_mapping_alone() {
    for strategy in [&[Strategy::Reconcile], &[Strategy::Container]] {
        for fault in [Fault::NotSent, Fault::RequestLost] {
            for sole in [false, true] {
                let (world, mut product, book) = site();
                product.facts.strategies = strategy;
                *product.aliases.lock().unwrap() = BTreeMap::from([("a", "wrong")]);
                let desk = Desk { world: &world, product: &product, book: &book, sole };
                let push = || load("run:7", Some(1), vec![outcome("a", Passed), outcome("b", Failed)]);
                *product.script.lock().unwrap() =
                    [Fault::None].into_iter().chain(std::iter::repeat_n(fault, 40)).collect();
                desk.forward(push(), 1000).await.unwrap().unwrap_err();
                product.script.lock().unwrap().clear();
                *product.aliases.lock().unwrap() = BTreeMap::from([("a", "right")]);
                let done = desk.forward(push(), LONG_MS).await.unwrap().unwrap();
                assert!(done.is_settled(), "{done:?}");
                let rows = product.rows_there();
                let mut cases: Vec<&str> = rows.iter().map(|(_, row)| row.entry.case.as_str()).collect();
                cases.sort_unstable();
                assert_eq!(cases, ["b", "right"], "{strategy:?} {fault:?} {sole}");
                let left = book.intents().into_iter().find(|intent| intent.flags.contains(&Flag::Stale));
                assert_eq!(left.map(|intent| intent.state), Some(IntentState::Found), "{strategy:?} {fault:?}");
            }
        }
    }
}

#[tokio::test]
async fn whoever_forwards_alone_reads_what_concerns_a_push_and_no_more() {
    for sole in [true, false] {
        let (world, product, book) = site();
        let desk = Desk { world: &world, product: &product, book: &book, sole };
        for n in 0..30 {
            let mut other = load(&format!("run:{n}"), Some(1), names(1));
            other.wanted.id = domain::marker::WriteId(1000 + n);
            *product.script.lock().unwrap() = vec![Fault::None, Fault::RequestLost];
            desk.forward(other, 1).await.unwrap().unwrap_err();
        }
        product.script.lock().unwrap().clear();
        book.read.store(0, Ordering::Relaxed);
        desk.forward(load("run:x", Some(1), names(1)), LONG_MS).await.unwrap().unwrap();
        let read = book.read.load(Ordering::Relaxed);
        assert!(if sole { read == 0 } else { read >= 30 }, "sole: {sole}, and {read} of 30 others were read");
    }
}

#[tokio::test]
async fn a_long_reading_is_not_made_again_for_every_write() {
    let (world, mut product, book) = site();
    product.facts.bulk.items_max = 1;
    product.takes_ms = (10_000, 3000);
    forward(&world, &product, &book, load("run:7", Some(1), names(40)), LONG_MS).await.unwrap().unwrap();
    let readings = product.calls.lock().unwrap().0;
    assert!((2..=8).contains(&readings), "{readings} readings of 10 s for 40 writes of 3 s");
    assert_eq!(product.recorded().len(), 40);
}
