//! What a command can end in, other than well: what happened, what it means for the recorded data, what to do next,
//! and with which code to exit. Must not print: `render` does.

use delivery::foreign::TargetName;
use domain::ci::IdentityError;
use domain::forwarding::TargetPlace;
use domain::{Cause, Problem, ProblemCode};
use serde::Serialize;
use std::path::Path;
use store::{Absent, StoreError};

use crate::exit::Exit;
use crate::settings::push::OUTBOX;

/// What became of a push, in one word (`push --json`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// Recorded now.
    Recorded,
    /// Recorded by an earlier delivery.
    Replayed,
    /// Other outcomes were laid over what was recorded, or kept beside it.
    Revised,
    /// Other outcomes are recorded, and the policy is `fail`.
    Differs,
    /// Other work has this key.
    Collision,
    /// Refused.
    Rejected,
    /// It may be recorded.
    PossiblyWritten,
    /// It never arrived.
    NotSent,
    /// Written into a file.
    Sealed,
    /// A report could not be read.
    Unreadable,
    /// Flags or configuration.
    Usage,
    /// Nothing was done.
    DryRun,
}

impl State {
    /// The word in JSON, for machines.
    pub(crate) fn name(self) -> String {
        self.word().replace(' ', "_")
    }

    /// The word, for people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            State::Recorded => "recorded",
            State::Replayed => "replayed",
            State::Revised => "revised",
            State::Differs => "differs",
            State::Collision => "collision",
            State::Rejected => "rejected",
            State::PossiblyWritten => "possibly written",
            State::NotSent => "not sent",
            State::Sealed => "sealed",
            State::Unreadable => "unreadable",
            State::Usage => "usage",
            State::DryRun => "dry run",
        }
    }
}

/// Where a push still is that ended without a receipt.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kept<'a> {
    /// Nowhere.
    Nowhere,
    /// In the outbox.
    Outbox {
        /// The entry.
        file: &'a Path,
        /// Where it goes.
        to: &'a str,
    },
    /// In the sealed file that it came from.
    Sealed,
}

impl Kept<'_> {
    /// How an unconfirmed push is delivered again.
    fn again(self) -> String {
        match self {
            Self::Nowhere => "Run the same command again: the key stays, so nothing is counted twice.".to_owned(),
            Self::Outbox { .. } => {
                let flush = self.flush();
                format!("It is kept in the outbox: `{flush}`, or the same push again, delivers it under the same key.")
            }
            Self::Sealed => "It is still in the sealed file: flush that again; the key stays.".to_owned(),
        }
    }

    /// What becomes of a refused push.
    fn refused(self) -> String {
        match self {
            Self::Outbox { file, .. } => format!(
                " The refused push stays in the outbox, and `{}` tries it again: remove {} once it is settled.",
                self.flush(),
                file.display()
            ),
            Self::Nowhere | Self::Sealed => String::new(),
        }
    }

    fn flush(self) -> String {
        let Self::Outbox { file, to } = self else { return "tallyonce flush".to_owned() };
        let folder = file.parent().filter(|folder| *folder != Path::new(OUTBOX));
        let outbox = folder.map(|folder| format!(" --outbox {}", folder.display())).unwrap_or_default();
        format!("tallyonce flush --to {to}{outbox}")
    }
}

const NOTHING: &str = "Nothing was sent, nothing was written.";

/// Why a command failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    /// With which code to exit.
    pub exit: Exit,
    /// The same for `push --json`.
    pub state: State,
    /// The receiver's word for it, if it gave one.
    pub code: Option<ProblemCode>,
    /// What happened.
    pub what: String,
    /// Single findings.
    pub details: Vec<String>,
    /// What it means for the recorded data.
    pub means: String,
    /// What to do next.
    pub next: String,
}

impl Failure {
    fn new(exit: Exit, state: State, what: impl Into<String>, means: &str, next: impl Into<String>) -> Self {
        let (what, means, next) = (what.into(), means.to_owned(), next.into());
        Self { exit, state, code: None, what, details: Vec::new(), means, next }
    }

    /// Flags, variables or configuration.
    pub(crate) fn usage(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(Exit::Usage, State::Usage, what, NOTHING, next)
    }

    /// Something of this machine failed that has nothing to do with the data.
    pub(crate) fn machine(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(Exit::Usage, State::Usage, what, NOTHING, next)
    }

    /// Reports that cannot be read, each with its reason.
    pub(crate) fn unreadable(details: Vec<String>) -> Self {
        let what = match details.as_slice() {
            [only] => only.clone(),
            many => format!("{} of the named reports can't be used", many.len()),
        };
        let next = "Mend the path or the report. --partial pushes what is readable, marked incomplete; --allow-empty \
                    records an empty push where a shard had no tests.";
        let details = if details.len() > 1 { details } else { Vec::new() };
        Self { details, ..Self::new(Exit::Unreadable, State::Unreadable, what, NOTHING, next) }
    }

    /// The command of `run` is not there.
    pub(crate) fn command_not_found(what: impl Into<String>) -> Self {
        let next = "Mend the command behind `--`, or install it; a command line of a shell needs one: -- sh -c '…'.";
        Self::new(Exit::NotFound, State::Usage, what, NOTHING, next)
    }

    /// The command of `run` cannot be started.
    pub(crate) fn command_not_executable(what: impl Into<String>) -> Self {
        let next = "Make the file executable (chmod +x), or name what runs it: -- sh FILE.";
        Self::new(Exit::NotExecutable, State::Usage, what, NOTHING, next)
    }

    /// Refused by the receiver.
    pub(crate) fn rejected(problem: &Problem) -> Self {
        let (exit, state) = match problem.code {
            ProblemCode::KeyCollision | ProblemCode::KeyReused | ProblemCode::ShardPlanChanged => {
                (Exit::Collision, State::Collision)
            }
            ProblemCode::Differs => (Exit::Collision, State::Differs),
            _ => (Exit::Rejected, State::Rejected),
        };
        let means = match state {
            State::Rejected => "It was refused: nothing of this delivery is written.",
            _ => "Nothing of this delivery counts. What was recorded under the key before stays as it was.",
        };
        let what = format!("{} ({}): {}", problem.title, problem.code.word(), problem.detail);
        let mut details: Vec<String> = problem
            .fields
            .iter()
            .map(|field| format!("{}: recorded {:?}, offered {:?}", field.field, field.recorded, field.offered))
            .collect();
        details.extend(problem.errors.iter().cloned());
        let failure = Self::new(exit, state, what, means, next_of(problem.code));
        Self { code: Some(problem.code), details, ..failure }
    }

    /// The receiver said nothing that tells whether it wrote.
    pub(crate) fn possibly_written(cause: &Cause, kept: Kept<'_>) -> Self {
        let means = "It may be recorded or not; the key tells when it is delivered again.";
        Self::new(Exit::NotConfirmed, State::PossiblyWritten, cause.what.clone(), means, kept.again())
    }

    /// It never arrived. That says nothing about deliveries of the same push by earlier processes.
    pub(crate) fn not_sent(cause: &Cause, kept: Kept<'_>) -> Self {
        let means =
            "This delivery wrote nothing. Whether an earlier one did, the key tells when it is delivered again.";
        Self::new(Exit::NotConfirmed, State::NotSent, cause.what.clone(), means, kept.again())
    }

    /// A target that gave no answer which says what became of it.
    pub(crate) fn forwarding(target: &TargetName, what: &str) -> Self {
        let means = "Some of it may be there, or none; what was sent stands in the target's ledger.";
        let next = format!(
            "Run the same command again, or `tallyonce flush --to {target}`: what is there is read first, and nothing is \
             written twice."
        );
        Self::new(Exit::NotConfirmed, State::PossiblyWritten, format!("{target}: {what}"), means, next)
    }

    /// A round that isn't ended at a target, because something of it isn't there yet.
    pub(crate) fn on_its_way(target: &TargetName, why: &str, served: bool) -> Self {
        let means = "Nothing was ended, and nothing was changed there: what comes later might have been refused.";
        let first = if served {
            "The server goes on by itself (`tallyonce forwards` shows how far it is)".to_owned()
        } else {
            format!("`tallyonce flush --to {target}`, or the same push again, brings it to its end")
        };
        let what = format!("{target}: the round isn't ended: {why}");
        Self::new(Exit::NotConfirmed, State::NotSent, what, means, format!("{first}; then run the same command again."))
    }

    /// A target that is somewhere else than its ledger knows.
    pub(crate) fn other_place(target: &TargetName, known: &TargetPlace, now: &TargetPlace) -> Self {
        let what = format!("{target}: its ledger stands for {known}, and tallyonce.toml says {now}");
        let means =
            "Nothing was sent: ids that the ledger keeps mean something else there. What is recorded stays as it is.";
        let next = format!(
            "If it is the same service, and only its address or its project's name changed: `tallyonce forwards --moved \
             --target {target}`, then the same command again. If it is another one: give its table another name, and so a \
             ledger of its own."
        );
        Self::new(Exit::Usage, State::Usage, what, means, next)
    }

    /// A server that was never asked how far forwarding is.
    pub(crate) fn unknown_forwards() -> Self {
        let what = "there was no time to ask for it";
        Self::new(Exit::Forwarding, State::NotSent, what, "It is recorded.", "Look at `tallyonce forwards`.")
    }

    /// A target that couldn't be asked.
    pub(crate) fn unanswered(target: &TargetName, what: &str) -> Self {
        let means = "What is recorded stays as it is.";
        let next = "Run the same command again.";
        Self::new(Exit::NotConfirmed, State::NotSent, format!("{target}: {what}"), means, next)
    }

    /// A target that refuses who asks.
    pub(crate) fn denied_there(target: &TargetName, what: &str) -> Self {
        let means = "Nothing more was sent; what was sent before stands in the target's ledger.";
        let next = "Mend the credentials or the rights of their user, then run the same command again.";
        Self::new(Exit::Rejected, State::Rejected, format!("{target}: {what}"), means, next)
    }

    /// A target that refuses what is asked, whatever the outcomes.
    pub(crate) fn refused_there(target: &TargetName, what: &str) -> Self {
        let means = "Nothing more was sent; what was sent before stands in the target's ledger.";
        let next = "Mend the target's keys (docs/targets), then run the same command again.";
        Self::new(Exit::Rejected, State::Rejected, format!("{target}: {what}"), means, next)
    }

    /// The same, of a push that is kept already.
    #[must_use]
    pub(crate) fn kept(self, kept: Kept<'_>) -> Self {
        let means = if self.means == NOTHING { "Nothing was sent.".to_owned() } else { self.means };
        let next = match self.state {
            State::Rejected | State::Differs | State::Collision => format!("{}{}", self.next, kept.refused()),
            _ => format!("{} {}", self.next, kept.again()),
        };
        Self { means, next, ..self }
    }

    /// The same, because somebody asked to stop.
    #[must_use]
    pub(crate) fn interrupted(self) -> Self {
        if self.exit != Exit::NotConfirmed {
            return self;
        }
        Self { what: format!("interrupted: {}", self.what), ..self }
    }

    /// A sealed file that is none, or not whole.
    pub(crate) fn no_sealed_push(what: impl Into<String>) -> Self {
        let next = "Name a whole file that `tallyonce push --seal` wrote; if it is torn, copy or seal it again.";
        Self::new(Exit::Unreadable, State::Unreadable, what, NOTHING, next)
    }

    /// A file of the outbox that was whole once.
    pub(crate) fn broken_entry(what: impl Into<String>) -> Self {
        let next = "Run the push that wrote it again; then remove the file.";
        Self::new(Exit::Unreadable, State::Unreadable, what, NOTHING, next)
    }

    /// A sealed file claims another place than the caller allows.
    pub(crate) fn other_claim(what: impl Into<String>) -> Self {
        let next = "Flush it with the --project, --cycle and --run that it was sealed for, if you trust them.";
        Self::new(Exit::Rejected, State::Rejected, what, NOTHING, next)
    }

    /// The store could not answer.
    pub(crate) fn store(error: &StoreError) -> Self {
        match error {
            StoreError::NotWritten { .. } => {
                let next = "Mend the cause (disk, permissions, another process), and run the same command again.";
                Self::new(Exit::NotConfirmed, State::NotSent, error.to_string(), "Nothing was written.", next)
            }
            StoreError::PossiblyWritten { .. } => {
                let means = "It may be written or not; the same command again tells.";
                Self::new(Exit::NotConfirmed, State::PossiblyWritten, error.to_string(), means, "Run it again.")
            }
            StoreError::Broken { .. } => {
                let next = "Run `tallyonce check-store`; keep a copy of the file before anything else.";
                Self::new(Exit::Rejected, State::Rejected, error.to_string(), "Nothing was written.", next)
            }
            StoreError::NewerSchema { .. } | StoreError::BadUrl { .. } => {
                Self::usage(error.to_string(), "Mend the address, or use the program that wrote the store.")
            }
        }
    }

    /// What was asked for is not there.
    pub(crate) fn absent(absent: &Absent) -> Self {
        let next = match absent {
            Absent::Project(_) => "Mend --project, or push to it first: the first push creates it.",
            Absent::Cycle(_) => {
                "Mend --cycle (by default pushes from CI go to pr-N or the branch), or push to it first: the first push \
                 creates it."
            }
            Absent::Round(_) => "`tallyonce show --round all` lists the rounds.",
            Absent::Push | Absent::Revision(_) => {
                "`tallyonce show --round all --format json` lists keys and revisions."
            }
            Absent::Item | Absent::Cursor => "Ask again from the beginning.",
        };
        Self::new(Exit::Rejected, State::Rejected, absent.to_string(), "Nothing was changed.", next)
    }

    /// The same for a whole store.
    pub(crate) fn nothing_there(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self::new(Exit::Rejected, State::Rejected, what, "Nothing was changed.", next)
    }

    /// A round that is not complete in time.
    pub(crate) fn incomplete(what: impl Into<String>) -> Self {
        let next = "Wait longer (--deadline), look at the missing jobs, or `tallyonce close` the round as it is.";
        Self::new(Exit::NotConfirmed, State::NotSent, what, "It was only asked: what is recorded stays as it is.", next)
    }
}

impl From<IdentityError> for Failure {
    fn from(error: IdentityError) -> Self {
        Self::usage(error.to_string(), "Pass what is named above, and push again: the key follows from it.")
    }
}

fn next_of(code: ProblemCode) -> &'static str {
    match code {
        ProblemCode::KeyCollision => {
            "Tell the pieces apart: pass the matrix values or the shard (--shard I/N, --variant NAME=VALUE), or name the \
             job (--job)."
        }
        ProblemCode::KeyReused => {
            "Push what belongs together under one key to one place: same cycle, job, shard and commit; a wanted second \
             execution inside one run gets a --round LABEL."
        }
        ProblemCode::ShardPlanChanged => {
            "Use one number of shards in one round; for another plan begin a new round with --round LABEL."
        }
        ProblemCode::Differs => {
            "If the tests were really run again, push with --attempt N, or say --on-difference revise or keep; if it is \
             another run, give it a --run of its own."
        }
        ProblemCode::TooLarge => "Push in shards (--shard I/N), or raise the server's limit.",
        ProblemCode::UnknownProject => "Mend --project, or create it on the server.",
        ProblemCode::Tombstoned => "Nothing: its data was deleted on purpose, and a late retry never writes it again.",
        ProblemCode::ReceiptMismatch => "Look at it again (`tallyonce show --revisions KEY`), then decide again.",
        _ => "Mend the cause that is named above, then push again; the same again would be refused again.",
    }
}
