//! The race of products that look whether a case is in a cycle and add it then: several writers add one case to an empty
//! cycle at once. Must not conclude anything.

use futures_util::future::join_all;

use super::measured::Added;
use super::scratch::Scratch;
use crate::foreign::entry::{CycleId, Entry};
use crate::foreign::patience::{GaveUp, Patience};
use crate::foreign::trouble::Trouble;

/// Tries it with one case after another until the race has been seen: that it did not happen once is no proof. Null if
/// none of it is taken.
pub(super) async fn added_at_once(
    scratch: &Scratch<'_>,
    cycle: &CycleId,
    entries: &[Entry],
    writers: usize,
    patience: &mut Patience<'_>,
) -> Result<Option<Added>, GaveUp> {
    patience.measures("what several writers leave that add one case at once");
    let mut seen: Option<Added> = None;
    for entry in entries {
        let Some(added) = one_case(scratch, cycle, entry, writers, patience).await? else { break };
        seen = Some(added);
        if added.places > 1 {
            break;
        }
    }
    Ok(seen)
}

/// Adds, writes one outcome, and counts what the case has then.
async fn one_case(
    scratch: &Scratch<'_>,
    cycle: &CycleId,
    entry: &Entry,
    writers: usize,
    patience: &mut Patience<'_>,
) -> Result<Option<Added>, GaveUp> {
    let (adapter, quiet_ms, cases) = (scratch.adapter, scratch.quiet_ms, [entry.case.clone()]);
    let answers = join_all((0..writers).map(|_| adapter.add_cases(cycle, &cases))).await;
    let silent = |answer: &Result<_, Trouble>| matches!(answer, Err(Trouble::Unknown(_)));
    if answers.iter().any(silent) {
        patience.wait(quiet_ms, "until an addition without an answer is carried out").await?;
    }
    let taken = answers.iter().filter(|answer| answer.as_ref().is_ok_and(Vec::is_empty)).count();
    let batch = [entry.clone()];
    let wrote = super::call::write(adapter, patience, quiet_ms, cycle, &batch).await?;
    if wrote.answer.is_refused() {
        return Ok(None);
    }
    let rows = patience.reading(|| adapter.rows(cycle, &cases)).await?;
    Ok(Some(Added { writers, taken, places: rows.iter().filter(|row| row.case == entry.case).count() }))
}
