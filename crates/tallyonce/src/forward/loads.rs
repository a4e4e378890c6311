//! What of a push is forwarded: all that counts of it. Must not forward it.

use delivery::foreign::Load;
use delivery::{Clock as _, Header, Parcel, SystemClock};
use domain::PushId;
use store::{Absent, PushLoad};

use super::Forwarding;
use crate::failure::Failure;
use crate::repository;

impl Forwarding {
    /// What counts of a push of which several revisions are recorded: what is offered may be less, more, or older.
    pub(super) async fn recorded(&self, parcel: &Parcel) -> Result<Load, Failure> {
        let Header { key, place, .. } = &parcel.header;
        let store = repository::open(&self.target.ledger.to_string())?;
        let load = store.push_load(&place.project, PushId::of(&place.project, key)).await;
        let load = load.map_err(|error| Failure::store(&error))?.map_err(|absent| self.not_kept(&absent))?;
        let PushLoad { key, place, ordinal, run_url, outcomes, .. } = load;
        Ok(Load::of(&self.target.settings, &place, (key, ordinal), outcomes, run_url, SystemClock::new().unix_ms()))
    }

    /// What is offered, where that is all that counts.
    pub(super) fn offered(&self, parcel: &Parcel) -> Result<Load, Failure> {
        let push = parcel.push().map_err(|error| Failure::broken_entry(error.to_string()))?;
        let header = &parcel.header;
        let outcomes = push.outcomes.as_slice().to_vec();
        let of = (header.key.clone(), header.sender.ordinal);
        let (link, at_ms) = (header.origin.run_url.clone(), SystemClock::new().unix_ms());
        Ok(Load::of(&self.target.settings, &header.place, of, outcomes, link, at_ms))
    }

    /// Somebody deleted it right after it was recorded.
    fn not_kept(&self, absent: &Absent) -> Failure {
        let what = format!("{}: what counts of the push can't be read from its ledger: {absent}", self.name());
        Failure {
            means: "It was recorded there; nothing of this delivery was sent to the target.".to_owned(),
            ..Failure::machine(
                what,
                "See `tallyonce show`: a push that was deleted is recorded again under another key.",
            )
        }
    }
}
