//! One content counted anew out of its blocks, part by part of the order of hashes: what it holds and its digests.

use domain::content::{Digests, leaf_bits};
use domain::verdict::Light;
use domain::{Counts, Outcome, Outcomes};
use rusqlite::params;

use super::super::content::{Lies, Snap, content};
use super::super::detail;
use super::super::parts::{Part, WHOLE_OUTCOMES};
use super::Report;
use crate::StoreError;

/// What one part of a content comes to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub(super) n: u64,
    pub(super) counts: Counts,
    pub(super) digests: Digests,
}

/// How many items the blocks of a content say that they hold.
pub(super) fn items(snap: &Snap<'_>, (project, blockset, _): Lies) -> Result<u64, StoreError> {
    let mut sum = snap.prepare_cached("SELECT coalesce(sum(n), 0) FROM block WHERE project = ?1 AND blockset = ?2")?;
    Ok(sum.query_row(params![project, blockset], |row| row.get::<_, i64>(0))? as u64)
}

/// Counts one part of a content of `total` outcomes; reports what contradicts itself there.
fn part(
    snap: &Snap<'_>,
    lies: Lies,
    total: u64,
    part: Part,
    (place, report): (&str, &mut Report),
) -> Result<Counted, StoreError> {
    let offered = content(snap, lies, part)?;
    if !offered.hashes.is_sorted_by(|a, b| a < b) {
        report.add("double-item", place, "its items are not strictly rising over its blocks");
    }
    let outcomes: Vec<Outcome> = detail::contents(snap, lies, &offered.hashes)?;
    if !outcomes.iter().map(Light::of).eq(offered.lights.iter().copied()) {
        report.add("codes-differ", place, "a verdict code says otherwise than the attempts beside it");
    }
    let counts: Counts = outcomes.iter().collect();
    let n = outcomes.len() as u64;
    match Outcomes::from_unordered(outcomes) {
        Ok(outcomes)
            if outcomes.hashes() == offered.hashes && outcomes.hashes().iter().all(|hash| part.holds(*hash)) =>
        {
            Ok(Counted { n, counts, digests: Digests::of_chunk(&outcomes, total, part.bits()) })
        }
        // Other items than the sets say: no digest of theirs would tell anything.
        Ok(_) => Ok(Counted { n, counts, digests: Digests::of_chunks(Vec::new()) }),
        Err(doubled) => {
            report.add("double-item", place, doubled.to_string());
            Ok(Counted { n, counts, digests: Digests::of_chunks(Vec::new()) })
        }
    }
}

/// Counts the part of the hashes that begin with the `bits` bits of `chunk`, in pieces that memory can hold.
pub(super) fn chunk(
    snap: &Snap<'_>,
    lies: Lies,
    total: u64,
    (chunk, bits): (u32, u8),
    (place, report): (&str, &mut Report),
) -> Result<Counted, StoreError> {
    let finest = leaf_bits(total).max(bits);
    let pieces = Part::bits_for(total, WHOLE_OUTCOMES).clamp(bits, finest);
    let more = pieces - bits;
    let mut sum = Counted { n: 0, counts: Counts::default(), digests: Digests::of_chunks(Vec::new()) };
    let mut digests = Vec::with_capacity(1 << more);
    for number in chunk << more..(chunk + 1) << more {
        let counted = part(snap, lies, total, Part::chunk(number, pieces), (place, report))?;
        sum.n += counted.n;
        sum.counts += counted.counts;
        digests.push(counted.digests);
    }
    sum.digests = Digests::of_chunks(digests);
    Ok(sum)
}

/// All chunks of 2^`bits`, one after the other.
pub(super) fn chunks(
    snap: &Snap<'_>,
    lies: Lies,
    total: u64,
    bits: u8,
    (place, report): (&str, &mut Report),
) -> Result<Vec<Counted>, StoreError> {
    (0..1_u32 << bits).map(|number| chunk(snap, lies, total, (number, bits), (place, report))).collect()
}

/// What chunks come to together.
pub(super) fn together(chunks: &[Counted]) -> Counted {
    let mut sum = Counted { n: 0, counts: Counts::default(), digests: Digests::of_chunks(Vec::new()) };
    for chunk in chunks {
        sum.n += chunk.n;
        sum.counts += chunk.counts;
    }
    sum.digests = Digests::of_chunks(chunks.iter().map(|chunk| chunk.digests).collect());
    sum
}
