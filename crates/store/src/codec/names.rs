//! Names of a set's items. Must not know outcomes.

use domain::{ItemName, Outcome};

use super::cursor::{Cursor, put_varint};
use super::{Damaged, Packer, Unpacker};

/// The names of these outcomes' items as they are kept beside their set.
pub(crate) fn pack_names(outcomes: &[Outcome], packer: &mut Packer) -> Vec<u8> {
    let mut plain = Vec::with_capacity(outcomes.len() * 96);
    for outcome in outcomes {
        let name = outcome.item.encoded();
        put_varint(name.len() as u64, &mut plain);
        plain.extend_from_slice(name);
    }
    packer.frame(&plain)
}

/// Gives place and name of each item of a set, in order.
pub(crate) fn each_name(
    frame: &[u8],
    unpacker: &mut Unpacker,
    mut wanted: impl FnMut(usize) -> bool,
    mut each: impl FnMut(usize, ItemName),
) -> Result<usize, Damaged> {
    let plain = unpacker.frame(frame)?;
    let mut cursor = Cursor::new(&plain);
    let mut at = 0;
    while !cursor.is_empty() {
        let length = cursor.varint()?;
        let bytes = cursor.take(length)?;
        if wanted(at) {
            each(at, ItemName::decode(bytes).ok_or(Damaged("a name that does not decode"))?);
        }
        at += 1;
    }
    Ok(at)
}
