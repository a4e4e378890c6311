//! Carries out a plan, row by row. Before each removal the case is read again, and what is to be removed is recorded.
//! Must not remove a row unless an equal one of a lower rank stands there at that moment.

use std::io;

use domain::marker::Found;
use serde::Serialize;

use super::plan::mark;
use super::{How, Mend, Plan};
use crate::foreign::adapter::Adapter;
use crate::foreign::audit::Seen;
use crate::foreign::entry::{Entry, RowId};
use crate::foreign::facts::Visible;
use crate::foreign::patience::{GaveUp, Patience};
use crate::foreign::trouble::Trouble;

/// So often one row is tried before it is left to a person.
const TRIES_MAX: u32 = 8;
/// Before it is read whether a removal shows, in milliseconds, where lists lag by an unknown time.
const SHOWS_MS: u64 = 1000;

/// The record of a row that is about to be removed or marked: with it, a person can write it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// When, by our clock, milliseconds since 1970.
    pub at_ms: u64,
    /// All that the row holds.
    pub row: Seen,
    /// The row that stays for it.
    pub kept: RowId,
    /// What is done to it.
    #[serde(flatten)]
    pub how: How,
}

/// What became of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "became", rename_all = "kebab-case")]
pub enum Becoming {
    /// It is gone.
    Removed,
    /// It is marked as a repeat.
    Marked,
    /// Somebody had done it before.
    AlreadyDone,
    /// It stays.
    Left {
        /// Why, in words.
        why: String,
    },
}

/// A row of the plan, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Done {
    /// The row.
    pub row: Seen,
    /// The row that was to stay.
    pub kept: RowId,
    /// What became of it.
    #[serde(flatten)]
    pub becoming: Becoming,
    /// What a person has to look at.
    pub alarm: Option<String>,
}

/// Why a repair ended before its end.
#[derive(Debug, thiserror::Error)]
pub enum Halted {
    /// The repository.
    #[error("{0}")]
    GaveUp(#[from] GaveUp),
    /// What is to be removed can't be recorded, so it isn't removed.
    #[error("the record can't be written, so nothing more is removed: {0}")]
    Record(#[from] io::Error),
}

/// What a repair came to.
#[derive(Debug, Default)]
pub struct Applied {
    /// Rows that were looked at, in the order of the plan.
    pub done: Vec<Done>,
    /// Why it ended before its end. What is left is found by the next audit.
    pub halted: Option<Halted>,
}

impl Applied {
    /// How many rows are gone or marked, now or before.
    pub fn mended(&self) -> usize {
        self.done.iter().filter(|done| !matches!(done.becoming, Becoming::Left { .. })).count()
    }
}

/// Carries out a plan. Running it again is harmless, and so are two that run at once (see the module).
///
/// `record` hears of every row before it is touched, and must not return before what it heard is durable.
pub async fn apply(
    adapter: &dyn Adapter,
    plan: &Plan,
    patience: &mut Patience<'_>,
    record: &mut (dyn FnMut(&Removed) -> io::Result<()> + Send),
) -> Applied {
    let mut applied = Applied::default();
    for mend in &plan.mends {
        if let Err(gave_up) = patience.may_go_on() {
            applied.halted = Some(gave_up.into());
            break;
        }
        let how = mend.how.clone();
        let mut hand = Hand { adapter, mend, how, patience, record: &mut *record, recorded: false };
        match hand.settle().await {
            Ok(done) => applied.done.push(done),
            Err(halted) => {
                applied.halted = Some(halted);
                break;
            }
        }
    }
    applied
}

/// One row in hand.
struct Hand<'a, 'p> {
    adapter: &'a dyn Adapter,
    mend: &'a Mend,
    /// As planned; a mark instead of a deletion that this installation doesn't have.
    how: How,
    patience: &'a mut Patience<'p>,
    record: &'a mut (dyn FnMut(&Removed) -> io::Result<()> + Send),
    recorded: bool,
}

/// What is read of a row before it is touched.
enum State {
    /// It may be mended: an equal row of a lower rank is there.
    Ready,
    /// It is mended. Whether the row that stays is there too.
    Mended { kept_there: bool },
    /// It must stay.
    Leave(String),
}

impl Hand<'_, '_> {
    async fn settle(&mut self) -> Result<Done, Halted> {
        let mut tries = self.patience.tries();
        let (mut last, mut answered) = ("it is still listed".to_owned(), false);
        for _ in 0..TRIES_MAX {
            match self.look(answered).await? {
                State::Ready => {}
                State::Mended { kept_there } => return Ok(self.mended(kept_there)),
                State::Leave(why) => return Ok(self.left(why)),
            }
            self.patience.may_go_on()?;
            self.note()?;
            let touched = self.touch().await;
            answered = touched.is_ok();
            match touched {
                Ok(()) => {
                    "it is still listed".clone_into(&mut last);
                    self.until_it_shows().await?;
                }
                // Some rights end before deletions. Where nothing is allowed any more, the next reading says it.
                Err(Trouble::Refused(why) | Trouble::Denied(why)) if self.marks_instead() => last = why,
                Err(
                    refused @ (Trouble::Refused(_)
                    | Trouble::Denied(_)
                    | Trouble::Gone(_)
                    | Trouble::TooLarge(_)
                    | Trouble::Exists(_)),
                ) => {
                    return Ok(self.left(refused.to_string()));
                }
                // Without an answer it may be done: reading shows it.
                Err(again @ (Trouble::Unknown(_) | Trouble::NotSent(_) | Trouble::Wait { .. })) => {
                    last = again.to_string();
                    self.patience.before_next(&mut tries, &again).await?;
                }
            }
        }
        match self.look(answered).await? {
            State::Mended { kept_there } => Ok(self.mended(kept_there)),
            State::Ready | State::Leave(_) => Ok(self.left(format!("tried {TRIES_MAX} times; {last}"))),
        }
    }

    /// Reads the case again. What was `answered` is done: whether it shows is read whatever somebody wishes by now, so that
    /// it is told what became of the row.
    async fn look(&mut self, answered: bool) -> Result<State, GaveUp> {
        let (adapter, mend) = (self.adapter, self.mend);
        let cases = [mend.row.case.clone()];
        if !answered {
            self.patience.may_go_on()?;
        }
        let rows = self.patience.finishing(|| adapter.rows(&mend.row.cycle, &cases)).await?;
        let rows: Vec<Seen> = rows.into_iter().map(|row| Seen::of(&mend.row.cycle, row)).collect();
        let equal = |one: &Seen, planned: &Seen| one.row == planned.row && one.says_the_same_as(planned);
        let kept_there = rows.iter().any(|row| equal(row, &mend.kept));
        let Some(now) = rows.iter().find(|row| row.row == mend.row.row) else {
            return Ok(State::Mended { kept_there });
        };
        if let How::MarkAsRepeat { marker, .. } = &self.how
            && now.marker == Found::Whole(*marker)
        {
            return Ok(State::Mended { kept_there });
        }
        if !equal(now, &mend.row) {
            return Ok(State::Leave("it has changed since it was read; audit again".to_owned()));
        }
        // By what is read now, not by the plan: this is what keeps the row of the lowest rank from everybody.
        let lower =
            rows.iter().any(|row| equal(row, &mend.kept) && row.says_the_same_as(now) && row.rank() < now.rank());
        if lower {
            Ok(State::Ready)
        } else {
            Ok(State::Leave(format!("row {}, which was to stay, is not there as it was; audit again", mend.kept.row)))
        }
    }

    /// Some versions and rights change a row and delete none. True if it is to be marked from now on, and recorded anew.
    fn marks_instead(&mut self) -> bool {
        let able = self.how == How::Delete && self.adapter.facts().repair.amend;
        match mark(&self.mend.kept, &self.mend.row) {
            Ok(how) if able => {
                (self.how, self.recorded) = (how, false);
                true
            }
            _ => false,
        }
    }

    /// Records the row, once, before it is touched.
    fn note(&mut self) -> io::Result<()> {
        if self.recorded {
            return Ok(());
        }
        let removed = Removed {
            at_ms: self.patience.clock.unix_ms(),
            row: self.mend.row.clone(),
            kept: self.mend.kept.row.clone(),
            how: self.how.clone(),
        };
        (self.record)(&removed)?;
        self.recorded = true;
        Ok(())
    }

    async fn touch(&mut self) -> Result<(), Trouble> {
        let row = &self.mend.row;
        match &self.how {
            How::Delete => self.adapter.delete(&row.cycle, &row.row).await,
            How::MarkAsRepeat { status, message, marker } => {
                let entry = Entry {
                    case: row.case.clone(),
                    title: row.case.to_string(),
                    status: *status,
                    duration_us: None,
                    message: Some(message.clone()),
                    at_ms: row.at_ms.unwrap_or_default(),
                    items: Vec::new(),
                    marker: *marker,
                };
                self.adapter.amend(&row.cycle, &row.row, &entry).await
            }
        }
    }

    /// Lists of some products lag behind.
    async fn until_it_shows(&mut self) -> Result<(), GaveUp> {
        match self.adapter.facts().visible {
            Visible::AtOnce => Ok(()),
            Visible::AfterJob => self.patience.wait(SHOWS_MS, "until it shows").await,
            Visible::Later(ms) => self.patience.wait(ms.max(SHOWS_MS), "until it shows").await,
        }
    }

    fn mended(&self, kept_there: bool) -> Done {
        let becoming = match (self.recorded, &self.how) {
            (false, _) => Becoming::AlreadyDone,
            (true, How::Delete) => Becoming::Removed,
            (true, How::MarkAsRepeat { .. }) => Becoming::Marked,
        };
        let alarm = (!kept_there).then(|| {
            let kept = &self.mend.kept.row;
            format!(
                "row {kept}, which was to stay, is not there as it was: audit again; the record holds what was removed"
            )
        });
        self.done(becoming, alarm)
    }

    fn left(&self, why: String) -> Done {
        self.done(Becoming::Left { why }, None)
    }

    fn done(&self, becoming: Becoming, alarm: Option<String>) -> Done {
        Done { row: self.mend.row.clone(), kept: self.mend.kept.row.clone(), becoming, alarm }
    }
}
