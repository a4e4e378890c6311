//! A push sealed into a file, for a job that may deliver it. Must not send.

use std::path::Path;

use delivery::Parcel;

use super::Pushed;
use crate::commands::summary;
use crate::exit::Exit;
use crate::failure::{Failure, State};
use crate::object::PushObject;
use crate::output::Output;

/// A push that can't be written to a file.
pub(super) fn cannot_seal(error: &dyn std::fmt::Display) -> Failure {
    Failure::machine(format!("it can't be sealed: {error}"), "Name a file in a folder that can be written.")
}

/// Writes a push to a file that another job delivers.
///
/// # Errors
/// The file can't be written.
pub(super) fn seal(
    path: &Path,
    parcel: &Parcel,
    json: bool,
    output: Output,
    object: &mut PushObject,
) -> Result<Pushed, Failure> {
    parcel.seal(path).map_err(|error| cannot_seal(&error))?;
    object.ends(State::Sealed, Exit::Success);
    if !json {
        output.note(&summary::sealed(path, &parcel.header.place));
    }
    Ok(Pushed::unsent())
}
