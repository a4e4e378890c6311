//! A person decides which verdicts count.

use std::sync::Arc;

use domain::{OnDifference, PushId, PushKey, Receipt};

use super::Make;
use super::build::{now, page, push, query, receipt, shop, sound, words};
use crate::{Answer, Promoted, Promotion, Store};

fn promotion(push: PushId, key: &str) -> Promotion {
    let key = PushKey::parse(key).expect("a key");
    Promotion { project: shop(), push, key, revision: None, exact: false, if_match: None }
}

async fn promote(store: &Arc<dyn Store>, promotion: Promotion) -> Promoted {
    store.promote(promotion, now()).await.expect("the store works")
}

async fn promoted(store: &Arc<dyn Store>, promotion: Promotion) -> Answer {
    match promote(store, promotion).await {
        Promoted::Accepted(answer) => answer,
        other => panic!("not promoted: {other:?}"),
    }
}

async fn kept(store: &Arc<dyn Store>) -> PushId {
    let first = push("a- b+ x+").attempt(1);
    first.accepted(store).await;
    push("a+ b- c+").attempt(1).on(OnDifference::Keep).accepted(store).await;
    assert_eq!(words(store).await, "a- b+ c+ x+");
    first.id()
}

pub async fn a_kept_revision_is_promoted(make: Make<'_>) {
    let store = make();
    let id = kept(&store).await;
    let answer = promoted(&store, promotion(id, "p1")).await;
    assert_eq!(words(&store).await, "a* b- c+ x+");
    let receipt = receipt(&answer);
    assert_eq!((receipt.revision, receipt.counts.flaky, receipt.counts.total), (3, 1, 4));
    assert_eq!(receipt.difference.expect("a difference").changed, 2);
    let items = page(&store, &query()).await.items;
    assert_eq!(items[0].attempts.len(), 1);
    // A later attempt outranks the person's decision, as it outranks every earlier delivery.
    push("a- b+").attempt(2).accepted(&store).await;
    assert_eq!(words(&store).await, "a- b* c+ x+");
    sound(&store).await;
}

pub async fn exact_leaves_that_content_alone(make: Make<'_>) {
    let store = make();
    let id = kept(&store).await;
    promoted(&store, Promotion { exact: true, revision: Some(1), ..promotion(id, "p1") }).await;
    assert_eq!(words(&store).await, "a- b+ x+");
    promoted(&store, Promotion { exact: true, ..promotion(id, "p2") }).await;
    assert_eq!(words(&store).await, "a+ b- c+");
    assert!(page(&store, &query()).await.items.iter().all(|item| item.attempts.is_empty()));
    sound(&store).await;
}

pub async fn a_promotion_is_idempotent_under_its_key(make: Make<'_>) {
    let store = make();
    let id = kept(&store).await;
    let first = promoted(&store, promotion(id, "p1")).await;
    let again = promoted(&store, promotion(id, "p1")).await;
    assert_eq!((again.replayed, &again.receipt), (true, &first.receipt));
    assert_eq!(again.current_revision, 3);
    let other = promote(&store, Promotion { exact: true, ..promotion(id, "p1") }).await;
    assert_eq!(other, Promoted::KeyReused);
    sound(&store).await;
}

pub async fn a_stale_receipt_is_a_mismatch(make: Make<'_>) {
    let store = make();
    let id = kept(&store).await;
    let (first, _) = store.receipt(&shop(), id, Some(1)).await.expect("works").expect("exists");
    let (newest, _) = store.receipt(&shop(), id, None).await.expect("works").expect("exists");
    let stale = Promotion { if_match: Some(Receipt::etag(1, &first)), ..promotion(id, "p1") };
    assert_eq!(promote(&store, stale).await, Promoted::Mismatch { etag: Receipt::etag(2, &newest) });
    let fresh = Promotion { if_match: Some(Receipt::etag(2, &newest)), ..promotion(id, "p1") };
    promoted(&store, fresh).await;
    sound(&store).await;
}

pub async fn unknown_pushes_and_revisions_are_said(make: Make<'_>) {
    let store = make();
    assert_eq!(promote(&store, promotion(PushId([1; 16]), "p0")).await, Promoted::UnknownPush);
    let id = kept(&store).await;
    assert_eq!(promote(&store, promotion(PushId([1; 16]), "p0")).await, Promoted::UnknownPush);
    promoted(&store, promotion(id, "p1")).await;
    for asked in [0, 3, 4] {
        let wrong = Promotion { revision: Some(asked), ..promotion(id, "p2") };
        assert_eq!(promote(&store, wrong).await, Promoted::UnknownRevision { revisions: vec![1, 2] });
    }
    sound(&store).await;
}
