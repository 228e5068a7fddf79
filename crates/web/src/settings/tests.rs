use std::net::IpAddr;

use serde_json::json;

use super::{AllowedHost, Search, SearchKey, Settings};

fn rule(entry: &str) -> AllowedHost {
    entry.parse().unwrap_or_else(|error| panic!("{entry}: {error}"))
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[test]
fn settings_are_read_under_the_names_of_app_json() {
    let read: Settings = serde_json::from_value(json!({
        "allowHosts": ["wiki.corp", "*.example.org:8443", "10.0.0.0/8", "[::1]:8080"],
        "search": {"searxng": {"url": "http://127.0.0.1:8888"}},
        "maxBytes": 1000,
        "maxRedirects": 3,
        "timeoutMs": 5000,
    }))
    .expect("settings");
    let shown: Vec<String> = read.allow_hosts.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["wiki.corp", "*.example.org:8443", "10.0.0.0/8", "[::1]:8080"]);
    assert_eq!((read.max_bytes, read.max_redirects, read.timeout_ms), (1000, 3, 5000));
    assert!(matches!(read.search, Some(Search::Searxng { .. })));

    let nothing: Settings = serde_json::from_value(json!({})).expect("settings");
    assert_eq!(nothing, Settings::default());
    assert_eq!((nothing.max_bytes, nothing.max_redirects, nothing.timeout_ms), (20 << 20, 10, 30_000));
    let brave: Search = serde_json::from_value(json!({"brave": {"key": "secret"}})).expect("a provider");
    assert_eq!(brave, Search::Brave { key: SearchKey::new("secret") });
    assert!(!format!("{brave:?}").contains("secret"));
}

#[test]
fn what_is_no_host_is_refused_with_the_forms_that_are() {
    for entry in
        ["", "*", "*.", "a b", "10.0.0.0/33", "host:99999", "host:", "[::1", "*.127.1", "a.*.b", "1.2.3.4/x"]
    {
        let error = entry.parse::<AllowedHost>().expect_err(entry).to_string();
        assert!(error.contains("*.corp"), "{error}");
    }
    let error = serde_json::from_value::<Settings>(json!({"allowHosts": ["a b"]})).expect_err("a space");
    assert!(error.to_string().contains("`a b` is not a host"), "{error}");
}

#[test]
fn a_rule_names_what_it_says_and_nothing_else() {
    assert!(rule("Wiki.Corp").names("wiki.corp", 80));
    assert!(rule("wiki.corp.").names("wiki.corp", 80));
    assert!(!rule("wiki.corp").names("a.wiki.corp", 80));
    assert!(!rule("wiki.corp").names("evilwiki.corp", 80));
    assert!(rule("*.corp").names("a.b.corp", 80));
    assert!(!rule("*.corp").names("corp", 80));
    assert!(!rule("*.corp").names("evilcorp", 80));
    assert!(rule("localhost:8080").names("localhost", 8080));
    assert!(!rule("localhost:8080").names("localhost", 8081));
    assert!(!rule("10.0.0.1").names("10.0.0.1", 80));

    assert!(rule("10.0.0.0/8").contains(address("10.255.1.2"), 80));
    assert!(rule("10.1.2.3/8").contains(address("10.255.1.2"), 80));
    assert!(!rule("10.0.0.0/8").contains(address("11.0.0.1"), 80));
    assert!(rule("10.0.0.7").contains(address("::ffff:10.0.0.7"), 80));
    assert!(rule("[::ffff:10.0.0.7]:81").contains(address("10.0.0.7"), 81));
    assert!(!rule("10.0.0.7:81").contains(address("10.0.0.7"), 80));
    assert!(rule("fd00::/8").contains(address("fd12::1"), 80));
    assert!(!rule("fd00::/8").contains(address("fe80::1"), 80));
    assert!(rule("::1").contains(address("::1"), 1));
    assert!(rule("0.0.0.0/0").contains(address("127.0.0.1"), 1));
    assert!(!rule("0.0.0.0/0").contains(address("::1"), 1));
    assert!(rule("::/0").contains(address("fe80::1"), 1));
}
