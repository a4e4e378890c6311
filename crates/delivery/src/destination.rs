//! Where a push goes: an embedded store or a server, in one canonical text. Must not hold credentials.

use std::fmt;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use reqwest::Url;
use thiserror::Error;

/// Why a text names no destination.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DestinationError {
    /// There is nothing.
    #[error("the destination is empty; give https://HOST or sqlite:PATH")]
    Empty,
    /// Neither an address of a server nor `sqlite:`.
    #[error("destination {text:?} is neither http://…, https://… nor sqlite:PATH")]
    UnknownKind {
        /// The text as given.
        text: String,
    },
    /// A database server, which only `serve` talks to.
    #[error(
        "a PostgreSQL store is not pushed to directly; push to the server over it (serve --store postgres://…) by its http address"
    )]
    Postgres,
    /// `sqlite:` without a usable path.
    #[error(
        "destination {text:?} has no path; give sqlite:PATH, such as sqlite:tallyonce.db or sqlite:/var/lib/tallyonce.db"
    )]
    NoPath {
        /// The text as given.
        text: String,
    },
    /// Not an address.
    #[error("destination {text:?} is not an address: {why}")]
    BadUrl {
        /// The text as given, without what stood before an `@`.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// An address that carries a user or a password.
    #[error(
        "the destination's address holds credentials; they would end in logs and in the outbox: take them out, and give the token by variable or file"
    )]
    Credentials,
    /// An address with a query or a fragment.
    #[error("destination {text:?} has a query or a fragment; give the server's base address only")]
    Query {
        /// The text as given.
        text: String,
    },
}

/// The base address of a server: http or https, without credentials, query, fragment and trailing slash.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HttpUrl(Url);

impl HttpUrl {
    /// The one way in.
    pub fn parse(text: &str) -> Result<Self, DestinationError> {
        let text = text.trim();
        let shown = || shown(text);
        let mut url = Url::parse(text).map_err(|e| DestinationError::BadUrl { text: shown(), why: e.to_string() })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(DestinationError::UnknownKind { text: shown() });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(DestinationError::Credentials);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(DestinationError::Query { text: shown() });
        }
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Self(url))
    }

    /// The address of a path under this base; `path` begins with a slash and is encoded already.
    pub fn join(&self, path: &str) -> String {
        format!("{self}{path}")
    }

    /// True for https.
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// True if the host is this machine: an address of the loopback network, or `localhost`.
    pub fn is_loopback(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.ends_with(".localhost") || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

/// A text for an error: whatever stands before an `@` may be a password.
fn shown(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, after)) => format!("…@{after}"),
        None => text.to_owned(),
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl fmt::Debug for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for HttpUrl {
    type Err = DestinationError;
    fn from_str(text: &str) -> Result<Self, DestinationError> {
        Self::parse(text)
    }
}

/// Where a push goes. Two that are equal are the same place; the outbox files entries under its text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Destination {
    /// An embedded store, through the same door as a server.
    Sqlite(PathBuf),
    /// A Tallyonce server.
    Http(HttpUrl),
}

impl Destination {
    /// The one way in: `sqlite:PATH`, `http://…` or `https://…`.
    pub fn parse(text: &str) -> Result<Self, DestinationError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(DestinationError::Empty);
        }
        if let Some(path) = text.strip_prefix("sqlite:") {
            return store_path(text, path).map(Self::Sqlite);
        }
        if text.starts_with("postgres:") || text.starts_with("postgresql:") {
            return Err(DestinationError::Postgres);
        }
        if !text.contains("://") {
            return Err(DestinationError::UnknownKind { text: shown(text) });
        }
        HttpUrl::parse(text).map(Self::Http)
    }
}

/// The path of a store, `.` and doubled separators left out. `sqlite://x` would silently become `/x`: refused.
fn store_path(text: &str, path: &str) -> Result<PathBuf, DestinationError> {
    let no_path = || DestinationError::NoPath { text: text.to_owned() };
    if path.starts_with("//") && !path.starts_with("///") {
        return Err(no_path());
    }
    let plain: PathBuf = Path::new(path).components().filter(|part| *part != Component::CurDir).collect();
    if plain.file_name().is_some() { Ok(plain) } else { Err(no_path()) }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Destination::Http(url) => url.fmt(f),
        }
    }
}

impl FromStr for Destination {
    type Err = DestinationError;
    fn from_str(text: &str) -> Result<Self, DestinationError> {
        Self::parse(text)
    }
}
