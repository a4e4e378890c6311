//! What only some accounts and products let one measure: larger batches, requests that are cut off, cycles that were ended or
//! deleted, cases that were not added, and listings under a writer. Must not conclude anything.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::Status;
use domain::marker::{Found, Marker, WriteId};

use super::ProbeOptions;
use super::measured::{Cut, CutWrite, Deed, Landed, Larger, More, WhileWriting};
use super::scratch::Scratch;
use super::steps::Bench;
use crate::foreign::adapter::{Closing, Ending};
use crate::foreign::entry::{Case, CycleId, Entry, Row, RowId};
use crate::foreign::facts::{KeyOnWrite, Kind, MarkerLevel, VerdictRule};
use crate::foreign::mapping::MESSAGE_CHARS_MAX;
use crate::foreign::patience::{GaveUp, Patience};

/// Rows that are written under a listing, and listings under a writer.
const WRITES: usize = 10;
const LISTINGS: usize = 3;
/// Batches of so many times the stated size.
const SIZES: [usize; 3] = [1, 2, 4];
/// Between two looks for a request that was cut off: from, and at most, in milliseconds.
const LOOK_MS: u64 = 100;
const LOOK_MS_MAX: u64 = 10_000;
/// More calls than a write of one entry makes.
const CALLS_OF_A_WRITE: usize = 8;

/// Where the measurements before these were made.
pub(super) struct Place {
    pub(super) cycle: CycleId,
    pub(super) settle_ms: u64,
    /// The first entry that was written there.
    pub(super) first: Entry,
}

/// Measures what can be. What the product refuses is left out, and so is what there is no time for.
pub(super) async fn measure(
    scratch: &mut Scratch<'_>,
    place: &Place,
    cases: [&Case; 2],
    options: &ProbeOptions,
    patience: &mut Patience<'_>,
) -> Result<More, GaveUp> {
    let mut more = More::default();
    match fill(&mut more, scratch, place, cases, options, patience).await {
        Ok(()) => {}
        Err(why @ (GaveUp::Refused(_) | GaveUp::Gone(_) | GaveUp::Over(_))) => more.broken_off = Some(why.to_string()),
        Err(why) => return Err(why),
    }
    Ok(more)
}

async fn fill(
    more: &mut More,
    scratch: &mut Scratch<'_>,
    place: &Place,
    [one, two]: [&Case; 2],
    options: &ProbeOptions,
    patience: &mut Patience<'_>,
) -> Result<(), GaveUp> {
    let (adapter, quiet_ms, settle_ms) = (scratch.adapter, scratch.quiet_ms, place.settle_ms);
    let facts = *adapter.facts();
    let mut bench = Bench { adapter, cycle: place.cycle.clone(), patience, settle_ms, quiet_ms };
    let counted = bench.total().await?.is_some();
    // Of a product it is known; here somebody may have guessed.
    if facts.kind == Kind::Generic && facts.marker.level <= MarkerLevel::M3 && !counted {
        let chars = facts.marker.chars_max.min(MESSAGE_CHARS_MAX + Marker::CHARS_MAX + 2);
        more.longest = Some(bench.longest(two, chars).await?);
    }
    if options.larger && facts.bulk.items_max > 1 {
        for times in SIZES {
            more.larger.push(bench.batch_of([one, two], facts.bulk.items_max * times).await?);
        }
    }
    if facts.verdict == VerdictRule::Appends && !counted {
        more.while_writing = Some(bench.list_while_writing(two).await?);
    }
    more.cut = Some(bench.cut(two, options.late_max_ms).await?);
    patience.measures("what becomes of a write for a case that is not in the cycle, and after the cycle's end");
    let cycle = scratch.make_another(patience).await?;
    let mut other = Bench { adapter, cycle, patience, settle_ms, quiet_ms };
    let entry = other.entry(one, Status::Passed, "not added");
    more.not_added = Some(other.land(&entry).await?);
    other.add([one, two]).await?;
    if facts.key_on_write != KeyOnWrite::None {
        more.elsewhere = Some(other.land(&place.first).await?);
    }
    if adapter.ending() != Ending::None || counted {
        let ended = other.cycle.clone();
        other.patience.reading(|| adapter.close_cycle(&ended, Closing::Complete)).await?;
        let entry = other.entry(two, Status::Passed, "after the end");
        more.ended = Some(other.land(&entry).await?);
    }
    if facts.repair.delete_cycle {
        let deed = other.delete_cycle().await?;
        if deed == Deed::Done {
            let entry = other.entry(two, Status::Passed, "after the deletion");
            more.deleted = Some(other.land(&entry).await?);
        }
        more.delete_cycle = Some(deed);
    }
    Ok(())
}

impl Bench<'_, '_> {
    async fn delete_cycle(&mut self) -> Result<Deed, GaveUp> {
        let (adapter, gone) = (self.adapter, self.cycle.clone());
        match self.patience.reading(|| adapter.delete_cycle(&gone)).await {
            Ok(()) => Ok(Deed::Done),
            // Not everybody who may write may delete.
            Err(GaveUp::Denied(words) | GaveUp::Refused(words) | GaveUp::Gone(words)) => Ok(Deed::Refused { words }),
            Err(why) => Err(why),
        }
    }

    async fn batch_of(&mut self, cases: [&Case; 2], items: usize) -> Result<Larger, GaveUp> {
        self.patience.measures("whether larger batches are taken");
        let batch: Vec<Entry> = (0..items).map(|at| self.entry(cases[at % 2], Status::Passed, "one of many")).collect();
        let wrote = self.write(&batch).await?;
        let stored = match self.adapter.facts().verdict {
            VerdictRule::Appends => self.stored_of(&batch).await?,
            VerdictRule::Replaces | VerdictRule::ReplacesLatest | VerdictRule::Refuses => None,
        };
        Ok(Larger { items, answer: wrote.answer, words: wrote.words, stored })
    }

    /// How many of a batch are there.
    async fn stored_of(&mut self, batch: &[Entry]) -> Result<Option<usize>, GaveUp> {
        let (adapter, cycle) = (self.adapter, self.cycle.clone());
        if self.total().await?.is_some() {
            let count = self.patience.reading(|| adapter.count(&cycle, batch)).await?;
            return Ok(count.filter(|count| *count != u64::MAX).and_then(|count| usize::try_from(count).ok()));
        }
        if self.settle_ms > 0 {
            self.patience.wait(self.settle_ms, "until a batch shows").await?;
        }
        let rows = self.patience.reading(|| adapter.rows(&cycle, &[])).await?;
        let there: BTreeSet<_> = rows.iter().filter_map(write_of).collect();
        Ok(Some(batch.iter().filter(|entry| there.contains(&entry.marker.write)).count()))
    }

    /// Lists everything a few times while one case is written to.
    async fn list_while_writing(&mut self, case: &Case) -> Result<WhileWriting, GaveUp> {
        self.patience.measures("what a listing shows while somebody writes");
        if self.settle_ms > 0 {
            self.patience.wait(self.settle_ms, "until the last write shows").await?;
        }
        let (adapter, cycle) = (self.adapter, self.cycle.clone());
        let before = self.patience.reading(|| adapter.rows(&cycle, &[])).await?;
        let entries: Vec<Entry> = (0..WRITES).map(|_| self.entry(case, Status::Passed, "under a listing")).collect();
        let mut seen = WhileWriting { rows_before: before.len(), ..WhileWriting::default() };
        let done = AtomicBool::new(false);
        let writing = async {
            let mut written = 0;
            for entry in &entries {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                written += usize::from(adapter.write(&cycle, std::slice::from_ref(entry)).await.is_ok());
                tokio::task::yield_now().await;
            }
            written
        };
        let listing = async {
            let mut listings = Vec::new();
            for _ in 0..LISTINGS {
                listings.push(adapter.rows(&cycle, &[]).await);
                tokio::task::yield_now().await;
            }
            done.store(true, Ordering::Relaxed);
            listings
        };
        let (written, listings) = tokio::join!(writing, listing);
        seen.written = written;
        for listing in listings {
            seen.listings += 1;
            let Ok(rows) = listing else {
                seen.given_up += 1;
                continue;
            };
            let ids: BTreeSet<&RowId> = rows.iter().map(|row| &row.id).collect();
            seen.repeated += rows.len() - ids.len();
            seen.skipped += before.iter().filter(|row| !ids.contains(&row.id)).count();
        }
        Ok(seen)
    }

    /// Cuts writes off after parts of the time that one takes, and looks whether they are carried out, and when.
    async fn cut(&mut self, case: &Case, late_max_ms: u64) -> Result<Cut, GaveUp> {
        let (adapter, cycle, clock) = (self.adapter, self.cycle.clone(), self.patience.clock);
        self.patience.measures("whether a write that is cut off is carried out later");
        let whole = [self.entry(case, Status::Passed, "not cut off")];
        self.room().await?;
        let begun_ms = clock.now_ms();
        self.write(&whole).await?;
        let took_ms = clock.now_ms().saturating_sub(begun_ms);
        // Where a place is written over, a later one would hide the one before.
        let quarters: &[u64] = if adapter.facts().verdict == VerdictRule::Appends { &[1, 2, 3] } else { &[2] };
        let (mut writes, mut watched) = (Vec::new(), Vec::new());
        for quarter in quarters {
            let entry = self.entry(case, Status::Failed, "cut off");
            let after_ms = (took_ms * quarter / 4).max(1);
            self.room().await?;
            let answered = tokio::select! {
                biased;
                _ = adapter.write(&cycle, std::slice::from_ref(&entry)) => true,
                () = clock.sleep(after_ms) => false,
            };
            if !answered {
                watched.push((writes.len(), entry, clock.now_ms()));
            }
            writes.push(CutWrite { after_ms, answered, applied_ms: None });
        }
        // Half of what is left of the time: the rest is measured afterwards.
        let left_ms = self.patience.deadline_ms.saturating_sub(clock.now_ms()) / 2;
        let (late_max_ms, begun_ms, mut pause_ms) = (late_max_ms.min(left_ms), clock.now_ms(), LOOK_MS);
        loop {
            let mut still = Vec::new();
            for (at, entry, cut_ms) in watched {
                if self.is_there(&entry).await? == Some(true) {
                    writes[at].applied_ms = Some(clock.now_ms().saturating_sub(cut_ms));
                } else {
                    still.push((at, entry, cut_ms));
                }
            }
            watched = still;
            let watched_ms = clock.now_ms().saturating_sub(begun_ms);
            if watched.is_empty() || watched_ms >= late_max_ms {
                return Ok(Cut { took_ms, writes, watched_ms });
            }
            self.patience.wait(pause_ms.min(late_max_ms - watched_ms), "whether what was cut off comes late").await?;
            pause_ms = (pause_ms * 2).min(LOOK_MS_MAX);
        }
    }

    /// Waits until our own pace holds nothing back: a write that hasn't left yet can't be cut off.
    async fn room(&mut self) -> Result<(), GaveUp> {
        let held_ms = self.adapter.held_back_ms(CALLS_OF_A_WRITE);
        if held_ms == 0 { Ok(()) } else { self.patience.wait(held_ms, "until the rate leaves room for a write").await }
    }

    /// Whether an entry is there; `None` if that can't be read.
    async fn is_there(&mut self, entry: &Entry) -> Result<Option<bool>, GaveUp> {
        let seen = match self.total().await {
            Ok(Some(_)) => self.counted(entry).await.map(|count| count.is_some_and(|count| count > 0)),
            Ok(None) => self.rows(&entry.case).await.map(|rows| rows.iter().any(|row| row.is_of(entry.marker.write))),
            Err(why) => Err(why),
        };
        match seen {
            Ok(there) => Ok(Some(there)),
            Err(GaveUp::Refused(_) | GaveUp::Gone(_)) => Ok(None),
            Err(why) => Err(why),
        }
    }

    async fn land(&mut self, entry: &Entry) -> Result<Landed, GaveUp> {
        let wrote = self.write(std::slice::from_ref(entry)).await?;
        if wrote.answer.is_taken() && self.settle_ms > 0 {
            self.patience.wait(self.settle_ms, "until the last write shows").await?;
        }
        let stored = self.is_there(entry).await?;
        Ok(Landed { answer: wrote.answer, words: wrote.words, stored })
    }
}

fn write_of(row: &Row) -> Option<WriteId> {
    match row.marker {
        Found::Whole(marker) => Some(marker.write),
        Found::Nothing | Found::Mangled => None,
    }
}
