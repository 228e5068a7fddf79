//! Reads how long a server asks its callers to wait.

use http::HeaderMap;
use std::time::{Duration, SystemTime};

/// Reads the header `retry-after-ms`, or else `Retry-After`, which contains seconds or an HTTP date. If it is a date,
/// the wait is the time from now to this date. The server's clock may differ from the clock of this machine, so "now"
/// is the date in the header `Date`. Without the header `Date`, it is `now`.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(milliseconds / 1_000.0).ok();
    }
    let asked = text("retry-after")?;
    if let Ok(seconds) = asked.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = httpdate::parse_http_date(asked).ok()?;
    // A date in the past means no wait.
    let now = text("date").and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or(now);
    Some(until.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn check(headers: &[(&'static str, &'static str)], expect: Option<Duration>) {
        let now = httpdate::parse_http_date("Sat, 21 Nov 2026 10:00:00 GMT").unwrap();
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        assert_eq!(retry_after(&headers, now), expect);
    }

    #[test]
    fn every_form_is_read() {
        check(&[], None);
        check(&[("retry-after", "7")], Some(Duration::from_secs(7)));
        check(&[("retry-after", " 1.5 ")], Some(Duration::from_millis(1_500)));
        check(&[("retry-after", "Sat, 21 Nov 2026 10:00:30 GMT")], Some(Duration::from_secs(30)));
        check(&[("retry-after", "Sat, 21 Nov 2026 09:00:00 GMT")], Some(Duration::ZERO));
        let clock_of_server = ("date", "Mon, 21 Nov 2016 10:00:00 GMT");
        let date = ("retry-after", "Mon, 21 Nov 2016 10:00:07 GMT");
        check(&[clock_of_server, date], Some(Duration::from_secs(7)));
        check(&[("retry-after-ms", "250"), ("retry-after", "1")], Some(Duration::from_millis(250)));
    }

    #[test]
    fn nonsense_is_no_wait() {
        check(&[("retry-after", "soon")], None);
        check(&[("retry-after", "-3")], None);
        check(&[("retry-after", "NaN")], None);
        check(&[("retry-after", "1e300")], None);
    }
}
