//! Carries the decision on a delivery out in the memory engine: it is the same for a push in one request and for the
//! commit of a staged one. Must not decide.

use std::sync::Arc;

use domain::compare::listed;
use domain::listing::DeliveryReport;
use domain::protocol::{Decision, DifferenceClass, DifferenceSummary, Doubt, KnownRevision, Refusal};
use domain::receipt::{Difference, ItemHashText};
use domain::verdict::{Light, RevisionKind, View};
use domain::{ItemHash, ItemName, Outcomes, Place, Push, PushId, Sender};

use super::model::{Key, Recording, Revision, Round, World};
use crate::receipts::{self, Parts};
use crate::{Answer, Now, Recorded, RecordedAt, Refused, StoreError};

/// Something that can't be.
pub(super) fn broken(what: &str) -> StoreError {
    StoreError::Broken { what: what.to_owned() }
}

/// The push among those of all projects.
pub(super) fn key_of(push: &Push) -> Key {
    (push.place.project.clone(), PushId::of(&push.place.project, &push.key))
}

/// Outcomes with their verdicts.
pub(super) struct Content<'a> {
    outcomes: &'a Outcomes,
    pub(super) hashes: &'a [ItemHash],
    pub(super) lights: Vec<Light>,
}

impl<'a> Content<'a> {
    pub(super) fn of(push: &'a Push) -> Self {
        let outcomes = &push.outcomes;
        Self { outcomes, hashes: outcomes.hashes(), lights: outcomes.as_slice().iter().map(Light::of).collect() }
    }

    pub(super) fn difference(&self, before: &View, summary: DifferenceSummary) -> Result<Difference, StoreError> {
        let name = |hash| self.name(hash).ok_or_else(|| broken("a listed item is not in the content"));
        let items = receipts::named(listed(before, self.hashes, &self.lights), name)?;
        Ok(receipts::difference(summary, items))
    }

    fn name(&self, hash: ItemHash) -> Option<ItemName> {
        let at = self.hashes.binary_search(&hash).ok()?;
        Some(self.outcomes.as_slice()[at].item.clone())
    }
}

/// Carries a decision out.
pub(super) fn carry_out(
    world: &mut World,
    push: &Arc<Push>,
    now: &Now,
    decision: Decision,
) -> Result<Recorded, StoreError> {
    let at = &now.at;
    match decision {
        Decision::Record => {
            let answer = first(world, push, at)?;
            world.forwards.wait((&push.place, &push.key), answer.revision, now.ms);
            Ok(Recorded::Accepted(answer))
        }
        Decision::Replay { revision, class, doubts } => {
            replay(world, push, at, (revision, class, doubts)).map(Recorded::Accepted)
        }
        Decision::Overlay { kind, difference, .. } => {
            let answer = overlay(world, push, at, (kind, difference))?;
            if difference.changes_what_counts(kind) {
                world.forwards.wait((&push.place, &push.key), answer.revision, now.ms);
            }
            Ok(Recorded::Accepted(answer))
        }
        Decision::Refuse { refusal, contest } => Ok(Recorded::Refused(refuse(world, push, at, (refusal, contest)))),
        Decision::Undecided => Err(broken("undecided with all outcomes at hand")),
    }
}

/// Answers with a stored receipt; one more delivery is logged.
pub(super) fn replay(
    world: &mut World,
    push: &Push,
    at: &RecordedAt,
    (revision, class, doubts): (u32, DifferenceClass, Vec<Doubt>),
) -> Result<Answer, StoreError> {
    let recording = world.recording_mut(&key_of(push)).ok_or_else(|| broken("a replay of no push"))?;
    log(recording, push, at, "replayed", Some(revision));
    recording.expect = recording.expect.max(push.expect);
    if let Some(of) = recording.revisions.get_mut(revision as usize - 1)
        && of.known.is_confirmed_later(&push.sender)
    {
        of.known.sender.ordinal = push.sender.ordinal;
        of.known.sender.ordinal_scope = push.sender.ordinal_scope;
    }
    let mut answer = answer(recording, revision, doubts)?;
    answer.replayed = true;
    answer.class = Some(class);
    Ok(answer)
}

/// The answer with one revision's receipt.
pub(super) fn answer(recording: &Recording, revision: u32, doubts: Vec<Doubt>) -> Result<Answer, StoreError> {
    let of = recording.revisions.get(revision as usize - 1).ok_or_else(|| broken("an answer of no revision"))?;
    Ok(Answer {
        receipt: of.receipt.clone(),
        revision,
        current_revision: recording.revisions.len() as u32,
        current_counts: recording.counts(),
        replayed: false,
        class: None,
        doubts,
    })
}

/// A line of the log.
pub(super) fn entry(sender: &Sender, at: &RecordedAt, result: &str, revision: Option<u32>) -> DeliveryReport {
    DeliveryReport {
        at: at.0.clone(),
        result: result.to_owned(),
        revision,
        ordinal: sender.ordinal,
        executor: sender.executor.clone(),
        incarnation: sender.incarnation,
    }
}

fn log(recording: &mut Recording, push: &Push, at: &RecordedAt, result: &str, revision: Option<u32>) {
    recording.log.push((entry(&push.sender, at, result, revision), push.content.body));
    if revision.is_some() {
        recording.accept(&push.sender);
    }
}

/// A revision of a delivered content, with its receipt.
pub(super) fn revision(
    push: &Arc<Push>,
    at: &RecordedAt,
    (number, kind, late): (u32, RevisionKind, bool),
    (before, difference): (&View, Option<Difference>),
) -> Result<Revision, StoreError> {
    let known = KnownRevision {
        number,
        kind,
        sender: push.sender.clone(),
        content: push.content.content,
        outcomes: push.content.outcomes,
        files: push.files.clone(),
    };
    let mut revision = Revision { known, push: Arc::clone(push), at: at.clone(), receipt: Vec::new(), promotion: None };
    let view = before.laid_over(kind, number, push.outcomes.hashes(), &revision.lights());
    revision.receipt = receipts::bytes(Parts {
        place: &push.place,
        key: &push.key,
        revision: number,
        kind,
        at,
        counts: view.counts(),
        report: push.report,
        incomplete: push.incomplete,
        late,
        content: push.content.content,
        difference,
    })?;
    Ok(revision)
}

fn first(world: &mut World, push: &Arc<Push>, at: &RecordedAt) -> Result<Answer, StoreError> {
    let place = &push.place;
    let (_, id) = key_of(push);
    let rounds = &mut world.rounds;
    let project = world.projects.entry(place.project.clone()).or_default();
    let cycle = project.cycles.entry(place.cycle.clone()).or_default();
    let round = cycle.entry(place.round.clone()).or_insert_with(|| {
        *rounds += 1;
        Round {
            number: *rounds,
            run: place.run.clone(),
            workflow: None,
            run_counter: None,
            run_url: None,
            recorded_at: at.clone(),
            closed: false,
            pinned: false,
            pushes: Vec::new(),
        }
    });
    fill_in(round, push);
    let of = (1, RevisionKind::First, round.closed);
    let mut recording = Recording {
        key: push.key.clone(),
        place: place.clone(),
        commit: push.origin.commit.clone(),
        expect: push.expect,
        contested: false,
        late: round.closed,
        executors: Vec::new(),
        revisions: vec![revision(push, at, of, (&View::default(), None))?],
        log: Vec::new(),
    };
    round.pushes.push(id);
    log(&mut recording, push, at, RevisionKind::First.word(), Some(1));
    let answer = answer(&recording, 1, Vec::new())?;
    project.pushes.insert(id, recording);
    Ok(answer)
}

fn fill_in(round: &mut Round, push: &Push) {
    let origin = &push.origin;
    round.workflow = round.workflow.take().or_else(|| origin.workflow.clone());
    round.run_counter = round.run_counter.or(origin.run_counter);
    round.run_url = round.run_url.take().or_else(|| origin.run_url.clone());
}

/// The round that a push belongs to.
pub(super) fn round_of<'a>(world: &'a mut World, place: &Place) -> Option<&'a mut Round> {
    world.projects.get_mut(&place.project)?.cycles.get_mut(&place.cycle)?.get_mut(&place.round)
}

fn overlay(
    world: &mut World,
    push: &Arc<Push>,
    at: &RecordedAt,
    (kind, summary): (RevisionKind, DifferenceSummary),
) -> Result<Answer, StoreError> {
    let mut late = false;
    if let Some(round) = round_of(world, &push.place) {
        fill_in(round, push);
        late = round.closed;
    }
    let recording = world.recording_mut(&key_of(push)).ok_or_else(|| broken("an overlay of no push"))?;
    let before = recording.current();
    let difference = Content::of(push).difference(&before, summary)?;
    let number = recording.revisions.len() as u32 + 1;
    recording.revisions.push(revision(push, at, (number, kind, late), (&before, Some(difference)))?);
    recording.expect = recording.expect.max(push.expect);
    log(recording, push, at, kind.word(), Some(number));
    let mut answer = answer(recording, number, Vec::new())?;
    answer.class = Some(summary.class);
    Ok(answer)
}

/// Refuses a delivery, and logs that.
pub(super) fn refuse(world: &mut World, push: &Push, at: &RecordedAt, (refusal, contest): (Refusal, bool)) -> Refused {
    let word = receipts::refusal_word(&refusal);
    let mut refused = Refused { refusal, offered_samples: Vec::new(), recorded_samples: Vec::new() };
    if let Some(recording) = world.recording_mut(&key_of(push)) {
        log(recording, push, at, word, None);
        recording.contested |= contest;
        if let Refusal::CollidingItems { offered_samples, recorded_samples, .. } = &refused.refusal {
            let content = Content::of(push);
            refused.offered_samples = names(offered_samples, |item| content.name(item));
            refused.recorded_samples = names(recorded_samples, |item| name_of(recording, item));
        }
    } else if let Some(project) = world.projects.get_mut(&push.place.project) {
        project.refused.push(entry(&push.sender, at, word, None));
    }
    refused
}

fn names(samples: &[ItemHashText], name: impl Fn(ItemHash) -> Option<ItemName>) -> Vec<ItemName> {
    samples.iter().filter_map(|sample| name(sample.0)).collect()
}

/// An item's name out of any content that holds it.
pub(super) fn name_of(recording: &Recording, item: ItemHash) -> Option<ItemName> {
    (0..recording.revisions.len()).find_map(|at| recording.outcome(at, item)).map(|outcome| outcome.item.clone())
}
