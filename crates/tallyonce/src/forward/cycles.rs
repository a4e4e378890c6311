//! The cycle of a target that a round of ours stands for, named and tagged the same for every command. Must not call a product.

use delivery::foreign::{CycleId, CycleWanted, Strategy, container_id};
use domain::intent::Intent;
use domain::listing::RoundReport;
use domain::marker::WriteId;
use domain::{CycleName, Place, ProjectId, RoundId, RunId, Variant};

use super::Forwarding;

impl Forwarding {
    /// The cycle of a round, as every push of it asks for it. A run that isn't known any more is left out of the name.
    pub(crate) fn wanted(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        round: &RoundId,
        run: Option<&RunId>,
        link: Option<String>,
    ) -> CycleWanted {
        let settings = &self.target.settings;
        let Some(run) = run else {
            let id = WriteId::of_cycle(project, cycle.as_str(), settings.round_part(round));
            return CycleWanted { name: format!("{project} {cycle}"), id, link, given: settings.cycle.clone() };
        };
        let place = Place {
            project: project.clone(),
            cycle: cycle.clone(),
            round: round.clone(),
            run: run.clone(),
            label: None,
            job: None,
            shard: None,
            variant: Variant::default(),
        };
        settings.cycle_wanted(&place, link)
    }

    /// The cycle that an intent was written into; `round` is what the ledger still knows of its round.
    pub(crate) fn wanted_of(&self, intent: &Intent, there: &str, round: Option<&RoundReport>) -> CycleWanted {
        let (run, link) = (round.map(|round| &round.run), round.and_then(|round| round.run_url.clone()));
        let wanted = self.wanted(&intent.project, &intent.cycle, &intent.round, run, link);
        let id = match self.strategy {
            // Each try of a push has a container of its own, and the last one counts.
            Strategy::Container => container_id(intent, intent.sends.saturating_sub(1)),
            _ => wanted.id,
        };
        CycleWanted { id, given: Some(CycleId::new(there)), ..wanted }
    }
}
