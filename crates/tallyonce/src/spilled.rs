//! Outcomes that were too many for memory, as a source to pack from. Must not know reports or parcels beyond their seams.

use delivery::{PackError, Source, TEXT_MORE_BYTES};
use domain::Outcomes;
use reports::Spilled;

/// Outcomes in a temporary file.
pub(crate) struct OutOfFile(pub(crate) Spilled);

impl Source for OutOfFile {
    fn outcomes(&self) -> u64 {
        self.0.len()
    }

    /// What lies in the file is at least an outcome's names and messages.
    fn text_bytes_max(&self) -> Option<u64> {
        Some(self.0.encoded_bytes() + self.0.len() * TEXT_MORE_BYTES)
    }

    fn parts(&self) -> Box<dyn Iterator<Item = Result<Outcomes, PackError>> + '_> {
        Box::new(self.0.parts().map(|part| {
            let part = part.map_err(|error| PackError::Source(Box::new(error)))?;
            Ok(Outcomes::from_hashed(part.hashes, part.outcomes)?)
        }))
    }
}
