//! Collections: epochs that were seen idle twice are given up, and dead epochs are swept, a little at a time.
//! Must not decide.

use domain::mutant;
use domain::staging::{Fate, KnownEpoch, may_abandon};
use rusqlite::{Connection, params};

use super::super::points::{Op, Tx};
use super::{rows, sweep, write};
use crate::{Collected, Lifetime, Now, StoreError};

/// Epochs that one call looks at: its transaction is short.
const EPOCHS_MAX: usize = 256;

/// Whether there is anything to look at: a store in which nobody stages is not written to.
pub(in crate::sqlite) fn is_due(connection: &Connection, of: Lifetime, now: &Now) -> Result<bool, StoreError> {
    let sql = "SELECT EXISTS(SELECT 1 FROM stage WHERE fate = 0 AND touched_ms <= ?1)
                   OR EXISTS(SELECT 1 FROM stage WHERE fate <> 0 AND blocks = 0)";
    let idle_since = now.ms.saturating_sub(of.idle_ms) as i64;
    let due: bool = connection.prepare_cached(sql)?.query_row([idle_since], |row| row.get(0))?;
    Ok(due || mutant!(M23))
}

/// Runs one collection.
pub(in crate::sqlite) fn collect(connection: &Connection, of: Lifetime, now: &Now) -> Result<Collected, StoreError> {
    let tx = Tx::of(connection, Op::COLLECT);
    let mut collected = Collected::default();
    collected.more = look(tx, of, now, &mut collected)?;
    let mut blocks_left = of.blocks_max.max(1);
    let condition = if mutant!(M23) { "blocks = 0" } else { "fate <> 0 AND blocks = 0" };
    let dead = rows::all(&tx, &format!("{condition} ORDER BY id LIMIT ?1"), [EPOCHS_MAX as i64])?;
    collected.more |= dead.len() == EPOCHS_MAX;
    for stage in dead {
        let (deleted, all) = sweep::sweep(tx, &stage, blocks_left)?;
        collected.blocks += deleted as u64;
        blocks_left -= deleted;
        if !all || blocks_left == 0 {
            collected.more = true;
            break;
        }
    }
    Ok(collected)
}

/// Looks at idle epochs: notes those that are seen for the first time, gives up those that were seen long ago. True if
/// there are more.
fn look(tx: Tx<'_>, of: Lifetime, now: &Now, collected: &mut Collected) -> Result<bool, StoreError> {
    let (Some(idle_since), Some(seen_since)) = (now.ms.checked_sub(of.idle_ms), now.ms.checked_sub(of.second_look_ms))
    else {
        return Ok(false);
    };
    let mut statement = tx.prepare_cached(
        "SELECT id, idle_seen_ms IS NOT NULL FROM stage WHERE fate = 0 AND touched_ms <= ?1
           AND (idle_seen_ms IS NULL OR idle_seen_ms <= ?2) ORDER BY touched_ms LIMIT ?3",
    )?;
    let values = params![idle_since as i64, seen_since as i64, EPOCHS_MAX as i64];
    let found = statement.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let found: Vec<(i64, bool)> = found.collect::<Result<_, _>>()?;
    for (id, seen_before) in &found {
        for stage in rows::all(&tx, "id = ?1", [id])? {
            // The lifetime is its own idle time; that of a take-over is shorter.
            let known = KnownEpoch { idle: true, ..rows::known(&tx, &stage, now.ms)? };
            if may_abandon(&known, *seen_before) {
                write::end(tx, stage.id, Fate::Abandoned)?;
                collected.abandoned += 1;
            } else {
                let sql = "UPDATE stage SET idle_seen_ms = ?2 WHERE id = ?1 AND idle_seen_ms IS NULL";
                tx.step("see-idle", sql)?.run(params![stage.id, now.ms as i64])?;
            }
        }
    }
    Ok(found.len() == EPOCHS_MAX)
}
