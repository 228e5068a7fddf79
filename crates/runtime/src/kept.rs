//! Keeps the converted forms of stored bytes, so that later requests can use them again: pictures that were made to
//! fit, bytes in base64, and texts of documents. The memory is bounded; the least recently used entry is removed first.

use lru::LruCache;
use polity_artifacts::BlobHash;
use polity_llm::Data;
use polity_media::ImageBounds;
use polity_routing::Reason;
use polity_society::mime::MimeType;
use std::sync::{Mutex, PoisonError};

/// A form into which stored bytes are converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// The unchanged bytes.
    Whole,
    /// A picture that fits these bounds.
    Fitted(ImageBounds),
    /// The text of a document.
    Text,
}

/// The result of converting bytes into a form.
#[derive(Clone, Debug)]
pub(crate) enum Made {
    /// A medium, with the MIME type that it has in this form.
    Medium(MimeType, Data),
    Text(String),
    /// The document contains no text that can be extracted. This result is kept too, so that the next request does
    /// not try again.
    Nothing,
    /// No picture can be made. Contains the reason for the model, and an explanation for the event.
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

/// The maximum memory for all results together, in bytes. It is enough for a few of the largest pictures that servers
/// accept, and for the base64 text of each of these pictures.
const ROOM: usize = 64 * 1024 * 1024;

/// The maximum number of results that are kept. Without this limit, results that take no memory could accumulate
/// without end.
const PLACES: usize = 1024;

/// The results that are kept.
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
    /// Returns the result of converting these bytes into this form; `None` if no such result is kept.
    pub(crate) fn get(&self, blob: &BlobHash, form: Form) -> Option<Made> {
        self.shelf().made.get(&(blob.clone(), form)).cloned()
    }

    /// Keeps a result, unless this result alone would take more than the maximum memory.
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
        // Nothing that can panic runs while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn medium(bytes: usize) -> Made {
        Made::Medium(MimeType::unchecked("image/png"), Data::from(vec![0; bytes]))
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
