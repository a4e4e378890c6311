//! Frames: a section, compressed where that makes it shorter. Must not know what is in it.

use super::Damaged;

const STORED: u8 = 0;
const ZSTD: u8 = 1;
const HEAD: usize = 5;
/// Level 1: the fastest that still finds the repeats in names and statuses (`facts/store-experiments.md`).
const LEVEL: i32 = 1;
/// Shorter sections gain nothing.
const COMPRESS_FROM: usize = 48;

/// Compresses sections; one for many, as its tables are large.
pub(crate) struct Packer {
    zstd: Option<zstd::bulk::Compressor<'static>>,
}

impl Packer {
    /// A packer; without memory for its tables, one that stores.
    pub(crate) fn new() -> Self {
        Self { zstd: zstd::bulk::Compressor::new(LEVEL).ok() }
    }

    /// The frame of `plain`.
    pub(crate) fn frame(&mut self, plain: &[u8]) -> Vec<u8> {
        let mut frame = Vec::with_capacity(HEAD + zstd::zstd_safe::compress_bound(plain.len()));
        frame.push(ZSTD);
        frame.extend_from_slice(&(plain.len() as u32).to_le_bytes());
        frame.resize(frame.capacity(), 0);
        let packed = if plain.len() < COMPRESS_FROM { None } else { self.compress(plain, &mut frame[HEAD..]) };
        if let Some(length) = packed.filter(|length| *length < plain.len()) {
            frame.truncate(HEAD + length);
        } else {
            frame.truncate(HEAD);
            frame[0] = STORED;
            frame.extend_from_slice(plain);
        }
        frame
    }

    fn compress(&mut self, plain: &[u8], into: &mut [u8]) -> Option<usize> {
        self.zstd.as_mut()?.compress_to_buffer(plain, into).ok()
    }
}

/// Reads frames; one for many.
pub(crate) struct Unpacker {
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl Unpacker {
    /// An unpacker.
    pub(crate) fn new() -> Self {
        Self { zstd: None }
    }

    /// The plain bytes of a frame.
    pub(crate) fn frame(&mut self, frame: &[u8]) -> Result<Vec<u8>, Damaged> {
        let (head, body) = frame.split_at_checked(HEAD).ok_or(Damaged("a frame without head"))?;
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        match head[0] {
            STORED if body.len() == length => Ok(body.to_vec()),
            STORED => Err(Damaged("a stored frame of another length")),
            ZSTD => self.inflate(body, length),
            _ => Err(Damaged("a frame of an unknown method")),
        }
    }

    fn inflate(&mut self, body: &[u8], length: usize) -> Result<Vec<u8>, Damaged> {
        // The length is believed only as far as the compressed frame itself says the same.
        if zstd::zstd_safe::get_frame_content_size(body).ok().flatten() != Some(length as u64) {
            return Err(Damaged("a compressed frame of another length"));
        }
        if self.zstd.is_none() {
            self.zstd = zstd::bulk::Decompressor::new().ok();
        }
        let zstd = self.zstd.as_mut().ok_or(Damaged("no memory to inflate a frame"))?;
        let plain = zstd.decompress(body, length).map_err(|_| Damaged("a compressed frame that does not inflate"))?;
        if plain.len() == length { Ok(plain) } else { Err(Damaged("a compressed frame that ends too early")) }
    }
}
