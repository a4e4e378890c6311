//! Lengths of time as people write them: `10m`, `90s`, `500ms`, `1h30m`. Must not know any setting.

use std::fmt::Write as _;
use std::time::Duration;

use thiserror::Error;

/// Why a text is not a length of time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is not a length of time such as 10m, 90s, 500ms or 1h30m")]
pub(crate) struct DurationError {
    text: String,
}

/// Reads numbers with a unit each: `h`, `m`, `s`, `ms`; largest unit first, each at most once.
pub(crate) fn parse(text: &str) -> Result<Duration, DurationError> {
    let bad = || DurationError { text: text.to_owned() };
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    let mut smallest = u64::MAX;
    if rest.is_empty() {
        return Err(bad());
    }
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: u64 = rest[..digits].parse().map_err(|_| bad())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit_ms = match &rest[..letters] {
            "h" => 3_600_000,
            "m" => 60_000,
            "s" => 1_000,
            "ms" => 1,
            _ => return Err(bad()),
        };
        if unit_ms >= smallest {
            return Err(bad());
        }
        smallest = unit_ms;
        let millis = number.checked_mul(unit_ms).ok_or_else(bad)?;
        total = total.checked_add(Duration::from_millis(millis)).ok_or_else(bad)?;
        rest = &rest[letters..];
    }
    Ok(total)
}

/// Writes it the way [`parse`] reads it.
pub(crate) fn show(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if rest == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, millis) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if rest >= millis {
            let _ = write!(text, "{}{unit}", rest / millis);
            rest %= millis;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_people_write_them() {
        for (text, ms) in [("10m", 600_000), ("90s", 90_000), ("500ms", 500), ("1h30m", 5_400_000), ("1s500ms", 1500)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for bad in ["", "10", "m", "-1s", "1.5s", "1s1m", "1s1s", "1d", "10 m", "99999999999999999999s"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_shown_is_read_back() {
        for ms in [0, 1, 999, 1000, 90_000, 600_000, 5_430_001, 86_400_000] {
            let duration = Duration::from_millis(ms);
            assert_eq!(parse(&show(duration)), Ok(duration));
        }
    }
}
