//! Mending of what can be derived: lengths of sets and blocks, counts of contents and pushes. Everything else that the
//! check finds stays damage. Found in a snapshot, written in a short job that looks again at what it overwrites.

use domain::Counts;
use rusqlite::{Connection, params};

use super::super::content::{Snap, blob};
use super::super::points::{Op, Tx};
use super::super::rows::{Fixed, pack_counts};
use super::{Report, contents};
use crate::{Damage, StoreError, codec};

/// What one mending writes.
enum What {
    /// Items of a set: from, to.
    Set(i64, u32, u32),
    /// Items of a block: from, to.
    Block(i64, u32, u32),
    /// Counts of a revision: from, to.
    Revision((i64, i64, u32), [u8; 48], [u8; 48]),
    /// Counts of a push at a revision: from, to.
    Push((i64, u32), [u8; 48], [u8; 48]),
}

/// One derived value that is wrong.
pub(in crate::sqlite) struct Mend {
    what: What,
    damage: Damage,
}

/// All that are wrong.
pub(in crate::sqlite) type Mends = Vec<Mend>;

impl Mend {
    pub(super) fn push(id: i64, revision: u32, from: &Counts, to: &Counts) -> Self {
        let what = What::Push((id, revision), pack_counts(from), pack_counts(to));
        Self { what, damage: counted(format!("push {id}"), from, to) }
    }

    pub(super) fn revision(of: (i64, i64, u32), from: &Counts, to: &Counts) -> Self {
        let place = format!("push {} revision {}", of.1, of.2);
        let what = What::Revision(of, pack_counts(from), pack_counts(to));
        Self { what, damage: counted(place, from, to) }
    }
}

fn counted(place: String, from: &Counts, to: &Counts) -> Damage {
    Damage { kind: "counts-differ", place, what: format!("it said {from:?}, and says {to:?} now") }
}

fn lengthened(kind: &'static str, place: String, from: u32, to: u32) -> Damage {
    Damage { kind, place, what: format!("it said {from} items, and says {to} now") }
}

/// Lengths that are wrong, where digest and codes say the right one.
pub(in crate::sqlite) fn lengths(snap: &Snap<'_>) -> Result<Mends, StoreError> {
    let mut mends = Mends::default();
    let mut sets = snap.prepare(
        "SELECT id, digest, bits, bucket, n, hashes FROM itemset WHERE n <> length(hashes) / 16 ORDER BY id",
    )?;
    let mut rows = sets.query([])?;
    while let Some(row) = rows.next()? {
        let (id, hashes, from): (i64, _, u32) = (row.get(0)?, blob(row, 5)?, row.get(4)?);
        if codec::set_digest(row.get(2)?, row.get(3)?, hashes) == row.get::<_, Fixed<16>>(1)?.0 {
            let to = (hashes.len() / 16) as u32;
            let damage = lengthened("set-n-differs", format!("itemset {id}"), from, to);
            mends.push(Mend { what: What::Set(id, from, to), damage });
        }
    }
    let mut blocks = snap.prepare(
        "SELECT b.id, b.n, b.codes, length(s.hashes) / 16 FROM block b JOIN itemset s ON s.id = b.itemset
         WHERE b.n <> length(s.hashes) / 16 ORDER BY b.id",
    )?;
    let mut rows = blocks.query([])?;
    while let Some(row) = rows.next()? {
        let (id, from, to): (i64, u32, u32) = (row.get(0)?, row.get(1)?, row.get(3)?);
        if snap.unpack(blob(row, 2)?).is_ok_and(|codes| codes.len() == to as usize) {
            let damage = lengthened("block-n-differs", format!("block {id}"), from, to);
            mends.push(Mend { what: What::Block(id, from, to), damage });
        }
    }
    Ok(mends)
}

/// Counts that are wrong, of contents that are what their digests say.
pub(in crate::sqlite) fn counts(snap: &Snap<'_>) -> Result<Mends, StoreError> {
    contents::check(snap, &mut Report::default())
}

/// Writes them, each where it still is as it was found; gives those that were written.
pub(in crate::sqlite) fn apply(connection: &Connection, mends: Mends) -> Result<Vec<Damage>, StoreError> {
    let tx = Tx::of(connection, Op::REPAIR);
    let mut mended = Vec::new();
    for Mend { what, damage } in mends {
        let changed = match what {
            What::Set(id, from, to) => tx
                .step("mend-itemset", "UPDATE itemset SET n = ?3 WHERE id = ?1 AND n = ?2")?
                .run(params![id, from, to])?,
            What::Block(id, from, to) => {
                tx.step("mend-block", "UPDATE block SET n = ?3 WHERE id = ?1 AND n = ?2")?.run(params![id, from, to])?
            }
            What::Revision((project, push, revision), from, to) => {
                let sql = "UPDATE revision SET counts = ?5
                           WHERE project = ?1 AND push = ?2 AND revision = ?3 AND counts = ?4";
                tx.step("mend-revision", sql)?.run(params![project, push, revision, from, to])?
            }
            What::Push((id, revision), from, to) => {
                let sql = "UPDATE push SET counts = ?4 WHERE id = ?1 AND revision = ?2 AND counts = ?3";
                let changed = tx.step("mend-push", sql)?.run(params![id, revision, from, to])?;
                // What was counted out of the old number must not be remembered.
                let sql = "UPDATE round SET version = version + 1 WHERE id = (SELECT round FROM push WHERE id = ?1)";
                tx.step("update-round", sql)?.run([id])?;
                changed
            }
        };
        if changed > 0 {
            mended.push(damage);
        }
    }
    Ok(mended)
}
