//! A request as a vendor gets it, and an answer as it gives it. Must not know sockets, faults or any vendor.

use base64::Engine as _;
use percent_encoding::percent_decode_str;
use serde_json::Value;

/// One request, whole and decoded: chunks joined, multipart bodies taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// In upper case, as sent.
    pub method: String,
    /// Path and query as they were sent.
    pub target: String,
    /// Names in lower case, in the order sent.
    pub headers: Vec<(String, String)>,
    /// The content, without the framing.
    pub body: Vec<u8>,
    /// The parts of a multipart body, in order; empty for any other body.
    pub parts: Vec<Part>,
    segments: Vec<String>,
    query: Vec<(String, String)>,
}

/// One part of a multipart body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The name of its field.
    pub name: String,
    /// The name of the file, if it is one.
    pub file: Option<String>,
    /// Its content.
    pub body: Vec<u8>,
}

impl Request {
    /// A request from what the wire carried.
    pub fn new(method: &str, target: &str, headers: Vec<(String, String)>, body: Vec<u8>) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let segments = path.split('/').filter(|part| !part.is_empty()).map(decoded).collect();
        let (method, target) = (method.to_ascii_uppercase(), target.to_owned());
        Self { method, target: target.clone(), headers, body, parts: Vec::new(), segments, query: pairs(query) }
    }

    /// The method and the decoded segments of the path, to be matched:
    /// `("POST", ["v2", project, "run", run, "results"])`.
    pub fn route(&self) -> (&str, Vec<&str>) {
        (&self.method, self.segments.iter().map(String::as_str).collect())
    }

    /// The first value of this name in the query.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The whole query, decoded, in order. A piece without `=` is a name with an empty value.
    pub fn queries(&self) -> &[(String, String)] {
        &self.query
    }

    /// The value of this name in the query as a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.query(name)?.parse().ok()
    }

    /// The first header of this name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; `Null` if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The body as a form's fields (`application/x-www-form-urlencoded`).
    pub fn form(&self) -> Vec<(String, String)> {
        pairs(&String::from_utf8_lossy(&self.body))
    }

    /// The part of a multipart body with this name.
    pub fn part(&self, name: &str) -> Option<&Part> {
        self.parts.iter().find(|part| part.name == name)
    }

    /// Name and password of `Authorization: Basic`.
    pub fn basic(&self) -> Option<(String, String)> {
        let text = self.header("authorization")?.strip_prefix("Basic ")?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(text.trim()).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        text.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned()))
    }

    /// The token of `Authorization: Bearer`.
    pub fn bearer(&self) -> Option<&str> {
        self.header("authorization")?.strip_prefix("Bearer ").map(str::trim)
    }

    /// The same request with another body.
    pub fn with_body(&self, body: Vec<u8>) -> Self {
        Self { body, ..self.clone() }
    }

    /// The same request with only the first `count` elements of the array at this JSON pointer (`""` is the body
    /// itself); `None` if there is no such array.
    pub fn with_first(&self, pointer: &str, count: usize) -> Option<Self> {
        let mut json = self.json();
        json.pointer_mut(pointer)?.as_array_mut()?.truncate(count);
        Some(self.with_body(json.to_string().into_bytes()))
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn pairs(text: &str) -> Vec<(String, String)> {
    let plain = |text: &str| decoded(&text.replace('+', " "));
    text.split('&')
        .filter(|piece| !piece.is_empty())
        .map(|piece| piece.split_once('=').unwrap_or((piece, "")))
        .map(|(name, value)| (plain(name), plain(value)))
        .collect()
}

/// What a vendor answers. The length and the connection's headers are the kernel's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// Besides length and connection.
    pub headers: Vec<(String, String)>,
    /// The content.
    pub body: Vec<u8>,
}

impl Answer {
    fn typed(status: u16, kind: &str, body: Vec<u8>) -> Self {
        Self { status, headers: vec![("Content-Type".to_owned(), kind.to_owned())], body }
    }

    /// A JSON document.
    pub fn json(status: u16, value: &Value) -> Self {
        Self::typed(status, "application/json; charset=utf-8", value.to_string().into_bytes())
    }

    /// Plain text.
    pub fn text(status: u16, text: &str) -> Self {
        Self::typed(status, "text/plain; charset=utf-8", text.as_bytes().to_vec())
    }

    /// An HTML page.
    pub fn html(status: u16, page: &str) -> Self {
        Self::typed(status, "text/html; charset=utf-8", page.as_bytes().to_vec())
    }

    /// An XML document.
    pub fn xml(status: u16, document: &str) -> Self {
        Self::typed(status, "text/xml; charset=utf-8", document.as_bytes().to_vec())
    }

    /// No content.
    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    /// The same with one header more.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The bytes on the wire. `head_only` for `HEAD`: the length is told, the content is not sent.
    pub(super) fn bytes(&self, head_only: bool, closes: bool) -> Vec<u8> {
        use std::fmt::Write as _;
        let reason = http::StatusCode::from_u16(self.status).ok().and_then(|status| status.canonical_reason());
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason.unwrap_or("Unknown"));
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if !matches!(self.status, 204 | 304) {
            let _ = write!(head, "Content-Length: {}\r\n", self.body.len());
        }
        head.push_str(if closes { "Connection: close\r\n\r\n" } else { "\r\n" });
        let mut bytes = head.into_bytes();
        if !head_only && !matches!(self.status, 204 | 304) {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}
