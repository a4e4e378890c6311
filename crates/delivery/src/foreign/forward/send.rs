//! Sends the entries of one intent: halves what is refused until one bad entry stands alone, and looks after jobs.
//! Must not read back: what a silence means, `settle` finds out.

use std::ops::Range;

use domain::intent::RefusedItem;

use super::plan::refused;
use super::{Forwarder, Halt};
use crate::foreign::adapter::JobEnd;
use crate::foreign::entry::{CycleId, Entry, JobId};
use crate::foreign::facts::KeyOnWrite;
use crate::foreign::trouble::Trouble;

/// What sending came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sent {
    /// All that was not refused is taken.
    Taken,
    /// Of what is not taken, nothing had an effect. The deadline came, or somebody wants to stop.
    NotAll(Halt),
    /// Some of it may be written.
    Unknown(String),
    /// The product won't have it, whoever's outcome it is.
    Denied(Halt),
}

impl Forwarder<'_> {
    /// Sends entries, in as many calls as it takes.
    pub(super) async fn send(&mut self, cycle: &CycleId, entries: &[Entry], out: &mut Vec<RefusedItem>) -> Sent {
        let (mut backoff, begun_ms) = (self.backoff(), self.clock.now_ms());
        let mut open: Vec<Range<usize>> = Vec::from([Range { start: 0, end: entries.len() }]);
        while let Some(range) = open.pop() {
            let batch = &entries[range.clone()];
            let trouble = match self.adapter.write(cycle, batch).await {
                Ok(written) => {
                    for (at, why) in written.refused {
                        out.extend(batch.get(at).into_iter().flat_map(|entry| refused(entry, &why)));
                    }
                    match written.job {
                        None => continue,
                        Some(job) => match self.look_after(&job).await {
                            None => continue,
                            Some(unclear) => return Sent::Unknown(unclear),
                        },
                    }
                }
                Err(trouble) => trouble,
            };
            match trouble {
                Trouble::Unknown(what) => return Sent::Unknown(what),
                // It is ours if the id is: nobody else makes that one.
                Trouble::Exists(_) if self.is_keyed() && batch.len() == 1 => {}
                Trouble::Exists(what) if !self.is_keyed() => return Sent::Unknown(what),
                Trouble::Refused(why) | Trouble::TooLarge(why) if batch.len() == 1 => {
                    out.extend(refused(&batch[0], &why));
                }
                Trouble::Refused(_) | Trouble::TooLarge(_) | Trouble::Exists(_) => {
                    let middle = range.start + batch.len() / 2;
                    // The first half is taken from the end next: order is kept.
                    open.push(middle..range.end);
                    open.push(range.start..middle);
                }
                Trouble::Denied(what) => return Sent::Denied(Halt::Denied(what)),
                Trouble::Gone(what) => return Sent::Denied(Halt::Refused(what)),
                again @ (Trouble::NotSent(_) | Trouble::Wait { .. }) => {
                    if let Err(halt) = self.before_next(&mut backoff, begun_ms, &again).await {
                        return Sent::NotAll(halt);
                    }
                    open.push(range);
                }
            }
        }
        Sent::Taken
    }

    fn is_keyed(&self) -> bool {
        self.adapter.facts().key_on_write != KeyOnWrite::None
    }

    /// Waits for a job's end. `None` if it did everything.
    async fn look_after(&mut self, job: &JobId) -> Option<String> {
        let (mut backoff, begun_ms) = (self.backoff(), self.clock.now_ms());
        loop {
            let open = match self.adapter.poll(job).await {
                Ok(JobEnd::Done) => return None,
                Ok(JobEnd::Failed(why)) => return Some(format!("job {job} failed after it was accepted: {why}")),
                Ok(JobEnd::Gone) => return Some(format!("job {job} is not known any more")),
                Ok(JobEnd::Open) => Trouble::Unknown(format!("job {job} has not ended")),
                Err(trouble) => trouble,
            };
            if let Err(halt) = self.before_next(&mut backoff, begun_ms, &open).await {
                return Some(halt.to_string());
            }
        }
    }
}
