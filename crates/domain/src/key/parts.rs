//! The parts that a key is derived from, and the one text that they give: readable, and different for different parts.
//! Must not know where the parts come from.

use std::fmt::Write as _;

use serde::Serialize;
use thiserror::Error;

use super::{PushKey, is_plain, shortened};
use crate::id::{JobName, RoundId, RoundLabel, RunId, ShardRef, Variant};
use crate::{limits, mutant};

/// Why a scope is not valid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScopeError {
    /// A platform's short name that the key's grammar cannot tell from its labels.
    #[error("platform {text:?} is not a short name of a-z, 0-9 and -, other than \"run\"")]
    BadPlatform {
        /// The text as given.
        text: String,
    },
    /// A server or path that is empty.
    #[error("the {what} of a scope is empty; leave it out instead")]
    Empty {
        /// Which part.
        what: &'static str,
    },
}

/// Where a platform's run numbers are unique: the platform, its server unless it is the public one, and the place on it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Scope {
    platform: String,
    server: Option<String>,
    path: Option<String>,
}

impl Scope {
    /// The one way in. `server` is absent for the platform's public server; `path` is a repository or project.
    pub fn new(platform: &str, server: Option<&str>, path: Option<&str>) -> Result<Self, ScopeError> {
        let short = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        // `run` opens the key of a push outside CI.
        if platform.is_empty() || platform == "run" || !platform.chars().all(short) {
            return Err(ScopeError::BadPlatform { text: platform.to_owned() });
        }
        for (what, value) in [("server", server), ("path", path)] {
            if value.is_some_and(str::is_empty) {
                return Err(ScopeError::Empty { what });
            }
        }
        Ok(Self { platform: platform.to_owned(), server: server.map(str::to_owned), path: path.map(str::to_owned) })
    }

    /// The platform's short name: `github`.
    pub fn platform(&self) -> &str {
        &self.platform
    }

    /// The server, unless it is the platform's public one.
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// The repository or project on the server.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// The scope as the key says it: `github@ghe.example.com:acme/shop`.
    pub fn canonical(&self) -> String {
        let mut text = self.platform.clone();
        if let Some(server) = &self.server {
            text.push('@');
            encode(&mut text, server);
        }
        if let Some(path) = &self.path {
            text.push(':');
            encode(&mut text, path);
        }
        text
    }
}

/// Everything that a key is derived from. Different parts give different keys; equal parts give equal keys.
///
/// What is *not* here is not in the key: attempt, executor, time, commit, content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyParts {
    /// Where the run is unique; absent outside CI.
    pub scope: Option<Scope>,
    /// The pipeline run.
    pub run: RunId,
    /// The label of a deliberate re-execution inside one pipeline run.
    pub round: Option<RoundLabel>,
    /// The job, without its partition.
    pub job: Option<JobName>,
    /// The shard of the job.
    pub shard: Option<ShardRef>,
    /// The variant of the job; empty if nothing is said.
    pub variant: Variant,
}

impl KeyParts {
    /// The push key: scope, run, round, job, shard and variant, absent parts left out, at most 240 octets.
    pub fn key(&self) -> PushKey {
        let mut text = self.round_text();
        if let Some(job) = &self.job {
            text.push_str(":job:");
            encode(&mut text, job.as_str());
        }
        if let Some(shard) = self.shard {
            let _ = write!(text, ":shard:{}", shard.index());
            if let Some(total) = shard.total() {
                let _ = write!(text, "-{total}");
            }
        }
        for (at, (name, value)) in self.variant.iter().enumerate() {
            text.push_str(if at == 0 { ":variant:" } else { "," });
            encode(&mut text, name);
            text.push('=');
            encode(&mut text, value);
        }
        // The text is made of allowed characters only and within the bound, so the public way in adds nothing.
        PushKey(shortened(&text, limits::KEY_BYTES_MAX))
    }

    /// The round: the key of the parts scope, run and round alone, so every job, shard and variant of a run has the
    /// same one. It is the text of the push key before `:job:` (without a job before `:shard:`, without a shard
    /// before `:variant:`), unless one of the two had to be shortened.
    pub fn round_id(&self) -> RoundId {
        let text = shortened(&self.round_text(), limits::KEY_BYTES_MAX);
        RoundId::from_canonical(text)
    }

    fn round_text(&self) -> String {
        let mut text = String::new();
        if let Some(scope) = &self.scope {
            text.push_str(&scope.canonical());
            text.push(':');
        }
        text.push_str("run:");
        encode(&mut text, self.run.as_str());
        if let Some(round) = &self.round {
            text.push_str(":round:");
            encode(&mut text, round.as_str());
        }
        text
    }
}

fn encode(text: &mut String, value: &str) {
    for c in value.chars() {
        if is_plain(c) || mutant!(M7) {
            text.push(c);
        } else {
            let mut octets = [0; 4];
            for octet in c.encode_utf8(&mut octets).bytes() {
                let _ = write!(text, "%{octet:02X}");
            }
        }
    }
}
