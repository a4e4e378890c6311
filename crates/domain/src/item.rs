//! Which test an outcome belongs to: the parts of an item's identity, their normal form and their hash.
//! Must not know report dialects (they decide which parts there are) or stores.

use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use crate::limits;

/// An item's identity: a tuple of parts, hashed from the parts and never from a joined string
/// (`facts/formats.md`, section 7). Stable across runs, machines and report order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "ItemParts", into = "ItemParts")]
pub struct ItemName {
    suite: Vec<String>,
    class: Option<String>,
    name: String,
    ordinal: u32,
}

/// The parts as they travel; every way in normalises them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ItemParts {
    /// Names of the enclosing suites, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suite: Vec<String>,
    /// The class or file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The test's own name, parameters included.
    pub name: String,
    /// 1, 2, … for the second, third, … of items that the report cannot tell apart; weak, and warned about.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ordinal: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl ItemName {
    /// The one way in: each part normalised (NFC, no ANSI sequences or control characters, white space folded,
    /// bounded). Empty suites and an empty class are left out; an empty name stays empty.
    pub fn new<S: AsRef<str>>(suite: impl IntoIterator<Item = S>, class: Option<&str>, name: &str) -> Self {
        let suite = suite.into_iter();
        // Millions of these are held at a time: no room beyond what is needed.
        let mut path = Vec::with_capacity(suite.size_hint().0);
        path.extend(suite.map(|s| normal(s.as_ref())).filter(|s| !s.is_empty()));
        if path.len() > limits::SUITE_DEPTH_MAX {
            let rest = path.split_off(limits::SUITE_DEPTH_MAX - 1);
            path.push(normal(&rest.join("/")));
        }
        Self { suite: path, class: class.map(normal).filter(|c| !c.is_empty()), name: normal(name), ordinal: 0 }
    }

    /// The same item as one of several that the report cannot tell apart (0 is the first).
    pub fn with_ordinal(mut self, ordinal: u32) -> Self {
        self.ordinal = ordinal;
        self
    }

    /// Names of the enclosing suites, outermost first.
    pub fn suite(&self) -> &[String] {
        &self.suite
    }

    /// The class or file.
    pub fn class(&self) -> Option<&str> {
        self.class.as_deref()
    }

    /// The test's own name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// 0, or the number among items that the report cannot tell apart.
    pub fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// The hash under which it is known everywhere.
    pub fn hash(&self) -> ItemHash {
        self.hash_with(&mut Vec::with_capacity(256))
    }

    /// As [`ItemName::hash`], with a buffer that many items share.
    pub fn hash_with(&self, buffer: &mut Vec<u8>) -> ItemHash {
        buffer.clear();
        self.encode(buffer);
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(buffer).as_bytes()[..16]);
        ItemHash(hash)
    }

    /// Appends an injective encoding of the parts: counts and lengths before contents, so that no two tuples agree.
    pub fn encode(&self, into: &mut Vec<u8>) {
        let mut part = |text: &str| {
            into.extend_from_slice(&(text.len() as u32).to_le_bytes());
            into.extend_from_slice(text.as_bytes());
        };
        for suite in &self.suite {
            part(suite);
        }
        part(&self.name);
        part(self.class.as_deref().unwrap_or(""));
        into.extend_from_slice(&(self.suite.len() as u32).to_le_bytes());
        into.extend_from_slice(&self.ordinal.to_le_bytes());
    }

    /// Back from [`ItemName::encode`]; `None` if the bytes are not such an encoding.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (body, tail) = bytes.split_at_checked(bytes.len().checked_sub(8)?)?;
        let suites = u32::from_le_bytes(tail[..4].try_into().ok()?) as usize;
        let ordinal = u32::from_le_bytes(tail[4..].try_into().ok()?);
        let mut rest = body;
        let mut part = || {
            let (length, after) = rest.split_at_checked(4)?;
            let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
            let (text, after) = after.split_at_checked(length)?;
            rest = after;
            String::from_utf8(text.to_vec()).ok()
        };
        let mut suite = Vec::new();
        for _ in 0..suites {
            suite.push(part()?);
        }
        let name = part()?;
        let class = Some(part()?).filter(|c| !c.is_empty());
        rest.is_empty().then_some(Self { suite, class, name, ordinal })
    }
}

impl fmt::Display for ItemName {
    /// For people only: `suite > class > name #2`. Never parsed, never hashed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for suite in &self.suite {
            write!(f, "{suite} > ")?;
        }
        if let Some(class) = &self.class {
            write!(f, "{class} > ")?;
        }
        f.write_str(if self.name.is_empty() { "(no name)" } else { &self.name })?;
        if self.ordinal > 0 { write!(f, " #{}", self.ordinal + 1) } else { Ok(()) }
    }
}

impl From<ItemParts> for ItemName {
    /// As [`ItemName::new`], but parts that are normal already are taken over without a copy.
    fn from(parts: ItemParts) -> Self {
        if parts.suite.len() > limits::SUITE_DEPTH_MAX {
            return Self::new(parts.suite, parts.class.as_deref(), &parts.name).with_ordinal(parts.ordinal);
        }
        let suite = parts.suite.into_iter().map(normal_owned).filter(|s| !s.is_empty()).collect();
        let class = parts.class.map(normal_owned).filter(|c| !c.is_empty());
        Self { suite, class, name: normal_owned(parts.name), ordinal: parts.ordinal }
    }
}

impl From<ItemName> for ItemParts {
    fn from(item: ItemName) -> Self {
        Self { suite: item.suite, class: item.class, name: item.name, ordinal: item.ordinal }
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
fn normal(text: &str) -> String {
    cut(if is_plain(text) { text.to_owned() } else { fold(text) })
}

/// The normal form of a part that is owned already.
fn normal_owned(text: String) -> String {
    cut(if is_plain(&text) { text } else { fold(&text) })
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
            let mut bytes = Vec::new();
            item.encode(&mut bytes);
            prop_assert_eq!(ItemName::decode(&bytes), Some(item));
        }

        #[test]
        fn different_parts_never_share_an_encoding(a in item(), b in item()) {
            let (mut x, mut y) = (Vec::new(), Vec::new());
            a.encode(&mut x);
            b.encode(&mut y);
            prop_assert_eq!(a == b, x == y);
        }

        #[test]
        fn normalising_is_idempotent(text in "\\PC{0,40}|[\\x00-\\x7f]{0,40}") {
            let once = normal(&text);
            prop_assert_eq!(normal(&once), once.clone());
        }
    }
}
