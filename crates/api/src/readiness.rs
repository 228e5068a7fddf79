//! The last result of the readiness check. It is reused for one second.

use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// How long a result is reused. Each check writes to the disk and waits for the disk, so checks must be rare.
const COUNTS_FOR: Duration = Duration::from_secs(1);

/// The last result of the check whether the data directory is writable.
#[derive(Default)]
pub(crate) struct Readiness(Mutex<Option<Found>>);

#[derive(Clone)]
struct Found {
    at: Instant,
    trouble: Option<String>,
}

impl Found {
    fn counts(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < COUNTS_FOR
    }
}

impl Readiness {
    /// Returns the reason why the data directory is not writable, or `None` if it is writable. Concurrent callers
    /// share a single check.
    pub(crate) async fn trouble(
        &self,
        now: Instant,
        look: impl AsyncFnOnce() -> Option<String>,
    ) -> Option<String> {
        let mut last = self.0.lock().await;
        if let Some(found) = last.as_ref().filter(|found| found.counts(now)) {
            return found.trouble.clone();
        }
        let trouble = look().await;
        *last = Some(Found { at: now, trouble: trouble.clone() });
        trouble
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_found_out_counts_for_a_second() {
        let (readiness, begun, mut looks) = (Readiness::default(), Instant::now(), 0);
        let mut check = async |millis: u64, found: Option<&str>, expect: (Option<&str>, u32)| {
            let look = async || {
                looks += 1;
                found.map(str::to_owned)
            };
            let trouble = readiness.trouble(begun + Duration::from_millis(millis), look).await;
            assert_eq!((trouble.as_deref(), looks), expect, "after {millis} ms");
        };
        check(0, None, (None, 1)).await;
        check(0, Some("full"), (None, 1)).await;
        check(999, Some("full"), (None, 1)).await;
        check(1000, Some("full"), (Some("full"), 2)).await;
        check(1999, None, (Some("full"), 2)).await;
        // This `now` is earlier than the last check: the caller has waited while another caller checked. It uses the
        // result of that check.
        check(500, None, (Some("full"), 2)).await;
        check(2000, None, (None, 3)).await;
    }
}
