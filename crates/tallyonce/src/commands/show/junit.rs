//! Items as `JUnit` XML: suites nested as the items' own, earlier attempts as reruns. Must not invent what is not recorded.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use domain::listing::{CycleReport, ItemReport};
use domain::{Attempt, Status};

#[derive(Default)]
struct Suite<'a> {
    suites: BTreeMap<&'a str, Suite<'a>>,
    items: Vec<&'a ItemReport>,
}

/// One document.
pub(super) fn render(report: &CycleReport) -> String {
    let mut top = Suite::default();
    for item in report.items.iter().flatten() {
        let mut suite = &mut top;
        for name in item.item.suite() {
            suite = suite.suites.entry(name).or_default();
        }
        suite.items.push(item);
    }
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(text, "<testsuites name=\"{}\">", escaped(report.cycle.as_str()));
    if !top.items.is_empty() {
        write_suite(&mut text, "", &Suite { suites: BTreeMap::new(), items: top.items }, 1);
    }
    for (name, suite) in &top.suites {
        write_suite(&mut text, name, suite, 1);
    }
    text.push_str("</testsuites>\n");
    text
}

fn write_suite(text: &mut String, name: &str, suite: &Suite<'_>, depth: usize) {
    let indent = "  ".repeat(depth);
    let _ = writeln!(text, "{indent}<testsuite name=\"{}\" {}>", escaped(name), totals(&suite.items));
    for (name, inner) in &suite.suites {
        write_suite(text, name, inner, depth + 1);
    }
    for item in &suite.items {
        write_case(text, item, depth + 1);
    }
    let _ = writeln!(text, "{indent}</testsuite>");
}

fn totals(items: &[&ItemReport]) -> String {
    let count = |status| items.iter().filter(|item| item.status == status).count();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        items.len(),
        count(Status::Failed),
        count(Status::Errored),
        count(Status::Skipped)
    )
}

fn write_case(text: &mut String, item: &ItemReport, depth: usize) {
    let indent = "  ".repeat(depth);
    let variant = if item.variant.is_empty() { String::new() } else { format!(" [{}]", item.variant) };
    let _ = write!(text, "{indent}<testcase name=\"{}{}\"", escaped(item.item.name()), escaped(&variant));
    if let Some(class) = item.item.class() {
        let _ = write!(text, " classname=\"{}\"", escaped(class));
    }
    if let Some(ms) = item.duration_ms {
        let _ = write!(text, " time=\"{:.3}\"", ms / 1000.0);
    }
    let (failure, rerun) = match item.status {
        Status::Passed => (None, ("flakyFailure", "flakyError")),
        Status::Failed => (Some("failure"), ("rerunFailure", "rerunError")),
        Status::Errored => (Some("error"), ("rerunFailure", "rerunError")),
        Status::Skipped => (Some("skipped"), ("rerunFailure", "rerunError")),
    };
    let bad: Vec<&Attempt> = item.attempts.iter().filter(|attempt| attempt.status.is_bad()).collect();
    if failure.is_none() && bad.is_empty() {
        text.push_str("/>\n");
        return;
    }
    text.push_str(">\n");
    if let Some(element) = failure {
        write_body(text, element, item.message.as_deref(), depth + 1);
    }
    for attempt in bad {
        let element = if attempt.status == Status::Errored { rerun.1 } else { rerun.0 };
        write_body(text, element, attempt.message.as_deref(), depth + 1);
    }
    let _ = writeln!(text, "{indent}</testcase>");
}

fn write_body(text: &mut String, element: &str, message: Option<&str>, depth: usize) {
    let indent = "  ".repeat(depth);
    let first = message.and_then(|message| message.lines().next()).unwrap_or_default();
    let _ = write!(text, "{indent}<{element} message=\"{}\"", escaped(first));
    match message.filter(|message| message.lines().nth(1).is_some()) {
        Some(message) => {
            let _ = writeln!(text, ">{}</{element}>", escaped(message));
        }
        None => text.push_str("/>\n"),
    }
}

/// For attributes and text; what XML cannot hold becomes a replacement character.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
