//! `tallyonce push`: reports into a push, the push into the outbox, from there to its destination.
//! Must not decide what counts, and must not send before the outbox has it.

mod granted;
mod seal;
mod target;

use std::path::{Path, PathBuf};

use delivery::{
    AttachmentsWanted, Clock as _, Contents, Destination, Label, Outbox, Packing, Parcel, Scratch, Settled, Stop,
    SystemClock,
};
use domain::ci::{Env, Identity, identify};
use domain::{Incarnation, Origin, Outcomes, Place, Sender, limits};
use reports::{Gathered, ReadOptions};

use crate::announce::Announcer;
use crate::attachments;
use crate::commands::summary;
use crate::courier::{self, Courier};
use crate::env::Surroundings;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::forward::Forwarding;
use crate::handed_on;
use crate::inputs::{self, Reports, Wish};
use crate::interrupt;
use crate::object::PushObject;
use crate::output::Output;
use crate::repository::Repository;
use crate::settings::push::PushSettings;
use crate::settings::target::{AttachmentSettings, AttachmentsWord, TargetSection};
use crate::spilled::OutOfFile;
use seal::{cannot_seal, seal};
use target::Target;

/// Pushes, and prints what became of it.
///
/// # Errors
/// It is not recorded.
pub(crate) async fn run(settings: &PushSettings, around: &Surroundings, output: Output) -> Result<Exit, Failure> {
    let mut object = PushObject::new();
    let announcer = Announcer::of_push(settings, around, output);
    announcer.fold();
    let result = push(settings, around, output, &mut object).await;
    end(settings, announcer, output, &mut object, result).await
}

/// A push that went well. Until it is forgotten, its entry stays in the outbox.
#[must_use = "what the outbox holds of it is to be forgotten once all is said"]
pub(crate) struct Pushed {
    exit: Exit,
    /// Who delivered it, and its entry; nothing if nothing was sent.
    sent: Option<(Courier, Option<Settled>)>,
}

impl Pushed {
    /// Nothing was to be sent.
    pub(crate) fn unsent() -> Self {
        Self { exit: Exit::Success, sent: None }
    }
}

/// The end of a push, whichever command made it: says what became of it, and only then forgets it. Somebody who dies
/// in between leaves it in the outbox, to be said by whoever delivers it again.
///
/// # Errors
/// Those of the push.
pub(crate) async fn end(
    settings: &PushSettings,
    announcer: Announcer<'_>,
    output: Output,
    object: &mut PushObject,
    result: Result<Pushed, Failure>,
) -> Result<Exit, Failure> {
    announcer.unfold();
    if let Err(failure) = &result {
        object.fails(failure);
    }
    if settings.json {
        output.object(object);
    } else if result.is_ok() && !settings.dry_run {
        output.text(&summary::closing(object));
    }
    let result = match result {
        Ok(pushed) => Ok(forget(pushed, object).await),
        Err(failure) => Err(failure),
    };
    if !settings.dry_run {
        announcer.announce_only(object, result.as_ref().err()).await;
    }
    result
}

async fn forget(pushed: Pushed, object: &mut PushObject) -> Exit {
    if let Some((courier, settled)) = pushed.sent {
        if let Some(settled) = settled {
            courier.forget(settled, object);
        }
        courier.tidy().await;
    }
    pushed.exit
}

async fn push(
    settings: &PushSettings,
    around: &Surroundings,
    output: Output,
    object: &mut PushObject,
) -> Result<Pushed, Failure> {
    let prepared = Prepared::resolve(settings, around, output, object)?;
    if settings.paths.is_empty() && !settings.allow_empty {
        return Err(nothing_named());
    }
    let wish = prepared.wish();
    let reports = inputs::read(&wish, inputs::search(&settings.paths, &wish))?;
    prepared.take_in(&reports, object);
    prepared.hand_over(reports, false, None, object).await
}

/// A push of which everything is known but the reports: its key, where it belongs and where it goes.
#[derive(Debug)]
pub(crate) struct Prepared<'a> {
    settings: &'a PushSettings,
    env: &'a Env,
    output: Output,
    identity: Identity,
    target: Target,
    /// The working folder.
    folder: &'a Path,
    attachments: AttachmentSettings,
}

impl<'a> Prepared<'a> {
    /// Reads no report, writes nothing and connects to nothing.
    ///
    /// # Errors
    /// A part of the key, the place or the destination is unknown.
    pub(crate) fn resolve(
        settings: &'a PushSettings,
        around: &'a Surroundings,
        output: Output,
        object: &mut PushObject,
    ) -> Result<Self, Failure> {
        let identity = identify(&around.env, &settings.overrides)?;
        object.key = Some(identity.key.clone());
        object.round = Some(identity.round.clone());
        (object.job, object.shard) = (identity.parts.job.clone(), identity.parts.shard);
        warn(output, object, &identity.warnings);
        let target = Target::resolve(settings, &identity, around)?;
        object.project = Some(target.place.project.clone());
        object.cycle = Some(target.place.cycle.clone());
        // What is sealed may be anybody's, and says nothing of a target.
        let section = settings.place.target().filter(|_| settings.seal.is_none());
        let attachments = section.map_or(Ok(AttachmentSettings::NEVER), TargetSection::attachments)?;
        Ok(Self { settings, env: &around.env, output, identity, target, folder: &around.folder, attachments })
    }

    /// Tries what would fail after the tests only: certificates, token, and a folder to keep the push in.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub(crate) async fn rehearse(&self) -> Result<(), Failure> {
        if let Some(path) = &self.settings.seal {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            tempfile::tempfile_in(folder).map_err(|error| cannot_seal(&error))?;
        }
        let Some(destination) = &self.target.destination else { return Ok(()) };
        if let Some(forwarding) = self.granted().await? {
            forwarding.with_folder()?;
        }
        Repository::prepare(destination, &self.settings.connection)?;
        Outbox::open(&self.settings.outbox.value).map_err(|error| courier::outbox_failure(&error))?;
        Ok(())
    }

    /// What `--dry-run` shows of it.
    pub(crate) fn plan(&self, object: &PushObject) -> String {
        summary::dry_run(object, self.settings, &self.identity, &self.target.settings)
    }

    /// How its reports are read.
    pub(crate) fn wish(&self) -> Wish {
        let settings = self.settings;
        let mut never = vec![settings.outbox.value.clone()];
        never.extend(settings.seal.clone());
        if let Some(Destination::Sqlite(path)) = &self.target.destination {
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
            attachments: self.attachments.which != AttachmentsWord::Never,
            ..ReadOptions::standard()
        };
        Wish { options, allow_empty: settings.allow_empty, never, spill: self.target.scratch.clone() }
    }

    /// Says what is to be said of the reports.
    pub(crate) fn take_in(&self, reports: &Reports, object: &mut PushObject) {
        object.report = Some(reports.collected.summary);
        warn(self.output, object, &doubts(self.settings, reports));
        for note in &reports.notes {
            self.output.note(&format!("note: {note}"));
        }
    }

    /// Packs the reports and delivers them, seals them, or shows what it would do. `incomplete`: they may not hold all
    /// tests, though they are whole. Without `stop`, the first signal while sending is one.
    ///
    /// # Errors
    /// It is not recorded.
    pub(crate) async fn hand_over(
        &self,
        reports: Reports,
        incomplete: bool,
        stop: Option<Stop>,
        object: &mut PushObject,
    ) -> Result<Pushed, Failure> {
        let Self { settings, output, identity, target, folder, attachments, .. } = self;
        let files = attachments::wanted(&reports, *attachments, folder)?;
        let (label, outcomes) = compose(settings, identity, &target.place, reports);
        let label = Label { incomplete: label.incomplete || incomplete, ..label };
        let scratch = if settings.dry_run { Scratch::Nowhere } else { Scratch::Folder(&target.scratch) };
        let packing = Packing {
            destination: target.destination.as_ref(),
            created_at: SystemClock::new().utc_rfc3339(),
            scratch,
            chunk_outcomes: settings.chunk_outcomes.as_ref().map(|setting| setting.value),
        };
        let parcel = pack(packing, label, outcomes)?;
        let PushObject { report, warnings, command, .. } = object.clone();
        *object = PushObject { report, warnings, command, ..PushObject::of(&parcel.header) };
        object.delivery.chunks = parcel.header.chunks.len() as u32;
        if settings.dry_run {
            return self.only_shown(&parcel, object).await;
        }
        object.delivery.bytes = parcel.header.body_bytes();
        if let Some(path) = &settings.seal {
            if settings.place.typed_destination() {
                let warning =
                    "--to is not used with --seal: nothing is sent, and `tallyonce flush` says where to".to_owned();
                warn(*output, object, &[warning]);
            }
            return seal(path, &parcel, settings.json, *output, object);
        }
        let stop = stop.map_or_else(interrupt::on_signals, Ok)?;
        let forwarding = self.granted().await?.map(Forwarding::with_folder).transpose()?;
        send(settings, target, (&parcel, &files), forwarding, (stop, *output), object).await
    }
}

fn nothing_named() -> Failure {
    Failure::usage(
        "no report is named",
        "Name report files, quoted patterns or folders: `tallyonce push 'target/surefire-reports/*.xml'`; or - for \
         standard input; or set push.paths in tallyonce.toml. A shard that has no tests says --allow-empty.",
    )
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
        expect: settings.expect.or(identity.expect),
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

async fn send(
    settings: &PushSettings,
    target: &Target,
    (parcel, files): (&Parcel, &AttachmentsWanted),
    forwarding: Option<Forwarding>,
    (stop, output): (Stop, Output),
    object: &mut PushObject,
) -> Result<Pushed, Failure> {
    let Some(destination) = &target.destination else { return Err(nothing_named()) };
    let bad = parcel.header.counts.any_bad();
    let repository = Repository::prepare(destination, &settings.connection)?;
    object.at_server(repository.server());
    let outbox = Outbox::open(&settings.outbox.value).map_err(|error| courier::outbox_failure(&error))?;
    let put = outbox.put_with(parcel, files);
    let (entry, files) = put.map_err(|error| courier::outbox_failure(&error))?;
    let opened = repository.target().map_err(|failure| failure.kept(courier::kept_in(&entry)))?;
    let mut courier = Courier::new(opened, settings.deadline.value, stop.clone(), output);
    let before = object.warnings.len();
    let mut handed = courier.hand_over(&outbox, entry, parcel, forwarding.as_ref(), object).await;
    let mut exit = Exit::Success;
    if let (Ok(_), Some(forwarding)) = (&handed, &forwarding) {
        match Box::pin(forwarding.push((parcel, &files), settings.deadline.value, &stop, object)).await {
            Ok(code) => exit = code,
            // Its entry stays, so that `flush` goes on.
            Err(failure) => handed = Err(failure),
        }
    }
    if settings.wait_forward && forwarding.is_none() && handed.is_ok() {
        exit = Box::pin(handed_on::wait(&repository, courier.left(), &stop, output, object)).await;
    }
    for warning in &object.warnings[before..] {
        output.warning(warning);
    }
    let mut pushed = Pushed { exit, sent: Some((courier, handed?)) };
    object.exit = exit.number();
    if settings.fail_on_failed && bad {
        pushed.exit = pushed.exit.worse(Exit::Found);
        object.exit = pushed.exit.number();
        output.note(
            "this delivery's own report holds failed or errored tests (--fail-on failed): exit 1; it is recorded",
        );
    }
    Ok(pushed)
}

/// Says what its sender should hear, and puts it into the object.
pub(crate) fn warn(output: Output, object: &mut PushObject, warnings: &[String]) {
    for warning in warnings {
        output.warning(warning);
    }
    object.warnings.extend(warnings.iter().cloned());
}
