//! Files that reports name beside items: found at the right item, in memory as out of a file, and only if wanted.

use std::collections::BTreeMap;

use reports::{Attachment, Collector, Gathered, ReadOptions, Spill};

const REPORT: &str = r#"<testsuites><testsuite name="s">
<system-out>[[ATTACHMENT|of-the-suite.png]]</system-out>
<testcase classname="c" name="plain"><failure message="no"/>
<system-out>before <b> [[ATTACHMENT|shots/a &amp; b.png]]
</system-out><system-err><![CDATA[<x>[[ATTACHMENT|/abs/c.log]]]]></system-err></testcase>
<testcase classname="c" name="named"><properties><property name="testrail_attachment" value="d.txt"/>
<property name="testrail_attachment_2" value="e.txt"/></properties></testcase>
<testcase classname="c" name="rerun"><rerunFailure message="1"><system-out>[[ATTACHMENT|first.png]]</system-out>
</rerunFailure><system-out>[[ATTACHMENT|second.png]][[ATTACHMENT|second.png]]</system-out></testcase>
<testcase classname="c" name="twin"><system-out>[[ATTACHMENT|one.png]]</system-out></testcase>
<testcase classname="c" name="twin"><system-out>[[ATTACHMENT|two.png]]</system-out></testcase>
<testcase classname="c" name="none"><system-out>[[ATTACHMENT|]]</system-out></testcase>
</testsuite></testsuites>"#;

fn wanted() -> ReadOptions {
    ReadOptions { attachments: true, ..ReadOptions::standard() }
}

/// Paths by the item as people read it.
fn by_item(hashes: &[domain::ItemHash], names: &[String], found: &[Attachment]) -> BTreeMap<String, Vec<String>> {
    let mut by_item = BTreeMap::<String, Vec<String>>::new();
    for one in found {
        let at = hashes.iter().position(|hash| *hash == one.item).unwrap();
        by_item.entry(names[at].clone()).or_default().push(one.path.clone());
    }
    by_item
}

fn held(files: &[(&str, &str)]) -> (BTreeMap<String, Vec<String>>, Vec<Attachment>) {
    let mut collector = Collector::new(wanted());
    for (name, text) in files {
        collector.add(name, text.as_bytes()).unwrap();
    }
    let collected = collector.finish();
    let names: Vec<String> = collected.outcomes.iter().map(|outcome| outcome.item.to_string()).collect();
    (by_item(&collected.hashes, &names, &collected.attachments), collected.attachments)
}

fn spilled(files: &[(&str, &str)]) -> Vec<Attachment> {
    let folder = tempfile::tempdir().unwrap();
    let mut collector = Collector::spilling(wanted(), Spill { folder: folder.path().to_owned(), memory_bytes: 0 });
    for (name, text) in files {
        collector.add(name, text.as_bytes()).unwrap();
    }
    let gathering = collector.gather().unwrap();
    assert!(matches!(gathering.outcomes, Gathered::Spilled(_)));
    gathering.attachments
}

#[test]
fn each_item_gets_the_files_that_its_element_names() {
    let (found, list) = held(&[("r/a.xml", REPORT)]);
    let paths = |item: &str| found.iter().find(|(name, _)| name.contains(item)).map(|(_, paths)| paths.join(" "));
    assert_eq!(paths("plain").unwrap(), "/abs/c.log shots/a & b.png");
    assert_eq!(paths("named").unwrap(), "d.txt e.txt");
    assert_eq!(paths("rerun").unwrap(), "first.png second.png");
    let twins: Vec<String> = found.iter().filter(|(name, _)| name.contains("twin")).map(|(_, p)| p.join(" ")).collect();
    assert_eq!(twins, ["one.png", "two.png"]);
    assert!(!format!("{list:?}").contains("of-the-suite"), "{list:?}");
    assert!(list.iter().all(|one| one.report == "r/a.xml" && !one.path.is_empty()));
}

#[test]
fn out_of_a_file_they_are_the_same() {
    let again = REPORT.replace("named", "other").replace("one.png", "three.png");
    // A retry, a file that is there twice, and items that are there once.
    let files = [("r/b.xml", again.as_str()), ("r/a.xml", REPORT), ("r/copy.xml", REPORT)];
    let (_, list) = held(&files);
    assert!(list.len() > 12, "{list:?}");
    assert_eq!(spilled(&files), list);
}

#[test]
fn nothing_is_looked_for_unless_it_is_wanted_and_nothing_else_changes() {
    let mut plain = Collector::new(ReadOptions::standard());
    plain.add("r/a.xml", REPORT.as_bytes()).unwrap();
    let plain = plain.finish();
    assert!(plain.attachments.is_empty());
    let mut looked = Collector::new(wanted());
    looked.add("r/a.xml", REPORT.as_bytes()).unwrap();
    let looked = looked.finish();
    assert_eq!((plain.outcomes, plain.hashes, plain.warnings), (looked.outcomes, looked.hashes, looked.warnings));
}

#[test]
fn a_mark_is_found_wherever_it_stands_in_long_output() {
    // Around the size of the reader's window, in text and in CDATA.
    for length in (131_000..131_140).step_by(7) {
        let filler = "x".repeat(length);
        for (open, close) in [("", ""), ("<![CDATA[", "]]>")] {
            let text = format!(
                "<testsuite><testcase name='a'><system-out>{open}{filler}[[ATTACHMENT|shot.png]]{close}</system-out>\
                 </testcase></testsuite>"
            );
            let (found, _) = held(&[("a.xml", &text)]);
            assert_eq!(found.into_values().collect::<Vec<_>>(), [["shot.png"]], "{length} {open}");
        }
    }
}

#[test]
fn more_than_are_kept_are_said() {
    let case = |n: usize| format!("<testcase name='t{n}'><system-out>[[ATTACHMENT|{n}.png]]</system-out></testcase>");
    let cases: String = (0..domain::limits::ATTACHMENTS_MAX + 3).map(case).collect();
    let mut collector = Collector::new(wanted());
    collector.add("a.xml", format!("<testsuite>{cases}</testsuite>").as_bytes()).unwrap();
    let collected = collector.finish();
    assert_eq!(collected.attachments.len(), domain::limits::ATTACHMENTS_MAX);
    assert!(
        collected.warnings[0].to_string().contains("more than 10000 attachments are named"),
        "{:?}",
        collected.warnings
    );
}

#[test]
fn a_path_that_no_file_can_have_is_none_wherever_it_stands() {
    let long = "x".repeat(domain::limits::ATTACHMENT_PATH_BYTES_MAX + 1);
    let property = |path: &str| format!("<property name='testrail_attachment' value='{path}'/>");
    let text = format!(
        "<testsuite><testcase name='a'><properties>{}{}</properties><system-out>[[ATTACHMENT|{long}]]</system-out></testcase>\
         </testsuite>",
        property(&long),
        property(&long[1..])
    );
    let (found, _) = held(&[("a.xml", &text)]);
    assert_eq!(found.into_values().collect::<Vec<_>>(), [[long[1..].to_owned()]]);
}
