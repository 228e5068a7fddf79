//! What the first bytes of a file give away.

use crate::mime;
use crate::text_test::Looks;

/// How far into a file signatures are looked for, in bytes.
const HEAD: usize = 64 * 1024;

pub(crate) const ZIP: &str = "application/zip";
pub(crate) const OLE: &str = "application/x-ole-storage";

const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const PPTX: &str = "application/vnd.openxmlformats-officedocument.presentationml.presentation";

/// Signatures that are all letters: text can begin with them by chance, but hardly goes on like them.
const LETTERS_ONLY: &[&str] =
    &["image/gif", "image/webp", "audio/wav", "audio/ogg", "audio/flac", "audio/mpeg", "video/x-msvideo"];

/// Formats that can be text throughout, and still are what their first line says.
const TEXTUAL: &[&str] = &["application/pdf", "application/rtf", "application/postscript"];

/// What metadata has said of the content before its signature is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Text.
    Text,
    /// Something else, or nothing.
    Anything,
}

/// The MIME type that the bytes carry the signature of.
pub(crate) fn of(bytes: &[u8], looks: Looks, expected: Expected) -> Option<String> {
    let head = bytes.get(..HEAD).unwrap_or(bytes);
    let found = inside_ole(bytes).map(str::to_owned).or_else(|| own(head, looks)).or_else(|| known(head))?;
    let believable = match looks {
        // "BMW", "MZ", "BZh…", "FWS…": readable text is text, whatever two or three letters it begins with.
        Looks::Text => {
            is_text(&found)
                || TEXTUAL.contains(&found.as_str())
                || (expected == Expected::Anything && LETTERS_ONLY.contains(&found.as_str()))
        }
        Looks::Utf8 => true,
        Looks::Binary => !is_text(&found),
    };
    believable.then_some(found)
}

fn is_text(mime_type: &str) -> bool {
    mime::kind_of(mime_type) == Some(polity_society::content::Kind::Text)
}

/// Signatures from the library, under the usual names.
fn known(head: &[u8]) -> Option<String> {
    let found = infer::get(head)?;
    let mime_type = match (found.mime_type(), found.extension()) {
        ("application/font-woff", "woff2") => "font/woff2",
        ("application/font-woff", _) => "font/woff",
        ("application/font-sfnt", "otf") => "font/otf",
        ("application/font-sfnt", _) => "font/ttf",
        ("application/octet-stream", "eot") => "application/vnd.ms-fontobject",
        ("application/x-x509-ca-cert", "pem") => "application/x-pem-file",
        // Two letters are not enough where the header that must follow them does not.
        ("image/bmp", _) if head.get(6..10).is_some_and(|reserved| reserved != [0; 4]) => return None,
        ("application/postscript", _) if !head.starts_with(b"%!PS") => return None,
        (mime_type, _) => mime_type,
    };
    if mime_type == ZIP {
        return Some(inside_zip(head).unwrap_or_else(|| ZIP.to_owned()));
    }
    Some(mime::canonical(mime_type).to_owned())
}

/// Signatures that the library lacks or is too trusting with.
fn own(head: &[u8], looks: Looks) -> Option<String> {
    if looks == Looks::Text && is_svg(head) {
        return Some("image/svg+xml".to_owned());
    }
    let found = match head {
        [b'b', b'p', b'l', b'i', b's', b't', b'0', b'0', ..] => "application/x-bplist",
        [b'c', b'a', b'f', b'f', 0, ..] => "audio/x-caf",
        [_, _, _, _, b'f', b't', b'y', b'p', b'3', b'g', ..] => "video/3gpp",
        [0x47, ..] if looks == Looks::Binary && is_transport_stream(head) => "video/mp2t",
        [0x1a, 0x45, 0xdf, 0xa3, ..] if contains(head, b"webm") => "video/webm",
        _ => return None,
    };
    Some(found.to_owned())
}

/// Packets of 188 bytes, each of which begins with the same byte.
fn is_transport_stream(head: &[u8]) -> bool {
    head.len() > 188 && head.iter().step_by(188).take(4).all(|byte| *byte == 0x47)
}

fn is_svg(head: &[u8]) -> bool {
    let start = head.get(..1024).unwrap_or(head);
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start_matches('\u{feff}').trim_start().to_ascii_lowercase();
    let is_markup =
        text.starts_with("<svg") || text.starts_with("<!doctype svg") || text.starts_with("<?xml");
    let has_element = text.find("<svg").and_then(|at| text.get(at + 4..));
    is_markup && has_element.is_some_and(|rest| rest.starts_with([' ', '>', '\t', '\r', '\n', '/']))
}

/// What a zip archive holds, by the names of its first entries; `None` for an ordinary archive.
fn inside_zip(head: &[u8]) -> Option<String> {
    let (first, body) = zip_entry(head)?;
    if first == b"mimetype" {
        // Stored as it is, at the beginning, for readers like this one; the next header ends it.
        let body = body.get(..200).unwrap_or(body);
        let declared = body.get(..position(body, b"PK").unwrap_or(body.len()))?;
        return mime::parse(std::str::from_utf8(declared).ok()?);
    }
    let package = [
        b"[Content_Types].xml".as_slice(),
        b"_rels/",
        b"docProps/",
        b"customXml/",
        b"word/",
        b"xl/",
        b"ppt/",
    ];
    if !package.iter().any(|start| first.starts_with(start)) {
        return None;
    }
    let mut rest = head;
    while let Some(at) = position(rest, b"PK\x03\x04") {
        rest = rest.get(at..)?;
        if let Some((name, _)) = zip_entry(rest) {
            let parts = [(b"word/".as_slice(), DOCX), (b"xl/", XLSX), (b"ppt/", PPTX)];
            if let Some((_, mime_type)) = parts.iter().find(|(start, _)| name.starts_with(start)) {
                return Some((*mime_type).to_owned());
            }
        }
        rest = rest.get(4..)?;
    }
    None
}

/// The name of the entry whose local header stands here, and what follows the header.
fn zip_entry(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length_at =
        |at: usize| Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    let name_end = 30 + length_at(26)?;
    let body = name_end + length_at(28)?;
    Some((bytes.get(30..name_end)?, bytes.get(body..).unwrap_or_default()))
}

/// What an OLE compound file holds, by the names of the streams in its directory; `None` for any other file.
fn inside_ole(bytes: &[u8]) -> Option<&'static str> {
    if !bytes.starts_with(&[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]) {
        return None;
    }
    let streams = [
        ("WordDocument", "application/msword"),
        ("Workbook", "application/vnd.ms-excel"),
        ("PowerPoint Document", "application/vnd.ms-powerpoint"),
        ("VisioDocument", "application/vnd.visio"),
        ("__substg1.0_", "application/vnd.ms-outlook"),
    ];
    let directory = ole_directory(bytes).unwrap_or_default();
    let has = |name: &str| {
        contains(directory, &name.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>())
    };
    Some(streams.into_iter().find(|(name, _)| has(name)).map_or(OLE, |(_, mime_type)| mime_type))
}

/// The beginning of the directory of an OLE compound file, which its header says the place of.
fn ole_directory(bytes: &[u8]) -> Option<&[u8]> {
    let sector_shift = u32::from(u16::from_le_bytes(bytes.get(30..32)?.try_into().ok()?));
    let sector = u32::from_le_bytes(bytes.get(48..52)?.try_into().ok()?);
    let sector_size = 1u64.checked_shl(sector_shift).filter(|size| *size <= 4096)?;
    let start = usize::try_from((u64::from(sector) + 1) * sector_size).ok()?;
    let directory = bytes.get(start..)?;
    Some(directory.get(..4096).unwrap_or(directory))
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    position(bytes, wanted).is_some()
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
