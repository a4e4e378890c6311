//! The push key: a value that names a write, never an attempt at it. Here its text and its bounds.
//! Must not know any CI platform, and must not take a key of another client apart.

pub mod check;
mod parts;
mod shape;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{limits, mutant};

pub use check::{Finding, Known, Severity};
pub use parts::{KeyParts, Scope, ScopeError};

/// What a key may hold, in words (design, section 6).
const ALLOWED: &str = "A-Z a-z 0-9 . _ ~ : / @ + = , % -";
/// Starts the hash that ends a shortened key.
const HASH_LABEL: &str = ":b3:";
/// A BLAKE3 hash in hexadecimal digits, in octets.
const HASH_BYTES: usize = 64;

/// Why a text is not a push key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    /// There is no key.
    #[error("the key is empty; a push needs a key of 1 to {} octets", limits::KEY_HEADER_BYTES_MAX)]
    Empty,
    /// The key is longer than its bound.
    #[error("the key is {octets} octets long; at most {limit} are allowed")]
    TooLong {
        /// Its length in octets.
        octets: usize,
        /// The bound in octets.
        limit: usize,
    },
    /// The key holds a character that it may not.
    #[error("the key holds {found:?} at octet {at}; allowed: {ALLOWED}")]
    BadCharacter {
        /// The first character that is not allowed.
        found: char,
        /// Where it begins, in octets from 0.
        at: usize,
    },
}

/// The key of one push. Compared byte for byte: nothing is folded, trimmed or decoded.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PushKey(String);

impl PushKey {
    /// The one way in for the key of any client: 1 to 255 octets of `A-Z a-z 0-9 . _ ~ : / @ + = , % -`.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        if text.is_empty() {
            return Err(KeyError::Empty);
        }
        if let Some((at, found)) = text.char_indices().find(|(_, c)| !is_key_character(*c)) {
            return Err(KeyError::BadCharacter { found, at });
        }
        if text.len() > limits::KEY_HEADER_BYTES_MAX {
            return Err(KeyError::TooLong { octets: text.len(), limit: limits::KEY_HEADER_BYTES_MAX });
        }
        if mutant!(M8) {
            return Ok(Self(text.get(..64).unwrap_or(text).to_ascii_lowercase()));
        }
        Ok(Self(text.to_owned()))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key of chunk `number` of this push.
    pub fn chunk(&self, number: u32) -> ChunkKey {
        ChunkKey { push: self.clone(), number }
    }
}

impl TryFrom<String> for PushKey {
    type Error = KeyError;
    fn try_from(text: String) -> Result<Self, KeyError> {
        Self::parse(&text)
    }
}

impl FromStr for PushKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::parse(text)
    }
}

impl From<PushKey> for String {
    fn from(key: PushKey) -> String {
        key.0
    }
}

impl fmt::Display for PushKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for PushKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// The key of one chunk: the push key and the chunk's number. Its text ends in `:chunk:5`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkKey {
    push: PushKey,
    number: u32,
}

impl ChunkKey {
    /// The key of the push that this is a chunk of.
    pub fn push(&self) -> &PushKey {
        &self.push
    }

    /// The chunk's number within its push.
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl fmt::Display for ChunkKey {
    /// At most 255 octets: a key of another client that leaves no room for the ending is shortened like our own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ending = format!(":chunk:{}", self.number);
        let room = limits::KEY_HEADER_BYTES_MAX - ending.len();
        f.write_str(&shortened(self.push.as_str(), room))?;
        f.write_str(&ending)
    }
}

fn is_key_character(c: char) -> bool {
    is_plain(c) || matches!(c, ':' | '=' | ',' | '%')
}

/// What stands for itself in a value; everything else is percent-encoded (design, section 4).
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '~' | '/' | '@' | '+' | '-')
}

/// `text` if it fits into `limit` octets, else its head, `:b3:` and the BLAKE3 hash of the whole text.
/// The cut never falls into a `%XX`. `text` is ASCII, and `limit` leaves room for the hash.
fn shortened(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut cut = limit.saturating_sub(HASH_LABEL.len() + HASH_BYTES);
    let octets = text.as_bytes();
    for back in 1..=2 {
        if cut >= back && octets[cut - back] == b'%' {
            cut -= back;
            break;
        }
    }
    let hash = blake3::hash(octets).to_hex();
    format!("{}{HASH_LABEL}{hash}", text.get(..cut).unwrap_or_default())
}
