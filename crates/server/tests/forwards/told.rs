//! What is told of a push at a target: of what is to be there now, and of what nobody has looked at yet.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::intent::{Flag, Intent, IntentState as S, RefusedItem};
use domain::listing::ForwardReport;
use server::{ForwardsQuery, Kinds, forwards_of_push, listed_forwards};
use store::conformance::build::forwards::{forwarded, next, to_there};
use store::conformance::build::{AT_MS, intent, push, shop};
use store::{Ended, Store};

use crate::site::memory;

/// Part `number` of push `k`, planned as it says.
fn part(number: u32, state: S, flags: &[Flag]) -> Intent {
    Intent { state, flags: flags.iter().copied().collect(), planned_ms: AT_MS + u64::from(number), ..intent(number) }
}

fn refusing(intent: Intent, item: &str) -> Intent {
    Intent { refused: vec![RefusedItem::new(item, "a field is missing")], ..intent }
}

async fn plan(store: &Arc<dyn Store>, intents: Vec<Intent>) -> u64 {
    let turn = store.next_turn("there").await.unwrap();
    store.plan_intents("there", turn, intents).await.unwrap().unwrap();
    turn
}

/// Records an attempt of push `k`, plans these for it, and ends it as what these became.
async fn forward(store: &Arc<dyn Store>, attempt: u64, intents: Vec<Intent>) {
    push(["a-", "a+", "a!"][attempt as usize % 3]).attempt(attempt).accepted(store).await;
    let ids = intents.iter().map(|intent| intent.id).collect();
    let at_ms = intents.iter().map(|intent| intent.planned_ms).max().unwrap_or(AT_MS);
    let turn = plan(store, intents).await;
    let row = next(store, AT_MS).await.unwrap();
    let (cycle_there, flags, refused) = (Some("7".to_owned()), BTreeSet::new(), Vec::new());
    let ended = Ended { cycle_there, flags, refused, intents: ids, at_ms, ..forwarded(attempt as u32) };
    assert!(store.end_waiting(turn, &row, ended).await.unwrap());
}

async fn told(store: &Arc<dyn Store>) -> ForwardReport {
    let known = forwards_of_push(&**store, &shop(), push("").id(), &Kinds::new()).await.unwrap().unwrap();
    known.forwards.into_iter().next().unwrap()
}

fn refused(of: &ForwardReport) -> Vec<&str> {
    of.refused.iter().map(|refused| refused.item.as_str()).collect()
}

#[tokio::test]
async fn what_was_refused_of_an_older_attempt_is_not_said_of_the_newest() {
    let store = memory();
    to_there(&store);
    forward(&store, 1, vec![refusing(part(0, S::Rejected, &[]), "C7"), part(1, S::Acked, &[])]).await;
    let first = told(&store).await;
    assert_eq!((first.state, refused(&first)), (S::Rejected, vec!["C7"]));
    // Nothing of the second part has changed: the new attempt finds it again.
    forward(&store, 2, vec![part(1, S::Acked, &[]), part(2, S::Acked, &[Flag::RowsAmbiguous])]).await;
    let second = told(&store).await;
    assert_eq!((second.state, refused(&second), second.is_wrong()), (S::Acked, vec![], false), "{second:?}");
    assert_eq!((second.flags, second.revision), (vec![Flag::RowsAmbiguous], 2));
    // Nor is it while a third one waits, of which something is refused.
    push("a-").attempt(3).accepted(&store).await;
    plan(&store, vec![refusing(part(3, S::Rejected, &[]), "C9")]).await;
    let third = told(&store).await;
    assert_eq!((third.state, refused(&third), third.revision), (S::Planned, vec!["C9"], 3));
}

#[tokio::test]
async fn what_is_open_or_in_doubt_of_an_older_attempt_is_said_of_the_newest() {
    for (older, state, flags) in [
        (part(0, S::Unknown, &[]), S::Unknown, vec![]),
        (part(0, S::Parked, &[]), S::Parked, vec![]),
        (part(0, S::Found, &[Flag::DuplicateDetected]), S::Found, vec![Flag::DuplicateDetected]),
    ] {
        let store = memory();
        to_there(&store);
        forward(&store, 1, vec![refusing(older, "C7")]).await;
        forward(&store, 2, vec![part(1, S::Acked, &[])]).await;
        let told = told(&store).await;
        assert_eq!((told.state, &told.flags, refused(&told)), (state, &flags, vec![]), "{told:?}");
        assert!(told.is_wrong(), "{told:?}");
    }
}

#[tokio::test]
async fn what_a_person_has_looked_at_asks_for_no_look() {
    let (parked, given_up) = (part(0, S::Parked, &[Flag::Vanished]), &[Flag::GivenUp, Flag::Vanished]);
    for (intents, state, flags, wrong) in [
        (vec![parked], S::Parked, vec![Flag::Vanished], true),
        (vec![part(0, S::Parked, given_up)], S::Parked, vec![Flag::GivenUp], false),
        (vec![part(0, S::Parked, given_up), part(1, S::Acked, &[])], S::Acked, vec![Flag::GivenUp], false),
        (vec![part(0, S::Acked, given_up)], S::Acked, vec![Flag::GivenUp], false),
        // Another part still asks.
        (vec![part(0, S::Parked, given_up), part(1, S::Parked, &[])], S::Parked, vec![], true),
        (
            vec![part(0, S::Parked, given_up), part(1, S::Acked, &[Flag::Partial])],
            S::Acked,
            vec![Flag::Partial, Flag::GivenUp],
            true,
        ),
    ] {
        let store = memory();
        to_there(&store);
        forward(&store, 1, intents.clone()).await;
        let told = told(&store).await;
        assert_eq!((told.state, &told.flags, told.is_wrong()), (state, &flags, wrong), "{intents:?}");
    }
}

#[tokio::test]
async fn no_limit_hides_what_is_in_doubt() {
    let store = memory();
    to_there(&store);
    push("a+").accepted(&store).await;
    push("b+").key("other").accepted(&store).await;
    let mut intents: Vec<Intent> = (0..4).map(|number| part(number, S::Acked, &[])).collect();
    intents.extend([
        part(4, S::Planned, &[]),
        part(5, S::Parked, &[Flag::GivenUp, Flag::Orphan]),
        part(6, S::Unknown, &[]),
        part(7, S::Acked, &[Flag::DuplicateDetected]),
    ]);
    plan(&store, intents).await;
    let listed = async |limit, state| {
        let query = ForwardsQuery { limit: Some(limit), state, ..ForwardsQuery::default() };
        listed_forwards(&*store, &query).await.unwrap()
    };
    let numbers = |limit, state| {
        let listed = &listed;
        async move {
            let listed = listed(limit, state).await;
            let number = |one: &domain::listing::IntentReport| one.id.map(|_| one.number);
            (listed.forwards.iter().map(number).collect::<Vec<_>>(), listed.more)
        }
    };
    let in_order = [Some(6), Some(7), None, None, Some(4), Some(0), Some(1), Some(2), Some(3), Some(5)];
    for limit in 1..12 {
        let (found, more) = numbers(limit, None).await;
        assert_eq!((found.as_slice(), more), (&in_order[..limit.min(10)], limit < 10), "{limit}");
    }
    assert_eq!(numbers(1, Some(S::Acked)).await, (vec![Some(7)], true));
    assert_eq!(numbers(9, Some(S::Planned)).await, (vec![None, None, Some(4)], false));
    assert_eq!(numbers(9, Some(S::Found)).await, (vec![], false));
    let all = listed(20, None).await;
    assert_eq!(all.states[&S::Planned], 3);
    assert_eq!(all.flags, [(Flag::DuplicateDetected, 1), (Flag::GivenUp, 1)].into());
}
