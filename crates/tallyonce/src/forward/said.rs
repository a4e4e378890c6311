//! What people hear of a push at a target, while it is under way and afterwards. Must not print.

use std::time::Duration;

use delivery::foreign::{BookError, Forwarded, Halt, Step, TargetSettings};
use domain::Outcome;
use domain::intent::{Flag, Intent, IntentState, RefusedItem};

use super::{Forwarding, exit_of, meaning};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::settings::duration;

/// What people have to hear of a push at a target.
pub(crate) fn warnings(target: &str, refused: &[RefusedItem], flags: &[Flag], parked: bool) -> Vec<String> {
    let mut said: Vec<String> =
        refused.iter().map(|refused| format!("{target} refused {}: {}", refused.item, refused.why)).collect();
    said.extend(flags.iter().map(|flag| format!("{target}: {flag}: {}", meaning(*flag))));
    if parked {
        said.push(format!(
            "{target}: what is there can't be told from what is to be there: a person has to look (`tallyonce forwards \
             --state parked`), and then takes it up again (`--resume ID`) or leaves it (`--give-up ID`)"
        ));
    }
    said
}

/// A mapping file of which no line fits names items in another way than they are named here.
pub(super) fn of_no_use(settings: &TargetSettings, outcomes: &[Outcome]) -> Option<String> {
    let (name, mapped) = (&settings.name, &settings.cases);
    let first = outcomes.first().filter(|_| !mapped.is_empty())?;
    let fits = outcomes.iter().any(|outcome| mapped.contains_key(&outcome.item.to_string()));
    (!fits).then(|| {
        format!(
            "{name}: none of the {} lines of its mapping file names an item of this push; a line is ITEM, a tab and the case, \
             with the item as it is written here: {}",
            mapped.len(),
            first.item
        )
    })
}

/// True if a person has to look at one of them, and none has yet.
pub(super) fn asks_for_a_look(intents: &[Intent]) -> bool {
    intents.iter().any(|intent| intent.state == IntentState::Parked && intent.is_in_doubt())
}

/// What became of what an earlier process had left at a target: said, and judged, as a push is.
pub(crate) struct Resumed {
    /// A line for each part.
    pub parts: Vec<String>,
    /// What people have to know.
    pub warnings: Vec<String>,
    /// The exit code that goes with it.
    pub exit: Exit,
}

impl Resumed {
    pub(super) fn of(target: &str, intents: &[Intent]) -> Self {
        let line = |intent: &Intent| format!("part {} of {}: {}", intent.number, intent.key, intent.state);
        let forwarded = Forwarded { intents: intents.to_vec(), ..Forwarded::default() };
        let (refused, flags) = (forwarded.refused(), forwarded.all_flags());
        Self {
            parts: intents.iter().map(line).collect(),
            warnings: warnings(target, &refused, &flags, asks_for_a_look(intents)),
            exit: exit_of(&forwarded),
        }
    }
}

pub(super) fn watcher(output: Output) -> impl FnMut(Step) + Send {
    move |step| match step {
        Step::Waiting { ms, why } => {
            output.note(&format!("{why}; going on in {}", duration::show(Duration::from_millis(ms))));
        }
        Step::Left { cycle, why } => output.note(&format!(
            "what is open from before{} is not settled yet, and stays in the ledger: {why}",
            cycle.map(|cycle| format!(" in {cycle}")).unwrap_or_default()
        )),
        Step::Intent { number, state } => output.detail(&format!("part {number}: {state}")),
    }
}

impl Forwarding {
    /// Why it isn't known whether all of it is there.
    pub(super) fn halted(&self, halt: &Halt) -> Failure {
        let name = &self.target.settings.name;
        match halt {
            Halt::Stopped(_) | Halt::Over(_) => Failure::forwarding(name, &halt.to_string()),
            Halt::Denied(what) => Failure::denied_there(name, what),
            Halt::Refused(what) | Halt::Gone(what) => Failure::refused_there(name, what),
            Halt::Book(BookError::OtherPlace { known, now }) => Failure::other_place(name, known, now),
            Halt::Book(error) => Failure::machine(
                format!("the ledger of {name} can't be used: {error}"),
                "Free space or mend permissions, then run the same command again: what is there is read first.",
            ),
        }
    }
}
