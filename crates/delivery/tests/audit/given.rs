//! What tests begin with: facts, ways that follow them, markers, and an hour of patience.

use delivery::foreign::patience::Patience;
use delivery::foreign::{
    Bulk, CycleWanted, Facts, KeyOnWrite, Kind, MarkerFacts, MarkerLevel, Repair, Strategy, VerdictRule, Visible,
};
use delivery::{Clock, Stop};
use domain::marker::{ContentTag, Marker, WriteId};
use domain::{Ordinal, ProjectId, Status};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::product::Product;
use crate::ways::{Bad, Ways};

pub(crate) fn facts(verdict: VerdictRule, key_on_write: KeyOnWrite) -> Facts {
    let strategies: &[Strategy] = match (key_on_write, verdict) {
        (KeyOnWrite::None, VerdictRule::Appends) => &[Strategy::Reconcile, Strategy::Container],
        (KeyOnWrite::None, _) => &[Strategy::Replace, Strategy::Reconcile],
        _ => &[Strategy::Idempotent],
    };
    Facts {
        kind: Kind::Generic,
        key_on_write,
        verdict,
        side_rows: &[],
        cycle_unique: false,
        marker: MarkerFacts { level: MarkerLevel::M3, field: "comment", chars_max: 4000, editable: true },
        bulk: Bulk { items_max: 50, atomic: true },
        visible: Visible::AtOnce,
        repair: Repair { delete: true, amend: true, delete_cycle: true },
        rate: None,
        quiet_ms: 60_000,
        strategies,
        races: &[],
    }
}

/// A product that is what its facts say.
pub(crate) fn honest(facts: &Facts) -> Ways {
    Ways {
        verdict: facts.verdict,
        key: facts.key_on_write,
        lag_ms: if let Visible::Later(ms) = facts.visible { ms } else { 0 },
        comment_chars: facts.marker.chars_max,
        job_ms: (facts.visible == Visible::AfterJob).then_some(7000),
        bad: if facts.bulk.atomic { Bad::RefusesAll } else { Bad::NamesIt },
        deletes: facts.repair.delete,
        amends: facts.repair.amend,
        deletes_cycles: facts.repair.delete_cycle,
        cycle_unique: facts.cycle_unique,
        cycles_listed: usize::MAX,
        makes_cycles_silently: false,
        rows_max: usize::MAX,
        denies: false,
        hangs: false,
        looks_then_writes: false,
    }
}

/// The cycle of the tests' round.
pub(crate) fn wanted() -> CycleWanted {
    CycleWanted {
        name: "main, run 7".to_owned(),
        id: WriteId::of_cycle(&ProjectId::parse("shop").unwrap(), "main", "run:7"),
        link: None,
        given: None,
    }
}

/// The marker of a write of these tests.
pub(crate) fn marker(write: u128, status: Status, ordinal: Option<u64>) -> Marker {
    Marker { write: WriteId(write), content: ContentTag::of(&[status]), ordinal: ordinal.map(Ordinal) }
}

/// A comment with a marker.
pub(crate) fn comment(text: &str, marker: Marker) -> String {
    format!("{text}\n\n{marker}")
}

/// Runs something with an hour of patience.
pub(crate) async fn patiently<T>(product: &Product, work: impl AsyncFnOnce(&mut Patience<'_>) -> T) -> T {
    let (stop, mut random) = (Stop::new(), StdRng::seed_from_u64(7));
    let clock: &dyn Clock = &*product.world;
    let deadline_ms = product.world.now() + 3_600_000;
    let mut patience = Patience::new(clock, &mut random, &stop, deadline_ms);
    work(&mut patience).await
}
