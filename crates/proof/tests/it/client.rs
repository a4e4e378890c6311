//! A raw client that tells apart an answer, an end and a reset.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::Context as _;

/// What a client sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Head and body.
    Answer(u16, String, String),
    /// The connection ended after so many bytes of an answer.
    Ended(usize),
    /// A reset, after so many bytes of an answer.
    Reset(usize),
}

impl Sight {
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Sight::Answer(status, ..) => Some(*status),
            _ => None,
        }
    }
}

pub(crate) struct Client(TcpStream);

impl Client {
    pub(crate) fn connect(addr: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(addr)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(Self(stream))
    }

    /// Sends a request with a length and a key.
    pub(crate) fn send(&mut self, method: &str, path: &str, body: &[u8]) -> anyhow::Result<Sight> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k1\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        self.send_raw(&[head.as_bytes(), body].concat())
    }

    /// Sends these bytes and reads one answer.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) -> anyhow::Result<Sight> {
        if let Err(error) = self.0.write_all(bytes) {
            anyhow::ensure!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
            return Ok(Sight::Reset(0));
        }
        self.read(is_whole)
    }

    /// Sends these bytes and reads nothing.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        Ok(self.0.write_all(bytes)?)
    }

    /// Reads until `done`, or the end.
    pub(crate) fn read(&mut self, done: impl Fn(&[u8]) -> bool) -> anyhow::Result<Sight> {
        let mut got = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            match self.0.read(&mut buffer) {
                Ok(0) => return Ok(Sight::Ended(got.len())),
                Ok(count) => got.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(Sight::Reset(got.len())),
                Err(error) => return Err(error.into()),
            }
            if done(&got) {
                let text = String::from_utf8_lossy(&got).into_owned();
                let (head, body) = text.split_once("\r\n\r\n").context("no head")?;
                let status = head.split(' ').nth(1).context("no status")?.parse()?;
                return Ok(Sight::Answer(status, head.to_owned(), body.to_owned()));
            }
        }
    }
}

/// Whether this is a whole answer, by its length or its last chunk.
pub(crate) fn is_whole(got: &[u8]) -> bool {
    let text = String::from_utf8_lossy(got);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    if head.contains("chunked") {
        return body.ends_with("0\r\n\r\n");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    length.is_some_and(|length| length.parse() == Ok(body.len()))
}

/// One request on a connection of its own.
pub(crate) fn once(addr: SocketAddr, method: &str, path: &str, body: &[u8]) -> anyhow::Result<Sight> {
    Client::connect(addr)?.send(method, path, body)
}
