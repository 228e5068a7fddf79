//! Checks ports on this machine: the default port of the daemon, and the ports of local model servers.

mod owner;

use super::report::Section;
use super::{Network, data};
use polity_llm::{Found, Inquirer, discover_all};
use polity_probe::Finding;
use polity_registry::Discover;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::Duration;

/// The port on which a daemon listens by default.
const PORT: u16 = 7_717;
/// Time limit for the answers of local model servers.
const DISCOVERY: Duration = Duration::from_secs(1);

/// Checks the port of the daemon, and searches for local model servers unless the option `--offline` or the setting
/// `discover` forbids the search.
pub(super) async fn look(data: &Path, inquirer: &Inquirer, network: Network, discover: Discover) -> Section {
    let mut findings = vec![of_daemon(data, inquirer, network).await];
    if network == Network::Asked && discover == Discover::On {
        findings.extend(discover_all(DISCOVERY).await.iter().map(of_server));
    }
    Section::new("ports", "of this machine", findings)
}

async fn of_daemon(data: &Path, inquirer: &Inquirer, network: Network) -> Finding {
    let address = format!("127.0.0.1:{PORT}");
    let free = match TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)) {
        Ok(_) => return Finding::ok("port_free", format!("{address} is free for `polity serve`")),
        Err(error) => error,
    };
    if free.kind() != io::ErrorKind::AddrInUse {
        let what = format!("cannot listen on {address}: {free}");
        return Finding::warning("port", what, "choose another port: `polity serve --listen 127.0.0.1:0`");
    }
    let is_ours = data::note(data).is_some_and(|note| note.url.ends_with(&format!(":{PORT}")));
    if is_ours {
        return Finding::ok("port_ours", format!("the daemon of this data directory listens on {address}"));
    }
    let is_polity = network == Network::Asked && data::answers(inquirer, &format!("http://{address}")).await;
    let who = match (is_polity, owner::of_port(PORT)) {
        (true, Some(process)) => format!("another polity, it seems: {process}"),
        (true, None) => "another polity, it seems".to_owned(),
        (false, Some(process)) => process,
        (false, None) => "another program".to_owned(),
    };
    let what = format!("{address} is taken by {who}");
    Finding::hint("port_taken", what, "choose another port: `polity serve --listen 127.0.0.1:0`")
}

fn of_server(found: &Found) -> Finding {
    let Found { server, base_url, models } = found;
    let shown: Vec<&str> = models.iter().take(5).map(String::as_str).collect();
    let more = if models.len() > shown.len() { ", …" } else { "" };
    Finding::ok("server", format!("{server} is at {base_url}: {}{more}", shown.join(", ")))
}
