//! Tests which servers a request may reach.

use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Mutex};

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tokio::runtime::Runtime;
use url::Url;

use crate::error::Error;
use crate::request::Request;
use crate::settings::Settings;
use crate::testing::{Names, Reply, Server, call, web, web_to};
use polity_addresses::is_public;

fn get(url: &str) -> Request {
    Request::get(url).expect("a request")
}

#[tokio::test]
async fn a_public_name_is_resolved_once_and_reached() {
    let server = Server::start(|_| Reply::ok("text/plain", "hello")).await;
    let names = Names::of(&[("example.com", &[&["93.184.216.34"]])]);
    let web = web(Settings::default(), Arc::clone(&names), Some(server.address));
    let response = web.request(get("http://example.com/a?b#c"), &call()).await.expect("an answer");
    assert_eq!(response.body, "hello");
    assert_eq!(names.asked(), ["example.com"]);
    let request = &server.requests()[0].to_ascii_lowercase();
    assert!(request.starts_with("get /a?b http/1.1\r\n"), "{request}");
    assert!(request.contains("host: example.com\r\n"), "{request}");
    assert!(request.contains("user-agent: polity/"), "{request}");
    assert!(!request.contains("referer"), "{request}");
}

#[tokio::test]
async fn a_name_that_turns_private_between_check_and_use_reaches_nothing_private() {
    // The name server of the attacker returns a public address at the first lookup and a private address at the second.
    // Polity looks up the name only once, so it never gets the private address.
    let server = Server::start(|request| match request {
        request if request.starts_with("GET /again") => Reply::redirect("302 Found", "/inside"),
        _ => Reply::ok("text/plain", "outside"),
    })
    .await;
    let secret = Server::start(|_| Reply::ok("text/plain", "secret")).await;
    let names = Names::of(&[("rebind.example", &[&["93.184.216.34"], &["127.0.0.1"]])]);
    let web = web(Settings::default(), Arc::clone(&names), Some(server.address));
    let response = web.request(get("http://rebind.example/"), &call()).await.expect("the public server");
    assert_eq!(response.body, "outside");
    assert_eq!(names.asked().len(), 1);

    // After a redirect, polity resolves the name again and judges the new addresses.
    names.set("rebind.example", vec![vec![[93, 184, 216, 34].into()], vec![[127, 0, 0, 1].into()]]);
    let error = web.request(get("http://rebind.example/again"), &call()).await.expect_err("private");
    assert!(matches!(error, Error::RefusedRedirect { .. }), "{error}");
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
    assert!(secret.requests().is_empty());
}

#[tokio::test]
async fn a_loopback_server_is_reached_only_if_the_person_named_it() {
    let server = Server::start(|_| Reply::ok("text/plain", "inside")).await;
    let closed = web(Settings::default(), Arc::default(), None);
    let error = closed.request(get(&server.url("/")), &call()).await.expect_err("private");
    insta::assert_snapshot!(error.to_string().replace(&server.address.port().to_string(), "PORT"), @r#"`127.0.0.1` leads to 127.0.0.1, which is not an address of the public internet, so agents may not go there: use a public address, or ask the user to add "127.0.0.1:PORT" to tools.web.allowHosts in app.json"#);
    assert!(server.requests().is_empty());

    let open = web_to(&server, Settings::default());
    assert_eq!(open.request(get(&server.url("/")), &call()).await.expect("allowed").body, "inside");
    let other = Server::start(|_| Reply::ok("text/plain", "other")).await;
    assert!(open.request(get(&other.url("/")), &call()).await.is_err());
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn a_redirect_to_a_private_place_is_refused_wherever_it_comes_in_the_chain() {
    let secret = Server::start(|_| Reply::ok("text/plain", "secret")).await;
    let port = secret.address.port();
    for (location, needle) in [
        (format!("http://127.0.0.1:{port}/"), "127.0.0.1"),
        (format!("http://localhost:{port}/"), "localhost"),
        (format!("http://[::ffff:127.0.0.1]:{port}/"), "::ffff:127.0.0.1"),
        (format!("http://2130706433:{port}/"), "127.0.0.1"),
        (format!("http://inside.example:{port}/"), "inside.example"),
        (format!("//inside.example:{port}/"), "inside.example"),
        ("file:///etc/passwd".to_owned(), "only http and https"),
        ("gopher://127.0.0.1:70/".to_owned(), "only http and https"),
        ("http://user:pass@example.com/".to_owned(), "user name or password"),
        ("http://169.254.169.254/latest/".to_owned(), "169.254.169.254"),
    ] {
        let to = location.clone();
        let server = Server::start(move |request| match request {
            request if request.starts_with("GET /0 ") => Reply::redirect("301 Moved", "http://b.example/1"),
            request if request.starts_with("GET /1 ") => Reply::redirect("302 Found", "/2"),
            _ => Reply::redirect("307 Temporary", &to),
        })
        .await;
        let public: &[&[&str]] = &[&["93.184.216.34"]];
        let names = Names::of(&[
            ("a.example", public),
            ("b.example", public),
            ("example.com", public),
            ("inside.example", &[&["93.184.216.34", "127.0.0.1"]]),
        ]);
        let web = web(Settings::default(), names, Some(server.address));
        let error = web.request(get("http://a.example/0"), &call()).await.expect_err(&location);
        assert!(matches!(error, Error::RefusedRedirect { .. }), "{location}: {error}");
        let error = error.to_string();
        assert!(error.starts_with("`http://b.example/2` redirects to") && error.contains(needle), "{error}");
        assert_eq!(server.requests().len(), 3);
    }
    assert!(secret.requests().is_empty());
}

#[tokio::test]
async fn redirects_end_somewhere_or_are_given_up() {
    let server = Server::start(|request| {
        let path = request.split(' ').nth(1).unwrap_or_default();
        match path.strip_prefix("/count/").and_then(|number| number.parse::<u32>().ok()) {
            Some(0) => Reply::ok("text/plain", "there"),
            Some(number) => Reply::redirect("302 Found", &format!("/count/{}#f", number - 1)),
            None if path == "/left" => Reply::redirect("302 Found", "/right"),
            None => Reply::redirect("302 Found", "/left#again"),
        }
    })
    .await;
    let web = web_to(&server, Settings { max_redirects: 3, ..Settings::default() });
    let response = web.request(get(&server.url("/count/3")), &call()).await.expect("three redirects");
    assert_eq!((response.final_url.path(), response.redirects.len()), ("/count/0", 3));
    let error = web.request(get(&server.url("/count/4")), &call()).await.expect_err("four redirects");
    assert!(matches!(error, Error::TooManyRedirects { limit: 3, .. }), "{error}");
    let error = web.request(get(&server.url("/left")), &call()).await.expect_err("a circle");
    assert!(matches!(error, Error::RedirectCircle { .. }), "{error}");
    let none = web.with_settings(Settings { max_redirects: 0, ..web.settings().clone() });
    assert!(none.request(get(&server.url("/count/0")), &call()).await.is_ok());
    assert!(none.request(get(&server.url("/count/1")), &call()).await.is_err());
}

#[tokio::test]
async fn the_callers_rules_are_asked_about_every_hop() {
    let server = Server::start(|request| match request {
        request if request.contains("host: b.example") => Reply::ok("text/plain", "b"),
        _ => Reply::redirect("302 Found", "http://b.example/"),
    })
    .await;
    let public: &[&[&str]] = &[&["93.184.216.34"]];
    let names = Names::of(&[("a.example", public), ("b.example", public)]);
    let web = web(Settings::default(), names, Some(server.address));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let mut call = call();
    call.permit = Arc::new(move |url: &Url| {
        log.lock().expect("no panic").push(url.to_string());
        if url.host_str() == Some("b.example") { Err("the role may not".to_owned()) } else { Ok(()) }
    });
    let error = web.request(get("http://a.example/"), &call).await.expect_err("not permitted");
    assert_eq!(error.to_string(), "going to `http://b.example/` is not permitted: the role may not");
    assert_eq!(*asked.lock().expect("no panic"), ["http://a.example/", "http://b.example/"]);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn secrets_stay_with_the_origin_that_they_were_meant_for() {
    let server = Server::start(|request| match request {
        request if request.contains("host: b.example") => Reply::ok("text/plain", "b"),
        request if request.starts_with("GET /login") => Reply::redirect("302 Found", "/home"),
        _ => Reply::redirect("302 Found", "http://b.example/"),
    })
    .await;
    let public: &[&[&str]] = &[&["93.184.216.34"]];
    let names = Names::of(&[("a.example", public), ("b.example", public)]);
    let web = web(Settings::default(), names, Some(server.address));
    let headers = [("Authorization", "Bearer s3cret"), ("X-Token", "s3cret")];
    let request = Request::new("GET", "http://a.example/login", headers, None).expect("a request");
    web.request(request, &call()).await.expect("b");
    let with_secret: Vec<bool> = server.requests().iter().map(|request| request.contains("s3cret")).collect();
    assert_eq!(with_secret, [true, true, false]);
}

#[tokio::test]
async fn what_does_not_exist_is_reported_with_its_name() {
    let names = Names::of(&[("empty.example", &[&[]]), ("dead.example", &[&["93.184.216.34"]])]);
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port")
        .local_addr()
        .expect("its address");
    let web = web(Settings::default(), names, Some(closed));
    for (url, needle) in [
        ("http://nowhere.example/", "found no address for `nowhere.example` (no such name)"),
        ("http://empty.example/", "found no address for `empty.example`"),
        ("http://dead.example/", "failed to connect to `dead.example` (Connection refused"),
    ] {
        let error = web.request(get(url), &call()).await.expect_err(url).to_string();
        assert!(error.contains(needle), "{error}");
    }
}

/// Two servers on the same port: the server at 127.0.0.2 plays the public internet, and the server at 127.0.0.1 is
/// private.
struct World {
    runtime: Runtime,
    names: Arc<Names>,
    web: crate::web::Web,
    secret: Server,
    chain: Arc<Mutex<Vec<String>>>,
}

static WORLD: LazyLock<Option<World>> = LazyLock::new(|| {
    let runtime = Runtime::new().expect("a runtime");
    let chain: Arc<Mutex<Vec<String>>> = Arc::default();
    let (secret, public) = runtime.block_on(async {
        let secret = Server::start(|_| Reply::ok("text/plain", "secret")).await;
        let chain = Arc::clone(&chain);
        let answer = move |request: &str| {
            let at: Option<usize> = request.split(' ').nth(1).and_then(|path| path.get(1..)?.parse().ok());
            let chain = chain.lock().expect("no panic");
            match at.and_then(|at| chain.get(at + 1)) {
                Some(next) => Reply::redirect("302 Found", next),
                None => Reply::ok("text/plain", "public"),
            }
        };
        let public = Server::at(&format!("127.0.0.2:{}", secret.address.port()), answer).await.ok();
        (secret, public)
    });
    let Some(public) = public else {
        println!("skipped: this machine has no address 127.0.0.2");
        return None;
    };
    let names: Arc<Names> = Arc::default();
    let web = web(Settings::default(), Arc::clone(&names), Some(public.address));
    Some(World { runtime, names, web, secret, chain })
});

fn any_address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        4 => Just("93.184.216.34"), 2 => Just("2606:4700::1"), 1 => Just("127.0.0.1"), 1 => Just("::1"),
        1 => Just("::ffff:127.0.0.1"), 1 => Just("0.0.0.0"), 1 => Just("::"), 1 => Just("127.0.0.3"),
    ]
    .prop_map(|address| address.parse().expect("an address"))
}

/// Generates a host: one of four names, or a way to write a private address.
fn any_host() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => (0_usize..4).prop_map(|name| format!("n{name}.example")),
        1 => prop::sample::select(vec![
            "127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::1]", "[::ffff:127.0.0.1]", "localhost",
            "x.localhost", "127.0.0.1.", "0", "[::]", "１２７.0.0.1",
        ])
        .prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, source_file: Some(file!()), ..ProptestConfig::default() })]

    #[test]
    fn no_request_ever_reaches_a_private_address(
        hosts in prop::collection::vec(any_host(), 1..5),
        answers in prop::collection::vec(prop::collection::vec(prop::collection::vec(any_address(), 1..3), 1..3), 4),
    ) {
        let Some(world) = &*WORLD else { return Ok(()) };
        let port = world.secret.address.port();
        for (at, answers) in answers.iter().enumerate() {
            world.names.set(&format!("n{at}.example"), answers.clone());
        }
        let urls: Vec<String> =
            hosts.iter().enumerate().map(|(at, host)| format!("http://{host}:{port}/{at}")).collect();
        world.chain.lock().expect("no panic").clone_from(&urls);
        let result = world.runtime.block_on(world.web.request(get(&urls[0]), &call()));
        prop_assert!(world.secret.requests().is_empty(), "the private server was reached: {:?}", result);
        // If every host is a name, and all addresses of these names are public, the request must succeed.
        let is_all_public = hosts.iter().all(|host| {
            let name = host.strip_prefix('n').and_then(|rest| rest.strip_suffix(".example")?.parse::<usize>().ok());
            name.is_some_and(|name| answers[name].iter().flatten().all(|address| is_public(*address)))
        });
        match result {
            Ok(response) => prop_assert_eq!(response.body, "public"),
            Err(error) if is_all_public => {
                return Err(TestCaseError::fail(format!("all is public, but: {error}")));
            }
            Err(_) => {}
        }
    }
}
