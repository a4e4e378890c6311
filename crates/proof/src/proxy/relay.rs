//! One client connection: requests in, faults done, answers out. Must not decide which fault (the plan does).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::JoinSet;

use crate::proxy::door::Shared;
use crate::proxy::fault::Fault;
use crate::proxy::wire::{self, Body, Head};

/// A write request, whole.
pub(crate) struct Request {
    pub(crate) head: Head,
    body: Vec<u8>,
}

impl Request {
    pub(crate) fn len(&self) -> usize {
        self.head.raw.len() + self.body.len()
    }

    fn method(&self) -> &str {
        self.head.word(0)
    }

    fn is_write(&self) -> bool {
        matches!(self.method(), "POST" | "PUT" | "DELETE")
    }

    fn bytes(&self) -> Vec<u8> {
        [self.head.raw.as_slice(), self.body.as_slice()].concat()
    }
}

/// A request that waits to be delivered late, and its number in the log.
pub(crate) struct Parked {
    pub(super) request_no: u32,
    request: Request,
}

/// An answer, whole.
struct Answer {
    status: u16,
    bytes: Vec<u8>,
    closes: bool,
}

/// An upstream connection whose answer has begun.
struct Upstream {
    from: BufReader<OwnedReadHalf>,
    head: Head,
    body: Body,
    /// Holds the writing half: closing it early would tell the upstream that its client has gone.
    _sending: JoinSet<OwnedWriteHalf>,
}

impl Upstream {
    /// Sends and reads the answer's head. The request is sent beside the reading, since a server may refuse a
    /// body before it has read it.
    async fn ask(shared: &Shared, request: &Request) -> io::Result<Self> {
        let (from, mut to) = connect(shared).await?.into_split();
        let (mut from, bytes) = (BufReader::new(from), request.bytes());
        let mut sending = JoinSet::new();
        sending.spawn(async move {
            // A failure shows in the answer, or in its absence.
            let _ = to.write_all(&bytes).await;
            to
        });
        loop {
            let head = wire::head(&mut from).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
            if !head.word(1).starts_with('1') {
                let body = Body::of_answer(&head, request.method())?;
                return Ok(Self { from, head, body, _sending: sending });
            }
        }
    }

    fn status(&self) -> u16 {
        self.head.word(1).parse().unwrap_or(0)
    }

    fn closes(&self) -> bool {
        self.head.closes() || self.body.until_close()
    }
}

async fn connect(shared: &Shared) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(shared.upstream()).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn fetch(shared: &Shared, request: &Request) -> io::Result<Answer> {
    let mut upstream = Upstream::ask(shared, request).await?;
    let mut bytes = std::mem::take(&mut upstream.head.raw);
    bytes.extend(upstream.body.whole(&mut upstream.from).await?);
    Ok(Answer { status: upstream.status(), bytes, closes: upstream.closes() })
}

/// Whether the client's connection may carry another request.
type KeepOpen = bool;

pub(crate) struct Relay {
    client: BufReader<TcpStream>,
    shared: Arc<Shared>,
}

impl Relay {
    pub(crate) fn new(stream: TcpStream, shared: Arc<Shared>) -> Self {
        Self { client: BufReader::new(stream), shared }
    }

    /// Until either side is done. An error on either side ends the connection with a reset, as a link would.
    pub(crate) async fn run(mut self) {
        loop {
            match self.exchange().await {
                Ok(true) => {}
                Ok(false) => return,
                Err(_) => {
                    self.reset_on_close();
                    return;
                }
            }
        }
    }

    async fn exchange(&mut self) -> io::Result<KeepOpen> {
        let Some(request) = self.request().await? else { return Ok(false) };
        let (no, fault) = self.shared.arrived(&request);
        let last = request.head.closes();
        let keep = match fault {
            Some(fault) => self.broken(no, request, fault).await?,
            None if request.is_write() => {
                let answer = self.deliver(no, &request).await?;
                self.reply(&answer).await?
            }
            None => self.stream(no, &request).await?,
        };
        Ok(keep && !last)
    }

    async fn request(&mut self) -> io::Result<Option<Request>> {
        let Some(mut head) = wire::head(&mut self.client).await? else { return Ok(None) };
        if let Some(host) = self.shared.host() {
            head.set_host(&host);
        }
        if head.header("expect").is_some() {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let body = Body::of_request(&head)?.whole(&mut self.client).await?;
        Ok(Some(Request { head, body }))
    }

    async fn broken(&mut self, no: u32, request: Request, fault: Fault) -> io::Result<KeepOpen> {
        match fault {
            Fault::ResponseDropped => {
                self.deliver(no, &request).await?;
                Ok(false)
            }
            Fault::RequestDropped => Ok(false),
            Fault::CutMidRequest => self.cut(&request).await,
            Fault::GatewayTimeoutAfterWrite => {
                self.deliver(no, &request).await?;
                self.page("504 Gateway Time-out").await
            }
            Fault::BadGateway502 { forwarded } => {
                if forwarded {
                    self.deliver(no, &request).await?;
                }
                self.page("502 Bad Gateway").await
            }
            Fault::Stall { hold, then_answer } => {
                let answer = self.deliver(no, &request).await?;
                let here = self.hold(hold).await;
                if here && then_answer { self.reply(&answer).await } else { Ok(false) }
            }
            Fault::DuplicateDelivery { concurrent } => {
                let answer = self.twice(no, &request, concurrent).await?;
                self.reply(&answer).await
            }
            Fault::DeliveredLate => {
                self.shared.park(Parked { request_no: no, request });
                Ok(false)
            }
            Fault::ResponseTruncated => {
                let answer = self.deliver(no, &request).await?;
                self.write(&answer.bytes[..answer.bytes.len() / 2]).await?;
                Ok(false)
            }
            Fault::UnavailableWithRetryAfter { seconds } => self.unavailable(seconds).await,
            Fault::ResetOnConnect => {
                self.reset_on_close();
                Ok(false)
            }
        }
    }

    /// Forwards a write, logs the answer, and lets through what waited for a write to pass it.
    async fn deliver(&self, no: u32, request: &Request) -> io::Result<Answer> {
        let answer = fetch(&self.shared, request).await?;
        self.shared.answered(no, answer.status);
        self.release(no).await;
        Ok(answer)
    }

    async fn release(&self, no: u32) {
        for late in self.shared.take_parked(no) {
            if let Ok(answer) = fetch(&self.shared, &late.request).await {
                self.shared.answered(late.request_no, answer.status);
            }
        }
    }

    async fn twice(&self, no: u32, request: &Request, concurrent: bool) -> io::Result<Answer> {
        let (first, second) = if concurrent {
            let (one, two) = (fetch(&self.shared, request), fetch(&self.shared, request));
            tokio::pin!(one, two);
            tokio::select! {
                first = &mut one => (first?, two.await),
                first = &mut two => (first?, one.await),
            }
        } else {
            (fetch(&self.shared, request).await?, fetch(&self.shared, request).await)
        };
        self.shared.answered_twice(no, first.status, second.ok().map(|a| a.status));
        self.release(no).await;
        Ok(first)
    }

    async fn cut(&mut self, request: &Request) -> io::Result<KeepOpen> {
        let cut = if request.body.is_empty() {
            request.head.raw.len() / 2
        } else {
            request.head.raw.len() + request.body.len() / 2
        };
        let mut upstream = connect(&self.shared).await?;
        upstream.write_all(&request.bytes()[..cut]).await?;
        // An end, not a reset: a reset would take back bytes that the upstream has not read yet.
        upstream.shutdown().await?;
        self.reset_on_close();
        Ok(false)
    }

    /// Waits out the hold; `false` as soon as the client has gone.
    async fn hold(&mut self, hold: Duration) -> bool {
        let over = tokio::time::sleep(hold);
        tokio::pin!(over);
        tokio::select! {
            () = &mut over => true,
            more = self.client.fill_buf() => {
                let here = more.is_ok_and(|bytes| !bytes.is_empty());
                if here {
                    over.await;
                }
                here
            }
        }
    }

    /// Passes an answer on as it comes: reads may be endless streams.
    async fn stream(&mut self, no: u32, request: &Request) -> io::Result<KeepOpen> {
        let mut upstream = Upstream::ask(&self.shared, request).await?;
        self.shared.answered(no, upstream.status());
        self.write(&upstream.head.raw).await?;
        while let Some(piece) = upstream.body.piece(&mut upstream.from).await? {
            self.write(&piece).await?;
        }
        Ok(!upstream.closes())
    }

    async fn reply(&mut self, answer: &Answer) -> io::Result<KeepOpen> {
        self.write(&answer.bytes).await?;
        Ok(!answer.closes)
    }

    async fn page(&mut self, status: &str) -> io::Result<KeepOpen> {
        let page = format!("<html><head><title>{status}</title></head><body><h1>{status}</h1></body></html>\n");
        self.made(status, "Content-Type: text/html\r\n", &page).await
    }

    async fn unavailable(&mut self, seconds: u32) -> io::Result<KeepOpen> {
        let problem = serde_json::json!({
            "type": "about:blank", "title": "Service Unavailable", "status": 503, "code": "overloaded",
            "retry": "same-key", "written": "no",
            "detail": "The server sheds load. Nothing was recorded; send the same push again with the same key.",
        });
        let headers = format!("Content-Type: application/problem+json\r\nRetry-After: {seconds}\r\n");
        self.made("503 Service Unavailable", &headers, &problem.to_string()).await
    }

    async fn made(&mut self, status: &str, headers: &str, body: &str) -> io::Result<KeepOpen> {
        let text = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
        self.write(text.as_bytes()).await?;
        Ok(true)
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.client.get_mut().write_all(bytes).await
    }

    fn reset_on_close(&self) {
        // If it cannot be set, the client sees an ordinary end: a fault too, only a milder one.
        let _ = self.client.get_ref().set_zero_linger();
    }
}
