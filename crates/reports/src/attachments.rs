//! Files that a report names beside an item: `[[ATTACHMENT|path]]` in captured output, and which item each belongs to.
//! Must not know where the files are, or look at them: a path is only data.

use std::collections::HashMap;

use domain::{ItemHash, limits};
use memchr::memchr;

use crate::error::Warning;
use crate::text::{self, Oddities};

/// Before the path; behind it stands `]]` (the convention of Jenkins' attachments plugin, which runners follow).
const MARK: &[u8] = b"[[ATTACHMENT|";
/// Properties whose value is a path, as the vendor's own client of `TestRail` reads them.
const PROPERTY: &[u8] = b"testrail_attachment";

/// A file that a report names beside an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The item.
    pub item: ItemHash,
    /// The report, by its name.
    pub report: String,
    /// The file as the report writes it.
    pub path: String,
}

/// Paths that are held until all files are read: several times what is kept, since many may be of one item.
pub(crate) const HELD_MAX: usize = 4 * limits::ATTACHMENTS_MAX;

/// Paths that an element names beside what it has named already; one more than are kept tells that there were more.
pub(crate) fn name(known: &mut Vec<String>, more: impl IntoIterator<Item = String>) {
    let room = (limits::ATTACHMENTS_MAX + 1).saturating_sub(known.len());
    let is_path = |path: &String| !path.trim().is_empty() && path.len() <= limits::ATTACHMENT_PATH_BYTES_MAX;
    known.extend(more.into_iter().filter(is_path).take(room));
}

/// True if a property of this name holds a path.
pub(crate) fn is_property(name: &[u8]) -> bool {
    name.get(..PROPERTY.len()).is_some_and(|head| head.eq_ignore_ascii_case(PROPERTY))
}

/// Looks for paths in captured output, piece by piece, whatever the pieces.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// How much of the mark stands at the end of what was seen.
    matched: usize,
    /// The path behind a whole mark, and whether references in it are as they are meant.
    path: Vec<u8>,
    plain: bool,
    pub(crate) found: Vec<String>,
}

impl Marks {
    /// The next piece of the output; `plain` where references are not resolved.
    pub(crate) fn see(&mut self, mut piece: &[u8], plain: bool) {
        while let Some((byte, rest)) = piece.split_first() {
            if self.matched == 0 {
                let Some(at) = memchr(MARK[0], piece) else { return };
                (self.matched, piece) = (1, &piece[at + 1..]);
                continue;
            }
            piece = rest;
            if self.matched < MARK.len() {
                self.matched = match *byte {
                    byte if byte == MARK[self.matched] => self.matched + 1,
                    // `[[[` ends in a begun mark too.
                    b'[' if self.matched == 2 => 2,
                    b'[' => 1,
                    _ => 0,
                };
                self.plain = plain;
            } else {
                self.in_path(*byte);
            }
        }
    }

    fn in_path(&mut self, byte: u8) {
        let closed = self.path.ends_with(b"]]");
        // A path may end in a bracket: the last two of a row close it.
        if closed && byte != b']' {
            self.end();
            self.matched = usize::from(byte == MARK[0]);
        } else if matches!(byte, b'\n' | b'\r') || self.path.len() > limits::ATTACHMENT_PATH_BYTES_MAX {
            self.path.clear();
            self.matched = 0;
        } else {
            self.path.push(byte);
        }
    }

    /// The output, or a section of it, has ended.
    pub(crate) fn end(&mut self) {
        let path = std::mem::take(&mut self.path);
        self.matched = 0;
        let Some(path) = path.strip_suffix(b"]]").map(<[u8]>::trim_ascii).filter(|path| !path.is_empty()) else {
            return;
        };
        // One more than are kept tells that there were more.
        if self.found.len() <= limits::ATTACHMENTS_MAX {
            let plain = String::from_utf8_lossy(path);
            let path = if self.plain { plain } else { text::value(path, &mut Oddities::default()) };
            self.found.push(path.into_owned());
        }
    }
}

/// Paths by the number of their element in its file.
pub(crate) type OfFile = HashMap<u32, Vec<String>>;

/// Paths of a push while elements become items: bounded, each item and path once.
#[derive(Debug, Default)]
pub(crate) struct Found {
    list: Vec<Attachment>,
    more: u64,
}

impl Found {
    /// What an element names belongs to this item.
    pub(crate) fn give(&mut self, item: ItemHash, report: &str, paths: Vec<String>) {
        for path in paths {
            if self.list.iter().rev().take_while(|known| known.item == item).any(|known| known.path == path) {
                continue;
            }
            if self.list.len() < limits::ATTACHMENTS_MAX {
                self.list.push(Attachment { item, report: report.to_owned(), path });
            } else {
                self.more += 1;
            }
        }
    }

    /// So many more were named, and not held.
    pub(crate) fn left_out(&mut self, paths: u64) {
        self.more += paths;
    }

    /// All of them, sorted, and a warning if there were more than are kept.
    pub(crate) fn finish(mut self, warnings: &mut Vec<Warning>) -> Vec<Attachment> {
        self.list.sort_by(|a, b| (&a.item.0, &a.report, &a.path).cmp(&(&b.item.0, &b.report, &b.path)));
        self.list.dedup();
        if let Some(last) = self.list.last().filter(|_| self.more > 0) {
            let most = limits::ATTACHMENTS_MAX;
            let text = format!("more than {most} attachments are named in this push; the others are left out");
            warnings.push(Warning { file: last.report.clone(), line: None, text });
        }
        self.list
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(pieces: &[&[u8]], plain: bool) -> Vec<String> {
        let mut marks = Marks::default();
        for piece in pieces {
            marks.see(piece, plain);
        }
        marks.end();
        marks.found
    }

    #[test]
    fn paths_are_found_and_what_only_looks_like_one_is_not() {
        let text =
            b"x\n[[ATTACHMENT|a b.png]] [[[ATTACHMENT|c[1]]]\n[[ATTACHMENT|cut\n[[ATTACHMENT|]]\n[[ATTACHMENT| d ]]";
        assert_eq!(found(&[text], true), ["a b.png", "c[1]", "d"]);
        assert_eq!(found(&[b"[[ATTACHMENT|a&amp;b]]"], true), ["a&amp;b"]);
        assert_eq!(found(&[b"[[ATTACHMENT|a&amp;b]]"], false), ["a&b"]);
        let long = [MARK, &[b'x'; limits::ATTACHMENT_PATH_BYTES_MAX + 2], b"]]\n[[ATTACHMENT|y]]"].concat();
        assert_eq!(found(&[&long], true), ["y"]);
        assert!(is_property(b"TestRail_attachment_2") && !is_property(b"testrail_case_id"));
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(text in "(\\[|\\[\\[ATTACHMENT\\||a|\\]|\\n){0,24}", at in 0..64_usize) {
            let (a, b) = text.as_bytes().split_at(at.min(text.len()));
            prop_assert_eq!(found(&[a, b], true), found(&[text.as_bytes()], true));
        }
    }
}
