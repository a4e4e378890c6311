//! The part of the input that is in memory: filled, passed over, and its lines counted.
//! Must not know markup.

use std::io::{self, Read};

use memchr::{memmem, memrchr};

use super::XmlError;

/// The window at the beginning, in bytes; it grows only for a longer tag.
const WINDOW_BYTES: usize = 128 * 1024;

/// A window over the input. What lies before the current token is given up when more is needed.
pub(super) struct Window<R> {
    input: R,
    pub(super) bytes: Vec<u8>,
    /// Where the current token begins, the next byte to read, and the end of what is filled.
    pub(super) token: usize,
    pub(super) at: usize,
    pub(super) end: usize,
    /// The input has no more.
    pub(super) ended: bool,
    lines: Lines,
}

/// Counts lines without looking at any byte twice.
#[derive(Default)]
struct Lines {
    /// Bytes of the input before the window.
    before: u64,
    /// Up to where in the window lines are counted, and how many.
    counted: usize,
    count: u64,
    /// The offset in the input after the last line end before the window.
    line_start: u64,
}

impl Lines {
    fn count_to(&mut self, window: &[u8], to: usize) {
        if to > self.counted {
            let bytes = &window[self.counted..to];
            self.count += memchr::memchr_iter(b'\n', bytes).count() as u64;
            self.counted = to;
        }
    }

    /// The offset in the input after the last line end that is counted.
    fn start(&self, window: &[u8]) -> u64 {
        memrchr(b'\n', &window[..self.counted]).map_or(self.line_start, |last| self.before + last as u64 + 1)
    }

    /// The first bytes of the window are given up.
    fn leave(&mut self, window: &[u8], bytes: usize) {
        self.count_to(window, bytes);
        if let Some(last) = memrchr(b'\n', &window[..bytes]) {
            self.line_start = self.before + last as u64 + 1;
        }
        self.before += bytes as u64;
        self.counted -= bytes;
    }
}

impl<R: Read> Window<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, bytes: vec![0; WINDOW_BYTES], token: 0, at: 0, end: 0, ended: false, lines: Lines::default() }
    }

    /// What is filled and not passed over yet.
    pub(super) fn ahead(&self) -> &[u8] {
        &self.bytes[self.at..self.end]
    }

    /// The line, from 1, at an offset that is not before any counted one.
    pub(super) fn line_at(&mut self, offset: usize) -> u64 {
        self.lines.count_to(&self.bytes, offset);
        self.lines.count + 1
    }

    /// The line, from 1, of the current token, or of the place where there is none.
    pub(super) fn line(&mut self) -> u64 {
        // A place before what is counted already (a token given back) is on the line counted last.
        self.line_at(self.token.min(self.end))
    }

    /// As [`Window::line`], and the column, from 1.
    pub(super) fn position(&mut self) -> (u64, u64) {
        let line = self.line();
        let start = self.lines.start(&self.bytes);
        (line, (self.lines.before + self.token as u64).saturating_sub(start) + 1)
    }

    /// The bytes ahead, at least `want` of them unless the input is shorter.
    pub(super) fn peek(&mut self, want: usize) -> io::Result<&[u8]> {
        while self.end - self.at < want && self.fill()? {}
        Ok(&self.bytes[self.at..self.end])
    }

    /// Passes over bytes that [`Cursor::peek`] has shown.
    pub(super) fn pass(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.end);
        self.token = self.at;
    }

    /// More bytes into the window; false at the end of the input. What lies before the token is given up.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let keep = self.token.min(self.at);
        if keep > 0 {
            self.lines.leave(&self.bytes, keep);
            self.bytes.copy_within(keep..self.end, 0);
            (self.at, self.end, self.token) = (self.at - keep, self.end - keep, self.token - keep);
        }
        if self.end == self.bytes.len() {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
        let got = crate::source::read_some(&mut self.input, &mut self.bytes[self.end..])?;
        self.end += got;
        self.ended = self.end < self.bytes.len();
        Ok(got > 0)
    }

    /// Passes over everything up to and with `pattern`, keeping nothing.
    pub(super) fn skip_past(&mut self, pattern: &[u8], what: &str) -> Result<(), XmlError> {
        self.skip_past_showing(pattern, what, |_| {})
    }

    /// As [`Window::skip_past`], and shows what is passed over before `pattern`, in pieces.
    pub(super) fn skip_past_showing(
        &mut self,
        pattern: &[u8],
        what: &str,
        mut see: impl FnMut(&[u8]),
    ) -> Result<(), XmlError> {
        loop {
            let text = &self.bytes[self.at..self.end];
            if let Some(at) = memmem::find(text, pattern) {
                see(&text[..at]);
                self.pass(at + pattern.len());
                return Ok(());
            }
            let passed = text.len().saturating_sub(pattern.len() - 1);
            see(&text[..passed]);
            self.pass(passed);
            if !self.fill()? {
                return Err(XmlError::Broken(format!("the file ends inside {what}")));
            }
        }
    }
}
