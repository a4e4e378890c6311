//! The `Places` trait: which place elsewhere a target's ledger stands for. A ledger's ids mean nothing in another instance of
//! the product, so whoever forwards asks first. Must not know repositories: it compares texts.

use async_trait::async_trait;
use domain::forwarding::TargetPlace;

use crate::StoreError;

/// Whether a target's ledger stands for a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// It does: now, or since an earlier turn.
    Here,
    /// It stands for another one, and nothing is kept.
    Elsewhere(TargetPlace),
    /// Another turn is the highest of the target: nothing is kept.
    Fenced,
}

/// Keeps which place each target's ledger stands for.
///
/// # Errors
/// Every method: [`StoreError::NotWritten`], [`StoreError::PossiblyWritten`], [`StoreError::Broken`]. A write whose outcome
/// is unknown may be tried again.
#[async_trait]
pub trait Places: Send + Sync + 'static {
    /// The place that the target's ledger stands for; `None` before its first turn.
    async fn place(&self, target: &str) -> Result<Option<TargetPlace>, StoreError>;

    /// Makes the target's ledger stand for this place if it stands for none yet.
    async fn bind_place(&self, target: &str, turn: u64, place: TargetPlace) -> Result<Bound, StoreError>;

    /// Makes it stand for this place, whatever it stood for. False, and nothing changes, if `turn` is not the target's
    /// highest.
    async fn move_place(&self, target: &str, turn: u64, place: TargetPlace) -> Result<bool, StoreError>;
}
