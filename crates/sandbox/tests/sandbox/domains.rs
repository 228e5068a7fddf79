//! Tests a list of domains from inside the sandbox. Connections to servers outside are tested in `proxy/tests.rs`,
//! without a network, and in `tests/daemon/rebinding.rs`, with a name server.

use std::time::Duration;

use polity_sandbox::{Error, How, Level, Network};

use crate::bench::{Bench, exists, processes_with, text};

/// Returns a shell command that sends a request to the proxy from inside the sandbox.
fn ask(request: &str) -> String {
    format!(
        "perl -MSocket -e 'socket(S,PF_INET,SOCK_STREAM,0) or die $!; connect(S,sockaddr_in(3128,INADDR_LOOPBACK)) or die $!; \
         syswrite(S,\"{request}\\r\\n\\r\\n\"); print while <S>'; "
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_only_way_out_is_the_proxy() {
    let Some(mut bench) = Bench::at(Level::Full).await else { return };
    bench.plan.network = Network::Domains(vec!["*.example.org".to_owned(), "localhost".to_owned()]);
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let command = [
        "echo $https_proxy; ".to_owned(),
        ask("CONNECT evil.com:443 HTTP/1.1"),
        ask("CONNECT 127.0.0.1:443 HTTP/1.1"),
        ask("CONNECT localhost:443 HTTP/1.1"),
        ask(&format!("CONNECT localhost:{port} HTTP/1.1")),
        format!("perl -MSocket -e 'socket(S,PF_INET,SOCK_STREAM,0); print connect(S,sockaddr_in({port},INADDR_LOOPBACK))?\"OPEN\":\"closed\"'"),
    ]
    .concat();
    let ended = bench.run(&command).await;
    let said = text(&ended);
    assert_eq!(ended.how, How::Exited(0), "{said}");
    assert!(said.starts_with("http://127.0.0.1:3128\n"), "{said}");
    assert_eq!(said.matches("HTTP/1.1 403").count(), 4, "{said}");
    assert!(said.contains("localhost leads to no address of the public internet"), "{said}");
    assert!(said.ends_with("closed"), "{said}");
    tcp.set_nonblocking(true).unwrap();
    assert!(tcp.accept().is_err());
    assert!(!exists(&bench.path("data/out/output.proxy")));
    bench.check_canaries("domains");
}

/// The forwarder, which runs in the sandbox beside the command, ends when the command ends.
#[tokio::test(flavor = "multi_thread")]
async fn the_forwarder_ends_with_the_command() {
    let Some(mut bench) = Bench::at(Level::Full).await else { return };
    bench.plan.network = Network::Domains(vec!["example.org".to_owned()]);
    let ended = bench.run("wait; for i in 1 2 3 4 5; do kill -9 -1; done; echo over").await;
    assert!(text(&ended).ends_with("over\n") || ended.how != How::Exited(0), "{}", text(&ended));
    let begun = std::time::Instant::now();
    while !processes_with("/run/polity/enter forward").is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_domains_needs_namespaces_and_names() {
    let Some(mut bench) = Bench::at(Level::Partial).await else { return };
    bench.plan.network = Network::Domains(vec!["example.org".to_owned()]);
    let result = bench.try_run("true").await;
    assert!(matches!(result, Err(Error::DomainsNeedFull)), "{result:?}");
    let Some(mut bench) = Bench::at(Level::Full).await else { return };
    bench.plan.network = Network::Domains(vec!["*".to_owned()]);
    let result = bench.try_run("true").await;
    assert!(matches!(result, Err(Error::NotADomain(_))), "{result:?}");
}
