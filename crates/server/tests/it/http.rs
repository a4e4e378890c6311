//! A HTTP client of a few lines: what is asserted is what travels, not what a library makes of it.

use std::fmt::Write as _;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// One request, as curl would send it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// One answer, with header names in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self { method: "GET", path: path.into(), headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn post(path: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self { method: "POST", path: path.into(), headers: Vec::new(), body: body.into() }
    }

    pub(crate) fn put(path: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self { method: "PUT", path: path.into(), headers: Vec::new(), body: body.into() }
    }

    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self { method: "DELETE", path: path.into(), headers: Vec::new(), body: Vec::new() }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn replace_header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(n, _)| n != name);
        self.header(name, value)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let Self { method, path, headers, body } = self;
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n");
        for (name, value) in headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let framed = headers.iter().any(|(name, _)| matches!(name.as_str(), "Content-Length" | "Transfer-Encoding"));
        if matches!(*method, "POST" | "PUT") && !framed {
            let _ = write!(head, "Content-Length: {}\r\n", body.len());
        }
        [head.as_bytes(), b"\r\n", body].concat()
    }

    pub(crate) async fn send(&self, address: SocketAddr) -> Answer {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // A server that refuses early may close before all is written; the answer is what counts.
        let _ = stream.write_all(&self.bytes()).await;
        read_answer(&mut stream).await
    }
}

pub(crate) async fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").expect("a whole head");
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines
        .map(|line| line.split_once(':').unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Answer { status, headers, body: bytes[end + 4..].to_vec() }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    /// Asserts a problem document: its code with all that goes with it, and words that it holds.
    #[track_caller]
    pub(crate) fn is_problem(&self, code: &str, words: &[&str]) {
        let known = domain::ProblemCode::ALL.iter().find(|c| c.word() == code).expect("a code of the list");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.text());
        let document = self.json();
        assert_eq!(document["code"], code, "{document:#}");
        assert_eq!(self.status, known.status(), "{document:#}");
        assert_eq!(document["status"], known.status());
        assert_eq!(document["retry"], serde_json::to_value(known.retry()).unwrap());
        assert_eq!(document["written"], serde_json::to_value(known.written()).unwrap());
        assert_eq!(document["type"], format!("urn:tallyonce:problem:{code}"));
        assert_eq!(document["title"], known.title());
        assert_eq!(self.header("cache-control"), Some("no-store"));
        if matches!(self.status, 429 | 503) || ["in-flight", "push-in-progress", "stale-attempt"].contains(&code) {
            let seconds: u64 = self.header("retry-after").expect("Retry-After").parse().expect("seconds");
            assert!(seconds > 0);
        }
        for word in words {
            assert!(document.to_string().contains(word), "{word:?} is not in {document:#}");
        }
    }

    #[track_caller]
    pub(crate) fn is_recorded(&self) {
        assert_eq!(self.status, 201, "{}", self.text());
        assert_eq!(self.header("idempotent-replayed"), None);
    }

    #[track_caller]
    pub(crate) fn is_replay_of(&self, first: &Answer) {
        assert_eq!(self.status, 201, "{}", self.text());
        assert_eq!(self.header("idempotent-replayed"), Some("true"));
        assert_eq!(self.body, first.body, "a replay is the same byte for byte");
        assert_eq!(self.header("etag"), first.header("etag"));
        assert_eq!(self.header("location"), first.header("location"));
    }
}
