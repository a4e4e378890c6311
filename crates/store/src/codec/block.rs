//! Verdicts and durations of a block, in planes. Must not know texts beyond the bit that says there are some.

use domain::verdict::Light;
use domain::{DurationUs, Outcome};

use super::text::has_text;
use super::{Damaged, Packer, Unpacker};

/// The bit of a code that says that the item has an entry in the texts.
pub(crate) const HAS_TEXT: u8 = 8;

/// Verdict codes of these outcomes.
pub(crate) fn pack_codes(outcomes: &[Outcome], packer: &mut Packer) -> (Vec<u8>, bool) {
    let mut any_text = false;
    let codes: Vec<u8> = outcomes
        .iter()
        .map(|outcome| {
            let text = has_text(outcome);
            any_text |= text;
            Light::of(outcome).code() | if text { HAS_TEXT } else { 0 }
        })
        .collect();
    (packer.frame(&codes), any_text)
}

/// The verdict that a code says.
pub(crate) fn light_of(code: u8) -> Result<Light, Damaged> {
    Light::from_code(code & !HAS_TEXT).ok_or(Damaged("an unknown verdict code"))
}

/// A duration as it is kept.
pub(crate) fn value_of(duration: Option<DurationUs>) -> u64 {
    duration.map_or(0, |us| us.0.wrapping_add(1))
}

/// Back from [`value_of`].
pub(super) fn duration_of(value: u64) -> Option<DurationUs> {
    value.checked_sub(1).map(DurationUs)
}

/// Durations of these outcomes.
pub(crate) fn pack_times(outcomes: &[Outcome], packer: &mut Packer) -> Vec<u8> {
    let n = outcomes.len();
    let widest = outcomes.iter().fold(0, |all, outcome| all | value_of(outcome.duration_us));
    let planes = (64 - widest.leading_zeros()).div_ceil(8) as usize;
    let mut plain = vec![0; 1 + planes * n];
    plain[0] = planes as u8;
    for (at, outcome) in outcomes.iter().enumerate() {
        let bytes = value_of(outcome.duration_us).to_le_bytes();
        for (plane, byte) in bytes.iter().take(planes).enumerate() {
            plain[1 + plane * n + at] = *byte;
        }
    }
    packer.frame(&plain)
}

/// Back from [`pack_times`].
pub(crate) fn unpack_times(
    frame: &[u8],
    n: usize,
    unpacker: &mut Unpacker,
) -> Result<Vec<Option<DurationUs>>, Damaged> {
    let plain = unpacker.frame(frame)?;
    let planes = usize::from(*plain.first().ok_or(Damaged("times without width"))?);
    if planes > 8 || plain.len() != 1 + planes * n {
        return Err(Damaged("times of another number of items"));
    }
    let value = |at: usize| {
        let mut bytes = [0; 8];
        for (plane, byte) in bytes.iter_mut().take(planes).enumerate() {
            *byte = plain[1 + plane * n + at];
        }
        duration_of(u64::from_le_bytes(bytes))
    };
    Ok((0..n).map(value).collect())
}
