//! `tallyonce forwards`: what is on its way to targets, what arrived, and what a person has to look at. Must not judge.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use domain::intent::{Flag, Intent, IntentState, RefusedItem};
use serde::Serialize;
use store::IntentQuery;

use super::Desk;
use crate::cli::ForwardsArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::forward::{self, Forwarding};
use crate::settings::push::DEADLINE;
use crate::settings::target::TargetSection;

/// An intent as `--json` prints it.
#[derive(Debug, Serialize)]
struct IntentObject<'a> {
    id: String,
    target: &'a str,
    project: &'a str,
    cycle: &'a str,
    round: &'a str,
    key: &'a str,
    number: u32,
    cases: u32,
    state: IntentState,
    sends: u32,
    planned_ms: u64,
    changed_ms: u64,
    cycle_there: Option<&'a str>,
    flags: Vec<Flag>,
    cause: Option<&'a str>,
    refused: &'a [RefusedItem],
}

/// All of them.
#[derive(Debug, Serialize)]
struct ForwardsObject<'a> {
    states: BTreeMap<IntentState, u64>,
    flags: BTreeMap<Flag, u64>,
    forwards: Vec<IntentObject<'a>>,
}

/// Lists intents of every target of the configuration. Exit 7 if one is uncertain, parked or flagged as wrong.
///
/// # Errors
/// A ledger can't be read.
pub(crate) async fn forwards(args: ForwardsArgs, desk: Desk<'_>) -> Result<Exit, Failure> {
    let file = desk.file()?;
    let names: Vec<_> = match &args.target {
        Some(name) => vec![name.clone()],
        None => file.target.keys().cloned().collect(),
    };
    let mut intents = Vec::new();
    for name in names {
        let section = file.target(&name)?;
        if args.sweep {
            let forwarding = Forwarding::prepare(&section, desk.env, &desk.connection, desk.output)?;
            forwarding.sweep(args.deadline.unwrap_or(DEADLINE), &desk.stop).await?;
        }
        intents.extend(of_target(&section, args.state).await?);
    }
    if args.json {
        desk.output.object(&object(&intents));
    } else {
        desk.output.result(&text(&intents));
    }
    let wrong = |intent: &Intent| intent.state.is_uncertain() || intent.flags.iter().any(|flag| flag.is_wrong());
    Ok(if intents.iter().any(wrong) { Exit::Forwarding } else { Exit::Success })
}

async fn of_target(section: &TargetSection, state: Option<IntentState>) -> Result<Vec<Intent>, Failure> {
    let Some(ledger) = forward::existing_ledger(&section.ledger()?)? else { return Ok(Vec::new()) };
    let query = IntentQuery {
        target: Some(section.name.to_string()),
        states: state.into_iter().collect(),
        ..IntentQuery::default()
    };
    ledger.intents(query).await.map_err(|error| Failure::store(&error))
}

fn object(intents: &[Intent]) -> ForwardsObject<'_> {
    let (mut states, mut flags) = (BTreeMap::new(), BTreeMap::new());
    for intent in intents {
        *states.entry(intent.state).or_default() += 1;
        for flag in &intent.flags {
            *flags.entry(*flag).or_default() += 1;
        }
    }
    let forwards = intents.iter().map(|intent| IntentObject {
        id: intent.id.to_string(),
        target: &intent.target,
        project: intent.project.as_str(),
        cycle: intent.cycle.as_str(),
        round: intent.round.as_str(),
        key: intent.key.as_str(),
        number: intent.number,
        cases: intent.cases,
        state: intent.state,
        sends: intent.sends,
        planned_ms: intent.planned_ms,
        changed_ms: intent.changed_ms,
        cycle_there: intent.cycle_there.as_deref(),
        flags: intent.flags.iter().copied().collect(),
        cause: intent.cause.as_deref(),
        refused: &intent.refused,
    });
    ForwardsObject { states, flags, forwards: forwards.collect() }
}

fn text(intents: &[Intent]) -> String {
    let mut text = String::new();
    for intent in intents {
        let there = intent.cycle_there.as_deref().unwrap_or("-");
        let _ = write!(
            text,
            "{:<12} {:<12} {} part {}, {} cases, there {there}, sent {} times",
            intent.target, intent.state, intent.key, intent.number, intent.cases, intent.sends
        );
        for flag in &intent.flags {
            let _ = write!(text, ", {flag}");
        }
        if !intent.refused.is_empty() {
            let _ = write!(text, ", {} refused", intent.refused.len());
        }
        let cause =
            intent.cause.as_deref().filter(|_| !intent.state.is_settled() || intent.state == IntentState::Parked);
        let _ = writeln!(text, "{}", cause.map(|cause| format!(": {cause}")).unwrap_or_default());
    }
    let object = object(intents);
    let states: Vec<String> = object.states.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let all = if states.is_empty() { "nothing was forwarded from here".to_owned() } else { states.join(", ") };
    let _ = writeln!(text, "{all}");
    for (flag, count) in &object.flags {
        let _ = writeln!(text, "{flag} ({count}): {}", forward::meaning(*flag));
    }
    text
}
