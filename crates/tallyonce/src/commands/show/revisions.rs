//! One push with its revisions and deliveries, for people. Must not judge them.

use std::fmt::Write as _;

use domain::listing::PushReport;

use super::table::columns;
use crate::commands::summary::counted;

/// The push, its revisions, its log.
pub(super) fn render(push: &PushReport) -> String {
    let summary = &push.summary;
    let mut text = format!("push {}\nkey {}\n", summary.push, summary.key);
    let _ = writeln!(text, "project {}  cycle {}  round {}", push.project, push.cycle, push.round);
    let _ = writeln!(text, "counting now  {}", counted(&summary.counts));
    text.push_str("\nrevisions\n");
    let revisions = push.revisions.iter().map(|revision| {
        let result = word(&revision.result);
        let of = revision.of.map(|of| format!(" of {of}")).unwrap_or_default();
        let attempt = revision.ordinal.map(|ordinal| format!("attempt {ordinal}")).unwrap_or_default();
        vec![
            format!("  {}", revision.revision),
            format!("{result}{of}"),
            attempt,
            revision.recorded_at.clone(),
            counted(&revision.counts),
        ]
    });
    columns(&mut text, revisions.collect());
    text.push_str("\ndeliveries\n");
    let log = push.log.iter().map(|delivery| {
        let revision = delivery.revision.map(|revision| format!("revision {revision}")).unwrap_or_default();
        let attempt = delivery.ordinal.map(|ordinal| format!("attempt {ordinal}")).unwrap_or_default();
        let executor = delivery.executor.as_ref().map(ToString::to_string).unwrap_or_default();
        vec![format!("  {}", delivery.at), delivery.result.clone(), revision, attempt, executor]
    });
    columns(&mut text, log.collect());
    text
}

fn word<T: serde::Serialize>(value: &T) -> String {
    let value = serde_json::to_value(value).ok();
    value.as_ref().and_then(|value| value.as_str()).unwrap_or_default().to_owned()
}
