//! Items and histories in the memory engine: every table built anew, every list sorted whole.

use std::cmp::Ordering;

use domain::listing::{HistoryEntry, ItemPage, ItemQuery, ItemReport, ItemSort};
use domain::receipt::ItemHashText;
use domain::round::{RoundChoice, RoundFacts, choose, listing_order};
use domain::verdict::{Claim, Light, RevisionKind};
use domain::{Attempt, CycleName, DurationUs, ItemHash, Outcome, ProjectId, Variant};

use super::model::{Project, Recording, Table, Winner, World, best};
use super::read::project;
use crate::Absent;
use crate::cursor::{ItemCursor, variant_tag};

/// Items of several rounds: of one workflow the latest round that holds an item says what counts, and between workflows
/// the worst does.
pub(super) fn union<'a>(project: &'a Project, cycle: &CycleName, facts: &[RoundFacts], places: &[usize]) -> Table<'a> {
    let mut all: Table<'a> = Table::new();
    let mut done = Vec::new();
    for place in places {
        let workflow = &facts[*place].workflow;
        if done.contains(&workflow) {
            continue;
        }
        done.push(workflow);
        let of_workflow: Vec<RoundFacts> = (0..facts.len())
            .filter(|at| places.contains(at) && facts[*at].workflow == *workflow)
            .map(|at| facts[at].clone())
            .collect();
        let mut table = Table::new();
        for at in listing_order(&of_workflow) {
            table.extend(project.table(cycle, &of_workflow[at].round));
        }
        for (item, winner) in table {
            let plain = |light: Light| Claim { light, elevated: false, attempt: None };
            let next = Winner { claim: plain(winner.claim.light), ..winner };
            let winners: Vec<Winner<'_>> = all.remove(&item).into_iter().chain([next]).collect();
            all.extend(best(&winners).map(|winner| (item, winner)));
        }
    }
    all
}

/// The executions of an item that count, oldest first.
fn executions(push: &Recording, item: ItemHash) -> Vec<usize> {
    let mut counting: Vec<usize> = Vec::new();
    for (at, revision) in push.revisions.iter().enumerate() {
        let source = match revision.known.kind {
            RevisionKind::Promoted { of, .. } => of as usize - 1,
            _ => at,
        };
        let offered = push.outcome(source, item).is_some();
        match revision.known.kind {
            RevisionKind::Promoted { exact: true, .. } => {
                counting = if offered { vec![source] } else { Vec::new() };
            }
            RevisionKind::Kept if !counting.is_empty() => {}
            _ if offered => {
                counting.retain(|earlier| *earlier != source);
                counting.push(source);
            }
            _ => {}
        }
    }
    counting
}

/// What an item did in a push: the execution that counts, and every earlier one as an attempt.
fn outcome(push: &Recording, item: ItemHash) -> Option<Outcome> {
    let mut executions = executions(push, item);
    let mut last = push.outcome(executions.pop()?, item)?.clone();
    let mut attempts: Vec<Attempt> = Vec::new();
    for outcome in executions.into_iter().filter_map(|at| push.outcome(at, item)) {
        attempts.extend(outcome.attempts.clone());
        attempts.push(outcome.as_attempt());
    }
    last.prepend_attempts(attempts);
    Some(last)
}

/// The execution that counts of everything in a push, by itself.
pub(super) fn outcomes(push: &Recording) -> Vec<Outcome> {
    let last = |item: ItemHash| push.outcome(executions(push, item).pop()?, item).cloned();
    push.current().hashes.into_iter().filter_map(last).collect()
}

fn report(item: ItemHash, variant: &Variant, winner: &Winner<'_>) -> Option<ItemReport> {
    let push = winner.push;
    let last = outcome(push, item)?;
    let light = winner.claim.light;
    Some(ItemReport {
        hash: ItemHashText(item),
        item: last.item,
        variant: variant.clone(),
        status: light.status,
        flaky: light.is_flaky(),
        duration_ms: last.duration_us.map(DurationUs::as_ms),
        message: last.message,
        attempts: last.attempts,
        external_ids: last.external_ids,
        round: push.place.round.clone(),
        key: push.key.clone(),
        pushes: winner.pushes,
    })
}

/// By what a listing is sorted before hash and variant: highest first.
fn key(report: &ItemReport, sort: ItemSort) -> u64 {
    match sort {
        ItemSort::Name => 0,
        ItemSort::Duration => report.duration_ms.map_or(0, |ms| (ms * 1000.0).round() as u64 + 1),
        ItemSort::Status => u64::from(report.status.badness()),
    }
}

fn order(a: &ItemReport, b: &ItemReport, sort: ItemSort) -> Ordering {
    let names = if sort == ItemSort::Name { a.item.cmp(&b.item) } else { Ordering::Equal };
    let ties = || (a.hash.0, &a.variant).cmp(&(b.hash.0, &b.variant));
    names.then_with(|| key(b, sort).cmp(&key(a, sort))).then_with(ties)
}

pub(super) fn items(
    world: &World,
    (name, cycle): (&ProjectId, &CycleName),
    choice: &RoundChoice,
    query: &ItemQuery,
) -> Result<ItemPage, Absent> {
    let project = project(world, name)?;
    let (facts, standings) = project.facts(cycle)?;
    let places = choose(&facts, &standings, choice).map_err(Absent::Round)?;
    let table = union(project, cycle, &facts, &places);
    let all: Vec<ItemReport> =
        table.iter().filter_map(|((hash, variant), winner)| report(*hash, variant, winner)).collect();
    let fits = |item: &&ItemReport| {
        let name = item.item.to_string().to_lowercase();
        query.status.is_none_or(|status| item.status == status)
            && (item.flaky || !query.flaky)
            && query.search.as_ref().is_none_or(|text| name.contains(&text.to_lowercase()))
    };
    let mut matching: Vec<ItemReport> = all.iter().filter(fits).cloned().collect();
    matching.sort_by(|a, b| order(a, b, query.sort));
    let total = matching.len() as u64;
    if let Some(text) = &query.cursor {
        let last = cursor_item(&all, text, query.sort)?;
        matching.retain(|item| order(item, &last, query.sort) == Ordering::Greater);
    }
    let limit = query.limit.map_or(usize::MAX, |limit| limit.max(1));
    let more = matching.len() > limit;
    matching.truncate(limit);
    let next = matching
        .last()
        .filter(|_| more)
        .map(|last| ItemCursor::new(key(last, query.sort), last.hash.0, &last.variant).to_text(query.sort));
    Ok(ItemPage { items: matching, next, total })
}

/// The item that a page ended with, as it was then.
fn cursor_item(all: &[ItemReport], text: &str, sort: ItemSort) -> Result<ItemReport, Absent> {
    let cursor = ItemCursor::parse(text, sort).ok_or(Absent::Cursor)?;
    let same = |item: &&ItemReport| item.hash.0 == cursor.hash && variant_tag(&item.variant) == cursor.variant;
    let mut item = all.iter().find(same).cloned().ok_or(Absent::Cursor)?;
    item.duration_ms = cursor.key.checked_sub(1).map(|us| DurationUs(us).as_ms());
    if sort == ItemSort::Status {
        let was = domain::Status::ALL.into_iter().find(|status| u64::from(status.badness()) == cursor.key);
        item.status = was.ok_or(Absent::Cursor)?;
    }
    Ok(item)
}

pub(super) fn history(
    world: &World,
    name: &ProjectId,
    only: Option<&CycleName>,
    item: ItemHash,
) -> Result<Vec<HistoryEntry>, Absent> {
    let project = project(world, name)?;
    let mut rounds: Vec<(u64, &CycleName, domain::RoundId)> = Vec::new();
    for cycle in project.cycles.keys().filter(|cycle| only.is_none_or(|only| only == *cycle)) {
        let (facts, _) = project.facts(cycle)?;
        for (place, at) in listing_order(&facts).into_iter().enumerate() {
            let order = if only.is_some() { place as u64 } else { facts[at].first_recorded };
            rounds.push((order, cycle, facts[at].round.clone()));
        }
    }
    if let Some(only) = only {
        project.cycle(only)?;
    }
    rounds.sort();
    let mut found = Vec::new();
    for (_, cycle, round) in rounds {
        for ((hash, variant), winner) in project.table(cycle, &round) {
            if hash == item
                && let Some(outcome) = report(hash, &variant, &winner)
            {
                found.push(HistoryEntry { cycle: cycle.clone(), outcome });
            }
        }
    }
    if found.is_empty() { Err(Absent::Item) } else { Ok(found) }
}
