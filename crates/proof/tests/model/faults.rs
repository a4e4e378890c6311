//! Decision functions with a fault in them, each otherwise the product's. Data for `mutants`; must not know configurations.

use domain::Digest;
use domain::protocol::DifferenceClass;
use domain::staging::{self, Begin, BeginDecision, CancelDecision, CommitDecision, Fate, KnownEpoch, PutDecision};
use domain::verdict::RevisionKind;

use crate::content::{self, Content, Offer, Tally, Why};
use crate::decisions::Bound;

fn as_open(epoch: &KnownEpoch) -> KnownEpoch {
    KnownEpoch { fate: Fate::Open, ..epoch.clone() }
}

// Begin.

pub(crate) fn two_open(offer: &Begin, latest: Option<&KnownEpoch>, bound: Bound) -> BeginDecision {
    match staging::begin(offer, latest, bound) {
        BeginDecision::Open { epoch, .. } => BeginDecision::Open { epoch, supersedes: None },
        other => other,
    }
}

pub(crate) fn supersedes_committed(offer: &Begin, latest: Option<&KnownEpoch>, bound: Bound) -> BeginDecision {
    match staging::begin(offer, latest, bound) {
        BeginDecision::Open { epoch, .. } => BeginDecision::Open { epoch, supersedes: latest.map(|l| l.epoch) },
        other => other,
    }
}

pub(crate) fn resumes_any_manifest(offer: &Begin, latest: Option<&KnownEpoch>, bound: Bound) -> BeginDecision {
    let same = latest.map(|latest| KnownEpoch { manifest: offer.manifest, ..latest.clone() });
    staging::begin(offer, same.as_ref(), bound)
}

pub(crate) fn forgets_bindings(offer: &Begin, latest: Option<&KnownEpoch>, _: Bound) -> BeginDecision {
    staging::begin(offer, latest, None)
}

pub(crate) fn lower_takes_over(offer: &Begin, latest: Option<&KnownEpoch>, bound: Bound) -> BeginDecision {
    match staging::begin(offer, latest, bound) {
        BeginDecision::Stale { epoch } => BeginDecision::Open { epoch: epoch.next(), supersedes: Some(epoch) },
        other => other,
    }
}

pub(crate) fn nobody_waits(offer: &Begin, latest: Option<&KnownEpoch>, bound: Bound) -> BeginDecision {
    let idle = latest.map(|latest| KnownEpoch { idle: true, ..latest.clone() });
    staging::begin(offer, idle.as_ref(), bound)
}

pub(crate) fn never_released(offer: &Begin, latest: Option<&KnownEpoch>, bound: Bound) -> BeginDecision {
    let claimed = latest.map(|latest| KnownEpoch { idle: false, ..latest.clone() });
    staging::begin(offer, claimed.as_ref(), bound)
}

pub(crate) fn the_dead_block(offer: &Begin, latest: Option<&KnownEpoch>, bound: Bound) -> BeginDecision {
    match latest {
        Some(latest) if !matches!(latest.fate, Fate::Open | Fate::Committed { .. }) => {
            BeginDecision::InProgress { epoch: latest.epoch }
        }
        _ => staging::begin(offer, latest, bound),
    }
}

pub(crate) fn resume_raises(offer: &Begin, latest: Option<&KnownEpoch>, bound: Bound) -> BeginDecision {
    match staging::begin(offer, latest, bound) {
        BeginDecision::Resume { epoch, .. } => BeginDecision::Open { epoch: epoch.next(), supersedes: Some(epoch) },
        other => other,
    }
}

pub(crate) fn any_executor(offer: &Begin, latest: Option<&KnownEpoch>, bound: Bound) -> BeginDecision {
    let open = latest.map(|latest| KnownEpoch { executors: Vec::new(), contested: false, ..latest.clone() });
    staging::begin(offer, open.as_ref(), bound)
}

// Content.

pub(crate) fn content_is_always_new(offer: &Offer) -> Content {
    match content::production(offer) {
        Content::Replay { .. } | Content::Refuse { why: Why::Differs, .. } => {
            Content::Stage { kind: RevisionKind::Kept, tally: Tally::default() }
        }
        other => other,
    }
}

pub(crate) fn content_is_never_new(offer: &Offer) -> Content {
    match offer.revisions.last() {
        Some(last) => Content::Replay { revision: last.number, class: DifferenceClass::None },
        None => content::production(offer),
    }
}

pub(crate) fn drops_the_difference(offer: &Offer) -> Content {
    match content::production(offer) {
        Content::Refuse { why: Why::Differs, .. } => Content::Replay { revision: 1, class: DifferenceClass::None },
        other => other,
    }
}

pub(crate) fn any_place(offer: &Offer) -> Content {
    let mut here = offer.clone();
    if let Some(first) = offer.revisions.first() {
        here.wish.place = first.place;
    }
    content::production(&here)
}

pub(crate) fn a_key_for_each_attempt(offer: &Offer) -> Content {
    let mut own = offer.clone();
    own.revisions.retain(|past| past.ordinal == offer.wish.ordinal);
    content::production(&own)
}

// Put.

pub(crate) fn any_bytes(epoch: &KnownEpoch, chunk: u32, promised: Option<Digest>, _: Digest) -> PutDecision {
    staging::put(epoch, chunk, promised, promised.unwrap_or(Digest([0; 32])))
}

pub(crate) fn put_into_the_dead(
    epoch: &KnownEpoch,
    chunk: u32,
    promised: Option<Digest>,
    offered: Digest,
) -> PutDecision {
    match staging::put(epoch, chunk, promised, offered) {
        PutDecision::Superseded | PutDecision::Gone => PutDecision::Store,
        other => other,
    }
}

// Commit.

pub(crate) fn delayed_success(epoch: &KnownEpoch) -> CommitDecision {
    match staging::commit(epoch) {
        CommitDecision::Superseded => CommitDecision::Replay { revision: 1 },
        other => other,
    }
}

pub(crate) fn commit_without_check(epoch: &KnownEpoch) -> CommitDecision {
    match epoch.fate {
        Fate::Superseded => staging::commit(&as_open(epoch)),
        _ => staging::commit(epoch),
    }
}

pub(crate) fn commit_short_of_one(epoch: &KnownEpoch) -> CommitDecision {
    match staging::commit(epoch) {
        CommitDecision::Incomplete { missing } if missing.len() == 1 => CommitDecision::Commit,
        other => other,
    }
}

pub(crate) fn refusal_not_final(epoch: &KnownEpoch) -> CommitDecision {
    match epoch.fate {
        Fate::Refused => staging::commit(&as_open(epoch)),
        _ => staging::commit(epoch),
    }
}

pub(crate) fn cancel_not_final(epoch: &KnownEpoch) -> CommitDecision {
    match epoch.fate {
        Fate::Cancelled => staging::commit(&as_open(epoch)),
        _ => staging::commit(epoch),
    }
}

pub(crate) fn commits_the_abandoned(epoch: &KnownEpoch) -> CommitDecision {
    match epoch.fate {
        Fate::Abandoned => staging::commit(&as_open(epoch)),
        _ => staging::commit(epoch),
    }
}

pub(crate) fn commits_twice(epoch: &KnownEpoch) -> CommitDecision {
    match epoch.fate {
        Fate::Committed { .. } => CommitDecision::Commit,
        _ => staging::commit(epoch),
    }
}

pub(crate) fn forgets_the_receipt(epoch: &KnownEpoch) -> CommitDecision {
    match staging::commit(epoch) {
        CommitDecision::Replay { .. } => CommitDecision::Gone,
        other => other,
    }
}

// Cancel and collection.

pub(crate) fn cancels_the_committed(epoch: &KnownEpoch) -> CancelDecision {
    match staging::cancel(epoch) {
        CancelDecision::Committed { .. } => CancelDecision::Cancel,
        other => other,
    }
}

pub(crate) fn denies_the_committed(epoch: &KnownEpoch) -> CancelDecision {
    match staging::cancel(epoch) {
        CancelDecision::Committed { .. } => CancelDecision::Ended,
        other => other,
    }
}

pub(crate) fn abandons_the_committed(epoch: &KnownEpoch, idle_before: bool) -> bool {
    staging::may_abandon(&as_open(epoch), idle_before) && matches!(epoch.fate, Fate::Open | Fate::Committed { .. })
}

pub(crate) fn believes_the_clock(epoch: &KnownEpoch, _: bool) -> bool {
    staging::may_abandon(epoch, true)
}
