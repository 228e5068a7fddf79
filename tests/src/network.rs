//! Runs a test in a network namespace of its own, in which all ports are free.

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::told::tell;

/// Settings of the resolver: ask the server at 127.0.0.1, port 53. The time limit is long. With a short one, the
/// resolver could ask twice on a busy machine.
const RESOLV_CONF: &str = "nameserver 127.0.0.1\noptions timeout:30 attempts:1\n";

/// Settings of the C library: ask the name server directly, not another program such as systemd-resolved.
const NSSWITCH_CONF: &str = "hosts: files dns\n";

const LOOPBACK: &str = "ip link set lo up";

/// Shell commands. They give the loopback interface the addresses in `$ADDRESSES`; without IPv6, only the IPv4
/// addresses. They mount the files in `$FILES` over the settings of the resolver. If the machine has a cache of names
/// (nscd), they hide its socket, because the cache would ask the name servers of the machine.
const LOOPBACK_WITH_NAMES: &str = r#"
ip link set lo up
for address in $ADDRESSES; do
    ip address add "$address" dev lo || case $address in *:*) ;; *) exit 1 ;; esac
done
mount --bind "$FILES/resolv.conf" /etc/resolv.conf
if [ -e /etc/nsswitch.conf ]; then mount --bind "$FILES/nsswitch.conf" /etc/nsswitch.conf; fi
if [ -d /var/run/nscd ]; then mount -t tmpfs none /var/run/nscd; fi
"#;

/// Runs an ignored test of the running program in a network namespace of its own, and waits until it has passed. On a
/// machine that does not allow this, only prints that the test was skipped. `test` is the full name of the test.
///
/// # Panics
/// If the test fails. The message contains its output.
#[track_caller]
pub fn in_own_network(test: &str) {
    run_apart(&["--net"], LOOPBACK, &[], test);
}

/// Does the same as [`in_own_network`], with two differences. The machine also has these addresses. And to resolve a
/// name, all programs ask 127.0.0.1, port 53, where the test can run a name server.
///
/// # Panics
/// If the test fails. The message contains its output.
#[track_caller]
pub fn in_own_network_with_names(test: &str, addresses: &[&str]) {
    let files = TempDir::with_prefix("polity-names-").expect("a temporary directory");
    for (name, text) in [("resolv.conf", RESOLV_CONF), ("nsswitch.conf", NSSWITCH_CONF)] {
        fs::write(files.path().join(name), text).expect("a file");
    }
    let addresses = addresses.join(" ");
    let variables = [("FILES", files.path().as_os_str()), ("ADDRESSES", OsStr::new(&addresses))];
    run_apart(&["--net", "--mount"], LOOPBACK_WITH_NAMES, &variables, test);
}

/// Runs the shell commands `setup` and then an ignored test, in namespaces of these kinds. If the test prints lines
/// about what it has not checked, prints these lines, too.
#[track_caller]
fn run_apart(kinds: &[&str], setup: &str, variables: &[(&str, &OsStr)], test: &str) {
    let own = |commands: &str| {
        let mut unshared = Command::new("unshare");
        unshared.arg("--map-root-user").args(kinds).args(["sh", "-e", "-c", commands]);
        unshared.envs(variables.iter().copied()).stdin(Stdio::null());
        unshared
    };
    // If the setup itself fails although the machine has what it needs, the test below fails.
    let refused =
        match own("command -v ip >/dev/null || { echo 'ip is not installed' >&2; exit 1; }").output() {
            Ok(tried) if tried.status.success() => None,
            Ok(tried) => Some(String::from_utf8_lossy(&tried.stderr).trim().to_owned()),
            Err(error) => Some(error.to_string()),
        };
    if let Some(reason) = refused {
        tell(&format!("skipped: this machine allows no network namespace for {test}: {reason}"));
        return;
    }
    let program = std::env::current_exe().expect("this program");
    let ended = own(&format!("{setup}\nexec \"$PROGRAM\" --exact \"$TEST\" --ignored --nocapture"))
        .env("PROGRAM", program)
        .env("TEST", test)
        .output()
        .expect("a process");
    let said =
        format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success() && said.contains("1 passed"), "{said}");
    for (_, unchecked) in said.lines().filter_map(|line| line.split_once("not checked: ")) {
        tell(&format!("not checked: {unchecked}"));
    }
}
