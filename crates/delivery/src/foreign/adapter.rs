//! What every product is asked for. An adapter is a table of facts and these calls; what they are used for, strategies know.
//! An adapter repeats nothing by itself and waits for nothing.

use std::fmt::Debug;

use async_trait::async_trait;

use super::attachment::{File, Listed};
use super::entry::{CaseChoice, CaseId, CaseWanted, CycleFound, CycleId, CycleWanted, Entry, JobId, Row, RowId};
use super::facts::Facts;
use super::trouble::Trouble;

/// What became of a batch that was taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// The row of each entry, in the order sent; `None` where the answer doesn't say.
    pub rows: Vec<Option<RowId>>,
    /// Entries that were refused alone, by their place in the batch, and why. All others were taken.
    pub refused: Vec<(usize, String)>,
    /// The product goes on with it: nothing is certain before this job has ended.
    pub job: Option<JobId>,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnd {
    /// Not yet.
    Open,
    /// Everything was carried out.
    Done,
    /// It failed, as the product says; what it did before that is unknown.
    Failed(String),
    /// The product knows no such job any more.
    Gone,
}

/// How outcomes are read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// All rows of a cycle by one call, pages aside.
    Cycle,
    /// Each case by a call of its own.
    Case,
    /// Outcomes are counted ([`Adapter::count`]), and never listed.
    Counts,
    /// Not at all.
    Nothing,
}

/// Why a cycle is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// Everything is in it.
    Complete,
    /// Another one counts instead: nothing may be taken from it.
    Abandoned,
}

/// What a cycle that was ended does with outcomes that come later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Cycles of this product don't end.
    None,
    /// It takes them, and counts them.
    Takes,
    /// It refuses them, or may.
    Refuses,
}

/// A cycle that has the name of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namesake {
    /// The cycle.
    pub found: CycleFound,
    /// When it was made as the product says, milliseconds since 1970.
    pub made_ms: Option<u64>,
    /// It carries a tag of ours: whose it is, the tag says.
    pub tagged: bool,
}

/// A product.
///
/// Every call is one attempt and may be dropped at any moment. A call that is made of several requests says
/// [`Trouble::Unknown`] if one of them that writes stays without an answer.
#[async_trait]
pub trait Adapter: Debug + Send + Sync {
    /// What is known of it.
    fn facts(&self) -> &Facts;

    /// The case of each item, in their order, where that needs no call; `None` where only the product can tell.
    fn own_cases(&self, wanted: &[CaseWanted<'_>]) -> Option<Vec<CaseChoice>> {
        let _ = wanted;
        None
    }

    /// The case of each item, in their order. Creates cases where the settings allow it and the product keeps such.
    ///
    /// # Errors
    /// None is known then; creating a case again is avoided by looking for it first.
    async fn cases(&self, wanted: &[CaseWanted<'_>]) -> Result<Vec<CaseChoice>, Trouble> {
        Ok(self.own_cases(wanted).unwrap_or_default())
    }

    /// Every cycle that carries the wanted id, whoever made it, oldest first.
    async fn find_cycles(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble>;

    /// Whether it can say that no cycle has an id. Where it can't, one that is asked for by its id is said to be there.
    fn tells_cycles(&self) -> bool {
        true
    }

    /// Every cycle of this name, itself among them; `None` where the product can't be asked, or names are unique.
    async fn namesakes(&self, name: &str) -> Result<Option<Vec<Namesake>>, Trouble> {
        let _ = name;
        Ok(None)
    }

    /// Makes one more cycle. Whether there is one already is the caller's question.
    async fn create_cycle(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble>;

    /// Makes cases writable in a cycle where the product wants them added first. Cases that are in it stay as they
    /// are. Gives those that can't be, and why.
    async fn add_cases(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble>;

    /// How long our own pace would hold back so many calls, in milliseconds: who times a call has to wait for that before.
    fn held_back_ms(&self, _calls: usize) -> u64 {
        0
    }

    /// Whether what is written into a cycle stays in it, as a probe needs it to.
    ///
    /// # Errors
    /// In words for people: it comes into what others count.
    fn keeps_to_its_cycle(&self) -> Result<(), String> {
        Ok(())
    }

    /// How it is read back.
    fn listing(&self) -> Listing {
        Listing::Cycle
    }

    /// Every row of the cycle for these cases (or for all, if none is named), those without a verdict left out.
    /// Complete, whatever pages the product gives them in.
    async fn rows(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<Row>, Trouble>;

    /// How many outcomes of this batch the cycle holds, on a product that counts outcomes and lists none; more than the
    /// batch has, if a part of a write is there and nobody can tell which. `None` where [`Adapter::rows`] lists them.
    async fn count(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Option<u64>, Trouble> {
        let _ = (cycle, batch);
        Ok(None)
    }

    /// How many outcomes the cycle holds in all, whoever wrote them, on a product that counts outcomes and lists none.
    /// `None` where [`Adapter::rows`] lists them.
    async fn total(&self, cycle: &CycleId) -> Result<Option<u64>, Trouble> {
        let _ = cycle;
        Ok(None)
    }

    /// Writes a batch of at most [`super::Bulk::items_max`] entries. On a product that replaces, only what is replaced.
    async fn write(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble>;

    /// Changes one row to what the entry says.
    async fn amend(&self, cycle: &CycleId, row: &RowId, entry: &Entry) -> Result<(), Trouble>;

    /// Deletes one row. One that is not there is deleted.
    async fn delete(&self, cycle: &CycleId, row: &RowId) -> Result<(), Trouble>;

    /// Looks after a job.
    async fn poll(&self, job: &JobId) -> Result<JobEnd, Trouble> {
        let _ = job;
        Ok(JobEnd::Done)
    }

    /// Whether a cycle that is closed as [`Closing::Abandoned`] is deleted, so that nobody finds it any more.
    fn deletes_abandoned(&self) -> bool {
        false
    }

    /// The files of a row. Complete, whatever pages the product gives them in.
    async fn attachments(&self, cycle: &CycleId, row: &Row) -> Result<Listed, Trouble> {
        let _ = (cycle, row);
        Ok(Listed::TakesNone(format!("{} takes no attachments from here", self.facts().kind)))
    }

    /// Adds a file to a row. Whether it is there already is the caller's question.
    async fn attach(&self, cycle: &CycleId, row: &Row, file: &File) -> Result<(), Trouble> {
        let _ = (cycle, row);
        Err(Trouble::Refused(format!("{} takes no attachment such as {}", self.facts().kind, file.name)))
    }

    /// What an ended cycle does with outcomes that come later.
    fn ending(&self) -> Ending {
        Ending::None
    }

    /// Ends a cycle, where the product has such a thing.
    async fn close_cycle(&self, cycle: &CycleId, why: Closing) -> Result<(), Trouble>;

    /// Deletes a cycle with all that is in it.
    async fn delete_cycle(&self, cycle: &CycleId) -> Result<(), Trouble>;
}
