//! Times as reports write them, in seconds, into durations: whatever the locale of the machine that wrote them, and
//! never that of the machine that reads (`facts/formats.md`, 6.1). Must not know formats.

use domain::DurationUs;

/// What a time attribute came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    /// A duration, and what its signs prove about the file.
    Sure(DurationUs, Option<Sign>),
    /// `1,234`: either a thousand and more, or one and a bit. The rest of the file decides.
    Doubtful { thousands: DurationUs, decimal: DurationUs },
    /// Nothing there.
    Absent,
    /// Below zero.
    Negative,
    /// NaN, infinite, beyond a century, or no number.
    Unusable,
}

/// How a file writes its decimal sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// `0.16`
    Point,
    /// `0,16`
    Comma,
}

/// Reads one time.
pub(crate) fn time(raw: &[u8]) -> Time {
    if let Some(us) = plain(raw) {
        return us;
    }
    let Ok(text) = std::str::from_utf8(raw) else { return Time::Unusable };
    let text = text.trim();
    if text.is_empty() {
        return Time::Absent;
    }
    if text.contains(',') { with_commas(text) } else { without_commas(text) }
}

/// The usual form, digits and a point, without floating point.
fn plain(raw: &[u8]) -> Option<Time> {
    const MAX_DIGITS: usize = 9;
    let point = raw.iter().position(|b| *b == b'.').unwrap_or(raw.len());
    let (whole, rest) = raw.split_at(point);
    let fraction = rest.get(1..).unwrap_or_default();
    if whole.is_empty() || whole.len() > MAX_DIGITS || fraction.len() > 6 {
        return None;
    }
    let digits =
        |bytes: &[u8]| bytes.iter().try_fold(0_u64, |n, b| b.is_ascii_digit().then(|| n * 10 + u64::from(b - b'0')));
    let us = digits(whole)? * 1_000_000 + digits(fraction)? * 10_u64.pow(6 - fraction.len() as u32);
    Some(Time::Sure(DurationUs(us), (!fraction.is_empty()).then_some(Sign::Point)))
}

fn without_commas(text: &str) -> Time {
    match text.parse::<f64>() {
        Ok(seconds) => judged(seconds, text.contains('.').then_some(Sign::Point)),
        Err(_) => units(text).map_or(Time::Unusable, |seconds| judged(seconds, None)),
    }
}

fn judged(seconds: f64, sign: Option<Sign>) -> Time {
    match DurationUs::from_seconds(seconds) {
        Some(us) => Time::Sure(us, sign),
        None if seconds < 0.0 && seconds.is_finite() => Time::Negative,
        None => Time::Unusable,
    }
}

/// Commas before a point, or several in groups of three, part thousands; one comma that can't do so is a decimal sign.
fn with_commas(text: &str) -> Time {
    let number = |text: String, sign| text.parse().map_or(Time::Unusable, |s: f64| judged(s, sign));
    let grouped = |whole: &str| {
        let mut groups = whole.trim_start_matches(['-', '+']).split(',');
        let first = groups.next().unwrap_or_default();
        (1..=3).contains(&first.len()) && !first.starts_with('0') && groups.all(|g| g.len() == 3)
    };
    if let Some((whole, fraction)) = text.rsplit_once('.')
        && !fraction.contains(',')
    {
        return if grouped(whole) { number(text.replace(',', ""), Some(Sign::Point)) } else { Time::Unusable };
    }
    let commas = text.bytes().filter(|b| *b == b',').count();
    if text.contains('.') {
        // `1.234,5`: the points part thousands.
        return if commas == 1 {
            number(text.replace('.', "").replace(',', "."), Some(Sign::Comma))
        } else {
            Time::Unusable
        };
    }
    if commas > 1 {
        return if grouped(text) { number(text.replace(',', ""), Some(Sign::Point)) } else { Time::Unusable };
    }
    let decimal = number(text.replace(',', "."), Some(Sign::Comma));
    if !grouped(text) {
        return decimal;
    }
    match (number(text.replace(',', ""), None), decimal) {
        (Time::Sure(thousands, _), Time::Sure(decimal, _)) => Time::Doubtful { thousands, decimal },
        (other, _) => other,
    }
}

/// `80.8us`, `12s`, `1m 20.5s`: numbers with unit suffixes, added up.
fn units(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = rest[end..].trim_start();
        let end = rest.find(|c: char| c.is_ascii_digit() || c == ' ').unwrap_or(rest.len());
        seconds += number
            * match &rest[..end] {
                "ns" => 1e-9,
                "us" | "µs" | "μs" => 1e-6,
                "ms" => 1e-3,
                "s" | "sec" => 1.0,
                "m" | "min" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
        rest = rest[end..].trim_start();
    }
    Some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(text: &str) -> Option<f64> {
        match time(text.as_bytes()) {
            Time::Sure(us, _) => Some(us.as_ms()),
            _ => None,
        }
    }

    #[test]
    fn the_catalogue_of_odd_times() {
        let table = [
            ("1.5", 1500.0),
            ("0", 0.0),
            ("2E-3", 2.0),
            ("9.5e-05", 0.095),
            ("  2.5  ", 2500.0),
            ("0.4540354", 454.035),
            ("14,029.255", 14_029_255.0),
            ("2,503.1", 2_503_100.0),
            ("1,234,567", 1_234_567_000.0),
            ("0,03", 30.0),
            ("0,160", 160.0),
            ("12,5", 12_500.0),
            ("1234,567", 1_234_567.0),
            ("1.234,5", 1_234_500.0),
            ("80.803us", 0.081),
            ("12s", 12_000.0),
            ("1m 20.5s", 80_500.0),
            ("-0.000000", 0.0),
        ];
        for (text, expected) in table {
            assert_eq!(ms(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_absent_and_never_zero() {
        for (text, expected) in [
            ("", Time::Absent),
            (" ", Time::Absent),
            ("-1", Time::Negative),
            ("-345345", Time::Negative),
            ("NaN", Time::Unusable),
            ("Infinity", Time::Unusable),
            ("-inf", Time::Unusable),
            ("1e400", Time::Unusable),
            ("PT3S", Time::Unusable),
            ("tbd", Time::Unusable),
            ("1,23,4.5", Time::Unusable),
            (".", Time::Unusable),
        ] {
            assert_eq!(time(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn one_comma_and_three_digits_are_left_to_the_rest_of_the_file() {
        let (thousands, decimal) = (DurationUs(1_234_000_000), DurationUs(1_234_000));
        assert_eq!(time(b"1,234"), Time::Doubtful { thousands, decimal });
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9,.eE+ mus-]{0,12}|\\PC{0,12}") {
            time(text.as_bytes());
        }

        #[test]
        fn the_fast_way_agrees_with_floating_point(text in "[0-9]{1,9}(\\.[0-9]{1,6})?") {
            let fast = time(text.as_bytes());
            let slow = without_commas(&text);
            prop_assert_eq!(fast, slow);
        }
    }
}
