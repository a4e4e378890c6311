//! Containers, and what a sweep sees of whole cycles.

use std::sync::Arc;

use delivery::Clock as _;
use delivery::foreign::{KeyOnWrite, Listing, Strategy, VerdictRule, Visible};
use domain::Status;
use domain::intent::{Flag, Intent, IntentState};
use domain::marker::WriteId;

use crate::book::MemoryBook;
use crate::desk::{Desk, LONG_MS, forward, sweep};
use crate::faults::{Fault, facts};
use crate::plain::{load, names};
use crate::product::{Product, Stored};
use crate::windows::Site;
use crate::world::World;

fn contained(seed: u64) -> Site {
    let mut site = Site::new(seed);
    site.product.facts.strategies = &[Strategy::Container];
    site
}

#[tokio::test]
async fn a_container_that_was_made_twice_is_said() {
    let site = contained(1);
    site.push(&[]).await;
    // Another machine's searches don't show it yet.
    *site.product.blind.lock().unwrap() = 2;
    let other = MemoryBook::new(&site.world);
    let desk = Desk { book: &other, sole: false, ..site.desk() };
    let done = desk.forward(site.load("run:7", 1, Status::Passed), LONG_MS).await.unwrap().unwrap();
    assert!(done.is_settled(), "{done:?}");
    assert_eq!(done.all_flags(), [Flag::CycleDoubled]);
    assert_eq!(site.product.published().1.len() as u64, site.count);
}

#[tokio::test]
async fn a_container_that_is_never_listed_is_said() {
    for (looks, flags) in [(4, &[][..]), (99, &[Flag::CycleUnseen])] {
        let site = contained(6);
        *site.product.blind.lock().unwrap() = looks;
        let done = site.desk().forward(site.load("run:7", 1, Status::Passed), LONG_MS).await.unwrap().unwrap();
        assert_eq!(done.all_flags(), flags, "{looks}");
        assert!(done.is_settled() && site.each_once(), "{done:?}");
    }
}

#[tokio::test]
async fn only_whoever_is_alone_there_knows_that_a_container_was_forgotten() {
    for sole in [true, false] {
        let mut site = contained(2);
        site.sole = sole;
        site.push(&[]).await;
        let other = MemoryBook::new(&site.world);
        let desk = Desk { book: &other, ..site.desk() };
        let done = desk.forward(site.load("run:7", 1, Status::Passed), LONG_MS).await.unwrap().unwrap();
        let flags: &[Flag] = if sole { &[Flag::LedgerRestored] } else { &[] };
        assert_eq!((done.all_flags().as_slice(), done.intents[0].state), (flags, IntentState::Found));
        assert!(site.each_once());
    }
}

#[tokio::test]
async fn what_a_container_took_is_looked_for_until_it_is_shown() {
    for (lag_ms, waited_ms, flags) in
        [(0, 0, &[][..]), (25_000, 30_000, &[]), (999_000, 90_000, &[Flag::AcceptedNotConfirmed])]
    {
        let mut site = contained(3);
        site.product.facts.visible = Visible::Later(30_000);
        site.product.lag_ms = lag_ms;
        let begun_ms = site.world.now();
        let done = site.push(&[]).await;
        assert_eq!((done.all_flags().as_slice(), site.world.now() - begun_ms), (flags, waited_ms));
        assert_eq!((done.intents[0].state, site.product.cycles()), (IntentState::Acked, 1), "no other one is begun");
        site.world.sleep(1_000_000).await;
        assert_eq!(site.desk().sweep().await, [], "shown by now");
    }
}

#[tokio::test]
async fn what_is_only_counted_is_swept_by_its_count() {
    let mut site = contained(4);
    site.product.listing = Listing::Counts;
    site.push(&[]).await;
    let rows = site.product.rows_there();
    let put = |rows: &[_]| {
        site.product.forget_rows();
        site.product.put(rows.to_vec());
    };
    for (rows, flags) in [
        (&rows[..], &[][..]),
        (&rows[..1], &[Flag::Partial, Flag::Vanished]),
        (&[], &[Flag::Vanished]),
        (&[&rows[..], &rows[..]].concat()[..], &[Flag::DuplicateDetected]),
        (&[&rows[..], &rows[..1]].concat()[..], &[Flag::CountContradicts]),
        (&rows[..], &[]),
    ] {
        put(rows);
        assert_eq!(site.desk().sweep().await, flags, "{} rows", rows.len());
    }
}

#[tokio::test]
async fn a_cycle_that_is_gone_hides_no_other() {
    for refuses in [true, false] {
        let site = Site::new(5);
        site.push(&[]).await;
        site.world.sleep(1000).await;
        let mut newer = site.load("run:8", 1, Status::Passed);
        newer.wanted.id = WriteId(8);
        let gone = site.desk().forward(newer, LONG_MS).await.unwrap().unwrap().cycle.unwrap();
        let rows = site.product.take_away("case1");
        let places = if refuses { &site.product.deleted } else { &site.product.gone };
        places.lock().unwrap().insert(gone.clone());
        site.desk().sweep().await;
        let is_gone = |intent: &&Intent| intent.cycle_there.as_deref() == Some(gone.as_str());
        let (there, here): (Vec<Intent>, Vec<Intent>) =
            site.book.intents().into_iter().partition(|intent| is_gone(&intent));
        assert!(there.iter().all(|intent| intent.flags.iter().eq(&[Flag::Vanished])), "{there:?}");
        assert!(here[0].flags.iter().eq(&[Flag::Partial, Flag::Vanished]), "the older one is read all the same");
        places.lock().unwrap().clear();
        site.product.put(rows);
        assert_eq!(site.desk().sweep().await, []);
    }
}

#[tokio::test]
async fn a_later_push_of_the_same_ledger_takes_a_place_rightly() {
    let world = Arc::new(World::new(1));
    let product = Product::new(&world, facts(VerdictRule::Replaces, KeyOnWrite::None));
    let book = MemoryBook::new(&world);
    for key in ["run:7:job:a", "run:7:job:b"] {
        forward(&world, &product, &book, load(key, Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
        world.sleep(1000).await;
    }
    assert_eq!(sweep(&world, &product, &book).await, [], "the first one was written over as it should be");
    let other = MemoryBook::new(&world);
    forward(&world, &product, &other, load("run:7:job:c", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
    assert_eq!(sweep(&world, &product, &book).await, [Flag::Vanished], "nobody here knows of that one");
}

#[tokio::test]
async fn a_job_says_nothing_that_only_a_server_can_know() {
    let world = Arc::new(World::new(1));
    let product = Product::new(&world, facts(VerdictRule::Appends, KeyOnWrite::None));
    let first = MemoryBook::new(&world);
    forward(&world, &product, &first, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
    // Its ledger wasn't kept, and the clock of the product is years behind.
    let rows = product.rows_there();
    product.forget_rows();
    product.put(rows.into_iter().map(|(cycle, row)| (cycle, Stored { at_ms: 1, ..row })));
    let second = MemoryBook::new(&world);
    let done = forward(&world, &product, &second, load("run:7", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
    assert!(done.is_settled() && done.all_flags().is_empty(), "{done:?}");
    forward(&world, &product, &second, load("run:7:job:b", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
    let third = MemoryBook::new(&world);
    forward(&world, &product, &third, load("run:7:job:c", Some(1), names(3)), LONG_MS).await.unwrap().unwrap();
    assert_eq!(sweep(&world, &product, &third).await, [], "rows of other jobs are nobody's business");
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
    assert_eq!(sweep(&world, &product, &book).await, [Flag::Vanished], "nothing is there twice any more");
}

#[tokio::test]
async fn what_was_refused_after_a_silence_and_came_all_the_same_is_found() {
    let mut site = Site::new(7);
    site.count = 1;
    let late_ms = 10 * site.product.facts.quiet_ms;
    let done = site.push(&[Fault::Late(late_ms), Fault::Refused]).await;
    let intent = &done.intents[0];
    assert_eq!((intent.state, intent.sends, done.refused().len()), (IntentState::Rejected, 2, 1), "{done:?}");
    assert_eq!(site.desk().sweep().await, [], "it is not there yet");
    assert_eq!(site.book.intents()[0].state, IntentState::Rejected);
    site.world.sleep(2 * late_ms).await;
    assert_eq!(site.desk().sweep().await, [], "it stands there once");
    let found = site.book.intents().remove(0);
    assert_eq!((found.state, found.refused.len(), found.cause.as_ref()), (IntentState::Found, 0, None), "{found:?}");
    assert!(found.seen_ms.is_some() && site.each_once(), "{found:?}");
    // From now on it is missed like all else.
    site.product.take_away("case0");
    assert_eq!(site.desk().sweep().await, [Flag::Vanished]);
}

#[tokio::test]
async fn what_was_refused_at_its_first_send_is_not_asked_for() {
    let mut site = Site::new(8);
    site.count = 1;
    let done = site.push(&[Fault::Refused]).await;
    assert_eq!((done.intents[0].state, done.intents[0].sends), (IntentState::Rejected, 1), "{done:?}");
    let reads = site.product.calls.lock().unwrap().0;
    assert_eq!(site.desk().sweep().await, []);
    assert_eq!(site.product.calls.lock().unwrap().0, reads);
}
