//! Cycles that nobody tagged and that have one name and nearly one time: a client that heard nothing of the one that it made,
//! and made another. Must not call any of it certain.

use std::collections::{BTreeMap, BTreeSet};

use super::read::own_name;
use super::{AuditOptions, CycleRows, CycleSeen, Finding, FoundBy};
use crate::foreign::adapter::{Adapter, Namesake};
use crate::foreign::entry::{CaseId, CycleId, RowStatus};
use crate::foreign::patience::{GaveUp, Patience};

/// Most cycles of one name that are read, the nearest in time; where none is told, by their numbers.
const READ_MAX: usize = 20;

/// Reads the untagged namesakes of these cycles, as far as they are near in time, and takes down when each was made. Gives what
/// nobody has looked at, in words.
pub(super) async fn read(
    adapter: &dyn Adapter,
    cycles: &mut Vec<CycleRows>,
    options: AuditOptions,
    patience: &mut Patience<'_>,
) -> Result<Vec<String>, GaveUp> {
    let mut unseen = Vec::new();
    let names: BTreeSet<String> = cycles.iter().filter_map(|found| own_name(&found.cycle).map(str::to_owned)).collect();
    for name in names {
        let Some(same) = patience.reading(|| adapter.namesakes(&name)).await? else { continue };
        let mut others: Vec<Namesake> = Vec::new();
        for namesake in same {
            match cycles.iter_mut().find(|known| known.cycle.id == namesake.found.id) {
                Some(known) => known.made_ms = namesake.made_ms,
                None if !namesake.tagged && namesake.found.name == name => others.push(namesake),
                None => {}
            }
        }
        let base = |found: &&CycleRows| own_name(&found.cycle) == Some(name.as_str());
        let times: Vec<u64> = cycles.iter().filter(base).filter_map(time_of).collect();
        let apart = |at_ms: u64| times.iter().map(|base| base.abs_diff(at_ms)).min().unwrap_or(u64::MAX);
        // One whose time isn't told may still be near, by its rows.
        others.retain(|other| other.made_ms.is_none_or(|at_ms| apart(at_ms) <= options.window_ms));
        let numbers: Vec<u64> = cycles.iter().filter(base).filter_map(|found| number_of(&found.cycle.id)).collect();
        let away = |id: &CycleId| {
            let number = number_of(id)?;
            numbers.iter().map(|base| base.abs_diff(number)).min()
        };
        let far = |other: &Namesake| away(&other.found.id).unwrap_or(u64::MAX);
        others.sort_by_key(|other| (other.made_ms.map_or(u64::MAX, apart), far(other)));
        if let Some(more @ 1..) = others.len().checked_sub(READ_MAX) {
            unseen.push(format!(
                "of the cycles called {name:?} the nearest {READ_MAX} were read, and {more} were not: one of them may \
                 hold the same once more"
            ));
        }
        for Namesake { found: cycle, made_ms, .. } in others.into_iter().take(READ_MAX) {
            let rows = patience.reading(|| adapter.rows(&cycle.id, &[])).await?;
            let read = CycleRows { cycle, by: FoundBy::Name, rows, made_ms };
            if time_of(&read).is_some_and(|at_ms| apart(at_ms) <= options.window_ms) {
                cycles.push(read);
            }
        }
    }
    Ok(unseen)
}

/// The number at the end of an id: products number their cycles in the order in which they are made.
fn number_of(id: &CycleId) -> Option<u64> {
    let text = id.as_str();
    text[text.trim_end_matches(|c: char| c.is_ascii_digit()).len()..].parse().ok()
}

/// When a cycle was made; where the product doesn't say, when its first row was recorded.
pub(super) fn time_of(cycle: &CycleRows) -> Option<u64> {
    cycle.made_ms.or_else(|| cycle.rows.iter().filter_map(|row| row.at_ms).min())
}

/// Those that share a name, as findings; `by_name` are the untagged namesakes of `cycles`.
pub(super) fn findings(
    cycles: &[CycleRows],
    by_name: &[CycleRows],
    shown: impl Fn(&CycleRows) -> CycleSeen,
) -> Vec<Finding> {
    let names: BTreeSet<&str> = by_name.iter().map(|cycle| cycle.cycle.name.as_str()).collect();
    let of_name = |name: &str| {
        let base = cycles.iter().filter(|cycle| own_name(&cycle.cycle) == Some(name));
        let mut same: Vec<&CycleRows> = base.chain(by_name.iter().filter(|cycle| cycle.cycle.name == name)).collect();
        same.sort_by_key(|cycle| time_of(cycle));
        let times: Vec<u64> = same.iter().filter_map(|cycle| time_of(cycle)).collect();
        let apart_ms = times.last().zip(times.first()).map_or(0, |(last, first)| last - first);
        let (cases_shared, cases_equal) = shared(&same);
        let cycles = same.into_iter().map(&shown).collect();
        Finding::LikelyDuplicateCycles { cycles, apart_ms, cases_shared, cases_equal }
    };
    names.into_iter().map(of_name).collect()
}

/// How many cases have rows in more than one cycle, and of how many those say the same in each.
fn shared(cycles: &[&CycleRows]) -> (usize, usize) {
    let mut cases: BTreeMap<&CaseId, Vec<Vec<String>>> = BTreeMap::new();
    for cycle in cycles {
        let mut of_cycle: BTreeMap<&CaseId, Vec<String>> = BTreeMap::new();
        for row in cycle.rows.iter().filter(|row| row.status != RowStatus::Open && !row.case.is_unknown()) {
            of_cycle.entry(&row.case).or_default().push(format!("{:?} {}", row.status, row.text));
        }
        for (case, mut says) in of_cycle {
            says.sort_unstable();
            cases.entry(case).or_default().push(says);
        }
    }
    let more: Vec<&Vec<Vec<String>>> = cases.values().filter(|cycles| cycles.len() > 1).collect();
    (more.len(), more.iter().filter(|cycles| cycles.iter().all(|says| *says == cycles[0])).count())
}
