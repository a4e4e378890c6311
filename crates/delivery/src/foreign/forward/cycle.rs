//! The cycle of a round there: found, or made once, whoever else makes one at the same time (race R3).
//! Must not know what is written into it.

use domain::intent::Flag;

use super::{Forwarder, Halt, Turn};
use crate::foreign::entry::{CycleFound, CycleId, CycleWanted};
use crate::foreign::trouble::Trouble;

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
    ) -> Result<CycleId, Halt> {
        if let Some(given) = &wanted.given {
            return Ok(given.clone());
        }
        if let Some(known) = self.book.cycle(self.target, wanted.id).await? {
            return Ok(known);
        }
        let cycle = self.found_or_made(wanted, flags).await?;
        self.book.keep_cycle(turn, self.target, wanted.id, Some(&cycle)).await?;
        Ok(cycle)
    }

    pub(super) async fn found_or_made(&mut self, wanted: &CycleWanted, flags: &mut Vec<Flag>) -> Result<CycleId, Halt> {
        let (mut backoff, begun_ms) = (self.backoff(), self.clock.now_ms());
        loop {
            if let Some(cycle) = self.oldest(wanted, flags).await? {
                return Ok(cycle);
            }
            match self.adapter.create_cycle(wanted).await {
                // Somebody may have made one before.
                Ok(made) => return Ok(self.oldest(wanted, flags).await?.unwrap_or(made)),
                Err(Trouble::Denied(what)) => return Err(Halt::Denied(what)),
                Err(Trouble::Refused(what) | Trouble::Gone(what) | Trouble::TooLarge(what)) => {
                    return Err(Halt::Refused(what));
                }
                Err(Trouble::Unknown(what)) => self.pause(self.quiet_ms, &what).await?,
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
}
