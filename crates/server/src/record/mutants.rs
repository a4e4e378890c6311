//! What the door does wrongly under a mutant (`domain::mutants`). Called only behind a switch that is `false`, at compile
//! time, in every build but that for proving.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::{Problem, Push, PushId, PushKey};
use store::{Now, Recorded, Store, StoreError};

/// Failures kept as the answer to a key, for each store.
static KEPT: Mutex<BTreeMap<(usize, PushId), Box<Problem>>> = Mutex::new(BTreeMap::new());

fn name(store: &Arc<dyn Store>, push: PushId) -> (usize, PushId) {
    (Arc::as_ptr(store).cast::<()>() as usize, push)
}

/// The failure that was kept as the answer to this key.
pub(super) fn kept(store: &Arc<dyn Store>, push: PushId) -> Option<Box<Problem>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).get(&name(store, push)).cloned()
}

/// Keeps a failure as the answer to a key.
pub(super) fn keep(store: &Arc<dyn Store>, push: PushId, problem: Box<Problem>) {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(name(store, push), problem);
}

/// Runs a delivery, and once more as another one if nobody knows whether it was committed.
pub(super) async fn twice(store: &Arc<dyn Store>, push: &Arc<Push>, now: &Now) -> Result<Recorded, StoreError> {
    let first = store.record(Arc::clone(push), now.clone()).await;
    let key = PushKey::parse(&format!("{}~", push.key));
    match (first, key) {
        (Err(StoreError::PossiblyWritten { .. }), Ok(key)) => {
            let again = Push { key, ..(**push).clone() };
            store.record(Arc::new(again), now.clone()).await
        }
        (first, _) => first,
    }
}
