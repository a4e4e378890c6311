//! Attaching to a key: what became of it, at once or as soon as it is recorded. Never itself a recording: a client that
//! learns of a receipt here still delivers its own push. Must not answer from memory: every look is the store's.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use domain::listing::PushState;
use domain::{ProblemCode, ProjectId, PushId, PushKey, Receipt};
use http::{HeaderMap, header};
use serde::Serialize;
use serde_json::value::RawValue;
use store::{Absent, StoreError};

use super::json;
use super::pushes::{location, set};
use crate::headers;
use crate::params::Params;
use crate::problem::Failure;
use crate::segments::Segments;
use crate::state::App;

/// Between two looks while waiting: another process over the same store may have recorded the push.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What became of a key.
#[derive(Debug, Serialize)]
struct Attached {
    key: PushKey,
    push: PushId,
    state: PushState,
    revision: u32,
    etag: String,
    /// The newest receipt, as it is stored.
    receipt: Box<RawValue>,
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
    let mut attached = look(&app, &project, &key).await?;
    if attached.is_none() && !wait.is_zero() {
        attached = until_recorded(&app, &project, &key, wait).await?;
    }
    let Some(attached) = attached else {
        return Err(Failure::new(
            ProblemCode::UnknownPush,
            "Nothing is recorded under this key in this project. If a push was on its way, it has not been recorded yet: \
             deliver it again with the same key.",
        ));
    };
    let mut response = json(&attached)?;
    set(response.headers_mut(), header::ETAG.as_str(), &attached.etag);
    set(response.headers_mut(), header::CONTENT_LOCATION.as_str(), &location(&project, attached.push));
    Ok(response)
}

/// Waits for a recording, as long as there is a place to wait in and the server goes on.
async fn until_recorded(
    app: &App,
    project: &ProjectId,
    key: &PushKey,
    wait: Duration,
) -> Result<Option<Attached>, Failure> {
    let Ok(_place) = app.waiting.try_acquire() else { return Ok(None) };
    let push = PushId::of(project, key);
    // Listening begins before the next look, so that no recording falls between.
    let mut recordings = app.recordings();
    let waiting = async {
        loop {
            if let Some(attached) = look(app, project, key).await? {
                return Ok(Some(attached));
            }
            let recorded_here = async {
                // `Err` is a listener that fell behind: look.
                while recordings.recv().await.is_ok_and(|recorded| recorded != push) {}
            };
            let _ = tokio::time::timeout(LOOK_AGAIN, recorded_here).await;
        }
    };
    tokio::select! {
        result = tokio::time::timeout(wait, waiting) => result.unwrap_or(Ok(None)),
        () = app.drained() => Ok(None),
    }
}

async fn look(app: &App, project: &ProjectId, key: &PushKey) -> Result<Option<Attached>, Failure> {
    let push = PushId::of(project, key);
    let report = match app.store.push(project, push).await? {
        Err(Absent::Push | Absent::Project(_)) => return Ok(None),
        other => other?,
    };
    let (bytes, revision) = app.store.receipt(project, push, None).await??;
    let etag = Receipt::etag(revision, &bytes);
    let broken = |what: String| StoreError::Broken { what };
    let text = String::from_utf8(bytes).map_err(|e| broken(e.to_string()))?;
    let receipt = RawValue::from_string(text).map_err(|e| broken(e.to_string()))?;
    Ok(Some(Attached { key: key.clone(), push, state: report.summary.state, revision, etag, receipt }))
}
