//! Slows down a server that sends too many messages.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// The rate limit of a server: a burst of messages, and after that one message per interval.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    every: Duration,
    burst: Duration,
    /// Each message moves this time further into the future, by `every`. If this time is more than `burst` in the
    /// future, the server is slowed down.
    paid_until: Instant,
}

impl Allowance {
    fn new(burst: u32, every: Duration, now: Instant) -> Self {
        Self { every, burst: every.saturating_mul(burst), paid_until: now }
    }

    /// Counts messages. Returns how long to wait before reading the next message.
    fn spend(&mut self, messages: u32, now: Instant) -> Duration {
        self.paid_until = self.paid_until.max(now) + self.every.saturating_mul(messages);
        self.paid_until.saturating_duration_since(now).saturating_sub(self.burst)
    }
}

/// Slows down a reader. While the reader waits, the pipe or socket fills up, so the sender has to wait as well.
pub(crate) struct Pace {
    allowance: Allowance,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    pub(crate) fn new(burst: u32, every: Duration) -> Self {
        Self { allowance: Allowance::new(burst, every, Instant::now()), pause: None }
    }

    /// Counts messages that were read, and sets the pause before the next message.
    pub(crate) fn count(&mut self, messages: u32) {
        let pause = self.allowance.spend(messages, Instant::now());
        if !pause.is_zero() {
            self.pause = Some(Box::pin(tokio::time::sleep(pause)));
        }
    }

    /// Returns `Ready` when the next message may be read.
    pub(crate) fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
        Poll::Ready(())
    }

    /// Waits until the next message may be read. If the caller drops the future, nothing is lost: the next call
    /// continues to wait for the same time.
    pub(crate) async fn ready(&mut self) {
        std::future::poll_fn(|context| self.poll_ready(context)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A reader that makes every required pause receives at most the burst, plus one message per interval.
        #[test]
        fn no_more_than_the_allowance_gets_through(
            burst in 1..50_u32,
            steps in prop::collection::vec((1..20_u32, 0..30_u64), 1..200),
        ) {
            let every = Duration::from_millis(10);
            let begin = Instant::now();
            let mut allowance = Allowance::new(burst, every, begin);
            let mut now = begin;
            let mut sent = 0;
            for (messages, idle) in steps {
                let before = sent;
                let most = burst + u32::try_from((now - begin).as_millis() / 10).unwrap() + 1;
                prop_assert!(before <= most, "{before} messages were let through, at most {most}");
                sent += messages;
                let wait = allowance.spend(messages, now);
                now += wait + Duration::from_millis(idle);
            }
        }

        #[test]
        fn a_calm_server_never_waits(idle in prop::collection::vec(10..30_u64, 1..200)) {
            let every = Duration::from_millis(10);
            let mut now = Instant::now();
            let mut allowance = Allowance::new(1, every, now);
            for idle in idle {
                prop_assert_eq!(allowance.spend(1, now), Duration::ZERO);
                now += Duration::from_millis(idle);
            }
        }
    }
}
