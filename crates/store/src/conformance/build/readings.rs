//! Everything that a store shows, as texts to compare. Must not look at what is staged.

use std::sync::Arc;

use domain::PushId;
use domain::listing::{ItemQuery, ItemSort};
use domain::round::RoundChoice;
use domain::{CycleName, ProjectId, Status};

use super::{item, main_cycle, query, shop};
use crate::Store;

/// Every reading of cycle `main` of project `shop`, with these pushes and the histories of these items.
pub async fn readings(store: &Arc<dyn Store>, pushes: &[PushId], items: &[&str]) -> Vec<String> {
    let (project, cycle) = (shop(), main_cycle());
    let mut all = vec![
        format!("{:?}", store.projects().await.expect("works")),
        format!("{:?}", store.cycles(&project).await.expect("works")),
        format!("{:?}", store.not_seen_since(&project, &cycle).await.expect("works")),
        format!("{:?}", store.check().await.expect("works")),
    ];
    for choice in [RoundChoice::All, RoundChoice::Authoritative, RoundChoice::Latest, RoundChoice::Named("2".into())] {
        all.extend(of_rounds(store, (&project, &cycle), &choice).await);
    }
    for name in items {
        for cycle in [None, Some(&cycle)] {
            all.push(format!("{:?}", store.item_history(&project, cycle, item(name).hash()).await.expect("works")));
        }
    }
    for push in pushes {
        all.push(format!("{:?}", store.push(&project, *push).await.expect("works")));
        for revision in 0..5 {
            all.push(format!("{:?}", store.receipt(&project, *push, Some(revision)).await.expect("works")));
            all.push(format!("{:?}", store.difference(&project, *push, revision).await.expect("works")));
        }
    }
    all
}

async fn of_rounds(
    store: &Arc<dyn Store>,
    (project, cycle): (&ProjectId, &CycleName),
    choice: &RoundChoice,
) -> Vec<String> {
    let mut all = vec![format!("{:?}", store.cycle(project, cycle, choice).await.expect("works"))];
    for sort in [ItemSort::Name, ItemSort::Duration, ItemSort::Status] {
        let query = ItemQuery { sort, limit: Some(3), ..query() };
        let page = store.items(project, cycle, choice, &query).await.expect("works");
        let cursor = page.as_ref().ok().and_then(|page| page.next.clone());
        all.push(format!("{page:?}"));
        let query = ItemQuery { cursor, status: Some(Status::Failed), limit: None, ..query };
        all.push(format!("{:?}", store.items(project, cycle, choice, &query).await.expect("works")));
    }
    all
}

/// The log of a push of project `shop`, as its words.
pub async fn log(store: &Arc<dyn Store>, push: PushId) -> Vec<String> {
    let report = store.push(&shop(), push).await.expect("works").expect("the push is recorded");
    report.log.into_iter().map(|entry| entry.result).collect()
}
