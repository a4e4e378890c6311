//! show, close, wait and check-store on a small cycle.

use crate::{Desk, object};

/// Shard 1 of 2 is there.
fn half() -> Desk {
    let desk = Desk::with_report();
    desk.run(0, &["push", "r.xml", "--run", "1", "--project", "p", "--job", "e2e", "--shard", "1/2"]);
    desk
}

#[test]
fn what_is_not_there_is_said() {
    let desk = Desk::with_report();
    let finished = desk.run(4, &["show", "--project", "p"]);
    assert!(finished.stderr.contains("no store") && !desk.exists("tallyonce.db"), "{finished}");
    let desk = half();
    desk.run(4, &["show", "--project", "q"]);
    desk.run(4, &["show", "--project", "p", "--cycle", "main"]);
    desk.run(4, &["show", "--project", "p", "--round", "99"]);
    desk.run(4, &["show", "--project", "p", "--revisions", "run:99"]);
    desk.run(4, &["promote", "run:99", "--project", "p"]);
    desk.run(4, &["close", "--round", "99", "--project", "p"]);
}

#[test]
fn a_round_is_complete_by_shards_or_by_decision() {
    let desk = half();
    let wait = ["wait", "--round", "1", "--project", "p", "--deadline", "50ms"];
    let finished = desk.run(75, &wait);
    assert!(finished.stderr.contains("shard 2 of 2"), "{finished}");
    let closed = desk.run(0, &["close", "--round", "1", "--project", "p"]);
    assert!(closed.stdout.contains("closed: run:1"), "{closed}");
    assert!(desk.run(0, &wait).stdout.contains("complete: run:1"));
    let late =
        desk.json(0, &["push", "r.xml", "--run", "1", "--project", "p", "--job", "e2e", "--shard", "2/2", "--json"]);
    assert!(late["warnings"].to_string().contains("late"), "{late}");
}

#[test]
fn waiting_begins_before_anything_is_there() {
    let desk = Desk::with_report();
    desk.run(75, &["wait", "--round", "1", "--project", "p", "--deadline", "10ms"]);
}

#[test]
fn each_format_shows_the_same_numbers() {
    let desk = half();
    let show = |more: &[&str]| desk.run(0, &[&["show", "--project", "p"], more].concat()).stdout;
    assert!(show(&["--items"]).contains("2 items: 1 passed, 1 failed"));
    assert!(show(&["--format", "csv"]).contains(",2,1,1,0,0,0,"));
    assert_eq!(show(&["--format", "csv", "--items"]).lines().count(), 3);
    assert!(show(&["--format", "junit"]).contains("tests=\"2\" failures=\"1\""));
    assert!(show(&["--format", "md", "--status", "failed"]).contains("| ❌ failed |"));
    let failed = desk.json(0, &["show", "--project", "p", "--format", "json", "--items", "--status", "failed"]);
    assert_eq!(failed["items"].as_array().unwrap().len(), 1);
    let plain = desk.json(0, &["show", "--project", "p", "--format", "json"]);
    assert!(plain.get("items").is_none());
}

#[test]
fn show_reads_where_pushes_go() {
    let desk = Desk::with_report();
    let env = crate::pairs(&[("TALLYONCE_TO", "sqlite:else.db")]);
    desk.run_in(0, &["push", "r.xml", "--run", "1", "--project", "p"], &env);
    let shown = desk.run_in(0, &["show", "--project", "p"], &env);
    assert!(shown.stdout.contains("run:1"), "{shown}");
    desk.run_in(4, &["show", "--project", "p", "--from", "sqlite:gone.db"], &env);
    desk.run(4, &["show", "--project", "p"]);
}

#[test]
fn a_clean_store_is_clean() {
    let desk = half();
    assert!(desk.run(0, &["check-store"]).stdout.contains("clean"));
    let value = object(&desk.run(0, &["check-store", "--json"]));
    assert_eq!((&value["clean"], value["damage"].as_array().unwrap().len()), (&true.into(), 0));
    desk.run(4, &["check-store", "--store", "sqlite:gone.db"]);
    desk.run(2, &["check-store", "--store", "gone.db"]);
    desk.file("text.db", "this is no database, and it is longer than a header of one would be");
    assert_ne!(desk.command(&["check-store", "--store", "sqlite:text.db"]).output().unwrap().code, Some(0));
}

#[test]
fn repair_makes_counts_anew_and_nothing_else() {
    let desk = half();
    let sql = |sql: &str| {
        rusqlite::Connection::open(desk.folder.path().join("tallyonce.db")).unwrap().execute_batch(sql).unwrap();
    };
    sql("UPDATE push SET counts = zeroblob(48)");
    let before = object(&desk.run(1, &["check-store", "--json"]));
    assert_eq!(before["clean"], false);
    let mended = object(&desk.run(0, &["check-store", "--repair", "--json"]));
    assert_eq!((&mended["clean"], mended["repaired"].as_array().unwrap().is_empty()), (&true.into(), false));
    assert!(desk.run(0, &["check-store", "--repair"]).stdout.contains("clean"), "a second time nothing is left to do");
    sql("UPDATE revision SET receipt = 'torn'");
    let torn = desk.run(1, &["check-store", "--repair"]);
    assert!(!torn.stdout.contains("made anew"), "a receipt is no derived data: {torn}");
}
