//! The variable segments of a path, read into the domain's types with a problem document for each that cannot be.
//! Must not know any endpoint.

use axum::extract::{FromRequestParts, RawPathParams};
use domain::{Epoch, ItemHash, ProjectId, PushId};
use http::request::Parts;
use store::EpochOf;

use crate::problem::{Failure, malformed};

/// The variable segments of the path of one request, percent-decoded.
#[derive(Debug)]
pub(crate) struct Segments(Vec<(String, String)>);

impl Segments {
    fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    pub(crate) fn project(&self) -> Result<ProjectId, Failure> {
        ProjectId::parse(self.text("project")).map_err(|why| malformed("project", why))
    }

    pub(crate) fn push(&self) -> Result<PushId, Failure> {
        let text = self.text("push");
        let why = || malformed("push", format!("{text:?} is not a push id of 32 hexadecimal digits"));
        PushId::parse(text).ok_or_else(why)
    }

    pub(crate) fn item(&self) -> Result<ItemHash, Failure> {
        let text = self.text("hash");
        let why = || malformed("hash", format!("{text:?} is not an item hash of 32 hexadecimal digits"));
        ItemHash::parse(text).ok_or_else(why)
    }

    /// The number of a revision or of a chunk.
    pub(crate) fn number(&self) -> Result<u32, Failure> {
        let text = self.text("n");
        text.parse().map_err(|_| malformed("n", format!("{text:?} is not a number")))
    }

    pub(crate) fn epoch(&self) -> Result<EpochOf, Failure> {
        let text = self.text("epoch");
        let number = text.parse().map_err(|_| malformed("epoch", format!("{text:?} is not the number of an epoch")))?;
        Ok(EpochOf { project: self.project()?, push: self.push()?, epoch: Epoch(number) })
    }

    pub(crate) fn round(&self) -> &str {
        self.text("round")
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Segments {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let params =
            RawPathParams::from_request_parts(parts, state).await.map_err(|why| malformed("path", why.body_text()))?;
        Ok(Self(params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
    }
}
