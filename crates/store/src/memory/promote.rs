//! Promotions in the memory engine. Must not decide on deliveries.

use std::sync::Arc;

use domain::Sender;
use domain::verdict::RevisionKind;

use super::carry::{self, Content, answer, entry, revision, round_of};
use super::model::{Recording, Revision, World};
use crate::receipts;
use crate::{Answer, Now, Promoted, Promotion, RecordedAt, StoreError};

/// Runs one promotion.
pub(super) fn promote(world: &mut World, promotion: &Promotion, now: &Now) -> Result<Promoted, StoreError> {
    let key = (promotion.project.clone(), promotion.push);
    let Some(recording) = world.recording(&key) else { return Ok(Promoted::UnknownPush) };
    if let Some(repeated) = repeated(world, promotion)? {
        return Ok(repeated);
    }
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
    let Some(recording) = world.recording_mut(&key) else { return Ok(Promoted::UnknownPush) };
    let answer = carry_out(recording, promotion, &now.at, (of, late))?;
    let pushed = recording.key.clone();
    world.forwards.wait((&place, &pushed), answer.revision, now.ms);
    if let Some(project) = world.projects.get_mut(&promotion.project) {
        project.promotions.insert(promotion.key.clone(), (promotion.push, answer.revision));
    }
    Ok(Promoted::Accepted(answer))
}

/// The answer to a promotion whose key was used before.
fn repeated(world: &World, promotion: &Promotion) -> Result<Option<Promoted>, StoreError> {
    let project = world.projects.get(&promotion.project);
    let Some((project, (push, number))) = project.and_then(|p| Some((p, p.promotions.get(&promotion.key)?))) else {
        return Ok(None);
    };
    let recording = project.pushes.get(push).ok_or_else(|| carry::broken("a promotion of no push"))?;
    let revision = recording.revisions.get(*number as usize - 1);
    let asked = revision.and_then(|r| r.promotion.as_ref()).and_then(|(_, asked)| *asked);
    let exact = revision.is_some_and(|r| matches!(r.known.kind, RevisionKind::Promoted { exact: true, .. }));
    if (*push, asked, exact) != (promotion.push, promotion.revision, promotion.exact) {
        return Ok(Some(Promoted::KeyReused));
    }
    let mut answer = answer(recording, *number, Vec::new())?;
    answer.replayed = true;
    Ok(Some(Promoted::Accepted(answer)))
}

fn carry_out(
    recording: &mut Recording,
    promotion: &Promotion,
    at: &RecordedAt,
    (of, late): (u32, bool),
) -> Result<Answer, StoreError> {
    let sender = recording.known(None).promotion_sender();
    let source = &recording.revisions[of as usize - 1];
    let (push, content) = (Arc::clone(&source.push), Content::of(&source.push));
    let kind = RevisionKind::Promoted { of, exact: promotion.exact };
    let number = recording.revisions.len() as u32 + 1;
    let before = recording.current();
    let summary = receipts::promotion_summary(&before, content.hashes, &content.lights);
    let difference = content.difference(&before, summary)?;
    let mut revision = revision(&push, at, (number, kind, late), (&before, Some(difference)))?;
    revision.known.sender = sender;
    revision.promotion = Some((promotion.key.clone(), promotion.revision));
    recording.revisions.push(revision);
    let nobody = Sender::default();
    recording.log.push((entry(&nobody, at, kind.word(), Some(number)), None));
    answer(recording, number, Vec::new())
}
