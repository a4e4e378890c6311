//! A service that only the configuration describes: rules for repeats other than to append, and listings that lag or cut.

use delivery::foreign::{KeyOnWrite, MarkerLevel, RowStatus, Strategy, Visible};
use domain::Status;
use domain::marker::Found;
use proof::stubs::generic::{Same, Service};
use proof::stubs::{Damage, Lag, Quirks, Repeat, Rule, Stub};
use serde_json::json;

use crate::generic::{described, of, run, stub, target, with};
use crate::given::{class, entry, opened};

#[tokio::test]
async fn an_id_of_ours_makes_a_repeat_harmless() {
    let by_header = with(described(), "/write/headers", json!({ "Idempotency-Key": "\"{id}\"" }));
    let body = r#"{"uid": {id}, "case": {case}, "status": {status}, "note": {message}}"#;
    let by_body = with(described(), "/write/body", json!(body));
    for own in [by_header, by_body] {
        for (repeat, same_id) in [(Repeat::Collapse, "collapses"), (Repeat::Refuse, "refuses")] {
            let stub = Stub::start(Service::new(Rule::honest(repeat), Same::Uid)).unwrap();
            let mut settings = of(&stub, with(own.clone(), "/same-id", json!(same_id)));
            settings.strategy = Some(Strategy::Idempotent);
            let target = opened(settings).unwrap();
            let first = target.write(&run(), &[entry("a", Status::Passed)]).await.unwrap();
            match target.write(&run(), &[entry("a", Status::Passed)]).await {
                Ok(again) => assert_eq!((again, repeat), (first, Repeat::Collapse)),
                Err(trouble) => assert_eq!((class(&trouble).as_str(), repeat), ("exists", Repeat::Refuse)),
            }
            assert_eq!(stub.ledger().count(), 1);
            let facts = target.facts();
            let key = if repeat == Repeat::Collapse { KeyOnWrite::Collapses } else { KeyOnWrite::Refuses };
            assert_eq!((facts.key_on_write, facts.marker.level), (key, MarkerLevel::M1));
            assert_eq!((facts.default_strategy(), facts.races), (Strategy::Idempotent, &[][..]));
        }
    }
}

#[tokio::test]
async fn a_service_that_replaces_says_so_and_rows_are_mended() {
    let stub = Stub::start(Service::new(Rule::honest(Repeat::Replace), Same::Case)).unwrap();
    let own = with(described(), "/repeat", json!("replaces"));
    let own = with(
        own,
        "/amend",
        json!({
            "path": "/api/results/{row}", "body": r#"{"status": {status}, "note": {comment}}"#,
        }),
    );
    let target = target(&stub, with(own, "/delete", json!({ "path": "/api/results/{row}" })));
    assert_eq!(target.facts().default_strategy(), Strategy::Replace);
    for status in [Status::Failed, Status::Passed] {
        target.write(&run(), &[entry("a", status)]).await.unwrap();
    }
    let rows = target.rows(&run(), &[]).await.unwrap();
    assert_eq!(rows.iter().map(|row| &row.status).collect::<Vec<_>>(), [&RowStatus::Is(Status::Passed)]);
    target.amend(&run(), &rows[0].id, &entry("a", Status::Skipped)).await.unwrap();
    let amended = target.rows(&run(), &[]).await.unwrap();
    assert_eq!(amended[0].status, RowStatus::Is(Status::Skipped));
    assert_eq!(amended[0].marker, Found::Whole(entry("a", Status::Skipped).marker));
    target.delete(&run(), &rows[0].id).await.unwrap();
    target.delete(&run(), &rows[0].id).await.unwrap();
    assert_eq!(stub.ledger().count(), 0);
}

#[tokio::test]
async fn a_list_that_lags_and_a_note_that_is_cut_are_what_the_configuration_says() {
    let stub = stub();
    stub.set_quirks(Quirks { lag: Lag::Reads(1), damage: vec![Damage::CutTo(80)], ..Quirks::default() });
    let own = with(with(described(), "/lag-ms", json!(5000)), "/comment-max", json!(80));
    let target = target(&stub, own);
    assert_eq!(target.facts().visible, Visible::Later(5000));
    let mut long = entry("a", Status::Failed);
    long.message = Some("é".repeat(500));
    target.write(&run(), std::slice::from_ref(&long)).await.unwrap();
    assert_eq!(target.rows(&run(), &[]).await.unwrap().len(), 0, "not yet");
    let rows = target.rows(&run(), &[]).await.unwrap();
    assert_eq!(rows[0].marker, Found::Whole(long.marker));
}
