//! The decision on a delivery: the table of the design's section 6, as a pure function.
//!
//! An engine supplies what it knows of the key, read in the same transaction that will carry the decision out; the
//! decision is made here and nowhere else. Must not know SQL, HTTP or a clock.
//!
//! One row says more than the design's table. A content that equals an *older* revision is a replay of that revision,
//! unless the delivery is plainly a new execution: a higher known ordinal, or, under an explicit `revise`, other times
//! or texts from a client process not seen before. Without this, "fail, pass, fail" (situations S9 and S14) would
//! swallow the third run as a repeat of the first.

use std::cmp::Ordering;

use crate::digest::Digest;
use crate::id::{Commit, Executor, Incarnation, Ordinal};
use crate::item::ItemHash;
use crate::limits;
use crate::push::{OnDifference, Place, Push, Sender};
use crate::verdict::{Change, Light, RevisionKind, View};

/// How far an offered content is from what it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DifferenceClass {
    /// Equal content.
    None,
    /// Equal items and statuses; times or texts differ.
    Cosmetic,
    /// Equal items, other statuses.
    Semantic,
    /// Other items.
    Structural,
}

impl DifferenceClass {
    /// The word in headers and JSON.
    pub fn word(self) -> &'static str {
        match self {
            DifferenceClass::None => "none",
            DifferenceClass::Cosmetic => "cosmetic",
            DifferenceClass::Semantic => "semantic",
            DifferenceClass::Structural => "structural",
        }
    }
}

/// One revision that is recorded under the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownRevision {
    /// From 1, without gaps.
    pub number: u32,
    /// How it came to be.
    pub kind: RevisionKind,
    /// Who delivered it first; its ordinal is the highest that this content was delivered with since.
    pub sender: Sender,
    /// Its content; a promotion's is that of the promoted revision.
    pub content: Digest,
    /// Its items and statuses.
    pub outcomes: Digest,
    /// The files it was read from.
    pub files: Vec<String>,
}

impl KnownRevision {
    /// True if a replay says that a later attempt came to the same: the engine then stores its ordinal and scope with the
    /// revision, or an attempt between the two that is delivered last would overrule the later one.
    pub fn is_confirmed_later(&self, sender: &Sender) -> bool {
        sender.ordinal > self.sender.ordinal
    }
}

/// What an engine knows of a key, all read in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Where the push belongs.
    pub place: Place,
    /// The commit that it was recorded with.
    pub commit: Option<Commit>,
    /// True once a second leg was refused under this key.
    pub contested: bool,
    /// Ordinal and executor of every accepted delivery, each pair once.
    pub executors: Vec<(Option<Ordinal>, Executor)>,
    /// All revisions, by number.
    pub revisions: Vec<KnownRevision>,
    /// The revision that an earlier delivery of the very same body bytes was answered with.
    pub same_body: Option<u32>,
}

impl Known {
    /// The revision whose verdicts count last: the latest that is not merely kept.
    pub fn counting(&self) -> Option<&KnownRevision> {
        self.revisions.iter().rev().find(|r| r.kind != RevisionKind::Kept)
    }

    /// The sender that a promotion is stored with: the highest ordinal recorded, so that no late delivery outranks a
    /// person's decision and every later attempt does.
    pub fn promotion_sender(&self) -> Sender {
        let highest = self.revisions.iter().max_by_key(|r| r.sender.ordinal);
        Sender {
            ordinal: highest.and_then(|r| r.sender.ordinal),
            ordinal_scope: highest.map(|r| r.sender.ordinal_scope).unwrap_or_default(),
            executor: None,
            incarnation: None,
        }
    }
}

/// Look-ups that cost more than a row, asked for only when the decision needs them.
pub trait Recorded {
    /// What a look-up can fail with.
    type Error;

    /// The items recorded under the key, as they count now.
    fn view(&mut self) -> Result<View, Self::Error>;

    /// How many of these items (rising hashes) any push of the same job in this round holds.
    fn known_in_job(&mut self, offered: &[ItemHash]) -> Result<usize, Self::Error>;

    /// The shard total known for this round, job and variant.
    fn shard_total(&mut self) -> Result<Option<u32>, Self::Error>;
}

/// A field of the push's place that differs under one key.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FieldDifference {
    /// Its name.
    pub field: String,
    /// What is recorded.
    pub recorded: String,
    /// What was offered.
    pub offered: String,
}

/// Why a delivery is refused for good. Nothing of it is recorded but, for a collision, that the key is contested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The key names a push in another place.
    KeyReused(Vec<FieldDifference>),
    /// Another execution of the job has delivered under this key at the same attempt.
    CollidingExecutor {
        /// Who delivered what is recorded.
        recorded: Vec<Executor>,
        /// The attempt number of both; `None` if the key was contested before.
        ordinal: Option<Ordinal>,
    },
    /// The offered items are other work than the recorded ones.
    CollidingItems {
        /// Items offered.
        offered: usize,
        /// Items recorded under the key.
        recorded: usize,
        /// Offered items that the round knows under this job.
        known: usize,
        /// Some offered items that are not recorded under the key.
        offered_samples: Vec<ItemHash>,
        /// Some recorded items that are not offered.
        recorded_samples: Vec<ItemHash>,
    },
    /// The round, job and variant were planned with another number of shards.
    ShardPlanChanged {
        /// The total that is known.
        known: u32,
        /// The total offered.
        offered: u32,
    },
    /// Other outcomes under a known key, and the policy is to fail.
    Differs(DifferenceSummary),
    /// The data of this push was deleted; a late retry never writes again.
    Tombstoned,
}

/// A difference in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DifferenceSummary {
    /// How far apart.
    pub class: DifferenceClass,
    /// Items in both with another status.
    pub changed: u64,
    /// Items only in the offered content.
    pub added: u64,
    /// Items only in what is recorded.
    pub not_offered: u64,
}

/// Something that the sender should hear although the delivery was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Doubt {
    /// The same content from another executor, and nothing says which attempt it is.
    OtherExecutorUnknownAttempt,
    /// The same content from files of other names.
    OtherFiles,
}

/// What an engine has to do, in the transaction in which it read [`Known`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// Write the key, outcomes, counts and receipt.
    Record,
    /// Answer with the stored receipt of this revision; log one more delivery.
    Replay {
        /// Whose receipt.
        revision: u32,
        /// How the offered content differs from that revision's.
        class: DifferenceClass,
        /// What the sender should hear.
        doubts: Vec<Doubt>,
    },
    /// Write one more revision of this kind.
    Overlay {
        /// [`RevisionKind::Revised`] or [`RevisionKind::Kept`].
        kind: RevisionKind,
        /// How the offered content differs from what counted before.
        difference: DifferenceSummary,
        /// What counted before.
        before: View,
    },
    /// Record nothing of it.
    Refuse {
        /// Why.
        refusal: Refusal,
        /// True if the key is contested from now on: to be stored.
        contest: bool,
    },
}

fn refuse<E>(refusal: Refusal) -> Result<Decision, E> {
    Ok(Decision::Refuse { refusal, contest: false })
}

/// Decides on one delivery of `push`. `known` is `None` without a record of the key.
pub fn decide<R: Recorded>(
    push: &Push,
    known: Option<&Known>,
    tombstoned: bool,
    recorded: &mut R,
) -> Result<Decision, R::Error> {
    if tombstoned {
        return refuse(Refusal::Tombstoned);
    }
    let Some(known) = known else {
        return first_delivery(push, recorded);
    };
    let fields = differing_fields(push, known);
    if !fields.is_empty() {
        return refuse(Refusal::KeyReused(fields));
    }
    if let Some(refusal) = colliding_executor(&push.sender, known) {
        return Ok(Decision::Refuse { refusal, contest: true });
    }
    if let Some(decision) = same_content(push, known) {
        return Ok(decision);
    }
    let view = recorded.view()?;
    if let Some(refusal) = colliding_items(push.outcomes.hashes(), &view, recorded)? {
        return refuse(refusal);
    }
    let lights: Vec<Light> = push.outcomes.as_slice().iter().map(Light::of).collect();
    if let Some(decision) = equals_view(push, known, &view, &lights) {
        return Ok(decision);
    }
    Ok(difference(push, known, view, &lights))
}

fn first_delivery<R: Recorded>(push: &Push, recorded: &mut R) -> Result<Decision, R::Error> {
    if let Some(offered) = push.place.shard.and_then(crate::ShardRef::total)
        && let Some(known) = recorded.shard_total()?
        && known != offered
    {
        return refuse(Refusal::ShardPlanChanged { known, offered });
    }
    Ok(Decision::Record)
}

fn differing_fields(push: &Push, known: &Known) -> Vec<FieldDifference> {
    let mut fields = Vec::new();
    let mut compare = |field: &str, recorded: String, offered: String| {
        if recorded != offered {
            fields.push(FieldDifference { field: field.to_owned(), recorded, offered });
        }
    };
    let text = |value: Option<String>| value.unwrap_or_else(|| "(none)".to_owned());
    let (old, new) = (&known.place, &push.place);
    compare("cycle", old.cycle.to_string(), new.cycle.to_string());
    compare("round", old.round.to_string(), new.round.to_string());
    compare("job", text(old.job.as_ref().map(ToString::to_string)), text(new.job.as_ref().map(ToString::to_string)));
    compare("shard", text(old.shard.map(|s| s.to_string())), text(new.shard.map(|s| s.to_string())));
    compare("variant", old.variant.to_string(), new.variant.to_string());
    if let (Some(old), Some(new)) = (&known.commit, &push.origin.commit) {
        compare("commit", old.to_string(), new.to_string());
    }
    fields
}

/// Two executions at one attempt are two legs that share a key, even if every outcome is equal; once that was seen,
/// nobody but those already accepted may use the key.
fn colliding_executor(sender: &Sender, known: &Known) -> Option<Refusal> {
    let executors = || known.executors.iter().map(|(_, executor)| executor.clone()).collect::<Vec<_>>();
    if known.contested {
        let accepted = sender.executor.as_ref().is_some_and(|e| known.executors.iter().any(|(_, k)| k == e));
        return (!accepted).then(|| Refusal::CollidingExecutor { recorded: executors(), ordinal: None });
    }
    let (ordinal, executor) = (sender.ordinal?, sender.executor.as_ref()?);
    let at_this_attempt: Vec<Executor> =
        known.executors.iter().filter(|(o, _)| *o == Some(ordinal)).map(|(_, e)| e.clone()).collect();
    let collides = !at_this_attempt.is_empty() && !at_this_attempt.contains(executor);
    collides.then_some(Refusal::CollidingExecutor { recorded: at_this_attempt, ordinal: Some(ordinal) })
}

fn same_content(push: &Push, known: &Known) -> Option<Decision> {
    let content = &push.content;
    let matches = |class: DifferenceClass, hit: &dyn Fn(&KnownRevision) -> bool| {
        let hits =
            || known.revisions.iter().rev().filter(|r| hit(r) && !matches!(r.kind, RevisionKind::Promoted { .. }));
        // A revision stands for the attempts up to its ordinal: the lowest one not below the offered is that attempt's.
        let not_below = |r: &&KnownRevision| push.sender.ordinal.is_some() && r.sender.ordinal >= push.sender.ordinal;
        let of_attempt = hits().filter(not_below).min_by_key(|r| r.sender.ordinal);
        of_attempt.or_else(|| hits().next()).map(|revision| (revision, class))
    };
    let (revision, class) =
        matches(DifferenceClass::None, &|r| r.content == content.content || known.same_body == Some(r.number))
            .or_else(|| matches(DifferenceClass::Cosmetic, &|r| r.outcomes == content.outcomes))?;
    let counting = known.counting()?;
    if revision.number != counting.number && is_new_execution(push, known, revision, class) {
        return None;
    }
    Some(Decision::Replay { revision: revision.number, class, doubts: doubts(push, revision, known) })
}

/// A content that equals a revision which is not the counting one: was it executed again, or is it only late?
fn is_new_execution(push: &Push, known: &Known, equal: &KnownRevision, class: DifferenceClass) -> bool {
    let Some(counting) = known.counting() else { return false };
    let order = push.sender.ordinal.zip(counting.sender.ordinal).map(|(new, old)| new.cmp(&old));
    if order == Some(Ordering::Greater) {
        return push.sender.ordinal != equal.sender.ordinal;
    }
    let another_content = class == DifferenceClass::Cosmetic || equal.kind == RevisionKind::Kept;
    push.on_difference == OnDifference::Revise
        && order != Some(Ordering::Less)
        && another_content
        && push.sender.incarnation.is_some()
        && is_new_wish(push.sender.incarnation, known)
}

fn doubts(push: &Push, revision: &KnownRevision, known: &Known) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let other_executor = push
        .sender
        .executor
        .as_ref()
        .is_some_and(|e| !known.executors.is_empty() && known.executors.iter().all(|(_, recorded)| recorded != e));
    if push.sender.ordinal.is_none() && other_executor {
        doubts.push(Doubt::OtherExecutorUnknownAttempt);
    }
    if !push.files.is_empty() && !revision.files.is_empty() && push.files != revision.files {
        doubts.push(Doubt::OtherFiles);
    }
    doubts
}

/// Other work under a known key: fewer than half of min(offered, recorded) offered items are known in the job.
fn colliding_items<R: Recorded>(
    offered: &[ItemHash],
    view: &View,
    recorded: &mut R,
) -> Result<Option<Refusal>, R::Error> {
    if offered.is_empty() || view.hashes.is_empty() {
        return Ok(None);
    }
    let known = recorded.known_in_job(offered)?;
    if 2 * known >= offered.len().min(view.hashes.len()) {
        return Ok(None);
    }
    let absent = |from: &[ItemHash], of: &[ItemHash]| {
        from.iter().filter(|h| of.binary_search(h).is_err()).take(limits::SAMPLES_MAX).copied().collect()
    };
    Ok(Some(Refusal::CollidingItems {
        offered: offered.len(),
        recorded: view.hashes.len(),
        known,
        offered_samples: absent(offered, &view.hashes),
        recorded_samples: absent(&view.hashes, offered),
    }))
}

/// The offered content says just what counts already: a replay of the counting revision.
fn equals_view(push: &Push, known: &Known, view: &View, lights: &[Light]) -> Option<Decision> {
    let equal =
        view.hashes == push.outcomes.hashes() && view.verdicts.iter().map(|v| v.light).eq(lights.iter().copied());
    let counting = known.counting().filter(|_| equal)?;
    let class = DifferenceClass::Cosmetic;
    Some(Decision::Replay { revision: counting.number, class, doubts: doubts(push, counting, known) })
}

fn difference(push: &Push, known: &Known, before: View, lights: &[Light]) -> Decision {
    let difference = summarise(&before, push.outcomes.hashes(), lights);
    match resolve(push, known) {
        Resolution::Fail => Decision::Refuse { refusal: Refusal::Differs(difference), contest: false },
        Resolution::Overlay(kind) => Decision::Overlay { kind, difference, before },
    }
}

/// The numbers of a difference. Without one in items or statuses it is semantic: a flaky pass differs from a plain one.
pub fn summarise(before: &View, hashes: &[ItemHash], lights: &[Light]) -> DifferenceSummary {
    let mut summary = DifferenceSummary { class: DifferenceClass::Semantic, changed: 0, added: 0, not_offered: 0 };
    before.changes(hashes, lights, |_, change| match change {
        Change::Changed { .. } => summary.changed += 1,
        Change::Added(_) => summary.added += 1,
        Change::NotOffered(_) => summary.not_offered += 1,
    });
    if summary.added + summary.not_offered > 0 {
        summary.class = DifferenceClass::Structural;
    }
    summary
}

enum Resolution {
    Overlay(RevisionKind),
    Fail,
}

/// `on-difference`, as the design's section 6 says it.
fn resolve(push: &Push, known: &Known) -> Resolution {
    let counting = known.counting();
    let ordinals = (push.sender.ordinal, counting.and_then(|c| c.sender.ordinal));
    let rises = matches!(ordinals, (Some(new), Some(old)) if new > old);
    match push.on_difference {
        OnDifference::Fail => Resolution::Fail,
        OnDifference::Keep => Resolution::Overlay(RevisionKind::Kept),
        OnDifference::Auto if rises => Resolution::Overlay(RevisionKind::Revised),
        OnDifference::Auto if push.outside_ci => Resolution::Fail,
        OnDifference::Auto => Resolution::Overlay(RevisionKind::Kept),
        OnDifference::Revise if may_revise(push, known, counting) => Resolution::Overlay(RevisionKind::Revised),
        OnDifference::Revise => Resolution::Overlay(RevisionKind::Kept),
    }
}

/// A higher, an unknown, or an equal ordinal from the same executor with a new incarnation may change what counts; a
/// lower one never.
fn may_revise(push: &Push, known: &Known, counting: Option<&KnownRevision>) -> bool {
    let Some(counting) = counting else { return true };
    match (push.sender.ordinal, counting.sender.ordinal) {
        (Some(new), Some(old)) if new > old => true,
        (Some(new), Some(old)) if new < old => false,
        (Some(_), Some(_)) => {
            push.sender.executor == counting.sender.executor && is_new_wish(push.sender.incarnation, known)
        }
        _ => is_new_wish(push.sender.incarnation, known),
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
