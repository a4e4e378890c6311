//! The measurements, one after the other in one scratch cycle. Must not conclude anything.

use std::collections::BTreeMap;

use domain::marker::{ContentTag, Found, Marker, WriteId};
use domain::{DurationUs, Status};
use futures_util::future::join_all;
use rand::RngExt;

use super::beyond::{self, Place};
use super::call::{self, Called, Wrote, called, tried};
use super::measured::{Answer, AtOnce, BadItem, Deed, Lag, Longest, MarkerCame, Measured, Repeat, Text};
use super::places;
use super::scratch::Scratch;
use super::{ProbeOptions, counted};
use crate::foreign::adapter::Adapter;
use crate::foreign::audit::Natural;
use crate::foreign::entry::{Case, CaseId, CycleId, Entry, Row, RowStatus};
use crate::foreign::facts::Visible;
use crate::foreign::patience::{GaveUp, Patience};
use crate::foreign::trouble::Trouble;

/// Between two looks for a write, in milliseconds.
const LOOK_MS: u64 = 100;
/// After so long, looks become rarer, in milliseconds.
const EXACT_MS: u64 = 1000;
/// So much longer than the lag of one write is waited before what is read counts.
const LAGS: u64 = 3;

const MARKUP: &str = "<b>1 < 2 & \"3\"</b>";
const LINES: &str = "one line\nanother line";
const BEYOND_ASCII: &str = "Prüfung 試験 ✓ 🙂";
const END: &str = "the end of the text";
const TEXT_CHARS: usize = 300;

/// One cycle, and what is needed to write there.
pub(super) struct Bench<'a, 'p> {
    pub(super) adapter: &'a dyn Adapter,
    pub(super) cycle: CycleId,
    pub(super) patience: &'a mut Patience<'p>,
    /// How long it takes until a write shows.
    pub(super) settle_ms: u64,
    /// How long a call without an answer is waited for, in milliseconds.
    pub(super) quiet_ms: u64,
}

/// Measures everything, with one writer but where it says otherwise.
pub(super) async fn measure(
    scratch: &mut Scratch<'_>,
    [one, two]: [&Case; 2],
    options: &ProbeOptions,
    patience: &mut Patience<'_>,
) -> Result<Measured, GaveUp> {
    let cycle = scratch.make(patience).await?;
    let (adapter, quiet_ms) = (scratch.adapter, scratch.quiet_ms);
    let mut bench = Bench { adapter, cycle: cycle.clone(), patience, settle_ms: 0, quiet_ms };
    bench.add([one, two]).await?;
    if bench.total().await?.is_some() {
        return counted::measure(scratch, cycle, [one, two], options, patience).await;
    }
    let first = bench.entry(one, Status::Passed, "a probe");
    let (lag, marker) = bench.lag(&first, options.visible_max_ms).await?;
    bench.patience.measures("what a repeat does: the same, another outcome, and another payload under one id");
    let twice = bench.repeat(&first).await?;
    let other = bench.entry(one, Status::Failed, "another outcome");
    let other_content = bench.repeat(&other).await?;
    let changed = Entry { status: Status::Skipped, message: Some("another payload".to_owned()), ..first.clone() };
    let same_id = bench.repeat(&changed).await?;
    let at_once = bench.at_once(two, options.writers).await?;
    let text = bench.text(two).await?;
    let absent = options.absent.clone().unwrap_or_else(|| made_up(&one.id));
    let bad_item = bench.bad_item([one, two], &absent).await?;
    let amend = bench.amend(one).await?;
    let delete = bench.delete(one).await?;
    let late = [two, one].map(|case| bench.entry(case, Status::Passed, "added at once"));
    let settle_ms = bench.settle_ms;
    let twin = scratch.make_a_twin(patience).await?;
    let added = match scratch.empty() {
        Some(cycle) => places::added_at_once(scratch, &cycle, &late, options.writers, patience).await?,
        None => None,
    };
    let place = Place { cycle, settle_ms, first };
    let more = beyond::measure(scratch, &place, [one, two], options, patience).await?;
    Ok(Measured {
        lag,
        marker,
        twice,
        other_content,
        same_id,
        at_once,
        text,
        bad_item,
        amend,
        delete,
        twin,
        added,
        counted: false,
        more,
    })
}

/// An id of the same form that nobody has.
fn made_up(case: &CaseId) -> CaseId {
    let head = case.as_str().trim_end_matches(|c: char| c.is_ascii_digit());
    CaseId::new(format!("{head}999999999"))
}

impl Bench<'_, '_> {
    pub(super) fn entry(&mut self, case: &Case, status: Status, message: &str) -> Entry {
        let content = ContentTag::of(&[status]);
        Entry {
            case: case.id.clone(),
            title: case.title.clone(),
            status,
            duration_us: Some(DurationUs(1_000_000)),
            message: Some(message.to_owned()),
            at_ms: self.patience.clock.unix_ms(),
            items: Vec::new(),
            marker: Marker { write: WriteId(self.patience.random.random()), content, ordinal: None },
        }
    }

    pub(super) async fn add(&mut self, cases: [&Case; 2]) -> Result<(), GaveUp> {
        let (adapter, cycle) = (self.adapter, self.cycle.clone());
        let ids = cases.map(|case| case.id.clone());
        let refused = match called(self.patience, self.quiet_ms, || adapter.add_cases(&cycle, &ids)).await? {
            Called::Done(refused) => refused,
            Called::Refused(trouble) => return Err(GaveUp::Refused(trouble.to_string())),
            // Adding is repeated by nature: what is in the cycle stays as it is.
            Called::Unknown(_) => self.patience.reading(|| adapter.add_cases(&cycle, &ids)).await?,
        };
        match refused.first() {
            None => Ok(()),
            Some((case, why)) => Err(GaveUp::Refused(format!("case {case} can't be written: {why}"))),
        }
    }

    pub(super) async fn write(&mut self, batch: &[Entry]) -> Result<Wrote, GaveUp> {
        let cycle = self.cycle.clone();
        call::write(self.adapter, self.patience, self.quiet_ms, &cycle, batch).await
    }

    /// How many outcomes are there, on a product that only counts.
    pub(super) async fn total(&mut self) -> Result<Option<u64>, GaveUp> {
        let (adapter, cycle) = (self.adapter, self.cycle.clone());
        self.patience.reading(|| adapter.total(&cycle)).await
    }

    /// What is listed of a case, right now.
    pub(super) async fn rows(&mut self, case: &CaseId) -> Result<Vec<Row>, GaveUp> {
        let (adapter, cycle, cases) = (self.adapter, self.cycle.clone(), [case.clone()]);
        let mut rows = self.patience.reading(|| adapter.rows(&cycle, &cases)).await?;
        rows.retain(|row| row.status != RowStatus::Open && row.case == *case);
        Ok(rows)
    }

    /// What is listed once everything shows.
    pub(super) async fn settled(&mut self, case: &CaseId) -> Result<Vec<Row>, GaveUp> {
        if self.settle_ms > 0 {
            self.patience.wait(self.settle_ms, "until the last write shows").await?;
        }
        self.rows(case).await
    }

    async fn lag(&mut self, first: &Entry, within_ms: u64) -> Result<(Lag, MarkerCame), GaveUp> {
        self.patience.measures("how soon a write shows, and what becomes of its marker");
        let wrote = self.write(std::slice::from_ref(first)).await?;
        if wrote.answer.is_refused() {
            let words = wrote.words.unwrap_or_default();
            return Err(GaveUp::Refused(format!("the first outcome of case {} is refused: {words}", first.case)));
        }
        let shown = self.until_it_shows(&first.case, within_ms).await?;
        let (ms, marker) = match shown {
            Some((row, ms)) => (Some(ms), came(&row, first)),
            None => (None, MarkerCame::Lost),
        };
        let stated_ms = match self.adapter.facts().visible {
            Visible::Later(ms) => ms,
            Visible::AtOnce | Visible::AfterJob => 0,
        };
        self.settle_ms = ms.unwrap_or(0).max(stated_ms).saturating_mul(LAGS);
        Ok((Lag { after_job: wrote.had_job, ms, within_ms }, marker))
    }

    /// The first row of a case, and how long it took to show: 0 if the first look showed it, however long that took.
    async fn until_it_shows(&mut self, case: &CaseId, within_ms: u64) -> Result<Option<(Row, u64)>, GaveUp> {
        let begun_ms = self.patience.clock.now_ms();
        if let Some(row) = self.rows(case).await?.into_iter().next() {
            return Ok(Some((row, 0)));
        }
        let mut pause_ms = LOOK_MS;
        loop {
            let waited_ms = self.patience.clock.now_ms().saturating_sub(begun_ms);
            if waited_ms >= within_ms {
                return Ok(None);
            }
            self.patience.wait(pause_ms.min(within_ms - waited_ms), "until the first write shows").await?;
            if let Some(row) = self.rows(case).await?.into_iter().next() {
                let waited_ms = self.patience.clock.now_ms().saturating_sub(begun_ms);
                return Ok(Some((row, waited_ms.max(1))));
            }
            // Exact where it is quick, sparing of calls where it is not.
            if waited_ms >= EXACT_MS {
                pause_ms = pause_ms.saturating_mul(3) / 2;
            }
        }
    }

    /// Writes for a case that has rows.
    async fn repeat(&mut self, entry: &Entry) -> Result<Repeat, GaveUp> {
        let before = self.settled(&entry.case).await?;
        let wrote = self.write(std::slice::from_ref(entry)).await?;
        let after = self.settled(&entry.case).await?;
        let shown = RowStatus::Is(entry.status);
        let show_second = after.iter().filter(|row| row.status == shown).count();
        Ok(Repeat {
            answer: wrote.answer,
            words: wrote.words,
            rows_before: before.len(),
            rows_after: after.len(),
            show_second,
            show_before: after.len() - show_second,
        })
    }

    async fn at_once(&mut self, case: &Case, writers: usize) -> Result<AtOnce, GaveUp> {
        self.patience.measures("what several writers of one entry at once leave");
        let before = self.settled(&case.id).await?;
        let entry = [self.entry(case, Status::Passed, "at once")];
        let answers = self.write_at_once(&entry, writers).await?;
        let after = self.settled(&case.id).await?;
        Ok(AtOnce { writers, answers, rows: after.len().saturating_sub(before.len()) })
    }

    /// One batch by so many writers; what they were answered.
    pub(super) async fn write_at_once(
        &mut self,
        batch: &[Entry],
        writers: usize,
    ) -> Result<BTreeMap<Answer, usize>, GaveUp> {
        let (adapter, cycle) = (self.adapter, self.cycle.clone());
        let answers = join_all((0..writers).map(|_| adapter.write(&cycle, batch))).await;
        let mut tally = BTreeMap::new();
        let (mut jobs, mut silent) = (Vec::new(), false);
        for answer in answers {
            let answer = match answer {
                Ok(written) => {
                    jobs.extend(written.job);
                    if written.refused.is_empty() { Answer::Taken } else { Answer::Refused }
                }
                Err(Trouble::Exists(_)) => Answer::Exists,
                Err(Trouble::Unknown(_)) => Answer::Unknown,
                Err(_) => Answer::Refused,
            };
            silent |= answer == Answer::Unknown;
            *tally.entry(answer).or_default() += 1;
        }
        for job in jobs {
            call::look_after(adapter, self.patience, &job).await?;
        }
        if silent {
            self.patience.wait(self.quiet_ms, "until a write without an answer is carried out").await?;
        }
        Ok(tally)
    }

    async fn text(&mut self, case: &Case) -> Result<Option<Text>, GaveUp> {
        self.patience.measures("what becomes of a long text");
        let head = format!("{MARKUP}\n{LINES}\n{BEYOND_ASCII}\n");
        let filler = TEXT_CHARS.saturating_sub(head.chars().count() + END.len() + 1);
        let message = format!("{head}{} {END}", "x".repeat(filler));
        let (answer, text, marker) = self.read_back(case, &message).await?;
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        Ok((!answer.is_refused()).then(|| Text {
            chars: message.chars().count(),
            marker,
            markup: text.contains(MARKUP),
            line_breaks: lines.join("\n").contains(LINES),
            beyond_ascii: text.contains(BEYOND_ASCII),
            end: text.contains(END),
        }))
    }

    /// A text of so many characters, room for the marker left.
    pub(super) async fn longest(&mut self, case: &Case, chars: usize) -> Result<Longest, GaveUp> {
        self.patience.measures("whether the longest text that is allowed comes whole");
        let filler = chars.saturating_sub(END.len() + 1 + Marker::CHARS_MAX + 2);
        let (answer, text, marker) = self.read_back(case, &format!("{} {END}", "x".repeat(filler))).await?;
        Ok(Longest { chars, answer, marker, end: text.contains(END) })
    }

    /// Writes a failure with this text. Gives the answer, and what a listing shows of it.
    async fn read_back(&mut self, case: &Case, message: &str) -> Result<(Answer, String, MarkerCame), GaveUp> {
        let before = self.settled(&case.id).await?;
        let entry = self.entry(case, Status::Failed, message);
        let answer = self.write(std::slice::from_ref(&entry)).await?.answer;
        if answer.is_refused() {
            return Ok((answer, String::new(), MarkerCame::Lost));
        }
        let after = self.settled(&case.id).await?;
        let new = after.iter().find(|row| !before.iter().any(|old| old.id == row.id));
        let replaced = after.iter().rev().find(|row| row.status == RowStatus::Is(entry.status));
        let row = new.or(replaced);
        let text = row.map(|row| row.text.clone()).unwrap_or_default();
        Ok((answer, text, row.map_or(MarkerCame::Lost, |row| came(row, &entry))))
    }

    async fn bad_item(&mut self, cases: [&Case; 2], absent: &CaseId) -> Result<Option<BadItem>, GaveUp> {
        if self.adapter.facts().bulk.items_max < 3 {
            return Ok(None);
        }
        let bad = Case { id: absent.clone(), title: "no such case".to_owned() };
        self.patience.measures("what a batch does of which one entry is bad");
        let [one, two] = cases.map(|case| self.entry(case, Status::Skipped, "beside a bad entry"));
        let bad = self.entry(&bad, Status::Skipped, "for a case that doesn't exist");
        let mut before = Vec::new();
        for entry in [&one, &two] {
            before.push(self.settled(&entry.case).await?);
        }
        let wrote = self.write(&[one.clone(), bad.clone(), two.clone()]).await?;
        let mut stored = 0;
        for (entry, before) in [&one, &two].into_iter().zip(before) {
            let after = self.settled(&entry.case).await?;
            let marked = after.iter().any(|row| row.is_of(entry.marker.write));
            stored += usize::from(marked || after.len() > before.len());
        }
        // Some products refuse to list what doesn't exist: then it isn't there.
        let bad_stored = match self.rows(&bad.case).await {
            Ok(rows) => !rows.is_empty(),
            Err(GaveUp::Refused(_) | GaveUp::Gone(_)) => false,
            Err(gave_up) => return Err(gave_up),
        };
        Ok(Some(BadItem { answer: wrote.answer, words: wrote.words, good: 2, stored, bad_stored }))
    }

    async fn amend(&mut self, case: &Case) -> Result<Deed, GaveUp> {
        self.patience.measures("whether a row can be changed");
        let rows = self.settled(&case.id).await?;
        // On a product that changes the newest row alone, that one is tried.
        let Some(row) = newest(&rows) else { return Ok(Deed::NotTried) };
        let status = if row.status == RowStatus::Is(Status::Passed) { Status::Failed } else { Status::Passed };
        let entry = self.entry(case, status, "amended");
        let (adapter, cycle) = (self.adapter, self.cycle.clone());
        match tried(self.patience, self.quiet_ms, || adapter.amend(&cycle, &row.id, &entry)).await? {
            Called::Refused(trouble) => return Ok(Deed::Refused { words: trouble.to_string() }),
            Called::Done(()) | Called::Unknown(_) => {}
        }
        let after = self.settled(&case.id).await?;
        let changed = after.iter().find(|one| one.id == row.id).is_some_and(|now| now != row);
        Ok(if changed { Deed::Done } else { Deed::NoEffect })
    }

    async fn delete(&mut self, case: &Case) -> Result<Deed, GaveUp> {
        self.patience.measures("whether a row can be deleted");
        let rows = self.settled(&case.id).await?;
        let Some(row) = newest(&rows) else { return Ok(Deed::NotTried) };
        let (adapter, cycle) = (self.adapter, self.cycle.clone());
        match tried(self.patience, self.quiet_ms, || adapter.delete(&cycle, &row.id)).await? {
            Called::Refused(trouble) => return Ok(Deed::Refused { words: trouble.to_string() }),
            Called::Done(()) | Called::Unknown(_) => {}
        }
        let after = self.settled(&case.id).await?;
        Ok(if after.iter().any(|one| one.id == row.id) { Deed::NoEffect } else { Deed::Done })
    }
}

fn newest(rows: &[Row]) -> Option<&Row> {
    rows.iter().max_by_key(|row| (row.at_ms, Natural::of(row.id.as_str())))
}

fn came(row: &Row, entry: &Entry) -> MarkerCame {
    match row.marker {
        Found::Whole(marker) if marker == entry.marker => MarkerCame::Whole,
        Found::Whole(_) | Found::Mangled => MarkerCame::Mangled,
        Found::Nothing => MarkerCame::Lost,
    }
}
