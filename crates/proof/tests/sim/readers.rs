//! Readers of the store at any moment: what they see must be the fold of whole contents that somebody offered, each item
//! once, and must add up. Folds and settles by rules of its own. Must not look at anything but answers of readings.

use std::collections::BTreeMap;

use domain::listing::{CycleReport, ItemQuery, ItemSort, PushReport, RoundReport};
use domain::receipt::ReceiptResult;
use domain::round::RoundChoice;
use domain::{CycleName, Digest, ItemHash, Ordinal, ProjectId, PushId, Status};
use store::Store as _;

use crate::content::{Said, counts};
use crate::sim::{Sim, note};

/// Pushes as they are seen.
pub(crate) type Pushes = BTreeMap<PushId, Seen>;

/// One push as it is seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) revisions: Vec<SeenRevision>,
    /// What counts, item by item.
    pub(crate) counts: BTreeMap<ItemHash, Said>,
    /// The revision that each verdict comes from.
    from: BTreeMap<ItemHash, usize>,
    pub(crate) promoted: bool,
}

/// One revision as it is seen.
#[derive(Debug)]
pub(crate) struct SeenRevision {
    pub(crate) result: &'static str,
    pub(crate) digest: Digest,
    pub(crate) receipt: Vec<u8>,
    /// What it says by itself.
    pub(crate) content: Vec<(ItemHash, Said)>,
    /// What counted once it was there.
    pub(crate) after: Vec<(ItemHash, Said)>,
    ordinal: Option<Ordinal>,
}

impl Sim {
    pub(crate) async fn stored_receipt(&self, project: &ProjectId, push: PushId, revision: u32) -> Option<Vec<u8>> {
        self.durable.receipt(project, push, Some(revision)).await.ok()?.ok().map(|(bytes, _)| bytes)
    }

    /// One look at everything. Nothing else happens while it lasts.
    pub(crate) async fn look(&self, when: &str) -> Pushes {
        self.history().looks += 1;
        let mut pushes = Pushes::new();
        let projects = self.durable.projects().await.expect("the memory engine reads");
        for project in projects {
            let cycles = self.durable.cycles(&project).await.expect("it reads").unwrap_or_default();
            for cycle in cycles {
                self.look_at_cycle(&project, &cycle.cycle, &mut pushes).await;
            }
        }
        note!(self, "a reader looks {when}: {} pushes", pushes.len());
        self.nothing_is_back(&pushes);
        pushes
    }

    /// What was deleted stays away.
    fn nothing_is_back(&self, pushes: &Pushes) {
        let back: Vec<PushId> =
            self.history().dropped.iter().filter(|push| pushes.contains_key(push)).copied().collect();
        for push in back {
            self.violation(format_args!("PHANTOM: push {push} was deleted, and is there again"));
        }
    }

    async fn look_at_cycle(&self, project: &ProjectId, cycle: &CycleName, pushes: &mut Pushes) {
        let report = self.durable.cycle(project, cycle, &RoundChoice::All).await.expect("it reads");
        let Ok(CycleReport { rounds, .. }) = report else { return };
        for round in &rounds {
            let mut of_round: Vec<(PushId, u64, Seen)> = Vec::new();
            for summary in &round.pushes {
                let report = self.durable.push(project, summary.push).await.expect("it reads");
                match report {
                    Err(absent) => self.violation(format_args!("a round lists a push that is not there: {absent}")),
                    Ok(report) => of_round.push((summary.push, summary.deliveries, self.fold(project, &report).await)),
                }
            }
            self.look_at_round(project, cycle, round, &of_round).await;
            pushes.extend(of_round.into_iter().map(|(id, _, seen)| (id, seen)));
        }
    }

    /// What counts of a push, by the results that its revisions name.
    async fn fold(&self, project: &ProjectId, report: &PushReport) -> Seen {
        let mut seen = Seen::default();
        let id = report.summary.push;
        for (at, revision) in report.revisions.iter().enumerate() {
            let Some(content) = self.history().content(id, revision.content).map(|content| content.said.clone()) else {
                self.violation(format_args!(
                    "PHANTOM: nobody offered the content of revision {} of {id}",
                    revision.revision
                ));
                continue;
            };
            if counts(content.iter().map(|(_, said)| said)) != revision.counts {
                self.violation(format_args!(
                    "revision {} of {id} is not whole: {:?}",
                    revision.revision, revision.counts
                ));
            }
            seen.lay(at, revision.result, revision.of, &content);
            let receipt = self.stored_receipt(project, id, revision.revision).await.unwrap_or_default();
            let after = seen.counts.iter().map(|(hash, said)| (*hash, *said)).collect();
            seen.revisions.push(SeenRevision {
                result: word(revision.result),
                digest: revision.content,
                receipt,
                content,
                after,
                ordinal: revision.ordinal,
            });
        }
        if counts(seen.counts.values()) != report.summary.counts {
            self.violation(format_args!("push {id} counts otherwise than its revisions: {:?}", report.summary.counts));
        }
        seen
    }

    /// Each item once, and the sums.
    async fn look_at_round(
        &self,
        project: &ProjectId,
        cycle: &CycleName,
        round: &RoundReport,
        pushes: &[(PushId, u64, Seen)],
    ) {
        let query =
            ItemQuery { status: None, flaky: false, search: None, sort: ItemSort::Name, cursor: None, limit: None };
        let choice = RoundChoice::Named(round.round.to_string());
        let Ok(page) = self.durable.items(project, cycle, &choice, &query).await.expect("it reads") else {
            self.violation(format_args!("round {} is listed, and has no items", round.round));
            return;
        };
        let scoped = self.history().offers.iter().filter(|o| o.attempt_of_round).map(|o| o.push).collect::<Vec<_>>();
        let expected = settle(pushes, &scoped);
        let mut shown = BTreeMap::new();
        for item in &page.items {
            if shown.insert(item.hash.0, (item.status, item.flaky, item.pushes)).is_some() {
                self.violation(format_args!("TWICE: item {} counts twice in round {}", item.hash.0, round.round));
            }
        }
        if shown != expected {
            let odd = shown.iter().find(|(hash, item)| expected.get(hash) != Some(item)).map(|(hash, _)| hash);
            let odd = odd.or_else(|| expected.keys().find(|hash| !shown.contains_key(hash)));
            let sides = odd.map(|hash| (hash, shown.get(hash), expected.get(hash)));
            self.violation(format_args!("round {} shows other items than its pushes hold: {sides:?}", round.round));
        }
        let said = |(status, flaky, _): &(Status, bool, u32)| Said { status: *status, bad_before: *flaky };
        let sum: Vec<Said> = expected.values().map(said).collect();
        if counts(sum.iter()) != round.counts {
            self.violation(format_args!("round {} does not add up: {:?}", round.round, round.counts));
        }
        let overlaps = expected.values().filter(|(_, _, pushes)| *pushes > 1).count() as u64;
        if overlaps != round.overlaps {
            self.violation(format_args!("round {} says {} overlaps of {overlaps}", round.round, round.overlaps));
        }
    }
}

impl Seen {
    /// Lays a revision over what counts.
    fn lay(&mut self, at: usize, result: ReceiptResult, of: Option<u32>, content: &[(ItemHash, Said)]) {
        self.promoted |= result == ReceiptResult::Promoted;
        let source = of.map_or(at, |of| of as usize - 1);
        for (hash, said) in content {
            let old = self.counts.get(hash).copied();
            let bad = old.is_some_and(|old| old.bad_before || old.status.is_bad());
            let counts = match (result, old) {
                (ReceiptResult::Kept, Some(_)) => continue,
                (ReceiptResult::Promoted, Some(old)) if self.from.get(hash) == Some(&source) => {
                    Said { bad_before: said.bad_before || old.bad_before, ..*said }
                }
                _ => Said { bad_before: said.bad_before || bad, ..*said },
            };
            self.counts.insert(*hash, counts);
            self.from.insert(*hash, at);
        }
    }
}

fn word(result: ReceiptResult) -> &'static str {
    match result {
        ReceiptResult::Recorded => "recorded",
        ReceiptResult::Revised => "revised",
        ReceiptResult::Kept => "kept",
        ReceiptResult::Promoted => "promoted",
    }
}

/// What counts of each item that several pushes of a round hold: revised and promoted before others, of these the highest
/// known attempt, of these and those without one the worst.
fn settle(pushes: &[(PushId, u64, Seen)], scoped: &[PushId]) -> BTreeMap<ItemHash, (Status, bool, u32)> {
    let mut claims: BTreeMap<ItemHash, Vec<(bool, Option<Ordinal>, Said)>> = BTreeMap::new();
    for (id, _, seen) in pushes {
        for (hash, said) in &seen.counts {
            let from = &seen.revisions[seen.from[hash]];
            let elevated = matches!(from.result, "revised" | "promoted");
            let attempt = from.ordinal.filter(|_| scoped.contains(id));
            claims.entry(*hash).or_default().push((elevated, attempt, *said));
        }
    }
    let judged = claims.into_iter().map(|(hash, claims)| {
        let elevated = claims.iter().any(|(elevated, ..)| *elevated);
        let tier: Vec<_> = claims.iter().filter(|(is, ..)| *is == elevated).collect();
        let highest = tier.iter().filter_map(|(_, attempt, _)| *attempt).max();
        let left: Vec<Said> =
            tier.iter().filter(|(_, a, _)| a.is_none() || *a == highest).map(|(.., said)| *said).collect();
        let rank = |said: &Said| match said.status {
            Status::Errored => 3,
            Status::Failed => 2,
            Status::Passed => 1,
            Status::Skipped => 0,
        };
        let worst = left.iter().max_by_key(|said| rank(said)).map_or(Status::Skipped, |said| said.status);
        let bad_before = left.iter().any(|said| said.status == worst && said.bad_before);
        (hash, (worst, worst == Status::Passed && bad_before, claims.len() as u32))
    });
    judged.collect()
}
