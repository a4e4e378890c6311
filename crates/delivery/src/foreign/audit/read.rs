//! What is read for an audit: the cycle, those that should not be beside it, and all that they hold. Must not judge.

use domain::intent::Intent;

use super::{Audit, AuditError, AuditOptions, CycleRows, FoundBy, counted, judge, namesakes};
use crate::foreign::adapter::Adapter;
use crate::foreign::entry::{CycleFound, CycleId, CycleWanted};
use crate::foreign::patience::{GaveUp, Patience};
use crate::foreign::text::without_tag;

impl Audit {
    /// Reads the cycle and judges it. With the intents of the round, also what is missing and what nobody knows.
    ///
    /// If the configuration names a cycle, that one is read, and those that carry the round's tag beside it, and those that
    /// the intents were written into, and those of its name that were made shortly before or after it.
    ///
    /// # Errors
    /// Something can't be read; there is no cycle.
    pub async fn of(
        adapter: &dyn Adapter,
        wanted: &CycleWanted,
        ledger: Option<&[Intent]>,
        options: AuditOptions,
        patience: &mut Patience<'_>,
    ) -> Result<Audit, AuditError> {
        let found = found(adapter, wanted, ledger, patience).await?;
        if found.is_empty() {
            return Err(AuditError::NoCycle { name: wanted.name.clone(), tag: wanted.tag() });
        }
        let mut cycles = Vec::with_capacity(found.len());
        for (cycle, by) in found {
            if let Some(total) = patience.reading(|| adapter.total(&cycle.id)).await? {
                cycles.push((cycle, by, Err(total)));
                continue;
            }
            let rows = patience.reading(|| adapter.rows(&cycle.id, &[])).await?;
            cycles.push((cycle, by, Ok(rows)));
        }
        if cycles.iter().any(|(_, _, held)| held.is_err()) {
            let held = cycles.into_iter().map(|(cycle, by, held)| (cycle, by, held.err().unwrap_or(0)));
            return counted::audit(adapter, held.collect(), ledger, patience).await;
        }
        let listed = cycles
            .into_iter()
            .filter_map(|(cycle, by, held)| held.ok().map(|rows| CycleRows { cycle, by, rows, made_ms: None }));
        let mut listed: Vec<CycleRows> = listed.collect();
        let unseen = namesakes::read(adapter, &mut listed, options, patience).await?;
        let judged = judge(listed, ledger, options)?;
        Ok(Audit { unseen, ..judged })
    }
}

/// The cycles, each once.
async fn found(
    adapter: &dyn Adapter,
    wanted: &CycleWanted,
    ledger: Option<&[Intent]>,
    patience: &mut Patience<'_>,
) -> Result<Vec<(CycleFound, FoundBy)>, GaveUp> {
    let mut found: Vec<(CycleFound, FoundBy)> = Vec::new();
    if wanted.given.is_some() {
        let given = patience.reading(|| adapter.find_cycles(wanted)).await?;
        found.extend(given.into_iter().map(|cycle| (cycle, FoundBy::Configuration)));
    }
    // Some products search by the name alone, as a whole: that of the push, as the cycle itself says it.
    let own = found.first().and_then(|(cycle, _)| own_name(cycle));
    let name = own.unwrap_or(&wanted.name).to_owned();
    let tag_alone = CycleWanted { given: None, name, ..wanted.clone() };
    for cycle in patience.reading(|| adapter.find_cycles(&tag_alone)).await? {
        match found.iter_mut().find(|(known, _)| known.id == cycle.id) {
            Some((_, by)) => *by = FoundBy::Tag,
            None => found.push((cycle, FoundBy::Tag)),
        }
    }
    for id in ledger.into_iter().flatten().filter_map(|intent| intent.cycle_there.as_deref()).map(CycleId::new) {
        if found.iter().any(|(known, _)| known.id == id) {
            continue;
        }
        let there = CycleWanted { given: Some(id), ..wanted.clone() };
        match patience.reading(|| adapter.find_cycles(&there)).await {
            Ok(cycles) => found.extend(cycles.into_iter().map(|cycle| (cycle, FoundBy::Ledger))),
            // It is not there any more, and all that is confirmed of it is missing.
            Err(GaveUp::Refused(_)) => {}
            Err(gave_up) => return Err(gave_up),
        }
    }
    Ok(found)
}

/// What people call a cycle, without the tag; `None` where only an id is known of it.
pub(super) fn own_name(cycle: &CycleFound) -> Option<&str> {
    let own = without_tag(&cycle.name);
    (!own.is_empty() && cycle.name != cycle.id.as_str()).then_some(own)
}
