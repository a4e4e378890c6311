//! Just enough HTTP/1.1 to find where a message ends, keeping its bytes as they came. Must not know faults.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

/// A head larger than this is not HTTP.
const HEAD_MAX: usize = 64 << 10;
/// The largest body that is buffered: far above what tests and the drill send.
pub(crate) const BODY_MAX: usize = 256 << 20;

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length(u64),
    /// Before a chunk's size line.
    ChunkSize,
    /// Inside a chunk, its line end included.
    ChunkData(u64),
    Trailers,
    UntilClose,
}

/// The start line and headers of a message.
#[derive(Debug)]
pub(crate) struct Head {
    /// As they came, except that `Expect` is taken out: the proxy answers it itself.
    pub(crate) raw: Vec<u8>,
    start: String,
    headers: Vec<(String, String)>,
}

impl Head {
    /// The `n`-th word of the start line; empty if there is none.
    pub(crate) fn word(&self, n: usize) -> &str {
        self.start.split_ascii_whitespace().nth(n).unwrap_or("")
    }

    /// The first header of this name (lower case).
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// All headers, names in lower case, in the order sent.
    pub(crate) fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// Names another host than the sender did. A message without a host stays without one.
    pub(crate) fn set_host(&mut self, host: &str) {
        let mut raw = Vec::with_capacity(self.raw.len() + host.len());
        for line in self.raw.split_inclusive(|byte| *byte == b'\n') {
            if text(line).to_ascii_lowercase().starts_with("host:") {
                raw.extend_from_slice(format!("Host: {host}\r\n").as_bytes());
            } else {
                raw.extend_from_slice(line);
            }
        }
        self.raw = raw;
    }

    /// Whether the sender will close the connection after this message.
    pub(crate) fn closes(&self) -> bool {
        self.start.contains("HTTP/1.0") || self.header("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"))
    }

    fn framing(&self, without: Framing) -> io::Result<Framing> {
        if self.header("transfer-encoding").is_some_and(|v| v.to_ascii_lowercase().ends_with("chunked")) {
            return Ok(Framing::ChunkSize);
        }
        match self.header("content-length") {
            Some(text) => text.parse().map(Framing::Length).map_err(|_| bad("content-length")),
            None => Ok(without),
        }
    }
}

/// The body of one message, read piece by piece, framing included.
#[derive(Debug)]
pub(crate) struct Body(Framing);

impl Body {
    pub(crate) fn of_request(head: &Head) -> io::Result<Self> {
        head.framing(Framing::Length(0)).map(Self)
    }

    pub(crate) fn of_answer(head: &Head, method: &str) -> io::Result<Self> {
        if method == "HEAD" || matches!(head.word(1), "204" | "304") {
            return Ok(Self(Framing::Length(0)));
        }
        head.framing(Framing::UntilClose).map(Self)
    }

    /// Whether only the end of the connection ends it.
    pub(crate) fn until_close(&self) -> bool {
        self.0 == Framing::UntilClose
    }

    /// The next bytes as they came; `None` at the end.
    pub(crate) async fn piece<R: AsyncBufRead + Unpin>(&mut self, from: &mut R) -> io::Result<Option<Vec<u8>>> {
        match self.0 {
            Framing::Length(0) => Ok(None),
            Framing::Length(left) => {
                let bytes = some(from, left).await?;
                self.0 = Framing::Length(left - bytes.len() as u64);
                full(bytes).map(Some)
            }
            Framing::ChunkData(left) => {
                let bytes = some(from, left).await?;
                let left = left - bytes.len() as u64;
                self.0 = if left == 0 { Framing::ChunkSize } else { Framing::ChunkData(left) };
                full(bytes).map(Some)
            }
            Framing::UntilClose => {
                let bytes = some(from, u64::MAX).await?;
                Ok(Some(bytes).filter(|b| !b.is_empty()))
            }
            Framing::ChunkSize => {
                let text = line(from, HEAD_MAX).await?;
                let digits: Vec<u8> = text.iter().copied().take_while(u8::is_ascii_hexdigit).collect();
                let size = std::str::from_utf8(&digits).ok().and_then(|d| u64::from_str_radix(d, 16).ok());
                self.0 = match size.ok_or_else(|| bad("chunk size"))? {
                    0 => Framing::Trailers,
                    size => Framing::ChunkData(size.saturating_add(2)),
                };
                Ok(Some(text))
            }
            Framing::Trailers => {
                let text = line(from, HEAD_MAX).await?;
                if is_blank(&text) {
                    self.0 = Framing::Length(0);
                }
                Ok(Some(text))
            }
        }
    }

    /// The content alone, in memory: chunks are joined, their sizes and the trailers left out.
    pub(crate) async fn content<R: AsyncBufRead + Unpin>(&mut self, from: &mut R) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        loop {
            let before = self.0;
            let Some(piece) = self.piece(from).await? else { return Ok(content) };
            let wanted = match before {
                Framing::Length(_) | Framing::UntilClose => piece.len(),
                // The line end after a chunk is no content.
                Framing::ChunkData(left) => usize::try_from(left.saturating_sub(2)).unwrap_or(usize::MAX),
                Framing::ChunkSize | Framing::Trailers => 0,
            };
            content.extend_from_slice(&piece[..piece.len().min(wanted)]);
            if content.len() > BODY_MAX {
                return Err(bad("body larger than what is buffered"));
            }
        }
    }

    /// All of it, in memory.
    pub(crate) async fn whole<R: AsyncBufRead + Unpin>(&mut self, from: &mut R) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(piece) = self.piece(from).await? {
            all.extend_from_slice(&piece);
            if all.len() > BODY_MAX {
                return Err(bad("body larger than the fault proxy buffers"));
            }
        }
        Ok(all)
    }
}

/// The next head; `None` if the connection ends before its first byte.
pub(crate) async fn head<R: AsyncBufRead + Unpin>(from: &mut R) -> io::Result<Option<Head>> {
    if from.fill_buf().await?.is_empty() {
        return Ok(None);
    }
    let start = line(from, HEAD_MAX).await?;
    let mut head = Head { start: text(&start), raw: start, headers: Vec::new() };
    loop {
        let next = line(from, HEAD_MAX).await?;
        if head.raw.len() + next.len() > HEAD_MAX {
            return Err(bad("head too large"));
        }
        let shown = text(&next);
        if let Some((name, value)) = shown.split_once(':') {
            head.headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
        if !shown.to_ascii_lowercase().starts_with("expect:") {
            head.raw.extend_from_slice(&next);
        }
        if is_blank(&next) {
            return Ok(Some(head));
        }
    }
}

async fn line<R: AsyncBufRead + Unpin>(from: &mut R, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(limit as u64).read_until(b'\n', &mut bytes).await?;
    if bytes.ends_with(b"\n") { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

async fn some<R: AsyncBufRead + Unpin>(from: &mut R, limit: u64) -> io::Result<Vec<u8>> {
    let ready = from.fill_buf().await?;
    let count = (ready.len() as u64).min(limit) as usize;
    let bytes = ready[..count].to_vec();
    from.consume(count);
    Ok(bytes)
}

fn full(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    if bytes.is_empty() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}

fn is_blank(line: &[u8]) -> bool {
    line == b"\r\n" || line == b"\n"
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end().to_owned()
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}
