//! What to do about a model call that brought no answer: the one retry policy (contract section 4).

use crate::render::MediaUse;
use polity_llm::{CallError, FailureKind};
use polity_registry::Retry;
use std::time::Duration;

/// What was tried so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tried {
    /// Attempts at this service, the failed one included.
    pub(crate) attempts: u32,
    /// Whether the request had media in it.
    pub(crate) sent: Sent,
    /// Whether there is another service to turn to.
    pub(crate) fallback: Fallback,
    /// Whether media were shown.
    pub(crate) media: MediaUse,
    /// Whether older history can be summed up.
    pub(crate) room: Room,
}

/// Whether room can be made in the context window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// It can: nothing was summed up for this call yet.
    Untouched,
    /// It can once more: what was summed up was not enough.
    Made,
    /// It cannot.
    Exhausted,
}

/// What a request held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Text alone.
    Text,
    /// Media too.
    Media,
}

/// Whether there is another service to turn to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fallback {
    /// There is one that was not tried yet.
    Untried,
    /// There is none.
    None,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The same again, after a pause.
    Again {
        /// How long the pause is.
        after: Duration,
    },
    /// The same at once, with media described in text.
    DescribeMedia,
    /// The same, once older history was summed up.
    Compact,
    /// Ask the fallback.
    Fallback,
    /// Tell the parent, or the person.
    GiveUp,
}

/// Decides. `jitter` is a random number from 0 to 1; it spreads those who wait for the same server.
pub(crate) fn next(failure: &CallError, tried: Tried, retry: &Retry, jitter: f64) -> Next {
    let elsewhere = match tried.fallback {
        Fallback::Untried => Next::Fallback,
        Fallback::None => Next::GiveUp,
    };
    let passing = match failure.kind {
        FailureKind::Unreachable
        | FailureKind::TimedOut
        | FailureKind::RateLimited
        | FailureKind::Passing
        | FailureKind::BrokenOff
        | FailureKind::NotAnAnswer => true,
        FailureKind::MediaRefused if tried.sent == Sent::Media && tried.media == MediaUse::Shown => {
            return Next::DescribeMedia;
        }
        FailureKind::ContextOverflow if tried.room != Room::Exhausted => return Next::Compact,
        FailureKind::MediaRefused
        | FailureKind::Unauthorized
        | FailureKind::ContextOverflow
        | FailureKind::Refused
        | FailureKind::Misconfigured => false,
    };
    if !passing || tried.attempts >= retry.max_attempts {
        return elsewhere;
    }
    Next::Again { after: pause(failure.retry_after, tried.attempts, retry, jitter) }
}

/// Twice as long after each attempt, by half more or less; never shorter than the server asks for.
fn pause(asked: Option<Duration>, attempts: u32, retry: &Retry, jitter: f64) -> Duration {
    let doubled = retry.base_delay.saturating_mul(1 << attempts.saturating_sub(1).min(20));
    let spread = doubled.min(retry.max_delay).mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0);
    asked.map_or(spread, |asked| asked.max(spread))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KINDS: [FailureKind; 11] = [
        FailureKind::Unreachable,
        FailureKind::TimedOut,
        FailureKind::RateLimited,
        FailureKind::Passing,
        FailureKind::Unauthorized,
        FailureKind::ContextOverflow,
        FailureKind::MediaRefused,
        FailureKind::Refused,
        FailureKind::BrokenOff,
        FailureKind::NotAnAnswer,
        FailureKind::Misconfigured,
    ];

    fn retry() -> Retry {
        Retry { max_attempts: 6, base_delay: Duration::from_millis(500), max_delay: Duration::from_secs(30) }
    }

    fn failure(kind: FailureKind, retry_after: Option<u64>) -> CallError {
        CallError {
            kind,
            message: String::new(),
            status: None,
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    const FIRST: Tried = Tried {
        attempts: 1,
        sent: Sent::Text,
        fallback: Fallback::None,
        media: MediaUse::Shown,
        room: Room::Exhausted,
    };

    #[test]
    fn what_follows_a_failure() {
        let check = |kind, tried: Tried, expect: Next| {
            assert_eq!(next(&failure(kind, None), tried, &retry(), 1.0), expect)
        };
        let again = |millis| Next::Again { after: Duration::from_millis(millis) };
        check(FailureKind::Passing, FIRST, again(500));
        check(FailureKind::Passing, Tried { attempts: 3, ..FIRST }, again(2000));
        check(FailureKind::Passing, Tried { attempts: 6, ..FIRST }, Next::GiveUp);
        check(
            FailureKind::Passing,
            Tried { attempts: 6, fallback: Fallback::Untried, ..FIRST },
            Next::Fallback,
        );
        check(FailureKind::Refused, FIRST, Next::GiveUp);
        check(FailureKind::Unauthorized, Tried { fallback: Fallback::Untried, ..FIRST }, Next::Fallback);
        let media = Tried { sent: Sent::Media, ..FIRST };
        check(FailureKind::MediaRefused, media, Next::DescribeMedia);
        check(FailureKind::MediaRefused, Tried { media: MediaUse::Described, ..media }, Next::GiveUp);
        let elsewhere = Tried { fallback: Fallback::Untried, ..FIRST };
        check(FailureKind::ContextOverflow, Tried { room: Room::Untouched, ..elsewhere }, Next::Compact);
        check(FailureKind::ContextOverflow, Tried { room: Room::Made, ..elsewhere }, Next::Compact);
        check(FailureKind::ContextOverflow, elsewhere, Next::Fallback);
        check(FailureKind::MediaRefused, FIRST, Next::GiveUp);
    }

    #[test]
    fn retry_after_is_obeyed() {
        let limited = failure(FailureKind::RateLimited, Some(90));
        assert_eq!(next(&limited, FIRST, &retry(), 0.3), Next::Again { after: Duration::from_secs(90) });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// However a server fails, the same call is tried at most `maxAttempts` times, and once more with media described.
        #[test]
        fn attempts_are_bounded(kinds in proptest::collection::vec(0usize..KINDS.len(), 64), jitter in 0.0f64..1.0) {
            let mut tried = Tried { sent: Sent::Media, ..FIRST };
            let mut made = 0;
            for kind in kinds {
                made += 1;
                match next(&failure(KINDS[kind], None), tried, &retry(), jitter) {
                    Next::Again { after } => {
                        prop_assert!(after <= retry().max_delay);
                        tried.attempts += 1;
                    }
                    Next::DescribeMedia => {
                        tried.media = MediaUse::Described;
                        tried.attempts += 1;
                    }
                    Next::Compact | Next::Fallback | Next::GiveUp => break,
                }
            }
            prop_assert!(made <= retry().max_attempts + 1);
        }
    }
}
