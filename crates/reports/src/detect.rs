//! Which format a file is, from its content and never from its name: one format, or a reason. Formats that are known
//! but not read yet are called by their names. Must not read any of them.

use std::io::Read;

use crate::error::ReportError;
use crate::formats::beginning;
use crate::xml::{Cursor, Token, XmlError};

/// Text that may stand in front of a report (captured console output), in bytes.
const TEXT_IN_FRONT_BYTES_MAX: usize = 64 * 1024;

/// What was found; the cursor stands before the first root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detected {
    /// JUnit XML.
    Junit {
        /// Text before it was passed over.
        text_in_front: bool,
    },
}

/// Looks at the beginning.
pub(crate) fn detect<R: Read>(name: &str, cursor: &mut Cursor<R>) -> Result<Detected, ReportError> {
    let file = || name.to_owned();
    let ahead = cursor.peek(TEXT_IN_FRONT_BYTES_MAX).map_err(|e| beginning(name, e))?;
    let text = skip_blanks(ahead);
    let blanks = ahead.len() - text.len();
    let Some(first) = text.first() else { return Err(ReportError::Empty { file: file() }) };
    let mut text_in_front = false;
    let skip = if *first == b'<' {
        blanks
    } else if let Some(format) = other_format(text) {
        return Err(ReportError::UnsupportedFormat { file: file(), format: format.to_owned() });
    } else if let Some(at) = document_in(text) {
        text_in_front = true;
        blanks + at
    } else {
        return Err(ReportError::NotAReport { file: file(), found: begins(text) });
    };
    let found = begins(&text[..text.len().min(200)]);
    let report_like = text.starts_with(b"<?xml") || memchr::memmem::find(text, b"<testsuite").is_some();
    cursor.pass(skip);
    root(name, cursor, report_like, &found)?;
    Ok(Detected::Junit { text_in_front })
}

/// Reads up to the root and gives it back; an error unless it is one of ours.
fn root<R: Read>(name: &str, cursor: &mut Cursor<R>, report_like: bool, found: &str) -> Result<(), ReportError> {
    let file = name.to_owned();
    loop {
        match cursor.next() {
            Ok(token @ Token::Start { .. }) => {
                if matches!(cursor.name(), b"testsuites" | b"testsuite" | b"testcase") {
                    cursor.give_back(token);
                    return Ok(());
                }
                return Err(foreign_root(file, cursor));
            }
            Ok(Token::Eof) => {
                return Err(ReportError::NotAReport { file, found: "it holds no XML element".to_owned() });
            }
            Ok(_) => {}
            Err(XmlError::Io(e)) => return Err(beginning(name, e)),
            Err(XmlError::Broken(what)) if report_like => {
                let (line, column) = cursor.position();
                return Err(ReportError::Damaged { file, line, column, what, outcomes_before: 0 });
            }
            Err(XmlError::Broken(_)) => return Err(ReportError::NotAReport { file, found: found.to_owned() }),
        }
    }
}

fn foreign_root<R: Read>(file: String, cursor: &mut Cursor<R>) -> ReportError {
    let root = String::from_utf8_lossy(&cursor.name()[..cursor.name().len().min(60)]).into_owned();
    if root.starts_with("testsuite") {
        let (line, column) = cursor.position();
        let what = format!("the root is <{root}>: a testsuite with something written into its tag");
        return ReportError::Damaged { file, line, column, what, outcomes_before: 0 };
    }
    let space = |part: &[u8]| cursor.attributes().any(|(_, value)| memchr::memmem::find(value, part).is_some());
    let format = match root.as_str() {
        "TestRun" if space(b"TeamTest") => "TRX (Visual Studio test results)",
        "TestRun" => "CppUnit or AUnit XML",
        "test-suite" if space(b"allure") => "Allure 1 XML",
        "test-run" | "test-case" => "NUnit 3 XML",
        "test-suite" if cursor.attribute(b"fullname").is_some() => "NUnit 3 XML",
        "test-results" | "test-suite" => "NUnit 2 XML",
        "assemblies" | "assembly" => "xUnit.net XML",
        "testng-results" => "TestNG XML",
        "robot" => "Robot Framework output",
        "Site" => "CTest XML",
        "TestLog" | "TestResult" | "boost" => "Boost.Test XML",
        "Catch" | "Catch2TestRun" => "Catch2 XML",
        "testExecutions" => "SonarQube generic test data",
        "Result" => "Android CTS XML",
        "TestCase" => "QtTest XML",
        "failsafe-summary" => {
            let found = "a Failsafe summary, which holds no tests; the reports lie beside it".to_owned();
            return ReportError::NotAReport { file, found };
        }
        _ => return ReportError::NotAReport { file, found: format!("an XML document whose root is <{root}>") },
    };
    ReportError::UnsupportedFormat { file, format: format.to_owned() }
}

/// Blank space, byte order marks that were doubled, in front.
fn skip_blanks(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        match text.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) => text = rest,
            None => return text,
        }
    }
}

/// Where a report begins behind other text.
fn document_in(text: &[u8]) -> Option<usize> {
    [&b"<?xml"[..], b"<testsuite"].into_iter().filter_map(|mark| memchr::memmem::find(text, mark)).min()
}

/// A known format that is not XML, by its first bytes.
fn other_format(text: &[u8]) -> Option<&'static str> {
    let has = |mark: &str| memchr::memmem::find(text, mark.as_bytes()).is_some();
    match text {
        [0xb3, ..] => return Some("subunit v2"),
        [b'{' | b'[', ..] => {}
        _ => {
            // Comments may come first.
            let first_line = text.split(|b| *b == b'\n').find(|line| !line.starts_with(b"#"));
            let text = first_line.unwrap_or_default();
            let version = text.get(..11).is_some_and(|head| head.eq_ignore_ascii_case(b"TAP version"));
            let tap = version
                || text.starts_with(b"ok ")
                || text.starts_with(b"not ok")
                || (text.starts_with(b"1..") && text.get(3).is_some_and(u8::is_ascii_digit));
            return tap.then_some("TAP");
        }
    }
    // Marks from most to least telling: the first whose words all occur.
    let table: [(&str, &[&str]); 17] = [
        ("pytest-reportlog", &["\"$report_type\""]),
        ("CTRF", &["\"results\"", "\"tool\"", "\"tests\""]),
        ("Jest JSON", &["\"numTotalTests\""]),
        ("pytest-json-report", &["\"exitcode\"", "\"summary\""]),
        ("Playwright JSON", &["\"config\"", "\"suites\""]),
        ("Mocha JSON", &["\"stats\"", "\"passes\""]),
        ("RSpec JSON", &["\"examples\"", "\"full_description\""]),
        ("Cucumber Messages", &["\"gherkinDocument\""]),
        ("Cucumber Messages", &["\"meta\"", "\"protocolVersion\""]),
        ("Dart test JSON", &["\"protocolVersion\""]),
        ("Cucumber JSON", &["\"elements\"", "\"keyword\""]),
        ("go test -json", &["\"Action\"", "\"Package\""]),
        ("cargo libtest JSON", &["\"type\"", "\"event\""]),
        ("Allure results", &["\"uuid\"", "\"stage\""]),
        ("Allure results", &["\"historyId\""]),
        ("Robot Framework JSON", &["\"generator\"", "Robot"]),
        ("Allure results", &["\"fullName\"", "\"labels\""]),
    ];
    let known = table.iter().find(|(_, marks)| marks.iter().all(|mark| has(mark)));
    known.map(|(format, _)| *format)
}

/// How a text begins, for a message.
fn begins(text: &[u8]) -> String {
    let kinds: [(&[u8], &str); 4] = [
        (b"PK\x03\x04", "a ZIP archive"),
        (b"%PDF", "a PDF document"),
        (b"\x7fELF", "a program"),
        (b"=== RUN", "the console output of go test"),
    ];
    if let Some((_, kind)) = kinds.iter().find(|(magic, _)| text.starts_with(magic)) {
        return (*kind).to_owned();
    }
    let line = text.split(|b| *b == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(&line[..line.len().min(60)]).trim_end().escape_debug().to_string();
    match text.first() {
        Some(b'{' | b'[') => format!("JSON of no known report format, beginning {line:?}").replace("\\\\", "\\"),
        _ => format!("it begins \"{line}\""),
    }
}
