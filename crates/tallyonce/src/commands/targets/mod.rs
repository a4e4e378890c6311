//! The commands about targets: what a product really does (`probe`), what it holds twice (`audit`), mending it (`repair`), how
//! far forwarding is (`forwards`), and ending a round's cycle (`close`). Must not know products, and must not judge: `delivery::foreign` does.

mod audit;
mod close;
mod forwards;
mod probe;
mod repair;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use delivery::foreign::patience::{Doing, GaveUp, Patience, Watch};
use delivery::foreign::{CycleId, CycleWanted};
use delivery::{Clock as _, Stop, SystemClock};
use domain::ci::Env;
use domain::intent::{Intent, IntentId};
use domain::listing::{IntentReport, RoundReport};
use domain::round::RoundChoice;
use domain::{CycleName, ProjectId};
use rand::rngs::StdRng;
use store::{IntentQuery, Store};

use crate::cli::ThereArgs;
use crate::failure::Failure;
use crate::forward::Forwarding;
use crate::output::Output;
use crate::settings::{ConfigFile, ConnectionSettings, duration};

pub(crate) use audit::audit;
pub(crate) use close::{RoundThere, close};
pub(crate) use forwards::{Looks, Verdict, forwards};
pub(crate) use probe::probe;
pub(crate) use repair::repair;

/// What every command about targets needs.
pub(crate) struct Desk<'a> {
    /// The configuration.
    pub file: Option<&'a ConfigFile>,
    /// The variables that it names.
    pub env: &'a Env,
    /// How products are reached.
    pub connection: ConnectionSettings,
    /// Where results go.
    pub output: Output,
    /// The wish to stop.
    pub stop: Stop,
}

impl Desk<'_> {
    fn file(&self) -> Result<&ConfigFile, Failure> {
        self.file.ok_or_else(|| {
            Failure::usage(
                "there is no tallyonce.toml here, so no target is known",
                "Describe targets in tallyonce.toml (docs/targets), or name the file with --config.",
            )
        })
    }

    fn open(&self, name: &delivery::foreign::TargetName) -> Result<Forwarding, Failure> {
        let section = self.file()?.target(name)?;
        Forwarding::prepare(&section, self.env, &self.connection, self.output)
    }
}

/// A wait for answers, until the deadline, counted from now.
fn patience<'a>(
    clock: &'a SystemClock,
    random: &'a mut StdRng,
    stop: &'a Stop,
    deadline: Duration,
    watch: Watch<'a>,
) -> Patience<'a> {
    let deadline_ms = clock.now_ms().saturating_add(u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX));
    Patience::new(clock, random, stop, deadline_ms).watched(watch)
}

/// A wait that people are told of, in milliseconds.
const LONG_MS: u64 = 1000;

/// Says what goes on, a line for each.
fn told(output: Output) -> impl Fn(Doing<'_>) + Sync {
    move |doing| match doing {
        Doing::Measures(what) => output.note(&format!("measures: {what}")),
        Doing::Waits { ms, why } if ms >= LONG_MS => {
            output.note(&format!("waits {}: {why}", duration::show(Duration::from_millis(ms))));
        }
        Doing::Waits { .. } => {}
    }
}

/// What `--cycle` means there.
enum There {
    /// A cycle that the ledger knows, with what was written into it.
    Known { wanted: CycleWanted, intents: Vec<Intent> },
    /// No ledger here knows it: the product's own id of one, or its name.
    Said(CycleId),
}

/// The cycles there that `--cycle` means: those of our cycle's rounds as the ledger has them, else the product's own id.
async fn cycles_there(forwarding: &Forwarding, args: &ThereArgs) -> Result<Vec<There>, Failure> {
    let said = || vec![There::Said(CycleId::new(&args.cycle))];
    let Some(ledger) = forwarding.ledger().await? else { return Ok(said()) };
    let target = Some(args.target.to_string());
    let listed = ledger.intent_reports(IntentQuery { target: target.clone(), ..IntentQuery::default() }).await;
    let is_meant = |one: &IntentReport| {
        one.cycle.as_str() == args.cycle || one.cycle_there.as_ref().is_some_and(|there| *there == args.cycle)
    };
    let mut meant = listed.map_err(|error| Failure::store(&error))?;
    meant.retain(is_meant);
    let ids: Vec<IntentId> = meant.into_iter().filter_map(|one| one.id).collect();
    if ids.is_empty() {
        return Ok(said());
    }
    let intents = ledger.intents(IntentQuery { ids, target, ..IntentQuery::default() }).await;
    let intents = intents.map_err(|error| Failure::store(&error))?;
    let mut rounds = Rounds { ledger: &*ledger, known: BTreeMap::new() };
    let mut by_cycle: Vec<(CycleId, CycleWanted, Vec<Intent>)> = Vec::new();
    for intent in intents {
        let Some(there) = intent.cycle_there.as_deref().map(CycleId::new) else { continue };
        if let Some((.., intents)) = by_cycle.iter_mut().find(|(known, ..)| *known == there) {
            intents.push(intent);
        } else {
            let wanted = forwarding.wanted_of(&intent, there.as_str(), rounds.of(&intent).await?);
            by_cycle.push((there, wanted, vec![intent]));
        }
    }
    if by_cycle.is_empty() {
        return Ok(said());
    }
    Ok(by_cycle.into_iter().map(|(_, wanted, intents)| There::Known { wanted, intents }).collect())
}

/// What a ledger knows of rounds, each cycle read once.
struct Rounds<'a> {
    ledger: &'a dyn Store,
    known: BTreeMap<(ProjectId, CycleName), Vec<RoundReport>>,
}

impl Rounds<'_> {
    /// The round of an intent; `None` once it was deleted.
    async fn of(&mut self, intent: &Intent) -> Result<Option<&RoundReport>, Failure> {
        let place = (intent.project.clone(), intent.cycle.clone());
        let rounds = match self.known.entry(place) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                let report = self.ledger.cycle(&intent.project, &intent.cycle, &RoundChoice::All).await;
                let report = report.map_err(|error| Failure::store(&error))?;
                vacant.insert(report.map(|report| report.rounds).unwrap_or_default())
            }
        };
        Ok(rounds.iter().find(|round| round.round == intent.round))
    }
}

/// The product gave no answer, or none that helps.
fn gave_up(target: &delivery::foreign::TargetName, error: &GaveUp) -> Failure {
    let failure = match error {
        GaveUp::Denied(what) => Failure::denied_there(target, what),
        GaveUp::Refused(what) => Failure::refused_there(target, what),
        GaveUp::Gone(what) => Failure::nothing_there(
            format!("{target}: {what}"),
            "Look whether somebody deleted it there, then run the same command again.",
        ),
        GaveUp::Stopped(_) | GaveUp::Over(_) => Failure::unanswered(target, &error.to_string()),
    };
    // No push is under way: what those say of one would be wrong here.
    Failure { means: "It was only asked: what is recorded, and what stands there, is as it was.".to_owned(), ..failure }
}
