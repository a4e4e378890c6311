//! A world in the middle of one push under faults, and the history that its processes make. Must not know which fault.

use proof::history::{Ended, History, Invocation, Tables, Tally, check};
use proof::oracle::{JunitSpec, Oracle};
use proof::proxy::{Fault as Broken, FaultProxy, Plan};
use proof::spawn::{Finished, Run, Server, github_env};
use serde_json::Value;

use crate::world::{World, count};

const RUN: u64 = 7;
/// Outcomes, and the most of a chunk: four chunks.
const CASES: usize = 60;
const CHUNK: &str = "16";
/// What a process is armed with, to be disarmed for its successor.
const ARMED: [&str; 4] = ["TALLYONCE_KILL_AT", "TALLYONCE_FAIL_AT", "TALLYONCE_HOLD_AT", "TALLYONCE_TRACE_AT"];

/// What is pushed, and where to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flow {
    /// In four chunks to a server.
    Staged,
    /// The same over what an earlier attempt recorded.
    Over,
    /// In one request to a server.
    OneShot,
    /// The same over what an earlier attempt recorded.
    OneShotOver,
    /// What is recorded already, in four chunks to a server.
    Repeat,
    /// What is recorded already, in one request to a server.
    OneShotRepeat,
    /// What another process began to stage under the same key, and was killed.
    Resume,
    /// In four chunks into a file.
    EmbeddedStaged,
    /// At once into a file.
    EmbeddedOneShot,
}

impl Flow {
    pub(crate) const ALL: [Self; 9] = [
        Self::Staged,
        Self::Over,
        Self::OneShot,
        Self::OneShotOver,
        Self::Repeat,
        Self::OneShotRepeat,
        Self::Resume,
        Self::EmbeddedStaged,
        Self::EmbeddedOneShot,
    ];

    pub(crate) fn embedded(self) -> bool {
        matches!(self, Self::EmbeddedStaged | Self::EmbeddedOneShot)
    }

    fn staged(self) -> bool {
        !matches!(self, Self::OneShot | Self::OneShotOver | Self::OneShotRepeat | Self::EmbeddedOneShot)
    }

    fn over(self) -> bool {
        matches!(self, Self::Over | Self::OneShotOver)
    }
}

/// A world in the middle of a case.
pub(crate) struct Bench {
    pub(crate) world: World,
    pub(crate) server: Option<Server>,
    pub(crate) proxy: Option<FaultProxy>,
    to: String,
    flow: Flow,
    pub(crate) history: History,
    pub(crate) attempt: u64,
}

impl Bench {
    pub(crate) fn new(flow: Flow, broken: Option<(u32, Broken)>) -> Self {
        let world = World::new();
        let server = (!flow.embedded()).then(|| world.serve());
        let mut bench =
            Self { to: String::new(), world, server, proxy: None, flow, history: History::default(), attempt: 1 };
        bench.to = bench.server.as_ref().map_or_else(|| bench.world.store_url(), Server::url);
        if flow == Flow::Resume {
            let report = bench.offer(1);
            let killed = [("TALLYONCE_KILL_AT".to_owned(), "client:put:done@2".to_owned())];
            assert_eq!(bench.deliver(report, "one", &killed, true), "signal 9");
        }
        if flow.over() || matches!(flow, Flow::Repeat | Flow::OneShotRepeat) {
            let before = bench.offer(if flow.over() { 40 } else { 1 });
            bench.deliver(before, "zero", &[], false);
            bench.attempt = 2;
        }
        if let (Some((nth, fault)), Some(server)) = (broken, &bench.server) {
            let proxy = FaultProxy::start_blocking(server.addr(), Plan::nth(nth, fault)).unwrap();
            bench.to = proxy.url();
            bench.proxy = Some(proxy);
        }
        bench
    }

    /// Writes a report of these verdicts; gives its number.
    pub(crate) fn offer(&mut self, verdicts: u64) -> usize {
        let spec = JunitSpec { verdicts, errors: 1, skipped: 1, ..JunitSpec::new(1, CASES, 9) };
        if let Some(known) = self.history.reports.iter().position(|report| report.items == spec.expected()) {
            return known;
        }
        let name = format!("in/{}.xml", self.history.reports.len());
        // One text is large, which the store keeps apart.
        let long = "expected 1, got 2; ".repeat(200);
        self.world.report(&name, &spec.xml().replacen("expected 1\ngot 2", &long, 1));
        let items = count(&self.world.path(&name));
        assert_eq!(items, spec.expected());
        self.history.offer(self.attempt, items)
    }

    pub(crate) fn push(&self, report: usize, outbox: &str, deadline: &str) -> Run {
        let name = format!("in/{report}.xml");
        let arguments = ["push", "--json", &name, "--project", "shop", "--cycle", "main", "--to", &self.to];
        let run = self.world.run(&arguments).args(["--outbox", outbox, "--deadline", deadline, "--timeout", "20s"]);
        let chunks: &[&str] = if self.flow.staged() { &["--chunk-outcomes", CHUNK] } else { &[] };
        run.args(chunks).envs(github_env(RUN, self.attempt as u32, "test", &format!("runner-{}", self.attempt)))
    }

    pub(crate) fn flush(&self, outbox: &str) -> Run {
        self.world.run(&["flush", "--json", "--to", &self.to, "--outbox", outbox, "--deadline", "90s"])
    }

    /// Files in an outbox that wait for a receipt.
    pub(crate) fn kept(&self, outbox: &str) -> bool {
        let entries = std::fs::read_dir(self.world.path(outbox)).into_iter().flatten();
        entries.map(|e| e.unwrap().path()).any(|p| p.extension().is_some_and(|x| x != "lock" && x != "tmp"))
    }

    /// Takes down how a process ended that delivered a report.
    pub(crate) fn ended(&mut self, report: usize, outbox: &str, finished: &Finished, faulted: bool) -> String {
        let json: Value = serde_json::from_str(finished.stdout.trim()).unwrap_or(Value::Null);
        let state = json["state"].as_str().unwrap_or("(none)").to_owned();
        let warned = json["warnings"].to_string().contains("other outcomes are recorded");
        let differs = matches!(json["difference"]["class"].as_str(), Some("semantic" | "structural"));
        assert!(!finished.timed_out, "it never ended: {finished}");
        let ended = match finished.code {
            Some(exit) => Ended::Said { exit, state: state.clone(), difference: warned || differs },
            None => Ended::Silent,
        };
        let word = match (finished.code, finished.signal) {
            (Some(0), _) => state,
            (Some(code), _) => format!("exit {code} {state}"),
            (None, signal) => format!("signal {}", signal.unwrap_or(0)),
        };
        let kept = self.kept(outbox);
        self.history.invocations.push(Invocation { report, ended, faulted, kept });
        word
    }

    /// Delivers without a fault.
    pub(crate) fn deliver(&mut self, report: usize, outbox: &str, env: &[(String, String)], faulted: bool) -> String {
        let finished = self.push(report, outbox, "90s").envs(env.iter().cloned()).output().unwrap();
        self.ended(report, outbox, &finished, faulted)
    }

    /// The server starts anew with one of these variables, or with none. False if it died at its start.
    pub(crate) fn restart(&mut self, armed: Option<(&str, String)>) -> bool {
        let Some(server) = &mut self.server else { return true };
        let mut env: Vec<(String, String)> = ARMED.iter().map(|name| ((*name).to_owned(), String::new())).collect();
        env.extend(armed.map(|(name, value)| (name.to_owned(), value)));
        server.restart_with(&env).is_ok()
    }

    /// Holds everything against the tables.
    pub(crate) fn judge(&self) -> Result<Tally, String> {
        let oracle = Oracle::open(&self.world.path("tallyonce.db")).map_err(|e| e.to_string())?;
        let pushes = oracle.pushes().map_err(|e| format!("{e:#}"))?;
        let key = pushes.first().and_then(|push| push.strip_prefix("shop/")).unwrap_or_default().to_owned();
        let round = format!("github:acme/shop:run:{RUN}");
        let tables = Tables::read(&oracle, "shop", "main", &round, &key).map_err(|e| format!("half: {e:#}"))?;
        check(&self.history, &tables).map_err(|findings| {
            let words: Vec<String> = findings.iter().map(ToString::to_string).collect();
            let ends: Vec<_> = self.history.invocations.iter().map(|i| (&i.ended, i.report, i.kept)).collect();
            format!("{}\n  {ends:?}\n  epochs {:?}", words.join("\n  "), tables.epochs)
        })
    }
}
