//! Only in binaries built with `failpoints`: dies at a named point, as an evicted runner or a power cut would have it.
//! Must not be in a release.

use std::sync::atomic::{AtomicU32, Ordering};

use domain::ci::Env;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::env::KILL_AT;
use crate::failure::Failure;

/// Arms the point that the variable names: `k4` dies at the first hit, `k4:3` at the third.
///
/// # Errors
/// The variable holds something else.
pub(crate) fn arm(env: &Env) -> Result<(), Failure> {
    let Some(text) = env.get(KILL_AT) else { return Ok(()) };
    let (point, nth) = text.split_once(':').unwrap_or((text, "1"));
    let bad = |why: String| Failure::usage(format!("{KILL_AT}={text}: {why}"), "Give POINT or POINT:NTH.");
    let nth: u32 = nth.parse().map_err(|_| bad("the number cannot be read".to_owned()))?;
    let hits = AtomicU32::new(0);
    fail::cfg_callback(point, move || {
        if hits.fetch_add(1, Ordering::SeqCst) + 1 == nth {
            // It cannot fail for our own process, and nothing runs after it.
            let _ = kill(Pid::this(), Signal::SIGKILL);
            std::thread::park();
        }
    })
    .map_err(bad)
}
