//! Texts within the limits of products. Must not know which product has them.

use domain::marker::{Found, Marker};

/// The first characters of a text.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}

/// Two texts with an empty line between them, the first one cut so that the second one is always whole.
pub(crate) fn above(text: &str, last: &str, chars_max: usize) -> String {
    let room = chars_max.saturating_sub(last.chars().count() + 2);
    let text = cut(text, room);
    match text.trim_end() {
        "" => last.to_owned(),
        text => format!("{text}\n\n{last}"),
    }
}

/// A text as people wrote it, without our marker.
pub(crate) fn without_marker(text: &str) -> String {
    match Marker::find(text) {
        Found::Whole(marker) => text.replace(&marker.to_string(), "").trim().to_owned(),
        Found::Nothing | Found::Mangled => text.trim().to_owned(),
    }
}

/// True if a word of the text is the tag: products add commas, brackets or markup around it.
pub(crate) fn holds_tag(text: &str, tag: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word.eq_ignore_ascii_case(tag))
}

/// What people call a cycle whose name ends with a tag of ours.
pub(crate) fn without_tag(name: &str) -> &str {
    match name.rsplit_once(' ') {
        Some((own, last)) if Marker::find(last) != Found::Nothing => own.trim_end(),
        _ => name,
    }
}

/// True if a tag of ours, or a marker, stands in the text.
pub(crate) fn is_tagged(text: &str) -> bool {
    Marker::find(text) != Found::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_last_is_never_cut() {
        assert_eq!(above("abcdef", "tly1", 9), "abc\n\ntly1");
        assert_eq!(above("äöü ", "tly1", 100), "äöü\n\ntly1");
        assert_eq!(above("abcdef", "tly1", 5), "tly1");
    }

    #[test]
    fn a_name_is_known_without_its_tag() {
        let tag = "tly5pjgq4fx47xbpyq21wc45zg2m8";
        assert_eq!(without_tag(&format!("shop  main, run 7 {tag}")), "shop  main, run 7");
        assert_eq!(without_tag("shop main, run 7"), "shop main, run 7");
        assert_eq!(without_tag("the tly of"), "the tly of");
        assert!(is_tagged(&format!("label-{tag}")) && !is_tagged("shop main"));
    }

    #[test]
    fn a_tag_is_a_whole_word() {
        assert!(holds_tag("JIRA-1, TLYabc", "tlyabc"));
        assert!(holds_tag("<p>tlyabc</p>", "tlyabc"));
        assert!(!holds_tag("tlyabcd", "tlyabc"));
    }
}
