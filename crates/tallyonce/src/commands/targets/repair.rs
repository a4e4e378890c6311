//! `tallyonce repair`: shows how doubles would be mended, and mends them with `--apply`. Every row that is touched is on the
//! disk of this machine first. Must not decide which rows.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use delivery::SystemClock;
use delivery::foreign::repair::{self, Applied, Becoming, Done, How, Mend, Plan, Removed, RepairOptions, Sure};
use rand::rngs::StdRng;
use serde::Serialize;

use super::{Desk, audit, patience, told};
use crate::cli::RepairArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::settings::push::DEADLINE;

/// A plan and what became of it, as `--json` prints it.
#[derive(Debug, Serialize)]
struct RepairObject<'a> {
    target: &'a str,
    cycle: &'a str,
    applied: bool,
    plan: &'a [Plan],
    done: Vec<&'a Done>,
    halted: Option<String>,
    /// Absent if no row was recorded, as none was touched.
    record: Option<&'a Path>,
}

/// Plans, and with `--apply` mends. Exit 1 if something is left that repeats.
///
/// # Errors
/// It can't be read or mended.
pub(crate) async fn repair(args: RepairArgs, desk: Desk<'_>) -> Result<Exit, Failure> {
    let forwarding = desk.open(&args.there.target)?;
    let audits = audit::all(&forwarding, &args.there, &desk).await?;
    let able = forwarding.adapter().facts().repair;
    let options = RepairOptions { likely: args.likely };
    let plans: Vec<Plan> = audits.iter().map(|audit| repair::plan(audit, able, options)).collect();
    let record = args
        .record
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!(".tallyonce/repaired-{}.jsonl", args.there.target)));
    let mut applied: Vec<Applied> = Vec::new();
    let mut recorded = 0_usize;
    if args.apply && plans.iter().any(|plan| !plan.is_empty()) {
        let mut write = recorder(&record)?;
        let mut keep = |removed: &Removed| {
            write(removed)?;
            recorded += 1;
            Ok(())
        };
        let (clock, mut random) = (SystemClock::new(), rand::make_rng::<StdRng>());
        let watch = told(desk.output);
        let mut patience = patience(&clock, &mut random, &desk.stop, args.there.deadline.unwrap_or(DEADLINE), &watch);
        for plan in &plans {
            let done = repair::apply(forwarding.adapter(), plan, &mut patience, &mut keep).await;
            let halted = done.halted.is_some();
            applied.push(done);
            if halted {
                break;
            }
        }
    }
    let done: Vec<&Done> = applied.iter().flat_map(|applied| &applied.done).collect();
    let halted = applied.iter().find_map(|applied| applied.halted.as_ref()).map(ToString::to_string);
    let exit = exit(&plans, &done, halted.as_deref(), args.apply);
    let record = (recorded > 0).then_some(record.as_path());
    if args.json {
        desk.output.object(&RepairObject {
            target: args.there.target.as_str(),
            cycle: &args.there.cycle,
            applied: args.apply,
            plan: &plans,
            done,
            halted,
            record,
        });
    } else {
        desk.output.result(&text(&plans, &done, halted.as_deref(), (args.apply, record)));
    }
    Ok(exit)
}

/// 0 once nothing is left that repeats; a plan that is only shown leaves everything.
fn exit(plans: &[Plan], done: &[&Done], halted: Option<&str>, apply: bool) -> Exit {
    let by_hand = |plan: &Plan| plan.by_hand.iter().any(|by_hand| by_hand.sure == Sure::Certain);
    let open = plans.iter().any(|plan| !plan.not_possible.is_empty() || by_hand(plan) || (!apply && !plan.is_empty()));
    let left = done.iter().any(|done| matches!(done.becoming, Becoming::Left { .. }));
    if halted.is_some() {
        Exit::NotConfirmed
    } else if open || left {
        Exit::Found
    } else {
        Exit::Success
    }
}

/// Appends to the record, durable before a row is touched.
fn recorder(path: &Path) -> Result<impl FnMut(&Removed) -> std::io::Result<()> + Send + use<>, Failure> {
    let bad = |error: std::io::Error| {
        Failure::machine(
            format!("the record {} can't be written: {error}", path.display()),
            "Name another file with --record: nothing is removed that isn't recorded.",
        )
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(bad)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(bad)?;
    Ok(move |removed: &Removed| {
        let mut line = serde_json::to_vec(removed)?;
        line.push(b'\n');
        file.write_all(&line)?;
        file.sync_data()
    })
}

fn text(plans: &[Plan], done: &[&Done], halted: Option<&str>, (apply, record): (bool, Option<&Path>)) -> String {
    let mut text = String::new();
    for Mend { kept, row, how, .. } in plans.iter().flat_map(|plan| &plan.mends) {
        let what = match how {
            How::Delete => "delete",
            How::MarkAsRepeat { .. } => "mark as a repeat",
        };
        let _ = writeln!(text, "case {}: {what} row {}, keep row {}", row.case, row.row, kept.row);
    }
    for impossible in plans.iter().flat_map(|plan| &plan.not_possible) {
        let _ = writeln!(text, "case {}: row {} stays: {}", impossible.row.case, impossible.row.row, impossible.why);
    }
    for by_hand in plans.iter().flat_map(|plan| &plan.by_hand) {
        let _ = writeln!(text, "left to a person: {}", by_hand.what);
    }
    let likely: usize = plans.iter().map(|plan| plan.only_likely.len()).sum();
    if likely > 0 {
        let _ = writeln!(text, "{likely} cases have likely repeats, which are left alone without --likely");
    }
    for done in done {
        let became = match &done.becoming {
            Becoming::Removed => "removed".to_owned(),
            Becoming::Marked => "marked as a repeat".to_owned(),
            Becoming::AlreadyDone => "done before".to_owned(),
            Becoming::Left { why } => format!("left: {why}"),
        };
        let _ = writeln!(text, "row {}: {became}", done.row.row);
        if let Some(alarm) = &done.alarm {
            let _ = writeln!(text, "  look at it: {alarm}");
        }
    }
    if let Some(halted) = halted {
        let _ = writeln!(text, "ended before its end: {halted}; the same command goes on");
    }
    let mends: usize = plans.iter().map(|plan| plan.mends.len()).sum();
    let stay: usize = plans.iter().map(|plan| plan.not_possible.len()).sum();
    let end = match record {
        Some(record) => format!("every row was recorded first in {}", record.display()),
        None if mends == 0 && stay > 0 => {
            "none of it can be mended there, and no row was touched; `tallyonce forwards` shows \
             what it is part of, and --give-up ID --because WHY keeps that somebody has looked"
                .to_owned()
        }
        None if mends == 0 => "there is nothing to mend: no row was touched".to_owned(),
        None if apply => "no row was touched, so none was recorded".to_owned(),
        None => "nothing was changed: --apply carries this plan out".to_owned(),
    };
    let _ = writeln!(text, "{end}");
    text
}
