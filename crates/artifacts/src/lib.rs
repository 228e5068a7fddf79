//! Artifacts 工件: immutable bytes, each under the hash of its content, and what is known about them.
//!
//! It must not know agents' rules, turns, models or base64: who may open what is a row that somebody else decided on, and
//! bytes go in and out as bytes.
//!
//! The path of data: bytes come in with what was said about them ([`NewArtifact`]); [`prepare()`] finds out what they are
//! ([`detect()`], which is pure), puts them into the [`BlobStore`] — file and directory synced, equal bytes once — and
//! gives back what is to be written down ([`Prepared`]). The caller inserts the row and the grants with the functions of
//! [`index`] in the transaction of its own choice, so that a row never speaks of bytes that are not there. Bytes without
//! a row may remain after a crash; they harm nobody, and the next equal bytes use them. On the way out [`index`] says
//! where the bytes are and [`BlobStore::read`] gives them only if their hash still fits.

mod mime;

mod text_test;

mod signature;

mod detect;

mod blobs;

mod prepare;
mod verified;

pub mod index;

pub use blobs::{Blob, BlobError, BlobFile, BlobHash, BlobStore};
pub use detect::{Contradiction, Detected, Extent, detect};
pub use prepare::{NewArtifact, Prepared, prepare};
