//! What must be there besides the two, three or four letters that are enough for the library: text in an encoding other
//! than UTF-8 begins with letters too, and two bytes come by chance.

use super::frames;

/// Whether the bytes go on like the format that the library took them for.
pub(super) fn holds(found: infer::Type, head: &[u8]) -> bool {
    let at = |start: usize, wanted: &[u8]| head.get(start..).is_some_and(|rest| rest.starts_with(wanted));
    let byte = |index: usize, is: fn(&u8) -> bool| head.get(index).is_some_and(is);
    match found.mime_type() {
        "image/gif" => at(0, b"GIF87a") || at(0, b"GIF89a"),
        // The library leaves out the first four letters: "Use the WEBP format" would do.
        "image/webp" => at(0, b"RIFF") && is_length(head, 19),
        "audio/x-wav" | "video/x-msvideo" => is_length(head, 19),
        "audio/x-aiff" => is_length(head, 16),
        "image/bmp" => at(6, &[0; 4]),
        "image/vnd.microsoft.icon" => is_icon_directory(head),
        "image/vnd.adobe.photoshop" => at(4, &[0, 1]) || at(4, &[0, 2]),
        "image/vnd.dwg" => at(6, &[0]),
        "audio/ogg" | "audio/opus" => at(4, &[0]),
        // Its first block is always of the kind 0, alone or not.
        "audio/x-flac" => byte(4, |kind| kind & 0x7f == 0),
        "audio/midi" => at(4, &[0, 0, 0, 6]),
        // A version such as 3990: "MAC address" has another.
        "audio/x-ape" => byte(5, |high| *high == 0x0f),
        "audio/x-dsf" => at(4, &[28, 0, 0, 0]),
        "audio/mpeg" => frames::is_id3(head) || frames::of(head) == Some("audio/mpeg"),
        "audio/aac" => frames::of(head) == Some("audio/aac"),
        // Boxes of ISO media begin with their length, which is not as large as letters make it.
        "audio/m4a" | "video/mp4" | "video/x-m4v" | "video/quicktime" => byte(0, |high| *high < 0x20),
        "application/vnd.microsoft.portable-executable" => is_executable(head),
        // A certificate or key: a sequence that begins with a sequence or a number.
        "application/x-x509-ca-cert" if found.extension() == "der" => {
            byte(4, |tag| matches!(tag, 0x02 | 0x30))
        }
        // Two bytes that are as good as any others.
        "application/x-executable" if found.extension() == "obj" => false,
        "application/x-llvm" => at(2, &[0xc0, 0xde]),
        "application/x-compress" => byte(2, |flags| flags & 0x60 == 0 && matches!(flags & 0x1f, 9..=16)),
        "application/x-cpio" => at(0, b"0707"),
        "application/x-shockwave-flash" => byte(3, |version| *version > 0) && at(7, &[0]),
        // Pi, or its square root where there is no block.
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

/// Whether the highest byte of the first chunk's length is there, and none that letters have.
fn is_length(head: &[u8], highest: usize) -> bool {
    head.get(highest).is_some_and(|byte| *byte < 0x20)
}

/// Whether a directory lists icons or pointers. It has at least one entry; the first has a reserved byte that is 0, a
/// length, and a place behind the directory. Length and place are below 16 MiB: real icons are much smaller.
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

/// A program for Windows: behind the one for its predecessor, which says where.
fn is_executable(head: &[u8]) -> bool {
    let place = head.get(0x3c..0x40).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let place = place.and_then(|place| usize::try_from(place).ok());
    place.and_then(|place| head.get(place..)).is_some_and(|rest| rest.starts_with(b"PE\0\0"))
}
