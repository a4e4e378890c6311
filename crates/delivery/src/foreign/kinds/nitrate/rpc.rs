//! Calls to Nitrate: XML-RPC, one at a time, behind a session. Must not know what is called.

use domain::Cause;
use http::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::super::xmlrpc::{self, Reply};
use crate::foreign::caller::{Call, Caller, Nature};
use crate::foreign::trouble::{Trouble, in_words};
use crate::secret::Secret;

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

    /// A call that changes nothing. Logs in again once if the session has ended.
    pub(super) async fn read<T: DeserializeOwned>(&self, method: &str, params: Value) -> Result<T, Trouble> {
        let said = match self.send(Nature::Reads, method, &params).await {
            Err(Trouble::Denied(_)) => self.send(Nature::Reads, method, &params).await,
            other => other,
        };
        parsed(method, said?)
    }

    /// A call that changes something.
    pub(super) async fn write(&self, method: &str, params: Value) -> Result<Value, Trouble> {
        self.send(Nature::Writes, method, &params).await
    }

    async fn send(&self, nature: Nature, method: &str, params: &Value) -> Result<Value, Trouble> {
        let session = self.session().await?;
        let said = self.post(nature, method, params, Some(&session)).await;
        if matches!(said, Err(Trouble::Denied(_) | Trouble::Unknown(_))) {
            // On newer Pythons a session that has ended is answered as every other fault is: by status 500.
            *self.session.lock().await = None;
        }
        said
    }

    async fn session(&self) -> Result<String, Trouble> {
        let mut kept = self.session.lock().await;
        if let Some(session) = &*kept {
            return Ok(session.clone());
        }
        let who = json!([{"username": self.user, "password": self.password.expose()}]);
        let said = self.post(Nature::Reads, "Auth.login", &who, None).await;
        let session = match said {
            Ok(Value::String(session)) if !session.is_empty() => session,
            Ok(_) => return Err(Trouble::Denied(format!("Auth.login as {} gives no session", self.user))),
            // Newer Pythons answer a wrong password by status 500. Whatever it was: nothing but the login was sent.
            Err(Trouble::Unknown(what)) => {
                return Err(Trouble::NotSent(Cause::new(format!(
                    "Auth.login as {} (wrong password?): {what}",
                    self.user
                ))));
            }
            Err(trouble) => return Err(trouble),
        };
        *kept = Some(session.clone());
        Ok(session)
    }

    async fn post(
        &self,
        nature: Nature,
        method: &str,
        params: &Value,
        session: Option<&str>,
    ) -> Result<Value, Trouble> {
        let params = params.as_array().map_or(&[][..], Vec::as_slice);
        let body = xmlrpc::call(method, params);
        let mut call = Call::new(Method::POST, "/xmlrpc/", nature).content("text/xml", body);
        if let Some(session) = session {
            call = call.header("cookie", &format!("sessionid={session}"));
        }
        let answer = self.caller.call(call, xmlrpc::words).await?;
        match xmlrpc::reply(&answer.body) {
            Some(Reply::Value(value)) => Ok(value),
            Some(Reply::Fault { code, text }) => Err(trouble(method, code, &text)),
            None => Err(Trouble::Unknown(in_words(&answer))),
        }
    }
}

/// A result in the form that is needed.
pub(super) fn parsed<T: DeserializeOwned>(method: &str, value: Value) -> Result<T, Trouble> {
    serde_json::from_value(value).map_err(|e| Trouble::Unknown(format!("{method}: an answer of another form: {e}")))
}

/// What a fault means: Nitrate numbers them as HTTP does.
fn trouble(method: &str, code: i64, text: &str) -> Trouble {
    // A debugging installation adds where in its source it was.
    let what = format!("{method}: {}", text.lines().next().unwrap_or_default());
    match code {
        400 | 501 => Trouble::Refused(what),
        401 | 403 => Trouble::Denied(what),
        404 => Trouble::Gone(what),
        409 => Trouble::Exists(what),
        _ if text.contains("is not supported") => Trouble::Refused(what),
        _ => Trouble::Unknown(format!("{what} (fault {code})")),
    }
}
