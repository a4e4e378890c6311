//! Signals while a command of ours runs, and after it: which arrive, and which the command has got already. Must not know
//! what is done about them.

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};

use delivery::Stop;

use crate::failure::Failure;
use crate::interrupt;

/// What asks a process to end.
const ASKING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// One that asks us to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    /// Its number.
    pub number: i32,
    /// True if the terminal sent it to the whole process group, so that the command has it too.
    pub to_all: bool,
}

/// The signals that this process gets from now on.
pub(super) struct Signals(SignalsInfo<WithOrigin>);

impl Signals {
    /// From now on. Those that this process was started to ignore (`nohup`) stay ignored, in the command too.
    ///
    /// # Errors
    /// The system gives no signal handlers.
    pub(super) fn new() -> Result<Self, Failure> {
        let ignored = ignored();
        let wanted = ASKING.into_iter().filter(|number| ignored & bit(*number) == 0).chain([SIGCHLD]);
        SignalsInfo::new(wanted)
            .map(Self)
            .map_err(|error| Failure::machine(format!("no signal handlers: {error}"), "Try again."))
    }

    /// Blocks until some are there, and gives those that ask us to end. None if it was a child of ours that ended.
    pub(super) fn wait(&mut self) -> Vec<Asked> {
        self.0.wait().filter_map(|origin| asked(&origin)).collect()
    }

    /// From now on the first one raises the flag, and the second ends the process.
    pub(super) fn into_stop(mut self) -> Stop {
        let stop = Stop::new();
        let raised = stop.clone();
        std::thread::spawn(move || {
            for origin in self.0.forever() {
                let Some(Asked { number, .. }) = asked(&origin) else { continue };
                if raised.is_requested() {
                    // Whoever asks twice means it: the outbox survives any end.
                    interrupt::end_now(number);
                }
                raised.request();
            }
        });
        stop
    }
}

fn asked(origin: &Origin) -> Option<Asked> {
    let number = origin.signal;
    let by_keyboard = number == SIGINT || number == SIGQUIT;
    let from_terminal = match origin.cause {
        Cause::Kernel => true,
        // Where the system doesn't say it, a keyboard is the likelier sender if there is one.
        Cause::Unknown => std::io::IsTerminal::is_terminal(&std::io::stdin()),
        _ => false,
    };
    (number != SIGCHLD).then_some(Asked { number, to_all: by_keyboard && from_terminal })
}

fn bit(number: i32) -> u64 {
    1 << (number - 1)
}

/// The signals that this process ignores; none where the system has no such file.
fn ignored() -> u64 {
    std::fs::read_to_string("/proc/self/status").ok().as_deref().and_then(ignored_in).unwrap_or(0)
}

fn ignored_in(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        let status = "Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t00000001800024e8\n";
        let mask = ignored_in(status).unwrap();
        assert!(mask & bit(SIGHUP) != 0 && mask & bit(SIGINT) == 0);
        assert_eq!(ignored_in("Name:\tx\n"), None);
    }
}
