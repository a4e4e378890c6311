//! SIGINT and SIGTERM: the first asks everything to stop, the second ends the process. Must not know what is stopped.

use delivery::Stop;

use crate::failure::Failure;

/// A stop that is raised by the first signal. Only within a runtime.
///
/// # Errors
/// The system gives no signal handlers.
pub(crate) fn on_signals() -> Result<Stop, Failure> {
    let stop = Stop::new();
    let raised = stop.clone();
    let mut first = Signals::new()?;
    tokio::spawn(async move {
        first.next().await;
        raised.request();
        // Whoever asks twice means it: the outbox survives any end.
        let number = first.next().await;
        end_now(number);
    });
    Ok(stop)
}

/// A stop that every signal raises, and none ends the process: for a command that has processes and files of its own to
/// take away first, and does so at once. Only within a runtime.
///
/// # Errors
/// The system gives no signal handlers.
pub(crate) fn on_every_signal() -> Result<Stop, Failure> {
    let stop = Stop::new();
    let raised = stop.clone();
    let mut signals = Signals::new()?;
    tokio::spawn(async move {
        loop {
            signals.next().await;
            raised.request();
        }
    });
    Ok(stop)
}

/// Ends the process as a signal without handler does.
#[expect(clippy::exit, reason = "a second signal means now; nothing here has to be cleaned up")]
pub(crate) fn end_now(number: i32) {
    std::process::exit(128 + number);
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let failed = |error: std::io::Error| Failure::machine(format!("no signal handlers: {error}"), "Try again.");
        let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let terminate = signal(SignalKind::terminate()).map_err(failed)?;
        Ok(Self { interrupt, terminate })
    }

    /// The number of the next one.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => 2,
            _ = self.terminate.recv() => 15,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Result<Self, Failure> {
        Ok(Self)
    }

    async fn next(&mut self) -> i32 {
        let _ = tokio::signal::ctrl_c().await;
        2
    }
}
