//! The parts of one start tag. Must not know where the bytes come from.

use memchr::memchr;

/// Attributes of one tag.
const ATTRIBUTES_MAX: usize = 256;

/// Offsets relative to the beginning of the tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// The name without its prefix.
pub(super) fn local(name: &[u8]) -> &[u8] {
    // Names are too short for a call.
    match name.iter().position(|b| *b == b':') {
        Some(at) => &name[at + 1..],
        None => name,
    }
}

/// A name for a message.
pub(super) fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(60)]).escape_debug().to_string()
}

/// What a byte means outside of values; the kinds are bits, and letters of names have none.
const BLANK: u8 = 1;
const SLASH_OR_GREATER: u8 = 2;
const EQUALS: u8 = 4;
const COLON: u8 = 8;

static KINDS: [u8; 256] = kinds();

const fn kinds() -> [u8; 256] {
    let mut kinds = [0; 256];
    let mut b = 0;
    while b < 0x80 {
        kinds[b as usize] = match b {
            b'>' | b'/' => SLASH_OR_GREATER,
            b'=' => EQUALS,
            b':' => COLON,
            _ if b.is_ascii_whitespace() => BLANK,
            _ => 0,
        };
        b += 1;
    }
    kinds
}

/// The next place, from `at`, where a byte of these kinds stands.
fn find(tag: &[u8], at: usize, kinds: u8) -> Option<usize> {
    tag[at..].iter().position(|b| KINDS[usize::from(*b)] & kinds != 0).map(|n| at + n)
}

/// The next place, from `at`, that is not blank; mostly `at` itself.
fn find_dark(tag: &[u8], at: usize) -> Option<usize> {
    tag[at..].iter().position(|b| KINDS[usize::from(*b)] != BLANK).map(|n| at + n)
}

/// Finds the parts of the start tag at the beginning of `tag`: its length, the end of its name, and whether it is
/// empty; of attributes the local name and the value. `Err(None)` if it is not whole.
pub(super) fn scan_tag(tag: &[u8], attributes: &mut Vec<(Span, Span)>) -> Result<(usize, usize, bool), Option<String>> {
    attributes.clear();
    let name_end = find(tag, 1, BLANK | SLASH_OR_GREATER).ok_or(None)?;
    let mut i = name_end;
    loop {
        i = find_dark(tag, i).ok_or(None)?;
        match tag[i] {
            b'>' => return Ok((i + 1, name_end, false)),
            b'/' => {
                return match tag.get(i + 1) {
                    Some(b'>') => Ok((i + 2, name_end, true)),
                    Some(_) => Err(Some(format!("a '/' inside the tag <{}>", shown(&tag[1..name_end])))),
                    None => Err(None),
                };
            }
            _ => {}
        }
        let from = i;
        i = find(tag, i, BLANK | SLASH_OR_GREATER | EQUALS | COLON).ok_or(None)?;
        let mut name = Span { from, to: i };
        if tag[i] == b':' {
            i = find(tag, i, BLANK | SLASH_OR_GREATER | EQUALS).ok_or(None)?;
            name = Span { from: name.to + 1, to: i };
        }
        i = find_dark(tag, i).ok_or(None)?;
        if tag[i] != b'=' || i == from {
            let text = shown(&tag[from..tag.len().min(from + 40)]);
            return Err(Some(format!(
                "text that is no attribute inside the tag <{}>: {text}",
                shown(&tag[1..name_end])
            )));
        }
        i = find_dark(tag, i + 1).ok_or(None)?;
        let quote = tag[i];
        if !matches!(quote, b'"' | b'\'') {
            return Err(Some(format!("the attribute {} without quotes", shown(&tag[from..name.to]))));
        }
        i += 1;
        let length = memchr(quote, &tag[i..]).ok_or(None)?;
        if attributes.len() == ATTRIBUTES_MAX {
            return Err(Some(format!("a tag with more than {ATTRIBUTES_MAX} attributes")));
        }
        attributes.push((name, Span { from: i, to: i + length }));
        i += length + 1;
    }
}
