//! How entries and outcomes lie in the temporary file: a head of fixed length, of which alone a first pass needs
//! something, then the rest. Must not know where records are kept.
//!
//! Record: length in four bytes, head (hash 16; file, document and number in the file 4 each; flags 1), texts cut,
//! suite, line; durations, name, message, attempts, ids. Numbers in the rest are in groups of seven bits, little end
//! first. The file that is read back is this process's own, so nothing here has a version.

use domain::{Attempt, DurationUs, ExternalId, ItemHash, ItemName, Outcome, Status};

use super::window::LENGTH_BYTES;
use crate::collect::Entry;
use crate::event::{Place, Repeats};

/// The file of a record that is a folded outcome.
pub(super) const FOLDED: u32 = u32::MAX;

const HEAD_BYTES: usize = 29;
const REPEATS: [Repeats; 6] = [
    Repeats::Ordinals,
    Repeats::Attempts,
    Repeats::AttemptsAfterBad,
    Repeats::Pytest,
    Repeats::Worst,
    Repeats::Programs,
];

/// What a record begins with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) hash: ItemHash,
    pub(super) file: u32,
    pub(super) document: u32,
    /// The entry's number in its file.
    pub(super) number: u32,
    flags: u8,
    pub(super) cut: u32,
}

impl Head {
    pub(super) fn status(self) -> Status {
        status_of(self.flags)
    }

    pub(super) fn is_flaky(self) -> bool {
        self.flags & FLAKY != 0
    }
}

const VERDICT: u8 = 1 << 2;
const FLAKY: u8 = 1 << 3;
const REPEATS_SHIFT: u32 = 4;

/// The status in the lowest two bits, of which each value is one.
fn status_of(flags: u8) -> Status {
    Status::ALL[usize::from(flags & 0b11)]
}

/// About how many bytes an entry takes in memory.
pub(super) fn held_bytes(entry: &Entry) -> usize {
    /// What an allocator adds to each piece.
    const PIECE: usize = 16;
    let text = |text: &Option<String>| text.as_ref().map_or(0, |text| text.capacity() + PIECE);
    let outcome = &entry.outcome;
    let attempts = outcome.attempts.iter().map(|attempt| size_of::<Attempt>() + text(&attempt.message));
    let ids = outcome.external_ids.iter().map(|id| size_of::<ExternalId>() + id.id().len() + PIECE);
    let name = outcome.item.encoded().len() + PIECE;
    size_of::<Entry>() + name + text(&outcome.message) + attempts.sum::<usize>() + ids.sum::<usize>()
}

/// Writes an entry; `other` is its duration if its file has decimal commas.
pub(super) fn write_entry(into: &mut Vec<u8>, entry: &Entry, other: Option<DurationUs>, file: u32, number: u32) {
    let place = &entry.place;
    let verdict = if entry.has_verdict { VERDICT } else { 0 };
    let flags = verdict | (code_of(entry.repeats) << REPEATS_SHIFT);
    let head = Head { hash: entry.hash, file, document: place.document, number, flags, cut: entry.cut };
    write(into, head, (place.suite, place.line), &entry.outcome, other);
}

/// Writes a folded outcome.
pub(super) fn write_outcome(into: &mut Vec<u8>, hash: ItemHash, outcome: &Outcome) {
    let head = Head { hash, file: FOLDED, document: 0, number: 0, flags: 0, cut: 0 };
    write(into, head, (0, 0), outcome, None);
}

fn write(into: &mut Vec<u8>, head: Head, (suite, line): (u32, u64), outcome: &Outcome, other: Option<DurationUs>) {
    let flaky = if outcome.is_flaky() { FLAKY } else { 0 };
    into.clear();
    into.extend_from_slice(&[0; LENGTH_BYTES]);
    into.extend_from_slice(&head.hash.0);
    for number in [head.file, head.document, head.number] {
        into.extend_from_slice(&number.to_le_bytes());
    }
    into.push(head.flags | flaky | outcome.status.code());
    for number in [u64::from(head.cut), u64::from(suite), line] {
        put(into, number);
    }
    put_duration(into, outcome.duration_us);
    put_duration(into, other);
    put_bytes(into, outcome.item.encoded());
    put_text(into, outcome.message.as_deref());
    put(into, outcome.attempts.len() as u64);
    for attempt in &outcome.attempts {
        into.push(attempt.status.code());
        put_duration(into, attempt.duration_us);
        put_text(into, attempt.message.as_deref());
    }
    put(into, outcome.external_ids.len() as u64);
    for id in &outcome.external_ids {
        put_bytes(into, id.to_string().as_bytes());
    }
    let length = (into.len() - LENGTH_BYTES) as u32;
    into[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
}

fn code_of(repeats: Repeats) -> u8 {
    match repeats {
        Repeats::Ordinals => 0,
        Repeats::Attempts => 1,
        Repeats::AttemptsAfterBad => 2,
        Repeats::Pytest => 3,
        Repeats::Worst => 4,
        Repeats::Programs => 5,
    }
}

fn put(into: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

/// 0 is none, so every duration is one more.
fn put_duration(into: &mut Vec<u8>, duration: Option<DurationUs>) {
    put(into, duration.map_or(0, |us| us.0.saturating_add(1)));
}

fn put_bytes(into: &mut Vec<u8>, bytes: &[u8]) {
    put(into, bytes.len() as u64);
    into.extend_from_slice(bytes);
}

/// 0 is none, so every length is one more.
fn put_text(into: &mut Vec<u8>, text: Option<&str>) {
    put(into, text.map_or(0, |text| text.len() as u64 + 1));
    into.extend_from_slice(text.unwrap_or_default().as_bytes());
}

/// What is read is no record of ours.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Foreign;

/// Reads the beginning of a record.
pub(super) fn head(record: &[u8]) -> Result<Head, Foreign> {
    let (head, rest) = record.split_at_checked(HEAD_BYTES).ok_or(Foreign)?;
    let number = |at: usize| head[at..].first_chunk().map_or(0, |four| u32::from_le_bytes(*four));
    Ok(Head {
        hash: ItemHash(*head.first_chunk().ok_or(Foreign)?),
        file: number(16),
        document: number(20),
        number: number(24),
        flags: head[28],
        cut: Rest(rest).number()? as u32,
    })
}

/// Reads a whole entry; `comma` if its file has decimal commas.
pub(super) fn entry(record: &[u8], comma: bool) -> Result<Entry, Foreign> {
    let head = head(record)?;
    let (suite, line, outcome) = parts(record, head, comma)?;
    let place = Place { document: head.document, suite, stamp: 0, line };
    let repeats = *REPEATS.get(usize::from(head.flags >> REPEATS_SHIFT)).ok_or(Foreign)?;
    Ok(Entry { outcome, hash: head.hash, repeats, place, has_verdict: head.flags & VERDICT != 0, cut: head.cut })
}

/// Reads an outcome, folded or not; `comma` if its file has decimal commas.
pub(super) fn outcome(record: &[u8], head: Head, comma: bool) -> Result<Outcome, Foreign> {
    Ok(parts(record, head, comma)?.2)
}

fn parts(record: &[u8], head: Head, comma: bool) -> Result<(u32, u64, Outcome), Foreign> {
    let mut rest = Rest(record.get(HEAD_BYTES..).ok_or(Foreign)?);
    let _cut = rest.number()?;
    let (suite, line) = (rest.number()? as u32, rest.number()?);
    let (thousands, other) = (rest.duration()?, rest.duration()?);
    let item = ItemName::decode(rest.bytes()?).ok_or(Foreign)?;
    let message = rest.text()?;
    let count = rest.number()?;
    let attempts = (0..count).map(|_| rest.attempt()).collect::<Result<_, _>>()?;
    let count = rest.number()?;
    let external_ids =
        (0..count).map(|_| rest.bytes().and_then(string).map(ExternalId::from)).collect::<Result<_, _>>()?;
    let duration_us = other.filter(|_| comma).or(thousands);
    Ok((suite, line, Outcome { item, status: head.status(), duration_us, message, attempts, external_ids }))
}

/// What is not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: u64) -> Result<&'a [u8], Foreign> {
        let count = usize::try_from(count).map_err(|_| Foreign)?;
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Foreign)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, Foreign> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(Foreign)?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Foreign)
    }

    fn duration(&mut self) -> Result<Option<DurationUs>, Foreign> {
        Ok(self.number()?.checked_sub(1).map(DurationUs))
    }

    fn bytes(&mut self) -> Result<&'a [u8], Foreign> {
        let count = self.number()?;
        self.take(count)
    }

    fn text(&mut self) -> Result<Option<String>, Foreign> {
        self.number()?.checked_sub(1).map(|count| string(self.take(count)?)).transpose()
    }

    fn attempt(&mut self) -> Result<Attempt, Foreign> {
        let status = status_of(self.take(1)?[0]);
        Ok(Attempt { status, duration_us: self.duration()?, message: self.text()? })
    }
}

fn string(bytes: &[u8]) -> Result<String, Foreign> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Foreign)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn attempt() -> impl Strategy<Value = Attempt> {
        (0..4_u8, any::<Option<u64>>(), any::<Option<String>>()).prop_map(|(status, us, message)| Attempt {
            status: Status::from_code(status).unwrap(),
            duration_us: us.map(|us| DurationUs(us >> 1)),
            message,
        })
    }

    fn entries() -> impl Strategy<Value = Entry> {
        let texts = (prop::collection::vec(attempt(), 0..3), prop::collection::vec(any::<String>(), 0..3));
        (any::<[String; 2]>(), attempt(), texts, 0..6_usize, any::<(u32, u32, u64, bool, u32)>()).prop_map(
            |([suite, name], last, (attempts, external_ids), repeats, (document, suite_number, line, verdict, cut))| {
                let item = ItemName::new([suite], None, &name);
                let outcome = Outcome {
                    item: item.clone(),
                    status: last.status,
                    duration_us: last.duration_us,
                    message: last.message,
                    attempts,
                    external_ids: external_ids.into_iter().map(ExternalId::from).collect(),
                };
                let place = Place { document, suite: suite_number, stamp: 0, line };
                Entry { hash: item.hash(), outcome, repeats: REPEATS[repeats], place, has_verdict: verdict, cut }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_comes_back(given in entries(), other in any::<Option<u32>>(), file in any::<u32>(), number in any::<u32>()) {
            let other = other.map(|us| DurationUs(u64::from(us)));
            let mut record = Vec::new();
            write_entry(&mut record, &given, other, file, number);
            let record = &record[LENGTH_BYTES..];
            let head = head(record).unwrap();
            prop_assert_eq!((head.file, head.number, head.is_flaky()), (file, number, given.outcome.is_flaky()));
            let back = entry(record, false).unwrap();
            prop_assert_eq!(format!("{:?}", &back), format!("{:?}", &given));
            prop_assert_eq!(outcome(record, head, true).unwrap().duration_us, other.or(given.outcome.duration_us));
            for cut in 0..record.len() {
                prop_assert!(entry(&record[..cut], false).is_err());
            }
        }
    }
}
