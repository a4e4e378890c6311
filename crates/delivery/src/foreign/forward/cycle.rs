//! The cycle of a round there: found, or made once, whoever else makes one at the same time (race R3).
//! Must not know what is written into it.

use domain::intent::Flag;

use super::settle::Hand;
use super::{Forwarded, Forwarder, Halt, Turn};
use crate::foreign::entry::{CaseId, CycleFound, CycleId, CycleWanted};
use crate::foreign::trouble::Trouble;

/// How a cycle came to be the one that is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The configuration names it.
    Given,
    /// The ledger knows it.
    Known,
    /// It was there.
    Found,
    /// This process made one.
    Made,
}

/// Whether a cycle is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum There {
    /// It is.
    Open,
    /// It is, and takes nothing more.
    Closed,
    /// It isn't.
    Gone,
    /// The product doesn't say.
    Unsaid,
}

/// The cycle that is used.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) cycle: CycleId,
    pub(super) origin: Origin,
}

impl Forwarder<'_> {
    /// The one cycle for a round.
    ///
    /// Names are not unique in most products. So: what the ledger knows, else what is found, else one is made and all
    /// that carry the round's id are read back: every writer settles on the oldest.
    pub(super) async fn cycle(
        &mut self,
        turn: Turn,
        wanted: &CycleWanted,
        flags: &mut Vec<Flag>,
    ) -> Result<Place, Halt> {
        if let Some(given) = &wanted.given {
            return Ok(Place { cycle: given.clone(), origin: Origin::Given });
        }
        if let Some(known) = self.book.cycle(self.target, wanted.id).await? {
            return Ok(Place { cycle: known, origin: Origin::Known });
        }
        self.keep_found_or_made(turn, wanted, flags).await
    }

    async fn keep_found_or_made(
        &mut self,
        turn: Turn,
        wanted: &CycleWanted,
        flags: &mut Vec<Flag>,
    ) -> Result<Place, Halt> {
        let place = self.found_or_made(wanted, flags).await?;
        self.book.keep_cycle(turn, self.target, wanted.id, Some(&place.cycle)).await?;
        Ok(place)
    }

    /// Another cycle in the place of one that can't be used any more. `None`: it is there, so that something else is wrong; or
    /// it was ended by somebody who may not want more in it, so that nothing new is begun beside it.
    pub(super) async fn instead_of(
        &mut self,
        turn: Turn,
        wanted: &CycleWanted,
        (known, halt): (&CycleId, &Halt),
        flags: &mut Vec<Flag>,
    ) -> Result<Option<Place>, Halt> {
        // Both questions: a search alone may lag behind, or not reach so far back.
        if !self.is_over(known, halt).await? || self.there(known).await? == There::Closed {
            return Ok(None);
        }
        let adapter = self.adapter;
        let found = self.asking(|| adapter.find_cycles(wanted)).await?;
        let is_open = found.iter().any(|found| found.id == *known && !found.closed);
        if is_open || (!found.is_empty() && found.iter().all(|found| found.closed)) {
            return Ok(None);
        }
        self.book.keep_cycle(turn, self.target, wanted.id, None).await?;
        self.keep_found_or_made(turn, wanted, flags).await.map(Some)
    }

    /// True if nothing goes into a cycle any more. That it refuses something says nothing of it: it may be anything, of the
    /// settings or of something in between.
    pub(super) async fn is_over(&mut self, cycle: &CycleId, halt: &Halt) -> Result<bool, Halt> {
        Ok(match self.there(cycle).await? {
            There::Open => false,
            There::Closed | There::Gone => true,
            There::Unsaid => matches!(halt, Halt::Gone(_)),
        })
    }

    /// What the product says of a cycle, asked for by its own id.
    pub(super) async fn there(&mut self, cycle: &CycleId) -> Result<There, Halt> {
        let adapter = self.adapter;
        let given = CycleWanted::by_id(cycle.clone());
        Ok(match self.asking(|| adapter.find_cycles(&given)).await {
            Err(Halt::Gone(_)) => There::Gone,
            Err(Halt::Refused(_)) => There::Unsaid,
            found => match found?.first() {
                None => There::Gone,
                Some(found) if found.closed => There::Closed,
                // Nobody was asked: all that is known of it is its id.
                Some(found) if found.name == found.id.as_str() => There::Unsaid,
                Some(_) => There::Open,
            },
        })
    }

    pub(super) async fn found_or_made(&mut self, wanted: &CycleWanted, flags: &mut Vec<Flag>) -> Result<Place, Halt> {
        let (mut backoff, begun_ms) = (self.backoff(), self.clock.now_ms());
        loop {
            if let Some(cycle) = self.oldest(wanted, flags).await? {
                return Ok(Place { cycle, origin: Origin::Found });
            }
            self.book.may_change()?;
            match self.adapter.create_cycle(wanted).await {
                // Somebody may have made one before.
                Ok(made) => {
                    let cycle = self.oldest(wanted, flags).await?.unwrap_or(made);
                    return Ok(Place { cycle, origin: Origin::Made });
                }
                Err(Trouble::Denied(what)) => return Err(Halt::Denied(what)),
                Err(Trouble::Refused(what) | Trouble::Gone(what) | Trouble::TooLarge(what)) => {
                    return Err(Halt::Refused(what));
                }
                Err(Trouble::Unknown(what)) => {
                    self.pause(self.quiet_ms, &what).await?;
                    // One reading alone may come before it is shown.
                    if let Some(cycle) = self.oldest(wanted, flags).await? {
                        return Ok(Place { cycle, origin: Origin::Made });
                    }
                    self.pause(self.between_reads_ms(), "the cycle is not shown; once more").await?;
                }
                Err(again) => self.before_next(&mut backoff, begun_ms, &again).await?,
            }
        }
    }

    pub(super) async fn oldest(
        &mut self,
        wanted: &CycleWanted,
        flags: &mut Vec<Flag>,
    ) -> Result<Option<CycleId>, Halt> {
        let adapter = self.adapter;
        let found: Vec<CycleFound> = self.asking(|| adapter.find_cycles(wanted)).await?;
        if found.len() > 1 {
            flags.push(Flag::CycleDoubled);
        }
        let open = found.iter().find(|cycle| !cycle.closed).or(found.first());
        Ok(open.map(|cycle| cycle.id.clone()))
    }

    /// All cycles of the round, once what was made can be among them: a list that is a little late is asked twice.
    pub(super) async fn listed_with(&mut self, wanted: &CycleWanted, made: &CycleId) -> Result<Vec<CycleFound>, Halt> {
        let adapter = self.adapter;
        let found = self.asking(|| adapter.find_cycles(wanted)).await?;
        if found.iter().any(|found| found.id == *made) {
            return Ok(found);
        }
        match self.pause(self.between_reads_ms(), "the cycle that was made is not listed; once more").await {
            Ok(()) => self.asking(|| adapter.find_cycles(wanted)).await,
            // All is settled by now: that there was no time left for this is no word on it.
            Err(Halt::Over(_)) => Ok(found),
            Err(halt) => Err(halt),
        }
    }

    /// Who made a cycle looks again once all is written: another writer's may be shown only now. What both wrote is doubled.
    /// One that isn't listed at all is said too: the next one who looks for it makes another.
    pub(super) async fn look_for_twins(
        &mut self,
        turn: Turn,
        wanted: &CycleWanted,
        forwarded: &mut Forwarded,
    ) -> Result<(), Halt> {
        let Some(ours) = forwarded.cycle.clone() else { return Ok(()) };
        let found = self.listed_with(wanted, &ours).await?;
        let (listed, twins): (Vec<_>, Vec<_>) = found.into_iter().map(|found| found.id).partition(|id| *id == ours);
        let unseen = listed.is_empty().then_some(Flag::CycleUnseen);
        let doubled = (!twins.is_empty()).then_some(Flag::CycleDoubled);
        let flags: Vec<Flag> = unseen.into_iter().chain(doubled).collect();
        if flags.is_empty() {
            return Ok(());
        }
        forwarded.flags.extend(&flags);
        for intent in &mut forwarded.intents {
            let mut hand = Hand::of(turn, intent.clone())?;
            hand.intent.flags.extend(&flags);
            if self.is_readable() && self.is_there_too(&hand, &twins).await? {
                hand.intent.flags.insert(Flag::DuplicateDetected);
            }
            if hand.intent.flags != intent.flags {
                hand.intent.changed_ms = self.clock.unix_ms();
                self.book.advance(turn, hand.intent.state, &hand.intent).await?;
                *intent = hand.intent;
            }
        }
        Ok(())
    }

    async fn is_there_too(&mut self, hand: &Hand, twins: &[CycleId]) -> Result<bool, Halt> {
        let cases: Vec<CaseId> = hand.entries.iter().map(|entry| entry.case.clone()).collect();
        for twin in twins {
            let picture = self.rows(twin, &cases).await?;
            let of_ours = |marker| hand.entries.iter().any(|entry| entry.marker.write == marker);
            if picture.markers().any(|marker| of_ours(marker.write)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
