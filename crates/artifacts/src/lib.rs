//! Artifacts 工件: immutable bytes, each stored under the hash of its content, and their metadata.
//!
//! This crate must know nothing about turns, models, base64, or the rules that agents follow.
//! Another crate decides who may open an artifact; this crate only stores the decision, as a row.
//!
//! The path of data: a caller hands in bytes and metadata ([`NewArtifact`]). [`prepare()`] detects the type of the
//! bytes with the pure function [`detect()`], stores them in the [`BlobStore`], and returns a row ([`Prepared`]). The
//! store syncs the file and its directory, and stores equal bytes only once. The caller then inserts the row and the
//! grants with the functions of [`index`], in any transaction. The bytes are stored before the row, so no row refers to
//! bytes that do not exist. A crash may leave bytes without a row. Such bytes do no harm, and the next artifact with
//! equal bytes uses them. To read an artifact, the caller gets its hash from [`index`]. [`BlobStore::read`] returns the
//! bytes only if they still have that hash.

mod mime;

mod text_test;

mod signature;

mod detect;
mod directory;

mod blobs;
mod trash;

mod prepare;
mod recent;
mod shards;
mod verified;

pub mod index;

pub use blobs::{Blob, BlobError, BlobFile, BlobHash, BlobStore};
pub use detect::{Contradiction, Detected, detect};
pub use prepare::{NewArtifact, Prepared, WORDS_BYTES, prepare, words};
pub use text_test::Extent;
pub use trash::{Expired, TRASH};
