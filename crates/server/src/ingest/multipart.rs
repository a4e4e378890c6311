//! Several report files in one request (`multipart/form-data`), read one after the other as a stream. Must not know
//! formats, nor hold a whole file.

use std::io::{self, Read};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use domain::ProblemCode;
use futures_util::stream;
use multer::{Field, Multipart};
use reports::ReportError;

use super::body::Received;
use super::content::{Content, Plan, collected, unreadable};
use super::inflate::{Digesting, Inflated, Watch};
use crate::problem::Failure;

/// Size of the pieces that are handed on, in bytes.
const PIECE_BYTES: usize = 64 * 1024;

/// Reads all files. The digest of the body is made of names and contents in order, so that another boundary makes no
/// other content.
pub(super) fn read(plan: &Plan, body: &Received, boundary: &str) -> Result<Content, Failure> {
    let watch = Watch::default();
    let mut source = plan.open(body, &watch)?;
    let mut parts = Multipart::new(pieces(&mut source), boundary);
    let mut collector = plan.collector();
    let mut whole = blake3::Hasher::new();
    let mut files = 0_usize;
    let broken = |why: String| watch.fault().unwrap_or_else(|| damaged(&why));
    while let Some(field) = at_once(parts.next_field()).map_err(|e| broken(e.to_string()))? {
        let Some(name) = field.file_name().map(str::to_owned) else {
            let name = field.name().unwrap_or("(no name)").to_owned();
            return Err(damaged(&format!("the part {name:?} is no file; parameters travel in the query")));
        };
        let mut stream = Digesting::new(FieldStream { field, left: Bytes::new() });
        collector.add(&name, &mut stream).map_err(|error| match error {
            ReportError::Io { source, .. } => broken(source.to_string()),
            other => watch.fault().unwrap_or_else(|| unreadable(&other)),
        })?;
        let digest = stream.finish().map_err(|e| broken(e.to_string()))?;
        whole.update(&(name.len() as u64).to_le_bytes());
        whole.update(name.as_bytes());
        whole.update(&digest.0);
        files += 1;
    }
    drop(parts);
    // What follows the last boundary is no content, but the checksum of the compression is there.
    io::copy(&mut source, &mut io::sink()).map_err(|e| broken(e.to_string()))?;
    if files == 0 {
        return Err(damaged("it holds no file; send each report as a part with a filename (curl -F file=@junit.xml)"));
    }
    collected(collector, whole.finalize().into(), true)
}

/// The parser is asynchronous and its input is not: whenever it has nothing yet, the next look brings more.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

fn damaged(why: &str) -> Failure {
    Failure::new(
        ProblemCode::ReportUnreadable,
        format!("The multipart body cannot be read: {why}. Nothing was recorded."),
    )
}

/// The body in pieces. The parser takes whatever is ready before it looks at any of it, so each piece is followed by
/// "nothing yet": else it would hold the whole body.
fn pieces<'a>(source: &'a mut Inflated<'_>) -> impl stream::Stream<Item = io::Result<Bytes>> + Send + 'a {
    let mut rest = false;
    stream::poll_fn(move |context| {
        rest = !rest;
        if rest {
            Poll::Ready(piece(source))
        } else {
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
}

fn piece(source: &mut Inflated<'_>) -> Option<io::Result<Bytes>> {
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    match source.take(PIECE_BYTES as u64).read_to_end(&mut piece) {
        Ok(0) => None,
        Ok(_) => Some(Ok(Bytes::from(piece))),
        Err(error) => Some(Err(error)),
    }
}

/// One file of the body as blocking input.
struct FieldStream<'a> {
    field: Field<'a>,
    left: Bytes,
}

impl Read for FieldStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.left.is_empty() {
            match at_once(self.field.chunk()).map_err(io::Error::other)? {
                Some(chunk) => self.left = chunk,
                None => return Ok(0),
            }
        }
        self.left.as_ref().read(buffer).inspect(|read| drop(self.left.split_to(*read)))
    }
}
