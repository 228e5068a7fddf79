use proptest::prelude::*;

use super::{Denied, Domains, NotADomain};

fn domains(list: &[&str]) -> Domains {
    Domains::new(&list.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>()).unwrap()
}

#[test]
fn names_fit_their_patterns() {
    let list = domains(&["example.org", "*.crates.io", "Static.Rust-Lang.ORG"]);
    let check = |host: &str, expected: bool| assert_eq!(list.permit(host, 443).is_ok(), expected, "{host}");
    check("example.org", true);
    check("EXAMPLE.org.", true);
    check("www.example.org", false);
    check("static.crates.io", true);
    check("a.b.crates.io", true);
    check("crates.io", false);
    check("evilcrates.io", false);
    check(".crates.io", false);
    check("crates.io.evil.com", false);
    check("static.rust-lang.org", true);
    check("example.org:80", false);
    check("example.org/..", false);
    check("user@example.org", false);
    check("example.org\0.evil.com", false);
    check("", false);
}

#[test]
fn only_two_ports_are_open() {
    let list = domains(&["example.org"]);
    assert!(list.permit("example.org", 80).is_ok());
    assert_eq!(list.permit("example.org", 22), Err(Denied::Port(22)));
}

#[test]
fn what_is_no_domain_is_refused_in_the_settings() {
    for entry in [
        "*",
        "*.",
        "*.org",
        "",
        "http://example.org",
        "example.org:443",
        "1.2.3.4",
        "*.1.2.3.4",
        "a b",
        "*.*.org",
        "::1",
    ] {
        assert_eq!(Domains::new(&[entry.to_owned()]), Err(NotADomain(entry.to_owned())), "{entry}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// `permit` refuses an address in every spelling, whatever domains the list contains.
    #[test]
    fn no_address_is_permitted(address in any::<std::net::IpAddr>(), number in any::<u32>(), port in prop::sample::select(vec![80, 443])) {
        let list = domains(&["example.org", "*.example.org", "localhost"]);
        for spelling in [
            address.to_string(),
            format!("[{address}]"),
            format!("{address}."),
            number.to_string(),
            format!("{number:#x}"),
            format!("{:#o}", number),
            format!("127.{}", number & 0xff_ffff),
        ] {
            prop_assert!(list.permit(&spelling, port).is_err(), "{}", spelling);
        }
    }

    /// Every permitted name ends with a listed domain.
    #[test]
    fn what_is_permitted_is_listed(host in "([a-z0-9._-]{0,12}(example|EXAMPLE)[.](org|org[.]|com)?)|[ -~]{0,30}") {
        let list = domains(&["example.org", "*.example.org"]);
        if let Ok(name) = list.permit(&host, 443) {
            prop_assert!(name.as_str() == "example.org" || name.as_str().ends_with(".example.org"), "{}", host);
        }
    }
}
