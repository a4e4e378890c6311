//! `tallyonce key`: prints the push key, explains it, judges it. Must not send or write anything.

use std::fmt::Write as _;

use domain::ci::{Effect, Identity, Part, PlatformName, Rerun, Strength, identify_as, judge_as, recognised};
use domain::key::{Finding, Severity};
use domain::{Executor, Ordinal, PushKey, RoundId};
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::settings::key::KeySettings;

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
    platform: Option<&'static str>,
    strength: Option<Strength>,
    reruns: Vec<Rerun>,
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

    /// The same on a platform.
    fn refused(platform: Option<PlatformName>, warnings: Vec<String>) -> Self {
        Self {
            platform: platform.map(PlatformName::slug),
            strength: platform.map(PlatformName::strength),
            reruns: platform.map(|platform| platform.reruns().to_vec()).unwrap_or_default(),
            ..Self::nothing(warnings)
        }
    }

    fn of(identity: &Identity, settings: &KeySettings, findings: &[Finding]) -> Self {
        let parts = identity.explained.iter().filter(|part| part.in_key);
        let mut warnings = identity.warnings.clone();
        warnings.extend(findings.iter().map(said));
        Self {
            key: Some(identity.key.clone()),
            round: Some(identity.round.clone()),
            parts: parts
                .map(|p| PartObject {
                    part: p.part,
                    value: p.value.clone(),
                    source: settings.source_of(p.source),
                    why: p.why,
                })
                .collect(),
            ordinal: identity.ordinal,
            executor: identity.executor.clone(),
            left_out: identity.left_out.iter().map(|l| LeftOutObject { variable: l.variable, why: l.why }).collect(),
            warnings,
            platform: identity.platform,
            strength: identity.strength,
            reruns: identity.reruns.clone(),
        }
    }
}

/// Prints the key.
///
/// # Errors
/// There is no identity, or `--strict` judges the key as wrong.
pub(crate) fn run(settings: &KeySettings, output: Output) -> Result<Exit, Failure> {
    let judge = |text: &str| judge_as(settings.platform, text, &settings.env);
    let identity = match identify_as(settings.platform, &settings.env, &settings.overrides) {
        Ok(identity) => identity,
        Err(error) => {
            let findings = match &settings.overrides.run {
                Some(run) if settings.check || settings.strict => judge(run.as_str()),
                _ => Vec::new(),
            };
            let failure = Failure::from(error);
            if settings.json {
                let mut warnings: Vec<String> = findings.iter().map(said).collect();
                warnings.push(failure.what.clone());
                output.object(&KeyObject::refused(settings.platform.or_else(|| recognised(&settings.env)), warnings));
            } else {
                say(output, &findings);
            }
            return Err(failure);
        }
    };
    let findings = if settings.check || settings.strict { judge(&judged(&identity)) } else { Vec::new() };
    if settings.json {
        output.object(&KeyObject::of(&identity, settings, &findings));
    } else if settings.explain {
        output.text(&explanation(&identity, settings));
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

/// Whether the platform's own retries keep the key, and what to do where they don't.
fn class(title: &str, strength: Strength) -> String {
    match strength {
        Strength::Strong => format!("strong: the retries of {title} keep the run, so a job tried again keeps its key"),
        Strength::Weak => format!(
            "weak: some retries of {title} look like a new run, and their outcomes are counted twice; where YOU DECIDE \
             stands below, pass --run with a value of your own that the retry keeps"
        ),
        Strength::None => format!(
            "none: {title} tells a process nothing that names the run, so every push needs --run with a value that a retry \
             keeps"
        ),
    }
}

/// The whole derivation for people.
fn explanation(identity: &Identity, settings: &KeySettings) -> String {
    let shown = |part: &Part| {
        let source = settings.source_of(part.source);
        format!("  {:<9}{}\n           from {source}: {}\n", part.part, part.value, part.why)
    };
    let mut text = format!("key    {}\nround  {}\n", identity.key, identity.round);
    if let (Some(title), Some(strength)) = (identity.platform_title, identity.strength) {
        let _ = writeln!(text, "class  {}", class(title, strength));
    }
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
