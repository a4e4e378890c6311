//! A request into a [`domain::Push`], a manifest or a chunk: head (key, place, sender), body (bounded, checked,
//! inflated), content (our JSON or report files). The key is never taken apart. Must not look anything up: that begins
//! behind the door.

mod body;
mod content;
mod decode;
mod head;
mod inflate;
mod json;
mod manifest;
mod multipart;

use std::sync::Arc;

use axum::body::Body;
use domain::wire::{ChunkBody, names};
use domain::{Manifest, ProblemCode, ProjectId, Push};
use http::HeaderMap;
use store::{Chunk, EpochOf};

use crate::headers::ContentDigest;
use crate::params::Params;
use crate::points::Operation;
use crate::problem::Failure;
use crate::state::App;

use body::Incoming;
pub(crate) use decode::Held;
use head::Head;

/// A chunk after inflating, in bytes: many times the usual one, and still little beside a push in one request.
const CHUNK_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Reads one request of a one-shot push, and what its reader noticed.
pub(crate) async fn push(
    app: &Arc<App>,
    project: ProjectId,
    params: Params,
    headers: &HeaderMap,
    body: Body,
) -> Result<Held<(Push, Vec<String>)>, Failure> {
    let mut body = Incoming::new(app, Operation::OneShot, headers, body);
    let read = read_push(app, project, params, headers, &mut body).await;
    body.done(read).await
}

async fn read_push(
    app: &Arc<App>,
    project: ProjectId,
    mut params: Params,
    headers: &HeaderMap,
    body: &mut Incoming<'_>,
) -> Result<Held<(Push, Vec<String>)>, Failure> {
    let partial = params.flag(names::PARTIAL)?;
    let head = Head::read(project, params, headers)?;
    let plan = content::Plan::new(headers, partial, app.limits.inflated_bytes)?;
    let received = body.receive(&head.digest).await?;
    decode::decode(app, Operation::OneShot, received, move |received| {
        let content = content::read(&plan, received)?;
        let bytes = decode::weight(&content.outcomes);
        Ok((head.with(content), bytes))
    })
    .await
}

/// Reads the manifest that a staged push begins with.
pub(crate) async fn manifest(
    app: &Arc<App>,
    project: ProjectId,
    params: Params,
    headers: &HeaderMap,
    body: Body,
) -> Result<Held<Manifest>, Failure> {
    let mut body = Incoming::new(app, Operation::Begin, headers, body);
    let read = read_manifest(app, project, params, headers, &mut body).await;
    body.done(read).await
}

async fn read_manifest(
    app: &Arc<App>,
    project: ProjectId,
    params: Params,
    headers: &HeaderMap,
    body: &mut Incoming<'_>,
) -> Result<Held<Manifest>, Failure> {
    let head = Head::read(project, params, headers)?;
    let plan = content::Plan::json(headers, app.limits.inflated_bytes.min(manifest::MANIFEST_BYTES_MAX))?;
    let received = body.receive(&head.digest).await?;
    decode::decode(app, Operation::Begin, received, move |received| {
        let manifest = head.manifest(manifest::read(&plan, received)?);
        let items = manifest.items.as_ref().map_or(0, |items| 17 * items.hashes.len());
        let files: usize = manifest.files.iter().map(|file| size_of::<String>() + file.len()).sum();
        let bytes = items + files + 36 * manifest.chunks.len();
        Ok((manifest, bytes))
    })
    .await
}

/// Reads one chunk.
pub(crate) async fn chunk(
    app: &Arc<App>,
    of: EpochOf,
    number: u32,
    headers: &HeaderMap,
    body: Body,
) -> Result<Held<Chunk>, Failure> {
    let mut body = Incoming::new(app, Operation::Put, headers, body);
    let read = read_chunk(app, of, number, headers, &mut body).await;
    body.done(read).await
}

async fn read_chunk(
    app: &Arc<App>,
    of: EpochOf,
    number: u32,
    headers: &HeaderMap,
    body: &mut Incoming<'_>,
) -> Result<Held<Chunk>, Failure> {
    let promised = ContentDigest::parse(headers)?;
    let digest = promised.needed()?;
    let plan = content::Plan::json(headers, app.limits.inflated_bytes.min(CHUNK_BYTES_MAX))?;
    let received = body.receive(&promised).await?;
    decode::decode(app, Operation::Put, received, move |received| {
        let parsed: ChunkBody = json::parse(&plan, received)?.map_err(|error| {
            content::unreadable_words(&format!("it is not the JSON of a chunk: {error}"))
                .with_errors(vec![error.to_string()])
        })?;
        json::version(parsed.tallyonce, ChunkBody::VERSION, ProblemCode::ReportUnreadable)?;
        let outcomes = content::canonical(parsed.outcomes)?;
        let bytes = decode::weight(&outcomes);
        Ok((Chunk { of, number, digest, outcomes }, bytes))
    })
    .await
}
