//! The legal faults, listed, and what the log says about a request. Must not know sockets.

use std::fmt;
use std::time::Duration;

/// One way to break a write request. Each is legal: a network, a gateway or a dying process does it to
/// well-behaved HTTP, so a correct client and server must survive it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The request arrives and is answered; the answer is lost: the connection closes without a byte of it.
    /// Legal: a time-out or a dead link on the way back. Written, and the client cannot know.
    ResponseDropped,
    /// The connection closes after the request was read and before anything was forwarded.
    /// Legal: a proxy restarts. Not written, and it looks to the client like [`Fault::ResponseDropped`].
    RequestDropped,
    /// The head and half of the body (half of the head, if there is no body) arrive, then both sides are cut.
    /// Legal: the client's link dies in mid-upload. A server that takes what it got has recorded half a push.
    CutMidRequest,
    /// The request arrives and is answered; the client gets `504` with a gateway's HTML page instead.
    /// Legal: the gateway gave up first.
    GatewayTimeoutAfterWrite,
    /// The client gets `502` with an HTML page. Legal: a gateway says so whether or not the request got through.
    BadGateway502 {
        /// Whether the upstream got, and answered, the request.
        forwarded: bool,
    },
    /// The request arrives and is answered; the answer is held back. Ends early when the client goes away.
    /// Legal: buffers, a paused virtual machine, a lost segment.
    Stall {
        /// How long the answer is held.
        hold: Duration,
        /// Afterwards the answer is delivered late (`true`), or the connection is closed without it.
        then_answer: bool,
    },
    /// The request is forwarded twice, on two upstream connections; the client gets the answer that came first.
    /// Legal: an intermediary that retries by itself.
    DuplicateDelivery {
        /// Both at the same moment, or the second when the first is answered.
        concurrent: bool,
    },
    /// The connection closes; the request is forwarded all the same, but only when the *next* write has been
    /// answered by the upstream, and its own answer is lost. Legal: a delayed message. What is still waiting when
    /// the proxy stops was lost.
    DeliveredLate,
    /// Half of the answer's bytes reach the client, then the connection closes. Legal: a cut link.
    ResponseTruncated,
    /// `503` with `Retry-After` and a problem document that says `written: no`; nothing is forwarded.
    /// Legal: load shedding in front of the server. The only fault whose truth the client may believe.
    UnavailableWithRetryAfter {
        /// The value of `Retry-After`.
        seconds: u32,
    },
    /// The connection is reset as soon as it is accepted. A write that comes on a connection that is already open
    /// is reset unread. Legal: a load balancer without a backend. It knows no methods: reads are hit as well.
    ResetOnConnect,
}

impl Fault {
    /// Every fault once or, where it has a choice, each choice; stalls hold for `hold`.
    pub fn all(hold: Duration) -> [Fault; 14] {
        [
            Fault::ResponseDropped,
            Fault::RequestDropped,
            Fault::CutMidRequest,
            Fault::GatewayTimeoutAfterWrite,
            Fault::BadGateway502 { forwarded: true },
            Fault::BadGateway502 { forwarded: false },
            Fault::Stall { hold, then_answer: true },
            Fault::Stall { hold, then_answer: false },
            Fault::DuplicateDelivery { concurrent: false },
            Fault::DuplicateDelivery { concurrent: true },
            Fault::DeliveredLate,
            Fault::ResponseTruncated,
            Fault::UnavailableWithRetryAfter { seconds: 0 },
            Fault::ResetOnConnect,
        ]
    }

    /// How often the upstream gets the whole request under this fault; [`Fault::DeliveredLate`] counts once.
    pub fn arrivals(self) -> u32 {
        match self {
            Fault::RequestDropped
            | Fault::CutMidRequest
            | Fault::BadGateway502 { forwarded: false }
            | Fault::UnavailableWithRetryAfter { .. }
            | Fault::ResetOnConnect => 0,
            Fault::DuplicateDelivery { .. } => 2,
            _ => 1,
        }
    }

    /// A name for tables, one word.
    pub fn name(self) -> &'static str {
        match self {
            Fault::ResponseDropped => "response-dropped",
            Fault::RequestDropped => "request-dropped",
            Fault::CutMidRequest => "cut-mid-request",
            Fault::GatewayTimeoutAfterWrite => "504-after-write",
            Fault::BadGateway502 { forwarded: true } => "502-after-write",
            Fault::BadGateway502 { forwarded: false } => "502-not-forwarded",
            Fault::Stall { then_answer: true, .. } => "stall-then-answer",
            Fault::Stall { then_answer: false, .. } => "stall-then-close",
            Fault::DuplicateDelivery { concurrent: true } => "duplicate-concurrent",
            Fault::DuplicateDelivery { concurrent: false } => "duplicate",
            Fault::DeliveredLate => "delivered-late",
            Fault::ResponseTruncated => "response-truncated",
            Fault::UnavailableWithRetryAfter { .. } => "503-retry-after",
            Fault::ResetOnConnect => "reset-on-connect",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the proxy did with one request, or with a connection that it reset before any request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Counts from 1, in order of arrival.
    pub request_no: u32,
    /// Empty for a connection that was reset before a request.
    pub method: String,
    /// The request target, query included; empty for a connection that was reset before a request.
    pub path: String,
    /// The `Idempotency-Key` header as it was sent.
    pub key: Option<String>,
    /// Bytes of the request as it came in, head and body.
    pub request_bytes: usize,
    /// What was done to it; `None`: passed on unharmed.
    pub fault: Option<Fault>,
    /// The status of the upstream's answer, once it has been read, whether or not the client got it.
    pub upstream_status: Option<u16>,
    /// The status of the other answer of a [`Fault::DuplicateDelivery`].
    pub duplicate_status: Option<u16>,
}
