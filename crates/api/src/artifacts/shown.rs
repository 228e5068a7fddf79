//! Decides how a browser may show untrusted bytes: formats that cannot contain scripts keep their MIME type, texts
//! become plain text, and all other bytes can only be downloaded.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use polity_society::mime::MimeType;

/// The headers that tell a browser what to do with bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) content_type: String,
    /// The value of `Content-Disposition`.
    pub(super) disposition: String,
}

/// Types of pictures, sound and films that a browser shows without running anything in them.
const SAFE: [&str; 24] = [
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "image/avif",
    "image/bmp",
    "image/tiff",
    "image/x-icon",
    "image/vnd.microsoft.icon",
    "audio/mpeg",
    "audio/ogg",
    "audio/opus",
    "audio/wav",
    "audio/x-wav",
    "audio/flac",
    "audio/x-flac",
    "audio/aac",
    "audio/mp4",
    "audio/x-m4a",
    "audio/webm",
    "video/mp4",
    "video/webm",
    "video/ogg",
    "video/quicktime",
];
/// MIME types of texts that do not begin with `text/`. Browsers would run some of these texts.
const TEXTS: [&str; 12] = [
    "application/javascript",
    "application/ecmascript",
    "application/x-javascript",
    "application/json",
    "application/xml",
    "application/xhtml+xml",
    "application/toml",
    "application/yaml",
    "application/x-yaml",
    "application/x-sh",
    "application/sql",
    "image/svg+xml",
];
const PLAIN: &str = "text/plain; charset=utf-8";
/// The characters to percent-encode in `filename*`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');

/// Chooses the headers for bytes of a MIME type.
pub(super) fn shown(mime_type: &MimeType, filename: Option<&str>) -> Shown {
    let essence = mime_type.essence();
    let is_text = essence.starts_with("text/")
        || TEXTS.contains(&essence.as_str())
        || essence.ends_with("+xml")
        || essence.ends_with("+json");
    let (content_type, way) = if SAFE.contains(&essence.as_str()) {
        (essence, "inline")
    } else if is_text {
        (PLAIN.to_owned(), "inline")
    } else {
        (MimeType::parse(&essence).unwrap_or(MimeType::OCTET_STREAM).to_string(), "attachment")
    };
    let disposition = match filename {
        Some(filename) => format!("{way}; {}", named(filename)),
        None => way.to_owned(),
    };
    Shown { content_type, disposition }
}

/// Formats a file name for `Content-Disposition`. The parameter `filename` keeps harmless ASCII characters, and
/// contains `_` in place of every other character. If this changes the name, the parameter `filename*` contains the
/// original name for clients that understand this parameter.
fn named(filename: &str) -> String {
    let plain = |character: char| {
        let kept = character.is_ascii_alphanumeric() || " .-_".contains(character);
        if kept { character } else { '_' }
    };
    let ascii: String = filename.chars().map(plain).collect();
    if ascii == filename {
        return format!("filename=\"{ascii}\"");
    }
    format!("filename=\"{ascii}\"; filename*=UTF-8''{}", utf8_percent_encode(filename, ENCODED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_may_be_shown() {
        let check = |mime_type: &str, content_type: &str, disposition: &str| {
            let expect = Shown { content_type: content_type.to_owned(), disposition: disposition.to_owned() };
            assert_eq!(shown(&MimeType::unchecked(mime_type), None), expect, "{mime_type}");
        };
        check("image/png", "image/png", "inline");
        check("Image/JPEG; x=y", "image/jpeg", "inline");
        check("audio/mpeg", "audio/mpeg", "inline");
        check("text/plain", PLAIN, "inline");
        check("text/html", PLAIN, "inline");
        check("text/html; charset=utf-7", PLAIN, "inline");
        check("TEXT/HTML", PLAIN, "inline");
        check("text/javascript", PLAIN, "inline");
        check("application/javascript", PLAIN, "inline");
        check("image/svg+xml", PLAIN, "inline");
        check("application/xhtml+xml", PLAIN, "inline");
        check("application/atom+xml", PLAIN, "inline");
        check("application/json", PLAIN, "inline");
        check("application/pdf", "application/pdf", "attachment");
        check("application/x-shockwave-flash", "application/x-shockwave-flash", "attachment");
        check("multipart/x-mixed-replace", "multipart/x-mixed-replace", "attachment");
        check("video/x-matroska", "video/x-matroska", "attachment");
        check("", "application/octet-stream", "attachment");
        check("nonsense", "application/octet-stream", "attachment");
        check("a/b\r\nset-cookie: x", "application/octet-stream", "attachment");
    }

    #[test]
    fn file_names() {
        let check = |filename: &str, expect: &str| assert_eq!(named(filename), expect);
        check("report 1.pdf", "filename=\"report 1.pdf\"");
        check("报告.pdf", "filename=\"__.pdf\"; filename*=UTF-8''%E6%8A%A5%E5%91%8A.pdf");
        check("a\"; x=\"b", "filename=\"a__ x__b\"; filename*=UTF-8''a%22%3B%20x%3D%22b");
        check("a\r\nb", "filename=\"a__b\"; filename*=UTF-8''a%0D%0Ab");
        check("../x", "filename=\".._x\"; filename*=UTF-8''..%2Fx");
    }

    proptest! {
        #[test]
        fn every_header_can_be_sent(mime_type in any::<String>(), filename in any::<String>()) {
            let shown = shown(&MimeType::unchecked(mime_type), Some(&filename));
            prop_assert!(shown.content_type.bytes().all(|byte| (b' '..0x7f).contains(&byte)));
            prop_assert!(shown.disposition.bytes().all(|byte| (b' '..0x7f).contains(&byte)));
        }

        #[test]
        fn nothing_that_runs_is_shown(mime_type in "[a-zA-Z]{1,12}/[a-zA-Z+.]{1,20}") {
            let shown = shown(&MimeType::unchecked(mime_type), None);
            let plain = shown.content_type == PLAIN || SAFE.contains(&shown.content_type.as_str());
            prop_assert!(plain || shown.disposition == "attachment");
        }
    }
}
