//! The staged push under an exhaustive model checker (`facts/idempotency.md`, 3.6): the production decisions of
//! [`domain::staging`] and [`domain::protocol`], called by a modelled engine under every order, loss and copy of messages.
//! Larger bounds with `TALLYONCE_MODEL=full`. Must not know any store.

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
mod content;
mod mutants;
mod properties;
mod rows;
mod server;
mod state;

use std::collections::{BTreeSet, HashSet};

use stateright::{Checker, Model, StateRecorder};

use actions::{Config, Push};
use server::PRODUCTION;
use state::State;

/// Two runners, each of two contents, at every pair of ordinals; each begins once, and may cancel or be refused.
const SMALL: Config = Config {
    name: "small",
    chunks: 2,
    manifests: 2,
    ordinals: &[0, 1, 2],
    epochs: 2,
    fail: true,
    restarts: false,
    cancels: true,
    refusals: true,
    gc: true,
    sends: false,
};

const THREE_CHUNKS: Config = Config { name: "three chunks", chunks: 3, ..SMALL };

/// Other outcomes after a commit are staged as a further revision.
const OVERLAYS: Config = Config { name: "overlays", fail: false, ..SMALL };

/// Each runner may be executed again once: other content, higher or unknown ordinal.
const AGAIN: Config =
    Config { name: "again", chunks: 1, epochs: 3, restarts: true, cancels: false, refusals: false, gc: false, ..SMALL };

const AGAIN_TWO_CHUNKS: Config = Config { name: "again, two chunks", chunks: 2, ordinals: &[0, 1], ..AGAIN };

const AGAIN_GC: Config = Config { name: "again, gc", ordinals: &[0], gc: true, ..AGAIN };

const AGAIN_OVERLAYS: Config = Config { name: "again, overlays", fail: false, ..AGAIN };

const DEFAULT: &[Config] = &[SMALL, THREE_CHUNKS, OVERLAYS, AGAIN, AGAIN_TWO_CHUNKS, AGAIN_GC, AGAIN_OVERLAYS];

const FULL: &[Config] = &[
    Config { name: "full: three chunks, overlays", fail: false, ..THREE_CHUNKS },
    Config { name: "full: again, two chunks, all ordinals", ordinals: &[0, 1, 2], ..AGAIN_TWO_CHUNKS },
    Config { name: "full: again, three chunks", chunks: 3, ..AGAIN_TWO_CHUNKS },
    Config { name: "full: again, gc, cancels and refusals", cancels: true, refusals: true, ..AGAIN_GC },
    Config { name: "full: again, four epochs", epochs: 4, ..AGAIN },
    Config { name: "full: again, everything, two epochs", restarts: true, chunks: 1, ..SMALL },
];

/// Walks all states; returns the rows that were reached, and panics with a trace if a safety property fails.
fn exhaust(config: &Config) -> BTreeSet<&'static str> {
    let began = std::time::Instant::now();
    let checker = Push::new(config.clone(), PRODUCTION).checker().spawn_bfs().join();
    println!(
        "{}: {} states, {} transitions, depth {}, {:.1} s, {} rows",
        config.name,
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        began.elapsed().as_secs_f64(),
        checker.model().rows().len(),
    );
    for (property, path) in checker.discoveries() {
        assert!(!property.starts_with('S'), "{}: {property} fails: {path}", config.name);
    }
    checker.model().rows()
}

#[test]
fn every_state_is_safe_and_every_row_is_reached() {
    let full = std::env::var("TALLYONCE_MODEL").is_ok_and(|bounds| bounds == "full");
    let configs = DEFAULT.iter().chain(if full { FULL } else { &[] });
    let reached: BTreeSet<_> = configs.flat_map(exhaust).collect();
    let missed: Vec<_> = rows::ALL.iter().map(|(_, name)| *name).filter(|name| !reached.contains(name)).collect();
    println!("{} of {} rows reached", reached.len(), rows::ALL.len());
    assert!(missed.is_empty(), "never reached: {missed:?}");
}

/// All states of a run, without what is on its way.
fn server_states(config: Config) -> HashSet<State> {
    let (recorder, states) = StateRecorder::new_with_accessor();
    Push::new(config, PRODUCTION).checker().visitor(recorder).spawn_bfs().join();
    states().into_iter().map(|state| State { net: BTreeSet::new(), ..state }).collect()
}

#[test]
fn sending_as_a_step_of_its_own_reaches_the_same() {
    let folded = Config { chunks: 1, ordinals: &[0], ..SMALL };
    let sending = server_states(Config { sends: true, ..folded.clone() });
    assert_eq!(sending, server_states(folded));
    println!("{} states of the server either way", sending.len());
    assert!(sending.len() > 50, "only {} states", sending.len());
}
