//! Watches the time limits of a call.

use crate::chat::FailureKind;
use crate::classify::Failure;
use crate::endpoint::{Endpoint, Timeouts};
use std::time::Duration;
use tokio::time::Instant;

/// The time limit that a call has exceeded, and the length of this limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    /// No byte of the answer's body arrived in time.
    FirstByte(Duration),
    /// No further byte of the body arrived in time.
    BetweenBytes(Duration),
    /// The answer was not complete in time.
    WholeCall(Duration),
}

impl Late {
    /// Returns the failure. Perhaps the server is only slow, so the message names the setting that allows more time.
    pub(crate) fn failure(self) -> Failure {
        let message = match self {
            Self::FirstByte(after) => format!(
                "no byte of an answer within {after:?}: if the model needs longer to begin, raise timeouts.firstByteMs of the service"
            ),
            Self::BetweenBytes(after) => format!(
                "the answer stood still for {after:?}: if the model needs longer to go on, raise timeouts.betweenBytesMs of the service"
            ),
            Self::WholeCall(after) => format!(
                "no complete answer within {after:?}: if the model needs longer, raise timeoutMs of the service"
            ),
        };
        Failure { kind: FailureKind::TimedOut, message }
    }
}

/// The time limits of one call that is in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stages {
    /// The deadline for the first byte, and the time limit from which this deadline is computed. `None` if the first
    /// byte has no limit of its own.
    first_byte: Option<(Instant, Duration)>,
    between_bytes: Duration,
    began: Began,
}

/// Whether any byte of the answer's body has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Began {
    No,
    Yes,
}

impl Stages {
    /// Starts the clock of a call.
    pub(crate) fn begin(endpoint: &Endpoint) -> Self {
        let Timeouts { first_byte, between_bytes, connect: _ } = endpoint.timeouts;
        let now = Instant::now();
        let first_byte = first_byte.and_then(|allowed| Some((now.checked_add(allowed)?, allowed)));
        Self { first_byte, between_bytes, began: Began::No }
    }

    /// Waits for `next`, but not longer than the time limit of the current stage of the call.
    pub(crate) async fn wait<T>(&self, next: impl Future<Output = T>) -> Result<T, Late> {
        match (self.began, self.first_byte) {
            (Began::No, None) => Ok(next.await),
            (Began::No, Some((until, allowed))) => {
                tokio::time::timeout_at(until, next).await.map_err(|_| Late::FirstByte(allowed))
            }
            (Began::Yes, _) => tokio::time::timeout(self.between_bytes, next)
                .await
                .map_err(|_| Late::BetweenBytes(self.between_bytes)),
        }
    }

    /// Records that bytes of the body have arrived.
    pub(crate) fn came(&mut self, bytes: usize) {
        if bytes > 0 {
            self.began = Began::Yes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    fn stages(first_byte: Option<u64>, between_bytes: u64) -> Stages {
        let timeouts = Timeouts {
            first_byte: first_byte.map(Duration::from_secs),
            between_bytes: Duration::from_secs(between_bytes),
            ..Timeouts::default()
        };
        Stages::begin(&Endpoint { timeouts, ..Endpoint::new("http://host", "m") })
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_byte_is_waited_for_from_the_beginning_of_the_call() {
        let (began, mut stages) = (Instant::now(), stages(Some(10), 3));
        stages.wait(tokio::time::sleep(Duration::from_secs(8))).await.unwrap();
        // The head and an empty piece have arrived, but no byte of the body.
        stages.came(0);
        let late = stages.wait(pending::<()>()).await.unwrap_err();
        assert_eq!((late, began.elapsed().as_secs()), (Late::FirstByte(Duration::from_secs(10)), 10));
    }

    #[tokio::test(start_paused = true)]
    async fn each_piece_starts_the_clock_anew() {
        let (began, mut stages) = (Instant::now(), stages(Some(1), 3));
        stages.came(1);
        for _ in 0..100 {
            stages.wait(tokio::time::sleep(Duration::from_secs(2))).await.unwrap();
            stages.came(2);
        }
        let late = stages.wait(pending::<()>()).await.unwrap_err();
        assert_eq!((late, began.elapsed().as_secs()), (Late::BetweenBytes(Duration::from_secs(3)), 203));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_bound_of_its_own_the_first_byte_may_take_as_long_as_the_call() {
        let stages = stages(None, 1);
        stages.wait(tokio::time::sleep(Duration::from_secs(3_600))).await.unwrap();
        stages.wait(ready(())).await.unwrap();
    }

    #[test]
    fn each_says_what_to_change() {
        let check = |late: Late, field: &str| {
            let failure = late.failure();
            assert_eq!(failure.kind, FailureKind::TimedOut);
            assert!(
                failure.message.contains(&format!("raise {field} of the service")),
                "{}",
                failure.message
            );
            assert!(failure.message.contains("1.5s"), "{}", failure.message);
        };
        let after = Duration::from_millis(1_500);
        check(Late::FirstByte(after), "timeouts.firstByteMs");
        check(Late::BetweenBytes(after), "timeouts.betweenBytesMs");
        check(Late::WholeCall(after), "timeoutMs");
    }
}
