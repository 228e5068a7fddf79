//! Distinguishes sound from video by the tracks of a container. The file begins with the same bytes in both cases.

use super::search::{contains, position};
use polity_society::content::Kind;

/// A file in a container format: the MIME types of the format, one for sound and one for video, and the tracks of the
/// file.
pub(super) struct Container {
    sound: &'static str,
    pictures: &'static str,
    holds: Holds,
    usual: Kind,
}

/// The tracks of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Sound,
    Pictures,
    /// The description of the tracks is not among the given bytes, or has an unknown format.
    Unseen,
}

impl Container {
    /// Returns the MIME type. If the tracks are unknown, the kind from the metadata decides between sound and video.
    /// If the metadata says neither sound nor video, the usual content of such a container decides.
    pub(super) fn named(&self, said: Option<Kind>) -> &'static str {
        match (self.holds, said) {
            (Holds::Sound, _) | (Holds::Unseen, Some(Kind::Audio)) => self.sound,
            (Holds::Pictures, _) | (Holds::Unseen, Some(Kind::Video)) => self.pictures,
            (Holds::Unseen, _) if self.usual == Kind::Audio => self.sound,
            (Holds::Unseen, _) => self.pictures,
        }
    }
}

/// Returns the container format with the MIME type `found`; `None` if that type is not a container.
pub(super) fn of(found: &str, bytes: &[u8], head: &[u8]) -> Option<Container> {
    let (sound, pictures, holds, usual) = match found {
        "video/mp4" => ("audio/mp4", "video/mp4", iso(bytes), Kind::Video),
        "video/x-m4v" => ("audio/mp4", "video/x-m4v", iso(bytes), Kind::Video),
        "video/quicktime" => ("audio/mp4", "video/quicktime", iso(bytes), Kind::Video),
        "video/3gpp" => ("audio/3gpp", "video/3gpp", iso(bytes), Kind::Video),
        "video/3gpp2" => ("audio/3gpp2", "video/3gpp2", iso(bytes), Kind::Video),
        "video/webm" => ("audio/webm", "video/webm", matroska(head), Kind::Video),
        "video/x-matroska" => ("audio/x-matroska", "video/x-matroska", matroska(head), Kind::Video),
        "video/x-ms-wmv" => ("audio/x-ms-wma", "video/x-ms-wmv", asf(head), Kind::Video),
        // There is no separate MIME type for Opus in Ogg.
        "audio/ogg" | "audio/opus" => ("audio/ogg", "video/ogg", ogg(head), Kind::Audio),
        _ => return None,
    };
    Some(Container { sound, pictures, holds, usual })
}

impl Holds {
    fn of(is_sound: bool, is_pictures: bool) -> Self {
        match (is_sound, is_pictures) {
            (_, true) => Self::Pictures,
            (true, false) => Self::Sound,
            (false, false) => Self::Unseen,
        }
    }
}

/// ISO media: the `hdlr` box of each track names its type.
fn iso(bytes: &[u8]) -> Holds {
    let handlers: Vec<&[u8]> = inside(bytes, b"moov")
        .flat_map(|movie| inside(movie, b"trak"))
        .flat_map(|track| inside(track, b"mdia"))
        .flat_map(|media| inside(media, b"hdlr"))
        .filter_map(|handler| handler.get(8..12))
        .collect();
    Holds::of(handlers.contains(&b"soun".as_slice()), handlers.contains(&b"vide".as_slice()))
}

/// Returns the contents of all boxes with this name. The last box may be cut off.
fn inside<'a>(bytes: &'a [u8], wanted: &'static [u8; 4]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (header, long) = (rest.get(..8)?, rest.get(8..16));
        let (length, name) = header.split_first_chunk::<4>()?;
        let (length, start) = match u32::from_be_bytes(*length) {
            // The box extends to the end of the file.
            0 => (rest.len(), 8),
            1 => (usize::try_from(u64::from_be_bytes(long?.try_into().ok()?)).ok()?, 16),
            length => (usize::try_from(length).ok()?, 8),
        };
        if length < start {
            return None;
        }
        let (this, next) = rest.split_at(length.min(rest.len()));
        rest = next;
        Some((name == wanted, this.get(start..).unwrap_or_default()))
    })
    .filter_map(|(is_wanted, content)| is_wanted.then_some(content))
}

/// Matroska: the codec id of each track begins with `A_` for sound and `V_` for video.
fn matroska(head: &[u8]) -> Holds {
    let has = |letter: u8| {
        let is_codec = |window: &[u8]| matches!(window, [0x86, 0x84..=0xa0, sort, b'_'] if *sort == letter);
        head.windows(4).any(is_codec)
    };
    Holds::of(has(b'A'), has(b'V'))
}

/// Windows media: each stream has the GUID of its type.
fn asf(head: &[u8]) -> Holds {
    const REST: &[u8] = b"\x4d\x5b\xcf\x11\xa8\xfd\x00\x80\x5f\x5c\x44\x2b";
    let has = |start: &[u8]| contains(head, &[start, REST].concat());
    Holds::of(has(b"\x40\x9e\x69\xf8"), has(b"\xc0\xef\x19\xbc"))
}

/// Ogg: the first page of each stream begins with the name of its codec.
/// The first pages of all streams come before the other pages.
fn ogg(head: &[u8]) -> Holds {
    let (mut is_sound, mut is_pictures) = (false, false);
    let mut rest = head;
    while let Some(page) = position(rest, b"OggS").and_then(|at| rest.get(at..)) {
        let begins = page.get(5).is_some_and(|flags| flags & 2 != 0);
        let Some(codec) = page.get(28..).filter(|_| begins) else { break };
        let is = |names: &[&[u8]]| names.iter().any(|name| codec.starts_with(name));
        is_sound |= is(&[b"\x01vorbis", b"OpusHead", b"\x7fFLAC", b"Speex   "]);
        is_pictures |= is(&[b"\x80theora", b"BBCD\0", b"\x01video\0", b"OVP80"]);
        rest = codec;
    }
    Holds::of(is_sound, is_pictures)
}
