//! Waiting: for a turn, for the next try, for the quiet time; never beyond the deadline, and never against a wish to stop.
//! Must not decide what a silence means.

use futures_util::future::BoxFuture;

use super::{Forwarder, Halt, Step, Turn};
use crate::backoff::{Backoff, RetryPolicy};
use crate::foreign::trouble::Trouble;

/// How long to wait before asking again for a turn, in milliseconds.
const TURN_PAUSE_MS: u64 = 250;

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
        mut call: impl FnMut() -> BoxFuture<'c, Result<T, Trouble>> + Send,
    ) -> Result<T, Halt>
    where
        T: Send,
    {
        let (mut backoff, begun_ms) = (self.backoff(), self.clock.now_ms());
        loop {
            let trouble = match call().await {
                Ok(value) => return Ok(value),
                Err(trouble) => trouble,
            };
            match trouble {
                Trouble::Denied(what) => return Err(Halt::Denied(what)),
                Trouble::Refused(what) | Trouble::Gone(what) | Trouble::TooLarge(what) | Trouble::Exists(what) => {
                    return Err(Halt::Refused(what));
                }
                again => self.before_next(&mut backoff, begun_ms, &again).await?,
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
        let elapsed_ms = self.clock.now_ms().saturating_sub(begun_ms);
        match backoff.next_wait_ms(elapsed_ms, wish_ms, self.random) {
            Some(ms) => self.pause(ms, &trouble.to_string()).await,
            None => Err(Halt::Over(trouble.to_string())),
        }
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
