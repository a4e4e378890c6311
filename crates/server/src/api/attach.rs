//! Attaching to a key: what became of it and what is staged under it, at once or as soon as that changes. Never itself a
//! recording: a client that learns of a receipt here still delivers its own push. Must not answer from memory: every look
//! is the store's.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use domain::listing::PushState;
use domain::wire::names;
use domain::{Epoch, ProblemCode, ProjectId, PushId, PushKey, limits};
use http::{HeaderMap, header};
use serde::Serialize;
use serde_json::value::RawValue;
use store::{Absent, StagingReport, Stored};

use super::json;
use super::pushes::{location, set};
use crate::headers;
use crate::params::Params;
use crate::problem::Failure;
use crate::segments::Segments;
use crate::state::App;
use crate::words;

/// Between two looks while waiting: another process over the same store may have recorded the push.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What became of a key. Nothing of a push is recorded if it has no state.
#[derive(Debug, Default, Serialize)]
struct Attached {
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<PushState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    /// The newest receipt, as it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<Box<RawValue>>,
    /// The open epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    staging: Option<Staged>,
}

/// What is staged under a key.
#[derive(Debug, Serialize)]
struct Staged {
    epoch: Epoch,
    chunks: u32,
    present: u32,
    idle_ms: u64,
}

/// The answer.
#[derive(Debug, Serialize)]
struct Named<'a> {
    key: &'a PushKey,
    push: PushId,
    #[serde(flatten)]
    attached: &'a Attached,
}

impl Attached {
    fn epoch(&self) -> Option<Epoch> {
        self.staging.as_ref().map(|staging| staging.epoch)
    }

    fn is_idle(&self) -> bool {
        self.staging.as_ref().is_none_or(|staging| staging.idle_ms >= limits::EPOCH_IDLE_MS)
    }

    fn is_nothing(&self) -> bool {
        self.state.is_none() && self.staging.is_none()
    }

    /// True if there is nothing to wait for: what was awaited has happened since `first`, or nobody is at it.
    fn is_settled(&self, first: &Self) -> bool {
        let changed = (self.revision, self.epoch()) != (first.revision, first.epoch());
        match (first.is_nothing(), changed) {
            // Whoever waits for a key that nobody has used waits for a recording.
            (true, _) => self.state.is_some(),
            (false, changed) => changed || self.is_idle(),
        }
    }
}

/// `GET …/pushes?key=…`.
pub(crate) async fn attach(
    State(app): State<Arc<App>>,
    segments: Segments,
    mut params: Params,
    request: HeaderMap,
) -> Result<Response, Failure> {
    let project = segments.project()?;
    let key: PushKey = params.need("key", "say the key whose push you look for")?;
    params.finish()?;
    let wait = Duration::from_secs(headers::prefer_wait(&request));
    let push = PushId::of(&project, &key);
    let mut attached = look(&app, &project, push).await?;
    if !wait.is_zero() && !attached.is_settled(&attached) {
        attached = until_settled(&app, &project, push, attached, wait).await?;
    }
    if attached.is_nothing() {
        return Err(Failure::new(
            ProblemCode::UnknownPush,
            "Nothing is recorded or staged under this key in this project. If a push was on its way, it has not been \
             recorded yet: deliver it again with the same key.",
        ));
    }
    let mut response = json(&Named { key: &key, push, attached: &attached })?;
    let headers = response.headers_mut();
    if let Some(etag) = &attached.etag {
        set(headers, header::ETAG.as_str(), etag);
    }
    if let Some(epoch) = attached.epoch() {
        set(headers, names::H_EPOCH, &epoch.0.to_string());
    }
    set(headers, header::CONTENT_LOCATION.as_str(), &location(&project, push));
    Ok(response)
}

/// Waits until it is recorded, or the epoch has ended or is idle: as long as there is a place to wait in and the server
/// goes on. Gives the last look.
async fn until_settled(
    app: &App,
    project: &ProjectId,
    push: PushId,
    first: Attached,
    wait: Duration,
) -> Result<Attached, Failure> {
    let Ok(_place) = app.waiting.try_acquire() else { return Ok(first) };
    // Listening begins before the next look, so that no recording falls between.
    let mut recordings = app.recordings();
    let waiting = async {
        loop {
            let now = look(app, project, push).await?;
            if now.is_settled(&first) {
                return Ok::<(), Failure>(());
            }
            let recorded_here = async {
                // `Err` is a listener that fell behind: look.
                while recordings.recv().await.is_ok_and(|recorded| recorded != push) {}
            };
            let _ = tokio::time::timeout(LOOK_AGAIN, recorded_here).await;
        }
    };
    tokio::select! {
        // In time or not: what is there then is said.
        result = tokio::time::timeout(wait, waiting) => result.unwrap_or(Ok(()))?,
        () = app.drained() => {}
    }
    look(app, project, push).await
}

/// What is staged first, then what is recorded: what is committed in between shows as both, and never as neither.
async fn look(app: &App, project: &ProjectId, push: PushId) -> Result<Attached, Failure> {
    let staging = app.door.staging(project, push).await?.map(|report| {
        let StagingReport { epoch, chunks, present, idle_ms, incarnations: _ } = report;
        Staged { epoch, chunks, present, idle_ms }
    });
    let report = match app.store.push(project, push).await? {
        Err(Absent::Push | Absent::Project(_)) => return Ok(Attached { staging, ..Attached::default() }),
        other => other?,
    };
    let (receipt, revision) = app.store.receipt(project, push, None).await??;
    let stored = words::stored(Stored { revision, receipt })?;
    Ok(Attached {
        state: Some(report.summary.state),
        revision: Some(stored.revision),
        etag: Some(stored.etag),
        receipt: Some(stored.receipt),
        staging,
    })
}
