//! `tallyonce key`: prints the push key, explains it, judges it. Must not send or write anything.

use std::fmt::Write as _;

use domain::ci::{Effect, Env, Identity, Overrides, Part, identify, judge};
use domain::key::{Finding, Severity};
use domain::{Executor, Ordinal, PushKey, RoundId};
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::settings::push::PartSources;

/// `key`, resolved.
#[derive(Debug)]
pub(crate) struct KeySettings {
    /// What replaces the platform's identity.
    pub overrides: Overrides,
    /// Where that came from.
    pub sources: PartSources,
    /// Say why.
    pub explain: bool,
    /// Judge.
    pub check: bool,
    /// Judge, and fail on what is surely wrong.
    pub strict: bool,
    /// One JSON object.
    pub json: bool,
}

/// `key --json`. Field names and order are an interface.
#[derive(Debug, Default, Serialize)]
pub(crate) struct KeyObject {
    key: Option<PushKey>,
    round: Option<RoundId>,
    parts: Vec<PartObject>,
    ordinal: Option<Ordinal>,
    executor: Option<Executor>,
    left_out: Vec<LeftOutObject>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct PartObject {
    part: &'static str,
    value: String,
    source: String,
    why: &'static str,
}

#[derive(Debug, Serialize)]
struct LeftOutObject {
    variable: &'static str,
    why: &'static str,
}

impl KeyObject {
    /// Where there is no identity.
    pub(crate) fn nothing(warnings: Vec<String>) -> Self {
        Self { warnings, ..Self::default() }
    }

    fn of(identity: &Identity, sources: &PartSources, findings: &[Finding]) -> Self {
        let parts = identity.explained.iter().filter(|part| part.in_key);
        let mut warnings = identity.warnings.clone();
        warnings.extend(findings.iter().map(said));
        Self {
            key: Some(identity.key.clone()),
            round: Some(identity.round.clone()),
            parts: parts
                .map(|p| PartObject { part: p.part, value: p.value.clone(), source: sources.of(p.source), why: p.why })
                .collect(),
            ordinal: identity.ordinal,
            executor: identity.executor.clone(),
            left_out: identity.left_out.iter().map(|l| LeftOutObject { variable: l.variable, why: l.why }).collect(),
            warnings,
        }
    }
}

/// Prints the key.
///
/// # Errors
/// There is no identity, or `--strict` judges the key as wrong.
pub(crate) fn run(settings: &KeySettings, env: &Env, output: Output) -> Result<Exit, Failure> {
    let identity = match identify(env, &settings.overrides) {
        Ok(identity) => identity,
        Err(error) => {
            let findings = match &settings.overrides.run {
                Some(run) if settings.check || settings.strict => judge(run.as_str(), env),
                _ => Vec::new(),
            };
            let failure = Failure::from(error);
            if settings.json {
                let mut warnings: Vec<String> = findings.iter().map(said).collect();
                warnings.push(failure.what.clone());
                output.object(&KeyObject::nothing(warnings));
            } else {
                say(output, &findings);
            }
            return Err(failure);
        }
    };
    let findings = if settings.check || settings.strict { judge(&judged(&identity), env) } else { Vec::new() };
    if settings.json {
        output.object(&KeyObject::of(&identity, &settings.sources, &findings));
    } else if settings.explain {
        output.result(&explanation(&identity, &settings.sources));
        say(output, &findings);
    } else {
        output.result(&format!("{}\n", identity.key));
        for warning in &identity.warnings {
            output.warning(warning);
        }
        say(output, &findings);
    }
    if settings.check && findings.is_empty() && !settings.json {
        output.note("nothing wrong is seen in this key; that does not prove it right");
    }
    let wrong = findings.iter().any(|finding| finding.severity.strict_fails());
    if settings.strict && wrong {
        return Err(Failure::usage("the key is wrong, see above (--strict)", "Use the run that the findings name."));
    }
    Ok(Exit::Success)
}

/// What is judged: the key, or, where it had to be shortened, the run in it.
fn judged(identity: &Identity) -> String {
    let key = identity.key.as_str();
    if key.contains(":b3:") { identity.parts.run.to_string() } else { key.to_owned() }
}

fn say(output: Output, findings: &[Finding]) {
    for finding in findings {
        output.warning(&said(finding));
    }
}

fn said(finding: &Finding) -> String {
    let grade = match finding.severity {
        Severity::Fail => "wrong",
        Severity::Warn => "doubtful",
    };
    format!("{grade}: {}. {} {}", finding.what, finding.why, finding.instead)
}

/// The whole derivation for people.
fn explanation(identity: &Identity, sources: &PartSources) -> String {
    let shown = |part: &Part| {
        let source = sources.of(part.source);
        format!("  {:<9}{}\n           from {source}: {}\n", part.part, part.value, part.why)
    };
    let mut text = format!("key    {}\nround  {}\n", identity.key, identity.round);
    let _ = writeln!(text, "\nIn the key ({}):", identity.platform_title.unwrap_or("outside CI"));
    for part in identity.explained.iter().filter(|part| part.in_key) {
        text.push_str(&shown(part));
    }
    let beside: Vec<_> = identity.explained.iter().filter(|part| !part.in_key).collect();
    if !beside.is_empty() {
        text.push_str("\nSent along, never in the key:\n");
        for part in beside {
            text.push_str(&shown(part));
        }
    }
    if !identity.left_out.is_empty() {
        text.push_str("\nSet, and left out on purpose:\n");
        for left in &identity.left_out {
            let _ = writeln!(text, "  {}: {}", left.variable, left.why);
        }
    }
    if !identity.reruns.is_empty() {
        text.push_str("\nWhat a re-run does to the key:\n");
        for rerun in &identity.reruns {
            let effect = match rerun.effect {
                Effect::SameKey => "same key",
                Effect::NewKey => "new key",
                Effect::YouDecide => "YOU DECIDE",
            };
            let _ = writeln!(text, "  {effect:<11}{}: {}", rerun.flavour, rerun.note);
        }
    }
    for warning in &identity.warnings {
        let _ = writeln!(text, "\nwarning: {warning}");
    }
    text
}
