//! Tests with real processes.

use super::world::*;
use crate::{Launcher, Plain, Process, Sandbox, Secret, Standing, Started};
use polity_hands::call::Content;
use rustix::process::{Pid, test_kill_process};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

/// A server as a shell script. It answers a call with its own process id and the ids of three background processes that
/// it has started: one in its process group, one that has left the group, and one that has left the group and whose
/// parent has ended.
const SERVER: &str = r#"
(trap '' HUP TERM; exec sleep 1000) </dev/null >/dev/null 2>&1 &
left="$!"
setsid sleep 1000 </dev/null >/dev/null 2>&1 &
left="$left $!"
left="$left $(setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $!)"
while IFS= read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    case "$line" in
        *'"server/discover"'*)
            printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id" ;;
        *'"initialize"'*)
            printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\n' "$id" ;;
        *'"tools/list"'*)
            printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"who","inputSchema":{"type":"object"}},{"name":"die","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
        *'"die"'*) echo "dying: $KEY" >&2; exit 3 ;;
        *'"who"'*)
            printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s %s"}]}}\n' "$id" $$ "$left" ;;
    esac
done
"#;

fn server() -> Process {
    Process {
        command: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), SERVER.to_owned()],
        env: BTreeMap::from([("KEY".to_owned(), Secret::new("a-secret-key"))]),
        cwd: None,
        sandbox: Sandbox::Off,
    }
}

/// Waits until a process has ended.
async fn gone(pid: Pid) {
    let waiting = async {
        loop {
            // An ended process whose parent does not wait for it stays as a zombie. A zombie counts as ended.
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
            let is_zombie = stat.is_ok_and(|stat| stat.contains(") Z "));
            if is_zombie || test_kill_process(pid).is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    in_time(waiting).await;
}

/// Waits for a real process, but not for ever.
async fn in_time<T>(waiting: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, waiting).await.expect("the process answers or ends in time")
}

async fn pids(world: &World) -> Vec<Pid> {
    let Content::Text { text, .. } = world.call("s__who", json!({})).await.unwrap().content else { panic!() };
    text.split(' ').map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect()
}

#[tokio::test]
async fn a_server_is_ended_with_everything_that_it_has_started() {
    let world = World::new(Arc::new(Plain), bounds(), config(crate::Launch::Process(server())));
    let first = pids(&world).await;
    assert_eq!(first.len(), 4);
    assert!(world.fails("s__die").await.contains("the connection ended"));
    // Polity also kills the background processes of the dead server.
    for pid in &first {
        gone(*pid).await;
    }
    let second = pids(&world).await;
    assert!(first.iter().all(|pid| !second.contains(pid)));
    world.servers.shut_down().await;
    for pid in second {
        gone(pid).await;
    }
}

#[tokio::test]
async fn servers_end_when_they_are_dropped() {
    let world = World::new(Arc::new(Plain), bounds(), config(crate::Launch::Process(server())));
    let running = pids(&world).await;
    drop(world);
    for pid in running {
        gone(pid).await;
    }
}

#[tokio::test]
async fn the_reason_for_a_restart_has_the_last_line_and_no_secrets() {
    let bounds = crate::Bounds {
        last_line: PATIENCE,
        first_pause: Duration::from_secs(300),
        longest_pause: Duration::from_secs(300),
        ..bounds()
    };
    let world = World::new(Arc::new(Plain), bounds, config(crate::Launch::Process(server())));
    world.fails("s__die").await;
    let standing = world.until(|standing| matches!(standing, Standing::Restarting { .. })).await;
    let Standing::Restarting { why } = standing else { panic!() };
    assert!(!why.contains("a-secret-key"), "{why}");
    // Polity may see the end of the process first, or the end of the connection.
    assert!(why.contains("exited with code 3") || why.contains("it closed the connection"), "{why}");
    assert!(why.ends_with("; it last wrote: dying: [secret]"), "{why}");
}

#[tokio::test]
async fn a_command_that_does_not_exist_is_reported() {
    let bounds = crate::Bounds {
        first_pause: Duration::from_secs(300),
        longest_pause: Duration::from_secs(300),
        ..bounds()
    };
    let world = World::new(Arc::new(Plain), bounds, config(process("/no/such/command", &[])));
    let standing = world.until(|standing| *standing != Standing::Starting).await;
    let Standing::Failed { why } = standing else { panic!("{standing:?}") };
    assert!(why.starts_with("the command \"/no/such/command\" does not start: No such file"), "{why}");
}

async fn started(script: &str) -> Started {
    let process = Process {
        args: vec!["-c".to_owned(), script.to_owned()],
        env: BTreeMap::from([("OWN".to_owned(), Secret::new("1"))]),
        cwd: Some("/".into()),
        ..server()
    };
    Plain.launch(&name("s"), &process).await.unwrap()
}

#[tokio::test]
async fn a_server_gets_only_a_part_of_the_environment() {
    let mut started = started("pwd; env").await;
    let mut printed = String::new();
    in_time(started.stdout.read_to_string(&mut printed)).await.unwrap();
    assert_eq!(in_time(started.tree.ended()).await, "exited with code 0");
    assert!(printed.starts_with("/\n") && printed.contains("\nOWN=1\n") && printed.contains("\nPATH="));
    // Cargo sets this variable for tests, so this process has it. The server must not get it.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!printed.contains("CARGO_MANIFEST_DIR"), "{printed}");
}

#[tokio::test]
async fn a_process_that_ignores_everything_is_killed() {
    let mut started = started("trap '' HUP TERM INT PIPE; sleep 1000 & echo $!; wait; wait").await;
    let mut lines = BufReader::new(&mut started.stdout).lines();
    let pid = in_time(lines.next_line()).await.unwrap().unwrap();
    started.tree.kill();
    assert_eq!(in_time(started.tree.ended()).await, "was ended by signal 9");
    gone(Pid::from_raw(pid.parse().unwrap()).unwrap()).await;
}

/// A process may leave the group and change its environment. It is still a child of the server, so it is killed, too.
#[tokio::test]
async fn a_child_without_the_mark_of_its_server_is_killed_with_it() {
    let mut started = started(r#"env -i setsid sh -c 'echo $$; exec sleep 1000' & wait"#).await;
    let mut lines = BufReader::new(&mut started.stdout).lines();
    let pid = in_time(lines.next_line()).await.unwrap().unwrap();
    started.tree.kill();
    assert_eq!(in_time(started.tree.ended()).await, "was ended by signal 9");
    gone(Pid::from_raw(pid.parse().unwrap()).unwrap()).await;
}
