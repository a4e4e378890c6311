//! The rules: S1 to S15 of the facts, as far as tables and exits show them. Must not read anything.

use super::{Class, Crime, Ended, Finding, History, Invocation, Tables};
use crate::oracle::{Fate, How, Stored};

fn found(crime: Crime, words: impl Into<String>) -> Finding {
    Finding { crime, words: words.into() }
}

/// What the tables alone show.
pub(super) fn tables(history: &History, tables: &Tables) -> Vec<Finding> {
    // S1, S2, S10, S11: nothing twice, nothing in pieces, counts as a recount.
    let mut all: Vec<Finding> = tables.doubles.iter().map(|words| found(Crime::Doubled, words)).collect();
    if tables.listed != tables.visible.len() {
        all.push(found(Crime::Doubled, format!("{} rows count for {} items", tables.listed, tables.visible.len())));
    }
    for stored in &tables.revisions {
        all.extend(whole(history, stored));
    }
    for (at, stored) in tables.revisions.iter().enumerate() {
        let twin = tables.revisions[..at].iter().find(|other| other.items == stored.items);
        if let Some(twin) = twin.filter(|_| stored.how != How::Promoted) {
            let words = format!("revisions {} and {} are one content", twin.revision, stored.revision);
            all.push(found(Crime::Doubled, words));
        }
    }
    if tables.visible.is_empty() != tables.revisions.iter().all(|stored| stored.items.is_empty()) {
        all.push(found(Crime::Half, "revisions without anything that counts, or the other way round"));
    }
    all.extend(epochs(tables));
    all
}

/// A revision is a whole report that somebody offered.
fn whole(history: &History, stored: &Stored) -> Option<Finding> {
    if stored.how == How::Promoted || history.reports.iter().any(|report| report.items == stored.items) {
        return None;
    }
    let part = history
        .reports
        .iter()
        .any(|report| stored.items.iter().all(|(item, status)| report.items.get(item) == Some(status)));
    let crime = if part { Crime::Half } else { Crime::Phantom };
    let items = stored.items.len();
    Some(found(crime, format!("revision {} of {items} items is no report that was offered", stored.revision)))
}

/// S5: epochs rise by one; only the last is open, and none when all is over; a commit leads to its revision.
fn epochs(tables: &Tables) -> Vec<Finding> {
    let mut all = Vec::new();
    for (at, (epoch, fate)) in tables.epochs.iter().enumerate() {
        if *epoch as usize != at + 1 {
            all.push(found(Crime::Epochs, format!("epoch {epoch} is where {} belongs", at + 1)));
        }
        match fate {
            Fate::Open => all.push(found(Crime::Epochs, format!("epoch {epoch} is open after everybody has ended"))),
            Fate::Committed(revision) if !tables.revisions.iter().any(|stored| stored.revision == *revision) => {
                all.push(found(Crime::Epochs, format!("epoch {epoch} is revision {revision}, which is not there")));
            }
            _ => {}
        }
    }
    all
}

/// How a report ended.
pub(super) fn classify(history: &History, tables: &Tables, report: usize) -> Result<Class, Finding> {
    let of = |invocation: &&Invocation| invocation.report == report;
    for invocation in history.invocations.iter().filter(of) {
        explained(invocation, report)?;
    }
    let last = history.invocations.iter().rfind(of);
    let last = last.ok_or_else(|| found(Crime::Unexplained, format!("report {report} was never offered")))?;
    let here: Vec<&Stored> =
        tables.revisions.iter().filter(|stored| stored.items == history.reports[report].items).collect();
    match &last.ended {
        Ended::Silent => unknown(last, report),
        Ended::Said { exit: 75, .. } => {
            Err(found(Crime::Unexplained, format!("report {report} ended without a verdict although it was kept")))
        }
        Ended::Said { exit: 0, state, difference } => accepted(&here, report, state, *difference),
        Ended::Said { exit: 4 | 5, .. } => refused(history, &here, report),
        Ended::Said { exit, state, .. } => {
            Err(found(Crime::Unexplained, format!("report {report} ended with {exit}, {state}")))
        }
    }
}

/// Unknown ends are those of faults, and what may be recorded or not stays in the outbox.
fn explained(invocation: &Invocation, report: usize) -> Result<(), Finding> {
    let unknown = match &invocation.ended {
        Ended::Silent => true,
        Ended::Said { exit: 75, state, .. } => {
            if !invocation.kept {
                let words = format!("report {report} ended {state} and is not in the outbox");
                return Err(found(Crime::Lost, words));
            }
            true
        }
        Ended::Said { .. } => false,
    };
    if unknown && !invocation.faulted {
        return Err(found(Crime::Unexplained, format!("report {report} ended unknown without a fault")));
    }
    Ok(())
}

/// A runner that is gone. Whether its report is there nobody was told; a kept one is for somebody to flush.
fn unknown(last: &Invocation, report: usize) -> Result<Class, Finding> {
    if last.kept {
        return Err(found(Crime::Unexplained, format!("report {report} is kept, and nobody flushed it")));
    }
    Ok(Class::UnknownAndSaid)
}

/// S3: told success, so its records are there, or it was said that others count.
fn accepted(here: &[&Stored], report: usize, state: &str, difference: bool) -> Result<Class, Finding> {
    let kept = here.iter().all(|stored| stored.how == How::Kept);
    match (here.is_empty(), state) {
        (true, _) if difference => Ok(Class::DifferingAndSaid),
        (true, _) => Err(found(Crime::Suppressed, format!("report {report} was told {state}; none of it is there"))),
        (false, _) if kept && !difference => {
            Err(found(Crime::Suppressed, format!("report {report} is kept beside others, and nobody said so")))
        }
        (false, _) if kept => Ok(Class::DifferingAndSaid),
        (false, "revised") => Ok(Class::Revised),
        (false, "recorded" | "replayed") => Ok(Class::Recorded),
        (false, state) => Err(found(Crime::Unexplained, format!("report {report} exited 0 with {state}"))),
    }
}

/// S15: told no, so it is not there; unless somebody offered the same and was told yes.
fn refused(history: &History, here: &[&Stored], report: usize) -> Result<Class, Finding> {
    let items = &history.reports[report].items;
    let elsewhere =
        history.reports.iter().enumerate().any(|(other, offered)| other != report && offered.items == *items);
    if here.is_empty() || elsewhere {
        return Ok(Class::RefusedAndSaid);
    }
    Err(found(Crime::Phantom, format!("report {report} was refused, and is revision {}", here[0].revision)))
}

/// S4: of those that were told success, the one with the highest attempt counts, item by item.
pub(super) fn newest(history: &History, tables: &Tables) -> Option<Finding> {
    let told = history.invocations.iter().filter(|i| matches!(i.ended, Ended::Said { exit: 0, .. }));
    let newest = told.map(|invocation| &history.reports[invocation.report]).max_by_key(|report| report.attempt)?;
    let wrong = newest.items.iter().find(|(item, status)| tables.visible.get(*item) != Some(status))?;
    let counts = tables.visible.get(wrong.0);
    // Who was told that others count knows.
    let kept = tables.revisions.iter().any(|stored| stored.how == How::Kept && stored.items == newest.items);
    let same = tables.revisions.iter().any(|stored| stored.items == newest.items);
    if kept || !same {
        return None;
    }
    Some(found(Crime::Lost, format!("{} is {} in the newest report and counts as {counts:?}", wrong.0, wrong.1)))
}
