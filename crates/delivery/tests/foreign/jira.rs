//! What all products that live in Jira are asked alike; `common!` makes tests of it for one of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use delivery::foreign::{
    Adapter, CaseChoice, CaseId, CaseWanted, CycleId, CyclePer, CycleWanted, Entry, Kind, Options, RowId, RowStatus,
    TargetName, TargetSettings, Trouble, VerdictRule, open,
};
use delivery::{HttpSettings, HttpUrl, Secret, SystemClock};
use domain::marker::{ContentTag, Found, Marker, WriteId};
use domain::{DurationUs, ItemName, Ordinal, ProjectId, PushKey, Status};
use proof::stubs::{Admin, Damage, Fault, Plan, Quirks, RetryAfter, Select, Stub, Vendor, When};
use serde_json::Value;

/// A stub, an adapter that talks to it, and cases that are there.
pub(crate) struct Rig<V: Vendor> {
    pub(crate) stub: Stub<V>,
    pub(crate) adapter: Arc<dyn Adapter>,
    pub(crate) cases: Vec<CaseId>,
    /// The stub's word for the call that writes outcomes.
    pub(crate) write: &'static str,
    /// A key that no case has.
    pub(crate) nobody: &'static str,
}

pub(crate) fn settings(kind: Kind, url: &str, options: Value) -> TargetSettings {
    TargetSettings {
        name: TargetName::parse("target").unwrap(),
        kind,
        url: HttpUrl::parse(url).unwrap(),
        project: "SHOP".to_owned(),
        user: None,
        token: Some(Secret::new("token")),
        strategy: None,
        cycle_per: CyclePer::Round,
        cycle: None,
        create_cases: false,
        cases: BTreeMap::new(),
        statuses: BTreeMap::new(),
        quiet_ms: None,
        options: Options::new(serde_json::from_value(options).unwrap()),
    }
}

pub(crate) fn adapter(settings: TargetSettings) -> Arc<dyn Adapter> {
    // A second one is refused, and is the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut http = HttpSettings::new("tallyonce-test");
    (http.answer_timeout_ms, http.answer_timeout_per_mib_ms) = (500, 0);
    open(settings, &http, Arc::new(SystemClock::new())).unwrap()
}

pub(crate) fn wanted(round: &str) -> CycleWanted {
    let id = WriteId::of_cycle(&ProjectId::parse("shop").unwrap(), "main", round);
    CycleWanted { name: "main, round 7".to_owned(), id, link: Some("https://ci.example/7".to_owned()), given: None }
}

pub(crate) fn entry(case: &CaseId, status: Status) -> Entry {
    let (project, key) = (ProjectId::parse("shop").unwrap(), PushKey::parse("run:7:job:e2e").unwrap());
    Entry {
        case: case.clone(),
        title: format!("title of {case}"),
        status,
        duration_us: Some(DurationUs(1_500_000)),
        message: Some("a < b & c > d".to_owned()),
        at_ms: 1_790_000_000_000,
        items: vec![ItemName::new(None::<&str>, None, case.as_str())],
        marker: Marker {
            write: WriteId::of(&project, &key, case.as_str()),
            content: ContentTag::of(&[status]),
            ordinal: Some(Ordinal(1)),
        },
    }
}

impl<V: Vendor> Rig<V> {
    /// One entry a case, all statuses in turn.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.cases.iter().zip(Status::ALL.into_iter().cycle()).map(|(case, status)| entry(case, status)).collect()
    }

    pub(crate) async fn cycle(&self) -> CycleId {
        self.adapter.create_cycle(&wanted("7")).await.unwrap()
    }

    /// In batches as large as the facts allow.
    pub(crate) async fn write_all(&self, cycle: &CycleId, entries: &[Entry]) {
        for batch in entries.chunks(self.adapter.facts().bulk.items_max) {
            let written = self.adapter.write(cycle, batch).await.unwrap();
            assert_eq!((written.rows.len(), written.refused, written.job), (batch.len(), Vec::new(), None));
        }
    }

    fn select(&self) -> Select {
        Select::writes().what(self.write)
    }
}

pub(crate) async fn outcomes_come_back_with_their_markers<V: Vendor>(rig: Rig<V>) {
    let damage = vec![Damage::LinesCrlf, Damage::Trimmed];
    rig.stub.set_quirks(Quirks { extra_members: true, damage, ..Quirks::default() });
    let (cycle, entries) = (rig.cycle().await, rig.entries());
    assert_eq!(rig.adapter.rows(&cycle, &[]).await.unwrap(), [], "a new cycle holds no verdict");
    rig.write_all(&cycle, &entries).await;
    let rows = rig.adapter.rows(&cycle, &[]).await.unwrap();
    assert_eq!(rows.len(), entries.len());
    for entry in &entries {
        let row = rows.iter().find(|row| row.case == entry.case).unwrap();
        assert_eq!(row.marker, Found::Whole(entry.marker));
        assert_eq!(row.status, RowStatus::Is(entry.status));
        assert_eq!(row.text, "a < b & c > d");
        assert!(row.is_of(entry.marker.write));
    }
    let some = rig.adapter.rows(&cycle, &rig.cases[1..2]).await.unwrap();
    assert_eq!(some.iter().map(|row| &row.case).collect::<Vec<_>>(), [&rig.cases[1]]);
    assert_eq!(rig.adapter.rows(&cycle, &rig.cases[1..3]).await.unwrap().len(), 2);
}

pub(crate) async fn a_cycle_is_found_by_its_tag_alone<V: Vendor>(rig: Rig<V>) {
    assert_eq!(rig.adapter.find_cycles(&wanted("7")).await.unwrap(), []);
    let first = rig.cycle().await;
    rig.adapter.create_cycle(&wanted("8")).await.unwrap();
    let found = rig.adapter.find_cycles(&wanted("7")).await.unwrap();
    assert_eq!(found.iter().map(|cycle| &cycle.id).collect::<Vec<_>>(), [&first], "not that of another round");
    assert!(found[0].name.starts_with("main, round 7"));
    let second = rig.cycle().await;
    let found = rig.adapter.find_cycles(&wanted("7")).await.unwrap();
    assert_eq!(found.iter().map(|cycle| &cycle.id).collect::<Vec<_>>(), [&first, &second], "the oldest first");
    let long = CycleWanted { name: "ä".repeat(400), ..wanted("9") };
    let made = rig.adapter.create_cycle(&long).await.unwrap();
    assert_eq!(rig.adapter.find_cycles(&long).await.unwrap()[0].id, made, "the tag survives a long name");
}

pub(crate) async fn a_given_cycle_is_used_as_it_is<V: Vendor>(rig: Rig<V>) {
    let made = rig.cycle().await;
    let key = CycleId::new(made.as_str().split('/').next().unwrap());
    let given = |key: CycleId| CycleWanted { given: Some(key), ..wanted("other") };
    let found = rig.adapter.find_cycles(&given(key.clone())).await.unwrap();
    assert_eq!(found.iter().map(|cycle| &cycle.id).collect::<Vec<_>>(), [&made]);
    rig.write_all(&key, &rig.entries()[..1]).await;
    assert_eq!(rig.adapter.rows(&key, &[]).await.unwrap().len(), 1);
    let nobody = CycleId::new(format!("{key}999"));
    assert_eq!(rig.adapter.find_cycles(&given(nobody)).await.unwrap(), []);
}

pub(crate) async fn a_repeat_does_what_the_facts_say<V: Vendor>(rig: Rig<V>) {
    let (cycle, entries) = (rig.cycle().await, rig.entries());
    rig.write_all(&cycle, &entries).await;
    rig.write_all(&cycle, &entries).await;
    let rows = rig.adapter.rows(&cycle, &[]).await.unwrap();
    match rig.adapter.facts().verdict {
        VerdictRule::Replaces => {
            assert_eq!(rows.len(), entries.len());
            assert!(rig.stub.doubled().is_empty());
            let ledger = rig.stub.ledger();
            assert!(ledger.items().values().flatten().all(|row| row.side.is_empty()), "nothing is appended beside");
        }
        VerdictRule::Appends => {
            assert_eq!(rows.len(), 2 * entries.len());
            assert_eq!(rig.stub.doubled().len(), entries.len());
        }
        other => panic!("{other:?}"),
    }
}

/// What a class of answers is called, whatever the words.
pub(crate) fn class(ended: &Result<(), Trouble>) -> String {
    match ended {
        Ok(()) => "ok".to_owned(),
        Err(Trouble::Wait { after_ms, .. }) => format!("wait {after_ms}"),
        Err(Trouble::NotSent(_)) => "not sent".to_owned(),
        Err(Trouble::TooLarge(_)) => "too large".to_owned(),
        Err(Trouble::Exists(_)) => "exists".to_owned(),
        Err(Trouble::Refused(_)) => "refused".to_owned(),
        Err(Trouble::Denied(_)) => "denied".to_owned(),
        Err(Trouble::Gone(_)) => "gone".to_owned(),
        Err(Trouble::Unknown(_)) => "unknown".to_owned(),
    }
}

/// Each fault of a write, what it is taken for, and whether something was written. `at_404`, `at_401`: where products
/// differ.
pub(crate) async fn answers_are_told_apart<V: Vendor>(rig: Rig<V>, at_401: &str, at_404: &str) {
    let refused = |status, retry_after| Fault::Refused { status, retry_after };
    let stall = Fault::Stall { hold: When::ClientGone, then_answer: false };
    let cycle = rig.cycle().await;
    for (fault, taken_for, written) in [
        (refused(429, RetryAfter::Seconds(7)), "wait 7000", false),
        (refused(429, RetryAfter::Seconds(0)), "wait 1000", false),
        (refused(429, RetryAfter::Missing), "wait 60000", false),
        (refused(400, RetryAfter::Missing), "refused", false),
        (refused(401, RetryAfter::Missing), at_401, false),
        (refused(403, RetryAfter::Missing), "denied", false),
        (refused(404, RetryAfter::Missing), at_404, false),
        (refused(409, RetryAfter::Missing), "exists", false),
        (refused(413, RetryAfter::Missing), "too large", false),
        (refused(500, RetryAfter::Missing), "unknown", false),
        (refused(503, RetryAfter::Seconds(1)), "unknown", false),
        (Fault::ErrorAfterWrite(500), "unknown", true),
        (Fault::Page { status: 502, applied: false }, "unknown", false),
        (Fault::Page { status: 504, applied: true }, "unknown", true),
        (Fault::Page { status: 400, applied: true }, "unknown", true),
        (Fault::Page { status: 200, applied: true }, "unknown", true),
        (Fault::Page { status: 200, applied: false }, "unknown", false),
        (Fault::RequestDropped, "unknown", false),
        (Fault::ResponseDropped, "unknown", true),
        (Fault::ResponseTruncated, "unknown", true),
        (stall, "unknown", true),
    ] {
        let before = rig.stub.ledger();
        let order = |ledger: &proof::stubs::Ledger| {
            ledger.items().values().flatten().map(|row| row.order).max().unwrap_or_default()
        };
        rig.stub.set_plan(Plan::on(rig.select().first(1), fault.clone()));
        let ended = rig.adapter.write(&cycle, &rig.entries()[..1]).await.map(drop);
        rig.stub.set_plan(Plan::pass());
        assert_eq!(class(&ended), taken_for, "{fault:?}: {ended:?}");
        let after = rig.stub.ledger();
        assert_eq!(order(&after) > order(&before), written, "{fault:?}");
        assert!(ended.unwrap_err().had_no_effect() <= !written || taken_for == "exists", "{fault:?}");
    }
}

pub(crate) async fn readings_that_fail_change_nothing_and_say_so<V: Vendor>(rig: Rig<V>) {
    let cycle = rig.cycle().await;
    rig.write_all(&cycle, &rig.entries()).await;
    let before = rig.stub.ledger();
    for (fault, taken_for) in [
        (Fault::Page { status: 502, applied: false }, "unknown"),
        (Fault::Page { status: 200, applied: false }, "unknown"),
        (Fault::ResponseTruncated, "unknown"),
        (Fault::Refused { status: 429, retry_after: RetryAfter::Date(9) }, "wait"),
        (Fault::Refused { status: 403, retry_after: RetryAfter::Missing }, "denied"),
    ] {
        rig.stub.set_plan(Plan::on(Select::reads(), fault.clone()));
        for ended in
            [rig.adapter.rows(&cycle, &[]).await.map(drop), rig.adapter.find_cycles(&wanted("7")).await.map(drop)]
        {
            assert!(class(&ended).starts_with(taken_for), "{fault:?}: {ended:?}");
        }
        rig.stub.set_plan(Plan::pass());
    }
    assert_eq!(rig.stub.ledger(), before);
}

pub(crate) async fn a_cycle_that_is_gone_is_told_from_entries_that_are_refused<V: Vendor>(rig: Rig<V>) {
    let cycle = rig.cycle().await;
    let bad = entry(&CaseId::new(rig.nobody), Status::Passed);
    let ended = rig.adapter.write(&cycle, std::slice::from_ref(&bad)).await.map(drop);
    assert_eq!(class(&ended), "refused", "{ended:?}");
    assert_eq!(rig.stub.ledger().count(), 0);
    let key = cycle.as_str().split('/').next().unwrap().to_owned();
    assert!(rig.stub.admin(&Admin::DeleteCycle(key)));
    let ended = rig.adapter.write(&cycle, &rig.entries()[..1]).await.map(drop);
    assert_eq!(class(&ended), "gone", "{ended:?}");
    let ended = rig.adapter.rows(&cycle, &[]).await.map(drop);
    assert_eq!(class(&ended), "gone", "{ended:?}");
    assert_eq!(rig.adapter.find_cycles(&wanted("7")).await.unwrap(), []);
}

pub(crate) async fn a_row_is_changed_and_taken_back_as_the_facts_say<V: Vendor>(rig: Rig<V>) {
    let (cycle, repair) = (rig.cycle().await, rig.adapter.facts().repair);
    rig.write_all(&cycle, &rig.entries()).await;
    let row = rig.adapter.rows(&cycle, &rig.cases[..1]).await.unwrap().remove(0);
    let other = entry(&rig.cases[0], Status::Failed);
    rig.adapter.amend(&cycle, &row.id, &other).await.unwrap();
    let changed = rig.adapter.rows(&cycle, &rig.cases[..1]).await.unwrap();
    assert_eq!(changed.len(), 1);
    assert_eq!((&changed[0].id, &changed[0].status), (&row.id, &RowStatus::Is(Status::Failed)));
    assert_eq!(changed[0].marker, Found::Whole(other.marker));
    let taken_back = rig.adapter.delete(&cycle, &row.id).await;
    assert_eq!(taken_back.is_ok(), repair.delete, "{taken_back:?}");
    assert_eq!(rig.stub.lost([rig.cases[0].as_str()]).len(), usize::from(repair.delete));
    if repair.delete {
        let never = RowId::new("000000000000000000000fff");
        rig.adapter.delete(&cycle, &never).await.unwrap();
        assert_eq!(class(&rig.adapter.amend(&cycle, &never, &other).await), "gone");
    }
    let deleted = rig.adapter.delete_cycle(&cycle).await;
    assert_eq!(deleted.is_ok(), repair.delete_cycle, "{deleted:?}");
    if repair.delete_cycle {
        assert_eq!(rig.stub.ledger().count(), 0);
        rig.adapter.delete_cycle(&cycle).await.unwrap();
    }
}

/// Items that name a case, that are called like one, and that are neither. The second case is called `shop.Cart > adds`.
pub(crate) async fn cases_are_found_before_any_is_made<V: Vendor>(rig: Rig<V>, adapter_that_makes: Arc<dyn Adapter>) {
    let item = |class: Option<&str>, name: &str| ItemName::new(None::<&str>, class, name);
    let first = rig.cases[0].to_string();
    let named = item(None, &format!("pays [{first}] in UTF-8"));
    let titled = item(Some("shop.Cart"), "adds");
    let unknown = item(Some("shop.Cart"), "takes out");
    let mapped = CaseId::new(first.replace("SHOP", "LIB"));
    let wanted: Vec<CaseWanted<'_>> = [(&named, None), (&titled, None), (&unknown, None), (&unknown, Some(&mapped))]
        .map(|(item, mapped)| CaseWanted { item, external_ids: &[], mapped })
        .to_vec();
    let ids = |choices: &[CaseChoice]| -> Vec<Option<String>> {
        let id = |choice: &CaseChoice| match choice {
            CaseChoice::Known(case) => Some(case.id.to_string()),
            CaseChoice::Several { .. } | CaseChoice::Unmatched { .. } => None,
        };
        choices.iter().map(id).collect()
    };
    let calls = rig.stub.log().len();
    assert_eq!(ids(&rig.adapter.cases(&wanted[..1]).await.unwrap()), [Some(first.clone())]);
    assert_eq!(rig.stub.log().len(), calls, "an id that is named needs no call");
    let choices = rig.adapter.cases(&wanted).await.unwrap();
    let second = rig.cases[1].to_string();
    assert_eq!(ids(&choices), [Some(first), Some(second), None, Some(mapped.to_string())]);
    let CaseChoice::Unmatched { why } = &choices[2] else { panic!("{choices:?}") };
    assert!(why.contains("takes out") && why.contains("SHOP-"), "{why}");
    let made = ids(&adapter_that_makes.cases(&wanted).await.unwrap());
    assert!(made[2].as_ref().is_some_and(|made| made.starts_with("SHOP-")), "{made:?}");
    assert_eq!(ids(&adapter_that_makes.cases(&wanted).await.unwrap()), made, "and is found by its title then");
    let twice = item(None, "twice");
    let twice = [CaseWanted { item: &twice, external_ids: &[], mapped: None }; 2];
    let both = ids(&adapter_that_makes.cases(&twice).await.unwrap());
    assert_eq!(both[0], both[1], "one case, not two");
}

/// The tests that all have, by a function that makes a [`Rig`].
macro_rules! common {
    ($rig:ident, $making:expr, 401 => $at_401:literal, 404 => $at_404:literal) => {
        #[tokio::test]
        async fn outcomes_come_back_with_their_markers() {
            crate::jira::outcomes_come_back_with_their_markers($rig()).await;
        }

        #[tokio::test]
        async fn a_cycle_is_found_by_its_tag_alone() {
            crate::jira::a_cycle_is_found_by_its_tag_alone($rig()).await;
        }

        #[tokio::test]
        async fn a_given_cycle_is_used_as_it_is() {
            crate::jira::a_given_cycle_is_used_as_it_is($rig()).await;
        }

        #[tokio::test]
        async fn a_repeat_does_what_the_facts_say() {
            crate::jira::a_repeat_does_what_the_facts_say($rig()).await;
        }

        #[tokio::test]
        async fn answers_are_told_apart() {
            crate::jira::answers_are_told_apart($rig(), $at_401, $at_404).await;
        }

        #[tokio::test]
        async fn readings_that_fail_change_nothing_and_say_so() {
            crate::jira::readings_that_fail_change_nothing_and_say_so($rig()).await;
        }

        #[tokio::test]
        async fn a_cycle_that_is_gone_is_told_from_entries_that_are_refused() {
            crate::jira::a_cycle_that_is_gone_is_told_from_entries_that_are_refused($rig()).await;
        }

        #[tokio::test]
        async fn a_row_is_changed_and_taken_back_as_the_facts_say() {
            crate::jira::a_row_is_changed_and_taken_back_as_the_facts_say($rig()).await;
        }

        #[tokio::test]
        async fn cases_are_found_before_any_is_made() {
            let rig = $rig();
            let making = $making(&rig);
            crate::jira::cases_are_found_before_any_is_made(rig, making).await;
        }
    };
}
pub(crate) use common;
