//! What a drill will do, written down beforehand: reports, keys, faults and kills of every push, all from one seed.
//! Must not know processes, sockets or time: moments are counts of requests, with a few microseconds on top.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;
use std::time::Duration;

use domain::key::KeyParts;
use domain::{IdError, JobName, PushKey, RoundId, RunId, ShardRef, Status, Variant};
use proof::oracle::JunitSpec;
use proof::proxy::Fault;
use proof::rng::Rng;

/// Pushes of one round: four shards of one job, and four jobs.
const ROUND: u32 = 8;
/// Shards of the sharded job.
const SHARDS: u32 = 4;
/// One push in so many goes with a kill of the server, if the server is ours.
const SERVER_KILL_EVERY: u32 = 16;
/// One push in so many is large.
const LARGE_EVERY: u32 = 16;
/// Cases of a large report, at least, and how many more it may have: more than one body to a server of the drill's own.
const LARGE: (usize, u64) = (2600, 400);
/// Faults that a push meets after its first, at most.
const FURTHER_FAULTS: u32 = 4;
/// How long an answer is held that comes all the same: well within the time-out of [`super::stage`]'s clients.
const SHORT_STALL: Duration = Duration::from_millis(150);
/// How long an answer is held that never comes: longer than they wait.
const LONG_STALL: Duration = Duration::from_secs(4);

/// What happens to one push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Story {
    /// One client.
    Plain,
    /// The step of the job runs again: the same content, from a new process.
    Again,
    /// Two processes deliver the same content at once.
    Race,
    /// The client is killed; what it left is flushed, or the step runs again.
    Killed {
        /// When.
        at: Moment,
        /// What comes first then.
        flush: bool,
    },
    /// The link stays down for longer than the client tries; its outbox keeps the push until the end.
    GivesUp,
    /// The job runs again, with other outcomes.
    ReExecuted,
    /// The same, but the first attempt's delivery stays in its outbox until the second is recorded.
    LateFirst,
}

/// How often each story is told in twenty pushes.
const STORIES: [(Tale, usize); 7] = [
    (Tale::Plain, 5),
    (Tale::Again, 2),
    (Tale::Race, 3),
    (Tale::Killed, 4),
    (Tale::GivesUp, 2),
    (Tale::ReExecuted, 3),
    (Tale::LateFirst, 1),
];

/// A story before its details are drawn.
#[derive(Debug, Clone, Copy)]
enum Tale {
    Plain,
    Again,
    Race,
    Killed,
    GivesUp,
    ReExecuted,
    LateFirst,
}

/// When a process dies, in terms of what passes its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    /// After this many requests of the push, from 1.
    pub request: usize,
    /// When the server has answered it (and the client has not heard), or already when it has arrived.
    pub answered: bool,
    /// And so long afterwards.
    pub pause: Duration,
}

/// One push.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PushScript {
    /// From 0.
    pub number: u32,
    /// `--run`.
    pub run: RunId,
    /// `--job`.
    pub job: JobName,
    /// `--shard`.
    pub shard: Option<ShardRef>,
    /// The key that follows from these.
    pub key: PushKey,
    /// The round.
    pub round: RoundId,
    /// What each attempt of the job reports: one, or two.
    pub reports: Vec<JunitSpec>,
    /// What the link does to its writes, in their order; those after these pass.
    pub faults: Vec<Option<Fault>>,
    /// What happens.
    pub story: Story,
    /// When the server is killed.
    pub server_dies: Option<Moment>,
}

/// Every fault that the link knows.
pub(super) fn faults() -> Vec<Fault> {
    let stall = |fault: Fault| match fault {
        Fault::Stall { then_answer: true, .. } => Fault::Stall { hold: SHORT_STALL, then_answer: true },
        other => other,
    };
    Fault::all(LONG_STALL).into_iter().map(stall).collect()
}

/// The script of a drill. `own_server`: it may be killed.
///
/// # Errors
/// None: the names that are made here are valid.
pub(super) fn write(seed: u64, pushes: u32, own_server: bool) -> Result<Vec<PushScript>, IdError> {
    let mut tales = Shuffled::new(
        seed,
        1,
        STORIES.iter().flat_map(|(tale, times)| std::iter::repeat_n(*tale, *times)).collect::<Vec<_>>(),
    );
    let mut first_faults = Shuffled::new(seed, 2, faults());
    let one_in = |stream, n: u32| Shuffled::new(seed, stream, (0..n).map(|at| at == 0).collect::<Vec<_>>());
    let (mut dying, mut large) = (one_in(3, SERVER_KILL_EVERY), one_in(4, LARGE_EVERY));
    (0..pushes)
        .map(|number| {
            let mut rng = Rng::nth(seed, 1000 + u64::from(number));
            let story = tell(tales.next(), &mut rng);
            let faults = match story {
                Story::GivesUp | Story::LateFirst => outage(&mut rng),
                _ => lossy(first_faults.next(), &mut rng),
            };
            let dies = dying.next() && own_server;
            let server_dies = dies.then(|| Moment { request: 1, ..moment(&mut rng) });
            let (run, job, shard) = place(seed, number)?;
            let parts = KeyParts {
                scope: None,
                run: run.clone(),
                round: None,
                job: Some(job.clone()),
                shard,
                variant: Variant::default(),
            };
            let (key, round) = (parts.key(), parts.round_id());
            let reports = reports(number, story, large.next(), &mut rng);
            Ok(PushScript { number, run, job, shard, key, round, reports, faults, story, server_dies })
        })
        .collect()
}

fn place(seed: u64, number: u32) -> Result<(RunId, JobName, Option<ShardRef>), IdError> {
    let at = number % ROUND;
    let run = RunId::parse(&format!("drill-{seed}-{:05}", number / ROUND + 1))?;
    if at < SHARDS {
        let shard = ShardRef::parse(&format!("{}/{SHARDS}", at + 1))?;
        return Ok((run, JobName::parse("e2e")?, Some(shard)));
    }
    Ok((run, JobName::parse(&format!("unit-{}", at - SHARDS + 1))?, None))
}

fn tell(tale: Tale, rng: &mut Rng) -> Story {
    match tale {
        Tale::Plain => Story::Plain,
        Tale::Again => Story::Again,
        Tale::Race => Story::Race,
        Tale::Killed => Story::Killed { at: moment(rng), flush: rng.below(2) == 0 },
        Tale::GivesUp => Story::GivesUp,
        Tale::ReExecuted => Story::ReExecuted,
        Tale::LateFirst => Story::LateFirst,
    }
}

fn moment(rng: &mut Rng) -> Moment {
    // Later requests come after waits; most kills should fall into the first two.
    let request = [1, 1, 1, 2, 2, 3][rng.below(6) as usize];
    Moment { request, answered: rng.below(2) == 0, pause: Duration::from_micros(rng.below(4000)) }
}

/// A first fault of each kind in turn, and then at every second write any of them.
fn lossy(first: Fault, rng: &mut Rng) -> Vec<Option<Fault>> {
    let all = faults();
    let mut list = vec![Some(first)];
    for _ in 0..rng.below(u64::from(FURTHER_FAULTS) + 1) {
        let fault = all[rng.below(all.len() as u64) as usize];
        list.push((rng.below(2) == 0).then_some(fault));
    }
    list
}

/// One fault again and again: the link is down in this way until it is healed.
fn outage(rng: &mut Rng) -> Vec<Option<Fault>> {
    let kinds = [
        Fault::RequestDropped,
        Fault::ResponseDropped,
        Fault::GatewayTimeoutAfterWrite,
        Fault::BadGateway502 { forwarded: false },
        Fault::BadGateway502 { forwarded: true },
        Fault::CutMidRequest,
        Fault::ResponseTruncated,
    ];
    vec![Some(kinds[rng.below(kinds.len() as u64) as usize]); 1000]
}

fn reports(number: u32, story: Story, large: bool, rng: &mut Rng) -> Vec<JunitSpec> {
    let (least, more) = if large { LARGE } else { (5, 36) };
    let cases = least + rng.below(more) as usize;
    let first = JunitSpec {
        names: u64::from(number) + 1,
        verdicts: rng.next_u64(),
        times: rng.next_u64(),
        cases,
        failures: 1 + rng.below(2) as usize,
        errors: rng.below(2) as usize,
        skipped: rng.below(2) as usize,
    };
    // Fewer are bad the second time, so the two always differ.
    let second = JunitSpec { verdicts: rng.next_u64(), times: rng.next_u64(), failures: 0, errors: 0, ..first };
    match story {
        Story::ReExecuted | Story::LateFirst => vec![first, second],
        _ => vec![first],
    }
}

/// A list dealt out again and again, in another order each time.
struct Shuffled<T> {
    cards: Vec<T>,
    left: usize,
    rng: Rng,
}

impl<T: Copy> Shuffled<T> {
    fn new(seed: u64, stream: u64, cards: Vec<T>) -> Self {
        Self { cards, left: 0, rng: Rng::nth(seed, stream) }
    }

    fn next(&mut self) -> T {
        if self.left == 0 {
            self.left = self.cards.len();
        }
        let drawn = self.rng.below(self.left as u64) as usize;
        self.left -= 1;
        self.cards.swap(drawn, self.left);
        self.cards[self.left]
    }
}

/// What a report holds, by item.
pub(super) fn statuses(report: &JunitSpec) -> BTreeMap<String, Status> {
    let known = |(item, word): (String, String)| Some((item, Status::from_str(&word).ok()?));
    report.expected().into_iter().filter_map(known).collect()
}

impl PushScript {
    /// What counts in the end: what the last attempt says of each item.
    pub(super) fn counting(&self) -> BTreeMap<String, Status> {
        self.reports.iter().flat_map(statuses).collect()
    }

    /// The items that passed only when the job ran again. `None` where it depends on which delivery came first.
    pub(super) fn flaky(&self) -> Option<BTreeSet<String>> {
        if self.story == Story::LateFirst {
            return None;
        }
        let [first, second] = self.reports.as_slice() else { return Some(BTreeSet::new()) };
        let (before, after) = (statuses(first), statuses(second));
        let passed_later = |item: &&String| after.get(*item) == Some(&Status::Passed);
        let bad = before.iter().filter(|(_, status)| status.is_bad()).map(|(item, _)| item);
        Some(bad.filter(passed_later).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(seed: u64, pushes: u32, own_server: bool) -> Vec<PushScript> {
        write(seed, pushes, own_server).unwrap()
    }

    #[test]
    fn a_seed_writes_one_script_and_another_another() {
        assert_eq!(written(7, 60, true), written(7, 60, true));
        assert_ne!(written(7, 60, true), written(8, 60, true));
    }

    #[test]
    fn every_story_and_every_first_fault_comes() {
        let script = written(1, 40, true);
        let kinds: BTreeSet<u8> = script
            .iter()
            .map(|push| match push.story {
                Story::Plain => 0,
                Story::Again => 1,
                Story::Race => 2,
                Story::Killed { .. } => 3,
                Story::GivesUp => 4,
                Story::ReExecuted => 5,
                Story::LateFirst => 6,
            })
            .collect();
        assert_eq!(kinds.len(), STORIES.len());
        let met: BTreeSet<&str> = script.iter().filter_map(|push| push.faults[0]).map(Fault::name).collect();
        assert_eq!(met.len(), faults().len());
        assert!(script.iter().filter(|push| push.server_dies.is_some()).count() >= 2);
        assert!(written(1, 40, false).iter().all(|push| push.server_dies.is_none()));
    }

    #[test]
    fn keys_and_items_are_each_pushs_own() {
        let script = written(3, 100, true);
        let keys: BTreeSet<&str> = script.iter().map(|push| push.key.as_str()).collect();
        assert_eq!(keys.len(), script.len());
        let items: Vec<String> = script.iter().flat_map(|push| push.counting().into_keys()).collect();
        assert_eq!(items.iter().collect::<BTreeSet<_>>().len(), items.len());
        assert!(script.iter().all(|push| push.counting().len() == push.reports[0].cases));
    }

    #[test]
    fn a_re_execution_reports_otherwise() {
        let script = written(5, 60, true);
        let again: Vec<&PushScript> = script.iter().filter(|push| push.reports.len() == 2).collect();
        assert!(!again.is_empty());
        for push in again {
            assert_ne!(statuses(&push.reports[0]), push.counting());
            assert!(push.flaky().is_none_or(|flaky| !flaky.is_empty() || push.reports[1].skipped > 0));
        }
    }
}
