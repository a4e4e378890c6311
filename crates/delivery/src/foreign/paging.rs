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
/// Each page is asked for from the place of the last row that was read. Rows that came in at the front meanwhile push that
/// row back, so that the page begins with rows that are known. If it begins with one that is not, rows went away, and
/// others were skipped: then all is read again from the beginning.
#[derive(Debug)]
pub(crate) struct Reading<T> {
    ids: HashSet<String>,
    rows: Vec<T>,
    /// The place of the last row that was read.
    offset: usize,
    first_page: Vec<String>,
    /// How many rows the largest page had.
    page_rows_max: usize,
    /// How often the first page came again.
    same: u32,
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
        let (ids, rows, first_page) = (HashSet::new(), Vec::new(), Vec::new());
        Self { ids, rows, offset: 0, first_page, page_rows_max: 0, same: 0, restarts: 0 }
    }
}

impl<T> Reading<T> {
    /// Where the next page begins.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// Takes a page: rows with their ids, in the product's order. `last`: whether it is the last one, if the product
    /// says so; else a short one is that brings nothing new.
    ///
    /// # Errors
    /// The list changes faster than it can be read, or never ends.
    pub(crate) fn take(&mut self, page: Vec<(String, T)>, last: Option<bool>) -> Result<Step, Trouble> {
        let ids: Vec<String> = page.iter().map(|(id, _)| id.clone()).collect();
        if self.rows.is_empty() {
            self.first_page.clone_from(&ids);
        } else if self.offset > 0 && !ids.first().is_some_and(|id| self.ids.contains(id)) {
            return self.restart();
        }
        let known = self.rows.len();
        self.rows.extend(page.into_iter().filter(|(id, _)| self.ids.insert(id.clone())).map(|(_, row)| row));
        self.offset = (self.offset + ids.len()).saturating_sub(1);
        if self.rows.len() > ROWS_MAX {
            return Err(Trouble::Unknown(format!("a list has more than {ROWS_MAX} rows")));
        }
        let nothing_new = self.rows.len() == known;
        let short = ids.len() < self.page_rows_max.max(2);
        self.page_rows_max = self.page_rows_max.max(ids.len());
        if last == Some(true) || (nothing_new && last.is_none() && short) {
            return Ok(Step::Done);
        }
        if nothing_new && ids == self.first_page {
            return self.first_page_again(last);
        }
        Ok(Step::More)
    }

    /// All rows, in the product's order.
    pub(crate) fn rows(self) -> Vec<T> {
        self.rows
    }

    /// Once, a whole page may have come in at the front; twice, the product doesn't look at the offset.
    fn first_page_again(&mut self, last: Option<bool>) -> Result<Step, Trouble> {
        self.same += 1;
        match last {
            _ if self.same < 2 => Ok(Step::More),
            // And knows no pages: it has shown all.
            None => Ok(Step::Done),
            Some(_) => Err(Trouble::Unknown("every page of the list is the first one: it can't be read".to_owned())),
        }
    }

    fn restart(&mut self) -> Result<Step, Trouble> {
        let restarts = self.restarts + 1;
        if restarts > RESTARTS_MAX {
            let why = format!("rows of the list went away while it was read, {restarts} times in a row");
            return Err(Trouble::Unknown(why));
        }
        *self = Self { restarts, ..Self::default() };
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
            len in 0_u32..40, limit in 2_usize..9, tells: bool, added in 0_usize..7, removed_at in 0_usize..6,
        ) {
            let list: Vec<u32> = (0..len).rev().collect();
            let mut next = 100;
            let mut removed = None;
            let rows = read(list.clone(), limit, tells, |page, list| {
                if page == removed_at && !list.is_empty() {
                    removed = Some(list.remove(0));
                }
                // Fewer than a page has, and not for ever, or nobody could keep up.
                for _ in 0..added.min(limit - 2).min(50_usize.saturating_sub(page)) {
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
        let steps: Vec<_> = (0..3).map(|_| reading.take(page(), None)).collect();
        assert_eq!(steps, [Ok(Step::More), Ok(Step::More), Ok(Step::Done)]);
        assert_eq!(reading.rows(), [1, 2]);
    }
}
