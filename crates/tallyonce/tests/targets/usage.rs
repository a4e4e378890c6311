//! Wrong use and refusals: said in words that help, with the right code, and nothing is lost by them.

use proof::stubs::{Fault, Plan, RetryAfter, Select};

use crate::products::{ALL, OUTCOMES, kiwi_16};
use crate::site::{CASES, Folder, rail, report};

#[test]
fn a_target_that_nobody_describes_is_named_with_those_that_are() {
    let (_stub, folder, _) = rail();
    let unknown = folder.run(&["push", "report.xml", "--to", "elsewhere", "--run", "7"]).output().unwrap();
    assert_eq!(unknown.code, Some(2), "{unknown}");
    assert!(unknown.stderr.contains("has no [target.elsewhere] (there are there)"), "{unknown}");
    let bare = Folder::new("");
    std::fs::remove_file(bare.path("tallyonce.toml")).unwrap();
    bare.write("report.xml", &report(&["a".to_owned()], &[]));
    let none = bare.run(&["push", "report.xml", "--to", "there", "--run", "7"]).output().unwrap();
    assert_eq!(none.code, Some(2), "{none}");
    assert!(none.stderr.contains("no file describes a target there"), "{none}");
}

#[test]
fn credentials_are_variables_that_have_to_be_set() {
    let (_stub, folder, _) = rail();
    let unset = folder.pushing(&[]).env("TARGET_TOKEN", "").output().unwrap();
    assert_eq!(unset.code, Some(2), "{unset}");
    assert!(unset.stderr.contains("target.there.token names the variable TARGET_TOKEN, which is not set"), "{unset}");
    let wrong = folder.pushing(&[]).env("TARGET_TOKEN", "another").output().unwrap();
    assert_eq!(wrong.code, Some(4), "{wrong}");
    assert!(!wrong.stderr.contains("another") && !wrong.stdout.contains("another"), "{wrong}");
    // Once they are mended, nothing is lost.
    let (right, _) = folder.push(&[]);
    assert_eq!(right.code, Some(0), "{right}");
}

#[test]
fn a_dry_run_reads_the_table_and_writes_nothing() {
    let (stub, folder, _) = rail();
    let dry =
        ["push", "report.xml", "--to", "there", "--project", "shop", "--cycle", "main", "--run", "7", "--dry-run"];
    let dry = folder.run(&dry).output().unwrap();
    assert!(dry.code == Some(0) && dry.stdout.contains("there (testrail, reconcile), ledger sqlite:"), "{dry}");
    let unset = folder.pushing(&["--dry-run"]).env("TARGET_TOKEN", "").output().unwrap();
    assert_eq!(unset.code, Some(2), "{unset}");
    assert!(unset.stderr.contains("TARGET_TOKEN, which is not set"), "{unset}");
    assert!(!folder.path(".tallyonce").exists());
    assert_eq!(stub.ledger().count(), 0);
}

#[test]
fn a_dry_run_refuses_what_a_push_refuses() {
    let site = kiwi_16(OUTCOMES);
    let folder = site.machine("replace");
    let place = ["--to", "there", "--project", "shop", "--cycle", "main", "--run", "7"];
    let push = [&["push", "report.xml"][..], &place].concat();
    let run = |more: &[&'static str]| [&["run"][..], &place, more, &["--", "touch", "ran"]].concat();
    for args in [[&push[..], &["--dry-run", "--strict"]].concat(), run(&["--dry-run", "--strict"])] {
        let refused = folder.run(&args).output().unwrap();
        assert_eq!(refused.code, Some(2), "{args:?}: {refused}");
        assert!(refused.stderr.contains("no probe has confirmed replace"), "{refused}");
    }
    for args in [[&push[..], &["--dry-run"]].concat(), run(&["--dry-run"])] {
        let warned = folder.run(&args).output().unwrap();
        assert_eq!(warned.code, Some(0), "{args:?}: {warned}");
        assert!(warned.stderr.contains("no probe has confirmed replace"), "{warned}");
    }
    assert!(site.door().log().is_empty() && !folder.path("ran").exists() && !folder.path(".tallyonce").exists());
    // What stands for another place is refused too.
    assert_eq!(folder.push(&[]).0.code, Some(0));
    let table = std::fs::read_to_string(folder.path("tallyonce.toml")).unwrap();
    folder.write("tallyonce.toml", &table.replace("project = \"Shop\"", "project = \"Other\""));
    let asked = site.door().log().len();
    for args in [[&push[..], &["--dry-run"]].concat(), run(&["--dry-run"])] {
        let refused = folder.run(&args).output().unwrap();
        assert_eq!(refused.code, Some(2), "{args:?}: {refused}");
        assert!(refused.stderr.contains("tallyonce forwards --moved --target there"), "{refused}");
    }
    assert_eq!(site.door().log().len(), asked);
}

#[test]
fn what_a_push_is_refused_for_is_not_taken_up_again_either() {
    let (stub, folder, _) = rail();
    assert_eq!(folder.push(&[]).0.code, Some(0));
    let listed = folder.run(&["forwards", "--json"]).output().unwrap();
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    let id = listed["forwards"][0]["id"].as_str().unwrap().to_owned();
    folder.write(".tallyonce/probe-there.json", "{}");
    let asked = stub.log().len();
    let refused = folder.run(&["forwards", "--resume", &id]).output().unwrap();
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("not a probe"), "{refused}");
    assert_eq!(stub.log().len(), asked);
}

#[test]
fn a_dry_run_lists_items_without_a_case_where_that_needs_no_call() {
    let service = ALL.iter().find(|product| product.name == "A service of your own").unwrap();
    let site = service.stub_with(OUTCOMES).unwrap();
    let folder = site.machine("reconcile");
    let table = std::fs::read_to_string(folder.path("tallyonce.toml")).unwrap();
    let mapped = "case = \"mapping\"\nmapping = \"cases.tsv\"\n[target.there.statuses]";
    folder.write("tallyonce.toml", &table.replace("[target.there.statuses]", mapped));
    folder.write("cases.tsv", &format!("s > c > {}\tA-1\n", site.names()[0]));
    let dry =
        ["push", "report.xml", "--to", "there", "--project", "shop", "--cycle", "main", "--run", "7", "--dry-run"];
    let shown = folder.run(&dry).output().unwrap();
    assert_eq!(shown.code, Some(0), "{shown}");
    assert!(shown.stdout.contains("1 of 4 items have one"), "{shown}");
    let refused =
        |name: &str| shown.stderr.contains(&format!("would refuse s > c > {name}: no line of the mapping file"));
    assert!(!refused(&site.names()[0]) && site.names()[1..].iter().all(|name| refused(name)), "{shown}");
    assert!(site.door().log().is_empty());
    // Where only the product knows, that is said.
    let (stub, folder, _) = rail();
    let shown = folder.run(&dry).output().unwrap();
    assert!(shown.stdout.contains("only testrail can tell") && stub.log().is_empty(), "{shown}");
}

#[test]
fn an_unknown_key_of_a_target_is_an_error() {
    let (_stub, folder, _) = rail();
    let text = std::fs::read_to_string(folder.path("tallyonce.toml")).unwrap();
    folder.write("tallyonce.toml", &format!("{text}siute = 3\n"));
    let (typo, _) = folder.push(&[]);
    assert_eq!(typo.code, Some(2), "{typo}");
    assert!(typo.stderr.contains("unknown key siute"), "{typo}");
}

#[test]
fn what_has_no_case_is_listed_and_the_rest_is_written() {
    let (stub, folder, mut names) = rail();
    names.push("C9999 is nowhere".to_owned());
    names.push("nobody knows it".to_owned());
    folder.write("report.xml", &report(&names, &[]));
    let (partly, json) = folder.push(&[]);
    assert_eq!(partly.code, Some(6), "{partly}");
    let forward = &json["forward"];
    assert_eq!(forward["refused"].as_array().unwrap().len(), 2, "{json:#}");
    assert_eq!((&forward["items"], &forward["cases"]), (&(CASES + 2).into(), &CASES.into()), "{json:#}");
    assert_eq!(forward["states"], serde_json::json!({"acked": CASES}), "{json:#}");
    assert_eq!(stub.ledger().count(), CASES);
    let args = ["push", "report.xml", "--to", "there", "--project", "shop", "--cycle", "main", "--run", "7"];
    let again = folder.run(&args).output().unwrap();
    let words = "7 of 9 items; 2 refused or without a case there (listed); in 7 cases: 7 acked\n";
    assert!(again.code == Some(6) && again.stdout.contains(words), "{again}");
}

#[test]
fn a_mapping_file_of_which_no_line_fits_is_said_with_an_item_as_it_is_written() {
    let (_stub, folder, names) = rail();
    let text = std::fs::read_to_string(folder.path("tallyonce.toml")).unwrap();
    folder.write("tallyonce.toml", &format!("{text}mapping = \"cases.tsv\"\n"));
    let case = names[0].split(' ').next().unwrap();
    for (suite, fits) in [("", false), ("s > ", true)] {
        folder.write("cases.tsv", &format!("{suite}c > {}\t{case}\n", names[0]));
        let (pushed, json) = folder.push(&[]);
        assert_eq!(pushed.code, Some(0), "{pushed}");
        let words = "none of the 1 lines of its mapping file names an item of this push; a line is ITEM, a tab and the case, \
                     with the item as it is written here: s > c > C";
        assert_eq!(json["warnings"].to_string().contains(words), !fits, "{json:#}");
    }
}

#[test]
fn a_stale_attempt_is_left_out_and_said() {
    let (stub, folder, names) = rail();
    let (first, _) = folder.push(&["--attempt", "2"]);
    assert_eq!(first.code, Some(0), "{first}");
    std::fs::remove_dir_all(folder.path(".tallyonce")).unwrap();
    folder.write("report.xml", &report(&names, &[0, 1, 2, 3]));
    let (stale, json) = folder.push(&["--attempt", "1"]);
    assert_eq!(stale.code, Some(0), "{stale}");
    assert_eq!(json["forward"]["flags"], serde_json::json!(["stale"]), "{json:#}");
    assert_eq!(stub.ledger().count(), CASES);
}

#[test]
fn a_rate_limit_is_kept_to() {
    let (stub, folder, _) = rail();
    let limit = Fault::Refused { status: 429, retry_after: RetryAfter::Seconds(1) };
    stub.set_plan(Plan::on(Select::any().first(3), limit));
    let (done, _) = folder.push(&[]);
    assert_eq!(done.code, Some(0), "{done}");
    assert!(done.stderr.contains("429"), "{done}");
    assert_eq!(stub.ledger().count(), CASES);
}
