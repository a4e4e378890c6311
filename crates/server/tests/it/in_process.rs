//! The router called without a socket, over a clock that the test owns: what a simulator does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use axum::body::{Body, to_bytes};
use delivery::Clock;
use server::router::router;
use server::{App, BodyLimits};
use store::Store;
use tower::ServiceExt as _;

use crate::http::{Answer, Request};
use crate::served::memory;
use crate::staging::Sends;

/// Where the clock stands at first: well before that of the machine.
const LONG_AGO_MS: u64 = 1_700_000_000_000;

/// A clock that stands until it is set.
#[derive(Debug)]
pub(crate) struct Hand(AtomicU64);

#[async_trait]
impl Clock for Hand {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn unix_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    async fn sleep(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

/// A server in this process.
pub(crate) struct InProcess {
    pub(crate) app: Arc<App>,
    pub(crate) store: Arc<dyn Store>,
    clock: Arc<Hand>,
}

impl InProcess {
    pub(crate) fn new(store: Arc<dyn Store>, limits: BodyLimits) -> Self {
        let clock = Arc::new(Hand(AtomicU64::new(LONG_AGO_MS)));
        let app = App::new(Arc::clone(&store), Arc::clone(&clock) as Arc<dyn Clock>, limits);
        Self { app, store, clock }
    }

    /// Lets the clock stand this much later.
    pub(crate) fn later(&self, ms: u64) {
        self.clock.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Sends for InProcess {
    async fn send(&self, request: Request) -> Answer {
        let Request { method, path, headers, body } = request;
        let mut built = http::Request::builder().method(method).uri(path).header("Host", "test");
        for (name, value) in &headers {
            built = built.header(name, value);
        }
        let response = router(Arc::clone(&self.app)).oneshot(built.body(Body::from(body)).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        let headers = head.headers.iter().map(|(n, v)| (n.to_string(), v.to_str().unwrap().to_owned())).collect();
        let body = to_bytes(body, usize::MAX).await.unwrap().to_vec();
        Answer { status: head.status.as_u16(), headers, body }
    }
}

/// Runs a test over every engine, decoding as a simulator does.
pub(crate) async fn on_every_store(test: impl AsyncFn(InProcess)) {
    let limits = || BodyLimits { inline_decoding: true, ..BodyLimits::default() };
    test(InProcess::new(memory(), limits())).await;
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("t.db").display());
    test(InProcess::new(store::open(&url).unwrap(), limits())).await;
}
