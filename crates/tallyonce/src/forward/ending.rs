//! When the cycle of a round is ended at a target. Several jobs push into one: none of them knows that it is the last, so it is
//! ended after each where what comes later still counts, and by `tallyonce close` everywhere else. Must not forward anything.

use std::collections::BTreeSet;
use std::time::Duration;

use delivery::foreign::patience::Patience;
use delivery::foreign::{Adapter, Closing, CycleId, Ending, Kind, Strategy};
use delivery::{Clock as _, Stop, SystemClock};
use domain::intent::Intent;
use rand::rngs::StdRng;

use super::Forwarding;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::settings::target::{CloseWhen, TargetSection};

/// How long the end of a cycle is tried after a push. It is no part of what was recorded.
const TRY: Duration = Duration::from_secs(30);

/// When cycles of this target are ended.
///
/// # Errors
/// The configuration wants what would lose outcomes, or can't be.
pub(super) fn when(
    section: &TargetSection,
    wanted: Option<CloseWhen>,
    strategy: Strategy,
    adapter: &dyn Adapter,
) -> Result<CloseWhen, Failure> {
    let Some(CloseWhen::Push) = wanted else { return Ok(wanted.unwrap_or_else(|| usual(strategy, adapter))) };
    let kind = adapter.facts().kind;
    let why = match adapter.ending() {
        _ if strategy == Strategy::Container => {
            "each push has a container of its own, which is ended by itself".to_owned()
        }
        Ending::Takes => return Ok(CloseWhen::Push),
        Ending::Refuses => format!(
            "what is ended in {kind} may refuse the next job's outcomes: run `tallyonce close --to {}` once all have pushed",
            section.name
        ),
        Ending::None => format!("nothing has an end in {kind}"),
    };
    Err(section.wrong("close", &why))
}

/// A launch that is never finished is interrupted by `ReportPortal` one day; one that is finished takes what comes later,
/// and its verdict follows. Elsewhere the end is left to whoever knows which job is the last one.
fn usual(strategy: Strategy, adapter: &dyn Adapter) -> CloseWhen {
    if adapter.facts().kind == Kind::Reportportal && strategy != Strategy::Container {
        CloseWhen::Push
    } else {
        CloseWhen::Never
    }
}

impl Forwarding {
    /// # Errors
    /// There is nothing that could be ended at this target.
    pub(crate) fn has_an_end(&self) -> Result<(), Failure> {
        let (name, kind) = (&self.target.settings.name, self.target.settings.kind);
        let why = match self.adapter.ending() {
            _ if self.strategy == Strategy::Container => {
                "with `container` every push has a cycle of its own there, which is ended by itself".to_owned()
            }
            Ending::None => format!("nothing has an end in {kind}"),
            Ending::Takes | Ending::Refuses => return Ok(()),
        };
        Err(Failure::usage(format!("{name}: {why}"), "Nothing is left to be done there."))
    }

    /// Ends cycles after a push that is there whole, where that is the way. Gives what people have to know.
    pub(super) async fn end_after(&self, cycles: &[CycleId], exit: Exit, stop: &Stop) -> Vec<String> {
        let mut open = Vec::new();
        if self.close != CloseWhen::Push || exit == Exit::Forwarding {
            return open;
        }
        let (clock, mut random) = (SystemClock::new(), rand::make_rng::<StdRng>());
        let deadline_ms = clock.now_ms().saturating_add(u64::try_from(TRY.as_millis()).unwrap_or(u64::MAX));
        let mut patience = Patience::new(&clock, &mut random, stop, deadline_ms);
        for cycle in cycles {
            if let Err(why) = patience.finishing(|| self.adapter.close_cycle(cycle, Closing::Complete)).await {
                let name = &self.target.settings.name;
                open.push(format!(
                    "{name}: all of it is there, but cycle {cycle} is still in progress ({why}): the next push ends it, or \
                     `tallyonce close --to {name}`"
                ));
            }
        }
        open
    }

    /// The same after what an earlier process had left, but for cycles of which something is in doubt.
    pub(super) async fn end_resumed(&self, ended: &[Intent], stop: &Stop) -> Vec<String> {
        let there = |intent: &Intent| intent.cycle_there.clone();
        let doubtful: BTreeSet<String> = ended.iter().filter(|intent| intent.is_in_doubt()).filter_map(there).collect();
        let all: BTreeSet<String> = ended.iter().filter_map(there).collect();
        let whole: Vec<CycleId> = all.difference(&doubtful).map(CycleId::new).collect();
        self.end_after(&whole, Exit::Success, stop).await
    }
}
