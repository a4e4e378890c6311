//! The rule of the two streams: results on standard output, all else on standard error. The only place that prints.
//! A reader that closed the pipe is no error. What is said for people holds no command for the runner that reads the log.
//! Must not know what is printed.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Mutex;

use serde::Serialize;

use crate::announce::escape;

/// Whether what is said is folded in the log, of the whole process.
#[derive(Debug, PartialEq, Eq)]
enum Fold {
    /// No.
    Off,
    /// From the next note on, which this line precedes: a fold without a line is not worth one.
    Wanted(String),
    /// Yes.
    On,
}

static FOLD: Mutex<Fold> = Mutex::new(Fold::Off);

/// Where a command says things.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    quiet: bool,
    verbose: u8,
    progress: bool,
}

#[expect(clippy::unused_self, reason = "who prints needs an output in hand, also where it has nothing to decide")]
impl Output {
    /// As the flags say.
    pub(crate) fn new(quiet: bool, verbose: u8, no_progress: bool) -> Self {
        Self { quiet, verbose, progress: !quiet && !no_progress && io::stderr().is_terminal() }
    }

    /// True if a progress bar may be drawn on standard error.
    pub(crate) fn progress(self) -> bool {
        self.progress
    }

    /// A result for people. The text ends in a newline.
    pub(crate) fn text(self, text: &str) {
        self.result(&escape::log(text));
    }

    /// A result for machines, as it is. The text ends in a newline.
    pub(crate) fn result(self, text: &str) {
        let mut out = io::stdout().lock();
        // A closed pipe is the reader's right.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// One JSON object on a line of its own.
    pub(crate) fn object<T: Serialize>(self, value: &T) {
        // Our own types have string keys only, so this cannot fail.
        let text = serde_json::to_string(value).unwrap_or_default();
        self.result(&format!("{}\n", escape::json(&text)));
    }

    /// Something worth knowing; not with `--quiet`.
    pub(crate) fn note(self, text: &str) {
        if !self.quiet {
            begin_fold();
            to_stderr(&escape::log(text));
        }
    }

    /// Something worth knowing with `-v` only.
    pub(crate) fn detail(self, text: &str) {
        if self.verbose > 0 {
            self.note(text);
        }
    }

    /// Something that is probably not as wanted.
    pub(crate) fn warning(self, text: &str) {
        to_stderr(&escape::log(&format!("warning: {text}")));
    }

    /// Failures, also with `--quiet`.
    pub(crate) fn error(self, text: &str) {
        to_stderr(&escape::log(text.trim_end()));
    }

    /// A command for the runner that reads the log, on a line of its own and as it is; also with `--quiet`.
    pub(crate) fn command(self, text: &str) {
        to_stderr(text);
    }

    /// What is noted from now on is folded in the log; `opening` is the runner's command for it.
    pub(crate) fn fold(self, opening: String) {
        set_fold(Fold::Wanted(opening));
    }

    /// Ends the fold, if anything was noted; `closing` is the runner's command for it.
    pub(crate) fn unfold(self, closing: &str) {
        if set_fold(Fold::Off) == Fold::On {
            to_stderr(closing);
        }
    }
}

/// The one before.
fn set_fold(fold: Fold) -> Fold {
    let mut current = FOLD.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    std::mem::replace(&mut current, fold)
}

fn begin_fold() {
    let mut current = FOLD.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Fold::Wanted(opening) = &*current {
        to_stderr(opening);
        *current = Fold::On;
    }
}

fn to_stderr(text: &str) {
    let mut err = io::stderr().lock();
    let _ = writeln!(err, "{text}");
}
