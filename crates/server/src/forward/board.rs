//! What this process alone knows of its forwarding: products by target, that something has changed, and counters. A restart
//! begins anew: nothing of it is truth.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use domain::intent::IntentState;
use tokio::sync::watch;

use super::ForwardTarget;
use super::report::Kinds;

/// Seen by handlers, written by workers.
#[derive(Debug)]
pub(crate) struct Board {
    /// The products of its targets.
    pub(crate) kinds: Kinds,
    changes: watch::Sender<u64>,
    counted: Mutex<Counted>,
}

/// Counters since the start, by target.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counted {
    /// Steps of intents into a state.
    pub(crate) steps: BTreeMap<(String, IntentState), u64>,
    /// Tries that came to no end.
    pub(crate) put_off: BTreeMap<String, u64>,
}

impl Board {
    /// Of these targets.
    pub(crate) fn new(targets: &[ForwardTarget]) -> Self {
        let kinds = targets.iter().map(|target| (target.settings.name.to_string(), target.settings.kind)).collect();
        Self { kinds, changes: watch::Sender::new(0), counted: Mutex::default() }
    }

    /// Told whenever a push has come further at a target.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// A push has come further.
    pub(crate) fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// An intent has come into a state.
    pub(crate) fn stepped(&self, target: &str, state: IntentState) {
        self.count(|counted| *counted.steps.entry((target.to_owned(), state)).or_default() += 1);
        self.changed();
    }

    /// A try came to no end.
    pub(crate) fn put_off(&self, target: &str) {
        self.count(|counted| *counted.put_off.entry(target.to_owned()).or_default() += 1);
        self.changed();
    }

    /// The counters as they are.
    pub(crate) fn counted(&self) -> Counted {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count(&self, note: impl FnOnce(&mut Counted)) {
        note(&mut self.counted.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
