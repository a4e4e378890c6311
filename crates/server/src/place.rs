//! Whether the ledger of a target stands for the place that the target is at now. Must not know products.

use delivery::foreign::{BookError, TargetName, Turn};
use domain::forwarding::TargetPlace;
use store::{Bound, Places};

use crate::ledger::broken;

/// Makes the ledger stand for this place if it stands for none yet; refuses if it stands for another one.
pub(crate) async fn bind(
    store: &(impl Places + ?Sized),
    target: &TargetName,
    turn: Turn,
    now: &TargetPlace,
) -> Result<(), BookError> {
    // Nearly always it does: then nothing is written.
    if store.place(target.as_str()).await.map_err(|error| broken(&error))?.as_ref() == Some(now) {
        return Ok(());
    }
    match store.bind_place(target.as_str(), turn.0, now.clone()).await.map_err(|error| broken(&error))? {
        Bound::Here => Ok(()),
        Bound::Elsewhere(known) => Err(BookError::OtherPlace { known, now: now.clone() }),
        Bound::Fenced => Err(BookError::Fenced),
    }
}
