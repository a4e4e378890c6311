//! How far pushes are at the targets that the server hands them on to. Must not forward anything, and must not answer from
//! memory: every look is the store's.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use domain::listing::{ForwardReport, PushForwards};
use domain::{ProjectId, PushId, limits};
use http::HeaderMap;
use tokio::sync::watch;

use super::json;
use crate::forward::report::{self, ForwardsQuery};
use crate::headers;
use crate::params::Params;
use crate::problem::{Failure, malformed};
use crate::segments::Segments;
use crate::state::App;

/// Between two looks while waiting: another process over the same store may do the work.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Between two looks at least: steps come as fast as the product answers, at any target.
const LOOKS_APART: Duration = Duration::from_millis(250);

/// `GET …/pushes/{push}/forwards`: one push at every target; `Prefer: wait=N` waits until nothing more happens by itself.
pub(crate) async fn of_push(
    State(app): State<Arc<App>>,
    segments: Segments,
    params: Params,
    request: HeaderMap,
) -> Result<Response, Failure> {
    params.finish()?;
    let (project, push) = (segments.project()?, segments.push()?);
    let wait = Duration::from_secs(headers::prefer_wait(&request));
    let mut known = look(&app, &project, push).await?;
    if !wait.is_zero() && !known.settled {
        known = until_settled(&app, &project, push, known, wait).await?;
    }
    json(&known)
}

/// As long as there is a place to wait in and the server goes on. Gives the last look.
async fn until_settled(
    app: &App,
    project: &ProjectId,
    push: PushId,
    first: PushForwards,
    wait: Duration,
) -> Result<PushForwards, Failure> {
    let Ok(_place) = app.waiting.try_acquire() else { return Ok(first) };
    // Listening begins before the next look, so that no step falls between.
    let mut changes = app.board.changes();
    let waiting = async {
        while !look(app, project, push).await?.settled {
            changed(&mut changes).await;
        }
        Ok::<(), Failure>(())
    };
    tokio::select! {
        // In time or not: what is there then is said.
        result = tokio::time::timeout(wait, waiting) => result.unwrap_or(Ok(()))?,
        () = app.drained() => {}
    }
    look(app, project, push).await
}

/// Waits until it is worth another look: many changes are one.
async fn changed(changes: &mut watch::Receiver<u64>) {
    let change = tokio::time::timeout(LOOK_AGAIN, changes.changed());
    let _ = tokio::join!(change, tokio::time::sleep(LOOKS_APART));
}

async fn look(app: &App, project: &ProjectId, push: PushId) -> Result<PushForwards, Failure> {
    Ok(report::of_push(&*app.store, project, push, &app.board.kinds).await??)
}

/// What the report of a push says of its targets.
pub(super) async fn beside(app: &App, project: &ProjectId, push: PushId) -> Result<Vec<ForwardReport>, Failure> {
    Ok(look(app, project, push).await?.forwards)
}

/// `GET …/forwards?target=…&state=…&cycle=…`: what waits, what is open, and what is settled.
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    segments: Segments,
    mut params: Params,
) -> Result<Response, Failure> {
    let limit = params.read("limit")?.unwrap_or(limits::PAGE_ITEMS_MAX);
    if !(1..=limits::PAGE_ITEMS_MAX).contains(&limit) {
        return Err(malformed("limit", format!("{limit} is not from 1 to {}", limits::PAGE_ITEMS_MAX)));
    }
    let query = ForwardsQuery {
        target: params.take("target")?,
        project: Some(segments.project()?),
        cycle: params.read("cycle")?,
        state: params.read("state")?,
        limit: Some(limit),
    };
    params.finish()?;
    json(&report::listed(&*app.store, &query).await?)
}

#[cfg(test)]
mod tests {
    use delivery::{Clock as _, SystemClock};

    use super::*;

    #[tokio::test]
    async fn many_changes_are_worth_one_look() {
        let (steps, mut changes) = watch::channel(0_u64);
        let clock = SystemClock::new();
        let mut looks = 0_u64;
        let looking = async {
            loop {
                changed(&mut changes).await;
                looks += 1;
            }
        };
        let stepping = async {
            for _ in 0..300 {
                steps.send_modify(|step| *step += 1);
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::select! {
            () = looking => {}
            () = stepping => {}
        }
        let most = clock.now_ms() / 250;
        assert!(looks <= most && looks > 0, "{looks} looks, at most {most}");
    }
}
