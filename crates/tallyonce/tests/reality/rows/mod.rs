//! Rows of the facts' tables (3.5, 3.5b), each in real processes and named after its row. What a row needs that no real
//! client does (a put of other bytes, a commit before its puts) is shown at the server (`crates/server/tests`).

mod begins;
mod commits;
mod others;
mod puts;

use proof::history::Items;
use proof::oracle::{Fate, JunitSpec, Oracle};
use proof::proxy::{Fault, FaultProxy, Plan};
use proof::spawn::{Run, Server, github_env};

use crate::world::{Outcome, PATIENCE, World, outcome};

const RUN: u64 = 9;
const CASES: usize = 60;
pub(crate) const ROUND: &str = "github:acme/shop:run:9";

/// A server behind a proxy, and a job that pushes 60 outcomes in four chunks, unless it says otherwise.
pub(crate) struct Rows {
    pub(crate) world: World,
    pub(crate) server: Server,
    pub(crate) proxy: FaultProxy,
}

impl Rows {
    pub(crate) fn new() -> Self {
        Self::with(Plan::pass())
    }

    pub(crate) fn with(plan: Plan) -> Self {
        let world = World::new();
        let server = world.serve();
        let proxy = FaultProxy::start_blocking(server.addr(), plan).unwrap();
        Self { world, server, proxy }
    }

    /// The n-th write, from 1: begin, four puts, commit.
    pub(crate) fn nth(n: u32, fault: Fault) -> Self {
        Self::with(Plan::nth(n, fault))
    }

    pub(crate) fn spec(verdicts: u64) -> JunitSpec {
        JunitSpec { verdicts, skipped: 2, ..JunitSpec::new(1, CASES, 9) }
    }

    /// A push by this attempt, with these verdicts, out of an outbox of the attempt's own.
    pub(crate) fn push(&self, attempt: u32, verdicts: u64, more: &[&str]) -> Run {
        self.push_of(attempt, &Self::spec(verdicts), &[&["--chunk-outcomes", "16", "--cycle", "main"], more].concat())
    }

    pub(crate) fn push_of(&self, attempt: u32, spec: &JunitSpec, more: &[&str]) -> Run {
        let name = format!("in/{attempt}-{}-{}.xml", spec.verdicts, spec.times);
        self.world.report(&name, &spec.xml());
        let outbox = format!("outbox-{attempt}");
        let url = self.proxy.url();
        let run = self.world.run(&["push", "--json", &name, "--project", "shop", "--to", &url]);
        let own: &[&str] = if more.contains(&"--outbox") { &[] } else { &["--outbox", &outbox] };
        run.args(own).args(more).envs(github_env(RUN, attempt, "test", &format!("runner-{attempt}")))
    }

    pub(crate) fn flush(&self, attempt: u32) -> Outcome {
        let (url, outbox) = (self.proxy.url(), format!("outbox-{attempt}"));
        done(&self.world.run(&["flush", "--json", "--to", &url, "--outbox", &outbox]))
    }

    /// A client that is killed at this point.
    pub(crate) fn killed(&self, attempt: u32, verdicts: u64, at: &str) {
        let run = self.push(attempt, verdicts, &[]).env("TALLYONCE_KILL_AT", at);
        let dead = run.output().unwrap();
        assert!(dead.was_killed(), "{dead}");
    }

    /// A client that waits at this point; gives it and the file that holds it.
    pub(crate) fn held(&self, attempt: u32, verdicts: u64, at: &str) -> (proof::spawn::Running, std::path::PathBuf) {
        let file = self.world.path(&format!("held-{attempt}"));
        let run = self.push(attempt, verdicts, &[]).env("TALLYONCE_HOLD_AT", format!("{at}={}", file.display()));
        let running = run.start().unwrap();
        while !file.exists() {
            assert!(!running.ended(std::time::Duration::from_millis(10)), "it ended before {at}: {}", running.stderr());
        }
        (running, file)
    }

    /// Method and kind of every write that came, with its statuses: `begin 201`, `put 201`, `commit 409`.
    pub(crate) fn writes(&self) -> Vec<String> {
        let log = self.proxy.log();
        let writes = log.iter().filter(|event| event.method != "GET" && !event.method.is_empty());
        let kind = |path: &str| {
            let path = path.split('?').next().unwrap_or(path);
            let endings = [("/staged-pushes", "begin"), ("/commit", "commit"), ("/pushes", "one-shot")];
            let ending = endings.iter().find(|(ending, _)| path.ends_with(ending));
            ending.map_or(if path.contains("/chunks/") { "put" } else { "cancel" }, |(_, kind)| kind)
        };
        let status = |status: Option<u16>| status.map_or_else(|| "-".to_owned(), |status| status.to_string());
        writes
            .flat_map(|event| {
                let first = format!("{} {}", kind(&event.path), status(event.upstream_status));
                let second = event.duplicate_status.map(|s| format!("{} {s}", kind(&event.path)));
                [Some(first), second]
            })
            .flatten()
            .collect()
    }

    /// How often such a write came.
    pub(crate) fn count(&self, write: &str) -> usize {
        self.writes().iter().filter(|seen| seen.starts_with(write)).count()
    }

    pub(crate) fn oracle(&self) -> Oracle {
        Oracle::open(&self.world.path("tallyonce.db")).unwrap()
    }

    /// The key of the one push, as the tables of epochs and pushes know it.
    pub(crate) fn key(&self) -> String {
        let run = self.world.run(&["key"]).envs(github_env(RUN, 1, "test", "runner-1"));
        run.output().unwrap().expect_code(0).unwrap().stdout.trim().to_owned()
    }

    pub(crate) fn fates(&self) -> Vec<Fate> {
        let epochs = self.oracle().epochs("shop", &self.key()).unwrap();
        epochs.into_iter().map(|(_, fate)| fate).collect()
    }

    pub(crate) fn visible(&self) -> Items {
        let rows = self.oracle().outcomes("shop", "main", ROUND).unwrap();
        let count = rows.len();
        let items: Items = rows.into_iter().map(|row| (row.item, row.status)).collect();
        assert_eq!(items.len(), count, "an item counts twice");
        items
    }

    /// These verdicts count, once, and nothing in the store contradicts itself.
    #[track_caller]
    pub(crate) fn counts(&self, verdicts: u64) {
        assert_eq!(self.visible(), Self::spec(verdicts).expected());
        assert_eq!(self.oracle().doubles().unwrap(), Vec::<String>::new());
        self.world.check_store();
    }

    #[track_caller]
    pub(crate) fn nothing_counts(&self) {
        assert_eq!(self.visible().len(), 0);
        assert_eq!(self.oracle().pushes().unwrap(), Vec::<String>::new());
        assert_eq!(self.oracle().doubles().unwrap(), Vec::<String>::new());
    }
}

pub(crate) fn done(run: &Run) -> Outcome {
    outcome(run.clone().timeout(PATIENCE).output().unwrap())
}
