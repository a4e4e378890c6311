//! The products' own clients beside ours: what theirs left under the same faults, as it was measured (`docs/targets/peers.md`
//! says how), and the rows of the matrix that answer them. Must not run anything.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::matrix::Mode;
use crate::products::ALL;
use crate::verdict::Tally;

/// What a client left under one fault, in the end.
struct Peer {
    what: &'static str,
    ours: &'static [Mode],
    runs: u32,
    exit: &'static str,
    /// Percent of the outcomes.
    twice: f64,
    lost: f64,
    exact: u32,
}

/// A client, the product, how it was tested, and what it left.
type Client = (&'static str, &'static str, &'static str, &'static [Peer]);

const fn peer(
    what: &'static str,
    ours: &'static [Mode],
    runs: u32,
    exit: &'static str,
    twice: f64,
    exact: u32,
) -> Peer {
    Peer { what, ours, runs, exit, twice, lost: 0.0, exact }
}

const REQUEST: &str = "request dropped";
const ANSWER: &str = "answer dropped after the write";
const GATEWAY: &str = "504 after the write";
const STALL: &str = "stall";
const KILLED: &str = "killed half-way, then again";
const AGAIN: &str = "no fault, then the same again";
const KILLS: &[Mode] = &[Mode::KilledKept, Mode::KilledLost];

const CLIENTS: [Client; 3] = [
    (
        "trcli",
        "TestRail",
        "stub",
        &[
            peer(REQUEST, &[Mode::RequestDropped], 20, "0", 0.0, 20),
            peer(ANSWER, &[Mode::AnswerDropped], 20, "0", 2.5, 0),
            peer(GATEWAY, &[Mode::GatewayAfterWrite], 20, "0", 2.5, 0),
            peer(STALL, &[Mode::Stall], 20, "0", 2.5, 0),
            peer(KILLED, KILLS, 20, "killed", 93.38, 0),
            peer(AGAIN, &[Mode::Nothing], 20, "0", 100.0, 0),
        ],
    ),
    (
        "testmo-cli",
        "Testmo",
        "stub",
        &[
            peer(REQUEST, &[Mode::RequestDropped], 20, "1", 38.75, 0),
            peer(ANSWER, &[Mode::AnswerDropped], 20, "1", 50.0, 0),
            peer(GATEWAY, &[Mode::GatewayAfterWrite], 20, "1", 67.5, 0),
            peer(STALL, &[Mode::Stall], 10, "1", 55.0, 0),
            peer(KILLED, KILLS, 20, "killed", 50.0, 0),
            peer(AGAIN, &[Mode::Nothing], 20, "0", 100.0, 0),
        ],
    ),
    (
        "kiwitcms-junit.xml-plugin",
        "Kiwi TCMS",
        "live",
        &[
            peer(REQUEST, &[Mode::RequestDropped], 20, "0", 0.0, 20),
            peer(ANSWER, &[Mode::AnswerDropped], 20, "0", 0.0, 20),
            peer(GATEWAY, &[Mode::GatewayAfterWrite], 20, "1", 33.35, 0),
            peer(KILLED, KILLS, 20, "killed", 50.0, 0),
            peer(AGAIN, &[Mode::Nothing], 20, "0", 100.0, 0),
        ],
    ),
];

/// The table, in Markdown.
pub(crate) fn table(tallies: &BTreeMap<(usize, usize, Mode), Tally>) -> String {
    let mut text = String::from(
        "| product | what went wrong | its client | exit | twice | lost | exact | Tallyonce: recorded | twice | lost |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (client, product, tested, peers) in CLIENTS {
        let place = ALL.iter().position(|one| one.name == product && one.tested.starts_with(tested));
        let place = place.expect("a product of the matrix");
        for Peer { what, ours, runs, exit, twice, lost, exact } in peers {
            let mut tally = Tally::default();
            for mode in *ours {
                tally.add_counts(tallies.get(&(place, 0, *mode)).expect("a row of the matrix"));
            }
            let _ = writeln!(
                text,
                "| {product} | {what} | {client} | {exit} | {twice} % | {lost} % | {exact} of {runs} | {tally} |",
            );
        }
    }
    text
}
