//! How servers are reached: certificates, time-outs, the token. Must not connect.

use std::path::PathBuf;
use std::time::Duration;

use delivery::{ProxySettings, Secret};
use domain::ci::Env;

use super::Layers;
use crate::cli::Globals;
use crate::env;
use crate::failure::Failure;

/// What every request to a server needs.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionSettings {
    /// Further certificate authorities, PEM.
    pub ca_file: Option<PathBuf>,
    /// The client's certificate and its key, PEM.
    pub client_identity: Option<(PathBuf, PathBuf)>,
    /// How long one request may take.
    pub timeout: Option<Duration>,
    /// The token, if there is one.
    pub token: Option<Secret>,
    /// Proxies, as the environment names them.
    pub proxy: ProxySettings,
}

impl ConnectionSettings {
    /// Of the flags that every command has.
    ///
    /// # Errors
    /// The token's file cannot be read, or one half of the client's certificate is missing.
    pub(crate) fn resolve(globals: &Globals, layers: &Layers<'_>, env: &Env) -> Result<Self, Failure> {
        let path = |id, typed: &Option<PathBuf>, key, from: fn(&super::ConfigFile) -> Option<PathBuf>| {
            layers.pick(id, typed.clone(), key, from).map(|setting| setting.value)
        };
        let cert = path("client_cert", &globals.client_cert, "client-cert", |f| f.client_cert.clone());
        let key = path("client_key", &globals.client_key, "client-key", |f| f.client_key.clone());
        let client_identity = match (cert, key) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            (Some(_), None) => return Err(half("--client-cert is given without --client-key")),
            (None, Some(_)) => return Err(half("--client-key is given without --client-cert")),
        };
        Ok(Self {
            ca_file: path("ca_file", &globals.ca_file, "ca-file", |f| f.ca_file.clone()),
            client_identity,
            timeout: layers.pick("timeout", globals.timeout, "timeout", |f| f.timeout).map(|setting| setting.value),
            token: token(globals, env)?,
            proxy: proxies(env),
        })
    }
}

fn half(what: &str) -> Failure {
    Failure::usage(what, "Give both the certificate and its key, or neither.")
}

fn token(globals: &Globals, env: &Env) -> Result<Option<Secret>, Failure> {
    let Some(path) = &globals.token_file else {
        return Ok(env.get(env::TOKEN).map(Secret::new));
    };
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(
            format!("the token file {} can't be read: {error}", path.display()),
            "Mend the path, or give the token in the variable TALLYONCE_TOKEN.",
        )
    })?;
    let token = text.trim();
    let one_word = !token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic());
    if !one_word {
        return Err(Failure::usage(
            format!("the token file {} does not hold one token on one line", path.display()),
            "Write the token into it, and nothing else.",
        ));
    }
    Ok(Some(Secret::new(token)))
}

/// Lower case first, as other tools do.
fn proxies(env: &Env) -> ProxySettings {
    let first = |names: &[&'static str]| env.first(names).map(|(_, value)| value);
    ProxySettings {
        https: first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]).map(Secret::new),
        http: first(&["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]).map(Secret::new),
        no_proxy: first(&["no_proxy", "NO_PROXY"]).map(str::to_owned),
    }
}
