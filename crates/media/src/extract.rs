//! Extracts the text of documents.
//!
//! A document may be crafted to do harm, so its parser runs in a child process. [`run_child`] starts the child, and
//! [`child_main`] is the main function of the child. The parsers are `pdf`, `office`, `epub`, `sheets` and `rtf`;
//! they share `archive`, `xml` and `sink`.

mod sink;

mod archive;

mod xml;

mod office;

mod epub;

mod sheets;

mod rtf;

mod pdf;

mod child;

mod parent;

use std::io;
use std::time::Duration;

use strum::VariantArray;

pub use self::child::child_main;
pub use self::parent::{ChildBounds, run_child};
use self::sink::Sink;

/// The first argument of a process that only extracts text. The arguments after it are for [`child_main`].
pub const EXTRACT_ARGUMENT: &str = "__extract-text";

/// A document format from which text can be extracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub enum DocumentFormat {
    /// PDF, also if it is encrypted with an empty password.
    Pdf,
    /// DOCX.
    Word,
    /// PPTX.
    Slides,
    /// XLSX, XLSB, XLS and ODS.
    Workbook,
    /// ODT and ODP.
    OpenDocument,
    /// EPUB, a book of XHTML chapters.
    Epub,
    /// RTF, the format of word processors before DOCX.
    Rtf,
}

impl DocumentFormat {
    /// Returns the document format that a MIME type names. Ignores letter case and parameters. Returns `None` if no
    /// text can be extracted from documents of this type.
    pub fn of(mime_type: &str) -> Option<Self> {
        let essence = mime_type.split(';').next().unwrap_or_default().trim();
        Self::VARIANTS
            .iter()
            .copied()
            .find(|format| format.mime_types().iter().any(|known| known.eq_ignore_ascii_case(essence)))
    }

    /// Returns the MIME types of the format. The parent passes the first of these types to the child, so that the child
    /// knows the format.
    fn mime_types(self) -> &'static [&'static str] {
        match self {
            Self::Pdf => &["application/pdf", "application/x-pdf"],
            Self::Word => &[
                "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
                "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
                "application/vnd.ms-word.document.macroEnabled.12",
            ],
            Self::Slides => &[
                "application/vnd.openxmlformats-officedocument.presentationml.presentation",
                "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
                "application/vnd.openxmlformats-officedocument.presentationml.template",
                "application/vnd.ms-powerpoint.presentation.macroEnabled.12",
            ],
            Self::Workbook => &[
                "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
                "application/vnd.openxmlformats-officedocument.spreadsheetml.template",
                "application/vnd.ms-excel",
                "application/vnd.ms-excel.sheet.macroEnabled.12",
                "application/vnd.ms-excel.sheet.binary.macroEnabled.12",
                "application/vnd.oasis.opendocument.spreadsheet",
            ],
            Self::OpenDocument => &[
                "application/vnd.oasis.opendocument.text",
                "application/vnd.oasis.opendocument.presentation",
            ],
            Self::Epub => &["application/epub+zip"],
            Self::Rtf => &["application/rtf", "text/rtf", "application/x-rtf"],
        }
    }
}

/// The text of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extracted {
    /// Lines end with a line feed, tabs separate cells, and the notes to a slide are between `<notes>` and `</notes>`.
    /// Empty if the document contains only pictures of text.
    pub text: String,
    /// Whether this is all of the document's text.
    pub completeness: Completeness,
}

/// Whether all of a document's text was extracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    /// The text is complete.
    Whole,
    /// The text was longer than the caller's maximum number of characters, and was cut.
    Cut,
    /// Some pages or parts could not be read and are missing.
    PartsUnreadable,
}

/// Why no text was extracted.
#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    /// Files of this type are not supported.
    #[error("no text can be extracted from files of type {mime_type}")]
    Unsupported {
        /// The declared type of the document.
        mime_type: String,
    },
    /// The file is too large for the memory that the child may use.
    #[error("a document of {bytes} bytes is too large: the limit is {max_bytes} bytes")]
    TooLarge {
        /// Size of the file.
        bytes: usize,
        /// Greatest size that is accepted.
        max_bytes: u64,
    },
    /// The document can only be opened with a password.
    #[error("the document is protected by a password")]
    Encrypted,
    /// The unpacked document has too many bytes or too many files.
    #[error("the document unpacks to more than the limit")]
    InflatesTooMuch,
    /// The document is damaged, or is not what it was declared to be.
    #[error("the document cannot be read: {reason}")]
    Unreadable {
        /// The parser's message, cut after a few hundred bytes.
        reason: String,
    },
    /// The child took too long to read the document.
    #[error("reading the document took longer than {} ms", .time.as_millis())]
    TimedOut {
        /// The time limit, [`ChildBounds::time`].
        time: Duration,
    },
    /// The child ended abnormally: it ran out of memory or processor time, panicked, or overflowed its stack.
    #[error("the process that read the document crashed ({status})")]
    Crashed {
        /// Exit code or signal of the child.
        status: String,
    },
    /// The child's output is not UTF-8, or is longer than the length that the parent allowed.
    #[error("the process that read the document returned no valid text")]
    Garbled,
    /// The child could not be started.
    #[error("failed to start the process that reads documents")]
    Start(#[source] io::Error),
    /// Reading from the child, waiting for it or killing it failed.
    #[error("failed to communicate with the process that reads documents")]
    Talk(#[source] io::Error),
    /// The runtime is stopping, so the document was not read.
    #[error("the document was not read because the process is stopping")]
    Stopping,
}

/// Why a parser stopped before the end of the document.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    /// The sink is full: the text has as many characters as the parent asked for.
    Full,
    Encrypted,
    InflatesTooMuch,
    Unreadable(String),
}

impl Stop {
    fn unreadable(reason: impl std::fmt::Display) -> Self {
        Self::Unreadable(reason.to_string())
    }
}

/// A parser gets `fmt::Error` only from a [`Sink`], and a sink returns this error only if it is full.
impl From<std::fmt::Error> for Stop {
    fn from(_: std::fmt::Error) -> Self {
        Self::Full
    }
}

/// Extracts the text of a document, up to `max_chars` characters.
///
/// A crafted file may make this function panic, overflow the stack or run for ever, so only the child process may call
/// it.
fn extract_text(bytes: &[u8], format: DocumentFormat, max_chars: usize) -> Result<Extracted, Stop> {
    let mut sink = Sink::new(max_chars);
    let outcome = match format {
        DocumentFormat::Pdf => pdf::read(bytes, &mut sink),
        DocumentFormat::Word => office::read_word(bytes, &mut sink),
        DocumentFormat::Slides => office::read_slides(bytes, &mut sink),
        DocumentFormat::Workbook => sheets::read(bytes, &mut sink),
        DocumentFormat::OpenDocument => office::read_open_document(bytes, &mut sink),
        DocumentFormat::Epub => epub::read(bytes, &mut sink),
        DocumentFormat::Rtf => rtf::read(bytes, &mut sink),
    };
    let completeness = match outcome {
        Ok(completeness) => completeness,
        Err(Stop::Full) => Completeness::Cut,
        Err(stop) => return Err(stop),
    };
    Ok(Extracted { text: sink.into_text(), completeness })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mime_type: &str, expect: Option<DocumentFormat>) {
        assert_eq!(DocumentFormat::of(mime_type), expect);
    }

    #[test]
    fn formats_are_known_by_any_spelling_of_their_types() {
        check("application/pdf", Some(DocumentFormat::Pdf));
        check("Application/PDF; version=1.7", Some(DocumentFormat::Pdf));
        check("application/vnd.ms-excel", Some(DocumentFormat::Workbook));
        check("application/epub+zip", Some(DocumentFormat::Epub));
        check("text/rtf", Some(DocumentFormat::Rtf));
        check("application/zip", None);
        check("text/plain", None);
        check("", None);
    }
}
