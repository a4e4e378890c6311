//! Epochs: their manifest against their columns, chunks that are there against their blocks, and, once committed, against
//! the manifest.

use domain::content::Digests;
use domain::staging::Fate;
use domain::{CycleName, PushId, RoundId};

use super::super::content::Snap;
use super::super::stage::{self, KeptManifest, StageRow};
use super::Report;
use super::recount::{self, Counted};
use crate::StoreError;

/// Checks every epoch whose chunks are there.
pub(super) fn check(snap: &Snap<'_>, report: &mut Report) -> Result<(), StoreError> {
    let ids: Vec<i64> =
        snap.prepare("SELECT id FROM stage ORDER BY id")?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for id in ids {
        let checked = stage::all(snap, "id = ?1", [id])
            .and_then(|rows| rows.iter().try_for_each(|stage| epoch(snap, stage, report)));
        report.part(&format!("stage {id}"), checked)?;
    }
    Ok(())
}

fn epoch(snap: &Snap<'_>, stage: &StageRow, report: &mut Report) -> Result<(), StoreError> {
    let place = format!("stage {}", stage.id);
    let (key, manifest) = KeptManifest::of(snap, stage.id)?;
    if PushId::of(&manifest.place.project, &key) != stage.uid {
        report.add("uid-differs", place.clone(), "its push is not that of its project and key");
    }
    let mut statement = snap.prepare_cached("SELECT cycle, round FROM stage WHERE id = ?1")?;
    let (cycle, round): (String, String) = statement.query_row([stage.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (at, of) = (&manifest.place, (CycleName::as_str, RoundId::as_str));
    let agrees = (of.0(&at.cycle), of.1(&at.round)) == (&*cycle, &*round) && manifest.content == stage.content;
    if !agrees {
        report.add("manifest-differs", place.clone(), "its manifest says otherwise than its columns");
    }
    let promises = stage::promises(snap, stage)?;
    if stage.has_blocks && stage.fate == Fate::Open {
        open(snap, stage, &promises, report)?;
    }
    Ok(())
}

/// Chunks that are there hold what they say.
fn open(
    snap: &Snap<'_>,
    stage: &StageRow,
    promises: &[(domain::Digest, u32)],
    report: &mut Report,
) -> Result<(), StoreError> {
    let place = format!("stage {}", stage.id);
    let lies = (stage.project, stage.blockset, stage.block_bits());
    for row in stage::chunks(snap, stage)? {
        let counted = recount::chunk(snap, lies, stage.n, (row.number, stage.bits), (&place, report))?;
        chunk(&place, &row, &counted, report);
        let promised = promises.get(row.number as usize).map(|(_, n)| u64::from(*n));
        if promised != Some(row.n) {
            let what = format!("chunk {} holds {}, and {promised:?} were promised", row.number, row.n);
            report.add("chunk-differs", place.clone(), what);
        }
    }
    Ok(())
}

fn chunk(place: &str, row: &stage::ChunkRow, counted: &Counted, report: &mut Report) {
    if (row.n, row.counts, row.digests) != (counted.n, counted.counts, counted.digests) {
        let what = format!("chunk {} says otherwise than a recount of its blocks", row.number);
        report.add("chunk-differs", place, what);
    }
}

/// A committed epoch whose blocks were counted as those of its revision.
pub(super) fn committed(
    snap: &Snap<'_>,
    stage: &StageRow,
    counted: &[Counted],
    report: &mut Report,
) -> Result<(), StoreError> {
    let place = format!("stage {}", stage.id);
    let rows = stage::chunks(snap, stage)?;
    for row in &rows {
        if let Some(counted) = counted.get(row.number as usize) {
            chunk(&place, row, counted, report);
        }
    }
    let (_, manifest) = KeptManifest::of(snap, stage.id)?;
    let promised: u64 = stage::promises(snap, stage)?.iter().map(|(_, n)| u64::from(*n)).sum();
    if promised != stage.n || manifest.counts.total != stage.n {
        let (n, total) = (stage.n, manifest.counts.total);
        report.add(
            "manifest-differs",
            place.clone(),
            format!("of {n} outcomes, {total} by its counts, {promised} by its chunks"),
        );
    }
    let made = Digests::of_chunks(rows.iter().map(|row| row.digests).collect());
    if rows.len() == stage.chunks() as usize && made != manifest.digests() {
        report.add("chunk-digests-differ", place, "the digests of its chunks don't make that of its content");
    }
    Ok(())
}
