//! Contents of pushes out of their blocks: verdicts, the fold over revisions, single items.
//! Must not know rounds: how pushes compete is counted elsewhere.

use std::cell::RefCell;
use std::ops::Deref;

use domain::verdict::{Claim, Light, Verdict, View};
use domain::{Digest, ItemHash, ItemName, OrdinalScope};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::connect::broken;
use super::rows::RevisionRow;
use crate::StoreError;
use crate::codec::{self, Unpacker};

/// A connection inside a transaction, with what reading blocks needs.
pub(super) struct Snap<'c> {
    connection: &'c Connection,
    unpacker: RefCell<Unpacker>,
}

impl Deref for Snap<'_> {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl<'c> Snap<'c> {
    pub(super) fn over(connection: &'c Connection) -> Self {
        Self { connection, unpacker: RefCell::new(Unpacker::new()) }
    }

    /// The plain bytes of a frame.
    pub(super) fn unpack(&self, frame: &[u8]) -> Result<Vec<u8>, StoreError> {
        Ok(self.unpacker.borrow_mut().frame(frame)?)
    }

    pub(super) fn unpacker(&self) -> std::cell::RefMut<'_, Unpacker> {
        self.unpacker.borrow_mut()
    }
}

/// The bytes of a column.
pub(super) fn blob<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r [u8], StoreError> {
    row.get_ref(column)?.as_blob().map_err(|e| broken(e.to_string()))
}

/// Items and verdicts of one content.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) hashes: Vec<ItemHash>,
    pub(super) lights: Vec<Light>,
}

/// The content that lies in the blocks of a revision.
pub(super) fn content(snap: &Snap<'_>, project: i64, push: i64, revision: u32) -> Result<Content, StoreError> {
    let mut statement = snap.prepare_cached(
        "SELECT b.n, b.codes, s.hashes FROM block b JOIN itemset s ON s.id = b.itemset
         WHERE b.project = ?1 AND b.push = ?2 AND b.revision = ?3 ORDER BY b.bucket",
    )?;
    let mut rows = statement.query(params![project, push, revision])?;
    let mut content = Content::default();
    while let Some(row) = rows.next()? {
        let n = row.get::<_, u32>(0)? as usize;
        codec::unpack_hashes(blob(row, 2)?, &mut content.hashes)?;
        for code in snap.unpack(blob(row, 1)?)? {
            content.lights.push(codec::light_of(code)?);
        }
        if content.hashes.len() != content.lights.len() || n > content.hashes.len() {
            return Err(broken("a block and its set differ in length"));
        }
    }
    Ok(content)
}

/// What a push counts after the given revisions (by number, from the first).
pub(super) fn fold(snap: &Snap<'_>, project: i64, push: i64, revisions: &[RevisionRow]) -> Result<View, StoreError> {
    let mut view = View::default();
    for revision in revisions {
        let content = content(snap, project, push, revision.source())?;
        view = if revision.number() == 1 {
            // A first content as it is: no merge with nothing.
            let verdicts = content.lights.iter().map(|light| Verdict { light: *light, revision: 1 }).collect();
            View { hashes: content.hashes, verdicts }
        } else {
            view.laid_over(revision.known.kind, revision.number(), &content.hashes, &content.lights)
        };
    }
    Ok(view)
}

/// A push's verdict as it competes in its round.
pub(super) fn claim(verdict: Verdict, revisions: &[RevisionRow]) -> Claim {
    let revision = (verdict.revision as usize).checked_sub(1).and_then(|at| revisions.get(at));
    let revision = revision.map(|r| &r.known);
    let comparable = revision.filter(|r| r.sender.ordinal_scope == OrdinalScope::Round);
    Claim {
        light: verdict.light,
        elevated: revision.is_some_and(|r| r.kind.is_elevated()),
        attempt: comparable.and_then(|r| r.sender.ordinal),
    }
}

/// A block that holds some of the items asked for.
pub(super) struct BlockRow {
    pub(super) id: i64,
    pub(super) set: i64,
    pub(super) n: usize,
    pub(super) codes: Vec<u8>,
}

/// Places of wanted items: index among those asked for, position in the block.
pub(super) type Places = [(usize, usize)];

/// Finds `wanted` (rising hashes) in the blocks of one content, block by block.
pub(super) fn walk(
    snap: &Snap<'_>,
    (project, push, revision, bits): (i64, i64, u32, u8),
    wanted: &[ItemHash],
    each: &mut dyn FnMut(&BlockRow, &Places) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut statement = snap.prepare_cached(
        "SELECT b.id, b.itemset, b.n, b.codes, s.hashes FROM block b JOIN itemset s ON s.id = b.itemset
         WHERE b.project = ?1 AND b.push = ?2 AND b.revision = ?3 AND b.bucket = ?4",
    )?;
    for (bucket, range) in codec::buckets(wanted, bits) {
        let mut rows = statement.query(params![project, push, revision, bucket])?;
        let Some(row) = rows.next()? else { continue };
        let hashes = blob(row, 4)?;
        let places: Vec<(usize, usize)> =
            range.filter_map(|at| codec::find_hash(hashes, wanted[at]).map(|place| (at, place))).collect();
        if places.is_empty() {
            continue;
        }
        let codes = snap.unpack(blob(row, 3)?)?;
        let block = BlockRow { id: row.get(0)?, set: row.get(1)?, n: row.get::<_, u32>(2)? as usize, codes };
        if block.codes.len() != block.n || hashes.len() != 16 * block.n {
            return Err(broken(format!("block {} and its set differ in length", block.id)));
        }
        each(&block, &places)?;
    }
    Ok(())
}

/// Names of items at these places of a set.
pub(super) fn names(
    snap: &Snap<'_>,
    set: i64,
    places: &Places,
    mut each: impl FnMut(usize, ItemName),
) -> Result<(), StoreError> {
    let mut statement = snap.prepare_cached("SELECT names FROM setnames WHERE id = ?1")?;
    let mut rows = statement.query([set])?;
    let row = rows.next()?.ok_or_else(|| broken(format!("set {set} has no names")))?;
    let frame = blob(row, 0)?;
    let find = |place: usize| places.binary_search_by_key(&place, |(_, p)| *p).ok();
    codec::each_name(
        frame,
        &mut snap.unpacker(),
        |place| find(place).is_some(),
        |place, name| {
            if let Some(at) = find(place) {
                each(places[at].0, name);
            }
        },
    )?;
    Ok(())
}

/// Names of `wanted` (rising hashes) among the items of a push, in that order; every one of them is recorded there.
pub(super) fn names_of(
    snap: &Snap<'_>,
    project: i64,
    push: i64,
    revisions: &[RevisionRow],
    wanted: &[ItemHash],
) -> Result<Vec<Option<ItemName>>, StoreError> {
    let mut found: Vec<Option<ItemName>> = vec![None; wanted.len()];
    for revision in revisions.iter().filter(|r| !r.is_promotion()) {
        if found.iter().all(Option::is_some) {
            break;
        }
        walk(snap, (project, push, revision.number(), revision.bits), wanted, &mut |block, places| {
            let missing: Vec<_> = places.iter().copied().filter(|(at, _)| found[*at].is_none()).collect();
            if missing.is_empty() {
                Ok(())
            } else {
                names(snap, block.set, &missing, |at, name| found[at] = Some(name))
            }
        })?;
    }
    Ok(found)
}

/// A large text.
pub(super) fn large_text(snap: &Snap<'_>, project: i64, digest: Digest) -> Result<String, StoreError> {
    let body: Option<Vec<u8>> = snap
        .prepare_cached("SELECT body FROM bigtext WHERE project = ?1 AND digest = ?2")?
        .query_row(params![project, digest.0], |row| row.get(0))
        .optional()?;
    let body = body.ok_or_else(|| broken(format!("the text {digest} is missing")))?;
    // Not the shared unpacker: it is in use by whoever asks for this text.
    let plain = Unpacker::new().frame(&body)?;
    String::from_utf8(plain).map_err(|_| broken(format!("the text {digest} is not UTF-8")))
}
