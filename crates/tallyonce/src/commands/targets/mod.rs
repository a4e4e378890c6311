//! The commands about targets: what a product really does (`probe`), what it holds twice (`audit`), mending it (`repair`), and
//! how far forwarding is (`forwards`). Must not know products, and must not judge: `delivery::foreign` does.

mod audit;
mod forwards;
mod probe;
mod repair;

use std::time::Duration;

use delivery::foreign::patience::{GaveUp, Patience};
use delivery::foreign::{CycleId, CycleWanted};
use delivery::{Clock as _, Stop, SystemClock};
use domain::ci::Env;
use domain::intent::Intent;
use domain::marker::WriteId;
use rand::rngs::StdRng;
use store::IntentQuery;

use crate::cli::ThereArgs;
use crate::failure::Failure;
use crate::forward::Forwarding;
use crate::output::Output;
use crate::settings::{ConfigFile, ConnectionSettings};

pub(crate) use audit::audit;
pub(crate) use forwards::forwards;
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
fn patience<'a>(clock: &'a SystemClock, random: &'a mut StdRng, stop: &'a Stop, deadline: Duration) -> Patience<'a> {
    let deadline_ms = clock.now_ms().saturating_add(u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX));
    Patience { clock, random, stop, deadline_ms }
}

/// A cycle there, with what the ledger knows of it.
struct There {
    wanted: CycleWanted,
    intents: Option<Vec<Intent>>,
}

/// The cycles there that `--cycle` means: those of our cycle's rounds as the ledger has them, else the product's own id.
async fn cycles_there(forwarding: &Forwarding, args: &ThereArgs) -> Result<Vec<There>, Failure> {
    let mut by_cycle: Vec<There> = Vec::new();
    let Some(ledger) = forwarding.ledger()? else { return Ok(vec![given(&args.cycle)]) };
    let query = IntentQuery { target: Some(args.target.to_string()), ..IntentQuery::default() };
    let intents = ledger.intents(query).await.map_err(|error| Failure::store(&error))?;
    for intent in intents {
        let Some(there) = intent.cycle_there.clone() else { continue };
        if intent.cycle.as_str() != args.cycle && there != args.cycle {
            continue;
        }
        let id = WriteId::of_cycle(&intent.project, intent.cycle.as_str(), forwarding.round_part(&intent));
        match by_cycle.iter_mut().find(|known| known.wanted.given.as_ref().is_some_and(|c| c.as_str() == there)) {
            Some(known) => known.intents.get_or_insert_default().push(intent),
            None => by_cycle.push(There {
                wanted: CycleWanted {
                    name: format!("{} {}", intent.project, intent.cycle),
                    id,
                    link: None,
                    given: Some(CycleId::new(there)),
                },
                intents: Some(vec![intent]),
            }),
        }
    }
    Ok(if by_cycle.is_empty() { vec![given(&args.cycle)] } else { by_cycle })
}

/// A cycle of the product that nobody here pushed to.
fn given(cycle: &str) -> There {
    // Nothing carries this id: only the cycle that is named is read.
    let id = WriteId(u128::MAX);
    There {
        wanted: CycleWanted { name: cycle.to_owned(), id, link: None, given: Some(CycleId::new(cycle)) },
        intents: None,
    }
}

/// The product gave no answer, or none that helps.
fn gave_up(target: &delivery::foreign::TargetName, error: &GaveUp) -> Failure {
    match error {
        GaveUp::Denied(what) => Failure::denied_there(target, what),
        GaveUp::Refused(what) => Failure::refused_there(target, what),
        GaveUp::Stopped(_) | GaveUp::Over(_) => Failure::unanswered(target, &error.to_string()),
    }
}
