//! Files that go along with outcomes: under every fault each is at its row once, with the right bytes, and what can't be
//! there is said. The outcomes stand whatever becomes of files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use proof::stubs::{Fault, Plan, RetryAfter, Select, Stamp, Stub, TestRail, When};
use serde_json::Value;

use crate::faults::faults;
use crate::site::{CASES, Folder, config, rail};

/// The stub's word for the call that adds a file.
const ADD: &str = "add_attachment_to_result";

/// What the file of a case holds: bytes that stand in no text.
pub(crate) fn content(at: usize) -> Vec<u8> {
    [&[0xff, 0, b'\r', b'\n', at as u8][..], b"--tallyonce--"].concat()
}

/// A report whose items name a file each; that of the first is named by the second too.
fn report(names: &[String]) -> String {
    let mut text = String::from("<testsuite name=\"s\">");
    for (at, name) in names.iter().enumerate() {
        let failure = if at == 2 { "<failure message=\"no\"/>" } else { "" };
        let more = if at == 1 { "[[ATTACHMENT|shots/case 0.png]]" } else { "" };
        write!(
            text,
            "<testcase classname=\"c\" name=\"{name}\">{failure}<system-out>said\n[[ATTACHMENT|shots/case {at}.png]]\n{more}\
             </system-out></testcase>"
        )
        .unwrap();
    }
    text + "</testsuite>"
}

pub(crate) fn write_files(folder: &Folder, names: &[String]) {
    std::fs::create_dir_all(folder.path("shots")).unwrap();
    for at in 0..names.len() {
        std::fs::write(folder.path(&format!("shots/case {at}.png")), content(at)).unwrap();
    }
    folder.write("report.xml", &report(names));
}

/// As [`rail`], with files and this choice of them.
fn rail_with_files(more: &str) -> (Stub<TestRail>, Folder, Vec<String>) {
    let (stub, folder, names) = rail();
    let text = std::fs::read_to_string(folder.path("tallyonce.toml")).unwrap();
    folder.write("tallyonce.toml", &format!("{text}{more}"));
    write_files(&folder, &names);
    (stub, folder, names)
}

/// Contents by the place of their case, sorted; every name has to fit its content.
fn there(stub: &Stub<TestRail>, names: &[String]) -> BTreeMap<usize, Vec<Vec<u8>>> {
    let mut there = BTreeMap::<usize, Vec<Vec<u8>>>::new();
    for row in stub.vendor().results.iter() {
        let case = names.iter().position(|name| name.starts_with(&format!("C{} ", row.data.case))).unwrap();
        for file in &row.data.attachments {
            let tag = &blake3_hex(&file.bytes)[..12];
            assert!(file.name.starts_with("case_") && file.name.ends_with(&format!("-{tag}.png")), "{}", file.name);
            there.entry(case).or_default().push(file.bytes.clone());
        }
    }
    for files in there.values_mut() {
        files.sort();
    }
    there
}

fn blake3_hex(bytes: &[u8]) -> String {
    domain::Digest::of(bytes).to_string()
}

fn all() -> BTreeMap<usize, Vec<Vec<u8>>> {
    let of = |at: usize| if at == 1 { vec![content(0), content(1)] } else { vec![content(at)] };
    (0..CASES).map(|at| (at, of(at))).collect()
}

/// What still waits in the outbox.
pub(crate) fn outbox(folder: &Folder) -> Vec<String> {
    let Ok(files) = std::fs::read_dir(folder.path(".tallyonce/outbox")) else { return Vec::new() };
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != ".lock").collect()
}

pub(crate) fn figures(json: &Value) -> (u64, u64, u64, usize) {
    let files = &json["forward"]["attachments"];
    let number = |name: &str| files[name].as_u64().unwrap_or_else(|| panic!("{json:#}"));
    (number("sent"), number("there"), number("open"), files["left_out"].as_array().unwrap().len())
}

#[test]
fn under_every_fault_each_file_is_at_its_row_once() {
    std::thread::scope(|scope| {
        for (name, fault) in faults() {
            scope.spawn(move || {
                let (stub, folder, names) = rail_with_files("attachments = \"all\"\n");
                stub.set_plan(Plan::on(Select::writes().what(ADD).nth(2), fault));
                let (finished, json) = folder.push(&[]);
                assert_eq!(finished.code, Some(0), "{name}: {finished}");
                assert!(stub.log().iter().any(|event| !event.faults.is_empty()), "{name}: it never came to it");
                assert_eq!(figures(&json), (CASES as u64 + 1, 0, 0, 0), "{name}: {json:#}");
                assert_eq!(there(&stub, &names), all(), "{name}");
                assert!(outbox(&folder).is_empty(), "{name}: {:?}", outbox(&folder));
                // Again, and again by a machine that knows nothing of it.
                for fresh in [false, true] {
                    if fresh {
                        std::fs::remove_dir_all(folder.path(".tallyonce")).unwrap();
                    }
                    let (again, json) = folder.push(&[]);
                    assert_eq!(again.code, Some(0), "{name}: {again}");
                    assert_eq!(figures(&json), (0, CASES as u64 + 1, 0, 0), "{name}: {json:#}");
                }
                assert_eq!(there(&stub, &names), all(), "{name}");
                assert_eq!(stub.ledger().count(), CASES, "{name}");
            });
        }
    });
}

#[test]
fn files_are_taken_only_if_they_are_wanted() {
    let (stub, folder, names) = rail_with_files("");
    let (plain, json) = folder.push(&[]);
    assert_eq!((plain.code, &json["forward"]["attachments"]), (Some(0), &Value::Null), "{plain}");
    assert!(there(&stub, &names).is_empty());
    let (stub, folder, names) = rail_with_files("attachments = \"failed\"\n");
    let (failed, json) = folder.push(&[]);
    assert_eq!((failed.code, figures(&json)), (Some(0), (1, 0, 0, 0)), "{failed}");
    assert_eq!(there(&stub, &names), BTreeMap::from([(2, vec![content(2)])]));
    let (_stub, folder, _) = rail_with_files("attachments = \"some\"\n");
    let (wrong, _) = folder.push(&[]);
    assert_eq!(wrong.code, Some(2), "{wrong}");
    assert!(wrong.stderr.contains("target.there.attachments: never, failed or all is expected"), "{wrong}");
}

#[test]
fn what_is_left_out_is_listed_and_the_outcomes_stand() {
    let (stub, folder, names) = rail_with_files("attachments = \"all\"\nattachment-bytes-max = 100\n");
    std::fs::write(folder.path("shots/case 0.png"), [7; 101]).unwrap();
    std::fs::remove_file(folder.path("shots/case 3.png")).unwrap();
    folder.write("report.xml", &report(&names).replace("shots/case 4.png", "../../../../../../etc/passwd"));
    for _ in 0..2 {
        let (partly, json) = folder.push(&[]);
        assert_eq!(partly.code, Some(6), "{partly}");
        // That of the first item is named by two.
        assert_eq!(json["forward"]["attachments"]["left_out"].as_array().unwrap().len(), 4, "{json:#}");
        for said in ["attachment-bytes-max is 100", "there is no such file beside the report", "C3", "is not taken"] {
            assert!(partly.stderr.contains(said), "{said}: {partly}");
        }
        assert_eq!(stub.ledger().count(), CASES);
        assert_eq!(there(&stub, &names).len(), CASES - 3);
        assert!(outbox(&folder).is_empty());
    }
    // The site setting forbids what an attachment needs.
    let (stub, folder, _) = rail_with_files("attachments = \"failed\"\n");
    stub.vendor().options.edit_results = false;
    let (denied, json) = folder.push(&[]);
    assert_eq!((denied.code, figures(&json)), (Some(6), (0, 0, 0, 1)), "{denied}");
    assert!(denied.stderr.contains("You are not allowed to edit results"), "{denied}");
    assert_eq!(stub.ledger().count(), CASES);
}

#[test]
fn another_job_flushes_the_files_too() {
    let (stub, folder, names) = rail_with_files("attachments = \"all\"\n");
    stub.set_plan(Plan::on(Select::any(), Fault::RequestDropped));
    let (cut, _) = folder.push(&["--deadline", "1s"]);
    assert_eq!(cut.code, Some(75), "{cut}");
    stub.set_plan(Plan::pass());
    // The outbox travels; the working folder doesn't.
    let other = Folder::new(&config(&stub, "testrail", "1", "user = \"bot@example.com\"\nattachments = \"all\"\n"));
    std::fs::create_dir(other.path(".tallyonce")).unwrap();
    std::fs::rename(folder.path(".tallyonce/outbox"), other.path(".tallyonce/outbox")).unwrap();
    drop(folder);
    let flushed = other.run(&["flush", "--to", "there"]).output().unwrap();
    assert_eq!(flushed.code, Some(0), "{flushed}");
    assert_eq!(there(&stub, &names), all());
    assert!(outbox(&other).is_empty(), "{:?}", outbox(&other));
}

#[test]
fn a_deadline_leaves_the_files_in_the_outbox_and_the_outcomes_recorded() {
    let (stub, folder, names) = rail_with_files("attachments = \"all\"\n");
    stub.set_plan(Plan::on(Select::writes().what(ADD), Fault::RequestDropped));
    let (cut, json) = folder.push(&["--deadline", "6s"]);
    assert_eq!(cut.code, Some(6), "{cut}");
    assert_eq!(json["state"], "recorded");
    assert_eq!(figures(&json), (0, 0, CASES as u64 + 1, 0), "{json:#}");
    assert!(cut.stderr.contains("`tallyonce flush --to there` goes on"), "{cut}");
    assert_eq!(stub.ledger().count(), CASES);
    stub.set_plan(Plan::pass());
    let flushed = folder.run(&["flush", "--to", "there"]).output().unwrap();
    assert_eq!(flushed.code, Some(0), "{flushed}");
    assert_eq!(there(&stub, &names), all());
    assert!(outbox(&folder).is_empty());
}

#[test]
fn a_client_that_dies_while_it_sends_a_file_is_followed_by_one_that_waits_for_it() {
    for fault in [
        // Carried out long after its client died, within the quiet time.
        Fault::Held(When::After(Duration::from_millis(800))),
        Fault::Stall { hold: When::ClientGone, then_answer: false },
    ] {
        let (stub, folder, names) = rail_with_files("attachments = \"failed\"\n");
        stub.set_plan(Plan::on(Select::writes().what(ADD).nth(1), fault));
        let client = folder.pushing(&[]).start().unwrap();
        let arrived = stub.wait_for(Duration::from_mins(1), |log| log.iter().any(|event| !event.faults.is_empty()));
        assert!(arrived.is_some(), "it never came to the fault");
        client.kill9();
        client.wait(Duration::from_secs(30)).unwrap();
        let (finished, json) = folder.push(&[]);
        assert_eq!((finished.code, figures(&json)), (Some(0), (0, 1, 0, 0)), "{finished}");
        assert_eq!(there(&stub, &names), BTreeMap::from([(2, vec![content(2)])]));
    }
}

#[test]
fn two_writers_at_once_leave_each_file_once_or_say_so() {
    // On one machine they take turns.
    let (stub, folder, names) = rail_with_files("attachments = \"all\"\n");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let (finished, _) = folder.push(&[]);
                assert_eq!(finished.code, Some(0), "{finished}");
            });
        }
    });
    assert_eq!(there(&stub, &names), all());
    // Whoever waits for the other one is not given up.
    let patient = |folder: &Folder| folder.pushing(&["--attempt", "1"]).env("TALLYONCE_TIMEOUT", "60s");
    // Two that know nothing of each other may both find nothing.
    let (stub, folder, names) = rail_with_files("attachments = \"failed\"\n");
    let other = Folder::new(&std::fs::read_to_string(folder.path("tallyonce.toml")).unwrap());
    write_files(&other, &names);
    let (first, _) = folder.push(&["--attempt", "1"]);
    assert_eq!(first.code, Some(0), "{first}");
    let rows: Vec<u64> = stub.vendor().results.iter().map(|row| row.id).collect();
    for row in rows {
        stub.vendor().results.change(row, Stamp::default(), |outcome| outcome.attachments.clear());
    }
    let meet = Fault::Meet { point: "listed".to_owned(), size: 2 };
    stub.set_plan(Plan::on(Select::writes().what(ADD).first(2), meet));
    let ends: Vec<_> = std::thread::scope(|scope| {
        let both = [&folder, &other].map(|folder| scope.spawn(|| patient(folder).output().unwrap()));
        both.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(there(&stub, &names)[&2].len(), 2);
    let said = ends.iter().filter(|end| end.code == Some(6) && end.stderr.contains("it stands 2 times at its row"));
    assert!(said.count() >= 1, "{} {}", ends[0], ends[1]);
}

#[test]
fn a_rate_limit_of_files_is_kept_to() {
    let (stub, folder, names) = rail_with_files("attachments = \"failed\"\n");
    let limit = Fault::Refused { status: 429, retry_after: RetryAfter::Seconds(1) };
    stub.set_plan(Plan::on(Select::writes().what(ADD).first(2), limit));
    let (done, json) = folder.push(&[]);
    assert_eq!((done.code, figures(&json)), (Some(0), (1, 0, 0, 0)), "{done}");
    assert_eq!(there(&stub, &names).len(), 1);
}

#[test]
fn a_file_that_was_put_off_often_is_sent_again_after_one_silence() {
    let (stub, folder, names) = rail_with_files("attachments = \"failed\"\n");
    let limit = Fault::Refused { status: 429, retry_after: RetryAfter::Seconds(1) };
    let put_off = Plan::on(Select::writes().what(ADD).first(5), limit);
    stub.set_plan(put_off.and(Select::writes().what(ADD).nth(6), Fault::RequestDropped));
    let (done, json) = folder.push(&[]);
    assert_eq!((done.code, figures(&json)), (Some(0), (1, 0, 0, 0)), "{done}");
    assert_eq!(there(&stub, &names), BTreeMap::from([(2, vec![content(2)])]));
}

#[test]
fn an_item_of_several_cases_has_its_files_at_the_row_of_each() {
    let (stub, folder, names) = rail_with_files("attachments = \"all\"\n");
    let case = |at: usize| names[at].split(' ').next().unwrap();
    let both = format!("{} {} adds", case(0), case(1));
    folder.write("report.xml", &report(&[both]));
    for figure in [(2, 0, 0, 0), (0, 2, 0, 0)] {
        let (done, json) = folder.push(&[]);
        assert_eq!((done.code, figures(&json)), (Some(0), figure), "{done}");
        assert_eq!(there(&stub, &names), BTreeMap::from([(0, vec![content(0)]), (1, vec![content(0)])]));
    }
}
