//! Small things about texts that several products need: ids in names, times, bounds. Must not know any product.

use domain::marker::Found;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::foreign::entry::Entry;

/// The number behind `PREFIX-` in a text, where both together stand alone: `TC-12`, `[TC-12]`, `TC-12_adds`.
pub(super) fn number_after(prefix: &str, text: &str) -> Option<u64> {
    let head = format!("{prefix}-");
    text.match_indices(&head).find_map(|(at, _)| {
        if text[..at].ends_with(char::is_alphanumeric) {
            return None;
        }
        let rest = &text[at + head.len()..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if rest[digits..].starts_with(char::is_alphanumeric) {
            return None;
        }
        rest[..digits].parse().ok()
    })
}

/// The beginning of a text.
pub(super) fn cut(text: &str, chars_max: usize) -> &str {
    text.char_indices().nth(chars_max).map_or(text, |(at, _)| &text[..at])
}

/// A comment that ends with the marker, of at most so many characters.
pub(super) fn comment(entry: &Entry, chars_max: usize) -> String {
    let whole = entry.comment();
    if whole.chars().count() <= chars_max {
        return whole;
    }
    let marker = entry.marker.to_string();
    let room = chars_max.saturating_sub(marker.len() + 2);
    format!("{}\n\n{marker}", cut(&whole, room).trim_end())
}

/// What people wrote around the marker that was found.
pub(super) fn without_marker(text: &str, found: Found) -> String {
    match found {
        Found::Whole(marker) => text.replace(&marker.to_string(), "").trim().to_owned(),
        Found::Nothing | Found::Mangled => text.trim().to_owned(),
    }
}

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
    fn numbers_are_found_behind_their_prefix_alone() {
        for text in ["TC-12", "adds [TC-12]", "test_TC-12_adds", "TC-x TC-12, TC-13"] {
            assert_eq!(number_after("TC", text), Some(12), "{text}");
        }
        for text in ["ATC-12", "TC-12b", "TC12", "TC-", "tc-12", "TC-99999999999999999999"] {
            assert_eq!(number_after("TC", text), None, "{text}");
        }
    }

    #[test]
    fn times_come_back() {
        assert_eq!(utc(1_790_000_000_000).as_deref(), Some("2026-09-21 14:13:20"));
        for text in ["2026-09-21 14:13:20", "2026-09-21T14:13:20.000", "2026-09-21T14:13:20Z"] {
            assert_eq!(utc_ms(text), Some(1_790_000_000_000), "{text}");
        }
        assert_eq!(utc_ms("yesterday"), None);
    }

    #[test]
    fn a_cut_is_between_characters() {
        assert_eq!(cut("äöü", 2), "äö");
        assert_eq!(cut("äöü", 3), "äöü");
    }
}
