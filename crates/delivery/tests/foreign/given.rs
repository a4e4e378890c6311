//! What tests of adapters begin with: a target at a stub, entries, items, and the faults that every product has.

use std::collections::BTreeMap;
use std::sync::Arc;

use delivery::foreign::{
    Adapter, CaseId, CyclePer, CycleWanted, Entry, Kind, OpenError, Options, TargetName, TargetSettings, Trouble, open,
};
use delivery::{HttpSettings, HttpUrl, Secret, SystemClock};
use domain::marker::{ContentTag, Marker, WriteId};
use domain::{DurationUs, ItemName, Ordinal, ProjectId, PushKey, Status};
use proof::stubs::{Door, Fault, Plan, RetryAfter, Select, When};
use serde_json::Value;

/// A target of this kind at the stub, with these keys of its own.
pub(crate) fn settings(kind: Kind, door: &Door, own: Value) -> TargetSettings {
    TargetSettings {
        name: TargetName::parse("there").unwrap(),
        kind,
        url: HttpUrl::parse(&door.url()).unwrap(),
        project: "1".to_owned(),
        user: Some("bot@example.com".to_owned()),
        token: Some(Secret::new("key")),
        strategy: None,
        cycle_per: CyclePer::Round,
        cycle: None,
        create_cases: false,
        cases: BTreeMap::new(),
        statuses: BTreeMap::new(),
        quiet_ms: None,
        options: Options::new(serde_json::from_value(own).unwrap()),
    }
}

/// Opens it, with a time-out that a stalled answer soon reaches.
pub(crate) fn opened(settings: TargetSettings) -> Result<Arc<dyn Adapter>, OpenError> {
    // The same one again is no harm.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut http = HttpSettings::new("tallyonce/test");
    (http.answer_timeout_ms, http.answer_timeout_per_mib_ms) = (2_000, 0);
    open(settings, &http, Arc::new(SystemClock::new()))
}

pub(crate) fn entry(case: impl std::fmt::Display + Copy, status: Status) -> Entry {
    let (case, key) = (case.to_string(), PushKey::parse("run:42:job:e2e").unwrap());
    Entry {
        title: format!("title of {case}"),
        status,
        duration_us: Some(DurationUs(90_000_000)),
        message: Some("expected <1> & \"was\" 2".to_owned()),
        at_ms: 1_790_000_000_000,
        items: vec![item(&case)],
        marker: Marker {
            write: WriteId::of(&ProjectId::parse("shop").unwrap(), &key, &case),
            content: ContentTag::of(&[status]),
            ordinal: Some(Ordinal(1)),
        },
        case: CaseId::new(case),
    }
}

pub(crate) fn item(name: &str) -> ItemName {
    ItemName::new(None::<&str>, None, name)
}

/// A cycle for the round of this name.
pub(crate) fn wanted(round: &str) -> CycleWanted {
    CycleWanted {
        name: format!("main, {round}"),
        id: WriteId::of_cycle(&ProjectId::parse("shop").unwrap(), "main", round),
        link: Some("https://ci.example.com/runs/42".to_owned()),
        given: None,
    }
}

/// What a write has to come to under each fault, on every product. `true`: the stub has it all the same.
pub(crate) fn faults_of_a_write() -> Vec<(Fault, &'static str, bool)> {
    let refused = |status, retry_after| Fault::Refused { status, retry_after };
    vec![
        (refused(429, RetryAfter::Seconds(17)), "wait 17", false),
        (refused(429, RetryAfter::Seconds(0)), "wait 1", false),
        (refused(429, RetryAfter::Missing), "wait 60", false),
        (refused(401, RetryAfter::Missing), "denied", false),
        (refused(403, RetryAfter::Missing), "denied", false),
        (refused(413, RetryAfter::Missing), "too large", false),
        (refused(500, RetryAfter::Missing), "unknown", false),
        (Fault::ErrorAfterWrite(500), "unknown", true),
        (Fault::Page { status: 502, applied: false }, "unknown", false),
        (Fault::Page { status: 504, applied: true }, "unknown", true),
        (Fault::Page { status: 200, applied: false }, "unknown", false),
        (Fault::RequestDropped, "unknown", false),
        (Fault::ResponseDropped, "unknown", true),
        (Fault::ResponseTruncated, "unknown", true),
        (Fault::Stall { hold: When::ClientGone, then_answer: false }, "unknown", true),
    ]
}

/// A plan that breaks the next write so.
pub(crate) fn next_write(fault: Fault) -> Plan {
    Plan::on(Select::writes().nth(1), fault)
}

/// A trouble in a word or two.
pub(crate) fn class(trouble: &Trouble) -> String {
    match trouble {
        Trouble::NotSent(_) => "not sent".to_owned(),
        Trouble::Wait { after_ms, .. } => format!("wait {}", after_ms / 1000),
        Trouble::TooLarge(_) => "too large".to_owned(),
        Trouble::Exists(_) => "exists".to_owned(),
        Trouble::Refused(_) => "refused".to_owned(),
        Trouble::Denied(_) => "denied".to_owned(),
        Trouble::Gone(_) => "gone".to_owned(),
        Trouble::Unknown(_) => "unknown".to_owned(),
    }
}
