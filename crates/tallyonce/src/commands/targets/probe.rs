//! `tallyonce probe`: measures in a scratch cycle what a product really does, and keeps the result for the strategy.
//! Must not judge.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use delivery::SystemClock;
use delivery::foreign::patience::{GaveUp, Patience};
use delivery::foreign::probe::{self, ProbeError, ProbeOptions, Probed};
use delivery::foreign::{Case, CaseId, CaseWanted, Facts, Kind};
use domain::ItemName;
use rand::rngs::StdRng;
use serde::Serialize;

use super::{Desk, gave_up, patience, told};
use crate::cli::ProbeArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::forward::Forwarding;
use crate::settings::push::DEADLINE;

/// So many quiet times are added to the usual deadline: for calls without an answer, and for what may come late.
const QUIETS: u64 = 5;

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
/// It can't be measured, or its result can't be kept.
pub(crate) async fn probe(args: ProbeArgs, desk: Desk<'_>) -> Result<Exit, Failure> {
    let forwarding = desk.open(&args.target)?;
    let path = forwarding.target().probe.as_path();
    if !args.no_keep {
        can_be_kept(path)?;
    }
    let quiet_ms = forwarding.quiet_ms();
    let (clock, mut random) = (SystemClock::new(), rand::make_rng::<StdRng>());
    let watch = told(desk.output);
    // What is cut off is watched twice as long, within half of what is left, and calls may stay without an answer before.
    let usual = DEADLINE + Duration::from_millis(quiet_ms.saturating_mul(QUIETS));
    let mut patience = patience(&clock, &mut random, &desk.stop, args.deadline.unwrap_or(usual), &watch);
    let Cases { cases, made } = cases(&args, &forwarding, &desk, &mut patience).await?;
    let options = ProbeOptions {
        larger: args.larger,
        late_max_ms: 2 * quiet_ms,
        quiet_ms: Some(quiet_ms),
        of: Some(forwarding.target().settings.subject()),
        ..ProbeOptions::default()
    };
    let probed = probe::probe(forwarding.adapter(), &cases, &options, &mut patience).await;
    let mut probed = probed.map_err(|error| failure(&args, &error, &made))?;
    let facts = Facts { quiet_ms, ..*forwarding.adapter().facts() };
    probed.measured.more.rate = forwarding.heard();
    probed.notes = probe::notes(&probed.measured, &facts);
    probed.left.extend(made);
    let kept = if args.no_keep { Ok(false) } else { keep(path, &probed, &facts, &desk) };
    // What was measured, and what is left there, is said also where it can't be kept.
    let shown = matches!(kept, Ok(true)).then_some(path);
    if args.json {
        desk.output.object(&ProbeObject { target: args.target.as_str(), kept: shown, probed: &probed });
    } else {
        desk.output.text(&text(&probed, shown));
    }
    kept?;
    Ok(if probed.contradicts.is_empty() { Exit::Success } else { Exit::Found })
}

/// Two cases to write to, and those of them that were made for it, in words.
struct Cases {
    cases: Vec<Case>,
    made: Vec<String>,
}

/// Those that are named, else two of the probe's own.
async fn cases(
    args: &ProbeArgs,
    forwarding: &Forwarding,
    desk: &Desk<'_>,
    patience: &mut Patience<'_>,
) -> Result<Cases, Failure> {
    if !args.cases.is_empty() {
        let cases = args.cases.iter().map(|id| Case { id: CaseId::new(id), title: id.clone() }).collect();
        return Ok(Cases { cases, made: Vec::new() });
    }
    let items = ["first", "second"].map(|name| ItemName::new(["Tallyonce"], Some("probe"), name));
    let wanted: Vec<CaseWanted<'_>> =
        items.iter().map(|item| CaseWanted { item, external_ids: &[], mapped: None }).collect();
    // Whoever may make cases doesn't say which it has made: who only looks finds those that were there.
    let mut were_there = BTreeSet::new();
    if forwarding.target().settings.create_cases {
        let looks = forwarding.only_looking(&desk.connection)?;
        let choices = patience.reading(|| looks.cases(&wanted)).await;
        let choices = choices.map_err(|error| gave_up(&args.target, &error))?;
        were_there.extend(choices.into_iter().flat_map(|choice| choice.into_parts().0).map(|case| case.id));
    }
    let adapter = forwarding.adapter();
    let choices =
        patience.reading(|| adapter.cases(&wanted)).await.map_err(|error| no_cases(args, forwarding, &error))?;
    let chosen = choices.into_iter().map(|choice| {
        let (cases, left_out) = choice.into_parts();
        cases.into_iter().next().ok_or_else(|| {
            let why = left_out.join("; ");
            Failure::usage(
                format!("{}: a probe needs two cases to write to ({why})", args.target),
                "Name two that nobody misses: --case ID --case ID; or set create-cases = true, where the product keeps cases.",
            )
        })
    });
    let cases = chosen.collect::<Result<Vec<Case>, Failure>>()?;
    let is_new = |case: &&Case| forwarding.target().settings.create_cases && !were_there.contains(&case.id);
    let planned = match adapter.facts().kind {
        // There a case that is made comes into the plan, or can be written to only there: pushes use it too.
        Kind::Kiwi | Kind::Nitrate | Kind::Testlink => " and put into the test plan",
        _ => "",
    };
    let made = cases.iter().filter(is_new).map(|case| {
        let Case { id, title } = case;
        format!(
            "case {id} ({title}), made for the probe{planned}: the next probe writes to it again; delete it by hand"
        )
    });
    Ok(Cases { made: made.collect(), cases })
}

/// The cases that it makes for itself may be there or not.
fn no_cases(args: &ProbeArgs, forwarding: &Forwarding, error: &GaveUp) -> Failure {
    let failure = gave_up(&args.target, error);
    if !forwarding.target().settings.create_cases {
        return failure;
    }
    let means = "The two cases that it makes for itself, `Tallyonce > probe > first` and `second`, may be there; nothing else \
                 was written.";
    Failure { means: means.to_owned(), ..failure }
}

fn cannot_keep(path: &Path, error: &std::io::Error) -> Failure {
    Failure::machine(
        format!("the result can't be kept in {}: {error}", path.display()),
        "Mend the folder, or set `probe` of the target; --no-keep only shows it.",
    )
}

/// Tries the folder before anything is written there or here: a probe takes minutes, and leaves something behind.
fn can_be_kept(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let tried = std::fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder));
    tried.map(drop).map_err(|error| cannot_keep(path, &error))
}

/// Keeps it for the strategy, unless an earlier one has found what this one may not have come to.
fn keep(path: &Path, probed: &Probed, facts: &Facts, desk: &Desk<'_>) -> Result<bool, Failure> {
    let before = std::fs::read_to_string(path).ok().and_then(|text| Probed::parse(&text).ok());
    if let Some(before) = before.filter(|before| probe::outweighs(before, probed, facts)) {
        desk.output.warning(&format!(
            "this probe is not whole, and is not kept: that of {}, in {}, contradicts what is known of the product, and stays. \
             Run it again with a longer --deadline",
            before.at,
            path.display()
        ));
        return Ok(false);
    }
    // Our own types have string keys only, so this cannot fail.
    let text = serde_json::to_string_pretty(probed).unwrap_or_default();
    let kept = std::fs::write(path, text + "\n");
    kept.map(|()| true).map_err(|error| {
        let means = "The probe was carried out, and its result, with what is left there, was printed; of pushes nothing was \
                     touched.";
        Failure { means: means.to_owned(), ..cannot_keep(path, &error) }
    })
}

fn failure(args: &ProbeArgs, error: &ProbeError, made: &[String]) -> Failure {
    let failure = match error {
        ProbeError::TooFewCases(_) => {
            Failure::usage(format!("{}: {error}", args.target), "Give --case twice: --case ID --case ID.")
        }
        ProbeError::NoScratch(_) => {
            Failure::usage(format!("{}: {error}", args.target), "docs/targets/generic.md says what a probe writes.")
        }
        ProbeError::Ended { why, left } => {
            let means = if left.is_empty() && made.is_empty() {
                "What the probe had made there is removed again; of pushes nothing was touched."
            } else {
                "What is named stands there, with what the probe had written into it; of pushes nothing was touched."
            };
            let failure = gave_up(&args.target, why);
            Failure { what: format!("{}: {error}", args.target), means: means.to_owned(), ..failure }
        }
    };
    Failure { details: made.iter().map(|made| format!("left there: {made}")).collect(), ..failure }
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
