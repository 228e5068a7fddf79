//! What bytes are: first what was said about them, then what they themselves give away.

use crate::mime::{self, kind_of};
use crate::signature::{self, Expected, OLE, ZIP};
use crate::text_test::Looks;
use polity_society::content::Kind;
use serde::Serialize;

/// What is assumed of bytes that nothing is known about.
const UNKNOWN: &str = "application/octet-stream";

/// Whether the bytes to look at are all there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// They are the whole content.
    Whole,
    /// They are its beginning; it may end within a character.
    Head,
}

/// What bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// The kind of content.
    pub kind: Kind,
    /// The MIME type, in lower case and without parameters.
    pub mime_type: String,
    /// Set where the bytes are not what was said about them.
    pub contradiction: Option<Contradiction>,
}

/// Metadata and content that do not go together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// The MIME type that the metadata stands for.
    pub declared: String,
    /// The MIME type that the bytes stand for.
    pub found: String,
}

/// Finds out what bytes are, from a declared MIME type, a file name, and the bytes.
///
/// The declared type comes first, then the file name's extension; a type that is corrupt or says nothing counts as
/// missing. The bytes decide where nothing was said, and where they carry a signature that what was said cannot have.
/// Text is what is UTF-8; whatever is called text and is not UTF-8 is [`Kind::Other`]. Nothing is ever an error.
#[doc(alias = "detectBinaryType")]
pub fn detect(declared_mime: Option<&str>, filename: Option<&str>, bytes: &[u8], extent: Extent) -> Detected {
    let looks = Looks::of(bytes, extent);
    let said = what_was_said(declared_mime.and_then(mime::parse), filename, looks);
    let said_kind = said.mime_type.as_deref().and_then(kind_of);
    let expected = if said_kind == Some(Kind::Text) { Expected::Text } else { Expected::Anything };
    let found = signature::of(bytes, looks, expected).map(|found| named_container(found, filename));

    match (said.mime_type, found) {
        (None, None) if looks == Looks::Text => settled(Kind::Text, "text/plain".to_owned(), None),
        (None, None) => settled(Kind::Other, UNKNOWN.to_owned(), None),
        (None, Some(found)) => settled(kind_of(&found).unwrap_or(Kind::Other), found, None),
        (Some(said), Some(found)) if !goes_with(&said, &found) => {
            // A plain archive that turns out to be a document was not called anything wrong.
            let contradiction = (said != ZIP && said != OLE).then_some(said);
            settled(kind_of(&found).unwrap_or(Kind::Other), found, contradiction)
        }
        (Some(mime_type), _) => match said_kind {
            Some(Kind::Text) if looks == Looks::Binary => {
                settled(Kind::Other, UNKNOWN.to_owned(), Some(mime_type))
            }
            Some(kind) => settled(kind, mime_type, said.outvoted),
            None if looks == Looks::Text => settled(Kind::Text, mime_type, said.outvoted),
            None => settled(Kind::Other, mime_type, said.outvoted),
        },
    }
}

fn settled(kind: Kind, mime_type: String, declared: Option<String>) -> Detected {
    let contradiction = declared.map(|declared| Contradiction { declared, found: mime_type.clone() });
    Detected { kind, mime_type, contradiction }
}

/// What the metadata says, taken together.
struct Said {
    mime_type: Option<String>,
    /// The declared type, where the file name and the bytes together speak against it.
    outvoted: Option<String>,
}

fn what_was_said(declared: Option<String>, filename: Option<&str>, looks: Looks) -> Said {
    let as_text = filename.filter(|_| looks == Looks::Text).and_then(mime::of_text_file);
    let by_name = as_text.clone().or_else(|| filename.and_then(mime::of_file));
    let Some(declared) = declared else {
        return Said { mime_type: by_name, outvoted: None };
    };
    // A `.ts` called MPEG or a `.csv` called Excel, as systems do that look at the extension alone: the bytes are text.
    if let Some(as_text) = as_text.filter(|_| kind_of(&declared) != Some(Kind::Text)) {
        let outvoted = kind_of(&declared).is_some().then_some(declared);
        return Said { mime_type: Some(as_text), outvoted };
    }
    Said { mime_type: Some(declared), outvoted: None }
}

/// A plain archive under a file name that stands for a document made of one is that document.
fn named_container(found: String, filename: Option<&str>) -> String {
    if found != ZIP && found != OLE {
        return found;
    }
    let by_name = filename.and_then(mime::of_file);
    let fits = |name: &String| kind_of(name) == Some(Kind::Document) && goes_with(name, &found);
    by_name.filter(fits).unwrap_or(found)
}

/// Formats that are always what their signature says, so that another type of the same kind is wrong too.
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

/// Documents that are no zip archive.
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

/// Whether bytes with the signature of `found` can be content of the type `said`.
fn goes_with(said: &str, found: &str) -> bool {
    if said == found || (found == "audio/mpeg" && said.starts_with("audio/aac")) {
        return true;
    }
    let said_kind = kind_of(said);
    let found_kind = kind_of(found).unwrap_or(Kind::Other);
    let Some(said_kind) = said_kind else {
        return matches!(found_kind, Kind::Text | Kind::Other);
    };
    if said_kind == found_kind {
        return said_kind == Kind::Text || !EXACT.contains(&found);
    }
    // Containers: the same first bytes for sound and pictures, or for archives and documents.
    match found {
        ZIP => said_kind == Kind::Document && !NEVER_ZIP.contains(&said),
        OLE => said_kind == Kind::Document,
        "video/mp4" | "video/quicktime" | "video/x-m4v" | "video/3gpp" => {
            ["audio/mp4", "audio/aac", "audio/3gpp", "audio/quicktime"].contains(&said)
        }
        "audio/mp4" => ["video/mp4", "video/x-m4v", "video/quicktime"].contains(&said),
        "audio/ogg" | "audio/opus" => ["video/ogg", "application/ogg"].contains(&said),
        "video/webm" | "video/x-matroska" => ["audio/webm", "audio/x-matroska"].contains(&said),
        "video/x-ms-wmv" | "video/x-ms-asf" => said == "audio/x-ms-wma",
        _ => false,
    }
}

#[cfg(test)]
mod tests;
