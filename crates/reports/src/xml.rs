//! A streaming XML pull tokenizer over a fixed window: tags whole, texts in pieces, captured output skipped.
//! Must not know JUnit or any other format.
//!
//! Why not quick-xml: its events hold a whole text or CDATA section, and reports with half a gigabyte in one are on
//! record; captured output, where most damage sits, must be skipped without being tokenized; and a tag needs a bound.
//! A tokenizer of this size gives all three, with positions, and is as fast (`benches/junit.rs`).

use std::io::{self, Read};

use domain::limits;
use memchr::{memchr, memmem, memrchr};

/// The longest tag, in bytes: names are cut at 4 KiB, and a message in an attribute stays far below.
pub(crate) const TAG_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The longest DOCTYPE, in bytes.
const DOCTYPE_BYTES_MAX: usize = 64 * 1024;
/// Attributes of one tag.
const ATTRIBUTES_MAX: usize = 256;
/// The window at the beginning, in bytes; it grows only for a longer tag.
const WINDOW_BYTES: usize = 128 * 1024;

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

/// Offsets into the window, relative to the token.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: usize,
    to: usize,
}

/// The cursor.
pub(crate) struct Cursor<R> {
    input: R,
    window: Vec<u8>,
    /// Next byte to read, and the end of what is filled.
    at: usize,
    end: usize,
    ended: bool,
    in_cdata: bool,
    /// The current token, its name or text, and its attributes.
    token: usize,
    span: Span,
    attributes: Vec<(Span, Span)>,
    /// Names of the open elements, one behind the other, and where each begins.
    names: Vec<u8>,
    open: Vec<usize>,
    entities_declared: bool,
    lines: Lines,
}

/// Counts lines without looking at any byte twice.
#[derive(Default)]
struct Lines {
    /// Bytes of the input before the window.
    before: u64,
    /// Up to where in the window lines are counted, how many, and the offset in the input after the last line end.
    counted: usize,
    count: u64,
    line_start: u64,
}

impl Lines {
    fn count_to(&mut self, window: &[u8], to: usize) {
        if to > self.counted {
            let bytes = &window[self.counted..to];
            self.count += memchr::memchr_iter(b'\n', bytes).count() as u64;
            if let Some(last) = memrchr(b'\n', bytes) {
                self.line_start = self.before + (self.counted + last) as u64 + 1;
            }
            self.counted = to;
        }
    }
}

impl<R: Read> Cursor<R> {
    /// At the beginning of UTF-8 bytes.
    pub(crate) fn new(input: R) -> Self {
        Self {
            input,
            window: vec![0; WINDOW_BYTES],
            at: 0,
            end: 0,
            ended: false,
            in_cdata: false,
            token: 0,
            span: Span { from: 0, to: 0 },
            attributes: Vec::with_capacity(16),
            names: Vec::with_capacity(256),
            open: Vec::with_capacity(16),
            entities_declared: false,
            lines: Lines::default(),
        }
    }

    /// The local name of the current tag.
    pub(crate) fn name(&self) -> &[u8] {
        local(&self.window[self.span.from..self.span.to])
    }

    /// The current piece of text.
    pub(crate) fn text(&self) -> &[u8] {
        &self.window[self.span.from..self.span.to]
    }

    /// Local names and raw values of the current start tag, as written.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let token = &self.window[self.token..];
        self.attributes.iter().map(|(name, value)| (local(&token[name.from..name.to]), &token[value.from..value.to]))
    }

    /// The raw value of an attribute of the current start tag.
    pub(crate) fn attribute(&self, name: &[u8]) -> Option<&[u8]> {
        self.attributes().find(|(n, _)| *n == name).map(|(_, value)| value)
    }

    /// True if a DOCTYPE declared entities.
    pub(crate) fn entities_declared(&self) -> bool {
        self.entities_declared
    }

    /// Line and column, from 1, of the current token, or of the place where there is none.
    pub(crate) fn position(&mut self) -> (u64, u64) {
        self.lines.count_to(&self.window, self.token.min(self.end));
        let column = self.lines.before + self.token as u64 - self.lines.line_start + 1;
        // A position before what is counted already (a token given back) is on the line counted last.
        (self.lines.count + 1, column)
    }

    /// The line, from 1, of the first byte of the current text that is no white space.
    pub(crate) fn line_of_text(&mut self) -> u64 {
        let blanks = self.text().len() - self.text().trim_ascii_start().len();
        self.lines.count_to(&self.window, self.span.from + blanks);
        self.lines.count + 1
    }

    /// The bytes ahead, at least `want` of them unless the input is shorter.
    pub(crate) fn peek(&mut self, want: usize) -> io::Result<&[u8]> {
        while self.end - self.at < want && self.fill()? {}
        Ok(&self.window[self.at..self.end])
    }

    /// Passes over bytes that [`Cursor::peek`] has shown.
    pub(crate) fn pass(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.end);
        self.token = self.at;
    }

    /// Gives the current start tag back: the next call finds it again.
    pub(crate) fn give_back(&mut self, token: Token) {
        if token == (Token::Start { empty: false }) {
            self.close();
        }
        self.at = self.token;
    }

    /// Drops all open elements: a new document begins here.
    pub(crate) fn forget_open(&mut self) {
        self.names.clear();
        self.open.clear();
    }

    /// More bytes into the window; false at the end of the input. What lies before the token is given up.
    fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let keep = self.token.min(self.at);
        if keep > 0 {
            self.lines.count_to(&self.window, keep);
            self.window.copy_within(keep..self.end, 0);
            self.lines.before += keep as u64;
            self.lines.counted -= keep;
            (self.at, self.end, self.token) = (self.at - keep, self.end - keep, self.token - keep);
        }
        if self.end == self.window.len() {
            self.window.resize(self.window.len() * 2, 0);
        }
        let got = crate::source::read_some(&mut self.input, &mut self.window[self.end..])?;
        self.end += got;
        self.ended = self.end < self.window.len();
        Ok(got > 0)
    }

    /// The next token.
    pub(crate) fn next(&mut self) -> Result<Token, XmlError> {
        loop {
            self.token = self.at;
            if self.in_cdata {
                if self.cdata()? {
                    return Ok(Token::CData);
                }
                continue;
            }
            if self.at == self.end && !self.fill()? {
                if self.open.is_empty() {
                    return Ok(Token::Eof);
                }
                let name = self.innermost();
                return broken(format!("the file ends inside <{name}>"));
            }
            if self.window[self.at] != b'<' {
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
        let text = &self.window[self.at..self.end];
        let mut length = memchr(b'<', text).unwrap_or(text.len());
        if length == text.len() && !self.ended {
            // A reference at the end of the window waits for its rest.
            let tail = length.saturating_sub(crate::text::REFERENCE_BYTES_MAX);
            if let Some(at) = memrchr(b'&', &text[tail..])
                && memchr(b';', &text[tail + at..]).is_none()
            {
                length = tail + at;
            }
            if length == 0 {
                self.fill()?;
                return Ok(false);
            }
        }
        self.span = Span { from: self.at, to: self.at + length };
        self.at += length;
        Ok(true)
    }

    /// A piece of a CDATA section; false if there is none (yet).
    fn cdata(&mut self) -> Result<bool, XmlError> {
        let text = &self.window[self.at..self.end];
        let (length, after) = match memmem::find(text, b"]]>") {
            Some(at) => {
                self.in_cdata = false;
                (at, at + 3)
            }
            None if text.len() <= 2 => {
                if !self.fill()? {
                    return broken("the file ends inside a CDATA section");
                }
                return Ok(false);
            }
            None => (text.len() - 2, text.len() - 2),
        };
        self.span = Span { from: self.at, to: self.at + length };
        self.at += after;
        Ok(length > 0)
    }

    /// What begins with `<`; none for comments, instructions and the like.
    fn markup(&mut self) -> Result<Option<Token>, XmlError> {
        let ahead = self.peek(9)?;
        match ahead.get(1) {
            Some(b'/') => self.end_tag().map(Some),
            Some(b'?') => self.skip_past(b"?>", "a processing instruction").map(|()| None),
            Some(b'!') if ahead.starts_with(b"<!--") => {
                self.pass(4);
                self.skip_past(b"-->", "a comment").map(|()| None)
            }
            Some(b'!') if ahead.starts_with(b"<![CDATA[") => {
                self.at += 9;
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

    /// Passes over everything up to and with `pattern`, keeping nothing.
    fn skip_past(&mut self, pattern: &[u8], what: &str) -> Result<(), XmlError> {
        loop {
            let text = &self.window[self.at..self.end];
            if let Some(at) = memmem::find(text, pattern) {
                self.pass(at + pattern.len());
                return Ok(());
            }
            self.pass(text.len().saturating_sub(pattern.len() - 1));
            if !self.fill()? {
                return broken(format!("the file ends inside {what}"));
            }
        }
    }

    /// Passes over a DOCTYPE with its internal subset, noting whether it declares entities. Nothing is fetched.
    fn doctype(&mut self) -> Result<(), XmlError> {
        let mut quote = None;
        let mut depth = 0_usize;
        let mut i = 0;
        loop {
            if self.at + i >= self.end && !self.fill()? {
                return broken("the file ends inside the DOCTYPE");
            }
            let byte = self.window[self.at + i];
            if quote.is_none() && self.window[self.at..=self.at + i].ends_with(b"<!--") {
                self.at += i + 1;
                self.skip_past(b"-->", "a comment")?;
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
        self.entities_declared |= memmem::find(&self.window[self.at..self.at + i], b"<!ENTITY").is_some();
        self.pass(i);
        Ok(())
    }

    /// More bytes for a tag that is not whole.
    fn more_of_tag(&mut self) -> Result<(), XmlError> {
        if self.end - self.at > TAG_BYTES_MAX {
            return broken(format!("a tag of more than {TAG_BYTES_MAX} bytes"));
        }
        if self.fill()? { Ok(()) } else { broken("the file ends inside a tag") }
    }

    fn end_tag(&mut self) -> Result<Token, XmlError> {
        let length = loop {
            match memchr(b'>', &self.window[self.at..self.end]) {
                Some(length) => break length,
                None => self.more_of_tag()?,
            }
        };
        let name = self.window[self.at + 2..self.at + length].trim_ascii_end();
        let Some(from) = self.open.last() else {
            return broken(format!("</{}> closes nothing", shown(name)));
        };
        if name != &self.names[*from..] {
            return broken(format!("</{}> where <{}> is open", shown(name), self.innermost()));
        }
        self.span = Span { from: self.at + 2, to: self.at + 2 + name.len() };
        self.at += length + 1;
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
            match scan_tag(&self.window[self.at..self.end], &mut self.attributes) {
                Ok(found) => break found,
                Err(Some(what)) => return broken(what),
                Err(None) => self.more_of_tag()?,
            }
        };
        self.span = Span { from: self.at + 1, to: self.at + name_end };
        if !empty {
            if self.open.len() >= limits::NESTING_MAX {
                return broken(format!("elements nested deeper than {}", limits::NESTING_MAX));
            }
            self.open.push(self.names.len());
            self.names.extend_from_slice(&self.window[self.span.from..self.span.to]);
        }
        self.at += length;
        Ok(Token::Start { empty })
    }

    /// Passes over the content of the element just opened, up to and with its end tag, looking at nothing but CDATA
    /// marks and the end tag itself: captured output holds raw tags, broken CDATA and any byte there is. True if there
    /// was markup in it that is no CDATA.
    pub(crate) fn skip_output(&mut self) -> Result<bool, XmlError> {
        let from = self.open.last().copied().unwrap_or(0);
        let name = self.names[from..].to_vec();
        let mut markup = false;
        loop {
            let Some(at) = memchr(b'<', &self.window[self.at..self.end]) else {
                self.pass(self.end - self.at);
                if !self.fill()? {
                    return broken(format!("the file ends inside <{}>", shown(&name)));
                }
                continue;
            };
            self.pass(at);
            let want = (name.len() + 3).max(9);
            let ahead = self.peek(want)?;
            if ahead.starts_with(b"<![CDATA[") {
                self.pass(9);
                self.skip_past(b"]]>", "a CDATA section")?;
            } else if ahead.len() > name.len() + 2
                && ahead.starts_with(b"</")
                && ahead[2..].starts_with(&name)
                && (ahead[name.len() + 2] == b'>' || ahead[name.len() + 2].is_ascii_whitespace())
            {
                self.skip_past(b">", "a tag")?;
                self.close();
                return Ok(markup);
            } else {
                markup = true;
                self.pass(1);
            }
        }
    }
}

/// The name without its prefix.
fn local(name: &[u8]) -> &[u8] {
    match memchr(b':', name) {
        Some(at) => &name[at + 1..],
        None => name,
    }
}

/// A name for a message.
fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(60)]).escape_debug().to_string()
}

/// Finds the parts of the start tag at the beginning of `tag`: its length, the end of its name, and whether it is
/// empty. `Err(None)` if it is not whole.
fn scan_tag(tag: &[u8], attributes: &mut Vec<(Span, Span)>) -> Result<(usize, usize, bool), Option<String>> {
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
