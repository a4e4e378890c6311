//! Short hands for pushes and questions.

pub mod forwards;
mod intents;
mod readings;
mod staged;

use std::sync::Arc;

use domain::listing::{CycleReport, ItemPage, ItemQuery, ItemReport, ItemSort};
use domain::push::ContentId;
use domain::round::RoundChoice;
use domain::{
    Attempt, Counts, CycleName, Digest, DurationUs, Executor, Incarnation, ItemName, JobName, OnDifference, Ordinal,
    Origin, Outcome, Outcomes, Place, ProjectId, Push, PushId, PushKey, ReportSummary, RoundId, RunId, Sender,
    ShardRef, Status, Variant, WorkflowName,
};

use crate::{Answer, Now, Recorded, RecordedAt, Refused, Store};

pub use intents::{intent, write};
pub use readings::{log, readings};
pub use staged::{Cut, staged};

pub const AT: &str = "2026-01-02T03:04:05Z";

/// [`AT`] in milliseconds.
pub const AT_MS: u64 = 1_767_323_045_000;

pub fn now() -> Now {
    after(0)
}

/// So many milliseconds after [`AT`]; the text for people stays, so that receipts do.
pub fn after(ms: u64) -> Now {
    Now { at: RecordedAt(AT.to_owned()), ms: AT_MS + ms }
}

/// The item of this name.
pub fn item(name: &str) -> ItemName {
    ItemName::new(["suite"], Some("class"), name)
}

/// Outcomes from words: a name and `+` passed, `-` failed, `!` errored, `~` skipped, `*` flaky.
pub fn outcomes(words: &str) -> Outcomes {
    let list = words.split_whitespace().map(|word| {
        let (name, mark) = word.split_at(word.len() - 1);
        let status = match mark {
            "+" | "*" => Status::Passed,
            "-" => Status::Failed,
            "!" => Status::Errored,
            _ => Status::Skipped,
        };
        let failed = Attempt { status: Status::Failed, duration_us: None, message: Some("at first".to_owned()) };
        Outcome {
            item: item(name),
            status,
            duration_us: Some(DurationUs(1000 + name.len() as u64)),
            message: status.is_bad().then(|| format!("{name} went wrong")),
            attempts: if mark == "*" { vec![failed] } else { Vec::new() },
            external_ids: Vec::new(),
        }
    });
    Outcomes::from_unordered(list.collect()).expect("one outcome an item")
}

/// A push on its way.
#[derive(Clone)]
pub struct Build(pub Push);

/// A push of job `unit` in run 1 of cycle `main` of project `shop`.
pub fn push(words: &str) -> Build {
    let place = Place {
        project: ProjectId::parse("shop").expect("a project"),
        cycle: CycleName::parse("main").expect("a cycle"),
        round: RoundId::parse("run:1").expect("a round"),
        run: RunId::parse("1").expect("a run"),
        label: None,
        job: Some(JobName::parse("unit").expect("a job")),
        shard: None,
        variant: Variant::default(),
    };
    Build(Push {
        key: PushKey::parse("k").expect("a key"),
        place,
        origin: Origin::default(),
        sender: Sender::default(),
        on_difference: OnDifference::Auto,
        outside_ci: false,
        expect: None,
        files: vec!["junit.xml".to_owned()],
        report: ReportSummary { files: 1, ..ReportSummary::default() },
        incomplete: false,
        outcomes: Outcomes::default(),
        content: ContentId { content: Digest::of(b""), outcomes: Digest::of(b""), body: None },
    })
    .holds(outcomes(words))
}

impl Build {
    pub fn holds(mut self, outcomes: Outcomes) -> Self {
        let body = self.0.content.body;
        self.0.content = ContentId { body, ..outcomes.digests().id() };
        self.0.outcomes = outcomes;
        self
    }

    pub fn body(mut self, bytes: &str) -> Self {
        self.0.content.body = Some(Digest::of(bytes.as_bytes()));
        self
    }

    pub fn project(mut self, name: &str) -> Self {
        self.0.place.project = ProjectId::parse(name).expect("a project");
        self
    }

    pub fn cycle(mut self, name: &str) -> Self {
        self.0.place.cycle = CycleName::parse(name).expect("a cycle");
        self
    }

    pub fn run(mut self, run: &str) -> Self {
        self.0.place.run = RunId::parse(run).expect("a run");
        self.0.place.round = RoundId::parse(&format!("run:{run}")).expect("a round");
        self
    }

    pub fn job(mut self, job: &str) -> Self {
        self.0.place.job = Some(JobName::parse(job).expect("a job"));
        self
    }

    pub fn shard(mut self, shard: &str) -> Self {
        self.0.place.shard = Some(ShardRef::parse(shard).expect("a shard"));
        self
    }

    pub fn variant(mut self, pair: &str) -> Self {
        self.0.place.variant = Variant::parse_pairs([pair]).expect("a variant");
        self
    }

    pub fn workflow(mut self, name: &str) -> Self {
        self.0.origin.workflow = Some(WorkflowName::parse(name).expect("a workflow"));
        self
    }

    pub fn counter(mut self, counter: u64) -> Self {
        self.0.origin.run_counter = Some(counter);
        self
    }

    pub fn commit(mut self, commit: &str) -> Self {
        self.0.origin.commit = Some(commit.parse().expect("a commit"));
        self
    }

    pub fn attempt(mut self, ordinal: u64) -> Self {
        self.0.sender.ordinal = Some(Ordinal(ordinal));
        self
    }

    pub fn executor(mut self, name: &str) -> Self {
        self.0.sender.executor = Some(Executor::parse(name).expect("an executor"));
        self
    }

    pub fn incarnation(mut self, number: u128) -> Self {
        self.0.sender.incarnation = Some(Incarnation(number));
        self
    }

    pub fn on(mut self, policy: OnDifference) -> Self {
        self.0.on_difference = policy;
        self
    }

    pub fn key(mut self, key: &str) -> Self {
        self.0.key = PushKey::parse(key).expect("a key");
        self
    }

    /// The key that its place gives.
    pub fn keyed(self) -> Self {
        let place = &self.0.place;
        let mut parts = vec![place.round.to_string(), "job".to_owned()];
        parts.push(place.job.as_ref().map_or("-", |j| j.as_str()).to_owned());
        if let Some(shard) = place.shard {
            parts.push(format!("shard:{}", shard.to_string().replace('/', "-")));
        }
        for (name, value) in place.variant.iter() {
            parts.push(format!("variant:{name}={value}"));
        }
        let key = parts.join(":");
        self.key(&key)
    }

    pub fn id(&self) -> PushId {
        PushId::of(&self.0.place.project, &self.0.key)
    }

    /// Cut into 2^`bits` chunks, with its items in the manifest.
    pub fn cut(&self, bits: u8) -> Cut {
        let (manifest, chunks) = staged(&self.0, bits);
        Cut { manifest, chunks }
    }

    /// Delivers it in one request.
    pub async fn to(&self, store: &Arc<dyn Store>) -> Recorded {
        self.at(store, now()).await
    }

    /// Delivers it in one request, at this time.
    pub async fn at(&self, store: &Arc<dyn Store>, now: Now) -> Recorded {
        store.record(Arc::new(self.0.clone()), now).await.expect("the store works")
    }

    /// Delivers it, and it has to be accepted.
    pub async fn accepted(&self, store: &Arc<dyn Store>) -> Answer {
        accepted(self.to(store).await)
    }

    /// Delivers it, and it has to be refused.
    pub async fn refused(&self, store: &Arc<dyn Store>) -> domain::protocol::Refusal {
        match self.to(store).await {
            Recorded::Refused(Refused { refusal, .. }) => refusal,
            other => panic!("not refused: {other:?}"),
        }
    }
}

/// The answer to a delivery that has to be accepted.
pub fn accepted(recorded: Recorded) -> Answer {
    match recorded {
        Recorded::Accepted(answer) => answer,
        other => panic!("not accepted: {other:?}"),
    }
}

pub fn shop() -> ProjectId {
    ProjectId::parse("shop").expect("a project")
}

pub fn main_cycle() -> CycleName {
    CycleName::parse("main").expect("a cycle")
}

/// The receipt of an answer.
pub fn receipt(answer: &Answer) -> domain::Receipt {
    serde_json::from_slice(&answer.receipt).expect("a receipt")
}

/// Cycle `main` of project `shop` with all its rounds.
pub async fn cycle(store: &Arc<dyn Store>) -> CycleReport {
    store.cycle(&shop(), &main_cycle(), &RoundChoice::All).await.expect("the store works").expect("the cycle exists")
}

/// A listing without filter.
pub fn query() -> ItemQuery {
    ItemQuery { status: None, flaky: false, search: None, sort: ItemSort::Name, cursor: None, limit: None }
}

pub async fn page(store: &Arc<dyn Store>, query: &ItemQuery) -> ItemPage {
    let found = store.items(&shop(), &main_cycle(), &RoundChoice::Authoritative, query).await;
    found.expect("the store works").expect("the cycle exists")
}

/// Every item of the authoritative rounds as a word: as [`outcomes`] reads them.
pub async fn words(store: &Arc<dyn Store>) -> String {
    let items = page(store, &query()).await.items;
    items.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn word(item: &ItemReport) -> String {
    let mark = match item.status {
        Status::Passed if item.flaky => '*',
        Status::Passed => '+',
        Status::Failed => '-',
        Status::Errored => '!',
        Status::Skipped => '~',
    };
    format!("{}{mark}", item.item.name())
}

/// Numbers `from..to` as outcomes with this mark.
pub fn numbered(range: std::ops::Range<u32>, mark: char) -> String {
    range.map(|n| format!("t{n:03}{mark} ")).collect::<Vec<_>>().concat()
}

/// Nothing contradicts anything, and every round's counts are those of its items.
pub async fn sound(store: &Arc<dyn Store>) {
    let damage = store.check().await.expect("the store works");
    assert!(damage.is_empty(), "{damage:#?}");
    for project in store.projects().await.expect("the store works") {
        for summary in store.cycles(&project).await.expect("works").expect("exists") {
            let report =
                store.cycle(&project, &summary.cycle, &RoundChoice::All).await.expect("works").expect("exists");
            for round in report.rounds {
                let choice = RoundChoice::Named(round.round.to_string());
                let page = store.items(&project, &summary.cycle, &choice, &query()).await;
                let items = page.expect("works").expect("exists").items;
                let mut counts = Counts::default();
                for item in &items {
                    counts.add(item.status, item.flaky);
                }
                assert_eq!(counts, round.counts);
                assert_eq!(items.iter().filter(|item| item.pushes > 1).count() as u64, round.overlaps);
            }
        }
    }
}

/// Forty items, all with this mark: enough for four chunks.
pub fn forty(mark: char) -> String {
    numbered(0..40, mark)
}
