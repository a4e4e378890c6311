//! Texts: every large one that a block refers to is noted as used by it, so that it stays for as long as the block.

use std::collections::BTreeSet;

use domain::Digest;

use super::super::content::{Snap, blob};
use super::super::rows::Fixed;
use super::Report;
use crate::{StoreError, codec};

/// Checks every block that has texts.
pub(super) fn check(snap: &Snap<'_>, report: &mut Report) -> Result<(), StoreError> {
    let mut statement =
        snap.prepare("SELECT b.id, b.codes, t.body FROM blocktext t JOIN block b ON b.id = t.id ORDER BY b.id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let place = format!("block {id}");
        let codes = snap.unpack(blob(row, 1)?);
        let refers = codes.and_then(|codes| refers(snap, blob(row, 2)?, &codes));
        let refers = match refers {
            Ok(refers) => refers,
            Err(error) => {
                report.add("texts-unreadable", place, error.to_string());
                continue;
            }
        };
        let noted = noted(snap, id)?;
        for digest in refers.symmetric_difference(&noted) {
            let what = if noted.contains(digest) { "noted as used and is not" } else { "used and not noted as used" };
            report.add("large-text-use-differs", place.clone(), format!("the large text {digest} is {what}"));
        }
    }
    Ok(())
}

fn refers(snap: &Snap<'_>, body: &[u8], codes: &[u8]) -> Result<BTreeSet<Digest>, StoreError> {
    let mut found = BTreeSet::new();
    let mut note = |digest: Digest| {
        found.insert(digest);
        Ok::<_, StoreError>(String::new())
    };
    codec::unpack_texts(body, codes, &mut snap.unpacker(), &mut note, &mut |_| true, &mut |_, _| {})?;
    Ok(found)
}

fn noted(snap: &Snap<'_>, block: i64) -> Result<BTreeSet<Digest>, StoreError> {
    let mut statement = snap.prepare_cached("SELECT digest FROM bigtext_use WHERE block = ?1")?;
    let noted = statement.query_map([block], |row| Ok(Digest(row.get::<_, Fixed<32>>(0)?.0)))?;
    Ok(noted.collect::<Result<_, _>>()?)
}
