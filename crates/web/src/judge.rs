//! Decides whether a request may go to a URL: first by the URL, then by the addresses to which its name resolves.
//! Pure.

mod names;
mod ports;

use std::net::{IpAddr, SocketAddr};

use url::{Host, Url};

use crate::settings::Settings;
use crate::settings::bare;
use crate::shown::shown_url;
use polity_addresses::is_public;

/// Maximum length of a URL, in bytes.
const LONGEST_URL: usize = 8192;

/// The host and port of a URL that [`judge_url`] accepted. [`judge_addresses`] still has to accept the addresses to
/// which a name resolves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    destination: Destination,
    port: u16,
    standing: Standing,
}

/// The host of a target: an address or a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The host in the URL is an address, so polity resolves no name.
    Address(IpAddr),
    /// The host in the URL is this name, which polity must resolve. The name is in lower case and without a dot at
    /// its end.
    Name(String),
}

/// Whether `allowHosts` names the host of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    NamedByPerson,
    MustBePublic,
}

/// Why polity refuses to request a URL. Models read these texts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The scheme is neither `http` nor `https`.
    #[error("only http and https addresses can be fetched, not `{scheme}:`")]
    Scheme {
        /// The scheme of the URL.
        scheme: String,
    },
    /// The URL contains a user name or a password.
    #[error(
        "the address contains a user name or password before `@`: leave them out, and send an Authorization header \
         with http_request if the server needs one"
    )]
    Credentials,
    /// The URL has no host.
    #[error("the address has no host: write it as https://host/path")]
    NoHost,
    /// The URL is too long.
    #[error(
        "the address is {length} bytes long; the longest allowed is 8192: send long data in the body of a POST"
    )]
    TooLong {
        /// The length of the URL in bytes.
        length: usize,
    },
    /// The port belongs to a protocol that is not HTTP.
    #[error("port {port} belongs to a protocol other than HTTP: use the address of a web server")]
    Port {
        /// The port of the URL.
        port: u16,
    },
    /// The name can only exist on this machine or in a private network.
    #[error(
        "`{host}` is a name of this machine or of a private network, where agents may not go: use a public address, or \
         ask the user to add \"{host}:{port}\" to tools.web.allowHosts in app.json"
    )]
    PrivateName {
        /// The host of the URL.
        host: String,
        /// The port of the URL.
        port: u16,
    },
    /// The address in the URL, or an address to which the name resolves, is not public.
    #[error(
        "`{host}` leads to {address}, which is not an address of the public internet, so agents may not go there: use \
         a public address, or ask the user to add \"{host}:{port}\" to tools.web.allowHosts in app.json"
    )]
    PrivateAddress {
        /// The host of the URL.
        host: String,
        /// The address that is not public.
        address: IpAddr,
        /// The port of the URL.
        port: u16,
    },
}

/// Judges a URL by its scheme, host and port, before any name is resolved. If the host is an address, no further
/// check is necessary. If the host is a name, [`judge_addresses`] must also accept the addresses of the name.
pub fn judge_url(url: &Url, settings: &Settings) -> Result<Target, Refused> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Refused::Scheme { scheme: shown_url(url.scheme()) });
    }
    let length = url.as_str().len();
    if length > LONGEST_URL {
        return Err(Refused::TooLong { length });
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refused::Credentials);
    }
    let port = url.port_or_known_default().ok_or(Refused::NoHost)?;
    let destination = match url.host().ok_or(Refused::NoHost)? {
        Host::Domain(name) => Destination::Name(bare(name)),
        Host::Ipv4(address) => Destination::Address(address.into()),
        Host::Ipv6(address) => Destination::Address(address.into()),
    };
    let rules = settings.allow_hosts.iter().filter(|rule| match &destination {
        Destination::Name(name) => rule.names(name, port),
        Destination::Address(address) => rule.contains(*address, port),
    });
    let mut standing = Standing::MustBePublic;
    let mut port_is_named = false;
    for rule in rules {
        standing = Standing::NamedByPerson;
        port_is_named |= rule.is_for_port(port);
    }
    if ports::belongs_to_another_protocol(port) && !port_is_named {
        return Err(Refused::Port { port });
    }
    match (&destination, standing) {
        (Destination::Name(name), _) if name.is_empty() => Err(Refused::NoHost),
        (Destination::Name(name), Standing::MustBePublic) if names::can_only_be_private(name) => {
            Err(Refused::PrivateName { host: shown_url(name), port })
        }
        (Destination::Address(address), Standing::MustBePublic) if !is_public(*address) => {
            Err(Refused::PrivateAddress { host: host_of(*address), address: *address, port })
        }
        (
            Destination::Name(_) | Destination::Address(_),
            Standing::MustBePublic | Standing::NamedByPerson,
        ) => Ok(Target { destination, port, standing }),
    }
}

/// Judges the addresses to which the name of a target resolves, and returns the addresses to connect to. If a single
/// address is not public, the whole target is refused: a name with public and private addresses is an attack or
/// a mistake.
pub fn judge_addresses(
    target: &Target,
    found: &[IpAddr],
    settings: &Settings,
) -> Result<Vec<SocketAddr>, Refused> {
    let found = match &target.destination {
        Destination::Address(address) => std::slice::from_ref(address),
        Destination::Name(_) => found,
    };
    for address in found {
        let is_allowed = match target.standing {
            Standing::NamedByPerson => true,
            Standing::MustBePublic => {
                is_public(*address)
                    || settings.allow_hosts.iter().any(|rule| rule.contains(*address, target.port))
            }
        };
        if !is_allowed {
            return Err(Refused::PrivateAddress {
                host: shown_url(&target.host()),
                address: *address,
                port: target.port,
            });
        }
    }
    Ok(found.iter().map(|address| SocketAddr::new(*address, target.port)).collect())
}

impl Target {
    /// Returns the host of the target: an address or a name.
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// Returns the port that the URL contains or that its scheme implies.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the host as it is written in a URL.
    pub fn host(&self) -> String {
        match &self.destination {
            Destination::Name(name) => name.clone(),
            Destination::Address(address) => host_of(*address),
        }
    }
}

fn host_of(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

#[cfg(test)]
mod tests;
