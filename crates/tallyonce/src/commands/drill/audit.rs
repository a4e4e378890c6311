//! The audit of a drill: what was pushed and what clients were told, against what is recorded. A pure function.
//! Must not ask anybody anything, and must not know how the pushes were broken.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use domain::Status;

use super::observed::{ItemSeen, Observed, PushSeen, Tables};
use super::told::{Said, Telling};

/// What must be found of one push.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expected {
    /// Its key.
    pub key: String,
    /// Its round.
    pub round: String,
    /// What counts of it: what its last attempt says.
    pub items: BTreeMap<String, Status>,
    /// The items that are flaky, where that is certain.
    pub flaky: Option<BTreeSet<String>>,
    /// How many contents were pushed.
    pub attempts: usize,
    /// What its clients said.
    pub tellings: Vec<Telling>,
    /// Entries that an outbox still keeps.
    pub kept: usize,
    /// How many deliveries a server may have accepted: at least those that it was seen to accept, at most those that
    /// reached it. Absent where that can't be told from the link.
    pub accepted: Option<RangeInclusive<u64>>,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// Counted more than once.
    Doubled,
    /// A client was told that it is recorded, and it is not there.
    Lost,
    /// A client was told success, other outcomes than its own count, and nobody told it.
    Suppressed,
    /// Anything else that does not fit.
    Unexplained,
}

impl Fault {
    /// Its word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Fault::Doubled => "doubled",
            Fault::Lost => "lost",
            Fault::Suppressed => "suppressed",
            Fault::Unexplained => "unexplained",
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// What kind.
    pub fault: Fault,
    /// In words.
    pub what: String,
}

/// What the audit came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Pushes whose outcomes are all there, each once.
    pub recorded: u64,
    /// Outcomes of these.
    pub outcomes: u64,
    /// Deliveries that were answered from a receipt, by the server's own count.
    pub replayed: u64,
    /// Contents that were recorded after the first of their push.
    pub revised: u64,
    /// Everything that is wrong.
    pub findings: Vec<Finding>,
}

impl Verdict {
    /// How many findings are of this kind.
    pub(super) fn count(&self, fault: Fault) -> u64 {
        self.findings.iter().filter(|finding| finding.fault == fault).count() as u64
    }
}

/// Compares.
pub(super) fn audit(expected: &[Expected], observed: &Observed) -> Verdict {
    let mut audit = Audit { observed, listed: listed(observed), verdict: Verdict::default() };
    for push in expected {
        audit.told(push);
        let before = audit.verdict.findings.len();
        audit.items(push);
        audit.row(push);
        if audit.verdict.findings.len() == before {
            audit.verdict.recorded += 1;
            audit.verdict.outcomes += push.items.len() as u64;
        }
    }
    audit.totals(expected);
    audit.strangers(expected);
    if let Some(tables) = &observed.tables {
        audit.tables(tables);
    }
    audit.verdict.replayed = observed.rounds.values().map(|round| round.repeats).sum();
    audit.verdict.revised = pushes_of(observed).map(|(_, _, push)| u64::from(push.revision.saturating_sub(1))).sum();
    audit.verdict
}

type Listed<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a ItemSeen>>;

/// Listed items by round and name.
fn listed(observed: &Observed) -> Listed<'_> {
    let mut all = Listed::new();
    for (round, held) in &observed.rounds {
        for item in &held.items {
            all.entry((round, &item.item)).or_default().push(item);
        }
    }
    all
}

fn pushes_of(observed: &Observed) -> impl Iterator<Item = (&str, &str, &PushSeen)> {
    observed
        .rounds
        .iter()
        .flat_map(|(round, held)| held.pushes.iter().map(move |(key, push)| (round.as_str(), key.as_str(), push)))
}

struct Audit<'a> {
    observed: &'a Observed,
    listed: Listed<'a>,
    verdict: Verdict,
}

impl Audit<'_> {
    fn find(&mut self, fault: Fault, what: String) {
        self.verdict.findings.push(Finding { fault, what });
    }

    /// What its clients said, by itself.
    fn told(&mut self, push: &Expected) {
        let key = &push.key;
        for telling in &push.tellings {
            if let Said::Odd(words) = &telling.said {
                self.find(Fault::Unexplained, format!("{key}: a client of attempt {}: {words}", telling.attempt));
            }
        }
        for attempt in 1..=push.attempts {
            if !push.confirmed(attempt).any(|_| true) {
                let what = format!("{key}: attempt {attempt} was never confirmed, although the link works again");
                self.find(Fault::Unexplained, what);
            }
        }
        if push.kept > 0 {
            self.find(Fault::Unexplained, format!("{key}: {} deliveries are still in an outbox", push.kept));
        }
        let wrong = |total: &u64| *total != push.items.len() as u64;
        if let Some(total) = push.claims_of_own().into_iter().flatten().find(wrong) {
            let what = format!("{key}: a client with {} items was told that {total} count", push.items.len());
            self.find(Fault::Suppressed, what);
        }
    }

    /// Each of its items: there, once, from this push, as its last attempt says.
    fn items(&mut self, push: &Expected) {
        let (key, round) = (&push.key, &push.round);
        for (item, status) in &push.items {
            let seen = self.listed.get(&(round.as_str(), item.as_str())).cloned().unwrap_or_default();
            match seen.as_slice() {
                [] => self.find(push.absence(), format!("{key}: {item} is not there")),
                [one] if one.pushes > 1 => {
                    self.find(Fault::Doubled, format!("{key}: {item} is in {} pushes of {round}", one.pushes));
                }
                [one] if one.status != *status => {
                    let (pushed, counts) = (status.word(), one.status.word());
                    self.find(push.otherwise(), format!("{key}: {item} is {pushed} in its report, {counts} counts"));
                }
                [one] if one.key != *key => {
                    self.find(Fault::Unexplained, format!("{key}: {item} is counted from {}", one.key));
                }
                [one] if push.flaky.as_ref().is_some_and(|flaky| flaky.contains(item) != one.flaky) => {
                    self.find(Fault::Unexplained, format!("{key}: {item} is flaky in one account only"));
                }
                [_] => {}
                many => self.find(Fault::Doubled, format!("{key}: {item} is listed {} times in {round}", many.len())),
            }
        }
    }

    /// The push as the server lists it.
    fn row(&mut self, push: &Expected) {
        let key = &push.key;
        let Some(seen) = self.observed.rounds.get(&push.round).and_then(|round| round.pushes.get(key)) else {
            self.find(push.absence(), format!("{key}: the push is not there"));
            return;
        };
        let (counted, own) = (seen.total, push.items.len() as u64);
        if counted > own {
            self.find(Fault::Doubled, format!("{key}: {counted} items count, it holds {own}"));
        } else if counted < own {
            self.find(push.absence(), format!("{key}: {counted} items count, it holds {own}"));
        }
        if seen.revision as usize != push.attempts {
            let what = format!("{key}: {} contents were pushed, {} are recorded", push.attempts, seen.revision);
            self.find(Fault::Unexplained, what);
        }
        if seen.contested {
            self.find(Fault::Unexplained, format!("{key}: another leg was refused, and there was none"));
        }
        if let Some(accepted) = &push.accepted
            && !accepted.contains(&seen.deliveries)
        {
            let (least, most) = (accepted.start(), accepted.end());
            let what = format!("{key}: {} deliveries are logged; {least} to {most} can be", seen.deliveries);
            self.find(Fault::Unexplained, what);
        }
    }

    /// The totals of rounds, by themselves.
    fn totals(&mut self, expected: &[Expected]) {
        let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
        for push in expected {
            *totals.entry(&push.round).or_default() += push.items.len() as u64;
        }
        for (round, own) in totals {
            let Some(counted) = self.observed.rounds.get(round).map(|held| held.total) else { continue };
            // Less than that is found item by item, unless the lists are right and only the total is wrong.
            if counted > own {
                self.find(Fault::Doubled, format!("{round}: {counted} items count, {own} were pushed"));
            } else if counted < own && self.verdict.findings.is_empty() {
                self.find(Fault::Unexplained, format!("{round}: {counted} items count, {own} were pushed"));
            }
        }
    }

    /// Pushes and items that nobody pushed.
    fn strangers(&mut self, expected: &[Expected]) {
        let keys: BTreeSet<(&str, &str)> =
            expected.iter().map(|push| (push.round.as_str(), push.key.as_str())).collect();
        let pushed: BTreeMap<&str, &str> = expected
            .iter()
            .flat_map(|push| push.items.keys().map(|item| (item.as_str(), push.round.as_str())))
            .collect();
        for (round, key, push) in pushes_of(self.observed) {
            if !keys.contains(&(round, key)) {
                let what = format!("{key}: nobody made this push of {} items in {round}", push.total);
                self.find(Fault::Unexplained, what);
            }
        }
        let listed: Vec<(&str, &str)> = self.listed.keys().copied().collect();
        for (round, item) in listed {
            match pushed.get(item) {
                Some(own) if *own == round => {}
                Some(own) => self.find(Fault::Doubled, format!("{item}: pushed to {own}, and listed in {round} too")),
                None => self.find(Fault::Unexplained, format!("{item}: listed in {round}, and never pushed")),
            }
        }
    }

    /// The tables against themselves, and against what the server lists.
    fn tables(&mut self, tables: &Tables) {
        for words in &tables.doubles {
            self.find(Fault::Doubled, format!("in the tables: {words}"));
        }
        for words in &tables.damage {
            self.find(Fault::Unexplained, format!("in the store: {words}"));
        }
        let Some(items) = &tables.items else { return };
        let rounds = self.observed.rounds.iter();
        let answered: BTreeMap<(&str, &str, &str), Status> = rounds
            .flat_map(|(round, held)| held.items.iter().map(move |seen| (round, seen)))
            .map(|(round, seen)| ((round.as_str(), seen.key.as_str(), seen.item.as_str()), seen.status))
            .collect();
        let mut differing = Vec::new();
        for ((round, key, item), status) in items {
            if answered.get(&(round, key, item)).copied() != *status {
                differing.push(format!("{key}: {item}: the tables and the server's answers differ"));
            }
        }
        for (round, key, item) in answered.keys() {
            let place = ((*round).to_owned(), (*key).to_owned(), (*item).to_owned());
            if !items.contains_key(&place) {
                differing.push(format!("{key}: {item} is answered and not in the tables"));
            }
        }
        for what in differing {
            self.find(Fault::Unexplained, what);
        }
    }
}

impl Expected {
    fn confirmed(&self, attempt: usize) -> impl Iterator<Item = (&str, Option<u64>, bool)> {
        self.tellings.iter().filter(move |telling| telling.attempt == attempt).filter_map(|telling| {
            match &telling.said {
                Said::Confirmed { state, total, difference } => Some((state.as_str(), *total, *difference)),
                _ => None,
            }
        })
    }

    /// The totals that clients of the last attempt were given who were told that their own outcomes count: recorded or
    /// revised, or replayed without a word of other outcomes.
    fn claims_of_own(&self) -> Vec<Option<u64>> {
        let own = |(state, _, difference): &(&str, Option<u64>, bool)| *state != "replayed" || !difference;
        self.confirmed(self.attempts).filter(own).map(|(_, total, _)| total).collect()
    }

    /// What it means that something of it is not there.
    fn absence(&self) -> Fault {
        if self.confirmed(self.attempts).next().is_some() { Fault::Lost } else { Fault::Unexplained }
    }

    /// What it means that something else counts.
    fn otherwise(&self) -> Fault {
        if self.claims_of_own().is_empty() { Fault::Unexplained } else { Fault::Suppressed }
    }
}
