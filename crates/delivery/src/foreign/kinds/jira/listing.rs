//! Listings in pages, read whole though they change meanwhile. Must not know what is listed.

use std::collections::BTreeSet;
use std::future::Future;

use crate::foreign::trouble::Trouble;

/// How often a listing is read before it is given up: it changes while it is read.
const READINGS_MAX: u32 = 3;

/// One page of a listing by offset.
pub(in crate::foreign::kinds) struct Page<T> {
    /// How many rows there are in all, where the answer says so.
    pub(in crate::foreign::kinds) total: Option<u64>,
    /// The rows of this page.
    pub(in crate::foreign::kinds) rows: Vec<T>,
}

/// Where a page begins.
#[derive(Debug, Clone, Copy)]
pub(in crate::foreign::kinds) struct From {
    /// So many rows stand before it.
    pub(in crate::foreign::kinds) row: u64,
    /// Its number, the first is 1.
    pub(in crate::foreign::kinds) page: u64,
}

/// A whole listing, each row once. Pages shift when rows come and go while they are read: it is read again if it saw
/// fewer different rows than the product counts; where the product doesn't count, until two readings agree.
pub(in crate::foreign::kinds) async fn whole<T, K, F>(
    id: impl Fn(&T) -> K,
    fetch: impl Fn(From) -> F,
) -> Result<Vec<T>, Trouble>
where
    K: Ord,
    F: Future<Output = Result<Page<T>, Trouble>>,
{
    let mut before = None;
    for _ in 0..READINGS_MAX {
        let (mut seen, mut rows, mut from) = (BTreeSet::new(), Vec::new(), From { row: 0, page: 1 });
        let total = loop {
            let page = fetch(from).await?;
            from = From { row: from.row + page.rows.len() as u64, page: from.page + 1 };
            let known = rows.len();
            rows.extend(page.rows.into_iter().filter(|row| seen.insert(id(row))));
            // Nothing new: the end, or a product that answers every page with all rows.
            if rows.len() == known || page.total.is_some_and(|total| from.row >= total) {
                break page.total;
            }
        };
        let complete = match total {
            Some(total) => rows.len() as u64 >= total,
            // One page, and an empty one: nothing can have shifted.
            None => from.page <= 3 || before.as_ref() == Some(&seen),
        };
        if complete {
            return Ok(rows);
        }
        before = Some(seen);
    }
    Err(Trouble::Unknown(format!("a listing changed in each of {READINGS_MAX} readings, so that none was complete")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_listing_that_shifts_is_read_again_until_it_is_whole() {
        let shifted = std::sync::atomic::AtomicBool::new(true);
        let rows = whole(
            |row: &u64| *row,
            |from| {
                let start = from.row;
                // The first reading's second page begins one row too late.
                let late = start > 0 && shifted.swap(false, std::sync::atomic::Ordering::Relaxed);
                let from = start + u64::from(late);
                async move { Ok(Page { total: Some(5), rows: (from..(from + 2).min(5)).collect() }) }
            },
        );
        assert_eq!(rows.await.unwrap(), [0, 1, 2, 3, 4]);
        let never = whole(
            |row: &u64| *row,
            |from| async move { Ok(Page { total: Some(3), rows: (from.row == 0).then_some(7).into_iter().collect() }) },
        );
        assert!(matches!(never.await, Err(Trouble::Unknown(_))));
    }
}
