use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::is_public;

#[test]
fn special_addresses_are_not_public() {
    for address in [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.100.100.200",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.0.1",
        "169.254.169.254",
        "169.254.170.2",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "168.63.129.16",
        "::",
        "::1",
        "::127.0.0.1",
        "::8.8.8.8",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:10.0.0.1",
        "::ffff:0:8.8.8.8",
        "64:ff9b::127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::8.8.8.8",
        "100::1",
        "2001::1",
        "2001:0:7f00:1::",
        "2001:2::1",
        "2001:10::1",
        "2001:20::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:a00:1::",
        "2002:808:808::1",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd00::1",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "ff0e::1",
        "4000::1",
        "8000::1",
        "2a00:1450::5efe:127.0.0.1",
        "2a00:1450::200:5efe:10.0.0.1",
    ] {
        assert!(!is_public(address.parse().expect(address)), "{address}");
    }
}

#[test]
fn addresses_of_the_internet_are_public() {
    for address in [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "93.184.216.34",
        "2606:4700::6810:84e5",
        "2a00:1450:4001::200e",
        "2001:4860:4860::8888",
        "2001:200::1",
        "2620:fe::fe",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2a00:1450::5efe:8.8.8.8",
    ] {
        assert!(is_public(address.parse().expect(address)), "{address}");
    }
}

/// Returns whether the stable functions of the standard library classify an address as special.
fn is_special_to_std(address: Ipv4Addr) -> bool {
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || address.is_unspecified()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_special_to_the_standard_library_is_public(bits: u32, network in 0_usize..8) {
        // Most random addresses are public. So seven of the eight values of `network` move the address into a special
        // network; the last value leaves the address as it is.
        let networks = [0x0a00_0000, 0x7f00_0000, 0xa9fe_0000, 0xc0a8_0000, 0xac10_0000, 0xe000_0000, 0xc000_0200, 0];
        let masks = [0x00ff_ffff, 0x00ff_ffff, 0xffff, 0xffff, 0x000f_ffff, 0x0fff_ffff, 0xff, u32::MAX];
        let address = Ipv4Addr::from_bits(networks[network] | (bits & masks[network]));
        if is_special_to_std(address) {
            prop_assert!(!is_public(IpAddr::V4(address)), "{address}");
        }
        if network < 7 {
            prop_assert!(!is_public(IpAddr::V4(address)), "{address}");
        }
    }

    #[test]
    fn an_embedded_address_is_never_more_public_than_itself(bits: u32, rest: u64) {
        let v4 = Ipv4Addr::from_bits(bits);
        let embedded = u128::from(bits);
        let mapped = Ipv6Addr::from_bits(0xffff << 32 | embedded);
        let translated = Ipv6Addr::from_bits(0x0064_ff9b << 96 | embedded);
        prop_assert_eq!(is_public(IpAddr::V6(mapped)), is_public(IpAddr::V4(v4)));
        prop_assert_eq!(is_public(IpAddr::V6(translated)), is_public(IpAddr::V4(v4)));
        for (what, obsolete) in [
            ("compatible", embedded),
            ("6to4", 0x2002 << 112 | embedded << 80 | u128::from(rest)),
            ("Teredo", 0x2001 << 112 | u128::from(rest) << 32 | embedded),
            ("local NAT64", 0x0064_ff9b_0001_u128 << 80 | embedded),
        ] {
            let address = Ipv6Addr::from_bits(obsolete);
            prop_assert!(!is_public(IpAddr::V6(address)), "{} {}", what, address);
        }
    }

    #[test]
    fn outside_global_unicast_only_translated_addresses_are_public(bits: u128) {
        let address = Ipv6Addr::from_bits(bits);
        let is_global_unicast = address.segments()[0] & 0xe000 == 0x2000;
        if !is_global_unicast {
            prop_assert!(!is_public(IpAddr::V6(address)), "{}", address);
        }
    }
}
