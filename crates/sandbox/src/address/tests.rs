use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::is_public;

#[test]
fn addresses_are_told_apart() {
    let check = |text: &str, expected: bool| assert_eq!(is_public(text.parse().unwrap()), expected, "{text}");
    for public in [
        "1.1.1.1",
        "8.8.8.8",
        "172.15.0.1",
        "172.32.0.1",
        "100.63.0.1",
        "192.169.0.1",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00::1",
        "64:ff9b::101:101",
        "2002:101:101::1",
    ] {
        check(public, true);
    }
    for other in [
        "0.0.0.0",
        "10.1.2.3",
        "127.0.0.1",
        "127.255.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.9.9",
        "192.168.1.1",
        "192.0.0.1",
        "192.0.2.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::127.0.0.1",
        "fe80::1",
        "fec0::1",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "2001:db8::1",
        "2001::1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "2002:7f00:1::1",
        "2002:c0a8:101::1",
        "4000::1",
        "3fff::1",
    ] {
        check(other, false);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// No IPv4 address that the standard library knows as special is public, also not inside an IPv6 address.
    #[test]
    fn no_private_address_is_public(address in any::<u32>().prop_map(Ipv4Addr::from)) {
        let special = address.is_private() || address.is_loopback() || address.is_link_local() || address.is_multicast()
            || address.is_broadcast() || address.is_unspecified() || address.is_documentation();
        if special {
            let [a, b, c, d] = address.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            prop_assert!(!is_public(IpAddr::V4(address)));
            prop_assert!(!is_public(IpAddr::V6(address.to_ipv6_mapped())));
            prop_assert!(!is_public(IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low))));
            prop_assert!(!is_public(IpAddr::V6(Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1))));
        }
    }
}
