//! How much a commit touches: as much for many outcomes as for few.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at the first surprise")]

use std::sync::Arc;

use domain::{Outcome, Outcomes};
use rusqlite::Connection;

use super::super::content::Snap;
use super::super::{connect, migrations};
use super::{PutChunk, PutStep, begin, commit, prepare, put};
use crate::conformance::build::{Cut, item, now, outcomes, push};
use crate::{Begun, Chunk, Committed};

fn open(folder: &std::path::Path, name: &str) -> Connection {
    let connection = connect::writer(&folder.join(name)).unwrap();
    migrations::migrate(&connection).unwrap();
    connection
}

fn stage(connection: &Connection, cut: &Cut) -> u64 {
    let Begun::Staging(staging) = begin(connection, &cut.manifest, &now()).unwrap() else { panic!("not staging") };
    for chunk in &cut.chunks {
        let chunk = Arc::new(Chunk { of: cut.epoch(staging.epoch.0), ..chunk.clone() });
        let PutStep::Run(prepared) = prepare(&Snap::over(connection), &chunk, 0).unwrap() else { panic!("done") };
        let of = PutChunk { chunk, now: now(), prepared };
        assert!(matches!(put(connection, &of).unwrap(), PutStep::Done(crate::Put::Stored { replayed: false })));
    }
    staging.epoch.0
}

/// Rows that a commit changes.
fn rows_of_commit(connection: &Connection, cut: &Cut, epoch: u64) -> u64 {
    let before = connection.total_changes();
    let committed = commit(connection, &cut.epoch(epoch), &now(), &[]).unwrap();
    assert!(matches!(committed, Committed::Accepted(_)), "{committed:?}");
    connection.total_changes() - before
}

/// Outcomes with this mark.
fn content(n: usize, mark: &str) -> Outcomes {
    let like: Outcome = outcomes(&format!("x{mark}")).as_slice()[0].clone();
    let list = (0..n).map(|n| Outcome { item: item(&format!("n{n}")), ..like.clone() }).collect();
    Outcomes::from_unordered(list).unwrap()
}

#[test]
fn a_commit_touches_as_many_rows_for_many_outcomes_as_for_few() {
    let folder = tempfile::tempdir().unwrap();
    let touched: Vec<[u64; 2]> = [1_000, 40_000]
        .into_iter()
        .map(|n| {
            let connection = open(folder.path(), &format!("{n}.db"));
            // A first content, and one laid over it.
            [("-", 1), ("+", 2)].map(|(mark, attempt)| {
                let cut = push("").holds(content(n, mark)).attempt(attempt).executor("one").cut(4);
                let epoch = stage(&connection, &cut);
                rows_of_commit(&connection, &cut, epoch)
            })
        })
        .collect();
    assert_eq!(touched[0], touched[1]);
    // Push, revision, delivery, executor, round, … and, over a recorded push, what sixteen chunks were compared with.
    assert!(touched[0][0] < 16 && touched[0][1] < 32, "{touched:?}");
}

#[test]
fn a_comparison_that_is_old_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let connection = open(folder.path(), "t.db");
    let build = |mark, attempt| push("").holds(content(200, mark)).attempt(attempt).executor("one");
    let late = build("!", 3).cut(2);
    let epoch = stage(&connection, &late);
    // While its chunks were there, a first content and an overlay came by another way.
    for (mark, attempt) in [("-", 1), ("+", 2)] {
        let delivery = super::super::record::Delivery {
            push: Arc::new(build(mark, attempt).0),
            now: now(),
            prepared: Some(Arc::new(super::super::prepare::prepare(&content(200, mark), 0, |_| false))),
            rules: Arc::default(),
        };
        // As a program would that knows no epochs: they stay open beside it.
        connection.execute_batch("UPDATE stage SET fate = 3").unwrap();
        super::super::record::record(&connection, &delivery).unwrap();
        connection.execute_batch("UPDATE stage SET fate = 0").unwrap();
    }
    let Committed::Accepted(answer) = commit(&connection, &late.epoch(epoch), &now(), &[]).unwrap() else {
        panic!("no")
    };
    let difference = crate::conformance::build::receipt(&answer).difference.unwrap();
    assert_eq!((answer.revision, answer.current_counts.errored), (3, 200));
    assert_eq!((difference.changed, difference.added, difference.items.len()), (200, 0, 100));
    let rising = difference.items.is_sorted_by_key(|listed| listed.hash.0);
    assert!(rising && difference.items.iter().all(|listed| listed.item.hash() == listed.hash.0), "{difference:#?}");
}

/// Receipts list the first items, whatever the order in which the chunks came.
#[test]
fn the_first_items_are_listed_in_whatever_order_chunks_come() {
    let folder = tempfile::tempdir().unwrap();
    let receipts: Vec<Vec<u8>> = [false, true]
        .into_iter()
        .map(|turned| {
            let connection = open(folder.path(), &format!("{turned}.db"));
            let build = |mark, attempt| push("").holds(content(2000, mark)).attempt(attempt).executor("one").cut(4);
            let first = build("-", 1);
            let epoch = stage(&connection, &first);
            commit(&connection, &first.epoch(epoch), &now(), &[]).unwrap();
            let mut second = build("!", 2);
            if turned {
                second.chunks.reverse();
            }
            let epoch = stage(&connection, &second);
            let sql = "SELECT count(*) FROM stage_chunk WHERE listed <> '[]'";
            let listing: u32 = connection.query_row(sql, [], |row| row.get(0)).unwrap();
            assert_eq!(listing, if turned { 16 } else { 1 }, "about 125 items differ in each chunk");
            let Committed::Accepted(answer) = commit(&connection, &second.epoch(epoch), &now(), &[]).unwrap() else {
                panic!("not accepted")
            };
            answer.receipt
        })
        .collect();
    assert_eq!(receipts[0], receipts[1]);
}
