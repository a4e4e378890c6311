//! One testcase while it is open: what its attributes and children said, and the verdict that follows from it.
//! Must not know tokens or suites.

use domain::{Attempt, DurationUs, ExternalId, IdSource, Status, limits};

use crate::text::{Bounded, Oddities, unescape_into};

/// A testcase being read. Reused from one to the next, so that its buffers are allocated once.
#[derive(Debug, Default)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) class: String,
    pub(super) line: u64,
    pub(super) duration_us: Option<DurationUs>,
    pub(super) duration_with_comma_us: Option<DurationUs>,
    /// True once any time was given, usable or not.
    pub(super) timed: bool,
    /// What a status or result attribute says.
    pub(super) said: Option<Said>,
    pub(super) attempts: Vec<Attempt>,
    pub(super) external_ids: Vec<ExternalId>,
    /// Files that it names, if they are looked for.
    pub(super) attachments: Vec<String>,
    pub(super) cut: u32,
    error: bool,
    failure: bool,
    skipped: bool,
    todo: bool,
    /// Messages of failures and errors, and of skips.
    bad: Bounded,
    skip: Bounded,
}

/// A word in `status` or `result`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// Executed, and by itself no verdict (`run`), or passed.
    Ran,
    /// A verdict other than passed.
    Verdict(Status),
    /// A word that nobody knows: no verdict is not a pass.
    Unknown,
}

/// A child that gives a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Error,
    Failure,
    Skipped,
}

impl Case {
    /// Empty again.
    pub(super) fn clear(&mut self) {
        self.name.clear();
        self.class.clear();
        (self.duration_us, self.duration_with_comma_us, self.timed, self.said) = (None, None, false, None);
        (self.error, self.failure, self.skipped, self.todo, self.cut) = (false, false, false, false, 0);
        self.attempts.clear();
        self.external_ids.clear();
        self.attachments.clear();
        self.bad.clear();
        self.skip.clear();
    }

    /// A child of this kind began; `todo` is node:test's mark of an expected failure.
    pub(super) fn judge(&mut self, verdict: Verdict, todo: bool) {
        match verdict {
            Verdict::Error => self.error = true,
            Verdict::Failure => self.failure = true,
            Verdict::Skipped => self.skipped = true,
        }
        self.todo |= todo;
    }

    /// Adds the message of such a child; several are kept one behind the other.
    pub(super) fn add_message(&mut self, verdict: Verdict, text: &str) {
        let into = if verdict == Verdict::Skipped { &mut self.skip } else { &mut self.bad };
        if !text.is_empty() {
            if !into.is_blank() {
                into.push(b"\n\n");
            }
            into.push(text.as_bytes());
        }
    }

    /// Adds an attempt; of very many the first and the latest are kept.
    pub(super) fn add_attempt(&mut self, attempt: Attempt) {
        if self.attempts.len() >= limits::ATTEMPTS_MAX {
            self.attempts.remove(limits::ATTEMPTS_MAX / 2);
            self.cut += 1;
        }
        self.attempts.push(attempt);
    }

    /// Takes in a `status` or `result`; the one that says more wins.
    pub(super) fn say(&mut self, said: Said) {
        let rank = |s: Option<Said>| match s {
            None => 0,
            Some(Said::Ran) => 1,
            Some(Said::Unknown) => 2,
            Some(Said::Verdict(_)) => 3,
        };
        if rank(Some(said)) > rank(self.said) {
            self.said = Some(said);
        }
    }

    /// By precedence: error, failure, skipped, attribute, passed; only a todo stands above a failure.
    pub(super) fn status(&self) -> Status {
        if self.todo && !self.error {
            Status::Skipped
        } else if self.error {
            Status::Errored
        } else if self.failure {
            Status::Failed
        } else if self.skipped {
            Status::Skipped
        } else {
            match self.said {
                Some(Said::Verdict(status)) => status,
                Some(Said::Unknown) => Status::Errored,
                Some(Said::Ran) | None => Status::Passed,
            }
        }
    }

    /// True if a child gave a verdict.
    pub(super) fn has_verdict(&self) -> bool {
        self.error || self.failure || self.skipped
    }

    /// The message that goes with the verdict, and whether it was cut.
    pub(super) fn message(&mut self, status: Status, odd: &mut Oddities) -> Option<String> {
        let mut of = match status {
            Status::Skipped => &mut self.skip,
            Status::Failed | Status::Errored => &mut self.bad,
            Status::Passed => return None,
        };
        if status == Status::Skipped && of.is_blank() && self.todo {
            of = &mut self.bad;
        }
        if of.is_blank() {
            return (status == Status::Errored && self.said == Some(Said::Unknown) && !self.error)
                .then(|| "the report gives a status that is no known verdict".to_owned());
        }
        let (text, cut) = of.finish(odd);
        self.cut += u32::from(cut);
        Some(text)
    }
}

/// The meaning of a word in `status` or `result`; words are compared without case.
pub(super) fn said(word: &str) -> Option<Said> {
    let word = word.trim();
    let of = |words: &[&str]| words.iter().any(|w| w.eq_ignore_ascii_case(word));
    if word.is_empty() {
        None
    } else if of(&["run", "ran", "passed", "pass", "ok", "success", "successful", "succeeded", "completed", "complete"])
        || of(&["finished", "executed", "done", "expected", "fixed", "flaky", "true"])
    {
        Some(Said::Ran)
    } else if of(&["notrun", "not run", "not_run", "not-run", "disabled", "skipped", "skip", "ignored", "ignore"])
        || of(&["suppressed", "pending", "excluded", "inconclusive", "untested", "todo", "notexecuted", "not executed"])
    {
        Some(Said::Verdict(Status::Skipped))
    } else if of(&["failed", "fail", "failure", "false", "unexpected", "regression"]) {
        Some(Said::Verdict(Status::Failed))
    } else if of(&[
        "errored",
        "error",
        "broken",
        "crashed",
        "aborted",
        "timedout",
        "timeout",
        "interrupted",
        "undefined",
    ]) {
        Some(Said::Verdict(Status::Errored))
    } else {
        Some(Said::Unknown)
    }
}

/// A text that is being gathered: of a verdict, an attempt, a property or a time.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) what: What,
    /// The `message` attribute, or the `type` where there is none.
    pub(super) message: String,
    pub(super) duration_us: Option<DurationUs>,
    pub(super) text: Bounded,
}

/// What the text is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Verdict(Verdict),
    Attempt(Status),
    ExternalIds(IdSource),
    Time,
}

impl Gathered {
    /// Appends character data, with references resolved; true if one was unknown.
    pub(super) fn push_text(&mut self, raw: &[u8]) -> bool {
        if memchr::memchr(b'&', raw).is_none() {
            self.text.push(raw);
            return false;
        }
        let mut plain = Vec::with_capacity(raw.len());
        let unknown = unescape_into(raw, &mut plain);
        self.text.push(&plain);
        unknown
    }

    /// Message and text as one, and whether it was cut: writers repeat the message at the head of the text, or not.
    pub(super) fn finish(&mut self, odd: &mut Oddities) -> (String, bool) {
        let message = std::mem::take(&mut self.message);
        let (text, cut) = self.text.finish(odd);
        if text.is_empty() {
            (message, cut)
        } else if text.starts_with(&message) || text.contains(&message) {
            (text, cut)
        } else {
            (format!("{message}\n{text}"), cut)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Error, Failure, Skipped};
    use super::*;

    #[test]
    fn the_worst_child_wins_and_an_attribute_counts_only_without_one() {
        let status = |children: &[Verdict], word: &str, todo| {
            let mut case = Case::default();
            for child in children {
                case.judge(*child, todo);
            }
            if let Some(said) = said(word) {
                case.say(said);
            }
            case.status()
        };
        assert_eq!(status(&[Skipped, Failure, Error], "", false), Status::Errored);
        assert_eq!(status(&[Failure, Skipped], "passed", false), Status::Failed);
        assert_eq!(status(&[Skipped], "failed", false), Status::Skipped);
        assert_eq!(status(&[Failure, Skipped], "", true), Status::Skipped);
        assert_eq!(status(&[], "notrun", false), Status::Skipped);
        assert_eq!(status(&[], "Failed", false), Status::Failed);
        assert_eq!(status(&[], "run", false), Status::Passed);
        assert_eq!(status(&[], "blue", false), Status::Errored);
        assert_eq!(status(&[], "", false), Status::Passed);
    }

    #[test]
    fn the_attribute_that_says_more_wins() {
        let mut case = Case::default();
        case.say(Said::Verdict(Status::Skipped));
        case.say(Said::Ran);
        assert_eq!(case.status(), Status::Skipped);
    }
}
