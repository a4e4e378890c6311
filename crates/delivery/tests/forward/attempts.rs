//! Attempts of one push in whatever order they come: the newest one's outcome is what is shown, or somebody is told.

use std::sync::Arc;

use delivery::Clock as _;
use delivery::foreign::{Forwarded, KeyOnWrite, Listing, Strategy, VerdictRule};
use domain::Status::{self, Failed, Passed};
use domain::intent::{Flag, IntentState};

use crate::book::MemoryBook;
use crate::desk::{LONG_MS, forward, sweep};
use crate::faults::{Fault, facts};
use crate::plain::{load, outcome};
use crate::product::{Product, Stored};
use crate::world::World;

fn site(verdict: VerdictRule, key: KeyOnWrite) -> (Arc<World>, Product) {
    let world = Arc::new(World::new(1));
    let product = Product::new(&world, facts(verdict, key));
    (world, product)
}

async fn attempt(
    world: &Arc<World>,
    product: &Product,
    book: &MemoryBook,
    number: Option<u64>,
    status: Status,
) -> Forwarded {
    let load = load("run:7", number, vec![outcome("case0", status)]);
    let done = forward(world, product, book, load, LONG_MS).await.unwrap().unwrap();
    world.sleep(1000).await;
    done
}

/// Verdicts, the oldest first.
fn shown(product: &Product) -> Vec<Status> {
    product.rows_there().into_iter().map(|(_, row)| row.entry.status).collect()
}

#[tokio::test]
async fn an_outcome_that_comes_back_is_written_again_where_ids_are_known() {
    for key in [KeyOnWrite::Collapses, KeyOnWrite::Refuses] {
        for listing in [Listing::Cycle, Listing::Nothing] {
            let (world, mut product) = site(VerdictRule::Appends, key);
            product.listing = listing;
            for (number, status) in [(1, Failed), (2, Passed), (3, Failed)] {
                let done = attempt(&world, &product, &MemoryBook::new(&world), Some(number), status).await;
                assert!(done.is_settled() && done.all_flags().is_empty(), "{done:?}");
            }
            assert_eq!(shown(&product), [Failed, Passed, Failed], "{key:?} {listing:?}");
        }
        // Without a number the product would take the third for the first's repeat: that is said, and nothing is sent.
        let (world, product) = site(VerdictRule::Appends, key);
        attempt(&world, &product, &MemoryBook::new(&world), None, Failed).await;
        attempt(&world, &product, &MemoryBook::new(&world), None, Passed).await;
        let third = attempt(&world, &product, &MemoryBook::new(&world), None, Failed).await;
        assert_eq!((third.all_flags(), third.intents[0].state), (vec![Flag::Overtaken], IntentState::Parked));
    }
}

#[tokio::test]
async fn an_old_attempt_is_not_written_behind_a_newer_one_where_ids_are_known() {
    let (world, product) = site(VerdictRule::Appends, KeyOnWrite::Collapses);
    attempt(&world, &product, &MemoryBook::new(&world), Some(2), Passed).await;
    let old = attempt(&world, &product, &MemoryBook::new(&world), Some(1), Failed).await;
    assert_eq!((old.all_flags(), shown(&product)), (vec![Flag::Stale], vec![Passed]));
}

#[tokio::test]
async fn an_attempt_that_found_its_outcome_there_is_remembered() {
    let (world, product) = site(VerdictRule::Appends, KeyOnWrite::None);
    let book = MemoryBook::new(&world);
    attempt(&world, &product, &book, Some(1), Passed).await;
    let third = attempt(&world, &product, &book, Some(3), Passed).await;
    assert_eq!(third.intents[0].state, IntentState::Found);
    let second = attempt(&world, &product, &book, Some(2), Failed).await;
    assert_eq!((second.all_flags(), shown(&product)), (vec![Flag::Stale], vec![Passed]));
    assert_eq!(sweep(&world, &product, &book).await, [Flag::Stale], "it was left out, and is not missing");
}

#[tokio::test]
async fn an_older_attempt_that_lands_last_is_said() {
    let (world, product) = site(VerdictRule::Appends, KeyOnWrite::None);
    *product.script.lock().unwrap() = vec![Fault::None, Fault::Late(600_000)];
    let first = load("run:7", Some(1), vec![outcome("case0", Failed)]);
    forward(&world, &product, &MemoryBook::new(&world), first, 1000).await.unwrap().unwrap_err();
    let book = MemoryBook::new(&world);
    let second = attempt(&world, &product, &book, Some(2), Passed).await;
    assert_eq!(second.all_flags(), []);
    world.sleep(700_000).await;
    assert_eq!(shown(&product), [Passed, Failed], "the window that stays open");
    assert_eq!(sweep(&world, &product, &book).await, [Flag::Overtaken]);
}

#[tokio::test]
async fn an_outcome_that_two_attempts_wrote_is_there_twice() {
    for key in [KeyOnWrite::None, KeyOnWrite::Collapses] {
        let (world, product) = site(VerdictRule::Appends, key);
        let late = std::iter::repeat_n(Fault::Late(600_000), 20);
        *product.script.lock().unwrap() = [Fault::None].into_iter().chain(late).collect();
        let first = load("run:7", Some(1), vec![outcome("case0", Passed)]);
        // Its runner ends with its ledger.
        forward(&world, &product, &MemoryBook::new(&world), first, 1).await.unwrap().unwrap_err();
        product.script.lock().unwrap().clear();
        let book = MemoryBook::new(&world);
        let second = attempt(&world, &product, &book, Some(2), Passed).await;
        assert_eq!(second.all_flags(), []);
        world.sleep(700_000).await;
        assert_eq!(shown(&product), [Passed, Passed], "the window that stays open");
        assert_eq!(sweep(&world, &product, &book).await, [Flag::DuplicateDetected]);
    }
}

#[tokio::test]
async fn a_verdict_that_changes_under_its_marker_is_said() {
    let (world, product) = site(VerdictRule::Replaces, KeyOnWrite::None);
    let book = MemoryBook::new(&world);
    attempt(&world, &product, &book, Some(2), Passed).await;
    assert_eq!(sweep(&world, &product, &book).await, []);
    // The verdict of the first attempt comes late, without its marker.
    let late: Vec<_> = product.rows_there();
    product.forget_rows();
    product.put(late.into_iter().map(|(cycle, mut row)| {
        row.entry.status = Failed;
        (cycle, row)
    }));
    assert_eq!(sweep(&world, &product, &book).await, [Flag::Overtaken]);
    let again = attempt(&world, &product, &MemoryBook::new(&world), Some(2), Passed).await;
    assert_eq!(again.all_flags(), [Flag::Overtaken]);
}

#[tokio::test]
async fn a_changed_marker_beside_an_older_row_is_not_doubled() {
    let (world, product) = site(VerdictRule::Appends, KeyOnWrite::None);
    attempt(&world, &product, &MemoryBook::new(&world), Some(1), Failed).await;
    attempt(&world, &product, &MemoryBook::new(&world), Some(2), Passed).await;
    let rows = product.rows_there();
    product.forget_rows();
    let damaged = |row: Stored| Stored { mangled: row.entry.status == Passed, ..row };
    product.put(rows.into_iter().map(|(cycle, row)| (cycle, damaged(row))));
    for _ in 0..2 {
        let again = attempt(&world, &product, &MemoryBook::new(&world), Some(2), Passed).await;
        assert_eq!((again.all_flags(), again.intents[0].state), (vec![Flag::MarkerMangled], IntentState::Parked));
        assert_eq!(shown(&product), [Failed, Passed]);
    }
    // A newer whole row than the damaged one settles it.
    let rows = product.rows_there();
    let newest = |row: &Stored| Stored { mangled: false, at_ms: world.now(), ..row.clone() };
    product.put([(rows[1].0.clone(), newest(&rows[1].1))]);
    let again = attempt(&world, &product, &MemoryBook::new(&world), Some(3), Failed).await;
    assert!(again.is_settled(), "{again:?}");
}

#[tokio::test]
async fn what_a_later_attempt_of_the_same_push_replaced_is_not_missing() {
    for verdict in [VerdictRule::Appends, VerdictRule::Replaces] {
        for numbers in [[Some(1), Some(2)], [None, None]] {
            let (world, product) = site(verdict, KeyOnWrite::None);
            let book = MemoryBook::new(&world);
            attempt(&world, &product, &book, numbers[0], Failed).await;
            attempt(&world, &product, &book, numbers[1], Passed).await;
            assert_eq!(sweep(&world, &product, &book).await, [], "{verdict:?} {numbers:?}");
            // The same of one case among others.
            let (world, product) = site(verdict, KeyOnWrite::None);
            let book = MemoryBook::new(&world);
            for (number, status) in numbers.into_iter().zip([Failed, Passed]) {
                let outcomes = vec![outcome("case0", status), outcome("case1", Passed)];
                forward(&world, &product, &book, load("run:7", number, outcomes), LONG_MS).await.unwrap().unwrap();
                world.sleep(1000).await;
            }
            assert_eq!(sweep(&world, &product, &book).await, [], "{verdict:?} {numbers:?}");
        }
    }
}

#[tokio::test]
async fn a_worse_verdict_of_another_push_is_not_replaced_in_silence() {
    for (first, second, flags) in
        [(Failed, Passed, &[Flag::RowsAmbiguous][..]), (Passed, Failed, &[]), (Passed, Passed, &[])]
    {
        let (world, product) = site(VerdictRule::Replaces, KeyOnWrite::None);
        for (key, status, flags) in [("run:7:job:linux", first, &[][..]), ("run:7:job:windows", second, flags)] {
            let load = load(key, Some(1), vec![outcome("case0", status)]);
            let done = forward(&world, &product, &MemoryBook::new(&world), load, LONG_MS).await.unwrap().unwrap();
            assert_eq!(done.all_flags(), flags, "{key}");
        }
        assert_eq!(shown(&product), [second]);
    }
}

#[tokio::test]
async fn a_container_of_an_older_attempt_is_not_filled_after_a_newer_one() {
    let (world, mut product) = site(VerdictRule::Appends, KeyOnWrite::None);
    product.facts.strategies = &[Strategy::Container];
    let book = MemoryBook::new(&world);
    attempt(&world, &product, &book, Some(2), Passed).await;
    for _ in 0..2 {
        let old = attempt(&world, &product, &book, Some(1), Failed).await;
        assert_eq!((old.all_flags(), shown(&product)), (vec![Flag::Stale], vec![Passed]));
        assert_eq!(sweep(&world, &product, &book).await, [Flag::Stale]);
    }
    // One that held more than ran again is not: nothing else would hold the rest.
    let both = vec![outcome("case0", Failed), outcome("case1", Passed)];
    let done = forward(&world, &product, &book, load("run:7", Some(1), both), LONG_MS).await.unwrap().unwrap();
    assert_eq!((done.all_flags(), shown(&product).len()), (vec![], 3));
}
