//! Which place a target's ledger stands for: kept at its first turn, changed on purpose alone.

use std::sync::Arc;

use domain::forwarding::TargetPlace;

use super::Make;
use super::build::sound;
use crate::{Bound, Store};

fn at(text: &str) -> TargetPlace {
    TargetPlace::new(text)
}

async fn bind(store: &Arc<dyn Store>, target: &str, turn: u64, place: &str) -> Bound {
    store.bind_place(target, turn, at(place)).await.expect("works")
}

pub async fn a_ledger_stands_for_its_first_place_until_it_is_moved(make: Make<'_>) {
    let store = make();
    let turn = store.next_turn("there").await.expect("works");
    assert_eq!(store.place("there").await.expect("works"), None);
    assert_eq!(bind(&store, "there", turn, "https://a, \"ü\"").await, Bound::Here);
    assert_eq!(bind(&store, "there", turn, "https://a, \"ü\"").await, Bound::Here);
    let later = store.next_turn("there").await.expect("works");
    assert_eq!(bind(&store, "there", later, "https://b").await, Bound::Elsewhere(at("https://a, \"ü\"")));
    assert_eq!(store.place("there").await.expect("works"), Some(at("https://a, \"ü\"")));
    assert!(store.move_place("there", later, at("https://b")).await.expect("works"));
    assert_eq!(bind(&store, "there", later, "https://b").await, Bound::Here);
    assert_eq!(bind(&store, "there", later, "https://a, \"ü\"").await, Bound::Elsewhere(at("https://b")));
    sound(&store).await;
}

pub async fn places_of_targets_are_apart(make: Make<'_>) {
    let store = make();
    let (there, other) =
        (store.next_turn("there").await.expect("works"), store.next_turn("other").await.expect("works"));
    assert_eq!(bind(&store, "there", there, "a").await, Bound::Here);
    assert_eq!(bind(&store, "other", other, "b").await, Bound::Here);
    assert!(store.move_place("other", other, at("c")).await.expect("works"));
    assert_eq!(store.place("there").await.expect("works"), Some(at("a")));
    assert_eq!(store.place("other").await.expect("works"), Some(at("c")));
}

pub async fn an_overtaken_turn_keeps_no_place(make: Make<'_>) {
    let store = make();
    let old = store.next_turn("there").await.expect("works");
    let new = store.next_turn("there").await.expect("works");
    for fenced in [0, old, new + 1] {
        assert_eq!(bind(&store, "there", fenced, "a").await, Bound::Fenced);
        assert!(!store.move_place("there", fenced, at("a")).await.expect("works"));
    }
    assert_eq!(store.place("there").await.expect("works"), None);
    assert_eq!(bind(&store, "there", new, "a").await, Bound::Here);
    assert_eq!(bind(&store, "there", old, "a").await, Bound::Fenced);
    assert!(!store.move_place("there", old, at("b")).await.expect("works"));
    assert_eq!(store.place("there").await.expect("works"), Some(at("a")));
}
