//! What a live Kiwi TCMS and a live Nitrate are both held to: the same steps, through the adapter alone.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use delivery::foreign::{
    Adapter, CaseChoice, CaseId, CaseWanted, Closing, CycleId, CycleWanted, Entry, Row, RowStatus, TargetSettings,
    Trouble,
};
use domain::marker::{ContentTag, Found};
use domain::{ItemName, Ordinal, Status};

use crate::given::{entry, item, opened, wanted};

/// Opens it: a new session, and nothing known yet.
pub(crate) fn target(settings: &TargetSettings) -> Arc<dyn Adapter> {
    opened(settings.clone()).unwrap()
}

/// With cases made where there are none.
pub(crate) fn making_cases(settings: &TargetSettings) -> TargetSettings {
    TargetSettings { create_cases: true, ..settings.clone() }
}

pub(crate) async fn choose(target: &dyn Adapter, items: &[ItemName]) -> Vec<CaseChoice> {
    let wanted: Vec<_> = items.iter().map(|item| CaseWanted { item, external_ids: &[], mapped: None }).collect();
    target.cases(&wanted).await.unwrap()
}

fn known(choice: &CaseChoice) -> CaseId {
    let CaseChoice::Known(case) = choice else { panic!("{choice:?}") };
    case.id.clone()
}

/// A run with so many cases in it.
pub(crate) async fn run_of(settings: &TargetSettings, round: &str, count: usize) -> (CycleId, Vec<CaseId>) {
    let target = target(&making_cases(settings));
    let items: Vec<ItemName> = (0..count).map(|n| item(&format!("{round} {n}"))).collect();
    let cases: Vec<CaseId> = choose(&*target, &items).await.iter().map(known).collect();
    let cycle = target.create_cycle(&wanted(round)).await.unwrap();
    assert_eq!(target.add_cases(&cycle, &cases).await.unwrap(), []);
    (cycle, cases)
}

/// The same entry with another verdict.
fn turned(entry: &Entry, status: Status) -> Entry {
    let mut turned = Entry { status, ..entry.clone() };
    turned.marker.content = ContentTag::of(&[status]);
    turned.marker.ordinal = Some(Ordinal(2));
    turned
}

fn says(rows: &[Row], entries: &[Entry]) {
    assert_eq!(rows.len(), entries.len(), "{rows:?}");
    for entry in entries {
        let row = rows.iter().find(|row| row.case == entry.case).unwrap();
        assert_eq!(row.status, RowStatus::Is(entry.status));
        assert_eq!(row.marker, Found::Whole(entry.marker));
        assert!(row.at_ms.is_some(), "{row:?}");
    }
}

pub(crate) async fn cases_are_made_once_and_found_again(settings: &TargetSettings) {
    let plain = ItemName::new(["suite"], Some("pkg.Käse"), "adds <1> & \"2\" 'x'");
    let long = ItemName::new(None::<&str>, Some("pkg.Long"), &"ä".repeat(300));
    let items = [plain.clone(), long, plain];
    let without = choose(&*target(settings), &items).await;
    assert!(without.iter().all(|choice| matches!(choice, CaseChoice::Unmatched { .. })), "{without:?}");
    let made: Vec<CaseId> = choose(&*target(&making_cases(settings)), &items).await.iter().map(known).collect();
    assert_eq!(made[0], made[2]);
    assert_ne!(made[0], made[1]);
    let again: Vec<CaseId> = choose(&*target(&making_cases(settings)), &items).await.iter().map(known).collect();
    assert_eq!(again, made);
    let named = [item(&format!("adds [TC-{}]", made[0])), item("adds TC-999999")];
    let choices = choose(&*target(settings), &named).await;
    assert_eq!(known(&choices[0]), made[0]);
    let CaseChoice::Unmatched { why } = &choices[1] else { panic!("{choices:?}") };
    assert!(why.contains("TC-999999"), "{why}");
}

pub(crate) async fn a_cycle_is_found_by_its_tag_alone(settings: &TargetSettings) {
    let target = target(settings);
    let wish = wanted("tagged");
    assert_eq!(target.find_cycles(&wish).await.unwrap(), []);
    let first = target.create_cycle(&wish).await.unwrap();
    let second = target.create_cycle(&wish).await.unwrap();
    target.create_cycle(&CycleWanted { name: wish.name.clone(), ..wanted("another") }).await.unwrap();
    let found = target.find_cycles(&wish).await.unwrap();
    let ids: Vec<&CycleId> = found.iter().map(|cycle| &cycle.id).collect();
    assert_eq!(ids, [&first, &second], "oldest first");
    assert!(found.iter().all(|cycle| cycle.name == wish.name && !cycle.closed), "{found:?}");
    target.close_cycle(&second, Closing::Abandoned).await.unwrap();
    target.close_cycle(&second, Closing::Abandoned).await.unwrap();
    let closed: Vec<bool> = target.find_cycles(&wish).await.unwrap().iter().map(|cycle| cycle.closed).collect();
    assert_eq!(closed, [false, true]);
    let given = |id: &str| CycleWanted { given: Some(CycleId::new(id)), ..wish.clone() };
    let by_id = target.find_cycles(&given(first.as_str())).await.unwrap();
    assert_eq!(by_id.len(), 1);
    assert!(matches!(target.find_cycles(&given("999999")).await, Err(Trouble::Gone(_))));
    assert!(matches!(target.rows(&CycleId::new("999999"), &[]).await, Err(Trouble::Gone(_))));
}

/// Gives the run and what was written last.
pub(crate) async fn a_repeat_replaces_and_a_changed_verdict_too(settings: &TargetSettings) -> (CycleId, Vec<Entry>) {
    let (cycle, cases) = run_of(settings, "repeated", 8).await;
    let statuses = Status::ALL.into_iter().cycle();
    let entries: Vec<Entry> = cases.iter().zip(statuses).map(|(case, status)| entry(case.as_str(), status)).collect();
    assert_eq!(target(settings).rows(&cycle, &[]).await.unwrap(), [], "places without a verdict are no rows");
    for _ in 0..2 {
        let target = target(settings);
        assert_eq!(target.add_cases(&cycle, &cases).await.unwrap(), []);
        let written = target.write(&cycle, &entries).await.unwrap();
        assert_eq!(written.refused, []);
        assert!(written.rows.iter().all(Option::is_some));
        says(&target.rows(&cycle, &[]).await.unwrap(), &entries);
    }
    let target = target(settings);
    says(&target.rows(&cycle, &cases[2..3]).await.unwrap(), &entries[2..3]);
    let mut entries = entries;
    entries[0] = turned(&entries[0], Status::Failed);
    target.write(&cycle, &entries[..2]).await.unwrap();
    entries[1] = turned(&entries[1], Status::Passed);
    let rows = target.rows(&cycle, &cases[1..2]).await.unwrap();
    target.amend(&cycle, &rows[0].id, &entries[1]).await.unwrap();
    says(&target.rows(&cycle, &[]).await.unwrap(), &entries);
    (cycle, entries)
}

pub(crate) async fn a_bad_entry_spoils_no_batch(settings: &TargetSettings) {
    let (cycle, cases) = run_of(settings, "spoilt", 2).await;
    let target = target(settings);
    let batch = [
        entry(cases[0].as_str(), Status::Passed),
        entry("999999", Status::Passed),
        entry(cases[1].as_str(), Status::Failed),
    ];
    let unwritable = target.add_cases(&cycle, &[batch[1].case.clone(), cases[0].clone()]).await.unwrap();
    assert_eq!(unwritable.iter().map(|(case, _)| case.as_str()).collect::<Vec<_>>(), ["999999"]);
    let written = target.write(&cycle, &batch).await.unwrap();
    assert_eq!(written.refused.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1], "{written:?}");
    assert!(written.rows[1].is_none() && written.rows[0].is_some() && written.rows[2].is_some());
    says(&target.rows(&cycle, &[]).await.unwrap(), &[batch[0].clone(), batch[2].clone()]);
    let mut renamed = settings.clone();
    renamed.statuses.insert(Status::Passed, "NO SUCH".to_owned());
    let written = self::target(&renamed).write(&cycle, &[batch[0].clone(), batch[2].clone()]).await.unwrap();
    assert_eq!(written.refused.len(), 1);
    assert!(written.refused[0].1.contains("NO SUCH"), "{written:?}");
}

/// Gives the run.
pub(crate) async fn two_writers_at_once_leave_one_verdict(settings: &TargetSettings) -> (CycleId, Vec<Entry>) {
    let (_, cases) = run_of(settings, "made before", 5).await;
    let cycle = target(settings).create_cycle(&wanted("at once")).await.unwrap();
    let entries: Vec<Entry> = cases.iter().map(|case| entry(case.as_str(), Status::Passed)).collect();
    let writer = || async {
        let target = target(settings);
        let added = target.add_cases(&cycle, &cases).await;
        assert_eq!(added.unwrap(), []);
        target.write(&cycle, &entries).await.unwrap()
    };
    let (a, b, c, d) = tokio::join!(writer(), writer(), writer(), writer());
    let rows = target(settings).rows(&cycle, &[]).await.unwrap();
    let verdicts: Vec<Row> = rows.into_iter().filter(|row| row.status != RowStatus::Open).collect();
    for written in [a, b, c, d] {
        assert_eq!(written.refused, []);
    }
    let written: std::collections::BTreeSet<&str> = verdicts.iter().map(|row| row.case.as_str()).collect();
    assert_eq!(written.len(), cases.len());
    (cycle, entries)
}

/// One request by hand, for what people do in a product before results come. Gives head and body of the answer.
pub(crate) fn post(url: &str, kind: &str, session: Option<&str>, body: &str) -> (String, String) {
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let cookie = session.map(|session| format!("Cookie: sessionid={session}\r\n")).unwrap_or_default();
    let length = body.len();
    let head =
        format!("POST /{path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n");
    write!(stream, "{head}{cookie}Connection: close\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// Counts by the first column of a query about one run, from the product's database itself.
pub(crate) fn counts(database: &Path, query: &str, cycle: &CycleId) -> BTreeMap<i64, i64> {
    let database = rusqlite::Connection::open(database).unwrap();
    let mut query = database.prepare(query).unwrap();
    let rows = query.query_map([cycle.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}
