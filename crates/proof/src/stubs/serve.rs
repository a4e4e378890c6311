//! One client connection of a stub: requests in, faults done, answers out. Must not decide which fault (the plan
//! does), nor what a request means (the vendor does).

use std::io;
use std::sync::Arc;

use futures_util::stream;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::proxy::wire::{self, Body};
use crate::stubs::fault::{Fault, RetryAfter, When};
use crate::stubs::kernel::Engine;
use crate::stubs::message::{Answer, Part, Request};
use crate::stubs::shared::{Arrived, OverLimit};
use crate::stubs::vendor::Vendor;

/// Serves connections until the stub is dropped.
pub(super) async fn accept<V: Vendor>(listener: TcpListener, engine: Arc<Engine<V>>) {
    // Dropping the set ends the connections with the stub.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let _ = stream.set_nodelay(true);
                connections.spawn(Connection::new(stream, Arc::clone(&engine)).run());
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Whether the connection may carry another request.
type KeepOpen = bool;

struct Connection<V: Vendor> {
    client: BufReader<TcpStream>,
    engine: Arc<Engine<V>>,
    /// Known to have gone, and nothing is to be sent.
    gone: bool,
}

impl<V: Vendor> Connection<V> {
    fn new(stream: TcpStream, engine: Arc<Engine<V>>) -> Self {
        Self { client: BufReader::new(stream), engine, gone: false }
    }

    async fn run(mut self) {
        while let Ok(true) = self.exchange().await {}
    }

    async fn exchange(&mut self) -> io::Result<KeepOpen> {
        let Some((mut request, last)) = self.request().await? else { return Ok(false) };
        let head_only = request.method == "HEAD";
        if head_only {
            "GET".clone_into(&mut request.method);
        }
        let (kind, rate) = {
            let vendor = self.engine.vendor();
            (vendor.classify(&request), vendor.rate())
        };
        let arrived = self.engine.shared.arrived(&request, kind, rate);
        let keep = self.handle(&arrived, &request, &Reply { no: arrived.no, head_only, last }).await;
        // Also after an error: whoever waits for this request must not wait for ever.
        self.engine.shared.handled(arrived.no);
        Ok(keep? && !last)
    }

    async fn request(&mut self) -> io::Result<Option<(Request, bool)>> {
        let Some(head) = wire::head(&mut self.client).await? else { return Ok(None) };
        if head.header("expect").is_some() {
            self.client.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let body = Body::of_request(&head)?.content(&mut self.client).await?;
        let mut request = Request::new(head.word(0), head.word(1), head.headers().to_vec(), body);
        request.parts = parts(&request).await;
        Ok(Some((request, head.closes())))
    }

    async fn handle(&mut self, arrived: &Arrived, request: &Request, reply: &Reply) -> io::Result<KeepOpen> {
        if let Some(OverLimit { seconds }) = arrived.over_limit {
            let answer = self.engine.vendor().problem(429, "too many requests");
            let answer = seconds.iter().fold(answer, |answer, s| answer.header("Retry-After", &s.to_string()));
            self.late(arrived.no).await;
            return self.send(reply, &answer).await;
        }
        self.before(arrived).await;
        if let Some(fault) = arrived.faults.iter().find(|fault| fault.prevents()) {
            self.late(arrived.no).await;
            return self.instead(fault, request, reply).await;
        }
        let answer = self.engine.apply(arrived.no, request, &arrived.faults).await;
        self.late(arrived.no).await;
        match arrived.faults.iter().find(|fault| fault.hides()) {
            Some(fault) => self.after(fault, &answer, reply).await,
            None => self.send(reply, &answer).await,
        }
    }

    async fn before(&mut self, arrived: &Arrived) {
        self.engine.act_before(&arrived.befores);
        for fault in &arrived.faults {
            match fault {
                Fault::Admin(act) => {
                    self.engine.vendor().admin(act);
                }
                Fault::Meet { point, size } => self.engine.shared.meet(point, *size).await,
                Fault::Held(When::ClientGone) => {
                    self.leaves().await;
                    self.gone = true;
                }
                Fault::Held(when) => self.engine.shared.wait(arrived.no, *when).await,
                _ => {}
            }
        }
    }

    async fn instead(&mut self, fault: &Fault, request: &Request, reply: &Reply) -> io::Result<KeepOpen> {
        match fault {
            Fault::Refused { status, retry_after } => {
                let answer = self.engine.vendor().problem(*status, "refused");
                let answer = self.with_retry_after(answer, *retry_after);
                self.send(reply, &answer).await
            }
            Fault::Page { status, .. } => self.send(reply, &page(*status)).await,
            Fault::DeliveredLate(when) => {
                self.deliver_late(reply.no, request, *when);
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    fn with_retry_after(&self, answer: Answer, retry_after: RetryAfter) -> Answer {
        match retry_after {
            RetryAfter::Missing => answer,
            RetryAfter::Seconds(seconds) => answer.header("Retry-After", &seconds.to_string()),
            RetryAfter::Date(seconds) => {
                let at_ms = self.engine.shared.unix_ms().saturating_add(i64::from(seconds) * 1000);
                let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or(jiff::Timestamp::MAX);
                answer.header("Retry-After", &at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
            }
        }
    }

    /// Nobody hears the answer, so the connection need not wait for it.
    fn deliver_late(&self, no: u32, request: &Request, when: When) {
        let (engine, request) = (Arc::clone(&self.engine), request.clone());
        match when {
            When::Requests(count) => engine.shared.park(no, request, count),
            when => {
                tokio::spawn(async move {
                    // The stub has closed the connection itself: the client is gone.
                    if when != When::ClientGone {
                        engine.shared.wait(no, when).await;
                    }
                    engine.apply(no, &request, &[]).await;
                });
            }
        }
    }

    /// Applies what waited for this request.
    async fn late(&self, no: u32) {
        for parked in self.engine.shared.take_parked(no) {
            self.engine.apply(parked.no, &parked.request, &[]).await;
        }
    }

    async fn after(&mut self, fault: &Fault, answer: &Answer, reply: &Reply) -> io::Result<KeepOpen> {
        match fault {
            Fault::ErrorAfterWrite(status) => {
                let answer = self.engine.vendor().problem(*status, "internal error");
                self.send(reply, &answer).await
            }
            Fault::AppliedInPart { .. } => {
                let answer = self.engine.vendor().problem(500, "internal error");
                self.send(reply, &answer).await
            }
            Fault::Page { status, .. } => self.send(reply, &page(*status)).await,
            Fault::ResponseTruncated => {
                let bytes = answer.bytes(reply.head_only, reply.last);
                self.client.get_mut().write_all(&bytes[..bytes.len() / 2]).await?;
                Ok(false)
            }
            Fault::Stall { hold, then_answer } => {
                // Held before it counts as handled: others may wait for that.
                self.engine.shared.handled(reply.no);
                let (shared, no) = (Arc::clone(&self.engine.shared), reply.no);
                let here = tokio::select! {
                    () = shared.wait(no, *hold) => true,
                    () = self.leaves() => false,
                };
                if here && *then_answer { self.send(reply, answer).await } else { Ok(false) }
            }
            _ => Ok(false),
        }
    }

    /// Waits until the client has closed the connection. One that has sent more is still there.
    async fn leaves(&mut self) {
        if self.client.fill_buf().await.is_ok_and(|more| !more.is_empty()) {
            std::future::pending::<()>().await;
        }
    }

    async fn send(&mut self, reply: &Reply, answer: &Answer) -> io::Result<KeepOpen> {
        if self.gone {
            return Ok(false);
        }
        // Both before the client can act on the answer: a test that has it finds it in the log.
        self.engine.shared.handled(reply.no);
        self.engine.shared.answered(reply.no, answer);
        self.client.get_mut().write_all(&answer.bytes(reply.head_only, reply.last)).await?;
        Ok(true)
    }
}

/// How to answer a request.
struct Reply {
    no: u32,
    head_only: bool,
    last: bool,
}

fn page(status: u16) -> Answer {
    let reason = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("");
    let title = format!("{status} {reason}");
    Answer::html(status, &format!("<html><head><title>{title}</title></head><body><h1>{title}</h1></body></html>\n"))
}

/// The parts of a multipart body; none if it is another or a broken one.
async fn parts(request: &Request) -> Vec<Part> {
    let Some(boundary) = request.header("content-type").and_then(|kind| multer::parse_boundary(kind).ok()) else {
        return Vec::new();
    };
    let body = bytes::Bytes::copy_from_slice(&request.body);
    let mut fields = multer::Multipart::new(stream::iter([Ok::<_, io::Error>(body)]), boundary);
    let mut parts = Vec::new();
    while let Ok(Some(field)) = fields.next_field().await {
        let name = field.name().unwrap_or_default().to_owned();
        let file = field.file_name().map(str::to_owned);
        let Ok(body) = field.bytes().await else { return Vec::new() };
        parts.push(Part { name, file, body: body.to_vec() });
    }
    parts
}
