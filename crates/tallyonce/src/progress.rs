//! What is seen while a push is delivered: a bar on a terminal, plain lines in a log. Must not know targets.

use std::time::Duration;

use delivery::Progress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::Output;
use crate::settings::duration;

/// Shows the tries of one delivery.
pub(crate) struct Watcher {
    output: Output,
    bar: Option<ProgressBar>,
}

impl Watcher {
    /// Before the first try. `what` is a short name of the push.
    pub(crate) fn new(output: Output, what: &str) -> Self {
        let bar = output.progress().then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {wide_msg} {elapsed}") {
                bar.set_style(style);
            }
            bar.set_prefix(what.to_owned());
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self { output, bar }
    }

    /// One step.
    pub(crate) fn see(&mut self, progress: Progress) {
        match progress {
            Progress::Sending { attempt, bytes } => {
                let line = format!("try {attempt}: sending {bytes} bytes");
                match &self.bar {
                    Some(bar) => bar.set_message(line),
                    None => self.output.detail(&line),
                }
            }
            Progress::Waiting { attempt, wait_ms, cause, possibly_written } => {
                let truth = if possibly_written { "possibly written" } else { "not sent" };
                let wait = duration::show(Duration::from_millis(wait_ms));
                let line = format!("try {attempt}: {truth}: {cause}; again with the same key in {wait}");
                match &self.bar {
                    Some(bar) => bar.set_message(line),
                    None => self.output.note(&line),
                }
            }
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
