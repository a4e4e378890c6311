//! Numbers, lengths and frames of the layout, read one after another; whatever doesn't fit is an error with words.
//! Must not know what the bytes mean.

use std::io::Read as _;

use anyhow::{Context as _, bail, ensure};

/// Bytes that are yet to be read.
pub(super) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next `count` bytes.
    pub(super) fn take(&mut self, count: u64) -> anyhow::Result<&'a [u8]> {
        let left = self.0.len();
        let (taken, rest) = usize::try_from(count)
            .ok()
            .and_then(|count| self.0.split_at_checked(count))
            .with_context(|| format!("{count} bytes are said to follow, {left} do"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> anyhow::Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// Four bytes, little endian.
    pub(super) fn u32(&mut self) -> anyhow::Result<u32> {
        Ok(self.take(4)?.iter().rev().fold(0, |number, byte| (number << 8) | u32::from(*byte)))
    }

    /// Eight bytes, little endian.
    pub(super) fn u64(&mut self) -> anyhow::Result<u64> {
        Ok(self.take(8)?.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
    }

    /// Seven bits a byte, lowest first, the top bit set on all but the last.
    pub(super) fn varint(&mut self) -> anyhow::Result<u64> {
        let mut number: u128 = 0;
        for place in 0..10 {
            let byte = self.byte().context("a varint doesn't end")?;
            number |= u128::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return u64::try_from(number).context("a varint is beyond 64 bits");
            }
        }
        bail!("a varint is longer than ten bytes")
    }

    /// UTF-8 of so many bytes.
    pub(super) fn text(&mut self, bytes: u64) -> anyhow::Result<&'a str> {
        std::str::from_utf8(self.take(bytes)?).context("a text is not UTF-8")
    }

    /// Nothing may be left.
    pub(super) fn end(self) -> anyhow::Result<()> {
        ensure!(self.0.is_empty(), "{} bytes are left over", self.0.len());
        Ok(())
    }
}

/// The plain bytes of a section that is one frame and nothing else.
pub(super) fn unframe(section: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Bytes::new(section);
    let method = bytes.byte().context("a frame without a method")?;
    let length = u64::from(bytes.u32().context("a frame without a length")?);
    let body = bytes.0;
    let plain = match method {
        0 => body.to_vec(),
        1 => {
            let mut plain = Vec::new();
            let mut decoder = zstd::Decoder::with_buffer(body)?.single_frame();
            // One byte more than promised is enough to see that it lies; a bomb isn't unpacked further.
            decoder.by_ref().take(length + 1).read_to_end(&mut plain).context("a broken zstd frame")?;
            let rest = decoder.finish();
            ensure!(plain.len() as u64 > length || rest.is_empty(), "{} bytes follow the zstd frame", rest.len());
            plain
        }
        other => bail!("a frame of method {other}"),
    };
    ensure!(plain.len() as u64 == length, "a frame says {length} bytes and has {}", plain.len());
    Ok(plain)
}
