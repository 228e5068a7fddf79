//! Resolves names to addresses.

use std::io;
use std::net::IpAddr;

use futures::future::BoxFuture;

/// Resolves names to addresses. For the first request and for each redirect, polity resolves the name of the host once.
/// It judges all addresses of the name, and connects only to these addresses.
pub trait Resolve: Send + Sync {
    /// Returns all addresses of a name.
    fn addresses<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn addresses<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(polity_addresses::lookup(name))
    }
}
