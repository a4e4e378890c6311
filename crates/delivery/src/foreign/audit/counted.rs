//! A product that counts outcomes and lists none: its counts against those of the ledger. Which case stands there twice, and
//! what it says, nobody can tell there. Must not conclude more than counts say.

use domain::intent::{Intent, IntentState};

use super::ledger::entries_of;
use super::{Audit, AuditError, Counts, CycleSeen, Finding, FoundBy, Shared};
use crate::foreign::adapter::Adapter;
use crate::foreign::entry::{CycleFound, CycleId, Entry};
use crate::foreign::patience::{GaveUp, Patience};

/// What cannot be known of such a product.
const UNSEEN: &str = "the product lists no outcomes: only how many there are was compared. One that stands there twice \
                      while another one is missing, and what each of them says, can't be seen";

/// Holds the counts of these cycles against the ledger. With each, how many outcomes it holds in all.
pub(super) async fn audit(
    adapter: &dyn Adapter,
    cycles: Vec<(CycleFound, FoundBy, u64)>,
    ledger: Option<&[Intent]>,
    patience: &mut Patience<'_>,
) -> Result<Audit, AuditError> {
    let shown: Vec<CycleSeen> = cycles.iter().map(|(cycle, _, total)| seen(cycle, *total)).collect();
    let mut findings = Vec::new();
    let mut counts = Counts { cycles: cycles.len(), ..Counts::default() };
    let tagged: Vec<CycleSeen> =
        cycles.iter().filter(|(_, by, _)| *by == FoundBy::Tag).map(|(cycle, _, total)| seen(cycle, *total)).collect();
    if tagged.len() > 1 {
        findings.push(Finding::DuplicateCycles { shared: Shared::Tag, cycles: tagged });
    }
    let mut compared = false;
    for (cycle, _, total) in &cycles {
        counts.rows += usize::try_from(*total).unwrap_or(usize::MAX);
        let known = Known::of(ledger.unwrap_or_default(), &cycle.id)?;
        // One of the tag that no intent was written into: it is named above.
        if known.entries.is_empty() {
            continue;
        }
        compared = true;
        counts.cases += known.entries.len();
        let counted = count(adapter, &cycle.id, &known.entries, patience).await?;
        findings.extend(known.against(&cycle.id, counted, *total, &mut counts));
    }
    match shown.first() {
        Some(first) if !compared => {
            Err(AuditError::NothingToCompare { cycle: first.cycle.clone(), total: counts.rows as u64 })
        }
        _ => Ok(Audit { cycles: shown, counts, findings, unseen: vec![UNSEEN.to_owned()], gone: Vec::new() }),
    }
}

fn seen(cycle: &CycleFound, total: u64) -> CycleSeen {
    CycleSeen {
        cycle: cycle.id.clone(),
        name: cycle.name.clone(),
        closed: cycle.closed,
        rows: usize::try_from(total).unwrap_or(usize::MAX),
        at_ms: None,
    }
}

/// What the ledger knows of a cycle.
#[derive(Default)]
struct Known {
    /// All that may be there.
    entries: Vec<Entry>,
    /// How many of them are confirmed.
    confirmed: u64,
}

impl Known {
    fn of(ledger: &[Intent], cycle: &CycleId) -> Result<Self, AuditError> {
        let mut known = Self::default();
        for intent in ledger.iter().filter(|intent| intent.cycle_there.as_deref() == Some(cycle.as_str())) {
            if intent.state == IntentState::Rejected {
                continue;
            }
            let entries = entries_of(intent)?.into_iter().filter(|entry| !entry.is_refused_in(intent));
            let before = known.entries.len();
            known.entries.extend(entries);
            if matches!(intent.state, IntentState::Acked | IntentState::Found) {
                known.confirmed += (known.entries.len() - before) as u64;
            }
        }
        Ok(known)
    }

    /// The difference, if there is one.
    fn against(&self, cycle: &CycleId, counted: Option<u64>, total: u64, counts: &mut Counts) -> Option<Finding> {
        let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let most = self.entries.len() as u64;
        if let Some(counted) = counted {
            counts.doubled_rows += size(counted.saturating_sub(most));
            counts.missing += size(self.confirmed.saturating_sub(counted));
            counts.orphans += size(total.saturating_sub(counted));
        }
        let fits = counted.is_some_and(|counted| (self.confirmed..=most).contains(&counted) && counted == total);
        (!fits).then(|| Finding::CountDiffers {
            cycle: cycle.clone(),
            confirmed: self.confirmed,
            uncertain: most - self.confirmed,
            counted,
            total,
        })
    }
}

/// How many of these outcomes the cycle counts.
async fn count(
    adapter: &dyn Adapter,
    cycle: &CycleId,
    entries: &[Entry],
    patience: &mut Patience<'_>,
) -> Result<Option<u64>, GaveUp> {
    let mut all = 0_u64;
    for batch in entries.chunks(adapter.facts().bulk.items_max.max(1)) {
        match patience.reading(|| adapter.count(cycle, batch)).await? {
            // More than anybody can have written: a part of a write is there.
            Some(u64::MAX) | None => return Ok(None),
            Some(count) => all += count,
        }
    }
    Ok(Some(all))
}
