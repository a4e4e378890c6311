//! What is held against a target before anything is sent to it: the last probe, the folder of its ledger, and, for a dry run,
//! which items have no case. Must not connect, and a dry run must not make anything by it.

use std::fmt::Write as _;

use delivery::Destination;
use delivery::foreign::probe::{self, Leave, Probed};
use delivery::foreign::{CaseWanted, Facts};
use domain::Outcome;

use super::Forwarding;
use crate::failure::Failure;
use crate::settings::target::Target;

/// So many items without a case are listed.
const LISTED_MAX: usize = 20;

impl Forwarding {
    /// Holds the strategy against the last probe, if there is one. Makes nothing.
    ///
    /// # Errors
    /// The probe speaks against it; under `strict` also if no whole probe of this target has confirmed `replace`.
    pub(crate) fn granted(mut self, strict: bool) -> Result<Self, Failure> {
        let name = &self.target.settings.name;
        let path = &self.target.probe;
        let refused = |why: &str| {
            Failure::usage(
                format!("{name}: {why}"),
                format!(
                    "Mend what it names or choose a strategy that it allows, then run `tallyonce probe {name}` again; its \
                     result is {}.",
                    path.display()
                ),
            )
        };
        let probed = match std::fs::read_to_string(path) {
            Ok(text) => Some(Probed::parse(&text).map_err(|why| refused(&format!("{}: {why}", path.display())))?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(refused(&format!("{} can't be read: {error}", path.display()))),
        };
        let facts = Facts { quiet_ms: self.quiet_ms(), ..*self.adapter.facts() };
        let subject = self.target.settings.subject();
        self.doubt = match probe::leave(self.strategy, probed.as_ref(), &subject, &facts, strict) {
            Leave::Granted => None,
            Leave::Warned(why) => Some(format!("{name}: {why}")),
            Leave::Refused(why) => return Err(refused(&why)),
        };
        Ok(self)
    }

    /// Makes the folder of the ledger.
    ///
    /// # Errors
    /// It can't be made.
    pub(crate) fn with_folder(self) -> Result<Self, Failure> {
        let name = &self.target.settings.name;
        if !self.target.served
            && let Destination::Sqlite(ledger) = &self.target.ledger
            && let Some(folder) = ledger.parent().filter(|folder| !folder.as_os_str().is_empty())
        {
            std::fs::create_dir_all(folder).map_err(|error| {
                Failure::machine(
                    format!("{name}: the folder {} of its ledger can't be made: {error}", folder.display()),
                    "Mend permissions, or name another ledger: `ledger` of the target.",
                )
            })?;
        }
        Ok(self)
    }

    /// For a dry run: what it is, and where its ledger would be.
    pub(crate) fn shown(&self) -> String {
        let Target { settings, ledger, .. } = &self.target;
        let (name, kind, strategy) = (&settings.name, settings.kind, self.strategy);
        format!("{:<14} {name} ({kind}, {strategy}), ledger {ledger}; asked nothing\n", "target")
    }

    /// For a dry run: what is known of the items' cases without a call. A line for people, and a warning for each that has none.
    pub(crate) fn cases_shown(&self, outcomes: &[Outcome]) -> (String, Vec<String>) {
        let settings = &self.target.settings;
        let name = &settings.name;
        let mapped = |outcome: &Outcome| settings.cases.get(&outcome.item.to_string());
        let wanted: Vec<CaseWanted<'_>> = outcomes
            .iter()
            .map(|outcome| CaseWanted {
                item: &outcome.item,
                external_ids: &outcome.external_ids,
                mapped: mapped(outcome),
            })
            .collect();
        let (all, mut text, mut warnings) = (wanted.len(), String::new(), Vec::new());
        warnings.extend(super::said::of_no_use(settings, outcomes));
        let Some(choices) = self.adapter.own_cases(&wanted) else {
            let in_file = wanted.iter().filter(|wanted| wanted.mapped.is_some()).count();
            let _ = writeln!(
                text,
                "{:<14} {in_file} of {all} items stand in the mapping file; whether the others have a case, only {} can tell",
                "cases", settings.kind
            );
            return (text, warnings);
        };
        let mut without = 0_usize;
        for (wanted, choice) in wanted.iter().zip(choices) {
            let (cases, left_out) = choice.into_parts();
            without += usize::from(cases.is_empty());
            let listed = left_out.into_iter().map(|why| format!("{name} would refuse {}: {why}", wanted.item));
            warnings.extend(listed);
        }
        let more = warnings.len().saturating_sub(LISTED_MAX);
        if more > 0 {
            warnings.truncate(LISTED_MAX);
            warnings.push(format!("{name} would refuse {more} more for want of a case"));
        }
        let _ = writeln!(text, "{:<14} {} of {all} items have one", "cases", all - without);
        (text, warnings)
    }
}
