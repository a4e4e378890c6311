//! The process's environment, read once, into a value. The only place that may read it.
//! Must not interpret it: `domain::ci` and `settings` do.

use std::collections::BTreeMap;
use std::path::PathBuf;

use domain::ci::Env;

/// The variable that holds the token.
pub(crate) const TOKEN: &str = "TALLYONCE_TOKEN";
/// What `serve` logs, as a filter: `info`, `debug`, `server=trace`.
pub(crate) const LOG: &str = "TALLYONCE_LOG";
/// Where a binary built with `failpoints` kills itself: `POINT` or `POINT:NTH`.
#[cfg(feature = "failpoints")]
pub(crate) const KILL_AT: &str = "TALLYONCE_KILL_AT";

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
