//! Times. This crate never reads the clock: its callers pass the time as an argument.

use std::time::Duration;

/// A time, in milliseconds since 1970 (UTC). The database and JSON contain this number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// A time before all others.
    pub const MIN: Self = Self(i64::MIN);

    /// A time after all others.
    pub const MAX: Self = Self(i64::MAX);

    /// Wraps a number of milliseconds since 1970.
    pub const fn from_millis(milliseconds: i64) -> Self {
        Self(milliseconds)
    }

    /// Returns the milliseconds since 1970.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Adds a duration. Returns [`Self::MAX`] if the result is too large.
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(in_millis(duration)))
    }

    /// Subtracts a duration. Returns [`Self::MIN`] if the result is too small.
    pub fn saturating_sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(in_millis(duration)))
    }

    /// Returns the duration from `earlier` to this time; zero if `earlier` is later.
    pub fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0).max(0).unsigned_abs())
    }
}

fn in_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_do_not_overflow() {
        let (begin, second) = (Timestamp::from_millis(1_500), Duration::from_secs(1));
        assert_eq!(begin.saturating_add(second).as_millis(), 2_500);
        assert_eq!(begin.saturating_sub(second).as_millis(), 500);
        assert_eq!(begin.saturating_add(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MIN.saturating_sub(second), Timestamp::MIN);
        assert_eq!(begin.saturating_duration_since(Timestamp::default()), Duration::from_millis(1_500));
        assert_eq!(begin.saturating_duration_since(Timestamp::MAX), Duration::ZERO);
        assert_eq!(Timestamp::MAX.saturating_duration_since(Timestamp::MIN).as_millis(), i64::MAX as u128);
    }
}
