//! Texts with places in them: paths, headers and JSON bodies of calls that the configuration describes. What can be wrong
//! with one is found when it is read, so that every later call is well-formed. Must not know what the values mean.

use std::collections::BTreeSet;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

/// What stays as it is in a path or query (RFC 3986, unreserved).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Begins and ends a place within the JSON that a body is parsed from: no text of a configuration holds it.
const FENCE: char = '\u{0}';

macro_rules! places {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)+) => {
        /// What a place is filled with.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Place {
            $($(#[$doc])* $name,)+
        }

        impl Place {
            const ALL: &[Place] = &[$(Place::$name),+];

            /// The word between the braces.
            pub(super) fn word(self) -> &'static str {
                match self {
                    $(Place::$name => $word,)+
                }
            }
        }
    };
}

places! {
    /// The target's project.
    Project = "project",
    /// The cycle's id.
    Cycle = "cycle",
    /// The text by which a cycle is found again.
    Tag = "tag",
    /// A cycle's name.
    Name = "name",
    /// Where the round came from.
    Link = "link",
    /// The case's id.
    Case = "case",
    /// How people know the case.
    Title = "title",
    /// The service's word for the verdict.
    Status = "status",
    /// The same, taken as JSON.
    StatusJson = "status_json",
    /// How long it took, in milliseconds.
    DurationMs = "duration_ms",
    /// The same in seconds, with a fraction.
    DurationS = "duration_s",
    /// Messages for people.
    Message = "message",
    /// The same, and the marker in the last line.
    Comment = "comment",
    /// The marker alone.
    Marker = "marker",
    /// A UUID: the same for the same content of the same write.
    Id = "id",
    /// When it was recorded, in milliseconds since 1970.
    AtMs = "at_ms",
    /// The same in seconds.
    AtS = "at_s",
    /// The same as RFC 3339.
    At = "at",
    /// All outcomes of a batch.
    Entries = "entries",
    /// The id of a recorded outcome.
    Row = "row",
    /// How many rows of a list come before the page.
    Offset = "offset",
    /// The page's number.
    Page = "page",
    /// Where the page before ended, as the service says it.
    Cursor = "cursor",
}

/// What fills the places of one call.
pub(super) type Fill<'a> = &'a (dyn Fn(Place) -> Value + Sync);

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Fixed(String),
    Place(Place),
}

/// A place at the beginning of a text, and what follows it.
fn place_at<'a>(text: &'a str, allowed: &[Place]) -> Result<Option<(Place, &'a str)>, String> {
    let Some((word, rest)) = text.strip_prefix('{').and_then(|rest| rest.split_once('}')) else { return Ok(None) };
    if word.is_empty() || !word.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
        return Ok(None);
    }
    let known = Place::ALL.iter().find(|place| place.word() == word && allowed.contains(place));
    let place = known.ok_or_else(|| {
        let allowed: Vec<String> = allowed.iter().map(|place| format!("{{{}}}", place.word())).collect();
        format!("{{{word}}} is nothing that can stand here; there are {}", allowed.join(" "))
    })?;
    Ok(Some((*place, rest)))
}

fn pieces(text: &str, allowed: &[Place]) -> Result<Vec<Piece>, String> {
    let (mut pieces, mut fixed, mut rest) = (Vec::new(), String::new(), text);
    while let Some(c) = rest.chars().next() {
        if let Some((place, after)) = place_at(rest, allowed)? {
            pieces.push(Piece::Fixed(std::mem::take(&mut fixed)));
            pieces.push(Piece::Place(place));
            rest = after;
        } else {
            fixed.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    pieces.push(Piece::Fixed(fixed));
    Ok(pieces)
}

fn places_in(pieces: &[Piece], into: &mut BTreeSet<Place>) {
    into.extend(pieces.iter().filter_map(|piece| if let Piece::Place(place) = piece { Some(*place) } else { None }));
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn filled(pieces: &[Piece], fill: Fill<'_>, shape: impl Fn(&str) -> String) -> String {
    let one = |piece: &Piece| match piece {
        Piece::Fixed(text) => text.clone(),
        Piece::Place(place) => shape(&plain(&fill(*place))),
    };
    pieces.iter().map(one).collect()
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// The value of a header. Values are percent-encoded, so that every header can hold them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeaderText(Vec<Piece>);

impl HeaderText {
    pub(super) fn parse(text: &str, allowed: &[Place]) -> Result<Self, String> {
        if text.chars().all(|c| c.is_ascii_graphic() || c == ' ') {
            pieces(text, allowed).map(Self)
        } else {
            Err("a header holds visible ASCII characters only".to_owned())
        }
    }

    pub(super) fn places(&self, into: &mut BTreeSet<Place>) {
        places_in(&self.0, into);
    }

    pub(super) fn filled(&self, fill: Fill<'_>) -> String {
        filled(&self.0, fill, encoded)
    }
}

/// Path and query. Values are percent-encoded; a piece of the query whose `{cursor}` is not known yet is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathText {
    path: Vec<Piece>,
    query: Vec<Vec<Piece>>,
}

impl PathText {
    pub(super) fn parse(text: &str, allowed: &[Place]) -> Result<Self, String> {
        if !text.starts_with('/') || text.contains(['#', ' ']) || !text.is_ascii() {
            return Err(format!("{text:?} must begin with / and hold no blank, # or letter beyond ASCII"));
        }
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        let query = query.split('&').filter(|piece| !piece.is_empty()).map(|piece| pieces(piece, allowed));
        Ok(Self { path: pieces(path, allowed)?, query: query.collect::<Result<_, _>>()? })
    }

    pub(super) fn places(&self, into: &mut BTreeSet<Place>) {
        places_in(&self.path, into);
        self.query.iter().for_each(|piece| places_in(piece, into));
    }

    /// # Errors
    /// A value would change which path it is: none, `.` and `..`.
    pub(super) fn filled(&self, fill: Fill<'_>) -> Result<String, String> {
        for piece in &self.path {
            let Piece::Place(place) = piece else { continue };
            let value = plain(&fill(*place));
            if matches!(value.as_str(), "" | "." | "..") {
                return Err(format!("{{{}}} is {value:?}, which can't stand in a path", place.word()));
            }
        }
        let path = filled(&self.path, fill, encoded);
        let known =
            |piece: &&Vec<Piece>| !piece.contains(&Piece::Place(Place::Cursor)) || !fill(Place::Cursor).is_null();
        let query: Vec<String> = self.query.iter().filter(known).map(|piece| filled(piece, fill, encoded)).collect();
        Ok(if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) })
    }
}

/// A JSON body. A place that stands by itself becomes a value of its own type, one within a text a part of the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Body(Node);

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Fixed(Value),
    Whole(Place),
    Text(Vec<Piece>),
    Array(Vec<Node>),
    Object(Vec<(Vec<Piece>, Node)>),
}

impl Body {
    pub(super) fn parse(text: &str, allowed: &[Place]) -> Result<Self, String> {
        let fenced = fenced(text, allowed)?;
        let value: Value = serde_json::from_str(&fenced)
            .map_err(|error| format!("it is no JSON once its places are filled: {error}"))?;
        Ok(Self(Node::of(value)))
    }

    pub(super) fn places(&self, into: &mut BTreeSet<Place>) {
        self.0.places(into);
    }

    /// `omit_null`: members that have no value are left out instead of being `null`.
    pub(super) fn filled(&self, fill: Fill<'_>, omit_null: bool) -> Value {
        self.0.filled(fill, omit_null)
    }
}

/// The text with each place as JSON: by itself as a text of its own, within a text as a part of it.
fn fenced(text: &str, allowed: &[Place]) -> Result<String, String> {
    let fence = "\\u0000";
    let (mut fenced, mut rest, mut in_text) = (String::with_capacity(text.len()), text, false);
    while let Some(c) = rest.chars().next() {
        if let Some((place, after)) = place_at(rest, allowed)? {
            let word = place.word();
            let quote = if in_text { "" } else { "\"" };
            let alone = if in_text { "" } else { "=" };
            fenced.extend([quote, fence, alone, word, fence, quote]);
            rest = after;
            continue;
        }
        // What follows a backslash never ends the text.
        let length =
            if in_text && c == '\\' { 1 + rest[1..].chars().next().map_or(0, char::len_utf8) } else { c.len_utf8() };
        in_text ^= c == '"';
        fenced.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    Ok(fenced)
}

impl Node {
    fn of(value: Value) -> Self {
        match value {
            Value::String(text) if text.contains(FENCE) => match of_fenced(&text).as_slice() {
                [_, Piece::Place(place), _] if text[1..].starts_with('=') => Node::Whole(*place),
                pieces => Node::Text(pieces.to_vec()),
            },
            Value::Array(nodes) => Node::Array(nodes.into_iter().map(Node::of).collect()),
            Value::Object(members) => {
                Node::Object(members.into_iter().map(|(name, node)| (of_fenced(&name), Node::of(node))).collect())
            }
            fixed => Node::Fixed(fixed),
        }
    }

    fn places(&self, into: &mut BTreeSet<Place>) {
        match self {
            Node::Fixed(_) => {}
            Node::Whole(place) => {
                into.insert(*place);
            }
            Node::Text(pieces) => places_in(pieces, into),
            Node::Array(nodes) => nodes.iter().for_each(|node| node.places(into)),
            Node::Object(members) => {
                for (name, node) in members {
                    places_in(name, into);
                    node.places(into);
                }
            }
        }
    }

    fn filled(&self, fill: Fill<'_>, omit_null: bool) -> Value {
        match self {
            Node::Fixed(value) => value.clone(),
            Node::Whole(place) => fill(*place),
            Node::Text(pieces) => Value::String(filled(pieces, fill, str::to_owned)),
            Node::Array(nodes) => nodes.iter().map(|node| node.filled(fill, omit_null)).collect(),
            Node::Object(members) => {
                let mut object = Map::new();
                for (name, node) in members {
                    let value = node.filled(fill, omit_null);
                    if !(omit_null && value.is_null() && matches!(node, Node::Whole(_))) {
                        object.insert(filled(name, fill, str::to_owned), value);
                    }
                }
                Value::Object(object)
            }
        }
    }
}

/// The pieces of a text whose every second part, between fences, is a place.
fn of_fenced(text: &str) -> Vec<Piece> {
    let piece = |(n, part): (usize, &str)| {
        let word = part.strip_prefix('=').unwrap_or(part);
        let place = Place::ALL.iter().find(|place| n % 2 == 1 && place.word() == word);
        place.map_or_else(|| Piece::Fixed(part.to_owned()), |place| Piece::Place(*place))
    };
    text.split(FENCE).enumerate().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const ALLOWED: &[Place] = &[Place::Case, Place::DurationMs, Place::Message, Place::Cycle, Place::Cursor];

    fn fill(place: Place) -> Value {
        match place {
            Place::Case => json!("a/b \"c\" {case}"),
            Place::DurationMs => json!(7),
            Place::Cycle => json!("r 1"),
            _ => Value::Null,
        }
    }

    fn body(text: &str, omit_null: bool) -> Value {
        Body::parse(text, ALLOWED).unwrap().filled(&fill, omit_null)
    }

    #[test]
    fn a_place_alone_keeps_its_type_and_one_in_a_text_is_a_part_of_it() {
        let text = r#"{"c": {case}, "ms": {duration_ms}, "m": {message}, "t": "\"{case}\" took {duration_ms}", "{cycle}": [{}, {"x": "{case}"}]}"#;
        let case = "a/b \"c\" {case}";
        let all = json!({"c": case, "ms": 7, "m": null, "t": format!("\"{case}\" took 7"), "r 1": [{}, {"x": case}]});
        assert_eq!(body(text, false), all);
        assert_eq!(body(r#"{"ms": "{duration_ms}"}"#, false), json!({"ms": "7"}), "within a text it is text");
        assert_eq!(body(r#"{"m": {message}, "n": null, "t": "{message}"}"#, true), json!({"n": null, "t": ""}));
        assert_eq!(body(r#"{"t": "\u007bcase} {Case} {}"}"#, false), json!({"t": "{case} {Case} {}"}));
    }

    #[test]
    fn what_is_wrong_is_said_when_it_is_read() {
        let wrong = |text: &str| Body::parse(text, ALLOWED).unwrap_err();
        assert!(wrong(r#"{"c": {caes}}"#).starts_with("{caes} is nothing that can stand here; there are {case} "));
        assert!(wrong(r#"{"c": {row}}"#).contains("{row} is nothing"), "known, but not here");
        assert!(wrong(r#"{"c": {case}, }"#).contains("no JSON"));
        assert!(wrong(r#"{"c": x{case}}"#).contains("no JSON"));
        assert!(PathText::parse("runs/{cycle}", ALLOWED).unwrap_err().contains("begin with /"));
        assert!(PathText::parse("/runs#x", ALLOWED).is_err());
        assert!(HeaderText::parse("a\nb", ALLOWED).is_err());
    }

    #[test]
    fn no_value_leads_to_another_path() {
        let path = PathText::parse("/r/{cycle}/x/{case}?a={case}&c={cursor}", ALLOWED).unwrap();
        let encoded = "a%2Fb%20%22c%22%20%7Bcase%7D";
        assert_eq!(path.filled(&fill).unwrap(), format!("/r/r%201/x/{encoded}?a={encoded}"));
        let known = |place| if place == Place::Cursor { json!("n&1") } else { fill(place) };
        assert_eq!(path.filled(&known).unwrap(), format!("/r/r%201/x/{encoded}?a={encoded}&c=n%261"));
        for value in [json!(".."), json!("."), json!(""), Value::Null] {
            assert!(path.filled(&|_| value.clone()).unwrap_err().contains("{cycle}"));
        }
    }

    proptest! {
        #[test]
        fn a_value_never_gets_out_of_its_place(value: String) {
            let template = Body::parse(r#"{"a": {case}, "b": ["x {case} y"]}"#, ALLOWED).unwrap();
            let filled = template.filled(&|_| json!(value), false);
            prop_assert_eq!(filled, json!({"a": value, "b": [format!("x {value} y")]}));
        }
    }
}
