//! Further checks for formats that the library `infer` recognises by only two to four letters. Without these checks,
//! polity could mistake text in an encoding other than UTF-8 for such a format, and two bytes could match by chance.

use super::frames;

/// Whether the bytes after the signature also fit the format that `infer` found.
pub(super) fn holds(found: infer::Type, head: &[u8]) -> bool {
    let at = |start: usize, wanted: &[u8]| head.get(start..).is_some_and(|rest| rest.starts_with(wanted));
    let byte = |index: usize, is: fn(&u8) -> bool| head.get(index).is_some_and(is);
    match found.mime_type() {
        "image/gif" => at(0, b"GIF87a") || at(0, b"GIF89a"),
        // `infer` ignores the first four letters: it would accept the text "Use the WEBP format".
        "image/webp" => at(0, b"RIFF") && is_length(head, 19),
        "audio/x-wav" | "video/x-msvideo" => is_length(head, 19),
        "audio/x-aiff" => is_length(head, 16),
        "image/bmp" => at(6, &[0; 4]),
        "image/vnd.microsoft.icon" => is_icon_directory(head),
        "image/vnd.adobe.photoshop" => at(4, &[0, 1]) || at(4, &[0, 2]),
        "image/vnd.dwg" => at(6, &[0]),
        "audio/ogg" | "audio/opus" => at(4, &[0]),
        // The first metadata block has type 0. The top bit only tells whether it is the last block.
        "audio/x-flac" => byte(4, |kind| kind & 0x7f == 0),
        "audio/midi" => at(4, &[0, 0, 0, 6]),
        // The high byte of a version number such as 3990. The text "MAC address" has another byte here.
        "audio/x-ape" => byte(5, |high| *high == 0x0f),
        "audio/x-dsf" => at(4, &[28, 0, 0, 0]),
        "audio/mpeg" => frames::is_id3(head) || frames::of(head) == Some("audio/mpeg"),
        "audio/aac" => frames::of(head) == Some("audio/aac"),
        // ISO media begins with the length of its first box. Letters in this place would mean a huge length.
        "audio/m4a" | "video/mp4" | "video/x-m4v" | "video/quicktime" => byte(0, |high| *high < 0x20),
        "application/vnd.microsoft.portable-executable" => is_executable(head),
        // A certificate or key: an ASN.1 sequence whose first element is a sequence or an integer.
        "application/x-x509-ca-cert" if found.extension() == "der" => {
            byte(4, |tag| matches!(tag, 0x02 | 0x30))
        }
        // `infer` checks only two bytes of an object file, and files of other formats may begin with the same two
        // bytes. So this answer of `infer` never counts.
        "application/x-executable" if found.extension() == "obj" => false,
        "application/x-llvm" => at(2, &[0xc0, 0xde]),
        "application/x-compress" => byte(2, |flags| flags & 0x60 == 0 && matches!(flags & 0x1f, 9..=16)),
        "application/x-cpio" => at(0, b"0707"),
        "application/x-shockwave-flash" => byte(3, |version| *version > 0) && at(7, &[0]),
        // A block of a bzip2 file begins with the digits of pi. A file without blocks has the digits of the square root
        // of pi here.
        "application/x-bzip2" => {
            at(4, &[0x31, 0x41, 0x59, 0x26, 0x53, 0x59]) || at(4, &[0x17, 0x72, 0x45, 0x38, 0x50, 0x90])
        }
        "application/gzip" => byte(3, |flags| flags & 0xe0 == 0),
        "application/vnd.sqlite3" => at(0, b"SQLite format 3\0"),
        "application/vnd.ms-cab-compressed" => at(4, &[0; 4]) || at(0, b"ISc("),
        "application/postscript" => at(0, b"%!PS"),
        "application/font-sfnt" => {
            head.get(12..16).is_some_and(|tag| tag.iter().all(|byte| matches!(byte, b' '..=b'~')))
        }
        _ => true,
    }
}

/// Whether the byte at index `highest` can be the top byte of a length. In a text, this byte would be a letter.
fn is_length(head: &[u8], highest: usize) -> bool {
    head.get(highest).is_some_and(|byte| *byte < 0x20)
}

/// Whether the file begins with a directory of icons or mouse pointers.
/// The directory has at least one entry.
/// The first entry has a reserved byte that is 0, the length of the first picture, and its offset. The offset must be
/// behind the directory. Length and offset must be below 16 MiB: real icons are much smaller.
pub(super) fn is_icon_directory(head: &[u8]) -> bool {
    let number =
        |at: usize| head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let count = head.get(4..6).and_then(|count| count.try_into().ok()).map(u16::from_le_bytes);
    let Some(count @ 1..) = count else { return false };
    let behind = 6 + 16 * u32::from(count);
    head.get(9) == Some(&0)
        && number(14).is_some_and(|length| (1..1 << 24).contains(&length))
        && number(18).is_some_and(|place| (behind..1 << 24).contains(&place))
}

/// Whether the file is a Windows program. It begins with a DOS header, which contains the offset of the PE header.
fn is_executable(head: &[u8]) -> bool {
    let place = head.get(0x3c..0x40).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let place = place.and_then(|place| usize::try_from(place).ok());
    place.and_then(|place| head.get(place..)).is_some_and(|rest| rest.starts_with(b"PE\0\0"))
}
