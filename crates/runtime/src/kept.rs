//! What was made out of stored bytes for one request, kept for the next: pictures made to fit, bytes once encoded, text
//! got out of documents. Bounded; the least recently used goes first.

use lru::LruCache;
use polity_artifacts::BlobHash;
use polity_llm::Data;
use polity_media::ImageBounds;
use polity_routing::Reason;
use std::sync::{Mutex, PoisonError};

/// What was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// The bytes as they are.
    Whole,
    /// A picture within bounds.
    Fitted(ImageBounds),
    /// The text of a document.
    Text,
}

/// Something that was made.
#[derive(Clone, Debug)]
pub(crate) enum Made {
    /// A medium, with the MIME type that it has now.
    Medium(String, Data),
    /// The text of a document.
    Text(String),
    /// It was tried, and there is nothing to be had.
    Nothing,
    /// It was tried, and there is no picture to be had: why, for models and for those who watch.
    LeftOut(Reason, String),
}

impl Made {
    fn footprint(&self) -> usize {
        match self {
            Self::Medium(_, data) => data.footprint(),
            Self::Text(text) | Self::LeftOut(_, text) => text.len(),
            Self::Nothing => 0,
        }
    }
}

/// How much memory is kept at most: a few of the largest pictures that servers take, with their encoding.
const ROOM: usize = 64 * 1024 * 1024;

/// How many things are kept at most; those that are nothing have no weight.
const PLACES: usize = 1024;

/// The store of what was made.
pub(crate) struct Kept(Mutex<Shelf>);

struct Shelf {
    made: LruCache<(BlobHash, Form), Made>,
    weight: usize,
}

impl Default for Kept {
    fn default() -> Self {
        Self(Mutex::new(Shelf { made: LruCache::unbounded(), weight: 0 }))
    }
}

impl Kept {
    /// What was made of these bytes in that form.
    pub(crate) fn get(&self, blob: &BlobHash, form: Form) -> Option<Made> {
        self.shelf().made.get(&(blob.clone(), form)).cloned()
    }

    /// Keeps what was made, unless it alone is more than there is room for.
    pub(crate) fn keep(&self, blob: &BlobHash, form: Form, made: Made) {
        let weight = made.footprint();
        if weight > ROOM {
            return;
        }
        let mut shelf = self.shelf();
        shelf.weight += weight;
        if let Some(before) = shelf.made.put((blob.clone(), form), made) {
            shelf.weight -= before.footprint();
        }
        while shelf.weight > ROOM || shelf.made.len() > PLACES {
            let Some((_, oldest)) = shelf.made.pop_lru() else { break };
            shelf.weight -= oldest.footprint();
        }
    }

    fn shelf(&self) -> std::sync::MutexGuard<'_, Shelf> {
        // Nothing that can panic happens while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn medium(bytes: usize) -> Made {
        Made::Medium("image/png".to_owned(), Data::from(vec![0; bytes]))
    }

    fn is_kept(kept: &Kept, name: &str) -> bool {
        kept.get(&BlobHash::of(name.as_bytes()), Form::Whole).is_some()
    }

    #[test]
    fn the_least_recently_used_goes_when_room_runs_out() {
        let kept = Kept::default();
        let size = ROOM / 6;
        for name in ["a", "b"] {
            kept.keep(&BlobHash::of(name.as_bytes()), Form::Whole, medium(size));
        }
        assert!(is_kept(&kept, "a"));
        kept.keep(&BlobHash::of(b"c"), Form::Whole, medium(size));
        assert!(is_kept(&kept, "a") && is_kept(&kept, "c") && !is_kept(&kept, "b"));
    }

    #[test]
    fn what_is_larger_than_all_room_is_not_kept_and_drives_nothing_out() {
        let kept = Kept::default();
        kept.keep(&BlobHash::of(b"a"), Form::Whole, medium(10));
        kept.keep(&BlobHash::of(b"b"), Form::Whole, medium(ROOM));
        assert!(is_kept(&kept, "a") && !is_kept(&kept, "b"));
    }

    #[test]
    fn keeping_the_same_again_does_not_count_twice() {
        let kept = Kept::default();
        for _ in 0..1000 {
            kept.keep(&BlobHash::of(b"a"), Form::Whole, medium(ROOM / 100));
        }
        assert_eq!(kept.shelf().weight, medium(ROOM / 100).footprint());
    }
}
