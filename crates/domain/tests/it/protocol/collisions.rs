//! Two pieces of work under one key: by who executed it, and by what it holds.

use super::*;

#[test]
fn another_executor_at_the_same_attempt_collides_even_with_equal_outcomes_and_the_key_stays_contested() {
    let mut engine = Engine::default();
    let linux = say(many(0..3, Passed));
    let mac = linux.clone().with(|s| s.executor = Some("runner-9"));
    let _ = engine.deliver(&linux);
    assert!(matches!(
        engine.deliver(&mac),
        Decision::Refuse { refusal: Refusal::CollidingExecutor { ordinal: Some(Ordinal(1)), .. }, contest: true }
    ));
    let mac_again = mac.clone().attempt(2);
    assert!(matches!(refusal(engine.deliver(&mac_again)), Refusal::CollidingExecutor { ordinal: None, .. }));
    assert_eq!(engine.deliver(&linux), replay_of(1, DifferenceClass::None), "the recorded leg may retry");
    let nobody = refusal(engine.deliver(&linux.with(|s| s.executor = None)));
    assert!(matches!(nobody, Refusal::CollidingExecutor { .. }), "unknown is not the recorded one");
}

/// The model found this: whoever was accepted at another attempt could take a contested key.
#[test]
fn a_contested_key_is_no_looser_than_a_plain_one() {
    let mut engine = Engine::default();
    let _ = engine.deliver(&say(many(0..3, Passed)));
    let _ = engine.deliver(&say(many(0..3, Passed)).attempt(2));
    let crossed = say(many(0..3, Passed)).with(|s| s.executor = Some("runner-2"));
    for _ in 0..2 {
        assert!(matches!(refusal(engine.deliver(&crossed)), Refusal::CollidingExecutor { .. }));
    }
}

#[test]
fn an_executor_accepted_by_a_replay_holds_its_attempt_too() {
    let mut engine = Engine::default();
    let _ = engine.deliver(&say(many(0..3, Passed)));
    let second = say(many(0..3, Passed)).attempt(2);
    assert_eq!(engine.deliver(&second), replay_of(1, DifferenceClass::Cosmetic));
    let other_leg = second.clone().with(|s| s.executor = Some("runner-9"));
    assert!(matches!(refusal(engine.deliver(&other_leg)), Refusal::CollidingExecutor { .. }));
}

#[test]
fn s25_other_items_from_the_same_job_collide_whatever_the_ordinal() {
    let mut engine = Engine::default();
    let _ = engine.deliver(&say(many(0..10, Passed)));
    for ordinal in [1, 2] {
        let other = say(many(100..110, Passed)).with(|s| s.ordinal = Some(ordinal));
        assert!(matches!(
            refusal(engine.deliver(&other)),
            Refusal::CollidingItems { offered: 10, recorded: 10, known: 0, .. }
        ));
    }
    assert_eq!(engine.counts().total, 10);
}

#[test]
fn just_half_of_the_smaller_set_known_is_no_collision() {
    for (known, collides) in [(4, true), (5, false)] {
        let mut engine = Engine::default();
        let _ = engine.deliver(&say(many(0..10, Passed)));
        let shifted = say(many(10 - known..20 - known, Passed)).attempt(2);
        assert_eq!(matches!(engine.deliver(&shifted), Decision::Refuse { .. }), collides, "{known} of 10 known");
    }
}

#[test]
fn s10_tests_that_moved_from_another_node_are_known_in_the_job() {
    let mut engine = Engine::default();
    let _ = engine.deliver(&say(many(0..10, Passed)).with(|s| s.key = "K1"));
    let _ = engine.deliver(&say(many(10..20, Failed)));
    let moved = say(many(0..3, Passed)).with(|s| {
        s.ordinal = None;
        s.executor = None;
        s.incarnation = Some(7);
    });
    assert_eq!(overlay(&engine.deliver(&moved)), (RevisionKind::Kept, DifferenceClass::Structural));
    let elsewhere = moved.with(|s| s.key = "K1");
    assert!(matches!(engine.deliver(&elsewhere), Decision::Replay { .. } | Decision::Overlay { .. }));
}
