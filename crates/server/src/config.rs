//! What a server is started with, and the bounds that it keeps. Must not read flags, files or the environment.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::limits;
use store::Store;

use crate::forward::{ForwardTarget, ForwardTerms};

/// What a server is started with.
pub struct ServeConfig {
    /// Where to listen; port 0 takes a free one, which `ready` is told.
    pub listen: SocketAddr,
    /// Where pushes are kept.
    pub store: Arc<dyn Store>,
    /// True to listen beyond loopback although anybody who reaches the port may push and read.
    pub open: bool,
    /// The bounds.
    pub limits: BodyLimits,
    /// Targets to which it hands on by itself what it records.
    pub forwards: Vec<ForwardTarget>,
    /// The times of that.
    pub forward_terms: ForwardTerms,
}

/// Room for some thirty chunks of usual size, so that a commit finds many of them waiting.
const DECODED_BYTES: usize = 512 * 1024 * 1024;

/// Bounds on what a server takes at a time: bodies, requests, connections and waits. Memory stays within
/// `buffered_bytes` for bodies and `decoded_bytes` for what waits for the store, plus what `decoders` reports or chunks
/// hold while they are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyLimits {
    /// One body as it arrives (compressed), in bytes.
    pub body_bytes: usize,
    /// One body after inflating, in bytes.
    pub inflated_bytes: u64,
    /// All bodies that are being received or decoded, in bytes; beyond it requests are shed.
    pub buffered_bytes: usize,
    /// Bodies that are decoded at the same time; the others queue.
    pub decoders: usize,
    /// Decoded pushes and chunks that the store has not answered for yet, in bytes; beyond it decoders wait. One that is
    /// larger by itself waits alone.
    pub decoded_bytes: usize,
    /// True to decode where the request is answered and not on a thread of its own: only for a simulator, which has to
    /// come to the same order every time.
    pub inline_decoding: bool,
    /// Requests that are answered at the same time; beyond it they are shed.
    pub requests: usize,
    /// Open connections; beyond it new ones wait in the kernel's queue.
    pub connections: usize,
    /// For the head of a request, and for an idle connection.
    pub header_time: Duration,
    /// Between two pieces of a body.
    pub body_idle_time: Duration,
    /// For a whole body, so that one that drips does not hold its place for ever.
    pub body_time: Duration,
    /// For requests that are being answered when the server is told to stop.
    pub drain_time: Duration,
    /// Between two looks for staging that nobody will end.
    pub collect_every: Duration,
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self {
            body_bytes: limits::BODY_BYTES_MAX,
            inflated_bytes: limits::INFLATED_BYTES_MAX,
            buffered_bytes: 8 * limits::BODY_BYTES_MAX,
            decoders: std::thread::available_parallelism().map_or(2, usize::from),
            decoded_bytes: DECODED_BYTES,
            inline_decoding: false,
            requests: 512,
            connections: 2048,
            header_time: Duration::from_secs(15),
            body_idle_time: Duration::from_secs(30),
            body_time: Duration::from_mins(15),
            drain_time: Duration::from_secs(20),
            collect_every: Duration::from_mins(1),
        }
    }
}
