//! Reading a list page by page while others write: no row twice, none skipped without a word.
//! Must not know products, nor how a page is asked for.

use std::collections::HashSet;

use super::trouble::Trouble;

/// How often a list may change under the reader before it is given up.
const RESTARTS_MAX: u32 = 3;
/// Most rows of one list.
const ROWS_MAX: usize = 5_000_000;

/// A list that is read by offset.
///
/// Each page is asked for one row before the end of what is known. Rows that come in at the front push that row back, so
/// that the page begins with rows that are known. If it begins with one that is not, rows went away, and others were
/// skipped: then all is read again from the beginning.
#[derive(Debug)]
pub(crate) struct Reading<T> {
    ids: HashSet<String>,
    rows: Vec<T>,
    restarts: u32,
}

/// What follows a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The page at [`Reading::offset`].
    More,
    /// Nothing: [`Reading::rows`] holds all.
    Done,
}

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Self { ids: HashSet::new(), rows: Vec::new(), restarts: 0 }
    }
}

impl<T> Reading<T> {
    /// Where the next page begins.
    pub(crate) fn offset(&self) -> usize {
        self.rows.len().saturating_sub(1)
    }

    /// Takes a page: rows with their ids, in the product's order. `last`: whether it is the last one, if the product
    /// says so; else a page that brings nothing new is.
    ///
    /// # Errors
    /// The list changes faster than it can be read, or never ends.
    pub(crate) fn take(&mut self, page: Vec<(String, T)>, last: Option<bool>) -> Result<Step, Trouble> {
        let first = self.rows.is_empty();
        let joins = page.first().is_some_and(|(id, _)| self.ids.contains(id));
        if !first && !joins {
            return self.restart("rows of the list went away while it was read");
        }
        let known = self.rows.len();
        for (id, row) in page {
            if self.ids.insert(id) {
                self.rows.push(row);
            }
        }
        if self.rows.len() > ROWS_MAX {
            return Err(Trouble::Unknown(format!("a list has more than {ROWS_MAX} rows")));
        }
        match (last, self.rows.len() == known) {
            (Some(true), _) | (None, true) => Ok(Step::Done),
            // A whole page came in at the front meanwhile, or the offset is ignored.
            (Some(false), true) => self.restart("the pages of the list repeat themselves"),
            (_, false) => Ok(Step::More),
        }
    }

    /// All rows, in the product's order.
    pub(crate) fn rows(self) -> Vec<T> {
        self.rows
    }

    fn restart(&mut self, why: &str) -> Result<Step, Trouble> {
        self.restarts += 1;
        if self.restarts > RESTARTS_MAX {
            return Err(Trouble::Unknown(format!("{why}, {RESTARTS_MAX} times in a row: it can't be read as a whole")));
        }
        self.ids.clear();
        self.rows.clear();
        Ok(Step::More)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a list that `change` changes before each page; newest first.
    fn read(mut list: Vec<u32>, limit: usize, tells: bool, mut change: impl FnMut(usize, &mut Vec<u32>)) -> Vec<u32> {
        let mut reading = Reading::default();
        for page in 0..200 {
            change(page, &mut list);
            let from = reading.offset().min(list.len());
            let to = list.len().min(from + limit);
            let rows = list[from..to].iter().map(|row| (row.to_string(), *row)).collect();
            if reading.take(rows, tells.then_some(to == list.len())).unwrap() == Step::Done {
                return reading.rows();
            }
        }
        panic!("no end");
    }

    proptest! {
        #[test]
        fn all_that_was_there_is_read_once_whatever_comes_in_or_goes(
            len in 0_u32..40, limit in 2_usize..9, tells: bool, added in 0_usize..3, removed_at in 0_usize..6,
        ) {
            let list: Vec<u32> = (0..len).rev().collect();
            let mut next = 100;
            let mut removed = None;
            let rows = read(list.clone(), limit, tells, |page, list| {
                if page == removed_at && !list.is_empty() {
                    removed = Some(list.remove(0));
                }
                // Fewer than a page, or nobody could ever keep up.
                for _ in 0..added.min(limit - 2) {
                    list.insert(0, next);
                    next += 1;
                }
            });
            let distinct: HashSet<u32> = rows.iter().copied().collect();
            prop_assert_eq!(distinct.len(), rows.len());
            for row in list {
                prop_assert!(distinct.contains(&row) || removed == Some(row), "{row}");
            }
        }
    }

    #[test]
    fn an_ignored_offset_ends_in_words_and_not_in_a_loop() {
        let mut reading = Reading::default();
        let page = || vec![("1".to_owned(), 1), ("2".to_owned(), 2)];
        let steps: Vec<_> = (0..9).map(|_| reading.take(page(), Some(false))).take_while(Result::is_ok).collect();
        assert!(steps.len() < 9);
        // Where nobody says that there is more, it is a list without pages.
        let mut reading = Reading::default();
        assert_eq!(reading.take(page(), None), Ok(Step::More));
        assert_eq!(reading.take(page(), None), Ok(Step::Done));
        assert_eq!(reading.rows(), [1, 2]);
    }
}
