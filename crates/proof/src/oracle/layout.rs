//! Blocks: a code, a time and perhaps an entry of texts for each item of a set; read whole, so that damage anywhere is
//! seen, though only codes are needed to count.
//! Must not know tables or what counts.

use anyhow::{Context as _, ensure};

use super::bytes::{Bytes, unframe};
use super::fold::Execution;

/// Texts of so many bytes and more are kept apart.
const LARGE: u64 = 2048;

/// A text that a block refers to.
pub(super) struct LargeText {
    /// BLAKE3 of the UTF-8.
    pub(super) digest: [u8; 32],
    /// Length of the UTF-8 in bytes.
    pub(super) bytes: u64,
}

/// What a block says of its items, in the order of its set.
pub(super) struct Block {
    pub(super) executions: Vec<Execution>,
    pub(super) large: Vec<LargeText>,
}

/// Reads a block of `n` items; `texts` is `None` if it has no row of texts.
///
/// # Errors
/// The bytes contradict the layout or each other.
pub(super) fn block(n: usize, codes: &[u8], times: &[u8], texts: Option<&[u8]>) -> anyhow::Result<Block> {
    let codes = unframe(codes).context("codes")?;
    ensure!(codes.len() == n, "{} codes for {n} items", codes.len());
    ensure!(codes.iter().all(|code| *code < 16), "a code with unknown bits");
    check_times(n, times).context("times")?;
    let mut large = Vec::new();
    let mut attempts_bad = vec![false; n];
    let with_texts: Vec<usize> = (0..n).filter(|at| codes[*at] & 8 != 0).collect();
    ensure!(with_texts.is_empty() == texts.is_none(), "{} items have texts, the row says else", with_texts.len());
    if let Some(texts) = texts {
        let plain = unframe(texts).context("texts")?;
        let mut bytes = Bytes::new(&plain);
        for at in with_texts {
            attempts_bad[at] = entry(&mut bytes, &mut large).with_context(|| format!("texts of item {at}"))?;
        }
        bytes.end().context("texts")?;
    }
    let mut executions = Vec::new();
    for (code, attempts_bad) in codes.iter().zip(attempts_bad) {
        let bad_before = code & 4 != 0;
        ensure!(bad_before == attempts_bad, "bit 2 says {bad_before}, the attempts say {attempts_bad}");
        executions.push(Execution { status: code & 3, bad_before });
    }
    Ok(Block { executions, large })
}

fn check_times(n: usize, times: &[u8]) -> anyhow::Result<()> {
    let plain = unframe(times)?;
    let planes = *plain.first().context("no number of planes")?;
    ensure!(planes <= 8, "{planes} planes");
    ensure!(plain.len() == 1 + usize::from(planes) * n, "{} bytes in {planes} planes of {n}", plain.len());
    Ok(())
}

/// One entry; true if one of its attempts failed or errored.
fn entry(bytes: &mut Bytes<'_>, large: &mut Vec<LargeText>) -> anyhow::Result<bool> {
    let flags = bytes.byte()?;
    ensure!(flags < 8, "unknown flags {flags}");
    let mut bad = false;
    if flags & 1 != 0 {
        text(bytes, large).context("message")?;
    }
    if flags & 2 != 0 {
        for _ in 0..bytes.varint()? {
            let status = bytes.byte()?;
            ensure!(status < 4, "an attempt of status {status}");
            bad |= status == 1 || status == 2;
            bytes.varint().context("duration")?;
            match bytes.byte()? {
                0 => {}
                1 => text(bytes, large).context("message of an attempt")?,
                other => anyhow::bail!("an optional text begins with {other}"),
            }
        }
    }
    if flags & 4 != 0 {
        for _ in 0..bytes.varint()? {
            let length = bytes.varint()?;
            bytes.text(length).context("external id")?;
        }
    }
    Ok(bad)
}

fn text(bytes: &mut Bytes<'_>, large: &mut Vec<LargeText>) -> anyhow::Result<()> {
    let number = bytes.varint()?;
    let length = number / 2;
    ensure!((number % 2 == 1) == (length >= LARGE), "a text of {length} bytes is kept in the wrong place");
    if number % 2 == 0 {
        bytes.text(length)?;
    } else {
        let digest = bytes.take(32)?.try_into()?;
        large.push(LargeText { digest, bytes: length });
    }
    Ok(())
}

/// Checks a large text against what a block says of it.
///
/// # Errors
/// It is not UTF-8 of that length and digest.
pub(super) fn check_large(text: &LargeText, body: &[u8]) -> anyhow::Result<()> {
    let plain = unframe(body)?;
    ensure!(plain.len() as u64 == text.bytes, "{} bytes where a block says {}", plain.len(), text.bytes);
    ensure!(*blake3::hash(&plain).as_bytes() == text.digest, "its digest is another");
    std::str::from_utf8(&plain)?;
    Ok(())
}
