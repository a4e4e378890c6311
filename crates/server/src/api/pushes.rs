//! Pushes: recording one, and what became of it. The status and the bytes of an accepted push are those of its stored
//! receipt; everything that may change with time is in headers. Must not decide on a repeat.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::protocol::DifferenceClass;
use domain::wire::names;
use domain::{ProjectId, PushId, Receipt};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use store::{Answer, Promotion};

use super::staged::fenced;
use super::{JSON, forwards, found, json};
use crate::headers;
use crate::ingest::{self, Held};
use crate::params::Params;
#[cfg(feature = "failpoints")]
use crate::points;
use crate::points::{Operation, Step, point};
use crate::problem::Failure;
use crate::record::Admitted;
use crate::router::API;
use crate::segments::Segments;
use crate::state::{App, finish};

/// `POST …/pushes`: a whole push in one request.
pub(crate) async fn record(
    State(app): State<Arc<App>>,
    segments: Segments,
    params: Params,
    request: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    point(Operation::OneShot, Step::K0);
    let project = segments.project()?;
    let Held { content: (push, warnings), permit } =
        ingest::push(&app, project.clone(), params, &request, body).await?;
    let (door, key) = (Arc::clone(&app), push.key.clone());
    let admitted = finish(async move {
        let admitted = door.door.admit(push).await;
        drop(permit);
        admitted
    })
    .await;
    point(Operation::OneShot, Step::Answered);
    match admitted {
        Ok(mut admitted) => {
            admitted.warnings.extend(warnings);
            Ok(accepted(&admitted, Some(Operation::OneShot)))
        }
        Err(problem) => Err(fenced(&app, &project, &key, problem).await),
    }
}

/// `POST …/pushes/{push}/promote`: a revision's verdicts count from now on.
pub(crate) async fn promote(
    State(app): State<Arc<App>>,
    segments: Segments,
    mut params: Params,
    request: HeaderMap,
) -> Result<Response, Failure> {
    let promotion = Promotion {
        project: segments.project()?,
        push: segments.push()?,
        key: headers::key(&request)?,
        revision: params.read("revision")?,
        exact: params.flag("exact")?,
        if_match: headers::if_match(&request)?,
    };
    params.finish()?;
    Ok(accepted(&app.door.promote(promotion).await?, None))
}

/// `GET …/pushes/{push}`: revisions, deliveries and forwards.
pub(crate) async fn show(State(app): State<Arc<App>>, segments: Segments, params: Params) -> Result<Response, Failure> {
    params.finish()?;
    let (project, push) = (segments.project()?, segments.push()?);
    let mut report = app.store.push(&project, push).await??;
    report.forwards = forwards::beside(&app, &project, push).await?;
    json(&report)
}

/// `GET …/pushes/{push}/differences/{n}`: item by item.
pub(crate) async fn difference(
    State(app): State<Arc<App>>,
    segments: Segments,
    params: Params,
) -> Result<Response, Failure> {
    params.finish()?;
    found(app.store.difference(&segments.project()?, segments.push()?, segments.number()?).await)
}

/// `GET …/pushes/{push}/receipt?revision=N`: the stored bytes of the newest receipt, or of one.
pub(crate) async fn receipt(
    State(app): State<Arc<App>>,
    segments: Segments,
    mut params: Params,
) -> Result<Response, Failure> {
    let revision = params.read("revision")?;
    params.finish()?;
    let (bytes, revision) = app.store.receipt(&segments.project()?, segments.push()?, revision).await??;
    let etag = Receipt::etag(revision, &bytes);
    let mut response = (StatusCode::OK, [(header::CONTENT_TYPE, JSON)], bytes).into_response();
    set(response.headers_mut(), header::ETAG.as_str(), &etag);
    Ok(response)
}

/// The answer to an accepted delivery: the receipt, and in headers what may be otherwise next time.
pub(super) fn accepted(admitted: &Admitted, operation: Option<Operation>) -> Response {
    let Admitted { project, push, answer, warnings } = admitted;
    let Answer { receipt, revision, current_revision, current_counts, replayed, class, doubts: _ } = answer;
    let mut response = (StatusCode::CREATED, body(receipt.clone(), operation)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, JSON);
    set(headers, header::CONTENT_LENGTH.as_str(), &receipt.len().to_string());
    let location = location(project, *push);
    set(headers, header::LOCATION.as_str(), &location);
    set(headers, header::ETAG.as_str(), &admitted.etag());
    set(headers, names::H_CURRENT_REVISION, &current_revision.to_string());
    set(headers, names::H_CURRENT_COUNTS, &headers::counts(current_counts));
    if *replayed {
        set(headers, names::H_REPLAYED, "true");
    }
    if let Some(class) = class {
        set(headers, names::H_DIFFERENCE, class.word());
        if matches!(class, DifferenceClass::Semantic | DifferenceClass::Structural) {
            let link = format!("<{location}/differences/{revision}>; rel=\"difference\"");
            set(headers, header::LINK.as_str(), &link);
        }
    }
    if !warnings.is_empty() {
        set(headers, names::H_WARNINGS, &headers::strings(warnings));
    }
    response
}

/// The path of a push.
pub(super) fn location(project: &ProjectId, push: PushId) -> String {
    format!("{API}/projects/{project}/pushes/{push}")
}

/// Sets a header; a value that no header can hold is left out, and none is ever made so.
pub(super) fn set(headers: &mut HeaderMap, name: &str, value: &str) {
    let parsed = (header::HeaderName::try_from(name), HeaderValue::from_str(value));
    if let (Ok(name), Ok(value)) = parsed {
        headers.insert(name, value);
    }
}

#[cfg(not(feature = "failpoints"))]
pub(super) fn body(bytes: Vec<u8>, _operation: Option<Operation>) -> Body {
    Body::from(bytes)
}

/// In two halves where the process is to die between them (crash point k7), else whole as in a release.
#[cfg(feature = "failpoints")]
pub(super) fn body(mut bytes: Vec<u8>, operation: Option<Operation>) -> Body {
    let Some(operation) = operation.filter(|operation| points::armed(*operation, Step::K7)) else {
        return Body::from(bytes);
    };
    let rest = bytes.split_off(bytes.len() / 2);
    let first = futures_util::stream::iter([Ok::<_, std::io::Error>(bytes)]);
    let second = futures_util::stream::once(async move {
        // Gives the first half time to leave; what is tested is the client's view, not this wait.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        point(operation, Step::K7);
        Ok(rest)
    });
    Body::from_stream(futures_util::StreamExt::chain(first, second))
}
