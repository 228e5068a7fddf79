//! Decides from the list of allowed domains whether a command may connect to a name and a port. Does no IO.

use std::net::IpAddr;

/// The ports that a command can reach: those of HTTP and HTTPS.
const PORTS: [u16; 2] = [80, 443];

/// The domains that a command may reach. All entries are valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domains(Vec<Pattern>);

/// One entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    /// `example.org`: this name alone.
    Exactly(String),
    /// `*.example.org`: all names below `example.org`, but not `example.org` itself.
    Beneath(String),
}

/// The error for an entry that is not a domain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is not a domain; write a name such as \"example.org\", or \"*.example.org\" for all names beneath it"
)]
pub struct NotADomain(pub String);

/// Why a connection was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denied {
    #[error("{0} is not among the domains that this sandbox allows")]
    NotListed(String),
    #[error("port {0} is not allowed; only 80 and 443 are")]
    Port(u16),
    #[error("{0} is an address; this sandbox allows only names")]
    Address(String),
    #[error("{0} is not a name")]
    NotAName(String),
}

impl Domains {
    /// Parses a list of domains. Fails at the first entry that is not a domain.
    pub fn new(list: &[String]) -> Result<Self, NotADomain> {
        list.iter().map(|entry| pattern(entry)).collect::<Result<_, _>>().map(Self)
    }

    /// Checks whether a command may connect to this name and port. If so, returns the name in its normal form.
    /// Otherwise the error says why not.
    pub(crate) fn permit(&self, host: &str, port: u16) -> Result<Name, Denied> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if bare.parse::<IpAddr>().is_ok() {
            return Err(Denied::Address(host.to_owned()));
        }
        let name = name(host).ok_or_else(|| Denied::NotAName(host.chars().take(255).collect()))?;
        if !PORTS.contains(&port) {
            return Err(Denied::Port(port));
        }
        let listed = self.0.iter().any(|pattern| match pattern {
            Pattern::Exactly(domain) => name == *domain,
            Pattern::Beneath(domain) => {
                name.strip_suffix(domain.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
        });
        if listed { Ok(Name(name)) } else { Err(Denied::NotListed(name)) }
    }
}

/// A name that [`Domains::permit`] accepted, in lower case and without a dot at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name(String);

impl Name {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

fn pattern(entry: &str) -> Result<Pattern, NotADomain> {
    let refused = || NotADomain(entry.to_owned());
    let (beneath, rest) = match entry.strip_prefix("*.") {
        Some(rest) => (true, rest),
        None => (false, entry),
    };
    let domain = name(rest).ok_or_else(refused)?;
    match (beneath, domain.contains('.')) {
        // An entry for a whole top-level domain would permit almost everything.
        (true, false) => Err(refused()),
        (true, true) => Ok(Pattern::Beneath(domain)),
        (false, _) => Ok(Pattern::Exactly(domain)),
    }
}

/// Returns a host name in lower case and without a dot at its end, or `None` if the text is not a host name.
///
/// The C function `inet_aton` reads texts such as `0x7f.1` and `2130706433` as addresses. So a text whose last part
/// begins with a digit does not count as a host name.
fn name(text: &str) -> Option<String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = text.rsplit('.').next()?;
    (text.len() <= 253
        && text.split('.').all(is_label)
        && !last.starts_with(|first: char| first.is_ascii_digit()))
    .then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests;
