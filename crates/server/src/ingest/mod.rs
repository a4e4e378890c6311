//! A request into a [`domain::Push`]: head (key, place, sender), body (bounded, checked, inflated), content (our JSON
//! or report files). The key is never taken apart. Must not look anything up: that begins behind the door.

mod body;
mod content;
mod head;
mod inflate;
mod json;
mod multipart;

use std::sync::Arc;

use axum::body::Body;
use domain::{ProblemCode, ProjectId, Push};
use http::HeaderMap;

use crate::params::Params;
use crate::problem::Failure;
use crate::state::App;

use head::Head;

/// A push as it was read, and what its reader noticed.
pub(crate) struct Ingested {
    pub(crate) push: Push,
    pub(crate) warnings: Vec<String>,
}

/// Reads one request of a one-shot push.
pub(crate) async fn ingest(
    app: &Arc<App>,
    project: ProjectId,
    params: Params,
    headers: &HeaderMap,
    body: Body,
) -> Result<Ingested, Failure> {
    let mut body = body::Incoming::new(app, headers, body);
    let result = read(app, project, params, headers, &mut body).await;
    if result.is_err() {
        // Closing on a client that still sends resets the connection, and the problem would never be read.
        body.drain().await;
    }
    result
}

async fn read(
    app: &Arc<App>,
    project: ProjectId,
    params: Params,
    headers: &HeaderMap,
    body: &mut body::Incoming<'_>,
) -> Result<Ingested, Failure> {
    let head = Head::read(project, params, headers)?;
    let plan = content::Plan::new(headers, head.partial, app.limits.inflated_bytes)?;
    let received = body.receive(&head.digest).await?;
    // A closed semaphore would mean that nobody owns the app any more.
    let place = Arc::clone(&app.decoders).acquire_owned().await.map_err(|_| crashed())?;
    let decoding = tokio::task::spawn_blocking(move || {
        let read = content::read(&plan, &received);
        drop(place);
        read.map(|content| head.with(content))
    });
    decoding.await.map_err(|error| {
        tracing::error!(%error, "decoding a body crashed");
        crashed()
    })?
}

fn crashed() -> Failure {
    Failure::new(
        ProblemCode::Internal,
        "Decoding the body crashed, which is an error of this server. Keep the push and tell who runs the server; repeating \
         it with the same key is safe.",
    )
}
