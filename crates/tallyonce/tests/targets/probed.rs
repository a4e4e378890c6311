//! What a probe that is kept is good for, what is said of one that can't be kept, and what it leaves.

use proof::stubs::{Kiwi, Stub, kiwi};
use serde_json::Value;

use crate::products::{OUTCOMES, kiwi_16};
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
