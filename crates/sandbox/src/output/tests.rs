use proptest::prelude::*;

use super::{Recorder, Room};
use crate::plan::Excerpt;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Regardless of the size of the pieces in which the bytes arrive, the file contains the output up to the limit,
    /// and the excerpt contains the first and last bytes of the file.
    #[test]
    fn an_excerpt_is_the_two_ends_of_the_file(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
        first in 0_usize..40,
        last in 0_usize..40,
        limit in 0_u64..600,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("output");
        let all: Vec<u8> = pieces.concat();
        let (output, exhausted) = runtime.block_on(async {
            let mut recorder = Recorder::new(&path, Excerpt { first, last }, limit).await.unwrap();
            let mut exhausted = false;
            for piece in &pieces {
                exhausted |= recorder.take(piece).await.unwrap() == Room::Exhausted;
            }
            (recorder.finish().await.unwrap(), exhausted)
        });
        let kept = &all[..all.len().min(usize::try_from(limit).unwrap())];
        prop_assert_eq!(std::fs::read(&path).unwrap(), kept);
        prop_assert_eq!(exhausted, kept.len() < all.len());
        prop_assert_eq!(output.total_bytes, kept.len() as u64);
        let beginning = kept.len().min(first);
        prop_assert_eq!(&output.first[..], &kept[..beginning]);
        let rest = &kept[beginning..];
        prop_assert_eq!(&output.last[..], &rest[rest.len().saturating_sub(last)..]);
        prop_assert_eq!(output.omitted_bytes(), (rest.len() - output.last.len()) as u64);
    }
}
