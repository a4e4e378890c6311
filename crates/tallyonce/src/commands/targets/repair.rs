//! `tallyonce repair`: shows how doubles would be mended, and mends them with `--apply`. Every row that is touched is on the
//! disk of this machine first. Must not decide which rows.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use delivery::SystemClock;
use delivery::foreign::patience::GaveUp;
use delivery::foreign::repair::{self, Applied, Becoming, Done, Halted, How, Mend, Plan, Removed, RepairOptions, Sure};
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
    let halted = applied.iter().find_map(|applied| applied.halted.as_ref());
    let exit = exit(&plans, &done, halted, args.apply);
    let record = (recorded > 0).then_some(record.as_path());
    if args.json {
        desk.output.object(&RepairObject {
            target: args.there.target.as_str(),
            cycle: &args.there.cycle,
            applied: args.apply,
            plan: &plans,
            done,
            halted: halted.map(ToString::to_string),
            record,
        });
    } else {
        desk.output.text(&text(&plans, &done, halted, (args.apply, record)));
    }
    Ok(exit)
}

/// 0 once nothing is left that repeats and nobody has to look at anything; a plan that is only shown leaves everything.
fn exit(plans: &[Plan], done: &[&Done], halted: Option<&Halted>, apply: bool) -> Exit {
    let by_hand = |plan: &Plan| plan.by_hand.iter().any(|by_hand| by_hand.sure == Sure::Certain);
    let open = plans.iter().any(|plan| !plan.not_possible.is_empty() || by_hand(plan) || (!apply && !plan.is_empty()));
    let left = |done: &&Done| matches!(done.becoming, Becoming::Left { .. }) || done.alarm.is_some();
    match halted {
        Some(halted) => after(halted).0,
        None if open || done.iter().any(left) => Exit::Found,
        None => Exit::Success,
    }
}

/// What a repair that ended before its end exits with, and what is to be done next.
fn after(halted: &Halted) -> (Exit, &'static str) {
    match halted {
        Halted::GaveUp(GaveUp::Stopped(_) | GaveUp::Over(_)) => (Exit::NotConfirmed, "the same command goes on"),
        Halted::GaveUp(GaveUp::Denied(_)) => {
            (Exit::Rejected, "mend the credentials or the rights of their user; then the same command goes on")
        }
        Halted::GaveUp(GaveUp::Refused(_) | GaveUp::Gone(_)) => {
            (Exit::Rejected, "the same again is refused again: look at what it says, then audit once more")
        }
        Halted::Record(_) => {
            (Exit::Usage, "make room for the record, or name another file with --record; then the same command goes on")
        }
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

fn text(plans: &[Plan], done: &[&Done], halted: Option<&Halted>, (apply, record): (bool, Option<&Path>)) -> String {
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
        for cycle in &by_hand.cycles {
            let _ = writeln!(text, "  cycle {} {} {:?}", cycle.cycle, cycle.at(), cycle.name);
        }
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
        let _ = writeln!(text, "ended before its end: {halted}; {}", after(halted).1);
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

#[cfg(test)]
mod tests {
    use delivery::foreign::audit::Seen;
    use delivery::foreign::{CaseId, CycleId, Row, RowId, RowStatus};
    use domain::marker::Found;

    use super::*;

    fn done(alarm: Option<&str>) -> Done {
        let row = Row {
            id: RowId::new("2"),
            case: CaseId::new("1"),
            status: RowStatus::Is(domain::Status::Passed),
            marker: Found::Nothing,
            at_ms: None,
            text: String::new(),
        };
        let row = Seen::of(&CycleId::new("R1"), row);
        Done { row, kept: RowId::new("1"), becoming: Becoming::Removed, alarm: alarm.map(str::to_owned) }
    }

    #[test]
    fn an_alarm_is_no_success() {
        assert_eq!(exit(&[Plan::default()], &[&done(None)], None, true), Exit::Success);
        assert_eq!(exit(&[Plan::default()], &[&done(Some("row 1 is not there"))], None, true), Exit::Found);
    }

    #[test]
    fn only_what_goes_on_by_itself_says_so() {
        let what = || "no".to_owned();
        for (halted, number, goes_on) in [
            (Halted::GaveUp(GaveUp::Stopped(what())), 75, true),
            (Halted::GaveUp(GaveUp::Over(what())), 75, true),
            (Halted::GaveUp(GaveUp::Denied(what())), 4, false),
            (Halted::GaveUp(GaveUp::Refused(what())), 4, false),
            (Halted::GaveUp(GaveUp::Gone(what())), 4, false),
            (Halted::Record(std::io::Error::other("disk full")), 2, false),
        ] {
            assert_eq!(exit(&[], &[], Some(&halted), true).number(), number, "{halted}");
            let text = text(&[], &[], Some(&halted), (true, None));
            assert_eq!(text.contains(&format!("{halted}; the same command goes on\n")), goes_on, "{text}");
        }
    }
}
