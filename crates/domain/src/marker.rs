//! The marker: the short text by which a repository without push keys gives back which write a row came from
//! (design, section 9). Must not know any product, its fields or its limits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::id::{Ordinal, ProjectId};
use crate::item::ItemHash;
use crate::key::PushKey;
use crate::outcome::Status;

/// How every marker begins. Letters that no report ends a word with by chance.
const HEAD: &str = "tly";
/// 128 bits in Crockford's alphabet, five bits a character.
const BASE_CHARS: usize = 26;
/// 35 bits of what was said.
const CONTENT_CHARS: usize = 7;
/// Crockford's alphabet in lower case: no `i`, `l`, `o`, `u`, so `u` can stand before the ordinal.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const BEFORE_ORDINAL: char = 'u';

/// Names one write of one case: 128 bits of BLAKE3 over project, push key and case. The same for every attempt and
/// every content of the write.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub u128);

impl WriteId {
    /// Of what a push says of a case.
    pub fn of(project: &ProjectId, key: &PushKey, case: &str) -> Self {
        Self(digest("case", &[project.as_str(), key.as_str(), case]))
    }

    /// Of a cycle: what the whole round (or cycle) is found again by.
    pub fn of_cycle(project: &ProjectId, cycle: &str, round: &str) -> Self {
        Self(digest("cycle", &[project.as_str(), cycle, round]))
    }

    /// A UUID (version 8, RFC 9562: bits of our own) for products that take one; `content` tells what was said apart.
    pub fn uuid(self, content: ContentTag) -> String {
        uuid_over(&[&self.to_string(), &content.to_string()])
    }
}

/// The UUID that stands for `uuid` within a place of a product, where ids are unique beyond that place: the same outcome
/// may be written to another one, too.
pub fn uuid_within(place: &str, uuid: &str) -> String {
    uuid_over(&["within", place, uuid])
}

fn uuid_over(parts: &[&str]) -> String {
    let bits = digest("uuid", parts);
    let bits = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x8 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// The characters of a write id alone.
impl fmt::Display for WriteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&letters(self.0, BASE_CHARS))
    }
}

impl fmt::Debug for WriteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Marker {
    /// The id of the outcome for products that take one of ours. An outcome that comes back in a later attempt is another one:
    /// it would be taken for the first's repeat. First attempts have the id that those without a number have.
    pub fn uuid(&self) -> String {
        match self.ordinal {
            Some(Ordinal(attempt)) if attempt > 1 => {
                WriteId(digest("attempt", &[&self.write.to_string(), &attempt.to_string()])).uuid(self.content)
            }
            _ => self.write.uuid(self.content),
        }
    }
}

/// Tells contents of one write apart: 35 bits over the verdicts of all attempts. Times and texts are left out, as a
/// difference in them alone is no other outcome (design, section 4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentTag(u64);

impl ContentTag {
    /// Of the verdicts, oldest attempt first.
    pub fn of(verdicts: &[Status]) -> Self {
        let words: Vec<&str> = verdicts.iter().map(|status| status.word()).collect();
        Self::over("content", &words)
    }

    /// Of all items of a case, with the verdicts of each as for [`Self::of`], in any order. The case has the worst last
    /// verdict, so equal tags mean equal verdicts of the case.
    ///
    /// A single item has the tag of its verdicts alone, as it always had: rows that were written years ago must be found.
    /// Verdicts of several say nothing until it is known whose they are: `a` failed and `b` passed is a failure, `a`
    /// passed at its second attempt is none, and both are "failed, passed" in a row. So they are counted by item there.
    pub fn of_items(items: &[(ItemHash, Vec<Status>)]) -> Self {
        if let [(_, verdicts)] = items {
            return Self::of(verdicts);
        }
        let worst = items.iter().filter_map(|(_, verdicts)| verdicts.last()).max_by_key(|status| status.badness());
        let mut items: Vec<&(ItemHash, Vec<Status>)> = items.iter().collect();
        items.sort();
        let mut words = vec![worst.map_or("", |status| status.word()).to_owned()];
        for (item, verdicts) in items {
            words.extend([item.to_string(), verdicts.len().to_string()]);
            words.extend(verdicts.iter().map(|status| status.word().to_owned()));
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Self::over("items", &words)
    }

    fn over(kind: &str, words: &[&str]) -> Self {
        Self((digest(kind, words) & ((1 << 35) - 1)) as u64)
    }
}

impl fmt::Display for ContentTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&letters(u128::from(self.0), CONTENT_CHARS))
    }
}

impl fmt::Debug for ContentTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What is written beside an outcome and read back: which write, what it said, and which attempt said it.
///
/// Its text is 36 to 56 characters of `a-z0-9`, so that no product escapes, folds or indexes it differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Marker {
    /// Which write.
    pub write: WriteId,
    /// What it said.
    pub content: ContentTag,
    /// Which attempt said it, if the platform numbers them.
    pub ordinal: Option<Ordinal>,
}

/// What a text holds of markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// None.
    Nothing,
    /// One whole.
    Whole(Marker),
    /// What began as one and isn't whole: the product, or a person, changed it.
    Mangled,
}

impl Marker {
    /// Most characters of a marker's text.
    pub const CHARS_MAX: usize = HEAD.len() + BASE_CHARS + CONTENT_CHARS + 1 + 19;

    /// Looks for the last marker in a text that people may have written around it.
    ///
    /// The tag of a cycle looks like a marker that was cut after its write. What was cut ends the text: a tag within one is
    /// somebody's word.
    pub fn find(text: &str) -> Found {
        let mut found = Found::Nothing;
        let mut rest = text;
        for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
            rest = rest.get(word.len()..).unwrap_or_default();
            let is_last = !rest.contains(|c: char| c.is_alphanumeric());
            rest = rest.get(rest.chars().next().map_or(0, char::len_utf8)..).unwrap_or_default();
            if !word.get(..HEAD.len()).is_some_and(|head| head.eq_ignore_ascii_case(HEAD)) {
                continue;
            }
            match word.parse() {
                Ok(marker) => found = Found::Whole(marker),
                Err(NotAMarker) if is_tag(word) && !is_last => {}
                // Shorter words that begin so are words.
                Err(NotAMarker) if word.len() > 16 && found == Found::Nothing => found = Found::Mangled,
                Err(NotAMarker) => {}
            }
        }
        found
    }
}

/// True if a word has the form of a cycle's tag.
fn is_tag(word: &str) -> bool {
    let base = word.get(HEAD.len()..).unwrap_or_default().to_ascii_lowercase();
    base.len() == BASE_CHARS && bits(&base).is_some()
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HEAD}{}{}", self.write, self.content)?;
        match self.ordinal {
            Some(ordinal) => write!(f, "{BEFORE_ORDINAL}{}", ordinal.0),
            None => Ok(()),
        }
    }
}

impl From<Marker> for String {
    fn from(marker: Marker) -> String {
        marker.to_string()
    }
}

impl TryFrom<String> for Marker {
    type Error = NotAMarker;
    fn try_from(text: String) -> Result<Self, NotAMarker> {
        text.parse()
    }
}

/// A text that is no marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a marker")]
pub struct NotAMarker;

impl FromStr for Marker {
    type Err = NotAMarker;

    fn from_str(text: &str) -> Result<Self, NotAMarker> {
        let text = text.to_ascii_lowercase();
        let rest = text.strip_prefix(HEAD).ok_or(NotAMarker)?;
        let (base, rest) = rest.split_at_checked(BASE_CHARS).ok_or(NotAMarker)?;
        let (content, rest) = rest.split_at_checked(CONTENT_CHARS).ok_or(NotAMarker)?;
        let ordinal = match rest.strip_prefix(BEFORE_ORDINAL) {
            // Only as we write it: no sign, no zeros in front.
            Some(digits) => {
                let ordinal = digits.parse::<u64>().map_err(|_| NotAMarker)?;
                if ordinal.to_string() != digits {
                    return Err(NotAMarker);
                }
                Some(Ordinal(ordinal))
            }
            None if rest.is_empty() => None,
            None => return Err(NotAMarker),
        };
        let write = WriteId(bits(base).ok_or(NotAMarker)?);
        let content = ContentTag(bits(content).and_then(|bits| u64::try_from(bits).ok()).ok_or(NotAMarker)?);
        Ok(Self { write, content, ordinal })
    }
}

fn digest(kind: &str, parts: &[&str]) -> u128 {
    let mut hasher = blake3::Hasher::new_derive_key("tallyonce 2026 marker");
    for part in [kind].iter().chain(parts) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    u128::from_be_bytes(bytes)
}

fn letters(mut bits: u128, count: usize) -> String {
    let mut text = vec![ALPHABET[0]; count];
    for place in text.iter_mut().rev() {
        *place = ALPHABET[(bits & 31) as usize];
        bits >>= 5;
    }
    text.into_iter().map(char::from).collect()
}

/// `None` for a character outside the alphabet, or more bits than there is room for.
fn bits(text: &str) -> Option<u128> {
    text.bytes().try_fold(0_u128, |bits, byte| {
        let value = ALPHABET.iter().position(|letter| *letter == byte)?;
        bits.checked_mul(32)?.checked_add(value as u128)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marker() -> Marker {
        let (project, key) = (ProjectId::parse("shop").unwrap(), PushKey::parse("run:42:job:e2e").unwrap());
        Marker {
            write: WriteId::of(&project, &key, "C12"),
            content: ContentTag::of(&[Status::Failed, Status::Passed]),
            ordinal: Some(Ordinal(3)),
        }
    }

    #[test]
    fn a_marker_is_stable_for_ever() {
        // Rows written years ago must be found: a change here is a break.
        insta::assert_snapshot!(marker(), @"tly5pjgq4fx47xbpyq21wc45zg2m8zr52a45u3");
        insta::assert_snapshot!(marker().write.uuid(marker().content), @"f54eb8f1-f75c-8248-9513-cb376d7be0ec");
    }

    #[test]
    fn every_part_of_the_write_counts_and_nothing_runs_together() {
        let of = |project: &str, key: &str, case: &str| {
            WriteId::of(&ProjectId::parse(project).unwrap(), &PushKey::parse(key).unwrap(), case)
        };
        let base = of("shop", "run:1:job:a", "C1");
        assert_ne!(base, of("shop2", "run:1:job:a", "C1"));
        assert_ne!(base, of("shop", "run:2:job:a", "C1"));
        assert_ne!(base, of("shop", "run:1:job:a", "C11"));
        assert_ne!(of("shop", "run:1:job:a", "bC"), of("shop", "run:1:job:ab", "C"));
    }

    #[test]
    fn a_marker_is_found_among_what_people_write() {
        let text = format!("green, see log\n\nrec {}.", marker().to_string().to_uppercase());
        assert_eq!(Marker::find(&text), Found::Whole(marker()));
        assert_eq!(Marker::find("tly is a word, and tlyx too"), Found::Nothing);
        assert_eq!(Marker::find(&marker().to_string()[..30]), Found::Mangled);
        assert_eq!(Marker::find(&format!("{}9x", marker())), Found::Mangled);
        // A cycle's tag that a person put into a sentence is none; at the end, a marker may have been cut there.
        let tag = &marker().to_string()[..29];
        assert_eq!(Marker::find(&format!("as in run {tag}, which was red")), Found::Nothing);
        assert_eq!(Marker::find(&format!("as in run {tag}.")), Found::Mangled);
        let later = Marker { ordinal: None, ..marker() };
        assert_eq!(Marker::find(&format!("{} {later}", marker())), Found::Whole(later), "the last one");
    }

    fn item(n: u8) -> ItemHash {
        ItemHash([n; 16])
    }

    #[test]
    fn a_single_item_has_the_tag_that_it_always_had() {
        let verdicts = vec![Status::Failed, Status::Passed];
        assert_eq!(ContentTag::of_items(&[(item(1), verdicts.clone())]), ContentTag::of(&verdicts));
    }

    #[test]
    fn who_said_what_counts() {
        use Status::{Failed, Passed};
        let of = |items: &[(u8, &[Status])]| {
            ContentTag::of_items(&items.iter().map(|(n, said)| (item(*n), said.to_vec())).collect::<Vec<_>>())
        };
        let both = of(&[(1, &[Failed]), (2, &[Passed])]);
        assert_eq!(both, of(&[(2, &[Passed]), (1, &[Failed])]), "in any order");
        assert_ne!(both, of(&[(1, &[Failed, Passed])]), "one that passed at last");
        assert_ne!(both, of(&[(1, &[Passed]), (2, &[Failed])]));
        assert_ne!(of(&[(1, &[Failed, Passed]), (2, &[Passed])]), of(&[(1, &[Failed]), (2, &[Passed, Passed])]));
        // This form is for ever, too.
        insta::assert_snapshot!(both, @"hnj3myj");
    }

    fn said() -> impl Strategy<Value = Vec<(ItemHash, Vec<Status>)>> {
        let status = proptest::sample::select(Status::ALL.to_vec());
        let verdicts = proptest::collection::vec(status, 1..4);
        let items = proptest::collection::btree_map(0_u8..3, verdicts, 1..4);
        items.prop_map(|items| items.into_iter().map(|(n, verdicts)| (item(n), verdicts)).collect())
    }

    fn worst(said: &[(ItemHash, Vec<Status>)]) -> u8 {
        said.iter().filter_map(|(_, verdicts)| verdicts.last()).map(|status| status.badness()).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn equal_tags_mean_equal_verdicts(one in said(), other in said()) {
            let equal = ContentTag::of_items(&one) == ContentTag::of_items(&other);
            prop_assert!(!equal || worst(&one) == worst(&other), "{one:?} {other:?}");
            // Of several, nothing but the same is the same.
            prop_assert!(!equal || one.len().max(other.len()) == 1 || one == other, "{one:?} {other:?}");
        }

        #[test]
        fn every_marker_comes_back_whole(write: u128, content in 0_u64..1 << 35, ordinal: Option<u64>) {
            let marker =
                Marker { write: WriteId(write), content: ContentTag(content), ordinal: ordinal.map(Ordinal) };
            let text = marker.to_string();
            prop_assert!(text.len() <= Marker::CHARS_MAX + 1);
            prop_assert_eq!(text.parse(), Ok(marker));
            // No beginning of it is taken for another, but for one that ends within the ordinal.
            for end in 0..HEAD.len() + BASE_CHARS + CONTENT_CHARS {
                prop_assert_eq!(text[..end].parse::<Marker>(), Err(NotAMarker));
            }
        }
    }
}
