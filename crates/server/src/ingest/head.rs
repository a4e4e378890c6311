//! The head of a push request: key, place, origin, sender and policy, from headers and query parameters. Must not know
//! the body, and must not take the key apart.

use domain::key::KeyParts;
use domain::manifest::ChunkPromise;
use domain::push::ContentId;
use domain::wire::names;
use domain::{
    Manifest, OnDifference, Ordinal, OrdinalScope, Origin, Place, ProblemCode, ProjectId, Push, PushKey, RoundId,
    RunId, Sender, Variant,
};
use http::HeaderMap;

use super::content::Content;
use super::manifest::Promised;
use crate::headers::{self, ContentDigest};
use crate::params::Params;
use crate::problem::{Failure, malformed};

/// How to choose a run, for those who gave none.
const CHOOSE_RUN: &str = "The push says no run: which execution of the suite its outcomes belong to. Nothing was \
    recorded. Add run=… to the query: the pipeline's own run number (GITHUB_RUN_ID, CI_PIPELINE_ID, BUILD_TAG, …), the \
    same in all jobs, shards and retries of that run and another in the next run; never a commit, a time or an attempt \
    number.";

/// Everything of a push but its content.
#[derive(Debug)]
pub(super) struct Head {
    key: PushKey,
    place: Place,
    origin: Origin,
    sender: Sender,
    on_difference: OnDifference,
    outside_ci: bool,
    expect: Option<u32>,
    pub(crate) digest: ContentDigest,
}

impl Head {
    /// Reads headers and parameters; a parameter that nobody knows is an error.
    pub(crate) fn read(project: ProjectId, mut params: Params, headers: &HeaderMap) -> Result<Self, Failure> {
        let key = headers::key(headers)?;
        let place = place(project, &mut params)?;
        let origin = Origin {
            commit: params.read(names::COMMIT)?,
            workflow: params.read(names::WORKFLOW)?,
            run_counter: params.read(names::RUN_COUNTER)?,
            run_url: params.take(names::RUN_URL)?,
        };
        let sender = sender(&mut params, headers)?;
        let head = Self {
            key,
            place,
            origin,
            sender,
            on_difference: params.read(names::ON_DIFFERENCE)?.unwrap_or_default(),
            outside_ci: params.flag(names::OUTSIDE_CI)?,
            expect: params.read(names::EXPECT)?,
            digest: ContentDigest::parse(headers)?,
        };
        params.finish()?;
        Ok(head)
    }

    /// The push that head and content make, and what the reader noticed.
    pub(super) fn with(self, content: Content) -> (Push, Vec<String>) {
        let Content { outcomes, files, report, incomplete, id, warnings } = content;
        let push = Push {
            key: self.key,
            place: self.place,
            origin: self.origin,
            sender: self.sender,
            on_difference: self.on_difference,
            outside_ci: self.outside_ci,
            expect: self.expect,
            files,
            report,
            incomplete,
            outcomes,
            content: id,
        };
        (push, warnings)
    }

    /// The manifest that head and body make.
    pub(super) fn manifest(self, promised: Promised) -> Manifest {
        let Promised { body, report, items } = promised;
        let chunks = body.chunks.into_iter().map(|(digest, outcomes)| ChunkPromise { digest, outcomes }).collect();
        Manifest {
            key: self.key,
            place: self.place,
            origin: self.origin,
            sender: self.sender,
            on_difference: self.on_difference,
            outside_ci: self.outside_ci,
            expect: self.expect,
            files: body.files,
            report,
            incomplete: body.incomplete,
            outcomes: body.counts.total,
            counts: body.counts,
            content: ContentId { content: body.content, outcomes: body.outcomes, body: None },
            bits: body.bits,
            chunks,
            items,
        }
    }
}

fn place(project: ProjectId, params: &mut Params) -> Result<Place, Failure> {
    let cycle = params.need(names::CYCLE, "say which cycle the round belongs to, such as cycle=main")?;
    let run: RunId = params.read(names::RUN)?.ok_or_else(|| Failure::new(ProblemCode::RunMissing, CHOOSE_RUN))?;
    let label = params.read(names::ROUND)?;
    let given: Option<RoundId> = params.read(names::ROUND_ID)?;
    let variant =
        Variant::parse_pairs(params.take_all(names::VARIANT)).map_err(|why| malformed(names::VARIANT, why))?;
    let parts = KeyParts {
        scope: None,
        run,
        round: label,
        job: params.read(names::JOB)?,
        shard: params.read(names::SHARD)?,
        variant,
    };
    let round = given.unwrap_or_else(|| parts.round_id());
    let KeyParts { scope: _, run, round: label, job, shard, variant } = parts;
    Ok(Place { project, cycle, round, run, label, job, shard, variant })
}

fn sender(params: &mut Params, headers: &HeaderMap) -> Result<Sender, Failure> {
    let in_query = params.read::<u64>(names::ATTEMPT)?.map(Ordinal);
    let in_header = headers::attempt(headers)?;
    if let (Some(query), Some(header)) = (in_query, in_header)
        && query != header
    {
        let why = format!("the query says {query} and the header Push-Attempt says {header}");
        return Err(malformed(names::ATTEMPT, why));
    }
    let ordinal_scope = match params.take(names::ATTEMPT_SCOPE)?.as_deref() {
        None | Some("round") => OrdinalScope::Round,
        Some("key") => OrdinalScope::Key,
        Some(other) => return Err(malformed(names::ATTEMPT_SCOPE, format!("{other:?} is neither round nor key"))),
    };
    Ok(Sender {
        ordinal: in_header.or(in_query),
        ordinal_scope,
        executor: headers::executor(headers)?,
        incarnation: headers::incarnation(headers)?,
    })
}
