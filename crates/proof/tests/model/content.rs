//! What an offered content is to what is recorded: [`domain::protocol::decide`] on contents of a few items, remembered.
//! Must not know epochs.
//!
//! Contents by number: 0 one passed, two failed; 1 both passed; 2 as 0 at other times; 3 as 0, cut otherwise; 4 other
//! work; 5 as 0 and one item more. Places: 0 shard 1 of 4; 1 another variant; 2 shard 1 of 5.

use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;

use domain::compare::Comparison;
use domain::protocol::{
    Decision, DifferenceClass, FieldDifference, Known, KnownRevision, Offer as Offered, Recorded, Refusal, decide,
    may_accept,
};
use domain::verdict::{Light, RevisionKind, View};
use domain::*;

use crate::state::{self, NOBODY, Source, State};

/// One delivery, as far as its content goes: everything that the decision may depend on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Offer {
    pub(crate) wish: state::Wish,
    pub(crate) incarnation: u8,
    pub(crate) policy: OnDifference,
    /// Whether the offered items are there to be compared.
    pub(crate) items: bool,
    pub(crate) tombstoned: bool,
    pub(crate) contested: bool,
    pub(crate) executors: Vec<(u8, u8)>,
    pub(crate) neighbour: bool,
    /// What the engine remembers of the key.
    pub(crate) revisions: Vec<Past>,
}

/// One recorded revision, as far as a decision looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Past {
    pub(crate) number: u8,
    pub(crate) kind: RevisionKind,
    pub(crate) content: u8,
    pub(crate) place: u8,
    pub(crate) ordinal: u8,
    pub(crate) by: u8,
}

/// Why nothing of it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Why {
    KeyReused,
    OtherExecutor,
    OtherWork,
    ShardPlan,
    Differs,
    Tombstoned,
    /// For a reason outside the model.
    Other,
}

/// What the content comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// To become a revision of this kind; the push then counts so.
    Stage { kind: RevisionKind, tally: Tally },
    /// Only the items can tell.
    Undecided,
    /// Answered with this revision's receipt: it is recorded.
    Replay { revision: u8, class: DifferenceClass },
    /// Nothing of it is recorded.
    Refuse { why: Why, contest: bool },
}

/// Counts, as far as the model looks at them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Tally {
    pub(crate) total: u8,
    pub(crate) bad: u8,
    pub(crate) flaky: u8,
}

impl From<Counts> for Tally {
    fn from(counts: Counts) -> Self {
        Self { total: counts.total as u8, bad: (counts.failed + counts.errored) as u8, flaky: counts.flaky as u8 }
    }
}

/// Everything that a round's counts depend on.
pub(crate) type Round = (Vec<Past>, Option<u8>);

thread_local! {
    static DECIDED: RefCell<HashMap<Offer, Content>> = RefCell::new(HashMap::new());
    static ROUNDS: RefCell<HashMap<Round, Tally>> = RefCell::new(HashMap::new());
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

/// Items and statuses of a content.
pub(crate) fn items(content: u8) -> &'static [(&'static str, Status)] {
    const ONE: (&str, Status) = ("one", Status::Passed);
    match content {
        0 | 2 | 3 => &[ONE, ("two", Status::Failed)],
        1 => &[ONE, ("two", Status::Passed)],
        4 => &[("ten", Status::Passed), ("eleven", Status::Passed)],
        5 => &[ONE, ("two", Status::Failed), ("three", Status::Passed)],
        _ => &[],
    }
}

/// Items and statuses of the other shard.
pub(crate) const NEIGHBOUR: &[(&str, Status)] = &[("two", Status::Errored), ("four", Status::Passed)];

/// The content digest, as a manifest names it: cutting a content otherwise does not change it.
pub(crate) fn digest(content: u8) -> Digest {
    Digest([if content == 3 { 0 } else { content }; 32])
}

/// True if two contents have equal items and statuses.
pub(crate) fn says_the_same(one: u8, other: u8) -> bool {
    items(one) == items(other)
}

fn ask(offer: &Offer) -> Content {
    let outcomes = outcomes(offer.wish.content);
    let place = place(offer.wish.place);
    let sender = sender(offer.wish.ordinal, offer.wish.executor, offer.incarnation);
    let offered = offered(&place, &sender, offer.policy, &outcomes);
    let known = (!offer.revisions.is_empty()).then(|| known(offer));
    match decide(&offered, known.as_ref(), offer.tombstoned, &mut Engine { offer, outcomes: &outcomes }) {
        Ok(Decision::Record) => Content::Stage { kind: RevisionKind::First, tally: outcomes.counts().into() },
        Ok(Decision::Overlay { kind, counts, .. }) => Content::Stage { kind, tally: counts.into() },
        Ok(Decision::Replay { revision, class, .. }) => Content::Replay { revision: revision as u8, class },
        Ok(Decision::Undecided) => Content::Undecided,
        Ok(Decision::Refuse { refusal, contest }) => Content::Refuse { why: why(&refusal), contest },
        Err(impossible) => match impossible {},
    }
}

fn offered<'a>(place: &'a Place, sender: &'a Sender, policy: OnDifference, outcomes: &Outcomes) -> Offered<'a> {
    let content = outcomes.digests().id();
    Offered { place, commit: None, sender, on_difference: policy, outside_ci: false, files: &[], content }
}

/// The fields in which a wish's place differs from that of an open epoch.
pub(crate) fn differing_fields(wish: state::Wish, staged: u8) -> Vec<FieldDifference> {
    if wish.place == staged {
        return Vec::new();
    }
    let (mine, theirs, sender) = (place(wish.place), place(staged), Sender::default());
    let outcomes = outcomes(wish.content);
    protocol::differing_fields(&offered(&mine, &sender, OnDifference::Auto, &outcomes), &theirs, None)
}

/// In short, why a delivery is refused.
pub(crate) fn why(refusal: &Refusal) -> Why {
    match refusal {
        Refusal::KeyReused(_) => Why::KeyReused,
        Refusal::CollidingExecutor { .. } => Why::OtherExecutor,
        Refusal::CollidingItems { .. } => Why::OtherWork,
        Refusal::ShardPlanChanged { .. } => Why::ShardPlan,
        Refusal::Differs(_) => Why::Differs,
        Refusal::Tombstoned => Why::Tombstoned,
    }
}

fn made_of(items: &[(&str, Status)], duration: u64) -> Outcomes {
    let outcome = |(name, status): &(&str, Status)| Outcome {
        item: ItemName::new(["suite"], None, name),
        status: *status,
        duration_us: Some(DurationUs(duration)),
        message: None,
        attempts: Vec::new(),
        external_ids: Vec::new(),
    };
    Outcomes::from_unordered(items.iter().map(outcome).collect()).expect("each item once")
}

fn outcomes(content: u8) -> Outcomes {
    made_of(items(content), if content == 2 { 2 } else { 1 })
}

fn lights(outcomes: &Outcomes) -> Vec<Light> {
    outcomes.as_slice().iter().map(Light::of).collect()
}

/// Whether a sender of an epoch counts as one who delivered, as the engines ask it.
pub(crate) fn accepts(state: &State, (number, executor): (u8, u8)) -> bool {
    may_accept(&sender(number, executor, 0), &state::executors(&state.executors), state.contested)
}

fn sender(number: u8, executor: u8, incarnation: u8) -> Sender {
    Sender {
        ordinal: state::ordinal(number),
        executor: state::executor(executor),
        incarnation: (incarnation != NOBODY).then(|| Incarnation(u128::from(incarnation) + 1)),
        ..Sender::default()
    }
}

fn place(number: u8) -> Place {
    let variant = if number == 1 { "os=mac" } else { "os=linux" };
    Place {
        project: ProjectId::parse("shop").expect("a project"),
        cycle: CycleName::parse("main").expect("a cycle"),
        round: RoundId::parse("run:42").expect("a round"),
        run: RunId::parse("42").expect("a run"),
        label: None,
        job: Some(JobName::parse("test").expect("a job")),
        shard: Some(ShardRef::new(1, Some(if number == 2 { 5 } else { 4 })).expect("a shard")),
        variant: Variant::parse_pairs([variant]).expect("a variant"),
    }
}

fn known(offer: &Offer) -> Known {
    let revision = |past: &Past| {
        let digests = outcomes(past.content).digests();
        KnownRevision {
            number: u32::from(past.number),
            kind: past.kind,
            sender: sender(past.ordinal, 0, past.by),
            content: digests.content,
            outcomes: digests.outcomes,
            files: Vec::new(),
        }
    };
    Known {
        place: place(offer.revisions[0].place),
        commit: None,
        contested: offer.contested,
        executors: state::executors(&offer.executors),
        revisions: offer.revisions.iter().map(revision).collect(),
        same_body: None,
    }
}

/// What the key counts: all revisions laid over one another.
fn view(revisions: &[Past]) -> View {
    let lay = |view: View, past: &Past| {
        let outcomes = outcomes(past.content);
        view.laid_over(past.kind, u32::from(past.number), outcomes.hashes(), &lights(&outcomes))
    };
    revisions.iter().fold(View::default(), lay)
}

struct Engine<'a> {
    offer: &'a Offer,
    outcomes: &'a Outcomes,
}

impl Recorded for Engine<'_> {
    type Error = Infallible;

    fn compare(&mut self) -> Result<Option<Comparison>, Infallible> {
        let compare = || Comparison::of(&view(&self.offer.revisions), self.outcomes.hashes(), &lights(self.outcomes));
        Ok(self.offer.items.then(compare))
    }

    fn known_in_job(&mut self) -> Result<u64, Infallible> {
        let view = view(&self.offer.revisions);
        let other = made_of(if self.offer.neighbour { NEIGHBOUR } else { &[] }, 1);
        let known = |hash: &&ItemHash| view.get(**hash).is_some() || other.hashes().contains(hash);
        Ok(self.outcomes.hashes().iter().filter(known).count() as u64)
    }

    fn shard_total(&mut self) -> Result<Option<u32>, Infallible> {
        Ok(self.offer.neighbour.then_some(4))
    }
}

/// How a push counts after a promotion of `of`, as revision `number`.
pub(crate) fn promoted(revisions: &[Past], kind: RevisionKind, content: u8, number: u8) -> Tally {
    let outcomes = outcomes(content);
    let before = view(revisions);
    before.laid_over(kind, u32::from(number), outcomes.hashes(), &lights(&outcomes)).counts().into()
}

/// How the round counts: every item once, by [`domain::verdict::settle`].
pub(crate) fn round(revisions: &[Past], neighbour: Option<u8>) -> Tally {
    let key = (revisions.to_vec(), neighbour);
    if let Some(tally) = ROUNDS.with_borrow(|rounds| rounds.get(&key).copied()) {
        return tally;
    }
    let tally = settle_all(revisions, neighbour);
    ROUNDS.with_borrow_mut(|rounds| rounds.insert(key, tally));
    tally
}

fn settle_all(revisions: &[Past], neighbour: Option<u8>) -> Tally {
    let view = view(revisions);
    let other = made_of(if neighbour.is_some() { NEIGHBOUR } else { &[] }, 1);
    let mut counts = Counts::default();
    let mut count = |claims: &[verdict::Claim]| {
        if let Some((_, light)) = verdict::settle(claims) {
            counts.add(light.status, light.is_flaky());
        }
    };
    let beside = |hash: ItemHash| {
        let outcome = other.iter().find(|(other, _)| *other == hash)?.1;
        let attempt = state::ordinal(neighbour.unwrap_or_default());
        Some(verdict::Claim { light: Light::of(outcome), elevated: false, attempt })
    };
    for (hash, verdict) in view.hashes.iter().zip(&view.verdicts) {
        let from = revisions.iter().find(|past| u32::from(past.number) == verdict.revision);
        let mine = verdict::Claim {
            light: verdict.light,
            elevated: from.is_some_and(|past| past.kind.is_elevated()),
            attempt: from.and_then(|past| state::ordinal(past.ordinal)),
        };
        count(&[Some(mine), beside(*hash)].into_iter().flatten().collect::<Vec<_>>());
    }
    for (hash, _) in other.iter().filter(|(hash, _)| view.get(*hash).is_none()) {
        count(&beside(hash).into_iter().collect::<Vec<_>>());
    }
    counts.into()
}

/// The content of a promotion's source, and the sender that [`Known::promotion_sender`] gives it.
pub(crate) fn promotion_ordinal(offer: &Offer) -> u8 {
    known(offer).promotion_sender().ordinal.map_or(0, |ordinal| ordinal.0 as u8)
}

/// True if a source names a person's decision.
pub(crate) fn is_promotion(source: Source) -> bool {
    matches!(source, Source::Promotion { .. })
}
