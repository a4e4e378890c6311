//! What is open from before, brought to its end: ahead of a push of the same cycle, or by itself. One cycle that isn't
//! answered, or refuses, never keeps another one from its end. Must not plan anything, nor know products.

use std::collections::BTreeSet;

use domain::intent::{Flag, Intent, IntentEvent, IntentId, IntentState};
use domain::marker::WriteId;
use rand::RngExt;

use super::offer::Offer;
use super::settle::Hand;
use super::{BookError, Forwarded, Forwarder, Halt, Load, Of, Step, Turn};
use crate::foreign::entry::{CycleId, CycleWanted, Entry};
use crate::foreign::facts::Strategy;

/// What is open in one cycle there, or of one container.
type Open = (Option<String>, Vec<Intent>);

impl Forwarder<'_> {
    /// Settles what has to be before a load may go: what is open of the same push, or in the same cycle. What is open
    /// elsewhere is settled too, unless whoever alone forwards there comes to it by itself.
    pub(super) async fn what_goes_first(&mut self, turn: Turn, load: &Load, entries: &[Entry]) -> Result<(), Halt> {
        let place = match &load.wanted.given {
            Some(given) => Some(given.clone()),
            None => self.book.cycle(self.target, load.wanted.id).await?,
        };
        let of_push = |intent: &Intent| intent.key == load.key && intent.project == load.project;
        let meets = |(cycle, open): &Open| {
            place.as_ref().is_some_and(|place| cycle.as_deref() == Some(place.as_str())) || open.iter().any(of_push)
        };
        // Whoever alone forwards there comes to the rest by itself: not even read, since there may be much of it.
        let open = if self.sole { self.open_of(load, place.as_ref()).await? } else { self.open().await? };
        let (first, others): (Vec<_>, Vec<_>) = by_cycle(open).into_iter().partition(meets);
        let offer = Offer::of(load, entries);
        for (cycle, open) in first {
            let is_moved = |intent: &Intent| {
                of_push(intent) && Hand::of(turn, intent.clone()).is_ok_and(|hand| offer.moves(&hand))
            };
            let (moved, open): (Vec<_>, Vec<_>) = open.into_iter().partition(is_moved);
            let settled = self.settle_or_leave(turn, cycle, (moved, open)).await;
            settled.map_err(|halt| match halt {
                Halt::Over(cause) => Halt::Over(format!("what an earlier delivery left goes first: {cause}")),
                halt => halt,
            })?;
        }
        if !self.sole {
            let now_ms = self.clock.now_ms();
            let half_ms = self.deadline_ms.saturating_sub(now_ms) / 2;
            self.settle_each(turn, others, now_ms.saturating_add(half_ms), &mut Vec::new()).await?;
        }
        Ok(())
    }

    /// Settles everything that is open.
    pub(super) async fn all_open(&mut self, turn: Turn) -> Result<Vec<Intent>, Halt> {
        let open = match self.strategy {
            Strategy::Container => {
                self.open().await?.into_iter().map(|intent| (intent.cycle_there.clone(), vec![intent])).collect()
            }
            _ => by_cycle(self.open().await?),
        };
        let mut ended = Vec::new();
        match self.settle_each(turn, open, self.deadline_ms, &mut ended).await? {
            Some(missed) => Err(missed),
            None => Ok(ended),
        }
    }

    async fn open(&mut self) -> Result<Vec<Intent>, Halt> {
        Ok(self.book.unsettled(self.target, None).await?)
    }

    /// What is open of a load's push, and in the cycle that it goes to, oldest first.
    async fn open_of(&mut self, load: &Load, place: Option<&CycleId>) -> Result<Vec<Intent>, Halt> {
        let mut open = self.book.unsettled(self.target, Some(Of::Push(&load.project, &load.key))).await?;
        if let Some(place) = place {
            let known: BTreeSet<IntentId> = open.iter().map(|intent| intent.id).collect();
            let there = self.book.unsettled(self.target, Some(Of::Cycle(place))).await?;
            open.extend(there.into_iter().filter(|intent| !known.contains(&intent.id)));
            open.sort_by_key(|intent| (intent.planned_ms, intent.number));
        }
        Ok(open)
    }

    /// Each within its part of the time until then: half of what is left of it, the last one all. Gives why the first one
    /// is not settled, if one isn't.
    async fn settle_each(
        &mut self,
        turn: Turn,
        mut open: Vec<Open>,
        until_ms: u64,
        ended: &mut Vec<Intent>,
    ) -> Result<Option<Halt>, Halt> {
        // Another one comes first each time, so that those that are never answered don't always take the others' time.
        if open.len() > 1 {
            let first = self.random.random_range(0..open.len());
            open.rotate_left(first);
        }
        let (mut missed, mut more) = (None, open.len());
        for (cycle, open) in open {
            more -= 1;
            let left_ms = until_ms.saturating_sub(self.clock.now_ms());
            if left_ms == 0 {
                return Ok(missed.or(Some(Halt::Over("what is open elsewhere takes longer".to_owned()))));
            }
            let part_ms = if more == 0 { left_ms } else { left_ms / 2 };
            let deadline_ms = self.clock.now_ms().saturating_add(part_ms).min(self.deadline_ms);
            let whole_ms = std::mem::replace(&mut self.deadline_ms, deadline_ms);
            let settled = match self.strategy {
                Strategy::Container => self.settle_alone(turn, open).await,
                _ => self.settle_or_leave(turn, cycle.clone(), (Vec::new(), open)).await,
            };
            self.deadline_ms = whole_ms;
            match settled {
                Ok(settled) => ended.extend(settled),
                Err(halt @ (Halt::Stopped(_) | Halt::Denied(_) | Halt::Book(BookError::Fenced))) => return Err(halt),
                Err(halt) => {
                    (self.progress)(Step::Left { cycle, why: halt.to_string() });
                    missed.get_or_insert(halt);
                }
            }
        }
        Ok(missed)
    }

    /// Settles what is open in one cycle, and leaves what goes to other cases now. What can't be read or written there any
    /// more is given to a person.
    async fn settle_or_leave(
        &mut self,
        turn: Turn,
        cycle: Option<String>,
        (moved, open): (Vec<Intent>, Vec<Intent>),
    ) -> Result<Vec<Intent>, Halt> {
        let settled = match self.leave_moved(turn, moved).await {
            Ok(()) => self.settle(turn, open).await,
            Err(halt) => Err(halt),
        };
        match settled {
            Err(halt @ (Halt::Refused(_) | Halt::Gone(_))) => {
                let cycle = CycleId::new(cycle.unwrap_or_default());
                // What is refused for another reason goes on once that is mended.
                if self.is_over(&cycle, &halt).await? {
                    self.leave_cycle(turn, &cycle, &halt.to_string()).await
                } else {
                    Err(halt)
                }
            }
            settled => settled,
        }
    }

    /// Sends nothing more of what goes to other cases now, once it is known that nothing of it is on its way.
    async fn leave_moved(&mut self, turn: Turn, moved: Vec<Intent>) -> Result<(), Halt> {
        let mut tries = (self.backoff(), self.clock.now_ms());
        for intent in moved {
            let mut hands = [Hand::of(turn, intent)?];
            while !hands[0].intent.state.is_settled() {
                match hands[0].intent.state {
                    IntentState::Planned | IntentState::Absent => {
                        hands[0].intent.cause = Some("its outcomes go to other cases now".to_owned());
                        self.leave_for_newer(&mut hands[0]).await?;
                    }
                    IntentState::Sending => self.found_sending(&mut hands[0]).await?,
                    IntentState::Unknown => self.after_quiet(&mut hands).await?,
                    _ => self.read_back(&mut hands, &mut tries).await?,
                }
            }
        }
        Ok(())
    }

    /// Settles containers without their push: all that is needed of one is a name for whatever is begun anew.
    async fn settle_alone(&mut self, turn: Turn, open: Vec<Intent>) -> Result<Vec<Intent>, Halt> {
        let mut ended = Vec::new();
        for intent in open {
            let (id, base) = (intent.id, named_alone(&intent));
            match self.settle_container(turn, intent, &base).await {
                Err(Halt::Refused(what) | Halt::Gone(what)) => {
                    ended.extend(self.leave_container(turn, id, what).await?);
                }
                settled => ended.push(settled?),
            }
        }
        Ok(ended)
    }

    /// A container that can't be read or written any more is given to a person. If none was begun, nothing is there that
    /// could be wrong: it goes on once the product takes one.
    async fn leave_container(&mut self, turn: Turn, id: IntentId, why: String) -> Result<Option<Intent>, Halt> {
        let Some(intent) = self.open().await?.into_iter().find(|intent| intent.id == id) else { return Ok(None) };
        let mut hand = Hand::unread(turn, intent);
        hand.intent.cause = Some(format!("its container can't be used: {why}"));
        if hand.intent.state.is_uncertain() && hand.intent.cycle_there.is_some() {
            self.step(&mut hand, IntentEvent::GivenUp).await?;
            return Ok(Some(hand.intent));
        }
        if hand.intent.state != IntentState::Sending {
            self.book.advance(turn, hand.intent.state, &hand.intent).await?;
        }
        Err(Halt::Refused(why))
    }

    /// Gives what is open in a cycle to a person: nothing can be read or written there.
    pub(super) async fn leave_cycle(&mut self, turn: Turn, cycle: &CycleId, why: &str) -> Result<Vec<Intent>, Halt> {
        let mut left = Vec::new();
        let of = Of::Cycle(cycle);
        for intent in self.book.unsettled(self.target, Some(of).filter(|_| !cycle.as_str().is_empty())).await? {
            if intent.cycle_there.as_deref().unwrap_or_default() != cycle.as_str() {
                continue;
            }
            let mut hand = Hand::unread(turn, intent);
            hand.intent.cause = Some(format!("the cycle {cycle} there can't be used any more: {why}"));
            self.step(&mut hand, IntentEvent::GivenUp).await?;
            left.push(hand.intent);
        }
        Ok(left)
    }

    /// What a push had left in a cycle that is gone, and says again in another one, nobody has to look at.
    pub(super) async fn leave_for_good(
        &mut self,
        turn: Turn,
        load: &Load,
        gone: &CycleId,
        done: &Forwarded,
    ) -> Result<(), Halt> {
        let Some(now) = &done.cycle else { return Ok(()) };
        let mut said = BTreeSet::new();
        for intent in &done.intents {
            said.extend(Hand::of(turn, intent.clone())?.entries.into_iter().map(|entry| entry.marker.write));
        }
        for intent in self.book.known(self.target, Of::Push(&load.project, &load.key)).await? {
            let mut hand = Hand::of(turn, intent)?;
            let is_left = hand.cycle == *gone && hand.intent.state == IntentState::Parked && hand.intent.is_in_doubt();
            if is_left && hand.entries.iter().all(|entry| said.contains(&entry.marker.write)) {
                hand.intent.flags.insert(Flag::GivenUp);
                hand.intent.cause =
                    Some(format!("the cycle {gone} there is gone: what it was to hold is in {now} now"));
                hand.intent.changed_ms = self.clock.unix_ms();
                self.book.advance(turn, hand.intent.state, &hand.intent).await?;
            }
        }
        Ok(())
    }
}

fn by_cycle(open: Vec<Intent>) -> Vec<Open> {
    let mut cycles: Vec<Open> = Vec::new();
    for intent in open {
        match cycles.iter_mut().find(|(cycle, _)| *cycle == intent.cycle_there) {
            Some((_, open)) => open.push(intent),
            None => cycles.push((intent.cycle_there.clone(), vec![intent])),
        }
    }
    cycles
}

/// What containers of an intent are called where its push is not at hand.
fn named_alone(intent: &Intent) -> CycleWanted {
    let name = format!("{} {}, round {}", intent.project, intent.cycle, intent.round);
    CycleWanted { name, id: WriteId(0), link: None, given: None }
}
