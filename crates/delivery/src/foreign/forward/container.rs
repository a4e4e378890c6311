//! The strategy `container`: a cycle of its own for each try of a push, ended last. What comes late lands in a container that
//! was given up (`facts/idempotency.md`, 4.2, M5). Must not know products.

use domain::intent::{Intent, IntentEvent, IntentState};
use domain::marker::WriteId;

use super::decide::needs;
use super::plan;
use super::send::Sent;
use super::settle::Hand;
use super::{Forwarded, Forwarder, Halt, Load, Turn};
use crate::foreign::adapter::Closing;
use crate::foreign::entry::{CaseId, CycleId, CycleWanted, Entry};
use crate::foreign::facts::Visible;

/// Containers that are begun for one push before a person has to look.
const CONTAINERS_MAX: u32 = 8;

impl Forwarder<'_> {
    /// Forwards a load into a container of its own.
    pub(super) async fn contain(&mut self, turn: Turn, load: &Load, done: &mut Forwarded) -> Result<(), Halt> {
        let entries = self.entries(load, &mut done.unmatched).await?;
        if entries.is_empty() {
            return Ok(());
        }
        let whole = plan::intents(self.target, load, &CycleId::new(""), &entries, entries.len(), self.clock);
        let planned: Vec<Intent> = whole.into_iter().map(|intent| Intent { cycle_there: None, ..intent }).collect();
        for intent in self.book.plan(turn, planned).await? {
            let intent = self.settle_container(turn, intent, &load.wanted).await?;
            done.cycle = intent.cycle_there.clone().map(CycleId::new);
            done.intents.push(intent);
        }
        Ok(())
    }

    /// Brings the container of an intent to its end.
    async fn settle_container(&mut self, turn: Turn, intent: Intent, base: &CycleWanted) -> Result<Intent, Halt> {
        let mut hand = Hand::of(turn, intent)?;
        while !hand.intent.state.is_settled() {
            match hand.intent.state {
                IntentState::Planned | IntentState::Absent => self.fill_another(&mut hand, base).await?,
                IntentState::Sending => self.step(&mut hand, IntentEvent::Found).await?,
                IntentState::Unknown => self.after_quiet(&mut hand).await?,
                IntentState::Reconciling => self.judge_container(&mut hand).await?,
                IntentState::Acked | IntentState::Rejected | IntentState::Found | IntentState::Parked => {}
            }
        }
        Ok(hand.intent)
    }

    async fn fill_another(&mut self, hand: &mut Hand, base: &CycleWanted) -> Result<(), Halt> {
        if hand.intent.sends >= CONTAINERS_MAX {
            return self.step(hand, IntentEvent::GivenUp).await;
        }
        let wanted = numbered(base, &hand.intent, hand.intent.sends);
        // A process whose ledger is gone may have filled it.
        if let Some(there) = self.first_there(&wanted).await? {
            hand.intent.cycle_there = Some(there.to_string());
            hand.intent.sends += 1;
            let next = numbered(base, &hand.intent, hand.intent.sends);
            if self.first_there(&next).await?.is_some() {
                // Another one was begun after it: it was given up, whatever came into it since.
                return Ok(());
            }
            if self.is_whole(hand, &there).await? {
                self.end(&there).await?;
                return self.step(hand, IntentEvent::Seen).await;
            }
            // Another process may be filling it right now, or what one has sent comes late.
            hand.intent.sent_ms = Some(self.clock.unix_ms());
            hand.intent.cause = Some("a container of this push is there, and not whole".to_owned());
            self.step(hand, IntentEvent::Sent).await?;
            return self.step(hand, IntentEvent::Silence).await;
        }
        hand.intent.sends += 1;
        hand.intent.sent_ms = Some(self.clock.unix_ms());
        hand.intent.cycle_there = None;
        self.step(hand, IntentEvent::Sent).await?;
        let made = self.found_or_made(&wanted, &mut Vec::new()).await?;
        let cycle = self.first_there(&wanted).await?.unwrap_or(made);
        hand.intent.cycle_there = Some(cycle.to_string());
        self.book.advance(hand.turn, IntentState::Sending, &hand.intent).await?;
        match self.fill(hand, &cycle, &wanted).await? {
            // Two writers at once fill one container (R2, R3). Whoever ends it last sees both, where it can be seen by now.
            None if !self.is_shown_later() && !self.is_whole(hand, &cycle).await? => {
                hand.intent.cause = Some("taken, but the container holds something else: another writer?".to_owned());
                self.step(hand, IntentEvent::Silence).await
            }
            None => {
                self.end(&cycle).await?;
                hand.intent.cause = None;
                self.step(hand, IntentEvent::Confirmed).await
            }
            Some(unclear) => {
                hand.intent.cause = Some(unclear);
                self.step(hand, IntentEvent::Silence).await
            }
        }
    }

    /// The oldest of a number, whether it has ended or not: one that is made again later, or late, never takes its place.
    async fn first_there(&mut self, wanted: &CycleWanted) -> Result<Option<CycleId>, Halt> {
        let adapter = self.adapter;
        let found = self.asking(|| adapter.find_cycles(wanted)).await?;
        Ok(found.into_iter().next().map(|found| found.id))
    }

    /// Writes everything. `Some`: a part may be written or not.
    async fn fill(&mut self, hand: &mut Hand, cycle: &CycleId, wanted: &CycleWanted) -> Result<Option<String>, Halt> {
        let entries = self.writable(cycle, hand.entries.clone(), &mut hand.intent.refused).await?;
        let items_max = self.adapter.facts().bulk.items_max.max(1);
        for batch in entries.chunks(items_max) {
            let mut out = Vec::new();
            let sent = self.send(cycle, batch, &mut out).await;
            let refused = !out.is_empty() || matches!(sent, Sent::Denied(Halt::Refused(_)));
            if refused && self.is_closed(cycle, wanted).await? {
                // By another writer of this push: nothing of it is about the outcomes.
                return Ok(Some("the container was ended while it was filled".to_owned()));
            }
            hand.refuse(out);
            match sent {
                Sent::Taken => {}
                Sent::Unknown(what) => return Ok(Some(what)),
                Sent::NotAll(halt) | Sent::Denied(halt) => return Err(halt),
            }
        }
        Ok(None)
    }

    async fn is_closed(&mut self, cycle: &CycleId, wanted: &CycleWanted) -> Result<bool, Halt> {
        let (adapter, given) = (self.adapter, CycleWanted { given: Some(cycle.clone()), ..wanted.clone() });
        let found = self.asking(|| adapter.find_cycles(&given)).await?;
        Ok(found.iter().any(|found| found.closed))
    }

    async fn judge_container(&mut self, hand: &mut Hand) -> Result<(), Halt> {
        let Some(cycle) = hand.intent.cycle_there.clone().map(CycleId::new) else {
            // It died before it had one; the next search finds what it made all the same.
            hand.intent.sends = hand.intent.sends.saturating_sub(1);
            return self.step(hand, IntentEvent::Missing).await;
        };
        if self.is_whole(hand, &cycle).await? {
            self.end(&cycle).await?;
            return self.step(hand, IntentEvent::Seen).await;
        }
        self.give_up(&cycle).await?;
        self.step(hand, IntentEvent::Missing).await
    }

    fn is_shown_later(&self) -> bool {
        matches!(self.adapter.facts().visible, Visible::Later(_))
    }

    /// True if a container holds everything once, and nothing else of it.
    async fn is_whole(&mut self, hand: &Hand, cycle: &CycleId) -> Result<bool, Halt> {
        let entries: Vec<Entry> = hand.entries.iter().filter(|entry| !hand.is_refused(entry)).cloned().collect();
        let items_max = self.adapter.facts().bulk.items_max.max(1);
        let adapter = self.adapter;
        for batch in entries.chunks(items_max) {
            match self.asking(|| adapter.count(cycle, batch)).await? {
                Some(count) if count == batch.len() as u64 => {}
                Some(_) => return Ok(false),
                None => {
                    let cases: Vec<CaseId> = batch.iter().map(|entry| entry.case.clone()).collect();
                    let rows = self.asking(|| adapter.rows(cycle, &cases)).await?;
                    let needs = needs(batch, &rows);
                    if !needs.are_met() || !needs.flags.is_empty() {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    async fn end(&mut self, cycle: &CycleId) -> Result<(), Halt> {
        let adapter = self.adapter;
        self.asking(|| adapter.close_cycle(cycle, Closing::Complete)).await
    }

    /// Nothing is taken from it any more; where the product can't say so, another one counts all the same.
    async fn give_up(&mut self, cycle: &CycleId) -> Result<(), Halt> {
        let adapter = self.adapter;
        match self.asking(|| adapter.close_cycle(cycle, Closing::Abandoned)).await {
            Err(Halt::Refused(_)) => Ok(()),
            other => other,
        }
    }
}

/// The container of a try: the same for every process that tries the same content so often.
fn numbered(base: &CycleWanted, intent: &Intent, number: u32) -> CycleWanted {
    let round = format!("{}\0{}\0{}", intent.round, intent.id, number);
    let id = WriteId::of_cycle(&intent.project, intent.cycle.as_str(), &round);
    let name = if number == 0 { base.name.clone() } else { format!("{}, container {}", base.name, number + 1) };
    CycleWanted { name, id, link: base.link.clone(), given: None }
}
