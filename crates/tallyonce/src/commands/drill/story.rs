//! One push of a drill on real processes: its clients, their deaths, what they said; and the mending at the end.
//! Must not judge what was said: `audit` does.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proof::proxy::{Event, FaultProxy, Plan};
use proof::spawn::{Finished, Run, Running};

use super::script::{Moment, PushScript, Story};
use super::stage::{Halt, Stage};
use super::told::{Said, Telling, by_flush, by_push};

/// How long a client waits for one answer.
const TIMEOUT: &str = "2500ms";
/// How long a client tries, if the link recovers.
const PATIENT: &str = "60s";
/// How long it tries if the link is to outlast it.
const IMPATIENT: &str = "250ms";
/// How often a wait looks at something else.
const GLANCE: Duration = Duration::from_millis(20);
/// How often a push is delivered again over a healed link before it counts as not confirmed.
const MENDING_MAX: u32 = 3;

/// What every push of a drill has in common.
pub(super) struct Common {
    /// The project.
    pub project: String,
    /// The cycle.
    pub cycle: String,
}

/// A push that is being told.
pub(super) struct Play<'a> {
    stage: &'a Stage,
    common: &'a Common,
    script: &'a PushScript,
    link: Arc<FaultProxy>,
    tellings: Vec<Telling>,
    client_kills: u32,
}

/// A push that has been told.
#[derive(Debug)]
pub(super) struct Played {
    /// Which one.
    pub number: u32,
    /// All that its clients said.
    pub tellings: Vec<Telling>,
    /// Clients that were killed.
    pub client_kills: u32,
    /// What passed its link.
    pub events: Vec<Event>,
    /// Entries that are still in an outbox.
    pub kept: usize,
}

impl<'a> Play<'a> {
    /// Writes the reports and opens the link.
    ///
    /// # Errors
    /// The folder or the ports are used up.
    pub(super) fn begin(stage: &'a Stage, common: &'a Common, script: &'a PushScript) -> Result<Self, Halt> {
        let mut play = Self {
            stage,
            common,
            script,
            link: stage.link(script.number, script.faults.clone())?,
            tellings: Vec::new(),
            client_kills: 0,
        };
        for (at, report) in script.reports.iter().enumerate() {
            std::fs::write(stage.path(&play.report(at + 1)), report.xml()).map_err(Halt::machine)?;
        }
        play.tellings.reserve(4);
        Ok(play)
    }

    /// The story, while the link breaks what it is told to break and, perhaps, the server dies.
    ///
    /// # Errors
    /// Somebody asked to stop, or the machine fails.
    pub(super) fn tell(&mut self) -> Result<(), Halt> {
        let Some(moment) = self.script.server_dies else { return self.story() };
        let over = AtomicBool::new(false);
        let (stage, link) = (self.stage, Arc::clone(&self.link));
        std::thread::scope(|scope| {
            let killer = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    if passed(&link, moment) {
                        return stage.kill_server();
                    }
                }
                Ok(())
            });
            let told = self.story();
            over.store(true, Ordering::Relaxed);
            let killed = killer.join().unwrap_or_else(|_| Err(Halt::Machine("a thread of the drill died".to_owned())));
            told.and(killed)
        })
    }

    fn story(&mut self) -> Result<(), Halt> {
        match self.script.story {
            Story::Plain => self.push(1, "a", PATIENT),
            Story::Again => {
                self.push(1, "a", PATIENT)?;
                self.push(1, "a", PATIENT)
            }
            Story::Race => self.race(),
            Story::Killed { at, flush } => self.killed(at, flush),
            Story::GivesUp => self.push(1, "a", IMPATIENT),
            Story::ReExecuted => {
                self.push(1, "a", PATIENT)?;
                // The second attempt of a job begins when the first has ended, and the first here is recorded.
                self.mend_attempt(1)?;
                self.push(2, "b", PATIENT)
            }
            Story::LateFirst => {
                self.push(1, "a", IMPATIENT)?;
                // The machine of the second attempt has a link that works.
                self.link.set_plan(Plan::pass());
                self.push(2, "b", PATIENT)
            }
        }
    }

    fn push(&mut self, attempt: usize, outbox: &str, deadline: &str) -> Result<(), Halt> {
        let running = self.command(attempt, outbox, deadline).start().map_err(Halt::machine)?;
        let finished = self.stage.finish(running)?;
        self.tellings.push(by_push(attempt, &finished));
        Ok(())
    }

    /// Two machines with the same job, each with its outbox.
    fn race(&mut self) -> Result<(), Halt> {
        let both = ["a", "b"].map(|outbox| self.command(1, outbox, PATIENT).start());
        for running in both {
            let finished = self.stage.finish(running.map_err(Halt::machine)?)?;
            self.tellings.push(by_push(1, &finished));
        }
        Ok(())
    }

    fn killed(&mut self, at: Moment, flush: bool) -> Result<(), Halt> {
        let running = self.command(1, "a", PATIENT).start().map_err(Halt::machine)?;
        while !running.ended(Duration::ZERO) && !self.stage.is_stopped() {
            if passed(&self.link, at) {
                running.kill9();
                break;
            }
        }
        let finished = self.stage.finish(running)?;
        self.killed_or_not(&finished);
        self.tellings.push(by_push(1, &finished));
        if flush { self.flush(1, "a") } else { self.push(1, "a", PATIENT) }
    }

    fn killed_or_not(&mut self, finished: &Finished) {
        self.client_kills += u32::from(finished.was_killed());
    }

    fn flush(&mut self, attempt: usize, outbox: &str) -> Result<(), Halt> {
        let run = self.common_flags(self.stage.client(&self.link, "flush"), outbox, PATIENT);
        let running: Running = run.start().map_err(Halt::machine)?;
        let finished = self.stage.finish(running)?;
        self.tellings.extend(by_flush(attempt, &finished));
        Ok(())
    }

    fn command(&self, attempt: usize, outbox: &str, deadline: &str) -> Run {
        let PushScript { run, job, shard, .. } = self.script;
        let command = self
            .common_flags(self.stage.client(&self.link, "push"), outbox, deadline)
            .arg(self.report(attempt))
            .args(["--project", &self.common.project, "--cycle", &self.common.cycle])
            .args(["--run", run.as_str(), "--job", job.as_str(), "--attempt", &attempt.to_string()]);
        match shard {
            Some(shard) => command.args(["--shard", &shard.to_string()]),
            None => command,
        }
    }

    fn common_flags(&self, run: Run, outbox: &str, deadline: &str) -> Run {
        run.args(["--timeout", TIMEOUT, "--deadline", deadline]).arg("--outbox").arg(self.outbox(outbox))
    }

    fn report(&self, attempt: usize) -> String {
        format!("report-{}-{attempt}.xml", self.script.number)
    }

    fn outbox(&self, name: &str) -> PathBuf {
        self.stage.path(&format!("outbox-{}-{name}", self.script.number))
    }

    /// Pushes that an outbox keeps.
    fn kept_in(&self, outbox: &str) -> usize {
        let entries = std::fs::read_dir(self.outbox(outbox)).into_iter().flatten().filter_map(Result::ok);
        entries.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "push")).count()
    }

    fn is_confirmed(&self, attempt: usize) -> bool {
        let confirmed = |telling: &Telling| matches!(telling.said, Said::Confirmed { .. });
        self.tellings.iter().any(|telling| telling.attempt == attempt && confirmed(telling))
    }

    /// True if nothing is left to be delivered.
    pub(super) fn is_settled(&self) -> bool {
        let attempts = 1..=self.script.reports.len();
        self.kept_in("a") + self.kept_in("b") == 0 && attempts.into_iter().all(|attempt| self.is_confirmed(attempt))
    }

    /// Heals the link, and delivers what is kept or was never confirmed.
    ///
    /// # Errors
    /// Somebody asked to stop, or the machine fails.
    pub(super) fn mend(&mut self) -> Result<(), Halt> {
        self.link.set_plan(Plan::pass());
        for outbox in ["a", "b"] {
            if self.kept_in(outbox) > 0 {
                self.flush(self.attempt_of(outbox), outbox)?;
            }
        }
        (1..=self.script.reports.len()).try_for_each(|attempt| self.mend_attempt(attempt))
    }

    fn attempt_of(&self, outbox: &str) -> usize {
        if outbox == "b" { self.script.reports.len() } else { 1 }
    }

    /// Delivers an attempt until it is confirmed. A client that was killed early left nothing: its job runs again.
    fn mend_attempt(&mut self, attempt: usize) -> Result<(), Halt> {
        let outbox = if attempt == 1 { "a" } else { "b" };
        for _ in 0..MENDING_MAX {
            if self.is_confirmed(attempt) {
                break;
            }
            self.push(attempt, outbox, PATIENT)?;
        }
        Ok(())
    }

    /// Ends it and closes the link.
    pub(super) fn end(self) -> Played {
        self.stage.unlink(self.script.number);
        Played {
            number: self.script.number,
            kept: self.kept_in("a") + self.kept_in("b"),
            client_kills: self.client_kills,
            events: self.link.log(),
            tellings: self.tellings,
        }
    }
}

/// Looks for a moment whether the link has come to this one; if so, waits out its pause.
fn passed(link: &FaultProxy, moment: Moment) -> bool {
    let reached = link.wait_for(GLANCE, |log| has_come(log, moment)).is_some();
    if reached {
        std::thread::sleep(moment.pause);
    }
    reached
}

fn has_come(log: &[Event], moment: Moment) -> bool {
    let Some(event) = log.get(moment.request - 1) else { return false };
    // A request that never reaches the server is never answered; then the moment is when it is broken.
    let never_answered = event.fault.is_some_and(|fault| fault.arrivals() == 0);
    !moment.answered || never_answered || event.upstream_status.is_some() || log.len() > moment.request
}
