//! What a call to a product came to, if not to an answer: the classes of `facts/targets.md`, section 2.1, the same for all.
//! The rule in one line: "nothing was written" is believed only where no byte left, or where the product says so in the form
//! that is its own; everything unclear may have been written.

use std::fmt;

use serde_json::Value;

use super::caller::Nature;
use crate::classify::{Answer, Failure, classify_failure};
use crate::retry_after::retry_after_ms;
use domain::{Cause, Delivery};

/// How long to wait after a `429` that doesn't say, in milliseconds.
const WAIT_MS: u64 = 60_000;
/// The longest wait that is kept to, in milliseconds.
const WAIT_MS_MAX: u64 = 120_000;
/// Most characters of a strange answer that are shown.
const SHOWN_CHARS_MAX: usize = 200;

/// Why a call gave nothing that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing left this machine: it may be tried again.
    NotSent(Cause),
    /// The product refused before it did anything, because there was too much: again after so many milliseconds.
    Wait {
        /// In words.
        what: String,
        /// The wait.
        after_ms: u64,
    },
    /// Too large: again with less.
    TooLarge(String),
    /// The product says that it is there already. Whether it is ours, reading shows.
    Exists(String),
    /// Refused, and nothing is written: as it is, it never will be.
    Refused(String),
    /// Refused because of who asks: nothing else will be taken either.
    Denied(String),
    /// What is written to is not there, or takes nothing more.
    Gone(String),
    /// No answer, or one that doesn't say what happened: it may be written.
    Unknown(String),
}

impl Trouble {
    /// True if it surely had no effect.
    pub fn had_no_effect(&self) -> bool {
        !matches!(self, Trouble::Unknown(_) | Trouble::Exists(_))
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::NotSent(cause) => f.write_str(&cause.what),
            Trouble::Wait { what, after_ms } => write!(f, "{what}; to be asked again in {} s", after_ms.div_ceil(1000)),
            Trouble::TooLarge(what)
            | Trouble::Exists(what)
            | Trouble::Refused(what)
            | Trouble::Denied(what)
            | Trouble::Gone(what)
            | Trouble::Unknown(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Trouble {}

/// A request without a whole answer.
pub(crate) fn of_failure(failure: &Failure) -> Trouble {
    match classify_failure::<()>(failure) {
        Delivery::NotSent(cause) => Trouble::NotSent(cause),
        Delivery::PossiblyWritten(cause) => Trouble::Unknown(cause.what),
        Delivery::Rejected(problem) => Trouble::Unknown(problem.detail),
        Delivery::Recorded(()) => Trouble::Unknown("an answer that says nothing".to_owned()),
    }
}

/// Sorts an answer by its status. `words`: what the product's own error form says, if the answer has that form; an
/// answer of another form came from something in between. What that says of a question is no word of the product on what
/// it holds.
///
/// # Errors
/// Every answer but a success.
pub fn judge(answer: Answer, nature: Nature, words: impl Fn(&Answer) -> Option<String>) -> Result<Answer, Trouble> {
    let said = words(&answer);
    let what = || match &said {
        Some(said) => format!("status {}: {said}", answer.status),
        None => in_words(&answer),
    };
    let strange = said.is_none() && is_page(&answer);
    let unsaid = said.is_none() && !answer.body.trim_ascii().is_empty();
    Err(match answer.status {
        200..=299 => return Ok(answer),
        401 => Trouble::Denied(what()),
        403 if strange && nature == Nature::Reads => Trouble::Denied(what()),
        // A gateway that knows no way says it as JSON too: only the product's own form, or nothing at all, is its word.
        404 | 410 if unsaid && nature == Nature::Reads => Trouble::Unknown(what()),
        // A filter in between minds what is in this request, and not who asks.
        403 if strange && !asks_who(&answer) => Trouble::Refused(what()),
        403 => Trouble::Denied(what()),
        404 | 410 => Trouble::Gone(what()),
        409 => Trouble::Exists(what()),
        413 => Trouble::TooLarge(what()),
        429 => Trouble::Wait { what: what(), after_ms: wait_ms(&answer) },
        400..=407 | 411..=428 | 431 if said.is_some() => Trouble::Refused(what()),
        _ => Trouble::Unknown(what()),
    })
}

/// True for a text that no interface gives: something in between answers with a page for people.
fn is_page(answer: &Answer) -> bool {
    let is_json = || serde_json::from_slice::<Value>(&answer.body).is_ok();
    !answer.body.trim_ascii().is_empty() && !is_json()
}

/// True if the answer's headers say that it is about the account: a page for people may have no other form.
fn asks_who(answer: &Answer) -> bool {
    ["www-authenticate", "x-seraph-loginreason", "x-authentication-denied-reason"]
        .iter()
        .any(|name| answer.headers.contains_key(*name))
}

/// The JSON of a success. Anything else under a success (a login page, a page of a proxy) says nothing of the write.
///
/// # Errors
/// [`Trouble::Unknown`].
pub fn json(answer: &Answer) -> Result<Value, Trouble> {
    serde_json::from_slice(&answer.body).map_err(|_| Trouble::Unknown(in_words(answer)))
}

/// What went wrong with a question before anything was written: the answer is missing, and no effect is in doubt.
pub(crate) fn before_writing(trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Unknown(what) => Trouble::NotSent(Cause::new(what)),
        other => other,
    }
}

fn wait_ms(answer: &Answer) -> u64 {
    // Some products always send 0.
    retry_after_ms(&answer.headers).map_or(WAIT_MS, |ms| ms.clamp(1000, WAIT_MS_MAX))
}

pub(crate) fn in_words(answer: &Answer) -> String {
    let body = String::from_utf8_lossy(&answer.body);
    let shown: String = body.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect();
    let shown = if shown.trim().is_empty() { "an empty body".to_owned() } else { format!("{:?}", shown.trim()) };
    format!("status {} from {}, which is not an answer of the product's form: {shown}", answer.status, answer.url)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn judged(status: u16, body: &str, header: Option<&'static str>) -> Trouble {
        judged_of(Nature::Writes, status, body, header)
    }

    fn judged_of(nature: Nature, status: u16, body: &str, header: Option<&'static str>) -> Trouble {
        let mut headers = HeaderMap::new();
        if let Some(name) = header {
            headers.insert(name, "x".parse().unwrap());
        }
        let answer = Answer { status, headers, body: body.to_owned().into(), url: "https://there".to_owned() };
        let words =
            |answer: &Answer| Some(serde_json::from_slice::<Value>(&answer.body).ok()?.get("error")?.to_string());
        judge(answer, nature, words).unwrap_err()
    }

    #[test]
    fn a_filter_in_between_refuses_one_request_and_not_the_account() {
        let page = "<html>Request blocked</html>";
        assert!(matches!(judged(403, page, None), Trouble::Refused(what) if what.contains("Request blocked")));
        assert!(matches!(judged(403, r#"{"error": "no right to write"}"#, None), Trouble::Denied(_)));
        assert!(matches!(judged(403, page, Some("x-seraph-loginreason")), Trouble::Denied(_)));
        for body in ["", r#"{"reason": "scope"}"#] {
            assert!(matches!(judged(403, body, None), Trouble::Denied(_)), "{body}");
        }
        assert!(matches!(judged(401, page, None), Trouble::Denied(_)));
    }

    #[test]
    fn a_page_is_no_word_on_what_the_product_holds() {
        let asked = |status, body| judged_of(Nature::Reads, status, body, None);
        let page = "<html>Nothing behind this address answers</html>";
        assert!(matches!(asked(403, page), Trouble::Denied(_)));
        for status in [404, 410] {
            assert!(matches!(asked(status, page), Trouble::Unknown(_)), "{status}");
        }
        assert!(matches!(asked(404, r#"{"error": "no such run"}"#), Trouble::Gone(_)));
        assert!(matches!(asked(404, ""), Trouble::Gone(_)));
    }

    #[test]
    fn the_json_of_a_gateway_is_no_word_on_what_the_product_holds() {
        let gateway = r#"{"message": "no Route matched with those values"}"#;
        for status in [404, 410] {
            assert!(matches!(judged_of(Nature::Reads, status, gateway, None), Trouble::Unknown(_)), "{status}");
            assert!(matches!(judged(status, gateway, None), Trouble::Gone(_)), "what is refused isn't written");
        }
    }
}
