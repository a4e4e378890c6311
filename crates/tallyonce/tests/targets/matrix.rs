//! One push of the fault matrix: a way in which a write goes wrong, by the built program, and then the same push again on the
//! same machine and on one that knows nothing. Must not judge what came of it.

use std::time::Duration;

use proof::spawn::Finished;
use proof::stubs::{Event, Fault, Plan, RetryAfter, Select, When};

use crate::live::Rigs;
use crate::products::{OUTCOMES, Product, Site, Start};
use crate::site::Folder;
use crate::verdict::{self, Said, Seen};

/// For what has to come, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(90);
/// One request may take so long where an answer is held back until the client goes, at a stub and at a real server.
const STALLED: &str = "1500ms";
const STALLED_LIVE: &str = "4s";
/// And so long elsewhere: much runs at once, and on a busy machine an answer that is only late would be one fault more.
const TIMEOUT: &str = "30s";
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
    pub(crate) const ALL: [Mode; 13] = [
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

/// One push to one product by one strategy under one fault.
pub(crate) struct Case {
    pub(crate) product: &'static Product,
    pub(crate) strategy: &'static str,
    pub(crate) mode: Mode,
    pub(crate) push: usize,
}

/// The program on one machine.
struct Machine {
    folder: Folder,
    timeout: &'static str,
}

impl Machine {
    fn start(&self, more: &[&str]) -> proof::spawn::Running {
        self.folder.pushing(more).env("TALLYONCE_TIMEOUT", self.timeout).start().unwrap()
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
        self.folder.run(args).env("TALLYONCE_TIMEOUT", self.timeout).timeout(PATIENCE).output().unwrap()
    }

    /// What the commands that look say.
    fn look(&self, said: &mut Said) {
        said.hear_forwards(&self.ask(&["forwards", "--sweep", "--json"]));
        said.hear_audit(&self.ask(&["audit", "there", "--cycle", "main", "--json"]));
    }
}

impl Case {
    pub(crate) fn title(&self) -> String {
        let Product { name, tested, .. } = self.product;
        format!("{name} ({tested}), {}, {}, push {}", self.strategy, self.mode.words(), self.push + 1)
    }

    pub(crate) fn is_live(&self) -> bool {
        matches!(self.product.start, Start::Live(_))
    }

    fn machine(&self, site: &Site) -> Machine {
        let timeout = match (self.mode, self.is_live()) {
            (Mode::Stall, false) => STALLED,
            (Mode::Stall, true) => STALLED_LIVE,
            _ => TIMEOUT,
        };
        Machine { folder: site.machine(self.strategy), timeout }
    }

    /// The whole story; what stands there at its end, and what was said of it.
    pub(crate) fn run(&self, rigs: &Rigs) -> Result<Seen, String> {
        let site = match self.product.start {
            Start::Stub(start) => start(OUTCOMES),
            Start::Live(vendor) => rigs.get(vendor).ok_or("there is no such server here")?.site(),
        };
        let mut said = Said::default();
        match self.story(&site, &mut said) {
            Ok(()) => Ok(Seen { ledger: site.door().ledger(), said }),
            Err(why) => Err(format!("{why}; {said}")),
        }
    }

    fn story(&self, site: &Site, said: &mut Said) -> Result<(), String> {
        site.door().set_plan(self.mode.plan(self.product, self.push));
        let home = self.machine(site);
        self.first(site, &home, said)?;
        let met = site.door().log().iter().any(|event| !event.faults.is_empty());
        if !met && self.mode != Mode::Nothing {
            return Err("it never came to the fault".to_owned());
        }
        // By a machine that knows nothing of it; and what does the first one see afterwards?
        self.machine(site).push_to_the_end(said)?;
        home.look(said);
        Ok(())
    }

    /// The push that meets the fault, to its end.
    fn first(&self, site: &Site, home: &Machine, said: &mut Said) -> Result<(), String> {
        match self.mode {
            Mode::TwoWriters => {
                let writers = [home, &self.machine(site)];
                let clients = writers.map(|writer| writer.start(&[]));
                let ended = clients.map(|client| said.hear_push(&client.wait(PATIENCE).unwrap()));
                for (writer, code) in writers.iter().zip(ended) {
                    if !verdict::is_an_end(code) {
                        writer.push_to_the_end(said)?;
                    }
                }
                // Each knows what it has ended itself.
                writers[1].look(said);
                Ok(())
            }
            Mode::KilledKept | Mode::KilledLost => {
                let client = home.start(&[]);
                arrived(site, |event| !event.faults.is_empty())?;
                client.kill9();
                client.wait(PATIENCE).unwrap();
                if self.mode == Mode::KilledLost {
                    std::fs::remove_dir_all(home.folder.path(".tallyonce")).unwrap();
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
