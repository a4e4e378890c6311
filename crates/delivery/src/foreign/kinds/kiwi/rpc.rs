//! Calls to Kiwi TCMS: JSON-RPC 2.0 in batches, behind a session. Must not know what is called.
//!
//! A batch is carried out one by one and is no transaction: each call has an answer of its own, or none.

use std::collections::BTreeMap;

use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::foreign::caller::{Call, Caller, Nature};
use crate::foreign::trouble::{Trouble, in_words, json};
use crate::http::Answer;
use crate::secret::Secret;

/// JSON-RPC: there is no such method.
const NO_METHOD: i64 = -32601;
/// JSON-RPC: the method takes other parameters.
const WRONG_PARAMS: i64 = -32602;

/// One call.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    method: &'static str,
    params: Value,
}

/// A call by its name, with its parameters in their order.
pub(super) fn ask(method: &'static str, params: Value) -> Ask {
    Ask { method, params }
}

/// What one call of a batch came to.
pub(super) type Said = Result<Value, Trouble>;

#[derive(Debug, Deserialize)]
struct Reply {
    id: Option<u64>,
    #[serde(default)]
    result: Value,
    error: Option<Fault>,
}

#[derive(Debug, Deserialize)]
struct Fault {
    code: i64,
    message: String,
}

/// One installation, and the session there.
#[derive(Debug)]
pub(super) struct Rpc {
    caller: Caller,
    user: String,
    password: Secret,
    session: Mutex<Option<String>>,
}

impl Rpc {
    pub(super) fn new(caller: Caller, user: String, password: Secret) -> Self {
        Self { caller, user, password, session: Mutex::new(None) }
    }

    /// Calls that change nothing: all their results, or trouble. Logs in again once if the session has ended.
    pub(super) async fn read(&self, asks: &[Ask]) -> Result<Vec<Value>, Trouble> {
        match self.read_once(asks).await {
            Err(Trouble::Denied(_)) => {
                *self.session.lock().await = None;
                self.read_once(asks).await
            }
            other => other,
        }
    }

    /// One reading whose rows have that form.
    pub(super) async fn rows<T: DeserializeOwned>(&self, ask: Ask) -> Result<Vec<T>, Trouble> {
        let said = self.read(&[ask]).await?;
        parsed(said.into_iter().next().unwrap_or_default())
    }

    async fn read_once(&self, asks: &[Ask]) -> Result<Vec<Value>, Trouble> {
        self.send(Nature::Reads, asks).await?.into_iter().collect()
    }

    /// Calls that change something: what each came to.
    pub(super) async fn write(&self, asks: &[Ask]) -> Result<Vec<Said>, Trouble> {
        self.send(Nature::Writes, asks).await
    }

    /// One call that changes something.
    pub(super) async fn write_one(&self, ask: Ask) -> Said {
        let said = self.write(&[ask]).await?;
        said.into_iter().next().unwrap_or_else(|| Err(Trouble::Unknown("an answer without a result".to_owned())))
    }

    async fn send(&self, nature: Nature, asks: &[Ask]) -> Result<Vec<Said>, Trouble> {
        if asks.is_empty() {
            return Ok(Vec::new());
        }
        let session = self.session().await?;
        self.post(nature, asks, Some(&session)).await
    }

    async fn session(&self) -> Result<String, Trouble> {
        let mut kept = self.session.lock().await;
        if let Some(session) = &*kept {
            return Ok(session.clone());
        }
        let login = ask("Auth.login", json!([self.user, self.password.expose()]));
        let said = self.post(Nature::Reads, &[login], None).await?;
        let session = match said.into_iter().next() {
            Some(Ok(Value::String(session))) if !session.is_empty() => session,
            Some(Err(trouble)) => return Err(Trouble::Denied(format!("Auth.login as {}: {trouble}", self.user))),
            _ => return Err(Trouble::Unknown("Auth.login was answered without a session".to_owned())),
        };
        *kept = Some(session.clone());
        Ok(session)
    }

    async fn post(&self, nature: Nature, asks: &[Ask], session: Option<&str>) -> Result<Vec<Said>, Trouble> {
        // From 1: versions of Kiwi take a call numbered 0 for one that wants no answer.
        let calls: Vec<Value> = (1_u64..)
            .zip(asks)
            .map(|(id, ask)| json!({"jsonrpc": "2.0", "id": id, "method": ask.method, "params": ask.params}))
            .collect();
        let body = if let [one] = &calls[..] { one.clone() } else { Value::from(calls) };
        let mut call = Call::new(Method::POST, "/json-rpc/", nature).json(&body);
        if let Some(session) = session {
            call = call.header("cookie", &format!("sessionid={session}"));
        }
        let answer = self.caller.call(call, words).await?;
        Self::said(&answer, asks)
    }

    /// The result of each call, by its number: nothing says that they come in order.
    fn said(answer: &Answer, asks: &[Ask]) -> Result<Vec<Said>, Trouble> {
        let replies = replies(&json(answer)?).ok_or_else(|| Trouble::Unknown(in_words(answer)))?;
        let of_all = replies.iter().find(|reply| reply.id.is_none()).and_then(|reply| reply.error.as_ref());
        if let Some(fault) = of_all {
            // About the batch, not about one of its calls.
            return Err(Trouble::Unknown(format!("error {}: {}", fault.code, fault.message)));
        }
        let mut by_id: BTreeMap<u64, Reply> =
            replies.into_iter().filter_map(|reply| Some((reply.id?, reply))).collect();
        let said = (1_u64..).zip(asks).map(|(id, ask)| match by_id.remove(&id) {
            Some(Reply { error: Some(fault), .. }) => Err(trouble(ask.method, &fault)),
            Some(Reply { result, .. }) => Ok(result),
            None => Err(Trouble::Unknown(format!("{} was not answered", ask.method))),
        });
        Ok(said.collect())
    }
}

/// A result in the form that is needed.
pub(super) fn parsed<T: DeserializeOwned>(value: Value) -> Result<T, Trouble> {
    serde_json::from_value(value).map_err(|e| Trouble::Unknown(format!("an answer of another form: {e}")))
}

fn replies(body: &Value) -> Option<Vec<Reply>> {
    match body {
        Value::Array(_) => Vec::deserialize(body).ok(),
        Value::Object(members) if members.contains_key("jsonrpc") => Some(vec![Reply::deserialize(body).ok()?]),
        _ => None,
    }
}

/// The words of Kiwi's own errors, for answers whose status says that something went wrong.
fn words(answer: &Answer) -> Option<String> {
    let body = serde_json::from_slice(&answer.body).ok()?;
    replies(&body)?.into_iter().find_map(|reply| reply.error).map(|fault| fault.message)
}

/// What an error means. Kiwi gives one number to all that goes wrong inside, so its words decide; what they don't
/// settle (a database that was locked, say) may have been half done.
fn trouble(method: &str, fault: &Fault) -> Trouble {
    let said = fault.message.strip_prefix("Internal error: ").unwrap_or(&fault.message);
    let what = format!("{method}: {said}");
    let has = |words: &str| said.contains(words);
    if fault.code == NO_METHOD {
        Trouble::Refused(format!("this version of Kiwi TCMS has no {method}"))
    } else if fault.code == WRONG_PARAMS {
        Trouble::Refused(what)
    } else if has("Authentication failed") || has("Permission denied") || has("Wrong username or password") {
        Trouble::Denied(what)
    } else if has("matching query does not exist") {
        Trouble::Gone(what)
    } else if has("already exists") {
        Trouble::Exists(what)
    } else if said.starts_with("[(")
        || said.starts_with("[[")
        || said.starts_with('{')
        || has("status is not confirmed")
    {
        // A form that was not filled in properly: fields and what is wrong with each.
        Trouble::Refused(what)
    } else {
        Trouble::Unknown(what)
    }
}
