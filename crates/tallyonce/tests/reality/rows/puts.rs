//! Rows P: puts.

use proof::oracle::Fate;
use proof::proxy::Fault;

use super::{Rows, done};

#[test]
fn p2_x4_a_put_comes_twice_at_once() {
    let rows = Rows::nth(3, Fault::DuplicateDelivery { concurrent: true });
    done(&rows.push(1, 1, &[])).expect(0, "recorded");
    assert_eq!((rows.count("put 201"), rows.count("put")), (5, 5), "{:?}", rows.writes());
    assert_eq!(rows.oracle().staged_chunks("shop", &rows.key()).unwrap(), 4);
    rows.counts(1);
}

#[test]
fn p4_a_put_that_is_cut_leaves_nothing() {
    let rows = Rows::nth(3, Fault::CutMidRequest);
    let first = done(&rows.push(1, 1, &["--deadline", "0s"])).expect(75, "not_sent");
    assert_eq!(first.json["delivery"]["chunks"], 4);
    assert!(rows.oracle().staged_chunks("shop", &rows.key()).unwrap() < 4);
    rows.nothing_counts();
    rows.flush(1).expect(0, "recorded");
    rows.counts(1);
}

#[test]
fn p6_p7_a_delayed_put_of_a_dead_epoch_changes_nothing() {
    // The last put, since a late request comes behind the next one that is answered: here the other attempt's begin.
    let rows = Rows::nth(5, Fault::DeliveredLate);
    done(&rows.push(1, 1, &["--deadline", "0s"])).expect(75, "not_sent");
    done(&rows.push(2, 2, &[])).expect(0, "recorded");
    assert_eq!(rows.count("put 409"), 1, "{:?}", rows.writes());
    assert_eq!(rows.fates(), [Fate::Superseded, Fate::Committed(1)]);
    rows.counts(2);
}

#[test]
fn p13_the_server_is_killed_before_and_after_a_put_commits() {
    for (point, there) in [("store:put:insert-chunk@2", 1), ("server:put:stored@2", 2)] {
        let mut rows = Rows::new();
        rows.server.restart_with(&[("TALLYONCE_KILL_AT".to_owned(), point.to_owned())]).unwrap();
        let first = done(&rows.push(1, 1, &["--deadline", "0s"]));
        assert_eq!(first.code, 75, "{:#}", first.json);
        assert!(rows.server.wait_exit(super::PATIENCE).unwrap().was_killed());
        // Before its commit it is not there; puts that came with it may be.
        let chunks = rows.oracle().staged_chunks("shop", &rows.key()).unwrap();
        assert!(if there == 2 { chunks >= 2 } else { chunks < 4 }, "{point}: {chunks}");
        rows.nothing_counts();
        rows.server.restart_with(&[("TALLYONCE_KILL_AT".to_owned(), String::new())]).unwrap();
        let sent = rows.count("put");
        rows.flush(1).expect(0, "recorded");
        assert_eq!(rows.count("put") - sent, 4 - chunks as usize);
        rows.counts(1);
    }
}

#[test]
fn p14_a_runner_that_never_returns_leaves_nothing_to_see() {
    let rows = Rows::new();
    rows.killed(1, 1, "client:commit:send");
    assert_eq!(rows.oracle().staged_chunks("shop", &rows.key()).unwrap(), 4);
    assert_eq!(rows.fates(), [Fate::Open]);
    rows.nothing_counts();
    rows.world.check_store();
}
