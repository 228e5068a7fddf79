//! Media: makes pictures fit for a model, and gets the text out of documents, whatever the file was made to do.
//!
//! Bytes come in, bytes or text go out. It must not know agents, services, the store, or how a request is written: the
//! caller says what the bounds are and what to do with the result.
//!
//! The path of data. A picture: [`fit_image`] reads its header, and gives it back untouched if it is within the
//! [`ImageBounds`] and can be decoded; else it is decoded within limits of memory, turned upright, scaled, and written as PNG or JPEG until
//! it fits ([`fit_image_in_background`] does so off the async threads). A document: [`DocumentFormat`] says whether there
//! is text to be had; [`run_child`] starts the given program with [`EXTRACT_ARGUMENT`] and hands it the bytes;
//! that program calls [`child_main`], which gives up memory, processor time and the right to open files before it looks
//! at the first byte, and writes the text; the parent reads no more than it asked for, and kills what takes too long.
//! Parsers of documents run in that child and nowhere else, since a crafted file may make them panic, overflow the
//! stack, or run for ever: all of that is then an [`ExtractError`].

mod image;

mod extract;

pub use extract::{
    ChildBounds, Completeness, DocumentFormat, EXTRACT_ARGUMENT, ExtractError, Extracted, child_main,
    run_child,
};
pub use image::{
    Change, Fitted, ImageBounds, ImageError, MAX_DECODED_BYTES, MAX_DECODED_EDGE, Metadata, Size, fit_image,
    fit_image_in_background, is_never_converted,
};
