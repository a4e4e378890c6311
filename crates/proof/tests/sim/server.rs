//! The server as a process that can die: the production router over the simulated store, called without a socket.
//! A crash drops everything that is being answered, wherever it waits. Must not know which faults there are to come.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use domain::PushId;
use futures_util::StreamExt as _;
use futures_util::stream;
use http::{HeaderMap, Request, Response};
use server::{App, BodyLimits};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tower::ServiceExt as _;

use crate::faults::{Class, Kind, OnStore, Plan, Point};
use crate::sim::{Sim, lock, note, sleep};
use crate::store::SimStore;

/// One request on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub(crate) id: u64,
    /// Whose it is; people have none.
    pub(crate) runner: Option<usize>,
    pub(crate) process: u64,
    pub(crate) kind: Kind,
    pub(crate) push: Option<PushId>,
    pub(crate) plan: Plan,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub(crate) struct Whole {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// What came of handing a request to the server.
pub(crate) enum Served {
    /// There is no server.
    Down,
    /// It died, or somebody cut the connection.
    Died,
    /// It answered.
    Answer(Whole),
}

/// The server, if it is up.
#[derive(Default)]
pub(crate) struct ServerProcess {
    router: Option<Router>,
    generation: u64,
    serving: BTreeMap<u64, Serving>,
}

/// A request that is being answered.
struct Serving {
    message: Message,
    task: Option<AbortHandle>,
    store_fault: Option<OnStore>,
}

impl Sim {
    /// The server starts: nothing of an earlier one is left but the store.
    pub(crate) fn boot(self: &Arc<Self>) {
        let mut server = lock(&self.server);
        server.generation += 1;
        let store = Arc::new(SimStore::new(Arc::clone(self), server.generation));
        // Nothing here depends on the machine.
        let limits = BodyLimits { decoders: 64, inline_decoding: true, ..BodyLimits::default() };
        let app = App::new(store, Arc::new(self.server_clock()), limits);
        server.router = Some(server::router::router(app));
        note!(self, "server {} is up", server.generation);
    }

    /// The server dies now and is back after a while. Whoever calls from within it must wait for ever afterwards.
    pub(crate) fn crash(self: &Arc<Self>, down_ms: u64) {
        let (in_flight, generation) = {
            let mut server = lock(&self.server);
            if server.router.take().is_none() {
                return;
            }
            (std::mem::take(&mut server.serving), server.generation)
        };
        note!(self, "server {generation} dies with {} requests in flight, down for {down_ms} ms", in_flight.len());
        for serving in in_flight.into_values() {
            self.hit(serving.message.runner, Class::ServerCrash);
            if let Some(task) = serving.task {
                task.abort();
            }
        }
        let sim = Arc::clone(self);
        tokio::spawn(async move {
            sleep(down_ms).await;
            sim.boot();
        });
    }

    /// Which server runs, or ran last.
    pub(crate) fn generation(&self) -> Option<u64> {
        let server = lock(&self.server);
        server.router.is_some().then_some(server.generation)
    }

    /// Ends the world: what refers to each other is let go.
    pub(crate) fn shut_down(&self) {
        let mut server = lock(&self.server);
        server.router = None;
        server.serving.clear();
    }

    /// Which message an operation of the store belongs to, and what the store is to do with it. Taken once.
    pub(crate) fn operation(&self, push: PushId, kind: Kind) -> (Option<u64>, Option<OnStore>) {
        let mut server = lock(&self.server);
        let mut own = server.serving.iter_mut().filter(|(_, s)| s.message.push == Some(push) && s.message.kind == kind);
        match own.next() {
            None => (None, None),
            Some((id, serving)) => {
                let fault = serving.store_fault.take();
                let (id, runner) = (*id, serving.message.runner);
                drop(server);
                if let Some(fault) = fault {
                    self.hit(runner, fault.class());
                }
                (Some(id), fault)
            }
        }
    }

    /// True if the server is to die when this message has come to a point.
    pub(crate) fn dies_at(&self, id: Option<u64>, point: Point) -> bool {
        let server = lock(&self.server);
        id.and_then(|id| server.serving.get(&id)).is_some_and(|serving| serving.message.plan.crash == Some(point))
    }

    /// A message has come to a crash point: who is to die there, dies.
    pub(crate) async fn reach(self: &Arc<Self>, id: Option<u64>, point: Point) {
        let message = id.and_then(|id| lock(&self.server).serving.get(&id).map(|serving| serving.message));
        let Some(message) = message else { return };
        self.reach_with(&message, point).await;
    }

    async fn reach_with(self: &Arc<Self>, message: &Message, point: Point) {
        if message.plan.kill == Some(point) {
            self.kill_runner(message);
        }
        if message.plan.crash == Some(point) && self.generation().is_some() {
            let down_ms = self.below(20_000);
            self.crash(down_ms);
            std::future::pending::<()>().await;
        }
    }

    /// The client process that sent it dies.
    pub(crate) fn kill_runner(&self, message: &Message) {
        if self.kill(message.process) {
            self.hit(message.runner, Class::RunnerKilled);
        }
    }

    /// Hands a request to the server and waits for its whole answer.
    pub(crate) async fn serve(self: &Arc<Self>, message: Message, request: Request<Bytes>, cut: bool) -> Served {
        let Some(router) = lock(&self.server).router.clone() else { return Served::Down };
        let id = message.id;
        let serving = Serving { message, task: None, store_fault: message.plan.store };
        lock(&self.server).serving.insert(id, serving);
        let (sender, answer) = oneshot::channel();
        let sim = Arc::clone(self);
        let task = tokio::spawn(async move {
            let whole = Box::pin(sim.answer(message, router, request, cut)).await;
            lock(&sim.server).serving.remove(&id);
            // Nobody may be left to hear it.
            let _ = sender.send(whole);
        });
        if let Some(serving) = lock(&self.server).serving.get_mut(&id) {
            serving.task = Some(task.abort_handle());
        }
        answer.await.ok().flatten().map_or(Served::Died, Served::Answer)
    }

    async fn answer(
        self: &Arc<Self>,
        message: Message,
        router: Router,
        request: Request<Bytes>,
        cut: bool,
    ) -> Option<Whole> {
        note!(self, "  #{} arrives: {:?}", message.id, message.kind);
        self.reach_with(&message, Point::K0).await;
        if message.plan.kill == Some(Point::K0) {
            return None;
        }
        let (parts, bytes) = request.into_parts();
        let body = self.body(message, bytes, cut);
        let response: Response<Body> = match router.oneshot(Request::from_parts(parts, body)).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let (parts, body) = response.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.ok()?;
        let whole = Whole { status: parts.status.as_u16(), headers: parts.headers, body };
        self.answered(&message, &whole).await;
        self.reach_with(&message, Point::K7).await;
        if message.plan.crash == Some(Point::K8) {
            let sim = Arc::clone(self);
            tokio::spawn(async move { sim.crash(1_000) });
        }
        Some(whole)
    }

    /// A body in two halves, if something happens between them.
    fn body(self: &Arc<Self>, message: Message, bytes: Bytes, cut: bool) -> Body {
        let Plan { crash, kill, .. } = message.plan;
        let dies = crash == Some(Point::K1) || kill == Some(Point::K1);
        if !(cut || dies) {
            return Body::from(bytes);
        }
        let first = stream::iter([Ok(bytes.slice(..bytes.len() / 2))]);
        let sim = Arc::clone(self);
        let rest = stream::once(async move {
            sleep(1).await;
            sim.reach_with(&message, Point::K1).await;
            Err::<Bytes, _>(io::Error::from(io::ErrorKind::ConnectionReset))
        });
        Body::from_stream(first.chain(rest))
    }

    /// The client is gone: what it asked for is dropped where it is, or goes on unheard.
    pub(crate) fn hang_up(&self, id: u64) {
        let drops = self.below(2) == 0;
        let mut server = lock(&self.server);
        if drops && let Some(serving) = server.serving.remove(&id) {
            drop(server);
            note!(self, "  #{id} is dropped by the server: nobody waits for it");
            if let Some(task) = serving.task {
                task.abort();
            }
        }
    }
}
