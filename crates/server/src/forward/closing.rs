//! The end of a round's cycle at a target after each push that is there, where what comes later still counts. It is no part
//! of what was recorded: a push is there whether its cycle was ended or not. Must not forward anything.

use delivery::Clock;
use delivery::foreign::patience::Patience;
use delivery::foreign::{Book as _, Closing, Forwarded};
use domain::intent::Intent;
use rand::rngs::StdRng;

use super::ForwardTarget;
use super::worker::Session;

/// How long the end of a cycle is tried after a push, in milliseconds.
const TRY_MS: u64 = 30_000;

/// Ends the cycle of a push that is there, unless a person has to look at it first. What stays in progress is ended after the
/// next push.
pub(super) async fn end_after(
    target: &ForwardTarget,
    session: &Session,
    (clock, random): (&dyn Clock, &mut StdRng),
    forwarded: &Forwarded,
) {
    let Some(cycle) = forwarded.cycle.as_ref().filter(|_| target.close_after_push) else { return };
    // Nor if the server stops, or somebody else may have the target by now.
    if session.book.may_change().is_err() || forwarded.intents.iter().any(Intent::is_in_doubt) {
        return;
    }
    let deadline_ms = clock.now_ms().saturating_add(TRY_MS);
    let mut patience = Patience::new(clock, random, &session.stop, deadline_ms);
    let name = &target.settings.name;
    match patience.finishing(|| target.adapter.close_cycle(cycle, Closing::Complete)).await {
        Ok(()) => tracing::debug!(target = %name, %cycle, "ended there"),
        Err(cause) => tracing::warn!(
            target = %name, %cycle, %cause,
            "all of the push is there, but its cycle is still in progress: the next push ends it, or `tallyonce close`"
        ),
    }
}
