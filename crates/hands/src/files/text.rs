//! Detects whether the bytes of a file are text, and in which encoding. Pure.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};
use infer::MatcherType;

/// The character with which some programs begin a text file.
pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';

/// The content of a file, as detected from its bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Text in UTF-8.
    Text(String),
    /// Text in another encoding. It can be viewed but not changed, because the encoding may have been guessed
    /// wrongly.
    Encoded {
        /// The name of the encoding. It comes from the byte order mark. Without such a mark, it is guessed.
        encoding: &'static str,
        text: String,
    },
    /// A picture, a sound, a document or another format that is not text.
    Binary,
}

impl Content {
    pub(super) fn of(bytes: &[u8]) -> Self {
        // A PDF may consist of readable characters, but its source is useless to a model.
        if bytes.starts_with(b"%PDF-") {
            return Self::Binary;
        }
        if let Some((encoding, _)) = Encoding::for_bom(bytes)
            && encoding != UTF_8
        {
            return Self::decoded(encoding, bytes);
        }
        if bytes.contains(&0) {
            return Self::Binary;
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) if is_known_binary(bytes) || has_controls(bytes) => Self::Binary,
            Err(_) => Self::decoded(guess(bytes), bytes),
        }
    }

    fn decoded(encoding: &'static Encoding, bytes: &[u8]) -> Self {
        let (text, _, has_errors) = encoding.decode(bytes);
        if has_errors || text.contains('\0') {
            return Self::Binary;
        }
        Self::Encoded { encoding: encoding.name(), text: text.into_owned() }
    }
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    detector.guess(None, Utf8Detection::Deny)
}

/// Returns whether the content begins like a known format that is not text.
fn is_known_binary(bytes: &[u8]) -> bool {
    infer::get(bytes).is_some_and(|found| match found.matcher_type() {
        MatcherType::Text | MatcherType::Custom => false,
        MatcherType::App
        | MatcherType::Archive
        | MatcherType::Audio
        | MatcherType::Book
        | MatcherType::Doc
        | MatcherType::Font
        | MatcherType::Image
        | MatcherType::Video => true,
    })
}

/// Returns whether the content has control characters that do not occur in text.
fn has_controls(bytes: &[u8]) -> bool {
    let is_control = |byte: &u8| *byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b);
    bytes.iter().any(is_control)
}

/// How the lines of a text end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Lf,
    CrLf,
}

impl Ending {
    /// Returns the line end that is more frequent in a text; `Lf` if both are equally frequent. Returns `None` if the
    /// text has no line end.
    pub(super) fn of(text: &str) -> Option<Self> {
        let all = text.matches('\n').count();
        let windows = text.matches("\r\n").count();
        match all {
            0 => None,
            all if windows.saturating_mul(2) > all => Some(Self::CrLf),
            _ => Some(Self::Lf),
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
        }
    }

    /// Returns a text of a model with these line ends. If the text contains `\r`, the model has chosen the line ends
    /// itself, and the text stays unchanged.
    pub(super) fn applied_to(self, text: &str) -> String {
        match self {
            Self::CrLf if !text.contains('\r') => text.replace('\n', "\r\n"),
            Self::Lf | Self::CrLf => text.to_owned(),
        }
    }
}

/// Returns the lines of a text, without their line ends and without a byte order mark. A line end at the end of the
/// text does not begin another, empty line.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text).lines()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_of_a_file_is_told_apart() {
        let text = |text: &str| Content::Text(text.to_owned());
        let encoded = |encoding, text: &str| Content::Encoded { encoding, text: text.to_owned() };
        let check = |bytes: &[u8], expect: Content| assert_eq!(Content::of(bytes), expect, "{bytes:?}");
        check(b"", text(""));
        check(b"a\r\nb", text("a\r\nb"));
        check("中文 é".as_bytes(), text("中文 é"));
        check(b"\xef\xbb\xbfa", text("\u{feff}a"));
        check(b"\x1b[31mred", text("\u{1b}[31mred"));
        check(b"BM is text here", text("BM is text here"));
        check(b"<svg/>", text("<svg/>"));
        check(b"%PDF-1.7\nplain", Content::Binary);
        check(b"a\0b", Content::Binary);
        check(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", Content::Binary);
        check(b"\xff\xd8\xff\xe0\x10JFIF", Content::Binary);
        check(b"GIF89a\xff\xff", Content::Binary);
        check(b"ID3\x04\xff\xfb", Content::Binary);
        check(b"\x7fELF\x02\x01\x01", text("\u{7f}ELF\u{2}\u{1}\u{1}"));
        check(b"\x01\x02\xff", Content::Binary);
        check(b"\xff\xfea\0\n\0", encoded("UTF-16LE", "a\n"));
        check(b"\xfe\xff\0a", encoded("UTF-16BE", "a"));
        check(b"\xff\xfe\0\0a\0\0\0", Content::Binary);
        check(b"\xff\xfe\x00\xd8", Content::Binary);
        check(b"a\0\n\0", Content::Binary);
        check(b"caf\xe9 au lait, d\xe9j\xe0 vu", encoded("windows-1252", "café au lait, déjà vu"));
        let (gbk, _, _) = encoding_rs::GBK.encode("这个文件是用国标编码保存的，请不要损坏它。");
        check(&gbk, encoded("GBK", "这个文件是用国标编码保存的，请不要损坏它。"));
    }

    #[test]
    fn the_majority_of_the_lines_decides_how_lines_end() {
        let check = |text: &str, expect| assert_eq!(Ending::of(text), expect, "{text:?}");
        check("", None);
        check("a\r", None);
        check("a\n", Some(Ending::Lf));
        check("a\r\nb\r\n", Some(Ending::CrLf));
        check("a\r\nb\n", Some(Ending::Lf));
        check("a\r\nb\r\nc\n", Some(Ending::CrLf));
        assert_eq!(Ending::CrLf.applied_to("a\nb"), "a\r\nb");
        assert_eq!(Ending::CrLf.applied_to("a\r\nb\n"), "a\r\nb\n");
        assert_eq!(Ending::Lf.applied_to("a\r\nb"), "a\r\nb");
    }
}
