//! What is read for an audit: the cycle, those that should not be beside it, and all that they hold. Must not judge.

use domain::intent::Intent;

use super::{Audit, AuditError, AuditOptions, CycleRows, FoundBy, counted, judge, namesakes};
use crate::foreign::adapter::Adapter;
use crate::foreign::entry::{CycleFound, CycleId, CycleWanted, Row};
use crate::foreign::patience::{GaveUp, Patience};
use crate::foreign::text::without_tag;

impl Audit {
    /// Reads a round's cycle and judges it. With the intents of the round, also what is missing and what nobody knows.
    ///
    /// If the configuration names a cycle, that one is read, and those that carry the round's tag beside it, and those that
    /// the intents were written into, and those of its name that were made shortly before or after it. One that the intents
    /// were written into and that is not there any more is told as that, and all that is confirmed of it as missing.
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
        let There { found, mut gone } = There::look(adapter, wanted, ledger, patience).await?;
        let is_of_ledger = |id: &CycleId| {
            ledger.into_iter().flatten().any(|intent| intent.cycle_there.as_deref() == Some(id.as_str()))
        };
        let is_only_thought_of =
            |id: &CycleId| !adapter.tells_cycles() && id.as_str() == wanted.tag() && !is_of_ledger(id);
        let mut read = Vec::with_capacity(found.len());
        for (cycle, by) in found {
            match Held::read(adapter, &cycle.id, patience).await {
                // Nobody was asked for it, and nothing is there: it is only what a first outcome would make.
                Ok(Held::Rows(rows)) if rows.is_empty() && is_only_thought_of(&cycle.id) => {}
                Err(GaveUp::Gone(_)) if is_only_thought_of(&cycle.id) => {}
                Err(GaveUp::Gone(_)) if ledger.is_some() => gone.push(cycle.id),
                held => read.push((cycle, by, held?)),
            }
        }
        if read.is_empty() && gone.is_empty() {
            return Err(AuditError::NoCycle { name: wanted.name.clone(), tag: wanted.tag() });
        }
        judged(adapter, (read, gone), ledger, options, patience).await
    }

    /// Reads a cycle that no ledger knows, by the product's own id of it, and judges it.
    ///
    /// # Errors
    /// It can't be read; it is not there.
    pub async fn of_cycle(
        adapter: &dyn Adapter,
        cycle: &CycleId,
        options: AuditOptions,
        patience: &mut Patience<'_>,
    ) -> Result<Audit, AuditError> {
        let not_there = |why: String| AuditError::NotThere { cycle: cycle.clone(), why };
        let told = |gave_up| match gave_up {
            GaveUp::Gone(why) => not_there(why),
            other => AuditError::Unread(other),
        };
        let wanted = CycleWanted::by_id(cycle.clone());
        let found = patience.reading(|| adapter.find_cycles(&wanted)).await.map_err(told)?;
        if found.is_empty() {
            return Err(not_there("nothing there has this id".to_owned()));
        }
        let mut read = Vec::with_capacity(found.len());
        for found in found {
            let held = Held::read(adapter, &found.id, patience).await.map_err(told)?;
            read.push((found, FoundBy::Configuration, held));
        }
        if !adapter.tells_cycles() && read.iter().all(|(.., held)| held.is_empty()) {
            let why = "nothing is recorded under this id, and the service can't say whether it is there";
            return Err(not_there(why.to_owned()));
        }
        judged(adapter, (read, Vec::new()), None, options, patience).await
    }
}

/// What a cycle holds.
enum Held {
    /// The product lists it.
    Rows(Vec<Row>),
    /// The product counts outcomes and lists none.
    Total(u64),
}

impl Held {
    async fn read(adapter: &dyn Adapter, cycle: &CycleId, patience: &mut Patience<'_>) -> Result<Self, GaveUp> {
        match patience.reading(|| adapter.total(cycle)).await? {
            Some(total) => Ok(Held::Total(total)),
            None => patience.reading(|| adapter.rows(cycle, &[])).await.map(Held::Rows),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Held::Rows(rows) => rows.is_empty(),
            Held::Total(total) => *total == 0,
        }
    }
}

/// What was read, and the cycles that are not there any more, as an audit.
async fn judged(
    adapter: &dyn Adapter,
    (read, gone): (Vec<(CycleFound, FoundBy, Held)>, Vec<CycleId>),
    ledger: Option<&[Intent]>,
    options: AuditOptions,
    patience: &mut Patience<'_>,
) -> Result<Audit, AuditError> {
    let (mut listed, mut totals) = (Vec::new(), Vec::new());
    for (cycle, by, held) in read {
        match held {
            Held::Rows(rows) => listed.push(CycleRows { cycle, by, rows, made_ms: None }),
            Held::Total(total) => totals.push((cycle, by, total)),
        }
    }
    if !totals.is_empty() {
        let mut audit = counted::audit(adapter, totals, ledger, patience).await?;
        audit.miss_all_of(gone, ledger.unwrap_or_default(), options)?;
        return Ok(audit);
    }
    let unseen = namesakes::read(adapter, &mut listed, options, patience).await?;
    let judged = judge(listed, ledger, options)?;
    Ok(Audit { unseen, gone, ..judged })
}

/// The cycles of a round.
#[derive(Default)]
struct There {
    /// Each once.
    found: Vec<(CycleFound, FoundBy)>,
    /// Those that the ledger knows of, and that are not there any more.
    gone: Vec<CycleId>,
}

impl There {
    async fn look(
        adapter: &dyn Adapter,
        wanted: &CycleWanted,
        ledger: Option<&[Intent]>,
        patience: &mut Patience<'_>,
    ) -> Result<Self, GaveUp> {
        let mut there = Self::default();
        if let Some(given) = &wanted.given {
            there.look_at(adapter, given, FoundBy::Configuration, (ledger.is_some(), patience)).await?;
        }
        // What was made in its place is another cycle of the ledger, and judged with what was written into that one.
        if there.gone.is_empty() {
            there.look_for_tag(adapter, wanted, patience).await?;
        }
        for id in ledger.into_iter().flatten().filter_map(|intent| intent.cycle_there.as_deref()).map(CycleId::new) {
            if !there.gone.contains(&id) && there.found.iter().all(|(known, _)| known.id != id) {
                there.look_at(adapter, &id, FoundBy::Ledger, (true, patience)).await?;
            }
        }
        Ok(there)
    }

    /// Asks for one by its id. Only of one that a ledger knows is it worth a word that it is gone.
    async fn look_at(
        &mut self,
        adapter: &dyn Adapter,
        id: &CycleId,
        by: FoundBy,
        (known, patience): (bool, &mut Patience<'_>),
    ) -> Result<(), GaveUp> {
        let wanted = CycleWanted::by_id(id.clone());
        match patience.reading(|| adapter.find_cycles(&wanted)).await {
            Err(GaveUp::Gone(_)) if known => self.gone.push(id.clone()),
            Ok(none) if known && none.is_empty() => self.gone.push(id.clone()),
            found => self.found.extend(found?.into_iter().map(|cycle| (cycle, by))),
        }
        Ok(())
    }

    async fn look_for_tag(
        &mut self,
        adapter: &dyn Adapter,
        wanted: &CycleWanted,
        patience: &mut Patience<'_>,
    ) -> Result<(), GaveUp> {
        // Some products search by the name alone, as a whole: that of the push, as the cycle itself says it.
        let own = self.found.first().and_then(|(cycle, _)| own_name(cycle));
        let name = own.unwrap_or(&wanted.name).to_owned();
        let tag_alone = CycleWanted { given: None, name, ..wanted.clone() };
        for cycle in patience.reading(|| adapter.find_cycles(&tag_alone)).await? {
            match self.found.iter_mut().find(|(known, _)| known.id == cycle.id) {
                Some((_, by)) => *by = FoundBy::Tag,
                None => self.found.push((cycle, FoundBy::Tag)),
            }
        }
        Ok(())
    }
}

/// What people call a cycle, without the tag; `None` where only an id is known of it.
pub(super) fn own_name(cycle: &CycleFound) -> Option<&str> {
    let own = without_tag(&cycle.name);
    (!own.is_empty() && cycle.name != cycle.id.as_str()).then_some(own)
}
