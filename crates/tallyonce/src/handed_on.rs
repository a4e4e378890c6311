//! Waits until a server has handed a recorded push on to its targets (`--wait-forward`), and says what became of it there.
//! The push is recorded whatever comes: nothing here may end as if it were not. Must not forward anything.

use std::time::Duration;

use delivery::{Clock as _, Stop, SystemClock};
use domain::listing::{ForwardReport, PushForwards};

use crate::exit::Exit;
use crate::failure::{Failure, State};
use crate::forward;
use crate::object::PushObject;
use crate::output::Output;
use crate::repository::{Repository, pauses};

/// Waits at most so long, and takes down in `object` what became of the push. Gives the exit code that goes with it.
pub(crate) async fn wait(
    repository: &Repository,
    left: Duration,
    stop: &Stop,
    output: Output,
    object: &mut PushObject,
) -> Exit {
    let until = Until { clock: SystemClock::new(), left, stop };
    let known = match until.settled(repository, output, object).await {
        Ok(known) => known,
        Err(failure) => {
            object.warnings.push(format!(
                "it is recorded, and nobody knows how far it is at the server's targets: {}",
                failure.what
            ));
            return Exit::Forwarding;
        }
    };
    if known.forwards.is_empty() {
        object.warnings.push(nothing_to_wait_for(repository).to_owned());
    }
    for forward in &known.forwards {
        object.warnings.extend(warnings(forward));
    }
    let exit = exit_of(&known.forwards);
    object.forwards = Some(known.forwards);
    exit
}

/// Why a push goes to no target.
fn nothing_to_wait_for(repository: &Repository) -> &'static str {
    match repository {
        Repository::Remote(_) => {
            "the server hands this push on to no target: there was nothing to wait for ([forward.NAME] of its \
             tallyonce.toml says what goes where)"
        }
        Repository::Embedded(_) => {
            "a push straight into a store's file goes on to no target, whatever [forward.NAME] says: there was nothing to \
             wait for. Push to the server (--to http://…) that hands on what it records, or to the target by its name"
        }
    }
}

/// A wait with an end.
struct Until<'a> {
    clock: SystemClock,
    left: Duration,
    stop: &'a Stop,
}

impl Until<'_> {
    /// As it is once nothing more happens by itself, or at the end of the wait.
    async fn settled(
        &self,
        repository: &Repository,
        output: Output,
        object: &PushObject,
    ) -> Result<PushForwards, Failure> {
        let (Some(project), Some(push)) = (&object.project, object.push) else {
            return Err(Failure::nothing_there("the push has no name", "Report this."));
        };
        let reader = repository.reader()?;
        let mut said = String::new();
        let mut last = None;
        for pause in pauses() {
            // At first it only looks: somebody who asked to stop hears how far it is, and waits for nothing.
            let wait = if last.is_some() { self.left() } else { Duration::ZERO };
            let answer = tokio::select! {
                () = self.stopped(last.is_some()) => break,
                answer = reader.forwards(project, push, wait) => answer,
            };
            match answer {
                Ok(known) if known.settled => return Ok(known),
                Ok(known) => {
                    let words = waits_for(&known);
                    if words != said {
                        output.note(&format!("waiting: {words}"));
                        said = words;
                    }
                    last = Some(Ok(known));
                }
                // A server that is away for a moment goes on afterwards.
                Err(failure) if matches!(failure.state, State::NotSent | State::PossiblyWritten) => {
                    output.note(&format!("waiting: {}", failure.what));
                    last = Some(Err(failure));
                }
                Err(failure) => return Err(failure),
            }
            let left = self.left();
            if left.is_zero() || self.stop.is_requested() {
                break;
            }
            tokio::select! {
                () = self.stop.requested() => {}
                () = tokio::time::sleep(pause.min(left).min(LOOK_AGAIN_MAX)) => {}
            }
        }
        last.unwrap_or_else(|| Err(Failure::unknown_forwards()))
    }

    /// Once somebody has asked to stop; the first look may end all the same, if it is quick.
    async fn stopped(&self, looked: bool) {
        self.stop.requested().await;
        if !looked {
            tokio::time::sleep(FIRST_LOOK_MAX).await;
        }
    }

    fn left(&self) -> Duration {
        self.left.saturating_sub(Duration::from_millis(self.clock.now_ms()))
    }
}

/// How long the first look goes on once somebody has asked to stop.
const FIRST_LOOK_MAX: Duration = Duration::from_secs(1);
/// Between two questions at most: the server itself waits before it answers, if it can.
const LOOK_AGAIN_MAX: Duration = Duration::from_secs(2);

fn waits_for(known: &PushForwards) -> String {
    let open = known.forwards.iter().filter(|forward| !forward.state.is_settled());
    let words = open.map(|forward| {
        let cause = forward.cause.as_deref().map(|cause| format!(" ({cause})")).unwrap_or_default();
        format!("{} is {}{cause}", forward.target, forward.state)
    });
    words.collect::<Vec<_>>().join("; ")
}

/// What people have to hear of a push at one target.
fn warnings(forward: &ForwardReport) -> Vec<String> {
    let name = &forward.target;
    let mut said = forward::warnings(name, &forward.refused, &forward.flags, forward.asks_for_a_look());
    if !forward.state.is_settled() {
        let cause = forward.cause.as_deref().map(|cause| format!(": {cause}")).unwrap_or_default();
        // Only a server that has the target names its product.
        let goes_on = if forward.kind.is_some() {
            "the server goes on by itself"
        } else {
            "the server has no such target: it goes on once its tallyonce.toml has it again"
        };
        said.push(format!(
            "{name}: not known to be there yet ({}){cause}; {goes_on}, and `tallyonce forwards` shows how far it is",
            forward.state
        ));
    }
    said
}

/// The worst that is to be said of a push at all its targets.
fn exit_of(forwards: &[ForwardReport]) -> Exit {
    if forwards.iter().any(ForwardReport::is_wrong) {
        Exit::Forwarding
    } else if forwards.iter().any(|forward| !forward.refused.is_empty()) {
        Exit::Partly
    } else {
        Exit::Success
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use domain::intent::{Flag, IntentState, RefusedItem};

    use super::*;

    fn forward(state: IntentState) -> ForwardReport {
        ForwardReport {
            target: "rail".to_owned(),
            kind: None,
            revision: 1,
            state,
            cases: 1,
            states: BTreeMap::new(),
            flags: Vec::new(),
            refused: Vec::new(),
            cycle_there: None,
            tries: 0,
            due_ms: None,
            cause: None,
        }
    }

    #[test]
    fn nothing_is_promised_of_a_target_that_is_gone() {
        let gone = warnings(&forward(IntentState::Planned)).concat();
        assert!(gone.contains("has no such target") && !gone.contains("by itself"), "{gone}");
        let there = ForwardReport { kind: Some("testrail".to_owned()), ..forward(IntentState::Planned) };
        let there = warnings(&there).concat();
        assert!(there.contains("goes on by itself"), "{there}");
    }

    #[test]
    fn what_is_open_parked_or_wrong_is_seven_and_what_was_refused_six() {
        use IntentState as S;
        for state in S::ALL {
            let is_there = matches!(state, S::Acked | S::Found | S::Rejected);
            let exit = if is_there { Exit::Success } else { Exit::Forwarding };
            assert_eq!(exit_of(&[forward(S::Acked), forward(state)]), exit, "{state}");
        }
        let item = RefusedItem::new("adds", "no case");
        let refused = ForwardReport { refused: vec![item], ..forward(S::Rejected) };
        assert_eq!(exit_of(std::slice::from_ref(&refused)), Exit::Partly);
        assert_eq!(exit_of(&[refused, forward(S::Unknown)]), Exit::Forwarding);
        let flagged = |flag| exit_of(&[ForwardReport { flags: vec![flag], ..forward(S::Acked) }]);
        assert_eq!(flagged(Flag::DuplicateDetected), Exit::Forwarding);
        assert_eq!(flagged(Flag::Stale), Exit::Success);
        let looked_at = ForwardReport { flags: vec![Flag::GivenUp], ..forward(S::Parked) };
        assert_eq!(exit_of(std::slice::from_ref(&looked_at)), Exit::Success);
        assert!(!warnings(&looked_at).concat().contains("a person has to look"), "{:?}", warnings(&looked_at));
        assert!(warnings(&forward(S::Parked)).concat().contains("a person has to look"));
        assert_eq!(exit_of(&[]), Exit::Success);
    }
}
