//! Delivers one parcel to one target: tries, waits, tries again with the same key, until the truth is known or the
//! deadline has come. The only loop that repeats a send. Must not know what kind of target it is.

use std::time::Duration;

use domain::{Cause, Delivery, Problem, ProblemCode};
use rand::Rng;

use crate::backoff::{Backoff, RetryPolicy};
use crate::clock::Clock;
use crate::parcel::Parcel;
use crate::stop::Stop;
use crate::target::{Handed, Target};

/// How long a try may run on when the deadline comes, in milliseconds: the last try begins right at the deadline, and
/// needs time for an answer.
pub const TRY_GRACE_MS: u64 = 5_000;

/// What happens while a parcel is delivered, for a progress bar or for lines in a CI log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// A try begins.
    Sending {
        /// From 1.
        attempt: u32,
        /// Size of the body in bytes.
        bytes: u64,
    },
    /// A try ended without a verdict, and another one follows.
    Waiting {
        /// The try that ended.
        attempt: u32,
        /// How long until the next one, in milliseconds.
        wait_ms: u64,
        /// Why it ended, in words.
        cause: String,
        /// False if nothing of it arrived for certain.
        possibly_written: bool,
    },
}

/// How delivering a parcel ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// The verdict over all tries. [`Delivery::NotSent`] only if no try can have been written.
    pub delivery: Delivery<Handed>,
    /// How many tries were begun.
    pub attempts: u32,
    /// From the first try to the end, in milliseconds.
    pub elapsed_ms: u64,
    /// Size of the body in bytes, as each try sends it.
    pub bytes: u64,
    /// True if it ended because somebody asked to stop.
    pub interrupted: bool,
}

/// What the tries so far leave open.
#[derive(Default)]
struct Doubt {
    possibly_written: Option<Cause>,
    not_sent: Option<Cause>,
}

impl Doubt {
    /// The verdict if no further try is made.
    fn verdict(self) -> Delivery<Handed> {
        match (self.possibly_written, self.not_sent) {
            (Some(cause), _) => Delivery::PossiblyWritten(cause),
            (None, Some(cause)) => Delivery::NotSent(cause),
            (None, None) => Delivery::NotSent(Cause::new("stopped before the first try")),
        }
    }

    /// A refusal says that *this* try wrote nothing. If an earlier try may have been written, it settles that one too
    /// only where it judges key and content themselves; an expired token or a strange proxy doesn't.
    fn refused(&self, problem: Box<Problem>) -> Delivery<Handed> {
        match &self.possibly_written {
            Some(earlier) if !judges_every_try(problem.code) => Delivery::PossiblyWritten(Cause::new(format!(
                "an earlier try may have been written ({}), and the last one was refused: {}: {}",
                earlier.what, problem.title, problem.detail
            ))),
            _ => Delivery::Rejected(problem),
        }
    }
}

/// True for refusals that any other try of the same parcel gets as well, or that are read from what is recorded.
fn judges_every_try(code: ProblemCode) -> bool {
    matches!(
        code,
        ProblemCode::KeyMissing
            | ProblemCode::KeyMalformed
            | ProblemCode::RunMissing
            | ProblemCode::ParameterMalformed
            | ProblemCode::ReportUnreadable
            | ProblemCode::TooLarge
            | ProblemCode::UnsupportedMedia
            | ProblemCode::KeyReused
            | ProblemCode::KeyCollision
            | ProblemCode::ShardPlanChanged
            | ProblemCode::Differs
            | ProblemCode::Tombstoned
    )
}

/// Delivers `parcel`: tries until it is recorded or rejected, the policy's deadline has come, or `stop` is raised.
/// A try that is running when the deadline comes is given up [`TRY_GRACE_MS`] after its begin at the earliest; one that
/// is running when `stop` is raised is given up at once. Both may have been written.
pub async fn deliver(
    target: &dyn Target,
    parcel: &Parcel,
    policy: &RetryPolicy,
    clock: &dyn Clock,
    jitter: &mut (dyn Rng + Send),
    stop: &Stop,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Ended {
    let started_ms = clock.now_ms();
    let elapsed_ms = || clock.now_ms().saturating_sub(started_ms);
    let bytes = parcel.body.len() as u64;
    let mut backoff = Backoff::new(*policy);
    let mut doubt = Doubt::default();
    let mut attempts = 0;
    let end =
        |delivery, attempts, interrupted| Ended { delivery, attempts, elapsed_ms: elapsed_ms(), bytes, interrupted };
    loop {
        if stop.is_requested() {
            return end(doubt.verdict(), attempts, true);
        }
        attempts += 1;
        progress(Progress::Sending { attempt: attempts, bytes });
        let patience_ms = policy.deadline_ms.saturating_sub(elapsed_ms()).max(TRY_GRACE_MS);
        let (cause, possibly_written) = match one_try(target, parcel, patience_ms, stop).await {
            Delivery::Recorded(handed) => return end(Delivery::Recorded(handed), attempts, false),
            Delivery::Rejected(problem) => return end(doubt.refused(problem), attempts, false),
            Delivery::NotSent(cause) => (cause, false),
            Delivery::PossiblyWritten(cause) => (cause, true),
        };
        let (what, retry_after_ms) = (cause.what.clone(), cause.retry_after_ms);
        *(if possibly_written { &mut doubt.possibly_written } else { &mut doubt.not_sent }) = Some(cause);
        if stop.is_requested() {
            return end(doubt.verdict(), attempts, true);
        }
        let Some(wait_ms) = backoff.next_wait_ms(elapsed_ms(), retry_after_ms, jitter) else {
            return end(doubt.verdict(), attempts, false);
        };
        progress(Progress::Waiting { attempt: attempts, wait_ms, cause: what, possibly_written });
        tokio::select! {
            biased;
            () = stop.requested() => {}
            () = clock.sleep(wait_ms) => {}
        }
    }
}

/// One try, given up when `stop` is raised or patience ends.
async fn one_try(target: &dyn Target, parcel: &Parcel, patience_ms: u64, stop: &Stop) -> Delivery<Handed> {
    tokio::select! {
        biased;
        () = stop.requested() => Delivery::PossiblyWritten(Cause::new("interrupted while sending")),
        answer = tokio::time::timeout(Duration::from_millis(patience_ms), target.deliver(parcel)) => {
            answer.unwrap_or_else(|_| Delivery::PossiblyWritten(Cause::new("no answer before the deadline")))
        }
    }
}
