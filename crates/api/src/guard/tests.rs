use super::*;
use proptest::prelude::*;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn guard() -> Guard {
    Guard::new(Token::read(TOKEN).unwrap(), Hosts::new(7717, ["polity.example".to_owned()]))
}

fn judge(method: &str, uri: &str, headers: &[(&str, &str)]) -> Verdict {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    guard().judge(&method.parse().unwrap(), &uri.parse().unwrap(), &map)
}

fn cookie() -> String {
    format!("other=1; polity-session-7717={}", guard().token().session())
}

const OURS: (&str, &str) = ("host", "localhost:7717");
const BEARER: (&str, &str) = ("authorization", "Bearer 0123456789abcdef0123456789abcdef");

#[test]
fn only_health_needs_nothing() {
    assert_eq!(judge("GET", "/healthz", &[]), Verdict::Pass);
    assert_eq!(judge("GET", "/healthz", &[("host", "evil.example")]), Verdict::Pass);
    assert_eq!(judge("POST", "/healthz", &[OURS]), Verdict::Unauthorized);
    assert_eq!(judge("GET", "/healthz/", &[OURS]), Verdict::Unauthorized);
    assert_eq!(judge("GET", "/%68ealthz", &[OURS]), Verdict::Unauthorized);
}

#[test]
fn hosts() {
    let check = |uri: &str, headers: &[(&str, &str)], expect: Verdict| {
        let all: Vec<_> = headers.iter().copied().chain([BEARER]).collect();
        assert_eq!(judge("GET", uri, &all), expect, "{uri} {headers:?}");
    };
    check("/api/tasks", &[OURS], Verdict::Pass);
    check("/api/tasks", &[("host", "polity.example")], Verdict::Pass);
    check("/api/tasks", &[("host", "evil.example:7717")], Verdict::ForeignHost);
    check("/api/tasks", &[], Verdict::ForeignHost);
    check("/api/tasks", &[OURS, OURS], Verdict::ForeignHost);
    check("http://localhost:7717/api/tasks", &[OURS], Verdict::Pass);
    check("http://evil.example/api/tasks", &[OURS], Verdict::ForeignHost);
    check("/login", &[("host", "evil.example")], Verdict::ForeignHost);
}

#[test]
fn origins() {
    let check = |origin: &str, expect: Verdict| {
        for method in ["GET", "POST", "PATCH"] {
            assert_eq!(
                judge(method, "/api/messages", &[OURS, BEARER, ("origin", origin)]),
                expect,
                "{origin}"
            );
        }
    };
    check("http://localhost:7717", Verdict::Pass);
    check("http://localhost:3000", Verdict::ForeignOrigin);
    check("https://evil.example", Verdict::ForeignOrigin);
    check("null", Verdict::ForeignOrigin);
    assert_eq!(judge("POST", "/login", &[OURS, ("origin", "null")]), Verdict::ForeignOrigin);
    let twice = ("origin", "http://localhost:7717");
    assert_eq!(judge("GET", "/", &[OURS, BEARER, twice, twice]), Verdict::ForeignOrigin);
}

#[test]
fn bearers() {
    let check = |value: &str, expect: Verdict| {
        assert_eq!(judge("GET", "/api/tasks", &[OURS, ("authorization", value)]), expect, "{value}");
    };
    check(BEARER.1, Verdict::Pass);
    check("bearer  0123456789abcdef0123456789abcdef ", Verdict::Pass);
    check("Bearer 0123456789abcdef0123456789abcdeF", Verdict::Unauthorized);
    check("Bearer", Verdict::Unauthorized);
    check("Bearer ", Verdict::Unauthorized);
    check("Basic 0123456789abcdef0123456789abcdef", Verdict::Unauthorized);
    check("0123456789abcdef0123456789abcdef", Verdict::Unauthorized);
    assert_eq!(judge("GET", "/api/tasks", &[OURS, BEARER, BEARER]), Verdict::Unauthorized);
    assert_eq!(judge("GET", "/api/tasks", &[OURS]), Verdict::Unauthorized);
    // A request with a wrong token is refused even if it has a valid cookie.
    let wrong = ("authorization", "Bearer x");
    assert_eq!(judge("GET", "/api/tasks", &[OURS, wrong, ("cookie", &cookie())]), Verdict::Unauthorized);
}

#[test]
fn cookies() {
    let cookie = cookie();
    let check = |method: &str, headers: &[(&str, &str)], expect: Verdict| {
        let all: Vec<_> = headers.iter().copied().chain([OURS]).collect();
        assert_eq!(judge(method, "/api/messages", &all), expect, "{method} {headers:?}");
    };
    let session = ("cookie", cookie.as_str());
    let page = ("origin", "http://localhost:7717");
    check("GET", &[session], Verdict::Pass);
    check("POST", &[session, page], Verdict::Pass);
    check("POST", &[session], Verdict::ForeignOrigin);
    check("PATCH", &[session], Verdict::ForeignOrigin);
    check("POST", &[session, ("origin", "http://localhost:3000")], Verdict::ForeignOrigin);
    check("GET", &[("cookie", "polity-session-7717=x")], Verdict::Unauthorized);
    let of_another = cookie.replace("7717", "7718");
    check("GET", &[("cookie", &of_another)], Verdict::Unauthorized);
    check("GET", &[session, ("sec-fetch-site", "same-origin")], Verdict::Pass);
    check("GET", &[session, ("sec-fetch-site", "none")], Verdict::Pass);
    check(
        "GET",
        &[session, ("sec-fetch-site", "same-site"), ("sec-fetch-dest", "image")],
        Verdict::Unauthorized,
    );
    check("GET", &[session, ("sec-fetch-site", "same-site"), ("sec-fetch-dest", "document")], Verdict::Pass);
}

proptest! {
    #[test]
    fn nobody_passes_without_a_secret(
        method in "(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE)",
        path in "/[a-z/%0-9.]{0,24}",
        headers in proptest::collection::vec(
            ("(cookie|authorization|sec-fetch-site|x-forwarded-for|origin)", "[ -~]{0,40}"),
            0..4,
        ),
    ) {
        prop_assume!(path != "/healthz" && path != "/login" && path.parse::<Uri>().is_ok());
        let mut all = vec![OURS];
        all.extend(headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        prop_assert_ne!(judge(&method, &path, &all), Verdict::Pass);
    }

    #[test]
    fn whoever_has_the_token_does_not_pass_under_another_name(name in "[a-z]{1,9}\\.[a-z]{2,3}", path in "/[a-z]{0,9}") {
        prop_assume!(name != "polity.example" && path != "/healthz");
        prop_assert_eq!(judge("GET", &path, &[BEARER, ("host", &name)]), Verdict::ForeignHost);
    }
}
