//! What surrounds handlers, from outside in: panics caught (so that a crash is still a problem document), headers that
//! all answers carry, and, around the API only, shedding before anything else is done. Must not know any endpoint.

use std::any::Any;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use domain::ProblemCode;
use http::{HeaderValue, header};

use crate::problem::Failure;
use crate::state::App;

/// Takes a place for the request, or refuses it at once.
pub(crate) async fn shed(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let Ok(_place) = Arc::clone(&app.requests).try_acquire_owned() else {
        return Failure::new(
            ProblemCode::Overloaded,
            "The server has more to do than it takes at a time. Nothing of this request was recorded; repeat it with the \
             same key after the time in Retry-After.",
        )
        .into_response();
    };
    next.run(request).await
}

/// A crash as a problem document; its message stays in the log.
#[expect(clippy::needless_pass_by_value, reason = "the signature that CatchPanic asks for")]
pub(crate) fn crashed(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    tracing::error!(panic = text.unwrap_or("(no message)"), "a request crashed");
    Failure::new(
        ProblemCode::Internal,
        "The request crashed, which is an error of this server. If it was a push, it may be recorded or not: repeat it with \
         the same key, which is safe, and tell who runs the server.",
    )
    .into_response()
}

/// No cache may answer for a key, and no browser may guess at types.
pub(crate) async fn mark(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
