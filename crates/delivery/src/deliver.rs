//! Delivers one parcel to one target: tries, waits, tries again with the same key, until the truth is known or the
//! deadline has come. The only loop that repeats a send. Must not know what kind of target it is.

use std::time::Duration;

use domain::{Cause, Delivery, Incarnation, NextTry, Problem, ProblemCode};
use rand::{Rng, RngExt};

use crate::attempt::{Staged, Try};
use crate::backoff::{Backoff, RetryPolicy};
use crate::clock::Clock;
use crate::keep::Keep;
use crate::parcel::{Form, Parcel};
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
        /// Size of all bodies in bytes.
        bytes: u64,
    },
    /// A try of a push in chunks is so far.
    Staging {
        /// The try.
        attempt: u32,
        /// How far.
        staged: Staged,
    },
    /// The push was cut into smaller chunks, because the receiver takes no larger ones.
    Cut {
        /// How many chunks it is in now.
        chunks: u32,
    },
    /// A try ended without a verdict, and another one follows.
    Waiting {
        /// The try that ended.
        attempt: u32,
        /// How long until the next one, in milliseconds.
        wait_ms: u64,
        /// Why it ended, in words.
        cause: String,
        /// False if nothing of it is written for certain.
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
    /// Size of all bodies in bytes.
    pub bytes: u64,
    /// In how many parts the push is sent: 1 where one request holds all.
    pub chunks: u32,
    /// Chunks that were sent and taken, over all tries.
    pub chunks_sent: u32,
    /// True if the first begin found staging that an earlier delivery had opened.
    pub resumed: bool,
    /// True if it ended because somebody asked to stop.
    pub interrupted: bool,
}

/// How a parcel is delivered, whatever it is and wherever it goes.
pub struct Terms<'a> {
    /// How long, and how often.
    pub policy: RetryPolicy,
    /// What time it is.
    pub clock: &'a dyn Clock,
    /// For waits and for new incarnations.
    pub random: &'a mut (dyn Rng + Send),
    /// The wish to stop.
    pub stop: &'a Stop,
    /// Hears what happens.
    pub progress: &'a mut (dyn FnMut(Progress) + Send),
}

/// Delivers `parcel`: tries until it is recorded or rejected, the policy's deadline has come, or `stop` is raised.
/// A try that is running when the deadline comes is given up [`TRY_GRACE_MS`] after its begin at the earliest; one that
/// is running when `stop` is raised is given up at once. What was staged until then stays with the receiver for the next
/// delivery.
pub async fn deliver(target: &dyn Target, parcel: &Parcel, keep: &mut dyn Keep, terms: Terms<'_>) -> Ended {
    let started_ms = terms.clock.now_ms();
    let backoff = Backoff::new(terms.policy);
    let mut course = Course { terms, started_ms, backoff, doubt: Doubt::default(), tally: Tally::default() };
    let mut parcel = parcel.clone();
    let (delivery, interrupted) = loop {
        match course.step(target, &mut parcel, keep).await {
            Step::Again => {}
            Step::End(delivery) => break (*delivery, false),
            Step::Stopped => break (course.doubt.verdict(), true),
            Step::Over => break (course.doubt.verdict(), false),
        }
    };
    let Tally { attempts, mut chunks_sent, resumed } = course.tally;
    if parcel.header.form == Form::Whole && matches!(delivery, Delivery::Recorded(_)) {
        chunks_sent = 1;
    }
    Ended {
        delivery,
        attempts,
        elapsed_ms: course.elapsed_ms(),
        bytes: parcel.header.body_bytes(),
        chunks: parcel.header.chunks.len() as u32,
        chunks_sent,
        resumed: resumed.unwrap_or(false),
        interrupted,
    }
}

/// What follows a try.
enum Step {
    /// Another one.
    Again,
    /// The truth is known.
    End(Box<Delivery<Handed>>),
    /// Somebody asked to stop.
    Stopped,
    /// The deadline has come.
    Over,
}

/// What is counted over all tries.
#[derive(Default)]
struct Tally {
    attempts: u32,
    chunks_sent: u32,
    /// None before a begin is answered.
    resumed: Option<bool>,
}

/// The tries of one parcel.
struct Course<'a> {
    terms: Terms<'a>,
    started_ms: u64,
    backoff: Backoff,
    doubt: Doubt,
    tally: Tally,
}

impl Course<'_> {
    fn elapsed_ms(&self) -> u64 {
        self.terms.clock.now_ms().saturating_sub(self.started_ms)
    }

    /// One try and, where there is no verdict, the wait before the next.
    async fn step(&mut self, target: &dyn Target, parcel: &mut Parcel, keep: &mut dyn Keep) -> Step {
        if self.terms.stop.is_requested() {
            return Step::Stopped;
        }
        self.tally.attempts += 1;
        let attempt = self.tally.attempts;
        fail::fail_point!("client:try:begun");
        (self.terms.progress)(Progress::Sending { attempt, bytes: parcel.header.body_bytes() });
        let (cause, possibly_written) = match self.one_try(target, parcel).await {
            Delivery::Recorded(handed) => return Step::End(Box::new(Delivery::Recorded(handed))),
            Delivery::Rejected(problem) => return Step::End(Box::new(self.doubt.refused(problem))),
            Delivery::NotSent(cause) => (cause, false),
            Delivery::PossiblyWritten(cause) => (cause, true),
        };
        self.doubt.add(&cause, possibly_written);
        if self.terms.stop.is_requested() {
            return Step::Stopped;
        }
        match cause.next {
            NextTry::Same => {}
            NextTry::Anew => *parcel = parcel.sent_by(Incarnation(self.terms.random.random())),
            NextTry::Smaller => match smaller(parcel, keep, Incarnation(self.terms.random.random())) {
                Ok(finer) => {
                    *parcel = finer;
                    (self.terms.progress)(Progress::Cut { chunks: parcel.header.chunks.len() as u32 });
                    return Step::Again;
                }
                Err(problem) => return Step::End(Box::new(self.doubt.refused(problem))),
            },
        }
        self.wait(cause, possibly_written).await
    }

    async fn wait(&mut self, cause: Cause, possibly_written: bool) -> Step {
        let elapsed_ms = self.elapsed_ms();
        let Terms { clock, random, stop, progress, .. } = &mut self.terms;
        let Some(wait_ms) = self.backoff.next_wait_ms(elapsed_ms, cause.retry_after_ms, *random) else {
            return Step::Over;
        };
        progress(Progress::Waiting { attempt: self.tally.attempts, wait_ms, cause: cause.what, possibly_written });
        fail::fail_point!("client:wait:begun");
        tokio::select! {
            biased;
            () = stop.requested() => {}
            () = clock.sleep(wait_ms) => {}
        }
        fail::fail_point!("client:wait:ended");
        Step::Again
    }

    /// One try, given up when `stop` is raised or patience ends.
    async fn one_try(&mut self, target: &dyn Target, parcel: &Parcel) -> Delivery<Handed> {
        let patience_ms = self.terms.policy.deadline_ms.saturating_sub(self.elapsed_ms()).max(TRY_GRACE_MS);
        let attempt = Try::new(self.terms.clock, patience_ms);
        let mut staged = attempt.watch();
        let delivery = {
            let sending = target.deliver(parcel, &attempt);
            let answer = tokio::time::timeout(Duration::from_millis(patience_ms), sending);
            tokio::pin!(answer);
            loop {
                tokio::select! {
                    biased;
                    () = self.terms.stop.requested() => break given_up(&attempt, "interrupted while sending"),
                    // The sender lives in `attempt`.
                    Ok(()) = staged.changed() => {
                        let now = *staged.borrow_and_update();
                        (self.terms.progress)(Progress::Staging { attempt: self.tally.attempts, staged: now });
                    }
                    answer = &mut answer => {
                        break answer.unwrap_or_else(|_| given_up(&attempt, "no answer before the deadline"));
                    }
                }
            }
        };
        if staged.has_changed().unwrap_or(false) {
            (self.terms.progress)(Progress::Staging { attempt: self.tally.attempts, staged: attempt.staged() });
        }
        self.count(attempt.staged());
        fail::fail_point!("client:try:ended");
        delivery
    }

    fn count(&mut self, staged: Staged) {
        self.tally.chunks_sent += staged.sent;
        if staged.chunks > 0 {
            self.tally.resumed.get_or_insert(staged.resumed);
        }
        // It goes forward: what stopped it is not what stopped it before.
        if staged.sent > 0 {
            self.backoff = Backoff::new(self.terms.policy);
        }
    }
}

/// A try without an answer.
fn given_up(attempt: &Try<'_>, what: &str) -> Delivery<Handed> {
    let cause = Cause::new(what);
    if attempt.is_harmless() { Delivery::NotSent(cause) } else { Delivery::PossiblyWritten(cause) }
}

/// The same push in smaller bodies, kept in place of the one before. It is another wish than that to stage larger ones.
fn smaller(parcel: &Parcel, keep: &mut dyn Keep, incarnation: Incarnation) -> Result<Parcel, Box<Problem>> {
    let finer = parcel.smaller(keep.scratch()).map_err(|error| {
        let words =
            format!("It is too large for the receiver, and cannot be cut smaller: {error}. Nothing was recorded.");
        Box::new(Problem::new(ProblemCode::TooLarge, words))
    })?;
    let finer = finer.ok_or_else(|| {
        let words = "The receiver, or something in front of it, takes not even the smallest chunk that the outcomes can be \
                     cut into. Nothing was recorded. Raise its limit for the size of a request.";
        Box::new(Problem::new(ProblemCode::TooLarge, words))
    })?;
    let finer = finer.sent_by(incarnation);
    keep.replace(&finer).map_err(|error| {
        let words = format!("It is too large for the receiver, and in smaller chunks it cannot be kept: {error}.");
        Box::new(Problem::new(ProblemCode::TooLarge, words))
    })?;
    Ok(finer)
}

/// What the tries so far leave open.
#[derive(Default)]
struct Doubt {
    possibly_written: Option<Cause>,
    not_sent: Option<Cause>,
}

impl Doubt {
    fn add(&mut self, cause: &Cause, possibly_written: bool) {
        *(if possibly_written { &mut self.possibly_written } else { &mut self.not_sent }) = Some(cause.clone());
    }

    /// The verdict if no further try is made.
    fn verdict(&self) -> Delivery<Handed> {
        match (&self.possibly_written, &self.not_sent) {
            (Some(cause), _) => Delivery::PossiblyWritten(cause.clone()),
            (None, Some(cause)) => Delivery::NotSent(cause.clone()),
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
            | ProblemCode::ManifestMalformed
            | ProblemCode::TooLarge
            | ProblemCode::UnsupportedMedia
            | ProblemCode::KeyReused
            | ProblemCode::KeyCollision
            | ProblemCode::ShardPlanChanged
            | ProblemCode::Differs
            | ProblemCode::Tombstoned
    )
}
