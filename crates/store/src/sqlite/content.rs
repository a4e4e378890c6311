//! Contents of pushes out of their blocks, whole or in part: verdicts, the fold over revisions, single items.
//! Must not know rounds: how pushes compete is counted elsewhere.

use std::cell::RefCell;
use std::ops::Deref;

use domain::verdict::{Claim, Light, Verdict, View};
use domain::{Digest, ItemHash, ItemName, OrdinalScope};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::connect::broken;
use super::parts::Part;
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

/// Where a content lies: project, number of its blocks, bits by which they are cut.
pub(super) type Lies = (i64, i64, u8);

/// Part of a content.
pub(super) fn content(snap: &Snap<'_>, (project, blockset, bits): Lies, part: Part) -> Result<Content, StoreError> {
    let mut statement = snap.prepare_cached(
        "SELECT b.n, b.codes, s.hashes FROM block b JOIN itemset s ON s.id = b.itemset
         WHERE b.project = ?1 AND b.blockset = ?2 AND b.bucket BETWEEN ?3 AND ?4 ORDER BY b.bucket",
    )?;
    let (first, last) = part.buckets(bits);
    let mut rows = statement.query(params![project, blockset, first, last])?;
    let mut content = Content::default();
    while let Some(row) = rows.next()? {
        let from = content.hashes.len();
        codec::unpack_hashes(blob(row, 2)?, &mut content.hashes)?;
        let codes = snap.unpack(blob(row, 1)?)?;
        let n = content.hashes.len() - from;
        if codes.len() != n || row.get::<_, u32>(0)? as usize != n {
            return Err(broken("a block and its set differ in length"));
        }
        // A bucket that is larger than the part holds others, too.
        let range = if part.bits() > bits { part.range(&content.hashes[from..]) } else { 0..n };
        content.hashes.truncate(from + range.end);
        content.hashes.drain(from..from + range.start);
        for code in &codes[range] {
            content.lights.push(codec::light_of(*code)?);
        }
    }
    Ok(content)
}

/// What a push counts in a part of the hash order after the given revisions (by number, from the first).
pub(super) fn fold(snap: &Snap<'_>, project: i64, revisions: &[RevisionRow], part: Part) -> Result<View, StoreError> {
    let mut view = View::default();
    for revision in revisions {
        let content = content(snap, revision.lies(project), part)?;
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
    (project, blockset, bits): Lies,
    wanted: &[ItemHash],
    each: &mut dyn FnMut(&BlockRow, &Places) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut statement = snap.prepare_cached(
        "SELECT b.id, b.itemset, b.n, b.codes, s.hashes FROM block b JOIN itemset s ON s.id = b.itemset
         WHERE b.project = ?1 AND b.blockset = ?2 AND b.bucket = ?3",
    )?;
    for (bucket, range) in codec::buckets(wanted, bits) {
        let mut rows = statement.query(params![project, blockset, bucket])?;
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
    revisions: &[RevisionRow],
    wanted: &[ItemHash],
) -> Result<Vec<Option<ItemName>>, StoreError> {
    let mut found: Vec<Option<ItemName>> = vec![None; wanted.len()];
    for revision in revisions.iter().filter(|r| !r.is_promotion()) {
        if found.iter().all(Option::is_some) {
            break;
        }
        find_names(snap, revision.lies(project), wanted, &mut found)?;
    }
    Ok(found)
}

/// Names of `wanted` (rising hashes) among the items of one content, in that order.
pub(super) fn names_in(snap: &Snap<'_>, lies: Lies, wanted: &[ItemHash]) -> Result<Vec<Option<ItemName>>, StoreError> {
    let mut found: Vec<Option<ItemName>> = vec![None; wanted.len()];
    find_names(snap, lies, wanted, &mut found)?;
    Ok(found)
}

fn find_names(
    snap: &Snap<'_>,
    lies: Lies,
    wanted: &[ItemHash],
    found: &mut [Option<ItemName>],
) -> Result<(), StoreError> {
    walk(snap, lies, wanted, &mut |block, places| {
        let missing: Vec<_> = places.iter().copied().filter(|(at, _)| found[*at].is_none()).collect();
        if missing.is_empty() { Ok(()) } else { names(snap, block.set, &missing, |at, name| found[at] = Some(name)) }
    })
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
