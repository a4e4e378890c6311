//! What is known of a file once all are read: which of its entries count, in which order, and how times are meant.
//! Must not know where entries are.

use std::collections::HashMap;

use super::record::{FOLDED, Head};
use crate::collect::FileRead;
use crate::merge::{self, Dropped, Source};

/// One file whose entries count.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) source: Source,
    /// True if doubtful durations have decimal commas.
    pub(super) comma: bool,
    /// Documents that are somewhere else already, rising.
    dropped: Box<[u32]>,
}

/// All files, by their numbers.
#[derive(Debug)]
pub(super) struct KnownFiles {
    files: Vec<Option<Known>>,
    /// True if they were read in the order in which they are folded.
    pub(super) in_order: bool,
}

impl KnownFiles {
    /// Of `files` in order.
    pub(super) fn new(files: &[FileRead], dropped: &HashMap<usize, Dropped>) -> Self {
        let count = files.iter().map(|file| file.id as usize + 1).max().unwrap_or(0);
        let mut known: Vec<Option<Known>> = std::iter::repeat_with(|| None).take(count).collect();
        for (index, file) in files.iter().enumerate() {
            let dropped = dropped.get(&index).map(|dropped| dropped.documents().into()).unwrap_or_default();
            let source = Source { file: index, is_attempt: merge::is_attempt_file(&file.name) };
            known[file.id as usize] = Some(Known { source, comma: file.comma, dropped });
        }
        Self { files: known, in_order: files.is_sorted_by_key(|file| file.id) }
    }

    /// The file of an entry, if that one counts: its file was read to a good end, and its document is nowhere else.
    pub(super) fn counts(&self, head: Head) -> Option<&Known> {
        let known = self.files.get(head.file as usize)?.as_ref()?;
        (known.dropped.is_empty() || known.dropped.binary_search(&head.document).is_err()).then_some(known)
    }

    /// True if the doubtful durations in this record have decimal commas.
    pub(super) fn comma(&self, head: Head) -> bool {
        head.file != FOLDED && self.counts(head).is_some_and(|known| known.comma)
    }

    /// The place of a file in the order, counting or not.
    pub(super) fn place(&self, file: u32) -> usize {
        self.files.get(file as usize).and_then(Option::as_ref).map_or(usize::MAX, |known| known.source.file)
    }
}
