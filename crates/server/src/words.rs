//! Refusals and doubts of the protocol as problems and sentences: what happened, what it means for the recorded data,
//! what to do. Must not decide anything: that is done in `domain::protocol` and `domain::staging`.

mod staged;

use domain::protocol::{DifferenceSummary, Doubt, FieldDifference, Refusal};
use domain::{Executor, ItemName, Ordinal, Problem, ProblemCode, limits};
use store::Refused;

pub(crate) use staged::{
    chunk_mismatch, chunk_not_as_promised, chunk_out_of_range, committed, fenced, gone, incomplete, not_as_promised,
    stored, superseded, unknown_epoch,
};

/// How to tell two pushes apart.
const TELL_APART: &str = "Give every leg a key of its own: with our client pass --job, --shard I/N or --variant NAME=VALUE \
    with the values that the CI platform gives this leg of the matrix (a shard counts from 1); \
    with another client put the leg into Idempotency-Key and say job, shard or variant in the query";

/// The problem that a refusal is. `executor` is who offers, in words.
pub(crate) fn refusal(refused: Refused, executor: &str) -> Problem {
    let Refused { refusal, offered_samples, recorded_samples } = refused;
    match refusal {
        Refusal::KeyReused(fields) => key_reused(fields),
        Refusal::CollidingExecutor { recorded, ordinal } => colliding_executor(executor, &recorded, ordinal),
        Refusal::CollidingItems { offered, recorded: held, known, .. } => {
            let words = format!(
                "Of the {offered} items in this push, this round knows {known} under the same job, while {held} other \
                 items are recorded under the key: these are two different pieces of work that share one key. What is \
                 recorded stays as it is, and nothing of this push was recorded. {TELL_APART}."
            );
            let mut problem = Problem::new(ProblemCode::KeyCollision, words);
            problem.errors = samples(&offered_samples, &recorded_samples);
            problem
        }
        Refusal::ShardPlanChanged { known, offered } => Problem::new(
            ProblemCode::ShardPlanChanged,
            format!(
                "This round, job and variant were pushed as {known} shards, and this push says {offered}: items would be \
                 cut otherwise and could count twice or go missing. What is recorded stays as it is, and nothing of \
                 this push was recorded. Push with the total {known}, or begin a new round (--round LABEL, or another \
                 --run) for the new plan."
            ),
        ),
        Refusal::Differs(difference) => differs(difference),
        Refusal::Tombstoned => Problem::new(
            ProblemCode::Tombstoned,
            "The data of this push was deleted with its round. Nothing was recorded: a late retry never brings deleted \
             data back. If the outcomes are to be recorded again on purpose, push them under another run or round.",
        ),
    }
}

fn key_reused(fields: Vec<FieldDifference>) -> Problem {
    let list: Vec<String> =
        fields.iter().map(|f| format!("{} is {:?} there and {:?} here", f.field, f.recorded, f.offered)).collect();
    let words = format!(
        "Another push is recorded under this key: {}. It stays as it is, and nothing of this push was recorded. Use a key \
         that differs wherever these fields differ; our client's --job, --shard, --variant, --round and --run do so.",
        list.join("; ")
    );
    let mut problem = Problem::new(ProblemCode::KeyReused, words);
    problem.fields = fields;
    problem
}

fn colliding_executor(offered: &str, recorded: &[Executor], ordinal: Option<Ordinal>) -> Problem {
    let happened = match ordinal {
        Some(ordinal) => format!(
            "Another execution of the job has delivered under this key at the same attempt ({ordinal}): two legs share one \
             key, even if their outcomes are equal. From now on only the recorded one may use the key."
        ),
        None => {
            "This key is contested: two legs of a job have delivered under it before, and only the recorded one may \
                 use it."
                .to_owned()
        }
    };
    let words = format!(
        "{happened} What is recorded stays as it is, and nothing of this push was recorded. {TELL_APART}. If this is a \
         retry of the same leg after all, send the attempt number (Push-Attempt, --attempt), which must have risen: it says \
         something only if the recorded delivery had one too. Else say which verdict counts (--on-difference revise)."
    );
    let mut problem = Problem::new(ProblemCode::KeyCollision, words);
    problem.errors = recorded.iter().take(limits::SAMPLES_MAX).map(|e| format!("recorded executor: {e}")).collect();
    problem.errors.push(format!("offered executor: {offered}"));
    problem
}

fn samples(offered: &[ItemName], recorded: &[ItemName]) -> Vec<String> {
    let offered = offered.iter().map(|item| format!("only offered: {item}"));
    offered.chain(recorded.iter().map(|item| format!("only recorded: {item}"))).collect()
}

fn differs(difference: DifferenceSummary) -> Problem {
    let DifferenceSummary { changed, added, not_offered, .. } = difference;
    let words = format!(
        "Other outcomes are recorded under this key ({changed} items with another status, {added} only offered, \
         {not_offered} only recorded), and the policy is to fail. What is recorded stays as it is, and nothing of this \
         push was recorded. If this is a new execution, give it another --run (or --round LABEL); if it is the same one \
         executed again, say which verdict counts: --on-difference revise or keep."
    );
    let mut problem = Problem::new(ProblemCode::Differs, words);
    problem.difference = Some(difference);
    problem
}

/// What the sender should hear although the delivery was accepted.
pub(crate) fn doubt(doubt: Doubt) -> String {
    match doubt {
        Doubt::OtherExecutorUnknownAttempt => {
            "the same content was recorded by another executor, and nothing says which attempt this is: if these are two \
             legs of a matrix, the second was not counted; tell them apart with --job, --shard or --variant"
        }
        Doubt::OtherFiles => {
            "the same content was recorded from files of other names: if these are two legs of a job, the second was not \
             counted; tell them apart with --job, --shard or --variant"
        }
    }
    .to_owned()
}
