//! What a parcel in chunks promises a receiver before any of it is sent. Must not know how it travels.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::manifest::{ChunkPromise, ItemVector};
use domain::verdict::Light;
use domain::wire::ManifestBody;
use domain::{ItemHash, Manifest};

use super::{Form, Header, Parcel, UnpackError, body};

/// Bytes of an item hash.
const HASH_BYTES: usize = size_of::<ItemHash>();

impl Parcel {
    /// The manifest, for a receiver in this process.
    pub fn manifest(&self) -> Result<Manifest, UnpackError> {
        let Header { key, place, origin, sender, .. } = self.header.clone();
        let header = &self.header;
        let promise = |chunk: &super::BodyPlace| ChunkPromise { digest: chunk.sha256, outcomes: chunk.outcomes };
        Ok(Manifest {
            key,
            place,
            origin,
            sender,
            on_difference: header.on_difference,
            outside_ci: header.outside_ci,
            expect: header.expect,
            files: header.files.clone(),
            report: header.report,
            incomplete: header.incomplete,
            outcomes: header.outcomes,
            counts: header.counts,
            content: header.content_id(),
            bits: self.bits(),
            chunks: header.chunks.iter().map(promise).collect(),
            items: self.items()?,
        })
    }

    /// The manifest as it travels; without items if a receiver took no body of that size.
    pub fn manifest_body(&self, with_items: bool) -> Result<ManifestBody, UnpackError> {
        let header = &self.header;
        let place = header.items.as_ref().filter(|_| with_items);
        Ok(ManifestBody {
            tallyonce: ManifestBody::VERSION,
            files: header.files.clone(),
            report: Some(header.report),
            incomplete: header.incomplete,
            counts: header.counts,
            content: header.content,
            outcomes: header.outcome_digest,
            bits: self.bits(),
            chunks: header.chunks.iter().map(|chunk| (chunk.sha256, chunk.outcomes)).collect(),
            items: place.map(|place| self.body(place)).transpose()?.map(|items| STANDARD.encode(items)),
        })
    }

    fn bits(&self) -> u8 {
        match self.header.form {
            Form::Whole => 0,
            Form::Chunks { bits } => bits,
        }
    }

    fn items(&self) -> Result<Option<ItemVector>, UnpackError> {
        let Some(place) = &self.header.items else { return Ok(None) };
        let number = place.outcomes as usize;
        let bytes = body::decompress(&self.body(place)?, (number * (HASH_BYTES + 1)) as u64)?;
        let broken = || UnpackError::Unreadable("its items are cut".to_owned());
        let (hashes, lights) = bytes.split_at_checked(number * HASH_BYTES).ok_or_else(broken)?;
        let hashes: Vec<ItemHash> = hashes.as_chunks().0.iter().map(|hash| ItemHash(*hash)).collect();
        let lights: Option<Vec<Light>> = lights.iter().map(|code| Light::from_code(*code)).collect();
        let lights = lights.filter(|lights| lights.len() == number).ok_or_else(broken)?;
        Ok(Some(ItemVector { hashes, lights }))
    }
}
