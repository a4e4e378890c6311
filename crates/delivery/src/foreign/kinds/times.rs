//! Times as products write them. Must not know which product does.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// `2026-09-21 10:13:20`, in UTC.
pub(super) fn utc(at_ms: u64) -> Option<String> {
    let at = Timestamp::from_millisecond(i64::try_from(at_ms).ok()?).ok()?;
    Some(at.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// Back from what a product shows, with or without a zone; without one it is taken for UTC.
pub(super) fn utc_ms(text: &str) -> Option<u64> {
    let at = match text.parse::<Timestamp>() {
        Ok(at) => at,
        Err(_) => TimeZone::UTC.to_timestamp(text.parse::<DateTime>().ok()?).ok()?,
    };
    u64::try_from(at.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back() {
        assert_eq!(utc(1_790_000_000_000).as_deref(), Some("2026-09-21 14:13:20"));
        for text in ["2026-09-21 14:13:20", "2026-09-21T14:13:20.000", "2026-09-21T14:13:20Z"] {
            assert_eq!(utc_ms(text), Some(1_790_000_000_000), "{text}");
        }
        assert_eq!(utc_ms("yesterday"), None);
    }
}
