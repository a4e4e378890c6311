//! The probe on products that are what their facts say, and on products that lie.

use delivery::foreign::patience::{Doing, Patience};
use delivery::foreign::probe::{
    Cut, CutWrite, Deed, Leave, MarkerCame, More, ProbeError, ProbeOptions, Probed, Subject, WhileWriting,
    contradictions, leave, probe,
};
use delivery::foreign::{
    Adapter as _, Bulk, Case, CaseId, Facts, KeyOnWrite, MarkerFacts, MarkerLevel, Repair, Strategy, VerdictRule,
    Visible,
};
use delivery::{Clock, Stop};
use domain::Status;
use domain::forwarding::TargetPlace;
use rand::SeedableRng as _;

use crate::given::{comment, facts, marker, patiently};
use crate::product::Product;
use crate::ways::Bad;

pub(crate) fn cases() -> [Case; 2] {
    ["C1", "C2"].map(|id| Case { id: CaseId::new(id), title: format!("title of {id}") })
}

/// The target of these tests, under a project's name.
pub(crate) fn of(project: &str) -> Subject {
    Subject { place: TargetPlace::new(format!("generic at https://own.example, project {project}")), calls: None }
}

pub(crate) fn shop() -> Subject {
    of("shop")
}

pub(crate) fn options() -> ProbeOptions {
    ProbeOptions { of: Some(shop()), ..ProbeOptions::default() }
}

async fn probed(product: &Product) -> Probed {
    let before: Vec<_> = product.state.lock().unwrap().cycles.iter().map(|cycle| cycle.id.clone()).collect();
    let options = options();
    let probed = patiently(product, async |patience| probe(product, &cases(), &options, patience).await).await.unwrap();
    let after: Vec<_> = product.state.lock().unwrap().cycles.iter().map(|cycle| cycle.id.clone()).collect();
    assert!(!product.facts.repair.delete_cycle || before == after, "the scratch cycle is gone");
    let text = serde_json::to_string(&probed).unwrap();
    assert_eq!(Probed::parse(&text), Ok(probed.clone()), "it comes back from a file");
    probed
}

/// A product that is what its facts say, but for what `lie` changes.
pub(crate) async fn lying(facts: Facts, lie: impl FnOnce(&mut Product)) -> Probed {
    let mut product = Product::new(facts);
    lie(&mut product);
    probed(&product).await
}

#[tokio::test]
async fn every_honest_product_is_measured_as_what_it_is() {
    use KeyOnWrite::{Collapses, None, Refuses};
    use VerdictRule::{Appends, Replaces};
    for (verdict, key) in [(Appends, None), (Replaces, None), (Appends, Collapses), (Appends, Refuses)] {
        let facts = facts(verdict, key);
        let probed = lying(facts, |_| {}).await;
        assert_eq!(probed.contradicts, Vec::<String>::new(), "{verdict:?} {key:?}");
        assert_eq!(probed.says.verdict, Some(verdict));
        // What replaces the verdict shows nothing of ids.
        let expected = (verdict != Replaces).then_some(key);
        assert_eq!(probed.says.key_on_write, expected);
        assert_eq!((probed.says.visible_ms, probed.says.marker, probed.says.atomic), (Some(0), true, Some(true)));
        assert_eq!((probed.says.amend, probed.says.delete, probed.says.cycle_unique), (Some(true), Some(true), false));
        assert_eq!(probed.allows, facts.strategies, "{verdict:?} {key:?}");
        assert!(probed.left.is_empty());
        for strategy in facts.strategies {
            assert_eq!(leave(*strategy, Some(&probed), &shop(), &facts, true), Leave::Granted);
        }
        // Ten writers at once: as many rows as the rule says.
        let rows = if verdict == Appends && key == None { 10 } else { 1 };
        assert_eq!(probed.measured.at_once.rows, rows);
    }
}

#[tokio::test]
async fn a_product_that_refuses_a_second_outcome_is_measured() {
    let probed = lying(facts(VerdictRule::Refuses, KeyOnWrite::None), |_| {}).await;
    assert_eq!((probed.says.verdict, &probed.contradicts), (Some(VerdictRule::Refuses), &vec![]));
    assert_eq!(probed.says.key_on_write, None, "the refusal may be of the case, not of the id");
    assert!(!probed.allows.contains(&Strategy::Replace));
}

#[tokio::test]
async fn jobs_and_lags_that_are_known_contradict_nothing() {
    for (visible, ms) in [(Visible::AfterJob, 0), (Visible::Later(5000), 5000)] {
        let facts = Facts { visible, ..facts(VerdictRule::Appends, KeyOnWrite::None) };
        let probed = lying(facts, |_| {}).await;
        assert_eq!(probed.contradicts, Vec::<String>::new(), "{visible:?}");
        assert_eq!(probed.measured.lag.after_job, visible == Visible::AfterJob);
        let measured = probed.says.visible_ms.unwrap();
        assert!((ms..=ms * 2).contains(&measured), "{measured}");
        assert_eq!(probed.measured.twice.rows_after, 2, "every reading waits until all shows");
    }
}

/// A field of the facts, what they say, and what the product does instead.
type Lie = (&'static str, Facts, fn(&mut Product));

/// Each lie by the field that it must be found by.
fn lies() -> Vec<Lie> {
    let replaces = facts(VerdictRule::Replaces, KeyOnWrite::None);
    let appends = facts(VerdictRule::Appends, KeyOnWrite::None);
    let collapses = facts(VerdictRule::Appends, KeyOnWrite::Collapses);
    let refuses = facts(VerdictRule::Appends, KeyOnWrite::Refuses);
    vec![
        ("verdict", replaces, |product| product.ways.verdict = VerdictRule::Appends),
        ("verdict", appends, |product| product.ways.verdict = VerdictRule::Replaces),
        ("verdict", appends, |product| product.ways.verdict = VerdictRule::Refuses),
        ("key_on_write", collapses, |product| product.ways.key = KeyOnWrite::None),
        ("key_on_write", refuses, |product| product.ways.key = KeyOnWrite::None),
        // Behind 300 characters, and at all.
        ("marker", appends, |product| product.ways.comment_chars = 255),
        ("marker", appends, |product| product.ways.comment_chars = 320),
        ("marker", appends, |product| product.ways.comment_chars = 30),
        // Behind the longest that is ever sent.
        ("comment-max", appends, |product| product.ways.comment_chars = 1000),
        ("visible", appends, |product| product.ways.lag_ms = 300),
        ("visible", appends, |product| product.ways.lag_ms = 10_000),
        ("visible", appends, |product| product.ways.lag_ms = 1_000_000),
        ("visible", Facts { visible: Visible::Later(1000), ..appends }, |product| product.ways.lag_ms = 9000),
        ("bulk", appends, |product| product.ways.bad = Bad::StoresSomeAndRefuses),
        ("bulk", appends, |product| product.ways.bad = Bad::DropsIt),
        ("cycle_unique", Facts { cycle_unique: true, ..appends }, |product| product.ways.cycle_unique = false),
    ]
}

#[tokio::test]
async fn every_lie_is_found_and_refuses_every_strategy() {
    for (n, (field, facts, lie)) in lies().into_iter().enumerate() {
        let probed = lying(facts, lie).await;
        let contradicts = &probed.contradicts;
        assert_eq!(contradicts.len(), 1, "lie {n}: {contradicts:?}");
        assert!(contradicts[0].starts_with(&format!("{field}: ")), "lie {n}: {contradicts:?}");
        for strategy in Strategy::ALL {
            let refused = leave(strategy, Some(&probed), &shop(), &facts, false);
            assert!(matches!(&refused, Leave::Refused(why) if why.contains(&contradicts[0])), "lie {n}: {refused:?}");
            assert!(!probed.allows(strategy));
        }
    }
}

#[tokio::test]
async fn what_is_harmless_is_noted_and_refuses_nothing() {
    let notes = |probed: &Probed, word: &str| probed.notes.iter().any(|note| note.contains(word));
    let replaces = facts(VerdictRule::Replaces, KeyOnWrite::None);
    let racing = lying(replaces, |product| product.ways.looks_then_writes = true).await;
    assert_eq!(racing.measured.at_once.rows, 10);
    assert!(racing.contradicts.is_empty() && notes(&racing, "one writer only"), "{racing:?}");
    let appends = facts(VerdictRule::Appends, KeyOnWrite::None);
    let locked = lying(appends, |product| (product.ways.deletes, product.ways.amends) = (false, false)).await;
    assert!(matches!(locked.measured.delete, Deed::Refused { .. }));
    assert!(locked.contradicts.is_empty() && notes(&locked, "deleted") && notes(&locked, "changed"), "{locked:?}");
    let named = Facts { bulk: Bulk { items_max: 50, atomic: true }, ..appends };
    let named = lying(named, |product| product.ways.bad = Bad::NamesIt).await;
    assert!(named.contradicts.is_empty() && notes(&named, "bulk.atomic"), "{named:?}");
    let unique = lying(appends, |product| product.ways.cycle_unique = true).await;
    assert!(unique.contradicts.is_empty() && notes(&unique, "second cycle"), "{unique:?}");
}

#[tokio::test]
async fn where_nothing_is_kept_of_a_marker_nothing_may_be_reconciled() {
    let level = MarkerFacts { level: MarkerLevel::M5, ..facts(VerdictRule::Appends, KeyOnWrite::None).marker };
    let facts = Facts { marker: level, ..facts(VerdictRule::Appends, KeyOnWrite::None) };
    let probed = lying(facts, |product| product.ways.comment_chars = 0).await;
    let text = probed.measured.text.as_ref().unwrap();
    assert_eq!((probed.measured.marker, text.marker), (MarkerCame::Lost, MarkerCame::Lost));
    assert!(probed.contradicts.is_empty(), "nobody said that it would: {:?}", probed.contradicts);
    assert_eq!(probed.allows, [Strategy::Container]);
    assert!(matches!(leave(Strategy::Reconcile, Some(&probed), &shop(), &facts, false), Leave::Refused(_)));
}

#[tokio::test]
async fn a_list_that_does_not_show_what_was_made_is_found_out() {
    for strategies in [&[Strategy::Reconcile][..], &[Strategy::Container]] {
        let facts = Facts { strategies, ..facts(VerdictRule::Appends, KeyOnWrite::None) };
        let probed = lying(facts, |product| product.ways.cycles_listed = 0).await;
        assert_eq!(probed.measured.twin.listed, Some(false));
        assert!(probed.contradicts.iter().any(|word| word.starts_with("cycles:")), "{:?}", probed.contradicts);
        assert_eq!(lying(facts, |_| {}).await.measured.twin.listed, Some(true));
    }
}

#[tokio::test]
async fn replace_needs_a_probe() {
    let facts = facts(VerdictRule::Replaces, KeyOnWrite::None);
    assert!(matches!(leave(Strategy::Replace, None, &shop(), &facts, false), Leave::Warned(_)));
    assert!(matches!(leave(Strategy::Replace, None, &shop(), &facts, true), Leave::Refused(_)));
    assert_eq!(leave(Strategy::Reconcile, None, &shop(), &facts, true), Leave::Granted);
    let probed = lying(facts, |_| {}).await;
    // The adapter of a later version believes something else.
    let later = Facts { verdict: VerdictRule::Appends, ..facts };
    assert!(matches!(leave(Strategy::Replace, Some(&probed), &shop(), &later, false), Leave::Refused(_)));
    let other = Facts { kind: delivery::foreign::Kind::Kiwi, ..facts };
    assert!(matches!(leave(Strategy::Replace, Some(&probed), &shop(), &other, false), Leave::Refused(_)));
}

#[tokio::test]
async fn a_probe_touches_its_own_cycle_alone_and_says_what_is_left() {
    let mut facts = facts(VerdictRule::Appends, KeyOnWrite::None);
    facts.repair = Repair { delete_cycle: false, ..facts.repair };
    let product = Product::new(facts);
    let cycle = product.cycle();
    product.put(&cycle, "C1", Status::Passed, &comment("m", marker(1, Status::Passed, None)), 1);
    let probed = probed(&product).await;
    let state = product.state.lock().unwrap();
    let (ours, scratch): (Vec<_>, Vec<_>) = state.cycles.iter().partition(|known| known.id == cycle);
    assert!(!ours[0].closed && scratch.len() == 3);
    assert!(scratch.iter().all(|known| known.closed && known.name.starts_with("Tallyonce probe 20")), "{scratch:?}");
    assert_eq!(probed.left.len(), 3, "{:?}", probed.left);
    assert_eq!(state.rows.iter().filter(|row| row.cycle == cycle).count(), 1);
}

#[tokio::test]
async fn an_end_before_the_end_leaves_no_cycle() {
    let facts = facts(VerdictRule::Appends, KeyOnWrite::None);
    // The credentials are refused half-way. A right that only changing or deleting needs would end nothing.
    let mut denied = Product::new(facts);
    denied.ways.rows_max = 3;
    let options = ProbeOptions::default();
    let ended = patiently(&denied, async |patience| probe(&denied, &cases(), &options, patience).await).await;
    assert!(matches!(ended, Err(ProbeError::Ended { .. })), "{ended:?}");
    assert!(denied.state.lock().unwrap().cycles.is_empty());
    // Somebody stops it while it waits; the deadline comes.
    for stops in [true, false] {
        let mut slow = Product::new(facts);
        slow.ways.lag_ms = 1_000_000;
        let (stop, mut random) = (Stop::new(), rand::rngs::StdRng::seed_from_u64(1));
        let clock: &dyn Clock = &*slow.world;
        let deadline_ms = clock.now_ms() + 5000;
        let waits = |doing: Doing<'_>| {
            if stops && matches!(doing, Doing::Waits { .. }) {
                stop.request();
            }
        };
        let mut patience = Patience::new(clock, &mut random, &stop, deadline_ms).watched(&waits);
        let ended = probe(&slow, &cases(), &options, &mut patience).await;
        let Err(ProbeError::Ended { why, left }) = ended else { panic!("{ended:?}") };
        let words = if stops { "interrupted" } else { "until the first write shows" };
        assert!(left.is_empty() && why.to_string().contains(words), "{why}");
        assert!(slow.state.lock().unwrap().cycles.is_empty());
    }
    let too_few = patiently(&denied, async |patience| probe(&denied, &cases()[..1], &options, patience).await).await;
    assert_eq!(too_few, Err(ProbeError::TooFewCases(1)));
}

#[tokio::test]
async fn larger_batches_are_written_where_they_are_asked_for() {
    let product = Product::new(facts(VerdictRule::Appends, KeyOnWrite::None));
    let options = ProbeOptions { larger: true, ..ProbeOptions::default() };
    let probed =
        patiently(&product, async |patience| probe(&product, &cases(), &options, patience).await).await.unwrap();
    let sizes: Vec<_> = probed.measured.more.larger.iter().map(|larger| (larger.items, larger.stored)).collect();
    assert_eq!(sizes, [(50, Some(50)), (100, Some(100)), (200, Some(200))]);
    let seen = probed.measured.more.while_writing.unwrap();
    assert!(seen.rows_before >= 350 && seen.listings == 3 && seen.skipped + seen.repeated == 0, "{seen:?}");
}

#[tokio::test]
async fn what_comes_too_late_and_what_a_listing_leaves_out_contradict() {
    let facts = facts(VerdictRule::Appends, KeyOnWrite::None);
    let mut measured = lying(facts, |_| {}).await.measured;
    let late = |ms| CutWrite { after_ms: 1, answered: false, applied_ms: Some(ms) };
    for (ms, lies) in [(facts.quiet_ms, 0), (facts.quiet_ms + 1, 1)] {
        measured.more.cut = Some(Cut { took_ms: 4, writes: vec![late(3), late(ms)], watched_ms: 300_000 });
        let found = contradictions(&measured, &facts);
        assert_eq!(found.len(), lies, "{found:?}");
        assert!(found.iter().all(|found| found.starts_with("quiet: ")), "{found:?}");
    }
    // A target that waits as long is no lie, and one that waits shorter is.
    for (quiet_ms, lies) in [(facts.quiet_ms + 1, 0), (facts.quiet_ms - 1, 1)] {
        assert_eq!(contradictions(&measured, &Facts { quiet_ms, ..facts }).len(), lies);
    }
    measured.more.cut = None;
    measured.more.while_writing = Some(WhileWriting { skipped: 1, listings: 3, ..WhileWriting::default() });
    assert!(contradictions(&measured, &facts)[0].starts_with("paging: "));
}

#[test]
fn a_file_that_is_no_probe_says_so() {
    assert!(Probed::parse("{}").unwrap_err().contains("run `tallyonce probe` again"));
}

#[tokio::test]
async fn a_probe_of_another_form_is_not_taken() {
    let product = Product::new(facts(VerdictRule::Appends, KeyOnWrite::None));
    let mut file = serde_json::to_value(probed(&product).await).unwrap();
    // One of an earlier version, which measured less, is read.
    file["measured"].as_object_mut().unwrap().remove("more").unwrap();
    let older = Probed::parse(&file.to_string()).unwrap();
    assert_eq!(older.measured.more, More::default());
    file["format"] = 2.into();
    assert!(Probed::parse(&file.to_string()).unwrap_err().contains("form 2"));
    assert_eq!(product.facts().kind.word(), file["kind"]);
}

#[tokio::test]
async fn a_right_that_is_missing_is_noted_and_ends_nothing() {
    let facts = facts(VerdictRule::Appends, KeyOnWrite::None);
    let probed = lying(facts, |product| {
        (product.ways.denies, product.ways.deletes, product.ways.amends) = (true, false, false);
    })
    .await;
    let refused = |words: &str| Deed::Refused { words: words.to_owned() };
    assert_eq!(probed.measured.delete, refused("nothing can be deleted"));
    assert_eq!(probed.measured.amend, refused("nothing can be changed"));
    assert!(probed.contradicts.is_empty() && probed.measured.more.cut.is_some(), "{probed:?}");
    // Cycles that may not be deleted are ended, and named.
    let mut product = Product::new(facts);
    (product.ways.denies, product.ways.deletes_cycles) = (true, false);
    let probed = patiently(&product, async |patience| probe(&product, &cases(), &options(), patience).await).await;
    let probed = probed.unwrap();
    assert_eq!(probed.measured.more.delete_cycle, Some(refused("no cycle can be deleted")));
    assert_eq!((probed.measured.more.broken_off.as_ref(), probed.left.len()), (None, 3), "{:?}", probed.left);
    assert!(probed.notes.iter().any(|note| note.contains("a cycle can't be deleted here")), "{:?}", probed.notes);
}

#[tokio::test]
async fn a_cycle_that_may_have_been_made_is_named() {
    let mut product = Product::new(facts(VerdictRule::Appends, KeyOnWrite::None));
    (product.ways.makes_cycles_silently, product.ways.cycles_listed) = (true, 0);
    let ended = patiently(&product, async |patience| probe(&product, &cases(), &options(), patience).await).await;
    let Err(ProbeError::Ended { left, .. }) = ended else { panic!("{ended:?}") };
    let name = product.state.lock().unwrap().cycles[0].name.clone();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].starts_with(&format!("perhaps a cycle named {name:?}: it was asked for")), "{left:?}");
    // Once it is listed, it is removed, and nothing is left.
    product.ways.cycles_listed = usize::MAX;
    product.state.lock().unwrap().cycles.clear();
    let probed = patiently(&product, async |patience| probe(&product, &cases(), &options(), patience).await).await;
    assert_eq!((probed.unwrap().left, product.state.lock().unwrap().cycles.len()), (Vec::new(), 0));
}
