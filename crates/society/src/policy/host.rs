//! Hosts in rules: names, names with `*`, and addresses.

use super::pattern::Pattern;
use serde::{Serialize, Serializer};
use url::Host;

/// Returns a host in the form in which hosts are compared: IDNA, lower case, no dot at the end.
/// Returns `None` if the text is not a host.
pub fn host_name(text: &str) -> Option<String> {
    let text = text.trim();
    // `Host::parse` accepts an IPv6 address only in brackets, so an address without brackets is parsed here.
    let address = text.parse::<std::net::Ipv6Addr>().map(Host::Ipv6);
    let host = address.or_else(|_| Host::parse(text)).ok()?;
    let name = host.to_string();
    let bare = name.strip_suffix('.').unwrap_or(&name);
    (!bare.is_empty()).then(|| bare.to_owned())
}

/// A host in a rule: `example.org`, an address, or `*` for every host. `*.example.org` fits all names below
/// `example.org`. As in every [`Pattern`], `*` can also be a part of a label: `api-*.example.org`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern(Pattern);

/// The error for a text that is neither a host nor a host with `*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a host such as \"example.org\", \"*.example.org\" for all names below it, or an address")]
pub struct NotAHost;

impl HostPattern {
    /// Reads a host. Converts the parts before and after `*` to IDNA and lower case, and removes the dot at the end.
    pub fn parse(text: &str) -> Result<Self, NotAHost> {
        /// A text that takes the place of `*` during the conversion to IDNA, because IDNA does not allow `*`.
        const STAND_IN: &str = "0star0";
        let text = text.trim().to_lowercase();
        if text == "*" {
            return Ok(Self(Pattern::new(text)));
        }
        if !text.contains('*') {
            return host_name(&text).map(|name| Self(Pattern::new(name))).ok_or(NotAHost);
        }
        // IDNA moves the non-ASCII characters of a label to its end. After that, `*` would be in the wrong place.
        // So a label with `*` may not contain non-ASCII characters.
        let is_moved = |label: &str| label.contains('*') && !label.is_ascii();
        if text.contains(STAND_IN) || text.split('.').any(is_moved) {
            return Err(NotAHost);
        }
        let name = host_name(&text.replace('*', STAND_IN)).ok_or(NotAHost)?;
        Ok(Self(Pattern::new(name.replace(STAND_IN, "*"))))
    }

    /// Returns the pattern in the form in which hosts are compared: IDNA, lower case, no dot at the end.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns whether the pattern fits a host. Only the pattern `*` fits a text that is not a host.
    pub fn fits(&self, host: &str) -> bool {
        match host_name(host) {
            Some(name) => self.0.fits(&name),
            None => self.0.as_str() == "*",
        }
    }
}

impl Serialize for HostPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_compared_in_idna_lower_case_and_without_the_last_dot() {
        let check = |pattern: &str, host: &str, fits: bool| {
            assert_eq!(HostPattern::parse(pattern).unwrap().fits(host), fits, "{pattern} {host}");
        };
        check("*.example.org", "a.example.org", true);
        check("*.example.org", "a.b.EXAMPLE.org.", true);
        check("*.example.org", "example.org", false);
        check("*.example.org", "badexample.org", false);
        check("*.Example.ORG.", "a.example.org", true);
        check("example.org", "Example.org.", true);
        check("example.org", "example.org.evil.net", false);
        check("bücher.example", "xn--bcher-kva.example", true);
        check("*.bücher.example", "a.XN--bcher-kva.example", true);
        check("xn--bcher-kva.example", "BÜCHER.example", true);
        check("10.0.0.7", "10.0.0.7", true);
        check("[::1]", "::1", true);
        check("::1", "[0:0:0:0:0:0:0:1]", true);
        check("api-*.example.org", "api-7.example.org", true);
        check("*", "anything.example", true);
        check("*", "no host", true);
        check("no.host", "no host", false);
    }

    #[test]
    fn a_text_that_is_no_host_is_no_pattern() {
        for text in ["", " ", "a b", "https://example.org", "example.org/path", "ü*.example", "0star0.*"] {
            assert_eq!(HostPattern::parse(text), Err(NotAHost), "{text:?}");
        }
    }
}
