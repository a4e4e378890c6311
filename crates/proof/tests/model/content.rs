//! What an offered content is to what is recorded: [`domain::protocol::decide`] on contents of two items, remembered.
//! Must not know epochs.

use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;

use domain::protocol::{Decision, Known, KnownRevision, Recorded, decide};
use domain::push::ContentId;
use domain::verdict::{Light, RevisionKind, View};
use domain::*;

use crate::state::{Receipt, Wish, manifest_digest, ordinal};

/// One begin, as far as its content goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Offer {
    pub(crate) wish: Wish,
    pub(crate) incarnation: u8,
    /// True: `on-difference fail`, false: `auto` in CI.
    pub(crate) fail: bool,
    pub(crate) receipts: Vec<Receipt>,
}

/// What the content comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// To be staged, and to become a revision of this kind.
    Stage(RevisionKind),
    /// Answered with this revision's receipt: it is recorded.
    Replay(u32),
    /// Answered with a difference: nothing of it is recorded.
    Differs,
}

thread_local! {
    static DECIDED: RefCell<HashMap<Offer, Content>> = RefCell::new(HashMap::new());
}

/// The production decision.
pub(crate) fn production(offer: &Offer) -> Content {
    if let Some(content) = DECIDED.with_borrow(|decided| decided.get(offer).copied()) {
        return content;
    }
    let content = ask(offer);
    DECIDED.with_borrow_mut(|decided| decided.insert(offer.clone(), content));
    content
}

fn ask(offer: &Offer) -> Content {
    let push = push(offer);
    let known = (!offer.receipts.is_empty()).then(|| known(offer, &push));
    match decide(&push, known.as_ref(), false, &mut Engine(&offer.receipts)) {
        Ok(Decision::Record) => Content::Stage(RevisionKind::First),
        Ok(Decision::Overlay { kind, .. }) => Content::Stage(kind),
        Ok(Decision::Replay { revision, .. }) => Content::Replay(revision),
        Ok(Decision::Refuse { .. }) => Content::Differs,
        Err(impossible) => match impossible {},
    }
}

fn outcomes(manifest: u8) -> Outcomes {
    let outcome = |name: &str, status| Outcome {
        item: ItemName::new(["suite"], None, name),
        status,
        duration_us: None,
        message: None,
        attempts: Vec::new(),
        external_ids: Vec::new(),
    };
    let second = if manifest == 0 { Status::Failed } else { Status::Passed };
    Outcomes::from_unordered(vec![outcome("one", Status::Passed), outcome("two", second)]).expect("two items")
}

fn sender(number: u8, incarnation: u8) -> Sender {
    Sender {
        ordinal: ordinal(number),
        incarnation: Some(Incarnation(u128::from(incarnation) + 1)),
        ..Sender::default()
    }
}

fn push(offer: &Offer) -> Push {
    let outcomes = outcomes(offer.wish.manifest);
    let outcome_digest = outcomes.outcome_digest();
    Push {
        key: PushKey::parse("K").expect("a key"),
        place: Place {
            project: ProjectId::parse("shop").expect("a project"),
            cycle: CycleName::parse("main").expect("a cycle"),
            round: RoundId::parse("run:42").expect("a round"),
            run: RunId::parse("42").expect("a run"),
            label: None,
            job: Some(JobName::parse("test").expect("a job")),
            shard: None,
            variant: Variant::default(),
        },
        origin: Origin::default(),
        sender: sender(offer.wish.ordinal, offer.incarnation),
        on_difference: if offer.fail { OnDifference::Fail } else { OnDifference::Auto },
        outside_ci: false,
        expect: None,
        files: Vec::new(),
        report: ReportSummary::default(),
        incomplete: false,
        outcomes,
        content: ContentId { content: manifest_digest(offer.wish.manifest), outcomes: outcome_digest, body: None },
    }
}

fn kind_of(receipt: &Receipt) -> RevisionKind {
    match (receipt.first, receipt.revised) {
        (true, _) => RevisionKind::First,
        (false, true) => RevisionKind::Revised,
        (false, false) => RevisionKind::Kept,
    }
}

fn known(offer: &Offer, push: &Push) -> Known {
    let revision = |(at, receipt): (usize, &Receipt)| KnownRevision {
        number: at as u32 + 1,
        kind: kind_of(receipt),
        sender: sender(receipt.ordinal, receipt.wish),
        content: manifest_digest(receipt.manifest),
        outcomes: outcomes(receipt.manifest).outcome_digest(),
        files: Vec::new(),
    };
    Known {
        place: push.place.clone(),
        commit: None,
        contested: false,
        executors: Vec::new(),
        revisions: offer.receipts.iter().enumerate().map(revision).collect(),
        same_body: None,
    }
}

struct Engine<'a>(&'a [Receipt]);

impl Recorded for Engine<'_> {
    type Error = Infallible;

    fn view(&mut self) -> Result<View, Infallible> {
        let mut view = View::default();
        for (at, receipt) in self.0.iter().enumerate() {
            let outcomes = outcomes(receipt.manifest);
            let lights: Vec<Light> = outcomes.as_slice().iter().map(Light::of).collect();
            view = view.laid_over(kind_of(receipt), at as u32 + 1, outcomes.hashes(), &lights);
        }
        Ok(view)
    }

    fn known_in_job(&mut self, offered: &[ItemHash]) -> Result<usize, Infallible> {
        Ok(offered.len())
    }

    fn shard_total(&mut self) -> Result<Option<u32>, Infallible> {
        Ok(None)
    }
}
