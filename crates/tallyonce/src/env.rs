//! The process's environment, read once, into a value. The only place that may read it.
//! Must not interpret it: `domain::ci` and `settings` do.

use std::collections::BTreeMap;
use std::path::PathBuf;

use domain::ci::Env;

/// The variable that holds the token.
pub(crate) const TOKEN: &str = "TALLYONCE_TOKEN";
/// What `serve` logs, as a filter: `info`, `debug`, `server=trace`.
pub(crate) const LOG: &str = "TALLYONCE_LOG";
/// Where a binary built with `failpoints` kills itself; see `points`.
#[cfg(feature = "failpoints")]
pub(crate) const KILL_AT: &str = "TALLYONCE_KILL_AT";
/// Where it waits.
#[cfg(feature = "failpoints")]
pub(crate) const HOLD_AT: &str = "TALLYONCE_HOLD_AT";
/// Where it meets an error.
#[cfg(feature = "failpoints")]
pub(crate) const FAIL_AT: &str = "TALLYONCE_FAIL_AT";
/// Which points it writes down as it passes them.
#[cfg(feature = "failpoints")]
pub(crate) const TRACE_AT: &str = "TALLYONCE_TRACE_AT";
/// How many times faster than usual it forwards: a lease of a minute, divided by it.
#[cfg(feature = "failpoints")]
pub(crate) const FORWARD_PACE: &str = "TALLYONCE_FORWARD_PACE";
/// Which mutant it is.
#[cfg(feature = "failpoints")]
pub(crate) const MUTANT: &str = "TALLYONCE_MUTANT";

/// What the process was started with.
#[derive(Debug)]
pub(crate) struct Surroundings {
    /// Variables; those that are no text are left out.
    pub env: Env,
    /// Our own variables that are set to nothing: they count as absent.
    pub blank: Vec<String>,
    /// The working folder.
    pub folder: PathBuf,
}

impl Surroundings {
    /// Reads them.
    ///
    /// # Errors
    /// The working folder is gone.
    pub(crate) fn read() -> std::io::Result<Self> {
        let mut all = BTreeMap::new();
        let mut blank = Vec::new();
        for (name, value) in std::env::vars_os() {
            let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) else { continue };
            if value.trim().is_empty() && name.starts_with("TALLYONCE_") {
                blank.push(name.clone());
            }
            all.insert(name, value);
        }
        Ok(Self { env: Env::from(all), blank, folder: std::env::current_dir()? })
    }
}
