//! Zip archives as the platform hands artifacts out, and as somebody hostile makes them. Must not know what is in them.

/// An archive of these entries, stored as they are. Names may be anything; a link's target is its content.
pub(crate) fn zip(entries: &[(&str, &[u8], bool)]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, content, link) in entries {
        let at = out.len() as u32;
        let mut sum = flate2::Crc::new();
        sum.update(content);
        let mut common = Vec::new();
        // Version, flags, method, time, date.
        for word in [20_u16, 0, 0, 0, 0x21] {
            common.extend(word.to_le_bytes());
        }
        for long in [sum.sum(), content.len() as u32, content.len() as u32] {
            common.extend(long.to_le_bytes());
        }
        common.extend((name.len() as u16).to_le_bytes());
        common.extend(0_u16.to_le_bytes());
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(name.as_bytes());
        out.extend(*content);
        directory.extend(b"PK\x01\x02");
        // Made on Unix, so that the mode counts.
        directory.extend((0x0314_u16).to_le_bytes());
        directory.extend(&common);
        directory.extend([0; 6]);
        let mode: u32 = if *link { 0o120_777 } else { 0o100_644 };
        directory.extend((mode << 16).to_le_bytes());
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (count, start) = (entries.len() as u16, out.len() as u32);
    out.extend(&directory);
    out.extend(b"PK\x05\x06");
    out.extend([0; 4]);
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0; 2]);
    out
}
