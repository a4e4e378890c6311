//! Rounds that are dropped whole.

use domain::protocol::Refusal;

use super::Make;
use super::build::{cycle, main_cycle, push, shop, sound, words};
use crate::Absent;

pub async fn a_dropped_round_leaves_tombstones(make: Make<'_>) {
    let store = make();
    let gone = push("a+ b-").run("1").keyed();
    gone.accepted(&store).await;
    push("c+").run("1").job("e2e").keyed().accepted(&store).await;
    let dropped = store.drop_round(&shop(), &main_cycle(), "1").await.expect("works");
    assert_eq!(dropped, Ok(2));
    assert_eq!(gone.refused(&store).await, Refusal::Tombstoned);
    assert_eq!(store.push(&shop(), gone.id()).await.expect("works").err(), Some(Absent::Push));
    let cycles = store.cycles(&shop()).await.expect("works").expect("the project stays");
    assert!(cycles.is_empty());
    sound(&store).await;
    // Another key in a round of the same name is new work.
    push("a+").run("1").job("other").keyed().accepted(&store).await;
    assert_eq!(words(&store).await, "a+");
    sound(&store).await;
}

pub async fn what_other_rounds_share_survives(make: Make<'_>) {
    let store = make();
    push("a+ b- c*").run("1").keyed().accepted(&store).await;
    push("a+ b- c*").run("2").keyed().accepted(&store).await;
    let dropped = store.drop_round(&shop(), &main_cycle(), "run:1").await.expect("works");
    assert_eq!(dropped, Ok(1));
    assert_eq!(words(&store).await, "a+ b- c*");
    assert_eq!(cycle(&store).await.rounds.len(), 1);
    sound(&store).await;
}
