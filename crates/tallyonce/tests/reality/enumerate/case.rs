//! One case: one push under a fresh key, one fault, one way to go on, and the verdict of the history checker.
//! Must not know which cases there are.

use std::path::Path;
use std::time::Duration;

use proof::history::{Ended, Tally};
use proof::proxy::Fault as Broken;
use proof::spawn::{Finished, Running};
use serde_json::Value;

use super::points::{Hit, Passed};
use crate::bench::{Bench, Flow};
use crate::world::PATIENCE;

/// How often either side is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// The server dies there.
    Server(Hit),
    /// The client dies there.
    Client(Hit),
    /// The statement there fails.
    Database(Hit),
    /// The client dies while the server is there.
    Runner(Hit),
    /// The n-th write on the wire meets this.
    Message(u32, &'static str),
}

/// Faults of messages by name: the six of the facts, and a seventh.
pub(crate) const MESSAGES: [(&str, Broken); 7] = [
    ("request dropped", Broken::RequestDropped),
    ("answer dropped", Broken::ResponseDropped),
    ("duplicated", Broken::DuplicateDelivery { concurrent: true }),
    ("delayed past the next", Broken::DeliveredLate),
    ("request truncated", Broken::CutMidRequest),
    ("502 after write", Broken::BadGateway502 { forwarded: true }),
    ("answer truncated", Broken::ResponseTruncated),
];

/// How it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Again {
    /// The same report from the same outbox.
    SameSpool,
    /// The tests ran again, with other outcomes, as a higher attempt elsewhere; the old outbox is flushed afterwards.
    Reexecuted,
}

/// A fault in a flow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Case {
    pub(crate) flow: Flow,
    pub(crate) fault: Fault,
    pub(crate) again: Again,
}

/// What came of it.
pub(crate) struct Done {
    /// Whether the fault happened at all.
    pub(crate) fired: bool,
    pub(crate) tally: Tally,
    /// How the process that met it ended, in a word.
    pub(crate) ended: String,
}

/// The points that each side passes in an undisturbed flow: server, client.
pub(crate) fn trace(flow: Flow, points: &[String]) -> (Passed, Passed) {
    let mut bench = Bench::new(flow, None);
    let (server, client) = (bench.world.path("server.trace"), bench.world.path("client.trace"));
    let names = points.join(",");
    let value = |path: &Path| format!("{}={names}", path.display());
    assert!(bench.restart(Some(("TALLYONCE_TRACE_AT", value(&server)))));
    let report = bench.offer(1);
    let word = bench.deliver(report, "one", &[("TALLYONCE_TRACE_AT".to_owned(), value(&client))], false);
    assert!(["recorded", "revised", "replayed"].contains(&word.as_str()), "{flow:?}: {word}");
    bench.judge().unwrap();
    (if flow.embedded() { Passed::default() } else { Passed::read(&server) }, Passed::read(&client))
}

/// Runs it.
pub(crate) fn run(case: &Case) -> Result<Done, String> {
    let broken = match &case.fault {
        Fault::Message(nth, name) => MESSAGES.iter().find(|(known, _)| known == name).map(|(_, fault)| (*nth, *fault)),
        _ => None,
    };
    let mut bench = Bench::new(case.flow, broken);
    let report = bench.offer(1);
    let held = bench.world.path("held");
    let (mut client_env, mut alive) = (Vec::new(), true);
    match &case.fault {
        Fault::Server(hit) => alive = bench.restart(Some(("TALLYONCE_KILL_AT", hit.text()))),
        Fault::Runner(hit) => {
            alive = bench.restart(Some(("TALLYONCE_HOLD_AT", format!("{}={}", hit.text(), held.display()))));
        }
        Fault::Database(hit) if case.flow.embedded() => {
            client_env.push(("TALLYONCE_FAIL_AT".to_owned(), hit.text()));
        }
        Fault::Database(hit) => alive = bench.restart(Some(("TALLYONCE_FAIL_AT", hit.text()))),
        Fault::Client(hit) => client_env.push(("TALLYONCE_KILL_AT".to_owned(), hit.text())),
        Fault::Message(..) => {}
    }
    let mut fired = !alive;
    if !alive {
        bench.restart(None);
    }
    // Whose job is evicted at the first setback does not try again by itself.
    let deadline = if case.again == Again::Reexecuted { "0s" } else { "90s" };
    let running = bench.push(report, "one", deadline).envs(client_env).start().unwrap();
    let finished = match &case.fault {
        Fault::Server(_) if alive => with_dying_server(&mut bench, running, &mut fired),
        Fault::Runner(_) if alive => with_dying_runner(&mut bench, running, &held, &mut fired),
        _ => running.wait(PATIENCE).unwrap(),
    };
    fired |= finished.was_killed() || finished.code != Some(0) || tries(&finished) > 1;
    fired |= bench.proxy.as_ref().is_some_and(|proxy| proxy.faults() > 0);
    let ended = bench.ended(report, "one", &finished, true);
    go_on(&mut bench, report, case);
    let tally = bench.judge()?;
    Ok(Done { fired, tally, ended })
}

fn tries(finished: &Finished) -> u64 {
    let json: Value = serde_json::from_str(finished.stdout.trim()).unwrap_or(Value::Null);
    json["delivery"]["attempts"].as_u64().unwrap_or(0)
}

/// The server dies under the client, and another takes its place.
fn with_dying_server(bench: &mut Bench, client: Running, fired: &mut bool) -> Finished {
    loop {
        let server = bench.server.as_mut().unwrap();
        if server.process().is_none_or(|process| process.ended(LOOK)) {
            *fired = server.wait_exit(PATIENCE).is_ok_and(|dead| dead.was_killed());
            bench.restart(None);
            return client.wait(PATIENCE).unwrap();
        }
        if client.ended(LOOK) {
            // It may have died behind its last answer.
            if server.process().is_none_or(|process| process.ended(LOOK * 20)) {
                *fired = true;
            }
            bench.restart(None);
            return client.wait(PATIENCE).unwrap();
        }
    }
}

/// The client is killed while the server is held; then that goes on, for nobody.
fn with_dying_runner(bench: &mut Bench, client: Running, held: &Path, fired: &mut bool) -> Finished {
    while !held.exists() && !client.ended(LOOK) {}
    *fired = held.exists();
    if !*fired {
        // Nobody shall be held later.
        bench.restart(None);
    }
    client.kill9();
    let finished = client.wait(PATIENCE).unwrap();
    let _ = std::fs::remove_file(held);
    finished
}

fn go_on(bench: &mut Bench, report: usize, case: &Case) {
    if case.again == Again::Reexecuted {
        bench.attempt += 1;
        let other = bench.offer(2);
        bench.deliver(other, "two", &[], false);
        bench.attempt -= 1;
    }
    let by_flush = bench.kept("one") && (case.again == Again::Reexecuted || even(&case.fault));
    let settled = !bench.kept("one");
    let silent =
        matches!(bench.history.invocations.iter().rfind(|i| i.report == report), Some(i) if i.ended == Ended::Silent);
    if by_flush {
        let finished = bench.flush("one").output().unwrap();
        bench.ended(report, "one", &finished, false);
    } else if !settled || (silent && case.again == Again::SameSpool) {
        bench.deliver(report, "one", &[], false);
    }
}

/// Half of the cases, always the same: flushed rather than pushed again.
fn even(fault: &Fault) -> bool {
    format!("{fault:?}").bytes().map(u32::from).sum::<u32>().is_multiple_of(2)
}
