//! `tallyonce close --to NAME`: ends a round's cycle at a target, once every job has pushed into it. Must not judge whether they
//! have: whoever calls it says so.

use std::fmt::Write as _;
use std::path::PathBuf;

use delivery::foreign::patience::Patience;
use delivery::foreign::{Closing, CycleFound, CycleWanted, Ending};
use delivery::{Outbox, SystemClock, belongs_to};
use domain::ci::{Overrides, identify};
use domain::round::RoundChoice;
use domain::{CycleName, ProjectId, RoundId, RunId};
use rand::rngs::StdRng;
use store::{IntentQuery, WaitingQuery};

use super::{Desk, gave_up, patience, told};
use crate::courier;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::forward::Forwarding;
use crate::settings::push::DEADLINE;
use crate::settings::target::TargetSection;

/// A round of ours at a target.
pub(crate) struct RoundThere {
    /// The target.
    pub section: TargetSection,
    /// The project.
    pub project: ProjectId,
    /// The cycle with us.
    pub cycle: CycleName,
    /// The round: its id, its run, or, where the ledger is here, a unique beginning of either.
    pub round: String,
    /// Where pushes of this machine wait that aren't whole there.
    pub outbox: PathBuf,
}

/// Ends the cycle, wherever it was pushed from. Ended before is ended.
///
/// # Errors
/// There is none, or nothing ends there; something of ours is still on its way; the target gave no answer.
pub(crate) async fn close(there: RoundThere, desk: Desk<'_>) -> Result<Exit, Failure> {
    let forwarding = Forwarding::prepare(&there.section, desk.env, &desk.connection, desk.output)?;
    forwarding.has_an_end()?;
    let adapter = forwarding.adapter();
    let wanted = there.wanted(&forwarding, &desk).await?;
    let (clock, mut random) = (SystemClock::new(), rand::make_rng::<StdRng>());
    let watch = told(desk.output);
    let mut patience = patience(&clock, &mut random, &desk.stop, DEADLINE, &watch);
    let found = there.found(&forwarding, &wanted, &mut patience).await?;
    let mut text = String::new();
    for CycleFound { id, name, closed } in found {
        if !closed {
            let ended = patience.reading(|| adapter.close_cycle(&id, Closing::Complete)).await;
            ended.map_err(|error| Failure {
                means: "The cycle may be ended there, or not; its outcomes are as they were.".to_owned(),
                ..gave_up(&there.section.name, &error)
            })?;
        }
        let _ = writeln!(text, "{}: cycle {id} ({name:?})", if closed { "ended before" } else { "ended" });
    }
    if adapter.ending() == Ending::Refuses {
        let _ = writeln!(text, "outcomes that come later may be refused there");
    }
    desk.output.text(&text);
    Ok(Exit::Success)
}

impl RoundThere {
    /// What the cycle may be found by: as the ledger knows the round, as this job would push to it, or by its id.
    async fn wanted(&self, forwarding: &Forwarding, desk: &Desk<'_>) -> Result<Vec<CycleWanted>, Failure> {
        let mut rounds: Vec<(RoundId, Option<RunId>)> = Vec::new();
        if let Some(ledger) = forwarding.ledger().await? {
            let named = RoundChoice::Named(self.round.clone());
            let known =
                ledger.cycle(&self.project, &self.cycle, &named).await.map_err(|error| Failure::store(&error))?;
            rounds
                .extend(known.into_iter().flat_map(|report| report.rounds).map(|round| (round.round, Some(round.run))));
            self.nothing_is_on_its_way(&*ledger, &rounds).await?;
        }
        let run = RunId::parse(&self.round).ok();
        if let Ok(identity) = identify(desk.env, &Overrides { run: run.clone(), ..Overrides::default() })
            && run.is_some()
        {
            rounds.push((identity.round, Some(identity.parts.run)));
        }
        if let Ok(id) = RoundId::parse(&self.round) {
            rounds.push((id, run_of(&self.round)));
        }
        self.nothing_is_kept(&rounds)?;
        let wanted = |(round, run): &(RoundId, Option<RunId>)| {
            forwarding.wanted(&self.project, &self.cycle, round, run.as_ref(), None)
        };
        Ok(rounds.iter().map(wanted).collect())
    }

    /// What is uncertain here would be refused there, or would count without being seen.
    async fn nothing_is_on_its_way(
        &self,
        ledger: &dyn store::Store,
        rounds: &[(RoundId, Option<RunId>)],
    ) -> Result<(), Failure> {
        let (target, project) = (Some(self.section.name.to_string()), Some(self.project.clone()));
        let of_round = |round: &RoundId| rounds.iter().any(|(known, _)| known == round);
        // What a server has only recorded has no intents yet.
        let query = WaitingQuery {
            target: target.clone(),
            project: project.clone(),
            cycle: Some(self.cycle.clone()),
            ..WaitingQuery::default()
        };
        let waiting = ledger.waiting(query).await.map_err(|error| Failure::store(&error))?;
        if let Some(waits) = waiting.iter().find(|waits| of_round(&waits.round)) {
            return Err(self.not_ended(&format!("push {} waits to be forwarded", waits.key)));
        }
        let query = IntentQuery { target, project, cycle: Some(self.cycle.clone()), ..IntentQuery::default() };
        let intents = ledger.intent_reports(query).await.map_err(|error| Failure::store(&error))?;
        match intents.iter().find(|intent| of_round(&intent.round) && !intent.state.is_settled()) {
            Some(intent) => Err(self.not_ended(&format!("push {} is {} there", intent.key, intent.state))),
            None => Ok(()),
        }
    }

    /// What this machine still has in its outbox, recorded or not, goes there with the next `flush`.
    fn nothing_is_kept(&self, rounds: &[(RoundId, Option<RunId>)]) -> Result<(), Failure> {
        if !self.outbox.is_dir() {
            return Ok(());
        }
        let ledger = self.section.ledger()?;
        let outbox = Outbox::open(&self.outbox).map_err(|error| courier::outbox_failure(&error))?;
        let (entries, _) = outbox.entries().map_err(|error| courier::outbox_failure(&error))?;
        let kept = entries.iter().map(delivery::Entry::header).find(|header| {
            let (place, of_round) =
                (&header.place, |(round, _): &(RoundId, Option<RunId>)| *round == header.place.round);
            belongs_to(header, &ledger)
                && (&place.project, &place.cycle) == (&self.project, &self.cycle)
                && rounds.iter().any(of_round)
        });
        match kept {
            Some(header) => Err(self.not_ended(&format!("push {} is kept in the outbox", header.key))),
            None => Ok(()),
        }
    }

    fn not_ended(&self, why: &str) -> Failure {
        Failure::on_its_way(&self.section.name, why, self.section.served.is_some())
    }

    async fn found(
        &self,
        forwarding: &Forwarding,
        wanted: &[CycleWanted],
        patience: &mut Patience<'_>,
    ) -> Result<Vec<CycleFound>, Failure> {
        let adapter = forwarding.adapter();
        for wanted in wanted {
            let found = patience.reading(|| adapter.find_cycles(wanted)).await;
            let found = found.map_err(|error| gave_up(&self.section.name, &error))?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Err(Failure::nothing_there(
            format!("{}: nothing there carries the tag of round {:?} of {}", self.section.name, self.round, self.cycle),
            "Say the round as `tallyonce key --explain` shows it in a job that pushes, and the same --project and --cycle.",
        ))
    }
}

/// The run in a round's id, where it needed no escapes.
fn run_of(round: &str) -> Option<RunId> {
    let (_, rest) = round.split_once("run:")?;
    RunId::parse(rest.split(':').next()?).ok()
}
