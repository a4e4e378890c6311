//! The network between client processes and the server: each request meets what was drawn for it. As a [`Transport`] it
//! stands where production has sockets. Must not judge answers.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use delivery::classify::{Answer, Failure};
use delivery::{Request, Transport};
use domain::{ProjectId, PushId, PushKey};
use http::{HeaderMap, HeaderValue, Method, header};

use crate::faults::{Class, Kind, OnAnswer, OnRequest, Plan, Point};
use crate::server::{Message, Served, Whole};
use crate::sim::{Sim, lock, note, sleep};

/// How long a client waits for an answer, in milliseconds, whatever comes.
const TIME_OUT_MS: u64 = 60_000;
/// The address that clients know.
pub(crate) const ADDRESS: &str = "http://tallyonce.example";

/// The way of one client process to the server.
pub(crate) struct Network {
    sim: Arc<Sim>,
    runner: Option<usize>,
    process: u64,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the network of runner {:?}", self.runner)
    }
}

/// A request that can be copied.
#[derive(Clone)]
struct Copyable {
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Copyable {
    fn build(&self) -> http::Request<Bytes> {
        let mut request = http::Request::new(self.body.clone());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.path.parse().expect("paths are encoded");
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert(header::HOST, HeaderValue::from_static("tallyonce.example"));
        if self.method != Method::GET {
            request.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(self.body.len()));
        }
        request
    }
}

fn lost(connected: bool, why: &str) -> Failure {
    Failure::Lost { connected, why: why.to_owned() }
}

impl Network {
    pub(crate) fn new(sim: &Arc<Sim>, runner: Option<usize>, process: u64) -> Self {
        Self { sim: Arc::clone(sim), runner, process }
    }

    fn message(&self, request: &Copyable) -> Message {
        let (kind, push) = recognise(&request.method, &request.path, &request.headers);
        let id = self.sim.number();
        let plan = self.sim.draw(|rng| lock(&self.sim.faults).plan(rng, kind));
        note!(self.sim, "#{id} of runner {:?}, process {}: {kind:?} {plan:?}", self.runner, self.process);
        Message { id, runner: self.runner, process: self.process, kind, push, plan }
    }

    fn hit(&self, class: Class) {
        self.sim.hit(self.runner, class);
    }

    async fn carry(&self, message: Message, request: Copyable) -> Result<Whole, Failure> {
        let Plan { out_ms, request: fault, .. } = message.plan;
        let mut request = request;
        match fault {
            Some(OnRequest::Refused) => {
                self.hit(Class::Refused);
                return Err(lost(false, "connection refused"));
            }
            Some(OnRequest::Lost { stall }) => {
                self.hit(Class::RequestLost);
                sleep(if stall { TIME_OUT_MS * 2 } else { out_ms }).await;
                return Err(lost(true, "connection reset"));
            }
            Some(OnRequest::Late { ms }) => {
                self.hit(Class::RequestLate);
                self.send_later(message, request, out_ms + ms);
                sleep(out_ms).await;
                return Err(lost(true, "connection reset"));
            }
            Some(OnRequest::Twice { ms }) => {
                self.hit(Class::Duplicated);
                self.send_later(message, request.clone(), out_ms + ms);
            }
            Some(OnRequest::Gateway(status)) => {
                self.hit(Class::GatewayBefore);
                sleep(out_ms).await;
                return Ok(gateway(status));
            }
            Some(OnRequest::Flipped) if !request.body.is_empty() => {
                self.hit(Class::RequestFlipped);
                request.body = self.flip(&request.body);
            }
            Some(OnRequest::Cut) if !request.body.is_empty() => self.hit(Class::RequestCut),
            _ => {}
        }
        sleep(out_ms).await;
        self.in_order(&message);
        let cut = fault == Some(OnRequest::Cut) && !request.body.is_empty();
        match self.sim.serve(message, request.build(), cut).await {
            Served::Down => {
                self.hit(Class::Refused);
                Err(lost(false, "connection refused: nobody listens"))
            }
            Served::Died => Err(lost(true, "connection reset by peer")),
            Served::Answer(_) if cut => Err(lost(true, "connection reset while sending")),
            Served::Answer(whole) => self.back(message, whole).await,
        }
    }

    /// The answer on its way.
    async fn back(&self, message: Message, whole: Whole) -> Result<Whole, Failure> {
        sleep(message.plan.back_ms).await;
        let answer = match message.plan.answer {
            None => Ok(whole),
            Some(OnAnswer::Lost) => {
                self.hit(Class::AnswerLost);
                Err(lost(true, "connection reset"))
            }
            Some(OnAnswer::Stalled) => {
                self.hit(Class::AnswerStalled);
                sleep(TIME_OUT_MS * 2).await;
                Err(lost(true, "no answer in time"))
            }
            Some(OnAnswer::Cut) => {
                self.hit(Class::AnswerCut);
                Err(lost(true, "end of file before the end of the body"))
            }
            Some(OnAnswer::Flipped) => {
                self.hit(Class::AnswerFlipped);
                Ok(Whole { body: self.flip(&whole.body), ..whole })
            }
            Some(OnAnswer::Gateway(status)) => {
                self.hit(Class::GatewayAfter);
                Ok(gateway(status))
            }
            Some(OnAnswer::Strange) => {
                self.hit(Class::AnswerStrange);
                Ok(strange())
            }
        };
        if matches!(message.plan.kill, Some(Point::K7 | Point::K8)) {
            self.sim.kill_runner(&message);
            std::future::pending::<()>().await;
        }
        answer
    }

    /// A copy, or the request itself, of which the client hears nothing.
    fn send_later(&self, message: Message, request: Copyable, ms: u64) {
        let sim = Arc::clone(&self.sim);
        let plan = Plan { out_ms: 0, ..Plan::default() };
        tokio::spawn(async move {
            sleep(ms).await;
            let copy = Message { id: sim.number(), plan, ..message };
            note!(sim, "  #{} is a late copy of #{}", copy.id, message.id);
            let _ = Box::pin(sim.serve(copy, request.build(), false)).await;
        });
    }

    fn flip(&self, body: &Bytes) -> Bytes {
        let mut bytes = body.to_vec();
        if !bytes.is_empty() {
            let bit = self.sim.below(bytes.len() as u64 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        Bytes::from(bytes)
    }

    /// Counts a request that a later one of the same process has overtaken.
    fn in_order(&self, message: &Message) {
        let overtaken = self.sim.history().arrived(message.process, message.id);
        if overtaken && !self.sim.is_calm() {
            self.hit(Class::Reordered);
        }
    }
}

#[async_trait]
impl Transport for Network {
    async fn send(&self, request: Request<'_>) -> Result<Answer, Failure> {
        let path = request.path.split('?').next().unwrap_or_default();
        let url = format!("{ADDRESS}{path}");
        let request = Copyable {
            method: request.method,
            path: request.path.to_owned(),
            headers: request.headers,
            body: request.body,
        };
        let message = self.message(&request);
        let mut open = Open { sim: &self.sim, id: Some(message.id) };
        let carried =
            tokio::time::timeout(std::time::Duration::from_millis(TIME_OUT_MS), Box::pin(self.carry(message, request)));
        let ended = carried.await;
        if ended.is_ok() {
            open.id = None;
        }
        let result = ended.unwrap_or_else(|_| Err(lost(true, "no answer in time")));
        match &result {
            Ok(whole) => note!(self.sim, "#{} is answered: {}", message.id, whole.status),
            Err(failure) => note!(self.sim, "#{} fails: {failure:?}", message.id),
        }
        let Whole { status, headers, body } = result?;
        Ok(Answer { url, status, headers, body })
    }
}

/// A request that somebody waits for: dropped before its end, the connection is closed.
struct Open<'a> {
    sim: &'a Sim,
    id: Option<u64>,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.sim.hang_up(id);
        }
    }
}

/// Something between client and server speaks for itself.
fn gateway(status: u16) -> Whole {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html"));
    Whole { status, headers, body: Bytes::from_static(b"<html><body>upstream trouble</body></html>") }
}

/// A success of somebody else.
fn strange() -> Whole {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Whole { status: 200, headers, body: Bytes::from_static(b"{\"status\":\"ok\"}") }
}

/// What a request asks for, and of which push: as the server's routes name it.
fn recognise(method: &Method, path: &str, headers: &HeaderMap) -> (Kind, Option<PushId>) {
    let bare = path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = bare.trim_start_matches("/api/v1/projects/").split('/').collect();
    let named = parts.get(2).and_then(|text| PushId::parse(text));
    let by_key = || {
        let key = headers.get("idempotency-key")?.to_str().ok()?.trim_matches('"').parse::<PushKey>().ok()?;
        Some(PushId::of(&parts.first()?.parse::<ProjectId>().ok()?, &key))
    };
    match (method.as_str(), parts.as_slice()) {
        ("POST", [_, "pushes"]) => (Kind::OneShot, by_key()),
        ("POST", [_, "staged-pushes"]) => (Kind::Begin, by_key()),
        ("PUT", [_, "pushes", _, "epochs", _, "chunks", n]) => (Kind::Put(n.parse().unwrap_or(u32::MAX)), named),
        ("POST", [_, "pushes", _, "epochs", _, "commit"]) => (Kind::Commit, named),
        ("DELETE", [_, "pushes", _, "epochs", _]) => (Kind::Cancel, named),
        ("GET", [_, "pushes"]) => (Kind::Attach, None),
        _ => (Kind::Other, None),
    }
}
