//! Item sets: sorted, in their bucket, named by their digest, and with the names that their hashes are made of.

use domain::ItemHash;
use rusqlite::params;

use super::super::content::{Snap, blob};
use super::super::rows::Fixed;
use super::Report;
use crate::{StoreError, codec};

/// Checks every set.
pub(super) fn check(snap: &Snap<'_>, report: &mut Report) -> Result<(), StoreError> {
    let mut statement = snap.prepare(
        "SELECT s.id, s.digest, s.bits, s.bucket, s.n, s.hashes, n.names
         FROM itemset s LEFT JOIN setnames n ON n.id = s.id",
    )?;
    let mut rows = statement.query(params![])?;
    while let Some(row) = rows.next()? {
        let (id, bits, bucket): (i64, u8, u32) = (row.get(0)?, row.get(2)?, row.get(3)?);
        let place = format!("itemset {id}");
        let bytes = blob(row, 5)?;
        let mut hashes = Vec::new();
        if let Err(damaged) = codec::unpack_hashes(bytes, &mut hashes) {
            report.add("set-unreadable", place, damaged.to_string());
            continue;
        }
        if hashes.len() != row.get::<_, u32>(4)? as usize {
            report.add("set-n-differs", place.clone(), format!("it holds {} items", hashes.len()));
        }
        if codec::set_digest(bits, bucket, bytes) != row.get::<_, Fixed<16>>(1)?.0 {
            report.add("set-digest-differs", place.clone(), "its hashes have another digest");
        }
        order(&hashes, &place, report);
        if hashes.iter().any(|hash| codec::bucket_of(*hash, bits) != bucket) {
            report.add("wrong-bucket", place.clone(), format!("an item does not belong into bucket {bucket}"));
        }
        if let Some(names) = row.get_ref(6)?.as_blob_or_null().unwrap_or(None) {
            self::names(snap, names, &hashes, &place, report);
        }
    }
    Ok(())
}

fn order(hashes: &[ItemHash], place: &str, report: &mut Report) {
    for pair in hashes.windows(2) {
        if pair[0] == pair[1] {
            report.add("double-item", place, format!("item {} comes twice", pair[0]));
        } else if pair[0] > pair[1] {
            report.add("set-not-sorted", place, format!("item {} comes after {}", pair[1], pair[0]));
        }
    }
}

fn names(snap: &Snap<'_>, names: &[u8], hashes: &[ItemHash], place: &str, report: &mut Report) {
    let mut wrong = Vec::new();
    let read = codec::each_name(
        names,
        &mut snap.unpacker(),
        |_| true,
        |at, name| {
            if hashes.get(at).is_none_or(|hash| name.hash() != *hash) {
                wrong.push(name.to_string());
            }
        },
    );
    match read {
        Err(damaged) => report.add("names-unreadable", place, damaged.to_string()),
        Ok(n) if n != hashes.len() => report.add("names-differ", place, format!("{n} names of {}", hashes.len())),
        Ok(_) => {
            for name in wrong {
                report.add("names-differ", place, format!("{name} has another hash"));
            }
        }
    }
}
