//! The fault matrix: each product, each way in which a write goes wrong, by the built program, and then the same push again
//! on the same machine and on one that knows nothing. Nothing stands there twice and nothing is lost, or the program says so.
//!
//! `TALLYONCE_TARGET_PUSHES=N` makes N pushes of each; each further one breaks another call of the push.
//! `TALLYONCE_TARGET_ONLY=NAME` keeps to products whose name holds that. `TALLYONCE_WRITE_TABLE=1` writes `docs/targets/faults.md` anew.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use proof::spawn::Finished;
use proof::stubs::{Event, Fault, Plan, RetryAfter, Select, When};

use crate::products::{ALL, Product, Site};
use crate::site::Folder;
use crate::verdict::{self, Said, Seen, Tally};

/// For what has to come, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(90);
/// One request of these pushes may take so long. Many run at once.
const TIMEOUT: &str = "1500ms";
/// How many pushes run at once. They mostly wait.
const AT_ONCE: usize = 40;
/// How often the same push is made again before it is held to have given up.
const RUNS_MAX: usize = 4;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// Nothing: what a whole push looks like there.
    Nothing,
    AnswerDropped,
    RequestDropped,
    GatewayAfterWrite,
    Stall,
    Part,
    LimitTold,
    LimitUntold,
    LateBefore,
    LateAfter,
    TwoWriters,
    KilledKept,
    KilledLost,
}

impl Mode {
    const ALL: [Mode; 13] = [
        Mode::Nothing,
        Mode::AnswerDropped,
        Mode::RequestDropped,
        Mode::GatewayAfterWrite,
        Mode::Stall,
        Mode::Part,
        Mode::LimitTold,
        Mode::LimitUntold,
        Mode::LateBefore,
        Mode::LateAfter,
        Mode::TwoWriters,
        Mode::KilledKept,
        Mode::KilledLost,
    ];

    /// As the table calls it.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Mode::Nothing => "nothing",
            Mode::AnswerDropped => "answer dropped after the write",
            Mode::RequestDropped => "request dropped",
            Mode::GatewayAfterWrite => "504 after the write",
            Mode::Stall => "stall",
            Mode::Part => "a part of it written, then 500",
            Mode::LimitTold => "429 with `Retry-After`",
            Mode::LimitUntold => "429 without, and a deadline",
            Mode::LateBefore => "late, before it is read back",
            Mode::LateAfter => "late, after the push has ended",
            Mode::TwoWriters => "two writers at once",
            Mode::KilledKept => "killed, ledger kept",
            Mode::KilledLost => "killed, ledger lost",
        }
    }

    fn fault(self) -> Option<Fault> {
        let limit = |retry_after| Fault::Refused { status: 429, retry_after };
        Some(match self {
            Mode::Nothing => return None,
            Mode::AnswerDropped => Fault::ResponseDropped,
            Mode::RequestDropped => Fault::RequestDropped,
            Mode::GatewayAfterWrite => Fault::Page { status: 504, applied: true },
            Mode::Stall | Mode::KilledKept | Mode::KilledLost => {
                Fault::Stall { hold: When::ClientGone, then_answer: false }
            }
            Mode::Part => Fault::AppliedInPart { first: 2 },
            Mode::LimitTold => limit(RetryAfter::Seconds(1)),
            Mode::LimitUntold => limit(RetryAfter::Missing),
            Mode::LateBefore => Fault::DeliveredLate(When::Requests(1)),
            Mode::LateAfter => Fault::DeliveredLate(When::Told),
            Mode::TwoWriters => Fault::Meet { point: "two".to_owned(), size: 2 },
        })
    }

    /// The first push breaks the call that writes outcomes, each further one another call.
    fn plan(self, product: &Product, push: usize) -> Plan {
        let Some(fault) = self.fault() else { return Plan::pass() };
        let call = if self == Mode::Part { 0 } else { push % product.writes.len() };
        let writes = Select::writes().what(product.writes[call]);
        // Half-way, where each outcome is a call of its own; a limit that is met late would leave no time to hear it.
        let nth = if call == 0 && !product.bulk && self != Mode::LimitUntold { 2 } else { 1 };
        let which = match self {
            Mode::TwoWriters => writes.first(2),
            Mode::LimitUntold => writes.from(nth),
            _ => writes.nth(nth),
        };
        Plan::on(which, fault)
    }
}

/// One push to one product under one fault.
struct Case<'a> {
    product: &'a Product,
    mode: Mode,
    push: usize,
}

/// The program on one machine.
struct Machine(Folder);

impl Machine {
    fn start(&self, more: &[&str]) -> proof::spawn::Running {
        self.0.pushing(more).env("TALLYONCE_TIMEOUT", TIMEOUT).start().unwrap()
    }

    fn push(&self, said: &mut Said, more: &[&str]) -> Option<i32> {
        said.hear_push(&self.start(more).wait(PATIENCE).unwrap())
    }

    /// The same push, until it has an end.
    fn push_to_the_end(&self, said: &mut Said) -> Result<(), String> {
        for _ in 0..RUNS_MAX {
            if verdict::is_an_end(self.push(said, &[])) {
                return Ok(());
            }
        }
        Err(format!("{RUNS_MAX} runs did not end it"))
    }

    fn ask(&self, args: &[&str]) -> Finished {
        self.0.run(args).env("TALLYONCE_TIMEOUT", TIMEOUT).timeout(PATIENCE).output().unwrap()
    }

    /// What the commands that look say.
    fn look(&self, said: &mut Said) {
        said.hear_forwards(&self.ask(&["forwards", "--sweep", "--json"]));
        said.hear_audit(&self.ask(&["audit", "there", "--cycle", "main", "--json"]));
    }
}

impl Case<'_> {
    fn title(&self) -> String {
        format!("{}, {}, push {}", self.product.name, self.mode.words(), self.push + 1)
    }

    /// The whole story; what stands there at its end, and what was said of it.
    fn run(&self) -> Result<Seen, String> {
        let (site, mut said) = (self.product.start(), Said::default());
        match self.story(&site, &mut said) {
            Ok(()) => Ok(Seen { ledger: site.door().ledger(), said }),
            Err(why) => Err(format!("{why}; {said}")),
        }
    }

    fn story(&self, site: &Site, said: &mut Said) -> Result<(), String> {
        site.door().set_plan(self.mode.plan(self.product, self.push));
        let home = Machine(site.machine());
        self.first(site, &home, said)?;
        let met = site.door().log().iter().any(|event| !event.faults.is_empty());
        if !met && self.mode != Mode::Nothing {
            return Err("it never came to the fault".to_owned());
        }
        // By a machine that knows nothing of it; and what does the first one see afterwards?
        Machine(site.machine()).push_to_the_end(said)?;
        home.look(said);
        Ok(())
    }

    /// The push that meets the fault, to its end.
    fn first(&self, site: &Site, home: &Machine, said: &mut Said) -> Result<(), String> {
        match self.mode {
            Mode::TwoWriters => {
                let writers = [home, &Machine(site.machine())];
                let clients = writers.map(|writer| writer.start(&[]));
                let ended = clients.map(|client| said.hear_push(&client.wait(PATIENCE).unwrap()));
                for (writer, code) in writers.iter().zip(ended) {
                    if !verdict::is_an_end(code) {
                        writer.push_to_the_end(said)?;
                    }
                }
                Ok(())
            }
            Mode::KilledKept | Mode::KilledLost => {
                let client = home.start(&[]);
                arrived(site, |event| !event.faults.is_empty())?;
                client.kill9();
                client.wait(PATIENCE).unwrap();
                if self.mode == Mode::KilledLost {
                    std::fs::remove_dir_all(home.0.path(".tallyonce")).unwrap();
                }
                home.push_to_the_end(said)
            }
            // A product that doesn't say how long is given more than this deadline leaves.
            Mode::LimitUntold => match home.push(said, &["--deadline", "4s"]) {
                Some(75) => {
                    site.door().set_plan(Plan::pass());
                    home.push_to_the_end(said)
                }
                // A call that the push can do without.
                Some(0) if self.push > 0 => Ok(()),
                other => Err(format!("a limit that outlasts the deadline ended with {other:?}")),
            },
            Mode::LateAfter => {
                home.push_to_the_end(said)?;
                site.door().release();
                arrived(site, |event| !event.faults.is_empty() && event.applied.is_some())
            }
            _ => home.push_to_the_end(said),
        }
    }
}

/// Waits for a request of which this is true.
fn arrived(site: &Site, is_it: impl Fn(&Event) -> bool) -> Result<(), String> {
    let found = site.door().wait_for(PATIENCE, |log| log.iter().any(&is_it));
    found.map(drop).ok_or_else(|| "the request that was to break never came".to_owned())
}

/// How many pushes of each.
fn pushes() -> usize {
    std::env::var_os("TALLYONCE_TARGET_PUSHES").and_then(|n| n.to_str()?.parse().ok()).unwrap_or(1)
}

/// Runs all of them, so many at once.
fn run_all(cases: &[Case<'_>]) -> Vec<Result<Seen, String>> {
    let next = Mutex::new(0..cases.len());
    let done: Mutex<BTreeMap<usize, Result<Seen, String>>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(at) = next.lock().unwrap().next() else { return };
                    let seen = cases[at].run();
                    done.lock().unwrap().insert(at, seen);
                }
            });
        }
    });
    done.into_inner().unwrap().into_values().collect()
}

#[test]
fn every_fault_at_every_product_leaves_each_outcome_once_or_is_named() {
    let mut cases: Vec<Case<'_>> = Vec::new();
    let only = std::env::var_os("TALLYONCE_TARGET_ONLY").unwrap_or_default();
    for product in ALL.iter().filter(|product| product.name.contains(&*only.to_string_lossy())) {
        for mode in Mode::ALL {
            let count = if mode == Mode::Nothing { 1 } else { pushes() };
            cases.extend((0..count).map(|push| Case { product, mode, push }));
        }
    }
    // Those that wait longest for what they wrote to be shown go first.
    cases.sort_by_key(|case| std::cmp::Reverse(case.product.shown_after));
    let seen = run_all(&cases);
    let mut clean: BTreeMap<&str, &Seen> = BTreeMap::new();
    for (case, seen) in cases.iter().zip(&seen).filter(|(case, _)| case.mode == Mode::Nothing) {
        clean.insert(case.product.name, seen.as_ref().unwrap_or_else(|why| panic!("{}: {why}", case.title())));
    }
    let (mut tallies, mut wrong) = (BTreeMap::<(usize, Mode), Tally>::new(), Vec::new());
    for (case, seen) in cases.iter().zip(&seen) {
        let judged = seen.as_ref().map_err(String::clone);
        match judged.and_then(|seen| verdict::judge(case.product, seen, clean[case.product.name])) {
            Ok(tally) => {
                let place = ALL.iter().position(|product| product.name == case.product.name).unwrap_or_default();
                tallies.entry((place, case.mode)).or_default().add(tally);
            }
            Err(why) => wrong.push(format!("{}: {why}", case.title())),
        }
    }
    let table = verdict::table(&tallies);
    println!("{table}");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    if std::env::var_os("TALLYONCE_WRITE_TABLE").is_some() {
        verdict::write(&table);
    }
}
