//! The codec comes back, and damaged bytes never panic.

use std::collections::BTreeMap;

use domain::{Attempt, Digest, DurationUs, ExternalId, ItemHash, ItemName, Outcome, Outcomes, Status};
use proptest::prelude::*;

use super::*;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "\\PC{0,20}",
        1 => (2040_usize..2060).prop_map(|n| "x".repeat(n)),
        1 => (0_usize..3).prop_map(|n| "é".repeat(1020 + n)),
    ]
}

fn duration() -> impl Strategy<Value = Option<DurationUs>> {
    prop::option::of(prop_oneof![0..3_000_000_u64, 0..u64::MAX].prop_map(DurationUs))
}

fn status() -> impl Strategy<Value = Status> {
    (0..4_u8).prop_map(|code| Status::from_code(code).unwrap())
}

fn attempt() -> impl Strategy<Value = Attempt> {
    (status(), duration(), prop::option::of(text())).prop_map(|(status, duration_us, message)| Attempt {
        status,
        duration_us,
        message,
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let texts = prop_oneof![
        2 => Just((None, vec![], vec![])),
        1 => (prop::option::of(text()), prop::collection::vec(attempt(), 0..4), prop::collection::vec("\\PC{0,8}", 0..3)),
    ];
    (0..50_000_u32, status(), duration(), texts).prop_map(
        |(n, status, duration_us, (message, attempts, external_ids))| Outcome {
            item: ItemName::new(["suite"], Some("class"), &format!("t{n}")),
            status,
            duration_us,
            message,
            attempts,
            external_ids: external_ids.into_iter().map(ExternalId::from).collect(),
        },
    )
}

fn outcomes() -> impl Strategy<Value = Outcomes> {
    prop::collection::vec(outcome(), 0..60).prop_map(|list| {
        let by_item: BTreeMap<ItemName, Outcome> = list.into_iter().map(|o| (o.item.clone(), o)).collect();
        Outcomes::from_unordered(by_item.into_values().collect()).unwrap()
    })
}

#[derive(Debug, PartialEq, Eq)]
struct Lost(String);

impl From<Damaged> for Lost {
    fn from(damaged: Damaged) -> Self {
        Lost(damaged.0.to_owned())
    }
}

fn back(outcomes: &[Outcome]) -> Vec<Outcome> {
    let (mut packer, mut unpacker) = (Packer::new(), Unpacker::new());
    let large: BTreeMap<Digest, String> =
        large_texts(outcomes).map(|t| (Digest::of(t.as_bytes()), t.to_owned())).collect();
    let (codes, any_text) = pack_codes(outcomes, &mut packer);
    let codes = unpacker.frame(&codes).unwrap();
    let times = unpack_times(&pack_times(outcomes, &mut packer), outcomes.len(), &mut unpacker).unwrap();
    let mut texts = vec![Texts::default(); outcomes.len()];
    if any_text {
        let frame = pack_texts(outcomes, &mut packer);
        let mut find = |digest: Digest| large.get(&digest).cloned().ok_or(Lost("large".into()));
        unpack_texts(&frame, &codes, &mut unpacker, &mut find, &mut |_| true, &mut |at, t| texts[at] = t).unwrap();
    }
    let mut names = Vec::new();
    let n = each_name(&pack_names(outcomes, &mut packer), &mut unpacker, |_| true, |_, name| names.push(name)).unwrap();
    assert_eq!(n, outcomes.len());
    let rows = names.into_iter().zip(codes).zip(times).zip(texts);
    rows.map(|(((item, code), duration_us), texts)| Outcome {
        item,
        status: light_of(code).unwrap().status,
        duration_us,
        message: texts.message,
        attempts: texts.attempts,
        external_ids: texts.external_ids,
    })
    .collect()
}

proptest! {
    #[test]
    fn outcomes_come_back(outcomes in outcomes()) {
        prop_assert_eq!(back(outcomes.as_slice()), outcomes.as_slice());
    }

    #[test]
    fn every_item_lies_in_the_bucket_that_its_hash_says(outcomes in outcomes(), bits in 0..6_u8) {
        let parts = buckets(outcomes.hashes(), bits);
        let mut seen = 0;
        for (bucket, range) in &parts {
            prop_assert_eq!(range.start, seen);
            prop_assert!(!range.is_empty());
            seen = range.end;
            for hash in &outcomes.hashes()[range.clone()] {
                prop_assert_eq!(bucket_of(*hash, bits), *bucket);
            }
        }
        prop_assert_eq!(seen, outcomes.len());
        prop_assert!(parts.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn a_set_finds_its_items(outcomes in outcomes(), other in any::<[u8; 16]>()) {
        let bytes = pack_hashes(outcomes.hashes());
        for (at, hash) in outcomes.hashes().iter().enumerate() {
            prop_assert_eq!(find_hash(&bytes, *hash), Some(at));
        }
        prop_assert_eq!(find_hash(&bytes, ItemHash(other)), outcomes.hashes().binary_search(&ItemHash(other)).ok());
        let mut back = Vec::new();
        unpack_hashes(&bytes, &mut back).unwrap();
        prop_assert_eq!(&back, outcomes.hashes());
    }

    #[test]
    fn damaged_bytes_are_an_error_and_no_panic(outcomes in outcomes(), cut in 0..400_usize, flip in 0..400_usize) {
        let (mut packer, mut unpacker) = (Packer::new(), Unpacker::new());
        let (codes, _) = pack_codes(outcomes.as_slice(), &mut packer);
        let plain = unpacker.frame(&codes).unwrap();
        for mut bytes in [
            pack_texts(outcomes.as_slice(), &mut packer),
            pack_times(outcomes.as_slice(), &mut packer),
            pack_names(outcomes.as_slice(), &mut packer),
        ] {
            let at = flip % bytes.len();
            bytes[at] ^= 0x55;
            bytes.truncate(bytes.len() - cut % bytes.len());
            let mut find = |_| Ok::<_, Lost>(String::new());
            let _ = unpack_texts(&bytes, &plain, &mut unpacker, &mut find, &mut |_| true, &mut |_, _| {});
            let _ = unpack_times(&bytes, outcomes.len(), &mut unpacker);
            let _ = each_name(&bytes, &mut unpacker, |_| true, |_, _| {});
        }
    }
}

#[test]
fn buckets_hold_about_four_thousand_items() {
    assert_eq!([0, 1, 4096, 4097, 8192, 8193, 100_000, 5_000_000].map(bits_for), [0, 0, 0, 1, 1, 2, 5, 11]);
}
