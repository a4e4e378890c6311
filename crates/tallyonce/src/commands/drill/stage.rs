//! Where a drill plays: a folder of its own, a server that may be killed, and a breakable link for every push.
//! Must not know scripts or stories.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use delivery::Stop;
use proof::proxy::{Fault, FaultProxy, Plan};
use proof::spawn::{Binary, Finished, Run, Running, Server};
use tokio::runtime::Handle;

/// How often a wait looks whether somebody asked to stop.
const GLANCE: Duration = Duration::from_millis(50);
/// How many glances a client gets before it hangs: two minutes.
const GLANCES_MAX: u32 = 2400;
/// Longer than output takes to arrive when a process has ended.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Why a drill cannot go on.
#[derive(Debug)]
pub(super) enum Halt {
    /// Somebody asked to stop.
    Stopped,
    /// Something of this machine fails.
    Machine(String),
}

impl Halt {
    /// An error of the helpers that start processes and links, with its causes.
    pub(super) fn machine(error: impl std::fmt::Display) -> Self {
        Self::Machine(format!("{error:#}"))
    }
}

/// A server that runs already.
#[derive(Debug, Clone)]
pub(super) struct Given {
    /// Where it answers.
    pub addr: SocketAddr,
    /// What it is called: an address may serve several hosts.
    pub host: String,
    /// What stands before every path.
    pub base: String,
    /// Token and its file, for the clients.
    pub credentials: Credentials,
}

/// What the clients of a given server need.
#[derive(Debug, Clone, Default)]
pub(super) struct Credentials {
    /// Variables.
    pub env: Vec<(String, String)>,
    /// Flags.
    pub flags: Vec<String>,
}

/// The place.
pub(super) struct Stage {
    folder: PathBuf,
    binary: Binary,
    runtime: Handle,
    stop: Stop,
    given: Option<Given>,
    own: Mutex<Option<Server>>,
    net: Mutex<Net>,
    server_kills: AtomicU32,
    odd_ends: Mutex<Vec<String>>,
}

/// Where requests go, and the links that have to know.
struct Net {
    upstream: SocketAddr,
    links: BTreeMap<u32, Arc<FaultProxy>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stage {
    /// In `folder`, with a server of its own over a store there.
    ///
    /// # Errors
    /// The server does not start.
    pub(super) fn with_own_server(folder: &Path, binary: Binary, runtime: Handle, stop: Stop) -> Result<Self, Halt> {
        // A file of its own, so that no tallyonce.toml of the working folder speaks to it.
        std::fs::write(folder.join(SETTINGS), SERVE).map_err(Halt::machine)?;
        let server = serve(&binary, folder)?;
        Ok(Self::new(folder, binary, runtime, stop, server.addr(), Some(server), None))
    }

    /// In `folder`, before a server that is not ours to kill.
    pub(super) fn before(folder: &Path, binary: Binary, runtime: Handle, stop: Stop, given: Given) -> Self {
        Self::new(folder, binary, runtime, stop, given.addr, None, Some(given))
    }

    fn new(
        folder: &Path,
        binary: Binary,
        runtime: Handle,
        stop: Stop,
        upstream: SocketAddr,
        own: Option<Server>,
        given: Option<Given>,
    ) -> Self {
        Self {
            folder: folder.to_owned(),
            binary,
            runtime,
            stop,
            given,
            own: Mutex::new(own),
            net: Mutex::new(Net { upstream, links: BTreeMap::new() }),
            server_kills: AtomicU32::new(0),
            odd_ends: Mutex::new(Vec::new()),
        }
    }

    /// Where our own server answers, past every link.
    pub(super) fn direct_url(&self) -> String {
        format!("http://{}", lock(&self.net).upstream)
    }

    /// The store of our own server.
    pub(super) fn store(&self) -> PathBuf {
        self.folder.join(STORE)
    }

    /// A path below the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// True once somebody asked to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_requested()
    }

    /// Opens the link of push `number`, which does these faults to its writes.
    ///
    /// # Errors
    /// No port is free.
    pub(super) fn link(&self, number: u32, faults: Vec<Option<Fault>>) -> Result<Arc<FaultProxy>, Halt> {
        // The upstream is read where the link becomes known, or a server that moves in between would be missed.
        let mut net = lock(&self.net);
        let link = Arc::new(
            self.runtime.block_on(FaultProxy::start(net.upstream, Plan::list(faults))).map_err(Halt::machine)?,
        );
        if let Some(given) = &self.given {
            link.set_host(&given.host);
        }
        net.links.insert(number, Arc::clone(&link));
        Ok(link)
    }

    /// Forgets the link of a push; it closes when nobody holds it.
    pub(super) fn unlink(&self, number: u32) {
        lock(&self.net).links.remove(&number);
    }

    /// A client command through this link, in the folder, as a job on a CI that nobody knows.
    pub(super) fn client(&self, link: &FaultProxy, command: &str) -> Run {
        let base = self.given.as_ref().map_or("", |given| &given.base);
        let run = Run::new(&self.binary)
            .args([command, "--json", "--to", &format!("{}{base}", link.url())])
            .env("CI", "true")
            .folder(&self.folder);
        match &self.given {
            Some(given) => run.args(&given.credentials.flags).envs(given.credentials.env.iter().cloned()),
            None => run,
        }
    }

    /// Waits for a client's end; kills it if it hangs.
    ///
    /// # Errors
    /// Somebody asked to stop: it is killed too.
    pub(super) fn finish(&self, client: Running) -> Result<Finished, Halt> {
        for _ in 0..GLANCES_MAX {
            if client.ended(GLANCE) {
                return client.wait(LAST_WORDS).map_err(Halt::machine);
            }
            if self.is_stopped() {
                return Err(Halt::Stopped);
            }
        }
        client.wait(Duration::ZERO).map_err(Halt::machine)
    }

    /// Kills our own server at once, and starts another one over the same store.
    ///
    /// # Errors
    /// It does not start.
    pub(super) fn kill_server(&self) -> Result<(), Halt> {
        let mut own = lock(&self.own);
        let Some(server) = own.as_mut() else { return Ok(()) };
        let ended = server.kill9().map_err(Halt::machine)?;
        if ended.was_killed() {
            self.server_kills.fetch_add(1, Ordering::Relaxed);
        } else {
            lock(&self.odd_ends).push(format!("the server had ended by itself: {ended}"));
        }
        let next = serve(&self.binary, &self.folder)?;
        let mut net = lock(&self.net);
        net.upstream = next.addr();
        for link in net.links.values() {
            link.set_upstream(net.upstream);
        }
        *own = Some(next);
        Ok(())
    }

    /// How often it was killed.
    pub(super) fn server_kills(&self) -> u32 {
        self.server_kills.load(Ordering::Relaxed)
    }

    /// Ends our own server as an operator does, and says how servers ended that should not have.
    pub(super) fn close(&self) -> Vec<String> {
        let mut odd = std::mem::take(&mut *lock(&self.odd_ends));
        if let Some(mut server) = lock(&self.own).take() {
            match server.stop(LAST_WORDS) {
                Ok(ended) if ended.code == Some(0) => {}
                Ok(ended) => odd.push(format!("the server did not stop as asked: {ended}")),
                Err(error) => odd.push(format!("the server was gone: {error:#}")),
            }
        }
        odd
    }
}

/// The name of the store in the folder.
const STORE: &str = "drill.db";
/// The name of our own server's settings.
const SETTINGS: &str = "serve.toml";
/// They bound a body so low that a large report has to be staged, and so high that two chunks of it fit.
const SERVE: &str = "[serve]\nbody-bytes-max = 16384\n";

fn serve(binary: &Binary, folder: &Path) -> Result<Server, Halt> {
    let store = format!("sqlite:{}", folder.join(STORE).display());
    let settings = folder.join(SETTINGS).display().to_string();
    Server::start(binary, &store, &[], &["--config", &settings]).map_err(Halt::machine)
}
