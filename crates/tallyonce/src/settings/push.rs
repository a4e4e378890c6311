//! What push, flush and key mean by their flags. Must not read reports or derive a key.

use std::path::PathBuf;
use std::time::Duration;

use domain::ci::{Env, Overrides};
use domain::{CycleName, OnDifference, Ordinal, ProjectId, RunId, Variant, limits};
use reports::Format;

use super::file::FailOnWord;
use super::place::PlaceSettings;
use super::{AnnounceSettings, ConnectionSettings, Layers, Setting, Source, variable};
use crate::cli::{FailOn, FlushArgs, IdentityArgs, SendArgs};
use crate::failure::Failure;

/// How long a delivery is tried, unless said otherwise (design, section 8).
pub(crate) const DEADLINE: Duration = Duration::from_mins(10);
/// Where pushes wait for their receipt, unless said otherwise.
pub(crate) const OUTBOX: &str = ".tallyonce/outbox";

/// `tallyonce push`, resolved.
#[derive(Debug)]
pub(crate) struct PushSettings {
    /// Files, patterns, folders, `-`.
    pub paths: Vec<String>,
    /// Destination, project and cycle, as far as they are said.
    pub place: PlaceSettings,
    /// What replaces the platform's identity.
    pub overrides: Overrides,
    /// Where that came from.
    pub sources: PartSources,
    /// How many pushes the job makes.
    pub expect: Option<u32>,
    /// The reports' format.
    pub format: Option<Format>,
    /// The policy for other outcomes.
    pub on_difference: Setting<OnDifference>,
    /// How long to try.
    pub deadline: Setting<Duration>,
    /// The outbox.
    pub outbox: Setting<PathBuf>,
    /// More outcomes are staged, in chunks of about so many at most; the bounds of `limits` where nobody says it.
    pub chunk_outcomes: Option<Setting<u64>>,
    /// The file to seal into.
    pub seal: Option<PathBuf>,
    /// True: exit 1 if the report holds failed or errored tests.
    pub fail_on_failed: bool,
    /// Damaged reports as far as readable.
    pub partial: bool,
    /// Empty pushes are wanted.
    pub allow_empty: bool,
    /// No strategy that a probe hasn't confirmed where one is needed.
    pub strict: bool,
    /// Wait until the server has handed it on to its targets.
    pub wait_forward: bool,
    /// Write and send nothing.
    pub dry_run: bool,
    /// One JSON object.
    pub json: bool,
    /// Where what became of it is shown.
    pub announce: AnnounceSettings,
    /// How a server is reached.
    pub connection: ConnectionSettings,
}

impl PushSettings {
    /// From the flags over the file. `paths`: the reports that are named.
    ///
    /// # Errors
    /// A value cannot be used; the message says where it came from.
    pub(crate) fn resolve(
        paths: Vec<String>,
        args: SendArgs,
        layers: &Layers<'_>,
        connection: ConnectionSettings,
    ) -> Result<Self, Failure> {
        let on_difference = layers
            .pick("on_difference", args.on_difference, "push.on-difference", |f| f.push.on_difference)
            .unwrap_or(Setting::default(OnDifference::Auto, "revise a higher attempt, else keep; outside CI fail"));
        let fail_on = layers.pick("fail_on", args.fail_on.map(word), "push.fail-on", |f| f.push.fail_on);
        let overrides = with_job(overrides(&args.identity, layers)?, layers);
        let from_file = || layers.file().and_then(|f| f.push.paths.clone()).unwrap_or_default();
        let expect = layers.pick("expect", args.expect, "push.expect", |f| f.push.expect);
        if let Some(Setting { value: 0, source }) = &expect {
            let what = format!("{source}: a job that is expected to push 0 times never completes");
            return Err(Failure::usage(what, "Give the number of pushes over all shards and variants, at least 1."));
        }
        let place = PlaceSettings::resolve("to", args.to, args.project, args.cycle, layers)?;
        place.is_pushed_to()?;
        Ok(Self {
            paths: if paths.is_empty() { from_file() } else { paths },
            place,
            sources: PartSources::of_flags(&args.identity, layers),
            overrides,
            expect: expect.map(|setting| setting.value),
            format: layers.pick("format", args.format, "push.format", |f| f.push.format).map(|s| s.value),
            on_difference,
            deadline: deadline(args.deadline, layers),
            outbox: outbox(args.outbox, layers),
            chunk_outcomes: chunk_outcomes(args.chunk_outcomes, layers)?,
            seal: args.seal,
            fail_on_failed: fail_on.is_some_and(|setting| setting.value == FailOnWord::Failed),
            partial: layers.switch(args.partial, |f| f.push.partial),
            allow_empty: layers.switch(args.allow_empty, |f| f.push.allow_empty),
            strict: args.strict,
            wait_forward: layers.switch(args.wait_forward, |f| f.push.wait_forward),
            dry_run: args.dry_run,
            json: args.json,
            announce: AnnounceSettings::resolve(args.announce, layers),
            connection,
        })
    }
}

fn word(fail_on: FailOn) -> FailOnWord {
    match fail_on {
        FailOn::Failed => FailOnWord::Failed,
        FailOn::Never => FailOnWord::Never,
    }
}

/// How long to try.
pub(crate) fn deadline(typed: Option<Duration>, layers: &Layers<'_>) -> Setting<Duration> {
    layers
        .pick("deadline", typed, "push.deadline", |f| f.push.deadline)
        .unwrap_or(Setting::default(DEADLINE, "ten minutes"))
}

fn chunk_outcomes(typed: Option<u64>, layers: &Layers<'_>) -> Result<Option<Setting<u64>>, Failure> {
    let said = layers.pick("chunk_outcomes", typed, "push.chunk-outcomes", |f| f.push.chunk_outcomes);
    let most = limits::ONE_SHOT_OUTCOMES_MAX as u64;
    match &said {
        Some(Setting { value, source }) if !(1..=most).contains(value) => Err(Failure::usage(
            format!("{source}: chunks of {value} outcomes can't be made"),
            format!("Give a number from 1 to {most}; the default is {}.", limits::CHUNK_OUTCOMES),
        )),
        _ => Ok(said),
    }
}

fn outbox(typed: Option<PathBuf>, layers: &Layers<'_>) -> Setting<PathBuf> {
    layers
        .pick("outbox", typed, "push.outbox", |f| f.push.outbox.clone())
        .unwrap_or_else(|| Setting::default(PathBuf::from(OUTBOX), "in the working folder"))
}

/// The outbox of the pushes of this folder, for a command without a flag for it.
pub(crate) fn outbox_of_pushes(env: &Env, layers: &Layers<'_>) -> PathBuf {
    let named = env.get(&variable("outbox")).filter(|path| !path.is_empty());
    named.map_or_else(|| outbox(None, layers).value, PathBuf::from)
}

/// What replaces the platform's identity.
///
/// # Errors
/// A variant that is none.
pub(crate) fn overrides(args: &IdentityArgs, layers: &Layers<'_>) -> Result<Overrides, Failure> {
    Ok(Overrides {
        run: args.run.clone(),
        attempt: args.attempt.map(Ordinal),
        job: args.job.clone(),
        shard: args.shard,
        variant: variant(&args.variant, layers)?,
        round: args.round.clone(),
    })
}

/// The same with the file's job, where no flag names one.
pub(crate) fn with_job(overrides: Overrides, layers: &Layers<'_>) -> Overrides {
    let from_file = || layers.file().and_then(|f| f.push.job.clone());
    Overrides { job: overrides.job.or_else(from_file), ..overrides }
}

/// Where the parts of the identity came from that were not derived: a flag's name stands for its variable and its key in
/// the file too, until somebody asks.
#[derive(Debug, Clone, Default)]
pub(crate) struct PartSources(Vec<(&'static str, Source)>);

impl PartSources {
    /// Of these flags.
    pub(crate) fn of_flags(args: &IdentityArgs, layers: &Layers<'_>) -> Self {
        let ids = ["run", "attempt", "job", "shard", "variant", "round"];
        let flags = ["--run", "--attempt", "--job", "--shard", "--variant", "--round"];
        let mut sources: Vec<_> =
            flags.into_iter().zip(ids).map(|(flag, id)| (flag, layers.typed_source(id))).collect();
        if args.job.is_none()
            && let Some(file) = layers.file()
        {
            sources.retain(|(flag, _)| *flag != "--job");
            sources.push(("--job", Source::File(file.path.clone(), "push.job".to_owned())));
        }
        Self(sources)
    }

    /// What is said of a part whose derivation names this source.
    pub(crate) fn of(&self, source: &'static str) -> String {
        let found = self.0.iter().find(|(flag, _)| *flag == source);
        found.map_or_else(|| source.to_owned(), |(_, source)| source.to_string())
    }
}

/// Each flag is one pair, whatever it holds; the variable holds several, separated by commas.
fn variant(typed: &[String], layers: &Layers<'_>) -> Result<Option<Variant>, Failure> {
    if typed.is_empty() {
        return Ok(None);
    }
    let source = layers.typed_source("variant");
    let parsed = match &source {
        Source::Variable(_) => Variant::parse_pairs(typed.iter().flat_map(|text| text.split(','))),
        _ => Variant::parse_pairs(typed),
    };
    parsed.map(Some).map_err(|error| {
        Failure::usage(format!("{source}: {error}"), "Give each pair as NAME=VALUE, and each name once.")
    })
}

/// `tallyonce flush`, resolved.
#[derive(Debug)]
pub(crate) struct FlushSettings {
    /// Sealed files.
    pub files: Vec<PathBuf>,
    /// Destination, and what sealed files may claim.
    pub place: PlaceSettings,
    /// The run that sealed files may claim.
    pub run: Option<RunId>,
    /// The outbox.
    pub outbox: Setting<PathBuf>,
    /// The outbox is believed no more than sealed files.
    pub bound: bool,
    /// Wait until the server has handed them on to its targets.
    pub wait_forward: bool,
    /// How long to try.
    pub deadline: Setting<Duration>,
    /// One JSON object a line.
    pub json: bool,
    /// Where what became of them is shown.
    pub announce: AnnounceSettings,
    /// How a server is reached.
    pub connection: ConnectionSettings,
}

impl FlushSettings {
    /// From the flags over the file.
    ///
    /// # Errors
    /// A value cannot be used, or sealed files come without a bound on what they may claim.
    pub(crate) fn resolve(
        args: FlushArgs,
        layers: &Layers<'_>,
        connection: ConnectionSettings,
    ) -> Result<Self, Failure> {
        let claims: (&Option<ProjectId>, &Option<CycleName>, &Option<RunId>) = (&args.project, &args.cycle, &args.run);
        if (args.bound || !args.files.is_empty()) && !matches!(claims, (Some(_), Some(_), Some(_))) {
            let what = if args.bound { "--bound" } else { "a sealed file" };
            return Err(Failure::usage(
                format!("{what} needs --project, --cycle and --run, which bound what may be claimed"),
                format!(
                    "Give the values of the job that wrote it, as you know them yourself (or {}, {} and {}): what it wrote is \
                     not to be believed.",
                    variable("project"),
                    variable("cycle"),
                    variable("run")
                ),
            ));
        }
        let place = PlaceSettings::resolve("to", args.to, args.project, args.cycle, layers)?;
        place.is_pushed_to()?;
        Ok(Self {
            files: args.files,
            place,
            run: args.run,
            outbox: outbox(args.outbox, layers),
            bound: args.bound,
            wait_forward: layers.switch(args.wait_forward, |f| f.push.wait_forward),
            deadline: deadline(args.deadline, layers),
            json: args.json,
            announce: AnnounceSettings::resolve(args.announce, layers),
            connection,
        })
    }
}
