//! The 330 single faults of the facts (5.2a): five requests, nine points, three victims, six faults of messages, two ways
//! to go on; each as a case, or as the other cell that it is by construction.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::case::{Again, Case, Fault, MESSAGES};
use super::points::{Hit, Passed};
use crate::bench::Flow;

pub(crate) const VICTIMS: [&str; 3] = ["server", "database", "runner"];
/// Of our four puts the facts' canonical push has three.
const REQUESTS: [&str; 5] = ["begin", "put 1", "put 2", "put 3", "commit"];

/// A cell and what it is.
pub(crate) struct Cell {
    pub(crate) name: String,
    pub(crate) row: String,
    pub(crate) case: Case,
    /// Why another cell has the same case.
    pub(crate) same: Option<&'static str>,
}

/// Where the server is at point `k` of the request, by what an undisturbed push passed.
fn server_hit(passed: &Passed, request: usize, k: u32) -> Hit {
    let (word, nth) = match request {
        0 => ("begin", 1),
        4 => ("commit", 1),
        put => ("put", put as u32),
    };
    // Whatever was written before the push began, then one transaction a request; the fourth put is not the facts'.
    let transaction = |point: &str| {
        let before = passed.before(point, "server:begin:k0");
        Hit::new(point, before + 1 + if request == 4 { 5 } else { request as u32 })
    };
    match k {
        0 => Hit::new(&format!("server:{word}:k0"), nth),
        1 if request == 4 => Hit::new("server:commit:k0", 1),
        1 => Hit::new(&format!("server:{word}:k1"), nth),
        2 => Hit::new(&format!("server:{word}:k2"), nth),
        3 => Hit::new(passed.first(&format!("store:{word}:")), nth),
        4 => transaction("store:txn:commit-before"),
        5 => transaction("store:txn:in-commit"),
        6 => transaction("store:txn:commit-after"),
        _ => Hit::new(&format!("server:{word}:k7"), nth),
    }
}

fn cell(passed: &Passed, request: usize, k: u32, victim: &str) -> (Fault, Option<&'static str>) {
    // The answer is sent, and the client dies before it has read it.
    let read = if request == 4 { 6 } else { request as u32 + 1 };
    if k == 8 {
        let same = (victim != "server").then_some("k8 kills the client, whoever else is well");
        return (Fault::Client(Hit::new("client:answer:read", read)), same);
    }
    let hit = server_hit(passed, request, k);
    let no_body = (k == 1 && request == 4).then_some("a commit has no body: k1 is k0");
    match victim {
        "server" => (Fault::Server(hit), no_body),
        "runner" => (Fault::Runner(hit), no_body),
        _ => match k {
            3 => (Fault::Database(hit), None),
            4 => {
                let release = Hit { point: "store:txn:release".to_owned(), ..hit };
                (Fault::Database(release), None)
            }
            5 => (Fault::Database(hit), None),
            _ => {
                (Fault::Server(hit), Some("SQLite is in the server's process, and at this point in none of its calls"))
            }
        },
    }
}

/// All 330, in order. `passed` by the server in an undisturbed staged push.
pub(crate) fn all(passed: &Passed) -> Vec<Cell> {
    let mut cells = Vec::new();
    for again in [Again::SameSpool, Again::Reexecuted] {
        for (request, name) in REQUESTS.iter().enumerate() {
            for k in 0..9 {
                for victim in VICTIMS {
                    let (fault, same) = cell(passed, request, k, victim);
                    let case = Case { flow: Flow::Staged, fault, again };
                    let row = format!("k{k} {victim}");
                    cells.push(Cell { name: format!("{name}, k{k}, {victim}, {again:?}"), row, case, same });
                }
            }
            // The sixth write is the commit.
            let nth = if request == 4 { 6 } else { request as u32 + 1 };
            for (message, _) in &MESSAGES[..6] {
                let case = Case { flow: Flow::Staged, fault: Fault::Message(nth, message), again };
                cells.push(Cell {
                    name: format!("{name}, {message}, {again:?}"),
                    row: (*message).to_owned(),
                    case,
                    same: None,
                });
            }
        }
    }
    cells
}

/// The mapping as a table: cells, and cases of their own.
pub(crate) fn table(cells: &[Cell]) -> String {
    let mut text =
        format!("{:<28} {:>5} {:>9}  the same case as another cell because\n", "fault", "cells", "own cases");
    let mut rows: Vec<&str> = Vec::new();
    for cell in cells {
        if !rows.contains(&cell.row.as_str()) {
            rows.push(&cell.row);
        }
    }
    for row in rows {
        let of: Vec<&Cell> = cells.iter().filter(|cell| cell.row == row).collect();
        let own = of.iter().filter(|cell| cell.same.is_none()).count();
        let why: BTreeSet<&str> = of.iter().filter_map(|cell| cell.same).collect();
        let why: Vec<&str> = why.into_iter().collect();
        writeln!(text, "{row:<28} {:>5} {own:>9}  {}", of.len(), why.join("; ")).unwrap();
    }
    let own = cells.iter().filter(|cell| cell.same.is_none()).count();
    write!(text, "{:<28} {:>5} {own:>9}", "all", cells.len()).unwrap();
    text
}
