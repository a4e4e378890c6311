//! The way over a temporary file gives exactly what the way in memory gives.

use std::path::Path;

use domain::Counts;
use proptest::prelude::*;
use reports::{Collector, Gathered, Gathering, ReadOptions, ReportError, Spill};
use tempfile::tempdir;

use crate::properties::report;
use crate::shared_corpus;

fn gather(files: &[(&str, &[u8])], partial: bool, memory_bytes: usize) -> (Gathering, Vec<String>) {
    let folder = tempdir().unwrap();
    let spill = Spill { folder: folder.path().to_owned(), memory_bytes };
    let mut collector = Collector::spilling(ReadOptions { partial, ..ReadOptions::staged() }, spill);
    let errors = files.iter().filter_map(|(name, bytes)| collector.add(name, *bytes).err()).map(|e| e.to_string());
    let errors = errors.collect();
    let gathering = collector.gather().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing with a name is left");
    (gathering, errors)
}

/// Reads both ways and compares all there is; true if something was spilled.
#[track_caller]
fn same(files: &[(&str, &[u8])], partial: bool, memory_bytes: usize) -> bool {
    let mut collector = Collector::new(ReadOptions { partial, ..ReadOptions::standard() });
    let errors: Vec<String> =
        files.iter().filter_map(|(name, bytes)| collector.add(name, *bytes).err()).map(|e| e.to_string()).collect();
    let held = collector.finish();
    let (gathering, spilling_errors) = gather(files, partial, memory_bytes);
    assert_eq!(spilling_errors, errors);
    assert_eq!(gathering.summary, held.summary);
    assert_eq!(gathering.warnings, held.warnings);
    assert_eq!(gathering.damage, held.damage);
    assert_eq!(gathering.files, held.files);
    let spilled = match gathering.outcomes {
        Gathered::Held { hashes, outcomes } => {
            assert_eq!((hashes, outcomes), (held.hashes, held.outcomes));
            return false;
        }
        Gathered::Spilled(spilled) => spilled,
    };
    assert_eq!(spilled.counts(), held.outcomes.iter().collect::<Counts>());
    assert_eq!((spilled.len(), spilled.is_empty()), (held.outcomes.len() as u64, held.outcomes.is_empty()));
    let mut expected: Vec<_> = held.hashes.into_iter().zip(held.outcomes).collect();
    expected.sort_by_key(|(hash, _)| *hash);
    for _ in 0..2 {
        let mut walked = Vec::new();
        for part in spilled.parts() {
            let part = part.unwrap();
            assert!(!part.hashes.is_empty() && part.hashes.len() == part.outcomes.len());
            walked.extend(part.hashes.into_iter().zip(part.outcomes));
        }
        assert_eq!(walked, expected);
    }
    true
}

/// Times that may have decimal commas, ids, and bodies of some length.
fn doubtful() -> impl Strategy<Value = String> {
    let time = prop_oneof!["[1-9],[0-9]{3}", "[0-9]{1,3}\\.[0-9]{2}", "[0-9],[0-9]{2}", "1,234,567", "12"];
    let case = (time, "[a-d]", 0..3_usize, 0..600_usize).prop_map(|(time, name, id, length)| {
        let id = ["", "<properties><property name='test_id' value='C7'/></properties>", "<error/>"][id];
        let text = "x".repeat(length);
        format!("<testcase name='{name}' time='{time}'>{id}<system-out>{text}</system-out></testcase>")
    });
    let failed = ("[a-d]", 0..3000_usize).prop_map(|(name, length)| {
        format!("<testcase name='{name}'><failure>{}</failure></testcase>", "y".repeat(length))
    });
    prop::collection::vec(prop_oneof![3 => case, 1 => failed], 0..8)
        .prop_map(|cases| format!("<testsuite name='times'>{}</testsuite>", cases.concat()))
}

/// One file: whole, cut off, or with several documents.
fn content() -> impl Strategy<Value = String> {
    let one = prop_oneof![3 => report(), 1 => doubtful()];
    prop_oneof![
        4 => one.clone(),
        1 => (one.clone(), 0.0..1.0_f64).prop_map(|(report, at)| {
            let cut = (0..=(report.len() as f64 * at) as usize).rev().find(|at| report.is_char_boundary(*at));
            report[..cut.unwrap_or(0)].to_owned()
        }),
        1 => prop::collection::vec(one, 2..4).prop_map(|documents| documents.concat()),
    ]
}

/// Names with repeats among them, files of attempts too.
fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a/r.xml",
        "b/r.xml",
        "c.xml",
        "a/test_attempts/attempt_1.xml",
        "test_attempts/attempt_2.xml",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_files_in_any_order_come_to_the_same_both_ways(
        contents in prop::collection::vec(content(), 1..4),
        picks in prop::collection::vec((name(), any::<prop::sample::Index>()), 1..7),
        partial in any::<bool>(),
        memory_bytes in prop::sample::select(vec![0, 1000, 3000, 10_000, 400_000, 16_000_000]),
    ) {
        // The same content under several names, or several times under one: reports found twice.
        let files: Vec<(&str, &[u8])> = picks.iter().map(|(name, pick)| (*name, pick.get(&contents).as_bytes())).collect();
        let spilled = same(&files, partial, memory_bytes);
        prop_assert!(!spilled || memory_bytes < 16_000_000);
    }
}

#[test]
fn the_corpus_comes_to_the_same_both_ways() {
    let Some(corpus) = shared_corpus() else { return };
    let mut all = Vec::new();
    for entry in std::fs::read_dir(corpus.join("junit")).unwrap() {
        let path = entry.unwrap().path();
        all.push((path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()));
    }
    let files: Vec<(&str, &[u8])> = all.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    assert!(files.len() >= 90);
    for file in &files {
        same(&[*file], true, 0);
    }
    for memory_bytes in [0, 100_000, 2_000_000] {
        assert!(same(&files, true, memory_bytes));
        assert!(same(&files, false, memory_bytes));
    }
    let turned: Vec<_> = files.iter().rev().copied().collect();
    assert!(same(&turned, true, 500_000));
}

/// Cases of one name, with `text` in each.
fn of_one_name(count: usize, text: &str) -> String {
    let case = format!("<testcase name='only'><failure>{text}</failure></testcase>\n");
    format!("<testsuite name='s'>{}</testsuite>", case.repeat(count))
}

#[test]
fn one_name_for_everything_is_folded_through_the_window() {
    // All entries in one partition, of some mebibytes, and not in the order of files.
    let (a, b) = (of_one_name(900, &"a".repeat(3000)), of_one_name(800, &"b".repeat(3000)));
    let files: [(&str, &[u8]); 3] = [("b.xml", b.as_bytes()), ("a.xml", a.as_bytes()), ("c.xml", b"<testsuite/>")];
    assert!(same(&files, false, 10_000));
    assert!(same(&files, false, 3_000_000));
}

/// Names of tests in suite `s` whose items share a partition, found by trying.
fn neighbours(count: usize) -> impl Iterator<Item = String> {
    let names = (0..).map(|i| format!("t{i}")).filter(|name| {
        let hash = domain::ItemName::new(["s"], None, name).hash();
        hash.0[0] == 7 && hash.0[1] < 0x40
    });
    names.take(count)
}

/// A suite of these tests, each with `rest` after its name.
fn suite(names: impl Iterator<Item = String>, rest: &str) -> String {
    let cases: Vec<String> = names.map(|name| format!("<testcase name='{name}' {rest}\n")).collect();
    format!("<testsuite name='s'>{}</testsuite>", cases.concat())
}

#[test]
fn few_repeats_among_many_items_are_folded_beside_them() {
    let (attempt, last) = (suite(neighbours(2), "><error/></testcase>"), suite(neighbours(60), "time='1.5'/>"));
    let files: [(&str, &[u8]); 2] = [("r.xml", last.as_bytes()), ("test_attempts/attempt_1.xml", attempt.as_bytes())];
    assert!(same(&files, false, 0));
    let (gathering, _) = gather(&files, false, 0);
    let Gathered::Spilled(spilled) = gathering.outcomes else { unreachable!() };
    assert_eq!((spilled.len(), spilled.counts().flaky), (60, 2));
}

#[test]
fn what_a_time_means_is_found_out_after_it_was_spilled() {
    let report = |sure| {
        let times = ["1,234", "2,345", sure].into_iter().enumerate();
        let cases: Vec<String> = times.map(|(i, time)| format!("<testcase name='t{i}' time='{time}'/>")).collect();
        format!("<testsuite name='s'>{}</testsuite>", cases.concat())
    };
    for (sure, first_us) in [("0,25", 1_234_000), ("0.25", 1_234_000_000), ("3,456", 1_234_000_000)] {
        let report = report(sure);
        for memory_bytes in [0, 300, 500, 700] {
            assert!(same(&[("r.xml", report.as_bytes())], false, memory_bytes), "{sure} {memory_bytes}");
        }
        let (gathering, _) = gather(&[("r.xml", report.as_bytes())], false, 0);
        let Gathered::Spilled(spilled) = gathering.outcomes else { unreachable!() };
        let outcomes: Vec<_> = spilled.parts().flat_map(|part| part.unwrap().outcomes).collect();
        let first = outcomes.iter().find(|outcome| outcome.item.name() == "t0").unwrap();
        assert_eq!(first.duration_us.map(|us| us.0), Some(first_us), "{sure}");
    }
}

#[test]
fn a_record_may_be_larger_than_the_window() {
    let rerun = format!("<rerunFailure>{}</rerunFailure>", "r".repeat(60_000));
    let report = suite(neighbours(3), &format!("><failure/>{}</testcase>", rerun.repeat(50)));
    assert!(same(&[("r.xml", report.as_bytes())], false, 0));
    let twice = format!("<testsuites>{report}{report}</testsuites>");
    assert!(same(&[("r.xml", twice.as_bytes())], false, 0));
}

#[test]
fn large_records_make_small_parts() {
    let text = "z".repeat(60_000);
    let report = suite(neighbours(200), &format!("><failure>{text}</failure></testcase>"));
    assert!(same(&[("r.xml", report.as_bytes())], false, 1_000_000));
    let (gathering, _) = gather(&[("r.xml", report.as_bytes())], false, 1_000_000);
    let Gathered::Spilled(spilled) = gathering.outcomes else { unreachable!() };
    let lengths: Vec<usize> = spilled.parts().map(|part| part.unwrap().outcomes.len()).collect();
    assert_eq!(lengths.iter().sum::<usize>(), 200);
    assert!(lengths.iter().all(|length| length * 60_000 <= 4 * 1024 * 1024), "{lengths:?}");
    let text_bytes = 200.0 * 60_100.0;
    assert!((spilled.encoded_bytes() as f64 / text_bytes - 1.0).abs() < 0.01);
}

#[test]
fn a_folder_that_cannot_be_used_is_named_and_nothing_is_lost() {
    let folder = tempdir().unwrap();
    let gone = folder.path().join("gone");
    let spill = Spill { folder: gone.clone(), memory_bytes: 2000 };
    let mut collector = Collector::spilling(ReadOptions::staged(), spill);
    let small = of_one_name(1, "");
    collector.add("small.xml", small.as_bytes()).unwrap();
    let error = collector.add("large.xml", of_one_name(100, "text").as_bytes()).unwrap_err();
    assert!(matches!(&error, ReportError::Spill { folder, .. } if Path::new(folder) == gone));
    assert!(error.to_string().contains("nothing was sent"), "{error}");
    let gathering = collector.gather().unwrap();
    assert_eq!((gathering.summary.outcomes, &gathering.files[..]), (1, &["small.xml".to_owned()][..]));
}

#[test]
fn the_bound_of_outcomes_is_that_of_the_options() {
    assert!(ReadOptions::staged().outcomes_max > ReadOptions::standard().outcomes_max);
    let folder = tempdir().unwrap();
    let options = ReadOptions { outcomes_max: 5, ..ReadOptions::staged() };
    let spill = Spill { folder: folder.path().to_owned(), memory_bytes: 0 };
    let mut collector = Collector::spilling(options, spill);
    collector.add("a.xml", of_one_name(3, "").as_bytes()).unwrap();
    let error = collector.add("b.xml", of_one_name(3, "").as_bytes()).unwrap_err();
    assert!(matches!(error, ReportError::OutcomesLimit { limit: 5, .. }));
    collector.add("c.xml", of_one_name(2, "").as_bytes()).unwrap();
    let gathering = collector.gather().unwrap();
    let Gathered::Spilled(spilled) = gathering.outcomes else { unreachable!() };
    assert_eq!((spilled.len(), gathering.summary.outcomes), (5, 5));
}
