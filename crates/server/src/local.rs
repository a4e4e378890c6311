//! The embedded store as a target: a push without a socket goes through the same door as one with. Must not record past
//! the door, nor forget which of the three truths a failure stands for.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use delivery::{Clock, Destination, Handed, Parcel, SystemClock, Target};
use domain::{Cause, Delivery, Problem, ProblemCode, Receipt};
use store::{Store, StoreError};

use crate::record::{Admitted, Door};

/// A store in this process, behind the door.
pub struct LocalTarget {
    destination: Destination,
    door: Door,
}

impl LocalTarget {
    /// The embedded store in this file, made and migrated if need be. Blocks for as long as that takes.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let store = store::open(&format!("sqlite:{}", path.display()))?;
        Ok(Self::over(Destination::Sqlite(path.to_owned()), store, Arc::new(SystemClock::new())))
    }

    /// An opened store under this name.
    pub fn over(destination: Destination, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { destination, door: Door::new(store, clock) }
    }
}

#[async_trait]
impl Target for LocalTarget {
    fn destination(&self) -> &Destination {
        &self.destination
    }

    async fn deliver(&self, parcel: &Parcel) -> Delivery<Handed> {
        let push = match parcel.push() {
            Ok(push) => push,
            Err(error) => {
                let words = format!("The kept push cannot be unpacked: {error}. Nothing was recorded.");
                return Delivery::Rejected(Box::new(Problem::new(ProblemCode::ReportUnreadable, words)));
            }
        };
        match self.door.admit(push).await {
            Ok(admitted) => handed(admitted),
            Err(problem) => classify(problem),
        }
    }
}

/// Which of the truths a problem of the door stands for.
fn classify(problem: Box<Problem>) -> Delivery<Handed> {
    let cause = || Cause::new(problem.detail.clone());
    match problem.code {
        ProblemCode::StoreUnavailable | ProblemCode::InFlight | ProblemCode::Overloaded => Delivery::NotSent(cause()),
        ProblemCode::CommitUnknown | ProblemCode::Internal => Delivery::PossiblyWritten(cause()),
        _ => Delivery::Rejected(problem),
    }
}

fn handed(admitted: Admitted) -> Delivery<Handed> {
    let Admitted { answer, warnings, .. } = admitted;
    match serde_json::from_slice::<Receipt>(&answer.receipt) {
        Ok(receipt) => Delivery::Recorded(Handed {
            receipt,
            receipt_bytes: answer.receipt,
            replayed: answer.replayed,
            class: answer.class,
            current_revision: answer.current_revision,
            current_counts: answer.current_counts,
            warnings,
        }),
        Err(error) => Delivery::PossiblyWritten(Cause::new(format!("the stored receipt cannot be read: {error}"))),
    }
}
