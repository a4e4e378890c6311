//! A real `tallyonce serve`: started on a free port, killed, started again where it was.
//! Must not know the API.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::bail;

use crate::spawn::{Binary, Finished, Run, Running};

/// How long a server may take until it listens.
const START: Duration = Duration::from_secs(30);
/// What it prints before its address.
const SAYS: &str = "listening on http://";

/// A server process over one store. Killed when dropped.
#[derive(Debug)]
pub struct Server {
    command: Run,
    addr: SocketAddr,
    running: Option<Running>,
}

impl Server {
    /// Starts `serve --listen 127.0.0.1:0 --store STORE_URL` with these variables and further arguments, and waits
    /// until it says where it listens.
    ///
    /// # Errors
    /// It ended before that, or took too long; the error shows what it said.
    pub fn start<S: AsRef<str>>(
        binary: &Binary,
        store_url: &str,
        extra_env: &[(String, String)],
        extra_args: &[S],
    ) -> anyhow::Result<Self> {
        let command = Run::new(binary)
            .args(["serve", "--store", store_url])
            .args(extra_args.iter().map(AsRef::as_ref))
            .envs(extra_env.iter().cloned());
        let (running, addr) = listen(&command, "127.0.0.1:0")?;
        Ok(Self { command, addr, running: Some(running) })
    }

    /// Where it listens, or listened.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://` and its address, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The process; `None` once it has been waited for.
    pub fn process(&self) -> Option<&Running> {
        self.running.as_ref()
    }

    /// What it wrote to standard error so far.
    pub fn log(&self) -> String {
        self.running.as_ref().map(Running::stderr).unwrap_or_default()
    }

    /// Kills it at once and waits until it is gone.
    ///
    /// # Errors
    /// It was not running.
    pub fn kill9(&mut self) -> anyhow::Result<Finished> {
        if let Some(running) = &self.running {
            running.kill9();
        }
        self.wait_exit(START)
    }

    /// Asks it to end (`SIGTERM`) and waits until it has; kills it after `patience`.
    ///
    /// # Errors
    /// It was not running.
    pub fn stop(&mut self, patience: Duration) -> anyhow::Result<Finished> {
        if let Some(running) = &self.running {
            running.terminate();
        }
        self.wait_exit(patience)
    }

    /// Waits until it ends by itself, for example at a kill point; kills it after `patience`.
    ///
    /// # Errors
    /// It was not running.
    pub fn wait_exit(&mut self, patience: Duration) -> anyhow::Result<Finished> {
        match self.running.take() {
            Some(running) => running.wait(patience),
            None => bail!("the server is not running"),
        }
    }

    /// Starts it again on the same port and store (killing it first, if it runs), with the same variables.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.restart_with(&[])
    }

    /// As [`Server::restart`], with further variables, which stay and win over earlier ones: an empty
    /// `TALLYONCE_KILL_AT` disarms a kill point.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn restart_with(&mut self, extra_env: &[(String, String)]) -> anyhow::Result<()> {
        if self.running.is_some() {
            self.kill9()?;
        }
        self.command = self.command.clone().envs(extra_env.iter().cloned());
        let (running, addr) = listen(&self.command, &self.addr.to_string())?;
        (self.running, self.addr) = (Some(running), addr);
        Ok(())
    }
}

fn listen(command: &Run, at: &str) -> anyhow::Result<(Running, SocketAddr)> {
    let running = command.clone().args(["--listen", at]).start()?;
    match running.find_in_stderr(START, address_in) {
        Some(addr) => Ok((running, addr)),
        None => bail!("the server did not say where it listens: {}", running.wait(Duration::ZERO)?),
    }
}

/// The address in the line that says it.
fn address_in(log: &str) -> Option<SocketAddr> {
    let after = log.split(SAYS).nth(1)?;
    let end = after.find(|c: char| !(c.is_ascii_hexdigit() || ".:[]".contains(c))).unwrap_or(after.len());
    after[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::address_in;

    #[test]
    fn the_address_is_found_among_other_lines() {
        let log = "store opened\n2026-01-01 INFO listening on http://127.0.0.1:4711\nready\n";
        assert_eq!(address_in(log), Some(([127, 0, 0, 1], 4711).into()));
        assert_eq!(address_in("{\"m\":\"listening on http://127.0.0.1:4711\"}"), Some(([127, 0, 0, 1], 4711).into()));
        assert_eq!(address_in("listening on http://nowhere\n"), None);
        assert_eq!(address_in("listening\n"), None);
    }
}
