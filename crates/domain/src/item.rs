//! Which test an outcome belongs to: the parts of an item's identity, their normal form and their hash.
//! Must not know report dialects (they decide which parts there are) or stores.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use unicode_normalization::UnicodeNormalization;

use crate::limits;

/// An item's identity: a tuple of parts, hashed from the parts and never from a joined string
/// (`facts/formats.md`, section 7). Stable across runs, machines and report order.
///
/// Kept as the encoding that is hashed and stored, in one piece: reports hold hundreds of thousands of names.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ItemName {
    encoded: Box<[u8]>,
}

/// The parts as they travel; every way in normalises them.
#[derive(Debug, Serialize, Deserialize)]
struct ItemParts<'a> {
    /// Names of the enclosing suites, outermost first.
    #[serde(default, borrow, skip_serializing_if = "Vec::is_empty")]
    suite: Vec<Cow<'a, str>>,
    /// The class or file.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    class: Option<Cow<'a, str>>,
    /// The test's own name, parameters included.
    #[serde(borrow)]
    name: Cow<'a, str>,
    /// 1, 2, … for the second, third, … of items that the report cannot tell apart; weak, and warned about.
    #[serde(default, skip_serializing_if = "is_zero")]
    ordinal: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl ItemName {
    /// The one way in: each part normalised (NFC, no ANSI sequences or control characters, white space folded,
    /// bounded). Empty suites and an empty class are left out; an empty name stays empty.
    pub fn new<S: AsRef<str>>(suite: impl IntoIterator<Item = S>, class: Option<&str>, name: &str) -> Self {
        let mut encoded = Vec::with_capacity(128 + name.len() + class.map_or(0, str::len));
        let mut depth: u32 = 0;
        let mut deeper = Vec::new();
        for part in suite {
            let part = normal(part.as_ref());
            if part.is_empty() {
                continue;
            }
            // The last level is written once it is known whether more is to be folded into it.
            if depth as usize >= limits::SUITE_DEPTH_MAX - 1 {
                deeper.push(part.into_owned());
            } else {
                put(&part, &mut encoded);
                depth += 1;
            }
        }
        if !deeper.is_empty() {
            put(&normal(&deeper.join("/")), &mut encoded);
            depth += 1;
        }
        put(&normal(name), &mut encoded);
        put(&class.map(normal).unwrap_or_default(), &mut encoded);
        encoded.extend_from_slice(&depth.to_le_bytes());
        encoded.extend_from_slice(&0_u32.to_le_bytes());
        Self { encoded: encoded.into_boxed_slice() }
    }

    /// The same item as one of several that the report cannot tell apart (0 is the first).
    pub fn with_ordinal(mut self, ordinal: u32) -> Self {
        let at = self.encoded.len() - 4;
        self.encoded[at..].copy_from_slice(&ordinal.to_le_bytes());
        self
    }

    /// Names of the enclosing suites, outermost first.
    pub fn suite(&self) -> impl Iterator<Item = &str> {
        self.parts().take(self.depth())
    }

    /// The class or file.
    pub fn class(&self) -> Option<&str> {
        self.parts().nth(self.depth() + 1).filter(|class| !class.is_empty())
    }

    /// The test's own name.
    pub fn name(&self) -> &str {
        self.parts().nth(self.depth()).unwrap_or_default()
    }

    /// 0, or the number among items that the report cannot tell apart.
    pub fn ordinal(&self) -> u32 {
        number(&self.encoded[self.encoded.len() - 4..])
    }

    /// The hash under which it is known everywhere.
    pub fn hash(&self) -> ItemHash {
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(&self.encoded).as_bytes()[..16]);
        ItemHash(hash)
    }

    /// An injective encoding of the parts: for each suite, then the name, then the class (empty: none) the length in
    /// four bytes and UTF-8; then the number of suites and the ordinal in four bytes each; all little endian.
    pub fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// Back from [`ItemName::encoded`]; `None` if the bytes are not such an encoding.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (mut rest, tail) = bytes.split_at_checked(bytes.len().checked_sub(8)?)?;
        let parts = u64::from(number(&tail[..4])) + 2;
        for _ in 0..parts {
            let (part, after) = take(rest)?;
            std::str::from_utf8(part).ok()?;
            rest = after;
        }
        rest.is_empty().then(|| Self { encoded: bytes.into() })
    }

    fn depth(&self) -> usize {
        number(&self.encoded[self.encoded.len() - 8..]) as usize
    }

    fn parts(&self) -> impl Iterator<Item = &str> {
        let mut rest = &self.encoded[..self.encoded.len() - 8];
        std::iter::from_fn(move || {
            let (part, after) = take(rest)?;
            rest = after;
            // Every way in has checked it.
            Some(std::str::from_utf8(part).unwrap_or_default())
        })
    }
}

fn put(part: &str, into: &mut Vec<u8>) {
    into.extend_from_slice(&(part.len() as u32).to_le_bytes());
    into.extend_from_slice(part.as_bytes());
}

fn take(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(4)?;
    rest.split_at_checked(number(length) as usize)
}

fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |four| u32::from_le_bytes(*four))
}

impl PartialOrd for ItemName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ItemName {
    /// By suites, class, name, ordinal.
    fn cmp(&self, other: &Self) -> Ordering {
        let suites = self.suite().cmp(other.suite());
        suites.then_with(|| {
            (self.class(), self.name(), self.ordinal()).cmp(&(other.class(), other.name(), other.ordinal()))
        })
    }
}

impl fmt::Display for ItemName {
    /// For people only: `suite > class > name #2`. Never parsed, never hashed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for suite in self.suite() {
            write!(f, "{suite} > ")?;
        }
        if let Some(class) = self.class() {
            write!(f, "{class} > ")?;
        }
        f.write_str(if self.name().is_empty() { "(no name)" } else { self.name() })?;
        if self.ordinal() > 0 { write!(f, " #{}", self.ordinal() + 1) } else { Ok(()) }
    }
}

impl fmt::Debug for ItemName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ItemName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        ItemParts {
            suite: self.suite().map(Cow::Borrowed).collect(),
            class: self.class().map(Cow::Borrowed),
            name: Cow::Borrowed(self.name()),
            ordinal: self.ordinal(),
        }
        .serialize(to)
    }
}

impl<'de> Deserialize<'de> for ItemName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let parts = ItemParts::deserialize(from)?;
        Ok(Self::new(&parts.suite, parts.class.as_deref(), &parts.name).with_ordinal(parts.ordinal))
    }
}

/// 128 bits of BLAKE3 over an item's parts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemHash(pub [u8; 16]);

impl ItemHash {
    /// From 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 32 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|n| Self(n.to_be_bytes()))
    }
}

impl fmt::Display for ItemHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for ItemHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The normal form of one part.
fn normal(text: &str) -> Cow<'_, str> {
    if is_plain(text) && text.len() <= limits::ITEM_PART_BYTES_MAX {
        Cow::Borrowed(text)
    } else if is_plain(text) {
        Cow::Owned(cut(text.to_owned()))
    } else {
        Cow::Owned(cut(fold(text)))
    }
}

/// Most names are plain ASCII without runs of white space: those are normal as they are.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    // Counts instead of early exits become a few wide instructions, and nearly every name is plain.
    let odd = bytes.iter().filter(|b| !(0x20..0x7f).contains(*b)).count();
    let doubled =
        bytes.iter().zip(bytes.get(1..).unwrap_or_default()).filter(|(a, b)| **a == b' ' && **b == b' ').count();
    odd == 0 && doubled == 0 && bytes.first() != Some(&b' ') && bytes.last() != Some(&b' ')
}

/// NFC, ANSI sequences and control characters dropped, white space runs folded to one blank, trimmed.
fn fold(text: &str) -> String {
    let stripped = strip_ansi(text);
    let mut out = String::with_capacity(stripped.len());
    let mut blank = false;
    for c in stripped.nfc() {
        if c.is_whitespace() {
            blank = true;
        } else if !c.is_control() {
            if blank && !out.is_empty() {
                out.push(' ');
            }
            blank = false;
            out.push(c);
        }
    }
    out
}

/// Drops ESC-introduced control sequences (CSI and OSC), and what escaping writers leave of them.
fn strip_ansi(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
            continue;
        }
        match chars.peek() {
            Some('[') => {
                chars.next();
                while chars.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {}
            }
            Some(']') => {
                chars.next();
                while chars.next().is_some_and(|c| c != '\u{7}' && c != '\u{1b}') {}
            }
            _ => {}
        }
    }
    out
}

/// A part beyond its bound keeps its head and ends in the hash of the whole, so that two long names never meet.
fn cut(text: String) -> String {
    if text.len() <= limits::ITEM_PART_BYTES_MAX {
        return text;
    }
    let hash = blake3::hash(text.as_bytes()).to_hex();
    let mut head = limits::ITEM_PART_BYTES_MAX - hash.len() - '…'.len_utf8();
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    format!("{}…{hash}", &text[..head])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn colour_and_white_space_do_not_change_an_item() {
        let plain = ItemName::new(["suite"], Some("Class"), "works with blanks");
        let coloured = ItemName::new([" suite "], Some("\u{1b}[31mClass\u{1b}[0m"), "works\n   with\tblanks ");
        assert_eq!(plain, coloured);
        assert_eq!(plain.hash(), coloured.hash());
    }

    #[test]
    fn a_long_name_keeps_its_bound_and_its_identity() {
        let a = ItemName::new([""; 0], None, &"é".repeat(5000));
        let b = ItemName::new([""; 0], None, &format!("{}x", "é".repeat(5000)));
        assert!(a.name().len() <= limits::ITEM_PART_BYTES_MAX);
        assert_ne!(a.hash(), b.hash());
        assert_eq!(ItemName::new([""; 0], None, a.name()), a, "normalising twice is normalising once");
    }

    fn item() -> impl Strategy<Value = ItemName> {
        (prop::collection::vec("\\PC{0,6}", 0..4), prop::option::of("\\PC{0,6}"), "\\PC{0,8}", 0..3u32).prop_map(
            |(suite, class, name, ordinal)| ItemName::new(suite, class.as_deref(), &name).with_ordinal(ordinal),
        )
    }

    proptest! {
        #[test]
        fn the_encoding_comes_back(item in item()) {
            prop_assert_eq!(ItemName::decode(item.encoded()), Some(item.clone()));
            let json = serde_json::to_string(&item).unwrap();
            prop_assert_eq!(serde_json::from_str::<ItemName>(&json).unwrap(), item.clone());
            let suite: Vec<&str> = item.suite().collect();
            prop_assert_eq!(ItemName::new(suite, item.class(), item.name()).with_ordinal(item.ordinal()), item);
        }

        #[test]
        fn different_parts_never_share_an_encoding(a in item(), b in item()) {
            let parts = |i: &ItemName| (i.suite().map(str::to_owned).collect::<Vec<_>>(), i.class().map(str::to_owned), i.name().to_owned(), i.ordinal());
            prop_assert_eq!(parts(&a) == parts(&b), a.encoded() == b.encoded());
            prop_assert_eq!(a.cmp(&b), parts(&a).cmp(&parts(&b)));
        }

        #[test]
        fn other_bytes_are_no_name_or_come_back(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(item) = ItemName::decode(&bytes) {
                prop_assert_eq!(item.encoded(), &bytes[..]);
                let _ = item.to_string();
            }
        }

        #[test]
        fn normalising_is_idempotent(text in "\\PC{0,40}|[\\x00-\\x7f]{0,40}") {
            let once = normal(&text).into_owned();
            let twice = normal(&once).into_owned();
            prop_assert_eq!(twice, once);
        }
    }
}
