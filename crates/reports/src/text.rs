//! Texts of reports: references resolved, forbidden characters out, long texts cut to head and tail.
//! Must not know formats or where a text stands.

use std::borrow::Cow;
use std::collections::VecDeque;

use domain::limits;

/// What was odd in a piece of text; the reader decides what to say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Oddities {
    /// A character that XML 1.0 forbids, raw or as a reference.
    pub(crate) control: bool,
    /// Bytes that are not UTF-8.
    pub(crate) invalid: bool,
    /// A reference to an entity that XML itself doesn't know; kept as written.
    pub(crate) entity: bool,
}

impl Oddities {
    /// True if there is anything to say.
    pub(crate) fn any(self) -> bool {
        self.control || self.invalid || self.entity
    }
}

impl std::ops::BitOrAssign for Oddities {
    fn bitor_assign(&mut self, other: Self) {
        self.control |= other.control;
        self.invalid |= other.invalid;
        self.entity |= other.entity;
    }
}

/// An attribute value as text; borrowed when nothing in it needs a change. Forbidden characters stay in: names are
/// normalised by `domain`, messages by [`Bounded::finish`].
pub(crate) fn value<'a>(raw: &'a [u8], odd: &mut Oddities) -> Cow<'a, str> {
    // Nearly every value is plain, and one look tells.
    let plain = !any_byte(raw, |b| b < 0x20 || b == b'&');
    if plain || memchr::memchr(b'&', raw).is_none() {
        odd.control |= !plain && has_control(raw);
        let text = lossy(raw);
        odd.invalid |= matches!(text, Cow::Owned(_));
        return text;
    }
    let mut out = Vec::with_capacity(raw.len());
    odd.entity |= unescape_into(raw, &mut out);
    odd.control |= has_control(&out);
    Cow::Owned(String::from_utf8(out).unwrap_or_else(|e| {
        odd.invalid = true;
        String::from_utf8_lossy(e.as_bytes()).into_owned()
    }))
}

/// As `String::from_utf8_lossy`, which walks even sound bytes piece by piece.
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Characters below the blank that XML 1.0 forbids.
fn has_control(bytes: &[u8]) -> bool {
    any_byte(bytes, |b| b < 0x20 && b != b'\t' && b != b'\n' && b != b'\r')
}

/// True if `is` holds for any byte.
fn any_byte(bytes: &[u8], is: impl Fn(u8) -> bool) -> bool {
    any_pair(bytes, bytes, |b, _| is(b))
}

/// True if `is` holds for any two bytes at the same place of both slices, which are equally long. Looks at blocks without
/// leaving early, which makes a few wide instructions of each if `is` is a few comparisons.
pub(crate) fn any_pair(a: &[u8], b: &[u8], is: impl Fn(u8, u8) -> bool) -> bool {
    const BLOCK: usize = 16;
    let of_block = |a: &[u8; BLOCK], b: &[u8; BLOCK]| {
        let mut found = [0; BLOCK];
        for i in 0..BLOCK {
            found[i] = u8::from(is(a[i], b[i]));
        }
        u128::from_ne_bytes(found) != 0
    };
    let ((blocks_a, _), (blocks_b, _)) = (a.as_chunks(), b.as_chunks());
    match (a.last_chunk(), b.last_chunk()) {
        // The last block may overlap the one before it.
        (Some(last_a), Some(last_b)) => {
            let mut blocks = blocks_a.iter().zip(blocks_b).chain(std::iter::once((last_a, last_b)));
            blocks.any(|(a, b)| of_block(a, b))
        }
        _ => a.iter().zip(b).any(|(a, b)| is(*a, *b)),
    }
}

/// The longest reference that is resolved, in bytes, `&` and `;` included.
pub(crate) const REFERENCE_BYTES_MAX: usize = 12;

/// Appends `raw` with its references resolved; true if one was unknown (kept as written).
pub(crate) fn unescape_into(raw: &[u8], out: &mut Vec<u8>) -> bool {
    let mut unknown = false;
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'&', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let window = &rest[..rest.len().min(REFERENCE_BYTES_MAX)];
        if let Some((end, c)) = memchr::memchr(b';', window).and_then(|end| Some((end, reference(&rest[1..end])?))) {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            rest = &rest[end + 1..];
        } else {
            unknown |= is_entity(rest);
            out.push(b'&');
            rest = &rest[1..];
        }
    }
    out.extend_from_slice(rest);
    unknown
}

/// True for `&name;`: a bare `&` in text is no entity.
fn is_entity(text: &[u8]) -> bool {
    let name = text[1..].iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')).count();
    name > 0 && text.get(1 + name) == Some(&b';')
}

/// What a reference stands for; forbidden characters are given back as they are, to be treated like raw ones.
fn reference(name: &[u8]) -> Option<char> {
    match name {
        b"lt" => Some('<'),
        b"gt" => Some('>'),
        b"amp" => Some('&'),
        b"quot" => Some('"'),
        b"apos" => Some('\''),
        [b'#', b'x' | b'X', digits @ ..] => number(digits, 16),
        [b'#', digits @ ..] => number(digits, 10),
        _ => None,
    }
}

fn number(digits: &[u8], radix: u32) -> Option<char> {
    let code = u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()?;
    Some(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// A text of any length in bounded memory: head and tail are kept, the middle is counted.
#[derive(Debug)]
pub(crate) struct Bounded {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
    end_bytes: usize,
}

/// What is kept of either end, in bytes; leaves room for the line that says what was cut.
const END_BYTES: usize = limits::TEXT_BYTES_MAX / 2 - 64;

impl Default for Bounded {
    fn default() -> Self {
        Self::with_end(END_BYTES)
    }
}

impl Bounded {
    fn with_end(end_bytes: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), dropped: 0, end_bytes }
    }

    /// For a part of another such text: what is cut here fits there, with the line that says so.
    pub(crate) fn part() -> Self {
        Self::with_end(END_BYTES - 256)
    }

    /// Appends a piece.
    pub(crate) fn push(&mut self, mut piece: &[u8]) {
        let room = self.end_bytes - self.head.len();
        if room > 0 {
            let now = room.min(piece.len());
            self.head.extend_from_slice(&piece[..now]);
            piece = &piece[now..];
        }
        if piece.len() > self.end_bytes {
            self.dropped += (self.tail.len() + piece.len() - self.end_bytes) as u64;
            self.tail.clear();
            piece = &piece[piece.len() - self.end_bytes..];
        }
        let over = (self.tail.len() + piece.len()).saturating_sub(self.end_bytes);
        self.dropped += over as u64;
        self.tail.drain(..over);
        self.tail.extend(piece);
    }

    /// Empty again.
    pub(crate) fn clear(&mut self) {
        if !self.head.is_empty() {
            *self = Self::with_end(self.end_bytes);
        }
    }

    /// True if nothing but white space was pushed.
    pub(crate) fn is_blank(&self) -> bool {
        self.head.trim_ascii().is_empty() && self.tail.is_empty()
    }

    /// The text, cleaned and trimmed, and whether it was cut; empties this.
    pub(crate) fn finish(&mut self, odd: &mut Oddities) -> (String, bool) {
        let head = std::mem::take(&mut self.head);
        let tail: Vec<u8> = std::mem::take(&mut self.tail).into();
        let dropped = std::mem::take(&mut self.dropped);
        if dropped == 0 {
            let whole = if tail.is_empty() { head } else { [head, tail].concat() };
            return (clean(&whole, odd), false);
        }
        let head = &head[..whole_characters(&head)];
        let skip = tail.iter().take(3).take_while(|b| (0x80..0xc0).contains(*b)).count();
        let (head, tail) = (clean(head, odd), clean(&tail[skip..], odd));
        (format!("{head}\n[… {dropped} bytes cut …]\n{tail}"), true)
    }
}

/// The length of `bytes` without a character that its end cuts.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => e.valid_up_to(),
        _ => bytes.len(),
    }
}

/// Trimmed text without ANSI sequences; other forbidden characters and bytes are replaced.
pub(crate) fn clean(bytes: &[u8], odd: &mut Oddities) -> String {
    let text = lossy(bytes.trim_ascii());
    odd.invalid |= matches!(text, Cow::Owned(_));
    if !any_byte(text.as_bytes(), |b| b < 0x20 && b != b'\t' && b != b'\n') {
        return text.into_owned();
    }
    odd.control |= has_control(text.as_bytes());
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' if chars.peek() == Some(&'[') => {
                chars.next();
                while chars.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {}
            }
            '\u{1b}' => {}
            '\r' if chars.peek() == Some(&'\n') => {}
            '\t' | '\n' => out.push(c),
            '\r' => out.push('\n'),
            c if c < ' ' => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(raw: &str) -> (String, Oddities) {
        let mut odd = Oddities::default();
        (value(raw.as_bytes(), &mut odd).into_owned(), odd)
    }

    #[test]
    fn references_are_resolved_once_and_unknown_ones_kept() {
        assert_eq!(plain("a &lt;b&gt; &amp;quot; &#65;&#x1F600;").0, "a <b> &quot; A😀");
        let (text, odd) = plain("&nbsp;&lol;");
        assert_eq!(text, "&nbsp;&lol;");
        assert!(odd.entity);
        assert!(!plain("a & b && c &;").1.entity, "a bare ampersand is no entity");
        assert!(plain("&#27;[31m").1.control);
        assert_eq!(plain("&#xD800;").0, "\u{fffd}");
    }

    #[test]
    fn colour_goes_and_forbidden_characters_are_replaced() {
        let mut odd = Oddities::default();
        assert_eq!(clean(b" \x1b[31mred\x1b[0m\r\n\x00ok\t", &mut odd), "red\n\u{fffd}ok");
        assert!(odd.control);
    }

    proptest! {
        #[test]
        fn a_text_is_whole_or_cut_and_never_over_its_bound(length in 0..200_000usize, step in 1..70_000usize) {
            let text: String = "aé😀\n".chars().cycle().take(length).collect();
            let mut bounded = Bounded::default();
            for piece in text.as_bytes().chunks(step) {
                bounded.push(piece);
            }
            let mut odd = Oddities::default();
            let (out, cut) = bounded.finish(&mut odd);
            prop_assert!(out.len() <= limits::TEXT_BYTES_MAX);
            prop_assert!(!odd.invalid);
            prop_assert_eq!(cut, text.len() > 2 * END_BYTES);
            if !cut { prop_assert_eq!(out, text.trim()); }
        }

        #[test]
        fn unescaping_never_panics(raw in prop::collection::vec(any::<u8>(), 0..64)) {
            value(&raw, &mut Oddities::default());
        }
    }
}
