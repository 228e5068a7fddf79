//! Finds pieces of stored files in a text. A piece from the middle of a file has no signature, so it is recognized only
//! by comparison with the file.

use super::LEFT_OUT;
use super::stream::{LONG, Segment, Stream};
use super::symbol::{Symbol, symbol};
use serde_json::Value;
use std::collections::HashSet;
use std::ops::Range;

/// Size of a block, in bytes. 64 digits of hexadecimal encode 32 bytes, and 64 digits of base64 encode 48 bytes.
/// Wherever these bytes begin in the file, they contain at least one whole block.
const BLOCK: usize = 16;

/// [`Fragments`] stores and compares only blocks with at least this many different byte values.
/// A block with fewer values occurs in many files, and even in words.
const LEAST_DIFFERENT: usize = 6;

/// The bytes of stored files, cut into blocks.
#[derive(Default)]
pub struct Fragments {
    blocks: HashSet<[u8; BLOCK]>,
}

impl Fragments {
    /// Adds the bytes of a stored file, so that pieces of this file are recognized from now on.
    pub fn know(&mut self, bytes: &[u8]) {
        let (blocks, _) = bytes.as_chunks::<BLOCK>();
        self.blocks.extend(blocks.iter().filter(|block| is_telling(block)));
    }

    /// Replaces pieces of the stored files with [`LEFT_OUT`] in the texts of a value.
    pub fn leave_out_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.leave_out(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.leave_out_in(item)),
            Value::Object(object) => {
                let fields = std::mem::take(object).into_iter();
                object.extend(fields.map(|(mut name, mut value)| {
                    self.leave_out(&mut name);
                    self.leave_out_in(&mut value);
                    (name, value)
                }));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Replaces pieces of the stored files with [`LEFT_OUT`] in a text.
    pub fn leave_out(&self, text: &mut String) {
        if self.blocks.is_empty() {
            return;
        }
        let known: Vec<Range<usize>> = runs(text).filter(|run| self.holds(&text[run.clone()])).collect();
        for run in known.into_iter().rev() {
            text.replace_range(run, LEFT_OUT);
        }
    }

    /// Returns whether a run of digits encodes a piece of one of the stored files. The piece may begin at any byte of
    /// the file.
    fn holds(&self, run: &str) -> bool {
        let digits = Stream::read(run.as_bytes(), 0, usize::MAX).digits;
        let is_hexadecimal = run.bytes().all(|byte| byte.is_ascii_hexdigit());
        let phases = (0..4).map(|phase| Stream { digits: digits[phase..].to_vec(), end: 0 }.bytes());
        let hexadecimal = (0..2).filter(|_| is_hexadecimal).map(|phase| from_hexadecimal(&run[phase..]));
        let is_known =
            |window: &[u8]| <&[u8; BLOCK]>::try_from(window).is_ok_and(|it| self.blocks.contains(it));
        phases.chain(hexadecimal).any(|bytes| bytes.windows(BLOCK).any(is_known))
    }
}

/// Returns whether a value contains a run of digits that could be a piece of a file.
pub fn is_suspicious(value: &Value) -> bool {
    match value {
        Value::String(text) => runs(text).next().is_some(),
        Value::Array(items) => items.iter().any(is_suspicious),
        Value::Object(object) => {
            object.iter().any(|(name, value)| runs(name).next().is_some() || is_suspicious(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns the long runs of base64 or hexadecimal digits in a text, without runs that are words.
fn runs(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some((what, length)) = symbol(bytes, at) {
            if !matches!(what, Symbol::Digit(_)) {
                at += length;
                continue;
            }
            let segment = Segment::look(bytes, at, usize::MAX);
            let run = at..segment.end();
            at = segment.end();
            let is_hexadecimal = || bytes[run.clone()].iter().all(u8::is_ascii_hexdigit);
            if segment.length() >= LONG && (segment.is_mixed() || is_hexadecimal()) {
                return Some(run);
            }
        }
        None
    })
}

/// Replaces each run of digits that could be a piece of a file with [`LEFT_OUT`].
pub(super) fn without_runs(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut end = 0;
    for run in runs(text) {
        kept.push_str(&text[end..run.start]);
        kept.push_str(LEFT_OUT);
        end = run.end;
    }
    kept.push_str(&text[end..]);
    kept
}

fn is_telling(block: &[u8; BLOCK]) -> bool {
    block.iter().collect::<HashSet<_>>().len() >= LEAST_DIFFERENT
}

fn from_hexadecimal(digits: &str) -> Vec<u8> {
    let (pairs, _) = digits.as_bytes().as_chunks::<2>();
    pairs.iter().filter_map(|pair| super::hex::first(pair, 0)).collect()
}
