//! What a server records and forwards by itself, step by step.

use std::sync::Arc;

use domain::PushKey;
use domain::forwarding::ForwardRule;
use domain::intent::Intent;
use store::conformance::build::forwards::{forwarded, rule};
use store::conformance::build::{AT_MS, Build, intent, main_cycle, now, push};
use store::{Chunk, Promotion, Store, StoreError, Waiting};

/// One call, by the server that has the first turn at target `beyond`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Lease,
    KeepLease,
    EndLease,
    Record(&'static str, u64),
    Promote,
    Begin,
    Put,
    Commit,
    PutOff,
    End,
    Plan,
    Swept,
    DropRound,
}

/// Everything that makes a push wait, and everything that becomes of it, at least once.
pub(crate) const STEPS: [Step; 14] = [
    Step::Lease,
    Step::Record("a- b+", 1),
    Step::Record("a+ b+", 2),
    Step::Promote,
    Step::Begin,
    Step::Put,
    Step::Commit,
    Step::PutOff,
    Step::KeepLease,
    Step::End,
    Step::Plan,
    Step::Swept,
    Step::EndLease,
    Step::DropRound,
];

/// Pushes of one project go to two targets.
pub(crate) fn rules() -> Vec<ForwardRule> {
    vec![rule("beyond", &["depot"], &[]), rule("other", &["depot"], &["ma*"])]
}

fn of(words: &str) -> Build {
    push(words).project("depot")
}

async fn waits(store: &Arc<dyn Store>) -> Result<Waiting, StoreError> {
    Ok(store.next_waiting("beyond", AT_MS).await?.unwrap())
}

impl Step {
    pub(crate) async fn take(self, store: Arc<dyn Store>) -> Result<String, StoreError> {
        let cut = of("c+ d-").key("staged").cut(0);
        Ok(match self {
            Step::Lease => format!("{:?}", store.take_lease("beyond", "one", AT_MS, AT_MS + 60).await?),
            Step::KeepLease => format!("{:?}", store.keep_lease("beyond", 1, AT_MS + 90).await?),
            Step::EndLease => format!("{:?}", store.end_lease("beyond", 1).await?),
            Step::Record(words, attempt) => {
                format!("{:?}", store.record(Arc::new(of(words).attempt(attempt).0), now()).await?)
            }
            Step::Promote => {
                let (project, push) = (of("").0.place.project, of("").id());
                let key = PushKey::parse("promotion").unwrap();
                let promotion = Promotion { project, push, key, revision: Some(1), exact: true, if_match: None };
                format!("{:?}", store.promote(promotion, now()).await?)
            }
            Step::Begin => format!("{:?}", store.begin(Arc::new(cut.manifest), now()).await?),
            Step::Put => {
                let chunk = Chunk { of: cut.epoch(1), ..cut.chunks[0].clone() };
                format!("{:?}", store.put(Arc::new(chunk), now()).await?)
            }
            Step::Commit => format!("{:?}", store.commit(cut.epoch(1), now()).await?),
            Step::PutOff => format!("{:?}", store.put_off(1, &waits(&store).await?, AT_MS, "no answer").await?),
            // Two of the three that wait of the push end.
            Step::End => format!("{:?}", store.end_waiting(1, &waits(&store).await?, forwarded(2)).await?),
            Step::Plan => {
                let mine = Intent { target: "beyond".to_owned(), ..intent(70) };
                format!("{:?}", store.plan_intents("beyond", 1, vec![mine]).await?)
            }
            Step::Swept => format!("{:?}", store.swept("beyond", 1, vec![intent(70).id], 1).await?),
            Step::DropRound => {
                format!("{:?}", store.drop_round(&of("").0.place.project, &main_cycle(), "1").await?)
            }
        })
    }
}
