//! Runs commands that try to do harm. After each command, the test checks that the daemon still answers, that no
//! secret was read or changed, that guarded files are unchanged, and that no process is left.

mod cases;

use std::collections::BTreeSet;

use polity_sandbox::{How, Level, Network};

use cases::Holds::{Ends, Never, Nothing, Says};
use cases::{CALLING, CHANGING, Case, REACHING, READING};

use crate::bench::{Bench, CANARY, Heart, PAUSE, processes_with, small, text};

async fn check(bench: &Bench, level: Level, case: &Case, heart: &Heart) {
    let holds = match level {
        Level::Full => case.full,
        Level::Partial | Level::None => case.partial,
    };
    let name = format!("{} ({level:?})", case.name);
    let ended = bench.run(case.command).await;
    let said = text(&ended);
    assert!(!said.contains("read-only value"), "{name}: the attack itself is wrong: {said}");
    assert!(!said.contains("syntax error"), "{name}: the attack itself is wrong: {said}");
    for missing in ["perl: command not found", "perl: not found"] {
        assert!(!said.contains(missing), "{name}: the attack was not tried: {said}");
    }
    assert!(!said.contains(CANARY), "{name}: a secret was read: {said}");
    match holds {
        Says(wanted) => assert!(said.contains(wanted), "{name}: {:?}: {said}", ended.how),
        Never(unwanted) => {
            assert!(!said.contains(unwanted), "{name}: {said}");
            assert!(said.contains("end\n"), "{name}: {:?}: {said}", ended.how);
        }
        Ends(how) => assert_eq!(ended.how, how, "{name}: {said}"),
        Nothing => {}
    }
    bench.check_canaries(&name);
    assert_eq!(processes_with(&bench.mark), Vec::<String>::new(), "{name}: a process is left");
    assert!(heart.longest_pause() < PAUSE, "{name}: the daemon stood still for {:?}", heart.longest_pause());
}

async fn check_all(cases: &[Case]) {
    let heart = Heart::start();
    for level in [Level::Full, Level::Partial] {
        for case in cases {
            // Each command gets a new bench, because it may leave anything in its workspace.
            let Some(bench) = Bench::at(level).await else { break };
            check(&bench, level, case, &heart).await;
        }
        println!("the daemon's longest pause was {:?}", heart.longest_pause());
    }
}

/// The lists must not become shorter unnoticed.
#[test]
fn there_are_enough_hostile_commands() {
    let cases = [READING, CHANGING, CALLING, REACHING].concat();
    let commands: BTreeSet<&str> = cases.iter().map(|case| case.command).collect();
    assert_eq!(commands.len(), cases.len(), "a command is in the lists twice");
    assert!(commands.len() >= if cfg!(target_arch = "x86_64") { 110 } else { 80 }, "{}", commands.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_read() {
    check_all(READING).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outside_is_changed() {
    check_all(CHANGING).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doors_of_the_kernel_are_closed() {
    check_all(CALLING).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outside_is_reached() {
    // Open sockets on the host. The command must not reach them.
    let abstract_name = format!("polity-test-{}", std::process::id());
    let address = <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(
        abstract_name,
    );
    let _abstract = std::os::unix::net::UnixListener::bind_addr(&address.unwrap()).unwrap();
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port().to_string();
    let heart = Heart::start();
    for level in [Level::Full, Level::Partial] {
        for case in REACHING {
            let Some(bench) = Bench::at(level).await else { break };
            let _socket = std::os::unix::net::UnixListener::bind(bench.path("person/socket")).unwrap();
            let command = case.command.replace("@PORT", &port);
            check(&bench, level, &Case { command: command.leak(), ..*case }, &heart).await;
        }
    }
    tcp.set_nonblocking(true).unwrap();
    assert!(tcp.accept().is_err(), "a command connected to a server of the host");
}

/// Even with the network of the host, a command cannot reach the host's abstract Unix sockets, and cannot open
/// sockets of other families.
#[tokio::test(flavor = "multi_thread")]
async fn the_network_of_the_host_is_only_the_internet() {
    let name = format!("polity-full-{}", std::process::id());
    let address =
        <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name);
    let _abstract = std::os::unix::net::UnixListener::bind_addr(&address.unwrap()).unwrap();
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    for level in [Level::Full, Level::Partial] {
        let Some(mut bench) = Bench::at(level).await else { continue };
        bench.plan.network = Network::Full;
        let ended = bench
            .run(&format!(
                "perl -MSocket -e 'socket(S,PF_INET,SOCK_STREAM,0) or die $!; print connect(S,sockaddr_in({port},INADDR_LOOPBACK))?\"OPEN\\n\":\"refused\\n\"; \
                 socket(S,PF_UNIX,SOCK_STREAM,0) or (print(\"nounix\\n\"),exit); print connect(S,pack(\"Sa*\",1,\"\\0{name}\"))?\"REACHED\\n\":\"refused\\n\"'"
            ))
            .await;
        let said = text(&ended);
        assert!(said.starts_with("OPEN\n") && !said.contains("REACHED"), "{level:?}: {said}");
    }
}

/// If a single process reaches a limit of the kernel, this process fails, and the command does not end as a success.
#[tokio::test(flavor = "multi_thread")]
async fn a_single_process_fails_at_its_limit() {
    for level in [Level::Full, Level::Partial] {
        for (name, command) in [
            ("memory", "perl -e '$x=\"a\"x1000000000; print \"DONE\"'"),
            ("a file", "head -c 500000000 /dev/zero > f && echo DONE"),
            ("shared memory", "head -c 500000000 /dev/zero > /dev/shm/f && echo DONE"),
            ("the root", "head -c 500000000 /dev/zero > /f && echo DONE"),
        ] {
            let Some(mut bench) = Bench::at(level).await else { break };
            bench.plan.limits = small();
            let ended = bench.run(command).await;
            assert!(!text(&ended).contains("DONE"), "{name} ({level:?}): {:?}", ended.how);
            assert_ne!(ended.how, How::Exited(0), "{name} ({level:?})");
        }
    }
}
