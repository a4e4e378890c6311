//! Staged pushes to send: outcomes cut into chunks, their manifest, and the requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use domain::content::chunk_of;
use domain::verdict::Light;
use domain::wire::{MANIFEST_MEDIA_TYPE, PUSH_MEDIA_TYPE};
use domain::{DurationUs, ItemName, Outcome, Outcomes, Status};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::http::{Answer, Request};
use crate::replay::zstd;
use crate::served::push;

/// Everything that takes requests.
pub(crate) trait Sends {
    async fn send(&self, request: Request) -> Answer;
}

impl Sends for crate::served::Served {
    async fn send(&self, request: Request) -> Answer {
        request.send(self.address).await
    }
}

/// Outcomes of the items `from..to`; those in `failed` fail.
pub(crate) fn outcomes(items: std::ops::Range<u32>, failed: &[u32]) -> Vec<Outcome> {
    let outcome = |n: u32| Outcome {
        item: ItemName::new(["shop"], Some("cart"), &format!("item {n}")),
        status: if failed.contains(&n) { Status::Failed } else { Status::Passed },
        duration_us: Some(DurationUs(1000 + u64::from(n))),
        message: failed.contains(&n).then(|| format!("{n} != {}", n + 1)),
        attempts: Vec::new(),
        external_ids: Vec::new(),
    };
    items.map(outcome).collect()
}

/// A content cut into chunks.
#[derive(Debug, Clone)]
pub(crate) struct Cut {
    /// The body of a begin.
    pub(crate) manifest: Value,
    /// The bodies of the chunks.
    pub(crate) chunks: Vec<Vec<u8>>,
    whole: Outcomes,
}

/// Cuts into 2^`bits` chunks.
pub(crate) fn cut(outcomes: Vec<Outcome>, bits: u8) -> Cut {
    let whole = Outcomes::from_unordered(outcomes).unwrap();
    let mut parts: Vec<Vec<&Outcome>> = vec![Vec::new(); 1 << bits];
    for (hash, outcome) in whole.iter() {
        parts[chunk_of(hash, bits) as usize].push(outcome);
    }
    let body = |part: &Vec<&Outcome>| json!({ "tallyonce": 1, "outcomes": part }).to_string().into_bytes();
    let chunks: Vec<Vec<u8>> = parts.iter().map(body).collect();
    let promise = |(body, part): (&Vec<u8>, &Vec<&Outcome>)| json!([hex(body), part.len()]);
    let digests = whole.digests();
    let manifest = json!({
        "tallyonce": 1,
        "counts": whole.counts(),
        "content": digests.content,
        "outcomes": digests.outcomes,
        "bits": bits,
        "chunks": chunks.iter().zip(&parts).map(promise).collect::<Vec<_>>(),
    });
    Cut { manifest, chunks, whole }
}

/// Sixty outcomes in four chunks.
pub(crate) fn sixty(failed: &[u32]) -> Cut {
    cut(outcomes(0..60, failed), 2)
}

impl Cut {
    /// The same, whose manifest names items and verdicts.
    pub(crate) fn with_items(mut self) -> Self {
        let hashes = self.whole.hashes().iter().flat_map(|hash| hash.0);
        let codes = self.whole.as_slice().iter().map(|outcome| Light::of(outcome).code());
        self.manifest["items"] = BASE64.encode(zstd(&hashes.chain(codes).collect::<Vec<u8>>())).into();
        self
    }

    /// The same outcomes as one request.
    pub(crate) fn one_shot(&self, key: &str, more: &str) -> Request {
        let body = json!({ "tallyonce": 1, "outcomes": self.whole.as_slice() }).to_string();
        push(key, more, body).replace_header("Content-Type", PUSH_MEDIA_TYPE)
    }

    /// The begin.
    pub(crate) fn begin(&self, key: &str, more: &str) -> Request {
        let path = format!("/api/v1/projects/shop/staged-pushes?cycle=main&run=42{more}");
        Request::post(path, self.manifest.to_string())
            .header("Content-Type", MANIFEST_MEDIA_TYPE)
            .header("Idempotency-Key", key)
    }

    /// One put into an epoch.
    pub(crate) fn put(&self, epoch: &str, chunk: usize) -> Request {
        put(epoch, chunk, self.chunks[chunk].clone())
    }

    /// Begins, and puts all chunks; the address of the epoch.
    pub(crate) async fn stage(&self, to: &impl Sends, begin: Request) -> String {
        let begun = to.send(begin).await;
        assert!(matches!(begun.status, 200 | 201), "{}", begun.text());
        let epoch = begun.header("location").expect("an epoch").to_owned();
        for chunk in 0..self.chunks.len() {
            let answer = to.send(self.put(&epoch, chunk)).await;
            assert_eq!(answer.status, 201, "{}", answer.text());
        }
        epoch
    }

    /// The whole push; the answer to its commit.
    pub(crate) async fn deliver(&self, to: &impl Sends, begin: Request) -> Answer {
        let epoch = self.stage(to, begin).await;
        to.send(commit(&epoch)).await
    }
}

/// A put of any body, with its digest.
pub(crate) fn put(epoch: &str, chunk: usize, body: impl Into<Vec<u8>>) -> Request {
    let body = body.into();
    let digest = digest(&body);
    Request::put(format!("{epoch}/chunks/{chunk}"), body).header("Content-Digest", &digest)
}

pub(crate) fn commit(epoch: &str) -> Request {
    Request::post(format!("{epoch}/commit"), "")
}

pub(crate) fn cancel(epoch: &str) -> Request {
    Request::delete(epoch)
}

/// The value of `Content-Digest`.
pub(crate) fn digest(body: &[u8]) -> String {
    format!("sha-256=:{}:", BASE64.encode(Sha256::digest(body)))
}

/// As a manifest names a chunk.
pub(crate) fn hex(body: &[u8]) -> String {
    domain::Digest(Sha256::digest(body).into()).to_string()
}

/// Who delivers.
pub(crate) trait From {
    /// With an attempt number.
    fn attempt(self, attempt: u32) -> Self;
    /// As the `n`th client process.
    fn process(self, n: u8) -> Self;
    /// As this executor.
    fn executor(self, name: &str) -> Self;
}

impl From for Request {
    fn attempt(self, attempt: u32) -> Self {
        self.header("Push-Attempt", &attempt.to_string())
    }

    fn process(self, n: u8) -> Self {
        self.header("Push-Incarnation", &format!("{n:02x}").repeat(16))
    }

    fn executor(self, name: &str) -> Self {
        self.header("Push-Executor", name)
    }
}
