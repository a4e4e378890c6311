//! Calls to Xray Cloud: a token that is asked for with a client's id and secret, and GraphQL, which reports errors within
//! a success. Must not know what is asked.

use std::sync::atomic::{AtomicBool, Ordering};

use domain::Cause;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::super::jira;
use crate::classify::Answer;
use crate::foreign::caller::{Call, Caller, Nature};
use crate::foreign::trouble::{Trouble, in_words, json as json_of};
use crate::secret::Secret;

/// How long to wait before a write that was refused for its token is sent with a new one, in milliseconds.
const NEW_TOKEN_MS: u64 = 1000;
/// Words of a fault on the other side, in errors that are reported within a success: it may have gone on all the same.
const FAULTS: [&str; 6] = ["internal", "timeout", "timed out", "unexpected", "try again", "unavailable"];

/// A client of one tenant.
#[derive(Debug)]
pub(super) struct Session {
    caller: Caller,
    client_id: String,
    client_secret: Secret,
    token: Mutex<Option<Token>>,
}

#[derive(Debug, Clone)]
struct Token {
    text: Secret,
    /// It was taken before, so that a refusal means that its day is over (tokens live 24 hours).
    proven: bool,
}

impl Session {
    pub(super) fn held_back_ms(&self, calls: usize) -> u64 {
        self.caller.held_back_ms(calls)
    }

    pub(super) fn new(caller: Caller, client_id: String, client_secret: Secret) -> Self {
        Self { caller, client_id, client_secret, token: Mutex::new(None) }
    }

    /// One call with the token. A reading is done again, once, if the token's day is over; a write was refused then,
    /// and its caller is told to come again.
    pub(super) async fn call(&self, call: Call) -> Result<Answer, Trouble> {
        let token = self.token().await.map_err(|trouble| before(call.nature(), trouble))?;
        match self.attempt(&call, &token).await {
            Attempt::Ended(ended) => ended,
            Attempt::TokenRefused(what) if !token.proven => Err(Trouble::Denied(what)),
            Attempt::TokenRefused(what) => match call.nature() {
                Nature::Writes => Err(Trouble::Wait { what, after_ms: NEW_TOKEN_MS }),
                Nature::Reads => match self.attempt(&call, &self.token().await?).await {
                    Attempt::Ended(ended) => ended,
                    Attempt::TokenRefused(what) => Err(Trouble::Denied(what)),
                },
            },
        }
    }

    /// The `data` of a query or a mutation. `name` is the one field that must be there.
    pub(super) async fn graphql(
        &self,
        nature: Nature,
        query: &str,
        variables: &Value,
        name: &str,
    ) -> Result<Value, Trouble> {
        let call = Call::post("/api/v2/graphql", &json!({ "query": query, "variables": variables }));
        let call = if nature == Nature::Reads { call.reading() } else { call };
        let answer = self.call(call).await?;
        let mut body = json_of(&answer)?;
        if let Some(trouble) = of_errors(&body) {
            return Err(trouble);
        }
        match body.pointer_mut("/data").and_then(|data| data.get_mut(name)).map(Value::take) {
            Some(value) => Ok(value),
            None => Err(Trouble::Unknown(in_words(&answer))),
        }
    }

    async fn attempt(&self, call: &Call, token: &Token) -> Attempt {
        let refused = AtomicBool::new(false);
        let words = |answer: &Answer| {
            refused.store(answer.status == 401, Ordering::Relaxed);
            jira::member(answer, "error")
        };
        let call = call.clone().header("authorization", &format!("Bearer {}", token.text.expose()));
        let ended = self.caller.call(call, words).await;
        let mut kept = self.token.lock().await;
        let same = kept.as_ref().is_some_and(|kept| kept.text == token.text);
        match ended {
            Err(trouble) if refused.load(Ordering::Relaxed) => {
                if same {
                    *kept = None;
                }
                Attempt::TokenRefused(trouble.to_string())
            }
            ended => {
                if let (true, Ok(_), Some(kept)) = (same, &ended, kept.as_mut()) {
                    kept.proven = true;
                }
                Attempt::Ended(ended)
            }
        }
    }

    /// The token that is kept, or a new one. One login at a time: all others wait for it.
    async fn token(&self) -> Result<Token, Trouble> {
        let mut kept = self.token.lock().await;
        if let Some(token) = kept.as_ref() {
            return Ok(token.clone());
        }
        let body = json!({ "client_id": self.client_id, "client_secret": self.client_secret.expose() });
        let call = Call::post("/api/v2/authenticate", &body).reading();
        let answer = self.caller.call(call, |answer| jira::member(answer, "error")).await?;
        // A bare JSON text is the token. Nothing of a strange answer is shown: it may hold one.
        let text = jira::parsed::<String>(&answer)
            .map_err(|_| Trouble::Unknown("the login was answered with something else than a token".to_owned()))?;
        let token = Token { text: Secret::new(&text), proven: false };
        *kept = Some(token.clone());
        Ok(token)
    }
}

enum Attempt {
    Ended(Result<Answer, Trouble>),
    /// 401: nothing was done.
    TokenRefused(String),
}

/// Of a login that failed: the call itself did not leave.
fn before(nature: Nature, trouble: Trouble) -> Trouble {
    match (nature, trouble) {
        (Nature::Writes, Trouble::Unknown(what)) => Trouble::NotSent(Cause::new(format!("login: {what}"))),
        (_, trouble) => trouble,
    }
}

/// Errors that stand within a success. One without a path was found before anything was carried out; of another, the
/// product's words decide.
fn of_errors(body: &Value) -> Option<Trouble> {
    let errors = body.get("errors")?.as_array().filter(|errors| !errors.is_empty())?;
    let text = |error: &Value| error.get("message").and_then(Value::as_str).unwrap_or("no message").to_owned();
    let said = errors.iter().map(text).collect::<Vec<_>>().join("; ");
    let began = errors.iter().any(|error| error.get("path").is_some_and(|path| !path.is_null()));
    let low = said.to_lowercase();
    let some_done = body.get("data").and_then(Value::as_object).is_some_and(|data| data.values().any(|v| !v.is_null()));
    let doubtful = some_done || (began && FAULTS.iter().any(|fault| low.contains(fault)));
    Some(if doubtful { Trouble::Unknown(said) } else { Trouble::Refused(said) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_within_a_success_is_a_refusal_only_if_nothing_can_have_been_done() {
        let of = |body: Value| of_errors(&body);
        assert_eq!(of(json!({ "data": { "a": 1 } })), None);
        assert_eq!(of(json!({ "errors": [], "data": {} })), None);
        let refused = of(json!({ "errors": [{ "message": "no such test", "path": ["a"] }], "data": null }));
        assert_eq!(refused, Some(Trouble::Refused("no such test".to_owned())));
        let fault = of(json!({ "errors": [{ "message": "Internal error", "path": ["a"] }], "data": { "a": null } }));
        assert!(matches!(fault, Some(Trouble::Unknown(_))));
        let half = of(json!({ "errors": [{ "message": "no", "path": ["b"] }], "data": { "a": "done", "b": null } }));
        assert!(matches!(half, Some(Trouble::Unknown(_))));
    }
}
