//! What a described service allows, as facts: which strategy, where the marker is, which races stay open.
//! Must not know calls beyond what they say.

use super::config::Spec;
use super::template::Place;
use crate::foreign::facts::{
    Bulk, Facts, KeyOnWrite, Kind, MarkerFacts, MarkerLevel, Race, Rate, Repair, Strategy, VerdictRule, Visible,
};
use crate::foreign::options::{OptionError, Options};
use domain::marker::Marker;

/// What is believed of a service before its configuration is read: the least.
pub(crate) const FACTS: Facts = Facts {
    kind: Kind::Generic,
    key_on_write: KeyOnWrite::None,
    verdict: VerdictRule::Appends,
    side_rows: &[],
    cycle_unique: false,
    marker: MarkerFacts {
        level: MarkerLevel::M3,
        field: "the member at read.marker-at",
        chars_max: COMMENT_CHARS,
        editable: true,
    },
    bulk: Bulk { items_max: 1, atomic: true },
    visible: Visible::AtOnce,
    repair: Repair { delete: false, amend: false, delete_cycle: false },
    rate: None,
    quiet_ms: 120_000,
    strategies: &[Strategy::Reconcile, Strategy::Replace, Strategy::Idempotent, Strategy::AtMostOnce],
    races: &[Race::R1, Race::R2, Race::R3, Race::R7, Race::R8, Race::R9],
};

/// Most characters of a comment, unless the configuration says otherwise.
const COMMENT_CHARS: usize = 4000;
const MINUTE_MS: u64 = 60_000;

/// What the configuration says of the service itself.
#[derive(Debug)]
pub(super) struct Claims {
    verdict: VerdictRule,
    same_id: KeyOnWrite,
    visible: Visible,
    pub(super) comment_chars: usize,
    pub(super) rate: Option<Rate>,
}

impl Claims {
    pub(super) fn read(options: &mut Options) -> Result<Self, OptionError> {
        let verdict = match options.text("repeat")?.as_deref() {
            None | Some("appends") => VerdictRule::Appends,
            Some("replaces") => VerdictRule::Replaces,
            Some("refuses") => VerdictRule::Refuses,
            Some(_) => return Err(options.wrong("repeat", "it is one of appends, replaces and refuses")),
        };
        let same_id = match options.text("same-id")?.as_deref() {
            None | Some("collapses") => KeyOnWrite::Collapses,
            Some("refuses") => KeyOnWrite::Refuses,
            Some(_) => return Err(options.wrong("same-id", "it is one of collapses and refuses")),
        };
        let visible = match options.number("lag-ms")? {
            None | Some(0) => Visible::AtOnce,
            Some(ms) => Visible::Later(ms),
        };
        let comment_chars = match options.number("comment-max")? {
            None => COMMENT_CHARS,
            Some(chars) if chars as usize >= Marker::CHARS_MAX => chars as usize,
            Some(_) => {
                let why = format!("a marker has up to {} characters and is never cut", Marker::CHARS_MAX);
                return Err(options.wrong("comment-max", why));
            }
        };
        let rate = options.number("calls-per-minute")?.filter(|calls| *calls > 0);
        let rate = rate.map(|calls| Rate { calls: u32::try_from(calls).unwrap_or(u32::MAX), per_ms: MINUTE_MS });
        Ok(Self { verdict, same_id, visible, comment_chars, rate })
    }

    /// The facts, if the calls carry the strategy that is asked for.
    pub(super) fn facts(&self, spec: &Spec, asked: Option<Strategy>) -> Result<Facts, OptionError> {
        let strategy = match asked {
            Some(strategy) => {
                self.carries(spec, strategy)?;
                strategy
            }
            // The best one that is carried; if none is, what reconcile needs is said, as every service can give it.
            None => [Strategy::Idempotent, Strategy::Replace]
                .into_iter()
                .find(|strategy| self.carries(spec, *strategy).is_ok())
                .map_or_else(|| self.carries(spec, Strategy::Reconcile).map(|()| Strategy::Reconcile), Ok)?,
        };
        let makes_cycles = spec.cycles.is_some();
        let bulk = spec.write.batch.as_ref();
        let bulk = bulk.map_or(FACTS.bulk, |batch| Bulk { items_max: batch.max, atomic: batch.atomic });
        let has_id = spec.write.places().contains(&Place::Id);
        Ok(Facts {
            key_on_write: if has_id { self.same_id } else { KeyOnWrite::None },
            verdict: self.verdict,
            cycle_unique: !makes_cycles,
            marker: MarkerFacts {
                level: if strategy == Strategy::Idempotent { MarkerLevel::M1 } else { level(spec) },
                chars_max: self.comment_chars,
                ..FACTS.marker
            },
            bulk,
            // What can't be read back isn't waited for.
            visible: if spec.read.is_some() { self.visible } else { Visible::AtOnce },
            repair: Repair {
                delete: spec.delete.is_some(),
                amend: spec.amend.is_some(),
                delete_cycle: spec.delete_cycle.is_some(),
            },
            rate: self.rate,
            strategies: match strategy {
                Strategy::Idempotent => &[Strategy::Idempotent],
                Strategy::Replace => &[Strategy::Replace],
                Strategy::AtMostOnce => &[Strategy::AtMostOnce],
                Strategy::Reconcile | Strategy::Container => &[Strategy::Reconcile],
            },
            races: races(strategy, makes_cycles, !bulk.atomic),
            ..FACTS
        })
    }

    fn carries(&self, spec: &Spec, strategy: Strategy) -> Result<(), OptionError> {
        let wrong = |key: &str, why: &str| Err(OptionError::Wrong { key: key.to_owned(), why: why.to_owned() });
        let missing = |key: &str, why| Err(OptionError::Missing { key: key.to_owned(), why });
        let places = spec.write.places();
        let body = if spec.write.batch.is_some() { "write.body-item" } else { "write.body" };
        let marked = places.contains(&Place::Marker) || places.contains(&Place::Comment);
        match (strategy, &spec.read) {
            (Strategy::Idempotent, _) if !places.contains(&Place::Id) => {
                wrong(body, "strategy idempotent sends {id}, here or in a header, and it is nowhere in write")
            }
            (Strategy::Idempotent, _) => Ok(()),
            (Strategy::Replace, _) if self.verdict != VerdictRule::Replaces => {
                wrong("repeat", "strategy replace needs a service that replaces: say repeat = \"replaces\" if it does")
            }
            (Strategy::Replace, None) => missing("read", "strategy replace reads back what it can't know"),
            (Strategy::Replace | Strategy::Reconcile, _) if !marked => {
                let why = "it holds neither {marker} nor {comment}";
                wrong(body, &format!("{why}; strategy {strategy} finds its own writes again by the marker"))
            }
            (Strategy::Reconcile, None) => missing(
                "read",
                "strategy reconcile reads what is there before it writes; a service that lists nothing has at-most-once",
            ),
            (Strategy::Replace | Strategy::Reconcile, Some(read)) if read.marker_at.is_none() => {
                missing("read.marker-at", "where a row has the text that {marker} or {comment} was written into")
            }
            (Strategy::Replace | Strategy::Reconcile, Some(_)) => Ok(()),
            (Strategy::AtMostOnce, Some(_)) => {
                wrong("strategy", "at-most-once is for services that list nothing, and this one has [read]")
            }
            (Strategy::AtMostOnce, None) => Ok(()),
            (Strategy::Container, _) => {
                wrong("strategy", "a generic target has idempotent, replace, reconcile and at-most-once")
            }
        }
    }
}

fn level(spec: &Spec) -> MarkerLevel {
    match spec.read.as_ref().map(|read| read.marker_at.is_some()) {
        Some(true) => MarkerLevel::M3,
        Some(false) => MarkerLevel::M4,
        None => MarkerLevel::M6,
    }
}

fn races(strategy: Strategy, makes_cycles: bool, in_parts: bool) -> &'static [Race] {
    use Race::{R1, R2, R3, R4, R7, R8, R9, R10};
    match (strategy, makes_cycles, in_parts) {
        (Strategy::Idempotent, false, _) => &[],
        (Strategy::Idempotent, true, _) => &[R3],
        // What was sent and not answered may be there or not.
        (Strategy::AtMostOnce, ..) => &[R1, R2],
        (Strategy::Replace, false, _) => &[R4, R10],
        (Strategy::Replace, true, _) => &[R3, R4, R10],
        (_, false, false) => &[R1, R2, R7, R8],
        (_, true, false) => &[R1, R2, R3, R7, R8],
        (_, false, true) => &[R1, R2, R7, R8, R9],
        (_, true, true) => &[R1, R2, R3, R7, R8, R9],
    }
}
