//! Judges a history against what readers of the store see, by rules of its own: nothing lost, nothing twice, nothing
//! half, the same answer every time, nothing swallowed, nothing that nobody offered. Must not ask the code that it
//! judges what would be right.

use std::collections::{BTreeMap, BTreeSet};

use domain::protocol::DifferenceClass;
use domain::{Digest, OnDifference, ProblemCode, Receipt};

use crate::content::Said;
use crate::faults::Kind;
use crate::history::{Heard, Offer};
use crate::readers::{Pushes, Seen};
use crate::server::{Message, Whole};
use crate::sim::Sim;

/// What an offered report came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Came {
    Recorded,
    Revised,
    /// Beside what counts, and the runner was told.
    Kept,
    /// Equal to what was recorded, and the runner was told.
    Repeat,
    Refused,
    /// Not to be known, and the runner was told so or is gone.
    Unknown,
}

impl Sim {
    /// Looks at an answer as the server gives it, before anything can happen to it on its way.
    pub(crate) async fn answered(&self, message: &Message, whole: &Whole) {
        let header = |name: &str| whole.headers.get(name).and_then(|value| value.to_str().ok());
        if whole.status == 500 {
            let words = String::from_utf8_lossy(&whole.body).into_owned();
            self.violation(format_args!("#{} is answered with an error of the server: {words}", message.id));
        }
        let is_receipt = whole.status == 201 && matches!(message.kind, Kind::OneShot | Kind::Begin | Kind::Commit);
        let Some(etag) = header("etag").filter(|_| is_receipt) else { return };
        let Ok(receipt) = serde_json::from_slice::<Receipt>(&whole.body) else {
            self.violation(format_args!("#{} is answered with an unreadable receipt", message.id));
            return;
        };
        if etag != Receipt::etag(receipt.revision, &whole.body) {
            self.violation(format_args!("#{}: the entity tag {etag} is not that of the body", message.id));
        }
        let known = self.history().receipts.insert((receipt.push, receipt.revision), whole.body.to_vec());
        if known.is_some_and(|known| known != whole.body) {
            self.violation(format_args!("two receipts of revision {} of {}", receipt.revision, receipt.push));
        }
        self.is_durable(receipt.push, receipt.revision).await;
    }

    /// Every receipt that was ever given out is in the store, byte for byte, unless its round was deleted.
    pub(crate) async fn all_receipts_hold(&self) {
        let known: Vec<_> = self.history().receipts.keys().copied().collect();
        for (push, revision) in known {
            self.is_durable(push, revision).await;
        }
    }

    async fn is_durable(&self, push: domain::PushId, revision: u32) {
        let (project, given) = {
            let history = self.history();
            if history.dropped.contains(&push) {
                return;
            }
            let project = history.offers.iter().find(|offer| offer.push == push).map(|offer| offer.project.clone());
            (project, history.receipts.get(&(push, revision)).cloned())
        };
        let Some(project) = project else {
            self.violation(format_args!("a receipt of a push that nobody offered: {push}"));
            return;
        };
        let stored = self.stored_receipt(&project, push, revision).await;
        if stored != given {
            self.violation(format_args!(
                "LOST: the receipt of revision {revision} of {push} was given, and is not stored"
            ));
        }
    }

    /// The verdict on every report that was offered.
    pub(crate) async fn judge(&self) -> Vec<(usize, Came)> {
        self.all_receipts_hold().await;
        let seen = self.look("at the end").await;
        let offers = self.history().offers.iter().filter(|offer| offer.begun).count();
        let mut came = Vec::with_capacity(offers);
        let mut found = Vec::new();
        {
            let history = self.history();
            for (at, offer) in history.offers.iter().enumerate().filter(|(_, offer)| offer.begun) {
                let twins = history.offers.iter().filter(|other| other.begun && is_twin(offer, other)).count() > 1;
                let judged = Judge { offer, twins, dropped: history.dropped.contains(&offer.push), pushes: &seen };
                match judged.verdict() {
                    Ok(verdict) => came.push((at, verdict)),
                    Err(words) => found.push(format!("runner {at}: {words}")),
                }
            }
            found.extend(highest_attempts_count(&history.offers, &history.dropped, &seen));
        }
        for words in found {
            self.violation(format_args!("{words}"));
        }
        came
    }
}

/// The same content under the same key: which of them was recorded cannot be told.
fn is_twin(a: &Offer, b: &Offer) -> bool {
    a.push == b.push && a.content.digest == b.content.digest
}

/// One offered report before its judge.
struct Judge<'a> {
    offer: &'a Offer,
    /// Somebody else offers the same content under the same key.
    twins: bool,
    dropped: bool,
    pushes: &'a Pushes,
}

impl Judge<'_> {
    fn verdict(&self) -> Result<Came, String> {
        match self.offer.last() {
            Some(Heard::Recorded { receipt, revision, content, replayed, class }) => {
                self.recorded((receipt, *revision), *content, *replayed, *class)
            }
            Some(Heard::Refused(code, words)) => self.refused(*code, words),
            Some(Heard::Unknown(_) | Heard::Killed) | None => self.unknown(),
        }
    }

    fn recorded(
        &self,
        (receipt, revision): (&[u8], u32),
        content: Digest,
        replayed: bool,
        class: Option<DifferenceClass>,
    ) -> Result<Came, String> {
        if self.dropped {
            return Ok(Came::Recorded);
        }
        let Some(push) = self.pushes.get(&self.offer.push) else {
            return Err("LOST: told that it is recorded, and there is no such push".to_owned());
        };
        let Some(found) = push.revisions.get(revision as usize - 1) else {
            return Err(format!("LOST: told of revision {revision}, which does not exist"));
        };
        if found.receipt != receipt {
            return Err(format!("told another receipt of revision {revision} than is stored"));
        }
        if let Some(missing) = self.offer.content.said.iter().find(|(hash, _)| !push.counts.contains_key(hash)) {
            return Err(format!("SUPPRESSED: told that it is recorded, and item {} does not count", missing.0));
        }
        if content != self.offer.content.digest {
            return self.repeat_of_another(push, revision, replayed, class);
        }
        match found.result {
            "recorded" => Ok(Came::Recorded),
            "revised" => Ok(Came::Revised),
            "kept" => Ok(Came::Kept),
            // A person had decided that just this counts, before it was executed again.
            "promoted" if replayed => Ok(Came::Repeat),
            other => Err(format!("told of a revision that is {other}")),
        }
    }

    /// Told the receipt of another content: only where that says the same, or the whole did at some moment.
    fn repeat_of_another(
        &self,
        push: &Seen,
        revision: u32,
        replayed: bool,
        class: Option<DifferenceClass>,
    ) -> Result<Came, String> {
        if !replayed || class != Some(DifferenceClass::Cosmetic) {
            return Err(format!(
                "SUPPRESSED: told revision {revision} of another content; replayed {replayed}, difference {class:?}"
            ));
        }
        let own = &self.offer.content;
        let equal = push.revisions[revision as usize - 1..]
            .iter()
            .any(|r| own.says_the_same(&r.content) || own.says_the_same(&r.after));
        if equal {
            Ok(Came::Repeat)
        } else {
            Err("SUPPRESSED: told that it differs in looks only, and it does not".to_owned())
        }
    }

    fn refused(&self, code: ProblemCode, words: &str) -> Result<Came, String> {
        if code == ProblemCode::Tombstoned && self.dropped {
            return Ok(Came::Refused);
        }
        if code == ProblemCode::ForeignAnswer && self.offer.is_faulted() {
            return Ok(Came::Unknown);
        }
        if !self.offer.refusals.contains(&code) || code == ProblemCode::Tombstoned {
            return Err(format!("UNEXPLAINED: refused with {}: {words}", code.word()));
        }
        let phantom = self
            .pushes
            .get(&self.offer.push)
            .is_some_and(|push| push.revisions.iter().any(|revision| revision.digest == self.offer.content.digest));
        if phantom && !self.twins {
            return Err(format!("PHANTOM: told {}, and its content is recorded", code.word()));
        }
        Ok(Came::Refused)
    }

    fn unknown(&self) -> Result<Came, String> {
        if self.offer.evicted {
            return Ok(Came::Unknown);
        }
        // Another process of the same machine had the same content, and delivered it with its own name.
        let taken_over = self.twins && self.offer.faults.iter().any(|n| *n > 0);
        if taken_over {
            Ok(Came::Unknown)
        } else {
            Err("UNEXPLAINED: faults have ended, and it knows nothing".to_owned())
        }
    }
}

/// Where every execution of a key says its attempt and leaves the policy to the rule, the highest attempt that was told
/// that it is recorded is what counts.
fn highest_attempts_count(offers: &[Offer], dropped: &BTreeSet<domain::PushId>, seen: &Pushes) -> Vec<String> {
    let mut by_push: BTreeMap<domain::PushId, Vec<&Offer>> = BTreeMap::new();
    for offer in offers.iter().filter(|offer| offer.begun) {
        by_push.entry(offer.push).or_default().push(offer);
    }
    let mut found = Vec::new();
    for (id, offers) in by_push.iter().filter(|(id, _)| !dropped.contains(id)) {
        let plain = offers.iter().all(|offer| offer.ordinal.is_some() && offer.policy == OnDifference::Auto);
        let told = |offer: &&&Offer| matches!(offer.last(), Some(Heard::Recorded { .. }));
        let highest = offers.iter().filter(told).map(|offer| offer.ordinal).max().flatten();
        let top: Vec<&&Offer> = offers.iter().filter(|offer| offer.ordinal == highest).collect();
        let all_told = offers.iter().all(|offer| offer.ordinal <= highest);
        let Some(push) = seen.get(id).filter(|push| plain && all_told && !push.promoted && top.len() == 1) else {
            continue;
        };
        for (hash, said) in &top[0].content.said {
            let counts = push.counts.get(hash).map(|said: &Said| said.status);
            if counts != Some(said.status) {
                found.push(format!("push {id}: attempt {highest:?} says {said:?} of {hash}, and {counts:?} counts"));
            }
        }
    }
    found
}
