//! The adapters, one module a product. Each holds what that product's calls look like, and nothing of any strategy.

mod allure;
mod azure;
mod caseless;
mod generic;
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
use super::heard::Heard;
use super::options::OptionError;
use super::settings::TargetSettings;
use crate::clock::Clock;
use crate::http::{HttpSettings, SettingsError};

pub(super) use generic::calls_digest;

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
}

/// What is known of a product.
pub fn facts(kind: Kind) -> &'static Facts {
    match kind {
        Kind::Kiwi => &kiwi::FACTS,
        Kind::Nitrate => &nitrate::FACTS,
        Kind::Testlink => &testlink::FACTS,
        Kind::Testrail => &testrail::FACTS,
        Kind::Qase => &qase::FACTS,
        Kind::Testmo => &testmo::FACTS,
        Kind::Reportportal => &reportportal::FACTS,
        Kind::Azure => &azure::FACTS,
        Kind::Allure => &allure::FACTS,
        Kind::XrayCloud => &xray_cloud::FACTS,
        Kind::XrayServer => &xray_server::FACTS,
        Kind::ZephyrCloud => &zephyr_cloud::FACTS,
        Kind::ZephyrServer => &zephyr_server::FACTS,
        Kind::Generic => &generic::FACTS,
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
    open_and_hear(settings, http, clock).map(|(adapter, _)| adapter)
}

/// The same, with what the product's answers will say of its rate limit.
///
/// # Errors
/// As [`open`].
pub fn open_and_hear(
    settings: TargetSettings,
    http: &HttpSettings,
    clock: Arc<dyn Clock>,
) -> Result<(Arc<dyn Adapter>, Arc<Heard>), OpenError> {
    let rate = facts(settings.kind).rate;
    let caller = Caller::new(settings.url.clone(), http)?.paced(rate, Arc::clone(&clock));
    let heard = caller.heard();
    Ok((of_kind(settings, caller, clock)?, heard))
}

fn of_kind(settings: TargetSettings, caller: Caller, clock: Arc<dyn Clock>) -> Result<Arc<dyn Adapter>, OpenError> {
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
        Kind::Generic => Ok(Arc::new(generic::open(settings, caller, clock)?)),
    }
}
