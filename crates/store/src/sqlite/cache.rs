//! What was counted before, by the exact state it was counted in; a changed state is another key. Never answers for a
//! push key. Must not know how anything is counted.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use super::resolve::Totals;
use super::unseen::Unseen;

/// States remembered of each kind; more of them start anew.
const STATES_MAX: usize = 4096;
/// Cycles whose list of items not seen since is remembered: lists are larger, so each cycle has one, that of its latest
/// state asked for.
const LISTS_MAX: usize = 64;

/// A map that forgets everything when it is full.
pub(super) struct Cache<K, V> {
    max: usize,
    map: Mutex<HashMap<K, V>>,
}

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
    fn new(max: usize) -> Self {
        Self { max, map: Mutex::new(HashMap::new()) }
    }

    pub(super) fn get(&self, key: &K) -> Option<V> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    pub(super) fn put(&self, key: K, value: V) {
        let mut map = self.map.lock().unwrap_or_else(PoisonError::into_inner);
        if map.len() >= self.max && !map.contains_key(&key) {
            map.clear();
        }
        map.insert(key, value);
    }
}

/// A round's id and version.
pub(super) type RoundState = (i64, i64);

/// A cycle's rounds: state, and whether the headline counts it.
pub(super) type CycleState = Vec<(RoundState, bool)>;

/// Everything that is remembered.
pub(super) struct Caches {
    /// Of these rounds together.
    pub(super) totals: Cache<Vec<RoundState>, Totals>,
    /// Of a cycle, by its id, in this state.
    pub(super) unseen: Cache<i64, (Arc<CycleState>, Arc<Vec<Unseen>>)>,
}

impl Caches {
    pub(super) fn new() -> Self {
        Self { totals: Cache::new(STATES_MAX), unseen: Cache::new(LISTS_MAX) }
    }
}

#[cfg(all(test, feature = "conformance"))]
mod tests {
    use super::super::SqliteStore;
    use super::*;
    use crate::Store as _;
    use crate::conformance::build::{main_cycle, now, push, shop};

    #[tokio::test]
    async fn a_cycle_that_changes_often_is_remembered_in_one_state() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("t.db")).unwrap();
        for run in 1..=5 {
            let push = push(&format!("a+ only{run}+")).run(&run.to_string()).keyed();
            store.record(Arc::new(push.0), now()).await.unwrap();
            let unseen = store.not_seen_since(&shop(), &main_cycle()).await.unwrap().unwrap();
            assert_eq!(unseen.len(), run - 1);
        }
        assert_eq!(store.caches.unseen.map.lock().unwrap().len(), 1);
    }
}
