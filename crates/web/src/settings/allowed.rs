//! Parses and compares the entries of `tools.web.allowHosts`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};
use url::Host;

/// A host that agents may reach although it is not public: a name (`wiki.corp`), all names below a name (`*.corp`),
/// an address (`10.0.0.7`, `[::1]`) or a range of addresses (`10.0.0.0/8`). An entry with a port (`localhost:8080`)
/// allows only this port.
///
/// An entry with a name allows all addresses to which the name resolves. An entry with an address allows this address,
/// no matter which name resolves to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHost {
    host: Pattern,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Name(String),
    Below(String),
    Range { network: IpAddr, prefix: u8 },
}

/// The error for an entry of `allowHosts` that is neither a name nor an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{entry}` is not a host: write a name (`wiki.corp`), names below one (`*.corp`), an address (`10.0.0.7`, `[::1]`) \
     or a range (`10.0.0.0/8`), with `:port` behind it for a single port"
)]
pub struct AllowedHostError {
    entry: String,
}

impl AllowedHost {
    /// Makes an entry for exactly one host and port, such as the host and port of a URL.
    pub(crate) fn exactly(host: &Host<&str>, port: u16) -> Self {
        let host = match host {
            Host::Domain(name) => Pattern::Name(bare(name)),
            Host::Ipv4(address) => Pattern::of_address((*address).into()),
            Host::Ipv6(address) => Pattern::of_address((*address).into()),
        };
        Self { host, port: Some(port) }
    }

    pub(crate) fn names(&self, name: &str, port: u16) -> bool {
        self.reaches(port)
            && match &self.host {
                Pattern::Name(own) => own == name,
                Pattern::Below(suffix) => {
                    name.strip_suffix(suffix.as_str()).is_some_and(|rest| rest.ends_with('.'))
                }
                Pattern::Range { .. } => false,
            }
    }

    pub(crate) fn contains(&self, address: IpAddr, port: u16) -> bool {
        let Pattern::Range { network, prefix } = &self.host else { return false };
        self.reaches(port)
            && match (network, address.to_canonical()) {
                (IpAddr::V4(network), IpAddr::V4(address)) => masked_v4(address, *prefix) == *network,
                (IpAddr::V6(network), IpAddr::V6(address)) => masked_v6(address, *prefix) == *network,
                (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
            }
    }

    /// Returns whether this port is written in the entry. If no port is written in the entry, returns `false` for every
    /// port.
    pub(crate) fn is_for_port(&self, port: u16) -> bool {
        self.port == Some(port)
    }

    fn reaches(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }
}

impl Pattern {
    fn of_address(address: IpAddr) -> Self {
        let network = address.to_canonical();
        let prefix = if network.is_ipv4() { 32 } else { 128 };
        Self::Range { network, prefix }
    }

    fn of_range(address: &str, prefix: &str) -> Option<Self> {
        let prefix: u8 = prefix.parse().ok()?;
        match address.parse().ok()? {
            IpAddr::V4(address) if prefix <= 32 => {
                Some(Self::Range { network: masked_v4(address, prefix).into(), prefix })
            }
            IpAddr::V6(address) if prefix <= 128 => {
                Some(Self::Range { network: masked_v6(address, prefix).into(), prefix })
            }
            IpAddr::V4(_) | IpAddr::V6(_) => None,
        }
    }

    fn of_host(host: &str) -> Option<Self> {
        if let Some((address, prefix)) = host.split_once('/') {
            return Self::of_range(address, prefix);
        }
        if let Ok(address) = host.parse() {
            return Some(Self::of_address(address));
        }
        let (name, below) = match host.strip_prefix("*.") {
            Some(rest) => (rest, Self::Below as fn(String) -> Self),
            None => (host, Self::Name as fn(String) -> Self),
        };
        match Host::parse(name).ok()? {
            Host::Domain(name) if !name.contains('*') => Some(below(bare(&name))),
            Host::Domain(_) => None,
            // An entry may be an address only if it does not begin with `*.`, because no names are below an address. So
            // `*.127.1` is an error.
            Host::Ipv4(address) if name == host => Some(Self::of_address(address.into())),
            Host::Ipv4(_) | Host::Ipv6(_) => None,
        }
    }
}

impl FromStr for AllowedHost {
    type Err = AllowedHostError;

    fn from_str(entry: &str) -> Result<Self, Self::Err> {
        let wrong = || AllowedHostError { entry: entry.to_owned() };
        let (host, port) = split_port(entry.trim()).ok_or_else(wrong)?;
        Ok(Self { host: Pattern::of_host(host).ok_or_else(wrong)?, port })
    }
}

/// Splits an entry such as `host:port` or `[address]:port` into its host and its port. An IPv6 address without brackets
/// has no port.
fn split_port(entry: &str) -> Option<(&str, Option<u16>)> {
    if let Some(rest) = entry.strip_prefix('[') {
        let (address, behind) = rest.split_once(']')?;
        return match behind.strip_prefix(':') {
            Some(port) => Some((address, Some(port.parse().ok()?))),
            None if behind.is_empty() => Some((address, None)),
            None => None,
        };
    }
    match entry.split_once(':') {
        Some((_, rest)) if rest.contains(':') => Some((entry, None)),
        Some((host, port)) => Some((host, Some(port.parse().ok()?))),
        None => Some((entry, None)),
    }
}

/// Returns a host name in the form in which names are compared: in lower case and without a dot at its end.
pub(crate) fn bare(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

fn masked_v4(address: Ipv4Addr, prefix: u8) -> Ipv4Addr {
    let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
    Ipv4Addr::from_bits(address.to_bits() & mask)
}

fn masked_v6(address: Ipv6Addr, prefix: u8) -> Ipv6Addr {
    let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
    Ipv6Addr::from_bits(address.to_bits() & mask)
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Pattern::Name(name) => formatter.write_str(name)?,
            Pattern::Below(name) => write!(formatter, "*.{name}")?,
            Pattern::Range { network: IpAddr::V4(network), prefix: 32 } => write!(formatter, "{network}")?,
            Pattern::Range { network: IpAddr::V6(network), prefix: 128 } => write!(formatter, "[{network}]")?,
            Pattern::Range { network: IpAddr::V6(network), prefix } if self.port.is_some() => {
                write!(formatter, "[{network}/{prefix}]")?;
            }
            Pattern::Range { network, prefix } => write!(formatter, "{network}/{prefix}")?,
        }
        match self.port {
            Some(port) => write!(formatter, ":{port}"),
            None => Ok(()),
        }
    }
}

impl<'de> Deserialize<'de> for AllowedHost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
