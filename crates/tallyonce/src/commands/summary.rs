//! The closing words of a delivery, for people. Must not decide anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use domain::ci::Identity;
use domain::intent::{IntentState, RefusedItem};
use domain::listing::ForwardReport;
use domain::{Counts, Place};

use crate::failure::State;
use crate::forward::ForwardObject;
use crate::object::PushObject;
use crate::settings::duration;
use crate::settings::push::PushSettings;

/// "50 items: 47 passed (2 flaky), 3 failed, 0 errored, 0 skipped".
pub(crate) fn counted(counts: &Counts) -> String {
    let Counts { total, passed, failed, errored, skipped, flaky } = counts;
    let items = if *total == 1 { "item" } else { "items" };
    let flaky = if *flaky > 0 { format!(" ({flaky} flaky)") } else { String::new() };
    format!("{total} {items}: {passed} passed{flaky}, {failed} failed, {errored} errored, {skipped} skipped")
}

/// What became of the push, with the counts that close a log.
pub(crate) fn closing(object: &PushObject) -> String {
    let mut text = String::new();
    let key = object.key.as_ref().map_or("", domain::PushKey::as_str);
    let revision = object.revision.map(|revision| format!(" (revision {revision})")).unwrap_or_default();
    let _ = writeln!(text, "{}: {key}{revision}", object.state.word());
    if let Some(counts) = &object.counts {
        let _ = writeln!(text, "counting now: {}", counted(counts));
    }
    if let Some(difference) = &object.difference {
        let _ = writeln!(
            text,
            "difference ({}): {} changed, {} added, {} not offered",
            difference.class.word(),
            difference.changed,
            difference.added,
            difference.not_offered
        );
    }
    if let Some(url) = &object.url {
        let _ = writeln!(text, "at {url}");
    }
    if let Some(forward) = &object.forward {
        let _ = writeln!(text, "{}", forwarded(forward));
    }
    for forward in object.forwards.iter().flatten() {
        let _ = writeln!(text, "{}", handed_on(forward, object.counts.map_or(0, |counts| counts.total)));
    }
    if let Some(report) = &object.report {
        let (recorded, replayed) = match object.state {
            State::Recorded | State::Revised => (report.outcomes, 0),
            State::Replayed => (0, report.outcomes),
            _ => (0, 0),
        };
        let sent = recorded + replayed;
        let _ = writeln!(
            text,
            "in the report {}, sent {sent}, recorded {recorded}, replayed {replayed}, refused 0, cut {}",
            report.outcomes, report.cut
        );
    }
    text
}

/// What became of it at a target.
fn forwarded(forward: &ForwardObject) -> String {
    let cycle = forward.cycle.as_deref().map(|cycle| format!(" cycle {cycle}")).unwrap_or_default();
    let (target, kind, strategy) = (&forward.target, forward.kind, forward.strategy);
    let files = forward.attachments.as_ref().map(|files| {
        let open = if files.open > 0 { format!(", {} open", files.open) } else { String::new() };
        format!("; attachments: {} sent, {} there, {} left out{open}", files.sent, files.there, files.left_out.len())
    });
    let (items, cases) = (of_items(forward.items, &forward.refused), in_cases(forward.cases, &forward.states));
    format!("forwarded to {target} ({kind}, {strategy}){cycle}: {items}; {cases}{}", files.unwrap_or_default())
}

/// "25 of 26 items; 1 refused or without a case there (listed)".
fn of_items(items: u64, refused: &[RefusedItem]) -> String {
    match refused.iter().map(|refused| refused.item.as_str()).collect::<BTreeSet<_>>().len() as u64 {
        0 => format!("all of {items} items"),
        refused => {
            let left = items.saturating_sub(refused);
            format!("{left} of {items} items; {refused} refused or without a case there (listed)")
        }
    }
}

/// "in 25 cases: 24 acked, 1 rejected".
fn in_cases(cases: u64, states: &BTreeMap<IntentState, u64>) -> String {
    let states: Vec<String> = states.iter().map(|(state, cases)| format!("{cases} {state}")).collect();
    let noun = if cases == 1 { "case" } else { "cases" };
    if states.is_empty() { "nothing to write".to_owned() } else { format!("in {cases} {noun}: {}", states.join(", ")) }
}

/// What became of it at a target of the server. `items`: how many count of the push.
fn handed_on(forward: &ForwardReport, items: u64) -> String {
    let ForwardReport { target, kind, state, states, refused, cycle_there, .. } = forward;
    let kind = kind.as_deref().map(|kind| format!(" ({kind})")).unwrap_or_default();
    let cycle = cycle_there.as_deref().map(|cycle| format!(" cycle {cycle}")).unwrap_or_default();
    let head = format!("handed on to {target}{kind}{cycle}");
    if states.is_empty() {
        return format!("{head}: {state}");
    }
    format!("{head}: {}; {}", of_items(items, refused), in_cases(states.values().sum(), states))
}

/// Where a sealed push is, and what delivers it.
pub(crate) fn sealed(path: &Path, place: &Place) -> String {
    let Place { project, cycle, run, .. } = place;
    format!(
        "nothing is sent; a job that may deliver it says: tallyonce flush {} --to DEST --project {project} --cycle {cycle} \
         --run {run}",
        path.display()
    )
}

/// What would be pushed, and where each setting came from.
pub(crate) fn dry_run(
    object: &PushObject,
    settings: &PushSettings,
    identity: &Identity,
    shown: &[(&'static str, String)],
) -> String {
    let mut text = format!("dry run: nothing is written, nothing is sent\nkey            {}\n", identity.key);
    let _ = writeln!(text, "round          {}", identity.round);
    for part in &identity.explained {
        let place = if part.in_key { "" } else { ", not in the key" };
        let _ = writeln!(text, "  {:<12} {}  ({}{place})", part.part, part.value, settings.sources.of(part.source));
    }
    for (name, value) in shown {
        let _ = writeln!(text, "{name:<14} {value}");
    }
    let deadline = &settings.deadline;
    let _ = writeln!(text, "{:<14} {}  ({})", "deadline", duration::show(deadline.value), deadline.source);
    let outbox = &settings.outbox;
    let _ = writeln!(text, "{:<14} {}  ({})", "outbox", outbox.value.display(), outbox.source);
    if let Some(most) = &settings.chunk_outcomes {
        let _ = writeln!(text, "{:<14} {}  ({})", "chunk-outcomes", most.value, most.source);
    }
    if object.delivery.chunks > 0 {
        let _ = writeln!(text, "{:<14} {}", "chunks", object.delivery.chunks);
    }
    if let Some(report) = &object.report {
        let _ = writeln!(
            text,
            "{:<14} files: {}, test elements: {} ({} repeats), damaged: {}, cut: {}",
            "report", report.files, report.outcomes, report.repeats, report.damaged, report.cut
        );
    }
    if let Some(counts) = &object.counts {
        let _ = writeln!(text, "{:<14} {}", "would count", counted(counts));
    }
    text
}
