//! Recognises formats by their signatures, the characteristic bytes near the beginning of a file.

mod easy;

mod frames;

mod ours;

mod packages;
mod search;

mod tracks;

use crate::mime::{self, kind_of};
use crate::text_test::Looks;
use polity_society::content::Kind;
use polity_society::mime::MimeType;
use search::position;

pub(crate) use packages::{OLE, ZIP, is_package_of};

/// Number of bytes at the beginning of a file in which this module looks for signatures.
const HEAD: usize = 64 * 1024;

/// Formats whose signature counts even if the whole file is readable text.
const TEXTUAL: &[&str] = &["application/pdf", "application/rtf", "application/postscript"];

/// Returns the MIME type whose signature is in the bytes. `said` is the kind according to the metadata. This kind
/// decides between sound and video for a container whose tracks are unknown.
pub(crate) fn of(bytes: &[u8], looks: Looks, said: Option<Kind>) -> Option<MimeType> {
    let head = bytes.get(..HEAD).unwrap_or(bytes);
    let found = packages::inside_ole(bytes)
        .map(str::to_owned)
        .or_else(|| ours::of(head, looks).map(str::to_owned))
        .or_else(|| known(head))?;
    let found = match tracks::of(&found, bytes, head) {
        Some(container) => container.named(said).to_owned(),
        None => found,
    };
    let is_text = kind_of(&found) == Some(Kind::Text);
    let believable = match looks {
        // Readable text is text even if it begins with "BMW", "MZ" or "GIF".
        // Every binary format has bytes near its beginning that do not occur in readable text.
        Looks::Text => is_text || TEXTUAL.contains(&found.as_str()),
        Looks::Utf8 => true,
        Looks::Binary => !is_text,
    };
    MimeType::parse(&found).filter(|_| believable)
}

/// Asks the library `infer`, and returns its answer under the usual name of the type.
fn known(head: &[u8]) -> Option<String> {
    // `infer` does not recognise HTML after a UTF-8 byte order mark.
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut found = infer::get(head)?;
    if found.mime_type() == "application/pdf" {
        // `infer` reports a PDF if the letters `%PDF` are anywhere in the first kilobyte, even for a note about PDF or
        // an archive that contains a PDF. The module `ours` has already recognised every real PDF. So ask `infer`
        // again, with only the bytes before these letters.
        found = infer::get(head.get(..position(head, b"%PDF")?)?)?;
    }
    if !easy::holds(found, head) {
        return None;
    }
    let mime_type = match (found.mime_type(), found.extension()) {
        ("application/font-woff", "woff2") => "font/woff2",
        ("application/font-woff", _) => "font/woff",
        ("application/font-sfnt", "otf") => "font/otf",
        ("application/font-sfnt", _) => "font/ttf",
        ("application/octet-stream", "eot") => "application/vnd.ms-fontobject",
        ("application/x-x509-ca-cert", "pem") => "application/x-pem-file",
        ("text/x-shellscript", _) => of_script(head),
        (mime_type, _) => mime_type,
    };
    if mime_type == ZIP || head.starts_with(b"PK\x03\x04") {
        return Some(packages::inside_zip(head).unwrap_or_else(|| ZIP.to_owned()));
    }
    Some(mime::canonical(mime_type).to_owned())
}

/// Returns the type of a script by the program in its first line, such as `/bin/sh` or `/usr/bin/env python3`.
/// The library `infer` reports every script as a shell script.
fn of_script(head: &[u8]) -> &'static str {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let has = |is: fn(&[u8]) -> bool| line.split(|byte| b" \t\r/".contains(byte)).any(is);
    if has(|word| word.ends_with(b"sh")) {
        return "text/x-shellscript";
    }
    if has(|word| word.starts_with(b"python")) { "text/x-python" } else { "text/plain" }
}
