//! What is going to happen in a world, drawn from its seed: which jobs run, how often, where and against whom, and what
//! their reports hold. Must not run anything.

use domain::{
    CycleName, Executor, JobName, OnDifference, Ordinal, OrdinalScope, Origin, Place, ProblemCode, ProjectId, Push,
    PushKey, ReportSummary, RoundId, RunId, Sender, ShardRef, Variant,
};
use proof::rng::Rng;

use crate::content::{Content, Draft};

/// When an execution starts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Start {
    At(u64),
    /// That much after the first process of another one has ended.
    After(usize, u64),
}

/// One execution of a job, with a report to deliver.
#[derive(Debug)]
pub(crate) struct RunnerPlan {
    pub(crate) place: Place,
    pub(crate) key: PushKey,
    pub(crate) start: Start,
    pub(crate) ordinal: Option<u64>,
    pub(crate) scope: OrdinalScope,
    pub(crate) executor: String,
    pub(crate) policy: OnDifference,
    pub(crate) outside_ci: bool,
    pub(crate) content: Content,
    /// How often it is cut smaller than one request.
    pub(crate) cuts: u8,
    pub(crate) deadline_ms: u64,
    /// Which outbox it has.
    pub(crate) machine: usize,
    /// If it dies, another process goes on with its outbox.
    pub(crate) restarts: bool,
    /// If it dies, its disk is gone too.
    pub(crate) ephemeral: bool,
    pub(crate) racing: bool,
    pub(crate) executed_again: bool,
    pub(crate) refusals: &'static [ProblemCode],
}

/// What is going to happen.
#[derive(Debug, Default)]
pub(crate) struct Scenario {
    pub(crate) runners: Vec<RunnerPlan>,
    pub(crate) machines: usize,
    /// Keys under which several legs come at one attempt by mistake.
    pub(crate) legs: Vec<Vec<usize>>,
}

/// A job under one key, from which its executions are drawn.
struct Job {
    place: Place,
    key: PushKey,
    scope: OrdinalScope,
    counted: bool,
    draft: Draft,
    policy: OnDifference,
    outside_ci: bool,
}

impl Scenario {
    /// Of a seed.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let mut scenario = Self::default();
        let jobs = 2 + rng.below(5);
        for number in 0..jobs {
            let job = Job::draw(rng, number);
            match rng.below(8) {
                0 => drop(scenario.first(rng, &job)),
                1 | 2 => scenario.executions(rng, &job),
                3..=5 => scenario.race(rng, &job),
                6 => scenario.legs(rng, &job),
                _ => scenario.misuse(rng, &job),
            }
        }
        scenario
    }

    fn push(&mut self, runner: RunnerPlan) -> usize {
        self.runners.push(runner);
        self.runners.len() - 1
    }

    fn machine(&mut self) -> usize {
        self.machines += 1;
        self.machines - 1
    }

    /// The first execution of a job.
    fn first(&mut self, rng: &mut Rng, job: &Job) -> usize {
        let machine = self.machine();
        let start = Start::At(rng.below(60_000));
        let ordinal = job.counted.then_some(1);
        let runner = job.runner(rng, &job.draft, start, ordinal, machine);
        self.push(runner)
    }

    /// A job that is run again and again: each time with other outcomes, on the same machine or another one.
    fn executions(&mut self, rng: &mut Rng, job: &Job) {
        let mut before = self.first(rng, job);
        let mut draft = job.draft.clone();
        for attempt in 2..=2 + rng.below(3) {
            draft = other(rng, &draft);
            let same_disk = !self.runners[before].ephemeral && rng.below(2) == 0;
            let machine = if same_disk { self.runners[before].machine } else { self.machine() };
            let ordinal = job.counted.then_some(attempt);
            let start = Start::After(before, rng.below(40_000));
            let mut runner = job.runner(rng, &draft, start, ordinal, machine);
            runner.executed_again = true;
            // A disk that is shared stays.
            runner.ephemeral &= !same_disk;
            before = self.push(runner);
        }
    }

    /// Runners that deliver at the same time under one key.
    fn race(&mut self, rng: &mut Rng, job: &Job) {
        let first = self.first(rng, job);
        let start = self.runners[first].start;
        self.runners[first].racing = true;
        let shares_executor = rng.below(2) == 0;
        for rival in 0..=rng.below(2) {
            let draft = match rng.below(5) {
                0 => job.draft.clone(),
                1 => job.draft.timed_anew(rng),
                _ => other(rng, &job.draft),
            };
            let machine = self.machine();
            let at = match start {
                Start::At(ms) => Start::At(ms + rng.below(15_000)),
                after @ Start::After(..) => after,
            };
            let mut runner = job.runner(rng, &draft, at, None, machine);
            // At one attempt there is one executor, else they are legs.
            let higher = 2 + rival;
            runner.ordinal = job.counted.then_some(if shares_executor && rng.below(2) == 0 { 1 } else { higher });
            if runner.ordinal == Some(1) {
                runner.executor.clone_from(&self.runners[first].executor);
            }
            runner.racing = true;
            runner.executed_again = draft != job.draft && rng.below(4) > 0;
            self.push(runner);
        }
    }

    /// Legs of a matrix whose index nobody passed: one attempt, several executors.
    fn legs(&mut self, rng: &mut Rng, job: &Job) {
        let mut legs = Vec::new();
        let equal = rng.below(3) == 0;
        for _ in 0..2 + rng.below(2) {
            let draft = if equal { job.draft.clone() } else { job.draft.executed_again(rng) };
            let machine = self.machine();
            let start = Start::At(rng.below(30_000));
            let mut runner = job.runner(rng, &draft, start, Some(1), machine);
            runner.racing = true;
            runner.policy = OnDifference::Auto;
            runner.refusals = &[ProblemCode::KeyCollision, ProblemCode::Tombstoned];
            legs.push(self.push(runner));
        }
        self.legs.push(legs);
    }

    /// A key that is used for something else too.
    fn misuse(&mut self, rng: &mut Rng, job: &Job) {
        let first = self.first(rng, job);
        let machine = self.machine();
        let foreign = rng.below(2) == 0;
        let start = Start::After(first, rng.below(40_000));
        let draft = if foreign { Draft::first(rng, 77, 0, job.draft.len()) } else { job.draft.executed_again(rng) };
        let ordinal = job.counted.then_some(2);
        let mut runner = job.runner(rng, &draft, start, ordinal, machine);
        if foreign {
            runner.refusals = &[ProblemCode::KeyCollision, ProblemCode::Differs, ProblemCode::Tombstoned];
        } else {
            runner.place.job = Some(JobName::parse("another").expect("a job"));
            runner.refusals = &[ProblemCode::KeyReused, ProblemCode::Tombstoned];
        }
        self.runners[first].refusals = runner.refusals;
        self.push(runner);
    }
}

/// The same job's tests executed again.
fn other(rng: &mut Rng, draft: &Draft) -> Draft {
    match rng.below(4) {
        0 => draft.partly_again(rng),
        1 => draft.with_more(rng),
        _ => draft.executed_again(rng),
    }
}

impl Job {
    fn draw(rng: &mut Rng, number: u64) -> Self {
        // The same key in another project is another key.
        let project = if rng.below(4) == 0 { "other" } else { "shop" };
        let run = 1 + rng.below(2);
        let size = if rng.below(4) == 0 { 3 + rng.below(14) } else { 17 + rng.below(44) };
        let place = Place {
            project: ProjectId::parse(project).expect("a project"),
            cycle: CycleName::parse("main").expect("a cycle"),
            round: RoundId::parse(&format!("run:{run}")).expect("a round"),
            run: RunId::parse(&run.to_string()).expect("a run"),
            label: None,
            job: Some(JobName::parse(if number.is_multiple_of(3) { "unit" } else { "e2e" }).expect("a job")),
            shard: Some(ShardRef::parse(&format!("{}/9", number + 1)).expect("a shard")),
            variant: Variant::default(),
        };
        let key = format!("run:{run}:job:{}:shard:{}", place.job.as_ref().map_or("", |job| job.as_str()), number + 1);
        // Shards share items of one pool: overlaps.
        let from = rng.below(90);
        let draft = Draft::first(rng, 1, from, size);
        let policy = match rng.below(10) {
            0 => OnDifference::Revise,
            1 => OnDifference::Keep,
            2 => OnDifference::Fail,
            _ => OnDifference::Auto,
        };
        Self {
            place,
            key: PushKey::parse(&key).expect("a key"),
            scope: if rng.below(3) == 0 { OrdinalScope::Key } else { OrdinalScope::Round },
            counted: rng.below(4) > 0,
            draft,
            policy,
            outside_ci: rng.below(12) == 0,
        }
    }

    fn runner(&self, rng: &mut Rng, draft: &Draft, start: Start, ordinal: Option<u64>, machine: usize) -> RunnerPlan {
        let most = if draft.len() > 32 { 2 } else { 1 };
        let cuts = if rng.below(10) < 6 { 1 + rng.below(most) as u8 } else { 0 };
        let deadline_ms = if rng.below(6) == 0 { 2_000 + rng.below(40_000) } else { 600_000 };
        let may_fail = self.policy == OnDifference::Fail || self.outside_ci;
        RunnerPlan {
            place: self.place.clone(),
            key: self.key.clone(),
            start,
            ordinal,
            scope: self.scope,
            executor: format!("executor {machine}"),
            policy: self.policy,
            outside_ci: self.outside_ci,
            content: draft.build(),
            cuts,
            deadline_ms,
            machine,
            restarts: rng.below(3) > 0,
            ephemeral: rng.below(6) == 0,
            racing: false,
            executed_again: false,
            refusals: if may_fail {
                &[ProblemCode::Differs, ProblemCode::Tombstoned]
            } else {
                &[ProblemCode::Tombstoned]
            },
        }
    }
}

impl RunnerPlan {
    /// The push, as one incarnation packs it.
    pub(crate) fn push(&self, incarnation: domain::Incarnation) -> Push {
        let outcomes = self.content.outcomes.clone();
        let content = outcomes.digests().id();
        Push {
            key: self.key.clone(),
            place: self.place.clone(),
            origin: Origin::default(),
            sender: Sender {
                ordinal: self.ordinal.map(Ordinal),
                ordinal_scope: self.scope,
                executor: Some(Executor::parse(&self.executor).expect("an executor")),
                incarnation: Some(incarnation),
            },
            on_difference: self.policy,
            outside_ci: self.outside_ci,
            expect: None,
            files: vec!["junit.xml".to_owned()],
            report: ReportSummary { files: 1, outcomes: outcomes.len() as u64, ..ReportSummary::default() },
            incomplete: false,
            outcomes,
            content,
        }
    }
}
