//! What is open from before: it ends with the next push of its kind or by itself, and keeps no other one back.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use delivery::foreign::{BookError, CycleId, Halt, KeyOnWrite, Load, Strategy, VerdictRule};
use domain::Status::{self, Failed, Passed};
use domain::intent::{Flag, Intent, IntentState};
use domain::marker::WriteId;

use crate::book::MemoryBook;
use crate::desk::{Desk, LONG_MS, sweep};
use crate::faults::{Fault, facts};
use crate::plain::{each_once, load, names, outcome};
use crate::product::Product;
use crate::world::World;

struct Site {
    world: Arc<World>,
    product: Product,
    book: MemoryBook,
    sole: bool,
}

/// What is done without a push.
enum Wish<'a> {
    Resume,
    TakeUp(Intent),
    Leave(Intent, &'a str),
}

impl Site {
    fn new(strategy: Strategy, sole: bool) -> Self {
        Self::seeded(1, strategy, sole)
    }

    fn seeded(seed: u64, strategy: Strategy, sole: bool) -> Self {
        let world = Arc::new(World::new(seed));
        let mut product = Product::new(&world, facts(VerdictRule::Appends, KeyOnWrite::None));
        product.facts.strategies = match strategy {
            Strategy::Container => &[Strategy::Container],
            _ => &[Strategy::Reconcile],
        };
        let book = MemoryBook::new(&world);
        Self { world, product, book, sole }
    }

    fn desk(&self) -> Desk<'_> {
        Desk { world: &self.world, product: &self.product, book: &self.book, sole: self.sole }
    }

    async fn forward(&self, load: Load) -> Result<delivery::foreign::Forwarded, Halt> {
        self.desk().forward(load, LONG_MS).await.unwrap()
    }

    /// A push whose write, after that of its cycle, meets this, in a process that has no time to find out.
    async fn cut(&self, load: Load, faults: &[Fault]) {
        *self.product.script.lock().unwrap() = faults.to_vec();
        let cut = self.desk().forward(load, 1000).await.unwrap();
        assert!(matches!(cut, Err(Halt::Over(_))), "{cut:?}");
        self.product.script.lock().unwrap().clear();
    }

    async fn alone(&self, wish: Wish<'_>) -> Result<Vec<Intent>, Halt> {
        let seed = self.world.below(u64::MAX);
        let done = self.desk().doing(seed, LONG_MS, async |forwarder| match wish {
            Wish::Resume => forwarder.resume().await,
            Wish::TakeUp(intent) => forwarder.take_up(intent).await.map(|intent| vec![intent]),
            Wish::Leave(intent, why) => forwarder.leave(intent, why).await.map(|intent| vec![intent]),
        });
        done.await
    }

    fn cycle_of(&self, at: usize) -> CycleId {
        CycleId::new(self.book.intents()[at].cycle_there.clone().unwrap())
    }

    fn states(&self) -> Vec<IntentState> {
        self.book.intents().iter().map(|intent| intent.state).collect()
    }
}

/// A push of another round.
fn of_round(round: u128, count: usize) -> Load {
    let mut load = load(&format!("run:{round}"), Some(1), names(count));
    load.wanted.id = WriteId(round);
    load
}

fn attempt(ordinal: Option<u64>, verdicts: &[Status]) -> Load {
    let outcomes = verdicts.iter().enumerate().map(|(n, status)| outcome(&format!("case{n}"), *status));
    load("run:7", ordinal, outcomes.collect())
}

#[tokio::test]
async fn a_container_of_an_older_content_is_found_whole_or_given_up() {
    for ordinals in [[Some(1), Some(2)], [Some(1), Some(1)], [None, None]] {
        for (fault, containers, flags) in
            [(Fault::AnswerLost, 2, &[][..]), (Fault::Part, 1, &[Flag::Stale]), (Fault::RequestLost, 1, &[Flag::Stale])]
        {
            let site = Site::new(Strategy::Container, true);
            site.cut(attempt(ordinals[0], &[Failed, Failed]), &[Fault::None, fault]).await;
            let done = site.forward(attempt(ordinals[1], &[Passed, Passed])).await.unwrap();
            assert!(done.is_settled() && done.all_flags().is_empty(), "{done:?}");
            assert_eq!(site.states(), [IntentState::Found, IntentState::Acked], "{fault:?}");
            assert_eq!(site.book.flags(), flags, "{fault:?}");
            let (complete, rows) = site.product.published();
            assert_eq!((complete, rows.len()), (containers, 2 * containers), "{fault:?}");
            assert_eq!(sweep(&site.world, &site.product, &site.book).await, flags, "what was given up is not missed");
        }
    }
}

#[tokio::test]
async fn a_container_that_holds_more_than_ran_again_or_is_newer_is_filled_first() {
    for (first, then, flags) in [
        (attempt(Some(1), &[Failed, Failed, Passed]), attempt(Some(2), &[Passed]), &[][..]),
        (attempt(Some(2), &[Passed]), attempt(Some(1), &[Failed]), &[Flag::Stale]),
    ] {
        let site = Site::new(Strategy::Container, true);
        let count = first.outcomes.len();
        site.cut(first, &[Fault::None, Fault::RequestLost]).await;
        let done = site.forward(then).await.unwrap();
        assert!(done.is_settled(), "{done:?}");
        let first = site.book.intents().remove(0);
        assert_eq!((first.state, first.flags.len()), (IntentState::Acked, 0), "{first:?}");
        assert_eq!(done.all_flags(), flags);
        assert_eq!(site.product.published().1.len(), if flags.is_empty() { count + 1 } else { count });
    }
}

#[tokio::test]
async fn containers_end_without_their_push() {
    for (faults, containers) in [
        (&[Fault::None, Fault::AnswerLost][..], 1),
        (&[Fault::None, Fault::Part], 2),
        (&[Fault::None, Fault::RequestLost], 2),
        (&[Fault::RequestLost], 1),
        // Another process may be filling it.
        (&[Fault::AnswerLost], 2),
    ] {
        let site = Site::new(Strategy::Container, true);
        site.cut(of_round(7, 3), faults).await;
        site.alone(Wish::Resume).await.unwrap();
        assert!(site.states()[0].is_settled() && site.book.flags().is_empty(), "{faults:?}: {:?}", site.book.intents());
        each_once(&site.product.published().1, 3);
        assert_eq!(site.product.cycles(), containers, "{faults:?}");
    }
}

#[tokio::test]
async fn a_container_that_a_person_takes_up_again_goes_on() {
    let site = Site::new(Strategy::Container, true);
    site.cut(of_round(7, 3), &[Fault::None, Fault::AnswerLost]).await;
    // Whole, and it can't be ended: nobody else begins another one beside it.
    *site.product.refuses_cycles.lock().unwrap() = true;
    site.alone(Wish::Resume).await.unwrap();
    let parked = site.book.intents().remove(0);
    assert_eq!(parked.state, IntentState::Parked);
    assert!(parked.cause.as_deref().unwrap().contains("the project is closed"), "{parked:?}");
    *site.product.refuses_cycles.lock().unwrap() = false;
    site.alone(Wish::TakeUp(parked)).await.unwrap();
    site.alone(Wish::Resume).await.unwrap();
    assert_eq!((site.states(), site.product.cycles()), (vec![IntentState::Found], 1));
    each_once(&site.product.published().1, 3);
}

#[tokio::test]
async fn an_older_content_that_is_taken_up_again_comes_not_after_a_newer_one() {
    for ordinals in [[Some(1), Some(2)], [None, None]] {
        let site = Site::new(Strategy::Container, true);
        site.cut(attempt(ordinals[0], &[Failed, Failed]), &[Fault::None, Fault::Part]).await;
        site.alone(Wish::Leave(site.book.intents().remove(0), "later")).await.unwrap();
        site.forward(attempt(ordinals[1], &[Passed, Passed])).await.unwrap();
        site.alone(Wish::TakeUp(site.book.intents().remove(0))).await.unwrap();
        site.alone(Wish::Resume).await.unwrap();
        let older = site.book.intents().remove(0);
        assert_eq!((older.state, site.book.flags()), (IntentState::Found, vec![Flag::Stale]), "{older:?}");
        let (complete, rows) = site.product.published();
        assert_eq!((complete, rows.len(), site.product.cycles()), (1, 2, 2), "{ordinals:?}");
    }
}

#[tokio::test]
async fn a_container_that_was_never_begun_waits_until_the_product_takes_one() {
    let site = Site::new(Strategy::Container, true);
    *site.product.refuses_cycles.lock().unwrap() = true;
    let refused = site.forward(of_round(7, 3)).await;
    assert!(matches!(refused, Err(Halt::Refused(_))), "{refused:?}");
    let refused = site.alone(Wish::Resume).await;
    assert!(matches!(refused, Err(Halt::Refused(_))), "{refused:?}");
    assert!(!site.states()[0].is_settled(), "no person has to look: nothing is there");
    *site.product.refuses_cycles.lock().unwrap() = false;
    site.alone(Wish::Resume).await.unwrap();
    each_once(&site.product.published().1, 3);
}

#[tokio::test]
async fn a_cycle_that_is_not_answered_keeps_back_its_own_pushes_alone() {
    for sole in [true, false] {
        let site = Site::new(Strategy::Reconcile, sole);
        site.cut(of_round(7, 3), &[Fault::None, Fault::AnswerLost]).await;
        site.product.mute_cycles.lock().unwrap().insert(site.cycle_of(0));
        let begun_ms = site.world.now();
        for round in 8..12 {
            let done = site.forward(of_round(round, 2)).await.unwrap();
            assert!(done.is_settled() && done.all_flags().is_empty(), "{done:?}");
        }
        let took_ms = site.world.now() - begun_ms;
        assert!(took_ms < if sole { 5000 } else { 3 * LONG_MS }, "{took_ms} ms");
        assert!(!site.states()[0].is_settled());
        // The same push, and another one of the same cycle, wait for it.
        let mut beside = of_round(7, 1);
        beside.key = domain::PushKey::parse("run:7:job:b").unwrap();
        for push in [of_round(7, 3), beside] {
            let waits = site.forward(push).await;
            assert!(matches!(&waits, Err(Halt::Over(why)) if why.contains("goes first")), "{waits:?}");
        }
        site.product.mute_cycles.lock().unwrap().clear();
        site.alone(Wish::Resume).await.unwrap();
        assert!(site.states().iter().all(|state| state.is_settled()));
        assert_eq!(site.product.recorded().len(), 3 + 4 * 2);
    }
}

#[tokio::test]
async fn what_is_not_answered_or_not_readable_takes_nobody_elses_time() {
    for seed in 0..6 {
        for strategy in [Strategy::Reconcile, Strategy::Container] {
            let site = Site::seeded(seed, strategy, true);
            for round in 7..11 {
                site.cut(of_round(round, 2), &[Fault::None, Fault::AnswerLost]).await;
            }
            site.book.spoil_first();
            site.product.mute_cycles.lock().unwrap().insert(site.cycle_of(2));
            let missed = site.alone(Wish::Resume).await;
            assert!(matches!(missed, Err(Halt::Over(_) | Halt::Book(BookError::Broken(_)))), "{missed:?}");
            let open: Vec<bool> = site.states().iter().map(|state| !state.is_settled()).collect();
            assert_eq!(open, [true, false, true, false], "{strategy}, {seed}");
        }
    }
}

#[tokio::test]
async fn a_person_leaves_what_nothing_goes_on_with() {
    let site = Site::new(Strategy::Reconcile, false);
    site.cut(of_round(7, 3), &[Fault::None, Fault::AnswerLost]).await;
    site.book.spoil_first();
    let open = site.book.intents().remove(0);
    assert!(open.is_in_doubt() && !open.state.is_settled());
    site.alone(Wish::Leave(open, "seen by hand")).await.unwrap();
    let left = site.book.intents().remove(0);
    assert_eq!((left.state, left.is_in_doubt()), (IntentState::Parked, false));
    assert_eq!(left.cause.as_deref(), Some("seen by hand"));
    assert_eq!(site.alone(Wish::Resume).await, Ok(vec![]), "nothing is left to do");
}

#[tokio::test]
async fn nothing_is_made_or_ended_once_somebody_else_may_have_the_turn() {
    for strategy in [Strategy::Reconcile, Strategy::Container] {
        let site = Site::new(strategy, true);
        site.book.is_over.store(true, Ordering::SeqCst);
        let fenced = site.forward(of_round(7, 3)).await;
        assert_eq!(fenced, Err(Halt::Book(BookError::Fenced)));
        let cases = site.product.asked_for_cases.lock().unwrap().len();
        assert_eq!((site.product.cycles(), cases), (0, 0), "a case or a cycle may have been made");
    }
    // A container is whole, and to be ended.
    let site = Site::new(Strategy::Container, true);
    site.cut(of_round(7, 3), &[Fault::None, Fault::AnswerLost]).await;
    site.book.is_over.store(true, Ordering::SeqCst);
    assert_eq!(site.alone(Wish::Resume).await, Err(Halt::Book(BookError::Fenced)));
    assert_eq!(site.product.published().0, 0);
}
