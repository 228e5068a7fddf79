//! Reads the structure of picture files without decoding the pixels.
//!
//! The main purpose is to remove metadata and leave the pixels as they are, bit for bit. This module keeps only the
//! parts of a file that are known to affect how the picture looks, so it also removes unknown kinds of metadata.

use image::ImageFormat;

pub(super) enum Stripped {
    NothingToRemove,
    /// The file without its metadata.
    Removed(Vec<u8>),
    /// The structure of the file is malformed. A decoder may still be able to read it.
    NotPossible,
}

/// Removes the metadata from a PNG, JPEG or WebP file.
pub(super) fn without_metadata(bytes: &[u8], format: ImageFormat) -> Stripped {
    let rest = match format {
        ImageFormat::Jpeg => jpeg(bytes),
        ImageFormat::Png => png(bytes),
        ImageFormat::WebP => webp(bytes),
        _ => None,
    };
    match rest {
        None => Stripped::NotPossible,
        Some(rest) if rest == bytes => Stripped::NothingToRemove,
        Some(rest) => Stripped::Removed(rest),
    }
}

/// Returns whether a JPEG file ends before its picture is complete. If that cannot be determined, returns `false`.
pub(super) fn is_cut_short(bytes: &[u8]) -> bool {
    const SCAN: &[u8] = &[0xFF, 0xDA];
    const END: &[u8] = &[0xFF, 0xD9];
    let mut rest = bytes.get(2..).unwrap_or_default();
    while let Some(after) = rest.strip_prefix(&[0xFF]) {
        if rest.starts_with(SCAN) {
            // Search for the bytes of the end marker. Compressed pixels never contain these bytes, so they may be
            // anywhere. Look at the very end of the file first, because the marker is usually there.
            return !rest.ends_with(END) && !rest.windows(2).any(|pair| pair == END);
        }
        rest = match after {
            [0xFF, ..] => after,
            [_, high, low, ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                match after.get(1 + length..) {
                    Some(next) => next,
                    None => return true,
                }
            }
            _ => return true,
        };
    }
    rest.is_empty()
}

/// Returns a JPEG file without its metadata and without anything after the end of the picture. Phones store further
/// pictures there, each with the place and the time at which it was taken.
fn jpeg(bytes: &[u8]) -> Option<Vec<u8>> {
    const START: u8 = 0xD8;
    const END: u8 = 0xD9;
    const SCAN: u8 = 0xDA;
    let mut rest = bytes.strip_prefix(&[0xFF, START])?;
    let mut kept = Vec::with_capacity(bytes.len());
    kept.extend([0xFF, START]);
    loop {
        // Any number of fill bytes may come before a marker.
        let [0xFF, tail @ ..] = rest else { return None };
        let (&marker, after) = tail.split_first()?;
        rest = match marker {
            0xFF => tail,
            END => {
                kept.extend([0xFF, END]);
                return Some(kept);
            }
            _ => {
                let length = usize::from(u16::from_be_bytes(*after.first_chunk()?));
                let (segment, mut after) = after.split_at_checked(length)?;
                if jpeg_segment_matters(marker, segment.get(2..)?) {
                    kept.extend([0xFF, marker]);
                    kept.extend(segment);
                }
                if marker == SCAN {
                    let (scan, next) = after.split_at_checked(scan_length(after)?)?;
                    kept.extend(scan);
                    after = next;
                }
                after
            }
        };
    }
}

/// Returns the length of the compressed pixels. The pixels may contain escaped bytes 0xFF and restart markers. They end
/// at the first other marker.
fn scan_length(bytes: &[u8]) -> Option<usize> {
    bytes
        .windows(2)
        .position(|pair| matches!(pair, [0xFF, marker] if !matches!(marker, 0x00 | 0xD0..=0xD7 | 0xFF)))
}

fn jpeg_segment_matters(marker: u8, content: &[u8]) -> bool {
    match marker {
        // Keep APP0 if it marks JFIF, and APP14 if it specifies how colours are stored. Keep APP2 if it contains a
        // colour profile; some APP2 segments contain other data.
        0xE0 => content.starts_with(b"JFIF\0"),
        0xE2 => content.starts_with(b"ICC_PROFILE\0"),
        0xEE => content.starts_with(b"Adobe"),
        // Drop all other application segments and all comments.
        0xE1..=0xEF | 0xFE => false,
        _ => true,
    }
}

fn png(bytes: &[u8]) -> Option<Vec<u8>> {
    const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
    const KEPT: [&[u8; 4]; 21] = [
        b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"sBIT", b"bKGD",
        b"hIST", b"pHYs", b"sPLT", b"cICP", b"mDCV", b"cLLI", b"acTL", b"fcTL", b"fdAT", b"CgBI",
    ];
    let mut rest = bytes.strip_prefix(SIGNATURE)?;
    let mut kept = Vec::with_capacity(bytes.len());
    kept.extend(SIGNATURE);
    loop {
        let length = usize::try_from(u32::from_be_bytes(*rest.first_chunk()?)).ok()?;
        let kind: &[u8; 4] = rest.get(4..)?.first_chunk()?;
        // Length, kind and checksum take four bytes each.
        let (chunk, after) = rest.split_at_checked(length.checked_add(12)?)?;
        if KEPT.contains(&kind) {
            kept.extend(chunk);
        }
        if kind == b"IEND" {
            return Some(kept);
        }
        rest = after;
    }
}

fn webp(bytes: &[u8]) -> Option<Vec<u8>> {
    const KEPT: [&[u8; 4]; 7] = [b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF", b"ICCP"];
    const HAS_EXIF_OR_XMP: u8 = 0b0000_1100;
    let size = usize::try_from(u32::from_le_bytes(*bytes.strip_prefix(b"RIFF")?.first_chunk()?)).ok()?;
    let mut rest = bytes.get(8..size.checked_add(8)?)?.strip_prefix(b"WEBP")?;
    let mut chunks = Vec::with_capacity(bytes.len());
    while !rest.is_empty() {
        let kind: &[u8; 4] = rest.first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*rest.get(4..)?.first_chunk()?)).ok()?;
        // Kind and length take four bytes each, and a chunk of odd length has one byte of padding.
        let (chunk, after) = rest.split_at_checked(length.checked_add(8 + length % 2)?)?;
        if KEPT.contains(&kind) {
            let start = chunks.len();
            chunks.extend(chunk);
            if kind == b"VP8X" {
                *chunks.get_mut(start + 8)? &= !HAS_EXIF_OR_XMP;
            }
        }
        rest = after;
    }
    let size = u32::try_from(chunks.len() + 4).ok()?;
    Some([b"RIFF", size.to_le_bytes().as_slice(), b"WEBP", &chunks].concat())
}
