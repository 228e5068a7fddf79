//! Decides whether decoded bytes are a file of a known kind, or come from a word that only happens to be valid
//! base64.

use polity_artifacts::{Extent, detect};
use polity_society::content::Kind;

/// How many bytes of a file [`is_known`] examines: enough for formats whose signature comes late.
pub(super) const HEAD: usize = 2048;

/// The maximum number of bytes that [`begins_file`] examines.
pub(super) const BEGINNING: usize = 12;

/// Formats that do not count as files of a known kind, because their signature has only two or three bytes. A text can
/// contain such a signature by chance: for example, `/work`, decoded as base64, begins like a file of the first format.
/// The list also contains the format of certificates. People and models read a certificate as base64, so it must stay
/// in the text.
const TOO_EASY: &[&str] = &[
    "image/jxl",
    "application/octet-stream",
    "application/x-python-code",
    "application/x-compress",
    "application/x-x509-ca-cert",
    "application/x-executable",
];

/// Minimum length, in bytes, of audio frames that have no container format around them. Shorter audio does not count as
/// a file. This many bytes contain several frames, and each frame must end where the next one begins. Random bytes do
/// not do that.
const FRAMES: usize = 1024;

/// Returns whether the bytes are the beginning of a file of a known kind. Text and unspecific types do not count.
pub(super) fn is_known(head: &[u8]) -> bool {
    let head = head.get(..HEAD).unwrap_or(head);
    // The signatures of common files are checked before `detect` is called. A GIF and MPEG packets begin with the same
    // byte, and `detect` also examines later bytes, so it could mistake a GIF for MPEG packets.
    if begins_file(head) {
        return true;
    }
    let detected = detect(None, None, head, Extent::Head);
    let is_easy = TOO_EASY.contains(&detected.mime_type.as_str())
        && !head.starts_with(b"\0\0\0\x0cJXL ")
        && !head.starts_with(b"\x7fELF");
    match detected.kind {
        Kind::Text => false,
        // Little more than two bytes show that a frame begins. Other bytes can look like that by chance, so several
        // frames are required.
        Kind::Audio if matches!(detected.mime_type.as_str(), "audio/mpeg" | "audio/aac") => {
            head.len() >= FRAMES
        }
        // Only one byte shows that a packet of this format begins, so several packets are required.
        Kind::Video if detected.mime_type == "video/mp2t" => head.len() > 3 * 192,
        Kind::Image | Kind::Audio | Kind::Video | Kind::Document | Kind::Other => !is_easy,
    }
}

/// Returns whether the bytes are certainly the beginning of a file of a common format. The search calls this function
/// at every place of a long run. There, a signature of only three bytes could occur by chance, so the patterns here are
/// longer.
pub(super) fn begins_file(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..]
            | [0xff, 0xd8, 0xff, 0xe0, _, _, b'J', b'F', ..]
            | [0xff, 0xd8, 0xff, 0xe1, _, _, b'E' | b'h', b'x' | b't', ..]
            | [0xff, 0xd8, 0xff, 0xe2, _, _, b'I', b'C', ..]
            | [0xff, 0xd8, 0xff, 0xee, _, _, b'A', b'd', ..]
            | [0xff, 0xd8, 0xff, 0xdb, 0, 0x43 | 0x84, ..]
            | [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..]
            | [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A' | b'E', b'V' | b'B', ..]
            | [b'R', b'I', b'F', b'F', _, _, _, _, b'A', b'V', b'I', ..]
            | [b'F', b'O', b'R', b'M', _, _, _, _, b'A', b'I', b'F', ..]
            | [b'%', b'P', b'D', b'F', b'-', ..]
            | [b'P', b'K', 3, 4, _, 0, ..]
            | [b'P', b'K', 5, 6, 0, 0, ..]
            | [b'I', b'D', b'3', 2..=4, 0, ..]
            | [b'O', b'g', b'g', b'S', 0, ..]
            | [b'f', b'L', b'a', b'C', 0 | 0x80, 0, 0, ..]
            | [b'M', b'T', b'h', b'd', 0, 0, 0, 6, ..]
            | [0x1a, 0x45, 0xdf, 0xa3, ..]
            | [0, 0, _, _, b'f', b't', b'y', b'p', ..]
            | [b'I', b'I', 0x2a, 0, ..]
            | [b'M', b'M', 0, 0x2a, ..]
            | [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..]
            // An icon file: the number of entries, then the first entry with its reserved byte
            // and its number of planes. The pattern is so strict that binary lists of small numbers do not match.
            | [0, 0, 1, 0, 1..=16, 0, _, _, _, 0, 0 | 1, 0, ..]
            | [0x1f, 0x8b, 8, 0..=0x1f, _, _, _, _, 0 | 2 | 4, 0..=13 | 255, ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..]
            | [0xfd, b'7', b'z', b'X', b'Z', 0, ..]
            | [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..]
            | [b'R', b'a', b'r', b'!', 0x1a, 7, ..]
            | [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, ..]
            | [b'S', b'Q', b'L', b'i', b't', b'e', b' ', ..]
            | [0x7f, b'E', b'L', b'F', ..]
            | [0, b'a', b's', b'm', 1, 0, ..]
            | [b'w', b'O', b'F', b'F' | b'2', ..]
            | [b'8', b'B', b'P', b'S', 0, ..]
            | [b'{', b'\\', b'r', b't', b'f', ..]
    )
}

/// Returns whether a file that [`begins_file`] recognizes may begin with this byte.
pub(super) fn may_begin_file(byte: u8) -> bool {
    matches!(
        byte,
        0x89 | 0xff
            | b'G'
            | b'R'
            | b'F'
            | b'%'
            | b'P'
            | b'I'
            | b'O'
            | b'f'
            | b'M'
            | 0x1a
            | 0
            | b'B'
            | 0x1f
            | 0xfd
            | b'7'
            | 0xd0
            | b'S'
            | 0x7f
            | b'w'
            | b'8'
            | b'{'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_frame_of_sound_is_no_file() {
        // A frame of MPEG audio with 48 bytes, whose base64 begins with `__UU`.
        let frame = [[0xff, 0xf5, 0x14, 0].as_slice(), &[0; 44]].concat();
        assert_eq!(detect(None, None, &frame, Extent::Head).mime_type, "audio/mpeg");
        assert!(!is_known(&frame));
        assert!(is_known(&frame.repeat(30)));
    }

    #[test]
    fn an_icon_is_told_from_a_list_of_numbers() {
        assert!(begins_file(&[0, 0, 1, 0, 1, 0, 16, 16, 0, 0, 1, 0]));
        let numbers: Vec<u8> = (0u16..64).flat_map(u16::to_be_bytes).collect();
        assert!(!numbers.windows(BEGINNING).any(begins_file));
    }
}
