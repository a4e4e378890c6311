//! One file per kind of thing that the API serves. Handlers read parameters, ask the door or the store, and answer;
//! they hold no rule. Must not write but through the door.

pub(crate) mod attach;
pub(crate) mod forwards;
pub(crate) mod health;
pub(crate) mod items;
pub(crate) mod metrics;
pub(crate) mod projects;
pub(crate) mod pushes;
pub(crate) mod rounds;
pub(crate) mod staged;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use store::{Found, StoreError};

use crate::problem::Failure;

/// Media type of all answers but problems.
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What was found as JSON, or why nothing was.
fn found<T: Serialize>(found: Found<T>) -> Result<Response, Failure> {
    json(&found??)
}

fn json<T: Serialize>(value: &T) -> Result<Response, Failure> {
    let body = serde_json::to_vec(value).map_err(|error| StoreError::Broken { what: error.to_string() })?;
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, JSON)], body).into_response())
}
