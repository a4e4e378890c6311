//! What commands say of what an earlier process left, and of questions that they can't answer: never less than there is.

use std::time::Duration;

use proof::stubs::{Damage, Fault, Plan, Quirks, Select, When};
use serde_json::Value;

use crate::products::{ALL, OUTCOMES};
use crate::site::{CASES, Folder, config, rail, report};

#[test]
fn a_flush_names_what_it_finds_there_twice() {
    let (stub, folder, names) = rail();
    let late = Fault::DeliveredLate(When::Told);
    stub.set_plan(Plan::on(Select::writes().what("add_results_for_cases").nth(1), late));
    let (cut, _) = folder.push(&["--deadline", "600ms"]);
    assert_eq!(cut.code, Some(75), "{cut}");
    // Another machine brings the same, and then the first request is carried out all the same.
    let other = Folder::new(&config(&stub, "testrail", "1", "user = \"bot@example.com\"\n"));
    other.write("report.xml", &report(&names, &[2]));
    assert_eq!(other.push(&[]).0.code, Some(0));
    stub.release();
    let late = |event: &proof::stubs::Event| !event.faults.is_empty() && event.applied.is_some();
    assert!(stub.wait_for(Duration::from_secs(30), |log| log.iter().any(late)).is_some(), "it never came");
    assert_eq!(stub.ledger().count(), 2 * CASES);
    // Only the ledger knows of the push any more.
    std::fs::remove_dir_all(folder.path(".tallyonce/outbox")).unwrap();
    let flushed = folder.run(&["flush", "--to", "there"]).output().unwrap();
    assert_eq!(flushed.code, Some(7), "{flushed}");
    assert!(flushed.stderr.contains("there: duplicate-detected: one outcome stands there more than once"), "{flushed}");
}

#[test]
fn a_flush_lists_what_the_target_refused_of_an_earlier_push() {
    let (stub, folder, _) = rail();
    stub.set_plan(Plan::on(Select::writes().what("add_results_for_cases"), Fault::RequestDropped));
    let (cut, _) = folder.push(&["--deadline", "600ms"]);
    assert_eq!(cut.code, Some(75), "{cut}");
    std::fs::remove_dir_all(folder.path(".tallyonce/outbox")).unwrap();
    let refused = Fault::Refused { status: 400, retry_after: proof::stubs::RetryAfter::Missing };
    stub.set_plan(Plan::on(Select::writes().what("add_results_for_cases"), refused));
    let flushed = folder.run(&["flush", "--to", "there"]).output().unwrap();
    assert_eq!(flushed.code, Some(6), "{flushed}");
    assert!(flushed.stderr.contains("there refused s > c > C"), "{flushed}");
    assert_eq!(stub.ledger().count(), 0);
}

#[test]
fn a_question_to_something_else_is_not_answered_with_this() {
    let (_stub, folder, _) = rail();
    assert_eq!(folder.push(&[]).0.code, Some(0));
    for (args, words) in [
        (
            &["--to", "sqlite:other.db"][..],
            "--to: \"sqlite:other.db\" is neither a server's address nor a target's name",
        ),
        (&["--to", "rail", "--target", "there"][..], "--to: rail and --target there are two targets"),
    ] {
        let asked = folder.run(&[&["forwards"][..], args].concat()).output().unwrap();
        assert_eq!((asked.code, asked.stdout.as_str()), (Some(2), ""), "{asked}");
        assert!(asked.stderr.contains(words), "{asked}");
    }
    for args in [&["--to", "there"][..], &["--to", "there", "--target", "there"][..]] {
        let asked = folder.run(&[&["forwards", "--json"][..], args].concat()).output().unwrap();
        assert_eq!(asked.code, Some(0), "{asked}");
        let listed: Value = serde_json::from_str(&asked.stdout).unwrap();
        assert_eq!(listed["forwards"].as_array().unwrap().len(), 1, "{asked}");
    }
    // Where pushes of this job go is no question.
    let set = folder.run(&["forwards"]).env("TALLYONCE_TO", "sqlite:other.db").output().unwrap();
    assert!(set.code == Some(0) && set.stdout.contains("acked"), "{set}");
}

#[test]
fn a_cycle_that_no_ledger_knows_is_asked_for_as_the_product_s_own() {
    let (stub, folder, _) = rail();
    assert_eq!(folder.push(&[]).0.code, Some(0));
    let bare = Folder::new(&config(&stub, "testrail", "1", "user = \"bot@example.com\"\n"));
    for command in ["audit", "repair"] {
        let unknown = bare.run(&[command, "there", "--cycle", "main"]).output().unwrap();
        assert_eq!(unknown.code, Some(4), "{unknown}");
        assert!(unknown.stderr.contains("no ledger here knows a cycle \"main\""), "{unknown}");
        assert!(unknown.stderr.contains("the number of a run, such as R7"), "{unknown}");
    }
    // A name that the product knows is as good as its id.
    let known = folder.run(&["audit", "there", "--cycle", "main", "--json"]).output().unwrap();
    let known: Value = serde_json::from_str(&known.stdout).unwrap();
    let name = known["audits"][0]["cycles"][0]["name"].as_str().unwrap();
    let by_name = bare.run(&["audit", "there", "--cycle", name, "--json"]).output().unwrap();
    assert_eq!(by_name.code, Some(0), "{by_name}");
    let by_name: Value = serde_json::from_str(&by_name.stdout).unwrap();
    assert_eq!(by_name["audits"][0]["cycles"][0]["cycle"], known["audits"][0]["cycles"][0]["cycle"]);
}

#[test]
fn a_probe_measures_the_longest_text_that_the_table_allows() {
    let service = ALL.iter().find(|product| product.name == "A service of your own").unwrap();
    let site = service.stub_with(OUTCOMES).unwrap();
    site.door().set_quirks(Quirks { damage: vec![Damage::CutTo(900)], ..Quirks::default() });
    let folder = site.machine("reconcile");
    let probe = ["probe", "there", "--json", "--case", "first", "--case", "second"];
    let probed = folder.run(&probe).output().unwrap();
    assert_eq!(probed.code, Some(1), "{probed}");
    let object: Value = serde_json::from_str(&probed.stdout).unwrap();
    let contradicts = object["contradicts"].to_string();
    assert!(contradicts.contains("comment-max: of a text of 4000 characters"), "{object:#}");
    // A push would be marked in vain.
    assert_eq!(folder.push(&[]).0.code, Some(2));
    let table = std::fs::read_to_string(folder.path("tallyonce.toml")).unwrap();
    let stated = table.replace("[target.there.statuses]", "comment-max = 900\n[target.there.statuses]");
    folder.write("tallyonce.toml", &stated);
    let probed = folder.run(&probe).output().unwrap();
    assert_eq!(probed.code, Some(0), "{probed}");
    let object: Value = serde_json::from_str(&probed.stdout).unwrap();
    let longest = &object["measured"]["more"]["longest"];
    assert_eq!((&longest["chars"], &longest["marker"], &longest["end"]), (&900.into(), &"whole".into(), &true.into()));
}

#[test]
fn a_probe_says_what_it_measures_and_how_long_it_waits() {
    // One that is asked as often as one likes.
    let service = ALL.iter().find(|product| product.name == "A service of your own").unwrap();
    let site = service.stub_with(OUTCOMES).unwrap();
    let folder = site.machine("reconcile");
    let probe = ["probe", "there", "--json", "--no-keep", "--case", "first", "--case", "second"];
    for quiet in [&[][..], &["--quiet"]] {
        site.door().set_plan(Plan::on(Select::writes().nth(1), Fault::ResponseDropped));
        let probed = folder.run(&[&probe[..], quiet].concat()).output().unwrap();
        let object: Value = serde_json::from_str(&probed.stdout).unwrap();
        assert_eq!(object["measured"]["lag"]["ms"], 0, "{object:#}");
        // The target's own `quiet` is waited after a silence, not what is usual with the product.
        for said in ["measures: what a repeat does", "measures: whether a write that is cut off", "waits 1s: "] {
            assert_eq!(probed.stderr.contains(said), quiet.is_empty(), "{said}: {probed}");
        }
    }
}

#[test]
fn a_push_into_a_file_has_no_targets_to_wait_for() {
    let (stub, folder, _) = rail();
    let args = ["push", "report.xml", "--to", "sqlite:here.db", "--project", "shop", "--cycle", "main", "--run", "7"];
    let pushed = folder.run(&[&args[..], &["--wait-forward"]].concat()).output().unwrap();
    assert_eq!(pushed.code, Some(0), "{pushed}");
    assert!(pushed.stderr.contains("a push straight into a store's file goes on to no target"), "{pushed}");
    assert!(!pushed.stderr.contains("the server hands"), "{pushed}");
    assert_eq!(stub.ledger().count(), 0, "of {CASES}");
}
