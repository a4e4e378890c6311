//! `tallyonce probe`: measures in a scratch cycle what a product really does, and keeps the result for the strategy.
//! Must not judge.

use std::fmt::Write as _;
use std::path::Path;

use delivery::SystemClock;
use delivery::foreign::probe::{self, ProbeError, ProbeOptions, Probed};
use delivery::foreign::{Case, CaseId, CaseWanted};
use domain::ItemName;
use rand::rngs::StdRng;
use serde::Serialize;

use super::{Desk, gave_up, patience, told};
use crate::cli::ProbeArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::forward::Forwarding;
use crate::settings::push::DEADLINE;

/// What was measured, as `--json` prints it.
#[derive(Debug, Serialize)]
struct ProbeObject<'a> {
    target: &'a str,
    kept: Option<&'a Path>,
    #[serde(flatten)]
    probed: &'a Probed,
}

/// Measures and prints. Exit 1 if the product does otherwise than is known of it.
///
/// # Errors
/// It can't be measured.
pub(crate) async fn probe(args: ProbeArgs, desk: Desk<'_>) -> Result<Exit, Failure> {
    let forwarding = desk.open(&args.target)?;
    let (clock, mut random) = (SystemClock::new(), rand::make_rng::<StdRng>());
    let watch = told(desk.output);
    let mut patience = patience(&clock, &mut random, &desk.stop, args.deadline.unwrap_or(DEADLINE), &watch);
    let cases = cases(&args, &forwarding, &mut patience).await?;
    let quiet_ms = forwarding.quiet_ms();
    let options = ProbeOptions {
        larger: args.larger,
        late_max_ms: 2 * quiet_ms,
        quiet_ms: Some(quiet_ms),
        ..ProbeOptions::default()
    };
    let probed = probe::probe(forwarding.adapter(), &cases, &options, &mut patience).await;
    let mut probed = probed.map_err(|error| failure(&args, &error))?;
    probed.measured.more.rate = forwarding.heard();
    probed.notes = probe::notes(&probed.measured, forwarding.adapter().facts());
    let path = forwarding.target().probe.as_path();
    let kept = (!args.no_keep).then_some(path);
    if let Some(path) = kept {
        keep(path, &probed)?;
    }
    if args.json {
        desk.output.object(&ProbeObject { target: args.target.as_str(), kept, probed: &probed });
    } else {
        desk.output.text(&text(&probed, kept));
    }
    Ok(if probed.contradicts.is_empty() { Exit::Success } else { Exit::Found })
}

/// Two cases to write to: those that are named, else two of the probe's own.
async fn cases(
    args: &ProbeArgs,
    forwarding: &Forwarding,
    patience: &mut delivery::foreign::patience::Patience<'_>,
) -> Result<Vec<Case>, Failure> {
    if !args.cases.is_empty() {
        return Ok(args.cases.iter().map(|id| Case { id: CaseId::new(id), title: id.clone() }).collect());
    }
    let items = ["first", "second"].map(|name| ItemName::new(["Tallyonce"], Some("probe"), name));
    let wanted: Vec<CaseWanted<'_>> =
        items.iter().map(|item| CaseWanted { item, external_ids: &[], mapped: None }).collect();
    let adapter = forwarding.adapter();
    let choices = patience.reading(|| adapter.cases(&wanted)).await.map_err(|error| gave_up(&args.target, &error))?;
    choices
        .into_iter()
        .map(|choice| {
            let (cases, left_out) = choice.into_parts();
            cases.into_iter().next().ok_or_else(|| {
                let why = left_out.join("; ");
                Failure::usage(
                    format!("{}: a probe needs two cases to write to ({why})", args.target),
                    "Name two that nobody misses: --case ID --case ID; or set create-cases = true, where the product keeps cases.",
                )
            })
        })
        .collect()
}

fn keep(path: &Path, probed: &Probed) -> Result<(), Failure> {
    let bad = |error: std::io::Error| {
        Failure::machine(
            format!("the result can't be kept in {}: {error}", path.display()),
            "Mend the folder, or set `probe` of the target; --no-keep only shows it.",
        )
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(bad)?;
    }
    // Our own types have string keys only, so this cannot fail.
    let text = serde_json::to_string_pretty(probed).unwrap_or_default();
    std::fs::write(path, text + "\n").map_err(bad)
}

fn failure(args: &ProbeArgs, error: &ProbeError) -> Failure {
    match error {
        ProbeError::TooFewCases(_) => {
            Failure::usage(format!("{}: {error}", args.target), "Give --case twice: --case ID --case ID.")
        }
        ProbeError::Ended { why, left } => {
            let means = if left.is_empty() {
                "What the probe had made there is removed again; of pushes nothing was touched."
            } else {
                "What is named stands there, with what the probe had written into it; of pushes nothing was touched."
            };
            let failure = gave_up(&args.target, why);
            Failure { what: format!("{}: {error}", args.target), means: means.to_owned(), ..failure }
        }
    }
}

fn text(probed: &Probed, kept: Option<&Path>) -> String {
    let mut text = format!("{} at {}\n", probed.kind, probed.at);
    let measured = serde_json::to_value(&probed.measured).unwrap_or_default();
    for (name, value) in measured.as_object().into_iter().flatten() {
        let _ = writeln!(text, "  {name:<14} {value}");
    }
    let says = serde_json::to_value(&probed.says).unwrap_or_default();
    let _ = writeln!(text, "so it");
    for (name, value) in says.as_object().into_iter().flatten() {
        let _ = writeln!(text, "  {name:<14} {value}");
    }
    for contradiction in &probed.contradicts {
        let _ = writeln!(text, "contradicts what is known of it: {contradiction}");
    }
    for note in &probed.notes {
        let _ = writeln!(text, "note: {note}");
    }
    for left in &probed.left {
        let _ = writeln!(text, "left there: {left}");
    }
    let allows: Vec<&str> = probed.allows.iter().map(|strategy| strategy.word()).collect();
    let _ = writeln!(
        text,
        "strategies that this allows: {}",
        if allows.is_empty() { "none".to_owned() } else { allows.join(", ") }
    );
    if let Some(path) = kept {
        let _ = writeln!(text, "kept in {}", path.display());
    }
    text
}
