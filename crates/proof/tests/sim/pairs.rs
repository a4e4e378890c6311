//! Enumeration before randomness (`facts/idempotency.md`, 5.2a): every single fault of one canonical push, and every
//! ordered pair of them, once with the same spool and once executed again. Must not draw a fault by chance.
//!
//! The facts count begin, 3 puts and commit; chunks come in powers of two, so here it is begin, 4 puts and commit:
//! 6 requests x (9 points x {server, store, runner} + 6 message faults) = 198 single faults, 78,408 ordered pairs with
//! both ways to go on. What 5 of these requests give, the 54,450 of the facts, is among them.
//!
//! Equal by construction in the memory engine, which applies an operation in one step: k2, k3 and k4 of one victim. A
//! commit has no body: its k1 is its k0, and cut short it is lost. For the store k0 to k4 are one: it is away when it is
//! needed. After its answer (k7, k8) the store is away for the next operation.

use std::path::Path;

use domain::{
    CycleName, JobName, OnDifference, OrdinalScope, Place, ProblemCode, ProjectId, PushKey, RoundId, RunId, Variant,
};
use proof::rng::Rng;

use crate::checker::Came;
use crate::content::Draft;
use crate::faults::{Kind, OnAnswer, OnRequest, OnStore, Plan, Point, Source, Step};
use crate::scenario::{RunnerPlan, Scenario, Start};
use crate::world::{Outcome, Setting, run};

/// The requests of the canonical push.
const REQUESTS: [Kind; 6] = [Kind::Begin, Kind::Put(0), Kind::Put(1), Kind::Put(2), Kind::Put(3), Kind::Commit];

/// Whom a crash point hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Victim {
    Server,
    Store,
    Runner,
}

/// What happens to a message between the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnTheWay {
    RequestDropped,
    AnswerDropped,
    Duplicated,
    Delayed,
    Truncated,
    GatewayAfter,
}

/// One single fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Single {
    Crash(Point, Victim, Kind),
    Message(OnTheWay, Kind),
}

/// How it goes on after a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    SameSpool,
    ExecutedAgain,
}

/// All single faults.
pub(crate) fn singles() -> Vec<Single> {
    let mut all = Vec::new();
    for kind in REQUESTS {
        for point in Point::ALL {
            all.extend(
                [Victim::Server, Victim::Store, Victim::Runner].map(|victim| Single::Crash(point, victim, kind)),
            );
        }
        let on_the_way = [
            OnTheWay::RequestDropped,
            OnTheWay::AnswerDropped,
            OnTheWay::Duplicated,
            OnTheWay::Delayed,
            OnTheWay::Truncated,
            OnTheWay::GatewayAfter,
        ];
        all.extend(on_the_way.map(|fault| Single::Message(fault, kind)));
    }
    all
}

impl Single {
    /// What the messages of the script meet.
    fn steps(self) -> Vec<Step> {
        let calm = Plan { out_ms: 1, back_ms: 1, ..Plan::default() };
        match self {
            Single::Crash(point, victim, kind) => {
                let point = if kind == Kind::Commit && point == Point::K1 { Point::K0 } else { point };
                match victim {
                    Victim::Server => vec![Step { kind: Some(kind), plan: Plan { crash: Some(point), ..calm } }],
                    Victim::Runner => vec![Step { kind: Some(kind), plan: Plan { kill: Some(point), ..calm } }],
                    Victim::Store => store_steps(point, kind, calm),
                }
            }
            Single::Message(fault, kind) => {
                let plan = match fault {
                    OnTheWay::RequestDropped => Plan { request: Some(OnRequest::Lost { stall: false }), ..calm },
                    OnTheWay::AnswerDropped => Plan { answer: Some(OnAnswer::Lost), ..calm },
                    OnTheWay::Duplicated => Plan { request: Some(OnRequest::Twice { ms: 1_500 }), ..calm },
                    OnTheWay::Delayed => Plan { request: Some(OnRequest::Late { ms: 5_000 }), ..calm },
                    OnTheWay::Truncated if kind == Kind::Commit => {
                        Plan { request: Some(OnRequest::Lost { stall: false }), ..calm }
                    }
                    OnTheWay::Truncated => Plan { request: Some(OnRequest::Cut), ..calm },
                    OnTheWay::GatewayAfter => Plan { answer: Some(OnAnswer::Gateway(502)), ..calm },
                };
                vec![Step { kind: Some(kind), plan }]
            }
        }
    }
}

fn store_steps(point: Point, kind: Kind, calm: Plan) -> Vec<Step> {
    let with = |store| Plan { store: Some(store), ..calm };
    match point {
        Point::K0 | Point::K1 | Point::K2 | Point::K3 | Point::K4 => {
            vec![Step { kind: Some(kind), plan: with(OnStore::NotWritten) }]
        }
        Point::K5 => vec![Step { kind: Some(kind), plan: with(OnStore::Zombie { ms: 3_000 }) }],
        Point::K6 => vec![Step { kind: Some(kind), plan: with(OnStore::WrittenUnknown) }],
        Point::K7 | Point::K8 => {
            vec![Step { kind: Some(kind), plan: calm }, Step { kind: None, plan: with(OnStore::NotWritten) }]
        }
    }
}

/// Runs the canonical push with these faults, one after the other.
pub(crate) fn run_faults(faults: &[Single], next: Next, seed: u64, folder: &Path, keep: bool) -> Outcome {
    let mut rng = Rng::new(seed);
    let steps = faults.iter().flat_map(|fault| fault.steps()).collect();
    let scenario = canonical(&mut rng, next);
    let source = Source::Script(steps);
    let setting = Setting { rng, source, scenario, deaths: 0, people: false, sabotage: None };
    let mut outcome = run(setting, folder, keep);
    if outcome.violations.is_empty() {
        outcome.violations.extend(unlike(&outcome, next));
    }
    outcome
}

/// What must have become of it, whatever the faults were.
fn unlike(outcome: &Outcome, next: Next) -> Option<String> {
    let came: Vec<Option<Came>> = outcome.pushes.iter().map(|push| push.came).collect();
    let right = match (next, came.as_slice()) {
        (Next::SameSpool, [one]) => *one == Some(Came::Recorded),
        // The first runner may be gone with what it knew; the second one is there.
        (Next::ExecutedAgain, [first, second]) => {
            matches!(first, Some(Came::Recorded | Came::Unknown))
                && matches!(second, Some(Came::Recorded | Came::Revised))
        }
        _ => false,
    };
    (!right).then(|| format!("the canonical push came to {came:?}"))
}

fn canonical(rng: &mut Rng, next: Next) -> Scenario {
    let draft = Draft::first(rng, 1, 0, 40);
    let again = draft.executed_again(rng);
    let first = runner(&draft, Start::At(0), (1, 0), next == Next::ExecutedAgain);
    let mut scenario = Scenario { runners: vec![first], machines: 1, legs: Vec::new() };
    if next == Next::ExecutedAgain {
        scenario.runners.push(runner(&again, Start::After(0, 2_000), (2, 1), false));
        scenario.machines = 2;
    }
    scenario
}

fn runner(draft: &Draft, start: Start, (ordinal, machine): (u64, usize), ephemeral: bool) -> RunnerPlan {
    let place = Place {
        project: ProjectId::parse("shop").expect("a project"),
        cycle: CycleName::parse("main").expect("a cycle"),
        round: RoundId::parse("run:1").expect("a round"),
        run: RunId::parse("1").expect("a run"),
        label: None,
        job: Some(JobName::parse("unit").expect("a job")),
        shard: None,
        variant: Variant::default(),
    };
    RunnerPlan {
        place,
        key: PushKey::parse("run:1:job:unit").expect("a key"),
        start,
        ordinal: Some(ordinal),
        scope: OrdinalScope::Round,
        executor: format!("executor {machine}"),
        policy: OnDifference::Auto,
        outside_ci: false,
        content: draft.build(),
        cuts: 2,
        deadline_ms: 600_000,
        machine,
        restarts: !ephemeral,
        ephemeral,
        racing: false,
        executed_again: ordinal > 1,
        refusals: &[ProblemCode::Tombstoned],
    }
}

/// One ordered pair by its number, of all with both ways to go on.
pub(crate) fn pair(number: u64) -> (Single, Single, Next) {
    let singles = singles();
    let many = singles.len() as u64;
    let next = if number.is_multiple_of(2) { Next::SameSpool } else { Next::ExecutedAgain };
    let at = number / 2;
    (singles[(at / many) as usize], singles[(at % many) as usize], next)
}

/// How many pairs there are.
pub(crate) fn pairs() -> u64 {
    let many = singles().len() as u64;
    many * many * 2
}
