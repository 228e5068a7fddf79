//! Decodes the bytes of a text. The encoding comes from the byte order mark, else from the header `Content-Type`, else
//! from a declaration in the text. If all three are missing, valid UTF-8 is decoded as UTF-8, and any other text as
//! windows-1252.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// A declaration of the encoding counts only if it is within this many bytes of the beginning of the document.
const DECLARED_WITHIN: usize = 2048;

pub(super) fn decode(body: &[u8], content_type: &str) -> String {
    let encoding = match Encoding::for_bom(body) {
        Some((encoding, _)) => encoding,
        None => of_header(content_type)
            .or_else(|| declared(body))
            .unwrap_or_else(|| if std::str::from_utf8(body).is_ok() { UTF_8 } else { WINDOWS_1252 }),
    };
    encoding.decode(body).0.into_owned()
}

fn of_header(content_type: &str) -> Option<&'static Encoding> {
    let charset = content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']))
    })?;
    Encoding::for_label(charset.as_bytes())
}

/// Finds `<meta charset=…>`, `<meta … content="text/html; charset=…">` or `<?xml … encoding=…?>`.
fn declared(body: &[u8]) -> Option<&'static Encoding> {
    let start = body.get(..body.len().min(DECLARED_WITHIN))?;
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let in_tag = |tag: &str, key: &str| {
        start.split(tag).skip(1).find_map(|rest| {
            let attributes = rest.split('>').next()?;
            let (_, value) = attributes.split_once(key)?;
            let value = value.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
            let end =
                value.find(|char: char| matches!(char, '"' | '\'' | ';' | '/' | '?') || char.is_whitespace());
            Encoding::for_label(value.get(..end.unwrap_or(value.len()))?.as_bytes())
        })
    };
    let encoding = in_tag("<meta", "charset").or_else(|| in_tag("<?xml", "encoding"))?;
    // A declaration of UTF-16 is always wrong here: the declaration itself was found as ASCII text, but UTF-16 has at
    // least two bytes per character.
    Some(if encoding == UTF_16BE || encoding == UTF_16LE { UTF_8 } else { encoding })
}
