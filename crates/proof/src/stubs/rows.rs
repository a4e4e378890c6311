//! Stored outcomes with the vendor's repeat rule as data, and jobs that store them later. Must not know which vendor.

use crate::stubs::fault::JobFate;
use crate::stubs::vendor::{Call, Stamp};

/// What a repeat of a write leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// One row more.
    Append,
    /// The row that was there, with the new content.
    Replace,
    /// The row that was there, unchanged; the answer is an error.
    Refuse,
    /// The row that was there, unchanged; the answer is that of a success.
    Collapse,
}

/// What a vendor says it does with a repeat, and what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// What answers look like.
    pub says: Repeat,
    /// What is stored.
    pub does: Repeat,
}

impl Rule {
    /// A vendor that does what it says.
    pub fn honest(repeat: Repeat) -> Self {
        Self { says: repeat, does: repeat }
    }

    /// A vendor that says one thing and does another.
    pub fn lying(says: Repeat, does: Repeat) -> Self {
        Self { says, does }
    }
}

/// One stored outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<T> {
    /// Rises in the order of creation.
    pub id: u64,
    /// When it was created.
    pub created: Stamp,
    /// When its content was last replaced.
    pub changed: Stamp,
    /// The vendor's own.
    pub data: T,
    /// What it was before its last change, for lists that lag.
    before: Option<T>,
}

/// What the answer to a write says. A vendor answers by this alone, so a lying one needs no code of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// A new row of this id. If the vendor lies, there may be none.
    Added(u64),
    /// This row has the new content.
    Replaced(u64),
    /// This row is in the way.
    Refused(u64),
    /// This row is there already, and all is well.
    Collapsed(u64),
}

impl Told {
    /// The row that the answer is about.
    pub fn id(self) -> u64 {
        match self {
            Told::Added(id) | Told::Replaced(id) | Told::Refused(id) | Told::Collapsed(id) => id,
        }
    }
}

/// All stored outcomes of a vendor.
#[derive(Debug, Clone)]
pub struct Rows<T> {
    /// The repeat rule; may be changed at any time.
    pub rule: Rule,
    next_id: u64,
    all: Vec<Row<T>>,
}

impl<T: Clone> Row<T> {
    fn change(&mut self, at: Stamp, change: impl FnOnce(&mut T)) {
        self.before = Some(self.data.clone());
        change(&mut self.data);
        self.changed = at;
    }
}

impl<T: Clone> Rows<T> {
    /// None yet; ids count from `first_id`.
    pub fn new(rule: Rule, first_id: u64) -> Self {
        Self { rule, next_id: first_id, all: Vec::new() }
    }

    /// Stores an outcome. `same` tells which earlier rows this write would be a repeat of; the latest of them counts.
    pub fn write(&mut self, at: Stamp, data: T, same: impl Fn(&T) -> bool) -> Told {
        self.write_with(at, data, same, |old, new| *old = new)
    }

    /// The same for a vendor where a replaced row keeps something of its own (comments, history).
    pub fn write_with(&mut self, at: Stamp, data: T, same: impl Fn(&T) -> bool, merge: impl FnOnce(&mut T, T)) -> Told {
        if self.rule == Rule::honest(Repeat::Append) {
            return Told::Added(self.push(at, data));
        }
        let Some(found) = self.all.iter().rposition(|row| same(&row.data)) else {
            return Told::Added(self.push(at, data));
        };
        let id = self.all[found].id;
        let new_id = match self.rule.does {
            Repeat::Append => Some(self.push(at, data)),
            Repeat::Replace => {
                self.all[found].change(at, |old| merge(old, data));
                None
            }
            Repeat::Refuse | Repeat::Collapse => None,
        };
        match self.rule.says {
            Repeat::Append => Told::Added(new_id.unwrap_or_else(|| self.take_id())),
            Repeat::Replace => Told::Replaced(id),
            Repeat::Refuse => Told::Refused(id),
            Repeat::Collapse => Told::Collapsed(id),
        }
    }

    /// Stores a row without asking the repeat rule: a foreign writer, or one that was there before.
    pub fn push(&mut self, at: Stamp, data: T) -> u64 {
        let id = self.take_id();
        self.all.push(Row { id, created: at, changed: at, data, before: None });
        id
    }

    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// The row of this id.
    pub fn get(&self, id: u64) -> Option<&Row<T>> {
        self.all.iter().find(|row| row.id == id)
    }

    /// The row of this id, to be changed; such a change shows in lists at once.
    pub fn get_mut(&mut self, id: u64) -> Option<&mut Row<T>> {
        self.all.iter_mut().find(|row| row.id == id)
    }

    /// Changes the content of a row; `None` if there is no such row.
    pub fn change(&mut self, id: u64, at: Stamp, change: impl FnOnce(&mut T)) -> Option<&Row<T>> {
        let row = self.all.iter_mut().find(|row| row.id == id)?;
        row.change(at, change);
        Some(row)
    }

    /// What a list shows now, oldest first: a row that is younger than the list's lag is not there, a change that is
    /// younger does not show.
    pub fn shown(&self, call: &Call<'_>) -> impl DoubleEndedIterator<Item = (u64, &T)> {
        let (call, seen) = (*call, |row: &&Row<T>, call: &Call<'_>| call.sees(row.created));
        self.all.iter().filter(move |row| seen(row, &call)).map(move |row| match &row.before {
            Some(before) if !call.sees(row.changed) => (row.id, before),
            _ => (row.id, &row.data),
        })
    }

    /// All, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Row<T>> {
        self.all.iter()
    }

    /// Deletes all but these.
    pub fn retain(&mut self, keep: impl FnMut(&Row<T>) -> bool) {
        self.all.retain(keep);
    }
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// Accepted, not applied.
    Pending,
    /// Applied.
    Done,
    /// Failed; nothing was applied.
    Failed,
}

/// Work that was accepted and is applied later or never. The vendor takes what is [`due`](Jobs::due) in its
/// [`settle`](crate::stubs::Vendor::settle).
#[derive(Debug, Clone)]
pub struct Jobs<T>(Vec<Job<T>>);

#[derive(Debug, Clone)]
struct Job<T> {
    accepted: Stamp,
    fate: JobFate,
    polls: u32,
    work: Option<T>,
}

impl<T> Default for Jobs<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Jobs<T> {
    /// Accepts work, with the fate that the kernel has in store; its id, from 1.
    pub fn accept(&mut self, call: &Call<'_>, work: T) -> u64 {
        self.0.push(Job { accepted: call.now, fate: call.job(), polls: 0, work: Some(work) });
        self.0.len() as u64
    }

    /// Takes the work that is to be applied now, oldest first, with the id of its job.
    pub fn due(&mut self, now: Stamp) -> Vec<(u64, T)> {
        let due = |job: &Job<T>| match job.fate {
            JobFate::Done | JobFate::LosesId => true,
            JobFate::AfterMs(ms) => now.unix_ms >= job.accepted.unix_ms.saturating_add_unsigned(ms),
            JobFate::Polls(polls) => job.polls >= polls,
            JobFate::Stuck | JobFate::Fails => false,
        };
        let numbered = (1..).zip(self.0.iter_mut());
        numbered.filter(|(_, job)| due(job)).filter_map(|(id, job)| Some((id, job.work.take()?))).collect()
    }

    /// What a poll says; `None` if the vendor does not know this id (any more).
    pub fn poll(&mut self, id: u64) -> Option<JobState> {
        let job = self.0.get_mut(usize::try_from(id.checked_sub(1)?).ok()?)?;
        job.polls += 1;
        match job.fate {
            JobFate::LosesId => None,
            JobFate::Fails => Some(JobState::Failed),
            _ if job.work.is_none() => Some(JobState::Done),
            _ => Some(JobState::Pending),
        }
    }
}
