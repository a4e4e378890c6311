//! What of a push goes on: all that counts of it now, as long as that fits into memory and can be read. Must not know
//! products, nor end or put off anything.

use delivery::foreign::Unfit;
use store::{PushLoad, Store, StoreError, Waiting};

/// What is to be done with a push that waits.
pub(super) enum Taken {
    /// It goes on.
    Whole(PushLoad),
    /// It is too large.
    Unfit(Unfit),
    /// Its round was deleted.
    Dropped,
    /// The store can't read it: that says nothing of other pushes.
    Damaged(StoreError),
}

/// Takes a push up. Its size is asked for first: what is too large is never read.
///
/// # Errors
/// The store can't be used.
pub(super) async fn take(store: &dyn Store, waiting: &Waiting, outcomes_max: u64) -> Result<Taken, StoreError> {
    match taken(store, waiting, outcomes_max).await {
        Err(damage @ StoreError::Broken { .. }) => Ok(Taken::Damaged(damage)),
        taken => taken,
    }
}

async fn taken(store: &dyn Store, waiting: &Waiting, outcomes_max: u64) -> Result<Taken, StoreError> {
    let Ok(report) = store.push(&waiting.project, waiting.push).await? else { return Ok(Taken::Dropped) };
    let outcomes = report.summary.counts.total;
    if outcomes > outcomes_max {
        return Ok(Taken::Unfit(Unfit {
            project: waiting.project.clone(),
            cycle: waiting.cycle.clone(),
            round: waiting.round.clone(),
            key: waiting.key.clone(),
            revision: report.summary.revision,
            outcomes,
            why: format!(
                "more than the {outcomes_max} that are handed on of one push: it is recorded, nothing of it is there, and \
                 nobody tries again; a suite of this size goes on in several pushes (`--shard`)"
            ),
        }));
    }
    Ok(store.push_load(&waiting.project, waiting.push).await?.map_or(Taken::Dropped, Taken::Whole))
}
