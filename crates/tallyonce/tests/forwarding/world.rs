//! A product behind a proxy, a folder with a configuration that forwards to it, and servers over one store. Must not know
//! the program's code.

use std::fmt::Write as _;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use proof::proxy::{FaultProxy, Plan};
use proof::spawn::{Binary, Finished, Run, Server};
use proof::stubs::{Door, Kiwi, Stub, TestRail, kiwi, testrail};
use serde_json::Value;
use tempfile::TempDir;

/// Items of a push.
pub(crate) const ITEMS: usize = 5;
/// How many times faster than usual a server forwards: a lease of three seconds.
const PACE: &str = "20";
/// How long a lease lasts at that pace.
pub(crate) const LEASE: Duration = Duration::from_secs(3);
/// Within so long everything is settled once faults stop, on a machine that is busy with other worlds.
pub(crate) const BOUND: &str = "90s";
/// Longer than anything takes.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// How the product takes a repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Product {
    /// It appends: `TestRail`.
    Appends,
    /// It replaces: Kiwi TCMS.
    Replaces,
}

pub(crate) struct World {
    pub(crate) product: Product,
    pub(crate) stub: Box<dyn Deref<Target = Door> + Send + Sync>,
    pub(crate) proxy: FaultProxy,
    folder: TempDir,
    names: Vec<String>,
}

impl World {
    pub(crate) fn new(product: Product) -> Self {
        let (stub, names, more): (Box<dyn Deref<Target = Door> + Send + Sync>, Vec<String>, &str) = match product {
            Product::Appends => {
                let options = testrail::Options { rate: None, ..testrail::Options::default() };
                let mut rail = TestRail::new(options);
                let names =
                    (0..ITEMS).map(|n| format!("C{} adds", rail.add_case(&format!("case {n}"), None))).collect();
                let more = "kind = \"testrail\"\nproject = \"1\"\n";
                (Box::new(Stub::start(rail).unwrap()), names, more)
            }
            Product::Replaces => {
                let mut kiwi = Kiwi::new(kiwi::Options::default());
                let names =
                    (0..ITEMS).map(|n| format!("TC-{} adds", kiwi.add_case(&format!("case {n}"), true))).collect();
                let more = "kind = \"kiwi\"\nproject = \"Shop\"\nplan = \"Automated\"\nversion = \"1.0\"\n";
                (Box::new(Stub::start(kiwi).unwrap()), names, more)
            }
        };
        let proxy = FaultProxy::start_blocking(stub.addr(), Plan::pass()).unwrap();
        let world = Self { product, stub, proxy, folder: tempfile::tempdir().unwrap(), names };
        let config = format!(
            "[target.there]\nurl = \"{}\"\ntoken = \"${{TARGET_TOKEN}}\"\nuser = \"bot@example.com\"\nquiet = \"1s\"\n\
             {more}[forward.there]\nprojects = [\"shop\"]\n[serve]\nstore = \"{}\"\n",
            world.proxy.url(),
            world.store_url(),
        );
        std::fs::write(world.path("tallyonce.toml"), config).unwrap();
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("served.db")
    }

    pub(crate) fn store_url(&self) -> String {
        format!("sqlite:{}", self.store().display())
    }

    /// The calls that the product saw, for the words of a failure.
    pub(crate) fn calls(&self) -> String {
        let line = |event: proof::stubs::Event| {
            let (request, faults) = (&event.request, &event.faults);
            format!(
                "{} {} {} {:?} {:?} {faults:?}\n",
                event.no,
                request.method,
                request.target,
                event.applied,
                event.status()
            )
        };
        self.stub.log().into_iter().map(line).collect()
    }

    /// A server, armed so.
    pub(crate) fn serve(&self, armed: &[(String, String)]) -> Server {
        let binary = Binary::at(env!("CARGO_BIN_EXE_tallyonce")).unwrap();
        let usual = [("TARGET_TOKEN", "key"), ("TALLYONCE_TIMEOUT", "900ms"), ("TALLYONCE_FORWARD_PACE", PACE)];
        let mut env: Vec<(String, String)> =
            usual.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        env.extend_from_slice(armed);
        let config = self.path("tallyonce.toml").display().to_string();
        Server::start(&binary, &self.store_url(), &env, &["--config".to_owned(), config]).unwrap()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        let binary = Binary::at(env!("CARGO_BIN_EXE_tallyonce")).unwrap();
        let run = Run::new(&binary).args(arguments).folder(self.folder.path()).timeout(PATIENCE);
        run.env("TARGET_TOKEN", "key").env("TALLYONCE_TIMEOUT", "10s")
    }

    /// A push of all items by one job of run 7; which of them fail, its number says.
    pub(crate) fn push(&self, job: usize, to: &str) -> Run {
        let name = format!("report-{job}.xml");
        std::fs::write(self.path(&name), self.report(job)).unwrap();
        let job = format!("job {job}");
        let args = ["push", "--json", &name, "--to", to, "--project", "shop", "--cycle", "main", "--run", "7"];
        self.run(&[&args[..], &["--job", &job, "--deadline", BOUND]].concat())
    }

    /// The place of the item that names this case.
    pub(crate) fn item_of(&self, case: &str) -> usize {
        // One product knows a case by its id, the other by its title.
        let found = match self.product {
            Product::Appends => self.names.iter().position(|name| name.split(' ').next() == Some(case)),
            Product::Replaces => case.strip_prefix("case ").and_then(|number| number.parse().ok()),
        };
        found.unwrap_or_else(|| panic!("{case} is no case of {:?}", self.names))
    }

    fn report(&self, job: usize) -> String {
        let mut text = format!("<testsuite name=\"s\" tests=\"{ITEMS}\">");
        for (at, name) in self.names.iter().enumerate() {
            let failure = if fails(job, at) { "<failure message=\"no\"/>" } else { "" };
            write!(text, "<testcase classname=\"c\" name=\"{name}\" time=\"0.01\">{failure}</testcase>").unwrap();
        }
        text + "</testsuite>"
    }

    /// The same push again; it waits until everything of it is settled at the target.
    #[track_caller]
    pub(crate) fn settle(&self, job: usize, to: &str) -> Value {
        let finished = self.push(job, to).args(["--wait-forward"]).output().unwrap();
        assert_eq!(
            finished.code,
            Some(0),
            "job {job} is not settled: {finished}\n{:#?}\n{}",
            crate::oracle::tables(self),
            self.calls()
        );
        object(&finished)
    }

    /// Reads everything settled back, and gives the flags that are seen then.
    pub(crate) fn sweep(&self) -> (Finished, Vec<String>) {
        let swept = self.run(&["forwards", "--sweep", "--json"]).output().unwrap();
        let flags = crate::oracle::tables(self).flags;
        (swept, flags)
    }
}

/// What `--json` printed.
#[track_caller]
pub(crate) fn object(finished: &Finished) -> Value {
    serde_json::from_str(finished.stdout.trim()).unwrap_or_else(|error| panic!("{error}: {finished}"))
}

/// Whether an item fails in a job's report.
pub(crate) fn fails(job: usize, item: usize) -> bool {
    (job + item).is_multiple_of(3)
}
