//! The little of structured fields (RFC 9651) that our headers use: strings, lists of strings, dictionaries of integers.
//! Must not know which header is read; what cannot be read is `None`, never half a value.

use domain::outcome::Counts;
use percent_encoding::percent_decode_str;

/// A quoted string with its escapes. The text must be printable ASCII, as push keys are.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

/// A boolean: `?1`, or `true` as some servers write it.
pub(crate) fn boolean(text: &str) -> bool {
    matches!(text.trim(), "?1" | "true")
}

/// A list of strings (`"a", "b"`) or display strings (`%"f%c3%bcr"`).
pub(crate) fn strings(text: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (one, after) = string(rest)?;
        all.push(one);
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(more) if !more.trim().is_empty() => more.trim_start(),
            None if after.is_empty() => after,
            _ => return None,
        };
    }
    Some(all)
}

/// One string at the head of `text`, and what follows it.
fn string(text: &str) -> Option<(String, &str)> {
    let display = text.starts_with('%');
    let inner = text.strip_prefix('%').unwrap_or(text).strip_prefix('"')?;
    let mut out = String::new();
    let mut chars = inner.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                let text = if display {
                    percent_decode_str(&out).decode_utf8().ok()?.into_owned()
                } else {
                    beyond_ascii(&out)
                };
                return Some((text, &inner[at + 1..]));
            }
            '\\' if !display => out.push(chars.next().map(|(_, c)| c).filter(|c| matches!(c, '"' | '\\'))?),
            c => out.push(c),
        }
    }
    None
}

/// `\u{e9}`, which our server writes for what a string cannot hold; anything that only looks like it stays.
fn beyond_ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\\u{") {
        out.push_str(before);
        let read = after.split_once('}').and_then(|(hex, more)| {
            let c = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32)?;
            Some((c, more))
        });
        rest = if let Some((c, more)) = read {
            out.push(c);
            more
        } else {
            out.push_str("\\u{");
            after
        };
    }
    out + rest
}

/// Counts as a dictionary: `total=5, passed=4, failed=1`. Unknown names are left to newer readers.
pub(crate) fn counts(text: &str) -> Option<Counts> {
    let mut counts = Counts::default();
    let mut total = false;
    for member in text.split(',') {
        let (name, value) = member.trim().split_once('=')?;
        let value: u64 = value.trim().parse().ok()?;
        match name.trim() {
            "total" => {
                total = true;
                counts.total = value;
            }
            "passed" => counts.passed = value,
            "failed" => counts.failed = value,
            "errored" => counts.errored = value,
            "skipped" => counts.skipped = value,
            "flaky" => counts.flaky = value,
            _ => {}
        }
    }
    total.then_some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_of_strings_are_read_whole_or_not_at_all() {
        assert_eq!(strings(""), Some(vec![]));
        assert_eq!(strings(r#""a\"b", %"f%c3%bcr" "#), Some(vec!["a\"b".to_owned(), "für".to_owned()]));
        assert_eq!(strings(r#""na\\u{ef}ve \\u{x} \\\\""#), Some(vec![r"naïve \u{x} \\".to_owned()]));
        for bad in [r#""a"#, r#""a" "b""#, r#""a","#, "a", r#""a\n""#, r#"%"%ff""#] {
            assert_eq!(strings(bad), None, "{bad}");
        }
    }

    #[test]
    fn counts_need_a_total() {
        let expected = Counts { total: 3, passed: 2, failed: 1, flaky: 1, ..Counts::default() };
        assert_eq!(counts("total=3, passed=2,failed=1 , flaky=1, later=9"), Some(expected));
        assert_eq!(counts("passed=2"), None);
        assert_eq!(counts("total=x"), None);
    }

    proptest! {
        #[test]
        fn a_quoted_string_comes_back(texts in prop::collection::vec("[ -tv-~]{0,12}", 0..4)) {
            let list = texts.iter().map(|t| quoted(t)).collect::<Vec<_>>().join(", ");
            prop_assert_eq!(strings(&list), Some(texts));
        }
    }
}
