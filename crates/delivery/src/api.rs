//! Questions to a server, and small commands that are no pushes: JSON out, JSON in, no repeating.
//! Must not deliver pushes: those go through a `Target`, and so through the outbox.

use ::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use bytes::Bytes;
use domain::{Cause, Delivery, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::classify::{at_address, classify_failure, classify_refusal, problem};
use crate::destination::HttpUrl;
use crate::http::{Http, HttpSettings, Request, SettingsError};
use crate::tallyonce::Query;

/// Far beyond any page; a listing that is longer is asked for in pages.
const ANSWER_BYTES_MAX: usize = 512 * 1024 * 1024;

/// A request that didn't end in an answer of the kind asked for.
#[derive(Debug, Error)]
pub enum ApiError {
    /// A server of ours said no, in its own words: `written` and `retry` in them say what that means.
    #[error("{}: {}", .0.title, .0.detail)]
    Problem(Box<Problem>),
    /// It never arrived.
    #[error("the server was not reached: {}", .0.what)]
    Unreachable(Cause),
    /// No answer, or one that tells nothing. If it asked for a change, that may have taken effect.
    #[error("no answer that can be read: {}", .0.what)]
    Unclear(Cause),
    /// The caller gave a header or body that cannot be sent.
    #[error("the request cannot be made: {0}")]
    Request(String),
}

/// A client of a server's API.
#[derive(Debug, Clone)]
pub struct ApiClient {
    http: Http,
}

impl ApiClient {
    /// The server at this base address. The program must have installed a TLS crypto provider before.
    pub fn new(url: HttpUrl, settings: &HttpSettings) -> Result<Self, SettingsError> {
        Ok(Self { http: Http::new(url, settings)? })
    }

    /// Asks for JSON. `path` begins with a slash and holds no names that need encoding; values go into the query.
    pub async fn get_json<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T, ApiError> {
        let body = self.get_bytes(path, query).await?;
        read(&body)
    }

    /// As [`Self::get_json`], and lets the server wait so many seconds at most before it answers (`Prefer: wait=N`).
    pub async fn get_json_waiting<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        seconds: u64,
    ) -> Result<T, ApiError> {
        let mut headers = HeaderMap::new();
        headers.insert("prefer", HeaderValue::try_from(format!("wait={seconds}")).map_err(|e| unsendable(&e))?);
        read(&self.send(Method::GET, path, query, headers, Bytes::new()).await?)
    }

    /// Asks for an answer of any type, such as an export.
    pub async fn get_bytes(&self, path: &str, query: &[(&str, &str)]) -> Result<Bytes, ApiError> {
        self.send(Method::GET, path, query, HeaderMap::new(), Bytes::new()).await
    }

    /// Sends JSON and reads JSON. `headers` are further ones, such as `Idempotency-Key` or `If-Match`.
    pub async fn post_json<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        body: &(impl Serialize + Sync),
    ) -> Result<T, ApiError> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|e| unsendable(&e))?;
            map.insert(name, HeaderValue::from_str(value).map_err(|e| unsendable(&e))?);
        }
        map.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = serde_json::to_vec(body).map_err(|e| unsendable(&e))?;
        let answer = self.send(Method::POST, path, query, map, Bytes::from(body)).await?;
        read(&answer)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Bytes, ApiError> {
        let mut encoded = Query::default();
        for (name, value) in query {
            encoded.add(name, value);
        }
        let path = format!("{path}{}", encoded.0);
        let request = Request { method, path: &path, headers, body, answer_bytes_max: ANSWER_BYTES_MAX };
        let refused: Delivery<()> = match self.http.send(request).await {
            Ok(answer) if (200..300).contains(&answer.status) => return Ok(answer.body),
            Ok(answer) => match problem(&answer) {
                Some(problem) => return Err(ApiError::Problem(Box::new(problem))),
                None => classify_refusal(&answer),
            },
            Err(failure) => at_address(self.http.base(), classify_failure(&failure)),
        };
        Err(match refused {
            Delivery::Rejected(problem) => ApiError::Problem(problem),
            Delivery::NotSent(cause) => ApiError::Unreachable(cause),
            Delivery::PossiblyWritten(cause) => ApiError::Unclear(cause),
            Delivery::Recorded(()) => ApiError::Unclear(Cause::new("an answer that says nothing")),
        })
    }
}

fn unsendable(error: &dyn std::fmt::Display) -> ApiError {
    ApiError::Request(error.to_string())
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body)
        .map_err(|e| ApiError::Unclear(Cause::new(format!("the answer is not of the kind asked for: {e}"))))
}
