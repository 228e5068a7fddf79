//! Reads the system clock. No other module of this crate reads the system clock.

use polity_society::time::Timestamp;

/// Returns the current time.
pub fn now() -> Timestamp {
    Timestamp::from_millis(jiff::Timestamp::now().as_millisecond())
}
