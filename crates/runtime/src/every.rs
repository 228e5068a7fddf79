//! Regular work that does not pile up.

use std::time::Duration;
use tokio::time::{Interval, MissedTickBehavior};

/// Returns an interval whose first tick comes at once. If ticks were missed, because the process was stopped or was
/// busy, a single tick makes up for all of them, and the next one comes after a whole period.
pub(crate) fn every(period: Duration) -> Interval {
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn one_tick_makes_up_for_all_that_were_missed() {
        let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3_600));
        let begun = Instant::now();
        let mut ticks = every(second);
        ticks.tick().await;
        assert!(begun.elapsed() < second);
        tokio::time::advance(hour).await;
        ticks.tick().await;
        assert!(begun.elapsed() < hour + second);
        ticks.tick().await;
        assert!(begun.elapsed() >= hour + second);
    }
}
