//! Projects and their cycles. Must not count anything.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;

use super::{found, json};
use crate::params::Params;
use crate::problem::Failure;
use crate::segments::Segments;
use crate::state::App;

/// `GET /projects`: by name.
pub(crate) async fn projects(State(app): State<Arc<App>>, params: Params) -> Result<Response, Failure> {
    params.finish()?;
    json(&app.store.projects().await?)
}

/// `GET …/cycles`: by name.
pub(crate) async fn cycles(
    State(app): State<Arc<App>>,
    segments: Segments,
    params: Params,
) -> Result<Response, Failure> {
    params.finish()?;
    found(app.store.cycles(&segments.project()?).await)
}
