//! Distinguishes documents from plain archives by the entries of a zip or OLE file. A document begins with the same
//! bytes as a plain archive.

use super::search::{contains, position};
use crate::mime;
use polity_society::content::Kind;

pub(crate) const ZIP: &str = "application/zip";
pub(crate) const OLE: &str = "application/x-ole-storage";

const OLE_START: &[u8] = &[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1];

/// For each type of package: the folder that holds its main part, and its MIME type.
const PACKAGES: &[(&[u8], &str)] = &[
    (b"word/", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    (b"xl/", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    (b"ppt/", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    (b"visio/", "application/vnd.ms-visio.drawing"),
];

/// For each type of OLE compound file: a stream that identifies the type, and its MIME type.
const STREAMS: &[(&str, &str)] = &[
    ("WordDocument", "application/msword"),
    ("Workbook", "application/vnd.ms-excel"),
    ("PowerPoint Document", "application/vnd.ms-powerpoint"),
    ("VisioDocument", "application/vnd.visio"),
    ("__substg1.0_", "application/vnd.ms-outlook"),
];

/// Whether the bytes begin like a file of the type `package`, which is [`ZIP`] or [`OLE`]; `false` for other types.
pub(crate) fn is_package_of(package: &str, bytes: &[u8]) -> bool {
    match package {
        ZIP => bytes.starts_with(b"PK"),
        OLE => bytes.starts_with(OLE_START),
        _ => false,
    }
}

/// Returns the MIME type of a document that is a zip archive, by the names of the entries; `None` for a plain archive.
///
/// `infer` looks at three entries only, and is wrong if a document has its entries in an unusual order.
pub(super) fn inside_zip(head: &[u8]) -> Option<String> {
    let (first, body) = zip_entry(head)?;
    if first == b"mimetype" {
        // The content of `mimetype` is not compressed, so it can be read here. The content ends where the next header
        // begins.
        let body = body.get(..200).unwrap_or(body);
        let declared = body.get(..position(body, b"PK").unwrap_or(body.len()))?;
        let declared = mime::parse(std::str::from_utf8(declared).ok()?)?;
        // The archive can declare anything, even a video. Only documents and OpenRaster pictures are accepted.
        let is_document = mime::kind_of(declared.as_str()) == Some(Kind::Document);
        let is_package = is_document || declared == "image/openraster";
        return is_package.then(|| declared.to_string());
    }
    let usual = [b"[Content_Types].xml".as_slice(), b"_rels/", b"docProps/", b"customXml/"];
    let is_package = usual.iter().chain(PACKAGES.iter().map(|(folder, _)| folder));
    if !is_package.into_iter().any(|start| first.starts_with(start)) {
        return None;
    }
    let mut rest = head;
    while let Some(at) = position(rest, b"PK\x03\x04") {
        rest = rest.get(at..)?;
        if let Some((name, _)) = zip_entry(rest)
            && let Some((_, mime_type)) = PACKAGES.iter().find(|(folder, _)| name.starts_with(folder))
        {
            return Some((*mime_type).to_owned());
        }
        rest = rest.get(4..)?;
    }
    None
}

/// Returns the name of the entry whose local header begins here, and the bytes after the header.
fn zip_entry(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length_at =
        |at: usize| Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    let name_end = 30 + length_at(26)?;
    let body = name_end + length_at(28)?;
    Some((bytes.get(30..name_end)?, bytes.get(body..).unwrap_or_default()))
}

/// Returns the MIME type of an OLE compound file, by the streams in its directory; `None` for any other file.
pub(super) fn inside_ole(bytes: &[u8]) -> Option<&'static str> {
    if !bytes.starts_with(OLE_START) {
        return None;
    }
    let directory = ole_directory(bytes).unwrap_or_default();
    let has = |name: &str| {
        contains(directory, &name.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>())
    };
    Some(STREAMS.iter().find(|(name, _)| has(name)).map_or(OLE, |(_, mime_type)| mime_type))
}

/// Returns the first 4 KiB of the directory of an OLE compound file.
/// The header of the file contains the position of the directory.
fn ole_directory(bytes: &[u8]) -> Option<&[u8]> {
    let sector_shift = u32::from(u16::from_le_bytes(bytes.get(30..32)?.try_into().ok()?));
    let sector = u32::from_le_bytes(bytes.get(48..52)?.try_into().ok()?);
    let sector_size = 1u64.checked_shl(sector_shift).filter(|size| *size <= 4096)?;
    let start = usize::try_from((u64::from(sector) + 1) * sector_size).ok()?;
    let directory = bytes.get(start..)?;
    Some(directory.get(..4096).unwrap_or(directory))
}
