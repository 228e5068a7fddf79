//! The host names that requests may use. A foreign page can make its own name point to this machine (DNS rebinding).
//! The requests of that page then arrive here, and only their `Host` header reveals that they are foreign.

use std::net::IpAddr;

/// The host names of this daemon.
#[derive(Clone, Debug)]
pub struct Hosts {
    port: u16,
    allowed: Vec<String>,
}

impl Hosts {
    /// Accepts the names in `allowed`, and every loopback name and loopback address if its port is `port`. If a name in
    /// `allowed` contains no port, it is accepted with any port, because a proxy may listen on another port than the
    /// daemon.
    pub fn new(port: u16, allowed: impl IntoIterator<Item = String>) -> Self {
        let allowed = allowed.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { port, allowed }
    }

    /// Returns the port that the daemon listens on.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Whether the authority of a request, as in `Host`, is a name of this daemon.
    pub(crate) fn contain(&self, authority: &str) -> bool {
        let authority = authority.to_ascii_lowercase();
        let Some((name, port)) = split(&authority) else { return false };
        let loopback = is_loopback(name) && port.unwrap_or(80) == self.port;
        loopback || self.allowed.iter().any(|allowed| *allowed == authority || *allowed == name)
    }
}

/// Splits an authority into name and port. Returns `None` for any other form, such as `user@host`.
fn split(authority: &str) -> Option<(&str, Option<u16>)> {
    let end = if authority.starts_with('[') {
        authority.find(']')? + 1
    } else {
        authority.find(':').unwrap_or(authority.len())
    };
    let (name, rest) = authority.split_at(end);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    if name.is_empty() || !name.bytes().all(plain) {
        return None;
    }
    match rest.strip_prefix(':') {
        None => rest.is_empty().then_some((name, None)),
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some((name, Some(digits.parse().ok()?)))
        }
        Some(_) => None,
    }
}

fn is_loopback(name: &str) -> bool {
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether an `Origin` names the host that the request was sent to.
pub(crate) fn is_same_origin(origin: &str, authority: &str) -> bool {
    let (rest, port) = match (origin.strip_prefix("http://"), origin.strip_prefix("https://")) {
        (Some(rest), _) => (rest, ":80"),
        (_, Some(rest)) => (rest, ":443"),
        (None, None) => return false,
    };
    let without_default = |text: &str| {
        let text = text.to_ascii_lowercase();
        text.strip_suffix(port).map_or(text.clone(), str::to_owned)
    };
    without_default(rest) == without_default(authority)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_ours() {
        let hosts = Hosts::new(7717, ["Polity.example".to_owned(), "box.local:8080".to_owned()]);
        let check =
            |authority: &str, expect: bool| assert_eq!(hosts.contain(authority), expect, "{authority:?}");
        check("127.0.0.1:7717", true);
        check("127.8.9.1:7717", true);
        check("localhost:7717", true);
        check("LocalHost:7717", true);
        check("[::1]:7717", true);
        check("polity.example", true);
        check("polity.EXAMPLE:443", true);
        check("box.local:8080", true);
        check("127.0.0.1:7718", false);
        check("127.0.0.1", false);
        check("localhost", false);
        check("box.local", false);
        check("box.local:8081", false);
        check("evil.example:7717", false);
        check("localhost.evil.example:7717", false);
        check("127.0.0.1.evil.example:7717", false);
        check("me@localhost:7717", false);
        check("localhost:7717:7717", false);
        check("localhost:+7717", false);
        check("localhost:", false);
        check("[::1", false);
        check("[::1]7717", false);
        check("", false);
        check(":7717", false);
        check("192.168.0.1:7717", false);
        check("0.0.0.0:7717", false);
    }

    #[test]
    fn port_80_need_not_be_said() {
        let hosts = Hosts::new(80, []);
        assert!(hosts.contain("localhost") && hosts.contain("localhost:80") && hosts.contain("[::1]"));
    }

    #[test]
    fn origins() {
        let check = |origin: &str, authority: &str, expect: bool| {
            assert_eq!(is_same_origin(origin, authority), expect, "{origin} {authority}");
        };
        check("http://localhost:7717", "localhost:7717", true);
        check("http://LOCALHOST:7717", "localhost:7717", true);
        check("https://polity.example", "polity.example", true);
        check("https://polity.example", "polity.example:443", true);
        check("http://localhost", "localhost:80", true);
        check("http://localhost:3000", "localhost:7717", false);
        check("http://127.0.0.1:7717", "localhost:7717", false);
        check("http://evil.example", "localhost:7717", false);
        check("http://localhost:7717.evil.example", "localhost:7717", false);
        check("http://localhost:7717/", "localhost:7717", false);
        check("null", "localhost:7717", false);
        check("file://", "localhost:7717", false);
        check("chrome-extension://localhost:7717", "localhost:7717", false);
        check("", "", false);
    }

    proptest! {
        #[test]
        fn a_name_that_is_not_loopback_never_counts(name in "[a-z]{1,12}(\\.[a-z]{1,8}){1,3}", port in any::<u16>()) {
            let authority = format!("{name}:{port}");
            prop_assert!(!Hosts::new(port, []).contain(&authority));
        }

        #[test]
        fn only_our_port_counts(port in any::<u16>(), other in any::<u16>()) {
            let hosts = Hosts::new(port, []);
            prop_assert_eq!(hosts.contain(&format!("localhost:{other}")), port == other);
        }

        #[test]
        fn whatever_is_sent_is_judged(text in any::<String>()) {
            Hosts::new(7717, []).contain(&text);
            is_same_origin(&text, "localhost:7717");
        }
    }
}
