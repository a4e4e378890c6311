//! A product with cases, a server that forwards to it, and pushes whose tests name those cases.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use delivery::foreign::{CyclePer, Kind, Options, Strategy, TargetName, TargetSettings, open};
use delivery::{HttpSettings, HttpUrl, Secret, SystemClock};
use domain::{ProjectId, PushId, PushKey};
use proof::stubs::testrail::Options as RailOptions;
use proof::stubs::{Door, Stub, TestRail};
use serde_json::Value;
use server::{BodyLimits, ForwardTarget, ForwardTerms, ServeConfig, ServeError, serve};
use store::Store;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::http::{Answer, Request};

/// How many cases a product has, and a push outcomes.
pub(crate) const CASES: usize = 3;

/// How long a product is listened to. Held up for longer by a slow machine, it may do what it was asked all the same; so
/// nothing is read back, and sent again, within the same time.
const ANSWER_TIMEOUT_MS: u64 = 2_000;
const QUIET_MS: u64 = ANSWER_TIMEOUT_MS;

/// Times at which nothing takes long.
pub(crate) const TERMS: ForwardTerms = ForwardTerms {
    lease_ms: 3_000,
    renew_ms: 500,
    look_ms: 50,
    patience_ms: 400,
    first_backoff_ms: 300,
    backoff_max_ms: 1_000,
    outcomes_max: 8,
};

/// A product, and the names of tests that say its cases.
pub(crate) struct Rail {
    pub(crate) stub: Stub<TestRail>,
    pub(crate) names: Vec<String>,
}

impl Rail {
    pub(crate) fn start() -> Self {
        let mut rail = TestRail::new(RailOptions { rate: None, ..RailOptions::default() });
        let names = (0..CASES).map(|n| format!("C{} adds {n}", rail.add_case(&format!("case {n}"), None))).collect();
        Self { stub: Stub::start(rail).unwrap(), names }
    }

    /// The target of this name at it.
    pub(crate) fn target(&self, name: &str) -> ForwardTarget {
        target(name, &self.stub, "key")
    }
}

pub(crate) fn target(name: &str, door: &Door, token: &str) -> ForwardTarget {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let settings = TargetSettings {
        name: TargetName::parse(name).unwrap(),
        kind: Kind::Testrail,
        url: HttpUrl::parse(&door.url()).unwrap(),
        project: "1".to_owned(),
        user: Some("bot@example.com".to_owned()),
        token: Some(Secret::new(token)),
        strategy: None,
        cycle_per: CyclePer::Round,
        cycle: None,
        create_cases: false,
        cases: BTreeMap::new(),
        statuses: BTreeMap::new(),
        quiet_ms: Some(QUIET_MS),
        options: Options::new(BTreeMap::new()),
    };
    let mut http = HttpSettings::new("tallyonce/test");
    (http.answer_timeout_ms, http.answer_timeout_per_mib_ms) = (ANSWER_TIMEOUT_MS, 0);
    let adapter = open(settings.clone(), &http, Arc::new(SystemClock::new())).unwrap();
    let (projects, cycles) = (Vec::new(), Vec::new());
    ForwardTarget { settings, adapter, strategy: Strategy::Reconcile, projects, cycles, close_after_push: false }
}

/// A running server.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) store: Arc<dyn Store>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), ServeError>>,
}

impl Served {
    pub(crate) async fn start(store: Arc<dyn Store>, forwards: Vec<ForwardTarget>) -> Self {
        let (ready, address) = oneshot::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let config = ServeConfig {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            store: Arc::clone(&store),
            open: false,
            limits: BodyLimits::default(),
            forwards,
            forward_terms: TERMS,
        };
        let task =
            tokio::spawn(serve(config, move |address| ready.send(address).expect("somebody waits"), async move {
                drop(stopped.await);
            }));
        Self { address: address.await.expect("the server starts"), store, stop, task }
    }

    pub(crate) async fn get(&self, path: impl Into<String>) -> Answer {
        Request::get(path).send(self.address).await
    }

    /// Pushes these tests, the first of them failed, under a key; with more parameters (`&attempt=2`).
    pub(crate) async fn push(&self, key: &str, names: &[String], more: &str) -> Answer {
        let path = format!("/api/v1/projects/shop/pushes?cycle=main&run={key}{more}");
        let request = Request::post(path, report(names, 1)).header("Content-Type", "application/xml");
        let answer = request.header("Idempotency-Key", key).send(self.address).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer
    }

    /// How far a push is at its targets, once nothing more happens by itself.
    pub(crate) async fn settled(&self, key: &str) -> Value {
        let path = format!("{}/forwards", at(key));
        for _ in 0..4 {
            let answer = Request::get(path.clone()).header("Prefer", "wait=15").send(self.address).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            let known = answer.json();
            if known["settled"] == true {
                return known;
            }
        }
        panic!("it never settles: {}", self.get(path).await.text());
    }

    /// Looks at a push until this is true of its first target.
    pub(crate) async fn seen(&self, key: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        self.seen_at((key, 0), is_so).await
    }

    /// Looks at a push until this is true of one of its targets.
    pub(crate) async fn seen_at(&self, (key, target): (&str, usize), is_so: impl Fn(&Value) -> bool) -> Value {
        let path = format!("{}/forwards", at(key));
        let until = tokio::time::timeout(std::time::Duration::from_secs(30), async {
            loop {
                let known = self.get(path.clone()).await.json();
                if is_so(&known["forwards"][target]) {
                    return known["forwards"][target].clone();
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        });
        until.await.expect("it comes to that")
    }

    /// Stops, and waits until all is finished.
    pub(crate) async fn stop(self) -> Arc<dyn Store> {
        let Self { stop, task, store, .. } = self;
        let _ = stop.send(());
        task.await.unwrap().unwrap();
        store
    }
}

/// The path of a push.
pub(crate) fn at(key: &str) -> String {
    format!("/api/v1/projects/shop/pushes/{}", push(key))
}

/// The id of a push.
pub(crate) fn push(key: &str) -> PushId {
    PushId::of(&shop(), &PushKey::parse(key).unwrap())
}

/// The project of every push.
pub(crate) fn shop() -> ProjectId {
    ProjectId::parse("shop").unwrap()
}

/// A report of these tests, so many of the first failed.
pub(crate) fn report(names: &[String], failed: usize) -> String {
    let mut text = "<testsuite name=\"s\">".to_owned();
    for (at, name) in names.iter().enumerate() {
        let failure = if at < failed { "<failure message=\"no\"/>" } else { "" };
        write!(text, "<testcase classname=\"c\" name=\"{name}\" time=\"0.01\">{failure}</testcase>").unwrap();
    }
    text + "</testsuite>"
}

/// A fresh memory store.
pub(crate) fn memory() -> Arc<dyn Store> {
    Arc::new(store::MemoryStore::new())
}
