//! Media: makes pictures fit for a model, and extracts the text of documents, even if the file is crafted to do harm.
//!
//! This crate takes bytes and returns bytes or text. It must not know anything about agents, services, the store or the
//! format of requests. The caller sets the bounds and decides what to do with the result.
//!
//! The path of a picture: [`fit_image`] reads the header, and returns the picture unchanged if it is within the
//! [`ImageBounds`] and can be decoded. Otherwise the function decodes the picture within limits of memory, turns it
//! upright, scales it, and encodes it as PNG or JPEG until it fits. [`fit_image_in_background`] does the same on a
//! thread for blocking work.
//!
//! How a document is read: [`DocumentFormat`] tells whether text can be extracted. [`run_child`] starts the given
//! program with [`EXTRACT_ARGUMENT`] and sends the bytes to this child process. The child calls [`child_main`], which
//! first limits the memory and processor time of the process and forbids the process to open files. The parent reads
//! no more than it asked for, and kills a child that takes too long. The parsers of documents run only in the child,
//! because a crafted file may make them panic, overflow the stack, or run for ever. If that happens, the parent
//! returns an [`ExtractError`].

// Circle: `image` uses functions of `open` and `encode`. These functions return the errors that `image` defines.
mod image;

// Circle: each format has its own file. These files return the types that `extract` defines.
mod extract;

pub use extract::{
    ChildBounds, Completeness, DocumentFormat, EXTRACT_ARGUMENT, ExtractError, Extracted, child_main,
    run_child,
};
pub use image::{
    Change, Fitted, ImageBounds, ImageError, MAX_DECODED_BYTES, MAX_DECODED_EDGE, Metadata, Size, fit_image,
    fit_image_in_background, is_never_converted,
};
