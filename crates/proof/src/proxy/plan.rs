//! Which write gets which fault: by seed, by number or by list. Must not know sockets; counts only what it is told.

use crate::proxy::fault::Fault;
use crate::rng::Rng;

/// Decides for every write (`POST`, `PUT`, `DELETE`) in order of arrival. Equal plans over equal sequences of
/// requests decide equally.
#[derive(Debug, Clone)]
pub struct Plan {
    rule: Rule,
    method: Option<String>,
    path_part: Option<String>,
    at_most: u32,
}

#[derive(Debug, Clone)]
enum Rule {
    First(u32, Fault),
    List(Vec<Option<Fault>>),
    Seeded(u64, Vec<(Fault, f64)>),
}

impl Plan {
    fn new(rule: Rule) -> Self {
        Self { rule, method: None, path_part: None, at_most: u32::MAX }
    }

    /// Nothing is broken.
    pub fn pass() -> Self {
        Self::new(Rule::List(Vec::new()))
    }

    /// The first `n` writes get `fault`, all others pass. `u32::MAX` is an outage.
    pub fn first(n: u32, fault: Fault) -> Self {
        Self::new(Rule::First(n, fault))
    }

    /// The `n`-th write (from 1) gets `fault`, all others pass.
    pub fn nth(n: u32, fault: Fault) -> Self {
        let mut list = vec![None; n.max(1) as usize - 1];
        list.push(Some(fault));
        Self::list(list)
    }

    /// One entry a write, in order; those after the list pass. [`Fault::ResetOnConnect`] is used up by the next
    /// connection or the next write, whichever comes first.
    pub fn list(faults: impl Into<Vec<Option<Fault>>>) -> Self {
        Self::new(Rule::List(faults.into()))
    }

    /// Each write gets each fault with its probability (their sum at most 1). The n-th write's fate depends on
    /// the seed and on n alone. The odds of [`Fault::ResetOnConnect`] are those of a connection.
    pub fn seeded(seed: u64, odds: impl Into<Vec<(Fault, f64)>>) -> Self {
        Self::new(Rule::Seeded(seed, odds.into()))
    }

    /// A lossy link: each write is broken with probability `p`, by any fault; stalls hold for `hold`.
    pub fn lossy(seed: u64, p: f64, hold: std::time::Duration) -> Self {
        let all = Fault::all(hold);
        Self::seeded(seed, all.map(|fault| (fault, p / all.len() as f64)))
    }

    /// Only writes with this method count and are broken.
    pub fn only_method(mut self, method: &str) -> Self {
        self.method = Some(method.to_ascii_uppercase());
        self
    }

    /// Only writes whose target holds `part` count and are broken.
    pub fn only_path(mut self, part: &str) -> Self {
        self.path_part = Some(part.to_owned());
        self
    }

    /// No more than `n` faults in all.
    pub fn at_most(mut self, n: u32) -> Self {
        self.at_most = n;
        self
    }

    fn is_filtered(&self) -> bool {
        self.method.is_some() || self.path_part.is_some()
    }

    fn matches(&self, method: &str, path: &str) -> bool {
        matches!(method, "POST" | "PUT" | "DELETE")
            && self.method.as_deref().is_none_or(|only| only == method)
            && self.path_part.as_deref().is_none_or(|part| path.contains(part))
    }
}

/// A plan and how far it has got.
#[derive(Debug)]
pub(crate) struct Progress {
    plan: Plan,
    connections: u64,
    writes: u64,
    faults: u32,
    list_at: usize,
}

impl Progress {
    pub(crate) fn new(plan: Plan) -> Self {
        Self { plan, connections: 0, writes: 0, faults: 0, list_at: 0 }
    }

    /// Whether a connection just accepted is to be reset. A plan for certain requests cannot tell yet: no.
    pub(crate) fn reset_connection(&mut self) -> bool {
        self.connections += 1;
        if self.plan.is_filtered() || self.faults >= self.plan.at_most {
            return false;
        }
        let reset = match &self.plan.rule {
            Rule::First(n, fault) => *fault == Fault::ResetOnConnect && self.faults < *n,
            Rule::List(list) => list.get(self.list_at) == Some(&Some(Fault::ResetOnConnect)),
            Rule::Seeded(seed, odds) => {
                let mut rng = Rng::nth(!seed, self.connections);
                odds.iter().any(|(fault, p)| *fault == Fault::ResetOnConnect && rng.unit() < *p)
            }
        };
        if reset {
            self.faults += 1;
            self.list_at += 1;
        }
        reset
    }

    /// What happens to the request just read.
    pub(crate) fn decide(&mut self, method: &str, path: &str) -> Option<Fault> {
        if !self.plan.matches(method, path) {
            return None;
        }
        self.writes += 1;
        let fault = match &self.plan.rule {
            Rule::First(n, fault) => (self.faults < *n).then_some(*fault),
            Rule::List(list) => {
                self.list_at += 1;
                list.get(self.list_at - 1).copied().flatten()
            }
            Rule::Seeded(seed, odds) => draw(Rng::nth(*seed, self.writes), odds),
        };
        let fault = fault.filter(|_| self.faults < self.plan.at_most);
        self.faults += u32::from(fault.is_some());
        fault
    }
}

fn draw(mut rng: Rng, odds: &[(Fault, f64)]) -> Option<Fault> {
    let mut left = rng.unit();
    for (fault, p) in odds.iter().filter(|(fault, _)| *fault != Fault::ResetOnConnect) {
        if left < *p {
            return Some(*fault);
        }
        left -= p;
    }
    None
}
