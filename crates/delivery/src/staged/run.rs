//! The sequence of one try: begin, put, commit; and what each setback on the way comes to.
//! Must not know how a receiver is reached.

use domain::{Cause, Delivery, NextTry};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::{Begun, Setback, Stage, Staging};
use crate::attempt::Try;
use crate::parcel::Parcel;
use crate::target::Handed;

/// How often a commit that says that chunks are missing is believed in one try.
const ROUNDS_MAX: u32 = 4;
/// How long one wait for another delivery takes at most, in milliseconds: what a server allows.
const ATTACH_WAIT_MS: u64 = domain::limits::ATTACH_WAIT_SECONDS_MAX * 1000;

/// One try to deliver a parcel in chunks.
pub async fn deliver_staged(stage: &dyn Stage, parcel: &Parcel, attempt: &Try<'_>) -> Delivery<Handed> {
    attempt.only_stages();
    match try_once(stage, parcel, attempt).await {
        Ok(handed) => Delivery::Recorded(handed),
        Err(setback) => verdict(stage, parcel, attempt, setback).await,
    }
}

async fn try_once(stage: &dyn Stage, parcel: &Parcel, attempt: &Try<'_>) -> Result<Handed, Setback> {
    let chunks = parcel.header.chunks.len() as u32;
    let (at, mut missing) = match begin(stage, parcel).await? {
        Begun::Recorded(handed) => return Ok(*handed),
        Begun::Staging { at, missing, resumed } => {
            let missing = listed(&missing, chunks)?;
            attempt.tell(|staged| {
                (staged.chunks, staged.resumed) = (chunks, resumed);
                staged.there = chunks - missing.len() as u32;
            });
            (at, missing)
        }
    };
    for _ in 0..ROUNDS_MAX {
        let put = put_all(stage, parcel, attempt, at, &missing).await;
        if let Err(Setback::TooLarge(_)) = put {
            // Cut smaller it is another manifest, which would wait for this one.
            stage.cancel(parcel, at).await;
            fail::fail_point!("client:cancel:done");
        }
        put?;
        attempt.may_record();
        let committed = stage.commit(parcel, at).await;
        fail::fail_point!("client:commit:done");
        match committed {
            Err(Setback::Incomplete(ranges)) => {
                // It says itself that nothing is recorded.
                attempt.only_stages();
                missing = listed(&ranges, chunks)?;
                attempt.tell(|staged| staged.there = chunks - missing.len() as u32);
            }
            other => return other,
        }
    }
    Err(Setback::NotTaken(Cause::new("the receiver says again and again that chunks are missing")))
}

/// Items and verdicts are a help and no need: where the manifest is too large with them, it goes without.
async fn begin(stage: &dyn Stage, parcel: &Parcel) -> Result<Begun, Setback> {
    fail::fail_point!("client:begin:before");
    let begun = stage.begin(parcel, true).await;
    fail::fail_point!("client:begin:done");
    match begun {
        Err(Setback::TooLarge(_)) if parcel.header.items.is_some() => {
            let begun = stage.begin(parcel, false).await;
            fail::fail_point!("client:begin:done-without-items");
            begun.map_err(too_large_at_all)
        }
        other => other.map_err(too_large_at_all),
    }
}

/// Smaller chunks make a larger manifest.
fn too_large_at_all(setback: Setback) -> Setback {
    let Setback::TooLarge(what) = setback else { return setback };
    let words = format!(
        "The receiver takes no request as large as the list of chunks ({what}). Nothing was recorded. Raise its limit for \
         the size of a request."
    );
    Setback::Rejected(Box::new(domain::Problem::new(domain::ProblemCode::TooLarge, words)))
}

/// Puts chunks, a few at a time; the first setback ends it.
async fn put_all(
    stage: &dyn Stage,
    parcel: &Parcel,
    attempt: &Try<'_>,
    at: Staging,
    missing: &[u32],
) -> Result<(), Setback> {
    let mut waiting = missing.iter();
    let mut on_the_way = FuturesUnordered::new();
    loop {
        while on_the_way.len() < stage.at_once().max(1)
            && let Some(chunk) = waiting.next()
        {
            on_the_way.push(stage.put(parcel, at, *chunk));
        }
        let Some(put) = on_the_way.next().await else { return Ok(()) };
        fail::fail_point!("client:put:done");
        put?;
        attempt.tell(|staged| {
            staged.sent += 1;
            staged.there += 1;
        });
    }
}

/// Chunks one by one. A list that no manifest of ours could have is no answer of a receiver that has understood it.
fn listed(ranges: &[[u32; 2]], chunks: u32) -> Result<Vec<u32>, Setback> {
    let mut all = Vec::new();
    for [first, last] in ranges {
        if first > last || *last >= chunks || all.last().is_some_and(|before| before >= first) {
            let what = format!("the receiver misses chunks {first} to {last} of {chunks}: it speaks of another push");
            return Err(Setback::Unclear(Cause::new(what)));
        }
        all.extend(*first..=*last);
    }
    Ok(all)
}

/// Which of the truths a setback stands for. Before the commit is sent nothing can be recorded.
async fn verdict(stage: &dyn Stage, parcel: &Parcel, attempt: &Try<'_>, setback: Setback) -> Delivery<Handed> {
    match setback {
        Setback::Rejected(problem) => Delivery::Rejected(problem),
        Setback::NotTaken(cause) => Delivery::NotSent(cause),
        Setback::Unclear(cause) if attempt.is_harmless() => Delivery::NotSent(cause),
        Setback::Unclear(cause) => Delivery::PossiblyWritten(cause),
        Setback::Incomplete(_) => Delivery::NotSent(Cause::new("the receiver says that chunks are missing")),
        Setback::Gone(what) => Delivery::NotSent(Cause { next: NextTry::Anew, ..Cause::new(what) }),
        Setback::TooLarge(what) => Delivery::NotSent(Cause { next: NextTry::Smaller, ..Cause::new(what) }),
        Setback::Fenced { what, idle_in_ms, over } => {
            wait_for_other(stage, parcel, attempt, what, idle_in_ms, over).await
        }
    }
}

/// Another delivery of this key is under way: waits for its end, and then has the loop begin again. Whatever became of
/// that one, it is no answer to ours.
pub async fn wait_for_other(
    stage: &dyn Stage,
    parcel: &Parcel,
    attempt: &Try<'_>,
    what: String,
    idle_in_ms: Option<u64>,
    over: bool,
) -> Delivery<Handed> {
    // The answer that fenced us off says itself that nothing of ours was written.
    attempt.only_stages();
    let wished_ms = idle_in_ms.unwrap_or(ATTACH_WAIT_MS).min(ATTACH_WAIT_MS);
    let before_ms = attempt.left_ms();
    // Our own staging may be over without anybody going on, and then there is nothing to wait for.
    let ended = (over && stage.attach(parcel, 0).await) || stage.attach(parcel, wished_ms.min(before_ms)).await;
    fail::fail_point!("client:attach:done");
    let waited_ms = before_ms.saturating_sub(attempt.left_ms());
    let next = if over { NextTry::Anew } else { NextTry::Same };
    // Where it didn't let us wait for as long as it said, the loop does.
    let retry_after_ms = idle_in_ms.filter(|_| !ended).map(|idle_ms| idle_ms.saturating_sub(waited_ms));
    Delivery::NotSent(Cause { what, retry_after_ms: retry_after_ms.filter(|ms| *ms > 0), next })
}
