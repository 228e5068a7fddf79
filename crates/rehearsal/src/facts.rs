//! Finds facts about an attachment in its bytes, such as the size of a picture. The file name does not matter.

use crate::words::{FactWords, Words};
use imagesize::ImageType;
use std::time::Duration;

/// Number of characters that are quoted from the beginning of a text.
const OPENING_CHARS: usize = 40;

/// The format that was found in some bytes, with the facts about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Facts {
    /// A picture, with its width and height in pixels if they can be read.
    Picture { format: &'static str, pixels: Option<(usize, usize)> },
    /// RIFF WAVE, with the facts from its header if the header is complete.
    Wave(Option<Wave>),
    /// Sound in a format other than WAVE.
    Audio { format: &'static str },
    /// A video.
    Video { format: &'static str },
    /// An archive or a compressed file.
    Archive { format: &'static str },
    /// PDF, with the version from its first line.
    Pdf { version: String },
    /// UTF-8 text.
    Text(TextFacts),
    /// The attachment contains no bytes.
    Empty,
    /// Any other format.
    Unknown,
}

/// The facts from the header of a WAV file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wave {
    channels: u16,
    samples_per_second: u32,
    bits: u16,
    length: Duration,
}

/// What is known about a text: its counts and its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextFacts {
    lines: usize,
    words: usize,
    characters: usize,
    opening: String,
}

/// Determines the format of the bytes, and the facts about them.
pub(crate) fn look_at(bytes: &[u8]) -> Facts {
    if bytes.is_empty() {
        return Facts::Empty;
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WAVE") {
        return Facts::Wave(read_wave(bytes));
    }
    if let Some(format) = picture_format(bytes) {
        let pixels = imagesize::blob_size(bytes).ok().map(|size| (size.width, size.height));
        return Facts::Picture { format, pixels };
    }
    if let Some(rest) = bytes.strip_prefix(b"%PDF-") {
        let version = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').take(8);
        return Facts::Pdf { version: version.map(|&byte| char::from(byte)).collect() };
    }
    match bytes {
        [b'I', b'D', b'3', ..] => Facts::Audio { format: "MP3" },
        // The header of an MP3 frame: layer III, a valid bit rate and a valid sampling rate. The byte order mark of
        // UTF-16 also begins with 0xff, but it does not meet these conditions.
        [0xff, second, third, ..] if is_layer_3(*second, *third) => Facts::Audio { format: "MP3" },
        [b'O', b'g', b'g', b'S', ..] => Facts::Audio { format: "Ogg" },
        [b'f', b'L', b'a', b'C', ..] => Facts::Audio { format: "FLAC" },
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Facts::Video { format: "MP4" },
        [0x1a, 0x45, 0xdf, 0xa3, ..] => Facts::Video { format: "Matroska" },
        [b'P', b'K', 3, 4, ..] => Facts::Archive { format: "ZIP" },
        [0x1f, 0x8b, ..] => Facts::Archive { format: "gzip" },
        _ => match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Facts::Text(count(text)),
            _ => Facts::Unknown,
        },
    }
}

/// Counts lines, words and characters.
pub(crate) fn count(text: &str) -> TextFacts {
    let opening = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    TextFacts {
        lines: text.lines().count(),
        words: text.split_whitespace().count(),
        characters: text.chars().count(),
        opening: shortened(opening, OPENING_CHARS),
    }
}

/// Returns the text as one line of at most `most` characters, with an ellipsis if something was left out.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let mut characters = text.chars().map(|character| if character.is_control() { ' ' } else { character });
    let mut short: String = characters.by_ref().take(most).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

/// Returns the format of a picture if its first bytes identify the format. The library `imagesize` also guesses the
/// formats of other pictures; this function ignores these guesses.
fn picture_format(bytes: &[u8]) -> Option<&'static str> {
    match imagesize::image_type(bytes).ok()? {
        ImageType::Png => Some("PNG"),
        ImageType::Jpeg => Some("JPEG"),
        ImageType::Gif => Some("GIF"),
        ImageType::Webp => Some("WebP"),
        ImageType::Bmp => Some("BMP"),
        ImageType::Tiff => Some("TIFF"),
        // Some videos begin with the same bytes as HEIF pictures. Only the brand, in bytes 8 to 11, tells them apart.
        ImageType::Heif(_) => match bytes.get(8..12)? {
            b"avif" | b"avis" => Some("AVIF"),
            b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"mif1" | b"msf1" => Some("HEIF"),
            _ => None,
        },
        _ => None,
    }
}

/// Reads the chunks of a RIFF file, to find the format and the length of the sound.
fn read_wave(bytes: &[u8]) -> Option<Wave> {
    let mut rest = bytes.get(12..)?;
    let mut format = None;
    while let Some((name, after_name)) = rest.split_first_chunk::<4>() {
        let (size, body) = after_name.split_first_chunk::<4>()?;
        let size = usize::try_from(u32::from_le_bytes(*size)).ok()?;
        match name {
            b"fmt " => {
                let field = |at: usize| body.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes);
                let long = |at: usize| body.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
                format = Some((field(2)?, long(4)?, long(8)?, field(14)?));
            }
            b"data" => {
                let (channels, samples_per_second, bytes_per_second, bits) = format?;
                // Do not use a declared length that is too large, such as that of a recorder that streams. Count the
                // bytes that exist instead.
                let length = u64::try_from(size.min(body.len())).ok()?;
                let milliseconds = (length * 1000).checked_div(u64::from(bytes_per_second))?;
                let length = Duration::from_millis(milliseconds);
                return Some(Wave { channels, samples_per_second, bits, length });
            }
            _ => {}
        }
        // Chunks begin at even offsets, so skip one byte after a chunk of odd length.
        rest = body.get(size.checked_add(size % 2)?..)?;
    }
    None
}

impl Facts {
    /// Puts the facts into words. `declared` is the declared MIME type, which is only used if the format is unknown.
    pub(crate) fn tell(&self, words: &Words, size: usize, declared: &str) -> String {
        let FactWords { picture, picture_without_size, wave, wave_without_header, .. } = &words.facts;
        let bytes = size.to_string();
        match self {
            Self::Picture { format, pixels: Some((width, height)) } => {
                let (width, height) = (width.to_string(), height.to_string());
                picture.fill(&[("format", format), ("width", &width), ("height", &height), ("bytes", &bytes)])
            }
            Self::Picture { format, pixels: None } => {
                picture_without_size.fill(&[("format", format), ("bytes", &bytes)])
            }
            Self::Wave(Some(facts)) => wave.fill(&[
                ("seconds", &format!("{}.{:03}", facts.length.as_secs(), facts.length.subsec_millis())),
                ("channels", &facts.channels.to_string()),
                ("rate", &facts.samples_per_second.to_string()),
                ("bits", &facts.bits.to_string()),
                ("bytes", &bytes),
            ]),
            Self::Wave(None) => wave_without_header.fill(&[("bytes", &bytes)]),
            Self::Audio { format } => words.facts.audio.fill(&[("format", format), ("bytes", &bytes)]),
            Self::Video { format } => words.facts.video.fill(&[("format", format), ("bytes", &bytes)]),
            Self::Archive { format } => words.facts.archive.fill(&[("format", format), ("bytes", &bytes)]),
            Self::Pdf { version } => words.facts.pdf.fill(&[("version", version), ("bytes", &bytes)]),
            Self::Text(facts) => facts.tell(words),
            Self::Empty => words.facts.empty.fill(&[]),
            Self::Unknown => words.facts.unknown.fill(&[("declared", declared), ("bytes", &bytes)]),
        }
    }
}

impl TextFacts {
    /// Puts the counts into words.
    pub(crate) fn tell(&self, words: &Words) -> String {
        words.facts.text.fill(&[
            ("lines", &self.lines.to_string()),
            ("words", &self.words.to_string()),
            ("characters", &self.characters.to_string()),
            ("opening", &self.opening),
        ])
    }
}

fn is_layer_3(second: u8, third: u8) -> bool {
    let (version, layer) = (second >> 3 & 0b11, second >> 1 & 0b11);
    let (bit_rate, sampling_rate) = (third >> 4, third >> 2 & 0b11);
    second >> 5 == 0b111 && version != 0b01 && layer == 0b01 && bit_rate != 0b1111 && sampling_rate != 0b11
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_society::text::Language;
    use proptest::prelude::*;

    fn check(bytes: &[u8], expect: &str) {
        let told = look_at(bytes).tell(Words::of(Language::En), bytes.len(), "application/x-thing");
        assert_eq!(told, expect);
    }

    fn wave(data: &[u8], declared: u32) -> Vec<u8> {
        let mut bytes = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x02\0".to_vec();
        bytes.extend(8000u32.to_le_bytes());
        bytes.extend(32_000u32.to_le_bytes());
        bytes.extend([4, 0, 16, 0]);
        bytes.extend(b"odd \x01\0\0\0x\0data");
        bytes.extend(declared.to_le_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn pictures() {
        check(
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x02\0\0\0",
            "PNG picture, 640 × 480 pixels, 29 bytes",
        );
        check(b"GIF89a\x03\0\x02\0\0\0\0", "GIF picture, 3 × 2 pixels, 13 bytes");
        check(
            b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xc0\0\x11\x08\0\x05\0\x07\x03\x01\x11\0\x02\x11\0\x03\x11\0",
            "JPEG picture, 7 × 5 pixels, 39 bytes",
        );
        check(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "PNG picture whose size cannot be read, 16 bytes");
    }

    #[test]
    fn sound() {
        check(&wave(&[0; 16_000], 16_000), "WAV audio, 0.500 s, 2 channel(s), 8000 Hz, 16 bits, 16054 bytes");
        check(
            &wave(&[0; 32_000], u32::MAX),
            "WAV audio, 1.000 s, 2 channel(s), 8000 Hz, 16 bits, 32054 bytes",
        );
        check(b"RIFF\0\0\0\0WAVEfmt ", "WAV audio without a complete header, 16 bytes");
        check(b"ID3\x04\0\0\0\0\0\0", "MP3 audio, 10 bytes");
        check(b"\xff\xfb\x90\x64\0\0", "MP3 audio, 6 bytes");
        assert!(!is_layer_3(0xfe, 0x68), "the byte order mark of UTF-16");
    }

    #[test]
    fn documents_and_the_rest() {
        check(b"%PDF-1.7\n%\xe2\xe3", "PDF 1.7 document, 12 bytes");
        check(b"PK\x03\x04\x14\0", "ZIP archive (or a document built as one), 6 bytes");
        check(b"\0\0\0\x18ftypmp42", "MP4 video, 12 bytes");
        check(b"\xfe\0\x01\x02", "unknown format (declared as application/x-thing), 4 bytes");
        check(b"", "empty, 0 bytes");
        check("一行\n第二行 two".as_bytes(), "text, 2 lines, 3 words, 10 characters, begins with “一行”");
    }

    #[test]
    fn a_long_opening_is_shortened() {
        assert_eq!(count(&"字".repeat(50)).opening, format!("{}…", "字".repeat(OPENING_CHARS)));
    }

    proptest! {
        #[test]
        fn looking_never_panics(prefix in 0usize..8, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let signatures: [&[u8]; 8] = [
                b"", b"RIFF\0\0\0\0WAVEfmt ", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF\0\0\0\0WEBP",
                b"\0\0\0\x18ftypheic", b"II*\0",
            ];
            let bytes = [signatures[prefix], &bytes].concat();
            let told = look_at(&bytes).tell(Words::of(Language::Zh), bytes.len(), "");
            prop_assert!(!told.is_empty());
        }
    }
}
