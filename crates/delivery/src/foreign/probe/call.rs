//! Calls that write, each carried out once at most: again only if the last one surely had no effect.
//! Must not conclude anything.

use futures_util::future::BoxFuture;

use super::measured::Answer;
use crate::foreign::adapter::{Adapter, JobEnd, Written};
use crate::foreign::entry::{CycleId, Entry, JobId};
use crate::foreign::patience::{GaveUp, Patience};
use crate::foreign::trouble::Trouble;

/// What a call came to.
pub(super) enum Called<T> {
    /// It was carried out.
    Done(T),
    /// It was not, and won't be.
    Refused(Trouble),
    /// Nobody knows; the quiet time is over.
    Unknown(String),
}

/// Calls until there is an end.
pub(super) async fn called<'c, T: Send>(
    patience: &mut Patience<'_>,
    quiet_ms: u64,
    mut call: impl FnMut() -> BoxFuture<'c, Result<T, Trouble>> + Send,
) -> Result<Called<T>, GaveUp> {
    let mut tries = patience.tries();
    loop {
        match call().await {
            Ok(value) => return Ok(Called::Done(value)),
            Err(Trouble::Denied(what)) => return Err(GaveUp::Denied(what)),
            Err(again @ (Trouble::NotSent(_) | Trouble::Wait { .. })) => {
                patience.before_next(&mut tries, &again).await?;
            }
            Err(Trouble::Unknown(what)) => {
                patience.wait(quiet_ms, &what).await?;
                return Ok(Called::Unknown(what));
            }
            Err(refused) => return Ok(Called::Refused(refused)),
        }
    }
}

/// The same for what only some of those who write may do: that this one has no right to it is an answer too.
pub(super) async fn tried<'c, T: Send>(
    patience: &mut Patience<'_>,
    quiet_ms: u64,
    call: impl FnMut() -> BoxFuture<'c, Result<T, Trouble>> + Send,
) -> Result<Called<T>, GaveUp> {
    match called(patience, quiet_ms, call).await {
        Err(GaveUp::Denied(what)) => Ok(Called::Refused(Trouble::Denied(what))),
        other => other,
    }
}

/// A write and its job, to their end.
pub(super) struct Wrote {
    pub(super) answer: Answer,
    pub(super) words: Option<String>,
    pub(super) had_job: bool,
}

/// Writes once.
pub(super) async fn write(
    adapter: &dyn Adapter,
    patience: &mut Patience<'_>,
    quiet_ms: u64,
    cycle: &CycleId,
    batch: &[Entry],
) -> Result<Wrote, GaveUp> {
    let answered = called(patience, quiet_ms, || adapter.write(cycle, batch)).await?;
    let (answer, words, job) = match answered {
        Called::Done(Written { refused, job, .. }) if refused.is_empty() => (Answer::Taken, None, job),
        Called::Done(Written { refused, job, .. }) => {
            let words: Vec<String> = refused.into_iter().map(|(_, why)| why).collect();
            (Answer::TakenInPart, Some(words.join("; ")), job)
        }
        Called::Refused(trouble @ Trouble::Exists(_)) => (Answer::Exists, Some(trouble.to_string()), None),
        Called::Refused(trouble) => (Answer::Refused, Some(trouble.to_string()), None),
        Called::Unknown(what) => (Answer::Unknown, Some(what), None),
    };
    let had_job = job.is_some();
    Ok(match job {
        Some(job) => match look_after(adapter, patience, &job).await? {
            None => Wrote { answer, words, had_job },
            Some(why) => Wrote { answer: Answer::JobFailed, words: Some(why), had_job },
        },
        None => Wrote { answer, words, had_job },
    })
}

/// Waits for a job's end. `None` if it did everything.
pub(super) async fn look_after(
    adapter: &dyn Adapter,
    patience: &mut Patience<'_>,
    job: &JobId,
) -> Result<Option<String>, GaveUp> {
    let mut tries = patience.tries();
    loop {
        match patience.reading(|| adapter.poll(job)).await? {
            JobEnd::Done => return Ok(None),
            JobEnd::Failed(why) => return Ok(Some(why)),
            JobEnd::Gone => return Ok(Some(format!("job {job} is not known any more"))),
            JobEnd::Open => {
                let open = Trouble::Unknown(format!("job {job} has not ended"));
                patience.before_next(&mut tries, &open).await?;
            }
        }
    }
}
