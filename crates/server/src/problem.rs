//! Problems as RFC 9457 answers: the only `IntoResponse` for errors. Which problem a fault is, is said beside the fault;
//! status, retry and written come from `domain::problem`. Must not decide anything about a key.

use axum::response::{IntoResponse, Response};
use domain::round::RoundChoiceError;
use domain::{Problem, ProblemCode, mutant};
use http::{HeaderValue, StatusCode, header};
use store::{Absent, StoreError};

/// Media type of a problem document.
pub(crate) const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";

/// A problem on its way out, with the headers that go with it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) problem: Box<Problem>,
    headers: Vec<(header::HeaderName, HeaderValue)>,
}

impl Failure {
    pub(crate) fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Problem::new(code, detail).into()
    }

    /// The same with single findings.
    pub(crate) fn with_errors(mut self, errors: Vec<String>) -> Self {
        self.problem.errors = errors;
        self
    }

    /// The same with one more header; one that no header can hold is left out.
    pub(crate) fn with_header(mut self, name: header::HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }
}

/// A parameter, header or path segment that cannot be read.
pub(crate) fn malformed(name: &str, why: impl std::fmt::Display) -> Failure {
    let words = format!("{name}: {why}. Nothing was recorded; correct it and send the request again.");
    Failure::new(ProblemCode::ParameterMalformed, words)
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self { problem: Box::new(problem), headers: Vec::new() }
    }
}

impl From<Box<Problem>> for Failure {
    fn from(problem: Box<Problem>) -> Self {
        Self { problem, headers: Vec::new() }
    }
}

impl From<Absent> for Failure {
    fn from(absent: Absent) -> Self {
        match absent {
            Absent::Project(project) => Self::new(
                ProblemCode::UnknownProject,
                format!("There is no project {project}: no push has created it. Look at GET /api/v1/projects."),
            ),
            Absent::Cursor => malformed("cursor", "it is not one that this listing gave; begin without a cursor"),
            Absent::Round(RoundChoiceError::Ambiguous { name, candidates }) => Self::new(
                ProblemCode::NotFound,
                format!("More than one round fits {name:?}. Nothing was changed; say more of the round's id."),
            )
            .with_errors(candidates),
            other => Self::new(ProblemCode::NotFound, format!("{}.", capital(&other.to_string()))),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::from(of_store(&error))
    }
}

/// What a store's failure means for the one who asked.
pub(crate) fn of_store(error: &StoreError) -> Problem {
    tracing::error!(%error, "the store failed");
    match error {
        StoreError::PossiblyWritten { .. } if mutant!(M26) => {
            Problem::new(ProblemCode::StoreUnavailable, "The store failed; nothing was written.")
        }
        StoreError::NotWritten { .. } => Problem::new(
            ProblemCode::StoreUnavailable,
            "The store cannot be used now, and nothing of this request was written. Repeat it with the same key after the \
             time in Retry-After.",
        ),
        StoreError::PossiblyWritten { .. } => Problem::new(
            ProblemCode::CommitUnknown,
            "The store was lost while it committed, and trying again told no more: this push may be recorded or not. Repeat it with the same key: \
             if it is recorded you get its receipt, if not it is recorded then, and in neither case twice.",
        ),
        StoreError::Broken { .. } | StoreError::NewerSchema { .. } | StoreError::BadUrl { .. } => Problem::new(
            ProblemCode::Internal,
            "The store contradicts itself or cannot be read by this version. Who runs the server finds the cause in its \
             log and by `tallyonce check-store`. Keep the push; repeating it with the same key is safe.",
        ),
    }
}

/// Seconds to wait before the next try, where trying again helps.
fn retry_after(code: ProblemCode) -> Option<&'static str> {
    match code {
        ProblemCode::InFlight | ProblemCode::Throttled | ProblemCode::Overloaded | ProblemCode::CommitUnknown => {
            Some("1")
        }
        ProblemCode::StoreUnavailable => Some("2"),
        _ => None,
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let code = self.problem.code;
        // Plain strings and numbers: this cannot fail, and an empty document would still carry the status.
        let body = serde_json::to_vec(&self.problem).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_MEDIA_TYPE));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = retry_after(code) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(seconds));
        }
        for (name, value) in self.headers {
            headers.append(name, value);
        }
        response
    }
}
