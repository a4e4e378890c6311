//! Rows C and k: commits, and where processes die.

use proof::oracle::Fate;
use proof::proxy::Fault;

use super::{Rows, done};

#[test]
fn c3_the_answer_to_a_commit_is_lost() {
    let rows = Rows::nth(6, Fault::ResponseDropped);
    done(&rows.push(1, 1, &[])).expect(0, "replayed");
    assert_eq!((rows.count("commit 201"), rows.count("put")), (1, 4), "{:?}", rows.writes());
    assert_eq!(rows.oracle().receipts("shop", &rows.key()).unwrap().len(), 1);
    rows.counts(1);
}

#[test]
fn c4_a_commit_comes_twice_at_once() {
    let rows = Rows::nth(6, Fault::DuplicateDelivery { concurrent: true });
    let pushed = done(&rows.push(1, 1, &[]));
    assert!(pushed.code == 0 && ["recorded", "replayed"].contains(&pushed.state()), "{:#}", pushed.json);
    assert_eq!(rows.count("commit 201"), 2, "{:?}", rows.writes());
    assert_eq!(rows.fates(), [Fate::Committed(1)]);
    rows.counts(1);
}

#[test]
fn c5_c6_a_delayed_commit_of_a_dead_epoch_never_succeeds() {
    let rows = Rows::nth(6, Fault::DeliveredLate);
    done(&rows.push(1, 1, &["--deadline", "0s"])).expect(75, "possibly_written");
    done(&rows.push(2, 2, &[])).expect(0, "recorded");
    assert_eq!((rows.count("commit 409"), rows.count("commit 201")), (1, 1), "{:?}", rows.writes());
    assert_eq!(rows.fates(), [Fate::Superseded, Fate::Committed(1)]);
    rows.counts(2);
}

/// The server is killed there while it commits; what is visible then, and how the flush ends.
fn killed_at(point: &str, visible: bool) {
    let mut rows = Rows::new();
    rows.server.restart_with(&[("TALLYONCE_KILL_AT".to_owned(), point.to_owned())]).unwrap();
    done(&rows.push(1, 1, &["--deadline", "0s"])).expect(75, "possibly_written");
    assert!(rows.server.wait_exit(super::PATIENCE).unwrap().was_killed(), "{point}");
    if visible {
        rows.counts(1);
    } else {
        rows.nothing_counts();
    }
    rows.server.restart_with(&[("TALLYONCE_KILL_AT".to_owned(), String::new())]).unwrap();
    rows.flush(1).expect(0, if visible { "replayed" } else { "recorded" });
    assert_eq!((rows.count("put"), rows.fates()), (4, vec![Fate::Committed(1)]), "{point}");
    rows.counts(1);
}

#[test]
fn c8_k3_killed_before_the_database_commits() {
    killed_at("store:commit:insert-revision", false);
    killed_at("store:commit:link-stage", false);
}

#[test]
fn c8_k6_k7_killed_after_the_database_committed() {
    killed_at("server:commit:stored", true);
    killed_at("server:commit:k7", true);
}

#[test]
fn k0_k2_killed_before_the_commit_begins() {
    killed_at("server:commit:k0", false);
    killed_at("server:commit:k2", false);
}

#[test]
fn c10_k8_the_client_dies_before_it_reads_and_the_tests_run_again() {
    let rows = Rows::new();
    rows.killed(1, 1, "client:commit:read");
    rows.counts(1);
    let again = done(&rows.push(2, 2, &[])).expect(0, "revised");
    assert_eq!(again.json["difference"]["class"], "semantic", "{:#}", again.json);
    rows.counts(2);
    rows.flush(1).expect(0, "replayed");
    rows.counts(2);
}

#[test]
fn k9_killed_with_the_answer_read_and_the_entry_still_there() {
    let rows = Rows::new();
    rows.killed(1, 1, "client:commit:done");
    rows.counts(1);
    rows.flush(1).expect(0, "replayed");
    rows.counts(1);
}

#[test]
fn k10_killed_while_the_entry_is_written() {
    for point in ["client:entry:written", "client:entry:synced"] {
        let rows = Rows::new();
        rows.killed(1, 1, point);
        assert_eq!(rows.writes(), Vec::<String>::new(), "nothing leaves before the entry is durable");
        done(&rows.push(1, 1, &[])).expect(0, "recorded");
        rows.counts(1);
    }
}
