//! Bytes of any encoding to UTF-8, as a stream: byte order mark, then the declaration, then what the bytes look like
//! (`facts/formats.md`, rule 1.6). UTF-8 passes untouched, valid or not. Must not know formats.

use std::io::{self, Cursor, Read};

use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use crate::source::read_some;

/// How much of the beginning is looked at for marks and declaration, in bytes.
const HEAD_BYTES: usize = 4096;

/// UTF-8 bytes, and what was odd about the encoding.
pub(crate) struct Decoded<'a> {
    /// The bytes as UTF-8.
    pub(crate) bytes: Box<dyn Read + 'a>,
    /// Said of the file as a whole.
    pub(crate) warning: Option<String>,
}

/// Finds the encoding and undoes it.
pub(crate) fn utf8<'a>(mut input: Box<dyn Read + 'a>) -> io::Result<Decoded<'a>> {
    let mut head = vec![0; HEAD_BYTES];
    let got = read_some(&mut input, &mut head)?;
    head.truncate(got);
    let (encoding, mark, warning) = encoding_of(&head);
    head.drain(..mark);
    let bytes: Box<dyn Read + 'a> = Box::new(Cursor::new(head).chain(input));
    if encoding == UTF_8 {
        return Ok(Decoded { bytes, warning });
    }
    let decoder = encoding.new_decoder_without_bom_handling();
    Ok(Decoded { bytes: Box::new(Transcoded::new(bytes, decoder)), warning })
}

/// The encoding, the length of its mark, and a warning when the declaration was not believed.
fn encoding_of(head: &[u8]) -> (&'static Encoding, usize, Option<String>) {
    if let Some((encoding, length)) = Encoding::for_bom(head) {
        return (encoding, length, None);
    }
    match head {
        [b'<', 0, ..] => return (UTF_16LE, 0, None),
        [0, b'<', ..] => return (UTF_16BE, 0, None),
        _ => {}
    }
    let Some(label) = declared(head) else { return (UTF_8, 0, None) };
    match Encoding::for_label(label.as_bytes()) {
        Some(e) if e == UTF_16LE || e == UTF_16BE => {
            (UTF_8, 0, Some(format!("is declared as {label}, but its bytes are UTF-8; the bytes were believed")))
        }
        Some(e) if e == WINDOWS_1252 && std::str::from_utf8(trimmed(head)).is_ok() && !head.is_ascii() => {
            (UTF_8, 0, Some(format!("is declared as {label}, but its bytes are UTF-8; the bytes were believed")))
        }
        Some(e) => (e, 0, None),
        None if label.eq_ignore_ascii_case("utf8") => (UTF_8, 0, None),
        None => (UTF_8, 0, Some(format!("declares the unknown encoding {label:?}; it was read as UTF-8"))),
    }
}

/// Without a character that the end of the head may have cut.
fn trimmed(head: &[u8]) -> &[u8] {
    if head.len() < HEAD_BYTES {
        return head;
    }
    match std::str::from_utf8(head) {
        Err(e) if e.error_len().is_none() => &head[..e.valid_up_to()],
        _ => head,
    }
}

/// The encoding that an XML declaration within the head names.
fn declared(head: &[u8]) -> Option<String> {
    let start = memchr::memmem::find(head, b"<?xml")?;
    let end = start + memchr::memmem::find(&head[start..], b"?>")?;
    let declaration = &head[start..end];
    let at = memchr::memmem::find(declaration, b"encoding")? + b"encoding".len();
    let rest = declaration[at..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let quote = *rest.first().filter(|q| matches!(q, b'"' | b'\''))?;
    let length = memchr::memchr(quote, &rest[1..])?.min(40);
    Some(String::from_utf8_lossy(&rest[1..=length]).trim().to_owned())
}

/// A decoder as a reader.
struct Transcoded<R> {
    input: R,
    decoder: Decoder,
    raw: Vec<u8>,
    raw_from: usize,
    raw_to: usize,
    out: Vec<u8>,
    out_from: usize,
    out_to: usize,
    ended: bool,
}

impl<R: Read> Transcoded<R> {
    fn new(input: R, decoder: Decoder) -> Self {
        let (raw, out) = (vec![0; 16 * 1024], vec![0; 64 * 1024]);
        Self { input, decoder, raw, raw_from: 0, raw_to: 0, out, out_from: 0, out_to: 0, ended: false }
    }

    fn refill(&mut self) -> io::Result<()> {
        while self.out_from == self.out_to && !self.ended {
            if self.raw_from == self.raw_to {
                self.raw_from = 0;
                self.raw_to = read_some(&mut self.input, &mut self.raw)?;
            }
            let last = self.raw_to < self.raw.len();
            let (result, read, written, _) =
                self.decoder.decode_to_utf8(&self.raw[self.raw_from..self.raw_to], &mut self.out, last);
            self.raw_from += read;
            (self.out_from, self.out_to) = (0, written);
            self.ended = last && result == encoding_rs::CoderResult::InputEmpty;
        }
        Ok(())
    }
}

impl<R: Read> Read for Transcoded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.refill()?;
        let n = into.len().min(self.out_to - self.out_from);
        into[..n].copy_from_slice(&self.out[self.out_from..self.out_from + n]);
        self.out_from += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> (String, bool) {
        let decoded = utf8(Box::new(bytes)).unwrap();
        let mut out = Vec::new();
        let warned = decoded.warning.is_some();
        let mut bytes = decoded.bytes;
        bytes.read_to_end(&mut out).unwrap();
        (String::from_utf8_lossy(&out).into_owned(), warned)
    }

    fn utf16(text: &str, little: bool) -> Vec<u8> {
        text.encode_utf16().flat_map(|u| if little { u.to_le_bytes() } else { u.to_be_bytes() }).collect()
    }

    #[test]
    fn marks_declarations_and_bytes_are_honoured_in_this_order() {
        let plain = "<a>é€</a>";
        assert_eq!(text(plain.as_bytes()), (plain.into(), false));
        assert_eq!(text(&[b"\xef\xbb\xbf", plain.as_bytes()].concat()), (plain.into(), false));
        assert_eq!(text(&[&[0xff, 0xfe], &utf16(plain, true)[..]].concat()), (plain.into(), false));
        assert_eq!(text(&[&[0xfe, 0xff], &utf16(plain, false)[..]].concat()), (plain.into(), false));
        assert_eq!(text(&utf16(plain, true)), (plain.into(), false));
        assert_eq!(text(&utf16(plain, false)), (plain.into(), false));
        let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xe9</a>";
        assert!(text(latin).0.ends_with("<a>é</a>"));
        let windows = b"<?xml version='1.0' encoding = \"windows-1252\"?><a>\x80</a>";
        assert!(text(windows).0.ends_with("<a>€</a>"));
        assert!(!text("<?xml version='1.0' encoding='utf8'?><a>é</a>".as_bytes()).1);
    }

    #[test]
    fn a_declaration_that_the_bytes_deny_is_not_believed() {
        let lie = "<?xml version='1.0' encoding='utf-16'?><a>é</a>";
        assert_eq!(text(lie.as_bytes()), (lie.into(), true));
        let lie = "<?xml version='1.0' encoding='latin1'?><a>é</a>";
        assert_eq!(text(lie.as_bytes()), (lie.into(), true));
    }
}
