//! A streaming XML pull tokenizer over a fixed window: tags whole, texts in pieces, captured output skipped.
//! Must not know JUnit or any other format.
//!
//! Why not quick-xml: its events hold a whole text or CDATA section, and reports with half a gigabyte in one are on
//! record; captured output, where most damage sits, must be skipped without being tokenized; and a tag needs a bound.
//! A tokenizer of this size gives all three, with positions, and is as fast (`benches/junit.rs`).

mod tag;
mod window;

use std::io::{self, Read};

use domain::limits;
use memchr::{memchr, memmem, memrchr};

use self::tag::{Span, local, scan_tag, shown};
use self::window::Window;
use crate::attachments::Marks;

/// The longest tag, in bytes: names are cut at 4 KiB, and a message in an attribute stays far below.
pub(crate) const TAG_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The longest DOCTYPE, in bytes.
const DOCTYPE_BYTES_MAX: usize = 64 * 1024;

/// What stands at the cursor. Names, attributes and texts are read from the cursor until the next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    /// A start tag; an empty element has no end tag to follow.
    Start { empty: bool },
    /// An end tag that matches the open element.
    End,
    /// A piece of character data, references unresolved.
    Text,
    /// A piece of a CDATA section.
    CData,
    /// The end of the input, outside of any element.
    Eof,
}

/// Why there is no next token.
#[derive(Debug)]
pub(crate) enum XmlError {
    /// Broken markup; the position is that of the cursor.
    Broken(String),
    /// The input failed.
    Io(io::Error),
}

impl From<io::Error> for XmlError {
    fn from(e: io::Error) -> Self {
        XmlError::Io(e)
    }
}

fn broken<T>(what: impl Into<String>) -> Result<T, XmlError> {
    Err(XmlError::Broken(what.into()))
}

/// The cursor.
pub(crate) struct Cursor<R> {
    window: Window<R>,
    in_cdata: bool,
    /// Name or text of the current token, and the local names and values of its attributes.
    span: Span,
    attributes: Vec<(Span, Span)>,
    /// Names of the open elements, one behind the other, and where each begins.
    names: Vec<u8>,
    open: Vec<usize>,
    entities_declared: bool,
}

impl<R: Read> Cursor<R> {
    /// At the beginning of UTF-8 bytes.
    pub(crate) fn new(input: R) -> Self {
        Self {
            window: Window::new(input),
            in_cdata: false,
            span: Span { from: 0, to: 0 },
            attributes: Vec::with_capacity(16),
            names: Vec::with_capacity(256),
            open: Vec::with_capacity(16),
            entities_declared: false,
        }
    }

    /// The local name of the current tag.
    pub(crate) fn name(&self) -> &[u8] {
        local(&self.window.bytes[self.span.from..self.span.to])
    }

    /// The current piece of text.
    pub(crate) fn text(&self) -> &[u8] {
        &self.window.bytes[self.span.from..self.span.to]
    }

    /// Local names and raw values of the current start tag, as written.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let token = &self.window.bytes[self.window.token..];
        self.attributes.iter().map(|(name, value)| (&token[name.from..name.to], &token[value.from..value.to]))
    }

    /// The raw value of an attribute of the current start tag.
    pub(crate) fn attribute(&self, name: &[u8]) -> Option<&[u8]> {
        self.attributes().find(|(n, _)| *n == name).map(|(_, value)| value)
    }

    /// True if a DOCTYPE declared entities.
    pub(crate) fn entities_declared(&self) -> bool {
        self.entities_declared
    }

    /// The line, from 1, of the current token.
    pub(crate) fn line(&mut self) -> u64 {
        self.window.line()
    }

    /// Line and column, from 1, of the current token, or of the place where there is none.
    pub(crate) fn position(&mut self) -> (u64, u64) {
        self.window.position()
    }

    /// The line, from 1, of the first byte of the current text that is no white space.
    pub(crate) fn line_of_text(&mut self) -> u64 {
        let blanks = self.text().len() - self.text().trim_ascii_start().len();
        self.window.line_at(self.span.from + blanks)
    }

    /// The bytes ahead, at least `want` of them unless the input is shorter.
    pub(crate) fn peek(&mut self, want: usize) -> io::Result<&[u8]> {
        self.window.peek(want)
    }

    /// Passes over bytes that [`Cursor::peek`] has shown.
    pub(crate) fn pass(&mut self, bytes: usize) {
        self.window.pass(bytes);
    }

    /// Gives the current start tag back: the next call finds it again.
    pub(crate) fn give_back(&mut self, token: Token) {
        if token == (Token::Start { empty: false }) {
            self.close();
        }
        self.window.at = self.window.token;
    }

    /// Drops all open elements: a new document begins here.
    pub(crate) fn forget_open(&mut self) {
        self.names.clear();
        self.open.clear();
    }

    /// The next token.
    pub(crate) fn next(&mut self) -> Result<Token, XmlError> {
        loop {
            self.window.token = self.window.at;
            if self.in_cdata {
                if self.cdata()? {
                    return Ok(Token::CData);
                }
                continue;
            }
            if self.window.at == self.window.end && !self.window.fill()? {
                if self.open.is_empty() {
                    return Ok(Token::Eof);
                }
                let name = self.innermost();
                return broken(format!("the file ends inside <{name}>"));
            }
            if self.window.bytes[self.window.at] != b'<' {
                if self.piece()? {
                    return Ok(Token::Text);
                }
            } else if let Some(token) = self.markup()? {
                return Ok(token);
            }
        }
    }

    /// The name of the innermost open element, for messages.
    fn innermost(&self) -> String {
        let from = self.open.last().copied().unwrap_or(0);
        String::from_utf8_lossy(&self.names[from..]).into_owned()
    }

    /// A piece of text up to the next markup; false if it needed more bytes first.
    fn piece(&mut self) -> Result<bool, XmlError> {
        let text = self.window.ahead();
        let mut length = memchr(b'<', text).unwrap_or(text.len());
        if length == text.len() && !self.window.ended {
            // A reference at the end of the window waits for its rest.
            let tail = length.saturating_sub(crate::text::REFERENCE_BYTES_MAX);
            if let Some(at) = memrchr(b'&', &text[tail..])
                && memchr(b';', &text[tail + at..]).is_none()
            {
                length = tail + at;
            }
            if length == 0 {
                self.window.fill()?;
                return Ok(false);
            }
        }
        self.span = Span { from: self.window.at, to: self.window.at + length };
        self.window.at += length;
        Ok(true)
    }

    /// A piece of a CDATA section; false if there is none (yet).
    fn cdata(&mut self) -> Result<bool, XmlError> {
        let text = self.window.ahead();
        let (length, after) = match memmem::find(text, b"]]>") {
            Some(at) => {
                self.in_cdata = false;
                (at, at + 3)
            }
            None if text.len() <= 2 => {
                if !self.window.fill()? {
                    return broken("the file ends inside a CDATA section");
                }
                return Ok(false);
            }
            None => (text.len() - 2, text.len() - 2),
        };
        self.span = Span { from: self.window.at, to: self.window.at + length };
        self.window.at += after;
        Ok(length > 0)
    }

    /// What begins with `<`; none for comments, instructions and the like.
    fn markup(&mut self) -> Result<Option<Token>, XmlError> {
        let ahead = self.window.peek(9)?;
        match ahead.get(1) {
            Some(b'/') => self.end_tag().map(Some),
            Some(b'?') => self.window.skip_past(b"?>", "a processing instruction").map(|()| None),
            Some(b'!') if ahead.starts_with(b"<!--") => {
                self.window.pass(4);
                self.window.skip_past(b"-->", "a comment").map(|()| None)
            }
            Some(b'!') if ahead.starts_with(b"<![CDATA[") => {
                self.window.at += 9;
                self.in_cdata = true;
                Ok(None)
            }
            Some(b'!') if ahead.len() >= 9 && ahead[..9].eq_ignore_ascii_case(b"<!DOCTYPE") => {
                self.doctype().map(|()| None)
            }
            Some(b) if b.is_ascii_alphabetic() || *b == b'_' || *b >= 0x80 => self.start_tag().map(Some),
            Some(_) => {
                let text = String::from_utf8_lossy(&ahead[..ahead.len().min(9)]).escape_debug().to_string();
                broken(format!("a bare '<' in the text ({text})"))
            }
            None => broken("the file ends inside a tag"),
        }
    }

    /// Passes over a DOCTYPE with its internal subset, noting whether it declares entities. Nothing is fetched.
    fn doctype(&mut self) -> Result<(), XmlError> {
        let mut quote = None;
        let mut depth = 0_usize;
        let mut i = 0;
        loop {
            if self.window.at + i >= self.window.end && !self.window.fill()? {
                return broken("the file ends inside the DOCTYPE");
            }
            let byte = self.window.bytes[self.window.at + i];
            if quote.is_none() && self.window.bytes[self.window.at..=self.window.at + i].ends_with(b"<!--") {
                self.window.at += i + 1;
                self.window.skip_past(b"-->", "a comment")?;
                (i, depth) = (0, depth - 1);
                continue;
            }
            match (quote, byte) {
                (Some(q), b) if b == q => quote = None,
                (Some(_), _) => {}
                (None, b'"' | b'\'') => quote = Some(byte),
                (None, b'<') => depth += 1,
                (None, b'>') => depth -= 1,
                _ => {}
            }
            i += 1;
            if depth == 0 {
                break;
            }
            if i > DOCTYPE_BYTES_MAX {
                return broken(format!("a DOCTYPE of more than {DOCTYPE_BYTES_MAX} bytes"));
            }
        }
        self.entities_declared |=
            memmem::find(&self.window.bytes[self.window.at..self.window.at + i], b"<!ENTITY").is_some();
        self.window.pass(i);
        Ok(())
    }

    /// More bytes for a tag that is not whole.
    fn more_of_tag(&mut self) -> Result<(), XmlError> {
        if self.window.end - self.window.at > TAG_BYTES_MAX {
            return broken(format!("a tag of more than {TAG_BYTES_MAX} bytes"));
        }
        if self.window.fill()? { Ok(()) } else { broken("the file ends inside a tag") }
    }

    fn end_tag(&mut self) -> Result<Token, XmlError> {
        let length = loop {
            match memchr(b'>', self.window.ahead()) {
                Some(length) => break length,
                None => self.more_of_tag()?,
            }
        };
        let name = self.window.bytes[self.window.at + 2..self.window.at + length].trim_ascii_end();
        let Some(from) = self.open.last() else {
            return broken(format!("</{}> closes nothing", shown(name)));
        };
        if name != &self.names[*from..] {
            return broken(format!("</{}> where <{}> is open", shown(name), self.innermost()));
        }
        self.span = Span { from: self.window.at + 2, to: self.window.at + 2 + name.len() };
        self.window.at += length + 1;
        self.close();
        Ok(Token::End)
    }

    fn close(&mut self) {
        if let Some(from) = self.open.pop() {
            self.names.truncate(from);
        }
    }

    fn start_tag(&mut self) -> Result<Token, XmlError> {
        let (length, name_end, empty) = loop {
            match scan_tag(self.window.ahead(), &mut self.attributes) {
                Ok(found) => break found,
                Err(Some(what)) => return broken(what),
                Err(None) => self.more_of_tag()?,
            }
        };
        self.span = Span { from: self.window.at + 1, to: self.window.at + name_end };
        if !empty {
            if self.open.len() >= limits::NESTING_MAX {
                return broken(format!("elements nested deeper than {}", limits::NESTING_MAX));
            }
            self.open.push(self.names.len());
            self.names.extend_from_slice(&self.window.bytes[self.span.from..self.span.to]);
        }
        self.window.at += length;
        Ok(Token::Start { empty })
    }

    /// Passes over the content of the element just opened, up to and with its end tag, looking at nothing but CDATA
    /// marks and the end tag itself: captured output holds raw tags, broken CDATA and any byte there is. True if there
    /// was markup in it that is no CDATA. `marks` are shown all of it.
    pub(crate) fn skip_output(&mut self, mut marks: Option<&mut Marks>) -> Result<bool, XmlError> {
        let from = self.open.last().copied().unwrap_or(0);
        let name = self.names[from..].to_vec();
        let mut markup = false;
        loop {
            let found = memchr(b'<', self.window.ahead());
            if let Some(marks) = &mut marks {
                let ahead = self.window.ahead();
                marks.see(&ahead[..found.unwrap_or(ahead.len())], false);
            }
            let Some(at) = found else {
                self.window.pass(self.window.end - self.window.at);
                if !self.window.fill()? {
                    return broken(format!("the file ends inside <{}>", shown(&name)));
                }
                continue;
            };
            self.window.pass(at);
            let want = (name.len() + 3).max(9);
            let ahead = self.window.peek(want)?;
            if ahead.starts_with(b"<![CDATA[") {
                self.window.pass(9);
                self.window.skip_past_showing(b"]]>", "a CDATA section", |piece| {
                    if let Some(marks) = &mut marks {
                        marks.see(piece, true);
                    }
                })?;
            } else if ahead.len() > name.len() + 2
                && ahead.starts_with(b"</")
                && ahead[2..].starts_with(&name)
                && (ahead[name.len() + 2] == b'>' || ahead[name.len() + 2].is_ascii_whitespace())
            {
                self.window.skip_past(b">", "a tag")?;
                if let Some(marks) = marks {
                    marks.end();
                }
                self.close();
                return Ok(markup);
            } else {
                markup = true;
                self.window.pass(1);
            }
        }
    }
}
