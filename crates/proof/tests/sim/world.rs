//! One world from its seed to its verdict: faults and people first, then calm, in which everybody must come to an end,
//! then the judgement. Must not keep anything for the next world.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use domain::{Incarnation, PushId};
use proof::rng::Rng;
use store::{Lifetime, Store as _};

use crate::checker::Came;
use crate::faults::{Rates, Source};
use crate::history::{CLASSES, Offer};
use crate::people;
use crate::process::World;
use crate::sabotage::Sabotage;
use crate::scenario::Scenario;
use crate::sim::{Sim, lock, sleep};

/// More virtual time than any world may take.
const WORLD_MAX: Duration = Duration::from_hours(12);
/// More lines of trace than any world may take: it would be going round in circles.
const STEPS_MAX: u64 = 200_000;
/// How often everything that is kept is delivered again after faults have ended.
const CALM_TURNS: u32 = 3;

/// What came of a world.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) violations: Vec<String>,
    pub(crate) hash: u64,
    pub(crate) trace: Vec<String>,
    pub(crate) pushes: Vec<PushFacts>,
    pub(crate) requests: u64,
    pub(crate) looks: u64,
    /// Faults of a script that did not happen.
    pub(crate) left: usize,
}

/// What is counted of one push.
#[derive(Debug)]
pub(crate) struct PushFacts {
    pub(crate) chunks: u32,
    pub(crate) racing: bool,
    pub(crate) executed_again: bool,
    pub(crate) faults: [u32; CLASSES],
    pub(crate) came: Option<Came>,
}

/// What a world is made of.
pub(crate) struct Setting {
    pub(crate) rng: Rng,
    pub(crate) source: Source,
    pub(crate) scenario: Scenario,
    pub(crate) deaths: u64,
    pub(crate) people: bool,
    /// What is broken on purpose before the judgement.
    pub(crate) sabotage: Option<Sabotage>,
}

/// The setting of a seed.
pub(crate) fn of_seed(seed: u64) -> Setting {
    let mut rng = Rng::new(seed);
    let rates = Rates::draw(&mut rng);
    let deaths = [0, 1, 3, 6][rng.below(4) as usize];
    let scenario = Scenario::draw(&mut rng);
    Setting { rng, source: Source::Random(rates), scenario, deaths, people: true, sabotage: None }
}

/// Runs a world in a runtime of its own: one thread, virtual time.
pub(crate) fn run(setting: Setting, folder: &Path, keep_trace: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O");
    let _ = std::fs::remove_dir_all(folder);
    let outcome = runtime.block_on(async {
        let Setting { rng, source, scenario, deaths, people, sabotage } = setting;
        let sim = Sim::new(rng, source, keep_trace);
        let world = Arc::new(World::new(Arc::clone(&sim), scenario, folder.to_owned(), deaths));
        let whole = Box::pin(until_judged(&world, people, sabotage));
        let came = tokio::time::timeout(WORLD_MAX, whole).await.unwrap_or_else(|_| {
            sim.violation(format_args!("LIVENESS: the world does not come to an end"));
            Vec::new()
        });
        outcome(&sim, &came)
    });
    drop(runtime);
    let _ = std::fs::remove_dir_all(folder);
    outcome
}

async fn until_judged(world: &Arc<World>, with_people: bool, sabotage: Option<Sabotage>) -> Vec<(usize, Came)> {
    let sim = &world.sim;
    offer_all(world);
    sim.boot();
    if with_people {
        people::start(sim);
    }
    let lives: Vec<_> = (0..world.scenario.runners.len())
        .map(|at| {
            let world = Arc::clone(world);
            tokio::spawn(Box::pin(async move { world.live(at).await }))
        })
        .collect();
    for life in lives {
        if let Err(error) = life.await {
            sim.violation(format_args!("the simulation crashed: {error}"));
        }
    }
    sim.history().left = lock(&sim.faults).left();
    sim.calm();
    calm_down(world).await;
    if let Some(sabotage) = sabotage {
        world.sabotage(sabotage).await;
    }
    let came = sim.judge().await;
    legs_are_told_apart(world);
    came
}

/// Everything that may happen, as what it will be judged by.
fn offer_all(world: &World) {
    let mut offers = Vec::new();
    for plan in &world.scenario.runners {
        let incarnation = world.sim.draw(|rng| u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64()));
        offers.push(Offer {
            project: plan.place.project.clone(),
            key: plan.key.clone(),
            push: PushId::of(&plan.place.project, &plan.key),
            content: plan.content.clone(),
            ordinal: plan.ordinal,
            attempt_of_round: plan.scope == domain::OrdinalScope::Round,
            incarnation: Incarnation(incarnation),
            policy: plan.policy,
            chunks: 0,
            racing: plan.racing,
            executed_again: plan.executed_again,
            refusals: plan.refusals,
            faults: [0; CLASSES],
            heard: Vec::new(),
            evicted: false,
            begun: false,
        });
    }
    world.sim.history().offers = offers;
}

/// Faults have ended: who is alive must come to an end in bounded time, and what nobody will end is collected.
async fn calm_down(world: &Arc<World>) {
    let sim = &world.sim;
    while sim.generation().is_none() {
        sleep(1_000).await;
    }
    // Copies and zombies that are still on their way.
    sleep(300_000).await;
    for _ in 0..CALM_TURNS {
        world.settle_all().await;
        let left = sim.history().offers.iter().filter(|o| o.begun && !o.evicted && !o.is_settled()).count();
        if left == 0 {
            break;
        }
    }
    let lifetime = Lifetime { idle_ms: 1_000, second_look_ms: 1_000, blocks_max: 8 };
    for _ in 0..40 {
        sleep(5_000).await;
        if let Err(error) = sim.durable.collect(lifetime, sim.server_now()).await {
            sim.violation(format_args!("nothing can be collected: {error}"));
        }
    }
    nothing_is_left_over(sim).await;
}

/// Nothing is staged any more, and the store contradicts itself nowhere.
async fn nothing_is_left_over(sim: &Arc<Sim>) {
    let pushes: Vec<_> = sim.history().offers.iter().map(|offer| (offer.project.clone(), offer.push)).collect();
    for (project, push) in pushes {
        let staged = sim.durable.staging(&project, push, sim.server_now()).await.ok().flatten();
        if let Some(staged) = staged {
            sim.violation(format_args!("LIVENESS: {push} is staged for ever: {staged:?}"));
        }
    }
    for damage in sim.durable.check().await.unwrap_or_default() {
        sim.violation(format_args!("the store contradicts itself: {damage:?}"));
    }
    if sim.trace().steps() > STEPS_MAX {
        sim.violation(format_args!("LIVENESS: more happens than a world of this size may need"));
    }
}

/// Of legs that share a key at one attempt at most one is recorded, and, where none of them is gone, one is.
fn legs_are_told_apart(world: &World) {
    let mut found = Vec::new();
    {
        let history = world.sim.history();
        for legs in &world.scenario.legs {
            let offers: Vec<&Offer> = legs.iter().map(|at| &history.offers[*at]).collect();
            if offers.iter().any(|offer| history.dropped.contains(&offer.push)) {
                continue;
            }
            let recorded =
                offers.iter().filter(|o| matches!(o.last(), Some(crate::history::Heard::Recorded { .. }))).count();
            let all_live = offers.iter().all(|offer| offer.begun && !offer.evicted);
            if recorded > 1 || (all_live && recorded == 0) {
                found.push(format!("{recorded} of {} legs under one key are recorded: {legs:?}", legs.len()));
            }
        }
    }
    for words in found {
        world.sim.violation(format_args!("{words}"));
    }
}

fn outcome(sim: &Arc<Sim>, came: &[(usize, Came)]) -> Outcome {
    sim.shut_down();
    let mut history = sim.history();
    let facts = |(at, offer): (usize, &Offer)| PushFacts {
        chunks: offer.chunks,
        racing: offer.racing,
        executed_again: offer.executed_again,
        faults: offer.faults,
        came: came.iter().find(|(of, _)| *of == at).map(|(_, came)| *came),
    };
    let pushes = history.offers.iter().enumerate().filter(|(_, offer)| offer.begun).map(facts).collect();
    let (hash, trace) = {
        let mut trace = sim.trace();
        (trace.hash(), trace.take())
    };
    Outcome {
        violations: std::mem::take(&mut history.violations),
        hash,
        trace,
        pushes,
        requests: history.requests,
        looks: history.looks,
        left: history.left,
    }
}
