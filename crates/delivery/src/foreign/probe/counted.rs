//! The measurements on a product that counts outcomes and lists none: every row is a count. What a text becomes, and what one
//! row can be made to say, can't be seen there. Must not conclude anything.

use domain::Status;

use super::ProbeOptions;
use super::beyond::{self, Place};
use super::measured::{AtOnce, Deed, Lag, MarkerCame, Measured, Repeat};
use super::scratch::Scratch;
use super::steps::Bench;
use crate::foreign::entry::{Case, CycleId, Entry};
use crate::foreign::patience::{GaveUp, Patience};

/// Between two looks for a write, in milliseconds.
const LOOK_MS: u64 = 500;

/// Measures what counts show.
pub(super) async fn measure(
    scratch: &mut Scratch<'_>,
    cycle: CycleId,
    [one, two]: [&Case; 2],
    options: &ProbeOptions,
    patience: &mut Patience<'_>,
) -> Result<Measured, GaveUp> {
    let (adapter, quiet_ms) = (scratch.adapter, scratch.quiet_ms);
    let mut bench = Bench { adapter, cycle: cycle.clone(), patience, settle_ms: 0, quiet_ms };
    let first = bench.entry(one, Status::Passed, "a probe");
    let (lag, marker) = bench.counted_lag(&first, options.visible_max_ms).await?;
    bench.patience.measures("what a repeat does: the same, another outcome, and another payload under one id");
    let twice = bench.counted_repeat(&first).await?;
    let other = bench.entry(one, Status::Failed, "another outcome");
    let other_content = bench.counted_repeat(&other).await?;
    let changed = Entry { status: Status::Skipped, message: Some("another payload".to_owned()), ..first.clone() };
    let same_id = bench.counted_repeat(&changed).await?;
    let at_once = bench.counted_at_once(two, options.writers).await?;
    let twin = scratch.make_a_twin(patience).await?;
    let place = Place { cycle, settle_ms: 0, first };
    let more = beyond::measure(scratch, &place, [one, two], options, patience).await?;
    Ok(Measured {
        lag,
        marker,
        twice,
        other_content,
        same_id,
        at_once,
        text: None,
        bad_item: None,
        amend: Deed::NotTried,
        delete: Deed::NotTried,
        twin,
        added: None,
        counted: true,
        more,
    })
}

impl Bench<'_, '_> {
    /// How many outcomes of one write are counted; what is there in part counts as nothing that can be told.
    pub(super) async fn counted(&mut self, entry: &Entry) -> Result<Option<usize>, GaveUp> {
        let (adapter, cycle, batch) = (self.adapter, self.cycle.clone(), [entry.clone()]);
        let count = self.patience.reading(|| adapter.count(&cycle, &batch)).await?;
        Ok(count.filter(|count| *count != u64::MAX).and_then(|count| usize::try_from(count).ok()))
    }

    async fn all(&mut self) -> Result<usize, GaveUp> {
        Ok(self.total().await?.and_then(|total| usize::try_from(total).ok()).unwrap_or(0))
    }

    async fn counted_lag(&mut self, first: &Entry, within_ms: u64) -> Result<(Lag, MarkerCame), GaveUp> {
        self.patience.measures("how soon a write is counted");
        let wrote = self.write(std::slice::from_ref(first)).await?;
        if wrote.answer.is_refused() {
            return Err(GaveUp::Refused(format!("the first outcome is refused: {}", wrote.words.unwrap_or_default())));
        }
        let begun_ms = self.patience.clock.now_ms();
        loop {
            let waited_ms = self.patience.clock.now_ms().saturating_sub(begun_ms);
            if self.counted(first).await? == Some(1) {
                let lag = Lag {
                    after_job: wrote.had_job,
                    ms: Some(if waited_ms < LOOK_MS { 0 } else { waited_ms }),
                    within_ms,
                };
                return Ok((lag, MarkerCame::Whole));
            }
            if waited_ms >= within_ms {
                return Ok((Lag { after_job: wrote.had_job, ms: None, within_ms }, MarkerCame::Lost));
            }
            self.patience.wait(LOOK_MS, "until the first write is counted").await?;
        }
    }

    async fn counted_repeat(&mut self, entry: &Entry) -> Result<Repeat, GaveUp> {
        let rows_before = self.all().await?;
        let own_before = self.counted(entry).await?.unwrap_or(0);
        let wrote = self.write(std::slice::from_ref(entry)).await?;
        let rows_after = self.all().await?;
        let show_second = self.counted(entry).await?.unwrap_or(0).saturating_sub(own_before);
        Ok(Repeat {
            answer: wrote.answer,
            words: wrote.words,
            rows_before,
            rows_after,
            show_second,
            show_before: rows_after.saturating_sub(show_second),
        })
    }

    async fn counted_at_once(&mut self, case: &Case, writers: usize) -> Result<AtOnce, GaveUp> {
        self.patience.measures("what several writers of one entry at once leave");
        let before = self.all().await?;
        let entry = [self.entry(case, Status::Passed, "at once")];
        let answers = self.write_at_once(&entry, writers).await?;
        Ok(AtOnce { writers, answers, rows: self.all().await?.saturating_sub(before) })
    }
}
