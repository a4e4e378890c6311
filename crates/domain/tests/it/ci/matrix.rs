//! The legs of a matrix that a pipeline hands over: what becomes shard and variant, and that no two legs share a key.

use std::collections::BTreeSet;

use domain::ci::{Env, Identity, IdentityError, Overrides, identify};
use domain::{ShardRef, Variant};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::env;
use super::vectors::GITHUB;

const MATRIX: &str = "TALLYONCE_MATRIX";
const INDEX: &str = "TALLYONCE_MATRIX_INDEX";
const TOTAL: &str = "TALLYONCE_MATRIX_TOTAL";

fn leg(matrix: &str, place: Option<(usize, usize)>, flags: &Overrides) -> Result<Identity, IdentityError> {
    let (index, total) = place.map(|(index, total)| (index.to_string(), total.to_string())).unwrap_or_default();
    identify(&env(GITHUB, &[(MATRIX, matrix), (INDEX, &index), (TOTAL, &total)]), flags)
}

/// What of the key the leg makes.
fn part(matrix: &Value, place: Option<(usize, usize)>) -> String {
    let identity = leg(&matrix.to_string(), place, &Overrides::default()).unwrap();
    identity.key.as_str().strip_prefix("github:acme/Shop:run:16873243901:job:e2e").unwrap().to_owned()
}

#[test]
fn no_matrix_changes_nothing() {
    let none = identify(&env(GITHUB, &[]), &Overrides::default()).unwrap();
    for text in ["", "null", "{}", " { } "] {
        let identity = leg(text, Some((0, 1)), &Overrides::default()).unwrap();
        assert_eq!((&identity.key, identity.expect), (&none.key, None), "{text:?}");
        assert_eq!(identity.warnings, Vec::<String>::new());
    }
}

#[test]
fn a_lone_number_is_a_shard_where_its_place_says_so() {
    for (value, place, expected) in [
        (json!(1), Some((0, 4)), ":shard:1-4"),
        (json!(4), Some((3, 4)), ":shard:4-4"),
        // Counted from 0.
        (json!(0), Some((0, 4)), ":shard:1-4"),
        (json!(3), Some((3, 4)), ":shard:4-4"),
        (json!("2"), Some((1, 4)), ":shard:2-4"),
        // Neither: it could be the place of another leg.
        (json!(3), Some((1, 4)), ":variant:shard=3"),
        (json!("02"), Some((1, 4)), ":variant:shard=02"),
        (json!(1.5), Some((0, 4)), ":variant:shard=1.5"),
        (json!(-1), Some((0, 4)), ":variant:shard=-1"),
        // Nobody says its place.
        (json!(3), None, ":shard:3"),
        (json!(0), None, ":variant:shard=0"),
        (json!(100_001), None, ":variant:shard=100001"),
        (json!("2/4"), None, ":shard:2-4"),
        (json!("2/4"), Some((1, 4)), ":shard:2-4"),
        (json!("2/4"), Some((0, 8)), ":shard:2-4"),
        // Out of its place it could be that of a leg that says 2.
        (json!("2/4"), Some((3, 4)), ":variant:shard=2/4"),
        (json!("02/4"), Some((1, 4)), ":variant:shard=02/4"),
        (json!("5/4"), Some((1, 4)), ":variant:shard=5/4"),
        (json!("unit"), Some((1, 4)), ":variant:shard=unit"),
    ] {
        for name in ["shard", "index", "chunk", "group", "split"] {
            let expected = expected.replace("variant:shard", &format!("variant:{name}"));
            assert_eq!(part(&json!({ name: value }), place), expected, "{name} {value} {place:?}");
        }
        assert!(part(&json!({ "node": value }), place).starts_with(":variant:node="), "{value}");
    }
}

#[test]
fn beside_other_keys_the_number_is_the_shard_and_a_total_belongs_to_it() {
    for (matrix, expected) in [
        (json!({"os": "linux", "shard": 2}), ":shard:2:variant:os=linux"),
        (json!({"os": "linux", "shard": 0}), ":variant:os=linux,shard=0"),
        (json!({"os": "linux", "shard": "2/3"}), ":shard:2-3:variant:os=linux"),
        (json!({"shard": 2, "total": 4}), ":shard:2-4"),
        (json!({"group": "2", "shards": "4"}), ":shard:2-4"),
        (json!({"chunk": 2, "of": 4, "os": "mac"}), ":shard:2-4:variant:os=mac"),
        (json!({"split": 2, "count": 2}), ":shard:2-2"),
        // No total of this shard.
        (json!({"shard": 2, "total": 1}), ":shard:2:variant:total=1"),
        (json!({"shard": "2/3", "total": 3}), ":shard:2-3:variant:total=3"),
        (json!({"os": "linux", "total": 3}), ":variant:os=linux,total=3"),
        // The first in the order is the shard, the others tell variants apart.
        (json!({"group": 1, "index": 2, "total": 3, "count": 3}), ":shard:2-3:variant:count=3,group=1"),
        (json!({"group": 1, "index": "a"}), ":variant:group=1,index=a"),
    ] {
        assert_eq!(part(&matrix, Some((1, 9))), expected, "{matrix}");
    }
}

#[test]
fn values_are_written_so_that_they_stay_apart() {
    let texts = [
        json!(""),
        json!("\"\""),
        json!(" a"),
        json!("a"),
        json!("a\nb"),
        json!(["a"]),
        json!("[\"a\"]"),
        json!({"a": 1}),
        json!("{\"a\":1}"),
        json!(null),
        json!(true),
        json!(18),
        json!(1.5),
    ];
    let parts: BTreeSet<String> = texts.iter().map(|value| part(&json!({ "v": value }), None)).collect();
    assert_eq!(parts.len(), texts.len(), "{parts:?}");
    assert_eq!(part(&json!({"node": 18, "flags": ["a", "b"]}), None), ":variant:flags=%5B%22a%22%2C%22b%22%5D,node=18");
}

#[test]
fn flags_win_each_over_its_own_part() {
    let shard = |text: &str| Overrides { shard: ShardRef::parse(text).ok(), ..Overrides::default() };
    let derived = |matrix: Value, flags: &Overrides| leg(&matrix.to_string(), Some((1, 4)), flags).unwrap();
    let variant = Overrides { variant: Variant::from_pairs([("os", "mac")]).ok(), ..Overrides::default() };
    let both = derived(json!({"os": "linux", "shard": 2, "total": 4}), &variant);
    assert!(both.key.as_str().ends_with(":job:e2e:shard:2-4:variant:os=mac"), "{}", both.key);
    assert!(both.warnings[0].contains("--variant replaces the variant os=linux"), "{:?}", both.warnings);
    // The same said twice is no news.
    let said = derived(json!({"os": "mac", "shard": 2, "total": 4}), &variant);
    assert_eq!(said.warnings, Vec::<String>::new());
    for (matrix, flag, ending, warned) in [
        (json!({"os": "linux", "shard": 2}), "2/4", ":job:e2e:shard:2-4:variant:os=linux", 0),
        (json!({"shard": 2, "total": 4}), "2/4", ":job:e2e:shard:2-4", 0),
        // Two legs of another total may be passed one shard.
        (json!({"shard": 2, "total": 5}), "2/4", ":job:e2e:shard:2-4:variant:total=5", 0),
        (json!({"group": 3, "part": 1}), "1/2", ":job:e2e:shard:1-2:variant:group=3,part=1", 1),
        (json!({"shard": "2/4"}), "2/4", ":job:e2e:shard:2-4", 0),
        (json!({"shard": "2/4"}), "2", ":job:e2e:shard:2:variant:shard=2/4", 1),
    ] {
        let identity = derived(matrix.clone(), &shard(flag));
        assert!(identity.key.as_str().ends_with(ending), "{matrix}: {}", identity.key);
        assert_eq!(identity.warnings.len(), warned, "{:?}", identity.warnings);
    }
}

#[test]
fn every_leg_is_expected_to_push_once() {
    let expect = |matrix: &str, total| leg(matrix, Some((0, total)), &Overrides::default()).unwrap().expect;
    assert_eq!(expect(r#"{"os":"linux"}"#, 6), Some(6));
    assert_eq!((expect(r#"{"os":"linux"}"#, 0), expect("null", 6)), (None, None));
    let silent = leg("", Some((0, 6)), &Overrides::default()).unwrap();
    assert!(silent.warnings[0].contains("TALLYONCE_MATRIX is not set"), "{:?}", silent.warnings);
    let hinted = [(MATRIX, r#"{"os":"linux"}"#), ("ACTIONS_ORCHESTRATION_ID", "abc.e2e.linux")];
    let told = identify(&env(GITHUB, &hinted), &Overrides::default()).unwrap();
    assert_eq!(told.warnings, Vec::<String>::new());
}

#[test]
fn what_is_no_leg_is_refused_by_name() {
    let long = json!({ "v": "x".repeat(2000) }).to_string();
    for text in ["[1]", "1", "\"a\"", "{", "linux", long.as_str()] {
        let error = leg(text, None, &Overrides::default()).unwrap_err();
        assert!(matches!(error, IdentityError::BadMatrix { variable: MATRIX, .. }), "{error:?}");
        assert!(error.to_string().contains("toJSON(matrix)"), "{error}");
    }
    let flags = Overrides { variant: Variant::from_pairs([("v", "long")]).ok(), ..Overrides::default() };
    assert!(leg(&long, None, &flags).unwrap().key.as_str().ends_with(":variant:v=long"));
    for variable in [INDEX, TOTAL] {
        let error = identify(&env(GITHUB, &[(variable, "x")]), &Overrides::default()).unwrap_err();
        assert!(matches!(error, IdentityError::BadVariable { variable: named, .. } if named == variable), "{error:?}");
    }
    // Elsewhere it is nobody's variable.
    let gitlab = env(super::GITLAB, &[(MATRIX, "[1]")]);
    assert!(identify(&gitlab, &Overrides::default()).is_ok());
}

/// Values that a list of a matrix may hold, no two of which read the same; with or without `1/2` and the like.
fn values(written_out: bool) -> impl Strategy<Value = Vec<Value>> {
    let value = prop_oneof![
        4 => (0_u32..6).prop_map(|number| json!(number)),
        2 => (0_u32..6).prop_map(|number| json!(number.to_string())),
        2 => (1_u32..4, 1_u32..5).prop_map(move |(index, total)| {
            if written_out { json!(format!("{index}/{total}")) } else { json!(index) }
        }),
        2 => "[a-c]{1,2}".prop_map(|text| json!(text)),
        1 => prop_oneof![Just(json!(true)), Just(json!(null)), Just(json!("")), Just(json!([1, "a"])), Just(json!(-1))],
        1 => prop_oneof![Just(json!("01")), Just(json!("01/2")), Just(json!(1.5)), Just(json!(" 1")), Just(json!({"a": 1}))],
    ];
    prop::collection::vec(value, 1..5).prop_map(|values| {
        let mut read = BTreeSet::new();
        values
            .into_iter()
            .filter(|value| read.insert(value.as_str().map_or(value.to_string(), str::to_owned)))
            .collect()
    })
}

/// The legs of a matrix: each combination of its lists but those that are excluded, some with one more key.
fn legs(written_out: bool) -> impl Strategy<Value = Vec<Map<String, Value>>> {
    let names = [
        "shard",
        "index",
        "chunk",
        "group",
        "split",
        "total",
        "shards",
        "of",
        "count",
        "os",
        "node-version",
        "browser",
    ];
    let lists = prop::collection::btree_map(prop::sample::select(names.to_vec()), values(written_out), 1..4);
    (lists, any::<u64>(), any::<u64>()).prop_map(|(lists, excluded, extended)| {
        let mut legs = vec![Map::new()];
        for (name, values) in lists {
            let with = |leg: &Map<String, Value>, value: &Value| {
                let mut leg = leg.clone();
                leg.insert(name.to_owned(), value.clone());
                leg
            };
            legs =
                legs.iter().flat_map(|leg| values.iter().map(|value| with(leg, value)).collect::<Vec<_>>()).collect();
        }
        let kept = legs
            .into_iter()
            .enumerate()
            .filter(|(at, _)| *at == 0 || !excluded.rotate_right(*at as u32).is_multiple_of(4));
        kept.map(|(at, mut leg)| {
            if extended.rotate_right(at as u32).is_multiple_of(4) {
                leg.insert("experimental".to_owned(), json!(true));
            }
            leg
        })
        .collect()
    })
}

fn keys_of(legs: &[Map<String, Value>], placed: bool, flags: impl Fn(usize) -> Overrides) -> BTreeSet<String> {
    let keys = legs.iter().enumerate().map(|(at, matrix)| {
        let text = Value::Object(matrix.clone()).to_string();
        let place = placed.then_some((at, legs.len()));
        leg(&text, place, &flags(at)).unwrap().key.to_string()
    });
    keys.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_two_legs_share_a_key(legs in legs(true)) {
        prop_assert_eq!(keys_of(&legs, true, |_| Overrides::default()).len(), legs.len());
        prop_assert_eq!(keys_of(&legs, false, |_| Overrides::default()).len(), legs.len());
    }

    #[test]
    fn no_two_legs_share_a_key_whatever_shards_are_passed(
        // A list of `2` and `2/3`, and a flag that fits both, is not told apart.
        legs in legs(false),
        shards in prop::collection::vec((1_u32..4, prop::option::of(3_u32..5)), 8),
    ) {
        let flags = |at: usize| {
            let (index, total) = shards[at % shards.len()];
            Overrides { shard: ShardRef::new(index, total).ok(), ..Overrides::default() }
        };
        prop_assert_eq!(keys_of(&legs, true, flags).len(), legs.len());
        prop_assert_eq!(keys_of(&legs, false, flags).len(), legs.len());
    }

    #[test]
    fn a_leg_tried_again_has_the_same_key(legs in legs(true), attempt in 1_u32..9) {
        let matrix = Value::Object(legs[0].clone()).to_string();
        let first = leg(&matrix, Some((0, legs.len())), &Overrides::default()).unwrap();
        let changes = [
            (MATRIX, matrix.clone()),
            (INDEX, "0".to_owned()),
            (TOTAL, legs.len().to_string()),
            ("GITHUB_RUN_ATTEMPT", attempt.to_string()),
            ("RUNNER_NAME", format!("runner {attempt}")),
        ];
        let env: Env = GITHUB
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .chain(changes.into_iter().map(|(name, value)| (name.to_owned(), value)))
            .collect();
        prop_assert_eq!(identify(&env, &Overrides::default()).unwrap().key, first.key);
    }
}
