//! How long to wait before the next try: exponential with full jitter, within a deadline. Must not wait by itself.

use rand::{Rng, RngExt};

/// The one retry policy of the whole path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// From the first try on, the last one begins at this many milliseconds at the latest. 0: one try.
    pub deadline_ms: u64,
    /// The bound of the first wait, in milliseconds; it doubles with every further one.
    pub first_backoff_ms: u64,
    /// The bound of every wait, in milliseconds.
    pub backoff_max_ms: u64,
}

impl RetryPolicy {
    /// Half a second, doubled up to half a minute, within this deadline.
    pub fn within(deadline_ms: u64) -> Self {
        Self { deadline_ms, first_backoff_ms: 500, backoff_max_ms: 30_000 }
    }
}

/// The waits of one delivery.
#[derive(Debug, Clone)]
pub struct Backoff {
    policy: RetryPolicy,
    ceiling_ms: u64,
}

impl Backoff {
    /// Before the first wait.
    pub fn new(policy: RetryPolicy) -> Self {
        Self { policy, ceiling_ms: policy.first_backoff_ms.min(policy.backoff_max_ms) }
    }

    /// The next wait in milliseconds, or `None` if the deadline has come. Anything between nothing and the ceiling, so
    /// that clients that failed together don't return together. A wish of the receiver is a least wait, and jitter comes
    /// on top of it. Never beyond the deadline: the last try begins right at it.
    pub fn next_wait_ms(&mut self, elapsed_ms: u64, retry_after_ms: Option<u64>, jitter: &mut dyn Rng) -> Option<u64> {
        let left_ms = self.policy.deadline_ms.checked_sub(elapsed_ms).filter(|left| *left > 0)?;
        let spread_ms = match retry_after_ms {
            None => self.ceiling_ms,
            Some(_) => self.policy.first_backoff_ms,
        };
        self.ceiling_ms = self.ceiling_ms.saturating_mul(2).min(self.policy.backoff_max_ms);
        let wait_ms = retry_after_ms.unwrap_or(0).saturating_add(jitter.random_range(0..=spread_ms));
        Some(wait_ms.min(left_ms))
    }
}
