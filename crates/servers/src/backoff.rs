//! Computes the pause before a failed server is started again.

use crate::bounds::Bounds;
use std::time::Duration;

/// Number of consecutive failures of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures(u32);

impl Failures {
    /// Counts one more failure. `lasted` is the duration of the connection that failed. If the connection lasted at
    /// least [`Bounds::settled`], forgets the earlier failures.
    pub(crate) fn after(self, lasted: Duration, bounds: &Bounds) -> Self {
        if lasted >= bounds.settled { Self(1) } else { Self(self.0.saturating_add(1)) }
    }

    /// Returns the pause before the next start: the first pause, doubled for each further failure, up to the
    /// longest pause.
    pub(crate) fn pause(self, bounds: &Bounds) -> Duration {
        let doubled = 2_u32.saturating_pow(self.0.saturating_sub(1));
        bounds.first_pause.saturating_mul(doubled).min(bounds.longest_pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let bounds = Bounds::default();
        let mut failures = Failures::default();
        let pauses = (0..12).map(|_| {
            failures = failures.after(Duration::ZERO, &bounds);
            failures.pause(&bounds).as_secs()
        });
        assert_eq!(pauses.collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    }

    proptest! {
        #[test]
        fn a_pause_is_bounded_and_short_after_a_success(lasted in prop::collection::vec(0..120_u64, 0..100)) {
            let bounds = Bounds::default();
            let mut failures = Failures::default();
            for seconds in lasted {
                failures = failures.after(Duration::from_secs(seconds), &bounds);
                let pause = failures.pause(&bounds);
                prop_assert!((bounds.first_pause..=bounds.longest_pause).contains(&pause));
                prop_assert!(seconds < 60 || pause == bounds.first_pause);
            }
            prop_assert!(Failures(u32::MAX).after(Duration::ZERO, &bounds).pause(&bounds) == bounds.longest_pause);
        }
    }
}
