//! One described call, one described list, and places in their answers, read from keys. Must not know what for.

use std::collections::BTreeSet;

use http::{HeaderName, Method};
use serde_json::Value;

use super::template::{Body, HeaderText, PathText, Place};
use crate::foreign::options::{OptionError, Options};
use crate::foreign::text::cut;
use crate::foreign::trouble::Trouble;

/// Most members of an answer that are named where a pointer misses them.
const NAMES_MAX: usize = 12;
/// Most characters of an answer that are shown there.
const SHOWN_CHARS: usize = 80;

/// A place in an answer: a JSON pointer (RFC 6901). Empty: the answer itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pointer {
    at: String,
    /// The key that says it, for people.
    key: String,
}

impl Pointer {
    pub(super) fn parse(text: &str, key: &str) -> Result<Self, String> {
        if text.is_empty() || text.starts_with('/') {
            Ok(Self { at: text.to_owned(), key: key.to_owned() })
        } else {
            Err(format!("{text:?} is no JSON pointer, which begins with /, such as /result/id"))
        }
    }

    /// What stands there. `null` is nothing.
    pub(super) fn of<'a>(&self, answer: &'a Value) -> Option<&'a Value> {
        answer.pointer(&self.at).filter(|value| !value.is_null())
    }

    /// That an answer of the service's own has nothing usable there: the key is wrong, and asking again helps nobody.
    pub(super) fn leads_nowhere(&self, answer: &Value, what: &str) -> Trouble {
        let has = match answer {
            Value::Object(members) => {
                let names: Vec<String> = members.keys().take(NAMES_MAX).map(|name| format!("/{name}")).collect();
                format!("there is {}", names.join(", "))
            }
            other => format!("there is {}", cut(&other.to_string(), SHOWN_CHARS)),
        };
        Trouble::Refused(format!("{} = {:?} leads to no {what}; {has}", self.key, self.at))
    }

    /// The same as text: ids are often numbers.
    pub(super) fn text_of(&self, answer: &Value) -> Option<String> {
        match self.of(answer)? {
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.at
    }
}

/// One call.
#[derive(Debug)]
pub(super) struct CallSpec {
    pub(super) method: Method,
    pub(super) path: PathText,
    pub(super) headers: Vec<(HeaderName, HeaderText)>,
    pub(super) body: Option<Body>,
    pub(super) omit_null: bool,
}

impl CallSpec {
    pub(super) fn read(options: &mut Options, usual: Method, places: &[Place]) -> Result<Self, OptionError> {
        let method = match options.text("method")? {
            None => usual,
            Some(text) => ["GET", "POST", "PUT", "PATCH", "DELETE"]
                .into_iter()
                .find(|method| method.eq_ignore_ascii_case(&text))
                .and_then(|method| method.parse().ok())
                .ok_or_else(|| options.wrong("method", "it is one of GET, POST, PUT, PATCH and DELETE"))?,
        };
        let path = options.need("path", "the address of the call under url, such as /api/results")?;
        let path = PathText::parse(&path, places).map_err(|why| options.wrong("path", why))?;
        let body = options.text("body")?.map(|text| Body::parse(&text, places)).transpose();
        Ok(Self {
            method,
            path,
            headers: headers(options, places)?,
            body: body.map_err(|why| options.wrong("body", why))?,
            omit_null: options.flag("omit-null")?.unwrap_or(false),
        })
    }

    /// What it says.
    pub(super) fn places(&self) -> BTreeSet<Place> {
        let mut places = BTreeSet::new();
        self.path.places(&mut places);
        self.headers.iter().for_each(|(_, text)| text.places(&mut places));
        if let Some(body) = &self.body {
            body.places(&mut places);
        }
        places
    }
}

fn headers(options: &mut Options, places: &[Place]) -> Result<Vec<(HeaderName, HeaderText)>, OptionError> {
    let mut headers = Vec::new();
    for (name, text) in options.table("headers")? {
        let key = format!("headers.{name}");
        let name = HeaderName::try_from(&name).map_err(|_| options.wrong(&key, "it is no name of a header"))?;
        headers.push((name, HeaderText::parse(&text, places).map_err(|why| options.wrong(&key, why))?));
    }
    Ok(headers)
}

/// Where something stands, if a key says so.
pub(super) fn pointer(options: &mut Options, key: &str) -> Result<Option<Pointer>, OptionError> {
    let text = options.text(key)?;
    let full = options.full(key);
    text.map(|text| Pointer::parse(&text, &full)).transpose().map_err(|why| options.wrong(key, why))
}

/// The same of a key that has to be there.
pub(super) fn need_pointer(options: &mut Options, key: &str, why: &'static str) -> Result<Pointer, OptionError> {
    pointer(options, key)?.ok_or_else(|| OptionError::Missing { key: options.full(key), why })
}

/// How a list goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// It has one page.
    None,
    /// `{offset}`: how many rows come before.
    Offset,
    /// `{page}`, from this number.
    Page(u64),
    /// `{cursor}`: what stood here in the page before.
    Cursor(Pointer),
    /// The address that stands here.
    Link(Pointer),
}

/// A list.
#[derive(Debug)]
pub(super) struct ListSpec {
    pub(super) call: CallSpec,
    pub(super) items_at: Pointer,
    pub(super) next: Next,
    pub(super) total_at: Option<Pointer>,
}

impl ListSpec {
    pub(super) fn read(options: &mut Options, places: &[Place]) -> Result<Self, OptionError> {
        let call = CallSpec::read(options, Method::GET, places)?;
        let next = next(options)?;
        let used = call.places();
        let own = match next {
            Next::Offset => Some(Place::Offset),
            Next::Page(_) => Some(Place::Page),
            Next::Cursor(_) => Some(Place::Cursor),
            Next::None | Next::Link(_) => None,
        };
        for place in [Place::Offset, Place::Page, Place::Cursor] {
            if used.contains(&place) != (own == Some(place)) {
                let word = place.word();
                return Err(options
                    .wrong("next", format!("{{{word}}} stands in path or body if and only if next = \"{word}\"")));
            }
        }
        Ok(Self {
            call,
            next,
            items_at: pointer(options, "items-at")?
                .unwrap_or_else(|| Pointer { at: String::new(), key: options.full("items-at") }),
            total_at: pointer(options, "total-at")?,
        })
    }
}

fn next(options: &mut Options) -> Result<Next, OptionError> {
    let first = options.number("first-page")?;
    let cursor = pointer(options, "cursor-at")?;
    let link = pointer(options, "next-at")?;
    match (options.text("next")?.as_deref(), first, cursor, link) {
        (None | Some("none"), None, None, None) => Ok(Next::None),
        (Some("offset"), None, None, None) => Ok(Next::Offset),
        (Some("page"), first, None, None) => Ok(Next::Page(first.unwrap_or(1))),
        (Some("cursor"), None, Some(at), None) => Ok(Next::Cursor(at)),
        (Some("link"), None, None, Some(at)) => Ok(Next::Link(at)),
        _ => Err(options.wrong(
            "next",
            "it is none, offset, page (with first-page if that is not 1), cursor (with cursor-at) or link (with next-at)",
        )),
    }
}
