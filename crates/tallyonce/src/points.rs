//! Only in binaries built with `failpoints`: what happens at named points of the program, by variables, so that proof can
//! enumerate faults. A process can die there as an evicted runner or a power cut would have it, be held, or meet an error.
//! Must not be in a release.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use domain::ci::Env;
use domain::mutants::{Mutant, switch_on};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use server::ForwardTerms;

use crate::env::{FAIL_AT, FORWARD_PACE, HOLD_AT, KILL_AT, MUTANT, TRACE_AT};
use crate::failure::Failure;

/// How often a held process looks whether it may go on.
const HELD: Duration = Duration::from_millis(5);

/// A point and the hit that counts, from 1: `NAME` or `NAME@NTH` (`k4:3` too).
struct Hit<'a> {
    point: &'a str,
    nth: u32,
}

impl<'a> Hit<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let numbered = text.split_once('@').or_else(|| text.split_once(':').filter(|_| text.starts_with('k')));
        let (point, nth) = numbered.unwrap_or((text, "1"));
        let nth = nth.parse().map_err(|_| "the number cannot be read".to_owned())?;
        Ok(Self { point, nth })
    }

    fn on(&self, act: impl Fn() + Send + Sync + 'static) -> Result<(), String> {
        let (hits, nth) = (AtomicU32::new(0), self.nth);
        fail::cfg_callback(self.point, move || {
            if hits.fetch_add(1, Ordering::SeqCst) + 1 == nth {
                act();
            }
        })
    }
}

/// Arms what the variables name:
/// `TALLYONCE_KILL_AT=POINT[@NTH]` dies there; `TALLYONCE_HOLD_AT=POINT[@NTH]=FILE` makes the file and waits there until
/// it is gone; `TALLYONCE_FAIL_AT=POINT[@NTH]` meets an error there, where the point knows one;
/// `TALLYONCE_TRACE_AT=FILE=POINT,POINT,…` writes a line for each hit; `TALLYONCE_MUTANT=m17` is built wrongly on purpose.
///
/// # Errors
/// A variable holds something else.
pub(crate) fn arm(env: &Env) -> Result<(), Failure> {
    for (variable, arm) in [
        (KILL_AT, kill_at as fn(&str) -> Result<(), String>),
        (HOLD_AT, hold_at),
        (FAIL_AT, fail_at),
        (TRACE_AT, trace_at),
        (MUTANT, mutate),
    ] {
        let Some(text) = env.get(variable).filter(|text| !text.is_empty()) else { continue };
        arm(text).map_err(|why| Failure::usage(format!("{variable}={text}: {why}"), "See the head of points.rs."))?;
    }
    Ok(())
}

/// The terms of a server that forwards, divided by `TALLYONCE_FORWARD_PACE`: proof waits for many leases to run out.
///
/// # Errors
/// The variable is no number from 1.
pub(crate) fn forward_terms(env: &Env) -> Result<ForwardTerms, Failure> {
    let usual = ForwardTerms::default();
    let Some(text) = env.get(FORWARD_PACE).filter(|text| !text.is_empty()) else { return Ok(usual) };
    let pace: u64 = text.parse().ok().filter(|pace| *pace > 0).ok_or_else(|| {
        Failure::usage(format!("{FORWARD_PACE}={text} is no number from 1"), "See the head of points.rs.")
    })?;
    Ok(ForwardTerms {
        lease_ms: usual.lease_ms / pace,
        renew_ms: usual.renew_ms / pace,
        look_ms: usual.look_ms / pace,
        patience_ms: usual.patience_ms,
        first_backoff_ms: usual.first_backoff_ms / pace,
        backoff_max_ms: usual.backoff_max_ms / pace,
        outcomes_max: usual.outcomes_max,
    })
}

fn kill_at(text: &str) -> Result<(), String> {
    Hit::parse(text)?.on(|| {
        // It cannot fail for our own process, and nothing runs after it.
        let _ = kill(Pid::this(), Signal::SIGKILL);
        std::thread::park();
    })
}

fn hold_at(text: &str) -> Result<(), String> {
    let (hit, file) = text.split_once('=').ok_or("it names no file")?;
    let file = PathBuf::from(file);
    Hit::parse(hit)?.on(move || {
        if std::fs::write(&file, b"").is_ok() {
            while file.exists() {
                std::thread::sleep(HELD);
            }
        }
    })
}

fn fail_at(text: &str) -> Result<(), String> {
    let hit = Hit::parse(text)?;
    let before = if hit.nth > 1 { format!("{}*off->", hit.nth - 1) } else { String::new() };
    fail::cfg(hit.point, &format!("{before}1*return->off"))
}

fn trace_at(text: &str) -> Result<(), String> {
    let (file, points) = text.split_once('=').ok_or("it names no points")?;
    let file = OpenOptions::new().create(true).append(true).open(file).map_err(|e| e.to_string())?;
    let file = std::sync::Arc::new(Mutex::new(file));
    for point in points.split(',') {
        let (file, name) = (std::sync::Arc::clone(&file), point.to_owned());
        fail::cfg_callback(point, move || {
            if let Ok(mut file) = file.lock() {
                // A trace that cannot be written is short, and whoever reads it fails on that.
                let _ = writeln!(file, "{name}");
            }
        })?;
    }
    Ok(())
}

fn mutate(text: &str) -> Result<(), String> {
    switch_on(Some(Mutant::parse(text).ok_or("there is no such mutant")?));
    Ok(())
}
