//! Time as a value, so that tests and the simulator own it. Clocks decide when to try and to wait, never what is recorded.
//! Must not be read for anything that counts.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;

/// Where time comes from.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Milliseconds since some fixed moment; never goes back.
    fn now_ms(&self) -> u64;

    /// Milliseconds since 1970, as the machine believes.
    fn unix_ms(&self) -> u64;

    /// [`Clock::unix_ms`] as RFC 3339 in UTC, with milliseconds, always of one width so that texts sort like times.
    fn utc_rfc3339(&self) -> String {
        let ms = i64::try_from(self.unix_ms()).unwrap_or(i64::MAX);
        let time = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX);
        format!("{time:.3}")
    }

    /// Waits that many milliseconds.
    async fn sleep(&self, ms: u64);
}

/// The machine's own clock.
#[derive(Debug, Clone)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// A clock whose [`Clock::now_ms`] begins at 0.
    #[expect(clippy::disallowed_methods, reason = "this is the one place where real time enters")]
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place where real time enters")]
    fn unix_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    async fn sleep(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}
