//! Rounds or items as CSV (RFC 4180). Must not lose a value: quotes are doubled, never dropped.

use domain::listing::{CycleReport, ItemReport, RoundReport};

use super::status_word;

const ITEM_HEAD: [&str; 8] = ["item", "variant", "status", "duration_ms", "attempts", "message", "round", "key"];
#[rustfmt::skip]
const ROUND_HEAD: [&str; 14] = [
    "round", "run", "workflow", "authoritative", "complete", "total", "passed", "failed", "errored", "skipped",
    "flaky", "overlaps", "repeats", "recorded_at",
];

/// Items if there are any listed, else rounds.
pub(super) fn render(report: &CycleReport) -> String {
    if let Some(items) = &report.items {
        table(&ITEM_HEAD, items.iter().map(item))
    } else {
        table(&ROUND_HEAD, report.rounds.iter().map(round))
    }
}

fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut text = String::new();
    let head: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
    for row in std::iter::once(head).chain(rows) {
        let cells: Vec<String> = row.into_iter().map(|cell| quoted(&cell)).collect();
        text.push_str(&cells.join(","));
        text.push_str("\r\n");
    }
    text
}

fn item(item: &ItemReport) -> Vec<String> {
    vec![
        item.item.to_string(),
        item.variant.to_string(),
        status_word(item.status, item.flaky).to_owned(),
        item.duration_ms.map(|ms| ms.to_string()).unwrap_or_default(),
        (item.attempts.len() + 1).to_string(),
        item.message.clone().unwrap_or_default(),
        item.round.to_string(),
        item.key.to_string(),
    ]
}

fn round(round: &RoundReport) -> Vec<String> {
    let counts = &round.counts;
    vec![
        round.round.to_string(),
        round.run.to_string(),
        round.workflow.as_ref().map(ToString::to_string).unwrap_or_default(),
        round.authoritative.to_string(),
        round.complete.to_string(),
        counts.total.to_string(),
        counts.passed.to_string(),
        counts.failed.to_string(),
        counts.errored.to_string(),
        counts.skipped.to_string(),
        counts.flaky.to_string(),
        round.overlaps.to_string(),
        round.repeats.to_string(),
        round.recorded_at.clone(),
    ]
}

/// Also what a spreadsheet would take for a formula gets an apostrophe: test names and messages come from anybody.
fn quoted(cell: &str) -> String {
    let formula = cell.starts_with(['=', '+', '@', '\t']) || (cell.starts_with('-') && cell.parse::<f64>().is_err());
    let cell = if formula { format!("'{cell}") } else { cell.to_owned() };
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}
