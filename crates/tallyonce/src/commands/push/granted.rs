//! What is refused before anything is kept, sent or run: the same for a push, for `run` before its tests, and for a dry run.
//! Must not make anything.

use delivery::Parcel;

use super::{Prepared, Pushed, warn};
use crate::exit::Exit;
use crate::failure::{Failure, State};
use crate::forward::Forwarding;
use crate::object::PushObject;

impl Prepared<'_> {
    /// The end of a dry run.
    pub(super) async fn only_shown(&self, parcel: &Parcel, object: &mut PushObject) -> Result<Pushed, Failure> {
        let forwarding = self.granted().await?;
        object.counts = Some(parcel.header.counts);
        object.ends(State::DryRun, Exit::Success);
        let mut shown = String::new();
        if let Some(forwarding) = &forwarding {
            shown = forwarding.shown();
            warn(self.output, object, forwarding.doubt().map(str::to_owned).as_slice());
            // Of a large push nothing is kept that could be looked through: it was only counted.
            if let Ok(push) = parcel.push() {
                let (line, warnings) = forwarding.cases_shown(push.outcomes.as_slice());
                shown.push_str(&line);
                warn(self.output, object, &warnings);
            }
        }
        if !self.settings.json {
            self.output.text(&format!("{}{shown}", self.plan(object)));
        }
        Ok(Pushed::unsent())
    }

    /// The target of the configuration that it goes to, ready, if `--to` names one. What a push would refuse before it keeps
    /// or sends anything, a dry run refuses too, and so does `run` before the tests. Makes nothing.
    ///
    /// # Errors
    /// The table can't be used, the last probe speaks against the strategy, or its ledger stands for another place.
    pub(crate) async fn granted(&self) -> Result<Option<Forwarding>, Failure> {
        let Some(section) = self.settings.place.target().filter(|_| self.settings.seal.is_none()) else {
            return Ok(None);
        };
        let prepared = Forwarding::prepare(section, self.env, &self.settings.connection, self.output)?;
        let forwarding = prepared.granted(self.settings.strict)?;
        forwarding.stands_here().await?;
        Ok(Some(forwarding))
    }
}
