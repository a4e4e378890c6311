//! Whether a process that was sent `SIGSTOP` stands. One of its threads has to be given a processor to take the signal, and
//! until then all others go on: on a busy machine for long enough to send a request or to take a lock. Must not send signals.

use std::fs;
use std::thread;
use std::time::Duration;

/// Between two looks.
const AGAIN: Duration = Duration::from_millis(1);
/// As many looks as a process may need: ten seconds. One that can't be stopped must not hold up whoever watches it.
const LOOKS: u32 = 10_000;

/// Blocks until every thread of it stands, or it is gone.
pub(super) fn wait(pid: u32) {
    for _ in 0..LOOKS {
        if stands(pid) {
            return;
        }
        thread::sleep(AGAIN);
    }
}

/// Where nothing says so, it is taken to stand.
fn stands(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.flatten().all(|thread| {
        // A thread that has ended meanwhile does nothing any more.
        fs::read_to_string(thread.path().join("stat")).map_or(true, |stat| is_at_rest(&stat))
    })
}

/// The state is the word after the name, which may hold anything but ends with the last parenthesis (`proc_pid_stat(5)`).
fn is_at_rest(stat: &str) -> bool {
    let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
    matches!(state, Some('T' | 't' | 'Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_found_behind_any_name() {
        for (stat, rests) in
            [("7 (a) S 1", false), ("7 (T) R 1", false), ("7 (a b) c) T 1", true), ("7 (a) Z 1", true), ("", false)]
        {
            assert_eq!(is_at_rest(stat), rests, "{stat}");
        }
    }
}
