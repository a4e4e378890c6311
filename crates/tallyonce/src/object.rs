//! What became of one push, as `push --json` and `flush --json` print it. Field names and order are an interface.
//! Must not know how it came about.

use delivery::{Ended, Handed, Header};
use domain::listing::ForwardReport;
use domain::protocol::DifferenceClass;
use domain::receipt::{ItemDifference, ReceiptResult};
use domain::{
    Counts, CycleName, Delivery, JobName, ProblemCode, ProjectId, PushId, PushKey, ReportSummary, RoundId, ShardRef,
};
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::{Failure, Kept, State};
use crate::forward::ForwardObject;

/// One push.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PushObject {
    /// What became of it.
    pub state: State,
    /// The receiver's word for a refusal; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<ProblemCode>,
    /// The exit code that goes with it.
    pub exit: u8,
    /// The push key.
    pub key: Option<PushKey>,
    /// The project.
    pub project: Option<ProjectId>,
    /// The cycle.
    pub cycle: Option<CycleName>,
    /// The round.
    pub round: Option<RoundId>,
    /// The job.
    pub job: Option<JobName>,
    /// The shard.
    pub shard: Option<ShardRef>,
    /// The push in URLs.
    pub push: Option<PushId>,
    /// The newest revision.
    pub revision: Option<u32>,
    /// Where it can be asked for; null when embedded.
    pub url: Option<String>,
    /// Its items as they count now; null where that is not known.
    pub counts: Option<Counts>,
    /// Test elements as the files hold them; null where nothing was read.
    pub report: Option<ReportSummary>,
    /// How it was delivered.
    pub delivery: DeliveryObject,
    /// How it differs from what was recorded.
    pub difference: Option<DifferenceObject>,
    /// What its sender should hear.
    pub warnings: Vec<String>,
    /// What became of it at a target; absent where it goes to none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward: Option<ForwardObject>,
    /// What became of it at the targets that the server hands it on to; absent where nobody waited for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forwards: Option<Vec<ForwardReport>>,
    /// Which outcomes count now.
    #[serde(skip)]
    pub counting: Counting,
    /// True if the outbox keeps it all the same: attachments are not known to be there.
    #[serde(skip)]
    pub stays: bool,
    /// The command that made the reports; absent where none was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandObject>,
}

/// How the command of `run` ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct CommandObject {
    /// Its exit code; null if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// True if it failed, and no report of it holds a failed or errored test.
    pub silent_failure: bool,
    /// From its start to its end.
    pub elapsed_ms: u64,
}

/// How a push was delivered.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct DeliveryObject {
    /// Tries.
    pub attempts: u32,
    /// Parts it is sent in: 1 where one request holds all.
    pub chunks: u32,
    /// Parts that were sent and taken, over all tries; fewer where an earlier delivery had sent some.
    pub chunks_sent: u32,
    /// True if it went on with what an earlier delivery had begun to stage.
    pub resumed: bool,
    /// From the first try to the end.
    pub elapsed_ms: u64,
    /// Size of what each try sends.
    pub bytes: u64,
}

/// How a push differs from what was recorded.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct DifferenceObject {
    /// How far apart.
    pub class: DifferenceClass,
    /// Items in both with another status.
    pub changed: u64,
    /// Items only in what was offered.
    pub added: u64,
    /// Items only in what was recorded.
    pub not_offered: u64,
    /// The first of them.
    pub items: Vec<ItemDifference>,
}

impl PushObject {
    /// Before anything is known.
    pub(crate) fn new() -> Self {
        Self {
            state: State::Usage,
            code: None,
            exit: Exit::Usage.number(),
            key: None,
            project: None,
            cycle: None,
            round: None,
            job: None,
            shard: None,
            push: None,
            revision: None,
            url: None,
            counts: None,
            report: None,
            delivery: DeliveryObject::default(),
            difference: None,
            warnings: Vec::new(),
            forward: None,
            forwards: None,
            counting: Counting::Offered,
            stays: false,
            command: None,
        }
    }

    /// Of a packed push.
    pub(crate) fn of(header: &Header) -> Self {
        let place = header.place.clone();
        Self {
            push: Some(PushId::of(&place.project, &header.key)),
            key: Some(header.key.clone()),
            project: Some(place.project),
            cycle: Some(place.cycle),
            round: Some(place.round),
            job: place.job,
            shard: place.shard,
            report: Some(header.report),
            ..Self::new()
        }
    }

    /// Where a server answers for it.
    pub(crate) fn at_server(&mut self, base: Option<&delivery::HttpUrl>) {
        if let (Some(base), Some(project), Some(push)) = (base, &self.project, self.push) {
            self.url = Some(base.join(&format!("/api/v1/projects/{project}/pushes/{push}")));
        }
    }

    /// Ends well.
    pub(crate) fn ends(&mut self, state: State, exit: Exit) {
        (self.state, self.exit) = (state, exit.number());
    }

    /// Ends badly.
    pub(crate) fn fails(&mut self, failure: &Failure) {
        (self.state, self.code, self.exit) = (failure.state, failure.code, failure.exit.number());
    }

    /// Takes in how the delivery ended. `kept`: where the push is without a receipt.
    ///
    /// # Errors
    /// It is not recorded.
    pub(crate) fn ended(&mut self, ended: &Ended, kept: Kept<'_>) -> Result<(), Failure> {
        let Ended { delivery, interrupted, .. } = ended;
        self.delivery = DeliveryObject {
            attempts: ended.attempts,
            chunks: ended.chunks,
            chunks_sent: ended.chunks_sent,
            resumed: ended.resumed,
            elapsed_ms: ended.elapsed_ms,
            bytes: ended.bytes,
        };
        let failure = match delivery {
            Delivery::Recorded(handed) => {
                self.handed(handed);
                return Ok(());
            }
            Delivery::Rejected(problem) => {
                self.difference = problem.difference.map(|d| DifferenceObject {
                    class: d.class,
                    changed: d.changed,
                    added: d.added,
                    not_offered: d.not_offered,
                    items: Vec::new(),
                });
                Failure::rejected(problem).kept(kept)
            }
            Delivery::NotSent(cause) => Failure::not_sent(cause, kept),
            Delivery::PossiblyWritten(cause) => Failure::possibly_written(cause, kept),
        };
        self.fails(&failure);
        Err(if *interrupted { failure.interrupted() } else { failure })
    }

    fn handed(&mut self, handed: &Handed) {
        let Handed { receipt, replayed, class, current_revision, current_counts, warnings, .. } = handed;
        self.ends(state_of(handed), Exit::Success);
        self.revision = Some(*current_revision);
        self.counts = Some(*current_counts);
        self.warnings.extend(warnings.iter().cloned());
        if receipt.late {
            self.warnings.push("the round was closed before: this push counts, and is shown as late".to_owned());
        }
        let stored = receipt.difference.as_ref().filter(|_| !*replayed);
        self.difference = match (stored, class) {
            (Some(d), _) => Some(DifferenceObject {
                class: d.class,
                changed: d.changed,
                added: d.added,
                not_offered: d.not_offered,
                items: d.items.clone(),
            }),
            // A replay of other times or texts: no item counts otherwise.
            (None, Some(class)) if *class != DifferenceClass::None => {
                Some(DifferenceObject { class: *class, changed: 0, added: 0, not_offered: 0, items: Vec::new() })
            }
            _ => None,
        };
        let added = receipt.difference.as_ref().map_or(0, |difference| difference.added);
        // A later revision may have promoted it; as long as it is the newest one, nobody has.
        let beside = receipt.result == ReceiptResult::Kept && receipt.revision == *current_revision;
        self.counting = match (beside, *current_revision) {
            (true, _) if added == 0 => Counting::Others,
            (false, 1) => Counting::Offered,
            _ => Counting::Recorded,
        };
        if beside {
            let but = if added > 0 { format!(" but for {added} items that nobody had") } else { String::new() };
            self.warnings.push(format!(
                "other outcomes are recorded under this key: what was recorded counts, what was offered is kept beside it{but} \
                 until somebody promotes it, so that it counts instead (`tallyonce promote KEY`, with --to and --project)"
            ));
        }
    }
}

/// Which outcomes of a push count once a delivery was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    /// What was offered, and nothing else was ever recorded.
    Offered,
    /// Others, as before: what was offered is kept beside them.
    Others,
    /// What several revisions come to, as the store has it.
    Recorded,
}

/// The word for an accepted delivery. Something kept that adds no item changes nothing that counts.
fn state_of(handed: &Handed) -> State {
    let adds = handed.receipt.difference.as_ref().is_some_and(|difference| difference.added > 0);
    match handed.receipt.result {
        _ if handed.replayed => State::Replayed,
        ReceiptResult::Recorded => State::Recorded,
        ReceiptResult::Kept if !adds => State::Replayed,
        ReceiptResult::Kept | ReceiptResult::Revised | ReceiptResult::Promoted => State::Revised,
    }
}
