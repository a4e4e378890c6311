//! The body of a push as it arrives: bounded in size and in time between two pieces, counted against what all bodies
//! together may hold in memory, and checked against its digest. Must not know what is in it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use bytes::{Bytes, BytesMut};
use domain::wire::names;
use domain::{ProblemCode, limits};
use futures_util::StreamExt as _;
use http::{HeaderMap, header};
use tokio::sync::OwnedSemaphorePermit;

use crate::headers::{self, ContentDigest};
use crate::points::{Operation, Step, point};
use crate::problem::Failure;
use crate::state::App;

/// How long a refused client is read on, so that it sees the answer.
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// A body on its way in.
pub(super) struct Incoming<'a> {
    app: &'a App,
    operation: Operation,
    stream: BodyDataStream,
    announced: Option<u64>,
    /// True if the client waits to be asked for the body: then there is nothing to drain.
    waits: bool,
    received: usize,
}

/// A body that has arrived whole; its bytes count as held until it is dropped.
#[derive(Default)]
pub(super) struct Received {
    pub(super) bytes: Bytes,
    #[allow(dead_code, reason = "kept for what its end gives back")]
    held: Vec<OwnedSemaphorePermit>,
}

impl<'a> Incoming<'a> {
    pub(super) fn new(app: &'a Arc<App>, operation: Operation, headers: &HeaderMap, body: Body) -> Self {
        let announced = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok());
        Self {
            app,
            operation,
            stream: body.into_data_stream(),
            announced,
            waits: headers.contains_key(header::EXPECT),
            received: 0,
        }
    }

    /// The whole body.
    pub(super) async fn receive(&mut self, digest: &ContentDigest) -> Result<Received, Failure> {
        let most = self.app.limits.body_time;
        let received = tokio::time::timeout(most, self.receive_all(digest)).await;
        let in_time = received.map_err(|_| incomplete(&format!("it took longer than {} seconds", most.as_secs())));
        in_time.flatten().inspect(|_| point(self.operation, Step::Received))
    }

    async fn receive_all(&mut self, digest: &ContentDigest) -> Result<Received, Failure> {
        let limit = self.app.limits.body_bytes;
        if self.announced.is_some_and(|bytes| bytes > limit as u64) {
            return Err(self.too_large());
        }
        let mut bytes = BytesMut::new();
        let mut held = Vec::new();
        while let Some(piece) = self.next().await? {
            if bytes.len() + piece.len() > limit {
                return Err(self.too_large());
            }
            add(&mut held, self.hold(piece.len())?);
            bytes.extend_from_slice(&piece);
            if self.announced.is_none_or(|whole| 2 * bytes.len() as u64 >= whole) {
                point(self.operation, Step::K1);
            }
        }
        if !digest.fits(&bytes) {
            return Err(Failure::new(
                ProblemCode::DigestMismatch,
                "The body that arrived has another digest than Content-Digest says: it was damaged on its way, or the \
                 digest was made of other bytes (it is made of the body as it travels, compressed if it is). Nothing was \
                 recorded; send it again with the same key.",
            ));
        }
        Ok(Received { bytes: bytes.freeze(), held })
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let idle = self.app.limits.body_idle_time;
        match tokio::time::timeout(idle, self.stream.next()).await {
            Err(_) => Err(incomplete(&format!("nothing came for {} seconds", idle.as_secs()))),
            Ok(Some(Err(error))) => Err(incomplete(&error.to_string())),
            Ok(Some(Ok(piece))) => {
                self.received += piece.len();
                Ok(Some(piece))
            }
            Ok(None) => Ok(None),
        }
    }

    fn hold(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Failure> {
        let permits = u32::try_from(bytes).unwrap_or(u32::MAX);
        Arc::clone(&self.app.buffered).try_acquire_many_owned(permits).map_err(|_| {
            Failure::new(
                ProblemCode::Overloaded,
                "The server is receiving as much as it can hold. Nothing was recorded; send the push again with the same \
                 key after the time in Retry-After.",
            )
        })
    }

    fn too_large(&self) -> Failure {
        let limit = self.app.limits.body_bytes;
        let smaller = match self.operation {
            Operation::Put => "Cut the push into more and smaller chunks, and begin again with their manifest",
            _ => {
                "Compress it (Content-Encoding: zstd or gzip), stage it in chunks (POST …/staged-pushes), or push in shards \
                 (--shard I/N), each under a key of its own"
            }
        };
        Failure::new(
            ProblemCode::TooLarge,
            format!(
                "The body is larger than the {limit} bytes that one request may have. Nothing was recorded. {smaller}."
            ),
        )
    }

    /// What came of the body. A refused client is read on: closing on one that still sends resets the connection, and
    /// the problem would never be read. What is too large hears how much a staged push takes.
    pub(super) async fn done<T>(&mut self, came: Result<T, Failure>) -> Result<T, Failure> {
        let Err(failure) = came else { return came };
        self.drain().await;
        if failure.problem.code != ProblemCode::TooLarge {
            return Err(failure);
        }
        let name = header::HeaderName::from_static(names::H_LIMIT);
        Err(failure.with_header(name, &headers::limits(&self.app.limits)))
    }

    /// Reads on without keeping, within bounds of size and time.
    async fn drain(&mut self) {
        if self.waits && self.received == 0 {
            return;
        }
        // Also where the bound is small: whoever sends much more than it has to learn that, too.
        let most =
            self.received.saturating_add(self.app.limits.body_bytes.max(limits::BODY_BYTES_MAX).saturating_mul(2));
        let reading = async { while self.received < most && matches!(self.next().await, Ok(Some(_))) {} };
        let _ = tokio::time::timeout(DRAIN_TIME, reading).await;
    }
}

/// One permit for many pieces: a body that comes byte by byte must not cost a permit, which is larger, for each.
fn add(held: &mut Vec<OwnedSemaphorePermit>, permit: OwnedSemaphorePermit) {
    let most = u32::MAX as usize - permit.num_permits();
    match held.last_mut() {
        Some(last) if last.num_permits() <= most => last.merge(permit),
        _ => held.push(permit),
    }
}

fn incomplete(why: &str) -> Failure {
    let words = format!("The body did not arrive whole: {why}. Nothing was recorded; send it again with the same key.");
    Failure::new(ProblemCode::BodyIncomplete, words)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;
    use crate::config::BodyLimits;

    #[tokio::test]
    async fn a_body_in_single_bytes_holds_as_much_as_its_bytes() {
        let (store, clock) = (Arc::new(store::MemoryStore::new()), Arc::new(delivery::SystemClock::new()));
        let app = App::new(store, clock, BodyLimits { buffered_bytes: 1000, ..BodyLimits::default() });
        let pieces = stream::iter((0..1000).map(|_| Ok::<_, Infallible>(Bytes::from_static(b"x"))));
        let mut body = Incoming::new(&app, Operation::Put, &HeaderMap::new(), Body::from_stream(pieces));
        let received = body.receive(&ContentDigest::default()).await.unwrap();
        assert_eq!((received.bytes.len(), received.held.len()), (1000, 1));
        assert_eq!(app.buffered.available_permits(), 0);
        drop(received);
        assert_eq!(app.buffered.available_permits(), 1000);
    }
}
