//! Messages, attempts and external ids of a block. Must not know where large texts lie, only their digests.

use domain::{Attempt, Digest, ExternalId, Outcome, Status};

use super::block::{HAS_TEXT, duration_of, value_of};
use super::cursor::{Cursor, put_varint};
use super::{Damaged, LARGE_TEXT_BYTES, Packer, Unpacker};

const MESSAGE: u8 = 1;
const ATTEMPTS: u8 = 2;
const EXTERNAL_IDS: u8 = 4;

/// What the texts say of one item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Texts {
    /// Message of the final attempt.
    pub(crate) message: Option<String>,
    /// Attempts before it.
    pub(crate) attempts: Vec<Attempt>,
    /// Ids in other systems.
    pub(crate) external_ids: Vec<ExternalId>,
}

/// True if an outcome has an entry in the texts.
pub(super) fn has_text(outcome: &Outcome) -> bool {
    outcome.message.is_some() || !outcome.attempts.is_empty() || !outcome.external_ids.is_empty()
}

/// The texts of these outcomes.
pub(crate) fn pack_texts(outcomes: &[Outcome], packer: &mut Packer) -> Vec<u8> {
    let mut plain = Vec::new();
    for outcome in outcomes.iter().filter(|outcome| has_text(outcome)) {
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        plain.push(
            flag(outcome.message.is_some(), MESSAGE)
                | flag(!outcome.attempts.is_empty(), ATTEMPTS)
                | flag(!outcome.external_ids.is_empty(), EXTERNAL_IDS),
        );
        if let Some(message) = &outcome.message {
            put_text(message, &mut plain);
        }
        if !outcome.attempts.is_empty() {
            put_varint(outcome.attempts.len() as u64, &mut plain);
            outcome.attempts.iter().for_each(|attempt| put_attempt(attempt, &mut plain));
        }
        if !outcome.external_ids.is_empty() {
            put_varint(outcome.external_ids.len() as u64, &mut plain);
            for id in &outcome.external_ids {
                let id = id.to_string();
                put_varint(id.len() as u64, &mut plain);
                plain.extend_from_slice(id.as_bytes());
            }
        }
    }
    packer.frame(&plain)
}

fn put_attempt(attempt: &Attempt, into: &mut Vec<u8>) {
    into.push(attempt.status.code());
    put_varint(value_of(attempt.duration_us), into);
    into.push(u8::from(attempt.message.is_some()));
    if let Some(message) = &attempt.message {
        put_text(message, into);
    }
}

fn put_text(text: &str, into: &mut Vec<u8>) {
    let large = text.len() >= LARGE_TEXT_BYTES;
    put_varint((text.len() as u64) << 1 | u64::from(large), into);
    if large {
        into.extend_from_slice(&Digest::of(text.as_bytes()).0);
    } else {
        into.extend_from_slice(text.as_bytes());
    }
}

/// Texts of these outcomes that lie in rows of their own.
pub(crate) fn large_texts(outcomes: &[Outcome]) -> impl Iterator<Item = &str> {
    outcomes
        .iter()
        .flat_map(|outcome| outcome.message.iter().chain(outcome.attempts.iter().filter_map(|a| a.message.as_ref())))
        .map(String::as_str)
        .filter(|text| text.len() >= LARGE_TEXT_BYTES)
}

/// Back from [`pack_texts`]: gives place and texts of each wanted item that has any. `large` looks up a large text.
pub(crate) fn unpack_texts<E: From<Damaged>>(
    frame: &[u8],
    codes: &[u8],
    unpacker: &mut Unpacker,
    large: &mut dyn FnMut(Digest) -> Result<String, E>,
    wanted: &mut dyn FnMut(usize) -> bool,
    each: &mut dyn FnMut(usize, Texts),
) -> Result<(), E> {
    let plain = unpacker.frame(frame)?;
    let mut cursor = Cursor::new(&plain);
    for (at, _) in codes.iter().enumerate().filter(|(_, code)| **code & HAS_TEXT != 0) {
        let entry = read_entry(&mut cursor)?;
        if wanted(at) {
            each(at, entry.resolve(large)?);
        }
    }
    if cursor.is_empty() { Ok(()) } else { Err(Damaged("texts of more items than say so").into()) }
}

/// A text as it lies in the section.
enum Lying<'a> {
    Here(&'a str),
    Large(Digest),
}

impl Lying<'_> {
    fn resolve<E>(self, large: &mut dyn FnMut(Digest) -> Result<String, E>) -> Result<String, E> {
        match self {
            Lying::Here(text) => Ok(text.to_owned()),
            Lying::Large(digest) => large(digest),
        }
    }
}

struct Entry<'a> {
    message: Option<Lying<'a>>,
    attempts: Vec<(Status, u64, Option<Lying<'a>>)>,
    external_ids: Vec<&'a str>,
}

impl Entry<'_> {
    fn resolve<E>(self, large: &mut dyn FnMut(Digest) -> Result<String, E>) -> Result<Texts, E> {
        let mut texts = Texts::default();
        if let Some(message) = self.message {
            texts.message = Some(message.resolve(large)?);
        }
        for (status, value, message) in self.attempts {
            let message = message.map(|m| m.resolve(large)).transpose()?;
            texts.attempts.push(Attempt { status, duration_us: duration_of(value), message });
        }
        texts.external_ids = self.external_ids.into_iter().map(|id| ExternalId::from(id.to_owned())).collect();
        Ok(texts)
    }
}

fn read_entry<'a>(cursor: &mut Cursor<'a>) -> Result<Entry<'a>, Damaged> {
    let flags = cursor.byte()?;
    let mut entry = Entry { message: None, attempts: Vec::new(), external_ids: Vec::new() };
    if flags & MESSAGE != 0 {
        entry.message = Some(read_text(cursor)?);
    }
    if flags & ATTEMPTS != 0 {
        for _ in 0..cursor.varint()? {
            let status = Status::from_code(cursor.byte()?).ok_or(Damaged("an unknown status"))?;
            let value = cursor.varint()?;
            let message = if cursor.byte()? == 0 { None } else { Some(read_text(cursor)?) };
            entry.attempts.push((status, value, message));
        }
    }
    if flags & EXTERNAL_IDS != 0 {
        for _ in 0..cursor.varint()? {
            let length = cursor.varint()?;
            entry.external_ids.push(plain_text(cursor.take(length)?)?);
        }
    }
    Ok(entry)
}

fn read_text<'a>(cursor: &mut Cursor<'a>) -> Result<Lying<'a>, Damaged> {
    let value = cursor.varint()?;
    if value & 1 == 0 {
        return plain_text(cursor.take(value >> 1)?).map(Lying::Here);
    }
    let digest = cursor.take(32)?.try_into().map_err(|_| Damaged("a digest that is cut"))?;
    Ok(Lying::Large(Digest(digest)))
}

fn plain_text(bytes: &[u8]) -> Result<&str, Damaged> {
    std::str::from_utf8(bytes).map_err(|_| Damaged("a text that is not UTF-8"))
}
