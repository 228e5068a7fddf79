//! Words for kinds, capabilities and sizes.

use polity_society::content::{Capability, Kind};
use polity_society::text::{TextKey, Texts};
use std::fmt;

/// Returns the word for a kind of content.
pub(crate) fn kind_name(kind: Kind, texts: &Texts) -> &str {
    texts.get(match kind {
        Kind::Text => TextKey::KindText,
        Kind::Image => TextKey::KindImage,
        Kind::Audio => TextKey::KindAudio,
        Kind::Video => TextKey::KindVideo,
        Kind::Document => TextKey::KindDocument,
        Kind::Other => TextKey::KindOther,
    })
}

/// Returns the two names of the capability that a model needs to read this kind: the name for people, and the name in
/// declarations.
pub(crate) fn capability_name(kind: Kind, texts: &Texts) -> (&str, Capability) {
    let words = texts.get(match kind {
        Kind::Text => TextKey::CapabilityText,
        Kind::Image => TextKey::CapabilityVision,
        Kind::Audio => TextKey::CapabilityAudio,
        Kind::Video => TextKey::CapabilityVideo,
        Kind::Document | Kind::Other => TextKey::CapabilityFile,
    });
    (words, kind.needs())
}

/// A size for people to read: whole bytes, or a larger unit with one decimal. The units are powers of 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HumanSize {
    /// The number of bytes, if the unit is bytes. For a larger unit, the number of tenths of this unit.
    amount: u64,
    unit: usize,
}

const UNITS: [&str; 7] = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];

impl HumanSize {
    /// Converts a number of bytes to a unit in which the number is below 1024. Rounds the number to one decimal.
    pub fn of_bytes(bytes: u64) -> Self {
        if bytes < 1024 {
            return Self { amount: bytes, unit: 0 };
        }
        let mut unit = 1;
        let mut divisor: u128 = 1024;
        // Compare the rounded size. For example, 1023.95 KB would be rounded to "1024.0 KB", so the next unit is used:
        // "1.0 MB".
        let tenths = |divisor: u128| (u128::from(bytes) * 10 + divisor / 2) / divisor;
        while tenths(divisor) >= 10_240 && unit + 1 < UNITS.len() {
            unit += 1;
            divisor *= 1024;
        }
        Self { amount: u64::try_from(tenths(divisor)).unwrap_or(u64::MAX), unit }
    }
}

impl fmt::Display for HumanSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.get(self.unit) {
            None | Some(&"B") => write!(f, "{} B", self.amount),
            Some(unit) => write!(f, "{}.{} {unit}", self.amount / 10, self.amount % 10),
        }
    }
}

impl HumanSize {
    /// Parses a size that `Display` wrote; `None` for every other text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (number, unit) = text.split_once(' ')?;
        let unit = UNITS.iter().position(|name| *name == unit)?;
        let size = Self { amount: number.replacen('.', "", 1).parse().ok()?, unit };
        (size.to_string() == text).then_some(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{english, type_names};
    use polity_society::text::Language;
    use proptest::prelude::*;

    #[test]
    fn sizes() {
        let check = |bytes: u64, expect: &str| assert_eq!(HumanSize::of_bytes(bytes).to_string(), expect);
        check(0, "0 B");
        check(1, "1 B");
        check(1023, "1023 B");
        check(1024, "1.0 KB");
        check(1536, "1.5 KB");
        check(10_240, "10.0 KB");
        check(1_048_524, "1023.9 KB");
        check(1_048_575, "1.0 MB");
        check(1_258_291, "1.2 MB");
        check(5 * 1024 * 1024 * 1024, "5.0 GB");
        check(u64::MAX, "16.0 EB");
    }

    #[test]
    fn no_sizes() {
        let check = |text: &str| assert_eq!(HumanSize::parse(text), None, "{text}");
        check("");
        check("1.2");
        check("1.2MB");
        check("1.25 MB");
        check("1 MB");
        check("1.0 B");
        check("-1 B");
        check("01 B");
        check("1.2 XB");
    }

    /// Checks the names of MIME types that `docs/seeds/artifact-content-routing.design.md` specifies.
    #[test]
    fn friendly_names_of_types() {
        let texts = crate::testing::chinese();
        let check = |mime_type: &str, expect: &str| assert_eq!(texts.type_name(mime_type), expect);
        check("image/jpeg", "JPEG 图片");
        check("image/png", "PNG 图片");
        check("image/gif", "GIF 图片");
        check("image/webp", "WebP 图片");
        check("image/bmp", "BMP 图片");
        check("image/svg+xml", "SVG 图片");
        check("application/pdf", "PDF 文档");
        check("application/msword", "Word 文档");
        check("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "Word 文档");
        check("application/vnd.ms-excel", "Excel 表格");
        check("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "Excel 表格");
        check("application/vnd.ms-powerpoint", "PowerPoint 演示");
        check("application/vnd.openxmlformats-officedocument.presentationml.presentation", "PowerPoint 演示");
        check("audio/mpeg", "MP3 音频");
        check("audio/mp3", "MP3 音频");
        check("audio/wav", "WAV 音频");
        check("audio/ogg", "OGG 音频");
        check("video/mp4", "MP4 视频");
        check("video/webm", "WebM 视频");
        check("video/quicktime", "QuickTime 视频");
        check("application/zip", "ZIP 压缩包");
        check("application/x-rar-compressed", "RAR 压缩包");
        check("application/octet-stream", "二进制文件");
        check("application/x-nobody-knows", "application/x-nobody-knows");
    }

    #[test]
    fn both_languages_name_the_same_types() {
        assert_eq!(type_names(Language::Zh), type_names(Language::En));
        assert_eq!(english().type_name("application/pdf"), "PDF document");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn a_size_reads_back(bytes in any::<u64>(), shift in 0u32..64) {
            let size = HumanSize::of_bytes(bytes >> shift);
            prop_assert_eq!(HumanSize::parse(&size.to_string()), Some(size));
        }
    }
}
