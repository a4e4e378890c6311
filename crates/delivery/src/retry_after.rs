//! What `Retry-After` asks for, in milliseconds. Must not know a clock: a date counts from the answer's own `Date`.

use ::http::HeaderMap;
use ::http::header::{DATE, RETRY_AFTER};
use jiff::Timestamp;
use jiff::fmt::rfc2822;

/// The wait that an answer asks for: seconds, or a date relative to the answer's own. `None` if it asks for nothing
/// that can be read; a date without a `Date` to hold it against says nothing, as this machine's clock may be wrong.
pub(crate) fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return Some(text.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1000));
    }
    let until = http_date(text)?;
    let from = http_date(headers.get(DATE)?.to_str().ok()?)?;
    u64::try_from(until.as_millisecond() - from.as_millisecond()).ok().or(Some(0))
}

fn http_date(text: &str) -> Option<Timestamp> {
    rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::http::HeaderValue;

    fn wait(retry_after: &'static str, date: Option<&'static str>) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static(retry_after));
        if let Some(date) = date {
            headers.insert(DATE, HeaderValue::from_static(date));
        }
        retry_after_ms(&headers)
    }

    #[test]
    fn both_forms_are_read_and_nonsense_says_nothing() {
        let now = Some("Sun, 06 Nov 1994 08:49:00 GMT");
        assert_eq!(wait("7", None), Some(7000));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:37 GMT", now), Some(37_000));
        assert_eq!(wait("Sun, 06 Nov 1994 08:48:00 GMT", now), Some(0), "a date that has passed");
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:37 GMT", None), None);
        assert_eq!(wait("soon", now), None);
        assert_eq!(wait("-3", now), None);
        assert_eq!(wait("99999999999999999999999", None), Some(u64::MAX));
    }
}
