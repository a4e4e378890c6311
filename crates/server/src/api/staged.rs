//! Staged pushes: begin, put, commit, cancel. Each may be repeated, and a repeat gets the same bytes; only headers and
//! the status of a resumed begin tell it. Must not decide on a repeat.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::manifest::ranges;
use domain::wire::{CANCELLED, CancelAnswer, ChunkAnswer, StagingAnswer, names};
use domain::{Epoch, Problem, ProblemCode, ProjectId, PushId, PushKey, limits};
use http::{HeaderMap, StatusCode, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use store::{EpochOf, Staging, StoreError};

use super::JSON;
use super::pushes::{accepted, body, location, set};
use crate::headers;
use crate::ingest::{self, Held};
use crate::params::Params;
use crate::points::{Operation, Step, point};
use crate::problem::Failure;
use crate::record::Begun;
use crate::router::API;
use crate::segments::Segments;
use crate::state::{App, finish};
use crate::words;

/// `POST …/staged-pushes`: begins or resumes a staged push.
pub(crate) async fn begin(
    State(app): State<Arc<App>>,
    segments: Segments,
    params: Params,
    request: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    point(Operation::Begin, Step::K0);
    let project = segments.project()?;
    let Held { content: manifest, permit } = ingest::manifest(&app, project.clone(), params, &request, body).await?;
    let (door, key) = (Arc::clone(&app), manifest.key.clone());
    let begun = finish(async move {
        let begun = door.door.begin(manifest).await;
        drop(permit);
        begun
    })
    .await;
    point(Operation::Begin, Step::Answered);
    match begun {
        Ok(Begun::Staging { push, staging }) => staged(&app, &project, push, staging),
        Ok(Begun::Replayed(admitted)) => Ok(accepted(&admitted, Some(Operation::Begin))),
        Err(problem) => Err(fenced(&app, &project, &key, problem).await),
    }
}

/// `PUT …/pushes/{push}/epochs/{epoch}/chunks/{n}`: stages one chunk.
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    segments: Segments,
    params: Params,
    request: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    point(Operation::Put, Step::K0);
    let (of, number) = (segments.epoch()?, segments.number()?);
    params.finish()?;
    let epoch = of.epoch;
    let Held { content: chunk, permit } = ingest::chunk(&app, of, number, &request, body).await?;
    // No outcome is counted that the body didn't hold, and no body holds more than that.
    let outcomes = u32::try_from(chunk.outcomes.len()).unwrap_or(u32::MAX);
    let replayed = finish(async move {
        let put = app.door.put(chunk).await;
        drop(permit);
        put
    })
    .await;
    point(Operation::Put, Step::Answered);
    let answer = ChunkAnswer { chunk: number, outcomes };
    let mut response = json(StatusCode::CREATED, &answer, epoch, Operation::Put)?;
    if replayed? {
        set(response.headers_mut(), names::H_REPLAYED, "true");
    }
    Ok(response)
}

/// `POST …/pushes/{push}/epochs/{epoch}/commit`: makes it visible, whole.
pub(crate) async fn commit(
    State(app): State<Arc<App>>,
    segments: Segments,
    params: Params,
) -> Result<Response, Failure> {
    point(Operation::Commit, Step::K0);
    let of = segments.epoch()?;
    params.finish()?;
    let epoch = of.epoch;
    let committed = finish(async move { app.door.commit(of).await }).await;
    point(Operation::Commit, Step::Answered);
    let mut response = accepted(&committed?, Some(Operation::Commit));
    set(response.headers_mut(), names::H_EPOCH, &epoch.0.to_string());
    Ok(response)
}

/// `DELETE …/pushes/{push}/epochs/{epoch}`: nothing of it is or becomes visible.
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    segments: Segments,
    params: Params,
) -> Result<Response, Failure> {
    point(Operation::Cancel, Step::K0);
    let of = segments.epoch()?;
    params.finish()?;
    let epoch = of.epoch;
    let cancelled = finish(async move { app.door.cancel(of).await }).await;
    point(Operation::Cancel, Step::Answered);
    cancelled?;
    let answer = CancelAnswer { epoch, state: CANCELLED.to_owned() };
    json(StatusCode::OK, &answer, epoch, Operation::Cancel)
}

/// The answer to a begin that has something to stage.
fn staged(app: &App, project: &ProjectId, push: PushId, staging: Staging) -> Result<Response, Failure> {
    let Staging { epoch, resumed, chunks, missing, difference, recorded } = staging;
    let of = EpochOf { project: project.clone(), push, epoch };
    let recorded = recorded.map(words::stored).transpose()?;
    let status = if resumed { StatusCode::OK } else { StatusCode::CREATED };
    let current = recorded.as_ref().map(|recorded| recorded.revision);
    let answer = StagingAnswer { push, epoch, resumed, chunks, missing: ranges(&missing), difference, recorded };
    let mut response = json(status, &answer, epoch, Operation::Begin)?;
    let headers = response.headers_mut();
    set(headers, header::LOCATION.as_str(), &epoch_location(&of));
    set(headers, names::H_LIMIT, &headers::limits(&app.limits));
    if let Some(class) = difference {
        set(headers, names::H_DIFFERENCE, class.word());
    }
    if let Some(revision) = current {
        set(headers, names::H_CURRENT_REVISION, &revision.to_string());
    }
    Ok(response)
}

/// A problem with a key, with where and when to look again if another delivery is under way.
pub(super) async fn fenced(app: &App, project: &ProjectId, key: &PushKey, problem: Box<Problem>) -> Failure {
    let code = problem.code;
    let waits = matches!(code, ProblemCode::PushInProgress | ProblemCode::StaleAttempt);
    let failure = Failure::from(problem);
    if !waits && code != ProblemCode::Superseded {
        return failure;
    }
    let key_text = utf8_percent_encode(key.as_str(), NON_ALPHANUMERIC);
    let failure = failure.with_header(header::LOCATION, &format!("{API}/projects/{project}/pushes?key={key_text}"));
    if !waits {
        return failure;
    }
    // Only a hint: if it can't be had, the longest wait is right too.
    let staging = app.door.staging(project, PushId::of(project, key)).await.ok().flatten();
    let idle = staging.map_or(0, |staging| staging.idle_ms);
    let seconds = limits::EPOCH_IDLE_MS.saturating_sub(idle).div_ceil(1000).max(1);
    failure.with_header(header::RETRY_AFTER, &seconds.to_string())
}

/// The path of an epoch.
fn epoch_location(of: &EpochOf) -> String {
    format!("{}/epochs/{}", location(&of.project, of.push), of.epoch.0)
}

fn json<T: Serialize>(status: StatusCode, answer: &T, epoch: Epoch, operation: Operation) -> Result<Response, Failure> {
    let bytes = serde_json::to_vec(answer).map_err(|error| StoreError::Broken { what: error.to_string() })?;
    let length = bytes.len();
    let mut response = (status, body(bytes, Some(operation))).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, JSON);
    set(headers, header::CONTENT_LENGTH.as_str(), &length.to_string());
    set(headers, names::H_EPOCH, &epoch.0.to_string());
    Ok(response)
}
