//! What the first bytes of a file give away.

mod easy;

mod frames;

mod ours;

mod packages;

mod tracks;

use crate::mime::{self, kind_of};
use crate::text_test::Looks;
use polity_society::content::Kind;

pub(crate) use packages::{OLE, ZIP, is_package_of};

/// How far into a file signatures are looked for, in bytes.
const HEAD: usize = 64 * 1024;

/// Formats that can be text throughout, and still are what their first line says.
const TEXTUAL: &[&str] = &["application/pdf", "application/rtf", "application/postscript"];

/// The MIME type that the bytes carry the signature of. `said` is the kind that metadata stands for: it settles what
/// a container for sound and pictures is called whose tracks cannot be seen.
pub(crate) fn of(bytes: &[u8], looks: Looks, said: Option<Kind>) -> Option<String> {
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
        // "BMW", "MZ", "GIF": readable text is text, whatever letters it begins with. Every format that is not text has
        // bytes near its beginning that readable text has not.
        Looks::Text => is_text || TEXTUAL.contains(&found.as_str()),
        Looks::Utf8 => true,
        Looks::Binary => !is_text,
    };
    believable.then_some(found)
}

/// Signatures from the library, under the usual names.
fn known(head: &[u8]) -> Option<String> {
    // A mark that says UTF-8 hides HTML from the library.
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut found = infer::get(head)?;
    if found.mime_type() == "application/pdf" {
        // The library takes the four letters anywhere in the first kilobyte for a PDF, and then looks no further: a note
        // about PDF is none, and an archive with one inside is an archive. Those that are one were seen before.
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

/// A script by the program that its first line names, such as `/bin/sh` or `/usr/bin/env python3`. The library takes
/// every script for one of a shell.
fn of_script(head: &[u8]) -> &'static str {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let has = |is: fn(&[u8]) -> bool| line.split(|byte| b" \t\r/".contains(byte)).any(is);
    if has(|word| word.ends_with(b"sh")) {
        return "text/x-shellscript";
    }
    if has(|word| word.starts_with(b"python")) { "text/x-python" } else { "text/plain" }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    position(bytes, wanted).is_some()
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
