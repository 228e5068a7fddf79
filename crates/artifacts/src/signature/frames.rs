//! Recognises sound without a container: a series of frames, each with its length in its header.

/// Bit rates in kbit/s, by the index in a frame's header. 0 is the "free" rate, which is not supported.
const MPEG_1_LAYER_1: [usize; 15] = [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448];
const MPEG_1_LAYER_2: [usize; 15] = [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384];
const MPEG_1_LAYER_3: [usize; 15] = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const MPEG_2_LAYER_1: [usize; 15] = [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256];
const MPEG_2_LAYERS_2_AND_3: [usize; 15] = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];

/// Returns the MIME type of the sound if the bytes begin with a complete frame.
/// After this frame, there must be another frame, a tag, or the end of the bytes.
///
/// The library `infer` checks only two bytes. Of the kinds of MPEG sound, it recognises only layer III without a
/// checksum.
pub(super) fn of(head: &[u8]) -> Option<&'static str> {
    let [0xff, second, third, fourth, fifth, sixth, ..] = *head else { return None };
    // `ff fe` could begin a frame of layer I with a checksum, but counts as the byte order mark of UTF-16 here.
    if second == 0xfe {
        return None;
    }
    let (mime_type, length) = if second & 0xf6 == 0xf0 {
        let length = usize::from(fourth & 3) << 11 | usize::from(fifth) << 3 | usize::from(sixth >> 5);
        let is_sampled = third >> 2 & 0xf < 13;
        ("audio/aac", Some(length).filter(|length| is_sampled && *length > 7)?)
    } else {
        ("audio/mpeg", mpeg_length(second, third)?)
    };
    let goes_on = match head.get(length..)? {
        [0xff, follower, ..] => *follower == second,
        [] | [_] => true,
        tag => tag.starts_with(b"TAG") || tag.starts_with(b"APETAGEX") || tag.starts_with(b"LYRICS"),
    };
    goes_on.then_some(mime_type)
}

/// Computes the length in bytes of a frame of MPEG sound; `None` if the header is not valid.
fn mpeg_length(second: u8, third: u8) -> Option<usize> {
    if second & 0xe0 != 0xe0 {
        return None;
    }
    let (version, layer) = (second >> 3 & 3, second >> 1 & 3);
    let halved = match version {
        0 => 4,
        2 => 2,
        3 => 1,
        _ => return None,
    };
    let (rates, samples) = match (version, layer) {
        (3, 3) => (MPEG_1_LAYER_1, 384),
        (3, 2) => (MPEG_1_LAYER_2, 1152),
        (3, 1) => (MPEG_1_LAYER_3, 1152),
        (_, 3) => (MPEG_2_LAYER_1, 384),
        (_, 2) => (MPEG_2_LAYERS_2_AND_3, 1152),
        (_, 1) => (MPEG_2_LAYERS_2_AND_3, 576),
        _ => return None,
    };
    let rate = *rates.get(usize::from(third >> 4)).filter(|rate| **rate > 0)? * 1000;
    let sampled = *[44_100, 48_000, 32_000].get(usize::from(third >> 2 & 3))? / halved;
    let padding = usize::from(third >> 1 & 1);
    // Layer I (3 in the header) counts its length in slots of four bytes.
    Some(if layer == 3 {
        (12 * rate / sampled + padding) * 4
    } else {
        samples / 8 * rate / sampled + padding
    })
}

/// Whether the bytes begin with an ID3 tag: a version, and a length whose bytes have seven bits each.
pub(super) fn is_id3(head: &[u8]) -> bool {
    match head {
        [b'I', b'D', b'3', 2..=4, revision, _, length @ ..] => {
            *revision != 0xff && length.get(..4).is_some_and(|length| length.iter().all(u8::is_ascii))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two frames with this header, each `length` bytes long.
    fn frames(header: [u8; 6], length: usize) -> Vec<u8> {
        let mut bytes = vec![0; 2 * length];
        bytes[..6].copy_from_slice(&header);
        bytes[length..length + 6].copy_from_slice(&header);
        bytes
    }

    #[test]
    fn lengths_of_frames() {
        let check = |header: [u8; 6], length: usize, expect: Option<&str>| {
            assert_eq!(of(&frames(header, length)), expect, "{header:02x?}");
        };
        check([0xff, 0xfb, 0x90, 0x64, 0, 0], 417, Some("audio/mpeg"));
        check([0xff, 0xfb, 0x92, 0x64, 0, 0], 418, Some("audio/mpeg"));
        // The next frames, in this order: with a checksum; MPEG 2; MPEG 2.5; layer II; layer I; AAC.
        check([0xff, 0xfa, 0x90, 0x64, 0, 0], 417, Some("audio/mpeg"));
        check([0xff, 0xf3, 0x40, 0xc0, 0, 0], 104, Some("audio/mpeg"));
        check([0xff, 0xe3, 0x48, 0xc0, 0, 0], 288, Some("audio/mpeg"));
        check([0xff, 0xfd, 0x80, 0, 0, 0], 417, Some("audio/mpeg"));
        check([0xff, 0xff, 0x10, 0, 0, 0], 32, Some("audio/mpeg"));
        check([0xff, 0xf1, 0x50, 0x80, 0x0c, 0x9f], 100, Some("audio/aac"));
        // No sound is found if the second frame is not at its place. In the next four cases, one part of the header is
        // invalid: the rate, the version, the length, or the synchronisation mark.
        check([0xff, 0xfb, 0x90, 0x64, 0, 0], 400, None);
        check([0xff, 0xfb, 0xf0, 0x64, 0, 0], 417, None);
        check([0xff, 0xeb, 0x90, 0x64, 0, 0], 417, None);
        check([0xff, 0xf1, 0x50, 0x80, 0, 0x1f], 100, None);
        check([0xff, 0x1b, 0x90, 0x64, 0, 0], 417, None);
    }

    #[test]
    fn a_frame_may_be_the_last() {
        let bytes = frames([0xff, 0xfb, 0x90, 0x64, 0, 0], 417);
        assert_eq!(of(&bytes[..417]), Some("audio/mpeg"));
        assert_eq!(of(&[&bytes[..417], b"TAGtitle"].concat()), Some("audio/mpeg"));
        assert_eq!(of(&[&bytes[..417], b"words"].concat()), None);
        assert_eq!(of(&bytes[..416]), None);
        assert_eq!(of(b"\xff\xfeS\0o\0m\0e\0 \0w\0o\0r\0d\0s\0"), None);
    }
}
