//! Waiting: for a turn, for the next try, for the quiet time; never beyond the deadline, and never against a wish to stop.
//! Must not decide what a silence means.

use futures_util::future::BoxFuture;

use super::{Forwarder, Halt, Step, Turn};
use crate::backoff::{Backoff, RetryPolicy};
use crate::foreign::trouble::Trouble;

/// How long to wait before asking again for a turn, in milliseconds.
const TURN_PAUSE_MS: u64 = 250;

/// What a call does beside outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing.
    Asks,
    /// It changes something; twice is once.
    Changes,
    /// It may make something.
    Makes,
}

impl Forwarder<'_> {
    /// Waits until this process alone forwards to the target.
    pub(super) async fn turn(&mut self) -> Result<Turn, Halt> {
        loop {
            if let Some(turn) = self.book.take_turn(self.target).await? {
                return Ok(turn);
            }
            self.pause(TURN_PAUSE_MS, "another process forwards to this target").await?;
        }
    }

    /// A new series of tries.
    pub(super) fn backoff(&self) -> Backoff {
        let left_ms = self.deadline_ms.saturating_sub(self.clock.now_ms());
        Backoff::new(RetryPolicy::within(left_ms))
    }

    /// A call that changes nothing, or that may be repeated: again until it is answered.
    pub(super) async fn asking<'c, T>(
        &mut self,
        call: impl FnMut() -> BoxFuture<'c, Result<T, Trouble>> + Send,
    ) -> Result<T, Halt>
    where
        T: Send,
    {
        self.answered(call, Kind::Asks).await
    }

    /// A call that changes what no intent stands for, and that may be repeated.
    pub(super) async fn changing<'c, T>(
        &mut self,
        call: impl FnMut() -> BoxFuture<'c, Result<T, Trouble>> + Send,
    ) -> Result<T, Halt>
    where
        T: Send,
    {
        self.answered(call, Kind::Changes).await
    }

    /// A call that looks before it makes or changes anything beside outcomes. What got no answer may still be carried
    /// out, so it looks again only after the quiet time.
    pub(super) async fn making<'c, T>(
        &mut self,
        call: impl FnMut() -> BoxFuture<'c, Result<T, Trouble>> + Send,
    ) -> Result<T, Halt>
    where
        T: Send,
    {
        self.answered(call, Kind::Makes).await
    }

    async fn answered<'c, T>(
        &mut self,
        mut call: impl FnMut() -> BoxFuture<'c, Result<T, Trouble>> + Send,
        kind: Kind,
    ) -> Result<T, Halt>
    where
        T: Send,
    {
        let (mut backoff, begun_ms) = (self.backoff(), self.clock.now_ms());
        loop {
            if kind != Kind::Asks {
                self.book.may_change()?;
            }
            let trouble = match call().await {
                Ok(value) => return Ok(value),
                Err(trouble) => trouble,
            };
            match (trouble, kind) {
                (Trouble::Unknown(what), Kind::Makes) => self.pause(self.quiet_ms, &what).await?,
                (Trouble::Denied(what), _) => return Err(Halt::Denied(what)),
                (Trouble::Gone(what), _) => return Err(Halt::Gone(what)),
                (Trouble::Refused(what) | Trouble::TooLarge(what) | Trouble::Exists(what), _) => {
                    return Err(Halt::Refused(what));
                }
                (again, _) => self.before_next(&mut backoff, begun_ms, &again).await?,
            }
        }
    }

    /// The wait before another try.
    pub(super) async fn before_next(
        &mut self,
        backoff: &mut Backoff,
        begun_ms: u64,
        trouble: &Trouble,
    ) -> Result<(), Halt> {
        let wish_ms = match trouble {
            Trouble::Wait { after_ms, .. } => Some(*after_ms),
            Trouble::NotSent(cause) => cause.retry_after_ms,
            _ => None,
        };
        let now_ms = self.clock.now_ms();
        // Asked any earlier, it says the same again.
        if wish_ms.is_some_and(|ms| ms > self.deadline_ms.saturating_sub(now_ms)) {
            return Err(Halt::Over(format!("{trouble}, which is after the deadline")));
        }
        let elapsed_ms = now_ms.saturating_sub(begun_ms);
        match backoff.next_wait_ms(elapsed_ms, wish_ms, self.random) {
            Some(ms) => self.pause(ms, &trouble.to_string()).await,
            None => Err(Halt::Over(trouble.to_string())),
        }
    }

    /// Nothing is begun after the deadline, or against a wish to stop.
    pub(super) fn may_go_on(&self, what: &str) -> Result<(), Halt> {
        if self.stop.is_requested() {
            return Err(Halt::Stopped(what.to_owned()));
        }
        if self.clock.now_ms() >= self.deadline_ms {
            return Err(Halt::Over(format!("the deadline came while {what}")));
        }
        Ok(())
    }

    /// Waits so long, unless the deadline or a wish to stop comes first.
    pub(super) async fn pause(&mut self, ms: u64, why: &str) -> Result<(), Halt> {
        let left_ms = self.deadline_ms.saturating_sub(self.clock.now_ms());
        if self.stop.is_requested() {
            return Err(Halt::Stopped(why.to_owned()));
        }
        if left_ms == 0 {
            return Err(Halt::Over(why.to_owned()));
        }
        (self.progress)(Step::Waiting { ms: ms.min(left_ms), why: why.to_owned() });
        tokio::select! {
            () = self.stop.requested() => Err(Halt::Stopped(why.to_owned())),
            () = self.clock.sleep(ms.min(left_ms)) => {
                if ms > left_ms { Err(Halt::Over(why.to_owned())) } else { Ok(()) }
            }
        }
    }
}
