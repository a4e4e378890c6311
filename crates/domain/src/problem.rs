//! The problems that a delivery or a question can end in, as data: code, status, retry, written (RFC 9457).
//! Client and server share this list. Must not know an HTTP library.

use serde::{Deserialize, Serialize};

use crate::protocol::{DifferenceSummary, FieldDifference};

/// Whether and how to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Retry {
    /// The same delivery again, with the same key.
    SameKey,
    /// Begin the staged push again.
    Begin,
    /// Not before the cause is mended.
    Never,
}

/// What is known about the effect of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Written {
    /// Nothing of it is recorded.
    No,
    /// It may be recorded; only a repeat under the same key tells.
    Unknown,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $status:literal, $retry:ident, $written:ident, $title:literal;)*) => {
        /// A machine-readable problem code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum ProblemCode {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)*
        }

        impl ProblemCode {
            /// Every code, for documentation and tests.
            pub const ALL: &'static [ProblemCode] = &[$(ProblemCode::$variant),*];

            /// The code's word.
            pub fn word(self) -> &'static str {
                match self { $(ProblemCode::$variant => $word,)* }
            }

            /// The HTTP status that goes with it.
            pub fn status(self) -> u16 {
                match self { $(ProblemCode::$variant => $status,)* }
            }

            /// Whether to try again.
            pub fn retry(self) -> Retry {
                match self { $(ProblemCode::$variant => Retry::$retry,)* }
            }

            /// What is known about the effect.
            pub fn written(self) -> Written {
                match self { $(ProblemCode::$variant => Written::$written,)* }
            }

            /// One line for people.
            pub fn title(self) -> &'static str {
                match self { $(ProblemCode::$variant => $title,)* }
            }
        }
    };
}

codes! {
    /// A write without a key.
    KeyMissing = "key-missing", 400, Never, No, "the push has no idempotency key";
    /// A key that the grammar does not allow, or two of them.
    KeyMalformed = "key-malformed", 400, Never, No, "the idempotency key is malformed";
    /// A push that doesn't say which run it belongs to.
    RunMissing = "run-missing", 400, Never, No, "the push names no run";
    /// A parameter or header that cannot be read.
    ParameterMalformed = "parameter-malformed", 400, Never, No, "a parameter is malformed";
    /// A body that is no push and no report this server reads.
    ReportUnreadable = "report-unreadable", 400, Never, No, "the report cannot be read";
    /// A body that does not match its Content-Digest or Content-Length.
    DigestMismatch = "digest-mismatch", 422, SameKey, No, "the body arrived damaged";
    /// A browser sends the request for a page of another site.
    ForeignOrigin = "foreign-origin", 403, Never, No, "a page of another site may not write here";
    /// A project that does not exist.
    UnknownProject = "unknown-project", 404, Never, No, "there is no such project";
    /// Any other thing that does not exist.
    NotFound = "not-found", 404, Never, No, "there is no such thing";
    /// A method that the path does not take.
    MethodNotAllowed = "method-not-allowed", 405, Never, No, "this path does not take that method";
    /// A push that no record exists of.
    UnknownPush = "unknown-push", 404, Begin, No, "no push with this key is recorded";
    /// A body that stopped arriving before its end.
    BodyIncomplete = "body-incomplete", 408, SameKey, No, "the body did not arrive whole";
    /// The key is being applied right now and the wait was bounded.
    InFlight = "in-flight", 409, SameKey, No, "this key is being applied right now";
    /// Another client is delivering other content under this key.
    PushInProgress = "push-in-progress", 409, SameKey, No, "another delivery of this push is under way";
    /// A newer epoch has begun.
    Superseded = "superseded", 409, Begin, No, "a newer delivery has taken over";
    /// A later attempt is delivering.
    StaleAttempt = "stale-attempt", 409, SameKey, No, "a later attempt is delivering";
    /// A commit before all chunks are there.
    Incomplete = "incomplete", 409, SameKey, No, "chunks are missing";
    /// A cancel that came too late.
    Committed = "committed", 409, Never, Unknown, "the push is recorded already";
    /// Staging that was given up or collected.
    StagingExpired = "staging-expired", 410, Begin, No, "this staging has ended";
    /// A manifest that contradicts itself or its chunks.
    ManifestMalformed = "manifest-malformed", 400, Never, No, "the manifest is malformed";
    /// A chunk that the manifest doesn't have.
    ChunkOutOfRange = "chunk-out-of-range", 422, Never, No, "the manifest has no such chunk";
    /// The data was deleted; a late retry never writes again.
    Tombstoned = "tombstoned", 410, Never, No, "the data of this push was deleted";
    /// Another receipt counts than the one given in If-Match.
    ReceiptMismatch = "receipt-mismatch", 412, Never, No, "the push has changed since";
    /// A body beyond the limit.
    TooLarge = "too-large", 413, Never, No, "the body is too large for one request";
    /// A content encoding or type that this server does not take.
    UnsupportedMedia = "unsupported-media", 415, Never, No, "this content type or encoding is not taken";
    /// The key names a push in another place.
    KeyReused = "key-reused", 422, Never, No, "the key belongs to another push";
    /// Two executions of a job, or two kinds of work, share the key.
    KeyCollision = "key-collision", 422, Never, No, "two different pushes share this key";
    /// The job was planned with another number of shards.
    ShardPlanChanged = "shard-plan-changed", 422, Never, No, "the job has another number of shards";
    /// Other outcomes under a known key, and the policy is to fail.
    Differs = "differs", 422, Never, No, "other outcomes are recorded under this key";
    /// Too many requests.
    Throttled = "throttled", 429, SameKey, No, "too many requests";
    /// Something went wrong inside; the write may have happened.
    Internal = "internal", 500, SameKey, Unknown, "something went wrong inside the server";
    /// The server has too much to do.
    Overloaded = "overloaded", 503, SameKey, No, "the server is overloaded";
    /// The store is out of reach, or its disk is full.
    StoreUnavailable = "store-unavailable", 503, SameKey, No, "the store cannot write now";
    /// The store lost its connection or its disk during the commit.
    CommitUnknown = "commit-unknown", 503, SameKey, Unknown, "the commit's outcome is unknown";
    /// Made by a client, never sent by a server: a refusal in words that are none of ours, with the status it came with.
    ForeignAnswer = "foreign-answer", 400, Never, No, "the answer is not from a Tallyonce server";
}

/// A problem document: what happened, what it means for the recorded data, what to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// A stable address of the code's documentation.
    #[serde(rename = "type")]
    pub type_uri: String,
    /// One line for people.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The machine-readable code.
    pub code: ProblemCode,
    /// Whether to try again.
    pub retry: Retry,
    /// What is known about the effect.
    pub written: Written,
    /// What happened here, what it means for the recorded data, and what to do.
    pub detail: String,
    /// Fields of the push that differ from what is recorded under the key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldDifference>,
    /// How the outcomes differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<DifferenceSummary>,
    /// Chunks that are missing, as ranges with both ends included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<[u32; 2]>,
    /// What is recorded under the key instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<crate::wire::StoredReceipt>,
    /// Further single findings: files, items, parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

impl Problem {
    /// A problem with this code and these words.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self {
            type_uri: format!("urn:tallyonce:problem:{}", code.word()),
            title: code.title().to_owned(),
            status: code.status(),
            code,
            retry: code.retry(),
            written: code.written(),
            detail: detail.into(),
            fields: Vec::new(),
            difference: None,
            missing: Vec::new(),
            recorded: None,
            errors: Vec::new(),
        }
    }
}
