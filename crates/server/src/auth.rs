//! Who may do what: the seam. Every API request passes here before anything is looked up, so that no answer tells a
//! stranger whether a key exists. Must not look at a body or a key.
//!
//! Until tokens come, a server is either on loopback or was told in so many words to be open (`ServeConfig::open`), and
//! everybody who reaches it may do everything.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;

use crate::problem::Failure;

/// Lets a request pass, or refuses it before it is read.
pub(crate) async fn authorise(request: Request, next: Next) -> Result<Response, Failure> {
    Ok(next.run(request).await)
}
