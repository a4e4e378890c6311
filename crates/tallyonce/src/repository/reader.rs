//! A repository opened: what readers ask it, and what people decide about pushes and rounds. Must not deliver pushes.

use std::sync::Arc;
use std::time::Duration;

use delivery::{ApiClient, ApiError, SystemClock};
use domain::listing::{
    CycleReport, ForwardsReport, ItemPage, ItemQuery, ItemReport, ItemSort, PushForwards, PushReport,
};
use domain::round::RoundChoice;
use domain::wire::names;
use domain::{CycleName, Problem, ProblemCode, ProjectId, PushId, PushKey, Status, limits};
use server::{Door, ForwardsQuery};
use store::{Found, Promotion, RoundAction, Store};

use crate::failure::{Failure, Kept};

/// A repository opened for questions and decisions.
pub(crate) enum Reader {
    /// A store in this process.
    Embedded(Arc<dyn Store>),
    /// A server, and how long one answer may take.
    Remote(ApiClient, Duration),
}

impl Reader {
    /// A cycle with the chosen rounds.
    ///
    /// # Errors
    /// There is no such thing, or no answer.
    pub(crate) async fn cycle(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        round: &str,
    ) -> Result<CycleReport, Failure> {
        match self {
            Self::Embedded(store) => found(store.cycle(project, cycle, &RoundChoice::parse(round)).await),
            Self::Remote(client, _) => {
                let query = [("cycle", cycle.as_str()), ("round", round)];
                client.get_json(&at(project, "/rounds"), &query).await.map_err(|error| asked(&error))
            }
        }
    }

    /// Items of the chosen rounds, all pages.
    ///
    /// # Errors
    /// There is no such thing, or no answer.
    pub(crate) async fn items(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        round: &str,
        status: Option<Status>,
    ) -> Result<Vec<ItemReport>, Failure> {
        let client = match self {
            Self::Embedded(store) => {
                let query =
                    ItemQuery { status, flaky: false, search: None, sort: ItemSort::Name, cursor: None, limit: None };
                let page = found(store.items(project, cycle, &RoundChoice::parse(round), &query).await)?;
                return Ok(page.items);
            }
            Self::Remote(client, _) => client,
        };
        let limit = limits::PAGE_ITEMS_MAX.to_string();
        let mut items = Vec::new();
        let mut cursor = None;
        loop {
            let mut query = vec![("cycle", cycle.as_str()), ("round", round), ("limit", limit.as_str())];
            query.extend(status.map(|status| ("status", status.word())));
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let page: ItemPage =
                client.get_json(&at(project, "/outcomes"), &query).await.map_err(|error| asked(&error))?;
            items.extend(page.items);
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(items),
            }
        }
    }

    /// A push with its revisions and deliveries.
    ///
    /// # Errors
    /// There is no such thing, or no answer.
    pub(crate) async fn push(&self, project: &ProjectId, push: PushId) -> Result<PushReport, Failure> {
        match self {
            Self::Embedded(store) => found(store.push(project, push).await),
            Self::Remote(client, _) => {
                let path = at(project, &format!("/pushes/{push}"));
                client.get_json(&path, &[]).await.map_err(|error| asked(&error))
            }
        }
    }

    /// How far a push is at its targets. A server may wait so long before it answers, if that is possible.
    ///
    /// # Errors
    /// There is no such thing, or no answer.
    pub(crate) async fn forwards(
        &self,
        project: &ProjectId,
        push: PushId,
        wait: Duration,
    ) -> Result<PushForwards, Failure> {
        match self {
            Self::Embedded(store) => {
                found(server::forwards_of_push(&**store, project, push, &server::Kinds::new()).await)
            }
            Self::Remote(client, answer) => {
                // An answer that comes too late is none.
                let seconds = wait.min(*answer / 2).as_secs().min(limits::ATTACH_WAIT_SECONDS_MAX);
                let path = at(project, &format!("/pushes/{push}/forwards"));
                client.get_json_waiting(&path, &[], seconds).await.map_err(|error| asked(&error))
            }
        }
    }

    /// What waits to be forwarded, is open, or is settled.
    ///
    /// # Errors
    /// There is no such thing, or no answer.
    pub(crate) async fn listed_forwards(&self, query: &ForwardsQuery) -> Result<ForwardsReport, Failure> {
        let client = match self {
            Self::Embedded(store) => {
                return server::listed_forwards(&**store, query).await.map_err(|error| Failure::store(&error));
            }
            Self::Remote(client, _) => client,
        };
        let Some(project) = &query.project else {
            return Err(Failure::usage("a server is asked for one project", "Name it: --project P."));
        };
        let mut pairs = Vec::new();
        pairs.extend(query.target.as_deref().map(|target| ("target", target)));
        pairs.extend(query.cycle.as_ref().map(|cycle| ("cycle", cycle.as_str())));
        pairs.extend(query.state.map(|state| ("state", state.word())));
        client.get_json(&at(project, "/forwards"), &pairs).await.map_err(|error| asked(&error))
    }

    /// Makes a revision's verdicts count, if `if_match` is still the newest receipt. Gives the newest receipt.
    ///
    /// # Errors
    /// It is refused, or there is no answer.
    pub(crate) async fn promote(&self, promotion: Promotion) -> Result<domain::Receipt, Failure> {
        match self {
            Self::Embedded(opened) => {
                let admitted = door(opened).promote(promotion).await.map_err(|problem| refused(&problem))?;
                serde_json::from_slice(&admitted.answer.receipt).map_err(|error| {
                    Failure::store(&store::StoreError::Broken { what: format!("a receipt cannot be read: {error}") })
                })
            }
            Self::Remote(client, _) => {
                let Promotion { project, push, key, revision, exact, if_match } = promotion;
                let path = at(&project, &format!("/pushes/{push}/promote"));
                let revision = revision.map(|revision| revision.to_string());
                let mut query: Vec<(&str, &str)> = revision.iter().map(|n| ("revision", n.as_str())).collect();
                if exact {
                    query.push(("exact", "true"));
                }
                let key = format!("\"{}\"", PushKey::as_str(&key));
                let mut headers = vec![(names::H_KEY, key.as_str())];
                headers.extend(if_match.iter().map(|tag| ("if-match", tag.as_str())));
                client.post_json(&path, &query, &headers, &()).await.map_err(|error| changed(&error))
            }
        }
    }

    /// Declares a round complete as it is.
    ///
    /// # Errors
    /// There is no such round, or no answer.
    pub(crate) async fn close(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        round: &str,
    ) -> Result<CycleReport, Failure> {
        match self {
            Self::Embedded(opened) => found(door(opened).set_round(project, cycle, round, RoundAction::Close).await),
            Self::Remote(client, _) => {
                let round = percent_encoding::utf8_percent_encode(round, percent_encoding::NON_ALPHANUMERIC);
                let path = at(project, &format!("/rounds/{round}/close"));
                let query = [("cycle", cycle.as_str())];
                client.post_json(&path, &query, &[], &()).await.map_err(|error| changed(&error))
            }
        }
    }
}

/// The one door to an embedded store.
fn door(store: &Arc<dyn Store>) -> Door {
    Door::new(Arc::clone(store), Arc::new(SystemClock::new()))
}

fn at(project: &ProjectId, path: &str) -> String {
    format!("/api/v1/projects/{project}{path}")
}

fn found<T>(found: Found<T>) -> Result<T, Failure> {
    match found {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(absent)) => Err(Failure::absent(&absent)),
        Err(error) => Err(Failure::store(&error)),
    }
}

/// A question without an answer: nothing was to be changed.
fn asked(error: &ApiError) -> Failure {
    let failure = match error {
        ApiError::Problem(problem) => return refused(problem),
        ApiError::Unreachable(cause) | ApiError::Unclear(cause) => {
            let next = "Look whether the server runs and the address is right, then ask again.".to_owned();
            Failure { next, ..Failure::not_sent(cause, Kept::Nowhere) }
        }
        ApiError::Request(what) => Failure::usage(what.clone(), "Mend the value that cannot be sent."),
    };
    Failure { means: "Nothing was to be changed.".to_owned(), ..failure }
}

/// A server's no to something that is no push.
fn refused(problem: &Problem) -> Failure {
    let failure = Failure::rejected(problem);
    let next = match problem.code {
        ProblemCode::NotFound => {
            "Mend the name or address above: a cycle is there from its first push on (by default pr-N or the branch that \
             was tested); `tallyonce show --round all` with its --project and --cycle lists the rounds."
        }
        ProblemCode::UnknownProject => "Mend --project, or push to it first: the first push creates it.",
        _ => return Failure { means: "Nothing was changed.".to_owned(), ..failure },
    };
    Failure { means: "Nothing was changed.".to_owned(), next: next.to_owned(), ..failure }
}

/// A decision without an answer may have taken effect.
fn changed(error: &ApiError) -> Failure {
    match error {
        ApiError::Problem(problem) => refused(problem),
        ApiError::Unreachable(cause) => Failure::not_sent(cause, Kept::Nowhere),
        ApiError::Unclear(cause) => Failure::possibly_written(cause, Kept::Nowhere),
        ApiError::Request(what) => Failure::usage(what.clone(), "Mend the value that cannot be sent."),
    }
}
