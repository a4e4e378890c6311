//! Deliveries and promotions in the memory engine.

use std::convert::Infallible;
use std::sync::Arc;

use domain::listing::DeliveryReport;
use domain::protocol::{Decision, DifferenceSummary, Doubt, KnownRevision, Recorded as Lookup, Refusal, decide};
use domain::receipt::Difference;
use domain::verdict::{RevisionKind, View};
use domain::{ItemHash, ItemName, Place, Push, PushId, Sender};

use super::model::{Project, Recording, Revision, Round, World};
use crate::receipts::{self, Parts};
use crate::{Answer, Promoted, Promotion, Recorded, RecordedAt, StoreError};

struct Lookups<'a> {
    project: Option<&'a Project>,
    recording: Option<&'a Recording>,
    place: &'a Place,
}

impl Lookups<'_> {
    fn in_round(&self) -> Vec<&Recording> {
        self.project.map(|p| p.pushes_of(&self.place.cycle, &self.place.round)).unwrap_or_default()
    }
}

impl Lookup for Lookups<'_> {
    type Error = Infallible;

    fn view(&mut self) -> Result<View, Infallible> {
        Ok(self.recording.map(Recording::current).unwrap_or_default())
    }

    fn known_in_job(&mut self, offered: &[ItemHash]) -> Result<usize, Infallible> {
        let pushes: Vec<&Recording> = self.in_round().into_iter().filter(|p| p.place.job == self.place.job).collect();
        let holds = |push: &Recording, item: &ItemHash| {
            push.revisions.iter().any(|r| r.push.outcomes.hashes().binary_search(item).is_ok())
        };
        Ok(offered.iter().filter(|item| pushes.iter().any(|push| holds(push, item))).count())
    }

    fn shard_total(&mut self) -> Result<Option<u32>, Infallible> {
        let place = self.place;
        let same = |push: &&Recording| push.place.job == place.job && push.place.variant == place.variant;
        Ok(self.in_round().into_iter().filter(same).find_map(|push| push.place.shard.and_then(domain::ShardRef::total)))
    }
}

/// Runs one delivery.
pub(super) fn record(world: &mut World, push: &Arc<Push>, at: &RecordedAt) -> Result<Recorded, StoreError> {
    let uid = PushId::of(&push.place.project, &push.key);
    let decision = {
        let project = world.projects.get(&push.place.project);
        let recording = project.and_then(|p| p.pushes.get(&uid));
        let known = recording.map(|r| r.known(push.content.body));
        let tombstoned = project.is_some_and(|p| p.tombstones.contains(&uid));
        let mut lookups = Lookups { project, recording, place: &push.place };
        let Ok(decision) = decide(push, known.as_ref(), tombstoned, &mut lookups);
        decision
    };
    match decision {
        Decision::Record => first(world, push, at),
        Decision::Replay { revision, class, doubts } => {
            let recording = recording(world, push)?;
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
            Ok(Recorded::Accepted(answer))
        }
        Decision::Overlay { kind, difference, before } => overlay(world, push, at, (kind, difference, &before)),
        Decision::Refuse { refusal, contest } => Ok(refuse(world, push, at, (refusal, contest))),
    }
}

fn recording<'a>(world: &'a mut World, push: &Push) -> Result<&'a mut Recording, StoreError> {
    let uid = PushId::of(&push.place.project, &push.key);
    let project = world.projects.get_mut(&push.place.project);
    project.and_then(|p| p.pushes.get_mut(&uid)).ok_or_else(|| StoreError::Broken { what: "no such push".to_owned() })
}

fn answer(recording: &Recording, revision: u32, doubts: Vec<Doubt>) -> Result<Answer, StoreError> {
    let of = recording.revisions.get(revision as usize - 1);
    let of = of.ok_or_else(|| StoreError::Broken { what: format!("no revision {revision}") })?;
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

fn entry(sender: &Sender, at: &RecordedAt, result: &str, revision: Option<u32>) -> DeliveryReport {
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
}

/// A revision of a delivered content, with its receipt.
fn revision(
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

fn first(world: &mut World, push: &Arc<Push>, at: &RecordedAt) -> Result<Recorded, StoreError> {
    let place = &push.place;
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
        }
    });
    fill_in(round, push);
    world.pushes += 1;
    let mut recording = Recording {
        number: world.pushes,
        key: push.key.clone(),
        place: place.clone(),
        commit: push.origin.commit.clone(),
        expect: push.expect,
        contested: false,
        late: round.closed,
        revisions: Vec::new(),
        log: Vec::new(),
    };
    let of = (1, RevisionKind::First, round.closed);
    recording.revisions.push(revision(push, at, of, (&View::default(), None))?);
    log(&mut recording, push, at, RevisionKind::First.word(), Some(1));
    let answer = answer(&recording, 1, Vec::new())?;
    project.pushes.insert(PushId::of(&place.project, &push.key), recording);
    Ok(Recorded::Accepted(answer))
}

fn fill_in(round: &mut Round, push: &Push) {
    let origin = &push.origin;
    round.workflow = round.workflow.take().or_else(|| origin.workflow.clone());
    round.run_counter = round.run_counter.or(origin.run_counter);
    round.run_url = round.run_url.take().or_else(|| origin.run_url.clone());
}

fn round_of<'a>(world: &'a mut World, place: &Place) -> Option<&'a mut Round> {
    world.projects.get_mut(&place.project)?.cycles.get_mut(&place.cycle)?.get_mut(&place.round)
}

fn overlay(
    world: &mut World,
    push: &Arc<Push>,
    at: &RecordedAt,
    (kind, summary, before): (RevisionKind, DifferenceSummary, &View),
) -> Result<Recorded, StoreError> {
    let mut late = false;
    if let Some(round) = round_of(world, &push.place) {
        fill_in(round, push);
        late = round.closed;
    }
    let recording = recording(world, push)?;
    let outcomes = push.outcomes.as_slice();
    let lights: Vec<_> = outcomes.iter().map(domain::verdict::Light::of).collect();
    let name = |at: usize| outcomes.get(at).map(|outcome| outcome.item.clone());
    let difference = receipts::difference(summary, before, push.outcomes.hashes(), &lights, name);
    let number = recording.revisions.len() as u32 + 1;
    recording.revisions.push(revision(push, at, (number, kind, late), (before, Some(difference)))?);
    recording.expect = recording.expect.max(push.expect);
    log(recording, push, at, kind.word(), Some(number));
    let mut answer = answer(recording, number, Vec::new())?;
    answer.class = Some(summary.class);
    Ok(Recorded::Accepted(answer))
}

fn refuse(world: &mut World, push: &Push, at: &RecordedAt, (refusal, contest): (Refusal, bool)) -> Recorded {
    let word = receipts::refusal_word(&refusal);
    let mut recorded_samples = Vec::new();
    if let Ok(recording) = recording(world, push) {
        log(recording, push, at, word, None);
        recording.contested |= contest;
        if let Refusal::CollidingItems { recorded_samples: samples, .. } = &refusal {
            recorded_samples = samples.iter().filter_map(|item| name_of(recording, *item)).collect();
        }
    } else if let Some(project) = world.projects.get_mut(&push.place.project) {
        project.refused.push(entry(&push.sender, at, word, None));
    }
    Recorded::Refused { refusal, recorded_samples }
}

/// An item's name out of any content that holds it.
pub(super) fn name_of(recording: &Recording, item: ItemHash) -> Option<ItemName> {
    (0..recording.revisions.len()).find_map(|at| recording.outcome(at, item)).map(|outcome| outcome.item.clone())
}

/// Runs one promotion.
pub(super) fn promote(world: &mut World, promotion: &Promotion, at: &RecordedAt) -> Result<Promoted, StoreError> {
    let Some(project) = world.projects.get_mut(&promotion.project) else { return Ok(Promoted::UnknownPush) };
    if !project.pushes.contains_key(&promotion.push) {
        return Ok(Promoted::UnknownPush);
    }
    let mut earlier = project.pushes.iter().flat_map(|(uid, push)| push.revisions.iter().map(move |r| (uid, push, r)));
    let same_key = |r: &Revision| r.promotion.as_ref().is_some_and(|(key, _)| *key == promotion.key);
    if let Some((uid, push, revision)) = earlier.find(|(_, _, r)| same_key(r)) {
        let asked = revision.promotion.as_ref().and_then(|(_, asked)| *asked);
        let exact = matches!(revision.known.kind, RevisionKind::Promoted { exact: true, .. });
        if (*uid, asked, exact) != (promotion.push, promotion.revision, promotion.exact) {
            return Ok(Promoted::KeyReused);
        }
        let mut answer = answer(push, revision.known.number, Vec::new())?;
        answer.replayed = true;
        return Ok(Promoted::Accepted(answer));
    }
    let Some(recording) = project.pushes.get(&promotion.push) else { return Ok(Promoted::UnknownPush) };
    let contents: Vec<&Revision> = recording.revisions.iter().filter(|r| !r.is_promotion()).collect();
    let kept = contents.iter().rev().find(|r| r.known.kind == RevisionKind::Kept);
    let of = match promotion.revision {
        Some(number) => contents.iter().find(|r| r.known.number == number),
        None => kept.or(contents.last()),
    };
    let Some(of) = of.map(|r| r.known.number) else {
        return Ok(Promoted::UnknownRevision { revisions: contents.iter().map(|r| r.known.number).collect() });
    };
    let etag = recording.revisions.last().map(Revision::etag).unwrap_or_default();
    if promotion.if_match.as_ref().is_some_and(|wanted| *wanted != etag) {
        return Ok(Promoted::Mismatch { etag });
    }
    let place = recording.place.clone();
    let late = round_of(world, &place).is_some_and(|round| round.closed);
    let project = world.projects.get_mut(&promotion.project);
    let Some(recording) = project.and_then(|p| p.pushes.get_mut(&promotion.push)) else {
        return Ok(Promoted::UnknownPush);
    };
    carry_out(recording, promotion, at, (of, late)).map(Promoted::Accepted)
}

fn carry_out(
    recording: &mut Recording,
    promotion: &Promotion,
    at: &RecordedAt,
    (of, late): (u32, bool),
) -> Result<Answer, StoreError> {
    let sender = recording.known(None).promotion_sender();
    let source = &recording.revisions[of as usize - 1];
    let (push, lights) = (Arc::clone(&source.push), source.lights());
    let kind = RevisionKind::Promoted { of, exact: promotion.exact };
    let number = recording.revisions.len() as u32 + 1;
    let before = recording.current();
    let summary = receipts::promotion_summary(&before, push.outcomes.hashes(), &lights);
    let outcomes = push.outcomes.as_slice();
    let name = |at: usize| outcomes.get(at).map(|outcome| outcome.item.clone());
    let difference = receipts::difference(summary, &before, push.outcomes.hashes(), &lights, name);
    let mut revision = revision(&push, at, (number, kind, late), (&before, Some(difference)))?;
    revision.known.sender = sender;
    revision.promotion = Some((promotion.key.clone(), promotion.revision));
    recording.revisions.push(revision);
    let nobody = Sender::default();
    recording.log.push((entry(&nobody, at, kind.word(), Some(number)), None));
    answer(recording, number, Vec::new())
}
