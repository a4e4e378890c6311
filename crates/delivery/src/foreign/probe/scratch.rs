//! The scratch cycle of a probe: made, remembered, and removed whatever happens. Must not know what is written into it.

use std::sync::atomic::{AtomicBool, Ordering};

use domain::marker::WriteId;
use futures_util::future::BoxFuture;
use rand::RngExt;

use super::call::{Called, called};
use super::measured::Twin;
use crate::clock::Clock;
use crate::foreign::adapter::{Adapter, Closing, Ending};
use crate::foreign::entry::{CycleId, CycleWanted};
use crate::foreign::patience::{GaveUp, Patience};
use crate::foreign::trouble::Trouble;

/// So often a removal is tried.
const TRIES_MAX: u32 = 4;
/// So often a cycle that was made is looked for.
const LOOKS: u32 = 8;
/// Between two looks, in milliseconds.
const LOOK_MS: u64 = 2000;
/// Between two tries of a removal, in milliseconds.
const PAUSE_MS: u64 = 1000;

/// The cycles of a probe.
pub(super) struct Scratch<'a> {
    pub(super) adapter: &'a dyn Adapter,
    /// How long a call without an answer is waited for, in milliseconds.
    pub(super) quiet_ms: u64,
    wanted: CycleWanted,
    /// Those of another tag.
    others: Vec<CycleWanted>,
    known: Vec<CycleId>,
    /// Those whose making was not answered, and how many of their tag were known then.
    unclear: Vec<(CycleWanted, usize)>,
    /// Something was asked for, so there may be something.
    asked: bool,
}

impl<'a> Scratch<'a> {
    /// Nothing is made yet.
    pub(super) fn new(adapter: &'a dyn Adapter, quiet_ms: u64, at: &str, patience: &mut Patience<'_>) -> Self {
        let id = WriteId(patience.random.random());
        let wanted = CycleWanted { name: format!("Tallyonce probe {at}"), id, link: None, given: None };
        Self { adapter, quiet_ms, wanted, others: Vec::new(), known: Vec::new(), unclear: Vec::new(), asked: false }
    }

    /// Makes the cycle.
    pub(super) async fn make(&mut self, patience: &mut Patience<'_>) -> Result<CycleId, GaveUp> {
        self.make_one(self.wanted.clone(), patience).await
    }

    /// Makes one of another tag.
    pub(super) async fn make_another(&mut self, patience: &mut Patience<'_>) -> Result<CycleId, GaveUp> {
        let id = WriteId(patience.random.random());
        let wanted = CycleWanted { name: format!("{}, another", self.wanted.name), id, ..self.wanted.clone() };
        self.others.push(wanted.clone());
        self.make_one(wanted, patience).await
    }

    async fn make_one(&mut self, wanted: CycleWanted, patience: &mut Patience<'_>) -> Result<CycleId, GaveUp> {
        let adapter = self.adapter;
        match self.create(&wanted, 0, patience).await? {
            Called::Done(cycle) => {
                self.known.push(cycle.clone());
                Ok(cycle)
            }
            Called::Refused(trouble) => Err(GaveUp::Refused(format!("no cycle can be made: {trouble}"))),
            Called::Unknown(what) => {
                let found = patience.reading(|| adapter.find_cycles(&wanted)).await?;
                let first = found.first().map(|cycle| cycle.id.clone());
                if first.is_some() {
                    self.unclear.retain(|(unclear, _)| *unclear != wanted);
                }
                self.known.extend(found.into_iter().map(|cycle| cycle.id));
                first.ok_or(GaveUp::Over(format!("no cycle could be made: {what}")))
            }
        }
    }

    /// Asks for one, of whose tag so many are known, and remembers it if nobody says what became of it.
    async fn create(
        &mut self,
        wanted: &CycleWanted,
        known: usize,
        patience: &mut Patience<'_>,
    ) -> Result<Called<CycleId>, GaveUp> {
        self.asked = true;
        let (adapter, unclear) = (self.adapter, AtomicBool::new(false));
        let made = called(patience, self.quiet_ms, || {
            Box::pin(async {
                let made = adapter.create_cycle(wanted).await;
                unclear.fetch_or(matches!(made, Err(Trouble::Unknown(_))), Ordering::Relaxed);
                made
            })
        });
        let made = made.await;
        if unclear.into_inner() {
            self.unclear.push((wanted.clone(), known));
        }
        made
    }

    /// Makes it once more.
    pub(super) async fn make_a_twin(&mut self, patience: &mut Patience<'_>) -> Result<Twin, GaveUp> {
        patience.measures("what a cycle that is made twice becomes, and whether it is listed");
        let (adapter, wanted) = (self.adapter, self.wanted.clone());
        let before = self.known.len();
        let words = match self.create(&wanted, before, patience).await? {
            Called::Done(cycle) => {
                if !self.known.contains(&cycle) {
                    self.known.push(cycle);
                }
                None
            }
            Called::Refused(trouble) => Some(trouble.to_string()),
            Called::Unknown(what) => Some(what),
        };
        let (first, mut listed) = (self.known.first().cloned(), false);
        for look in 0..LOOKS {
            if look > 0 {
                patience.wait(LOOK_MS, "until the cycle that was made is listed").await?;
            }
            for cycle in patience.reading(|| adapter.find_cycles(&wanted)).await? {
                listed |= first.as_ref() == Some(&cycle.id);
                if !self.known.contains(&cycle.id) {
                    self.known.push(cycle.id);
                }
            }
            if listed {
                break;
            }
        }
        if self.known.len() > before {
            self.unclear.retain(|(unclear, _)| *unclear != wanted);
        }
        Ok(Twin { made: self.known.len() > 1, words, listed: Some(listed) })
    }

    /// The twin, into which nothing was written.
    pub(super) fn empty(&self) -> Option<CycleId> {
        self.known.get(1).cloned()
    }

    /// Deletes what was made, or ends it where nothing can be deleted. Also after a wish to stop. Says what is left.
    pub(super) async fn remove(mut self, clock: &dyn Clock) -> Vec<String> {
        if !self.asked {
            return Vec::new();
        }
        let mut left = Vec::new();
        for wanted in std::iter::once(&self.wanted).chain(&self.others) {
            let perhaps = |why: &str| {
                let another = if self.known.is_empty() { "a" } else { "another" };
                format!("perhaps {another} cycle named {:?}: {why}", wanted.name)
            };
            match again(clock, || self.adapter.find_cycles(wanted)).await {
                Ok(found) => {
                    let is_more = |(unclear, known): &(CycleWanted, usize)| unclear == wanted && found.len() <= *known;
                    if self.unclear.iter().any(is_more) {
                        left.push(perhaps("it was asked for without an answer, and is not listed"));
                    }
                    self.known.extend(found.into_iter().map(|cycle| cycle.id));
                }
                Err(why) => left.push(perhaps(&format!("they can't be listed: {why}"))),
            }
        }
        self.known.sort();
        self.known.dedup();
        for cycle in &self.known {
            left.extend(self.remove_one(cycle, clock).await);
        }
        left
    }

    async fn remove_one(&self, cycle: &CycleId, clock: &dyn Clock) -> Option<String> {
        let mut why = "the product deletes no cycle".to_owned();
        if self.adapter.facts().repair.delete_cycle {
            match again(clock, || self.adapter.delete_cycle(cycle)).await {
                Ok(()) | Err(Trouble::Gone(_)) => return None,
                Err(trouble) => why = trouble.to_string(),
            }
        }
        let ended = again(clock, || self.adapter.close_cycle(cycle, Closing::Abandoned)).await;
        let how = match (ended, self.adapter.ending()) {
            (Ok(()), _) if self.adapter.deletes_abandoned() => return None,
            (Ok(()), Ending::None) => format!("as it is, since nothing has an end in {}", self.adapter.facts().kind),
            (Ok(()), Ending::Takes | Ending::Refuses) => "ended, and not deleted".to_owned(),
            (Err(trouble), _) => format!("neither deleted nor ended ({trouble})"),
        };
        Some(format!("cycle {cycle}, {how}, with what the probe wrote into it: delete it by hand ({why})"))
    }
}

/// A few tries that no wish to stop and no deadline ends: removing again is harmless.
async fn again<'c, T: Send>(
    clock: &dyn Clock,
    mut call: impl FnMut() -> BoxFuture<'c, Result<T, Trouble>> + Send,
) -> Result<T, Trouble> {
    let mut tries = 1;
    loop {
        match call().await {
            Err(Trouble::Wait { after_ms, .. }) if tries < TRIES_MAX => clock.sleep(after_ms).await,
            Err(Trouble::Unknown(_) | Trouble::NotSent(_)) if tries < TRIES_MAX => clock.sleep(PAUSE_MS).await,
            ended => return ended,
        }
        tries += 1;
    }
}
