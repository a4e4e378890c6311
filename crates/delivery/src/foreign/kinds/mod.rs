//! The adapters, one module a product. Each holds what that product's calls look like, and nothing of any strategy.

mod allure;
mod azure;
mod caseless;
mod jira;
mod kiwi;
mod nitrate;
mod qase;
mod reportportal;
mod tcms;
mod testlink;
mod testmo;
mod testrail;
mod times;
mod xmlrpc;
mod xray_cloud;
mod xray_server;
mod zephyr_cloud;
mod zephyr_server;

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
        Kind::Kiwi => Some(&kiwi::FACTS),
        Kind::Nitrate => Some(&nitrate::FACTS),
        Kind::Testlink => Some(&testlink::FACTS),
        Kind::Testrail => Some(&testrail::FACTS),
        Kind::Qase => Some(&qase::FACTS),
        Kind::Testmo => Some(&testmo::FACTS),
        Kind::Reportportal => Some(&reportportal::FACTS),
        Kind::Azure => Some(&azure::FACTS),
        Kind::Allure => Some(&allure::FACTS),
        Kind::XrayCloud => Some(&xray_cloud::FACTS),
        Kind::XrayServer => Some(&xray_server::FACTS),
        Kind::ZephyrCloud => Some(&zephyr_cloud::FACTS),
        Kind::ZephyrServer => Some(&zephyr_server::FACTS),
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
        Kind::Kiwi => Ok(Arc::new(kiwi::open(settings, caller)?)),
        Kind::Nitrate => Ok(Arc::new(nitrate::open(settings, caller)?)),
        Kind::Testlink => Ok(Arc::new(testlink::open(settings, caller)?)),
        Kind::Testrail => Ok(Arc::new(testrail::open(settings, caller, clock)?)),
        Kind::Qase => Ok(Arc::new(qase::open(settings, caller)?)),
        Kind::Testmo => Ok(Arc::new(testmo::open(settings, caller)?)),
        Kind::Reportportal => Ok(Arc::new(reportportal::open(settings, caller, clock)?)),
        Kind::Azure => Ok(Arc::new(azure::open(settings, caller, clock)?)),
        Kind::Allure => Ok(Arc::new(allure::open(settings, caller)?)),
        Kind::XrayCloud => Ok(Arc::new(xray_cloud::open(settings, caller)?)),
        Kind::XrayServer => Ok(Arc::new(xray_server::open(settings, caller)?)),
        Kind::ZephyrCloud => Ok(Arc::new(zephyr_cloud::open(settings, caller)?)),
        Kind::ZephyrServer => Ok(Arc::new(zephyr_server::open(settings, caller)?)),
        kind => {
            drop(caller);
            Err(OpenError::NoAdapter(kind))
        }
    }
}
