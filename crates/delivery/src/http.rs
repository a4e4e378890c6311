//! The only HTTP client: settings, roots of trust, proxies, one request and its whole answer. It never repeats and never
//! follows. Must not read the environment or judge an answer: `classify` does that.

use std::fmt::Debug;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use domain::mutant;
use domain::wire::names;
use reqwest::{Certificate, Client, ClientBuilder, Identity, NoProxy, Proxy, RequestBuilder, redirect};
use thiserror::Error;

use crate::destination::HttpUrl;
use crate::secret::Secret;

const MIB: u64 = 1024 * 1024;
/// An idle connection older than this may have been closed by the other side; a new one costs less than finding out.
const IDLE_SECONDS: u64 = 10;

/// How to talk to a server. Every value comes from the caller.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Sent as `Authorization: Bearer …`.
    pub token: Option<Secret>,
    /// PEM file of certificate authorities that are trusted besides the system's.
    pub ca_file: Option<PathBuf>,
    /// PEM file of a client certificate and its chain.
    pub client_cert: Option<PathBuf>,
    /// PEM file of its key, if that is not in `client_cert`.
    pub client_key: Option<PathBuf>,
    /// Proxies.
    pub proxy: ProxySettings,
    /// How long a connection may take to stand, TLS included, in milliseconds.
    pub connect_timeout_ms: u64,
    /// How long a request may take, answer included, in milliseconds, whatever its body.
    pub answer_timeout_ms: u64,
    /// What each begun mebibyte of the body adds to that, in milliseconds.
    pub answer_timeout_per_mib_ms: u64,
    /// The program and its version.
    pub user_agent: String,
}

/// Values of `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`. A proxy's address may hold a password.
#[derive(Debug, Clone, Default)]
pub struct ProxySettings {
    /// For https destinations.
    pub https: Option<Secret>,
    /// For http destinations.
    pub http: Option<Secret>,
    /// Hosts that are reached directly.
    pub no_proxy: Option<String>,
}

impl HttpSettings {
    /// No token, no proxy, the system's roots; 10 s to connect; a minute for the answer, and 20 s more per MiB, which
    /// even half a megabit a second can carry.
    pub fn new(user_agent: impl Into<String>) -> Self {
        Self {
            token: None,
            ca_file: None,
            client_cert: None,
            client_key: None,
            proxy: ProxySettings::default(),
            connect_timeout_ms: 10_000,
            answer_timeout_ms: 60_000,
            answer_timeout_per_mib_ms: 20_000,
            user_agent: user_agent.into(),
        }
    }
}

/// Settings that no request can be made with. None of the texts shows a secret.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// A file cannot be read.
    #[error("{what} {path}: {source}", path = path.display())]
    File {
        /// What the file is for.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What happened.
        source: std::io::Error,
    },
    /// A file that doesn't hold what it should.
    #[error("{what} {path}: {why}", path = path.display())]
    Pem {
        /// What the file is for.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A proxy whose address cannot be used.
    #[error("the proxy for {scheme} destinations is not an address that can be used")]
    Proxy {
        /// `http` or `https`.
        scheme: &'static str,
    },
    /// A token that no header can hold.
    #[error(
        "the token holds characters that no token has (blanks, line breaks or non-ASCII); is it the right file or variable?"
    )]
    Token,
    /// Anything else, TLS above all.
    #[error("the HTTP client cannot be set up: {0}")]
    Client(String),
}

/// Carries one request to one server, and its whole answer back. It repeats nothing and judges nothing.
/// HTTP over sockets, or, where every message has to be in somebody's hand, a network that is simulated.
#[async_trait]
pub trait Transport: Debug + Send + Sync {
    /// One request, in bounded time. May be dropped at any moment.
    async fn send(&self, request: Request<'_>) -> Result<Answer, Failure>;
}

/// A client bound to one server.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    base: HttpUrl,
    transport: Arc<dyn Transport>,
}

/// HTTP over sockets.
#[derive(Debug)]
struct Sockets {
    client: Client,
    base: HttpUrl,
    answer_timeout_ms: u64,
    answer_timeout_per_mib_ms: u64,
}

/// One request. The body is sent as it is.
#[derive(Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: Method,
    /// Path and query under the base address, encoded.
    pub path: &'a str,
    /// Its own headers; those of every request (credentials, the program's name) are the transport's.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Most bytes of an answer that are read.
    pub answer_bytes_max: usize,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The URL that was asked, without its query.
    pub url: String,
    /// The HTTP status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, whole.
    pub body: Bytes,
}

/// A request without a whole answer.
#[derive(Debug)]
pub enum Failure {
    /// The library's error, its text without the URL.
    Request(reqwest::Error),
    /// The connection broke, as a transport without that library says it.
    Lost {
        /// False only if the connection never stood, so that nothing of the request can have arrived.
        connected: bool,
        /// In words.
        why: String,
    },
    /// More than anybody would answer.
    AnswerTooLarge {
        /// The bound in bytes.
        limit: usize,
    },
}

impl Http {
    pub(crate) fn new(base: HttpUrl, settings: &HttpSettings) -> Result<Self, SettingsError> {
        let sockets = Sockets {
            client: client(&base, settings)?,
            base: base.clone(),
            answer_timeout_ms: settings.answer_timeout_ms,
            answer_timeout_per_mib_ms: settings.answer_timeout_per_mib_ms,
        };
        Ok(Self::over(base, Arc::new(sockets)))
    }

    pub(crate) fn over(base: HttpUrl, transport: Arc<dyn Transport>) -> Self {
        Self { base, transport }
    }

    /// The server's address.
    pub(crate) fn base(&self) -> &HttpUrl {
        &self.base
    }

    pub(crate) async fn send(&self, request: Request<'_>) -> Result<Answer, Failure> {
        self.transport.send(request).await
    }
}

#[async_trait]
impl Transport for Sockets {
    async fn send(&self, request: Request<'_>) -> Result<Answer, Failure> {
        let mib = (request.body.len() as u64).div_ceil(MIB);
        let timeout_ms = self.answer_timeout_ms.saturating_add(self.answer_timeout_per_mib_ms.saturating_mul(mib));
        let limit = request.answer_bytes_max;
        let url = self.base.join(request.path.split('?').next().unwrap_or_default());
        let sending = self
            .client
            .request(request.method, self.base.join(request.path))
            .headers(request.headers)
            .timeout(Duration::from_millis(timeout_ms))
            .body(request.body);
        fail::fail_point!("k8a");
        let beneath = if mutant!(M29) { under_another_key(&sending) } else { None };
        let mut answered = sending.send().await;
        if let (Err(_), Some(again)) = (&answered, beneath) {
            answered = again.send().await;
        }
        let mut response = answered.map_err(without_url)?;
        fail::fail_point!("k8");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(without_url)? {
            if body.len() + chunk.len() > limit {
                return Err(Failure::AnswerTooLarge { limit });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { url, status, headers, body: body.freeze() })
    }
}

/// The fault of a library that repeats by itself, as a request of its own.
fn under_another_key(sending: &RequestBuilder) -> Option<RequestBuilder> {
    let key = sending.try_clone()?.build().ok()?.headers().get(names::H_KEY)?.to_str().ok()?.replace('"', "");
    let fresh = header_value(&format!("\"{key}~\""))?;
    Some(sending.try_clone()?.headers(HeaderMap::from_iter([(header_name(names::H_KEY), fresh)])))
}

/// The URL's query holds names of the run; the text says enough without.
fn without_url(error: reqwest::Error) -> Failure {
    Failure::Request(error.without_url())
}

/// With the system's roots, or, where a slim image has none at all, with the web's roots that are built in.
fn client(base: &HttpUrl, settings: &HttpSettings) -> Result<Client, SettingsError> {
    let own = own_roots(settings)?;
    let proxy = proxy(base, settings)?;
    let needs_tls = base.is_https() || proxy.is_some();
    if needs_tls {
        let first = builder(settings, proxy.clone())?.tls_certs_merge(own.clone()).build();
        if let Ok(client) = first {
            return Ok(client);
        }
    }
    let mut roots = own;
    if needs_tls {
        for root in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
            roots.push(Certificate::from_der(root).map_err(|e| SettingsError::Client(reason(&e)))?);
        }
    }
    builder(settings, proxy)?.tls_certs_only(roots).build().map_err(|e| SettingsError::Client(reason(&e)))
}

fn builder(settings: &HttpSettings, proxy: Option<Proxy>) -> Result<ClientBuilder, SettingsError> {
    let mut headers = HeaderMap::new();
    if let Some(token) = &settings.token {
        headers.insert(header::AUTHORIZATION, bearer(token)?);
    }
    // No encoding of answers: a receipt is compared byte for byte.
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    let mut builder = Client::builder()
        .user_agent(&settings.user_agent)
        .default_headers(headers)
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(Duration::from_millis(settings.connect_timeout_ms))
        .pool_idle_timeout(Duration::from_secs(IDLE_SECONDS))
        .tcp_nodelay(true);
    if let Some(identity) = identity(settings)? {
        builder = builder.identity(identity);
    }
    // With a proxy or without: never one that the library finds in the environment.
    Ok(match proxy {
        Some(proxy) => builder.proxy(proxy),
        None => builder.no_proxy(),
    })
}

fn bearer(token: &Secret) -> Result<HeaderValue, SettingsError> {
    let graphic = !token.is_empty() && token.expose().bytes().all(|b| b.is_ascii_graphic());
    let value = graphic.then(|| HeaderValue::from_str(&format!("Bearer {}", token.expose())).ok()).flatten();
    let mut value = value.ok_or(SettingsError::Token)?;
    value.set_sensitive(true);
    Ok(value)
}

fn proxy(base: &HttpUrl, settings: &HttpSettings) -> Result<Option<Proxy>, SettingsError> {
    let ProxySettings { https, http, no_proxy } = &settings.proxy;
    let (scheme, address) = if base.is_https() { ("https", https) } else { ("http", http) };
    let Some(address) = address.as_ref().filter(|a| !a.is_empty()) else { return Ok(None) };
    // The library's error would repeat the address, password and all.
    let proxy = Proxy::all(address.expose()).map_err(|_| SettingsError::Proxy { scheme })?;
    Ok(Some(proxy.no_proxy(no_proxy.as_deref().and_then(NoProxy::from_string))))
}

fn own_roots(settings: &HttpSettings) -> Result<Vec<Certificate>, SettingsError> {
    const WHAT: &str = "certificate authority file";
    let Some(path) = &settings.ca_file else { return Ok(Vec::new()) };
    let pem = fs::read(path).map_err(|source| SettingsError::File { what: WHAT, path: path.clone(), source })?;
    let broken = |why: String| SettingsError::Pem { what: WHAT, path: path.clone(), why };
    let roots = Certificate::from_pem_bundle(&pem).map_err(|e| broken(reason(&e)))?;
    if roots.is_empty() { Err(broken("it holds no certificate in PEM form".to_owned())) } else { Ok(roots) }
}

fn identity(settings: &HttpSettings) -> Result<Option<Identity>, SettingsError> {
    const WHAT: &str = "client certificate";
    let Some(path) = &settings.client_cert else { return Ok(None) };
    let read = |path: &PathBuf| {
        fs::read(path).map_err(|source| SettingsError::File { what: WHAT, path: path.clone(), source })
    };
    let mut pem = read(path)?;
    if let Some(key) = &settings.client_key {
        pem.push(b'\n');
        pem.extend(read(key)?);
    }
    Identity::from_pem(&pem).map(Some).map_err(|e| SettingsError::Pem {
        what: WHAT,
        path: path.clone(),
        why: reason(&e),
    })
}

/// An error and all that is behind it, in one line, nothing said twice.
pub(crate) fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = cause.source();
    }
    text
}

/// A header of ours from a text that may hold anything.
pub(crate) fn header_value(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(text).ok()
}

/// A header's name from a text of ours.
pub(crate) fn header_name(text: &'static str) -> HeaderName {
    HeaderName::from_static(text)
}
