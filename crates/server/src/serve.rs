//! Listening, answering and ending: bounded connections, time-outs on heads, and an end that finishes what it began.
//! Must not know any endpoint.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use crate::collect;
use crate::config::{BodyLimits, ServeConfig};
use crate::forward::{self, Workers};
use crate::router::router;
use crate::state::App;
use delivery::SystemClock;

/// Wait after a failed accept (no file descriptors left, usually): trying at once would only spin.
const ACCEPT_AGAIN: Duration = Duration::from_millis(200);

/// Why a server did not start.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Everybody on the network could push and read.
    #[error(
        "{listen} can be reached from other machines, and without tokens everybody who reaches it may push and read \
         everything; listen on 127.0.0.1, or say --open if that is what you want"
    )]
    Exposed {
        /// The address.
        listen: SocketAddr,
    },
    /// The address is taken, or not ours.
    #[error("cannot listen on {listen}: {source}")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
}

/// Serves until `shutdown` ends, then finishes the requests that were begun, within `drain_time`. `ready` is told the
/// address once connections are taken.
pub async fn serve(
    config: ServeConfig,
    ready: impl FnOnce(SocketAddr),
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let ServeConfig { listen, store, open, limits, forwards, forward_terms } = config;
    if !open && !listen.ip().to_canonical().is_loopback() {
        return Err(ServeError::Exposed { listen });
    }
    let failed = |source| ServeError::Listen { listen, source };
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let app = App::forwarding(store, Arc::new(SystemClock::new()), limits.clone(), &forwards);
    let service = router(Arc::clone(&app));
    let places = Arc::new(Semaphore::new(limits.connections.clamp(1, Semaphore::MAX_PERMITS)));
    let (stop, stopping) = watch::channel(());
    let collecting = tokio::spawn(collect::regularly(Arc::clone(&app)));
    forward::tell_of_gone(&app).await;
    let workers = Workers::start(&app, forwards, forward_terms);
    let mut connections = JoinSet::new();
    ready(address);
    let mut shutdown = pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&listener, &places) => accepted,
            Some(_) = connections.join_next() => continue,
        };
        match accepted {
            Ok((stream, place)) => {
                connections.spawn(connection(stream, place, service.clone(), limits.header_time, stopping.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_AGAIN).await;
            }
        }
    }
    drop(listener);
    app.drain();
    workers.stop();
    stop.send_replace(());
    tokio::join!(drain(connections, &limits), workers.ended(limits.drain_time));
    if let Err(error) = collecting.await {
        tracing::error!(%error, "collecting staging crashed");
    }
    Ok(())
}

async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // Small answers leave at once; a peer that is gone already shows when it is read.
    let _ = stream.set_nodelay(true);
    Ok((stream, place))
}

async fn connection(
    stream: TcpStream,
    place: OwnedSemaphorePermit,
    router: Router,
    header_time: Duration,
    mut stopping: watch::Receiver<()>,
) {
    fail::fail_point!("k0");
    let service =
        TowerToHyperService::new(router.map_request(|request: http::Request<Incoming>| request.map(Body::new)));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(header_time);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = stopping.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
    drop(place);
}

async fn drain(mut connections: JoinSet<()>, limits: &BodyLimits) {
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.drain_time, all).await.is_err() {
        tracing::warn!(left = connections.len(), "requests were still open at the end of the drain time");
        connections.shutdown().await;
    }
}
