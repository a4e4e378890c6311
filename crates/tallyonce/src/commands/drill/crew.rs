//! All pushes of a drill, some at a time: told while the link breaks, mended when it is healed.
//! Must not judge anything.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use delivery::{Clock as _, SystemClock};
use indicatif::{ProgressBar, ProgressStyle};
use proof::proxy::Event;

use super::script::PushScript;
use super::stage::{Halt, Stage};
use super::story::{Common, Play, Played};
use crate::output::Output;

/// Pushes at a time: their clients wait most of the time.
const WORKERS: usize = 12;

/// Plays the whole script.
///
/// # Errors
/// Somebody asked to stop, or the machine fails.
pub(super) fn perform(
    stage: &Stage,
    common: &Common,
    script: &[PushScript],
    output: Output,
) -> Result<Vec<Played>, Halt> {
    let (unsettled, done) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let meter = Meter::new(output, script.len());
    let clock = SystemClock::new();
    in_parallel(stage, script.iter().collect(), |push| {
        let began_ms = clock.now_ms();
        let mut play = Play::begin(stage, common, push)?;
        play.tell()?;
        output.detail(&format!("{}: {:?}, {} ms", push.key, push.story, clock.now_ms() - began_ms));
        if play.is_settled() {
            keep(&done, play.end());
        } else {
            keep(&unsettled, play);
        }
        meter.step();
        Ok(())
    })?;
    drop(meter);
    let unsettled = unsettled.into_inner().unwrap_or_else(PoisonError::into_inner);
    output
        .note(&format!("the link is healed; {} pushes are delivered again from where they were kept", unsettled.len()));
    in_parallel(stage, unsettled, |mut play| {
        play.mend()?;
        keep(&done, play.end());
        Ok(())
    })?;
    let mut all = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.sort_by_key(|played| played.number);
    Ok(all)
}

fn keep<T>(list: &Mutex<Vec<T>>, value: T) {
    list.lock().unwrap_or_else(PoisonError::into_inner).push(value);
}

/// Does the work in order, some at a time, until it is done or one piece of it fails.
fn in_parallel<T: Send>(stage: &Stage, work: Vec<T>, act: impl Fn(T) -> Result<(), Halt> + Sync) -> Result<(), Halt> {
    let (work, failed) = (Mutex::new(work.into_iter()), Mutex::new(None));
    let next = || {
        let going = failed.lock().is_ok_and(|failed| failed.is_none()) && !stage.is_stopped();
        going.then(|| work.lock().unwrap_or_else(PoisonError::into_inner).next()).flatten()
    };
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(piece) = next() {
                    if let Err(halt) = act(piece) {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(halt);
                    }
                }
            });
        }
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(halt) => Err(halt),
        None if stage.is_stopped() => Err(Halt::Stopped),
        None => Ok(()),
    }
}

/// A bar on a terminal, a line for each quarter elsewhere.
struct Meter {
    output: Output,
    bar: Option<ProgressBar>,
    done: AtomicUsize,
    all: usize,
}

impl Meter {
    fn new(output: Output, all: usize) -> Self {
        let bar = output.progress().then(|| {
            let bar = ProgressBar::new(all as u64);
            if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} pushes  {elapsed}") {
                bar.set_style(style);
            }
            bar
        });
        Self { output, bar, done: AtomicUsize::new(0), all }
    }

    fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let quarter = |done: usize| done * 4 / self.all.max(1);
        match &self.bar {
            Some(bar) => bar.inc(1),
            None if quarter(done) > quarter(done - 1) => self.output.note(&format!("{done} of {} pushes", self.all)),
            None => {}
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// True for a try to hand a push over: the request that begins it, or a connection that was reset before one.
pub(super) fn is_delivery(event: &Event) -> bool {
    event.method.is_empty() || is_push(event)
}

fn is_push(event: &Event) -> bool {
    event.method == "POST" && event.path.split('?').next().is_some_and(|path| path.ends_with("/pushes"))
}

/// How many deliveries of a push the server may have accepted: those with an answer that the link saw, up to all that
/// reached it. A staged push is accepted by another request than the one that begins it, so nothing is said of it.
pub(super) fn accepted(events: &[Event]) -> Option<RangeInclusive<u64>> {
    if events.iter().any(|event| event.path.contains("/epochs/")) {
        return None;
    }
    let is_good = |status: Option<u16>| u64::from(status.is_some_and(|status| (200..300).contains(&status)));
    let pushes = || events.iter().filter(|event| is_push(event));
    let least = pushes().map(|event| is_good(event.upstream_status) + is_good(event.duplicate_status)).sum();
    let most = pushes().map(|event| event.fault.map_or(1, |fault| u64::from(fault.arrivals()))).sum();
    Some(least..=most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proof::proxy::Fault;

    fn event(method: &str, path: &str, fault: Option<Fault>, statuses: [Option<u16>; 2]) -> Event {
        Event {
            request_no: 1,
            method: method.to_owned(),
            path: path.to_owned(),
            key: None,
            request_bytes: 1,
            fault,
            upstream_status: statuses[0],
            duplicate_status: statuses[1],
        }
    }

    #[test]
    fn accepted_lies_between_what_was_answered_and_what_arrived() {
        let push = "/api/v1/projects/p/pushes?run=1";
        let log = [
            event("", "", Some(Fault::ResetOnConnect), [None, None]),
            event("POST", push, Some(Fault::RequestDropped), [None, None]),
            event("POST", push, Some(Fault::DuplicateDelivery { concurrent: false }), [Some(201), Some(503)]),
            // Forwarded, and the server died over it.
            event("POST", push, None, [None, None]),
            event("GET", push, None, [Some(200), None]),
        ];
        assert_eq!(accepted(&log), Some(1..=3));
        assert_eq!(log.iter().filter(|event| is_delivery(event)).count(), 4);
        let staged = event("PUT", "/api/v1/projects/p/pushes/1/epochs/1/chunks/0", None, [Some(201), None]);
        assert_eq!(accepted(&[staged]), None);
    }
}
