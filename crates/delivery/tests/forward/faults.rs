//! What a product is believed to do, and what its requests meet.

use delivery::foreign::{
    Bulk, Facts, KeyOnWrite, Kind, MarkerFacts, MarkerLevel, Repair, Strategy, VerdictRule, Visible,
};

/// What one request meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// Carried out; the answer is lost.
    AnswerLost,
    /// Never arrives, and looks like the one before.
    RequestLost,
    /// Carried out so many milliseconds after the client gave up.
    Late(u64),
    /// A part is carried out, and no answer.
    Part,
    /// The connection never stood.
    NotSent,
    /// `429`.
    Wait,
    /// The marker loses its end.
    Mangled,
    /// Taken, and never carried out.
    Lost,
    /// Carried out; the process dies before it hears of it.
    Dies,
    /// Refused, and not carried out.
    Refused,
    /// Waits, and is carried out once [`Product::release`] is called.
    Held,
}

pub(crate) fn facts(verdict: VerdictRule, key_on_write: KeyOnWrite) -> Facts {
    let strategies: &[Strategy] = match (key_on_write, verdict) {
        (KeyOnWrite::None, VerdictRule::Appends) => &[Strategy::Reconcile],
        (KeyOnWrite::None, _) => &[Strategy::Replace],
        _ => &[Strategy::Idempotent],
    };
    Facts {
        kind: Kind::Generic,
        key_on_write,
        verdict,
        side_rows: &[],
        cycle_unique: false,
        marker: MarkerFacts { level: MarkerLevel::M3, field: "comment", chars_max: 200, editable: true },
        bulk: Bulk { items_max: 4, atomic: true },
        visible: Visible::AtOnce,
        repair: Repair { delete: true, amend: true, delete_cycle: true },
        rate: None,
        quiet_ms: 60_000,
        strategies,
        races: &[],
    }
}

/// Faults as they are counted.
pub(crate) fn kind(fault: Fault) -> Fault {
    match fault {
        Fault::Late(ms) if ms > 60_000 => Fault::Late(60_001),
        Fault::Late(_) => Fault::Late(1),
        other => other,
    }
}
