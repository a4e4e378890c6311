//! A tiny HTTP upstream that counts what reaches it. Parses by itself: the proxy's parser is under test.

use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// One request as it arrived, whole or cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) line: String,
    /// All of the head.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) whole: bool,
}

type Log = Arc<(Mutex<Vec<Seen>>, Condvar)>;

/// Answers `201` with `echo LENGTH`, the `N`-th whole request with `N` in a header; `/chunked` in chunks, `/close`
/// until it closes, `/events` with one piece and no end, `/refuse` with `413` before the body is read.
pub(crate) struct Upstream {
    pub(crate) addr: SocketAddr,
    log: Log,
    _runtime: Runtime,
}

impl Upstream {
    pub(crate) fn start() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let addr = listener.local_addr()?;
        let log = Log::default();
        let shared = Arc::clone(&log);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Ok(Self { addr, log, _runtime: runtime })
    }

    /// Everything that arrived so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.log.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until this many arrived.
    pub(crate) fn wait_seen(&self, count: usize) -> anyhow::Result<Vec<Seen>> {
        let log = self.log.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.log.1.wait_timeout_while(log, Duration::from_secs(10), |log| log.len() < count);
        let (log, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        anyhow::ensure!(!waited.timed_out(), "only {} of {count} arrived", log.len());
        Ok(log.clone())
    }
}

fn note(log: &Log, seen: Seen) -> usize {
    let mut all = log.0.lock().unwrap_or_else(PoisonError::into_inner);
    all.push(seen);
    log.1.notify_all();
    all.iter().filter(|seen| seen.whole).count()
}

async fn serve(mut stream: TcpStream, log: Log) -> anyhow::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let Some((head, body_at)) = head(&mut stream, &mut buffer).await? else {
            if !buffer.is_empty() {
                note(
                    &log,
                    Seen {
                        line: "cut head".into(),
                        head: String::new(),
                        body: std::mem::take(&mut buffer),
                        whole: false,
                    },
                );
            }
            return Ok(());
        };
        let line = head.lines().next().unwrap_or_default().to_owned();
        if line.contains("/refuse") {
            stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await?;
            note(&log, Seen { line, head, body: Vec::new(), whole: false });
            // Held open unread, so that the sender's writing blocks.
            tokio::time::sleep(Duration::from_secs(5)).await;
            return Ok(());
        }
        let lower = head.to_ascii_lowercase();
        let whole = if lower.contains("transfer-encoding: chunked") {
            until(&mut stream, &mut buffer, |b| b.ends_with(b"0\r\n\r\n")).await?
        } else {
            let length = lower.lines().find_map(|l| l.strip_prefix("content-length: "));
            let length: usize = length.map_or(Ok(0), str::parse).context("length")?;
            until(&mut stream, &mut buffer, |b| b.len() >= body_at + length).await?
        };
        let body = buffer.split_off(body_at);
        buffer.clear();
        let length = body.len();
        let no = note(&log, Seen { line: line.clone(), head, body, whole });
        if !whole || !answer(&mut stream, &line, no, length).await? {
            return Ok(());
        }
    }
}

async fn answer(stream: &mut TcpStream, line: &str, no: usize, length: usize) -> anyhow::Result<bool> {
    let text = format!("echo {length}");
    let chunk = format!("{:x}\r\n{text}\r\n", text.len());
    let start = format!("HTTP/1.1 201 Created\r\nN: {no}\r\n");
    let message = if line.contains("/chunked") {
        format!("HTTP/1.1 102 Processing\r\n\r\n{start}Transfer-Encoding: chunked\r\n\r\n{chunk}0\r\n\r\n")
    } else if line.contains("/close") {
        format!("{start}\r\n{text}")
    } else if line.contains("/events") {
        format!("{start}Transfer-Encoding: chunked\r\n\r\n{chunk}")
    } else if line.starts_with("HEAD") {
        format!("{start}Content-Length: 99\r\n\r\n")
    } else {
        format!("{start}Content-Length: {}\r\n\r\n{text}", text.len())
    };
    stream.write_all(message.as_bytes()).await?;
    if line.contains("/events") {
        std::future::pending::<()>().await;
    }
    Ok(!line.contains("/close"))
}

async fn head(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> anyhow::Result<Option<(String, usize)>> {
    let end = |b: &[u8]| b.windows(4).position(|w| w == b"\r\n\r\n");
    if !until(stream, buffer, |b| end(b).is_some()).await? {
        return Ok(None);
    }
    let at = end(buffer).context("head")? + 4;
    Ok(Some((String::from_utf8_lossy(&buffer[..at]).into_owned(), at)))
}

/// Reads until the buffer satisfies `done`; `false` if the connection ends before.
async fn until(stream: &mut TcpStream, buffer: &mut Vec<u8>, done: impl Fn(&[u8]) -> bool) -> anyhow::Result<bool> {
    while !done(buffer) {
        if stream.read_buf(buffer).await? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
