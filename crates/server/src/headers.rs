//! Headers of requests and answers in their structured-field forms (RFC 9651, RFC 9530, RFC 7240). Must not know what a
//! key is made of.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use domain::wire::names;
use domain::{Counts, Digest, Executor, Incarnation, Ordinal, ProblemCode, PushKey, limits};
use http::{HeaderMap, header};
use percent_encoding::percent_decode;
use sha2::{Digest as _, Sha256, Sha512};

use crate::config::BodyLimits;
use crate::problem::{Failure, malformed};

/// How to choose a key, in one sentence; ends both key problems.
const CHOOSE_KEY: &str = "Choose a value that is the same in every retry of this work and different for other work, such \
    as gh-run-42-shard-1: pipeline run, job and shard, never an attempt number, a time, a random value or a commit. \
    Nothing was recorded.";

/// The one value of a header; `Err` if it comes twice or is not text.
pub(crate) fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, String> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err("the header is given more than once".to_owned());
    }
    first.to_str().map(|text| Some(text.trim())).map_err(|_| "the header is not visible ASCII".to_owned())
}

/// The idempotency key: a structured-field string, or a bare token, which is equal.
pub(crate) fn key(headers: &HeaderMap) -> Result<PushKey, Failure> {
    let bad = |why: &str| Failure::new(ProblemCode::KeyMalformed, format!("Idempotency-Key: {why}. {CHOOSE_KEY}"));
    let text = single(headers, names::H_KEY).map_err(|why| bad(&why))?.unwrap_or_default();
    let bare = match text.strip_prefix('"') {
        None => text,
        Some(rest) => {
            rest.strip_suffix('"').ok_or_else(|| bad("the quoted string is not closed, or something follows it"))?
        }
    };
    if bare.is_empty() {
        let words = format!("The request has no Idempotency-Key header, or an empty one. {CHOOSE_KEY}");
        return Err(Failure::new(ProblemCode::KeyMissing, words));
    }
    PushKey::parse(bare).map_err(|why| bad(&why.to_string()))
}

/// The ordinal (`Push-Attempt`).
pub(crate) fn attempt(headers: &HeaderMap) -> Result<Option<Ordinal>, Failure> {
    read(headers, names::H_ATTEMPT, |text| {
        text.parse().map(Ordinal).map_err(|_| format!("{text:?} is not a whole number from 0"))
    })
}

/// The executor, percent-encoded (`Push-Executor`).
pub(crate) fn executor(headers: &HeaderMap) -> Result<Option<Executor>, Failure> {
    read(headers, names::H_EXECUTOR, |text| {
        let decoded = percent_decode(text.as_bytes()).decode_utf8().map_err(|e| e.to_string())?;
        Executor::parse(&decoded).map_err(|e| e.to_string())
    })
}

/// The client process (`Push-Incarnation`).
pub(crate) fn incarnation(headers: &HeaderMap) -> Result<Option<Incarnation>, Failure> {
    read(headers, names::H_INCARNATION, |text| Incarnation::parse(text).map_err(|e| e.to_string()))
}

/// The entity tag that must still be the newest; `*` asks for none.
pub(crate) fn if_match(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let tag = read(headers, header::IF_MATCH.as_str(), |text| {
        let quoted = text.len() > 2 && text.starts_with('"') && text.ends_with('"') && !text.contains(',');
        (quoted || text == "*").then(|| text.to_owned()).ok_or_else(|| format!("{text:?} is not one strong entity tag"))
    })?;
    Ok(tag.filter(|tag| tag != "*"))
}

/// Seconds that an attaching client wants to wait (`Prefer: wait=N`), cut to the bound; other preferences are ignored.
pub(crate) fn prefer_wait(headers: &HeaderMap) -> u64 {
    let preferences = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    let mut waits = preferences.flat_map(|text| text.split([',', ';'])).filter_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("wait").then(|| value.trim().trim_matches('"').parse::<u64>().ok())?
    });
    waits.next().unwrap_or(0).min(limits::ATTACH_WAIT_SECONDS_MAX)
}

fn read<T>(headers: &HeaderMap, name: &str, with: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, Failure> {
    let text = single(headers, name).map_err(|why| malformed(name, why))?;
    text.map(|text| with(text).map_err(|why| malformed(name, why))).transpose()
}

/// What `Content-Digest` promises about the bytes of the body as they travel; unknown algorithms are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ContentDigest {
    sha256: Option<Vec<u8>>,
    sha512: Option<Vec<u8>>,
}

impl ContentDigest {
    pub(crate) fn parse(headers: &HeaderMap) -> Result<Self, Failure> {
        const NAME: &str = "content-digest";
        let mut digest = Self::default();
        for value in headers.get_all(NAME) {
            let text = value.to_str().map_err(|_| malformed(NAME, "it is not visible ASCII"))?;
            for member in text.split(',').map(str::trim).filter(|member| !member.is_empty()) {
                let bytes = |value: &str| {
                    let inner = value.trim().strip_prefix(':')?.strip_suffix(':')?;
                    BASE64.decode(inner).ok()
                };
                let (algorithm, value) = member.split_once('=').unwrap_or((member, ""));
                let (slot, length) = match algorithm.trim() {
                    "sha-256" => (&mut digest.sha256, 32),
                    "sha-512" => (&mut digest.sha512, 64),
                    _ => continue,
                };
                let given = bytes(value).filter(|bytes| bytes.len() == length);
                let why = || malformed(NAME, format!("{member:?} is not {algorithm}=:BASE64: of {length} octets"));
                *slot = Some(given.ok_or_else(why)?);
            }
        }
        Ok(digest)
    }

    /// The SHA-256 that was promised, where it has to be.
    pub(crate) fn needed(&self) -> Result<Digest, Failure> {
        let given: Option<[u8; 32]> = self.sha256.as_ref().and_then(|bytes| bytes.as_slice().try_into().ok());
        let why =
            "it is missing; a chunk needs sha-256=:BASE64: of its body as it travels, which the manifest names too";
        given.map(Digest).ok_or_else(|| malformed("content-digest", why))
    }

    /// True if the bytes are those that were promised.
    pub(crate) fn fits(&self, body: &[u8]) -> bool {
        self.sha256.as_ref().is_none_or(|given| Sha256::digest(body).as_slice() == given)
            && self.sha512.as_ref().is_none_or(|given| Sha512::digest(body).as_slice() == given)
    }
}

/// The bounds of a staged push, as a structured-field dictionary: bytes of a chunk as it travels, chunks, bytes of all of
/// them, and seconds until an epoch is idle and until one that stays so is collected.
pub(crate) fn limits(of: &BodyLimits) -> String {
    let (chunk, chunks) = (of.body_bytes, limits::CHUNKS_MAX);
    let size = chunk.saturating_mul(chunks);
    let (idle, age) = (limits::EPOCH_IDLE_MS / 1000, limits::STAGING_LIFETIME_MS / 1000);
    format!("max-chunk={chunk}, max-chunks={chunks}, max-size={size}, idle={idle}, staging-age={age}")
}

/// Counts as a structured-field dictionary.
pub(crate) fn counts(counts: &Counts) -> String {
    let Counts { total, passed, failed, errored, skipped, flaky } = counts;
    format!("total={total}, passed={passed}, failed={failed}, errored={errored}, skipped={skipped}, flaky={flaky}")
}

/// Octets of all warnings together: proxies commonly refuse an answer whose head is beyond 4 KiB, and a receipt that
/// never passes would be asked for without end.
const WARNINGS_BYTES_MAX: usize = 2048;
/// Characters of one warning.
const WARNING_CHARS_MAX: usize = 400;

/// Sentences as a structured-field list of strings, within bounds. Strings hold printable ASCII; anything else is written
/// `\u{…}` with the backslash doubled as the grammar wants it.
pub(crate) fn strings(sentences: &[String]) -> String {
    let mut list = String::new();
    for (at, sentence) in sentences.iter().enumerate() {
        let one = string(sentence);
        if list.len() + one.len() > WARNINGS_BYTES_MAX {
            let _ = write!(list, ", \"and {} more\"", sentences.len() - at);
            break;
        }
        list.push_str(if at == 0 { "" } else { ", " });
        list.push_str(&one);
    }
    list
}

fn string(sentence: &str) -> String {
    let mut text = String::from("\"");
    for c in sentence.chars().take(WARNING_CHARS_MAX) {
        match c {
            '"' | '\\' => {
                text.push('\\');
                text.push(c);
            }
            ' '..='~' => text.push(c),
            other => {
                let _ = write!(text, "\\\\u{{{:x}}}", u32::from(other));
            }
        }
    }
    if sentence.chars().nth(WARNING_CHARS_MAX).is_some() {
        text.push_str("...");
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn with(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        map
    }

    fn key_of(value: &str) -> Result<String, ProblemCode> {
        key(&with(&[("idempotency-key", value)])).map(String::from).map_err(|f| f.problem.code)
    }

    #[test]
    fn a_quoted_key_equals_a_bare_one() {
        assert_eq!(key_of("\"run-42:shard:1\""), key_of("run-42:shard:1"));
        assert_eq!(key_of("v:a=1,b=2").as_deref(), Ok("v:a=1,b=2"));
    }

    #[test]
    fn a_key_that_could_be_two_is_none() {
        assert_eq!(key_of("\"a\", \"b\""), Err(ProblemCode::KeyMalformed));
        assert_eq!(key_of("a, b"), Err(ProblemCode::KeyMalformed));
        assert_eq!(key_of("\"a"), Err(ProblemCode::KeyMalformed));
        assert_eq!(key_of("\"a\";p=1"), Err(ProblemCode::KeyMalformed));
        assert_eq!(key_of(&"a".repeat(256)), Err(ProblemCode::KeyMalformed));
        assert_eq!(key_of("\"\""), Err(ProblemCode::KeyMissing));
        let twice = key(&with(&[("idempotency-key", "a"), ("idempotency-key", "a")]));
        assert_eq!(twice.map_err(|f| f.problem.code), Err(ProblemCode::KeyMalformed));
    }

    #[test]
    fn preferences_are_read_and_bounded() {
        assert_eq!(prefer_wait(&with(&[("prefer", "respond-async, wait=5")])), 5);
        assert_eq!(prefer_wait(&with(&[("prefer", "WAIT=\"500\"")])), limits::ATTACH_WAIT_SECONDS_MAX);
        assert_eq!(prefer_wait(&with(&[("prefer", "wait=-1")])), 0);
    }

    #[test]
    fn digests_are_checked_and_unknown_ones_ignored() {
        let body = b"<testsuite/>";
        let good = format!("md5=:AAAA:, sha-256=:{}:", BASE64.encode(Sha256::digest(body)));
        let digest = ContentDigest::parse(&with(&[("content-digest", &good)])).unwrap();
        assert!(digest.fits(body) && !digest.fits(b"<testsuite>"));
        assert!(ContentDigest::parse(&with(&[("content-digest", "sha-256=AAAA")])).is_err());
        let sha512 = format!("sha-512=:{}:", BASE64.encode(Sha512::digest(body)));
        assert!(!ContentDigest::parse(&with(&[("content-digest", &sha512)])).unwrap().fits(b""));
    }

    #[test]
    fn warnings_are_printable_ascii() {
        let list = strings(&["say \"hi\" \\".to_owned(), "Zeitüberschreitung\n".to_owned()]);
        assert_eq!(list, r#""say \"hi\" \\", "Zeit\\u{fc}berschreitung\\u{a}""#);
    }

    #[test]
    fn warnings_leave_room_in_the_head() {
        let many = vec!["x".repeat(1000); 50];
        let list = strings(&many);
        assert!(list.len() < WARNINGS_BYTES_MAX + 30, "{}", list.len());
        assert!(list.contains("...\", \"xxx") && list.ends_with("\"and 45 more\""), "{list}");
    }
}
