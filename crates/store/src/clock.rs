//! The clock. Only this module asks for the time.

use polity_society::time::Timestamp;

/// Returns the current time.
pub fn now() -> Timestamp {
    Timestamp::from_millis(jiff::Timestamp::now().as_millisecond())
}
