//! Bounds the memory that other programs can make the daemon use.
//!
//! A JSON text of tiny values takes a hundred times its length once it is parsed. [`Weigher`] estimates this from the
//! text, before the text is parsed. A [`Budget`] is shared by all request bodies that are in memory.
//!
//! This crate knows nothing about HTTP, models, agents or what the JSON means.

mod budget;
mod weight;

pub use budget::{Budget, Full, Share};
pub use weight::{Weigher, weigh, weigh_value};
