//! Query parameters: each known one taken once, and whatever is left is an error that names it, so that a typing error
//! never changes what is recorded or shown. Must not know any endpoint.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use http::request::Parts;
use percent_encoding::percent_decode;

use crate::problem::{Failure, malformed};

/// The parameters of one request that have not been taken yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// From the query as it came.
    pub(crate) fn parse(query: &str) -> Result<Self, Failure> {
        let mut pairs = Vec::new();
        for piece in query.split('&').filter(|piece| !piece.is_empty()) {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            let name = decode("query", name)?;
            let value = decode(&name, value)?;
            pairs.push((name, value));
        }
        Ok(Self(pairs))
    }

    /// The value of a parameter that may come once.
    pub(crate) fn take(&mut self, name: &str) -> Result<Option<String>, Failure> {
        let mut values = self.take_all(name);
        match values.len() {
            0 | 1 => Ok(values.pop()),
            n => Err(malformed(name, format!("it is given {n} times, and may be given once"))),
        }
    }

    /// The values of a parameter that may be repeated.
    pub(crate) fn take_all(&mut self, name: &str) -> Vec<String> {
        let (taken, rest) = std::mem::take(&mut self.0).into_iter().partition(|(n, _)| n == name);
        self.0 = rest;
        let taken: Vec<(String, String)> = taken;
        taken.into_iter().map(|(_, value)| value).collect()
    }

    /// As [`Params::take`], read as another type.
    pub(crate) fn read<T: FromStr<Err: Display>>(&mut self, name: &str) -> Result<Option<T>, Failure> {
        self.take(name)?.map(|text| text.parse().map_err(|why| malformed(name, why))).transpose()
    }

    /// As [`Params::read`], and absence is an error that says `why` it is needed.
    pub(crate) fn need<T: FromStr<Err: Display>>(&mut self, name: &str, why: &str) -> Result<T, Failure> {
        self.read(name)?.ok_or_else(|| malformed(name, format!("it is missing; {why}")))
    }

    /// `true` or `false`; absent is `false`.
    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, Failure> {
        match self.take(name)?.as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(malformed(name, format!("{other:?} is neither true nor false"))),
        }
    }

    /// Everything known has been taken: what is left is unknown.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let Some((name, _)) = self.0.first() else { return Ok(()) };
        let all = self.0.iter().map(|(name, _)| name.clone()).collect();
        Err(malformed(name, "this request has no such parameter").with_errors(all))
    }
}

/// `+` is a blank, as every form library writes it; `%XX` an octet; the whole UTF-8.
fn decode(name: &str, text: &str) -> Result<String, Failure> {
    let blanks = text.replace('+', " ");
    let decoded = percent_decode(blanks.as_bytes()).decode_utf8();
    decoded.map(std::borrow::Cow::into_owned).map_err(|_| malformed(name, "it is not UTF-8 in percent encoding"))
}

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Failure> {
        Self::parse(parts.uri.query().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_named() {
        let mut params = Params::parse("run=4+2&shart=1%2F4&variant=a%3D1&variant=b=2").unwrap();
        assert_eq!(params.take("run").unwrap().as_deref(), Some("4 2"));
        assert_eq!(params.take_all("variant"), ["a=1", "b=2"]);
        let failure = params.finish().unwrap_err();
        assert!(failure.problem.detail.starts_with("shart: "), "{}", failure.problem.detail);
    }

    #[test]
    fn a_value_once_or_not_at_all() {
        let mut params = Params::parse("run=1&run=2&flag=yes&odd=%ff").err();
        assert!(params.take().unwrap().problem.detail.starts_with("odd: "));
        let mut params = Params::parse("run=1&run=2&flag=yes").unwrap();
        assert!(params.take("run").is_err());
        assert!(params.flag("flag").is_err());
    }
}
