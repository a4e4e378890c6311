//! The rule of the two streams: results on standard output, all else on standard error. The only place that prints.
//! A reader that closed the pipe is no error. Must not know what is printed.

use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;

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

    /// A result, for machines or for people. The text ends in a newline.
    pub(crate) fn result(self, text: &str) {
        let mut out = io::stdout().lock();
        // A closed pipe is the reader's right.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// One JSON object on a line of its own.
    pub(crate) fn object<T: Serialize>(self, value: &T) {
        // Our own types have string keys only, so this cannot fail.
        let text = serde_json::to_string(value).unwrap_or_default();
        self.result(&format!("{text}\n"));
    }

    /// Something worth knowing; not with `--quiet`.
    pub(crate) fn note(self, text: &str) {
        if !self.quiet {
            to_stderr(text);
        }
    }

    /// Something worth knowing with `-v` only.
    pub(crate) fn detail(self, text: &str) {
        if self.verbose > 0 && !self.quiet {
            to_stderr(text);
        }
    }

    /// Something that is probably not as wanted.
    pub(crate) fn warning(self, text: &str) {
        to_stderr(&format!("warning: {text}"));
    }

    /// Failures, also with `--quiet`.
    pub(crate) fn error(self, text: &str) {
        to_stderr(text.trim_end());
    }
}

fn to_stderr(text: &str) {
    let mut err = io::stderr().lock();
    let _ = writeln!(err, "{text}");
}
