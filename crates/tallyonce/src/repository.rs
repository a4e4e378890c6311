//! Where pushes are recorded, whichever it is: an embedded store, or a server. One way to ask, one way to deliver.
//! Must not hold rules: the embedded store is changed only through the server's door.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use delivery::{ApiClient, ApiError, Destination, HttpSettings, HttpUrl, SystemClock, TallyonceTarget, Target};
use domain::listing::{CycleReport, ItemPage, ItemQuery, ItemReport, ItemSort, PushReport};
use domain::round::RoundChoice;
use domain::wire::names;
use domain::{CycleName, Problem, ProblemCode, ProjectId, PushId, PushKey, Status, limits};
use server::{Door, LocalTarget};
use store::{Found, Promotion, RoundAction, Store};

use crate::failure::{Failure, Kept};
use crate::settings::ConnectionSettings;

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
            Self::Remote(remote) => Ok(Reader::Remote(remote.client.clone())),
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

/// A repository opened for questions and decisions.
pub(crate) enum Reader {
    /// A store in this process.
    Embedded(Arc<dyn Store>),
    /// A server.
    Remote(ApiClient),
}

impl Reader {
    /// A cycle with the chosen rounds.
    ///
    /// # Errors
    /// There is no such thing, or no answer.
    pub(crate) async fn cycle(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        round: &str,
    ) -> Result<CycleReport, Failure> {
        match self {
            Self::Embedded(store) => found(store.cycle(project, cycle, &RoundChoice::parse(round)).await),
            Self::Remote(client) => {
                let query = [("cycle", cycle.as_str()), ("round", round)];
                client.get_json(&at(project, "/rounds"), &query).await.map_err(|error| asked(&error))
            }
        }
    }

    /// Items of the chosen rounds, all pages.
    ///
    /// # Errors
    /// There is no such thing, or no answer.
    pub(crate) async fn items(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        round: &str,
        status: Option<Status>,
    ) -> Result<Vec<ItemReport>, Failure> {
        let client = match self {
            Self::Embedded(store) => {
                let query =
                    ItemQuery { status, flaky: false, search: None, sort: ItemSort::Name, cursor: None, limit: None };
                let page = found(store.items(project, cycle, &RoundChoice::parse(round), &query).await)?;
                return Ok(page.items);
            }
            Self::Remote(client) => client,
        };
        let limit = limits::PAGE_ITEMS_MAX.to_string();
        let mut items = Vec::new();
        let mut cursor = None;
        loop {
            let mut query = vec![("cycle", cycle.as_str()), ("round", round), ("limit", limit.as_str())];
            query.extend(status.map(|status| ("status", status.word())));
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let page: ItemPage =
                client.get_json(&at(project, "/outcomes"), &query).await.map_err(|error| asked(&error))?;
            items.extend(page.items);
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(items),
            }
        }
    }

    /// A push with its revisions and deliveries.
    ///
    /// # Errors
    /// There is no such thing, or no answer.
    pub(crate) async fn push(&self, project: &ProjectId, push: PushId) -> Result<PushReport, Failure> {
        match self {
            Self::Embedded(store) => found(store.push(project, push).await),
            Self::Remote(client) => {
                let path = at(project, &format!("/pushes/{push}"));
                client.get_json(&path, &[]).await.map_err(|error| asked(&error))
            }
        }
    }

    /// Makes a revision's verdicts count, if `if_match` is still the newest receipt. Gives the newest receipt.
    ///
    /// # Errors
    /// It is refused, or there is no answer.
    pub(crate) async fn promote(&self, promotion: Promotion) -> Result<domain::Receipt, Failure> {
        match self {
            Self::Embedded(opened) => {
                let admitted = door(opened).promote(promotion).await.map_err(|problem| refused(&problem))?;
                serde_json::from_slice(&admitted.answer.receipt).map_err(|error| {
                    Failure::store(&store::StoreError::Broken { what: format!("a receipt cannot be read: {error}") })
                })
            }
            Self::Remote(client) => {
                let Promotion { project, push, key, revision, exact, if_match } = promotion;
                let path = at(&project, &format!("/pushes/{push}/promote"));
                let revision = revision.map(|revision| revision.to_string());
                let mut query: Vec<(&str, &str)> = revision.iter().map(|n| ("revision", n.as_str())).collect();
                if exact {
                    query.push(("exact", "true"));
                }
                let key = format!("\"{}\"", PushKey::as_str(&key));
                let mut headers = vec![(names::H_KEY, key.as_str())];
                headers.extend(if_match.iter().map(|tag| ("if-match", tag.as_str())));
                client.post_json(&path, &query, &headers, &()).await.map_err(|error| changed(&error))
            }
        }
    }

    /// Declares a round complete as it is.
    ///
    /// # Errors
    /// There is no such round, or no answer.
    pub(crate) async fn close(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        round: &str,
    ) -> Result<CycleReport, Failure> {
        match self {
            Self::Embedded(opened) => found(door(opened).set_round(project, cycle, round, RoundAction::Close).await),
            Self::Remote(client) => {
                let round = percent_encoding::utf8_percent_encode(round, percent_encoding::NON_ALPHANUMERIC);
                let path = at(project, &format!("/rounds/{round}/close"));
                let query = [("cycle", cycle.as_str())];
                client.post_json(&path, &query, &[], &()).await.map_err(|error| changed(&error))
            }
        }
    }
}

/// The one door to an embedded store.
fn door(store: &Arc<dyn Store>) -> Door {
    Door::new(Arc::clone(store), Arc::new(SystemClock::new()))
}

fn at(project: &ProjectId, path: &str) -> String {
    format!("/api/v1/projects/{project}{path}")
}

fn found<T>(found: Found<T>) -> Result<T, Failure> {
    match found {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(absent)) => Err(Failure::absent(&absent)),
        Err(error) => Err(Failure::store(&error)),
    }
}

/// A question without an answer: nothing was to be changed.
fn asked(error: &ApiError) -> Failure {
    let failure = match error {
        ApiError::Problem(problem) => return refused(problem),
        ApiError::Unreachable(cause) | ApiError::Unclear(cause) => {
            let next = "Look whether the server runs and the address is right, then ask again.".to_owned();
            Failure { next, ..Failure::not_sent(cause, Kept::Nowhere) }
        }
        ApiError::Request(what) => Failure::usage(what.clone(), "Mend the value that cannot be sent."),
    };
    Failure { means: "Nothing was to be changed.".to_owned(), ..failure }
}

/// A server's no to something that is no push.
fn refused(problem: &Problem) -> Failure {
    let failure = Failure::rejected(problem);
    let next = match problem.code {
        ProblemCode::NotFound => {
            "Mend the name or address above: a cycle is there from its first push on (by default pr-N or the branch that \
             was tested); `tallyonce show --round all` with its --project and --cycle lists the rounds."
        }
        ProblemCode::UnknownProject => "Mend --project, or push to it first: the first push creates it.",
        _ => return Failure { means: "Nothing was changed.".to_owned(), ..failure },
    };
    Failure { means: "Nothing was changed.".to_owned(), next: next.to_owned(), ..failure }
}

/// A decision without an answer may have taken effect.
fn changed(error: &ApiError) -> Failure {
    match error {
        ApiError::Problem(problem) => refused(problem),
        ApiError::Unreachable(cause) => Failure::not_sent(cause, Kept::Nowhere),
        ApiError::Unclear(cause) => Failure::possibly_written(cause, Kept::Nowhere),
        ApiError::Request(what) => Failure::usage(what.clone(), "Mend the value that cannot be sent."),
    }
}

/// How long to wait before asking again, in turn.
pub(crate) fn pauses() -> impl Iterator<Item = Duration> {
    std::iter::successors(Some(Duration::from_millis(250)), |pause| Some((*pause * 2).min(Duration::from_secs(10))))
}
