//! `tallyonce serve` and `tallyonce check-store`: a store served, a store judged. Must not record anything by itself.

use std::net::SocketAddr;

use delivery::Destination;
use domain::ci::Env;
use serde::Serialize;
#[cfg(not(feature = "failpoints"))]
use server::ForwardTerms;
use server::{BodyLimits, ForwardTarget, ServeConfig, ServeError};
use store::Damage;

use crate::cli::{CheckStoreArgs, ServeArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::forward::Forwarding;
use crate::interrupt;
use crate::output::Output;
use crate::repository;
use crate::settings::file::STORE;
use crate::settings::{ConfigFile, ConnectionSettings, Layers, Setting};
use crate::telemetry;

/// Where it listens, unless said otherwise.
const LISTEN: &str = "127.0.0.1:8321";
/// `serve`, resolved.
#[derive(Debug)]
pub(crate) struct ServeSettings {
    listen: SocketAddr,
    store: Setting<String>,
    open: bool,
    limits: BodyLimits,
    log_json: bool,
    verbose: u8,
}

impl ServeSettings {
    /// From the flags over the file.
    ///
    /// # Errors
    /// The address is none.
    pub(crate) fn resolve(args: ServeArgs, layers: &Layers<'_>, verbose: u8) -> Result<Self, Failure> {
        let listen = layers
            .pick("listen", args.listen, "serve.listen", |f| f.serve.listen.clone())
            .unwrap_or_else(|| Setting::default(LISTEN.to_owned(), "this machine only"));
        let Setting { value, source } = listen;
        let listen = value.parse().map_err(|_| {
            Failure::usage(
                format!("{source}: {value:?} is no address to listen on"),
                "Give IP:PORT, such as 127.0.0.1:8321 or [::1]:8321.",
            )
        })?;
        Ok(Self {
            listen,
            store: store_setting(args.store, layers),
            open: layers.switch(args.open, |f| f.serve.open),
            limits: limits(layers),
            log_json: layers.switch(args.log_json, |f| f.serve.log_json),
            verbose,
        })
    }
}

/// The standard bounds, but for those that the file gives.
fn limits(layers: &Layers<'_>) -> BodyLimits {
    let mut limits = BodyLimits::default();
    let Some(file) = layers.file() else { return limits };
    if let Some(bytes) = file.serve.body_bytes_max {
        limits.body_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        // A body that is allowed must find room.
        limits.buffered_bytes = limits.buffered_bytes.max(limits.body_bytes);
    }
    limits.inflated_bytes = file.serve.inflated_bytes_max.unwrap_or(limits.inflated_bytes);
    limits.requests = file.serve.requests_max.unwrap_or(limits.requests);
    limits.connections = file.serve.connections_max.unwrap_or(limits.connections);
    limits
}

fn store_setting(typed: Option<String>, layers: &Layers<'_>) -> Setting<String> {
    layers
        .pick("store", typed, "serve.store", |f| f.serve.store.clone())
        .unwrap_or_else(|| Setting::default(STORE.to_owned(), "a file in the working folder"))
}

/// Serves until it is told to stop, then finishes what it began.
///
/// # Errors
/// It cannot start.
pub(crate) async fn serve(
    settings: ServeSettings,
    file: Option<&ConfigFile>,
    env: &Env,
    connection: &ConnectionSettings,
    output: Output,
) -> Result<Exit, Failure> {
    telemetry::start(env, settings.verbose, settings.log_json)?;
    if !settings.open && !settings.listen.ip().to_canonical().is_loopback() {
        // Before the store is opened, or even made.
        return Err(cannot_start(&ServeError::Exposed { listen: settings.listen }));
    }
    let forwards = forwards(file, env, connection, output)?;
    let store = repository::open(&settings.store.value)?;
    let config = ServeConfig {
        listen: settings.listen,
        store,
        open: settings.open,
        limits: settings.limits,
        forwards,
        forward_terms: forward_terms(env)?,
    };
    let stop = interrupt::on_signals()?;
    let ready = |address: SocketAddr| output.error(&format!("listening on http://{address}"));
    server::serve(config, ready, stop.requested()).await.map_err(|error| cannot_start(&error))?;
    Ok(Exit::Success)
}

#[cfg(feature = "failpoints")]
use crate::points::forward_terms;

/// The times of forwarding.
#[cfg(not(feature = "failpoints"))]
#[expect(clippy::unnecessary_wraps, reason = "the same shape as with fail points")]
fn forward_terms(_: &Env) -> Result<ForwardTerms, Failure> {
    Ok(ForwardTerms::default())
}

/// Every target of a `[forward.NAME]`, opened; nothing is connected to.
fn forwards(
    file: Option<&ConfigFile>,
    env: &Env,
    connection: &ConnectionSettings,
    output: Output,
) -> Result<Vec<ForwardTarget>, Failure> {
    let Some(file) = file else { return Ok(Vec::new()) };
    let mut targets = Vec::new();
    for (name, rule) in &file.forward {
        let forwarding = Forwarding::prepare(&file.target(name)?, env, connection, output)?.granted(false)?;
        if let Some(doubt) = forwarding.doubt() {
            output.warning(doubt);
        }
        targets.push(forwarding.served(rule));
    }
    Ok(targets)
}

fn cannot_start(error: &ServeError) -> Failure {
    let next = match error {
        ServeError::Exposed { .. } => {
            "Listen on 127.0.0.1 and put a proxy with authentication in front, or say --open."
        }
        ServeError::Listen { .. } => "Stop what listens there, or choose another --listen.",
    };
    Failure::usage(error.to_string(), next)
}

/// `check-store --json`.
#[derive(Debug, Serialize)]
struct CheckObject<'a> {
    store: &'a str,
    clean: bool,
    damage: &'a [Damage],
    /// What `--repair` made anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    repaired: Option<&'a [Damage]>,
}

/// Looks for contradictions, and makes counts anew if that is asked for.
///
/// # Errors
/// The store cannot be read.
pub(crate) async fn check_store(args: CheckStoreArgs, layers: &Layers<'_>, output: Output) -> Result<Exit, Failure> {
    let Setting { value: url, source } = store_setting(args.store, layers);
    let destination =
        Destination::parse(&url).map_err(|error| Failure::usage(format!("{source}: {error}"), "Give sqlite:PATH."))?;
    let store = repository::existing(&destination)?;
    let failed = |error| Failure::store(&error);
    let repaired = if args.repair { Some(store.repair().await.map_err(failed)?) } else { None };
    let damage = store.check().await.map_err(failed)?;
    let line = |of: &Damage| format!("{}  {}  {}\n", of.kind, of.place, of.what);
    if args.json {
        let clean = damage.is_empty();
        output.object(&CheckObject { store: &url, clean, damage: &damage, repaired: repaired.as_deref() });
    } else {
        for mended in repaired.iter().flatten() {
            output.result(&format!("made anew: {}", line(mended)));
        }
        if damage.is_empty() {
            output.result(&format!("{url}: clean\n"));
        }
        for found in &damage {
            output.result(&line(found));
        }
    }
    if !damage.is_empty() && !args.json {
        let n = damage.len();
        output.error(&format!("{url}: {n} contradictions; keep a copy of the store before anything else"));
    }
    Ok(if damage.is_empty() { Exit::Success } else { Exit::Found })
}
