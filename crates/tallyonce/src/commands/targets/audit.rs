//! `tallyonce audit`: what a cycle of a target holds twice, or lacks. Must not judge.

use std::fmt::Write as _;
use std::time::Duration;

use delivery::SystemClock;
use delivery::foreign::audit::{Audit, AuditError, AuditOptions, Line};
use delivery::foreign::patience::{GaveUp, Patience};
use delivery::foreign::{CycleId, Kind};
use rand::rngs::StdRng;
use serde::Serialize;

use super::{Desk, There, cycles_there, gave_up, patience, told};
use crate::cli::{AuditArgs, AuditFormat, ThereArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::forward::Forwarding;
use crate::settings::push::DEADLINE;

/// What was found, as `--json` prints it.
#[derive(Debug, Serialize)]
struct AuditObject<'a> {
    target: &'a str,
    kind: &'static str,
    cycle: &'a str,
    clean: bool,
    audits: &'a [Audit],
}

/// Reads, judges and prints. Exit 1 if anything is wrong.
///
/// # Errors
/// It can't be read.
pub(crate) async fn audit(args: AuditArgs, desk: Desk<'_>) -> Result<Exit, Failure> {
    let forwarding = desk.open(&args.there.target)?;
    let audits = all(&forwarding, &args.there, &desk).await?;
    let clean = audits.iter().all(Audit::is_clean);
    let format = if args.json { AuditFormat::Json } else { args.format };
    match format {
        AuditFormat::Json => desk.output.object(&AuditObject {
            target: args.there.target.as_str(),
            kind: forwarding.target().settings.kind.word(),
            cycle: &args.there.cycle,
            clean,
            audits: &audits,
        }),
        AuditFormat::Csv => {
            desk.output.result(&csv(&audits));
            // It has lines for findings alone.
            for said in audits.iter().flat_map(beside) {
                desk.output.note(&said);
            }
        }
        AuditFormat::Text => desk.output.text(&text(&audits)),
    }
    Ok(if clean { Exit::Success } else { Exit::Found })
}

/// One audit for each cycle there.
pub(super) async fn all(forwarding: &Forwarding, args: &ThereArgs, desk: &Desk<'_>) -> Result<Vec<Audit>, Failure> {
    let (clock, mut random) = (SystemClock::new(), rand::make_rng::<StdRng>());
    let watch = told(desk.output);
    let mut patience = patience(&clock, &mut random, &desk.stop, args.deadline.unwrap_or(DEADLINE), &watch);
    let mut options = AuditOptions::new(forwarding.adapter().facts().verdict);
    // A server is the only one that forwards to its targets; beside a job's ledger there may be another job's.
    options.sole = forwarding.target().served;
    if let Some(window) = args.window {
        options.window_ms = millis(window);
    }
    let mut audits = Vec::new();
    for there in cycles_there(forwarding, args).await? {
        patience.may_go_on().map_err(|why| gave_up(&args.target, &why))?;
        match there {
            There::Known { wanted, intents } => {
                let audit = Audit::of(forwarding.adapter(), &wanted, Some(&intents), options, &mut patience).await;
                audits.push(audit.map_err(|error| failure(args, error))?);
            }
            There::Said(id) => audits.extend(of_said(forwarding, args, &id, options, &mut patience).await?),
        }
    }
    Ok(audits)
}

/// The cycle that has this id in the product; where none has, those of this name, as far as it can be asked for names.
async fn of_said(
    forwarding: &Forwarding,
    args: &ThereArgs,
    id: &CycleId,
    options: AuditOptions,
    patience: &mut Patience<'_>,
) -> Result<Vec<Audit>, Failure> {
    let adapter = forwarding.adapter();
    let error = match Audit::of_cycle(adapter, id, options, patience).await {
        Ok(audit) => return Ok(vec![audit]),
        // Some products refuse what doesn't look like an id of theirs.
        Err(error @ (AuditError::NotThere { .. } | AuditError::Unread(GaveUp::Refused(_)))) => error,
        Err(error) => return Err(failure(args, error)),
    };
    let named = patience.reading(|| adapter.namesakes(&args.cycle)).await;
    let named = named.map_err(|why| gave_up(&args.target, &why))?.unwrap_or_default();
    if named.is_empty() {
        return Err(match error {
            AuditError::NotThere { why, .. } => not_there(forwarding.target().settings.kind, args, &why),
            other => failure(args, other),
        });
    }
    let mut audits = Vec::with_capacity(named.len());
    for namesake in named {
        let audit = Audit::of_cycle(adapter, &namesake.found.id, options, patience).await;
        audits.push(audit.map_err(|error| failure(args, error))?);
    }
    Ok(audits)
}

fn not_there(kind: Kind, args: &ThereArgs, why: &str) -> Failure {
    Failure::nothing_there(
        format!(
            "{}: no ledger here knows a cycle {:?}, so it was asked for as {kind}'s own id, and there is none: {why}",
            args.target, args.cycle
        ),
        format!(
            "Run it where the cycle was pushed from (the ledger knows it there by the name of --cycle), or give {kind}'s own \
             id: {}.",
            kind.cycle_id()
        ),
    )
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

fn failure(args: &ThereArgs, error: AuditError) -> Failure {
    match error {
        AuditError::Unread(why) => gave_up(&args.target, &why),
        AuditError::NoCycle { .. } | AuditError::NotThere { .. } => Failure::nothing_there(
            format!("{}: {error}", args.target),
            "Name a cycle that was pushed to from here, or the product's own id of one.",
        ),
        AuditError::NothingToCompare { .. } => Failure::nothing_there(
            format!("{}: {error}", args.target),
            "Audit it where it was pushed from: that is where the ledger is (`ledger` of the target).",
        ),
        AuditError::Ledger { .. } => {
            Failure::machine(format!("{}: {error}", args.target), "Look at the ledger: tallyonce check-store.")
        }
    }
}

pub(super) fn text(audits: &[Audit]) -> String {
    let mut text = String::new();
    for audit in audits {
        for cycle in &audit.cycles {
            let closed = if cycle.closed { ", closed" } else { "" };
            let _ = writeln!(text, "cycle {} ({:?}): {} rows{closed}", cycle.cycle, cycle.name, cycle.rows);
        }
        let mut number = 0;
        for line in audit.lines() {
            if line.number != number {
                number = line.number;
                let case = if line.case.is_empty() { String::new() } else { format!(" {}", line.case) };
                let _ = writeln!(text, "{}{case}: {}", line.finding, line.evidence);
            }
            if line.row.is_empty() && !line.cycle.is_empty() {
                let _ = writeln!(text, "  cycle {} {} {:?}", line.cycle, line.at, line.text);
            } else if !line.row.is_empty() || !line.marker.is_empty() {
                let shown: String = line.text.chars().take(80).map(|c| if c.is_control() { ' ' } else { c }).collect();
                let _ = writeln!(text, "  row {} {} {} {} {shown:?}", line.row, line.at, line.status, line.marker);
            }
        }
        for said in beside(audit) {
            let _ = writeln!(text, "{said}");
        }
        let c = audit.counts;
        let _ = writeln!(
            text,
            "{} cases, {} rows: {} doubled, {} likely doubled, {} missing, {} unknown to the ledger, {} with a changed \
             marker; {} cases executed again",
            c.cases,
            c.rows,
            c.doubled_rows,
            c.likely_doubled_rows,
            c.missing,
            c.orphans,
            c.mangled,
            c.re_executed_cases
        );
    }
    let verdict = if audits.iter().all(Audit::is_clean) { "clean" } else { "not clean" };
    let _ = writeln!(text, "{verdict}");
    text
}

/// What is to be said beside findings.
fn beside(audit: &Audit) -> Vec<String> {
    let gone =
        audit.gone.iter().map(|id| format!("cycle {id} is not there any more: all that is confirmed of it is missing"));
    gone.chain(audit.unseen.iter().map(|unseen| format!("not to be seen here: {unseen}"))).collect()
}

fn csv(audits: &[Audit]) -> String {
    let mut text = String::from("finding,number,case,cycle,row,at,status,marker,text,evidence\n");
    for line in audits.iter().flat_map(Audit::lines) {
        let Line { finding, number, case, cycle, row, at, status, marker, text: shown, evidence } = line;
        let number = number.to_string();
        let fields = [finding, &number, &case, &cycle, &row, &at, &status, &marker, &shown, &evidence].map(quoted);
        let _ = writeln!(text, "{}", fields.join(","));
    }
    text
}

/// RFC 4180, and nothing that a spreadsheet takes for a formula.
fn quoted(field: &str) -> String {
    let field =
        if field.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{field}") } else { field.to_owned() };
    if field.contains([',', '"', '\n', '\r']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}
