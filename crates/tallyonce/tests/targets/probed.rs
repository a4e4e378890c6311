//! What a probe that is kept is good for, what is said of one that can't be kept, and what it leaves.

use proof::stubs::{Fault, Kiwi, Plan, RetryAfter, Select, Stub, kiwi};
use serde_json::Value;

use crate::products::{ALL, OUTCOMES, kiwi_16};
use crate::site::{Folder, config};

const PROBE: [&str; 3] = ["probe", "there", "--json"];

/// The same with two cases of the report.
fn with_cases(cases: &[String]) -> Vec<&str> {
    [&PROBE[..], &["--case", &cases[0], "--case", &cases[1]]].concat()
}

/// The numbers of the cases that a report names.
fn numbers(names: &[String]) -> Vec<String> {
    let number = |name: &String| name.split(' ').next().unwrap().trim_start_matches("TC-").to_owned();
    names.iter().map(number).collect()
}

fn object(text: &str) -> Value {
    serde_json::from_str(text.trim()).unwrap()
}

#[test]
fn a_probe_of_one_project_confirms_nothing_of_another() {
    let site = kiwi_16(OUTCOMES);
    let folder = site.machine("replace");
    let numbers = numbers(site.names());
    let probed = folder.run(&with_cases(&numbers)).output().unwrap();
    assert_eq!(probed.code, Some(0), "{probed}");
    let table = std::fs::read_to_string(folder.path("tallyonce.toml")).unwrap();
    let other = table.replace("project = \"Shop\"", "project = \"Other\"");
    assert_ne!(table, other);
    folder.write("tallyonce.toml", &other);
    let (strict, _) = folder.push(&["--strict"]);
    assert_eq!(strict.code, Some(2), "{strict}");
    assert!(strict.stderr.contains("project Shop, and the target is kiwi at"), "{strict}");
    assert!(!folder.path(".tallyonce/outbox").exists(), "nothing is kept that nobody would send");
    folder.write("tallyonce.toml", &table);
    let (pushed, _) = folder.push(&["--strict"]);
    assert_eq!(pushed.code, Some(0), "{pushed}");
    assert!(!pushed.stderr.contains("tallyonce probe"), "{pushed}");
    // Without --strict the other one is pushed to, and it is said what to run.
    let elsewhere = site.machine("replace");
    elsewhere.write("tallyonce.toml", &format!("{other}probe = {:?}\n", folder.path(".tallyonce/probe-there.json")));
    let (warned, _) = elsewhere.push(&[]);
    assert_ne!(warned.code, Some(2), "{warned}");
    assert!(warned.stderr.contains("project Shop, and the target is kiwi at"), "{warned}");
    assert!(warned.stderr.contains("run `tallyonce probe` again"), "{warned}");
}

#[test]
fn a_result_that_cannot_be_kept_is_said_before_the_probe_or_shown_all_the_same() {
    let site = kiwi_16(OUTCOMES);
    let folder = site.machine("replace");
    let numbers = numbers(site.names());
    let table = std::fs::read_to_string(folder.path("tallyonce.toml")).unwrap();
    folder.write("tallyonce.toml", &format!("{table}probe = \"/proc/x\"\n"));
    let before = folder.run(&with_cases(&numbers)).output().unwrap();
    assert_eq!(before.code, Some(2), "{before}");
    assert!(before.stderr.contains("can't be kept in /proc/x"), "{before}");
    assert!(before.stderr.contains("Nothing was sent, nothing was written."), "{before}");
    assert!(site.door().log().is_empty(), "it is said before anything is asked");
    folder.write("tallyonce.toml", &format!("{table}probe = \"taken\"\n"));
    std::fs::create_dir(folder.path("taken")).unwrap();
    let after = folder.run(&with_cases(&numbers)).output().unwrap();
    assert_eq!(after.code, Some(2), "{after}");
    assert!(after.stderr.contains("can't be kept in taken"), "{after}");
    assert!(!after.stderr.contains("Nothing was sent"), "{after}");
    let object = object(&after.stdout);
    assert_eq!((&object["kept"], &object["measured"]["at_once"]["rows"]), (&Value::Null, &1.into()), "{object:#}");
    assert!(object["left"].is_array(), "{object:#}");
}

#[test]
fn cases_that_a_probe_makes_are_named() {
    let stub = Stub::start(Kiwi::new(kiwi::Options::default())).unwrap();
    let more = "user = \"bot@example.com\"\nplan = \"Automated\"\nversion = \"1.0\"\ncreate-cases = true\n";
    let folder = Folder::new(&config(&stub, "kiwi", "Shop", more));
    let made = |args: &[&str]| {
        let probed = folder.run(args).output().unwrap();
        let left = object(&probed.stdout)["left"].clone();
        let left: Vec<String> = serde_json::from_value(left).unwrap_or_else(|_| panic!("{probed}"));
        left.into_iter().filter(|left| left.contains("made for the probe and put into the test plan")).count()
    };
    assert_eq!(made(&PROBE), 2);
    assert_eq!(made(&PROBE), 0, "those that were there are nobody's to delete");
}

/// Runs that are made first, which lets a probe be broken off half-way.
const RUNS: &str = r#"[target.there.find-cycle]
path = "/api/runs?offset={offset}&limit=100"
next = "offset"
items-at = "/runs"
id-at = "/id"
tag-at = "/label"
[target.there.create-cycle]
path = "/api/runs"
body = '''{"name": {name}, "label": {tag}}'''
id-at = "/id"
"#;

#[test]
fn a_probe_that_was_broken_off_does_not_take_the_place_of_one_that_found_a_contradiction() {
    // One that is asked as often as one likes.
    let service = ALL.iter().find(|product| product.name == "A service of your own").unwrap();
    let site = service.stub_with(OUTCOMES).unwrap();
    let folder = site.machine("reconcile");
    let table = std::fs::read_to_string(folder.path("tallyonce.toml")).unwrap();
    folder.write("tallyonce.toml", &format!("{table}{RUNS}"));
    let path = folder.path(".tallyonce/probe-there.json");
    let whole = folder.run(&PROBE).output().unwrap();
    assert_eq!(whole.code, Some(0), "{whole}");
    let mut contradicts = object(&std::fs::read_to_string(&path).unwrap());
    contradicts["measured"]["more"]["while_writing"]["skipped"] = 1.into();
    let contradicts = contradicts.to_string();
    std::fs::write(&path, &contradicts).unwrap();
    let refuse = Fault::Refused { status: 400, retry_after: RetryAfter::Missing };
    site.door().set_plan(Plan::on(Select::writes().what("runs").nth(3), refuse));
    let part = folder.run(&PROBE).output().unwrap();
    assert_eq!(part.code, Some(0), "{part}");
    assert!(object(&part.stdout)["measured"]["more"]["broken_off"].is_string(), "{part}");
    assert!(part.stderr.contains("this probe is not whole, and is not kept"), "{part}");
    assert_eq!(object(&part.stdout)["kept"], Value::Null);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), contradicts);
    assert_eq!(folder.push(&[]).0.code, Some(2), "what was found still counts");
    // A whole one takes its place.
    site.door().set_plan(Plan::pass());
    assert_eq!(folder.run(&PROBE).output().unwrap().code, Some(0));
    assert_eq!(folder.push(&[]).0.code, Some(0));
}
