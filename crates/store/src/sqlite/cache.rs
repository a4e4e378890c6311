//! What was counted before, by the exact state it was counted in; a changed state is another key. Never answers for a
//! push key. Must not know how anything is counted.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use super::resolve::Totals;
use super::unseen::Unseen;

/// States remembered of each kind; more of them start anew.
const STATES_MAX: usize = 4096;
/// Lists of items not seen since are larger.
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
        if map.len() >= self.max {
            map.clear();
        }
        map.insert(key, value);
    }
}

/// A round's id and version.
pub(super) type RoundState = (i64, i64);

/// Everything that is remembered.
pub(super) struct Caches {
    /// Of these rounds together.
    pub(super) totals: Cache<Vec<RoundState>, Totals>,
    /// Of a cycle's rounds: state, and place in the order that the headline gives them.
    pub(super) unseen: Cache<Vec<(RoundState, bool)>, Arc<Vec<Unseen>>>,
}

impl Caches {
    pub(super) fn new() -> Self {
        Self { totals: Cache::new(STATES_MAX), unseen: Cache::new(LISTS_MAX) }
    }
}
