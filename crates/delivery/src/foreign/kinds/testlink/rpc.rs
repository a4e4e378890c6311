//! Calls to `TestLink`: XML-RPC with one struct and a key in it, where errors are normal answers. Must not know what is
//! called.

use http::Method;
use serde_json::{Value, json};

use super::super::xmlrpc::{self, Reply, whole};
use crate::foreign::caller::{Call, Caller, Nature};
use crate::foreign::trouble::{Trouble, in_words};
use crate::secret::Secret;

const PATH: &str = "/lib/api/xmlrpc/v1/xmlrpc.php";

/// One installation.
#[derive(Debug)]
pub(super) struct Rpc {
    caller: Caller,
    key: Secret,
}

impl Rpc {
    pub(super) fn new(caller: Caller, key: Secret) -> Self {
        Self { caller, key }
    }

    /// A call that changes nothing.
    pub(super) async fn read(&self, method: &str, args: Value) -> Result<Value, Trouble> {
        self.call(Nature::Reads, method, args).await
    }

    /// A call that changes something.
    pub(super) async fn write(&self, method: &str, args: Value) -> Result<Value, Trouble> {
        self.call(Nature::Writes, method, args).await
    }

    async fn call(&self, nature: Nature, method: &str, mut args: Value) -> Result<Value, Trouble> {
        args["devKey"] = json!(self.key.expose());
        let body = xmlrpc::call(method, std::slice::from_ref(&args));
        let call = Call::new(Method::POST, PATH, nature).content("text/xml", body);
        let answer = self.caller.call(call, xmlrpc::words).await?;
        match xmlrpc::reply(&answer.body) {
            Some(Reply::Value(value)) => match error(&value) {
                Some((code, text)) => Err(trouble(method, code, &text)),
                None => Ok(value),
            },
            // The transport's own errors: no such method, no such parameters.
            Some(Reply::Fault { code: code @ -32699..=-32600, text }) => {
                Err(Trouble::Refused(format!("{method}: {text} (fault {code})")))
            }
            Some(Reply::Fault { code, text }) => Err(Trouble::Unknown(format!("{method}: {text} (fault {code})"))),
            None => Err(Trouble::Unknown(in_words(&answer))),
        }
    }
}

/// An error is an array that begins with a struct of `code` and `message`, and nothing else that a row would have.
fn error(value: &Value) -> Option<(i64, String)> {
    let first = value.as_array()?.first()?.as_object()?;
    let code = first.get("code").and_then(whole)?;
    let message = first.get("message")?;
    (first.len() == 2).then(|| (code, xmlrpc::text(message)))
}

/// What `TestLink`'s error numbers mean (its `APIErrors`).
fn trouble(method: &str, code: i64, text: &str) -> Trouble {
    let what = format!("{method}: {text} (error {code})");
    match code {
        100 | 2000 | 2010 => Trouble::Denied(what),
        // Plan, build, project.
        3000 | 3010 | 3020 | 3031..=3033 | 4000 | 4010 | 4040 | 7000 | 7006 | 7011 => Trouble::Gone(what),
        3034 | 3045 | 4030 => Trouble::Exists(what),
        1.. => Trouble::Refused(what),
        // "Something went wrong", after who knows what.
        _ => Trouble::Unknown(what),
    }
}
