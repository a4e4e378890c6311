//! Which faults there are, and which of them a message meets: drawn at random by rates that a seed chose, or one after
//! the other from a script. Must not carry anything: the network, the server and the store do.

use std::collections::VecDeque;

use proof::rng::Rng;

/// The kinds of faults that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Class {
    Refused,
    RequestLost,
    RequestLate,
    Duplicated,
    RequestCut,
    RequestFlipped,
    GatewayBefore,
    GatewayAfter,
    AnswerLost,
    AnswerStalled,
    AnswerCut,
    AnswerFlipped,
    AnswerStrange,
    Reordered,
    ServerCrash,
    RunnerKilled,
    StoreNotWritten,
    StoreBusy,
    StoreUnknown,
    StoreZombie,
    ClockJump,
}

impl Class {
    pub(crate) const ALL: [Class; 21] = [
        Class::Refused,
        Class::RequestLost,
        Class::RequestLate,
        Class::Duplicated,
        Class::RequestCut,
        Class::RequestFlipped,
        Class::GatewayBefore,
        Class::GatewayAfter,
        Class::AnswerLost,
        Class::AnswerStalled,
        Class::AnswerCut,
        Class::AnswerFlipped,
        Class::AnswerStrange,
        Class::Reordered,
        Class::ServerCrash,
        Class::RunnerKilled,
        Class::StoreNotWritten,
        Class::StoreBusy,
        Class::StoreUnknown,
        Class::StoreZombie,
        Class::ClockJump,
    ];

    /// For the table.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Class::Refused => "connection refused or reset at once",
            Class::RequestLost => "request dropped",
            Class::RequestLate => "request delayed past the next one",
            Class::Duplicated => "request duplicated",
            Class::RequestCut => "request body truncated",
            Class::RequestFlipped => "a bit of the request body flipped",
            Class::GatewayBefore => "502, 503 or 504 before the write",
            Class::GatewayAfter => "502, 503 or 504 after the write",
            Class::AnswerLost => "answer dropped",
            Class::AnswerStalled => "answer stalled past the time-out",
            Class::AnswerCut => "answer truncated",
            Class::AnswerFlipped => "a bit of the answer flipped",
            Class::AnswerStrange => "200 with a strange body",
            Class::Reordered => "arrived after a later request",
            Class::ServerCrash => "server killed while it answered",
            Class::RunnerKilled => "runner killed",
            Class::StoreNotWritten => "store failed before writing",
            Class::StoreBusy => "store busy",
            Class::StoreUnknown => "store failed, written or not",
            Class::StoreZombie => "store applied it later",
            Class::ClockJump => "server clock jumped meanwhile",
        }
    }
}

/// What a message asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    OneShot,
    Begin,
    Put(u32),
    Commit,
    Cancel,
    Attach,
    Other,
}

impl Kind {
    /// True if it goes into a writing operation of the store.
    pub(crate) fn writes(self) -> bool {
        !matches!(self, Kind::Attach | Kind::Other)
    }
}

/// The crash points of an operation (`facts/idempotency.md`, 3.5b).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Point {
    K0,
    K1,
    K2,
    K3,
    K4,
    K5,
    K6,
    K7,
    K8,
}

impl Point {
    pub(crate) const ALL: [Point; 9] =
        [Point::K0, Point::K1, Point::K2, Point::K3, Point::K4, Point::K5, Point::K6, Point::K7, Point::K8];
}

/// What happens to a request on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnRequest {
    /// The connection never stands.
    Refused,
    /// It never arrives; the client sees a reset, or nothing.
    Lost { stall: bool },
    /// The client sees a reset; it arrives that much later.
    Late { ms: u64 },
    /// A copy arrives that much later.
    Twice { ms: u64 },
    /// Half of its body arrives, then a reset.
    Cut,
    /// One bit of its body is another.
    Flipped,
    /// Something in front answers, and never forwards it.
    Gateway(u16),
}

/// What the store does with the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnStore {
    /// Fails before it writes.
    NotWritten,
    /// Waits, then gives up.
    Busy,
    /// Writes, and then the connection is lost.
    WrittenUnknown,
    /// The connection is lost in the commit, which aborts.
    LostUnknown,
    /// The connection is lost in the commit, which is applied that much later.
    Zombie { ms: u64 },
}

/// What happens to an answer on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnAnswer {
    Lost,
    Stalled,
    Cut,
    Flipped,
    /// Something in front answers instead.
    Gateway(u16),
    /// A success that says something else.
    Strange,
}

/// Everything that one message meets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) out_ms: u64,
    pub(crate) back_ms: u64,
    pub(crate) request: Option<OnRequest>,
    pub(crate) store: Option<OnStore>,
    pub(crate) answer: Option<OnAnswer>,
    /// The server dies when the message is there.
    pub(crate) crash: Option<Point>,
    /// The runner dies when the message is there.
    pub(crate) kill: Option<Point>,
}

/// How often what happens, in messages of a thousand.
#[derive(Debug, Clone)]
pub(crate) struct Rates {
    request: [u64; 7],
    store: [u64; 5],
    answer: [u64; 6],
    crash: u64,
    kill: u64,
    /// Bound of the usual way of a message, in milliseconds.
    latency_ms: u64,
}

impl Rates {
    /// Some worlds are calm and others terrible, and each has its own kind of weather.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let severity = [8, 35, 60, 90][rng.below(4) as usize];
        let mut rate = || if rng.below(5) == 0 { 0 } else { rng.below(severity) };
        let request = std::array::from_fn(|_| rate());
        let store = std::array::from_fn(|_| rate());
        let answer = std::array::from_fn(|_| rate());
        let (crash, kill) = (rate(), rate());
        let latency_ms = [2, 20, 200, 3_000][rng.below(4) as usize];
        Self { request, store, answer, crash, kill, latency_ms }
    }

    fn plan(&self, rng: &mut Rng, kind: Kind) -> Plan {
        let mut plan =
            Plan { out_ms: rng.below(self.latency_ms), back_ms: rng.below(self.latency_ms), ..Plan::default() };
        let status = [502, 503, 504][rng.below(3) as usize];
        let later_ms = [rng.below(50), rng.below(5_000), rng.below(200_000)][rng.below(3) as usize];
        plan.request = pick(rng, &self.request).map(|at| match at {
            0 => OnRequest::Refused,
            1 => OnRequest::Lost { stall: status == 504 },
            2 => OnRequest::Late { ms: later_ms },
            3 => OnRequest::Twice { ms: later_ms },
            4 => OnRequest::Cut,
            5 => OnRequest::Flipped,
            _ => OnRequest::Gateway(status),
        });
        if kind.writes() {
            plan.store = pick(rng, &self.store).map(|at| match at {
                0 => OnStore::NotWritten,
                1 => OnStore::Busy,
                2 => OnStore::WrittenUnknown,
                3 => OnStore::LostUnknown,
                _ => OnStore::Zombie { ms: later_ms },
            });
        }
        plan.answer = pick(rng, &self.answer).map(|at| match at {
            0 => OnAnswer::Lost,
            1 => OnAnswer::Stalled,
            2 => OnAnswer::Cut,
            3 => OnAnswer::Flipped,
            4 => OnAnswer::Gateway(status),
            _ => OnAnswer::Strange,
        });
        let point = |rng: &mut Rng| Point::ALL[rng.below(9) as usize];
        plan.crash = (rng.below(1000) < self.crash).then(|| point(rng));
        plan.kill = (rng.below(1000) < self.kill).then(|| point(rng));
        plan
    }
}

fn pick(rng: &mut Rng, rates: &[u64]) -> Option<usize> {
    let mut left = rng.below(1000);
    for (at, rate) in rates.iter().enumerate() {
        if left < *rate {
            return Some(at);
        }
        left -= rate;
    }
    None
}

/// One fault of a script: the next message of this kind meets it, or the next one that writes at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) kind: Option<Kind>,
    pub(crate) plan: Plan,
}

/// Where faults come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// Nowhere, any more.
    Calm,
    /// By rates.
    Random(Rates),
    /// One after the other.
    Script(VecDeque<Step>),
}

impl Source {
    /// What the next message meets.
    pub(crate) fn plan(&mut self, rng: &mut Rng, kind: Kind) -> Plan {
        match self {
            Source::Calm => Plan { out_ms: rng.below(10), back_ms: rng.below(10), ..Plan::default() },
            Source::Random(rates) => rates.plan(rng, kind),
            Source::Script(steps) => {
                let calm = Plan { out_ms: 1, back_ms: 1, ..Plan::default() };
                let meets = |step: &Step| step.kind.map_or(kind.writes(), |wanted| wanted == kind);
                steps.pop_front_if(|step| meets(step)).map_or(calm, |step| step.plan)
            }
        }
    }

    /// How many faults of a script have not happened.
    pub(crate) fn left(&self) -> usize {
        if let Source::Script(steps) = self { steps.len() } else { 0 }
    }

    /// True if faults are drawn.
    pub(crate) fn is_random(&self) -> bool {
        matches!(self, Source::Random(_))
    }
}
