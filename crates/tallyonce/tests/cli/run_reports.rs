//! Which reports `run` takes: those that the command wrote, in the usual places or in named ones.

use std::time::Duration;

use crate::run::{desk, last, run};
use crate::{ALL_PASS, Desk, ONE_FAILS, object};

/// A file that is some minutes old.
fn old_file(desk: &Desk, name: &str, text: &str) {
    desk.file(name, text);
    let file = std::fs::File::options().append(true).open(desk.folder.path().join(name)).unwrap();
    let now = file.metadata().unwrap().modified().unwrap();
    file.set_modified(now - Duration::from_mins(3)).unwrap();
}

#[test]
fn no_report_is_an_error_that_teaches_unless_the_command_has_one() {
    let desk = desk();
    let finished = run(&desk, 3, &["--json"], "true");
    for words in ["wrote no report", "--report", "--allow-empty"] {
        assert!(finished.stderr.contains(words), "{words}: {finished}");
    }
    let value = last(&finished);
    assert_eq!((&value["state"], &value["command"]["silent_failure"]), (&"unreadable".into(), &false.into()));
    let value = last(&run(&desk, 9, &["--json"], "exit 9"));
    assert_eq!((&value["state"], &value["exit"]), (&"unreadable".into(), &3.into()));
    assert_eq!(value["command"]["silent_failure"], true);
    assert!(!desk.exists("tallyonce.db"));
    let value = last(&run(&desk, 0, &["--allow-empty", "--json"], "true"));
    assert_eq!((&value["state"], &value["counts"]["total"]), (&"recorded".into(), &0.into()));
}

#[test]
fn the_usual_places_are_searched_and_content_decides() {
    let desk = desk();
    desk.file("src/suite.txt", &ALL_PASS.replace("classname=\"c\"", "classname=\"d\""));
    desk.file("src/coverage.txt", "<coverage line-rate=\"0.9\"><packages/></coverage>");
    let script = "mkdir -p a/target/surefire-reports b/build/test-results/test node_modules/x reports box vendor
        cp src/pass.txt a/target/surefire-reports/TEST-c.xml
        cp src/suite.txt b/build/test-results/test/TEST-d.xml
        cp src/coverage.txt reports/coverage.xml
        cp src/fail.txt node_modules/x/junit.xml
        cp src/fail.txt vendor/junit.xml
        cp src/fail.txt box/junit.xml
        cp src/fail.txt elsewhere.xml";
    let finished = run(&desk, 0, &["--json", "--outbox", "box"], script);
    let value = last(&finished);
    assert_eq!((&value["report"]["files"], &value["counts"]["total"]), (&2.into(), &4.into()), "{finished}");
    assert_eq!(value["counts"]["failed"], 0);
    for words in [
        "found a/target/surefire-reports/TEST-c.xml (Maven Surefire)",
        "found b/build/test-results/test/TEST-d.xml (Gradle)",
        "reports/coverage.xml is no test report, left out",
    ] {
        assert!(finished.stderr.contains(words), "{words}: {finished}");
    }
}

#[test]
fn many_reports_are_named_up_to_a_limit() {
    let desk = desk();
    let script = "mkdir -p test-results; for i in $(seq 30); do cp src/pass.txt test-results/$i.xml; done";
    let finished = run(&desk, 0, &["--json"], script);
    assert_eq!(
        finished.stderr.matches("\nfound ").count() + usize::from(finished.stderr.starts_with("found ")),
        20,
        "{finished}"
    );
    assert!(finished.stderr.contains("and 10 more files"), "{finished}");
    assert!(!run(&desk, 0, &["--quiet"], script).stderr.contains("found"));
}

#[test]
fn a_report_that_was_there_before_is_left_out_and_named() {
    let desk = desk();
    old_file(&desk, "junit.xml", ONE_FAILS);
    // Nothing else: an old report is none.
    let finished = run(&desk, 3, &[], "true");
    assert!(finished.stderr.contains("junit.xml is older than the run"), "{finished}");
    let finished = run(&desk, 6, &["--json"], "mkdir -p results; cp src/pass.txt results/e2e.xml; exit 6");
    assert!(finished.stderr.contains("junit.xml is older than the run"), "{finished}");
    let value = last(&finished);
    assert_eq!((&value["report"]["files"], &value["counts"]["failed"]), (&1.into(), &0.into()));
    // Written again, though to the same bytes, it counts.
    let value = last(&run(&desk, 0, &["--round", "b", "--json"], "cp src/fail.txt junit.xml"));
    assert_eq!(value["counts"]["failed"], 1);
}

#[test]
fn of_named_reports_one_has_to_be_new() {
    let desk = desk();
    old_file(&desk, "out/a.xml", ONE_FAILS);
    let flags = ["--report", "out/*.xml", "--report", "out", "--json"];
    let finished = run(&desk, 3, &flags, "true");
    assert!(finished.stderr.contains("out/a.xml is older than the run"), "{finished}");
    assert!(finished.stderr.contains("tallyonce push"), "{finished}");
    assert_eq!(object(&finished)["state"], "unreadable");
    assert_eq!(object(&run(&desk, 8, &flags, "exit 8"))["exit"], 3);
    let finished = run(&desk, 0, &flags, "cp src/pass.txt out/b.xml");
    assert!(finished.stderr.contains("note: out/a.xml is older than the run"), "{finished}");
    let value = last(&finished);
    assert_eq!((&value["report"]["files"], &value["counts"]["failed"]), (&1.into(), &0.into()));
    // An empty push that is wanted says what it leaves out.
    let finished = run(&desk, 0, &["--report", "out", "--round", "b", "--allow-empty", "--json"], "rm out/b.xml");
    assert!(finished.stderr.contains("warning: out/a.xml is older"), "{finished}");
    assert_eq!(last(&finished)["counts"]["total"], 0);
}

#[test]
fn a_file_that_is_named_itself_has_to_be_new() {
    let desk = desk();
    old_file(&desk, "e2e.xml", ONE_FAILS);
    let flags = ["--report", "unit.xml", "--report", "e2e.xml", "--json"];
    let finished = run(&desk, 3, &flags, "cp src/pass.txt unit.xml");
    assert!(finished.stderr.contains("e2e.xml is older than the run"), "{finished}");
    assert_eq!(object(&finished)["state"], "unreadable");
    // Of a pattern's files those are taken that are new.
    let value = last(&run(&desk, 0, &["--report", "*.xml", "--json"], "cp src/pass.txt unit.xml"));
    assert_eq!((&value["state"], &value["report"]["files"]), (&"recorded".into(), &1.into()));
}

#[test]
fn a_named_report_that_is_missing_or_damaged_is_an_error() {
    let desk = desk();
    let finished = run(&desk, 3, &["--report", "gone.xml"], "cp src/pass.txt junit.xml");
    assert!(finished.stderr.contains("gone.xml"), "{finished}");
    let cut = "head -c 120 src/fail.txt > junit.xml; exit 1";
    let finished = run(&desk, 1, &["--json"], cut);
    assert!(finished.stderr.contains("exit: 1, the command's; the push alone: 3 (unreadable)"), "{finished}");
    let value = last(&finished);
    assert_eq!((&value["exit"], &value["command"]["silent_failure"]), (&3.into(), &false.into()));
    let value = last(&run(&desk, 1, &["--json", "--partial"], cut));
    assert_eq!((&value["state"], &value["report"]["damaged"]), (&"recorded".into(), &1.into()));
}
