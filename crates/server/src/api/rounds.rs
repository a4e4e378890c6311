//! Rounds of a cycle, and what people decide about them. Must not judge completeness: `domain::round` does.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::CycleName;
use domain::round::RoundChoice;
use store::RoundAction;

use super::found;
use crate::params::Params;
use crate::problem::Failure;
use crate::segments::Segments;
use crate::state::App;

/// Why `cycle` is needed.
pub(super) const SAY_CYCLE: &str = "say which cycle, such as cycle=main";

/// The rounds that `round=` asks for.
pub(super) fn choice(params: &mut Params) -> Result<RoundChoice, Failure> {
    Ok(RoundChoice::parse(params.take("round")?.as_deref().unwrap_or_default()))
}

/// `GET …/rounds?cycle=…&round=…`: the cycle with the rounds asked for.
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    segments: Segments,
    mut params: Params,
) -> Result<Response, Failure> {
    let cycle: CycleName = params.need("cycle", SAY_CYCLE)?;
    let rounds = choice(&mut params)?;
    params.finish()?;
    found(app.store.cycle(&segments.project()?, &cycle, &rounds).await)
}

/// `POST …/rounds/{round}/close`: complete as it is.
pub(crate) async fn close(state: State<Arc<App>>, segments: Segments, params: Params) -> Result<Response, Failure> {
    act(state, segments, params, RoundAction::Close).await
}

/// `POST …/rounds/{round}/pin`: authoritative, whatever comes.
pub(crate) async fn pin(state: State<Arc<App>>, segments: Segments, params: Params) -> Result<Response, Failure> {
    act(state, segments, params, RoundAction::Pin).await
}

/// `POST …/rounds/{round}/unpin`: no longer.
pub(crate) async fn unpin(state: State<Arc<App>>, segments: Segments, params: Params) -> Result<Response, Failure> {
    act(state, segments, params, RoundAction::Unpin).await
}

async fn act(
    State(app): State<Arc<App>>,
    segments: Segments,
    mut params: Params,
    action: RoundAction,
) -> Result<Response, Failure> {
    let cycle: CycleName = params.need("cycle", SAY_CYCLE)?;
    params.finish()?;
    found(app.door.set_round(&segments.project()?, &cycle, segments.round(), action).await)
}
