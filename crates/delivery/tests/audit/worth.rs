//! What a probe is worth: of which target it is, and whether it is whole.

use delivery::foreign::patience::Patience;
use delivery::foreign::probe::{Cut, CutWrite, Leave, More, Probed, Subject, leave, outweighs, probe};
use delivery::foreign::{Facts, KeyOnWrite, Strategy, VerdictRule};
use delivery::{Clock, Stop};
use rand::SeedableRng as _;

use crate::given::facts;
use crate::probe::{cases, lying, of, options, shop};
use crate::product::Product;

/// A strategy that needs a probe, and what is said of it with and without `--strict`.
fn replacing(probed: &Probed, subject: &Subject, facts: &Facts) -> [Leave; 2] {
    [true, false].map(|strict| leave(Strategy::Replace, Some(probed), subject, facts, strict))
}

#[tokio::test]
async fn a_probe_of_another_place_confirms_nothing_and_blocks_nothing() {
    let facts = facts(VerdictRule::Replaces, KeyOnWrite::None);
    let probed = lying(facts, |_| {}).await;
    let elsewhere = of("other");
    let [strict, else_] = replacing(&probed, &elsewhere, &facts);
    assert!(matches!(&strict, Leave::Refused(why) if why.contains("project shop") && why.contains("project other")));
    assert!(matches!(&else_, Leave::Warned(why) if why.contains("run `tallyonce probe` again")), "{else_:?}");
    // One of an earlier version may be of any place.
    let older = Probed { of: None, ..probed.clone() };
    let [strict, else_] = replacing(&older, &shop(), &facts);
    assert!(matches!(&strict, Leave::Refused(why) if why.contains("of which place")), "{strict:?}");
    assert!(matches!(else_, Leave::Warned(_)), "{else_:?}");
    // What was found there may be so there alone. Of an earlier version nobody knows.
    let lied = lying(facts, |product| product.ways.verdict = VerdictRule::Appends).await;
    assert!(!lied.contradicts.is_empty());
    assert!(matches!(replacing(&lied, &elsewhere, &facts)[1], Leave::Warned(_)));
    assert!(matches!(leave(Strategy::Reconcile, Some(&lied), &elsewhere, &facts, true), Leave::Warned(_)));
    let older = Probed { of: None, ..lied };
    assert!(matches!(replacing(&older, &shop(), &facts)[1], Leave::Refused(_)));
}

#[tokio::test]
async fn a_probe_that_was_broken_off_confirms_nothing_and_hides_no_contradiction() {
    let facts = facts(VerdictRule::Replaces, KeyOnWrite::None);
    let whole = lying(facts, |_| {}).await;
    assert_eq!(replacing(&whole, &shop(), &facts), [Leave::Granted, Leave::Granted]);
    let mut broken = whole.clone();
    broken.measured.more = More { broken_off: Some("no answer before the deadline".to_owned()), ..More::default() };
    let mut short = whole.clone();
    let cut = |watched_ms| Cut {
        took_ms: 4,
        writes: vec![CutWrite { after_ms: 1, answered: false, applied_ms: None }],
        watched_ms,
    };
    short.measured.more.cut = Some(cut(facts.quiet_ms - 1));
    let mut watched = whole.clone();
    watched.measured.more.cut = Some(cut(facts.quiet_ms));
    assert_eq!(replacing(&watched, &shop(), &facts)[0], Leave::Granted);
    let lied = lying(facts, |product| product.ways.verdict = VerdictRule::Appends).await;
    for part in [&broken, &short] {
        let [strict, else_] = replacing(part, &shop(), &facts);
        assert!(matches!(&strict, Leave::Refused(why) if why.contains("longer --deadline")), "{strict:?}");
        assert!(matches!(else_, Leave::Warned(_)), "{else_:?}");
        assert_eq!(leave(Strategy::Reconcile, Some(part), &shop(), &facts, true), Leave::Granted);
        assert!(outweighs(&lied, part, &facts) && !outweighs(&whole, part, &facts));
        assert!(outweighs(&Probed { of: None, ..lied.clone() }, part, &facts), "it may be of this place");
        assert!(!outweighs(&Probed { of: Some(of("other")), ..lied.clone() }, part, &facts));
    }
    assert!(!outweighs(&lied, &whole, &facts), "what is mended is measured anew");
}

#[tokio::test]
async fn a_watch_that_the_deadline_cuts_short_is_noted() {
    let facts = facts(VerdictRule::Appends, KeyOnWrite::None);
    let mut product = Product::new(facts);
    product.ways.hangs = true;
    let (stop, mut random) = (Stop::new(), rand::rngs::StdRng::seed_from_u64(1));
    let clock: &dyn Clock = &*product.world;
    let deadline_ms = clock.now_ms() + facts.quiet_ms;
    let mut patience = Patience::new(clock, &mut random, &stop, deadline_ms);
    let probed = probe(&product, &cases(), &options(), &mut patience).await.unwrap();
    let watched_ms = probed.measured.more.cut.as_ref().unwrap().watched_ms;
    assert!(watched_ms < facts.quiet_ms, "{watched_ms}");
    assert!(probed.notes.iter().any(|note| note.contains("less than the quiet time")), "{:?}", probed.notes);
}
