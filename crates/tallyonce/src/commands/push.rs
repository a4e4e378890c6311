//! `tallyonce push`: reports into a push, the push into the outbox, from there to its destination.
//! Must not decide what counts, and must not send before the outbox has it.

use std::path::{Path, PathBuf};

use delivery::{Clock as _, Contents, Destination, Label, Outbox, Packing, Parcel, Scratch, SystemClock};
use domain::ci::{Identity, identify};
use domain::{Incarnation, Origin, Outcomes, Place, Sender, limits};
use reports::{Gathered, ReadOptions};

use crate::commands::summary;
use crate::courier::{self, Courier};
use crate::env::Surroundings;
use crate::exit::Exit;
use crate::failure::{Failure, State};
use crate::inputs::{self, Reports, Wish};
use crate::interrupt;
use crate::object::PushObject;
use crate::output::Output;
use crate::repository::Repository;
use crate::settings::Setting;
use crate::settings::place::Hints;
use crate::settings::push::PushSettings;
use crate::spilled::OutOfFile;

/// Pushes, and prints what became of it.
///
/// # Errors
/// It is not recorded.
pub(crate) async fn run(settings: &PushSettings, around: &Surroundings, output: Output) -> Result<Exit, Failure> {
    let mut object = PushObject::new();
    let result = push(settings, around, output, &mut object).await;
    if let Err(failure) = &result {
        object.fails(failure);
    }
    if settings.json {
        output.object(&object);
    } else if result.is_ok() && !settings.dry_run {
        output.result(&summary::closing(&object));
    }
    result
}

async fn push(
    settings: &PushSettings,
    around: &Surroundings,
    output: Output,
    object: &mut PushObject,
) -> Result<Exit, Failure> {
    let identity = identify(&around.env, &settings.overrides)?;
    object.key = Some(identity.key.clone());
    object.round = Some(identity.round.clone());
    (object.job, object.shard) = (identity.parts.job.clone(), identity.parts.shard);
    warn(output, object, &identity.warnings);
    let target = Target::resolve(settings, &identity, around)?;
    object.project = Some(target.place.project.clone());
    object.cycle = Some(target.place.cycle.clone());
    let reports = read(settings, &target)?;
    object.report = Some(reports.collected.summary);
    warn(output, object, &doubts(settings, &reports));
    for note in &reports.notes {
        output.note(&format!("note: {note}"));
    }
    let (label, outcomes) = compose(settings, &identity, &target.place, reports);
    let scratch = if settings.dry_run { Scratch::Nowhere } else { Scratch::Folder(&target.scratch) };
    let packing = Packing {
        destination: target.destination.as_ref(),
        created_at: SystemClock::new().utc_rfc3339(),
        scratch,
        chunk_outcomes: settings.chunk_outcomes.as_ref().map(|setting| setting.value),
    };
    let parcel = pack(packing, label, outcomes)?;
    let report = object.clone();
    *object = PushObject { warnings: report.warnings, report: report.report, ..PushObject::of(&parcel.header) };
    object.delivery.chunks = parcel.header.chunks.len() as u32;
    if settings.dry_run {
        object.counts = Some(parcel.header.counts);
        object.ends(State::DryRun, Exit::Success);
        if !settings.json {
            output.result(&summary::dry_run(object, settings, &identity, &target.settings));
        }
        return Ok(Exit::Success);
    }
    object.delivery.bytes = parcel.header.body_bytes();
    if let Some(path) = &settings.seal {
        if settings.place.typed_destination() {
            let warning =
                "--to is not used with --seal: nothing is sent, and `tallyonce flush` says where to".to_owned();
            warn(output, object, &[warning]);
        }
        return seal(path, &parcel, settings.json, output, object);
    }
    send(settings, &target, &parcel, output, object).await
}

/// Where the push belongs, and where it goes.
#[derive(Debug)]
struct Target {
    place: Place,
    /// None if it is sealed: whoever flushes it says where to.
    destination: Option<Destination>,
    /// The settings for `--dry-run`, with their sources.
    settings: Vec<(&'static str, String)>,
    /// Where a large push lies until its file is written: on the disk that will keep it.
    scratch: PathBuf,
}

impl Target {
    fn resolve(settings: &PushSettings, identity: &Identity, around: &Surroundings) -> Result<Self, Failure> {
        let hints = Hints::of(identity);
        let destination = match settings.seal {
            Some(_) => None,
            None => Some(settings.place.destination(&hints)?),
        };
        let project = settings.place.project(&hints, &around.folder)?;
        let cycle = settings.place.cycle(&hints)?;
        if settings.paths.is_empty() && !settings.allow_empty {
            return Err(nothing_named());
        }
        let mut shown = vec![line("project", &project), line("cycle", &cycle)];
        shown.extend(destination.iter().map(|destination| line("to", destination)));
        shown.push(line("on-difference", &settings.on_difference));
        Ok(Self {
            place: Place {
                project: project.value,
                cycle: cycle.value,
                round: identity.round.clone(),
                run: identity.parts.run.clone(),
                label: identity.parts.round.clone(),
                job: identity.parts.job.clone(),
                shard: identity.parts.shard,
                variant: identity.parts.variant.clone(),
            },
            destination: destination.map(|setting| setting.value),
            settings: shown,
            scratch: existing(settings.seal.as_ref().unwrap_or(&settings.outbox.value)),
        })
    }
}

/// The nearest folder that is there already. What is written there has no name, so that reading leaves nothing behind.
fn existing(path: &Path) -> PathBuf {
    let there = path.ancestors().find(|folder| folder.is_dir());
    there.unwrap_or(Path::new(".")).to_owned()
}

fn line<T: std::fmt::Display>(name: &'static str, setting: &Setting<T>) -> (&'static str, String) {
    (name, format!("{}  ({})", setting.value, setting.source))
}

fn nothing_named() -> Failure {
    Failure::usage(
        "no report is named",
        "Name report files, quoted patterns or folders: `tallyonce push 'target/surefire-reports/*.xml'`; or - for \
         standard input; or set push.paths in tallyonce.toml. A shard that has no tests says --allow-empty.",
    )
}

fn read(settings: &PushSettings, target: &Target) -> Result<Reports, Failure> {
    let mut never = vec![settings.outbox.value.clone()];
    never.extend(settings.seal.clone());
    if let Some(Destination::Sqlite(path)) = &target.destination {
        for ending in ["", "-wal", "-shm", "-journal"] {
            let mut name = path.clone().into_os_string();
            name.push(ending);
            never.push(PathBuf::from(name));
        }
    }
    let options = ReadOptions {
        format: settings.format,
        partial: settings.partial,
        outcomes_max: limits::STAGED_OUTCOMES_MAX,
        ..ReadOptions::standard()
    };
    let (spill, allow_empty) = (target.scratch.clone(), settings.allow_empty);
    inputs::read(&Wish { paths: &settings.paths, options, allow_empty, never, spill })
}

/// What its sender should hear about the reports.
fn doubts(settings: &PushSettings, reports: &Reports) -> Vec<String> {
    let collected = &reports.collected;
    let mut doubts: Vec<String> = collected.warnings.iter().map(ToString::to_string).collect();
    doubts.extend(collected.damage.iter().map(ToString::to_string));
    doubts.extend(reports.lost.iter().map(|lost| format!("left out, the push is incomplete: {lost}")));
    if reports.items() == 0 && !settings.allow_empty {
        doubts.push(
            "no test is in the reports: an empty push is recorded; look whether the runner found its tests".into(),
        );
    }
    doubts
}

/// What is said of the outcomes, and the outcomes.
fn compose(settings: &PushSettings, identity: &Identity, place: &Place, reports: Reports) -> (Label, Gathered) {
    let collected = reports.collected;
    let label = Label {
        key: identity.key.clone(),
        place: place.clone(),
        origin: Origin {
            commit: identity.commit.clone(),
            workflow: identity.workflow.clone(),
            run_counter: identity.run_counter,
            run_url: identity.run_url.clone(),
        },
        sender: Sender {
            ordinal: identity.ordinal,
            ordinal_scope: identity.ordinal_scope,
            executor: identity.executor.clone(),
            incarnation: Some(Incarnation(rand::random())),
        },
        on_difference: settings.on_difference.value,
        outside_ci: !identity.in_ci(),
        expect: settings.expect,
        incomplete: !collected.damage.is_empty() || !reports.lost.is_empty(),
        files: collected.files,
        report: collected.summary,
        raw_body: None,
    };
    (label, collected.outcomes)
}

fn pack(packing: Packing<'_>, label: Label, outcomes: Gathered) -> Result<Parcel, Failure> {
    let packed = match outcomes {
        Gathered::Held { hashes, outcomes } => Outcomes::from_hashed(hashes, outcomes)
            .map_err(delivery::PackError::from)
            .and_then(|outcomes| packing.pack(label, Contents::Held(outcomes))),
        Gathered::Spilled(spilled) => packing.pack(label, Contents::Streamed(&OutOfFile(spilled))),
    };
    packed.map_err(|error| cannot_pack(&error))
}

fn cannot_pack(error: &delivery::PackError) -> Failure {
    match error {
        delivery::PackError::Encode(_) | delivery::PackError::Source(_) => courier::outbox_failure(error),
        _ => Failure::unreadable(vec![error.to_string()]),
    }
}

fn seal(path: &Path, parcel: &Parcel, json: bool, output: Output, object: &mut PushObject) -> Result<Exit, Failure> {
    parcel.seal(path).map_err(|error| {
        Failure::machine(format!("it can't be sealed: {error}"), "Name a file in a folder that can be written.")
    })?;
    object.ends(State::Sealed, Exit::Success);
    if !json {
        output.note(&summary::sealed(path, &parcel.header.place));
    }
    Ok(Exit::Success)
}

async fn send(
    settings: &PushSettings,
    target: &Target,
    parcel: &Parcel,
    output: Output,
    object: &mut PushObject,
) -> Result<Exit, Failure> {
    let Some(destination) = &target.destination else { return Err(nothing_named()) };
    let stop = interrupt::on_signals()?;
    let bad = parcel.header.counts.any_bad();
    let repository = Repository::prepare(destination, &settings.connection)?;
    object.at_server(repository.server());
    let outbox = Outbox::open(&settings.outbox.value).map_err(|error| courier::outbox_failure(&error))?;
    let entry = courier::put(&outbox, parcel)?;
    let opened = repository.target().map_err(|failure| failure.kept(courier::kept_in(&entry)))?;
    let mut courier = Courier::new(opened, settings.deadline.value, stop, output);
    let before = object.warnings.len();
    courier.hand_over(&outbox, entry, parcel, object).await?;
    for warning in &object.warnings[before..] {
        output.warning(warning);
    }
    if settings.fail_on_failed && bad {
        object.exit = Exit::Found.number();
        output.note(
            "this delivery's own report holds failed or errored tests (--fail-on failed): exit 1; it is recorded",
        );
        return Ok(Exit::Found);
    }
    Ok(Exit::Success)
}

fn warn(output: Output, object: &mut PushObject, warnings: &[String]) {
    for warning in warnings {
        output.warning(warning);
    }
    object.warnings.extend(warnings.iter().cloned());
}
