//! Client processes: each packs a report, keeps it in its outbox and delivers it by the production loop, or delivers
//! what an earlier process left. Any of them may be killed wherever it waits. Must not judge what it hears.

use std::path::PathBuf;
use std::sync::Arc;

use delivery::{
    Clock as _, Destination, Ended, Entry, HttpUrl, LockError, Outbox, Parcel, RetryPolicy, Scratch, Settled, Stop,
    TallyonceTarget, Terms, deliver,
};
use domain::{Delivery, Incarnation};
use proof::rng::Rng;
use rand::TryRng;
use tokio::sync::watch;

use crate::faults::Class;
use crate::history::Heard;
use crate::network::{ADDRESS, Network};
use crate::scenario::{RunnerPlan, Scenario, Start};
use crate::sim::{Sim, lock, note, sleep};

/// How often a process looks at an entry that another one holds, a tenth of a second apart.
const HELD_LOOKS_MAX: u32 = 600;
/// How often an entry is put again that another process delivered in between.
const TURNS_MAX: u32 = 8;
/// Processes that try to deliver what one left.
const LIVES_MAX: u32 = 5;
/// Time enough for everything once faults have ended, in milliseconds.
const CALM_DEADLINE_MS: u64 = 600_000;

/// A world with all that is going to happen in it.
pub(crate) struct World {
    pub(crate) sim: Arc<Sim>,
    pub(crate) scenario: Scenario,
    /// Where the outboxes are.
    pub(crate) folder: PathBuf,
    /// Whether a runner's first process has ended.
    ended: Vec<watch::Sender<bool>>,
    /// How many of a hundred moments between two steps of a process kill it.
    pub(crate) deaths: u64,
}

/// The world's chance, where production asks for randomness.
struct Chance(Arc<Sim>);

impl TryRng for Chance {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(self.0.draw(Rng::next_u64) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(self.0.draw(Rng::next_u64))
    }

    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), Self::Error> {
        for chunk in into.chunks_mut(8) {
            let bytes = self.0.draw(Rng::next_u64).to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
        Ok(())
    }
}

impl World {
    pub(crate) fn new(sim: Arc<Sim>, scenario: Scenario, folder: PathBuf, deaths: u64) -> Self {
        let ended = scenario.runners.iter().map(|_| watch::Sender::new(false)).collect();
        Self { sim, scenario, folder, ended, deaths }
    }

    fn outbox(&self, machine: usize) -> Outbox {
        Outbox::open(self.folder.join(format!("machine-{machine}"))).expect("a folder for an outbox")
    }

    /// A moment in which a process may be killed.
    async fn may_die(&self, process: u64, at: usize) {
        if !self.sim.is_calm() && self.sim.below(100) < self.deaths && self.sim.kill(process) {
            self.sim.hit(Some(at), Class::RunnerKilled);
            std::future::pending::<()>().await;
        }
    }

    /// The life of a runner: its first process, and those that take over its outbox.
    pub(crate) async fn live(self: Arc<Self>, at: usize) {
        let plan = &self.scenario.runners[at];
        match plan.start {
            Start::At(ms) => sleep(ms).await,
            Start::After(other, ms) => {
                let mut ended = self.ended[other].subscribe();
                let _ = ended.wait_for(|ended| *ended).await;
                sleep(ms).await;
            }
        }
        let first = Arc::clone(&self);
        self.process(at, |process| async move { first.first_life(at, process).await }).await;
        self.ended[at].send_replace(true);
        for _ in 0..LIVES_MAX {
            if !self.goes_on(at) {
                return;
            }
            sleep(self.sim.below(60_000)).await;
            let world = Arc::clone(&self);
            let machine = plan.machine;
            self.process(at, |process| async move { world.flush(machine, process, plan_deadline(&world, at)).await })
                .await;
        }
    }

    /// True if another process takes over.
    fn goes_on(&self, at: usize) -> bool {
        let plan = &self.scenario.runners[at];
        let mut history = self.sim.history();
        let offer = &mut history.offers[at];
        if offer.last() == Some(&Heard::Killed) && plan.ephemeral {
            offer.evicted = true;
            drop(history);
            note!(self.sim, "runner {at} is gone with its disk");
            let _ = std::fs::remove_dir_all(self.folder.join(format!("machine-{}", plan.machine)));
            return false;
        }
        plan.restarts && offer.begun && !offer.is_settled() && !offer.evicted
    }

    /// One client process, from its start to its end, however it ends.
    async fn process<F>(self: &Arc<Self>, at: usize, work: impl FnOnce(u64) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let process = self.sim.number();
        note!(self.sim, "process {process} of runner {at} starts");
        let task = tokio::spawn(Box::pin(work(process)));
        self.sim.started_process(process, task.abort_handle());
        let ended = task.await;
        self.sim.ended_process(process);
        match ended {
            Ok(()) => note!(self.sim, "process {process} of runner {at} ends"),
            Err(error) if error.is_cancelled() => self.hear(at, Heard::Killed),
            Err(error) => self.sim.violation(format_args!("a client process crashed: {error}")),
        }
    }

    pub(crate) fn hear(&self, at: usize, heard: Heard) {
        note!(self.sim, "runner {at} hears {}", heard.words());
        let mut history = self.sim.history();
        let offer = &mut history.offers[at];
        // A verdict stands, whatever becomes of a process that came after it.
        if !(offer.is_settled() && matches!(heard, Heard::Killed | Heard::Unknown(_))) {
            offer.heard.push(heard);
        }
    }

    async fn first_life(self: Arc<Self>, at: usize, process: u64) {
        let plan = &self.scenario.runners[at];
        let incarnation = self.sim.history().offers[at].incarnation;
        let parcel = self.packed(plan, incarnation);
        let chunks = if plan.cuts == 0 { 0 } else { parcel.header.chunks.len() as u32 };
        self.may_die(process, at).await;
        {
            let mut history = self.sim.history();
            history.offers[at].begun = true;
            history.offers[at].chunks = chunks;
        }
        let outbox = self.outbox(plan.machine);
        let mut own = outbox.put(&parcel).expect("the outbox keeps it");
        note!(self.sim, "runner {at} keeps its report, {} outcomes in {chunks} chunks", plan.content.said.len());
        self.may_die(process, at).await;
        let (entries, _) = outbox.entries().expect("the outbox can be read");
        for older in entries.iter().take_while(|entry| entry.path() != own.path()) {
            if !self.deliver_entry(older, process, plan.deadline_ms).await.is_confirmed() {
                self.hear(at, Heard::Unknown("an earlier delivery of this key goes first".to_owned()));
                return;
            }
        }
        for _ in 0..TURNS_MAX {
            match self.deliver_entry(&own, process, plan.deadline_ms).await {
                Turn::Gone => own = outbox.put(&parcel).expect("the outbox keeps it"),
                Turn::Held => return self.hear(at, Heard::Unknown("another process holds the entry".to_owned())),
                Turn::Confirmed | Turn::Unconfirmed => return,
            }
        }
    }

    fn packed(&self, plan: &RunnerPlan, incarnation: Incarnation) -> Parcel {
        let to = Destination::parse(ADDRESS).expect("an address");
        let created_at = self.sim.client_clock().utc_rfc3339();
        let mut parcel = Parcel::pack(&plan.push(incarnation), &to, created_at).expect("a parcel");
        for _ in 0..plan.cuts {
            if let Some(finer) = parcel.smaller(Scratch::Memory).expect("a smaller cut") {
                parcel = finer;
            }
        }
        parcel
    }

    /// Delivers everything that an outbox holds, oldest first, until one is not confirmed.
    pub(crate) async fn flush(&self, machine: usize, process: u64, deadline_ms: u64) {
        let (entries, _) = self.outbox(machine).entries().expect("the outbox can be read");
        for entry in &entries {
            match self.deliver_entry(entry, process, deadline_ms).await {
                Turn::Confirmed | Turn::Gone => {}
                Turn::Held | Turn::Unconfirmed => return,
            }
        }
    }

    async fn deliver_entry(&self, entry: &Entry, process: u64, deadline_ms: u64) -> Turn {
        let header = entry.header();
        let found = self.sim.history().runner_of(&header.key, &header.place.project, header.sender.incarnation);
        let Some(runner) = found else {
            self.sim.violation(format_args!("an outbox entry that nobody made: {:?}", header.sender));
            return Turn::Unconfirmed;
        };
        let mut looks = 0;
        let mut held = loop {
            match entry.lock() {
                Ok(held) => break held,
                Err(LockError::Gone { .. }) => return Turn::Gone,
                Err(LockError::Held { .. }) if looks < HELD_LOOKS_MAX => looks += 1,
                Err(_) => return Turn::Held,
            }
            sleep(100).await;
        };
        let parcel = entry.load().expect("a kept entry is whole");
        let ended = self.deliver(&parcel, &mut held, (runner, process), deadline_ms).await;
        self.may_die(process, runner).await;
        let settled = Settled::of(entry, held, &ended);
        let heard = Heard::of(&ended);
        let confirmed = !matches!(heard, Heard::Unknown(_));
        self.hear(runner, heard);
        if let Some(settled) = settled {
            self.may_die(process, runner).await;
            settled.forget().expect("an entry can be removed");
        }
        if confirmed { Turn::Confirmed } else { Turn::Unconfirmed }
    }

    async fn deliver(
        &self,
        parcel: &Parcel,
        keep: &mut delivery::EntryLock,
        (runner, process): (usize, u64),
        deadline_ms: u64,
    ) -> Ended {
        let network = Arc::new(Network::new(&self.sim, Some(runner), process));
        let target = TallyonceTarget::over(HttpUrl::parse(ADDRESS).expect("an address"), network);
        let clock = self.sim.client_clock();
        let mut chance = Chance(Arc::clone(&self.sim));
        let stop = Stop::new();
        if lock(&self.sim.faults).is_random() && self.sim.below(25) == 0 {
            let (stop, after_ms) = (stop.clone(), self.sim.below(30_000));
            tokio::spawn(async move {
                sleep(after_ms).await;
                stop.request();
            });
        }
        let terms = Terms {
            policy: RetryPolicy::within(deadline_ms),
            clock: &clock,
            random: &mut chance,
            stop: &stop,
            progress: &mut |_| {},
        };
        Box::pin(deliver(&target, parcel, keep, terms)).await
    }

    /// Once faults have ended: everything that is kept is delivered, by one process a machine, all at once.
    pub(crate) async fn settle_all(self: &Arc<Self>) {
        let mut tasks = Vec::new();
        for machine in 0..self.scenario.machines {
            let world = Arc::clone(self);
            let process = self.sim.number();
            tasks.push(tokio::spawn(async move { world.flush(machine, process, CALM_DEADLINE_MS).await }));
        }
        for task in tasks {
            if let Err(error) = task.await {
                self.sim.violation(format_args!("a client process crashed: {error}"));
            }
        }
    }
}

fn plan_deadline(world: &World, at: usize) -> u64 {
    world.scenario.runners[at].deadline_ms
}

/// What came of one entry.
enum Turn {
    Confirmed,
    Unconfirmed,
    Held,
    Gone,
}

impl Turn {
    /// True if nothing of its key has to wait for it.
    fn is_confirmed(&self) -> bool {
        matches!(self, Turn::Confirmed | Turn::Gone)
    }
}

impl Heard {
    fn of(ended: &Ended) -> Self {
        match &ended.delivery {
            Delivery::Recorded(handed) => Heard::Recorded {
                receipt: handed.receipt_bytes.clone(),
                revision: handed.receipt.revision,
                content: handed.receipt.content,
                replayed: handed.replayed,
                class: handed.class,
            },
            Delivery::Rejected(problem) => Heard::Refused(problem.code, problem.detail.clone()),
            Delivery::NotSent(cause) | Delivery::PossiblyWritten(cause) => Heard::Unknown(cause.what.clone()),
        }
    }

    fn words(&self) -> String {
        match self {
            Heard::Recorded { revision, replayed, class, .. } => {
                format!("recorded as revision {revision}, replayed: {replayed}, difference: {class:?}")
            }
            Heard::Refused(code, words) => format!("{}: {words}", code.word()),
            Heard::Unknown(words) => format!("nothing certain: {words}"),
            Heard::Killed => "nothing: it is killed".to_owned(),
        }
    }
}
