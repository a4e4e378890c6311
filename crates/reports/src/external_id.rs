//! Ids of an item in other systems, as reports carry them in names and properties: `[C123]`, `C123_`, `[QASE-7]`,
//! `KEY-T12`. A name is never changed by what is found in it. Must not know which target an id belongs to.

use domain::{ExternalId, IdSource, limits};

use crate::text::any_pair;

/// Properties that hold ids, one or several.
const PROPERTIES: [(&[u8], IdSource); 6] = [
    (b"testrail_case_id", IdSource::Property),
    (b"testrail_case_ids", IdSource::Property),
    (b"test_id", IdSource::Property),
    (b"test_key", IdSource::Property),
    (b"requirement", IdSource::Requirement),
    (b"requirements", IdSource::Requirement),
];

/// What the ids in a property of this name are; none if it holds none.
pub(crate) fn source(name: &[u8]) -> Option<IdSource> {
    PROPERTIES.iter().find(|(property, _)| name.eq_ignore_ascii_case(property)).map(|(_, source)| *source)
}

/// Adds the ids that a property's value lists.
pub(crate) fn from_property(value: &str, source: IdSource, into: &mut Vec<ExternalId>) {
    for id in value.split([',', ';', ' ', '\n', '\t']).map(str::trim).filter(|id| !id.is_empty() && id.len() <= 100) {
        add(id, source, into);
    }
}

/// Adds the ids that stand in a name.
pub(crate) fn from_name(name: &str, into: &mut Vec<ExternalId>) {
    let bytes = name.as_bytes();
    if !may_hold_ids(bytes) {
        return;
    }
    let mut i = 0;
    // An id begins with a capital at the beginning of a word and holds a digit.
    while let Some(at) = bytes[i..].iter().position(u8::is_ascii_uppercase) {
        let from = i + at;
        let to = from + bytes[from..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'-').count();
        let before = from.checked_sub(1).map(|b| bytes[b]);
        if !before.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'-') {
            let word = &name[from..to];
            let bracketed = before == Some(b'[') && bytes.get(to) == Some(&b']');
            if is_id(word, bracketed, before, bytes.get(to)) {
                add(word, IdSource::Name, into);
            }
        }
        i = to.max(from + 1);
    }
}

/// A quick look: most names hold none.
fn may_hold_ids(bytes: &[u8]) -> bool {
    let Some((first, behind)) = bytes.split_first() else { return false };
    let mark = |a, b| a == b'[' || (a == b'_' && b == b'C') || (a == b'-' && b == b'T');
    *first == b'C' || any_pair(&bytes[..behind.len()], behind, mark)
}

/// `C123` in brackets or parted by `_`; `KEY-T12` anywhere; `KEY-7` in brackets.
fn is_id(word: &str, bracketed: bool, before: Option<u8>, after: Option<&u8>) -> bool {
    let digits = |text: &str| !text.is_empty() && text.len() <= 12 && text.bytes().all(|b| b.is_ascii_digit());
    if let Some(number) = word.strip_prefix('C')
        && digits(number)
    {
        // At the beginning before an underscore, at the end behind one (also before a parameter list), or in brackets.
        let head = before.is_none() && after == Some(&b'_');
        let tail = before == Some(b'_') && matches!(after, None | Some(b'('));
        return bracketed || head || tail;
    }
    let Some((key, number)) = word.rsplit_once('-') else { return false };
    let key_like = key.len() >= 2 && key.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    match number.strip_prefix('T') {
        Some(number) => key_like && digits(number),
        None => key_like && bracketed && digits(number),
    }
}

/// A name says nothing new of an id that a property gives.
fn add(id: &str, source: IdSource, into: &mut Vec<ExternalId>) {
    let is_known = |known: &ExternalId| known.id() == id && (known.source() == source || source == IdSource::Name);
    if into.len() < limits::EXTERNAL_IDS_MAX && !into.iter().any(is_known) {
        into.push(ExternalId::new(source, id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(name: &str) -> Vec<String> {
        let mut ids = Vec::new();
        from_name(name, &mut ids);
        assert!(ids.iter().all(|id| id.source() == IdSource::Name));
        ids.iter().map(|id| id.id().to_owned()).collect()
    }

    #[test]
    fn ids_are_found_where_their_makers_put_them() {
        assert_eq!(ids("[C999] test_with_brackets()"), ["C999"]);
        assert_eq!(ids("C789_test_name()"), ["C789"]);
        assert_eq!(ids("test_name_C120013()"), ["C120013"]);
        assert_eq!(ids("complexTest_C456(String param, int value)"), ["C456"]);
        assert_eq!(ids("test_name_C555"), ["C555"]);
        assert_eq!(ids("logs in [QASE-7]"), ["QASE-7"]);
        assert_eq!(ids("SHOP-T12 pays"), ["SHOP-T12"]);
        assert_eq!(ids("[C1] [C2] both [C1]"), ["C1", "C2"]);
    }

    #[test]
    fn words_that_only_look_like_ids_are_left() {
        for name in
            ["C3PO talks", "ISO-8859-1", "UTF-8", "reads C4 chart", "Class1_C", "ABC123_x", "testC5", "É-T1", ""]
        {
            assert!(ids(name).is_empty(), "{name}: {:?}", ids(name));
        }
    }

    #[test]
    fn properties_may_list_several() {
        let mut found = Vec::new();
        from_property("C1050400, C1050401,C1050402 ", IdSource::Property, &mut found);
        from_property("C1050400", IdSource::Requirement, &mut found);
        from_name("[C1050401] [C7]", &mut found);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["C1050400", "C1050401", "C1050402", "requirement:C1050400", "name:C7"]);
    }

    #[test]
    fn a_requirement_is_no_case() {
        assert_eq!(
            (source(b"test_id"), source(b"Requirements")),
            (Some(IdSource::Property), Some(IdSource::Requirement))
        );
        assert_eq!(source(b"testrail_attachment"), None);
    }
}
