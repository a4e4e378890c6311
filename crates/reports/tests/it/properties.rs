//! Properties over generated reports and arbitrary bytes.

use domain::Outcome;
use proptest::prelude::*;
use reports::Event;

use crate::{collect, events};

/// A piece of a suite.
fn case() -> impl Strategy<Value = String> {
    let name = prop_oneof!["[ab]", "[a-c]&lt;é", "x\\[[0-2]\\]"];
    let body = prop_oneof![
        Just("/>".to_owned()),
        Just("><failure message='m'>text &amp; more</failure></testcase>".to_owned()),
        Just("><error/><system-out><![CDATA[ <x> ]]></system-out></testcase>".to_owned()),
        Just("><skipped/></testcase>".to_owned()),
        Just("><flakyFailure message='f'/></testcase>".to_owned()),
    ];
    (name, "[CD]", 0..3000_u32, body).prop_map(|(name, class, ms, body)| {
        format!("<testcase name=\"{name}\" classname='{class}' time=\"{}.{:03}\"{body}\n", ms / 1000, ms % 1000)
    })
}

pub(crate) fn report() -> impl Strategy<Value = String> {
    let suite = ("[ab]|pytest|C", prop::collection::vec(case(), 0..6))
        .prop_map(|(name, cases)| format!("<testsuite name=\"{name}\">{}</testsuite>", cases.concat()));
    let root = prop_oneof![
        Just("<testsuites>"),
        Just("<testsuites name=\"pytest tests\">"),
        Just("<testsuites name='n' id=''>")
    ];
    (root, prop::collection::vec(suite, 0..4))
        .prop_map(|(root, suites)| format!("<?xml version=\"1.0\"?>\n{root}\n{}</testsuites>", suites.concat()))
}

/// The elements of a file, each as an outcome of its own, and whether it was read to its end.
fn elements(bytes: &[u8]) -> (Vec<Outcome>, bool) {
    let mut elements = Vec::new();
    let (_, error) = events("r.xml", bytes, |event| {
        if let Event::Outcome(raw) = event {
            elements.push(raw.clone().into_outcome());
        }
    });
    (elements, error.is_none())
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = collect(&[("r", &bytes)], true);
    }

    #[test]
    fn markup_soup_never_panics(pieces in prop::collection::vec(
        prop_oneof![
            Just("<testsuite name='a'>"), Just("</testsuite>"), Just("<testsuites>"), Just("</testsuites>"), Just("<testcase name='b'>"),
            Just("</testcase>"), Just("<testcase/>"), Just("<failure>"), Just("</failure>"), Just("<![CDATA["), Just("]]>"), Just("<system-out>"),
            Just("</system-out>"), Just("<!--"), Just("-->"), Just("<?xml version='1.0'?>"), Just("<!DOCTYPE x ["), Just("<!ENTITY a 'b'>"), Just("]>"),
            Just("&a;"), Just("&#27;"), Just("&"), Just("<"), Just(">"), Just("\""), Just("x"), Just("\n"), Just("<time>1,234</time>"), Just("\0"),
            Just("<property name='test_id'>"), Just("</property>"), Just("<rerunError time='1'/>"), Just("<skipped type='todo'/>"),
        ], 0..40)) {
        let text = format!("<testsuite>{}", pieces.concat());
        let (whole, _) = elements(text.as_bytes());
        if let Ok(read) = collect(&[("r", text.as_bytes())], true) {
            prop_assert!(read.summary.outcomes as usize <= whole.len());
        }
    }

    #[test]
    fn a_cut_report_yields_a_prefix_and_says_that_it_is_cut(report in report(), at in 0.0..1.0_f64) {
        let (whole, ended) = elements(report.as_bytes());
        prop_assert!(ended);
        let cut = (report.len() as f64 * at) as usize;
        let (part, ended) = elements(&report.as_bytes()[..cut]);
        prop_assert!(!ended, "cut at {} and nobody noticed", cut);
        prop_assert_eq!(&part[..], &whole[..part.len()]);
    }

    #[test]
    fn any_order_of_files_gives_the_same(reports in prop::collection::vec(report(), 1..5), names in prop::collection::vec("[ab]/[cd]", 5), seed in any::<prop::sample::Index>()) {
        let files: Vec<(&str, &[u8])> = names.iter().map(String::as_str).zip(reports.iter().map(String::as_bytes)).collect();
        let straight = collect(&files, false).unwrap();
        let mut turned = files.clone();
        turned.rotate_left(seed.index(files.len()));
        turned.reverse();
        prop_assert_eq!(straight, collect(&turned, false).unwrap());
    }

    #[test]
    fn no_item_is_there_twice_and_nothing_is_lost(reports in prop::collection::vec(report(), 1..4)) {
        let names = ["a", "b", "c"];
        let files: Vec<(&str, &[u8])> = names.into_iter().zip(reports.iter().map(String::as_bytes)).collect();
        let read = collect(&files, false).unwrap();
        let mut items: Vec<_> = read.outcomes.iter().map(|o| o.item.hash()).collect();
        items.sort_unstable();
        items.dedup();
        prop_assert_eq!(items.len(), read.outcomes.len());
        prop_assert_eq!(read.summary.outcomes, read.outcomes.len() as u64 + read.summary.repeats);
    }
}
