//! What is seen while a push is delivered: a bar on a terminal, plain lines in a log. Must not know targets.

use std::time::Duration;

use delivery::{Progress, Staged};
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::Output;
use crate::settings::duration;

/// Shows the tries of one delivery.
pub(crate) struct Watcher {
    output: Output,
    bar: Option<ProgressBar>,
    /// Tenths of the chunks that a line has told.
    told: Option<u32>,
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
        Self { output, bar, told: None }
    }

    /// One step.
    pub(crate) fn see(&mut self, progress: &Progress) {
        match progress {
            Progress::Staging { attempt, staged } => self.see_chunks(*attempt, *staged),
            Progress::Cut { chunks } => {
                self.told = None;
                self.say(&format!("too large for the receiver: cut into {chunks} chunks, and again"));
            }
            Progress::Sending { attempt, bytes } => {
                let line = format!("try {attempt}: sending {bytes} bytes");
                match &self.bar {
                    Some(bar) => bar.set_message(line),
                    None => self.output.detail(&line),
                }
            }
            Progress::Waiting { attempt, wait_ms, cause, possibly_written } => {
                let truth = if *possibly_written { "possibly written" } else { "not sent" };
                let wait = duration::show(Duration::from_millis(*wait_ms));
                let line = format!("try {attempt}: {truth}: {cause}; again with the same key in {wait}");
                self.say(&line);
            }
        }
    }

    /// Each chunk on a bar; in a log a line for each tenth.
    fn see_chunks(&mut self, attempt: u32, staged: Staged) {
        let Staged { chunks, there, sent, resumed } = staged;
        let before = if resumed && sent == 0 { " from before" } else { "" };
        let line = format!("try {attempt}: {there} of {chunks} chunks are there{before}");
        let tenth = there * 10 / chunks.max(1);
        match &self.bar {
            Some(bar) => bar.set_message(line),
            None if self.told.is_none_or(|told| tenth > told) => {
                self.told = Some(tenth);
                self.output.note(&line);
            }
            None => {}
        }
    }

    fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(line.to_owned()),
            None => self.output.note(line),
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
