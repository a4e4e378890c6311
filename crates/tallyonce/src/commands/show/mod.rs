//! `tallyonce show`: what counts in a cycle, for people and for machines. Must not count anything by itself: every
//! number comes from the repository.

mod csv;
mod junit;
mod markdown;
mod revisions;
mod table;

use domain::listing::CycleReport;
use domain::{PushId, PushKey, Status};

use crate::cli::ShowFormat;
use crate::commands::Place;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

/// What is shown, and how.
#[derive(Debug)]
pub(crate) struct Wish {
    /// Which rounds.
    pub round: String,
    /// Items too.
    pub items: bool,
    /// One push instead.
    pub revisions: Option<PushKey>,
    /// Only items with this status.
    pub status: Option<Status>,
    /// How.
    pub format: ShowFormat,
}

/// Shows it.
///
/// # Errors
/// There is no such thing, or no answer.
pub(crate) async fn run(place: Place, wish: &Wish, output: Output) -> Result<Exit, Failure> {
    let reader = place.repository.reader()?;
    if let Some(key) = &wish.revisions {
        let push = reader.push(&place.project, PushId::of(&place.project, key)).await?;
        if wish.format == ShowFormat::Json {
            output.object(&push);
        } else {
            output.text(&revisions::render(&push));
        }
        return Ok(Exit::Success);
    }
    let cycle = place.cycle?;
    let mut report = reader.cycle(&place.project, &cycle, &wish.round).await?;
    if wish.items || wish.status.is_some() || wish.format == ShowFormat::Junit {
        report.items = Some(reader.items(&place.project, &cycle, &wish.round, wish.status).await?);
    }
    match wish.format {
        ShowFormat::Json => output.object(&report),
        ShowFormat::Table => output.text(&render(&report, wish.format)),
        _ => output.result(&render(&report, wish.format)),
    }
    Ok(Exit::Success)
}

fn render(report: &CycleReport, format: ShowFormat) -> String {
    match format {
        ShowFormat::Csv => csv::render(report),
        ShowFormat::Junit => junit::render(report),
        ShowFormat::Md => markdown::render(report),
        ShowFormat::Table | ShowFormat::Json => table::render(report),
    }
}

/// `passed`, or `flaky` where it passed after a failed attempt.
fn status_word(status: Status, flaky: bool) -> &'static str {
    if flaky { "flaky" } else { status.word() }
}

/// The marks of a round: authoritative, complete, closed, pinned.
fn marks(round: &domain::listing::RoundReport) -> String {
    let marks = [
        (round.authoritative, "authoritative"),
        (round.complete, "complete"),
        (!round.complete, "incomplete"),
        (round.closed, "closed"),
        (round.pinned, "pinned"),
    ];
    marks.iter().filter(|(set, _)| *set).map(|(_, word)| *word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> CycleReport {
        let text = r#"{
            "project": "shop", "cycle": "main", "not_seen_since": 1,
            "headline": {"total": 3, "passed": 2, "failed": 1, "errored": 0, "skipped": 0, "flaky": 1},
            "rounds": [{
                "round": "github:acme/shop:run:42", "run": "42", "workflow": "ci.yml", "authoritative": true,
                "complete": false, "closed": false, "pinned": false, "missing": ["e2e: shard 2 of 2"],
                "counts": {"total": 3, "passed": 2, "failed": 1, "errored": 0, "skipped": 0, "flaky": 1},
                "shards": [{"job": "e2e", "variant": {"os": "linux"}, "seen": 1, "total": 2}],
                "pushes": [{"key": "github:acme/shop:run:42:job:e2e:shard:1-2", "state": "recorded", "revision": 1,
                    "push": "000102030405060708090a0b0c0d0e0f", "deliveries": 2, "late": false,
                    "counts": {"total": 3, "passed": 2, "failed": 1, "errored": 0, "skipped": 0, "flaky": 1}}],
                "overlaps": 0, "repeats": 1, "recorded_at": "2026-11-29T10:00:00.000Z"
            }],
            "items": [
                {"hash": "000102030405060708090a0b0c0d0e0f", "item": {"suite": ["cart"], "class": "Add", "name": "a, \"b\""},
                 "status": "failed", "flaky": false, "duration_ms": 1.5, "message": "=1 <\u0001 2 & more\nline", "attempts": [],
                 "round": "github:acme/shop:run:42", "key": "k", "pushes": 1},
                {"hash": "000102030405060708090a0b0c0d0e10", "item": {"name": "pipe | x"}, "variant": {"os": "linux"},
                 "status": "passed", "flaky": true, "duration_ms": null,
                 "attempts": [{"status": "failed", "message": "first"}],
                 "round": "github:acme/shop:run:42", "key": "k", "pushes": 1},
                {"hash": "000102030405060708090a0b0c0d0e11", "item": {"suite": ["cart"], "name": "ok"},
                 "status": "passed", "flaky": false, "duration_ms": 2000, "attempts": [],
                 "round": "github:acme/shop:run:42", "key": "k", "pushes": 1}
            ]
        }"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn each_format_has_its_form() {
        let all = report();
        let rounds = CycleReport { items: None, ..report() };
        insta::assert_snapshot!("table", render(&all, ShowFormat::Table));
        insta::assert_snapshot!("csv_items", render(&all, ShowFormat::Csv));
        insta::assert_snapshot!("csv_rounds", render(&rounds, ShowFormat::Csv));
        insta::assert_snapshot!("junit", render(&all, ShowFormat::Junit));
        insta::assert_snapshot!("markdown", render(&all, ShowFormat::Md));
    }

    #[test]
    fn junit_is_read_back_with_the_same_counts() {
        let xml = render(&report(), ShowFormat::Junit);
        let mut collector = reports::Collector::new(reports::ReadOptions::standard());
        collector.add("shown.xml", xml.as_bytes()).unwrap();
        let read = collector.finish();
        let counts: domain::Counts = read.outcomes.iter().collect();
        assert_eq!((counts.total, counts.passed, counts.failed, counts.flaky), (3, 2, 1, 1));
    }
}
