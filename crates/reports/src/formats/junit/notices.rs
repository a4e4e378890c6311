//! What is said about a file: each kind once, with the first line and how often. Must not know elements.

use std::collections::VecDeque;

use crate::event::Note;
use crate::text::Oddities;

/// The kinds of oddity that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Control,
    InvalidUtf8,
    UnknownEntity,
    NegativeTime,
    UnusableTime,
    LongTime,
    UnknownStatus,
    SuiteVerdict,
    AbsolutePath,
    TextBehind,
}

const KINDS: usize = 10;

/// A counter and a first line per kind, and warnings that stand alone.
#[derive(Debug, Default)]
pub(super) struct Notices {
    seen: [(u64, u64); KINDS],
    said: VecDeque<Note>,
}

impl Notices {
    /// Counts one.
    pub(super) fn note(&mut self, kind: Kind, line: u64) {
        let (count, first) = &mut self.seen[kind as usize];
        *count += 1;
        if *count == 1 {
            *first = line;
        }
    }

    /// Counts what was odd in a text.
    pub(super) fn odd(&mut self, odd: Oddities, line: u64) {
        for (is, kind) in
            [(odd.control, Kind::Control), (odd.invalid, Kind::InvalidUtf8), (odd.entity, Kind::UnknownEntity)]
        {
            if is {
                self.note(kind, line);
            }
        }
    }

    /// Says something as it is.
    pub(super) fn say(&mut self, note: Note) {
        self.said.push_back(note);
    }

    /// Turns the counters into warnings, at the end of the file.
    pub(super) fn sum_up(&mut self) {
        let kinds = [
            Kind::Control,
            Kind::InvalidUtf8,
            Kind::UnknownEntity,
            Kind::NegativeTime,
            Kind::UnusableTime,
            Kind::LongTime,
            Kind::UnknownStatus,
            Kind::SuiteVerdict,
            Kind::AbsolutePath,
            Kind::TextBehind,
        ];
        for kind in kinds {
            let (count, line) = std::mem::take(&mut self.seen[kind as usize]);
            if count > 0 {
                self.said.push_back(Note::Warning { line: Some(line), text: text(kind, count) });
            }
        }
    }

    /// The next thing to say.
    pub(super) fn next(&mut self) -> Option<Note> {
        self.said.pop_front()
    }
}

fn text(kind: Kind, n: u64) -> String {
    let places = if n == 1 { "1 place".to_owned() } else { format!("{n} places") };
    match kind {
        Kind::Control => format!("characters that XML forbids, in {places}; they were dropped or replaced"),
        Kind::InvalidUtf8 => format!("bytes that are not UTF-8, in {places}; they were replaced"),
        Kind::UnknownEntity => format!("unknown entities, in {places}; they were left as written"),
        Kind::NegativeTime => format!("negative times, in {places}; these durations are left out"),
        Kind::UnusableTime => format!("times that can't be read, in {places}; these durations are left out"),
        Kind::LongTime => {
            format!(
                "tests of more than 3 hours, in {places}: the times look like another unit than seconds; left as is"
            )
        }
        Kind::UnknownStatus => format!("unknown status words, in {places}; these tests are errored, not passed"),
        Kind::SuiteVerdict => {
            format!("errors of a suite and not of a test, in {places}; they are not counted: look at the report")
        }
        Kind::AbsolutePath => {
            format!("suites named by an absolute path, in {places}: their items differ from machine to machine")
        }
        Kind::TextBehind => "there is text behind the report; it was ignored".to_owned(),
    }
}
