//! What answers say of the product's rate limit, whoever asked. Must not judge, nor keep anything that names a person.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use http::HeaderMap;

use super::probe::RateSeen;

/// How headers begin that speak of a limit.
const SPEAK_OF_IT: [&str; 5] = ["ratelimit", "x-ratelimit", "x-rate-limit", "retry-after", "x-retry-after"];
const HEADERS_MAX: usize = 16;
const VALUE_CHARS_MAX: usize = 80;
const TOO_MANY: u16 = 429;

/// Kept from all answers of one adapter.
#[derive(Debug, Default)]
pub struct Heard(Mutex<RateSeen>);

impl Heard {
    /// Takes an answer's headers down.
    pub(super) fn hear(&self, status: u16, headers: &HeaderMap) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.refusals += u64::from(status == TOO_MANY);
        for (name, value) in headers {
            let speaks = SPEAK_OF_IT.iter().any(|head| name.as_str().starts_with(head));
            let known = seen.headers.contains_key(name.as_str());
            if let (true, Ok(value)) = (speaks && (known || seen.headers.len() < HEADERS_MAX), value.to_str()) {
                let value = value.chars().take(VALUE_CHARS_MAX).collect();
                seen.headers.insert(name.as_str().to_owned(), value);
            }
        }
    }

    /// What was said so far; `None` if nothing was.
    pub fn seen(&self) -> Option<RateSeen> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (seen != RateSeen { headers: BTreeMap::new(), refusals: 0 }).then_some(seen)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn what_speaks_of_a_limit_is_taken_down_and_nothing_else() {
        let heard = Heard::default();
        assert_eq!(heard.seen(), None);
        for (status, left) in [(200, "9"), (429, "0")] {
            let pairs = [("x-ratelimit-remaining", left), ("set-cookie", "secret"), ("retry-after", "17")];
            let headers = pairs.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            heard.hear(status, &HeaderMap::from_iter(headers));
        }
        let seen = heard.seen().unwrap();
        assert_eq!(seen.refusals, 1);
        let shown: Vec<(&str, &str)> = seen.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(shown, [("retry-after", "17"), ("x-ratelimit-remaining", "0")]);
    }
}
