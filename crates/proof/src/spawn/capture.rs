//! What a child writes, collected by threads, so that a full pipe never stops it. Must not know processes.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is kept of each stream; the rest is read and dropped.
const KEEP: usize = 32 << 20;

/// Which of the two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

#[derive(Debug, Default)]
struct State {
    text: [Vec<u8>; 2],
    open: u32,
}

/// Both streams of one child.
#[derive(Debug, Clone, Default)]
pub(super) struct Capture(Arc<(Mutex<State>, Condvar)>);

impl Capture {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Collects one stream on a thread, until its last writer has closed it.
    pub(super) fn follow(&self, stream: Stream, mut from: impl Read + Send + 'static) {
        self.lock().open += 1;
        let capture = self.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                let mut state = capture.lock();
                let text = &mut state.text[stream as usize];
                let room = KEEP.saturating_sub(text.len()).min(count);
                text.extend_from_slice(&buffer[..room]);
                capture.0.1.notify_all();
            }
            capture.lock().open -= 1;
            capture.0.1.notify_all();
        });
    }

    /// What came so far.
    pub(super) fn text(&self, stream: Stream) -> String {
        String::from_utf8_lossy(&self.lock().text[stream as usize]).into_owned()
    }

    /// Blocks until both streams have ended; `false` if they have not within `patience`.
    pub(super) fn ended(&self, patience: Duration) -> bool {
        let waited = self.0.1.wait_timeout_while(self.lock(), patience, |state| state.open > 0);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Blocks until `find` finds something in the whole lines of a stream; `None` at its end or after `patience`.
    pub(super) fn find<T>(
        &self,
        stream: Stream,
        patience: Duration,
        mut find: impl FnMut(&str) -> Option<T>,
    ) -> Option<T> {
        let mut found = None;
        let _waited = self.0.1.wait_timeout_while(self.lock(), patience, |state| {
            let text = &state.text[stream as usize];
            let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
            found = find(&String::from_utf8_lossy(&text[..whole]));
            found.is_none() && state.open > 0
        });
        found
    }
}
