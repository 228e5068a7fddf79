//! Whether a container for sound and pictures holds pictures. The first bytes are the same with and without.

use super::{contains, position};
use polity_society::content::Kind;

/// A container, and what it holds.
pub(super) struct Container {
    sound: &'static str,
    pictures: &'static str,
    holds: Holds,
    usual: Kind,
}

/// What the tracks of a container are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Sound,
    Pictures,
    /// The tracks are described further on, or in a way that is not known.
    Unseen,
}

impl Container {
    /// Its MIME type. Where the tracks cannot be seen, it is what was said, and what such a container usually is.
    pub(super) fn named(&self, said: Option<Kind>) -> &'static str {
        match (self.holds, said) {
            (Holds::Sound, _) | (Holds::Unseen, Some(Kind::Audio)) => self.sound,
            (Holds::Pictures, _) | (Holds::Unseen, Some(Kind::Video)) => self.pictures,
            (Holds::Unseen, _) if self.usual == Kind::Audio => self.sound,
            (Holds::Unseen, _) => self.pictures,
        }
    }
}

/// The container that the signature is one of; `None` for everything else.
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
        // Opus in Ogg has no type of its own.
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

/// ISO media: each track names what handles it.
fn iso(bytes: &[u8]) -> Holds {
    let handlers: Vec<&[u8]> = inside(bytes, b"moov")
        .flat_map(|movie| inside(movie, b"trak"))
        .flat_map(|track| inside(track, b"mdia"))
        .flat_map(|media| inside(media, b"hdlr"))
        .filter_map(|handler| handler.get(8..12))
        .collect();
    Holds::of(handlers.contains(&b"soun".as_slice()), handlers.contains(&b"vide".as_slice()))
}

/// The contents of the boxes of that name; the last box may be cut off.
fn inside<'a>(bytes: &'a [u8], wanted: &'static [u8; 4]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (header, long) = (rest.get(..8)?, rest.get(8..16));
        let (length, name) = header.split_first_chunk::<4>()?;
        let (length, start) = match u32::from_be_bytes(*length) {
            // To the end of the file.
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

/// Matroska: each track names its codec, which begins with the letter of its sort.
fn matroska(head: &[u8]) -> Holds {
    let has = |letter: u8| {
        let is_codec = |window: &[u8]| matches!(window, [0x86, 0x84..=0xa0, sort, b'_'] if *sort == letter);
        head.windows(4).any(is_codec)
    };
    Holds::of(has(b'A'), has(b'V'))
}

/// Windows media: each stream names its sort.
fn asf(head: &[u8]) -> Holds {
    const REST: &[u8] = b"\x4d\x5b\xcf\x11\xa8\xfd\x00\x80\x5f\x5c\x44\x2b";
    let has = |start: &[u8]| contains(head, &[start, REST].concat());
    Holds::of(has(b"\x40\x9e\x69\xf8"), has(b"\xc0\xef\x19\xbc"))
}

/// Ogg: each stream begins with a page that has nothing but the name of its codec; those pages come first.
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
