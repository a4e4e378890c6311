//! Rounds: which are complete, and which of them a cycle's headline counts (design, section 7).
//! Pure functions over facts that an engine reads. Must not know stores or clocks.

use std::collections::BTreeMap;

use crate::id::{JobName, RoundId, RunId, Variant, WorkflowName};

/// What an engine knows of one round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundFacts {
    /// Its id, unique in the cycle.
    pub round: RoundId,
    /// The bare run value.
    pub run: RunId,
    /// The pipeline definition, if known.
    pub workflow: Option<WorkflowName>,
    /// The platform's counter of runs of that workflow, if known.
    pub run_counter: Option<u64>,
    /// When it was first recorded, as a number that rises within the cycle.
    pub first_recorded: u64,
    /// True once somebody closed it.
    pub closed: bool,
    /// True while somebody has pinned it.
    pub pinned: bool,
    /// The jobs that were seen.
    pub jobs: Vec<JobFacts>,
}

/// What is known of one job of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFacts {
    /// The job; `None` for pushes that name none.
    pub job: Option<JobName>,
    /// How many pushes it makes over all shards and variants, if somebody said so (`--expect`).
    pub expect: Option<u32>,
    /// The variants that were seen.
    pub variants: Vec<VariantFacts>,
}

/// What is known of one variant of a job of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariantFacts {
    /// The configuration.
    pub variant: Variant,
    /// The shard total, if known.
    pub total: Option<u32>,
    /// Shards that were seen, each once; 0 stands for a push without shard.
    pub seen: Vec<u32>,
}

impl JobFacts {
    /// Pushes that were seen.
    pub fn pushes(&self) -> u32 {
        self.variants.iter().map(|v| v.seen.len() as u32).sum()
    }

    /// Complete when every variant seen has all its shards (no total: one push), with as many pushes as expected.
    pub fn is_complete(&self) -> bool {
        !self.variants.is_empty() && self.has_expected() && self.variants.iter().all(VariantFacts::is_complete)
    }

    fn has_expected(&self) -> bool {
        self.expect.is_none_or(|expected| self.pushes() >= expected)
    }

    /// What is missing, in words; `None` if nothing is.
    pub fn missing(&self) -> Option<String> {
        if self.is_complete() {
            return None;
        }
        let job = self.job.as_ref().map_or_else(|| "(no job)".to_owned(), ToString::to_string);
        let expected = self.expect.filter(|_| !self.has_expected());
        let expected = expected.map(|expected| format!("{} of {expected} expected pushes", self.pushes()));
        let shards = self.variants.iter().filter(|v| !v.is_complete()).map(VariantFacts::missing);
        let parts: Vec<String> = expected.into_iter().chain(shards).collect();
        Some(format!("{job}: {}", parts.join("; ")))
    }
}

impl VariantFacts {
    fn is_complete(&self) -> bool {
        match self.total {
            Some(total) => (1..=total).all(|shard| self.seen.contains(&shard)),
            None => !self.seen.is_empty(),
        }
    }

    fn missing(&self) -> String {
        let total = self.total.unwrap_or(0);
        let absent: Vec<String> =
            (1..=total).filter(|s| !self.seen.contains(s)).take(20).map(|s| s.to_string()).collect();
        let variant = if self.variant.is_empty() { String::new() } else { format!(" of {}", self.variant) };
        format!("shard {} of {total}{variant}", absent.join(", "))
    }
}

/// Where a round stands in its cycle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// Every job seen is complete, and every job of the workflow's previous authoritative round is there; or closed.
    pub complete: bool,
    /// The cycle's headline counts it.
    pub authoritative: bool,
    /// What is missing, in words; empty if complete.
    pub missing: Vec<String>,
}

/// Where each round stands, in the order given. Rounds are judged per workflow, in the order of the platform's counter
/// where all rounds of the workflow have one, else of first recording.
pub fn standings(rounds: &[RoundFacts]) -> Vec<Standing> {
    let mut standings = vec![Standing::default(); rounds.len()];
    let mut workflows: BTreeMap<Option<&WorkflowName>, Vec<usize>> = BTreeMap::new();
    for (at, round) in rounds.iter().enumerate() {
        workflows.entry(round.workflow.as_ref()).or_default().push(at);
    }
    for members in workflows.values_mut() {
        order(rounds, members);
        let mut authoritative: Option<usize> = None;
        for &at in members.iter() {
            standings[at] = judge(&rounds[at], authoritative.map(|a| &rounds[a]));
            if standings[at].complete {
                authoritative = Some(at);
            }
        }
        let pinned = members.iter().rev().copied().find(|&at| rounds[at].pinned);
        if let Some(at) = pinned.or(authoritative) {
            standings[at].authoritative = true;
        }
    }
    standings
}

fn order(rounds: &[RoundFacts], members: &mut [usize]) {
    let counted = members.iter().all(|&at| rounds[at].run_counter.is_some());
    let place = |at: usize| (if counted { rounds[at].run_counter } else { None }, rounds[at].first_recorded);
    members.sort_by_key(|&at| place(at));
}

/// The order in which a cycle's rounds are listed, latest last: by workflow order where one workflow has them all.
pub fn listing_order(rounds: &[RoundFacts]) -> Vec<usize> {
    let mut members: Vec<usize> = (0..rounds.len()).collect();
    let one_workflow = rounds.windows(2).all(|pair| pair[0].workflow == pair[1].workflow);
    if one_workflow {
        order(rounds, &mut members);
    } else {
        members.sort_by_key(|&at| rounds[at].first_recorded);
    }
    members
}

fn judge(round: &RoundFacts, previous: Option<&RoundFacts>) -> Standing {
    let mut missing: Vec<String> = round.jobs.iter().filter_map(JobFacts::missing).collect();
    for job in previous.map(|p| p.jobs.as_slice()).unwrap_or_default() {
        if !round.jobs.iter().any(|j| j.job == job.job) {
            let name = job.job.as_ref().map_or_else(|| "(no job)".to_owned(), ToString::to_string);
            missing.push(format!("{name}: not seen, but part of the round before"));
        }
    }
    if round.closed {
        missing.clear();
    }
    Standing { complete: round.closed || (missing.is_empty() && !round.jobs.is_empty()), authoritative: false, missing }
}

/// Which rounds a listing asks for (`--round`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoundChoice {
    /// The authoritative rounds; without any, the latest one.
    Authoritative,
    /// The one first recorded last, or last in the platform's order.
    Latest,
    /// Every round.
    All,
    /// The round with this id, this bare run value, or this unique beginning of either.
    Named(String),
}

impl RoundChoice {
    /// From the word given.
    pub fn parse(text: &str) -> Self {
        match text {
            "" | "authoritative" => Self::Authoritative,
            "latest" => Self::Latest,
            "all" => Self::All,
            name => Self::Named(name.to_owned()),
        }
    }
}

/// Why a named round was not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RoundChoiceError {
    /// No round has this id, run or beginning.
    #[error("no round of this cycle is called {name:?} or begins so")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// More than one does.
    #[error("{name:?} could be {}; say more of it", candidates.join(" or "))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// Some rounds that fit.
        candidates: Vec<String>,
    },
}

/// The places of the chosen rounds in `rounds`, in listing order.
pub fn choose(
    rounds: &[RoundFacts],
    standings: &[Standing],
    choice: &RoundChoice,
) -> Result<Vec<usize>, RoundChoiceError> {
    let listed = listing_order(rounds);
    let latest = || listed.last().copied().into_iter().collect::<Vec<_>>();
    match choice {
        RoundChoice::All => Ok(listed),
        RoundChoice::Latest => Ok(latest()),
        RoundChoice::Authoritative => {
            let chosen: Vec<usize> = listed.iter().copied().filter(|&at| standings[at].authoritative).collect();
            Ok(if chosen.is_empty() { latest() } else { chosen })
        }
        RoundChoice::Named(name) => named(rounds, name).map(|at| vec![at]),
    }
}

/// The one round with this id, run value, or unique beginning of either.
pub fn named(rounds: &[RoundFacts], name: &str) -> Result<usize, RoundChoiceError> {
    let tests: [&dyn Fn(&RoundFacts) -> bool; 3] = [&|r| r.round.as_str() == name, &|r| r.run.as_str() == name, &|r| {
        r.round.as_str().starts_with(name) || r.run.as_str().starts_with(name)
    }];
    for test in tests {
        let hits: Vec<usize> = (0..rounds.len()).filter(|&at| test(&rounds[at])).collect();
        match hits.as_slice() {
            [] => {}
            [only] => return Ok(*only),
            many => {
                let candidates = many.iter().take(5).map(|&at| rounds[at].round.to_string()).collect();
                return Err(RoundChoiceError::Ambiguous { name: name.to_owned(), candidates });
            }
        }
    }
    Err(RoundChoiceError::Unknown { name: name.to_owned() })
}
