//! Reading and writing of small parts: varints, texts by length. Must not know what they mean.

use super::Damaged;

/// Appends a varint.
pub(super) fn put_varint(mut value: u64, into: &mut Vec<u8>) {
    while value >= 0x80 {
        into.push(value as u8 | 0x80);
        value >>= 7;
    }
    into.push(value as u8);
}

/// Reads from the front of some bytes.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn byte(&mut self) -> Result<u8, Damaged> {
        let (first, rest) = self.rest.split_first().ok_or(Damaged("ends too early"))?;
        self.rest = rest;
        Ok(*first)
    }

    pub(super) fn varint(&mut self) -> Result<u64, Damaged> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return Err(Damaged("a varint beyond 64 bits"));
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Damaged("a varint of more than ten bytes"))
    }

    pub(super) fn take(&mut self, length: u64) -> Result<&'a [u8], Damaged> {
        let length = usize::try_from(length).map_err(|_| Damaged("a length beyond memory"))?;
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Damaged("ends too early"))?;
        self.rest = rest;
        Ok(taken)
    }
}
