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
    match memchr(b':', name) {
        Some(at) => &name[at + 1..],
        None => name,
    }
}

/// A name for a message.
pub(super) fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(60)]).escape_debug().to_string()
}

/// Finds the parts of the start tag at the beginning of `tag`: its length, the end of its name, and whether it is
/// empty. `Err(None)` if it is not whole.
pub(super) fn scan_tag(tag: &[u8], attributes: &mut Vec<(Span, Span)>) -> Result<(usize, usize, bool), Option<String>> {
    attributes.clear();
    let name_end = 1 + tag[1..].iter().position(|b| ends_name(*b)).ok_or(None)?;
    let mut i = name_end;
    loop {
        i += tag[i..].iter().position(|b| !b.is_ascii_whitespace()).ok_or(None)?;
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
        i += tag[i..].iter().position(|b| ends_name(*b) || *b == b'=').ok_or(None)?;
        let name = Span { from, to: i };
        i += tag[i..].iter().position(|b| !b.is_ascii_whitespace()).ok_or(None)?;
        if tag[i] != b'=' || name.from == name.to {
            let text = shown(&tag[from..tag.len().min(from + 40)]);
            return Err(Some(format!(
                "text that is no attribute inside the tag <{}>: {text}",
                shown(&tag[1..name_end])
            )));
        }
        i += 1;
        i += tag[i..].iter().position(|b| !b.is_ascii_whitespace()).ok_or(None)?;
        let quote = tag[i];
        if !matches!(quote, b'"' | b'\'') {
            return Err(Some(format!("the attribute {} without quotes", shown(&tag[name.from..name.to]))));
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

fn ends_name(b: u8) -> bool {
    b.is_ascii_whitespace() || matches!(b, b'>' | b'/')
}
