//! Detects the kind and the MIME type of a file's content. The detection uses the metadata (the declared MIME type and
//! the file name) and the bytes of the content.

use crate::mime::{self, kind_of};
use crate::signature::{self, OLE, ZIP, is_package_of};
use crate::text_test::{Extent, Looks};
use polity_society::content::Kind;
use polity_society::mime::MimeType;
use serde::Serialize;

/// The result of a detection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// The kind of content; [`Kind::Other`] if it is unknown.
    pub kind: Kind,
    /// The MIME type, in lower case and without parameters.
    pub mime_type: MimeType,
    /// Set if the content contradicts the MIME type from the metadata.
    pub contradiction: Option<Contradiction>,
}

/// A declared type that the content contradicts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// The MIME type from the metadata: the declared type, or the type for the file name's extension.
    pub declared: MimeType,
    /// The MIME type that was detected instead.
    pub found: MimeType,
}

/// Detects the kind and the MIME type of bytes, from a declared MIME type, a file name, and the bytes.
///
/// A type such as `application/octet-stream` says nothing and counts as missing. The declared type takes precedence
/// over the file name's extension, with one exception: the extension takes precedence if it means text and the bytes
/// are text, but the declared type does not mean text. The bytes decide if there is no metadata, or if their signature
/// contradicts the declared type. Only UTF-8 is text: bytes that are declared as text but are not UTF-8 are
/// [`Kind::Other`]. Detection never fails.
#[doc(alias = "detectBinaryType")]
pub fn detect(declared_mime: Option<&str>, filename: Option<&str>, bytes: &[u8], extent: Extent) -> Detected {
    let looks = Looks::of(bytes, extent);
    let declared = declared_mime.and_then(mime::parse);
    let name = filename.map_or(NameSays::Nothing, |filename| NameSays::of(filename, looks));
    let hint = match (&declared, &name) {
        (Some(mime_type), _) | (None, NameSays::Text(mime_type) | NameSays::Type(mime_type)) => {
            kind_of(mime_type.as_str())
        }
        (None, NameSays::Nothing) => None,
    };
    let found = signature::of(bytes, looks, hint).map(|found| named_container(found, filename));
    let said = what_was_said(declared, name, found.as_ref());
    let said_kind = said.mime_type.as_ref().and_then(|said| kind_of(said.as_str()));

    match (said.mime_type, found) {
        (None, None) if looks == Looks::Text => settled(Kind::Text, MimeType::PLAIN_TEXT, None),
        (None, None) => settled(Kind::Other, MimeType::OCTET_STREAM, None),
        (None, Some(found)) => settled(kind_of(found.as_str()).unwrap_or(Kind::Other), found, None),
        (Some(said), Some(found)) if !goes_with(said.as_str(), found.as_str()) => {
            // The declared type may be more general than the detected type: an archive format, or a container format
            // for sound and video. A more general type is no contradiction.
            let is_general =
                is_package_of(said.as_str(), bytes) || general_name_of(found.as_str()) == Some(said.as_str());
            let contradiction = (!is_general).then_some(said);
            settled(kind_of(found.as_str()).unwrap_or(Kind::Other), found, contradiction)
        }
        (Some(mime_type), _) => match said_kind {
            Some(Kind::Text) if looks == Looks::Binary => {
                settled(Kind::Other, MimeType::OCTET_STREAM, Some(mime_type))
            }
            Some(kind) => settled(kind, mime_type, said.outvoted),
            None if looks == Looks::Text => settled(Kind::Text, mime_type, said.outvoted),
            None => settled(Kind::Other, mime_type, said.outvoted),
        },
    }
}

fn settled(kind: Kind, mime_type: MimeType, declared: Option<MimeType>) -> Detected {
    let contradiction = declared.map(|declared| Contradiction { declared, found: mime_type.clone() });
    Detected { kind, mime_type, contradiction }
}

/// The MIME type that a file name's extension suggests.
enum NameSays {
    /// The extension stands for a type of text, and the bytes are text.
    Text(MimeType),
    /// The extension means this type. The bytes were not examined.
    Type(MimeType),
    /// There is no extension, or it is unknown.
    Nothing,
}

impl NameSays {
    fn of(filename: &str, looks: Looks) -> Self {
        let as_text = Some(filename).filter(|_| looks == Looks::Text).and_then(mime::of_text_file);
        let as_text = as_text.map(Self::Text);
        as_text.or_else(|| mime::of_file(filename).map(Self::Type)).unwrap_or(Self::Nothing)
    }
}

/// The MIME type that follows from the declared type and the file name together.
struct DeclaredType {
    mime_type: Option<MimeType>,
    /// The declared type, if the file name and the bytes together contradict it.
    outvoted: Option<MimeType>,
}

fn what_was_said(declared: Option<MimeType>, name: NameSays, found: Option<&MimeType>) -> DeclaredType {
    match (declared, name) {
        // Some systems declare every `.ts` file as MPEG and every `.csv` file as Excel, although such a file can be a
        // text. If the bytes are text, the extension decides, and not the declared type. But bytes that are declared as
        // PDF and have the signature of PDF are a PDF, even if they are readable text and have another extension.
        (Some(declared), NameSays::Text(mime_type))
            if kind_of(declared.as_str()) != Some(Kind::Text) && found != Some(&declared) =>
        {
            let outvoted = kind_of(declared.as_str()).is_some().then_some(declared);
            DeclaredType { mime_type: Some(mime_type), outvoted }
        }
        (Some(declared), _) => DeclaredType { mime_type: Some(declared), outvoted: None },
        (None, NameSays::Text(mime_type) | NameSays::Type(mime_type)) => {
            DeclaredType { mime_type: Some(mime_type), outvoted: None }
        }
        (None, NameSays::Nothing) => DeclaredType { mime_type: None, outvoted: None },
    }
}

/// Finds out which type of document an archive is. Many documents are archives, and their file names say which type they
/// have. If `found` is a plain archive and the file name has the extension of such a type, returns this type. Otherwise
/// returns `found`.
fn named_container(found: MimeType, filename: Option<&str>) -> MimeType {
    if found != ZIP && found != OLE {
        return found;
    }
    let by_name = filename.and_then(mime::of_file);
    let fits = |name: &MimeType| {
        kind_of(name.as_str()) == Some(Kind::Document) && goes_with(name.as_str(), found.as_str())
    };
    by_name.filter(fits).unwrap_or(found)
}

/// Returns the MIME type for a container with any content, such as `application/ogg` for `audio/ogg` and `video/ogg`.
fn general_name_of(mime_type: &str) -> Option<&'static str> {
    match mime_type {
        "audio/ogg" | "video/ogg" | "audio/opus" => Some("application/ogg"),
        "audio/mp4" | "video/mp4" | "video/x-m4v" => Some("application/mp4"),
        _ => None,
    }
}

/// Formats with an unambiguous signature. A different declared type is wrong even if it is of the same kind, such as
/// a declared PNG whose bytes are a JPEG.
const EXACT: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "image/bmp",
    "audio/mpeg",
    "audio/wav",
    "audio/flac",
    "application/pdf",
    "application/rtf",
];

/// Types of documents that are never zip archives.
const NEVER_ZIP: &[&str] = &[
    "application/pdf",
    "application/rtf",
    "application/postscript",
    "application/msword",
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
    "application/x-mobipocket-ebook",
    "image/vnd.djvu",
];

/// Whether bytes with the signature of `found` can have the type `said`.
fn goes_with(said: &str, found: &str) -> bool {
    if said == found || (found == "audio/mpeg" && said.starts_with("audio/aac")) {
        return true;
    }
    let said_kind = kind_of(said);
    let found_kind = kind_of(found).unwrap_or(Kind::Other);
    match said_kind {
        None => matches!(found_kind, Kind::Text | Kind::Other),
        Some(Kind::Text) => found_kind == Kind::Text,
        Some(Kind::Document) if found == ZIP => !NEVER_ZIP.contains(&said),
        Some(Kind::Document) if found == OLE => true,
        // Both types are documents. But the bytes are a zip archive, which a document of the type `said` never is.
        Some(Kind::Document) if NEVER_ZIP.contains(&said) && is_zip_document(found) => false,
        Some(said_kind) => said_kind == found_kind && !EXACT.contains(&said) && !EXACT.contains(&found),
    }
}

/// Whether documents of this type are zip archives.
fn is_zip_document(mime_type: &str) -> bool {
    ["application/vnd.openxmlformats-officedocument.", "application/vnd.oasis.opendocument."]
        .iter()
        .any(|start| mime_type.starts_with(start))
        || mime_type.ends_with("+zip")
}

#[cfg(test)]
mod tests;
