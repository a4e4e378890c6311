//! From a target's ledger into the target: one push, or what an earlier process left. Must not know products or strategies.

mod cycles;
mod ending;
mod grant;
mod loads;
mod place;
mod said;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use delivery::foreign::probe::RateSeen;
use delivery::foreign::{self, Adapter, Book, Forwarded, Forwarder, Halt, Heard, Step, Strategy, TargetSettings};
use delivery::{Attachments, Destination, Parcel, Stop, SystemClock};
use domain::intent::{Flag, Intent, IntentState, RefusedItem};
use rand::rngs::StdRng;
use serde::Serialize;
use server::ForwardTarget;
use store::{IntentQuery, Store};

pub(crate) use crate::flags::{exit_of, meaning};
use said::watcher;
pub(crate) use said::{Resumed, warnings};

use crate::attachments::{self, AttachmentsObject};
use crate::commands::targets::Verdict;
use crate::exit::Exit;
use crate::failure::Failure;

use crate::object::{Counting, PushObject};
use crate::output::Output;
use crate::repository;
use crate::settings::ConnectionSettings;
use crate::settings::file::ForwardSection;
use crate::settings::target::{CloseWhen, Target, TargetSection};

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
    /// Items that were to go there.
    pub items: u64,
    /// Cases that those of them are in that have one.
    pub cases: u64,
    /// Cases by how far they are; together they are `cases`.
    pub states: std::collections::BTreeMap<IntentState, u64>,
    /// Items that the target refused, or that have no case there; the others of `items` are in `cases`.
    pub refused: Vec<RefusedItem>,
    /// What people have to know of it.
    pub flags: Vec<Flag>,
    /// What became of files that go along; absent where none do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachments: Option<AttachmentsObject>,
}

/// A target that is ready to be forwarded to.
pub(crate) struct Forwarding {
    target: Target,
    adapter: Arc<dyn Adapter>,
    heard: Arc<Heard>,
    strategy: Strategy,
    close: CloseWhen,
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
        let (adapter, heard) = foreign::open_and_hear(target.settings.clone(), &http, Arc::new(SystemClock::new()))
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
        let close = ending::when(section, target.close, strategy, &*adapter)?;
        Ok(Self { target, adapter, heard, strategy, close, output, doubt: None })
    }

    /// What is to be said of its strategy.
    pub(crate) fn doubt(&self) -> Option<&str> {
        self.doubt.as_deref()
    }

    /// As a server forwards to it.
    pub(crate) fn served(self, rule: &ForwardSection) -> ForwardTarget {
        ForwardTarget {
            settings: self.target.settings,
            adapter: self.adapter,
            strategy: self.strategy,
            projects: rule.projects.clone().unwrap_or_default(),
            cycles: rule.cycles.clone().unwrap_or_default(),
            close_after_push: self.close == CloseWhen::Push,
        }
    }

    /// True once anything was recorded for it on this machine.
    pub(crate) fn has_ledger(&self) -> bool {
        matches!(&self.target.ledger, Destination::Sqlite(path) if path.exists())
    }

    /// Its adapter.
    pub(crate) fn adapter(&self) -> &dyn Adapter {
        &*self.adapter
    }

    /// An adapter of the same target that makes no cases.
    ///
    /// # Errors
    /// A certificate can't be used any more.
    pub(crate) fn only_looking(&self, connection: &ConnectionSettings) -> Result<Arc<dyn Adapter>, Failure> {
        let settings = TargetSettings { create_cases: false, ..self.target.settings.clone() };
        let opened = foreign::open(settings, &repository::http_settings(connection), Arc::new(SystemClock::new()));
        opened
            .map_err(|error| Failure::usage(format!("{}: {error}", self.name()), "Mend the file or its certificates."))
    }

    /// What its answers said of a rate limit so far.
    pub(crate) fn heard(&self) -> Option<RateSeen> {
        self.heard.seen()
    }

    /// How long is waited before a request without an answer is read back.
    pub(crate) fn quiet_ms(&self) -> u64 {
        self.target.settings.quiet_ms.unwrap_or(self.adapter.facts().quiet_ms)
    }

    /// Its settings.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Forwards a push that its ledger has recorded, then the files that go along; takes down in `object` what became of it.
    ///
    /// # Errors
    /// It isn't known whether all of it is there.
    pub(crate) async fn push(
        &self,
        (parcel, files): (&Parcel, &Attachments),
        deadline: Duration,
        stop: &Stop,
        object: &mut PushObject,
    ) -> Result<Exit, Failure> {
        if object.counting == Counting::Others {
            object.warnings.push(format!(
                "nothing is forwarded to {}: what was offered is kept beside what is recorded, and doesn't count",
                self.target.settings.name
            ));
            return Ok(Exit::Success);
        }
        object.warnings.extend(self.doubt.clone());
        let load = match object.counting {
            Counting::Recorded => self.recorded(parcel).await?,
            Counting::Offered | Counting::Others => self.offered(parcel)?,
        };
        object.warnings.extend(said::of_no_use(&self.target.settings, &load.outcomes));
        let items = load.outcomes.len() as u64;
        let book = self.book(stop)?;
        let (clock, mut random) = (SystemClock::new(), rand::make_rng::<StdRng>());
        let mut watch = watcher(self.output);
        let mut forwarder = self.forwarder(&*book, &clock, &mut random, stop, deadline, &mut watch);
        match forwarder.forward(load).await {
            Ok(forwarded) => {
                let attached = forwarder.attach(&forwarded, files).await;
                let done = self.object(&forwarded, items);
                let mut exit = exit_of(&forwarded);
                let parked = said::asks_for_a_look(&forwarded.intents);
                let said = warnings(&done.target, &done.refused, &done.flags, parked);
                object.warnings.extend(said);
                object.warnings.extend(self.end_after(forwarded.cycle.as_slice(), exit, stop).await);
                object.forward = Some(done);
                if !attachments::tell(self.target.settings.name.as_str(), attached, object) {
                    exit = exit.worse(Exit::Partly);
                }
                Ok(exit)
            }
            Err(halt) => Err(self.halted(&halt)),
        }
    }

    /// Brings what an earlier process left to its end.
    ///
    /// # Errors
    /// It isn't known whether all of it is there.
    pub(crate) async fn resume(&self, deadline: Duration, stop: &Stop) -> Result<Resumed, Failure> {
        let book = self.book(stop)?;
        let (clock, mut random) = (SystemClock::new(), rand::make_rng::<StdRng>());
        let mut watch = watcher(self.output);
        let mut forwarder = self.forwarder(&*book, &clock, &mut random, stop, deadline, &mut watch);
        let ended = forwarder.resume().await.map_err(|halt| self.halted(&halt))?;
        let mut resumed = Resumed::of(self.target.settings.name.as_str(), &ended);
        resumed.warnings.extend(self.end_resumed(&ended, stop).await);
        Ok(resumed)
    }

    /// Does what a person says of an intent; what is taken up again goes on at once.
    ///
    /// # Errors
    /// It isn't in a state for that, or it isn't known whether all of it is there.
    pub(crate) async fn decide(
        &self,
        intent: Intent,
        verdict: Verdict<'_>,
        deadline: Duration,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let state = intent.state;
        let fits = match verdict {
            Verdict::TakeUp(_) => state == IntentState::Parked,
            Verdict::Leave(..) => state != IntentState::Rejected,
        };
        if !fits {
            return Err(Failure::usage(
                format!(
                    "{} is {state}: only what is parked is taken up again, and what was rejected can't be given up",
                    intent.id
                ),
                "See `tallyonce forwards`; what is on its way goes on with the next push or `tallyonce flush`, and nothing \
                 of what was rejected is there.",
            ));
        }
        let book = self.book(stop)?;
        let (clock, mut random) = (SystemClock::new(), rand::make_rng::<StdRng>());
        let mut watch = watcher(self.output);
        let mut forwarder = self.forwarder(&*book, &clock, &mut random, stop, deadline, &mut watch);
        let done = match verdict {
            Verdict::TakeUp(_) => match forwarder.take_up(intent).await {
                Ok(_) => forwarder.resume().await.map(drop),
                Err(halt) => Err(halt),
            },
            Verdict::Leave(_, why) => forwarder.leave(intent, why).await.map(drop),
        };
        done.map_err(|halt| self.halted(&halt))
    }

    /// Reads everything settled back.
    ///
    /// # Errors
    /// It can't be read.
    pub(crate) async fn sweep(&self, deadline: Duration, stop: &Stop) -> Result<(), Failure> {
        let Some(ledger) = existing_ledger(&self.target.ledger)? else { return Ok(()) };
        let states = vec![IntentState::Acked, IntentState::Found, IntentState::Parked, IntentState::Rejected];
        let query = IntentQuery { target: Some(self.name().to_owned()), states, ..IntentQuery::default() };
        let listed = ledger.intent_reports(query.clone()).await.map_err(|error| Failure::store(&error))?;
        // The newest first, as far as the time goes, and one cycle at a time: a ledger may know of more than fits in memory.
        let mut seen = BTreeSet::new();
        let cycles = listed.into_iter().rev().filter_map(|intent| intent.cycle_there);
        let cycles: Vec<String> = cycles.filter(|cycle| seen.insert(cycle.clone())).collect();
        let book = self.book(stop)?;
        let (clock, mut random) = (SystemClock::new(), rand::make_rng::<StdRng>());
        let mut watch = watcher(self.output);
        let mut forwarder = self.forwarder(&*book, &clock, &mut random, stop, deadline, &mut watch);
        let mut unread = None;
        for cycle in cycles {
            let of_cycle = IntentQuery { cycle_there: Some(cycle), ..query.clone() };
            let mut intents = ledger.intents(of_cycle).await.map_err(|error| Failure::store(&error))?;
            // What was refused at its first send never was there.
            let never_came = |intent: &Intent| intent.state == IntentState::Rejected && intent.sends < 2;
            intents.retain(|intent| !intent.is_at_rest() && !never_came(intent));
            // A turn of its own is not worth taking for nothing.
            if intents.is_empty() {
                continue;
            }
            match forwarder.sweep(intents).await {
                Err(halt @ Halt::Refused(_)) => drop(unread.get_or_insert(halt)),
                swept => drop(swept.map_err(|halt| self.halted(&halt))?),
            }
        }
        unread.map_or(Ok(()), |halt| Err(self.halted(&halt)))
    }

    fn forwarder<'a>(
        &'a self,
        book: &'a dyn Book,
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
            quiet_ms: self.quiet_ms(),
            // Other jobs forward there too.
            sole: false,
            book,
            clock,
            random,
            stop,
            deadline_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
            progress,
        }
    }

    fn object(&self, forwarded: &Forwarded, items: u64) -> ForwardObject {
        ForwardObject {
            target: self.target.settings.name.to_string(),
            kind: self.target.settings.kind.word(),
            strategy: self.strategy,
            cycle: forwarded.cycle.as_ref().map(ToString::to_string),
            items,
            cases: forwarded.intents.iter().map(|intent| u64::from(intent.cases)).sum(),
            states: forwarded.cases(),
            refused: forwarded.refused(),
            flags: forwarded.all_flags(),
            attachments: None,
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
