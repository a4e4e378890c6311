//! A cycle for people at a terminal. Must not be read by machines: `json` and `csv` are for them.

use std::fmt::Write as _;

use domain::listing::{CycleReport, ItemReport, RoundReport};

use super::{marks, status_word};
use crate::commands::summary::counted;

/// Headline, rounds with their shards and pushes, and the listed items.
pub(super) fn render(report: &CycleReport) -> String {
    let mut text = format!("project {}  cycle {}\n", report.project, report.cycle);
    let none_yet = report.headline.total == 0 && !report.rounds.iter().any(|round| round.authoritative);
    let _ = if none_yet {
        writeln!(text, "headline  none yet: it takes a complete round, or `tallyonce close`")
    } else {
        writeln!(text, "headline  {}", counted(&report.headline))
    };
    if report.not_seen_since > 0 {
        let _ = writeln!(text, "not seen since, and not counted: {}", report.not_seen_since);
    }
    for round in &report.rounds {
        write_round(&mut text, round);
    }
    if let Some(items) = &report.items {
        text.push('\n');
        write_items(&mut text, items);
    }
    text
}

fn write_round(text: &mut String, round: &RoundReport) {
    let _ = writeln!(text, "\nround {}  ({})", round.round, marks(round));
    let _ = writeln!(text, "  {}", counted(&round.counts));
    let workflow = round.workflow.as_ref().map(|w| format!("workflow {w}, ")).unwrap_or_default();
    let _ = writeln!(text, "  {workflow}first recorded {}", round.recorded_at);
    if let Some(url) = &round.run_url {
        let _ = writeln!(text, "  {url}");
    }
    if round.overlaps + round.repeats > 0 {
        let _ = writeln!(
            text,
            "  in more than one push, counted once: {}; repeated deliveries, not counted: {}",
            round.overlaps, round.repeats
        );
    }
    if round.overlaps > 0 {
        text.push_str("  where they ran under different configurations, tell them apart with --variant NAME=VALUE\n");
    }
    for missing in &round.missing {
        let _ = writeln!(text, "  missing: {missing}");
    }
    let shards = round.shards.iter().map(|shard| {
        let job = shard.job.as_ref().map_or_else(|| "(no job)".to_owned(), ToString::to_string);
        let of = shard.total.map(|total| format!("/{total}")).unwrap_or_default();
        vec![format!("  {job}"), shard.variant.to_string(), format!("seen {}{of}", shard.seen)]
    });
    columns(text, shards.collect());
    let pushes = round.pushes.iter().map(|push| {
        let state = serde_json::to_value(push.state).ok();
        let state = state.as_ref().and_then(|s| s.as_str()).unwrap_or_default().to_owned();
        let late = if push.late { " (late)" } else { "" };
        vec![
            format!("  {state}{late}"),
            format!("revision {}", push.revision),
            format!("delivered {}×", push.deliveries),
            format!("items {}", push.counts.total),
            push.key.to_string(),
        ]
    });
    columns(text, pushes.collect());
}

fn write_items(text: &mut String, items: &[ItemReport]) {
    let rows = items.iter().map(|item| {
        let attempts = match item.attempts.len() {
            0 => String::new(),
            n => format!("{} attempts", n + 1),
        };
        let ms = item.duration_ms.map(|ms| format!("{ms:.0} ms")).unwrap_or_default();
        let first = item.message.as_deref().and_then(|message| message.lines().next()).unwrap_or_default();
        let first: String = first.chars().map(|c| if c.is_control() { ' ' } else { c }).take(100).collect();
        vec![
            status_word(item.status, item.flaky).to_owned(),
            ms,
            attempts,
            item.variant.to_string(),
            item.item.to_string(),
            first,
        ]
    });
    columns(text, rows.collect());
}

/// Cells padded to their column; columns that are empty everywhere are left out.
pub(super) fn columns(text: &mut String, rows: Vec<Vec<String>>) {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count)
        .map(|at| rows.iter().filter_map(|row| row.get(at)).map(|c| c.chars().count()).max().unwrap_or(0))
        .collect();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths).filter(|(_, width)| **width > 0) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}
