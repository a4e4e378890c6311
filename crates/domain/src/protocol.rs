//! The decision on a delivery: the table of the design's section 6, as a pure function.
//!
//! An engine supplies what it knows of the key, read in the same transaction that will carry the decision out; the
//! decision is made here and nowhere else. Must not know SQL, HTTP or a clock.
//!
//! One row says more than the design's table. A content that equals an *older* revision is a replay of that revision,
//! unless the delivery is plainly a new execution: a higher known ordinal, or, under an explicit `revise`, other times
//! or texts from a client process not seen before. Without this, "fail, pass, fail" (situations S9 and S14) would
//! swallow the third run as a repeat of the first.

mod known;

use std::cmp::Ordering;

use crate::compare::Comparison;
use crate::id::{Commit, Executor, Incarnation, Ordinal as Attempt};
use crate::mutant;
use crate::push::{OnDifference, Place, Sender};
use crate::verdict::{RevisionKind, View};

pub use known::{
    Decision, DifferenceClass, DifferenceSummary, Doubt, FieldDifference, Known, KnownRevision, Offer, Recorded,
    Refusal,
};

fn refuse<E>(refusal: Refusal) -> Result<Decision, E> {
    Ok(Decision::Refuse { refusal, contest: false })
}

/// Decides on one delivery. `known` is `None` without a record of the key.
pub fn decide<R: Recorded>(
    offer: &Offer<'_>,
    known: Option<&Known>,
    tombstoned: bool,
    recorded: &mut R,
) -> Result<Decision, R::Error> {
    if tombstoned {
        return refuse(Refusal::Tombstoned);
    }
    let Some(known) = known else {
        return first_delivery(offer, recorded);
    };
    let fields = differing_fields(offer, &known.place, known.commit.as_ref());
    if !fields.is_empty() {
        return refuse(Refusal::KeyReused(fields));
    }
    if let Some(refusal) = colliding_executor(offer.sender, &known.executors, known.contested) {
        return Ok(Decision::Refuse { refusal, contest: true });
    }
    if mutant!(M9)
        && let Some(counting) = known.counting()
    {
        return Ok(Decision::Replay { revision: counting.number, class: DifferenceClass::None, doubts: Vec::new() });
    }
    if let Some(decision) = same_content(offer, known) {
        return Ok(decision);
    }
    let Some(comparison) = recorded.compare()? else { return Ok(Decision::Undecided) };
    if let Some(refusal) = colliding_items(&comparison, recorded)? {
        return refuse(refusal);
    }
    if let Some(decision) = equals_what_counts(offer, known, &comparison) {
        return Ok(decision);
    }
    Ok(difference(offer, known, &comparison))
}

fn first_delivery<R: Recorded>(offer: &Offer<'_>, recorded: &mut R) -> Result<Decision, R::Error> {
    if let Some(offered) = offer.place.shard.and_then(crate::ShardRef::total)
        && let Some(known) = recorded.shard_total()?
        && known != offered
    {
        return refuse(Refusal::ShardPlanChanged { known, offered });
    }
    Ok(Decision::Record)
}

/// The fields in which an offer's place differs from that of what is recorded or staged under the key. The commit counts
/// where both give one.
pub fn differing_fields(offer: &Offer<'_>, place: &Place, commit: Option<&Commit>) -> Vec<FieldDifference> {
    let mut fields = Vec::new();
    if mutant!(M10) {
        return fields;
    }
    let mut compare = |field: &str, recorded: String, offered: String| {
        if recorded != offered {
            fields.push(FieldDifference { field: field.to_owned(), recorded, offered });
        }
    };
    let text = |value: Option<String>| value.unwrap_or_else(|| "(none)".to_owned());
    let (old, new) = (place, offer.place);
    compare("cycle", old.cycle.to_string(), new.cycle.to_string());
    compare("round", old.round.to_string(), new.round.to_string());
    compare("job", text(old.job.as_ref().map(ToString::to_string)), text(new.job.as_ref().map(ToString::to_string)));
    compare("shard", text(old.shard.map(|s| s.to_string())), text(new.shard.map(|s| s.to_string())));
    compare("variant", old.variant.to_string(), new.variant.to_string());
    if let (Some(old), Some(new)) = (commit, offer.commit) {
        compare("commit", old.to_string(), new.to_string());
    }
    fields
}

/// Whether somebody who staged what is committed now counts as one who delivered under the key, beside those accepted so
/// far. The decision judged only the sender of the highest attempt.
pub fn may_accept(sender: &Sender, accepted: &[(Option<Attempt>, Executor)], contested: bool) -> bool {
    colliding_executor(sender, accepted, contested).is_none()
}

/// Two executions at one attempt are two legs that share a key, even if every outcome is equal; once that was seen,
/// nobody but those already accepted may use the key.
pub(crate) fn colliding_executor(
    sender: &Sender,
    accepted: &[(Option<Attempt>, Executor)],
    contested: bool,
) -> Option<Refusal> {
    let is_known = || sender.executor.as_ref().is_some_and(|e| accepted.iter().any(|(_, known)| known == e));
    if contested && !is_known() {
        let recorded = accepted.iter().map(|(_, executor)| executor.clone()).collect();
        return Some(Refusal::CollidingExecutor { recorded, ordinal: None });
    }
    let (ordinal, executor) = (sender.ordinal?, sender.executor.as_ref()?);
    let at_this_attempt: Vec<Executor> =
        accepted.iter().filter(|(o, _)| *o == Some(ordinal)).map(|(_, e)| e.clone()).collect();
    let collides = !at_this_attempt.is_empty() && !at_this_attempt.contains(executor);
    collides.then_some(Refusal::CollidingExecutor { recorded: at_this_attempt, ordinal: Some(ordinal) })
}

fn same_content(offer: &Offer<'_>, known: &Known) -> Option<Decision> {
    let content = &offer.content;
    let remembered = if mutant!(M13) { 1 } else { usize::MAX };
    let matches = |class: DifferenceClass, hit: &dyn Fn(&KnownRevision) -> bool| {
        let recorded = || known.revisions.iter().rev().take(remembered);
        let hits = || recorded().filter(|r| hit(r) && !matches!(r.kind, RevisionKind::Promoted { .. }));
        // A revision stands for the attempts up to its ordinal: the lowest one not below the offered is that attempt's.
        let not_below = |r: &&KnownRevision| offer.sender.ordinal.is_some() && r.sender.ordinal >= offer.sender.ordinal;
        let of_attempt = hits().filter(not_below).min_by_key(|r| r.sender.ordinal);
        of_attempt.or_else(|| hits().next()).map(|revision| (revision, class))
    };
    let (revision, class) =
        matches(DifferenceClass::None, &|r| r.content == content.content || known.same_body == Some(r.number))
            .or_else(|| matches(DifferenceClass::Cosmetic, &|r| r.outcomes == content.outcomes))?;
    let counting = known.counting()?;
    if revision.number != counting.number && is_new_execution(offer, known, revision, class) {
        return None;
    }
    Some(Decision::Replay { revision: revision.number, class, doubts: doubts(offer, revision, known) })
}

/// A content that equals a revision which is not the counting one: was it executed again, or is it only late?
fn is_new_execution(offer: &Offer<'_>, known: &Known, equal: &KnownRevision, class: DifferenceClass) -> bool {
    let Some(counting) = known.counting() else { return false };
    let order = offer.sender.ordinal.zip(counting.sender.ordinal).map(|(new, old)| new.cmp(&old));
    if order == Some(Ordering::Greater) {
        return offer.sender.ordinal != equal.sender.ordinal;
    }
    let another_content = class == DifferenceClass::Cosmetic || equal.kind == RevisionKind::Kept;
    offer.on_difference == OnDifference::Revise
        && order != Some(Ordering::Less)
        && another_content
        && offer.sender.incarnation.is_some()
        && is_new_wish(offer.sender.incarnation, known)
}

fn doubts(offer: &Offer<'_>, revision: &KnownRevision, known: &Known) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let other_executor = offer
        .sender
        .executor
        .as_ref()
        .is_some_and(|e| !known.executors.is_empty() && known.executors.iter().all(|(_, recorded)| recorded != e));
    if offer.sender.ordinal.is_none() && other_executor {
        doubts.push(Doubt::OtherExecutorUnknownAttempt);
    }
    if !offer.files.is_empty() && !revision.files.is_empty() && offer.files != revision.files {
        doubts.push(Doubt::OtherFiles);
    }
    doubts
}

/// Other work under a known key: fewer than half of min(offered, recorded) offered items are known in the job.
fn colliding_items<R: Recorded>(comparison: &Comparison, recorded: &mut R) -> Result<Option<Refusal>, R::Error> {
    let Comparison { offered, recorded: held, .. } = *comparison;
    if offered == 0 || held == 0 {
        return Ok(None);
    }
    // Items recorded under the key are known in its job: mostly that says enough.
    let few = |known: u64| 2 * known < offered.min(held);
    if !few(comparison.shared()) {
        return Ok(None);
    }
    let known = recorded.known_in_job()?;
    Ok(few(known).then(|| Refusal::CollidingItems {
        offered,
        recorded: held,
        known,
        offered_samples: comparison.offered_samples.clone(),
        recorded_samples: comparison.recorded_samples.clone(),
    }))
}

/// The offered content says just what counts already: a replay of the counting revision.
fn equals_what_counts(offer: &Offer<'_>, known: &Known, comparison: &Comparison) -> Option<Decision> {
    let counting = known.counting().filter(|_| comparison.is_equal())?;
    let class = DifferenceClass::Cosmetic;
    Some(Decision::Replay { revision: counting.number, class, doubts: doubts(offer, counting, known) })
}

fn difference(offer: &Offer<'_>, known: &Known, comparison: &Comparison) -> Decision {
    let difference = comparison.summary();
    if mutant!(M40)
        && let Some(counting) = known.counting()
    {
        return Decision::Replay { revision: counting.number, class: DifferenceClass::None, doubts: Vec::new() };
    }
    match resolve(offer, known) {
        Resolution::Fail => Decision::Refuse { refusal: Refusal::Differs(difference), contest: false },
        Resolution::Overlay(kind) => Decision::Overlay { kind, difference, counts: comparison.counts(kind) },
    }
}

enum Resolution {
    Overlay(RevisionKind),
    Fail,
}

/// `on-difference`, as the design's section 6 says it.
fn resolve(offer: &Offer<'_>, known: &Known) -> Resolution {
    let counting = known.counting();
    let ordinals = (offer.sender.ordinal, counting.and_then(|c| c.sender.ordinal));
    let rises = matches!(ordinals, (Some(new), Some(old)) if new > old);
    match offer.on_difference {
        OnDifference::Fail => Resolution::Fail,
        OnDifference::Keep => Resolution::Overlay(RevisionKind::Kept),
        OnDifference::Auto if rises => Resolution::Overlay(RevisionKind::Revised),
        OnDifference::Auto if offer.outside_ci => Resolution::Fail,
        OnDifference::Auto => Resolution::Overlay(RevisionKind::Kept),
        OnDifference::Revise if may_revise(offer, known, counting) => Resolution::Overlay(RevisionKind::Revised),
        OnDifference::Revise => Resolution::Overlay(RevisionKind::Kept),
    }
}

/// A higher, an unknown, or an equal ordinal from the same executor with a new incarnation may change what counts; a
/// lower one never.
fn may_revise(offer: &Offer<'_>, known: &Known, counting: Option<&KnownRevision>) -> bool {
    let Some(counting) = counting else { return true };
    match (offer.sender.ordinal, counting.sender.ordinal) {
        (Some(new), Some(old)) if new > old => true,
        (Some(new), Some(old)) if new < old => false,
        (Some(_), Some(_)) => {
            offer.sender.executor == counting.sender.executor && is_new_wish(offer.sender.incarnation, known)
        }
        _ => is_new_wish(offer.sender.incarnation, known),
    }
}

/// An incarnation that delivered before is a delayed message. Without one (plain HTTP clients) nothing tells.
fn is_new_wish(incarnation: Option<Incarnation>, known: &Known) -> bool {
    incarnation.is_none_or(|i| known.revisions.iter().all(|r| r.sender.incarnation != Some(i)))
}

/// What one revision changed in what the push counts.
pub fn counted_otherwise(before: &View, after: &View) -> bool {
    before.counts() != after.counts()
        || before.hashes != after.hashes
        || before.verdicts.iter().zip(&after.verdicts).any(|(a, b)| a.light != b.light)
}
