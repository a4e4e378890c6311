//! `tallyonce promote`, `close` and `wait`: a person's decisions, and a gate. Must not judge completeness or verdicts.

use std::time::Duration;

use delivery::{Clock as _, SystemClock};
use domain::listing::{CycleReport, ForwardReport, PushReport, PushState, RevisionReport};
use domain::receipt::ReceiptResult;
use domain::{CycleName, ProjectId, PushId, PushKey};
use store::Promotion;

use crate::commands::Place;
use crate::commands::summary::counted;
use crate::exit::Exit;
use crate::failure::{Failure, State};
use crate::interrupt;
use crate::output::Output;
use crate::repository::{Reader, Repository, pauses};

/// What is promoted.
#[derive(Debug)]
pub(crate) enum Promoted {
    /// One push.
    Key(PushKey),
    /// Every push of a round that keeps an offered content.
    Round(String),
}

/// Lets verdicts count.
///
/// # Errors
/// It is refused, or there is no such push.
pub(crate) async fn promote(
    place: Place,
    what: Promoted,
    revision: Option<u32>,
    exact: bool,
    output: Output,
) -> Result<Exit, Failure> {
    let Place { repository, project, cycle } = place;
    let reader = repository.reader()?;
    let pushes = match what {
        Promoted::Key(key) => vec![PushId::of(&project, &key)],
        Promoted::Round(round) => kept_pushes(&reader, &project, &cycle?, &round).await?,
    };
    if pushes.is_empty() {
        output.result("nothing to promote: no push of this round keeps another content\n");
    }
    for push in pushes {
        let report = reader.push(&project, push).await?;
        output.text(&promote_one(&reader, &project, push, &report, revision, exact).await?);
    }
    Ok(Exit::Success)
}

async fn kept_pushes(
    reader: &Reader,
    project: &ProjectId,
    cycle: &CycleName,
    round: &str,
) -> Result<Vec<PushId>, Failure> {
    let report = reader.cycle(project, cycle, round).await?;
    let pushes = report.rounds.iter().flat_map(|round| &round.pushes);
    Ok(pushes.filter(|push| push.state == PushState::Kept).map(|push| push.push).collect())
}

async fn promote_one(
    reader: &Reader,
    project: &ProjectId,
    push: PushId,
    report: &PushReport,
    wanted: Option<u32>,
    exact: bool,
) -> Result<String, Failure> {
    let key = &report.summary.key;
    let Some(newest) = report.revisions.last() else {
        return Err(Failure::absent(&store::Absent::Push));
    };
    let revision = wanted.unwrap_or_else(|| promotable(&report.revisions).unwrap_or(newest.revision));
    // A repeat after a lost answer finds its own work done.
    if newest.result == ReceiptResult::Promoted && newest.of == Some(revision) && !exact {
        return Ok(format!("promoted before: {key} revision {revision}\n"));
    }
    let promotion = Promotion {
        project: project.clone(),
        push,
        key: promotion_key(push, revision, exact, newest.revision)?,
        revision: Some(revision),
        exact,
        if_match: Some(newest.etag.clone()),
    };
    let receipt = reader.promote(promotion).await?;
    Ok(format!(
        "promoted: {key} revision {revision} (now revision {})\ncounting now: {}\n{}",
        receipt.revision,
        counted(&receipt.counts),
        if exact { stays_there(&report.forwards) } else { String::new() }
    ))
}

/// What a promotion that leaves items out can't undo.
fn stays_there(forwards: &[ForwardReport]) -> String {
    let targets: Vec<&str> = forwards.iter().map(|forward| forward.target.as_str()).collect();
    if targets.is_empty() {
        return String::new();
    }
    format!(
        "at {}: what counts now goes there; items that this revision doesn't have stay there as they are: remove them there\n",
        targets.join(", ")
    )
}

/// The latest that is kept, else the latest that is no promotion.
fn promotable(revisions: &[RevisionReport]) -> Option<u32> {
    let latest = |wanted: fn(ReceiptResult) -> bool| revisions.iter().rev().find(|r| wanted(r.result));
    latest(|result| result == ReceiptResult::Kept)
        .or_else(|| latest(|result| result != ReceiptResult::Promoted))
        .map(|revision| revision.revision)
}

/// The same decision about the same state of a push has the same key, whoever repeats it.
fn promotion_key(push: PushId, revision: u32, exact: bool, newest: u32) -> Result<PushKey, Failure> {
    let exact = if exact { ":exact" } else { "" };
    PushKey::parse(&format!("promote:{push}:{revision}{exact}:after:{newest}"))
        .map_err(|error| Failure::usage(error.to_string(), "Report this."))
}

/// Declares a round complete as it is.
///
/// # Errors
/// There is no such round, or no answer.
pub(crate) async fn close(place: Place, round: &str, output: Output) -> Result<Exit, Failure> {
    let (project, cycle) = (place.project, place.cycle?);
    let report = place.repository.reader()?.close(&project, &cycle, round).await?;
    // An answer may list the whole cycle; what was closed is what the name fits.
    for round in &report.rounds {
        if round.closed {
            output.text(&format!("closed: {}\ncounting now: {}\n", round.round, counted(&round.counts)));
        }
    }
    Ok(Exit::Success)
}

/// Waits until a round is complete. A round, project or store that is not there yet is waited for too.
///
/// # Errors
/// It is not complete in time.
pub(crate) async fn wait(place: Place, round: &str, deadline: Duration, output: Output) -> Result<Exit, Failure> {
    let Place { repository, project, cycle } = place;
    let cycle = cycle?;
    let stop = interrupt::on_signals()?;
    let clock = SystemClock::new();
    let mut reader = None;
    let mut said = String::new();
    for pause in pauses() {
        let seen = match ask(&repository, &mut reader, &project, &cycle, round).await {
            Ok(report) => seen(&report),
            Err(failure) if failure.state == State::Usage => return Err(failure),
            Err(failure) => Seen::Missing(failure.what),
        };
        let missing = match seen {
            Seen::Complete(words) => {
                output.text(&words);
                return Ok(Exit::Success);
            }
            Seen::Missing(words) => words,
        };
        if missing != said {
            output.note(&format!("waiting: {missing}"));
            said = missing;
        }
        let left = deadline.saturating_sub(Duration::from_millis(clock.now_ms()));
        if left.is_zero() || stop.is_requested() {
            break;
        }
        tokio::select! {
            () = stop.requested() => {}
            () = tokio::time::sleep(pause.min(left)) => {}
        }
    }
    Err(Failure::incomplete(format!("round {round} is not complete: {said}")))
}

enum Seen {
    Complete(String),
    Missing(String),
}

fn seen(report: &CycleReport) -> Seen {
    if let Some(round) = report.rounds.iter().find(|round| round.complete) {
        return Seen::Complete(format!("complete: {}\n{}\n", round.round, counted(&round.counts)));
    }
    let missing: Vec<&str> = report.rounds.iter().flat_map(|r| r.missing.iter().map(String::as_str)).collect();
    Seen::Missing(missing.join("; "))
}

async fn ask(
    repository: &Repository,
    reader: &mut Option<Reader>,
    project: &ProjectId,
    cycle: &CycleName,
    round: &str,
) -> Result<CycleReport, Failure> {
    let opened = match reader.take() {
        Some(opened) => opened,
        None => repository.reader()?,
    };
    reader.insert(opened).cycle(project, cycle, round).await
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use domain::intent::IntentState;

    use super::*;

    #[test]
    fn what_a_promotion_leaves_at_targets_is_said_with_their_names() {
        assert_eq!(stays_there(&[]), "");
        let at = |target: &str| ForwardReport {
            target: target.to_owned(),
            kind: None,
            revision: 1,
            state: IntentState::Acked,
            cases: 1,
            states: BTreeMap::new(),
            flags: Vec::new(),
            refused: Vec::new(),
            cycle_there: None,
            tries: 0,
            due_ms: None,
            cause: None,
        };
        let said = stays_there(&[at("kiwi"), at("rail")]);
        assert!(said.starts_with("at kiwi, rail: ") && said.ends_with("remove them there\n"), "{said}");
    }
}
