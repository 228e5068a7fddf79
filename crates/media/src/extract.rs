//! Text out of documents.
//!
//! What parses (`pdf`, `office`, `epub`, `sheets`, `rtf`, and what they share: `archive`, `xml`, `sink`) is called by
//! [`child_main`] alone; the parent's side is [`run_child`].

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

pub use self::child::child_main;
pub use self::parent::{ChildBounds, run_child};
use self::sink::Sink;

/// The first argument of a process that is to extract text and do nothing else; what follows it is for [`child_main`].
pub const EXTRACT_ARGUMENT: &str = "__extract-text";

/// A kind of document that text can be taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentFormat {
    /// PDF.
    Pdf,
    /// DOCX.
    Word,
    /// PPTX.
    Slides,
    /// XLSX, XLSB, XLS and ODS.
    Workbook,
    /// ODT and ODP.
    OpenDocument,
    /// EPUB.
    Epub,
    /// RTF.
    Rtf,
}

impl DocumentFormat {
    const ALL: [Self; 7] =
        [Self::Pdf, Self::Word, Self::Slides, Self::Workbook, Self::OpenDocument, Self::Epub, Self::Rtf];

    /// Tells the format of a MIME type, whatever its letter case and parameters; nothing if no text can be taken from it.
    pub fn of(mime_type: &str) -> Option<Self> {
        let essence = mime_type.split(';').next().unwrap_or_default().trim();
        Self::ALL
            .into_iter()
            .find(|format| format.mime_types().iter().any(|known| known.eq_ignore_ascii_case(essence)))
    }

    /// The first is the one that the child is told.
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
    /// Lines end with a line feed, cells are parted by tabs, notes to a slide stand between `<notes>` and `</notes>`. Empty for a document that holds pictures of text.
    pub text: String,
    /// Whether that is all of it.
    pub completeness: Completeness,
}

/// Whether all of a document's text is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    /// All that was found.
    Whole,
    /// It was cut at the number of characters that was asked for.
    Cut,
    /// Some pages or parts could not be read and are left out.
    PartsUnreadable,
}

/// Why there is no text.
#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    /// No text can be taken from such files.
    #[error("no text can be taken from {mime_type}")]
    Unsupported {
        /// What was asked for.
        mime_type: String,
    },
    /// The file is too large to be read within the memory that the child may use.
    #[error("a document of {bytes} bytes is too large, {max_bytes} are read")]
    TooLarge {
        /// The file's size.
        bytes: usize,
        /// The greatest that is accepted.
        max_bytes: u64,
    },
    /// The document is protected by a password.
    #[error("the document is protected by a password")]
    Encrypted,
    /// The document unpacks to more than is read.
    #[error("the document unpacks to more than is read")]
    InflatesTooMuch,
    /// The document is damaged, or is not what it was declared to be.
    #[error("the document cannot be read: {reason}")]
    Unreadable {
        /// What the parser says, in a few words.
        reason: String,
    },
    /// Reading it took too long.
    #[error("reading the document took longer than {} ms", .time.as_millis())]
    TimedOut {
        /// How long was waited.
        time: Duration,
    },
    /// The child ended as it should not: it ran out of memory or processor time, panicked, or overflowed its stack.
    #[error("the document broke its reader ({status})")]
    Crashed {
        /// How the child ended.
        status: String,
    },
    /// The child answered something that is not text, or more than it was asked for.
    #[error("the reader of documents gave no proper answer")]
    Garbled,
    /// The child did not start.
    #[error("failed to start the reader of documents")]
    Start(#[source] io::Error),
    /// The child could not be spoken with.
    #[error("failed to hear from the reader of documents")]
    Talk(#[source] io::Error),
    /// The process is stopping.
    #[error("the document was given up because the process is stopping")]
    Stopping,
}

/// Why the parsers stopped before the end.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    /// As many characters were found as were asked for.
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

/// Only a full [`Sink`] gives this error.
impl From<std::fmt::Error> for Stop {
    fn from(_: std::fmt::Error) -> Self {
        Self::Full
    }
}

/// Takes the text out of a document, up to a number of characters.
///
/// May panic, overflow the stack or run for ever on a crafted file: for the child only.
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
