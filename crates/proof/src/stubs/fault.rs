//! What can go wrong at a vendor, as data, and on which requests. Must not know sockets or any vendor.

use std::time::Duration;

use crate::rng::Rng;
use crate::stubs::vendor::Kind;

/// One way to break a request. Several may hit the same request: those that come before it, what happens instead
/// of it, what it meets, and one that comes after it. The source of the list is what vendors, their gateways and
/// their administrators have been seen to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Before: an administrator does this first.
    Admin(Admin),
    /// Before: waits until this many requests wait at this point, then all go on: two writers at once.
    Meet {
        /// Meetings of one name count together, those at a vendor's own gap of that name included.
        point: String,
        /// How many go on together.
        size: u32,
    },
    /// Before: waits, and is then handled even if its client has gone. [`When::ClientGone`] is the late effect:
    /// the client has given up and reads "absent", and then it is applied.
    Held(When),

    /// Instead: the connection closes; nothing was applied.
    RequestDropped,
    /// Instead: the connection closes at once; the request is applied later, and nobody sees its answer.
    DeliveredLate(When),
    /// Instead: the vendor's own error with this status; nothing was applied.
    Refused {
        /// `429`, `409` for maintenance, `401`, `500` before the commit, …
        status: u16,
        /// The header beside it.
        retry_after: RetryAfter,
    },
    /// A gateway's HTML page instead of the answer. With status 200 it is a login or maintenance page.
    Page {
        /// `502`, `504`, `200`.
        status: u16,
        /// Whether the vendor got the request all the same.
        applied: bool,
    },

    /// Within: only so many of a bulk are applied, then the vendor says `500`. A request that is no bulk is refused
    /// with nothing applied.
    AppliedInPart {
        /// How many.
        first: usize,
    },
    /// Within: a page other than the first begins one row too late, as if a row had been taken away meanwhile.
    PageSkips,
    /// Within: a page other than the first begins one row too early, as if a row had been added meanwhile.
    PageRepeats,
    /// Within: what becomes of the job that this request starts.
    Job(JobFate),

    /// After: applied, and the connection closes without a byte of the answer.
    ResponseDropped,
    /// After: applied, and half of the answer's bytes are sent before the connection closes.
    ResponseTruncated,
    /// After: applied, and the vendor's own error with this status is the answer.
    ErrorAfterWrite(u16),
    /// After: applied, and the answer is held back. Ends early if the client goes.
    Stall {
        /// How long.
        hold: When,
        /// Then the answer comes late (`true`), or the connection closes without it.
        then_answer: bool,
    },
}

impl Fault {
    /// Whether the request changes nothing although the vendor would have accepted it.
    pub fn prevents(&self) -> bool {
        matches!(
            self,
            Fault::RequestDropped
                | Fault::DeliveredLate(_)
                | Fault::Refused { .. }
                | Fault::Page { applied: false, .. }
        )
    }

    /// Whether the answer that the client gets is not the vendor's.
    pub(super) fn hides(&self) -> bool {
        matches!(
            self,
            Fault::ResponseDropped
                | Fault::ResponseTruncated
                | Fault::ErrorAfterWrite(_)
                | Fault::AppliedInPart { .. }
                | Fault::Stall { .. }
                | Fault::Page { applied: true, .. }
        )
    }
}

/// The end of a wait. No test needs to sleep: all but the first are events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// This much later, by the machine's clock.
    After(Duration),
    /// When so many requests that arrived later have been handled; a [`Fault::DeliveredLate`] is applied before the
    /// last of them is answered.
    Requests(u32),
    /// When the test says [`release`](crate::stubs::Door::release).
    Told,
    /// When the client has closed the connection.
    ClientGone,
}

/// The header `Retry-After`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAfter {
    /// Not sent.
    Missing,
    /// So many seconds; `0` has been seen.
    Seconds(u32),
    /// An HTTP date so many seconds from now, by the vendor's clock.
    Date(u32),
}

/// What becomes of a job that was accepted with 2xx.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JobFate {
    /// Done before the next request.
    #[default]
    Done,
    /// Done so many milliseconds later, by the vendor's clock.
    AfterMs(u64),
    /// Done after so many polls.
    Polls(u32),
    /// Never done: it stays pending.
    Stuck,
    /// Fails: nothing is applied.
    Fails,
    /// Done, but its id is unknown when asked for.
    LosesId,
}

/// What an administrator does in the middle of a push. Ids and names are the vendor's, as in its ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admin {
    /// Closes or completes a cycle.
    CloseCycle(String),
    /// Deletes a cycle with what is in it.
    DeleteCycle(String),
    /// Takes an item out of a cycle.
    RemoveItem {
        /// The cycle.
        cycle: String,
        /// The item.
        item: String,
    },
    /// Gives a status another name.
    RenameStatus {
        /// The name so far.
        from: String,
        /// The new one.
        to: String,
    },
    /// Takes a status away.
    DeleteStatus(String),
}

/// Which requests: what they are, and which of those.
#[derive(Debug, Clone)]
pub struct Select {
    class: Class,
    what: Option<String>,
    method: Option<String>,
    path: Option<String>,
    body: Option<String>,
    which: Which,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Any,
    Reads,
    Writes,
}

#[derive(Debug, Clone)]
enum Which {
    Each,
    Nth(u32),
    First(u32),
    From(u32),
    Odds(u64, f64),
}

impl Select {
    fn new(class: Class) -> Self {
        Self { class, what: None, method: None, path: None, body: None, which: Which::Each }
    }

    /// Each request.
    pub fn any() -> Self {
        Self::new(Class::Any)
    }

    /// Each read, by the vendor's own classification.
    pub fn reads() -> Self {
        Self::new(Class::Reads)
    }

    /// Each write, by the vendor's own classification.
    pub fn writes() -> Self {
        Self::new(Class::Writes)
    }

    /// Only those that the vendor calls so (the name within its [`Kind`]).
    pub fn what(mut self, what: &str) -> Self {
        self.what = Some(what.to_owned());
        self
    }

    /// Only those of this method.
    pub fn method(mut self, method: &str) -> Self {
        self.method = Some(method.to_ascii_uppercase());
        self
    }

    /// Only those whose target holds this.
    pub fn path(mut self, part: &str) -> Self {
        self.path = Some(part.to_owned());
        self
    }

    /// Only those whose body holds this.
    pub fn body(mut self, part: &str) -> Self {
        self.body = Some(part.to_owned());
        self
    }

    /// Of these only the `n`-th, from 1.
    pub fn nth(mut self, n: u32) -> Self {
        self.which = Which::Nth(n);
        self
    }

    /// Of these only the first `n`.
    pub fn first(mut self, n: u32) -> Self {
        self.which = Which::First(n);
        self
    }

    /// Of these all from the `n`-th on.
    pub fn from(mut self, n: u32) -> Self {
        self.which = Which::From(n);
        self
    }

    /// Of these each with this probability. The n-th one's fate depends on the seed and on n alone.
    pub fn odds(mut self, seed: u64, probability: f64) -> Self {
        self.which = Which::Odds(seed, probability);
        self
    }

    fn matches(&self, seen: &Seen<'_>) -> bool {
        let class = match self.class {
            Class::Any => true,
            Class::Reads => matches!(seen.kind, Kind::Read(_)),
            Class::Writes => matches!(seen.kind, Kind::Write(_)),
        };
        let holds = |part: &Option<String>, text: &str| part.as_deref().is_none_or(|part| text.contains(part));
        class
            && self.what.as_deref().is_none_or(|what| what == seen.kind.what())
            && self.method.as_deref().is_none_or(|method| method == seen.method)
            && holds(&self.path, seen.target)
            && (self.body.is_none() || holds(&self.body, &String::from_utf8_lossy(seen.body)))
    }

    fn hits(&self, nth: u32) -> bool {
        match self.which {
            Which::Each => true,
            Which::Nth(n) => nth == n,
            Which::First(n) => nth <= n,
            Which::From(n) => nth >= n,
            Which::Odds(seed, probability) => Rng::nth(seed, u64::from(nth)).unit() < probability,
        }
    }
}

/// What a selection looks at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) kind: &'a Kind,
    pub(super) method: &'a str,
    pub(super) target: &'a str,
    pub(super) body: &'a [u8],
}

/// A selection and how many it has met so far.
#[derive(Debug)]
pub(super) struct Counted {
    select: Select,
    met: u32,
}

impl Counted {
    pub(super) fn new(select: Select) -> Self {
        Self { select, met: 0 }
    }

    /// Whether this request is selected. Every request must be shown once, in order of arrival.
    pub(super) fn hit(&mut self, seen: &Seen<'_>) -> bool {
        if !self.select.matches(seen) {
            return false;
        }
        self.met += 1;
        self.select.hits(self.met)
    }
}

/// Which requests get which faults.
#[derive(Debug, Clone, Default)]
pub struct Plan(Vec<(Select, Fault)>);

impl Plan {
    /// Nothing is broken.
    pub fn pass() -> Self {
        Self::default()
    }

    /// These requests get this fault.
    pub fn on(select: Select, fault: Fault) -> Self {
        Self(vec![(select, fault)])
    }

    /// And these that one. Each selection counts for itself.
    pub fn and(mut self, select: Select, fault: Fault) -> Self {
        self.0.push((select, fault));
        self
    }
}

/// A plan and how far it has got.
#[derive(Debug, Default)]
pub(super) struct Progress(Vec<(Counted, Fault)>);

impl Progress {
    pub(super) fn new(plan: Plan) -> Self {
        Self(plan.0.into_iter().map(|(select, fault)| (Counted::new(select), fault)).collect())
    }

    pub(super) fn decide(&mut self, seen: &Seen<'_>) -> Vec<Fault> {
        self.0.iter_mut().filter_map(|(counted, fault)| counted.hit(seen).then(|| fault.clone())).collect()
    }
}
