//! The adapters, one module a product. Each holds what that product's calls look like, and nothing of any strategy.

mod generic;
mod testrail;

use std::sync::Arc;

use thiserror::Error;

use super::adapter::Adapter;
use super::caller::Caller;
use super::facts::{Facts, Kind};
use super::options::OptionError;
use super::settings::TargetSettings;
use crate::clock::Clock;
use crate::http::{HttpSettings, SettingsError};

/// Why a target can't be used as it is configured.
#[derive(Debug, Error)]
pub enum OpenError {
    /// A key of its own.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// Certificates, proxy, token.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A credential is missing.
    #[error("{0} is missing: give it as ${{VARIABLE}}")]
    Credential(&'static str),
    /// There is no adapter for it in this build.
    #[error("there is no adapter for {0} yet")]
    NoAdapter(Kind),
}

/// What is known of a product.
pub fn facts(kind: Kind) -> Option<&'static Facts> {
    match kind {
        Kind::Testrail => Some(&testrail::FACTS),
        Kind::Generic => Some(&generic::FACTS),
        _ => None,
    }
}

/// An adapter for a target. Connects to nothing.
///
/// # Errors
/// It can't be used as it is configured.
pub fn open(
    settings: TargetSettings,
    http: &HttpSettings,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Adapter>, OpenError> {
    let rate = facts(settings.kind).and_then(|facts| facts.rate);
    let caller = Caller::new(settings.url.clone(), http)?.paced(rate, Arc::clone(&clock));
    match settings.kind {
        Kind::Testrail => Ok(Arc::new(testrail::open(settings, caller, clock)?)),
        Kind::Generic => Ok(Arc::new(generic::open(settings, caller, clock)?)),
        kind => {
            drop(caller);
            Err(OpenError::NoAdapter(kind))
        }
    }
}
