//! Staging on our own server over HTTP. Must not decide what an answer means, nor what comes next.

use ::http::{HeaderMap, HeaderValue, Method, header};
use async_trait::async_trait;
use bytes::Bytes;
use domain::wire::{ChunkAnswer, MANIFEST_MEDIA_TYPE, PUSH_MEDIA_TYPE, StagingAnswer};
use domain::{Cause, PushId, limits};
use serde::Deserialize;

use super::{Begun, Setback, Stage, Staging};
use crate::classify::{Answer, Failure, at_setback, classify_commit, json, setback, setback_of_failure};
use crate::http::{Request, header_name, header_value};
use crate::parcel::Parcel;
use crate::tallyonce::{Query, TallyonceTarget, content_digest, expected, query, sender_headers};

/// What takes more than one of them is no answer of ours; a receipt lists at most a hundred items.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Requests on the way at a time.
const PUTS_AT_ONCE: usize = 4;

impl TallyonceTarget {
    async fn ask(&self, method: Method, path: &str, headers: HeaderMap, body: Bytes) -> Result<Answer, Setback> {
        let answer_bytes_max = ANSWER_BYTES_MAX;
        let sent = self.http().send(Request { method, path, headers, body, answer_bytes_max }).await;
        fail::fail_point!("client:answer:read");
        sent.map_err(|failure: Failure| at_setback(self.http().base(), setback_of_failure(&failure)))
    }
}

#[async_trait]
impl Stage for TallyonceTarget {
    fn at_once(&self) -> usize {
        PUTS_AT_ONCE
    }

    async fn begin(&self, parcel: &Parcel, with_items: bool) -> Result<Begun, Setback> {
        let manifest = parcel.manifest_body(with_items)?;
        let body = serde_json::to_vec(&manifest).map_err(|e| Setback::NotTaken(Cause::new(e.to_string())))?;
        let header = &parcel.header;
        let mut headers = sender_headers(header);
        digested(&mut headers, &body);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MANIFEST_MEDIA_TYPE));
        let path = format!("/api/v1/projects/{}/staged-pushes{}", header.place.project, query(header));
        let answer = self.ask(Method::POST, &path, headers, Bytes::from(body)).await?;
        fail::fail_point!("client:begin:read");
        if !(200..300).contains(&answer.status) {
            return Err(setback(&answer));
        }
        // A receipt has no epoch, and staging no ETag: neither is taken for the other.
        match json::<StagingAnswer>(&answer) {
            Ok(staging) => begun(parcel, staging),
            Err(why) if answer.headers.contains_key(header::ETAG) => {
                let handed = classify_commit(&answer, expected(header));
                handed.map(|handed| Begun::Recorded(Box::new(handed))).map_err(|_| unbelieved(&answer, &why))
            }
            Err(why) => Err(unbelieved(&answer, &why)),
        }
    }

    async fn put(&self, parcel: &Parcel, at: Staging, chunk: u32) -> Result<(), Setback> {
        let place = parcel.header.chunks.get(chunk as usize).ok_or(Setback::Incomplete(Vec::new()))?;
        let body = parcel.body(place)?;
        let mut headers = HeaderMap::new();
        digested(&mut headers, &body);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PUSH_MEDIA_TYPE));
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("zstd"));
        let path = format!("{}/chunks/{chunk}", epoch(parcel, at));
        fail::fail_point!("client:put:send");
        let answer = self.ask(Method::PUT, &path, headers, body).await?;
        fail::fail_point!("client:put:read");
        if !(200..300).contains(&answer.status) {
            return Err(setback(&answer));
        }
        match json::<ChunkAnswer>(&answer) {
            Ok(taken) if taken == (ChunkAnswer { chunk, outcomes: place.outcomes }) => Ok(()),
            Ok(_) => Err(unbelieved(&answer, "it is about another chunk")),
            Err(why) => Err(unbelieved(&answer, &why)),
        }
    }

    async fn commit(&self, parcel: &Parcel, at: Staging) -> Result<crate::target::Handed, Setback> {
        let path = format!("{}/commit", epoch(parcel, at));
        fail::fail_point!("client:commit:send");
        let answer = self.ask(Method::POST, &path, HeaderMap::new(), Bytes::new()).await?;
        fail::fail_point!("client:commit:read");
        if (200..300).contains(&answer.status) {
            classify_commit(&answer, expected(&parcel.header))
        } else {
            Err(setback(&answer))
        }
    }

    async fn cancel(&self, parcel: &Parcel, at: Staging) {
        // Unheard, it becomes idle by itself, and only takes longer.
        let _ = self.ask(Method::DELETE, &epoch(parcel, at), HeaderMap::new(), Bytes::new()).await;
        fail::fail_point!("client:cancel:read");
    }

    async fn attach(&self, parcel: &Parcel, wait_ms: u64) -> bool {
        /// Of the answer, only who stages.
        #[derive(Deserialize)]
        struct Attached {
            #[serde(default)]
            staging: Option<Other>,
        }
        #[derive(Deserialize)]
        struct Other {
            idle_ms: u64,
        }
        let header = &parcel.header;
        let mut query = Query::default();
        query.add("key", header.key.as_str());
        let path = format!("/api/v1/projects/{}/pushes{}", header.place.project, query.0);
        let seconds = wait_ms.min(self.patience_ms() / 2) / 1000;
        let mut headers = HeaderMap::new();
        if let Some(prefer) = header_value(&format!("wait={seconds}")).filter(|_| seconds > 0) {
            headers.insert(header_name("prefer"), prefer);
        }
        let answer = self.ask(Method::GET, &path, headers, Bytes::new()).await;
        fail::fail_point!("client:attach:read");
        let Ok(answer) = answer else { return false };
        match answer.status {
            200 => json::<Attached>(&answer)
                .is_ok_and(|attached| attached.staging.is_none_or(|other| other.idle_ms >= limits::EPOCH_IDLE_MS)),
            _ => matches!(setback(&answer), Setback::Gone(_)),
        }
    }
}

/// The answer is ours: about this push, and cut as the manifest says.
fn begun(parcel: &Parcel, staging: StagingAnswer) -> Result<Begun, Setback> {
    let StagingAnswer { push, epoch, resumed, chunks, missing, .. } = staging;
    let header = &parcel.header;
    if push != PushId::of(&header.place.project, &header.key) || chunks as usize != header.chunks.len() {
        return Err(Setback::Unclear(Cause::new("the answer to the begin is about another push")));
    }
    Ok(Begun::Staging { at: Staging { push, epoch }, missing, resumed })
}

fn unbelieved(answer: &Answer, why: &str) -> Setback {
    Setback::Unclear(Cause::new(format!("status {} with an answer that can't be believed: {why}", answer.status)))
}

fn epoch(parcel: &Parcel, at: Staging) -> String {
    format!("/api/v1/projects/{}/pushes/{}/epochs/{}", parcel.header.place.project, at.push, at.epoch.0)
}

fn digested(headers: &mut HeaderMap, body: &[u8]) {
    if let Some(digest) = header_value(&content_digest(body)) {
        headers.insert(header_name("content-digest"), digest);
    }
}
