//! Who may do what: the seam. Every API request passes here before anything is looked up, so that no answer tells a
//! stranger whether a key exists. Must not look at a body or a key.
//!
//! Until tokens come, a server is either on loopback or was told in so many words to be open (`ServeConfig::open`), and
//! every program that reaches it may do everything. A *page of another site* in somebody's browser is no such program:
//! browsers let it post to any address, loopback too, so what a browser sends for a foreign origin never writes.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use domain::ProblemCode;
use http::{HeaderMap, Method, header};

use crate::problem::Failure;

/// Lets a request pass, or refuses it before it is read.
pub(crate) async fn authorise(request: Request, next: Next) -> Result<Response, Failure> {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if !reads && is_foreign(request.headers()) {
        let words = "A browser sent this for a page of another site. Nothing was recorded. Programs send no Origin \
                     header; a page of this server may write.";
        return Err(Failure::new(ProblemCode::ForeignOrigin, words));
    }
    Ok(next.run(request).await)
}

/// True if a browser says that the page behind the request comes from elsewhere.
fn is_foreign(headers: &HeaderMap) -> bool {
    let text = |name: header::HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let Some(origin) = text(header::ORIGIN) else {
        return headers.get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none");
    };
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    authority.is_none() || authority != text(header::HOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_page_of_this_server_may_write() {
        let headers = |pairs: &[(&'static str, &str)]| {
            pairs.iter().map(|(n, v)| (n.parse().unwrap(), v.parse().unwrap())).collect::<HeaderMap>()
        };
        assert!(!is_foreign(&headers(&[("host", "127.0.0.1:8321")])), "programs");
        assert!(!is_foreign(&headers(&[("host", "127.0.0.1:8321"), ("origin", "http://127.0.0.1:8321")])));
        assert!(is_foreign(&headers(&[("host", "127.0.0.1:8321"), ("origin", "https://evil.example")])));
        assert!(is_foreign(&headers(&[("host", "127.0.0.1:8321"), ("origin", "null")])));
        assert!(is_foreign(&headers(&[("host", "127.0.0.1:8321"), ("sec-fetch-site", "cross-site")])));
        assert!(!is_foreign(&headers(&[("host", "127.0.0.1:8321"), ("sec-fetch-site", "same-origin")])));
    }
}
