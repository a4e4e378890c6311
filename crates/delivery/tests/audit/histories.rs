//! Histories at random: whatever was written by whomever, a repair loses no outcome and changes no decision.

use std::collections::{BTreeMap, BTreeSet};

use delivery::foreign::audit::Finding;
use delivery::foreign::{
    Adapter as _, CaseId, CycleId, Entry, KeyOnWrite, Need, Repair, Row, RowId, VerdictRule, Visible, needs,
};
use domain::Status;
use domain::marker::Marker;
use proptest::prelude::*;

use crate::audit::audit;
use crate::given::{comment, facts, marker};
use crate::product::{Product, Stored};
use crate::repair::{planned, repair};
use crate::world::World;

const T0: u64 = 1_790_000_000_000;

/// Something that happens in a cycle.
#[derive(Debug, Clone)]
enum Event {
    /// We write, so often.
    Ours { case: u8, write: u8, status: Status, ordinal: Option<u64>, times: u8 },
    /// Another client writes, so often.
    Others { case: u8, status: Status, text: u8, times: u8 },
    /// A person edits the text of one row.
    Edits { row: prop::sample::Index },
    /// Nothing, for so many seconds.
    Pause { s: u64 },
}

fn status() -> impl Strategy<Value = Status> {
    prop::sample::select(Status::ALL.to_vec())
}

fn event(edits: bool) -> impl Strategy<Value = Event> {
    let ordinal = prop::option::of(1_u64..4);
    let ours = (0_u8..3, 0_u8..2, status(), ordinal, 1_u8..4)
        .prop_map(|(case, write, status, ordinal, times)| Event::Ours { case, write, status, ordinal, times });
    let others = (0_u8..3, status(), 0_u8..2, 1_u8..4).prop_map(|(case, status, text, times)| Event::Others {
        case,
        status,
        text,
        times,
    });
    let edits = u32::from(edits);
    prop_oneof![
        6 => ours,
        4 => others,
        edits => any::<prop::sample::Index>().prop_map(|row| Event::Edits { row }),
        2 => (1_u64..1000).prop_map(|s| Event::Pause { s }),
    ]
}

fn said(case: u8, write: u8, status: Status, ordinal: Option<u64>) -> Marker {
    marker(u128::from(case) << 8 | u128::from(write), status, ordinal)
}

fn happened(events: &[Event]) -> (Product, CycleId) {
    let product = Product::new(facts(VerdictRule::Appends, KeyOnWrite::None));
    let cycle = product.cycle();
    let mut at_ms = T0;
    let mut rows: Vec<(RowId, Option<Marker>)> = Vec::new();
    for event in events {
        at_ms += 10;
        match event {
            Event::Ours { case, write, status, ordinal, times } => {
                let marker = said(*case, *write, *status, *ordinal);
                for _ in 0..*times {
                    let row = product.put(&cycle, &format!("C{case}"), *status, &comment("m", marker), at_ms);
                    rows.push((row, Some(marker)));
                    at_ms += 1;
                }
            }
            Event::Others { case, status, text, times } => {
                for _ in 0..*times {
                    rows.push((product.put(&cycle, &format!("C{case}"), *status, &format!("t{text}"), at_ms), None));
                    at_ms += 1;
                }
            }
            Event::Edits { row } if !rows.is_empty() => {
                let (row, marker) = &rows[row.index(rows.len())];
                let text = format!("edited {row}");
                product.edit(row, &marker.map_or_else(|| text.clone(), |marker| comment(&text, marker)));
            }
            Event::Edits { .. } => {}
            Event::Pause { s } => at_ms += s * 1000,
        }
    }
    (product, cycle)
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

/// What a forwarder would do next for everything that it ever meant to write.
fn decisions(events: &[Event], rows: &[Row]) -> Vec<Need> {
    let entry = |case: u8, status: Status, marker: Marker| Entry {
        case: CaseId::new(format!("C{case}")),
        title: String::new(),
        status,
        duration_us: None,
        message: None,
        at_ms: 0,
        items: Vec::new(),
        marker,
    };
    let entries: Vec<Entry> = events
        .iter()
        .filter_map(|event| match event {
            Event::Ours { case, write, status, ordinal, .. } => {
                Some(entry(*case, *status, said(*case, *write, *status, *ordinal)))
            }
            _ => None,
        })
        .collect();
    needs(&entries, rows, VerdictRule::Appends).of
}

/// All that makes two rows equal to whoever looks at them.
fn look(row: &Stored) -> (CaseId, String, String) {
    let marker: Option<Marker> = row.comment.lines().last().and_then(|line| line.parse().ok());
    let text = marker.map_or_else(|| row.comment.clone(), |_| row.comment.lines().next().unwrap().to_owned());
    let said = marker.map_or_else(String::new, |marker| format!("{}{}", marker.write, marker.content));
    (row.case.clone(), format!("{:?} {text}", row.status), said)
}

async fn check(events: &[Event], marks: bool, likely: bool) -> Result<(), TestCaseError> {
    let (mut product, cycle) = happened(events);
    if marks {
        product.facts.repair = Repair { delete: false, amend: true, delete_cycle: false };
        product.ways.deletes = false;
    }
    let edited = events.iter().any(|event| matches!(event, Event::Edits { .. }));
    let (before, rows_before) = (product.there(), product.rows(&cycle, &[]).await.unwrap());
    let plan = planned(&product, &audit(&product, None).await, likely);
    let (applied, removed) = repair(&product, &plan).await;
    prop_assert!(applied.halted.is_none());
    prop_assert_eq!(removed.len(), plan.mends.len());

    let touched: BTreeSet<u64> = product.state.lock().unwrap().touched.iter().copied().collect();
    let (gone, stays): (Vec<&Stored>, Vec<&Stored>) = before.iter().partition(|row| touched.contains(&row.id));
    for row in &gone {
        prop_assert!(stays.iter().any(|kept| look(kept) == look(row)), "the last one that says this: {row:?}");
    }
    // Whatever a forwarder decided before, it decides now.
    let rows_after = product.rows(&cycle, &[]).await.unwrap();
    prop_assert_eq!(decisions(events, &rows_before), decisions(events, &rows_after));

    let after = audit(&product, None).await;
    for finding in &after.findings {
        match finding {
            Finding::Doubled { .. } => prop_assert!(edited, "{finding:?}"),
            Finding::LikelyDoubled { .. } => prop_assert!(!likely, "{finding:?}"),
            other => prop_assert!(!other.is_wrong(), "{other:?}"),
        }
    }
    if !marks {
        prop_assert_eq!(product.there().len() + gone.len(), before.len());
    }
    // Again, with the old plan and with a new one: nothing happens.
    let count = product.state.lock().unwrap().touched.len();
    repair(&product, &plan).await;
    let next = planned(&product, &after, likely);
    prop_assert!(next.is_empty(), "{next:?}");
    prop_assert_eq!(product.state.lock().unwrap().touched.len(), count);
    Ok(())
}

proptest! {
    #[test]
    fn a_repair_loses_no_outcome_and_changes_no_decision(
        events in prop::collection::vec(event(true), 0..24), marks: bool, likely: bool,
    ) {
        run(check(&events, marks, likely))?;
    }

    #[test]
    fn without_edits_nothing_is_left_to_find(events in prop::collection::vec(event(false), 0..24), marks: bool) {
        run(check(&events, marks, true))?;
    }

    /// Deliveries that come in any order and any number of times, each attempt with a content of its own.
    #[test]
    fn every_write_and_content_is_left_once(
        deliveries in prop::collection::vec((0_u8..3, 0_u8..2, 1_u64..4), 1..30), marks: bool,
    ) {
        let events: Vec<Event> = deliveries
            .iter()
            .map(|(case, write, attempt)| {
                let status = Status::ALL[*attempt as usize];
                Event::Ours { case: *case, write: *write, status, ordinal: Some(*attempt), times: 1 }
            })
            .collect();
        let distinct: BTreeSet<(u8, u8, u64)> = deliveries.iter().copied().collect();
        let (product, _) = happened(&events);
        run(async {
            let plan = planned(&product, &audit(&product, None).await, marks);
            repair(&product, &plan).await;
        });
        let mut left: BTreeMap<(CaseId, String, String), usize> = BTreeMap::new();
        for row in product.there() {
            *left.entry(look(&row)).or_default() += 1;
        }
        prop_assert!(left.values().all(|count| *count == 1), "{left:?}");
        prop_assert_eq!(left.len(), distinct.len());
        prop_assert!(run(audit(&product, None)).is_clean());
    }

    /// Two repairs at once, each with a picture of its own: rows that lag are in one of them alone.
    #[test]
    fn two_repairs_at_once_never_take_both(
        events in prop::collection::vec(event(false), 1..16), seed: u64, lag_ms in prop::sample::select(vec![0_u64, 4000]),
        hidden in prop::collection::vec(any::<prop::sample::Index>(), 0..4), marks: bool,
    ) {
        let (mut product, cycle) = happened(&events);
        if product.there().is_empty() {
            return Ok(());
        }
        product.world = std::sync::Arc::new(World::new(seed));
        product.gives_way = true;
        product.ways.lag_ms = lag_ms;
        if lag_ms > 0 {
            product.facts.visible = Visible::Later(lag_ms);
        }
        if marks {
            product.facts.repair.delete = false;
        }
        let before = product.there();
        run(async {
            let whole = planned(&product, &audit(&product, None).await, true);
            // The other one doesn't see all.
            let hidden: BTreeSet<String> =
                hidden.iter().map(|at| before[at.index(before.len())].id.to_string()).collect();
            let mut seen = product.rows(&cycle, &[]).await.unwrap();
            seen.retain(|row| !hidden.contains(row.id.as_str()));
            let part = planned(&product, &judged(&cycle, seen), true);
            tokio::join!(repair(&product, &whole), repair(&product, &part));
        });
        let touched: BTreeSet<u64> = product.state.lock().unwrap().touched.iter().copied().collect();
        let stays: Vec<&Stored> = before.iter().filter(|row| !touched.contains(&row.id)).collect();
        for row in before.iter().filter(|row| touched.contains(&row.id)) {
            prop_assert!(stays.iter().any(|kept| look(kept) == look(row)), "nothing says this any more: {row:?}");
        }
    }
}

fn judged(cycle: &CycleId, rows: Vec<Row>) -> delivery::foreign::audit::Audit {
    use delivery::foreign::CycleFound;
    use delivery::foreign::audit::{AuditOptions, CycleRows, FoundBy, judge};
    let cycle = CycleFound { id: cycle.clone(), name: String::new(), closed: false };
    judge(
        vec![CycleRows { cycle, by: FoundBy::Tag, rows, made_ms: None }],
        None,
        AuditOptions::new(VerdictRule::Appends),
    )
    .unwrap()
}
