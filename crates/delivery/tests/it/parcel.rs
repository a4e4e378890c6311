//! Parcels: everything of a push comes back, damage never does.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use delivery::{Destination, Parcel, SealedError, UnpackError, belongs_to};
use domain::item::ItemName;
use domain::outcome::{Attempt, DurationUs, Outcome, Status};
use domain::push::Push;
use proptest::prelude::*;

use crate::support::{destination, outcome, pack, push, push_of};

fn status() -> impl Strategy<Value = Status> {
    prop::sample::select(Status::ALL.to_vec())
}

fn attempt() -> impl Strategy<Value = Attempt> {
    (status(), prop::option::of(any::<u64>()), prop::option::of(".{0,20}"))
        .prop_map(|(status, duration, message)| Attempt { status, duration_us: duration.map(DurationUs), message })
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    let item = (prop::collection::vec(".{0,6}", 0..3), prop::option::of(".{0,6}"), ".{0,8}");
    let rest = (attempt(), prop::collection::vec(attempt(), 0..3), prop::collection::vec(".{0,6}", 0..3));
    (item, rest).prop_map(|((suite, class, name), (last, attempts, external_ids))| Outcome {
        item: ItemName::new(suite, class.as_deref(), &name),
        status: last.status,
        duration_us: last.duration_us,
        message: last.message,
        attempts,
        external_ids,
    })
}

pub(crate) fn any_push() -> impl Strategy<Value = Push> {
    (prop::collection::vec(any_outcome(), 0..12), any::<bool>(), prop::collection::vec(".{0,9}", 0..3)).prop_map(
        |(mut outcomes, incomplete, files)| {
            outcomes.sort_by_key(|o| o.item.hash());
            outcomes.dedup_by_key(|o| o.item.hash());
            Push { incomplete, files, ..push_of(outcomes) }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_push_comes_back_as_it_was(push in any_push()) {
        let parcel = pack(push.clone());
        let read = Parcel::decode(parcel.encode().unwrap()).unwrap();
        prop_assert_eq!(&read.header, &parcel.header);
        prop_assert_eq!(&read.body, &parcel.body);
        let back = read.push().unwrap();
        prop_assert_eq!(back.outcomes.content_digest(), push.content.content);
        prop_assert_eq!(&*back, &push);
    }

    #[test]
    fn one_changed_bit_is_always_noticed(at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let mut bytes = pack(push()).encode().unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(Parcel::decode(bytes).is_err());
    }
}

#[test]
fn a_packed_push_is_given_back_without_decoding() {
    let push = Arc::new(push());
    let parcel = Parcel::pack(Arc::clone(&push), &destination(), String::new()).unwrap();
    assert!(Arc::ptr_eq(&parcel.push().unwrap(), &push));
}

#[test]
fn a_body_of_another_push_is_refused() {
    let mine = pack(push());
    let other = pack(push_of(vec![outcome("works", Status::Passed), outcome("breaks", Status::Passed)]));
    let mut mixed = Parcel::decode(mine.encode().unwrap()).unwrap();
    mixed.body = other.body;
    assert!(matches!(mixed.push(), Err(UnpackError::Mismatch { what: "content digest", .. })));
    let mut lying = Parcel::decode(mine.encode().unwrap()).unwrap();
    lying.header.counts.failed = 0;
    assert!(matches!(lying.push(), Err(UnpackError::Mismatch { what: "counts", .. })));
}

#[test]
fn a_small_body_that_inflates_without_end_is_refused_early() {
    let blanks = vec![b' '; 1 << 20];
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 19).unwrap();
    for _ in 0..64 {
        encoder.write_all(&blanks).unwrap();
    }
    let mut parcel = Parcel::decode(pack(push()).encode().unwrap()).unwrap();
    parcel.body = Bytes::from(encoder.finish().unwrap());
    assert!(parcel.body.len() < 20_000, "{}", parcel.body.len());
    assert!(matches!(parcel.push(), Err(UnpackError::TooLarge { limit }) if limit < 32 << 20));
}

#[test]
fn bodies_that_are_no_push_are_unreadable() {
    let whole = pack(push());
    let json = zstd::decode_all(&*whole.body).unwrap();
    let spoiled = |json: &[u8]| Bytes::from(zstd::encode_all(json, 3).unwrap());
    let text = String::from_utf8(json.clone()).unwrap();
    let table = [
        ("no zstd", Bytes::from_static(b"{}")),
        ("cut", whole.body.slice(..whole.body.len() - 5)),
        ("more behind it", spoiled(&[json.as_slice(), b"{}"].concat())),
        ("newer format", spoiled(text.replace("\"tallyonce\":1", "\"tallyonce\":2").as_bytes())),
        ("unknown field", spoiled(text.replace("\"files\"", "\"fyles\"").as_bytes())),
    ];
    for (what, body) in table {
        let mut parcel = Parcel::decode(whole.encode().unwrap()).unwrap();
        parcel.body = body;
        assert!(matches!(parcel.push(), Err(UnpackError::Unreadable(_))), "{what}");
    }
}

#[test]
fn strange_files_and_newer_files_are_told_from_torn_ones() {
    assert!(matches!(Parcel::decode(&b"<testsuites/>"[..]), Err(SealedError::Foreign)));
    assert!(matches!(Parcel::decode(&b"tallyonce parcel 2\n....................."[..]), Err(SealedError::Newer)));
    assert!(matches!(Parcel::decode(&b""[..]), Err(SealedError::Torn { .. })));
    let mut newer = pack(push());
    newer.header.version = 2;
    assert!(matches!(Parcel::decode(newer.encode().unwrap()), Err(SealedError::Newer)));
}

#[test]
fn a_sealed_file_goes_anywhere_but_only_on_purpose() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sealed.push");
    Parcel::pack_for_any(Arc::new(push()), String::new()).unwrap().seal(&path).unwrap();
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(names, ["sealed.push"], "no temporary file stays");
    let read = Parcel::open_sealed(&path).unwrap();
    assert!(!belongs_to(&read.header, &destination()));
    let addressed = read.addressed_to(&destination());
    assert!(belongs_to(&addressed.header, &destination()));
    assert!(!belongs_to(&addressed.header, &Destination::parse("https://tests.example.org").unwrap()));
    assert_eq!(*addressed.push().unwrap(), push());
    assert!(matches!(Parcel::open_sealed(&folder.path().join("none")), Err(SealedError::Io { .. })));
}

#[test]
fn nothing_secret_is_in_a_parcel() {
    let header = serde_json::to_value(&pack(push()).header).unwrap();
    let names: Vec<_> = header.as_object().unwrap().keys().map(String::as_str).collect();
    assert!(!names.iter().any(|n| n.contains("token") || n.contains("auth") || n.contains("secret")), "{names:?}");
}
