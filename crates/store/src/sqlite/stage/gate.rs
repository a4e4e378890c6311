//! What a push in one request meets that is to be recorded: the open epoch under its key, if there is one.
//! Must not decide.

use domain::protocol::{Refusal, may_accept};
use domain::staging::{self, Begin, BeginDecision, Ending, Fate, OneShotDecision};

use super::super::connect::broken;
use super::super::delivered::Delivered;
use super::super::known::{Standing, executors};
use super::super::points::Tx;
use super::super::rows::push_by_uid;
use super::super::write::{contest, executor};
use super::rows::{self, StageRow};
use super::write;
use crate::{Fence, StoreError};

/// Whether a push in one request may be recorded.
pub(in crate::sqlite) enum Gate {
    /// Yes, and so ends this open epoch.
    Open(Option<(StageRow, Ending)>),
    /// Another delivery is staging.
    Fenced(Fence),
    /// Two legs share the key.
    Refused(Refusal),
    /// This client's own epoch is committed: the receipt of that revision.
    Replay(u32),
}

/// Asks the domain.
pub(in crate::sqlite) fn one_shot(
    tx: Tx<'_>,
    of: &Delivered<'_>,
    standing: &Standing,
    now_ms: u64,
) -> Result<Gate, StoreError> {
    let Some(project) = standing.project else { return Ok(Gate::Open(None)) };
    let Some(latest) = rows::latest(&tx, project, of.uid())? else { return Ok(Gate::Open(None)) };
    let known = rows::known(&tx, &latest, now_ms)?;
    let bound = rows::bound(&tx, project, of.uid(), of.sender.incarnation)?;
    // No digest of a manifest is that of a content, so it resumes an epoch by its content alone.
    let content = of.content.content;
    let fields = rows::differing_fields(&tx, &latest, of)?;
    let offer = Begin { manifest: content, content, sender: of.sender.clone(), fields };
    Ok(match staging::one_shot(&offer, Some(&known), bound) {
        OneShotDecision::Record { ends } => Gate::Open(ends.map(|(_, ending)| (latest, ending))),
        OneShotDecision::Wait(BeginDecision::InProgress { epoch }) => Gate::Fenced(Fence::InProgress { epoch }),
        OneShotDecision::Wait(BeginDecision::Stale { epoch }) => Gate::Fenced(Fence::Stale { epoch }),
        OneShotDecision::Wait(BeginDecision::Superseded { bound }) => {
            let recorded = rows::recorded(&tx, project, of.uid())?;
            Gate::Fenced(Fence::Superseded { epoch: bound, recorded })
        }
        OneShotDecision::Wait(BeginDecision::Replay { revision }) => Gate::Replay(revision),
        OneShotDecision::Wait(BeginDecision::Collides(refusal)) => {
            write::contest(tx, latest.id)?;
            Gate::Refused(refusal)
        }
        OneShotDecision::Wait(BeginDecision::Reused(refusal)) => Gate::Refused(refusal),
        OneShotDecision::Wait(BeginDecision::Open { .. } | BeginDecision::Resume { .. }) => {
            return Err(broken("a push in one request was told to stage"));
        }
    })
}

/// Ends the epoch that a push in one request ends, which is recorded as `revision`.
pub(in crate::sqlite) fn end(tx: Tx<'_>, stage: &StageRow, ending: Ending, revision: u32) -> Result<(), StoreError> {
    match ending {
        Ending::Superseded => write::end(tx, stage.id, Fate::Superseded),
        Ending::Committed => commit(tx, stage, revision),
    }
}

/// The epoch is committed: whoever delivered it is accepted under the key, unless another leg was accepted meanwhile, and
/// whom it refused stays refused.
pub(super) fn commit(tx: Tx<'_>, stage: &StageRow, revision: u32) -> Result<(), StoreError> {
    let push = push_by_uid(&tx, stage.project, stage.uid)?.ok_or_else(|| broken("a commit without its push"))?;
    let mut accepted = executors(&tx, push.project, push.id)?;
    for sender in rows::senders(&tx, stage)? {
        if may_accept(&sender, &accepted, push.contested || stage.contested) {
            executor(tx, (push.project, push.id), &sender)?;
            accepted.extend(sender.executor.map(|executor| (sender.ordinal, executor)));
        }
    }
    if stage.contested && !push.contested {
        contest(tx, push.id)?;
    }
    write::end(tx, stage.id, Fate::Committed { revision })
}
