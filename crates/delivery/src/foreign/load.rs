//! From a push with us to what is to be there: one way for a job's own ledger and for a server. Must not read or send
//! anything.

use domain::marker::WriteId;
use domain::{Ordinal, Outcome, Place, PushKey, RoundId};

use super::entry::CycleWanted;
use super::forward::Load;
use super::settings::{CyclePer, TargetSettings};

impl TargetSettings {
    /// What stands for a round in the id of its cycle there.
    pub fn round_part<'a>(&self, round: &'a RoundId) -> &'a str {
        match self.cycle_per {
            CyclePer::Round => round.as_str(),
            CyclePer::Cycle => "",
        }
    }

    /// The cycle there of pushes of this place. `link`: where people find their run.
    pub fn cycle_wanted(&self, place: &Place, link: Option<String>) -> CycleWanted {
        let Place { project, cycle, round, run, .. } = place;
        let name = match self.cycle_per {
            CyclePer::Round => format!("{project} {cycle}, run {run}"),
            CyclePer::Cycle => format!("{project} {cycle}"),
        };
        let id = WriteId::of_cycle(project, cycle.as_str(), self.round_part(round));
        CycleWanted { name, id, link, given: self.cycle.clone() }
    }
}

impl Load {
    /// A push as it is to be at a target. `at_ms`: when it was recorded with us.
    pub fn of(
        settings: &TargetSettings,
        place: &Place,
        (key, ordinal): (PushKey, Option<Ordinal>),
        outcomes: Vec<Outcome>,
        link: Option<String>,
        at_ms: u64,
    ) -> Self {
        Self {
            project: place.project.clone(),
            cycle: place.cycle.clone(),
            round: place.round.clone(),
            key,
            ordinal,
            outcomes,
            at_ms,
            wanted: settings.cycle_wanted(place, link),
        }
    }
}
