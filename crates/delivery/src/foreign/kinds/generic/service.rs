//! One call to a described service and what its answer says. Must not know what is called for.

use std::sync::OnceLock;

use http::HeaderValue;
use reqwest::Url;
use serde_json::Value;

use super::calls::CallSpec;
use super::config::ErrorSpec;
use super::template::Fill;
use crate::classify::Answer;
use crate::foreign::caller::{Call, Caller, Nature};
use crate::foreign::trouble::{Trouble, json};

/// Calls it.
#[derive(Debug)]
pub(super) struct Service {
    caller: Caller,
    errors: ErrorSpec,
}

impl Service {
    pub(super) fn new(caller: Caller, errors: ErrorSpec) -> Self {
        Self { caller, errors }
    }

    pub(super) fn held_back_ms(&self, calls: usize) -> u64 {
        self.caller.held_back_ms(calls)
    }

    /// The error that a document tells, if it tells one.
    pub(super) fn told(&self, document: &Value) -> Option<String> {
        self.errors.told(document)
    }

    /// A call that changes something. Its answer, if it has one.
    pub(super) async fn write(&self, call: &CallSpec, fill: Fill<'_>) -> Result<Option<Value>, Trouble> {
        let path = call.path.filled(fill).map_err(Trouble::Refused)?;
        self.call(composed(call, fill, path, Nature::Writes)?).await
    }

    /// A call that asks, at its own address or at one that the service gave.
    pub(super) async fn read(&self, call: &CallSpec, fill: Fill<'_>, path: Option<String>) -> Result<Value, Trouble> {
        let path = path.map_or_else(|| call.path.filled(fill), Ok).map_err(Trouble::Refused)?;
        let answer = self.call(composed(call, fill, path, Nature::Reads)?).await?;
        answer.ok_or_else(|| Trouble::Unknown("an empty answer where a document is expected".to_owned()))
    }

    /// A call that deletes: what is not there is deleted.
    pub(super) async fn delete(&self, call: &CallSpec, fill: Fill<'_>) -> Result<(), Trouble> {
        match self.write(call, fill).await {
            Err(Trouble::Gone(_)) => Ok(()),
            done => done.map(drop),
        }
    }

    /// Path and query of a link of the service's own. The token goes to no other place.
    pub(super) fn path_of_link(&self, link: &str) -> Result<String, Trouble> {
        let base = self.caller.base().to_string();
        let url = Url::parse(&format!("{base}/")).and_then(|url| url.join(link)).map(String::from);
        let path =
            url.as_deref().ok().and_then(|url| url.strip_prefix(&base)).filter(|path| path.starts_with(['/', '?']));
        match path {
            Some(path) => Ok(path.split('#').next().unwrap_or_default().to_owned()),
            None => {
                Err(Trouble::Unknown(format!("the next page is said to be at {link:?}, which is not under {base}")))
            }
        }
    }

    async fn call(&self, call: Call) -> Result<Option<Value>, Trouble> {
        let said = OnceLock::new();
        let words = |answer: &Answer| {
            let told = self.errors.told(&serde_json::from_slice(&answer.body).ok()?)?;
            Some(said.get_or_init(|| told).clone())
        };
        match self.caller.call(call, words).await {
            Ok(answer) => self.document(&answer),
            Err(trouble) => Err(self.understood(trouble, said.into_inner())),
        }
    }

    /// What a success says. An empty one is believed only where its status means it: a page of something in between is
    /// never empty, and never JSON.
    fn document(&self, answer: &Answer) -> Result<Option<Value>, Trouble> {
        if answer.body.is_empty() && answer.status != 200 {
            return Ok(None);
        }
        let document = json(answer)?;
        match self.errors.told(&document) {
            Some(told) if self.errors.in_success => Err(self.understood(Trouble::Refused(told.clone()), Some(told))),
            _ => Ok(Some(document)),
        }
    }

    /// Looks for what the service's own words mean, where the status alone doesn't say it.
    fn understood(&self, trouble: Trouble, said: Option<String>) -> Trouble {
        let Some(said) = said else {
            return match trouble {
                // Of something in between: whether it got there is not known.
                Trouble::Gone(what) => Trouble::Unknown(what),
                other => other,
            };
        };
        let means = |text: &Option<String>| text.as_deref().is_some_and(|text| said.contains(text));
        match trouble {
            Trouble::Refused(what) | Trouble::Exists(what) | Trouble::Unknown(what) if means(&self.errors.exists) => {
                Trouble::Exists(what)
            }
            Trouble::Refused(what) | Trouble::Exists(what) | Trouble::Denied(what) if means(&self.errors.gone) => {
                Trouble::Gone(what)
            }
            other => other,
        }
    }
}

fn composed(spec: &CallSpec, fill: Fill<'_>, path: String, nature: Nature) -> Result<Call, Trouble> {
    let mut call = Call::new(spec.method.clone(), path, nature);
    if let Some(body) = &spec.body {
        call = call.json(&body.filled(fill, spec.omit_null));
    }
    for (name, text) in &spec.headers {
        let value = HeaderValue::from_str(&text.filled(fill));
        let value = value.map_err(|_| Trouble::Refused(format!("header {name} can't hold its value")))?;
        call = call.named_header(name.clone(), value);
    }
    Ok(call)
}
