use std::collections::BTreeSet;
use std::net::IpAddr;

use proptest::prelude::*;
use url::Url;

use super::{Refused, judge_addresses, judge_url};
use crate::settings::Settings;
use polity_addresses::is_public;

fn settings(allow_hosts: &[&str]) -> Settings {
    let allow_hosts = allow_hosts.iter().map(|entry| entry.parse().expect("a host")).collect();
    Settings { allow_hosts, ..Settings::default() }
}

/// Parses a text as a URL, as a tool does, and returns the judgement in one or two words.
fn verdict(url: &str, allow_hosts: &[&str]) -> &'static str {
    let Ok(url) = Url::parse(url) else { return "no URL" };
    match judge_url(&url, &settings(allow_hosts)) {
        Ok(_) => "goes",
        Err(Refused::Scheme { .. }) => "scheme",
        Err(Refused::Credentials) => "credentials",
        Err(Refused::NoHost) => "no host",
        Err(Refused::TooLong { .. }) => "too long",
        Err(Refused::Port { .. }) => "port",
        Err(Refused::PrivateName { .. }) => "private name",
        Err(Refused::PrivateAddress { .. }) => "private address",
    }
}

#[test]
fn no_spelling_of_a_private_place_gets_through() {
    let forms = [
        ("http://127.0.0.1/", "private address"),
        ("http://127.0.0.1:8080/", "private address"),
        ("http://127.1/", "private address"),
        ("http://127.0.1/", "private address"),
        ("http://2130706433/", "private address"),
        ("http://0x7f000001/", "private address"),
        ("http://0X7F.0.0.1/", "private address"),
        ("http://0177.0.0.1/", "private address"),
        ("http://017700000001/", "private address"),
        ("http://0x7f.1/", "private address"),
        ("http://0/", "private address"),
        ("http://0.0.0.0/", "private address"),
        ("http://127.0.0.1./", "private address"),
        ("http://127.0.0.1%2e/", "private address"),
        ("http://%31%32%37.0.0.1/", "private address"),
        ("http://１２７.0.0.1/", "private address"),
        ("http://127。0。0。1/", "private address"),
        ("http://①②⑦.0.0.1/", "private address"),
        ("http:127.0.0.1/", "private address"),
        ("http:\\\\127.0.0.1\\x", "private address"),
        ("http:///127.0.0.1/", "private address"),
        ("\u{1}  http://127.0.0.1/", "private address"),
        ("ht\ttp://127.0.\n0.1/", "private address"),
        ("HTTPS://127.0.0.1/", "private address"),
        ("http://10.0.0.1/", "private address"),
        ("http://192.168.1.1/admin", "private address"),
        ("http://172.20.0.1/", "private address"),
        ("http://100.64.0.1/", "private address"),
        ("http://169.254.169.254/latest/meta-data/", "private address"),
        ("http://2852039166/latest/meta-data/", "private address"),
        ("http://0xa9fea9fe/", "private address"),
        ("http://0251.0376.0251.0376/", "private address"),
        ("http://100.100.100.200/", "private address"),
        ("http://168.63.129.16/", "private address"),
        ("http://255.255.255.255/", "private address"),
        ("http://224.0.0.1/", "private address"),
        ("http://[::]/", "private address"),
        ("http://[::1]/", "private address"),
        ("http://[0:0:0:0:0:0:0:1]/", "private address"),
        ("http://[::127.0.0.1]/", "private address"),
        ("http://[::ffff:127.0.0.1]/", "private address"),
        ("http://[::ffff:7f00:1]/", "private address"),
        ("http://[::ffff:169.254.169.254]/", "private address"),
        ("http://[64:ff9b::7f00:1]/", "private address"),
        ("http://[64:ff9b::a9fe:a9fe]/", "private address"),
        ("http://[2002:7f00:1::]/", "private address"),
        ("http://[2001:0:7f00:1::]/", "private address"),
        ("http://[fe80::1]/", "private address"),
        ("http://[fec0::1]/", "private address"),
        ("http://[fd00:ec2::254]/", "private address"),
        ("http://[fc00::1]/", "private address"),
        ("http://[ff02::1]/", "private address"),
        ("http://[100::1]/", "private address"),
        ("http://[2001:db8::1]/", "private address"),
        ("http://[fe80::1%25eth0]/", "no URL"),
        ("http://256.0.0.1/", "no URL"),
        ("http://127.0.0.1.1.1/", "no URL"),
        ("http://localhost/", "private name"),
        ("http://LOCALHOST/", "private name"),
        ("http://localhost./", "private name"),
        ("http://local%68ost/", "private name"),
        ("http://ⓛocalhost/", "private name"),
        ("http://a.localhost/", "private name"),
        ("http://printer.local/", "private name"),
        ("http://metadata.google.internal/", "private name"),
        ("http://metadata.google.internal./", "private name"),
        ("http://router.home.arpa/", "private name"),
        ("http://nas.lan/", "private name"),
        ("http://wiki/", "private name"),
        ("http://abc.onion/", "private name"),
        ("http://user@example.com/", "credentials"),
        ("http://user:password@example.com/", "credentials"),
        ("http://:password@example.com/", "credentials"),
        ("http://example.com@127.0.0.1/", "credentials"),
        ("file:///etc/passwd", "scheme"),
        ("ftp://example.com/", "scheme"),
        ("gopher://127.0.0.1:6379/_x", "scheme"),
        ("data:text/html,x", "scheme"),
        ("javascript:alert(1)", "scheme"),
        ("unix:/run/docker.sock", "scheme"),
        ("blob:http://example.com/x", "scheme"),
        ("view-source:http://127.0.0.1/", "scheme"),
        ("ws://example.com/", "scheme"),
        ("http://", "no URL"),
        ("http://./", "no host"),
        ("/etc/passwd", "no URL"),
        ("http://example.com:22/", "port"),
        ("http://example.com:25/", "port"),
        ("http://example.com:6667/", "port"),
        ("http://example.com:0/", "port"),
        ("http://example.com:70000/", "no URL"),
    ];
    // This assertion fails if somebody shortens the list.
    let distinct: BTreeSet<&str> = forms.iter().map(|(url, _)| *url).collect();
    assert!(distinct.len() >= 90, "{}", distinct.len());
    for (url, expected) in forms {
        assert_eq!(verdict(url, &[]), expected, "{url}");
    }
}

#[test]
fn public_places_are_open() {
    for url in [
        "http://example.com/",
        "https://example.com:8443/a?b#c",
        "http://example.com./",
        "https://xn--bcher-kva.example/",
        "https://bücher.example/",
        "https://例子.测试/",
        "http://8.8.8.8/",
        "http://[2606:4700::6810:84e5]/",
        "http://127.0.0.1.example.com/",
        "http://localhost.example.com/",
        "http://notlocalhost.com/",
        "http://mylocal.com/",
        "http://example.com:3000/",
    ] {
        assert_eq!(verdict(url, &[]), "goes", "{url}");
    }
    assert_eq!(verdict(&format!("http://example.com/{}", "a".repeat(9000)), &[]), "too long");
}

#[test]
fn the_person_can_open_a_private_place_and_no_other() {
    for (url, allowed, expected) in [
        ("http://127.0.0.1:8080/", "127.0.0.1:8080", "goes"),
        ("http://2130706433:8080/", "127.0.0.1:8080", "goes"),
        ("http://[::ffff:127.0.0.1]:8080/", "127.0.0.1:8080", "goes"),
        ("http://127.0.0.1:8081/", "127.0.0.1:8080", "private address"),
        ("http://127.0.0.2:8080/", "127.0.0.1:8080", "private address"),
        ("http://localhost:8080/", "127.0.0.1:8080", "private name"),
        ("http://localhost:8080/", "localhost:8080", "goes"),
        ("http://127.0.0.1:8080/", "localhost:8080", "private address"),
        ("http://wiki/", "wiki", "goes"),
        ("http://a.corp/", "*.corp", "goes"),
        ("http://corp/", "*.corp", "private name"),
        ("http://10.1.2.3/", "10.0.0.0/8", "goes"),
        ("http://[fd00::1]:3000/", "[fd00::1]:3000", "goes"),
        // Port 25 belongs to a protocol other than HTTP. An entry of `allowHosts` allows such a port only if the port
        // is written in the entry.
        ("http://10.1.2.3:25/", "10.0.0.0/8", "port"),
        ("http://10.1.2.3:25/", "10.1.2.3:25", "goes"),
        // Two kinds of URLs are refused even if an entry of `allowHosts` names the host: URLs with a user name, and
        // URLs with a scheme other than http and https.
        ("http://user@wiki/", "wiki", "credentials"),
        ("ftp://wiki/", "wiki", "scheme"),
    ] {
        assert_eq!(verdict(url, &[allowed]), expected, "{url} with {allowed}");
    }
}

fn found(name: &str, addresses: &[&str], allow_hosts: &[&str]) -> Result<usize, Refused> {
    let settings = settings(allow_hosts);
    let url = Url::parse(&format!("http://{name}/")).expect("a URL");
    let addresses: Vec<IpAddr> =
        addresses.iter().map(|address| address.parse().expect("an address")).collect();
    judge_addresses(&judge_url(&url, &settings)?, &addresses, &settings).map(|addresses| addresses.len())
}

#[test]
fn one_private_address_refuses_a_name_with_public_ones() {
    assert_eq!(found("example.com", &["8.8.8.8", "2606:4700::1"], &[]), Ok(2));
    for hidden in ["127.0.0.1", "::1", "::ffff:10.0.0.1", "64:ff9b::a9fe:a9fe", "169.254.169.254"] {
        let refused = found("example.com", &["8.8.8.8", hidden], &[]).expect_err(hidden);
        assert!(refused.to_string().contains("\"example.com:80\""), "{refused}");
    }
    assert_eq!(found("example.com", &["8.8.8.8", "10.0.0.1"], &["10.0.0.0/8"]), Ok(2));
    assert_eq!(found("example.com", &["10.0.0.1", "127.0.0.1"], &["example.com"]), Ok(2));
    assert!(found("example.com", &["10.0.0.1"], &["other.com"]).is_err());
    assert!(found("example.com", &["10.0.0.1"], &["10.0.0.1:81"]).is_err());
}

#[test]
fn a_literal_address_is_not_replaced_by_what_a_resolver_says() {
    let url = Url::parse("http://8.8.8.8/").expect("a URL");
    let target = judge_url(&url, &settings(&[])).expect("public");
    let addresses = judge_addresses(&target, &["127.0.0.1".parse().expect("an address")], &settings(&[]));
    assert_eq!(addresses, Ok(vec!["8.8.8.8:80".parse().expect("an address")]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// A URL with an IPv4 address is accepted if and only if the address is public. The notation of the address does
    /// not matter.
    #[test]
    fn every_spelling_of_an_address_is_judged_as_that_address(bits: u32, private in 0_usize..5, form in 0_usize..9) {
        let bits = match private {
            0 => 0x7f00_0000 | bits & 0x00ff_ffff,
            1 => 0x0a00_0000 | bits & 0x00ff_ffff,
            2 => 0xa9fe_0000 | bits & 0xffff,
            _ => bits,
        };
        let [a, b, c, d] = bits.to_be_bytes();
        let host = match form {
            0 => format!("{a}.{b}.{c}.{d}"),
            1 => format!("{bits}"),
            2 => format!("{bits:#x}"),
            3 => format!("0{bits:o}"),
            4 => format!("0{a:o}.{b:#x}.{c}.{d}"),
            5 => format!("{a}.{}", bits & 0x00ff_ffff),
            6 => format!("{a}.{b}.{}", bits & 0xffff),
            7 => format!("{a}.{b}.{c}.{d}."),
            _ => format!("[::ffff:{a}.{b}.{c}.{d}]"),
        };
        let address = IpAddr::from([a, b, c, d]);
        let expected = if is_public(address) { "goes" } else { "private address" };
        prop_assert_eq!(verdict(&format!("http://{host}/"), &[]), expected, "{}", host);
    }

    /// The addresses of a name are accepted if and only if each of them is public.
    #[test]
    fn all_addresses_of_a_name_are_judged(found: Vec<u32>, also: Vec<u128>) {
        let addresses: Vec<IpAddr> = found
            .iter()
            .map(|bits| IpAddr::V4((*bits).into()))
            .chain(also.iter().map(|bits| IpAddr::V6((bits >> 3 | 1 << 125).into())))
            .collect();
        let target = judge_url(&Url::parse("http://example.com/").expect("a URL"), &settings(&[])).expect("a name");
        let judged = judge_addresses(&target, &addresses, &settings(&[]));
        prop_assert_eq!(judged.is_ok(), addresses.iter().all(|address| is_public(*address)));
    }
}
