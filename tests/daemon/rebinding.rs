//! Names that lead to private addresses. Some lead there at once, some after a redirect, and some only at a later
//! lookup, when the first lookup has given a public address (DNS rebinding).
//!
//! The daemon resolves names with the C library, which asks a name server of the test. The public addresses in the
//! answers belong to this machine, so each test runs in a network of its own. On a machine that does not allow this,
//! the tests print that they were skipped.

mod name_server;
mod sites;

use std::sync::{Arc, Mutex};

use name_server::{Answers, NameServer};
use polity_tests::{Answer, Call, Polity, ScriptedServer, ToolResult, in_own_network_with_names};
use serde_json::{Value, json};
use sites::{Sites, page_of};

use crate::support::{home, last_asked, run};

/// A public IPv4 address.
const PUBLIC: &str = "93.184.216.34";
/// A public IPv6 address.
const PUBLIC6: &str = "2606:4700::1";

/// The addresses that this machine has in the network of a test, besides 127.0.0.1 and ::1.
const ADDRESSES: &[&str] = &[PUBLIC, PUBLIC6, "10.1.2.3", "169.254.169.254", "fd00::1"];

/// The web server at [`PUBLIC`].
const SITE: &str = "93.184.216.34:80";
/// The web server at [`PUBLIC6`].
const SITE6: &str = "[2606:4700::1]:80";

/// All web servers. None of them listens at port 443 of a public address.
const SITES: &[&str] = &[
    SITE,
    SITE6,
    "127.0.0.1:80",
    "127.0.0.1:443",
    "10.1.2.3:80",
    "169.254.169.254:80",
    "[::1]:80",
    "[fd00::1]:80",
];

/// Names that agents can reach: two names of public addresses, and one that the user has allowed.
const REACHED: &[(&str, Answers)] = &[
    ("public.example", &[&[PUBLIC]]),
    ("public6.example", &[&[PUBLIC6]]),
    ("allowed.example", &[&["127.0.0.1"]]),
];

/// Names that agents must not reach. One of the addresses of each name is not public.
const PRIVATE: &[(&str, Answers)] = &[
    ("loopback.example", &[&["127.0.0.1"]]),
    ("zero.example", &[&["0.0.0.0"]]),
    ("network.example", &[&["10.1.2.3"]]),
    ("metadata.example", &[&["169.254.169.254"]]),
    ("loopback6.example", &[&["::1"]]),
    ("mapped.example", &[&["::ffff:127.0.0.1"]]),
    ("local6.example", &[&["fd00::1"]]),
    ("mixed.example", &[&[PUBLIC, "127.0.0.1"]]),
    ("mixed6.example", &[&[PUBLIC, "::1"]]),
    ("mixed-mapped.example", &[&[PUBLIC6, "::ffff:127.0.0.1"]]),
];

/// Names that change. The first lookup of such a name gives a public address, and a later lookup gives a private
/// address.
const CHANGING: &[(&str, Answers)] = &[
    ("once.example", &[&[PUBLIC], &["127.0.0.1"]]),
    ("closed.example", &[&[PUBLIC], &["127.0.0.1"]]),
    ("again.example", &[&[PUBLIC], &["127.0.0.1"]]),
    ("thrice.example", &[&[PUBLIC], &[PUBLIC], &[PUBLIC], &["127.0.0.1"]]),
];

/// Returns the one address in the answers that is not public.
fn private_in(answers: Answers) -> &'static str {
    let private = answers.concat().into_iter().find(|address| ![PUBLIC, PUBLIC6].contains(address));
    private.expect("a private address")
}

/// A society, and everything that its agents can reach.
struct World {
    names: NameServer,
    sites: Sites,
    /// The call that the model makes in the next run.
    next: Arc<Mutex<Call>>,
    model: ScriptedServer,
    polity: Polity,
}

/// The result of a call that may have reached web servers.
struct Visit {
    result: ToolResult,
    /// The address of each connection that a web server got, oldest first.
    reached: Vec<String>,
}

impl World {
    /// Starts a society in a network that has these names and those in [`REACHED`].
    ///
    /// Checks that agents reach each name in [`REACHED`], and that the web servers record the connections. Without this
    /// check, the tests would succeed on a machine on which agents reach nothing.
    #[track_caller]
    fn start(names: &[(&'static str, Answers)]) -> Self {
        let next = Arc::new(Mutex::new(Call::new("", Value::Null)));
        let call = Arc::clone(&next);
        let model = ScriptedServer::start(move |asked| match asked.tool_results().len() {
            0 => Answer::calls(vec![call.lock().expect("no panic").clone()]),
            _ => Answer::say("done"),
        });
        let domains: Vec<&str> = REACHED.iter().chain(names).map(|(name, _)| *name).collect();
        let tools = json!({
            "web": {"allowHosts": ["allowed.example"]},
            "sandbox": {"network": domains},
            "policy": [{"tool": "bash", "decide": "allow"}],
        });
        let polity = home(&model, &json!({"language": "en", "tools": tools}));
        let names = NameServer::start(REACHED.iter().chain(names).copied());
        let world = Self { names, sites: Sites::start(SITES), next, model, polity };

        world.fetch("http://public.example/").expect_page(SITE);
        assert_eq!(world.names.lookups("public.example"), 1);
        if world.sites.listen_at(SITE6) {
            world.fetch("http://public6.example/").expect_page(SITE6);
        }
        world.fetch("http://allowed.example/").expect_page("127.0.0.1:80");
        world.fetch("http://allowed.example:443/").expect_page("127.0.0.1:443");
        world
    }

    /// Runs a new task in which an agent makes one call. Each run is a process of its own, so no answer of the name
    /// server is kept in memory.
    #[track_caller]
    fn call(&self, tool: &str, arguments: Value) -> Visit {
        *self.next.lock().expect("no panic") = Call::new(tool, arguments);
        run(&self.polity, &["work"]).expect_code(0);
        let result = last_asked(&self.model).tool_results().pop().expect("a result");
        Visit { result, reached: self.sites.take_reached() }
    }

    /// Lets an agent read a page.
    #[track_caller]
    fn fetch(&self, url: &str) -> Visit {
        self.call("fetch_page", json!({"url": url}))
    }

    /// Lets a command of an agent read a page through the proxy of the sandbox.
    #[track_caller]
    fn command(&self, url: &str) -> Visit {
        let script = format!(
            r#"exec 3<>/dev/tcp/127.0.0.1/${{http_proxy##*:}} && printf "GET {url} HTTP/1.1\r\n\r\n" >&3 && cat <&3"#
        );
        self.call("bash", json!({"command": format!("bash -c '{script}'")}))
    }
}

impl Visit {
    /// Checks that the result contains the page of this web server, and that no other web server was reached.
    #[track_caller]
    fn expect_page(&self, site: &str) {
        assert_eq!(self.result.error(), None, "{}", self.result.text);
        self.expect_text(&page_of(site));
        assert_eq!(self.reached, [site]);
    }

    /// Checks that the call was refused because the name leads to this address.
    #[track_caller]
    fn expect_refused(&self, name: &str, address: &str) {
        assert_eq!(self.result.error(), Some("tool_failed"), "{}", self.result.text);
        self.expect_text(&format!(
            "`{name}` leads to {address}, which is not an address of the public internet"
        ));
    }

    #[track_caller]
    fn expect_text(&self, text: &str) {
        assert!(self.result.text.contains(text), "{text:?} is not in {}", self.result.text);
    }
}

#[test]
fn no_name_leads_a_request_to_a_private_address() {
    in_own_network_with_names("rebinding::inside_private_names", ADDRESSES);
}

#[test]
#[ignore = "runs in a network namespace of its own"]
fn inside_private_names() {
    let world = World::start(PRIVATE);
    for (name, answers) in PRIVATE {
        let visit = world.fetch(&format!("http://{name}/"));
        visit.expect_refused(name, private_in(answers));
        assert!(visit.reached.is_empty(), "{name} led to {:?}", visit.reached);
        assert_eq!(world.names.lookups(name), 1, "{name}");
    }
}

#[test]
fn no_redirect_leads_to_the_name_of_a_private_address() {
    in_own_network_with_names("rebinding::inside_redirects", ADDRESSES);
}

#[test]
#[ignore = "runs in a network namespace of its own"]
fn inside_redirects() {
    let world = World::start(PRIVATE);
    for (name, answers) in PRIVATE {
        let visit = world.fetch(&format!("http://public.example/to/http://{name}/"));
        visit.expect_refused(name, private_in(answers));
        visit.expect_text(&format!("redirects to `http://{name}/`, which is refused"));
        assert_eq!(visit.reached, [SITE], "{name}");
        assert_eq!(world.names.lookups(name), 1, "{name}");
    }
}

#[test]
fn a_name_server_that_changes_its_answer_leads_only_to_addresses_that_were_judged() {
    in_own_network_with_names("rebinding::inside_changing_answers", ADDRESSES);
}

#[test]
#[ignore = "runs in a network namespace of its own"]
fn inside_changing_answers() {
    let world = World::start(CHANGING);

    // Polity must look up the name only once. A second lookup for the connection would lead to 127.0.0.1.
    world.fetch("http://once.example/").expect_page(SITE);
    assert_eq!(world.names.lookups("once.example"), 1);
    let visit = world.fetch("http://once.example/");
    visit.expect_refused("once.example", "127.0.0.1");
    assert!(visit.reached.is_empty(), "{:?}", visit.reached);
    assert_eq!(world.names.lookups("once.example"), 2);

    // The public address refuses the connection, and 127.0.0.1 would accept it.
    let visit = world.fetch("http://closed.example:443/");
    visit.expect_text("failed to connect to `closed.example`");
    assert!(visit.reached.is_empty(), "{:?}", visit.reached);
    assert_eq!(world.names.lookups("closed.example"), 1);

    // After each redirect, polity looks up the name once more and judges the new answer.
    let visit = world.fetch("http://thrice.example/to/http://thrice.example/to/http://thrice.example/");
    visit.expect_text(&page_of(SITE));
    assert_eq!(visit.reached, [SITE, SITE, SITE]);
    assert_eq!(world.names.lookups("thrice.example"), 3);
    let visit = world.fetch("http://again.example/to/http://again.example/");
    visit.expect_refused("again.example", "127.0.0.1");
    visit.expect_text("redirects to `http://again.example/`, which is refused");
    assert_eq!(visit.reached, [SITE]);
    assert_eq!(world.names.lookups("again.example"), 2);
}

#[test]
fn no_listed_domain_leads_a_command_to_a_private_address() {
    in_own_network_with_names("rebinding::inside_commands", ADDRESSES);
}

/// Commands do not resolve names themselves: the proxy of the sandbox does this. If a name has public and private
/// addresses, the proxy uses the public addresses, but the web tools refuse the name.
#[test]
#[ignore = "runs in a network namespace of its own"]
fn inside_commands() {
    let world = World::start(&[PRIVATE, CHANGING].concat());
    let visit = world.command("http://public.example/");
    // Without a sandbox, the tool does not exist; at the level `partial`, a list of domains is refused.
    let has_no_sandbox = visit.result.error() == Some("unknown_tool");
    if has_no_sandbox || visit.result.text.contains("a list of domains needs the sandbox level") {
        polity_tests::tell(&format!("not checked: this machine has no full sandbox: {}", visit.result.text));
        return;
    }
    visit.expect_page(SITE);

    for (name, answers) in PRIVATE {
        let visit = world.command(&format!("http://{name}/"));
        match answers {
            [[_]] => {
                visit.expect_text(&format!("{name} leads to no address of the public internet"));
                assert!(visit.reached.is_empty(), "{name} led to {:?}", visit.reached);
            }
            [addresses] if addresses.contains(&PUBLIC) => visit.expect_page(SITE),
            _ if world.sites.listen_at(SITE6) => visit.expect_page(SITE6),
            _ => {}
        }
        assert_eq!(world.names.lookups(name), 1, "{name}");
    }
    // The public address refuses the connection, and 127.0.0.1 would accept it.
    let visit = world.command("http://mixed.example:443/");
    visit.expect_text("mixed.example does not answer");
    assert!(visit.reached.is_empty(), "{:?}", visit.reached);

    world.command("http://once.example/").expect_page(SITE);
    assert_eq!(world.names.lookups("once.example"), 1);
    let visit = world.command("http://once.example/");
    visit.expect_text("once.example leads to no address of the public internet");
    assert!(visit.reached.is_empty(), "{:?}", visit.reached);
    assert_eq!(world.names.lookups("once.example"), 2);
}
