//! From a target's ledger into the target: one push, or what an earlier process left. Must not know products or strategies.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use delivery::foreign::probe::{self, Leave, Probed};
use delivery::foreign::{self, Adapter, CyclePer, CycleWanted, Forwarded, Forwarder, Halt, Load, Step, Strategy};
use delivery::{Clock as _, Destination, Parcel, Stop, SystemClock};
use domain::intent::{Flag, Intent, IntentState, RefusedItem};
use domain::marker::WriteId;
use rand::rngs::StdRng;
use serde::Serialize;
use server::StoreBook;
use store::{IntentQuery, Store};

use crate::exit::Exit;
use crate::failure::Failure;

use crate::object::PushObject;
use crate::output::Output;
use crate::repository;
use crate::settings::target::{Target, TargetSection};
use crate::settings::{ConnectionSettings, duration};

/// What became of a push at a target, as `push --json` prints it. Field names are an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ForwardObject {
    /// The target's name.
    pub target: String,
    /// The product.
    pub kind: &'static str,
    /// How it was forwarded.
    pub strategy: Strategy,
    /// Where it is there.
    pub cycle: Option<String>,
    /// Cases that the push is about.
    pub cases: u64,
    /// Cases of intents, by their state.
    pub states: std::collections::BTreeMap<IntentState, u64>,
    /// Items that the target refused, or that have no case there.
    pub refused: Vec<RefusedItem>,
    /// What people have to know of it.
    pub flags: Vec<Flag>,
}

/// A target that is ready to be forwarded to.
pub(crate) struct Forwarding {
    target: Target,
    adapter: Arc<dyn Adapter>,
    strategy: Strategy,
    output: Output,
    /// What people are told although it may go on.
    doubt: Option<String>,
}

impl Forwarding {
    /// Makes ready without connecting, so that wrong settings are known before anything is kept.
    ///
    /// # Errors
    /// A key, a variable or a certificate can't be used, or the product doesn't allow the strategy, as is known of it or as
    /// its last probe has measured.
    pub(crate) fn prepare(
        section: &TargetSection,
        env: &domain::ci::Env,
        connection: &ConnectionSettings,
        output: Output,
    ) -> Result<Self, Failure> {
        let target = section.resolve(env)?;
        // Whoever installed one before us is right too.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = repository::http_settings(connection);
        let adapter = foreign::open(target.settings.clone(), &http, Arc::new(SystemClock::new()))
            .map_err(|error| section.unusable(&format!("target.{}: {error}", section.name)))?;
        let facts = *adapter.facts();
        let strategy = target.settings.strategy.unwrap_or(facts.default_strategy());
        if !facts.strategies.contains(&strategy) {
            let words: Vec<&str> = facts.strategies.iter().map(|strategy| strategy.word()).collect();
            return Err(section.wrong(
                "strategy",
                &format!("{strategy} can't work with {}; it allows {}", target.settings.kind, words.join(", ")),
            ));
        }
        Ok(Self { target, adapter, strategy, output, doubt: None })
    }

    /// Holds the strategy against the last probe, if there is one, and makes the folder of the ledger.
    ///
    /// # Errors
    /// The probe speaks against it; under `strict` also if `replace` was never probed. The folder can't be made.
    pub(crate) fn granted(mut self, strict: bool) -> Result<Self, Failure> {
        let name = &self.target.settings.name;
        let path = &self.target.probe;
        let refused = |why: &str| {
            Failure::usage(
                format!("{name}: {why}"),
                format!(
                    "Run `tallyonce probe {name}`, and choose a strategy that it allows; its result is {}.",
                    path.display()
                ),
            )
        };
        let probed = match std::fs::read_to_string(path) {
            Ok(text) => Some(Probed::parse(&text).map_err(|why| refused(&format!("{}: {why}", path.display())))?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(refused(&format!("{} can't be read: {error}", path.display()))),
        };
        self.doubt = match probe::leave(self.strategy, probed.as_ref(), self.adapter.facts(), strict) {
            Leave::Granted => None,
            Leave::Warned(why) => Some(format!("{name}: {why}")),
            Leave::Refused(why) => return Err(refused(&why)),
        };
        if let Destination::Sqlite(ledger) = &self.target.ledger
            && let Some(folder) = ledger.parent().filter(|folder| !folder.as_os_str().is_empty())
        {
            std::fs::create_dir_all(folder).map_err(|error| {
                Failure::machine(
                    format!("{name}: the folder {} of its ledger can't be made: {error}", folder.display()),
                    "Mend permissions, or name another ledger: `ledger` of the target.",
                )
            })?;
        }
        Ok(self)
    }

    /// True once anything was recorded for it on this machine.
    pub(crate) fn has_ledger(&self) -> bool {
        matches!(&self.target.ledger, Destination::Sqlite(path) if path.exists())
    }

    /// Its ledger, if anything was recorded for it on this machine.
    ///
    /// # Errors
    /// It can't be opened.
    pub(crate) fn ledger(&self) -> Result<Option<Arc<dyn Store>>, Failure> {
        existing_ledger(&self.target.ledger)
    }

    /// What stands for the round of an intent in the id of its cycle there.
    pub(crate) fn round_part<'a>(&self, intent: &'a Intent) -> &'a str {
        if self.target.settings.cycle_per == CyclePer::Round { intent.round.as_str() } else { "" }
    }

    /// Its adapter.
    pub(crate) fn adapter(&self) -> &dyn Adapter {
        &*self.adapter
    }

    /// Its settings.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Forwards a push that its ledger has recorded; takes down in `object` what became of it.
    ///
    /// # Errors
    /// It isn't known whether all of it is there.
    pub(crate) async fn push(
        &self,
        parcel: &Parcel,
        deadline: Duration,
        stop: &Stop,
        object: &mut PushObject,
    ) -> Result<Exit, Failure> {
        if object.kept_beside {
            object.warnings.push(format!(
                "nothing is forwarded to {}: what was offered is kept beside what is recorded, and doesn't count",
                self.target.settings.name
            ));
            return Ok(Exit::Success);
        }
        object.warnings.extend(self.doubt.clone());
        let load = self.load(parcel)?;
        let book = self.book()?;
        let (clock, mut random) = (SystemClock::new(), rand::make_rng::<StdRng>());
        let mut watch = watcher(self.output);
        let mut forwarder = self.forwarder(&book, &clock, &mut random, stop, deadline, &mut watch);
        match forwarder.forward(load).await {
            Ok(forwarded) => {
                let done = self.object(&forwarded);
                let exit = exit_of(&forwarded);
                let parked = forwarded.intents.iter().any(|intent| intent.state == IntentState::Parked);
                self.warn(&done, parked, object);
                object.forward = Some(done);
                Ok(exit)
            }
            Err(halt) => Err(self.halted(&halt)),
        }
    }

    /// Brings what an earlier process left to its end.
    ///
    /// # Errors
    /// It isn't known whether all of it is there.
    pub(crate) async fn resume(&self, deadline: Duration, stop: &Stop) -> Result<Vec<Intent>, Failure> {
        let book = self.book()?;
        let (clock, mut random) = (SystemClock::new(), rand::make_rng::<StdRng>());
        let mut watch = watcher(self.output);
        let mut forwarder = self.forwarder(&book, &clock, &mut random, stop, deadline, &mut watch);
        forwarder.resume().await.map_err(|halt| self.halted(&halt))
    }

    /// Reads everything settled back.
    ///
    /// # Errors
    /// It can't be read.
    pub(crate) async fn sweep(&self, deadline: Duration, stop: &Stop) -> Result<(), Failure> {
        let Some(ledger) = self.ledger()? else { return Ok(()) };
        let query = IntentQuery {
            target: Some(self.target.settings.name.to_string()),
            states: vec![IntentState::Acked, IntentState::Found, IntentState::Parked],
            ..IntentQuery::default()
        };
        let intents = ledger.intents(query).await.map_err(|error| Failure::store(&error))?;
        let book = self.book()?;
        let (clock, mut random) = (SystemClock::new(), rand::make_rng::<StdRng>());
        let mut watch = watcher(self.output);
        let mut forwarder = self.forwarder(&book, &clock, &mut random, stop, deadline, &mut watch);
        forwarder.sweep(intents).await.map(drop).map_err(|halt| self.halted(&halt))
    }

    fn forwarder<'a>(
        &'a self,
        book: &'a StoreBook,
        clock: &'a SystemClock,
        random: &'a mut StdRng,
        stop: &'a Stop,
        deadline: Duration,
        progress: &'a mut (dyn FnMut(Step) + Send),
    ) -> Forwarder<'a> {
        let settings = &self.target.settings;
        Forwarder {
            target: &settings.name,
            adapter: &*self.adapter,
            mapping: &settings.cases,
            strategy: self.strategy,
            quiet_ms: settings.quiet_ms.unwrap_or(self.adapter.facts().quiet_ms),
            book,
            clock,
            random,
            stop,
            deadline_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
            progress,
        }
    }

    fn book(&self) -> Result<StoreBook, Failure> {
        let store: Arc<dyn Store> = repository::open(&self.target.ledger.to_string())?;
        let Destination::Sqlite(path) = &self.target.ledger else {
            return Err(Failure::usage("a ledger is kept in sqlite:PATH", "Mend `ledger` of the target."));
        };
        Ok(StoreBook::new(store, PathBuf::clone(path)))
    }

    fn load(&self, parcel: &Parcel) -> Result<Load, Failure> {
        let push = parcel.push().map_err(|error| Failure::broken_entry(error.to_string()))?;
        let place = &parcel.header.place;
        let per_round = self.target.settings.cycle_per == CyclePer::Round;
        let round = if per_round { place.round.as_str() } else { "" };
        let name = if per_round {
            format!("{} {}, run {}", place.project, place.cycle, place.run)
        } else {
            format!("{} {}", place.project, place.cycle)
        };
        Ok(Load {
            project: place.project.clone(),
            cycle: place.cycle.clone(),
            round: place.round.clone(),
            key: parcel.header.key.clone(),
            ordinal: parcel.header.sender.ordinal,
            outcomes: push.outcomes.as_slice().to_vec(),
            at_ms: SystemClock::new().unix_ms(),
            wanted: CycleWanted {
                name,
                id: WriteId::of_cycle(&place.project, place.cycle.as_str(), round),
                link: parcel.header.origin.run_url.clone(),
                given: self.target.settings.cycle.clone(),
            },
        })
    }

    fn object(&self, forwarded: &Forwarded) -> ForwardObject {
        let mut states = std::collections::BTreeMap::new();
        for intent in &forwarded.intents {
            *states.entry(intent.state).or_default() += u64::from(intent.cases);
        }
        ForwardObject {
            target: self.target.settings.name.to_string(),
            kind: self.target.settings.kind.word(),
            strategy: self.strategy,
            cycle: forwarded.cycle.as_ref().map(ToString::to_string),
            cases: forwarded.intents.iter().map(|intent| u64::from(intent.cases)).sum(),
            states,
            refused: forwarded.refused(),
            flags: forwarded.all_flags(),
        }
    }

    fn warn(&self, done: &ForwardObject, parked: bool, object: &mut PushObject) {
        let name = &self.target.settings.name;
        for refused in &done.refused {
            object.warnings.push(format!("{name} refused {}: {}", refused.item, refused.why));
        }
        for flag in &done.flags {
            object.warnings.push(format!("{name}: {flag}: {}", meaning(*flag)));
        }
        if parked {
            object.warnings.push(format!(
                "{name}: what is there can't be told from what is to be there: a person has to look \
                 (`tallyonce forwards --state parked`)"
            ));
        }
    }

    fn halted(&self, halt: &Halt) -> Failure {
        let name = &self.target.settings.name;
        match halt {
            Halt::Stopped(_) | Halt::Over(_) => Failure::forwarding(name, &halt.to_string()),
            Halt::Denied(what) => Failure::denied_there(name, what),
            Halt::Refused(what) => Failure::refused_there(name, what),
            Halt::Book(error) => Failure::machine(
                format!("the ledger of {name} can't be used: {error}"),
                "Free space or mend permissions, then run the same command again: what is there is read first.",
            ),
        }
    }
}

/// The ledger of a target, if anything was recorded for it on this machine.
///
/// # Errors
/// It can't be opened.
pub(crate) fn existing_ledger(ledger: &Destination) -> Result<Option<Arc<dyn Store>>, Failure> {
    match ledger {
        Destination::Sqlite(path) if path.exists() => repository::open(&ledger.to_string()).map(Some),
        _ => Ok(None),
    }
}

/// The worst that is to be said of a push that is settled.
fn exit_of(forwarded: &Forwarded) -> Exit {
    let wrong = forwarded.all_flags().into_iter().any(Flag::is_wrong);
    if wrong || !forwarded.is_settled() {
        Exit::Forwarding
    } else if forwarded.refused().is_empty() {
        Exit::Success
    } else {
        Exit::Partly
    }
}

/// What a flag means for what people read in the product.
pub(crate) fn meaning(flag: Flag) -> &'static str {
    match flag {
        Flag::DuplicateDetected => {
            "one outcome stands there more than once; `tallyonce audit` shows it, `repair` mends it"
        }
        Flag::VendorLost => "it was confirmed, and is not there any more",
        Flag::Orphan => "outcomes of ours are there that this ledger doesn't know",
        Flag::LedgerRestored => "this ledger is older than what it forwarded",
        Flag::CountContradicts => "the product counts neither what it did before nor what it should now",
        Flag::Partial => "a part of it is there",
        Flag::MarkerMangled => "a marker came back changed, so nobody can tell whether the outcome is there",
        Flag::Vanished => "it was there, and is not any more: it is not sent again by itself",
        Flag::AtMostOnce => "nothing can be read there: it was sent once, and never again",
        Flag::AcceptedNotConfirmed => "it was accepted, and not seen since",
        Flag::SuspiciousMatch => "what was found is older than this delivery",
        Flag::CycleDoubled => "more than one cycle carries this round's id; the oldest is used",
        Flag::Stale => "a newer attempt is there; this one was left out",
        Flag::RowsAmbiguous => "more than one row of the case is there",
    }
}

fn watcher(output: Output) -> impl FnMut(Step) + Send {
    move |step| match step {
        Step::Waiting { ms, why } => {
            output.note(&format!("{why}; going on in {}", duration::show(Duration::from_millis(ms))));
        }
        Step::Intent { number, state } => output.detail(&format!("part {number}: {state}")),
    }
}
