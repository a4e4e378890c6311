//! Bad input of every kind: an error that says where and what, or bounded memory, and never "0 tests, all green".

use std::io::{self, Read, Write};

use domain::limits;
use reports::{Collector, ReadOptions, ReportError};

use crate::{collect, events, shared_corpus};

fn error(bytes: &[u8]) -> ReportError {
    let error = collect(&[("dir/r.xml", bytes)], false).unwrap_err();
    assert_eq!(error.file(), "dir/r.xml");
    assert!(error.to_string().starts_with("dir/r.xml"), "{error}");
    error
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn nothing_is_no_report() {
    for bytes in [&b""[..], b"  \n\n", b"\xef\xbb\xbf\n"] {
        assert!(matches!(error(bytes), ReportError::Empty { .. }));
    }
}

#[test]
fn other_things_are_called_by_their_names() {
    let table: [(&[u8], &str); 16] = [
        (b"<TestRun xmlns=\"http://microsoft.com/schemas/VisualStudio/TeamTest/2010\"/>", "TRX"),
        (b"<TestRun><FailedTests/></TestRun>", "CppUnit"),
        (b"<?xml version=\"1.0\"?><!-- c --><test-run id=\"2\"/>", "NUnit 3"),
        (b"<test-results name=\"x\"/>", "NUnit 2"),
        (b"<assemblies/>", "xUnit.net"),
        (b"<testng-results/>", "TestNG"),
        (b"<robot generator=\"Robot 7\"/>", "Robot"),
        (b"<Catch2TestRun/>", "Catch2"),
        (b"<a:test-suite xmlns:a=\"urn:model.allure.qatools.yandex.ru\"/>", "Allure 1"),
        (b"TAP version 14\n1..1\nok 1\n", "TAP"),
        (b"not ok 1 - x\n", "TAP"),
        (b"\xb3\x29\x01\x0c", "subunit"),
        (b"{\"results\":{\"tool\":{},\"tests\":[]}}", "CTRF"),
        (b"{\"Time\":\"x\",\"Action\":\"run\",\"Package\":\"p\"}\n", "go test"),
        (b"{ \"type\": \"suite\", \"event\": \"started\" }\n", "libtest"),
        (b"{\"numTotalTests\":1}", "Jest"),
    ];
    for (bytes, format) in table {
        let error = error(bytes);
        assert!(matches!(error, ReportError::UnsupportedFormat { .. }), "{format}: {error}");
        assert!(error.to_string().contains(format), "{error}");
    }
}

#[test]
fn foreign_files_are_refused_with_what_was_found() {
    let table: [(&[u8], &str); 6] = [
        (b"this is not XML", "it begins \"this is not XML\""),
        (b"<html><body/></html>", "<html>"),
        (b"<failsafe-summary/>", "lie beside it"),
        (b"PK\x03\x04rest", "ZIP"),
        (b"{\"answer\": 42}", "no known report format"),
        (&[0_u8; 4096], "it begins"),
    ];
    for (bytes, found) in table {
        let error = error(bytes);
        assert!(matches!(error, ReportError::NotAReport { .. }), "{error}");
        assert!(error.to_string().contains(found), "{error}");
    }
}

#[test]
fn damage_names_its_place_and_what_was_readable() {
    let table: [(&str, u64, u64, &str); 9] = [
        ("<testsuite>\n<testcase name='a'/>\n<testcase name='b'", 3, 1, "inside a tag"),
        ("<testsuite>\n<testcase name='a'/>\n<testcase name='b'><failure>x", 3, 1, "inside <failure>"),
        ("<testsuite>\n<testcase name='a'/>\n", 3, 1, "inside <testsuite>"),
        ("<testsuite>\n<testcase name='a'/>\n<testcase></testsuite>", 3, 1, "</testsuite> where <testcase> is open"),
        (
            "<testsuite>\n<testcase name='a'/>\n<testcase><failure> <Null> </failure></testcase></testsuite>",
            3,
            1,
            "<Null>",
        ),
        ("<testsuite>\n<testcase name='a'/>\n<testcase name=b/></testsuite>", 3, 1, "without quotes"),
        ("<testsuite>\n<testcase name='a'/>\n<testcase loose text='b'/></testsuite>", 3, 1, "loose"),
        ("<testsuite>\n<testcase name='a'/>\n<system-out><![CDATA[ never ended", 3, 1, "CDATA"),
        ("<testsuite>\n<testcase name='a'/>\n a < b </testsuite>", 3, 1, "bare '<'"),
    ];
    for (text, at_line, before, words) in table {
        let ReportError::Damaged { line, outcomes_before, what, .. } = error(text.as_bytes()) else {
            panic!("{text}");
        };
        assert_eq!((line, outcomes_before), (at_line, before), "{text}: {what}");
        assert!(what.contains(words), "{text}: {what}");
        let kept = collect(&[("r.xml", text.as_bytes())], true).unwrap();
        assert_eq!((kept.outcomes.len(), kept.damage.len(), kept.summary.damaged), (1, 1, 1));
        assert_eq!(kept.damage[0].outcomes_before, 1);
    }
    let root = error(b"<?xml version=\"1.0\"?>\n<testsuitesloose text\n>");
    assert!(matches!(root, ReportError::Damaged { line: 2, outcomes_before: 0, .. }), "{root}");
}

#[test]
fn a_refused_file_leaves_nothing_behind() {
    let mut collector = Collector::new(ReadOptions::standard());
    collector.add("bad.xml", &b"<testsuite><testcase name='a'/>"[..]).unwrap_err();
    collector.add("good.xml", &b"<testsuite><testcase name='b'/></testsuite>"[..]).unwrap();
    let read = collector.finish();
    assert_eq!((read.summary.outcomes, read.files), (1, vec!["good.xml".to_owned()]));
}

#[test]
fn entities_are_never_expanded() {
    let bomb = b"<!DOCTYPE t [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]>\n<testsuite name='&b;'><testcase name='x'/></testsuite>";
    assert!(matches!(error(bomb), ReportError::Dtd { line: 2, .. }));
    let file = b"<!DOCTYPE t [<!ENTITY f SYSTEM \"file:///etc/passwd\">]><testsuite><testcase><failure>&f;</failure></testcase></testsuite>";
    assert!(matches!(error(file), ReportError::Dtd { .. }));
    let unused = b"<!DOCTYPE t [<!ENTITY f SYSTEM \"file:///etc/passwd\">]><testsuite><testcase name='a'/></testsuite>";
    assert_eq!(collect(&[("r.xml", unused)], false).unwrap().outcomes.len(), 1);
    let endless = [b"<!DOCTYPE t [".to_vec(), vec![b'x'; 100_000], b"]><testsuite/>".to_vec()].concat();
    assert!(matches!(error(&endless), ReportError::Damaged { .. } | ReportError::NotAReport { .. }));
}

#[test]
fn compression_is_undone_and_bounded() {
    let report = b"<testsuite><testcase name='a'/></testsuite>";
    for bytes in [gzip(report), zstd::encode_all(&report[..], 3).unwrap()] {
        assert_eq!(collect(&[("r.xml.gz", &bytes)], false).unwrap().outcomes.len(), 1);
    }
    let mut big = b"<testsuite><testcase name='a'/><!--".to_vec();
    big.resize(4 << 20, b' ');
    let bomb = gzip(&big);
    let mut collector = Collector::new(ReadOptions { inflated_bytes_max: 1 << 20, ..ReadOptions::standard() });
    assert!(matches!(collector.add("r.xml", &bomb[..]), Err(ReportError::TooLarge { limit: 1_048_576, .. })));
    assert!(matches!(error(b"\x1f\x8b\x08\x00broken from the start"), ReportError::BadCompression { .. }));
    let mut noise = b"<testsuite>".to_vec();
    for i in 0..20_000_u64 {
        noise.extend(format!("<testcase name='{:x}'/>", i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).bytes());
    }
    noise.extend(b"</testsuite>");
    let whole = gzip(&noise);
    let cut = collect(&[("r.xml", &whole[..whole.len() / 2])], true).unwrap();
    assert!(cut.outcomes.len() > 1000 && cut.damage.len() == 1, "{:?}", cut.damage);
}

#[test]
fn outcomes_are_bounded_over_all_files() {
    let two = b"<testsuite><testcase name='a'/><testcase name='b'/></testsuite>";
    let one = b"<testsuite><testcase name='c'/></testsuite>";
    let mut collector = Collector::new(ReadOptions { outcomes_max: 3, ..ReadOptions::standard() });
    collector.add("1", &two[..]).unwrap();
    assert!(matches!(collector.add("2", &two[..]), Err(ReportError::OutcomesLimit { limit: 3, .. })));
    collector.add("3", &one[..]).unwrap();
    assert_eq!(collector.finish().outcomes.len(), 3);
}

#[test]
fn hostile_tags_are_bounded() {
    let giant = [b"<testsuite><testcase name='".to_vec(), vec![b'a'; 20 << 20], b"'/></testsuite>".to_vec()].concat();
    assert!(matches!(error(&giant), ReportError::Damaged { line: 1, .. }));
    let many = format!("<testsuite><testcase {}/></testsuite>", "a='' ".repeat(1000));
    assert!(matches!(error(many.as_bytes()), ReportError::Damaged { .. }));
    let deep = "<testsuite name='s'>".repeat(limits::NESTING_MAX + 1);
    let ReportError::Damaged { what, .. } = error(deep.as_bytes()) else { panic!() };
    assert!(what.contains("nested"), "{what}");
}

/// Text between a head and a tail, made up while it is read.
struct Long {
    head: &'static [u8],
    left: u64,
    tail: &'static [u8],
}

impl Read for Long {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !self.head.is_empty() {
            return self.head.read(into);
        }
        if self.left == 0 {
            return self.tail.read(into);
        }
        let n = into.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        into[..n].fill(b'x');
        self.left -= n as u64;
        Ok(n)
    }
}

#[test]
fn texts_of_any_length_take_bounded_memory() {
    let long = |head, left, tail| Long { head, left, tail };
    let mut collector = Collector::new(ReadOptions::standard());
    let failure =
        long(b"<testsuite><testcase name='a'><failure>head ", 2 << 30, b" tail</failure></testcase></testsuite>");
    collector.add("failure.xml", failure).unwrap();
    let output =
        long(b"<testsuite><testcase name='b'/><system-out><![CDATA[", 1 << 30, b"]]></system-out></testsuite>");
    collector.add("output.xml", output).unwrap();
    let comment = long(b"<testsuite><testcase name='c'/><!--", 1 << 28, b"--></testsuite>");
    collector.add("comment.xml", comment).unwrap();
    let read = collector.finish();
    assert_eq!((read.outcomes.len(), read.summary.cut), (3, 1));
    let message = read.outcomes.iter().find_map(|o| o.message.as_ref()).unwrap();
    assert!(message.len() <= limits::TEXT_BYTES_MAX);
    assert!(message.starts_with("head x") && message.ends_with("x tail") && message.contains("bytes cut"));
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak_kib = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
        let peak_kib: u64 = peak_kib.trim().trim_end_matches(" kB").parse().unwrap();
        // The whole test process, other tests at the same time included.
        assert!(peak_kib < 256 * 1024, "{peak_kib} KiB");
    }
}

#[test]
fn what_is_no_report_in_the_corpus_is_refused() {
    let Some(corpus) = shared_corpus() else { return };
    for folder in [
        "not-a-report",
        "trx",
        "nunit2",
        "nunit3",
        "xunit",
        "testng",
        "robot",
        "catch2-xml",
        "boost-test",
        "ctest-xml",
        "other",
        "tap",
        "subunit",
        "ctrf",
        "go-test-json",
        "libtest-json",
        "jest-json",
        "mocha-json",
        "rspec-json",
        "pytest-json",
        "pytest-reportlog",
        "playwright-json",
        "cucumber-json",
        "cucumber-messages",
        "dart-json",
        "allure1",
    ] {
        for entry in std::fs::read_dir(corpus.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            let name = path.display().to_string();
            let (outcomes, error) = events(&name, &bytes, |_| {});
            assert_eq!(outcomes, 0, "{name}");
            let error = error.unwrap_or_else(|| panic!("{name}: read as an empty report"));
            if !matches!(error, ReportError::UnsupportedFormat { .. }) {
                println!("{error}");
            }
        }
    }
}

#[test]
fn a_long_name_is_cut_to_one_that_stays_the_same() {
    let name = "parameter ".repeat(100_000);
    let report =
        |name: &str| format!("<testsuite name='s'><testcase name='{name}'/><testcase name='{name}x'/></testsuite>");
    let read = collect(&[("r.xml", report(&name).as_bytes())], false).unwrap();
    assert_eq!((read.outcomes.len(), read.warnings.len()), (2, 0), "two long names never meet");
    assert_eq!(read.outcomes[0].item, domain::ItemName::new(["s"], None, &name));
}

#[test]
fn what_is_said_is_bounded() {
    let documents = "<testsuite tests='9'><testcase name='a'/></testsuite>\n".repeat(5000);
    let read = collect(&[("r.xml", documents.as_bytes())], false).unwrap();
    assert_eq!((read.outcomes.len(), read.summary.outcomes), (1, 1));
    assert_eq!(read.warnings.len(), 2, "{:?}", read.warnings);
}
