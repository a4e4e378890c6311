//! One target's worker: looks what waits, takes the lease, forwards the oldest first, and keeps what became of it. Must not
//! know products, nor decide how an intent goes on.

use std::collections::BTreeSet;
use std::sync::Arc;

use delivery::foreign::{Book, BookError, Forwarded, Forwarder, Halt, Load, Step, Turn};
use delivery::{Clock, Stop};
use domain::intent::{IntentState, RefusedItem};
use rand::rngs::StdRng;
use store::{End, Ended, IntentQuery, PushLoad, Store, StoreError, Waiting, WaitingQuery};
use tokio::task::JoinSet;

use super::closing::end_after;
use super::loads::{self, Taken};
use super::rest::{Hurdle, Rest};
use super::sweeps::Sweeping;
use super::{ForwardTarget, ForwardTerms, LeaseBook};
use crate::state::App;

/// Between two looks for intents that nothing waits for, in milliseconds: those of a push that was deleted meanwhile.
const STRAYS_EVERY_MS: u64 = 10 * 60_000;

/// The worker of one target in this process.
pub(super) struct Worker {
    pub(super) app: Arc<App>,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) target: ForwardTarget,
    pub(super) terms: ForwardTerms,
    pub(super) sweeping: Sweeping,
    pub(super) random: StdRng,
    holder: String,
    /// The server stops.
    stop: Stop,
    rest: Rest,
    /// Something was recorded since the last look.
    is_fresh: bool,
    /// Nobody looks for strays before.
    strays_ms: u64,
    /// That something which waits can't be read isn't said again before.
    said_ms: u64,
}

/// What a worker has while it works.
pub(super) struct Session {
    pub(super) book: LeaseBook,
    pub(super) turn: Turn,
    /// The server stops, or the lease is lost.
    pub(super) stop: Stop,
    /// Hands the server's wish on.
    _heard: JoinSet<()>,
}

/// What became of one piece of work.
pub(super) enum Did {
    /// It came further: there may be more to do.
    Further,
    /// Nothing that says whether the target can be written to.
    Nothing,
    /// Not now; the target is left alone for a while.
    Failed(Hurdle),
    /// Somebody else works, or the server stops.
    Leave,
}

/// Why a worker can't look or keep anything.
pub(super) type Broken = StoreError;

impl Worker {
    pub(super) fn new(app: Arc<App>, target: ForwardTarget, terms: ForwardTerms, stop: Stop) -> Self {
        let (store, clock) = (Arc::clone(&app.store), Arc::clone(app.door().clock()));
        let holder = format!("{:032x}", rand::random::<u128>());
        let random = rand::make_rng();
        let sweeping = Sweeping::default();
        let (rest, is_fresh, strays_ms, said_ms) = (Rest::default(), false, 0, 0);
        Self { app, store, clock, target, terms, sweeping, random, holder, stop, rest, is_fresh, strays_ms, said_ms }
    }

    pub(super) fn name(&self) -> &str {
        self.target.settings.name.as_str()
    }

    /// Works until the server stops.
    pub(super) async fn run(mut self) {
        let mut recordings = self.app.recordings();
        while !self.stop.is_requested() {
            let wait_ms = match self.visit().await {
                Ok(wait_ms) => wait_ms,
                Err(error) => {
                    tracing::error!(target = self.name(), %error, "forwarding can't use the store; it tries again");
                    self.terms.look_ms
                }
            };
            tokio::select! {
                () = self.stop.requested() => {}
                // `Err` is a listener that fell behind: look.
                _ = recordings.recv() => self.is_fresh = true,
                () = self.clock.sleep(wait_ms) => {}
            }
        }
    }

    /// Does what is to be done now, if this process may. Gives how long to wait before the next look.
    async fn visit(&mut self) -> Result<u64, Broken> {
        let rests_ms = self.rests_ms();
        if rests_ms > 0 {
            return Ok(rests_ms.min(self.terms.look_ms));
        }
        self.is_fresh = false;
        if !self.has_work().await? {
            return Ok(self.terms.look_ms);
        }
        let Some(session) = self.begin().await? else { return Ok(self.terms.look_ms) };
        let worked = self.work(&session).await;
        let ended = session.book.end_turn(&self.target.settings.name, session.turn).await;
        worked?;
        if let Err(error) = ended {
            tracing::debug!(target = self.name(), %error, "the lease ends by itself");
        }
        Ok(self.terms.look_ms)
    }

    /// How long the target is still left alone. Something new is worth a try sooner.
    fn rests_ms(&self) -> u64 {
        self.rest.left_ms(self.is_fresh, self.clock.unix_ms())
    }

    async fn has_work(&mut self) -> Result<bool, Broken> {
        let now_ms = self.clock.unix_ms();
        Ok(self.next(now_ms).await?.is_some() || self.has_strays(now_ms).await? || self.has_sweeps(now_ms).await?)
    }

    /// The oldest that waits and can be read.
    pub(super) async fn next(&mut self, now_ms: u64) -> Result<Option<Waiting>, Broken> {
        match self.store.next_waiting(self.name(), now_ms).await {
            Err(damage @ StoreError::Broken { .. }) => {
                if now_ms >= self.said_ms {
                    tracing::error!(target = self.name(), %damage, "what waits can't be read; all else goes on");
                    self.said_ms = now_ms.saturating_add(STRAYS_EVERY_MS);
                }
                Ok(None)
            }
            next => next,
        }
    }

    /// Takes the lease; `None` while another process has it.
    async fn begin(&self) -> Result<Option<Session>, Broken> {
        let stop = Stop::new();
        let mut heard = JoinSet::new();
        let (server, own) = (self.stop.clone(), stop.clone());
        heard.spawn(async move {
            server.requested().await;
            own.request();
        });
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        let book = LeaseBook::new(store, clock, self.terms, self.holder.clone(), stop.clone());
        match book.take_turn(&self.target.settings.name).await {
            Ok(turn) => Ok(turn.map(|turn| Session { book, turn, stop, _heard: heard })),
            Err(error) => Err(StoreError::NotWritten { what: error.to_string() }),
        }
    }

    /// The oldest first, until nothing is left to do or something stands in the way.
    async fn work(&mut self, session: &Session) -> Result<(), Broken> {
        while !session.stop.is_requested() {
            let now_ms = self.clock.unix_ms();
            let did = if let Some(did) = self.elsewhere(session, now_ms).await? {
                did
            } else if let Some(waiting) = self.next(now_ms).await? {
                self.forward(session, &waiting).await?
            } else if self.has_strays(now_ms).await? {
                self.strays_ms = now_ms.saturating_add(STRAYS_EVERY_MS);
                self.resume(session).await
            } else if self.has_sweeps(now_ms).await? {
                self.sweep(session).await?
            } else {
                return Ok(());
            };
            match did {
                Did::Further => self.rest = Rest::default(),
                Did::Nothing => {}
                Did::Failed(hurdle) => {
                    self.rest = self.rest.after(hurdle, self.clock.unix_ms(), self.terms);
                    return Ok(());
                }
                Did::Leave => return Ok(()),
            }
        }
        Ok(())
    }

    /// One push, as it counts now.
    async fn forward(&mut self, session: &Session, waiting: &Waiting) -> Result<Did, Broken> {
        fail::fail_point!("server:forward:taken");
        let (revision, wish) = match loads::take(&*self.store, waiting, self.terms.outcomes_max).await? {
            Taken::Whole(load) => (load.revision, Ok(self.load(load, waiting))),
            Taken::Unfit(unfit) => (unfit.revision, Err(unfit)),
            // Just now.
            Taken::Dropped => return self.end(session, waiting, dropped(self.clock.unix_ms())).await,
            Taken::Damaged(damage) => return self.damaged(session, waiting, &damage).await,
        };
        let mut settled = 0_u32;
        let forwarded = {
            let Self { app, target, clock, random, terms, .. } = self;
            let mut watch = watching(app, target.settings.name.as_str(), &mut settled);
            let mut forwarder = forwarder(target, session, &**clock, random, &mut watch, *terms);
            match wish {
                Ok(load) => Box::pin(forwarder.forward(load)).await,
                Err(unfit) => Box::pin(forwarder.refuse(unfit)).await,
            }
        };
        fail::fail_point!("server:forward:forwarded");
        match forwarded {
            Ok(forwarded) => {
                end_after(&self.target, session, (&*self.clock, &mut self.random), &forwarded).await;
                let ended = forwarded_as(forwarded, revision, self.clock.unix_ms());
                tracing::info!(target = self.name(), push = %waiting.push, revision, "forwarded");
                self.end(session, waiting, ended).await
            }
            Err(halt) => self.halted(session, waiting, &halt, settled > 0).await,
        }
    }

    fn load(&self, load: PushLoad, waiting: &Waiting) -> Load {
        let PushLoad { key, place, revision: _, ordinal, run_url, outcomes } = load;
        Load::of(&self.target.settings, &place, (key, ordinal), outcomes, run_url, waiting.since_ms)
    }

    /// It can't be read: others can.
    async fn damaged(&self, session: &Session, waiting: &Waiting, damage: &StoreError) -> Result<Did, Broken> {
        let target = self.name();
        tracing::error!(target, push = %waiting.push, %damage, "this push can't be read; others go on");
        Ok(if self.put_off(session, waiting, &damage.to_string()).await? { Did::Nothing } else { Did::Leave })
    }

    /// The wait of a push, longer with every try; false if somebody else works at the target.
    async fn put_off(&self, session: &Session, waiting: &Waiting, cause: &str) -> Result<bool, Broken> {
        let due_ms = self.clock.unix_ms().saturating_add(self.terms.backoff_ms(waiting.tries));
        let kept = self.store.put_off(session.turn.0, waiting, due_ms, cause).await?;
        self.app.board.put_off(self.name());
        Ok(kept)
    }

    async fn end(&self, session: &Session, waiting: &Waiting, ended: Ended) -> Result<Did, Broken> {
        let kept = self.store.end_waiting(session.turn.0, waiting, ended).await?;
        fail::fail_point!("server:forward:ended");
        self.app.board.changed();
        Ok(if kept { Did::Further } else { Did::Leave })
    }

    /// It came to no end: `further` says whether it came further all the same.
    async fn halted(&self, session: &Session, waiting: &Waiting, halt: &Halt, further: bool) -> Result<Did, Broken> {
        let target = self.name();
        match halt {
            Halt::Stopped(_) | Halt::Book(BookError::Fenced) => return Ok(Did::Leave),
            // As slow as it is, it goes on: nothing to wait for.
            Halt::Over(_) if further && !session.stop.is_requested() => return Ok(Did::Further),
            Halt::Over(cause) => tracing::warn!(target, push = %waiting.push, cause, "not forwarded yet"),
            Halt::Denied(cause) => {
                tracing::error!(target, push = %waiting.push, cause, "the target refuses; nothing goes there before that is mended");
            }
            Halt::Refused(cause) | Halt::Gone(cause) => {
                tracing::error!(target, push = %waiting.push, cause, "the target refuses this push; it is tried again, and others go on");
            }
            Halt::Book(error) => tracing::error!(target, push = %waiting.push, %error, "not forwarded"),
        }
        let kept = self.put_off(session, waiting, &halt.to_string()).await?;
        Ok(if kept { Did::Failed(Hurdle::of(halt)) } else { Did::Leave })
    }

    /// True if intents are open for which no push waits.
    async fn has_strays(&mut self, now_ms: u64) -> Result<bool, Broken> {
        if now_ms < self.strays_ms {
            return Ok(false);
        }
        let has_strays = match self.strays().await {
            // What waits goes on all the same.
            Err(damage @ StoreError::Broken { .. }) => {
                tracing::error!(target = self.name(), %damage, "what is open can't be listed; it is tried again");
                false
            }
            strays => strays?,
        };
        if !has_strays {
            self.strays_ms = now_ms.saturating_add(STRAYS_EVERY_MS);
        }
        Ok(has_strays)
    }

    async fn strays(&self) -> Result<bool, Broken> {
        let states = IntentState::ALL.into_iter().filter(|state| !state.is_settled()).collect();
        let target = Some(self.name().to_owned());
        let query = IntentQuery { target: target.clone(), states, ..IntentQuery::default() };
        let open = self.store.intent_reports(query).await?;
        let rows = self.store.waiting(WaitingQuery { target, ..WaitingQuery::default() }).await?;
        let waiting: BTreeSet<_> = rows.into_iter().map(|row| (row.project, row.key)).collect();
        Ok(open.into_iter().any(|intent| !waiting.contains(&(intent.project, intent.key))))
    }

    async fn resume(&mut self, session: &Session) -> Did {
        let mut settled = 0_u32;
        let resumed = {
            let Self { app, target, clock, random, terms, .. } = self;
            let mut watch = watching(app, target.settings.name.as_str(), &mut settled);
            let mut forwarder = forwarder(target, session, &**clock, random, &mut watch, *terms);
            Box::pin(forwarder.resume()).await
        };
        match resumed {
            Ok(_) => Did::Further,
            Err(Halt::Stopped(_) | Halt::Book(BookError::Fenced)) => Did::Leave,
            Err(halt @ Halt::Denied(_)) => {
                tracing::error!(target = self.name(), cause = %halt, "what was open is not settled yet");
                Did::Failed(Hurdle::of(&halt))
            }
            // Each of those that are not settled was said, and they are no word on what waits: none of it meets them.
            Err(_) if settled > 0 => Did::Further,
            Err(_) => Did::Nothing,
        }
    }
}

/// Hears a forwarder's steps: counts them, and those that settle an intent.
pub(super) fn watching<'a>(app: &'a App, target: &'a str, settled: &'a mut u32) -> impl FnMut(Step) + Send + 'a {
    move |step| match step {
        Step::Intent { number, state } => {
            *settled += u32::from(state.is_settled());
            app.board.stepped(target, state);
            tracing::debug!(target, part = number, %state, "a step");
        }
        Step::Waiting { ms, why } => tracing::debug!(target, ms, why, "waiting"),
        Step::Left { cycle, why } => tracing::warn!(target, cycle, why, "what was open there is not settled yet"),
    }
}

/// A forwarder within a session.
pub(super) fn forwarder<'a>(
    target: &'a ForwardTarget,
    session: &'a Session,
    clock: &'a dyn Clock,
    random: &'a mut StdRng,
    progress: &'a mut (dyn FnMut(Step) + Send),
    terms: ForwardTerms,
) -> Forwarder<'a> {
    let settings = &target.settings;
    Forwarder {
        target: &settings.name,
        adapter: &*target.adapter,
        mapping: &settings.cases,
        strategy: target.strategy,
        quiet_ms: settings.quiet_ms.unwrap_or(target.adapter.facts().quiet_ms),
        // A server forwards alone.
        sole: true,
        book: &session.book,
        clock,
        random,
        stop: &session.stop,
        deadline_ms: clock.now_ms().saturating_add(target.patience_ms(terms)),
        progress,
    }
}

fn forwarded_as(forwarded: Forwarded, revision: u32, at_ms: u64) -> Ended {
    let Forwarded { cycle, intents, unmatched, flags } = forwarded;
    Ended {
        end: End::Forwarded,
        at_ms,
        revision,
        cycle_there: cycle.map(|cycle| cycle.to_string()),
        flags: flags.into_iter().collect(),
        refused: unmatched,
        intents: intents.iter().map(|intent| intent.id).collect(),
    }
}

fn dropped(at_ms: u64) -> Ended {
    let (flags, refused, intents) = (BTreeSet::new(), Vec::<RefusedItem>::new(), Vec::new());
    Ended { end: End::Dropped, at_ms, revision: 0, cycle_there: None, flags, refused, intents }
}
