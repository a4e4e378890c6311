//! Items as they count: of chosen rounds, of the headline, through time, and those not seen since. Must not count.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use domain::listing::{ItemQuery, ItemSort};
use domain::round::RoundChoice;
use domain::{CycleName, limits};

use super::found;
use super::rounds::{SAY_CYCLE, choice};
use crate::params::Params;
use crate::problem::{Failure, malformed};
use crate::segments::Segments;
use crate::state::App;

/// Items on a page, unless asked otherwise.
const PAGE_ITEMS: usize = 100;

/// `GET …/outcomes?cycle=…&round=…`: items of the rounds asked for.
pub(crate) async fn outcomes(
    state: State<Arc<App>>,
    segments: Segments,
    mut params: Params,
) -> Result<Response, Failure> {
    let rounds = choice(&mut params)?;
    page(state, segments, params, rounds).await
}

/// `GET …/items?cycle=…`: items of the headline.
pub(crate) async fn headline(state: State<Arc<App>>, segments: Segments, params: Params) -> Result<Response, Failure> {
    page(state, segments, params, RoundChoice::Authoritative).await
}

async fn page(
    State(app): State<Arc<App>>,
    segments: Segments,
    mut params: Params,
    rounds: RoundChoice,
) -> Result<Response, Failure> {
    let cycle: CycleName = params.need("cycle", SAY_CYCLE)?;
    let query = query(&mut params)?;
    params.finish()?;
    found(app.store.items(&segments.project()?, &cycle, &rounds, &query).await)
}

fn query(params: &mut Params) -> Result<ItemQuery, Failure> {
    let sort = match params.take("sort")?.as_deref() {
        None | Some("name") => ItemSort::Name,
        Some("duration") => ItemSort::Duration,
        Some("status") => ItemSort::Status,
        Some(other) => return Err(malformed("sort", format!("{other:?} is none of name, duration, status"))),
    };
    let limit = params.read::<usize>("limit")?.unwrap_or(PAGE_ITEMS);
    if !(1..=limits::PAGE_ITEMS_MAX).contains(&limit) {
        return Err(malformed("limit", format!("{limit} is not between 1 and {}", limits::PAGE_ITEMS_MAX)));
    }
    Ok(ItemQuery {
        status: params.read("status")?,
        flaky: params.flag("flaky")?,
        search: params.take("search")?.filter(|text| !text.is_empty()),
        sort,
        cursor: params.take("cursor")?,
        limit: Some(limit),
    })
}

/// `GET …/unseen?cycle=…`: items of earlier rounds that the headline doesn't hold.
pub(crate) async fn unseen(
    State(app): State<Arc<App>>,
    segments: Segments,
    mut params: Params,
) -> Result<Response, Failure> {
    let cycle: CycleName = params.need("cycle", SAY_CYCLE)?;
    params.finish()?;
    found(app.store.not_seen_since(&segments.project()?, &cycle).await)
}

/// `GET …/items/{hash}/history`: what an item did, round by round.
pub(crate) async fn history(
    State(app): State<Arc<App>>,
    segments: Segments,
    mut params: Params,
) -> Result<Response, Failure> {
    let cycle: Option<CycleName> = params.read("cycle")?;
    params.finish()?;
    found(app.store.item_history(&segments.project()?, cycle.as_ref(), segments.item()?).await)
}
