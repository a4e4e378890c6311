//! `tallyonce flush`: delivers what the outbox or sealed files hold, each with the sender that it was made by.
//! An entry never chooses where credentials go, and a sealed file claims no more than the caller allows.

use std::path::Path;

use delivery::{Attachments, Destination, Entry, Header, Outbox, Parcel, SealedError, Settled, belongs_to};
use domain::key::KeyParts;
use domain::{Place, PushKey, RunId, Variant};

use crate::announce::Announcer;
use crate::commands::summary;
use crate::courier::{self, Courier, Flushed};
use crate::env::Surroundings;
use crate::exit::Exit;
use crate::failure::{Failure, Kept};
use crate::forward::Forwarding;
use crate::handed_on;
use crate::interrupt;
use crate::object::PushObject;
use crate::output::Output;
use crate::render;
use crate::repository::Repository;
use crate::settings::place::Hints;
use crate::settings::push::FlushSettings;

/// Delivers everything, and says of each what became of it. The worst decides the exit code.
///
/// # Errors
/// Nothing could be tried.
pub(crate) async fn run(settings: &FlushSettings, around: &Surroundings, output: Output) -> Result<Exit, Failure> {
    let to = settings.place.destination(&Hints::guess(&around.env))?.value;
    let repository = Repository::prepare(&to, &settings.connection)?;
    let forwarding = match settings.place.target() {
        Some(section) => {
            let prepared = Forwarding::prepare(section, &around.env, &settings.connection, output)?;
            Some(prepared.granted(false)?.with_folder()?)
        }
        None => None,
    };
    if let Some(forwarding) = &forwarding {
        forwarding.stands_here().await?;
    }
    let stop = interrupt::on_signals()?;
    let announcer = Announcer::of_flush(settings, around, output);
    let worst = Exit::Success;
    let mut flush = Flush { settings, to, repository, forwarding, stop, output, announcer, courier: None, worst };
    if settings.files.is_empty() {
        flush.outbox().await?;
        flush.ledger().await;
    } else {
        for path in &settings.files {
            flush.sealed(path).await;
        }
    }
    flush.announcer.finish().await;
    Ok(flush.worst)
}

struct Flush<'a> {
    settings: &'a FlushSettings,
    to: Destination,
    repository: Repository,
    forwarding: Option<Forwarding>,
    stop: delivery::Stop,
    output: Output,
    announcer: Announcer<'a>,
    courier: Option<Courier>,
    worst: Exit,
}

impl Flush<'_> {
    async fn outbox(&mut self) -> Result<(), Failure> {
        let folder = &self.settings.outbox.value;
        if !folder.is_dir() {
            self.output.note(&format!("there is no outbox at {}: nothing to deliver", folder.display()));
            return Ok(());
        }
        let outbox = Outbox::open(folder).map_err(|error| courier::outbox_failure(&error))?;
        let (entries, broken) = outbox.entries().map_err(|error| courier::outbox_failure(&error))?;
        for file in &broken {
            let what = format!("{} is no whole push and cannot be delivered ({})", file.path.display(), file.why);
            // A temporary file was never kept; a whole name with damaged bytes is a loss.
            if file.path.extension().is_some_and(|extension| extension == "push") {
                self.say(PushObject::new(), Err(Failure::broken_entry(what))).await;
            } else {
                self.output.warning(&format!(
                    "{what}. The push that wrote it ended before it was kept and said so: run that push again, then \
                     remove the file"
                ));
            }
        }
        let (mut own, others): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| belongs_to(entry.header(), &self.to));
        for entry in &others {
            self.refuse_other(entry).await;
        }
        if own.is_empty() && others.is_empty() {
            self.output.note(&format!("nothing waits in {}", folder.display()));
        }
        if self.settings.bound {
            own = self.within_bounds(own).await;
        }
        self.deliver_all(&own).await;
        Ok(())
    }

    /// Those that claim what the caller said; the others are refused one by one.
    async fn within_bounds(&mut self, entries: Vec<Entry>) -> Vec<Entry> {
        let mut within = Vec::new();
        for entry in entries {
            match not_claimed(entry.path(), self.beyond(entry.header())) {
                None => within.push(entry),
                Some(failure) => self.say(PushObject::of(entry.header()), Err(failure)).await,
            }
        }
        within
    }

    /// One after the other. Behind an entry that is not confirmed, the later ones of its key wait too.
    async fn deliver_all(&mut self, entries: &[Entry]) {
        let mut unconfirmed: Vec<(&Entry, String)> = Vec::new();
        for entry in entries {
            let mut object = PushObject::of(entry.header());
            object.at_server(self.repository.server());
            if let Some((earlier, what)) = unconfirmed.iter().find(|(earlier, _)| same_push(earlier, entry)) {
                let failure = courier::behind(earlier, entry, what);
                self.say(object, Err(failure)).await;
                continue;
            }
            let opened = self.open_courier().map_err(|failure| failure.kept(courier::kept_in(entry)));
            let result = match (opened, &mut self.courier) {
                (Ok(()), Some(courier)) => courier.flush_on(entry, self.forwarding.as_ref(), &mut object).await,
                (Err(failure), _) => Err(failure),
                (Ok(()), None) => continue,
            };
            match result {
                Ok((Flushed::Elsewhere, _)) => {}
                Ok((Flushed::Here(settled), exit)) => {
                    let exit = exit.worse(self.handed_on(&mut object).await);
                    self.worst = self.worst.worse(exit);
                    self.say_and_forget(object, *settled).await;
                }
                Err(failure) => {
                    if failure.exit == Exit::NotConfirmed {
                        unconfirmed.push((entry, failure.what.clone()));
                    }
                    self.say(object, Err(failure)).await;
                }
            }
        }
    }

    /// What an earlier process left in the target's ledger, its outbox entry gone or not.
    async fn ledger(&mut self) {
        let Some(forwarding) = &self.forwarding else { return };
        if !forwarding.has_ledger() {
            return;
        }
        match forwarding.resume(self.settings.deadline.value, &self.stop).await {
            Ok(resumed) => {
                for part in &resumed.parts {
                    self.output.note(part);
                }
                for warning in &resumed.warnings {
                    self.output.warning(warning);
                }
                self.worst = self.worst.worse(resumed.exit);
            }
            Err(failure) => {
                self.worst = self.worst.worse(failure.exit);
                self.output.error(&render::failure(&failure));
            }
        }
    }

    /// An entry for another destination is listed, and left alone.
    async fn refuse_other(&mut self, entry: &Entry) {
        let header = entry.header();
        let (path, to) = (entry.path().display(), &self.to);
        let (what, next) = if header.destination.is_empty() {
            let next = format!("Flush it by its name: `tallyonce flush {path} --project P --cycle C --run ID`.");
            (format!("{path} is a sealed push, which says itself where it belongs; it is left alone"), next)
        } else {
            let next = format!("If its push was meant for there: `tallyonce flush --to {}`.", header.destination);
            (format!("{path} is for {}, not for {to}; it is left alone", header.destination), next)
        };
        let failure = Failure { next, ..Failure::other_claim(what) };
        self.say(PushObject::of(header), Err(failure)).await;
    }

    async fn sealed(&mut self, path: &Path) {
        let parcel = match Parcel::open_sealed(path) {
            Ok(parcel) => parcel,
            Err(error) => {
                let words = match &error {
                    SealedError::Io { .. } => error.to_string(),
                    _ => format!("{}: {error}", path.display()),
                };
                self.say(PushObject::new(), Err(Failure::no_sealed_push(words))).await;
                return;
            }
        };
        let mut object = PushObject::of(&parcel.header);
        object.at_server(self.repository.server());
        let result = self.deliver_sealed(path, &parcel, &mut object).await;
        self.say(object, result).await;
    }

    async fn deliver_sealed(&mut self, path: &Path, parcel: &Parcel, object: &mut PushObject) -> Result<(), Failure> {
        let mut wrong = self.beyond(&parcel.header);
        if wrong.is_empty() && parcel.check().is_err() {
            wrong.push("its body is not what its header says".to_owned());
        }
        if let Some(failure) = not_claimed(path, wrong) {
            return Err(failure);
        }
        let parcel = parcel.addressed_to(&self.to);
        let beside = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let courier = self.courier()?;
        let ended = courier.deliver_loose(&parcel, beside).await;
        // The file stays whatever happens: it is the caller's.
        object.ended(&ended, Kept::Sealed)?;
        courier.tidy().await;
        if let Some(forwarding) = &self.forwarding {
            let deadline = self.settings.deadline.value;
            let exit =
                Box::pin(forwarding.push((&parcel, &Attachments::default()), deadline, &self.stop, object)).await?;
            object.exit = exit.number();
            self.worst = self.worst.worse(exit);
        } else {
            let exit = self.handed_on(object).await;
            self.worst = self.worst.worse(exit);
        }
        Ok(())
    }

    /// Waits, if that is wanted, until the server has handed a push on to its targets.
    async fn handed_on(&self, object: &mut PushObject) -> Exit {
        let (true, None, Some(courier)) = (self.settings.wait_forward, &self.forwarding, &self.courier) else {
            return Exit::Success;
        };
        let waiting = handed_on::wait(&self.repository, courier.left(), &self.stop, self.output, object);
        let exit = Box::pin(waiting).await;
        object.exit = exit.number();
        exit
    }

    /// What it claims beyond what the caller said, in its place and in its key: a file may come from anybody.
    fn beyond(&self, header: &Header) -> Vec<String> {
        let place = &header.place;
        let allowed = &self.settings;
        let mut wrong = Vec::new();
        let mut compare = |what: &str, claimed: &str, allowed: Option<&str>| {
            if Some(claimed) != allowed {
                wrong.push(format!("{what}: it claims {claimed:?}, allowed is {:?}", allowed.unwrap_or("")));
            }
        };
        compare("project", place.project.as_str(), allowed.place.said_project().map(domain::ProjectId::as_str));
        compare("cycle", place.cycle.as_str(), allowed.place.said_cycle().map(domain::CycleName::as_str));
        compare("run", place.run.as_str(), allowed.run.as_ref().map(RunId::as_str));
        if !key_fits(&header.key, place) {
            wrong.push(format!("its key {} is not of the round that it claims", header.key));
        }
        wrong
    }

    fn courier(&mut self) -> Result<&mut Courier, Failure> {
        let courier = if let Some(courier) = self.courier.take() {
            courier
        } else {
            let target = self.repository.target()?;
            Courier::new(target, self.settings.deadline.value, self.stop.clone(), self.output)
        };
        Ok(self.courier.insert(courier))
    }

    fn open_courier(&mut self) -> Result<(), Failure> {
        self.courier().map(|_| ())
    }

    async fn say(&mut self, mut object: PushObject, result: Result<(), Failure>) {
        let failed = self.tell(&mut object, result);
        self.announcer.announce(&object, failed.as_ref()).await;
    }

    /// In this order: who dies in between leaves the entry, and says it next time.
    async fn say_and_forget(&mut self, mut object: PushObject, settled: Settled) {
        self.tell(&mut object, Ok(()));
        if let Some(courier) = &self.courier {
            courier.forget(settled, &mut object);
            courier.tidy().await;
        }
        self.announcer.announce(&object, None).await;
    }

    fn tell(&mut self, object: &mut PushObject, result: Result<(), Failure>) -> Option<Failure> {
        for warning in &object.warnings {
            self.output.warning(warning);
        }
        let failed = result.err();
        if let Some(failure) = &failed {
            object.fails(failure);
            self.worst = self.worst.worse(failure.exit);
            self.output.error(&render::failure(failure));
        }
        if self.settings.json {
            self.output.object(object);
        } else if failed.is_none() {
            self.output.text(&summary::closing(object));
        }
        failed
    }
}

/// The refusal of a file that claims what it may not; none if nothing is wrong.
fn not_claimed(path: &Path, wrong: Vec<String>) -> Option<Failure> {
    if wrong.is_empty() {
        return None;
    }
    let mut failure = Failure::other_claim(format!("{} claims what it may not, and is not delivered", path.display()));
    failure.details = wrong;
    Some(failure)
}

/// Two entries of one key: their order matters.
fn same_push(a: &Entry, b: &Entry) -> bool {
    let (a, b) = (a.header(), b.header());
    a.key == b.key && a.place.project == b.place.project
}

/// The key begins with the round, and the round ends in the run (and label) that are claimed. So a file cannot take
/// the key of another run.
fn key_fits(key: &PushKey, place: &Place) -> bool {
    let tail = KeyParts {
        scope: None,
        run: place.run.clone(),
        round: place.label.clone(),
        job: None,
        shard: None,
        variant: Variant::default(),
    }
    .round_id();
    let (key, round) = (key.as_str(), place.round.as_str());
    let of_run = round == tail.as_str() || round.strip_suffix(tail.as_str()).is_some_and(is_scope);
    let of_round = key.strip_prefix(round).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'));
    of_run && of_round
}

/// `platform:` or `platform:path:`. Colons within are encoded, and `run` opens the round of a push without scope.
fn is_scope(head: &str) -> bool {
    let Some(scope) = head.strip_suffix(':') else { return false };
    let mut fields = scope.split(':');
    fields.next().is_some_and(|platform| !platform.is_empty() && platform != "run") && fields.count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(run: &str, round: &str) -> Place {
        serde_json::from_value(serde_json::json!({"project": "p", "cycle": "c", "run": run, "round": round})).unwrap()
    }

    fn fits(key: &str, run: &str, round: &str) -> bool {
        key_fits(&PushKey::parse(key).unwrap(), &place(run, round))
    }

    #[test]
    fn a_key_of_its_own_round_fits() {
        assert!(fits("run:42", "42", "run:42"));
        assert!(fits("run:a%3Ab:job:j", "a:b", "run:a%3Ab"));
        assert!(fits("github:acme/shop:run:42:job:e2e:shard:1-2", "42", "github:acme/shop:run:42"));
    }

    #[test]
    fn a_key_of_another_run_is_refused() {
        // The place claims what is allowed, the key is another run's.
        assert!(!fits("github:acme/shop:run:43:job:e2e", "42", "github:acme/shop:run:42"));
        assert!(!fits("github:acme/shop:run:421", "42", "github:acme/shop:run:42"));
        // The round is another run's too.
        assert!(!fits("github:acme/shop:run:43", "42", "github:acme/shop:run:43"));
        assert!(!fits("xrun:42", "42", "xrun:42"));
        assert!(!fits("run:43:round:run:42", "42", "run:43:round:run:42"));
        assert!(!fits("github:acme/shop:run:43:run:42", "42", "github:acme/shop:run:43:run:42"));
    }

    #[test]
    fn a_label_is_part_of_the_round() {
        let labelled = Place { label: domain::RoundLabel::parse("again").ok(), ..place("42", "run:42:round:again") };
        assert!(key_fits(&PushKey::parse("run:42:round:again:job:j").unwrap(), &labelled));
        assert!(!fits("run:42:round:again", "42", "run:42:round:again"));
    }
}
