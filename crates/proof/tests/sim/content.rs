//! What test jobs of a simulated world report: small contents over a pool of items, and contents that differ from one
//! another in times only, in verdicts, or in items. Must not know how they travel.

use std::collections::BTreeMap;

use domain::{Attempt, Counts, Digest, DurationUs, ItemHash, ItemName, Outcome, Outcomes, Status};
use proof::rng::Rng;

/// What one item did, as far as it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) status: Status,
    /// An earlier attempt failed.
    pub(crate) bad_before: bool,
}

/// Outcomes by the number of the item, with a duration each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Draft {
    /// The pool: numbers are names within it.
    pool: u64,
    items: BTreeMap<u64, (Said, u64)>,
}

/// A content as a report offers it.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) outcomes: Outcomes,
    pub(crate) digest: Digest,
    /// Item by item, rising.
    pub(crate) said: Vec<(ItemHash, Said)>,
}

impl Draft {
    /// Items numbered from `first` on, mostly passed.
    pub(crate) fn first(rng: &mut Rng, pool: u64, first: u64, size: u64) -> Self {
        let items = (first..first + size).map(|n| (n, (said(rng), 1 + rng.below(5_000))));
        Self { pool, items: items.collect() }
    }

    /// The same verdicts with other times.
    pub(crate) fn timed_anew(&self, rng: &mut Rng) -> Self {
        let items = self.items.iter().map(|(n, (said, us))| (*n, (*said, us + 1 + rng.below(5_000))));
        Self { pool: self.pool, items: items.collect() }
    }

    /// The same tests executed again: some verdicts are others, all times are.
    pub(crate) fn executed_again(&self, rng: &mut Rng) -> Self {
        let mut again = self.timed_anew(rng);
        for (verdict, _) in again.items.values_mut() {
            if rng.below(3) == 0 {
                *verdict = said(rng);
            }
        }
        // At least one verdict is another.
        let counted = |draft: &Self| -> Vec<_> {
            draft.items.iter().map(|(n, (said, _))| (*n, said.status, said.is_flaky())).collect()
        };
        if counted(&again) == counted(self)
            && let Some((verdict, _)) = again.items.values_mut().next()
        {
            verdict.status = if verdict.status == Status::Passed { Status::Failed } else { Status::Passed };
        }
        again
    }

    /// Only some of the tests executed again, as CI re-runs failed ones.
    pub(crate) fn partly_again(&self, rng: &mut Rng) -> Self {
        let mut part = self.executed_again(rng);
        let keep = 1 + rng.below(part.items.len() as u64) as usize;
        part.items = part.items.into_iter().take(keep).collect();
        part
    }

    /// Some more tests than before.
    pub(crate) fn with_more(&self, rng: &mut Rng) -> Self {
        let mut more = self.executed_again(rng);
        let next = more.items.keys().last().map_or(0, |n| n + 1);
        for n in next..=next + rng.below(4) {
            more.items.insert(n, (said(rng), 1 + rng.below(5_000)));
        }
        more
    }

    /// How many items there are.
    pub(crate) fn len(&self) -> u64 {
        self.items.len() as u64
    }

    /// As a report.
    pub(crate) fn build(&self) -> Content {
        let outcomes = self.items.iter().map(|(n, (said, us))| outcome(self.pool, *n, *said, *us)).collect();
        let outcomes = Outcomes::from_unordered(outcomes).expect("each item once");
        let said = outcomes.iter().map(|(hash, outcome)| (hash, Said::of(outcome))).collect();
        Content { digest: outcomes.digests().content, outcomes, said }
    }
}

impl Said {
    fn of(outcome: &Outcome) -> Self {
        Self { status: outcome.status, bad_before: outcome.attempts.iter().any(|a| a.status.is_bad()) }
    }

    /// Passed after a failed attempt.
    pub(crate) fn is_flaky(self) -> bool {
        self.status == Status::Passed && self.bad_before
    }
}

impl Content {
    /// True if verdicts and items are equal, whatever the times.
    pub(crate) fn says_the_same(&self, other: &[(ItemHash, Said)]) -> bool {
        let light = |(hash, said): &(ItemHash, Said)| (*hash, said.status, said.is_flaky());
        self.said.len() == other.len() && self.said.iter().map(light).eq(other.iter().map(light))
    }
}

/// How some verdicts count.
pub(crate) fn counts<'a>(said: impl Iterator<Item = &'a Said>) -> Counts {
    let mut counts = Counts::default();
    said.for_each(|said| counts.add(said.status, said.is_flaky()));
    counts
}

fn said(rng: &mut Rng) -> Said {
    let status = match rng.below(10) {
        0 => Status::Failed,
        1 => Status::Errored,
        2 => Status::Skipped,
        _ => Status::Passed,
    };
    Said { status, bad_before: rng.below(12) == 0 }
}

fn outcome(pool: u64, number: u64, said: Said, us: u64) -> Outcome {
    let failed = Attempt { status: Status::Failed, duration_us: None, message: None };
    Outcome {
        item: ItemName::new(["sim"], Some(&format!("pool{pool}")), &format!("test {number}")),
        status: said.status,
        duration_us: Some(DurationUs(us)),
        message: said.status.is_bad().then(|| format!("{number} went wrong after {us}")),
        attempts: if said.bad_before { vec![failed] } else { Vec::new() },
        external_ids: Vec::new(),
    }
}
