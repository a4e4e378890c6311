//! Listings of items: filters, orders, pages, histories.

use domain::listing::{ItemQuery, ItemReport, ItemSort};
use domain::round::{RoundChoice, RoundChoiceError};
use domain::{CycleName, DurationUs, ItemHash, Outcomes, ProjectId, PushId, Status, Variant};

use super::Make;
use super::build::{item, main_cycle, numbered, outcomes, page, push, query, shop, sound};
use crate::Absent;

fn names(items: &[ItemReport]) -> Vec<&str> {
    items.iter().map(|item| item.item.name()).collect()
}

pub async fn filters_search_and_totals(make: Make<'_>) {
    let store = make();
    push("Login+ logout- cart! pay* skip~ relogin-").accepted(&store).await;
    let failed = page(&store, &ItemQuery { status: Some(Status::Failed), ..query() }).await;
    assert_eq!((names(&failed.items), failed.total), (vec!["logout", "relogin"], 2));
    let flaky = page(&store, &ItemQuery { flaky: true, ..query() }).await;
    assert_eq!(names(&flaky.items), ["pay"]);
    let search = page(&store, &ItemQuery { search: Some("LOGIN".to_owned()), ..query() }).await;
    assert_eq!(names(&search.items), ["Login", "relogin"]);
    let both = ItemQuery { search: Some("log".to_owned()), status: Some(Status::Failed), limit: Some(1), ..query() };
    let first = page(&store, &both).await;
    assert_eq!((names(&first.items), first.total), (vec!["logout"], 2));
    sound(&store).await;
}

pub async fn pages_never_overlap_in_any_order(make: Make<'_>) {
    let store = make();
    let words = numbered(0..9, '+') + &numbered(9..14, '-') + &numbered(14..17, '!');
    let mut list = outcomes(&words).as_slice().to_vec();
    for (at, outcome) in list.iter_mut().enumerate() {
        outcome.duration_us = (at % 3 > 0).then_some(DurationUs(at as u64 / 4));
    }
    let list = Outcomes::from_unordered(list).expect("one an item");
    push("").variant("os=linux").holds(list.clone()).keyed().accepted(&store).await;
    push("").variant("os=mac").holds(list).keyed().accepted(&store).await;
    for sort in [ItemSort::Name, ItemSort::Duration, ItemSort::Status] {
        let whole = page(&store, &ItemQuery { sort, ..query() }).await;
        assert_eq!((whole.items.len(), whole.next, whole.total), (34, None, 34));
        let (mut cursor, mut seen) = (None, Vec::new());
        loop {
            let one = page(&store, &ItemQuery { sort, cursor, limit: Some(5), ..query() }).await;
            assert_eq!(one.total, 34);
            seen.extend(one.items);
            cursor = one.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, whole.items);
    }
    let worst = page(&store, &ItemQuery { sort: ItemSort::Status, limit: Some(6), ..query() }).await;
    assert!(worst.items.iter().all(|item| item.status == Status::Errored));
    sound(&store).await;
}

pub async fn cursors_of_other_listings_are_refused(make: Make<'_>) {
    let store = make();
    push("a+ b+ c+").accepted(&store).await;
    let next = page(&store, &ItemQuery { limit: Some(1), ..query() }).await.next.expect("another page");
    for (sort, cursor) in [(ItemSort::Status, next.as_str()), (ItemSort::Name, "n0.zz.00"), (ItemSort::Name, "")] {
        let query = ItemQuery { sort, cursor: Some(cursor.to_owned()), ..query() };
        let found = store.items(&shop(), &main_cycle(), &RoundChoice::Authoritative, &query).await.expect("works");
        assert_eq!(found.err(), Some(Absent::Cursor));
    }
}

pub async fn a_history_goes_round_by_round(make: Make<'_>) {
    let store = make();
    push("a- b+").run("1").keyed().accepted(&store).await;
    push("b+").run("2").keyed().accepted(&store).await;
    push("a+").run("3").variant("os=mac").keyed().accepted(&store).await;
    push("a!").run("3").job("again").variant("os=mac").keyed().accepted(&store).await;
    push("a+").run("9").cycle("pr-1").key("in-pr").accepted(&store).await;
    let history = |cycle: Option<CycleName>| {
        let store = store.clone();
        async move {
            let found = store.item_history(&shop(), cycle.as_ref(), item("a").hash()).await;
            let entries = found.expect("works").expect("exists");
            let line = |e: &domain::listing::HistoryEntry| {
                (e.cycle.to_string(), e.outcome.round.to_string(), e.outcome.status, e.outcome.pushes)
            };
            entries.iter().map(line).collect::<Vec<_>>()
        }
    };
    let main = [
        ("main".to_owned(), "run:1".to_owned(), Status::Failed, 1),
        ("main".to_owned(), "run:3".to_owned(), Status::Errored, 2),
    ];
    assert_eq!(history(Some(main_cycle())).await, main);
    let all = history(None).await;
    assert_eq!(all[..2], main);
    assert_eq!(all[2], ("pr-1".to_owned(), "run:9".to_owned(), Status::Passed, 1));
    sound(&store).await;
}

pub async fn absent_things_are_named(make: Make<'_>) {
    let store = make();
    let nothing = ProjectId::parse("nothing").expect("a project");
    let found = store.cycles(&nothing).await.expect("works");
    assert_eq!(found.err(), Some(Absent::Project(nothing)));
    push("a+").run("10").keyed().accepted(&store).await;
    push("a+").run("11").keyed().accepted(&store).await;
    let other = CycleName::parse("other").expect("a cycle");
    let found = store.cycle(&shop(), &other, &RoundChoice::All).await.expect("works");
    assert_eq!(found.err(), Some(Absent::Cycle(other)));
    let found = store.cycle(&shop(), &main_cycle(), &RoundChoice::Named("1".to_owned())).await.expect("works");
    assert!(matches!(found, Err(Absent::Round(RoundChoiceError::Ambiguous { .. }))));
    let found = store.drop_round(&shop(), &main_cycle(), "12").await.expect("works");
    assert!(matches!(found, Err(Absent::Round(RoundChoiceError::Unknown { .. }))));
    let found = store.item_history(&shop(), None, ItemHash([9; 16])).await.expect("works");
    assert_eq!(found.err(), Some(Absent::Item));
    let found = store.receipt(&shop(), PushId([9; 16]), None).await.expect("works");
    assert_eq!(found.err(), Some(Absent::Push));
    assert_eq!(Variant::default().to_string(), "");
}
