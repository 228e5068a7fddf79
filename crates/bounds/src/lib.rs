//! Bounds the memory that other programs can make the daemon use.
//!
//! A JSON text of tiny values takes a hundred times its length in memory when it is parsed. [`Weigher`] estimates
//! this memory before the text is parsed. All request bodies in memory share one [`Budget`].
//!
//! This crate knows nothing about HTTP, models, agents or what the JSON means.

mod budget;
mod weight;

pub use budget::{Budget, Full, Share};
pub use weight::{Weigher, weigh, weigh_value};
