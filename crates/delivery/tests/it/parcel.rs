//! Parcels: everything of a push comes back, damage never does.

use std::io::Write;
use std::path::Path;

use delivery::{
    BodyPlace, Contents, Destination, Form, Header, Label, Packing, Parcel, Scratch, SealedError, UnpackError,
    belongs_to,
};
use domain::content::chunk_of;
use domain::{Attempt, Digest, DurationUs, ExternalId, ItemName, Outcome, Outcomes, Push, Status, limits};
use proptest::prelude::*;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

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
        external_ids: external_ids.into_iter().map(ExternalId::from).collect(),
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

/// Through a file, and back.
fn filed(parcel: &Parcel) -> Parcel {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.push");
    parcel.seal(&path).unwrap();
    // An open file outlives its name.
    Parcel::open_sealed(&path).unwrap()
}

/// Its file.
pub(crate) fn bytes_of(parcel: &Parcel) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.push");
    parcel.seal(&path).unwrap();
    std::fs::read(path).unwrap()
}

fn open(bytes: &[u8]) -> Result<Parcel, SealedError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.push");
    std::fs::write(&path, bytes).unwrap();
    Parcel::open_sealed(&path)
}

/// The second file form, written by hand.
fn second_form(header: &Header, bodies: &[u8]) -> Vec<u8> {
    let json = serde_json::to_vec(header).unwrap();
    let length = (json.len() as u64).to_le_bytes();
    trailed(&[b"tallyonce parcel 2\n", bodies, &json, &length].concat())
}

fn trailed(content: &[u8]) -> Vec<u8> {
    let (length, digest) = ((content.len() as u64).to_le_bytes(), Digest::of(content).0);
    [content, &length, &digest, b"end\n"].concat()
}

/// The first file form, written by hand: its header knows no chunks, and its content digest is of an older kind.
fn first_form(parcel: &Parcel) -> Vec<u8> {
    let mut header = serde_json::to_value(&parcel.header).unwrap();
    let fields = header.as_object_mut().unwrap();
    for newer in ["outcome_digest", "form", "chunks", "items"] {
        fields.remove(newer);
    }
    fields.insert("version".to_owned(), Value::from(1));
    fields.insert("content".to_owned(), Value::from(Digest::of(b"an older definition").to_string()));
    let json = serde_json::to_vec(&header).unwrap();
    let length = (json.len() as u32).to_le_bytes();
    let body = parcel.whole_body().unwrap();
    trailed(&[b"tallyonce parcel 1\n", length.as_slice(), &json, &body].concat())
}

/// The same header with another body.
fn with_body(header: &Header, body: &[u8]) -> Parcel {
    let sha256 = Digest(Sha256::digest(body).into());
    let outcomes = header.outcomes as u32;
    let place = BodyPlace { at: 0, bytes: body.len() as u64, sha256, outcomes };
    open(&second_form(&Header { chunks: vec![place], ..header.clone() }, body)).unwrap()
}

/// More than goes into one request: by number, with a few texts.
pub(crate) fn many(number: usize) -> Vec<Outcome> {
    let one = |n| {
        let message = (n % 97 == 0).then(|| format!("expected {n}"));
        Outcome { message, ..outcome(&format!("case {n}"), Status::ALL[n % 4]) }
    };
    (0..number).map(one).collect()
}

/// Few, but with texts that don't get smaller.
fn wordy(number: usize) -> Vec<Outcome> {
    let text = |n: usize| {
        let mut noise = vec![0; limits::TEXT_BYTES_MAX];
        blake3::Hasher::new().update(&n.to_le_bytes()).finalize_xof().fill(&mut noise);
        noise.iter().map(|byte| char::from(b' ' + byte % 95)).collect()
    };
    (0..number).map(|n| Outcome { message: Some(text(n)), ..outcome(&format!("case {n}"), Status::Failed) }).collect()
}

fn packed_in(folder: &Path, push: &Push) -> Parcel {
    let packing = Packing {
        destination: Some(&destination()),
        created_at: String::new(),
        scratch: Scratch::Folder(folder),
        chunk_outcomes: None,
    };
    packing.pack(Label::of(push), Contents::Held(push.outcomes.clone())).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_push_comes_back_as_it_was(push in any_push()) {
        let parcel = pack(push.clone());
        let read = filed(&parcel);
        prop_assert_eq!(&read.header, &parcel.header);
        prop_assert_eq!(read.whole_body().unwrap(), parcel.whole_body().unwrap());
        prop_assert_eq!(&*read.push().unwrap(), &push);
        read.check().unwrap();
    }

    #[test]
    fn so_it_does_from_a_file_of_the_first_form(push in any_push()) {
        let parcel = pack(push.clone());
        let read = open(&first_form(&parcel)).unwrap();
        prop_assert_eq!(&*read.push().unwrap(), &push);
        prop_assert_eq!(&read.header, &parcel.header);
        prop_assert_eq!(&filed(&read).header, &parcel.header);
    }

    #[test]
    fn so_it_does_in_chunks_however_often_they_are_halved(push in any_push(), halvings in 0..6_usize) {
        let folder = tempfile::tempdir().unwrap();
        let mut parcel = pack(push.clone());
        for _ in 0..halvings {
            match parcel.smaller(Scratch::Folder(folder.path())).unwrap() {
                Some(finer) => parcel = filed(&finer),
                None => break,
            }
        }
        prop_assert_eq!(&*parcel.push().unwrap(), &push);
        parcel.check().unwrap();
        if let Form::Chunks { bits } = parcel.header.form {
            prop_assert!(bits <= domain::content::leaf_bits(parcel.header.outcomes));
            let manifest = parcel.manifest().unwrap();
            prop_assert_eq!(manifest.check(), Ok(()));
            let items = manifest.items.unwrap();
            prop_assert_eq!(&items.hashes, push.outcomes.hashes());
        }
    }

    #[test]
    fn one_changed_bit_is_always_noticed(at in any::<prop::sample::Index>(), bit in 0..8_u8, first in any::<bool>()) {
        let mut bytes = if first { first_form(&pack(push())) } else { bytes_of(&pack(push())) };
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(open(&bytes).is_err());
    }
}

#[test]
fn a_large_push_is_cut_and_its_chunks_are_the_same_whatever_the_order() {
    let folder = tempfile::tempdir().unwrap();
    let outcomes = many(limits::ONE_SHOT_OUTCOMES_MAX + 1);
    let mut other = outcomes.clone();
    other.reverse();
    other.swap(7, 70_00);
    let (first, second) =
        (packed_in(folder.path(), &push_of(outcomes.clone())), packed_in(folder.path(), &push_of(other)));
    assert_eq!(first.header.form, Form::Chunks { bits: 3 });
    assert_eq!(first.header, second.header);
    let manifest = first.manifest().unwrap();
    assert_eq!(manifest.digest(), second.manifest().unwrap().digest());
    assert_eq!(manifest.check(), Ok(()));
    // Another content is another manifest, and only the chunk of its item differs.
    let mut changed = outcomes;
    changed[5].status = Status::Errored;
    let chunk = chunk_of(changed[5].item.hash(), 3) as usize;
    let third = packed_in(folder.path(), &push_of(changed));
    assert_ne!(manifest.digest(), third.manifest().unwrap().digest());
    let differs = |at: &usize| first.header.chunks[*at].sha256 != third.header.chunks[*at].sha256;
    assert_eq!((0..8).filter(differs).collect::<Vec<_>>(), [chunk]);
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "no temporary file has a name");
}

#[test]
fn texts_are_cut_by_their_size_and_the_items_go_along() {
    let folder = tempfile::tempdir().unwrap();
    let push = push_of(wordy(256));
    let parcel = packed_in(folder.path(), &push);
    assert_eq!(parcel.header.form, Form::Chunks { bits: 2 }, "16 MiB of text and a little");
    assert!(parcel.header.items.is_some());
    let read = filed(&parcel);
    assert_eq!(read.manifest().unwrap(), parcel.manifest().unwrap());
    assert_eq!(*read.push().unwrap(), push);
    let body = read.manifest_body(true).unwrap();
    assert!(body.items.is_some() && read.manifest_body(false).unwrap().items.is_none());
}

#[test]
fn one_outcome_can_be_too_large_for_one_request_and_is_one_chunk() {
    let long = Outcome { message: Some("x".repeat(10)), ..outcome("a", Status::Failed) };
    let mut parcel = pack(push_of(vec![long]));
    assert_eq!(parcel.header.form, Form::Whole);
    parcel = parcel.smaller(Scratch::Memory).unwrap().unwrap();
    assert_eq!((parcel.header.form, parcel.header.chunks.len()), (Form::Chunks { bits: 0 }, 1));
    assert!(parcel.smaller(Scratch::Memory).unwrap().is_none(), "smaller than a leaf of the digest");
}

#[test]
fn a_damaged_chunk_is_found_when_it_is_read() {
    let mut halved = pack(push_of(many(300))).smaller(Scratch::Memory).unwrap().unwrap();
    halved = halved.smaller(Scratch::Memory).unwrap().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.push");
    halved.seal(&path).unwrap();
    let read = Parcel::open_sealed(&path).unwrap();
    read.check().unwrap();
    // Behind our back, after it was found whole.
    let place = read.header.chunks[2];
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[19 + place.at as usize + 9] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(read.body(&read.header.chunks[1]).is_ok());
    assert!(matches!(read.body(&place), Err(UnpackError::Mismatch { what: "SHA-256", .. })));
    assert!(read.check().is_err());
    assert!(matches!(Parcel::open_sealed(&path), Err(SealedError::Torn { .. })));
}

#[test]
fn chunks_that_are_not_what_the_header_says_are_refused() {
    let halved = pack(push_of(many(100))).smaller(Scratch::Memory).unwrap().unwrap();
    let mut swapped = halved.header.clone();
    swapped.chunks.swap(0, 1);
    let bodies: Vec<u8> = halved.header.chunks.iter().flat_map(|place| halved.body(place).unwrap()).collect();
    let items = halved.header.items.map(|place| halved.body(&place).unwrap()).unwrap();
    let parcel = open(&second_form(&swapped, &[bodies.as_slice(), &items].concat())).unwrap();
    assert!(matches!(parcel.chunk(0), Err(UnpackError::Mismatch { what: "chunk of an item", .. })));
    let mut lying = halved.header.clone();
    lying.counts.failed += 1;
    let parcel = open(&second_form(&lying, &[bodies.as_slice(), &items].concat())).unwrap();
    assert!(matches!(parcel.check(), Err(UnpackError::Mismatch { what: "counts", .. })));
    // A place beyond the bodies is no place.
    let mut beyond = halved.header.clone();
    beyond.chunks[1].bytes += 1 << 40;
    assert!(matches!(open(&second_form(&beyond, &bodies)), Err(SealedError::Torn { .. })));
}

#[test]
fn a_torn_file_is_noticed_wherever_it_ends() {
    let halved = pack(push_of(many(60))).smaller(Scratch::Memory).unwrap().unwrap();
    for whole in [bytes_of(&halved), first_form(&pack(push()))] {
        for length in 0..whole.len() {
            assert!(matches!(open(&whole[..length]), Err(SealedError::Torn { .. })), "cut to {length} bytes");
        }
        assert!(matches!(open(&[whole.as_slice(), b"x"].concat()), Err(SealedError::Torn { .. })));
        assert!(open(&whole).is_ok());
    }
}

#[test]
fn a_body_of_another_push_is_refused() {
    let mine = pack(push());
    let other = pack(push_of(vec![outcome("works", Status::Passed), outcome("breaks", Status::Passed)]));
    let mixed = with_body(&mine.header, &other.whole_body().unwrap());
    assert!(matches!(mixed.push(), Err(UnpackError::Mismatch { what: "content digest", .. })));
    let mut lying = mine.header.clone();
    lying.counts.failed = 0;
    let lying = with_body(&lying, &mine.whole_body().unwrap());
    assert!(matches!(lying.push(), Err(UnpackError::Mismatch { what: "counts", .. })));
}

#[test]
fn a_small_body_that_inflates_without_end_is_refused_early() {
    let blanks = vec![b' '; 1 << 20];
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 19).unwrap();
    for _ in 0..64 {
        encoder.write_all(&blanks).unwrap();
    }
    let body = encoder.finish().unwrap();
    assert!(body.len() < 20_000, "{}", body.len());
    let parcel = with_body(&pack(push()).header, &body);
    assert!(matches!(parcel.push(), Err(UnpackError::TooLarge { limit }) if limit < 32 << 20));
}

#[test]
fn bodies_that_are_no_push_are_unreadable() {
    let whole = pack(push());
    let body = whole.whole_body().unwrap();
    let json = zstd::decode_all(&*body).unwrap();
    let spoiled = |json: &[u8]| zstd::encode_all(json, 3).unwrap();
    let text = String::from_utf8(json.clone()).unwrap();
    let table = [
        ("no zstd", b"{}".to_vec()),
        ("cut", body[..body.len() - 5].to_vec()),
        ("more behind it", spoiled(&[json.as_slice(), b"{}"].concat())),
        ("newer format", spoiled(text.replace("\"tallyonce\":1", "\"tallyonce\":2").as_bytes())),
        ("unknown field", spoiled(text.replace("\"files\"", "\"fyles\"").as_bytes())),
    ];
    for (what, body) in table {
        let parcel = with_body(&whole.header, &body);
        assert!(matches!(parcel.push(), Err(UnpackError::Unreadable(_))), "{what}");
    }
}

#[test]
fn the_body_is_what_the_wire_format_says() {
    let push = push();
    let body = pack(push.clone()).whole_body().unwrap();
    let read: domain::wire::PushBody = serde_json::from_slice(&zstd::decode_all(&*body).unwrap()).unwrap();
    assert_eq!((read.files, read.report), (push.files, Some(push.report)));
    assert_eq!(Outcomes::from_unordered(read.outcomes).unwrap(), push.outcomes);
}

#[test]
fn strange_files_and_newer_files_are_told_from_torn_ones() {
    assert!(matches!(open(b"<testsuites/>"), Err(SealedError::Foreign)));
    assert!(matches!(open(b"tallyonce parcel 3\n....................."), Err(SealedError::Newer)));
    assert!(matches!(open(b""), Err(SealedError::Torn { .. })));
    let whole = pack(push());
    let newer = second_form(&Header { version: 3, ..whole.header.clone() }, &whole.whole_body().unwrap());
    assert!(matches!(open(&newer), Err(SealedError::Newer)));
}

#[test]
fn a_sealed_file_goes_anywhere_but_only_on_purpose() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sealed.push");
    let packing =
        Packing { destination: None, created_at: String::new(), scratch: Scratch::Memory, chunk_outcomes: None };
    packing.pack(Label::of(&push()), Contents::Held(push().outcomes)).unwrap().seal(&path).unwrap();
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

fn packed(push: &Push, scratch: Scratch<'_>, chunk_outcomes: Option<u64>) -> Parcel {
    let packing = Packing { destination: None, created_at: String::new(), scratch, chunk_outcomes };
    packing.pack(Label::of(push), Contents::Held(push.outcomes.clone())).unwrap()
}

#[test]
fn what_is_only_counted_is_nowhere() {
    let push = push_of(many(limits::ONE_SHOT_OUTCOMES_MAX + 1));
    let counted = packed(&push, Scratch::Nowhere, None);
    assert_eq!((counted.header.chunks.len(), counted.header.counts), (8, push.outcomes.counts()));
    assert!(counted.body(&counted.header.chunks[0]).is_err());
}

#[test]
fn a_small_push_is_cut_where_its_sender_wants_it() {
    let push = push_of(many(100));
    let packed = |chunk_outcomes| packed(&push, Scratch::Memory, chunk_outcomes).header;
    assert_eq!(packed(Some(100)).form, Form::Whole);
    assert_eq!(packed(Some(99)).form, Form::Chunks { bits: 1 });
    assert_eq!(packed(Some(1)).form, Form::Chunks { bits: 3 }, "no smaller than the leaves of the digest");
    assert_eq!(packed(Some(1)).content, packed(None).content);
}

#[test]
fn nothing_secret_is_in_a_parcel() {
    let header = serde_json::to_value(&pack(push()).header).unwrap();
    let names: Vec<_> = header.as_object().unwrap().keys().map(String::as_str).collect();
    assert!(!names.iter().any(|n| n.contains("token") || n.contains("auth") || n.contains("secret")), "{names:?}");
}
