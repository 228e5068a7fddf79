//! Decides which addresses belong to the public internet, and looks up the addresses of names.
//!
//! The web tools and the proxy of the sandbox call the same functions, so both refuse the same addresses, and their
//! lookups have one bound. The decision needs no IO.

mod lookup;

pub use lookup::lookup;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether an address belongs to the public internet. Agents may reach such an address without an entry in
/// `allowHosts`.
///
/// The rule follows IANA's registries of special-purpose addresses. If the registries leave a choice, the address is
/// not public. Some IPv6 addresses embed an IPv4 address. If an address is IPv4-mapped or has the well-known prefix of
/// NAT64, the function judges the embedded address instead. An IPv6 address of an obsolete mechanism (6to4, Teredo,
/// IPv4-compatible) is not public. The function cannot recognise a NAT64 gateway that uses a private prefix.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let octets = address.octets();
    match octets {
        // "This network", loopback, private networks.
        [0 | 10 | 127, ..] | [172, 16..=31, ..] | [192, 168, ..] => false,
        // Shared addresses of carriers (RFC 6598), which also include the metadata servers of some clouds.
        [100, 64..=127, ..] => false,
        // Link-local addresses, which include the metadata servers of most clouds.
        [169, 254, ..] => false,
        // Ranges for protocol assignments, for documentation (three ranges), for relays of 6to4, and for benchmarking.
        [192, 0, 0 | 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [192, 88, 99, _] | [198, 18..=19, ..] => {
            false
        }
        // The platform address of Azure. Its number is in a public range, but each virtual machine reaches services
        // of its own host there.
        [168, 63, 129, 16] => false,
        // Multicast addresses, reserved addresses, and the broadcast address.
        [224..=255, ..] => false,
        _ => true,
    }
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let [.., high, low] = segments;
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    let embedded = Ipv4Addr::new(a, b, c, d);
    match segments {
        // IPv4-mapped addresses, and addresses with the well-known prefix of NAT64.
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => is_public_v4(embedded),
        // ISATAP addresses: a router of the local network may forward the request to the embedded IPv4 address.
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] if !is_public_v4(embedded) => false,
        // The range for protocol assignments. Teredo, ORCHID and benchmarking use parts of it.
        [0x2001, 0..=0x1ff, ..] => false,
        // Documentation.
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // 6to4.
        [0x2002, ..] => false,
        // Global unicast addresses. All other addresses are not public: unspecified, loopback, IPv4-compatible,
        // discard, unique local (such as the metadata server of AWS at fd00:ec2::254), link-local, site-local,
        // multicast and unassigned addresses.
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
