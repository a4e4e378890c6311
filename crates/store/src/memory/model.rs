//! What the memory engine holds, and what counts of it, worked out item by item.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::listing::DeliveryReport;
use domain::protocol::{Known, KnownRevision};
use domain::round::{JobFacts, RoundFacts, Standing, VariantFacts, standings};
use domain::verdict::{Claim, Light, RevisionKind, View, settle};
use domain::{
    Commit, Counts, CycleName, Digest, Executor, ItemHash, JobName, Ordinal, OrdinalScope, Outcome, Place, ProjectId,
    Push, PushId, PushKey, Receipt, RoundId, RunId, Sender, Variant, WorkflowName,
};

use super::forwards;
use super::ledger::Kept;
use super::stage::Stages;
use crate::{Absent, RecordedAt, Stored};

/// A push among those of all projects.
pub(super) type Key = (ProjectId, PushId);

/// Everything.
#[derive(Default)]
pub(super) struct World {
    /// Projects that something was recorded in.
    pub(super) projects: BTreeMap<ProjectId, Project>,
    /// Of every push, what is or was staged. Readers don't look here.
    pub(super) stages: BTreeMap<Key, Stages>,
    /// Pushes whose newest epoch is open.
    pub(super) open: BTreeSet<Key>,
    /// Rises with every round.
    pub(super) rounds: u64,
    /// What forwarders keep. No deletion reaches it.
    pub(super) ledger: Kept,
    /// What is to be forwarded.
    pub(super) forwards: forwards::Kept,
}

impl World {
    /// Everything recorded under a key.
    pub(super) fn recording(&self, key: &Key) -> Option<&Recording> {
        self.projects.get(&key.0)?.pushes.get(&key.1)
    }

    pub(super) fn recording_mut(&mut self, key: &Key) -> Option<&mut Recording> {
        self.projects.get_mut(&key.0)?.pushes.get_mut(&key.1)
    }

    pub(super) fn is_tombstoned(&self, key: &Key) -> bool {
        self.projects.get(&key.0).is_some_and(|project| project.tombstones.contains(&key.1))
    }

    /// The newest receipt under a key.
    pub(super) fn stored(&self, key: &Key) -> Option<Stored> {
        let newest = self.recording(key)?.revisions.last()?;
        Some(Stored { revision: newest.known.number, receipt: newest.receipt.clone() })
    }
}

/// One tenant.
#[derive(Default)]
pub(super) struct Project {
    pub(super) cycles: BTreeMap<CycleName, BTreeMap<RoundId, Round>>,
    pub(super) pushes: BTreeMap<PushId, Recording>,
    /// Keys of promotions: which push each promoted, and as which of its revisions it is recorded.
    pub(super) promotions: BTreeMap<PushKey, (PushId, u32)>,
    pub(super) tombstones: BTreeSet<PushId>,
    /// Refusals that left no trace under their key.
    pub(super) refused: Vec<DeliveryReport>,
}

/// One round, as far as its pushes don't say.
pub(super) struct Round {
    pub(super) number: u64,
    pub(super) run: RunId,
    pub(super) workflow: Option<WorkflowName>,
    pub(super) run_counter: Option<u64>,
    pub(super) run_url: Option<String>,
    pub(super) recorded_at: RecordedAt,
    pub(super) closed: bool,
    pub(super) pinned: bool,
    /// Its pushes, in the order of recording.
    pub(super) pushes: Vec<PushId>,
}

/// Everything under one key.
pub(super) struct Recording {
    pub(super) key: PushKey,
    pub(super) place: Place,
    pub(super) commit: Option<Commit>,
    pub(super) expect: Option<u32>,
    pub(super) contested: bool,
    pub(super) late: bool,
    /// Ordinal and executor of every accepted delivery, each pair once.
    pub(super) executors: Vec<(Option<Ordinal>, Executor)>,
    pub(super) revisions: Vec<Revision>,
    pub(super) log: Vec<(DeliveryReport, Option<Digest>)>,
}

/// One revision.
pub(super) struct Revision {
    pub(super) known: KnownRevision,
    /// A promotion's is that of the promoted revision.
    pub(super) push: Arc<Push>,
    pub(super) at: RecordedAt,
    pub(super) receipt: Vec<u8>,
    /// The promotion's own key, and the revision that was asked for.
    pub(super) promotion: Option<(PushKey, Option<u32>)>,
}

impl Revision {
    pub(super) fn is_promotion(&self) -> bool {
        matches!(self.known.kind, RevisionKind::Promoted { .. })
    }

    pub(super) fn lights(&self) -> Vec<Light> {
        self.push.outcomes.as_slice().iter().map(Light::of).collect()
    }

    pub(super) fn etag(&self) -> String {
        Receipt::etag(self.known.number, &self.receipt)
    }
}

impl Recording {
    /// What counts after the first `until` revisions.
    pub(super) fn view(&self, until: usize) -> View {
        let mut view = View::default();
        for revision in &self.revisions[..until] {
            let known = &revision.known;
            view = view.laid_over(known.kind, known.number, revision.push.outcomes.hashes(), &revision.lights());
        }
        view
    }

    pub(super) fn current(&self) -> View {
        self.view(self.revisions.len())
    }

    pub(super) fn counts(&self) -> Counts {
        self.current().counts()
    }

    /// Remembers who delivered something that was accepted.
    /// Ordinal and executor of every accepted delivery.
    pub(super) fn executors(&self) -> &[(Option<Ordinal>, Executor)] {
        &self.executors
    }

    pub(super) fn accept(&mut self, sender: &Sender) {
        let Some(executor) = &sender.executor else { return };
        let pair = (sender.ordinal, executor.clone());
        if !self.executors.contains(&pair) {
            self.executors.push(pair);
        }
    }

    pub(super) fn known(&self, body: Option<Digest>) -> Known {
        let answered = |body| self.log.iter().rfind(|(entry, of)| entry.revision.is_some() && *of == Some(body));
        Known {
            place: self.place.clone(),
            commit: self.commit.clone(),
            contested: self.contested,
            executors: self.executors.clone(),
            revisions: self.revisions.iter().map(|r| r.known.clone()).collect(),
            same_body: body.and_then(answered).and_then(|(entry, _)| entry.revision),
        }
    }

    /// The outcome of an item in the content of one revision.
    pub(super) fn outcome(&self, revision: usize, item: ItemHash) -> Option<&Outcome> {
        let outcomes = &self.revisions[revision].push.outcomes;
        outcomes.iter().find(|(hash, _)| *hash == item).map(|(_, outcome)| outcome)
    }

    /// The push's claim to an item.
    pub(super) fn claim(&self, view: &View, item: ItemHash) -> Option<Claim> {
        let verdict = view.get(item)?;
        let of = &self.revisions[verdict.revision as usize - 1].known;
        let attempt = if of.sender.ordinal_scope == OrdinalScope::Round { of.sender.ordinal } else { None };
        Some(Claim { light: verdict.light, elevated: of.kind.is_elevated(), attempt })
    }
}

/// What counts of an item and variant in a round.
#[derive(Clone, Copy)]
pub(super) struct Winner<'a> {
    pub(super) push: &'a Recording,
    pub(super) claim: Claim,
    pub(super) pushes: u32,
}

/// Items of rounds, by hash and variant.
pub(super) type Table<'a> = BTreeMap<(ItemHash, Variant), Winner<'a>>;

impl Project {
    pub(super) fn cycle(&self, name: &CycleName) -> Result<&BTreeMap<RoundId, Round>, Absent> {
        self.cycles.get(name).ok_or_else(|| Absent::Cycle(name.clone()))
    }

    /// Pushes of a round, in the order of recording.
    pub(super) fn pushes_of(&self, cycle: &CycleName, round: &RoundId) -> Vec<&Recording> {
        let round = self.cycles.get(cycle).and_then(|rounds| rounds.get(round));
        round.map(|round| round.pushes.iter().filter_map(|id| self.pushes.get(id)).collect()).unwrap_or_default()
    }

    /// Facts of all rounds of a cycle, in the order of recording, and where they stand.
    pub(super) fn facts(&self, cycle: &CycleName) -> Result<(Vec<RoundFacts>, Vec<Standing>), Absent> {
        let rounds = self.cycle(cycle)?;
        let mut facts: Vec<RoundFacts> = rounds
            .iter()
            .map(|(id, round)| RoundFacts {
                round: id.clone(),
                run: round.run.clone(),
                workflow: round.workflow.clone(),
                run_counter: round.run_counter,
                first_recorded: round.number,
                closed: round.closed,
                pinned: round.pinned,
                jobs: self.jobs(cycle, id),
            })
            .collect();
        facts.sort_by_key(|facts| facts.first_recorded);
        let standings = standings(&facts);
        Ok((facts, standings))
    }

    fn jobs(&self, cycle: &CycleName, round: &RoundId) -> Vec<JobFacts> {
        let mut jobs: BTreeMap<Option<JobName>, JobFacts> = BTreeMap::new();
        for push in self.pushes_of(cycle, round) {
            let place = &push.place;
            let job = jobs.entry(place.job.clone()).or_insert_with(|| JobFacts {
                job: place.job.clone(),
                expect: None,
                variants: Vec::new(),
            });
            job.expect = job.expect.max(push.expect);
            let at = job.variants.iter().position(|v| v.variant == place.variant).unwrap_or_else(|| {
                job.variants.push(VariantFacts { variant: place.variant.clone(), total: None, seen: Vec::new() });
                job.variants.len() - 1
            });
            let variant = &mut job.variants[at];
            variant.total = variant.total.max(place.shard.and_then(domain::ShardRef::total));
            let shard = place.shard.map_or(0, domain::ShardRef::index);
            if !variant.seen.contains(&shard) {
                variant.seen.push(shard);
                variant.seen.sort_unstable();
            }
        }
        let mut jobs: Vec<JobFacts> = jobs.into_values().collect();
        for job in &mut jobs {
            job.variants.sort_by(|a, b| a.variant.cmp(&b.variant));
        }
        jobs
    }

    /// Items of one round.
    pub(super) fn table(&self, cycle: &CycleName, round: &RoundId) -> Table<'_> {
        let mut table: BTreeMap<(ItemHash, Variant), Vec<Winner<'_>>> = BTreeMap::new();
        for push in self.pushes_of(cycle, round) {
            let view = push.current();
            for hash in &view.hashes {
                let Some(claim) = push.claim(&view, *hash) else { continue };
                let key = (*hash, push.place.variant.clone());
                table.entry(key).or_default().push(Winner { push, claim, pushes: 1 });
            }
        }
        let settled = table
            .into_iter()
            .filter_map(|(key, winners)| Some((key, Winner { pushes: winners.len() as u32, ..best(&winners)? })));
        settled.collect()
    }
}

/// Which of the claims on one item counts, and whose it is.
pub(super) fn best<'a>(winners: &[Winner<'a>]) -> Option<Winner<'a>> {
    let claims: Vec<Claim> = winners.iter().map(|winner| winner.claim).collect();
    let (at, light) = settle(&claims)?;
    let claim = Claim { light, ..claims[at] };
    Some(Winner { claim, ..winners[at] })
}

/// A table in numbers: counts, and items that more than one push holds.
pub(super) fn count(table: &Table<'_>) -> (Counts, u64) {
    let mut counts = Counts::default();
    for winner in table.values() {
        counts.add(winner.claim.light.status, winner.claim.light.is_flaky());
    }
    (counts, table.values().filter(|winner| winner.pushes > 1).count() as u64)
}
