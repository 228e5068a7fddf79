//! Signatures that the library `infer` lacks or does not check well enough.

use super::frames;
use super::search::position;
use crate::signature::easy;
use crate::text_test::Looks;

/// For each signature: the bytes at the beginning of a file, the offset and the value of further bytes, the MIME type.
const SIGNATURES: &[(&[u8], usize, &[u8], &str)] = &[
    (b"\x76\x2f\x31\x01", 0, b"", "image/x-exr"),
    (b"#?RADIANCE\n", 0, b"", "image/vnd.radiance"),
    (b"#?RGBE\n", 0, b"", "image/vnd.radiance"),
    (b"DDS \x7c\0\0\0", 0, b"", "image/vnd.ms-dds"),
    (b"qoif\0", 0, b"", "image/qoi"),
    (b"icns\0", 0, b"", "image/x-icns"),
    (b"gimp xcf ", 0, b"", "image/x-xcf"),
    (b"\xff\x4f\xff\x51", 0, b"", "image/j2c"),
    // BigTIFF: TIFF with 64-bit offsets.
    (b"II\x2b\0\x08\0\0\0", 0, b"", "image/tiff"),
    (b"MM\0\x2b\0\x08\0\0", 0, b"", "image/tiff"),
    (b"FORM", 8, b"AIFC", "audio/aiff"),
    // WAVE with 64-bit lengths.
    (b"RF64", 8, b"WAVE", "audio/wav"),
    (b"BW64", 8, b"WAVE", "audio/wav"),
    (b"riff\x2e\x91\xcf\x11", 24, b"wave", "audio/x-w64"),
    (b".snd\0", 0, b"", "audio/basic"),
    (b"caff\0", 0, b"", "audio/x-caf"),
    (b"wvpk", 9, b"\x04", "audio/x-wavpack"),
    (b"TTA1", 5, b"\0", "audio/x-tta"),
    (b"#!AMR-WB\n", 0, b"", "audio/amr-wb"),
    // PostScript after a binary header, which contains the position of a preview picture.
    (b"\xc5\xd0\xd3\xc6", 0, b"", "application/postscript"),
    (b"\xffWPC", 0, b"", "application/vnd.wordperfect"),
    (b"bplist00", 0, b"", "application/x-bplist"),
    (b"PAR1\x15", 0, b"", "application/vnd.apache.parquet"),
    (b"ARROW1\0\0", 0, b"", "application/vnd.apache.arrow.file"),
    (b"\x93NUMPY", 0, b"", "application/x-npy"),
    (b"\x89HDF\r\n\x1a\n", 0, b"", "application/x-hdf5"),
    (b"\xde\x12\x04\x95\0\0\0\0", 0, b"", "application/x-gettext-translation"),
    (b"\x95\x04\x12\xde\0\0\0\0", 0, b"", "application/x-gettext-translation"),
    (b"glTF\x02\0\0\0", 0, b"", "model/gltf-binary"),
    (b"070707", 0, b"", "application/x-cpio"),
];

/// Returns the MIME type of a file that begins with `head`, if `head` has a signature that only this module checks.
pub(super) fn of(head: &[u8], looks: Looks) -> Option<&'static str> {
    if is_pdf(head, looks) {
        return Some("application/pdf");
    }
    if looks == Looks::Text {
        return is_svg(head).then_some("image/svg+xml");
    }
    let is = |(start, at, then, _): &&(&[u8], usize, &[u8], &str)| {
        head.starts_with(start) && head.get(*at..).is_some_and(|rest| rest.starts_with(then))
    };
    if let Some((_, _, _, mime_type)) = SIGNATURES.iter().find(is) {
        return Some(mime_type);
    }
    match head {
        [b'P', sort @ b'4'..=b'6', space, rest @ ..]
            if space.is_ascii_whitespace() && has_dimensions(*sort, rest) =>
        {
            match sort {
                b'4' => Some("image/x-portable-bitmap"),
                b'5' => Some("image/x-portable-graymap"),
                _ => Some("image/x-portable-pixmap"),
            }
        }
        // A mouse pointer has the layout of an icon, with the number 2 instead of 1.
        [0, 0, 2, 0, ..] if easy::is_icon_directory(head) => Some("image/x-win-bitmap"),
        [0, 0, _, _, b'f', b't', b'y', b'p', major @ ..] => of_brands(major),
        [0x1a, 0x45, 0xdf, 0xa3, ..] => of_matroska(head),
        // Compiled Python begins with the version of its bytecode and a line end.
        [_, 0x0d..=0x0e, b'\r', b'\n', ..] => Some("application/x-python-code"),
        [0xff, ..] => frames::of(head),
        // Check GIF before the transport stream: both begin with 0x47, and a GIF may contain 0x47 again where the
        // next packet would begin.
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [0x47, ..] if has_packets(head, 188) => Some("video/mp2t"),
        // Discs and cameras put a time stamp of four bytes before each packet.
        [_, _, _, _, packets @ ..] if has_packets(packets, 192) => Some("video/mp2t"),
        _ => None,
    }
}

/// Whether the file begins with a PDF version. This check is stricter than `infer`, which accepts `%PDF` anywhere in
/// the first kilobyte.
fn is_pdf(head: &[u8], looks: Looks) -> bool {
    let start = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    match start.strip_prefix(b"%PDF-") {
        // In readable text, the line must end after the version. A text about PDF would continue with words.
        Some([major, b'.', minor, rest @ ..]) if looks == Looks::Text => {
            major.is_ascii_digit() && minor.is_ascii_digit() && matches!(rest, [] | [b'\r' | b'\n', ..])
        }
        Some(_) => looks != Looks::Text,
        None => false,
    }
}

/// Whether the header of a Netpbm picture contains its numbers. These are the width and the height, and also the
/// maximum pixel value if the picture is no bitmap. Blanks and comments may stand before each number, and a blank must
/// stand after it.
fn has_dimensions(sort: u8, mut rest: &[u8]) -> bool {
    for _ in 0..if sort == b'4' { 2 } else { 3 } {
        rest = rest.trim_ascii_start();
        while rest.starts_with(b"#") {
            let comment = rest.iter().take_while(|byte| **byte != b'\n').count();
            rest = rest.get(comment..).unwrap_or_default().trim_ascii_start();
        }
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, after) = rest.split_at(digits);
        if number.is_empty() || !after.first().is_some_and(u8::is_ascii_whitespace) {
            return false;
        }
        rest = after;
    }
    true
}

/// Whether the bytes are packets of `size` bytes, each beginning with 0x47. Checks only the first four packets.
fn has_packets(bytes: &[u8], size: usize) -> bool {
    bytes.len() > size && bytes.iter().step_by(size).take(4).all(|byte| *byte == 0x47)
}

/// Returns the type of ISO media by its major brand; `None` for brands that this function does not know.
fn of_brands(major: &[u8]) -> Option<&'static str> {
    match major {
        [b'3', b'g', b'2', ..] => Some("video/3gpp2"),
        [b'3', b'g', ..] => Some("video/3gpp"),
        [b'M', b'4', b'A' | b'B' | b'P', b' ', ..] => Some("audio/mp4"),
        [b'c', b'r', b'x', b' ', ..] => Some("image/x-canon-cr3"),
        [b'i', b's', b'o', _, ..] | [b'm', b'p', b'4', _, ..] | [b'd', b'b', b'y', _, ..] => {
            Some("video/mp4")
        }
        [b'h', b'e', b'i', b'c' | b'x', ..] => Some("image/heic"),
        [b'h', b'e', b'v' | b'i', ..] => Some("image/heif"),
        _ => None,
    }
}

/// Returns the type of a Matroska file by its `DocType` element. `infer` does not recognise a short clip, because it
/// needs more bytes than the clip has.
fn of_matroska(head: &[u8]) -> Option<&'static str> {
    let header = head.get(..256).unwrap_or(head);
    let sort = header.get(position(header, b"\x42\x82")? + 3..)?;
    if sort.starts_with(b"webm") {
        return Some("video/webm");
    }
    sort.starts_with(b"matroska").then_some("video/x-matroska")
}

fn is_svg(head: &[u8]) -> bool {
    let start = head.get(..1024).unwrap_or(head);
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start_matches('\u{feff}').trim_start().to_ascii_lowercase();
    let is_markup = ["<svg", "<!doctype svg", "<?xml"].iter().any(|start| text.starts_with(start));
    let has_element = text.find("<svg").and_then(|at| text.get(at + 4..));
    is_markup && has_element.is_some_and(|rest| rest.starts_with([' ', '>', '\t', '\r', '\n', '/']))
}
