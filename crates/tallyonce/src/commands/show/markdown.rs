//! A cycle as Markdown, for job summaries and comments. Must not let a name break the table it stands in.

use std::fmt::Write as _;

use domain::listing::{CycleReport, ItemReport};
use domain::{Counts, Status};

use super::{marks, status_word};
use crate::announce::escape::markdown as escaped;

/// Headline, rounds, and the listed items, worst first where none were asked for by status.
pub(super) fn render(report: &CycleReport) -> String {
    let mut text = format!("### {} · {}\n\n", escaped(report.project.as_str()), escaped(report.cycle.as_str()));
    text.push_str("| round | total | passed | failed | errored | skipped | flaky | state |\n");
    text.push_str("|---|---:|---:|---:|---:|---:|---:|---|\n");
    row(&mut text, "**headline**", &report.headline, "");
    for round in &report.rounds {
        let name = match &round.run_url {
            Some(url) if url.starts_with("https://") || url.starts_with("http://") => {
                format!("[{}]({})", escaped(round.round.as_str()), url.replace([')', ' '], ""))
            }
            _ => escaped(round.round.as_str()),
        };
        row(&mut text, &name, &round.counts, &marks(round));
    }
    let missing: Vec<String> = report.rounds.iter().flat_map(|r| r.missing.iter().map(|m| escaped(m))).collect();
    if !missing.is_empty() {
        let _ = writeln!(text, "\nMissing: {}", missing.join("; "));
    }
    if let Some(items) = &report.items {
        write_items(&mut text, items);
    }
    text
}

fn row(text: &mut String, name: &str, counts: &Counts, state: &str) {
    let Counts { total, passed, failed, errored, skipped, flaky } = counts;
    let _ = writeln!(text, "| {name} | {total} | {passed} | {failed} | {errored} | {skipped} | {flaky} | {state} |");
}

fn write_items(text: &mut String, items: &[ItemReport]) {
    text.push_str("\n| status | item | variant | ms | message |\n|---|---|---|---:|---|\n");
    for item in items {
        let mark = match item.status {
            Status::Failed | Status::Errored => "❌ ",
            _ if item.flaky => "⚠️ ",
            _ => "",
        };
        let first = item.message.as_deref().and_then(|message| message.lines().next()).unwrap_or_default();
        let _ = writeln!(
            text,
            "| {mark}{} | {} | {} | {} | {} |",
            status_word(item.status, item.flaky),
            escaped(&item.item.to_string()),
            escaped(&item.variant.to_string()),
            item.duration_ms.map(|ms| ms.round().to_string()).unwrap_or_default(),
            escaped(first),
        );
    }
}
