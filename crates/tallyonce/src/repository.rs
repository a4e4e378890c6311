//! Where pushes are recorded, whichever it is: an embedded store, or a server. One way to ask, one way to deliver.
//! Must not hold rules: the embedded store is changed only through the server's door.

mod reader;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use delivery::{ApiClient, Destination, HttpSettings, HttpUrl, SystemClock, TallyonceTarget, Target};
use server::LocalTarget;
use store::Store;

use crate::failure::Failure;
use crate::settings::ConnectionSettings;

pub(crate) use reader::Reader;

/// How a store's file begins, unless it is empty.
const SQLITE_HEAD: &[u8] = b"SQLite format 3\0";

/// A repository.
pub(crate) enum Repository {
    /// A store in this process.
    Embedded(Destination),
    /// A server.
    Remote(Box<Remote>),
}

/// A server and how it is reached.
pub(crate) struct Remote {
    url: HttpUrl,
    settings: HttpSettings,
    client: ApiClient,
}

impl Repository {
    /// Makes ready without opening a store or connecting, so that wrong settings are known before anything is kept.
    ///
    /// # Errors
    /// Certificates or token cannot be used.
    pub(crate) fn prepare(destination: &Destination, connection: &ConnectionSettings) -> Result<Self, Failure> {
        let Destination::Http(url) = destination else {
            is_store(destination)?;
            return Ok(Self::Embedded(destination.clone()));
        };
        // Whoever installed one before us is right too.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let settings = http_settings(connection);
        let client = ApiClient::new(url.clone(), &settings).map_err(|error| unusable(&error))?;
        Ok(Self::Remote(Box::new(Remote { url: url.clone(), settings, client })))
    }

    /// The server's address, unless it is embedded.
    pub(crate) fn server(&self) -> Option<&HttpUrl> {
        match self {
            Self::Embedded(_) => None,
            Self::Remote(remote) => Some(&remote.url),
        }
    }

    /// What takes pushes. Creates an embedded store that is not there yet.
    ///
    /// # Errors
    /// The store cannot be opened.
    pub(crate) fn target(&self) -> Result<Box<dyn Target>, Failure> {
        match self {
            Self::Embedded(destination) => {
                let store = open(&destination.to_string())?;
                Ok(Box::new(LocalTarget::over(destination.clone(), store, Arc::new(SystemClock::new()))))
            }
            Self::Remote(remote) => TallyonceTarget::new(remote.url.clone(), &remote.settings)
                .map(|target| Box::new(target) as Box<dyn Target>)
                .map_err(|error| unusable(&error)),
        }
    }

    /// Opens it for questions and decisions. Never creates a store.
    ///
    /// # Errors
    /// There is no store, or it cannot be opened.
    pub(crate) fn reader(&self) -> Result<Reader, Failure> {
        match self {
            Self::Embedded(destination) => existing(destination).map(Reader::Embedded),
            Self::Remote(remote) => {
                let answer_ms = remote.settings.answer_timeout_ms;
                Ok(Reader::Remote(remote.client.clone(), Duration::from_millis(answer_ms)))
            }
        }
    }
}

/// Opens a store by its address; creates it if it is not there.
///
/// # Errors
/// It cannot be opened.
pub(crate) fn open(url: &str) -> Result<Arc<dyn Store>, Failure> {
    // A text that is no destination is refused by the store, in its own words.
    if let Ok(destination) = Destination::parse(url) {
        is_store(&destination)?;
    }
    store::open(url).map_err(|error| Failure::store(&error))
}

/// Opens a store that has to be there.
///
/// # Errors
/// It is not, or cannot be opened.
pub(crate) fn existing(destination: &Destination) -> Result<Arc<dyn Store>, Failure> {
    if let Destination::Sqlite(path) = destination
        && !Path::new(path).exists()
    {
        return Err(Failure::nothing_there(
            format!("there is no store at {}", path.display()),
            "Name the store (sqlite:PATH) or server that the pushes went to; the first push creates a store.",
        ));
    }
    open(&destination.to_string())
}

/// Refuses what is there and surely no store: a report, say, whose name slipped into `--to`.
fn is_store(destination: &Destination) -> Result<(), Failure> {
    let Destination::Sqlite(path) = destination else { return Ok(()) };
    let other = |what: &str| {
        let next = "Name the store (sqlite:PATH) or server that the pushes go to.";
        Err(Failure::usage(format!("{} is no store: {what}", path.display()), next))
    };
    if path.is_dir() {
        return other("it is a folder");
    }
    let mut head = Vec::new();
    // What cannot be read is no business of this check: opening the store says why.
    let read = File::open(path).and_then(|file| file.take(SQLITE_HEAD.len() as u64).read_to_end(&mut head));
    if read.is_ok() && !head.is_empty() && head != SQLITE_HEAD {
        return other("it is another kind of file");
    }
    Ok(())
}

fn unusable(error: &dyn std::fmt::Display) -> Failure {
    Failure::usage(error.to_string(), "Mend the certificate, key, token or proxy that is named.")
}

/// How every request to a server or a product is made.
pub(crate) fn http_settings(connection: &ConnectionSettings) -> HttpSettings {
    let ConnectionSettings { ca_file, client_identity, timeout, token, proxy } = connection;
    let mut settings = HttpSettings::new(concat!("tallyonce/", env!("CARGO_PKG_VERSION")));
    settings.token.clone_from(token);
    settings.ca_file.clone_from(ca_file);
    if let Some((cert, key)) = client_identity {
        settings.client_cert = Some(cert.clone());
        settings.client_key = Some(key.clone());
    }
    settings.proxy.clone_from(proxy);
    if let Some(timeout) = timeout {
        let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        settings.connect_timeout_ms = settings.connect_timeout_ms.min(millis);
        // The same proportion as by default: a minute, and a third of it for each further mebibyte.
        settings.answer_timeout_per_mib_ms = millis / 3;
        settings.answer_timeout_ms = millis;
    }
    settings
}

/// How long to wait before asking again, in turn.
pub(crate) fn pauses() -> impl Iterator<Item = Duration> {
    std::iter::successors(Some(Duration::from_millis(250)), |pause| Some((*pause * 2).min(Duration::from_secs(10))))
}
