//! Asking until there is an answer, within one deadline, for commands that read and mend (audit, repair, probe).
//! Must not decide what a silence means for a write.

use std::fmt;

use futures_util::future::BoxFuture;
use rand::Rng;
use thiserror::Error;

use super::trouble::Trouble;
use crate::backoff::{Backoff, RetryPolicy};
use crate::clock::Clock;
use crate::stop::Stop;

/// Why nothing more is asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GaveUp {
    /// Somebody asked to stop. With what was heard last; empty between two calls.
    #[error("interrupted{}", heard(.0))]
    Stopped(String),
    /// The deadline came first. With what was heard last; empty between two calls.
    #[error("{}{}", if .0.is_empty() { "the deadline came before the end" } else { "no answer before the deadline" }, heard(.0))]
    Over(String),
    /// The product refuses whoever asks.
    #[error("the repository refuses these credentials: {0}")]
    Denied(String),
    /// The product refuses what is asked.
    #[error("{0}")]
    Refused(String),
    /// What is asked about is not there.
    #[error("{0}")]
    Gone(String),
}

fn heard(last: &str) -> String {
    if last.is_empty() { String::new() } else { format!("; the last that was heard: {last}") }
}

/// How long, and until when, somebody waits for answers.
pub struct Patience<'a> {
    /// What time it is.
    pub clock: &'a dyn Clock,
    /// For waits.
    pub random: &'a mut (dyn Rng + Send),
    /// The wish to stop.
    pub stop: &'a Stop,
    /// On the clock's scale: nothing is begun after it.
    pub deadline_ms: u64,
    /// Who is told what goes on.
    watch: Watch<'a>,
}

/// What goes on, for people who wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing<'a> {
    /// Finds this out.
    Measures(&'static str),
    /// Waits.
    Waits {
        /// So long, in milliseconds.
        ms: u64,
        /// What for, or what was heard last.
        why: &'a str,
    },
}

/// Somebody who is told.
pub type Watch<'a> = &'a (dyn Fn(Doing<'_>) + Sync);

impl fmt::Debug for Patience<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patience").field("deadline_ms", &self.deadline_ms).finish_non_exhaustive()
    }
}

/// One series of tries.
#[derive(Debug)]
pub(super) struct Tries {
    backoff: Backoff,
    begun_ms: u64,
}

impl<'a> Patience<'a> {
    /// Until a time on the clock's scale. Nobody is told anything.
    pub fn new(clock: &'a dyn Clock, random: &'a mut (dyn Rng + Send), stop: &'a Stop, deadline_ms: u64) -> Self {
        Self { clock, random, stop, deadline_ms, watch: &|_| {} }
    }

    /// The same, and somebody is told what goes on.
    #[must_use]
    pub fn watched(self, watch: Watch<'a>) -> Self {
        Self { watch, ..self }
    }
}

impl Patience<'_> {
    /// Tells what is found out from here on.
    pub(super) fn measures(&self, what: &'static str) {
        (self.watch)(Doing::Measures(what));
    }

    /// A new series of tries.
    pub(super) fn tries(&self) -> Tries {
        let begun_ms = self.clock.now_ms();
        let left_ms = self.deadline_ms.saturating_sub(begun_ms);
        Tries { backoff: Backoff::new(RetryPolicy::within(left_ms)), begun_ms }
    }

    /// Nothing is begun after the deadline, or against a wish to stop.
    ///
    /// # Errors
    /// [`GaveUp::Stopped`], [`GaveUp::Over`].
    pub fn may_go_on(&self) -> Result<(), GaveUp> {
        if self.stop.is_requested() {
            return Err(GaveUp::Stopped(String::new()));
        }
        if self.clock.now_ms() >= self.deadline_ms {
            return Err(GaveUp::Over(String::new()));
        }
        Ok(())
    }

    /// A call that changes nothing: again until it is answered.
    ///
    /// # Errors
    /// Nothing more is asked.
    pub async fn reading<'c, T: Send>(
        &mut self,
        call: impl FnMut() -> BoxFuture<'c, Result<T, Trouble>> + Send,
    ) -> Result<T, GaveUp> {
        self.may_go_on()?;
        self.finishing(call).await
    }

    /// The last call of something that is done otherwise, and that may be repeated: it gets a try whatever somebody
    /// wishes, and is tried again only as long as nobody wishes to stop.
    ///
    /// # Errors
    /// Nothing more is asked.
    pub async fn finishing<'c, T: Send>(
        &mut self,
        mut call: impl FnMut() -> BoxFuture<'c, Result<T, Trouble>> + Send,
    ) -> Result<T, GaveUp> {
        let mut tries = self.tries();
        loop {
            let trouble = match call().await {
                Ok(value) => return Ok(value),
                Err(trouble) => trouble,
            };
            match trouble {
                Trouble::Denied(what) => return Err(GaveUp::Denied(what)),
                Trouble::Gone(what) => return Err(GaveUp::Gone(what)),
                Trouble::Refused(what) | Trouble::TooLarge(what) | Trouble::Exists(what) => {
                    return Err(GaveUp::Refused(what));
                }
                again => self.before_next(&mut tries, &again).await?,
            }
        }
    }

    /// The wait before another try.
    pub(super) async fn before_next(&mut self, tries: &mut Tries, trouble: &Trouble) -> Result<(), GaveUp> {
        let wish_ms = match trouble {
            Trouble::Wait { after_ms, .. } => Some(*after_ms),
            Trouble::NotSent(cause) => cause.retry_after_ms,
            _ => None,
        };
        let now_ms = self.clock.now_ms();
        // Asked any earlier, it says the same again.
        if wish_ms.is_some_and(|ms| ms > self.deadline_ms.saturating_sub(now_ms)) {
            return Err(GaveUp::Over(format!("{trouble}, which is after the deadline")));
        }
        let elapsed_ms = now_ms.saturating_sub(tries.begun_ms);
        match tries.backoff.next_wait_ms(elapsed_ms, wish_ms, self.random) {
            Some(ms) => self.wait(ms, &trouble.to_string()).await,
            None => Err(GaveUp::Over(trouble.to_string())),
        }
    }

    /// Waits so long, unless the deadline or a wish to stop comes first.
    pub(super) async fn wait(&mut self, ms: u64, why: &str) -> Result<(), GaveUp> {
        let left_ms = self.deadline_ms.saturating_sub(self.clock.now_ms());
        if self.stop.is_requested() {
            return Err(GaveUp::Stopped(why.to_owned()));
        }
        if ms > left_ms {
            return Err(GaveUp::Over(why.to_owned()));
        }
        (self.watch)(Doing::Waits { ms, why });
        tokio::select! {
            () = self.stop.requested() => Err(GaveUp::Stopped(why.to_owned())),
            () = self.clock.sleep(ms) => Ok(()),
        }
    }
}
