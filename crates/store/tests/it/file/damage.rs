//! Every contradiction that a store can hold is found under its own kind, and what can be derived is mended.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use domain::Outcomes;
use domain::intent::{Intent, IntentState};
use rusqlite::Connection;
use store::conformance::build::forwards::{forwarded, next, rule};
use store::conformance::build::{self, after, forty, push, readings};
use store::{Damage, Lifetime, Store};

use super::url;
use crate::run;

/// A store with one of everything: revisions, a promotion, large texts, several buckets, epochs of every fate.
async fn filled(store: &Arc<dyn Store>) {
    let mut list = build::outcomes("a- b* c!").as_slice().to_vec();
    list[0].message = Some("long ".repeat(1000));
    let first = push("").holds(Outcomes::from_unordered(list).unwrap()).attempt(1).executor("one");
    first.accepted(store).await;
    push("a+ b+ c!").attempt(2).executor("two").accepted(store).await;
    push("a+ b+ c+ d~").attempt(1).executor("one").accepted(store).await;
    let promotion = store::Promotion {
        project: build::shop(),
        push: first.id(),
        key: domain::PushKey::parse("p").unwrap(),
        revision: None,
        exact: false,
        if_match: None,
    };
    store.promote(promotion, build::now()).await.unwrap();
    let many: String = (0..4200).map(|n| format!("n{n}+ ")).collect::<Vec<_>>().concat();
    push(&many).job("many").keyed().accepted(store).await;
    push("gone+").run("2").keyed().accepted(store).await;
    store.drop_round(&build::shop(), &build::main_cycle(), "2").await.unwrap().unwrap();
    staged(store).await;
    to_a_target(store).await;
    build::sound(store).await;
}

/// Push `s`: a first content and an overlay in chunks, then an epoch that is open with one of its two chunks. Push `t`:
/// one epoch superseded and swept, one cancelled and not swept.
async fn staged(store: &Arc<dyn Store>) {
    let build =
        |mark, attempt| push(&forty(mark)).key("s").attempt(attempt).executor("one").incarnation(attempt.into());
    build('-', 1).cut(1).delivered(store).await;
    build('+', 2).cut(1).delivered(store).await;
    let open = build('!', 3).cut(1);
    open.begun(store).await;
    open.put(store, 3, 0).await;
    let dead = push(&forty('~')).key("t").attempt(1).cut(1);
    dead.begun(store).await;
    dead.put(store, 1, 0).await;
    let other = push(&forty('*')).key("t").attempt(2).cut(1);
    other.begun(store).await;
    while store.collect(Lifetime::standard(), after(0)).await.unwrap().more {}
    other.put(store, 2, 0).await;
    other.cancel(store, 2).await;
}

/// Two intents, one of them on its way; and a push that was forwarded once and waits again.
async fn to_a_target(store: &Arc<dyn Store>) {
    let turn = store.next_turn("there").await.unwrap();
    let planned = vec![build::intent(0), build::intent(1)];
    store.plan_intents("there", turn, planned).await.unwrap().unwrap();
    let sending = Intent { state: IntentState::Sending, ..build::intent(1) };
    store.advance_intent(turn, IntentState::Planned, sending).await.unwrap();
    store.set_forward_rules(vec![rule("there", &[], &[])]);
    push("w+").key("waits").accepted(store).await;
    push("w-").key("waits").attempt(1).on(domain::OnDifference::Revise).accepted(store).await;
    let first = next(store, build::AT_MS).await.unwrap();
    assert!(store.end_waiting(turn, &first, forwarded(1)).await.unwrap());
    store.set_forward_rules(Vec::new());
}

/// The file of such a store, made once.
fn sound_file() -> &'static [u8] {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    FILE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        run(|| async { filled(&store::open(&url(&path)).unwrap()).await });
        // Closing it has folded the log into the file.
        std::fs::read(&path).unwrap()
    })
}

fn with_store<T>(sql: &str, then: impl AsyncFnOnce(Arc<dyn Store>, &Path) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    std::fs::write(&path, sound_file()).unwrap();
    let mut found = None;
    run(|| async {
        let store = store::open(&url(&path)).unwrap();
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        found = Some(then(store, &path).await);
    });
    found.unwrap()
}

fn damaged(sql: &str) -> Vec<Damage> {
    with_store(sql, async |store, _| store.check().await.unwrap())
}

fn each_is_found(cases: &[(&str, &str)]) {
    for (sql, kind) in cases {
        let found = damaged(sql);
        assert!(found.iter().any(|damage| damage.kind == *kind), "{sql}: no {kind} in {found:#?}");
    }
}

/// Number of the blocks of a revision of a push.
macro_rules! blockset {
    ($push:literal, $revision:literal) => {
        concat!("(SELECT blockset FROM revision WHERE push = ", $push, " AND revision = ", $revision, ")")
    };
}

/// The epoch of push `s` that is open.
macro_rules! open {
    () => {
        "(SELECT id FROM stage WHERE fate = 0)"
    };
}

#[test]
fn check_finds_every_kind_of_damage_of_pushes() {
    each_is_found(&[
        ("UPDATE push SET counts = zeroblob(48) WHERE id = 1", "counts-differ"),
        ("UPDATE revision SET counts = zeroblob(48) WHERE revision = 1", "counts-differ"),
        (concat!("DELETE FROM block WHERE blockset = ", blockset!(1, 2)), "digest-differs"),
        ("UPDATE block SET codes = X'000400000004040404' WHERE n = 4", "codes-differ"),
        ("DELETE FROM push WHERE id = 1", "orphan-revision"),
        ("DELETE FROM push WHERE id = 1", "orphan-delivery"),
        ("DELETE FROM push WHERE id = 1", "orphan-executor"),
        ("DELETE FROM revision WHERE push = 1 AND revision = 2", "revision-gap"),
        ("DELETE FROM revision WHERE push = 1 AND revision = 2", "orphan-blockset"),
        ("DELETE FROM revision WHERE push = 1 AND revision = 2", "delivery-without-revision"),
        (concat!("DELETE FROM blockset WHERE id = ", blockset!(1, 2)), "orphan-block"),
        (concat!("DELETE FROM blockset WHERE id = ", blockset!(1, 2)), "revision-without-blockset"),
        (
            concat!("UPDATE revision SET blockset = ", blockset!(1, 1), " WHERE push = 1 AND revision = 2"),
            "blockset-shared",
        ),
        (concat!("UPDATE revision SET blockset = ", blockset!(1, 1), " WHERE kind = 3"), "blockset-differs"),
        ("UPDATE revision SET bits = bits + 1 WHERE push = 2", "bits-differ"),
        ("UPDATE project SET recorded = 0", "project-not-shown"),
        ("DELETE FROM project", "orphan-cycle"),
        ("DELETE FROM cycle", "orphan-round"),
        ("DELETE FROM round", "orphan-push"),
        ("UPDATE push SET replays = 3", "deliveries-differ"),
        ("DELETE FROM executor", "executor-missing"),
        ("INSERT INTO tombstone SELECT project, uid, key FROM push", "tombstone-with-push"),
        ("UPDATE revision SET receipt = CAST('nonsense' AS BLOB) WHERE revision = 2", "receipt-unreadable"),
        (
            "UPDATE revision SET receipt = CAST(replace(receipt, '\"total\":', '\"total\":9') AS BLOB)",
            "receipt-differs",
        ),
        ("UPDATE revision SET content = zeroblob(32) WHERE kind = 0", "digest-differs"),
        ("UPDATE revision SET of = 9 WHERE kind = 3", "promotion-of-nothing"),
        ("UPDATE push SET key = 'other' WHERE id = 1", "uid-differs"),
    ]);
}

#[test]
fn check_finds_every_kind_of_damage_of_sets_and_texts() {
    each_is_found(&[
        (concat!("DELETE FROM block WHERE blockset = ", blockset!(2, 1)), "orphan-set"),
        ("DELETE FROM itemset WHERE n > 1000", "block-without-set"),
        ("DELETE FROM itemset WHERE n > 1000", "orphan-names"),
        ("DELETE FROM setnames WHERE id = 1", "set-without-names"),
        ("UPDATE setnames SET names = (SELECT names FROM setnames WHERE id = 2) WHERE id = 1", "names-differ"),
        ("UPDATE setnames SET names = X'00' WHERE id = 1", "names-unreadable"),
        ("UPDATE itemset SET bucket = 7 WHERE n > 1000", "wrong-bucket"),
        ("UPDATE itemset SET bucket = 7 WHERE n > 1000", "bucket-differs"),
        ("UPDATE itemset SET n = 5 WHERE id = 1", "block-n-differs"),
        ("UPDATE itemset SET n = 5 WHERE id = 1", "set-n-differs"),
        ("UPDATE itemset SET hashes = zeroblob(47) WHERE n = 3", "set-unreadable"),
        ("UPDATE itemset SET hashes = zeroblob(48) WHERE n = 3", "double-item"),
        (
            "UPDATE itemset SET hashes = CAST(substr(hashes, 17) || substr(hashes, 1, 16) AS BLOB) WHERE n = 3",
            "set-not-sorted",
        ),
        ("UPDATE itemset SET digest = zeroblob(16) WHERE n = 3", "set-digest-differs"),
        ("DELETE FROM blocktext", "unreadable"),
        ("UPDATE blocktext SET body = X'00'", "texts-unreadable"),
        ("INSERT INTO blocktext VALUES (999, zeroblob(1))", "orphan-text"),
        ("DELETE FROM bigtext", "large-text-missing"),
        ("DELETE FROM bigtext_use", "orphan-large-text"),
        ("DELETE FROM bigtext_use", "large-text-use-differs"),
        ("UPDATE bigtext_use SET block = 999", "orphan-large-text-use"),
    ]);
}

#[test]
fn check_finds_every_kind_of_damage_of_epochs() {
    each_is_found(&[
        ("DELETE FROM project", "orphan-stage"),
        ("DELETE FROM stage WHERE epoch = 2 AND key = 's'", "epoch-gap"),
        ("DELETE FROM stage WHERE fate = 0", "orphan-blockset"),
        ("DELETE FROM stage WHERE fate = 0", "orphan-chunk"),
        ("DELETE FROM stage WHERE fate = 0", "orphan-sender"),
        ("DELETE FROM stage_sender WHERE stage = 1", "stage-without-sender"),
        (
            "UPDATE stage_sender SET incarnation = X'00000000000000000000000000000003' WHERE stage = 2;
          INSERT INTO stage_sender(project, uid, stage, ordinal_scope, incarnation)
            SELECT project, uid, 1, 0, X'00000000000000000000000000000003' FROM stage WHERE id = 1",
            "bound-twice",
        ),
        ("UPDATE stage SET fate = 0, revision = NULL, blocks = 0 WHERE id = 1", "two-open-epochs"),
        ("UPDATE stage SET fate = 0, revision = NULL, blocks = 0 WHERE id = 1", "linked-uncommitted"),
        ("UPDATE stage SET revision = NULL WHERE id = 1", "fate-unclear"),
        ("UPDATE stage SET fate = 4 WHERE fate = 0", "fate-unclear"),
        ("UPDATE stage SET fate = 9 WHERE fate = 0", "unreadable"),
        ("UPDATE stage SET revision = 9 WHERE id = 1", "committed-without-revision"),
        ("UPDATE stage SET revision = 9 WHERE id = 1", "stage-not-linked"),
        ("UPDATE stage SET content = zeroblob(32) WHERE id = 1", "manifest-differs"),
        ("UPDATE stage SET cycle = 'other' WHERE id = 1", "manifest-differs"),
        ("UPDATE stage SET key = 'other' WHERE id = 1", "uid-differs"),
        ("UPDATE stage SET manifest = '{}' WHERE id = 1", "unreadable"),
        ("UPDATE stage SET promises = X'00' WHERE id = 1", "unreadable"),
        ("UPDATE stage SET promises = zeroblob(72) WHERE id = 1", "manifest-differs"),
        ("UPDATE stage SET promises = zeroblob(72) WHERE fate = 0", "chunk-differs"),
        ("INSERT INTO tombstone SELECT project, uid, key FROM stage WHERE fate = 0", "open-epoch-tombstoned"),
        ("DELETE FROM blockset WHERE id = (SELECT blockset FROM stage WHERE fate = 0)", "stage-without-blockset"),
        ("INSERT INTO blockset(id, project) SELECT blockset, project FROM stage WHERE blocks = 1", "stage-not-swept"),
        ("UPDATE stage SET blocks = 1 WHERE fate = 3", "stage-not-swept"),
        ("UPDATE stage SET blockset = (SELECT blockset FROM stage WHERE fate = 0) WHERE fate = 3", "blockset-shared"),
        ("DELETE FROM stage_chunk WHERE stage = 1 AND chunk = 1", "chunk-missing"),
        ("DELETE FROM stage_chunk WHERE stage = 1 AND chunk = 1", "block-without-chunk"),
        (concat!("DELETE FROM stage_chunk WHERE stage = ", open!()), "block-without-chunk"),
        (concat!("UPDATE stage_chunk SET chunk = 7 WHERE stage = ", open!()), "chunk-out-of-range"),
        (concat!("UPDATE stage_chunk SET counts = zeroblob(48) WHERE stage = ", open!()), "chunk-differs"),
        (concat!("UPDATE stage_chunk SET content = zeroblob(32) WHERE stage = ", open!()), "chunk-differs"),
        ("UPDATE stage_chunk SET n = 1 WHERE stage = 1", "chunk-differs"),
        ("UPDATE stage_chunk SET content = zeroblob(32) WHERE stage = 1", "chunk-digests-differ"),
        ("DELETE FROM block WHERE blockset = (SELECT blockset FROM stage WHERE fate = 0)", "chunk-differs"),
        (
            "DELETE FROM block WHERE bucket = 1 AND blockset = (SELECT blockset FROM stage WHERE id = 1)",
            "digest-differs",
        ),
        (
            "DELETE FROM block WHERE bucket = 1 AND blockset = (SELECT blockset FROM stage WHERE id = 1)",
            "chunk-differs",
        ),
    ]);
}

#[test]
fn check_finds_every_intent_that_cannot_be_read() {
    for set in [
        "state = 9",
        "state = -1",
        "state = 'acked'",
        "uid = X'00'",
        "project = ''",
        "cycle = char(7)",
        "round = ' '",
        "key = ''",
        "number = -1",
        "cases = 1.5",
        "sends = -1",
        "sent_ms = 'never'",
        "flags = 'partial'",
        "flags = '[\"no-such-flag\"]'",
        "refused = '[{\"item\":\"a\"}]'",
        "refused = ''",
        "body = 'text'",
    ] {
        let found = damaged(&format!("UPDATE intent SET {set} WHERE id = 2"));
        let [Damage { kind: "intent-broken", place, .. }] = found.as_slice() else { panic!("{set}: {found:#?}") };
        assert_eq!(place, "intent 2", "{set}");
    }
}

#[test]
fn check_finds_what_waits_without_its_push_and_what_cannot_be_read() {
    each_is_found(&[
        ("DELETE FROM push WHERE key = 'waits'", "orphan-waiting"),
        ("UPDATE push SET uid = zeroblob(16) WHERE key = 'waits'", "orphan-waiting"),
        ("UPDATE push SET revision = 1 WHERE key = 'waits'", "orphan-waiting"),
        ("UPDATE waiting SET project = 'other' WHERE id = 2", "orphan-waiting"),
        ("UPDATE waiting SET key = 'other' WHERE id = 2", "orphan-waiting"),
        ("UPDATE waiting SET revision = 3 WHERE id = 2", "orphan-waiting"),
        ("UPDATE turn SET until_ms = 7", "lease-unclear"),
        ("UPDATE turn SET holder = 'one'", "lease-unclear"),
        ("UPDATE intent SET swept = 3 WHERE id = 1", "sweeps-unclear"),
        ("UPDATE intent SET swept = -1 WHERE id = 1", "sweeps-unclear"),
        ("UPDATE intent SET settled_ms = 'never' WHERE id = 1", "sweeps-unclear"),
    ]);
    // What has ended needs no push any more.
    assert_eq!(damaged("UPDATE waiting SET revision = 7 WHERE id = 1"), []);
    for (id, sets) in [
        (
            1,
            &[
                "ended = 9",
                "ended = 'done'",
                "ended_ms = NULL",
                "ended_revision = -1",
                "flags = '[\"no\"]'",
                "refused = ''",
            ][..],
        ),
        (2, &["uid = X'00'", "cycle = char(7)", "round = ' '", "since_ms = 'now'", "due_ms = 'soon'", "tries = -1"]),
    ] {
        for set in sets {
            let found = damaged(&format!("UPDATE waiting SET {set} WHERE id = {id}"));
            let broken = found.iter().find(|damage| damage.kind == "waiting-broken");
            assert_eq!(broken.map(|damage| damage.place.clone()), Some(format!("waiting {id}")), "{set}: {found:#?}");
        }
    }
}

#[test]
fn repair_mends_what_can_be_derived_and_nothing_else() {
    let derived = "UPDATE push SET counts = zeroblob(48); UPDATE revision SET counts = zeroblob(48) WHERE kind <> 3;
                   UPDATE itemset SET n = n + 1; UPDATE block SET n = n + 2";
    with_store(derived, async |store, _| {
        let mended = store.repair().await.unwrap();
        let of = |kind: &str| mended.iter().filter(|damage| damage.kind == kind).count();
        assert!(of("counts-differ") > 6 && of("set-n-differs") > 3 && of("block-n-differs") > 3, "{mended:#?}");
        // What lies there for an open epoch is as it was, too.
        build::sound(&store).await;
        assert_eq!(store.repair().await.unwrap(), []);
    });
    // The content is not what its digest says, so nothing tells which counts are right.
    let content = "UPDATE block SET codes = X'000400000004040404' WHERE n = 4; UPDATE push SET counts = zeroblob(48);
                   UPDATE revision SET counts = zeroblob(48) WHERE push = 1 AND revision = 3";
    with_store(content, async |store, _| {
        let before = store.check().await.unwrap();
        let mended = store.repair().await.unwrap();
        assert!(
            mended.iter().all(|damage| damage.place != "push 1" && damage.place != "push 1 revision 3"),
            "{mended:#?}"
        );
        let after = store.check().await.unwrap();
        assert_eq!(after.len(), before.len() - mended.len());
    });
}

#[test]
fn repair_of_a_sound_store_changes_nothing() {
    with_store("", async |store, path| {
        let bytes = |path: &Path| {
            let connection = Connection::open(path).unwrap();
            connection.query_row("SELECT total(version), total(id) FROM round", [], |row| {
                Ok((row.get::<_, f64>(0)?, row.get::<_, f64>(1)?))
            })
        };
        let before = (bytes(path).unwrap(), readings(&store, &[], &["a", "t001"]).await);
        assert_eq!(store.repair().await.unwrap(), []);
        assert_eq!((bytes(path).unwrap(), readings(&store, &[], &["a", "t001"]).await), before);
    });
}
