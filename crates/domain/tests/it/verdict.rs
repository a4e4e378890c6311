//! Revisions laid over one another and claims against one another, by properties and against a naive second opinion.

use std::collections::BTreeMap;

use domain::verdict::{Change, Claim, Light, RevisionKind, View, settle};
use domain::{Counts, ItemHash, Ordinal, Status};
use proptest::prelude::*;

type Content = BTreeMap<u8, Light>;

fn light() -> impl Strategy<Value = Light> {
    (0u8..8).prop_map(|code| Light::from_code(code).unwrap())
}

fn content() -> impl Strategy<Value = Content> {
    prop::collection::btree_map(0u8..12, light(), 0..8)
}

fn split(content: &Content) -> (Vec<ItemHash>, Vec<Light>) {
    content.iter().map(|(n, light)| (ItemHash([*n; 16]), *light)).unzip()
}

/// The naive second opinion: per item, a list of executions in order, the last one counting.
fn naive(steps: &[(RevisionKind, Content)]) -> BTreeMap<u8, Vec<Light>> {
    let mut items: BTreeMap<u8, Vec<Light>> = BTreeMap::new();
    for (kind, content) in steps {
        for (item, light) in content {
            let executions = items.entry(*item).or_default();
            if executions.is_empty() || *kind != RevisionKind::Kept {
                executions.push(*light);
            }
        }
    }
    items
}

proptest! {
    #[test]
    fn a_fold_of_overlays_agrees_with_lists_of_executions(
        first in content(),
        rest in prop::collection::vec((any::<bool>(), content()), 0..5),
    ) {
        let mut steps = vec![(RevisionKind::First, first)];
        steps.extend(rest.into_iter().map(|(kept, c)| (if kept { RevisionKind::Kept } else { RevisionKind::Revised }, c)));
        let mut view = View::default();
        for (at, (kind, content)) in steps.iter().enumerate() {
            let (hashes, lights) = split(content);
            view = view.laid_over(*kind, at as u32 + 1, &hashes, &lights);
        }
        let expected = naive(&steps);
        let mut counts = Counts::default();
        for (item, executions) in &expected {
            let verdict = view.get(ItemHash([*item; 16])).unwrap().light;
            let (last, earlier) = executions.split_last().unwrap();
            let bad_before = last.bad_before || earlier.iter().any(|l| l.bad_before || l.status.is_bad());
            prop_assert_eq!(verdict, Light { status: last.status, bad_before });
            counts.add(last.status, last.status == Status::Passed && bad_before);
        }
        prop_assert_eq!(view.hashes.len(), expected.len());
        prop_assert_eq!(view.counts(), counts);
        prop_assert!(view.hashes.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn an_exact_promotion_counts_that_content_alone(first in content(), second in content()) {
        let (hashes, lights) = split(&first);
        let view = View::first(&hashes, &lights);
        let (hashes, lights) = split(&second);
        let kept = view.laid_over(RevisionKind::Kept, 2, &hashes, &lights);
        let exact = kept.laid_over(RevisionKind::Promoted { of: 2, exact: true }, 3, &hashes, &lights);
        prop_assert_eq!(&exact.hashes, &hashes);
        prop_assert!(exact.verdicts.iter().zip(&lights).all(|(v, l)| v.light == *l && v.revision == 3));
    }

    #[test]
    fn changes_list_every_item_that_differs_once(first in content(), second in content()) {
        let (hashes, lights) = split(&first);
        let view = View::first(&hashes, &lights);
        let (hashes, lights) = split(&second);
        let mut seen = BTreeMap::new();
        view.changes(&hashes, &lights, |hash, change| { seen.insert(hash.0[0], change); });
        for item in 0u8..12 {
            let expected = match (first.get(&item), second.get(&item)) {
                (Some(a), Some(b)) if a.status != b.status => Some(Change::Changed { from: a.status, to: b.status }),
                (Some(a), None) => Some(Change::NotOffered(a.status)),
                (None, Some(b)) => Some(Change::Added(b.status)),
                _ => None,
            };
            prop_assert_eq!(seen.get(&item).copied(), expected);
        }
    }

    #[test]
    fn claims_settle_alike_in_any_order(claims in prop::collection::vec((light(), any::<bool>(), prop::option::of(1u64..3)), 1..5)) {
        let claims: Vec<Claim> = claims
            .into_iter()
            .map(|(light, elevated, attempt)| Claim { light, elevated, attempt: attempt.map(Ordinal) })
            .collect();
        let (at, light) = settle(&claims).unwrap();
        for turn in 1..claims.len() {
            let mut turned = claims.clone();
            turned.rotate_left(turn);
            prop_assert_eq!(settle(&turned).unwrap().1, light, "by order of arrival");
            turned.reverse();
            prop_assert_eq!(settle(&turned).unwrap().1, light, "by order of arrival");
        }
        prop_assert_eq!(claims[at].light.status, light.status);
        prop_assert_eq!(settle(&claims[..1]).unwrap(), (0, claims[0].light), "alone it counts as it is");
    }
}

#[test]
fn a_revised_verdict_goes_before_one_that_is_not() {
    let light = |status| Light { status, bad_before: false };
    let revised = Claim { light: light(Status::Passed), elevated: true, attempt: Some(Ordinal(1)) };
    let plain = Claim { light: light(Status::Failed), elevated: false, attempt: Some(Ordinal(2)) };
    assert_eq!(settle(&[plain, revised]), Some((1, revised.light)));
    assert_eq!(settle(&[revised, plain]), Some((0, revised.light)));
}

#[test]
fn an_unknown_attempt_competes_with_the_highest_known_one() {
    let claim = |status, attempt: Option<u64>| Claim {
        light: Light { status, bad_before: false },
        elevated: false,
        attempt: attempt.map(Ordinal),
    };
    let (first, unknown, second) =
        (claim(Status::Failed, Some(1)), claim(Status::Passed, None), claim(Status::Passed, Some(2)));
    assert_eq!(settle(&[unknown, second, first]).unwrap().1.status, Status::Passed, "the first attempt is overtaken");
    assert_eq!(settle(&[claim(Status::Failed, None), second]).unwrap().1.status, Status::Failed, "the loud side");
}

#[test]
fn s21_of_one_attempt_the_worst_counts() {
    let claim =
        |status| Claim { light: Light { status, bad_before: false }, elevated: false, attempt: Some(Ordinal(1)) };
    let all = [Status::Skipped, Status::Passed, Status::Failed, Status::Errored];
    for (worse_at, worse) in all.into_iter().enumerate() {
        for better in &all[..worse_at] {
            assert_eq!(settle(&[claim(*better), claim(worse)]).unwrap().1.status, worse);
            assert_eq!(settle(&[claim(worse), claim(*better)]).unwrap().1.status, worse);
        }
    }
}

fn outcome(name: u8) -> domain::Outcome {
    domain::Outcome {
        item: domain::ItemName::new(["s"], None, &format!("test {name}")),
        status: Status::ALL[usize::from(name % 4)],
        duration_us: None,
        message: None,
        attempts: Vec::new(),
        external_ids: Vec::new(),
    }
}

proptest! {
    #[test]
    fn outcomes_are_sorted_by_hash_whatever_their_order(names in prop::collection::vec(0u8..60, 0..40)) {
        let doubled = names.iter().enumerate().any(|(at, n)| names[..at].contains(n));
        let made = domain::Outcomes::from_unordered(names.iter().map(|n| outcome(*n)).collect());
        prop_assert_eq!(made.is_err(), doubled);
        if let Ok(made) = made {
            prop_assert!(made.hashes().windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(made.iter().all(|(hash, outcome)| outcome.item.hash() == hash));
            let mut expected: Vec<_> = names.iter().map(|n| outcome(*n)).collect();
            expected.sort_by_key(|outcome| outcome.item.hash());
            prop_assert_eq!(made.as_slice(), &expected[..]);
        }
    }
}
