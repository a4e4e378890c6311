//! Our own server as a target: a small push whole in one request, its key in the header; a large one staged.
//! Must not decide what an answer means, nor when to try again.

use std::sync::Arc;

use ::http::{HeaderMap, HeaderValue, Method, header};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::push::OrdinalScope;
use domain::wire::{PUSH_MEDIA_TYPE, names};
use domain::{Cause, Delivery, NextTry};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest as _, Sha256};

use crate::attempt::Try;
use crate::classify::{Expected, at_address, classify_failure, classify_push, setback};
use crate::destination::{Destination, HttpUrl};
use crate::http::{Http, HttpSettings, Request, SettingsError, Transport, header_name, header_value};
use crate::parcel::{Form, Header, Parcel};
use crate::staged::{Setback, damaged, deliver_staged, wait_for_other};
use crate::structured::quoted;
use crate::target::{Handed, Target};

/// What stands for itself in a query or a header (RFC 3986, unreserved).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// A receipt lists at most a hundred items, and their names are bounded.
const RECEIPT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A Tallyonce server.
#[derive(Debug, Clone)]
pub struct TallyonceTarget {
    destination: Destination,
    http: Http,
    /// How long an answer may take, in milliseconds.
    patience_ms: u64,
}

impl TallyonceTarget {
    /// The server at this base address. The program must have installed a TLS crypto provider before.
    pub fn new(url: HttpUrl, settings: &HttpSettings) -> Result<Self, SettingsError> {
        let (destination, patience_ms) = (Destination::Http(url.clone()), settings.answer_timeout_ms);
        Ok(Self { destination, http: Http::new(url, settings)?, patience_ms })
    }

    /// The server at this base address, reached by a transport of the caller's.
    pub fn over(url: HttpUrl, transport: Arc<dyn Transport>) -> Self {
        Self { destination: Destination::Http(url.clone()), http: Http::over(url, transport), patience_ms: u64::MAX }
    }
}

#[async_trait]
impl Target for TallyonceTarget {
    fn destination(&self) -> &Destination {
        &self.destination
    }

    async fn deliver(&self, parcel: &Parcel, attempt: &Try<'_>) -> Delivery<Handed> {
        match parcel.header.form {
            Form::Whole => self.one_shot(parcel, attempt).await,
            Form::Chunks { .. } => deliver_staged(self, parcel, attempt).await,
        }
    }
}

impl TallyonceTarget {
    pub(crate) fn http(&self) -> &Http {
        &self.http
    }

    /// How long an answer may take, in milliseconds.
    pub(crate) fn patience_ms(&self) -> u64 {
        self.patience_ms
    }

    /// The whole push in one request.
    async fn one_shot(&self, parcel: &Parcel, attempt: &Try<'_>) -> Delivery<Handed> {
        let header = &parcel.header;
        let body = match parcel.whole_body() {
            Ok(body) => body,
            Err(error) => return Delivery::Rejected(damaged(&error)),
        };
        let mut headers = sender_headers(header);
        headers.extend(header_value(&content_digest(&body)).map(|digest| (header_name("content-digest"), digest)));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PUSH_MEDIA_TYPE));
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("zstd"));
        let path = format!("/api/v1/projects/{}/pushes{}", header.place.project, query(header));
        let answer_bytes_max = RECEIPT_BYTES_MAX;
        let sent = self.http.send(Request { method: Method::POST, path: &path, headers, body, answer_bytes_max }).await;
        fail::fail_point!("client:push:answered");
        let answer = match sent {
            Ok(answer) => answer,
            Err(failure) => return at_address(self.http.base(), classify_failure(&failure)),
        };
        match setback(&answer) {
            // Somebody stages under this key, or one request is too small for it.
            Setback::Fenced { what, idle_in_ms, over } if answer.status >= 400 => {
                wait_for_other(self, parcel, attempt, what, idle_in_ms, over).await
            }
            Setback::TooLarge(what) if answer.status >= 400 => {
                Delivery::NotSent(Cause { next: NextTry::Smaller, ..Cause::new(what) })
            }
            _ => classify_push(&answer, expected(header)),
        }
    }
}

/// What a receipt must be about.
pub(crate) fn expected(header: &Header) -> Expected<'_> {
    Expected { project: &header.place.project, key: &header.key }
}

/// `Content-Digest` of a body.
pub(crate) fn content_digest(body: &[u8]) -> String {
    format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(body)))
}

/// The query of a push: place, origin and policy.
pub(crate) fn query(header: &Header) -> String {
    let Header { place, origin, sender, on_difference, outside_ci, expect, .. } = header;
    let mut query = Query::default();
    query.add(names::CYCLE, place.cycle.as_str());
    query.add(names::RUN, place.run.as_str());
    query.add_some(names::ROUND, place.label.as_ref().map(domain::RoundLabel::as_str));
    query.add(names::ROUND_ID, place.round.as_str());
    query.add_some(names::JOB, place.job.as_ref().map(domain::JobName::as_str));
    query.add_some(names::SHARD, place.shard.map(|s| s.to_string()).as_deref());
    for (name, value) in place.variant.iter() {
        query.add(names::VARIANT, &format!("{name}={value}"));
    }
    if sender.ordinal.is_some() && sender.ordinal_scope == OrdinalScope::Key {
        query.add(names::ATTEMPT_SCOPE, "key");
    }
    query.add(names::ON_DIFFERENCE, on_difference.word());
    if *outside_ci {
        query.add(names::OUTSIDE_CI, "true");
    }
    query.add_some(names::EXPECT, expect.map(|n| n.to_string()).as_deref());
    query.add_some(names::COMMIT, origin.commit.as_ref().map(domain::Commit::as_str));
    query.add_some(names::WORKFLOW, origin.workflow.as_ref().map(domain::WorkflowName::as_str));
    query.add_some(names::RUN_COUNTER, origin.run_counter.map(|n| n.to_string()).as_deref());
    query.add_some(names::RUN_URL, origin.run_url.as_deref());
    query.0
}

/// A query, each value encoded. Blanks are `%20`, which every reader knows.
#[derive(Default)]
pub(crate) struct Query(pub(crate) String);

impl Query {
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        self.0.push(if self.0.is_empty() { '?' } else { '&' });
        self.0.extend(utf8_percent_encode(name, ESCAPED));
        self.0.push('=');
        self.0.extend(utf8_percent_encode(value, ESCAPED));
    }

    fn add_some(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }
}

/// Key and sender.
pub(crate) fn sender_headers(header: &Header) -> HeaderMap {
    let executor = header.sender.executor.as_ref();
    let ours = [
        (names::H_KEY, Some(quoted(header.key.as_str()))),
        (names::H_ATTEMPT, header.sender.ordinal.map(|o| o.to_string())),
        (names::H_EXECUTOR, executor.map(|e| utf8_percent_encode(e.as_str(), ESCAPED).to_string())),
        (names::H_INCARNATION, header.sender.incarnation.map(|i| i.to_string())),
    ];
    let mut headers = HeaderMap::new();
    for (name, value) in ours {
        // All of these are printable ASCII: digits, hexadecimal digits, encoded text, or a key.
        if let Some(value) = value.as_deref().and_then(header_value) {
            headers.insert(header_name(name), value);
        }
    }
    headers
}
