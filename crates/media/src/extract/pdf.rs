//! Reads PDF documents page by page.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pdf_extract::{ConvertToFmt, Document, OutputError, PlainTextOutput, output_doc_page};

use super::sink::Sink;
use super::{Completeness, Stop};

/// Reads the pages in order, and leaves out pages that cannot be read.
pub(super) fn read(bytes: &[u8], sink: &mut Sink) -> Result<Completeness, Stop> {
    let mut document = Document::load_mem(bytes).map_err(Stop::unreadable)?;
    if document.is_encrypted() {
        // Many encrypted documents only forbid printing and open with an empty password, so try this password.
        document.decrypt("").map_err(|_| Stop::Encrypted)?;
    }
    let pages = document.get_pages();
    // In some encrypted files, the trailer contains the encryption dictionary itself instead of a reference to it.
    // Then the library finds no pages and does not notice the encryption.
    if pages.is_empty() && document.trailer.has(b"Encrypt") {
        return Err(Stop::Encrypted);
    }
    let mut unreadable = 0;
    for page in pages.keys() {
        match read_page(&document, *page, sink) {
            Ok(()) => {}
            Err(Stop::Unreadable(_)) => unreadable += 1,
            Err(stop) => return Err(stop),
        }
        sink.blank_line()?;
    }
    match unreadable {
        0 if pages.is_empty() => Err(Stop::unreadable("the document has no pages")),
        0 => Ok(Completeness::Whole),
        all if all == pages.len() => Err(Stop::unreadable("no page of the document can be read")),
        _ => Ok(Completeness::PartsUnreadable),
    }
}

fn read_page(document: &Document, page: u32, sink: &mut Sink) -> Result<(), Stop> {
    // The library panics on fonts and values that it does not expect. Panics are caught, so that only the current page
    // is lost. A panic leaves no state half changed: each page has its own output, and the sink is consistent after
    // every character.
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        output_doc_page(document, &mut PlainTextOutput::new(&mut *sink), page)
    }));
    match outcome {
        Ok(Ok(())) => Ok(()),
        Ok(Err(OutputError::FormatError(_))) => Err(Stop::Full),
        Ok(Err(error)) => Err(Stop::unreadable(error)),
        Err(_) => Err(Stop::unreadable("the page made the PDF library panic")),
    }
}

impl<'a> ConvertToFmt for &'a mut Sink {
    type Writer = &'a mut Sink;

    fn convert(self) -> Self::Writer {
        self
    }
}
