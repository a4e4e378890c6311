//! Short hands for what waits, and for who works at target `there`.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::forwarding::ForwardRule;
use domain::intent::{Flag, RefusedItem};
use domain::{ProjectId, PushId};

use super::{AT_MS, intent};
use crate::{End, Ended, Store, Waiting, WaitingQuery};

/// A rule for a target: of these projects, into these cycles.
pub fn rule(target: &str, projects: &[&str], cycles: &[&str]) -> ForwardRule {
    ForwardRule {
        target: target.to_owned(),
        projects: projects.iter().map(|name| ProjectId::parse(name).expect("a project")).collect(),
        cycles: cycles.iter().map(|cycle| cycle.parse().expect("a pattern")).collect(),
    }
}

/// Everything goes to target `there`.
pub fn to_there(store: &Arc<dyn Store>) {
    store.set_forward_rules(vec![rule("there", &[], &[])]);
}

/// Takes target `there` for a minute.
pub async fn lease(store: &Arc<dyn Store>, holder: &str, now_ms: u64) -> Option<u64> {
    store.take_lease("there", holder, now_ms, now_ms + 60_000).await.expect("works")
}

pub async fn rows(store: &Arc<dyn Store>, query: WaitingQuery) -> Vec<Waiting> {
    store.waiting(query).await.expect("works")
}

/// Everything that waits.
pub async fn open(store: &Arc<dyn Store>) -> Vec<Waiting> {
    rows(store, WaitingQuery::default()).await
}

/// Everything that waits or has waited.
pub async fn all(store: &Arc<dyn Store>) -> Vec<Waiting> {
    rows(store, WaitingQuery { ended: true, ..WaitingQuery::default() }).await
}

/// Target, key and revision of each.
pub fn short(rows: &[Waiting]) -> Vec<String> {
    rows.iter().map(|row| format!("{} {} {}", row.target, row.key, row.revision)).collect()
}

/// How each of a push ended, if it did.
pub async fn ends(store: &Arc<dyn Store>, push: PushId) -> Vec<Option<End>> {
    let of_push = WaitingQuery { push: Some(push), ended: true, ..WaitingQuery::default() };
    rows(store, of_push).await.into_iter().map(|row| row.ended.map(|ended| ended.end)).collect()
}

pub async fn next(store: &Arc<dyn Store>, now_ms: u64) -> Option<Waiting> {
    store.next_waiting("there", now_ms).await.expect("works")
}

/// Forwarded as of this revision.
pub fn forwarded(revision: u32) -> Ended {
    Ended {
        end: End::Forwarded,
        at_ms: AT_MS + 77,
        revision,
        cycle_there: Some("Zyklus \"ü\"".to_owned()),
        flags: BTreeSet::from([Flag::CycleDoubled]),
        refused: vec![RefusedItem::new("suite › a", "no case \\ there")],
        intents: (0..revision).map(|number| intent(number).id).collect(),
    }
}
