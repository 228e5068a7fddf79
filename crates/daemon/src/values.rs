//! Parsers for the values of command line options.

use polity_society::id::ServiceId;
use polity_society::workspace::READ_ONLY;
use std::net::SocketAddr;
use std::time::Duration;

/// Parses a listen address.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let advice = "write it like 127.0.0.1:7717 or [::1]:7717";
    numeric.as_deref().unwrap_or(text).parse().map_err(|_| advice.to_owned())
}

/// Parses a host name, with or without a port.
pub(crate) fn host(text: &str) -> Result<String, String> {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-._:[]".contains(character);
    if text.is_empty() || !text.chars().all(plain) {
        return Err("write only the name, like polity.example or polity.example:8080".to_owned());
    }
    Ok(text.to_owned())
}

/// Parses a workspace: the path of a directory; `:ro` at the end of the path makes the directory read-only. Returns
/// the absolute path, with `:ro` if it was given.
pub(crate) fn workspace(text: &str) -> Result<String, String> {
    let (path, access) = match text.strip_suffix(READ_ONLY) {
        Some(path) => (path, READ_ONLY),
        None => (text, ""),
    };
    let resolved = std::fs::canonicalize(path)
        .map_err(|error| format!("{error}; check the path, or create the directory"))?;
    if !resolved.is_dir() {
        return Err("name a directory".to_owned());
    }
    let path = resolved.to_str().ok_or("its path must be UTF-8")?;
    Ok(format!("{path}{access}"))
}

/// Parses the id of a service.
pub(crate) fn service(text: &str) -> Result<ServiceId, String> {
    let text = text.trim();
    if text.is_empty() { Err("name a service".to_owned()) } else { Ok(ServiceId::new(text)) }
}

/// Parses a duration without days, such as 90s or 1h30m; a bare number means seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let advice = "write it like 90s, 5m or 1h30m";
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let span: jiff::SignedDuration = text.parse().map_err(|_| advice.to_owned())?;
    Duration::try_from(span).map_err(|_| format!("must not be negative; {advice}"))
}

/// Parses an age with a unit, such as 12h, 30d or 8w.
pub(crate) fn age(text: &str) -> Result<Duration, String> {
    let advice = "write it like 12h, 30d or 8w";
    let span: jiff::Span = text.parse().map_err(|_| advice.to_owned())?;
    let whole_days = jiff::SpanRelativeTo::days_are_24_hours();
    let age = span.to_duration(whole_days).map_err(|_| advice.to_owned())?;
    Duration::try_from(age).map_err(|_| format!("must not be negative; {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspaces() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().to_str().unwrap().to_owned();
        assert_eq!(workspace(&path), Ok(path.clone()));
        assert_eq!(workspace(&format!("{path}/.:ro")), Ok(format!("{path}:ro")));
        let missing = workspace(&format!("{path}/none")).unwrap_err();
        assert!(missing.ends_with("; check the path, or create the directory"), "{missing}");
        std::fs::write(directory.path().join("file"), "").unwrap();
        assert_eq!(workspace(&format!("{path}/file")), Err("name a directory".to_owned()));
    }

    #[test]
    fn durations() {
        let check = |text: &str, expect: Option<u64>| {
            assert_eq!(duration(text).ok(), expect.map(Duration::from_secs), "{text}");
        };
        check("90s", Some(90));
        check("5m", Some(300));
        check("1h30m", Some(5400));
        check("7", Some(7));
        check("-1s", None);
        check("soon", None);
    }

    #[test]
    fn addresses() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(address(text).ok().map(|address| address.to_string()).as_deref(), expect, "{text}");
        };
        check("127.0.0.1:7717", Some("127.0.0.1:7717"));
        check("localhost:0", Some("127.0.0.1:0"));
        check("[::1]:80", Some("[::1]:80"));
        check("7717", None);
        check("localhost", None);
        check("polity.example:7717", None);
    }

    #[test]
    fn hosts() {
        let check = |text: &str, expect: bool| assert_eq!(host(text).is_ok(), expect, "{text}");
        check("polity.example", true);
        check("[fd00::7]:7717", true);
        check("", false);
        check("http://polity.example", false);
        check("*", false);
    }

    #[test]
    fn ages() {
        let check = |text: &str, expect: Option<u64>| {
            let hours = expect.map(|hours| Duration::from_secs(hours * 60 * 60));
            assert_eq!(age(text).ok(), hours, "{text}");
        };
        check("12h", Some(12));
        check("30d", Some(30 * 24));
        check("8w", Some(8 * 7 * 24));
        check("1d 12h", Some(36));
        // An age without a unit.
        check("30", None);
        // Months differ in length, so they are refused.
        check("1mo", None);
        check("-1d", None);
        check("soon", None);
    }
}
