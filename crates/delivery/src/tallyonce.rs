//! Our own server as a target: a whole push in one request, its key in the header.
//! Must not decide what an answer means, nor when to try again.

use std::sync::Arc;

use ::http::{HeaderMap, HeaderValue, Method, header};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::Delivery;
use domain::push::OrdinalScope;
use domain::wire::{PUSH_MEDIA_TYPE, names};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest as _, Sha256};

use crate::classify::{Expected, at_address, classify_failure, classify_push};
use crate::destination::{Destination, HttpUrl};
use crate::http::{Http, HttpSettings, Request, SettingsError, Transport, header_name, header_value};
use crate::parcel::{Header, Parcel};
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
}

impl TallyonceTarget {
    /// The server at this base address. The program must have installed a TLS crypto provider before.
    pub fn new(url: HttpUrl, settings: &HttpSettings) -> Result<Self, SettingsError> {
        Ok(Self { destination: Destination::Http(url.clone()), http: Http::new(url, settings)? })
    }

    /// The server at this base address, reached by a transport of the caller's.
    pub fn over(url: HttpUrl, transport: Arc<dyn Transport>) -> Self {
        Self { destination: Destination::Http(url.clone()), http: Http::over(url, transport) }
    }
}

#[async_trait]
impl Target for TallyonceTarget {
    fn destination(&self) -> &Destination {
        &self.destination
    }

    async fn deliver(&self, parcel: &Parcel) -> Delivery<Handed> {
        let header = &parcel.header;
        let request = Request {
            method: Method::POST,
            path: &path(header),
            headers: headers(header, &parcel.body),
            body: parcel.body.clone(),
            answer_bytes_max: RECEIPT_BYTES_MAX,
        };
        match self.http.send(request).await {
            Ok(answer) => classify_push(&answer, Expected { project: &header.place.project, key: &header.key }),
            Err(failure) => at_address(self.http.base(), classify_failure(&failure)),
        }
    }
}

/// Path and query of the one-shot push.
fn path(header: &Header) -> String {
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
    format!("/api/v1/projects/{}/pushes{}", place.project, query.0)
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

fn headers(header: &Header, body: &[u8]) -> HeaderMap {
    let digest = format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(body)));
    let executor = header.sender.executor.as_ref();
    let ours = [
        (names::H_KEY, Some(quoted(header.key.as_str()))),
        (names::H_ATTEMPT, header.sender.ordinal.map(|o| o.to_string())),
        (names::H_EXECUTOR, executor.map(|e| utf8_percent_encode(e.as_str(), ESCAPED).to_string())),
        (names::H_INCARNATION, header.sender.incarnation.map(|i| i.to_string())),
        ("content-digest", Some(digest)),
    ];
    let mut headers = HeaderMap::new();
    for (name, value) in ours {
        // All of these are printable ASCII: digits, hexadecimal digits, encoded text, or a key.
        if let Some(value) = value.as_deref().and_then(header_value) {
            headers.insert(header_name(name), value);
        }
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PUSH_MEDIA_TYPE));
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("zstd"));
    headers
}
