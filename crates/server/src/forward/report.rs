//! What a store keeps of forwarding, made into what people read: one push at all its targets, and lists. Must not change
//! anything, and must not know products beyond their word.

use std::collections::{BTreeMap, BTreeSet};

use delivery::foreign::Kind;
use domain::intent::{Flag, IntentState, RefusedItem};
use domain::listing::{ForwardReport, ForwardsReport, IntentReport, PushForwards, WaitingReport};
use domain::{CycleName, ProjectId, PushId};
use store::{End, Ended, ForwardsOf, Found, IntentQuery, Store, StoreError, Waiting, WaitingQuery};

/// The products of targets, by their names.
pub type Kinds = BTreeMap<String, Kind>;

/// What became of a push at every target.
///
/// # Errors
/// Those of the store.
pub async fn of_push(store: &dyn Store, project: &ProjectId, push: PushId, kinds: &Kinds) -> Found<PushForwards> {
    let ForwardsOf { key, waiting, intents } = match store.forwards_of(project, push).await? {
        Ok(known) => known,
        Err(absent) => return Ok(Err(absent)),
    };
    let targets: BTreeSet<&str> =
        waiting.iter().map(|row| row.target.as_str()).chain(intents.iter().map(|i| i.target.as_str())).collect();
    let at = |target: &str| {
        let rows: Vec<&Waiting> = waiting.iter().filter(|row| row.target == target).collect();
        let intents: Vec<&IntentReport> = intents.iter().filter(|intent| intent.target == target).collect();
        at_target(target, &rows, &intents, kinds.get(target).copied())
    };
    Ok(Ok(PushForwards::new(push, key, targets.into_iter().filter_map(at).collect())))
}

/// The intents of a push at a target that still say something.
struct Said<'a> {
    /// Those of what is to be there now.
    newest: Vec<&'a IntentReport>,
    /// Those of older revisions that are open or in doubt: what else became of them, a newer one has made good.
    past: Vec<&'a IntentReport>,
}

impl<'a> Said<'a> {
    fn of(done: Option<&Ended>, intents: &[&'a IntentReport]) -> Self {
        let is_newest = |intent: &&&IntentReport| {
            done.is_none_or(|done| {
                // What was planned since is on its way to the revision that waits.
                intent.planned_ms > done.at_ms || intent.id.is_some_and(|id| done.intents.contains(&id))
            })
        };
        let (newest, mut past): (Vec<&IntentReport>, Vec<&IntentReport>) = intents.iter().partition(is_newest);
        past.retain(|intent| !intent.state.is_settled() || intent.is_in_doubt());
        Self { newest, past }
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = &'a IntentReport> {
        self.past.iter().chain(&self.newest).copied()
    }

    /// All but those that a person has looked at.
    fn asked(&self) -> impl Iterator<Item = &'a IntentReport> {
        self.all().filter(|intent| !intent.flags.contains(&Flag::GivenUp))
    }
}

/// One push at one target; nothing if its round was deleted before anything was planned.
fn at_target(target: &str, rows: &[&Waiting], intents: &[&IntentReport], kind: Option<Kind>) -> Option<ForwardReport> {
    let open: Vec<&Waiting> = rows.iter().copied().filter(|row| row.ended.is_none()).collect();
    let done: Option<&Ended> =
        rows.iter().rev().filter_map(|row| row.ended.as_ref()).find(|ended| ended.end == End::Forwarded);
    if open.is_empty() && done.is_none() && intents.is_empty() {
        return None;
    }
    let mut states = BTreeMap::new();
    for intent in intents {
        *states.entry(intent.state).or_default() += u64::from(intent.cases);
    }
    let said = Said::of(done, intents);
    let mut refused: Vec<RefusedItem> = Vec::new();
    for item in done.iter().flat_map(|done| &done.refused).chain(said.newest.iter().flat_map(|one| &one.refused)) {
        if !refused.contains(item) {
            refused.push(item.clone());
        }
    }
    let state = worst(&open, &said, !refused.is_empty());
    let cycle_there = said.newest.last().and_then(|intent| intent.cycle_there.as_ref());
    Some(ForwardReport {
        target: target.to_owned(),
        kind: kind.map(|kind| kind.word().to_owned()),
        revision: open.last().map(|row| row.revision).or(done.map(|done| done.revision)).unwrap_or_default(),
        state,
        cases: intents.iter().map(|intent| u64::from(intent.cases)).sum(),
        states,
        flags: flags(done, &said),
        refused,
        cycle_there: cycle_there.or(done.and_then(|done| done.cycle_there.as_ref())).cloned(),
        tries: open.iter().map(|row| row.tries).max().unwrap_or_default(),
        due_ms: open.iter().map(|row| row.due_ms).min().filter(|due_ms| *due_ms > 0),
        cause: said
            .all()
            .rev()
            .find(|intent| intent.state == state && !is_past(state))
            .and_then(|intent| intent.cause.clone())
            .or_else(|| open.iter().find_map(|row| row.cause.clone())),
    })
}

/// What people still have to know. That they have looked is said only where nothing that is parked asks them to.
fn flags(done: Option<&Ended>, said: &Said<'_>) -> Vec<Flag> {
    let of_intents = said.all().flat_map(|intent| Flag::said(intent.flags.iter()));
    let mut flags: BTreeSet<Flag> = done.iter().flat_map(|done| done.flags.iter().copied()).chain(of_intents).collect();
    if said.asked().any(|intent| intent.state == IntentState::Parked) {
        flags.remove(&Flag::GivenUp);
    }
    flags.into_iter().collect()
}

/// The worst that is open; if nothing is, the worst end that no person has looked at.
fn worst(open: &[&Waiting], said: &Said<'_>, has_refused: bool) -> IntentState {
    if open.is_empty() {
        let nothing = if has_refused { IntentState::Rejected } else { IntentState::Acked };
        let worst = said.asked().map(|intent| intent.state).max_by_key(|state| weight(*state));
        let looked_at = || said.all().map(|intent| intent.state).max_by_key(|state| weight(*state));
        return worst.or_else(looked_at).unwrap_or(nothing);
    }
    said.all()
        .map(|intent| intent.state)
        .filter(|state| !state.is_settled())
        .chain([IntentState::Planned])
        .max_by_key(|state| weight(*state))
        .unwrap_or(IntentState::Planned)
}

fn weight(state: IntentState) -> u8 {
    match state {
        IntentState::Acked => 0,
        IntentState::Found => 1,
        IntentState::Rejected => 2,
        IntentState::Planned => 3,
        IntentState::Absent => 4,
        IntentState::Sending => 5,
        IntentState::Reconciling => 6,
        IntentState::Unknown => 7,
        IntentState::Parked => 8,
    }
}

/// True if what happened before says nothing any more.
fn is_past(state: IntentState) -> bool {
    matches!(state, IntentState::Acked | IntentState::Found)
}

/// Which forwards. What is not given does not narrow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForwardsQuery {
    /// At this target.
    pub target: Option<String>,
    /// Of this project.
    pub project: Option<ProjectId>,
    /// Of pushes into this cycle with us.
    pub cycle: Option<CycleName>,
    /// In this state.
    pub state: Option<IntentState>,
    /// At most so many.
    pub limit: Option<usize>,
}

/// Intents, and what waits to become some. What is in doubt comes first, so that no limit ever hides it, then what waits, then
/// what else is open, then what is settled; each oldest first.
///
/// # Errors
/// Those of the store.
pub async fn listed(store: &dyn Store, query: &ForwardsQuery) -> Result<ForwardsReport, StoreError> {
    // One more than wanted tells whether there are more.
    let most = query.limit.map(|limit| limit.saturating_add(1));
    let left = |reports: &[IntentReport]| most.map(|most| most.saturating_sub(reports.len()));
    let mut reports = intents(store, query, IntentState::ALL, true, most).await?;
    if query.state.is_none_or(|asked| asked == IntentState::Planned) && left(&reports) != Some(0) {
        let rows = WaitingQuery {
            target: query.target.clone(),
            project: query.project.clone(),
            cycle: query.cycle.clone(),
            limit: left(&reports),
            ..WaitingQuery::default()
        };
        reports.extend(store.waiting(rows).await?.iter().map(waits));
    }
    for settled in [false, true] {
        let states = IntentState::ALL.into_iter().filter(|state| state.is_settled() == settled);
        reports.extend(intents(store, query, states, false, left(&reports)).await?);
    }
    let more = query.limit.is_some_and(|limit| reports.len() > limit);
    reports.truncate(query.limit.unwrap_or(usize::MAX));
    Ok(ForwardsReport { more, ..ForwardsReport::new(reports) })
}

/// Those intents in one of these states that are in doubt, or aren't; at most so many.
async fn intents(
    store: &dyn Store,
    query: &ForwardsQuery,
    states: impl IntoIterator<Item = IntentState>,
    in_doubt: bool,
    limit: Option<usize>,
) -> Result<Vec<IntentReport>, StoreError> {
    let asked = |state: &IntentState| query.state.is_none_or(|asked| asked == *state);
    let states: Vec<IntentState> = states.into_iter().filter(asked).collect();
    if states.is_empty() || limit == Some(0) {
        return Ok(Vec::new());
    }
    let intents = IntentQuery {
        target: query.target.clone(),
        project: query.project.clone(),
        cycle: query.cycle.clone(),
        states,
        in_doubt: Some(in_doubt),
        limit,
        ..IntentQuery::default()
    };
    store.intent_reports(intents).await
}

/// A push that waits, as a list shows it.
fn waits(row: &Waiting) -> IntentReport {
    IntentReport {
        id: None,
        target: row.target.clone(),
        project: row.project.clone(),
        cycle: row.cycle.clone(),
        round: row.round.clone(),
        key: row.key.clone(),
        number: 0,
        cases: 0,
        state: IntentState::Planned,
        sends: 0,
        planned_ms: row.since_ms,
        changed_ms: row.since_ms,
        seen_ms: None,
        cycle_there: None,
        flags: Vec::new(),
        cause: row.cause.clone(),
        refused: Vec::new(),
        waiting: Some(WaitingReport { revision: row.revision, tries: row.tries, due_ms: row.due_ms }),
    }
}
