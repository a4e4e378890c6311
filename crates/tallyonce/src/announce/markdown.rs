//! One push as Markdown, for job summaries, annotations and files. Must not let a name break the table it stands in.

use std::fmt::Write as _;

use domain::Counts;
use domain::receipt::ItemDifference;

use super::content::{Announcement, Mood};
use super::escape::{address, code, markdown, shortened};
use crate::object::{CommandObject, DifferenceObject, PushObject};

/// How many items of a difference are listed.
const ITEMS_MAX: usize = 20;
/// How many doubts and single findings are listed.
const LIST_MAX: usize = 20;
/// How many characters of one text are shown.
const TEXT_MAX: usize = 500;
/// What stands at the end of a text that was too long for its place.
const CUT: &str = "\n*This summary is cut here: the place for it is full. The log has the rest.*\n";

/// The whole summary of one push; it ends in an empty line, so that another one can follow.
pub(super) fn summary(announcement: &Announcement<'_>) -> String {
    let object = announcement.object;
    let mark = match announcement.mood() {
        Mood::Good => "✅",
        Mood::Calm => "☑️",
        Mood::Doubt => "⚠️",
        Mood::Bad => "❌",
    };
    let mut text = format!("### {mark} Tallyonce: {}\n\n", announcement.headline());
    write_place(&mut text, object);
    if let Some(counts) = &object.counts {
        write_counts(&mut text, counts);
    } else if let Some(report) = &object.report {
        let _ = writeln!(text, "Test elements in the report: {}.\n", report.outcomes);
    }
    if let Some(difference) = &object.difference {
        write_difference(&mut text, difference);
    }
    if announcement.told_to_fail() {
        text.push_str(
            "**Told to fail:** this delivery's own report holds failed or errored tests (`--fail-on failed`).\n\n",
        );
    }
    if let Some(failure) = announcement.failure {
        let _ = writeln!(text, "**What happened:** {}\n", shown(&failure.what));
        write_list(&mut text, &failure.details);
        let _ = writeln!(text, "**Recorded data:** {}\n", shown(&failure.means));
        let _ = writeln!(text, "**Next:** {}\n", shown(&failure.next));
    }
    if !object.warnings.is_empty() {
        text.push_str("**Doubts:**\n\n");
        write_list(&mut text, &object.warnings);
    }
    text
}

fn shown(text: &str) -> String {
    markdown(&shortened(text, TEXT_MAX))
}

fn write_place(text: &mut String, object: &PushObject) {
    let plain = |text: Option<String>| text.map(|text| markdown(&text));
    let rows = [
        ("key", object.key.as_ref().map(|key| code(key.as_str()))),
        ("round", object.round.as_ref().map(|round| code(round.as_str()))),
        ("project", plain(object.project.as_ref().map(ToString::to_string))),
        ("cycle", plain(object.cycle.as_ref().map(ToString::to_string))),
        ("job", plain(object.job.as_ref().map(ToString::to_string))),
        ("shard", plain(object.shard.as_ref().map(ToString::to_string))),
        ("command", object.command.as_ref().map(ended)),
        ("revision", object.revision.map(|revision| revision.to_string())),
        ("link", link(object)),
    ];
    let rows: Vec<(&str, String)> = rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    if rows.is_empty() {
        return;
    }
    text.push_str("| | |\n|---|---|\n");
    for (name, value) in rows {
        let _ = writeln!(text, "| {name} | {value} |");
    }
    text.push('\n');
}

/// How the command that made the reports ended.
fn ended(command: &CommandObject) -> String {
    let CommandObject { code, signal, silent_failure, .. } = command;
    let how = match (code, signal) {
        (Some(code), _) => format!("ended with {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    };
    let silent = if *silent_failure { "; no report of it holds a failed test" } else { "" };
    format!("{how}{silent}")
}

fn link(object: &PushObject) -> Option<String> {
    let url = object.url.as_ref().filter(|url| url.starts_with("https://") || url.starts_with("http://"))?;
    Some(format!("[this push]({})", address(url)))
}

fn write_counts(text: &mut String, counts: &Counts) {
    let Counts { total, passed, failed, errored, skipped, flaky } = counts;
    text.push_str("| total | passed | flaky | failed | errored | skipped |\n|---:|---:|---:|---:|---:|---:|\n");
    let _ = writeln!(text, "| {total} | {passed} | {flaky} | {failed} | {errored} | {skipped} |\n");
}

fn write_difference(text: &mut String, difference: &DifferenceObject) {
    let DifferenceObject { class, changed, added, not_offered, items } = difference;
    let word = class.word();
    let _ = writeln!(text, "**Difference ({word}):** {changed} changed, {added} added, {not_offered} not offered.\n");
    if items.is_empty() {
        return;
    }
    text.push_str("| item | recorded | offered |\n|---|---|---|\n");
    for ItemDifference { item, recorded, offered, .. } in items.iter().take(ITEMS_MAX) {
        let status = |status: &Option<domain::Status>| status.map_or("–", domain::Status::word);
        let _ = writeln!(text, "| {} | {} | {} |", shown(&item.to_string()), status(recorded), status(offered));
    }
    text.push('\n');
    let listed = items.len().min(ITEMS_MAX) as u64;
    let all = changed.saturating_add(*added).saturating_add(*not_offered);
    if all > listed {
        let _ = writeln!(text, "And {} more items.\n", all - listed);
    }
}

fn write_list(text: &mut String, list: &[String]) {
    if list.is_empty() {
        return;
    }
    for entry in list.iter().take(LIST_MAX) {
        let _ = writeln!(text, "- {}", shown(entry));
    }
    if list.len() > LIST_MAX {
        let _ = writeln!(text, "- and {} more", list.len() - LIST_MAX);
    }
    text.push('\n');
}

/// As many whole lines as fit into so many bytes, with words that say so; none if not even these fit.
pub(super) fn fitted(text: &str, bytes_max: usize) -> Option<String> {
    if text.len() <= bytes_max {
        return Some(text.to_owned());
    }
    let room = bytes_max.checked_sub(CUT.len())?;
    let mut end = room;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let whole = text[..end].rfind('\n').map_or(0, |at| at + 1);
    (whole > 0).then(|| format!("{}{CUT}", &text[..whole]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_says_so_and_ends_with_a_whole_line() {
        let text = "first line\nsecond line ä\n".repeat(20);
        assert_eq!(fitted(&text, text.len()).as_deref(), Some(text.as_str()));
        for max in 0..text.len() {
            let Some(cut) = fitted(&text, max) else {
                assert!(max < CUT.len() + "first line\n".len(), "{max}");
                continue;
            };
            assert!(cut.len() <= max && cut.ends_with(CUT), "{max}: {cut}");
            assert!(cut.strip_suffix(CUT).unwrap().lines().all(|line| text.contains(&format!("{line}\n"))));
        }
    }
}
