//! What a probe is worth for a target: whether a strategy may be used, and which of two probes is kept. Must not call anybody.

use domain::forwarding::TargetPlace;
use serde::{Deserialize, Serialize};

use super::Probed;
use super::says::{allows, contradictions, unmeasured};
use crate::foreign::facts::{Facts, Strategy};

/// A digest of how a service is called that its table describes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallsDigest(String);

impl CallsDigest {
    /// Of the calls, as one text.
    pub(crate) fn of(calls: &str) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("tallyonce 2026 probed calls");
        hasher.update(calls.as_bytes());
        Self(hasher.finalize().to_hex()[..32].to_owned())
    }
}

/// What a probe says something of: of nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The product, its address and its own project.
    pub place: TargetPlace,
    /// How it is called, where the table says that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<CallsDigest>,
}

impl Subject {
    /// How it differs from another one, in words.
    fn unlike(&self, other: &Self) -> String {
        if self.place == other.place {
            "is of other calls than the table has now".to_owned()
        } else {
            format!("is of {}, and the target is {}", self.place, other.place)
        }
    }
}

/// Whether a strategy may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leave {
    /// It may.
    Granted,
    /// It may, and people are told.
    Warned(String),
    /// It may not.
    Refused(String),
}

/// Whether a strategy may be used on a target, given the last probe, if there is one.
///
/// A probe that contradicts what the adapter believes now refuses everything. The quiet time among the facts is the target's:
/// a longer one is the cure where requests are carried out late. `replace` needs a whole probe of this very target that
/// confirms it: without one it warns, and under `strict` it is refused. What was seen at another target blocks nothing here,
/// and confirms nothing.
pub fn leave(strategy: Strategy, probed: Option<&Probed>, subject: &Subject, facts: &Facts, strict: bool) -> Leave {
    let unconfirmed = |why: String| match strategy {
        Strategy::Replace if strict => Leave::Refused(why),
        Strategy::Replace => Leave::Warned(why),
        Strategy::Idempotent | Strategy::Reconcile | Strategy::Container | Strategy::AtMostOnce => Leave::Granted,
    };
    let Some(probed) = probed else {
        return unconfirmed(format!("no probe has confirmed {strategy} on this target: run `tallyonce probe`"));
    };
    let at = &probed.at;
    if probed.kind != facts.kind {
        return Leave::Refused(format!("the probe is of {}, and the target is {}", probed.kind, facts.kind));
    }
    if let Some(of) = probed.of.as_ref().filter(|of| *of != subject) {
        let why = format!("the probe of {at} {}: run `tallyonce probe` again", of.unlike(subject));
        // Whoever keeps a probe relies on it, also where none is needed.
        return match unconfirmed(why.clone()) {
            Leave::Granted => Leave::Warned(why),
            other => other,
        };
    }
    // Not those of its time: the adapter may believe something else by now.
    let contradictions = contradictions(&probed.measured, facts);
    if !contradictions.is_empty() {
        let what = contradictions.join("; ");
        return Leave::Refused(format!("the probe of {at} contradicts what is known of the product: {what}"));
    }
    if !allows(&probed.measured, facts).contains(&strategy) {
        return Leave::Refused(format!("what the probe of {at} saw does not support {strategy}"));
    }
    if probed.of.is_none() {
        return unconfirmed(format!("the probe of {at} doesn't say of which place it is: run `tallyonce probe` again"));
    }
    match unmeasured(&probed.measured, facts) {
        None => Leave::Granted,
        Some(why) => unconfirmed(format!(
            "the probe of {at} does not confirm {strategy}: {why}; run `tallyonce probe` again, with a longer --deadline"
        )),
    }
}

/// True if a probe that is kept has found a contradiction that a later one of the same target, which isn't whole, may just not
/// have come to: then the earlier one stays.
pub fn outweighs(kept: &Probed, later: &Probed, facts: &Facts) -> bool {
    // An earlier version didn't say of which place a probe is.
    let same = kept.kind == later.kind && (kept.of.is_none() || kept.of == later.of);
    same && unmeasured(&later.measured, facts).is_some() && !contradictions(&kept.measured, facts).is_empty()
}
