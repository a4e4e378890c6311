//! Own small files, one per dialect and quirk, against values written down by hand beside them.

use std::collections::BTreeSet;
use std::path::Path;

use domain::{Counts, Status};
use reports::{Event, Note, Sign};

use crate::{collect, events};

fn testdata() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/junit"))
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(testdata().join(name)).unwrap()
}

#[test]
fn every_file_holds_what_is_written_down() {
    let expected = std::fs::read_to_string(testdata().join("expected.tsv")).unwrap();
    let mut listed = BTreeSet::from(["expected.tsv".to_owned()]);
    for line in expected.lines().filter(|l| !l.starts_with(['#', 'f']) || l.contains(".xml")) {
        if line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split('\t').collect();
        let name = fields[0];
        listed.insert(name.to_owned());
        let bytes = file(name);
        let read = collect(&[(name, &bytes)], false).unwrap();
        let (s, counts) = (read.summary, read.outcomes.iter().collect::<Counts>());
        let got = [s.outcomes, s.passed, s.failed, s.errored, s.skipped, counts.flaky, counts.total];
        let want: Vec<u64> = fields[1..8].iter().map(|n| n.parse().unwrap()).collect();
        assert_eq!(&got[..], &want[..], "{name}");
        let ms = milliseconds(name, &bytes);
        assert!((ms - fields[8].parse::<f64>().unwrap()).abs() < 0.001, "{name}: {ms} ms");
        let wanted: Vec<&str> = fields[9].split('|').filter(|w| !w.is_empty()).collect();
        assert_eq!(read.warnings.len(), wanted.len(), "{name}: {:?}", read.warnings);
        for text in wanted {
            assert!(read.warnings.iter().any(|w| w.text.contains(text)), "{name}: {text}: {:?}", read.warnings);
        }
    }
    let there: BTreeSet<String> =
        std::fs::read_dir(testdata()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(there, listed, "every file is in the list");
}

/// The durations of all elements, doubtful ones decided as a collector does.
fn milliseconds(name: &str, bytes: &[u8]) -> f64 {
    let mut comma = false;
    let mut elements = Vec::new();
    let (outcomes, error) = events(name, bytes, |event| match event {
        Event::Outcome(raw) => elements.push((raw.duration_us, raw.duration_with_comma_us)),
        Event::Note(note) => comma |= *note == Note::Decimal(Sign::Comma),
    });
    assert!(error.is_none() && outcomes == elements.len(), "{name}");
    elements.iter().filter_map(|(a, b)| if comma { b.or(*a) } else { *a }).map(domain::DurationUs::as_ms).sum()
}

#[test]
fn attempts_keep_their_order_status_time_and_message() {
    let read = collect(&[("a", &file("surefire-rerun.xml"))], false).unwrap();
    let flaky = &read.outcomes[0];
    assert_eq!(flaky.attempts.iter().map(|a| a.status).collect::<Vec<_>>(), [Status::Failed, Status::Errored]);
    assert_eq!(flaky.attempts[0].message.as_deref(), Some("not yet\nat CartTest:1"));
    let bad = &read.outcomes[1];
    assert_eq!(bad.message.as_deref(), Some("no\nat CartTest:3"));
    assert_eq!(bad.attempts[0].message.as_deref(), Some("still no\nat CartTest:4"));
    assert_eq!(bad.attempts.len(), 1);
    let read = collect(&[("a", &file("playwright.xml"))], false).unwrap();
    assert_eq!(read.outcomes[1].attempts[0].duration_us.map(|us| us.0), Some(250_000));
}

#[test]
fn phases_of_one_attempt_keep_both_messages_and_the_worst_verdict() {
    let read = collect(&[("a", &file("pytest-phases.xml"))], false).unwrap();
    let both = &read.outcomes[0];
    assert_eq!((both.status, both.attempts.len()), (Status::Errored, 0));
    assert_eq!(both.message.as_deref(), Some("E assert 0\n\nE teardown"));
    assert_eq!(read.summary.repeats, 1);
    assert_eq!(read.outcomes[2].item.class(), None, "a file that can't be imported has no class");
}

#[test]
fn retries_are_attempts_and_the_last_one_counts() {
    let read = collect(&[("a", &file("gradle-retry.xml"))], false).unwrap();
    assert_eq!(read.outcomes[0].attempts.len(), 2);
    assert!(read.outcomes[0].is_flaky());
    assert_eq!((read.outcomes[1].item.ordinal(), read.outcomes[2].item.ordinal()), (0, 1));
    let read = collect(&[("a", &file("pytest-reruns.xml"))], false).unwrap();
    let bad = read.outcomes.iter().find(|o| o.item.name() == "test_bad").unwrap();
    assert_eq!((bad.status, bad.attempts[0].status), (Status::Failed, Status::Failed));
}

#[test]
fn messages_are_whole_and_ids_are_found() {
    let read = collect(&[("a", &file("googletest.xml"))], false).unwrap();
    assert_eq!(read.outcomes[1].message.as_deref(), Some("one\n\ntwo"));
    let read = collect(&[("a", &file("control-characters.xml"))], false).unwrap();
    assert_eq!(read.outcomes[0].item.name(), "green");
    assert_eq!(read.outcomes[1].message.as_deref(), Some("\u{fffd}no"));
    let read = collect(&[("a", &file("external-ids.xml"))], false).unwrap();
    let ids: Vec<Vec<String>> =
        read.outcomes.iter().map(|o| o.external_ids.iter().map(ToString::to_string).collect()).collect();
    let expected: [&[&str]; 4] =
        [&["name:C101"], &["name:C102"], &["name:QASE-7", "name:SHOP-T12"], &["C103", "C104", "requirement:REQ-1"]];
    assert_eq!(ids, expected);
    assert_eq!(read.outcomes[0].item.name(), "[C101] pays");
}

#[test]
fn every_encoding_gives_the_same_item() {
    let name = |file_name: &str| collect(&[("a", &file(file_name))], false).unwrap().outcomes.remove(0).item;
    let expected = name("latin1.xml");
    assert_eq!(expected.name(), "grüße");
    for other in ["utf16le.xml", "utf16be-no-mark.xml", "mark-and-crlf.xml"] {
        assert_eq!(name(other), expected, "{other}");
    }
}

fn part(suite: &str, package: Option<&str>, tests: &[&str]) -> String {
    let package_name = package.map(|p| format!(" package=\"{p}\"")).unwrap_or_default();
    let class = package.map_or(suite.to_owned(), |p| format!("{p}.{suite}"));
    let case = |test: &&str| format!("<testcase classname=\"{class}\" name=\"{test}\" time=\"0.125\"/>");
    let cases = tests.iter().map(case).collect::<Vec<_>>().concat();
    format!("<testsuite name=\"{suite}\"{package_name} timestamp=\"2026-01-02T03:04:05\">{cases}</testsuite>")
}

#[test]
fn an_aggregate_beside_its_parts_is_counted_once() {
    let all =
        format!("<testsuites>{}{}</testsuites>", part("A", Some("shop"), &["x"]), part("B", Some("shop"), &["x", "y"]));
    let (a, b) = (part("shop.A", None, &["x"]), part("shop.B", None, &["x", "y"]));
    let files: [(&str, &[u8]); 3] = [("TESTS.xml", all.as_bytes()), ("a.xml", a.as_bytes()), ("b.xml", b.as_bytes())];
    let read = collect(&files, false).unwrap();
    assert_eq!((read.summary.outcomes, read.outcomes.len(), read.summary.files), (3, 3, 3));
    assert_eq!(read.files, ["TESTS.xml"]);
    assert_eq!(read.warnings.len(), 2);
    assert!(read.warnings.iter().all(|w| w.text.contains("TESTS.xml")));
    let more = part("shop.C", None, &["z"]);
    let read = collect(&[files[1], files[2], ("c.xml", more.as_bytes())], false).unwrap();
    assert_eq!((read.outcomes.len(), read.files.len(), read.warnings.len()), (4, 3, 0));
}

#[test]
fn the_same_file_under_two_names_is_counted_once_and_another_run_of_it_is_not() {
    let one = part("A", None, &["x", "y"]);
    let read = collect(&[("a/r.xml", one.as_bytes()), ("b/r.xml", one.as_bytes())], false).unwrap();
    assert_eq!((read.summary.outcomes, &read.files[..]), (2, &["a/r.xml".to_owned()][..]));
    assert!(read.warnings[0].text.contains("a/r.xml"));
    let other = one.replace("0.125", "0.126");
    let read = collect(&[("a/r.xml", one.as_bytes()), ("b/r.xml", other.as_bytes())], false).unwrap();
    assert_eq!((read.summary.outcomes, read.outcomes.len(), read.summary.repeats), (4, 4, 0));
    assert_eq!(read.outcomes[2].item.ordinal(), 1);
}

#[test]
fn attempts_in_files_of_their_own_are_attempts_of_the_last_file() {
    let bad = b"<testsuites><testsuite name=\"//shop:cart\"><testcase name=\"cart\"><error/></testcase></testsuite></testsuites>";
    let good = b"<testsuites><testsuite name=\"//shop:cart\"><testcase name=\"cart\"/></testsuite></testsuites>";
    let read = collect(&[("cart/test.xml", good), ("cart/test_attempts/attempt_1.xml", bad)], false).unwrap();
    assert_eq!(read.outcomes.len(), 1);
    assert!(read.outcomes[0].is_flaky());
    assert!(read.warnings.is_empty());
}

#[test]
fn a_pytest_rerun_in_a_second_file_replaces_what_failed_and_only_that() {
    let report = |body: &str| {
        format!("<testsuites name=\"pytest tests\"><testsuite name=\"pytest\">{body}</testsuite></testsuites>")
    };
    let first =
        report("<testcase classname=\"t\" name=\"a\"><failure/></testcase><testcase classname=\"t\" name=\"b\"/>");
    let again = report("<testcase classname=\"t\" name=\"a\"/>");
    let read = collect(&[("1.xml", first.as_bytes()), ("2.xml", again.as_bytes())], false).unwrap();
    assert_eq!((read.outcomes.len(), read.outcomes[0].is_flaky()), (2, true));
    let other = report("<testcase classname=\"t\" name=\"b\"><failure/></testcase>");
    let read = collect(&[("1.xml", first.as_bytes()), ("2.xml", other.as_bytes())], false).unwrap();
    assert_eq!(read.outcomes.len(), 3, "a failure after a pass may be another environment and is never hidden");
}
