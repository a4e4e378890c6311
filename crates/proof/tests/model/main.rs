//! The push under an exhaustive model checker (`facts/idempotency.md`, 3.6): the production decisions of
//! [`domain::staging`], [`domain::protocol`] and [`domain::verdict`], called by a modelled engine under every order, loss
//! and copy of messages. Larger bounds with `TALLYONCE_MODEL=full`. Must not know any store.

#![allow(
    clippy::disallowed_methods,
    reason = "how long a search takes is printed; how large it is, is asked for outside"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

mod actions;
mod config;
mod content;
mod decisions;
mod faults;
mod liveness;
mod mutants;
mod notes;
mod people;
mod properties;
mod rows;
mod server;
mod staged;
mod state;

use std::collections::{BTreeSet, HashSet};

use stateright::{Checker, Model, StateRecorder};

use actions::Push;
use config::{Config, FULL, SMALL};
use decisions::PRODUCTION;
use rows::{Event, NOT_APPLICABLE, ROWS};
use state::State;

/// What a walk over all states came to.
struct Exhausted {
    states: usize,
    transitions: usize,
    events: BTreeSet<Event>,
}

/// Walks all states, and panics with a trace if a safety property fails.
fn exhaust(config: &Config) -> Exhausted {
    let began = std::time::Instant::now();
    // Threads share nothing but the states that were met.
    let threads = if whole().is_some() { std::thread::available_parallelism().map_or(1, usize::from) } else { 1 };
    let checker = Push::new(config.clone(), PRODUCTION).checker().threads(threads).spawn_bfs().join();
    println!(
        "model {} | {} states | {} transitions | depth {} | {:.1} s | {} events",
        config.name,
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        began.elapsed().as_secs_f64(),
        checker.model().events().len(),
    );
    if let Some((property, path)) = checker.discoveries().into_iter().next() {
        let told = path.to_string();
        panic!("{}: {property} fails: {told}ending in {:#?}", config.name, path.last_state());
    }
    let (states, transitions) = (checker.unique_state_count(), checker.state_count());
    Exhausted { states, transitions, events: checker.model().events() }
}

/// Whether the larger bounds are asked for: `full`, or `full:WORD` for those with the word in their name.
fn whole() -> Option<String> {
    let bounds = std::env::var("TALLYONCE_MODEL").ok()?;
    bounds.strip_prefix("full").map(|word| word.trim_start_matches(':').to_owned())
}

#[test]
fn every_state_is_safe_and_every_row_is_reached() {
    let reached = rows::reached();
    let mut missed = Vec::new();
    for row in ROWS {
        let missing = rows::missing(row, reached);
        let word = if row.starts_with(|c: char| c.is_ascii_uppercase()) { "row" } else { "also" };
        println!(
            "{word} {row} | {}",
            if missing.is_empty() { "reached".to_owned() } else { format!("missed: {missing:?}") }
        );
        missed.extend(missing);
    }
    for (row, reason) in NOT_APPLICABLE {
        println!("row {row} | not applicable: {reason}");
    }
    assert!(missed.is_empty(), "never reached: {missed:?}");
}

/// The larger bounds, walked only when asked for.
#[test]
fn every_state_of_the_whole_is_safe() {
    let Some(word) = whole() else { return };
    let (mut states, mut transitions) = (0, 0);
    for config in FULL.iter().filter(|config| config.name.contains(&word)) {
        let walked = exhaust(config);
        (states, transitions) = (states + walked.states, transitions + walked.transitions);
    }
    println!("model whole | {states} states | {transitions} transitions");
}

/// All states of a run, without what is on its way.
fn server_states(config: Config) -> HashSet<State> {
    let (recorder, states) = StateRecorder::new_with_accessor();
    Push::new(config, PRODUCTION).checker().visitor(recorder).spawn_bfs().join();
    states().into_iter().map(|state| State { net: BTreeSet::new(), zombie: None, ..state }).collect()
}

#[test]
fn sending_as_a_step_of_its_own_reaches_the_same() {
    let folded = Config { chunks: 1, ordinals: &[0], ..SMALL };
    let sending = server_states(Config { sends: true, ..folded.clone() });
    assert_eq!(sending, server_states(folded));
    println!("{} states of the server either way", sending.len());
    assert!(sending.len() > 50, "only {} states", sending.len());
}

#[test]
fn a_zombie_as_a_step_of_its_own_reaches_the_same() {
    let folded = Config { chunks: 1, ordinals: &[0, 1], ..SMALL };
    let zombies = server_states(Config { zombies: true, ..folded.clone() });
    assert_eq!(zombies, server_states(folded));
    println!("{} states of the server either way", zombies.len());
    assert!(zombies.len() > 50, "only {} states", zombies.len());
}
