//! The clock. Only this module asks for the time.

/// Returns the current time in milliseconds since 1970.
pub fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
