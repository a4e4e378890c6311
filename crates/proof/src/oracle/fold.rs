//! What a push counts: its revisions laid over one another in the most naive way, each item a list of executions.
//! Must not know bytes or tables.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail, ensure};

use super::names::Hash;

/// What one content says of one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Execution {
    /// 0 passed, 1 failed, 2 errored, 3 skipped.
    pub(super) status: u8,
    /// An attempt before the final one failed or errored.
    pub(super) bad_before: bool,
}

impl Execution {
    fn is_bad(self) -> bool {
        self.status == 1 || self.status == 2
    }
}

/// The items of one content.
pub(super) type Content = BTreeMap<Hash, Execution>;

/// How a revision came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    First,
    Revised,
    Kept,
    Promoted { of: u32, exact: bool },
}

/// One revision of a push.
pub(super) struct Revision {
    pub(super) number: u32,
    pub(super) kind: Kind,
    /// Empty for a promotion.
    pub(super) content: Content,
}

/// All executions of an item that count, oldest first, and the revision that had the last word on it.
pub(super) struct Counted {
    executions: Vec<Execution>,
    pub(super) revision: u32,
}

impl Counted {
    pub(super) fn status(&self) -> u8 {
        self.executions.last().map_or(0, |last| last.status)
    }

    /// Passed at last, but not in the beginning.
    pub(super) fn flaky(&self) -> bool {
        let Some((last, before)) = self.executions.split_last() else { return false };
        last.status == 0 && (last.bad_before || before.iter().any(|e| e.bad_before || e.is_bad()))
    }
}

/// What counts of a push.
pub(super) type View = BTreeMap<Hash, Counted>;

/// Lays the revisions over one another. They are numbered from 1 without a gap, and only number 1 is a first one.
///
/// # Errors
/// They are not, or one promotes what is not there before it.
pub(super) fn fold(revisions: &[Revision]) -> anyhow::Result<View> {
    let mut view = View::new();
    for (at, revision) in revisions.iter().enumerate() {
        let number = revision.number;
        ensure!(number as usize == at + 1, "revision {number} is where {} belongs", at + 1);
        ensure!((revision.kind == Kind::First) == (at == 0), "revision {number} is {:?}", revision.kind);
        let content = content_of(&revisions[..=at], number)?;
        if matches!(revision.kind, Kind::Promoted { exact: true, .. }) {
            view.clear();
        }
        for (hash, execution) in content {
            if revision.kind == Kind::Kept && view.contains_key(hash) {
                continue;
            }
            let counted = view.entry(*hash).or_insert_with(|| Counted { executions: Vec::new(), revision: number });
            counted.executions.push(*execution);
            counted.revision = number;
        }
    }
    Ok(view)
}

/// The content of revision `number`: its own, or that of the one it promotes.
pub(super) fn content_of(revisions: &[Revision], number: u32) -> anyhow::Result<&Content> {
    let mut number = number;
    loop {
        let revision = revisions.iter().find(|r| r.number == number);
        let revision = revision.with_context(|| format!("there is no revision {number} to promote"))?;
        let Kind::Promoted { of, .. } = revision.kind else { return Ok(&revision.content) };
        if of >= number {
            bail!("revision {number} promotes {of}, which is not before it");
        }
        number = of;
    }
}

/// Total, passed, failed, errored, skipped, flaky.
pub(super) type Counts = [u64; 6];

/// Counts of a view.
pub(super) fn counts(view: &View) -> Counts {
    count(view.values().map(|counted| (counted.status(), counted.flaky())))
}

/// Counts of a content by itself.
pub(super) fn counts_of(content: &Content) -> Counts {
    count(content.values().map(|e| (e.status, e.status == 0 && e.bad_before)))
}

fn count(items: impl Iterator<Item = (u8, bool)>) -> Counts {
    let mut counts = [0; 6];
    for (status, flaky) in items {
        counts[0] += 1;
        counts[1 + usize::from(status)] += 1;
        counts[5] += u64::from(flaky);
    }
    counts
}
