//! Forwarding by the server itself: pushes that its store has recorded go on to targets, one worker a target. What is to go
//! where stands in the store, written with the push; nothing of it is kept here. Must not read flags, files or the
//! environment, nor know products.
//!
//! Read `worker` first (what is done next), then `lease` (who may do it), then `report` (what people see of it).

mod board;
mod closing;
mod elsewhere;
mod lease;
mod loads;
pub(crate) mod report;
mod rest;
mod sweeps;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use delivery::Stop;
use delivery::foreign::{Adapter, Strategy, TargetSettings};
use domain::forwarding::{CyclePattern, ForwardRule};
use domain::{ProjectId, limits};
use store::ForwardTotals;
use tokio::task::JoinSet;

use crate::state::App;

pub(crate) use board::{Board, Counted};
pub use lease::LeaseBook;
use report::Kinds;
use worker::Worker;

/// One target, opened, and which pushes go there.
#[derive(Debug, Clone)]
pub struct ForwardTarget {
    /// Its settings.
    pub settings: TargetSettings,
    /// Its product.
    pub adapter: Arc<dyn Adapter>,
    /// How it is written to.
    pub strategy: Strategy,
    /// Pushes of these projects; none: of all.
    pub projects: Vec<ProjectId>,
    /// Pushes into these cycles; none: into all.
    pub cycles: Vec<CyclePattern>,
    /// A cycle there is ended after every push: only where what comes later is taken all the same.
    pub close_after_push: bool,
}

impl ForwardTarget {
    /// As the store is told.
    pub(crate) fn rule(&self) -> ForwardRule {
        ForwardRule {
            target: self.settings.name.to_string(),
            projects: self.projects.clone(),
            cycles: self.cycles.clone(),
        }
    }

    /// How long one try may take, in milliseconds: the target's own waits come on top of our patience with it.
    fn patience_ms(&self, terms: ForwardTerms) -> u64 {
        let facts = self.adapter.facts();
        let lag_ms = match facts.visible {
            delivery::foreign::Visible::Later(ms) => ms,
            _ => 0,
        };
        let quiet_ms = self.settings.quiet_ms.unwrap_or(facts.quiet_ms);
        terms.patience_ms.saturating_add(quiet_ms.saturating_mul(2)).saturating_add(lag_ms.saturating_mul(20))
    }
}

/// Bounds of forwarding; times are in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForwardTerms {
    /// How long others leave a target to a server that is not heard of.
    pub lease_ms: u64,
    /// How often a server that works says that it does.
    pub renew_ms: u64,
    /// How often a server looks for what others have recorded or left.
    pub look_ms: u64,
    /// How long one try goes on without an end.
    pub patience_ms: u64,
    /// Between the first two tries; doubled with every further one.
    pub first_backoff_ms: u64,
    /// Between two tries at most.
    pub backoff_max_ms: u64,
    /// Outcomes of one push that goes on; one of more is refused.
    pub outcomes_max: u64,
}

impl Default for ForwardTerms {
    fn default() -> Self {
        Self {
            lease_ms: 60_000,
            renew_ms: 15_000,
            look_ms: 2_000,
            patience_ms: 120_000,
            first_backoff_ms: 60_000,
            backoff_max_ms: 30 * 60_000,
            outcomes_max: limits::FORWARDED_OUTCOMES_MAX,
        }
    }
}

impl ForwardTerms {
    /// How long to wait after so many tries without an end.
    pub(crate) fn backoff_ms(self, tries: u32) -> u64 {
        let doubled = 1_u64.checked_shl(tries).map_or(u64::MAX, |factor| self.first_backoff_ms.saturating_mul(factor));
        doubled.min(self.backoff_max_ms)
    }
}

/// Says what is left of targets that this server no longer has: nobody else would.
pub(crate) async fn tell_of_gone(app: &App) {
    let totals = match app.store.forward_totals().await {
        Ok(totals) => totals,
        Err(error) => {
            tracing::warn!(%error, "what is left of targets that are gone is not known");
            return;
        }
    };
    for (target, waiting, open) in gone(&totals, &app.board.kinds) {
        tracing::warn!(
            target,
            waiting,
            open,
            "this server has no such target, and pushes wait for it: they stay recorded, and go on once [forward] has it again"
        );
    }
}

/// Targets that are not among these and have something left, with how many pushes wait and how many intents are open.
fn gone(totals: &BTreeMap<String, ForwardTotals>, kinds: &Kinds) -> Vec<(String, u64, u64)> {
    let left = |of: &ForwardTotals| {
        let open = of.states.iter().filter(|(state, _)| !state.is_settled()).map(|(_, count)| count).sum();
        (of.waiting, open)
    };
    totals
        .iter()
        .filter(|(target, _)| !kinds.contains_key(*target))
        .map(|(target, of)| (target.clone(), left(of)))
        .filter(|(_, left)| *left != (0, 0))
        .map(|(target, (waiting, open))| (target, waiting, open))
        .collect()
}

/// The workers of one process.
pub(crate) struct Workers {
    tasks: JoinSet<()>,
    stop: Stop,
}

impl Workers {
    /// One for each target. The store has their rules already.
    pub(crate) fn start(app: &Arc<App>, targets: Vec<ForwardTarget>, terms: ForwardTerms) -> Self {
        let (mut tasks, stop) = (JoinSet::new(), Stop::new());
        for target in targets {
            tasks.spawn(watched(Arc::clone(app), target, terms, stop.clone()));
        }
        Self { tasks, stop }
    }

    /// Asks them to end at their next step.
    pub(crate) fn stop(&self) {
        self.stop.request();
    }

    /// Waits until they have ended, within `drain_time`; what a longer call of a product leaves is read back later.
    pub(crate) async fn ended(mut self, drain_time: Duration) {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(drain_time, all).await.is_err() {
            tracing::warn!(left = self.tasks.len(), "forwarding was still at work at the end of the drain time");
            self.tasks.shutdown().await;
        }
    }
}

/// A worker, and another one if it crashes: one target's trouble ends neither the server nor another target.
async fn watched(app: Arc<App>, target: ForwardTarget, terms: ForwardTerms, stop: Stop) {
    while !stop.is_requested() {
        // A set, so that the worker ends with whoever watches it.
        let mut alone = JoinSet::new();
        alone.spawn(Worker::new(Arc::clone(&app), target.clone(), terms, stop.clone()).run());
        let Some(Err(crash)) = alone.join_next().await else { return };
        tracing::error!(target = %target.settings.name, %crash, "forwarding crashed; it begins again after a while");
        tokio::select! {
            () = stop.requested() => {}
            () = app.door().clock().sleep(terms.first_backoff_ms) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::intent::IntentState;

    use super::*;

    #[test]
    fn what_is_left_of_a_target_that_is_gone_is_found() {
        let with = |waiting, states: &[(IntentState, u64)]| ForwardTotals {
            waiting,
            states: states.iter().copied().collect(),
            ..ForwardTotals::default()
        };
        let totals = [
            ("done", with(0, &[(IntentState::Acked, 7), (IntentState::Parked, 1)])),
            ("here", with(9, &[(IntentState::Unknown, 1)])),
            ("open", with(0, &[(IntentState::Acked, 7), (IntentState::Unknown, 1), (IntentState::Planned, 2)])),
            ("waits", with(3, &[])),
        ];
        let totals = totals.map(|(name, of)| (name.to_owned(), of)).into();
        let kinds = Kinds::from([("here".to_owned(), delivery::foreign::Kind::Testrail)]);
        assert_eq!(gone(&totals, &kinds), [("open".to_owned(), 0, 3), ("waits".to_owned(), 3, 0)]);
    }

    #[test]
    fn tries_come_a_minute_apart_and_half_an_hour_at_most() {
        let terms = ForwardTerms::default();
        let minutes: Vec<u64> = (0..8).map(|tries| terms.backoff_ms(tries) / 60_000).collect();
        assert_eq!(minutes, [1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(terms.backoff_ms(u32::MAX), terms.backoff_max_ms);
    }
}
