//! Which row a file belongs to, and how it is known there again: by a name that carries its content. Pure functions. Must not
//! send or read anything.

use domain::intent::{Intent, IntentState};

use crate::foreign::entry::{CycleId, Entry, Row};
use crate::outbox::{Attachment, LeftOut};

/// The entries of an intent that is there.
pub(super) fn settled(intent: &Intent) -> Option<(CycleId, Vec<Entry>)> {
    let is_there = matches!(intent.state, IntentState::Acked | IntentState::Found);
    let entries = serde_json::from_slice(&intent.body).ok().filter(|_| is_there)?;
    Some((CycleId::new(intent.cycle_there.clone()?), entries))
}

/// The row that says what the entry says: that of the same attempt, else the newest. Of several the first, so that two
/// writers choose the same one.
pub(super) fn row_of<'r>(entry: &Entry, rows: &'r [Row]) -> Option<&'r Row> {
    let says = |row: &&Row| match row.marker {
        domain::marker::Found::Whole(marker) => {
            marker.write == entry.marker.write && marker.content == entry.marker.content
        }
        _ => false,
    };
    let own: Vec<&Row> = rows.iter().filter(|row| row.case == entry.case).filter(says).collect();
    let exact = own.iter().find(|row| row.marker == domain::marker::Found::Whole(entry.marker));
    exact.or_else(|| own.iter().max_by_key(|row| row.at_ms)).copied()
}

pub(super) fn without_row(file: &Attachment) -> LeftOut {
    left_out(file, "the outcome of its item is not there")
}

pub(super) fn left_out(file: &Attachment, why: impl Into<String>) -> LeftOut {
    LeftOut { item: file.shown.clone(), file: file.file.clone(), why: why.into() }
}

/// How often a content stands among names.
pub(super) fn count(names: &[String], file: &Attachment) -> usize {
    let tag = format!("-{}", file.tag());
    names.iter().filter(|name| name.rfind(&tag).is_some_and(|at| ends(&name[at + tag.len()..]))).count()
}

/// True for what may stand behind a tag: nothing, the ending of a file's name, or what a product makes a second name of.
fn ends(rest: &str) -> bool {
    !rest.starts_with(|c: char| c.is_ascii_hexdigit())
}
