//! A push packed for the way: everything but its outcomes as a header, the outcomes as one body or as chunks that are
//! read one at a time. Must not hold credentials, and must not know where it is kept or how it is sent.

mod bodies;
mod body;
mod error;
pub(crate) mod files;
mod header;
mod manifest;
mod pack;
mod sealed;
mod source;

use std::sync::Arc;

use bytes::Bytes;
use domain::content::chunk_of;
use domain::push::{ContentId, Push};
use domain::{Counts, Digests, Incarnation, Outcomes};

use crate::destination::Destination;
use bodies::Bodies;
use error::same;

pub use bodies::Scratch;
pub use error::{PackError, SealedError, UnpackError};
pub use header::{BodyPlace, Form, Header, Label, belongs_to};
pub use pack::{Contents, Packing};
pub use source::{Source, TEXT_MORE_BYTES};

/// A push packed for the way.
#[derive(Debug, Clone)]
pub struct Parcel {
    /// Everything but the outcomes.
    pub header: Header,
    bodies: Bodies,
    push: Option<Arc<Push>>,
}

impl Parcel {
    /// Packs a push in memory for one destination. `created_at` is RFC 3339.
    pub fn pack(push: &Push, destination: &Destination, created_at: String) -> Result<Self, PackError> {
        let packing =
            Packing { destination: Some(destination), created_at, scratch: Scratch::Memory, chunk_outcomes: None };
        packing.pack(Label::of(push), Contents::Held(push.outcomes.clone()))
    }

    /// The same parcel for another destination.
    pub fn addressed_to(&self, destination: &Destination) -> Self {
        let header = Header { destination: destination.to_string(), ..self.header.clone() };
        Self { header, ..self.clone() }
    }

    /// The same parcel, sent by another incarnation.
    pub fn sent_by(&self, incarnation: Incarnation) -> Self {
        let mut header = self.header.clone();
        header.sender.incarnation = Some(incarnation);
        Self { header, bodies: self.bodies.clone(), push: None }
    }

    /// The same push in more and smaller bodies, because a receiver takes none of this size; `None` if there is no
    /// smaller cut.
    pub fn smaller(&self, scratch: Scratch<'_>) -> Result<Option<Self>, PackError> {
        let unpacked = |error: UnpackError| PackError::Source(Box::new(error));
        let whole = match self.header.form {
            Form::Whole => Some(self.push().map_err(unpacked)?),
            Form::Chunks { .. } => None,
        };
        let source: &dyn Source = match &whole {
            Some(push) => &push.outcomes,
            None => self,
        };
        let Some(bits) = pack::finer(&self.header, source)? else { return Ok(None) };
        let (label, header) = (self.header.label(), &self.header);
        let mut finer = Header::new(label, header.destination.clone(), header.created_at.clone());
        finer.form = Form::Chunks { bits };
        // What was in memory is small enough for it.
        let scratch = if matches!(self.bodies, Bodies::Memory(_)) { Scratch::Memory } else { scratch };
        let parcel = pack::pack_chunks(finer, source, scratch)?;
        same("content digest", &header.content, &parcel.header.content).map_err(unpacked)?;
        Ok(Some(parcel))
    }

    /// True if this is the same content in smaller bodies.
    pub(crate) fn is_finer_than(&self, other: &Self) -> bool {
        let bits = |form| match form {
            Form::Whole => None,
            Form::Chunks { bits } => Some(bits),
        };
        let same = self.header.content == other.header.content && self.header.files == other.header.files;
        same && bits(self.header.form) > bits(other.header.form)
    }

    /// These bodies under another header of the same content.
    pub(crate) fn relabelled(&self, header: &Header) -> Self {
        let Header { form, chunks, items, .. } = self.header.clone();
        Self { header: Header { form, chunks, items, ..header.clone() }, bodies: self.bodies.clone(), push: None }
    }

    /// One body as it travels, checked against its digest.
    pub fn body(&self, place: &BodyPlace) -> Result<Bytes, UnpackError> {
        let body = self.bodies.read(place.at, place.bytes)?;
        same("SHA-256", &place.sha256, &pack::sha256(&body))?;
        Ok(body)
    }

    /// The one body of a push that is not in chunks.
    pub fn whole_body(&self) -> Result<Bytes, UnpackError> {
        let place = self.header.chunks.first().filter(|_| self.header.form == Form::Whole);
        self.body(place.ok_or_else(|| no_body(0))?)
    }

    /// The outcomes of one chunk, checked against its number.
    pub fn chunk(&self, number: usize) -> Result<Outcomes, UnpackError> {
        let Form::Chunks { bits } = self.header.form else {
            return Err(UnpackError::Unreadable("it is not in chunks".to_owned()));
        };
        let place = self.header.chunks.get(number).ok_or_else(|| no_body(number))?;
        let outcomes = Outcomes::from_unordered(body::read_chunk(&self.body(place)?)?)?;
        same("number of outcomes of a chunk", &(place.outcomes as usize), &outcomes.len())?;
        // They are sorted: where first and last belong, all do.
        for hash in outcomes.hashes().first().into_iter().chain(outcomes.hashes().last()) {
            same("chunk of an item", &(number as u32), &chunk_of(*hash, bits))?;
        }
        Ok(outcomes)
    }

    /// The push: the one that was just packed, else decoded from the bodies within bounds and checked against the
    /// header. All of it in memory: chunks of a large one are better looked at one by one.
    pub fn push(&self) -> Result<Arc<Push>, UnpackError> {
        if let Some(push) = &self.push {
            return Ok(Arc::clone(push));
        }
        match self.header.form {
            Form::Whole => self.unpack(true).map(Arc::new),
            Form::Chunks { .. } => {
                self.check()?;
                let mut all = Vec::new();
                for number in 0..self.header.chunks.len() {
                    all.extend(self.chunk(number)?.into_parts().1);
                }
                let outcomes = Outcomes::from_unordered(all)?;
                Ok(Arc::new(push_of(&self.header, outcomes, self.header.content_id())))
            }
        }
    }

    /// Reads all of it, in the memory of one body, and holds it against the header.
    pub fn check(&self) -> Result<(), UnpackError> {
        let Form::Chunks { bits } = self.header.form else {
            return self.unpack(true).map(|_| ());
        };
        let total = self.header.outcomes;
        let mut digests = Vec::with_capacity(self.header.chunks.len());
        let mut counts = Counts::default();
        for number in 0..self.header.chunks.len() {
            let chunk = self.chunk(number)?;
            digests.push(Digests::of_chunk(&chunk, total, bits));
            counts += chunk.counts();
        }
        let found = Digests::of_chunks(digests);
        same("number of outcomes", &total, &counts.total)?;
        same("content digest", &self.header.content, &found.content)?;
        same("outcome digest", &self.header.outcome_digest, &found.outcomes)?;
        same("counts", &self.header.counts, &counts)
    }

    /// The one body, decoded. `digested`: the header's digests are of the kind that this version makes.
    fn unpack(&self, digested: bool) -> Result<Push, UnpackError> {
        let header = &self.header;
        let body = body::read_whole(&self.whole_body()?)?;
        same("number of outcomes", &header.outcomes, &(body.outcomes.len() as u64))?;
        let outcomes = Outcomes::from_unordered(body.outcomes)?;
        let mut content = outcomes.digests().id();
        content.body = header.raw_body;
        if digested {
            same("content digest", &header.content, &content.content)?;
            same("outcome digest", &header.outcome_digest, &content.outcomes)?;
        }
        same("counts", &header.counts, &outcomes.counts())?;
        same("list of files", &header.files, &body.files)?;
        same("report summary", &Some(header.report), &body.report)?;
        same("incomplete mark", &header.incomplete, &body.incomplete)?;
        Ok(push_of(header, outcomes, content))
    }
}

/// The chunks of a parcel as outcomes again.
impl Source for Parcel {
    fn outcomes(&self) -> u64 {
        self.header.outcomes
    }

    fn parts(&self) -> Box<dyn Iterator<Item = Result<Outcomes, PackError>> + '_> {
        let chunks = 0..self.header.chunks.len();
        Box::new(chunks.map(|number| self.chunk(number).map_err(|error| PackError::Source(Box::new(error)))))
    }
}

fn no_body(number: usize) -> UnpackError {
    UnpackError::Unreadable(format!("it has no body {number}"))
}

fn push_of(header: &Header, outcomes: Outcomes, content: ContentId) -> Push {
    Push {
        key: header.key.clone(),
        place: header.place.clone(),
        origin: header.origin.clone(),
        sender: header.sender.clone(),
        on_difference: header.on_difference,
        outside_ci: header.outside_ci,
        expect: header.expect,
        files: header.files.clone(),
        report: header.report,
        incomplete: header.incomplete,
        outcomes,
        content,
    }
}
