//! Whether the server lives and can serve, and the description of its API. Must not touch a push.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::ProblemCode;
use serde_json::json;

use crate::openapi;
use crate::problem::Failure;
use crate::state::App;

/// `GET /healthz`: the process answers.
pub(crate) async fn alive() -> Result<Response, Failure> {
    super::json(&json!({ "status": "ok" }))
}

/// `GET /readyz`: the store can be read, and the server is not stopping.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Result<Response, Failure> {
    if app.is_draining() {
        let words = "The server is stopping. Nothing of this request was recorded; another one will answer.";
        return Err(Failure::new(ProblemCode::Overloaded, words));
    }
    app.store.ready().await?;
    super::json(&json!({ "status": "ok" }))
}

/// `GET /openapi.json`.
pub(crate) async fn openapi() -> Result<Response, Failure> {
    super::json(&openapi::document())
}
