//! Logs of `serve`: what is logged and in which form. Must not log secrets, and never writes to standard output.

use domain::ci::Env;
use tracing_subscriber::EnvFilter;

use crate::env::LOG;
use crate::failure::Failure;

/// Starts logging to standard error.
///
/// # Errors
/// The filter cannot be read.
pub(crate) fn start(env: &Env, verbose: u8, json: bool) -> Result<(), Failure> {
    let by_flag = match verbose {
        0 => "info",
        1 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_new(env.get(LOG).unwrap_or(by_flag)).map_err(|error| {
        Failure::usage(format!("variable {LOG}: {error}"), "Give a level such as info or debug, or crate=level pairs.")
    })?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Somebody who started logging before us keeps doing so.
    let _ = if json { logs.json().try_init() } else { logs.with_ansi(false).try_init() };
    Ok(())
}
