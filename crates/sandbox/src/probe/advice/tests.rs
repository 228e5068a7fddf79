use std::path::PathBuf;

use super::{Facts, Missing, conclude, install, kernel};
use crate::machine::{Level, Machine, OwnProc};

fn of(
    program: Option<&str>,
    bubblewrap: Result<OwnProc, &str>,
    walls: Result<u32, &str>,
    facts: &Facts,
) -> (Machine, String) {
    with_groups(program, bubblewrap, walls, Err(Missing::Controllers), facts)
}

fn with_groups(
    program: Option<&str>,
    bubblewrap: Result<OwnProc, &str>,
    walls: Result<u32, &str>,
    delegated: Result<PathBuf, Missing>,
    facts: &Facts,
) -> (Machine, String) {
    let machine = conclude(
        program.map(PathBuf::from),
        bubblewrap.map_err(str::to_owned),
        walls.map_err(str::to_owned),
        delegated,
        facts,
    );
    let text = machine
        .findings
        .iter()
        .map(|finding| format!("{} {}", finding.text, finding.advice.clone().unwrap_or_default()))
        .collect::<Vec<_>>()
        .join("\n");
    (machine, text)
}

#[test]
fn the_level_follows_from_what_works() {
    let facts = Facts::default();
    let check = |bubblewrap, walls, level| {
        let (machine, _) = of(Some("/usr/bin/bwrap"), bubblewrap, walls, &facts);
        assert_eq!(machine.level, level, "{bubblewrap:?} {walls:?}");
        assert_eq!(machine.bubblewrap.is_some(), bubblewrap.is_ok());
    };
    check(Ok(OwnProc::Mounted), Ok(7), Level::Full);
    check(Ok(OwnProc::Mounted), Ok(0), Level::Full);
    check(Ok(OwnProc::Absent), Ok(7), Level::Full);
    check(Err("refused"), Ok(3), Level::Partial);
    check(Err("refused"), Ok(2), Level::None);
    check(Err("refused"), Ok(0), Level::None);
    // Without seccomp, namespaces alone do not count as a sandbox: the command could make further namespaces.
    check(Ok(OwnProc::Mounted), Err("seccomp"), Level::None);
}

#[test]
fn the_person_learns_how_limits_are_enforced_and_how_the_kernel_could() {
    let check = |delegated, wanted: &str, unwanted: &str| {
        let facts = Facts::default();
        let (_, text) = with_groups(None, Ok(OwnProc::Mounted), Ok(7), delegated, &facts);
        assert!(text.contains(wanted) && !text.contains(unwanted), "{text}");
    };
    check(Ok(PathBuf::from("/sys/fs/cgroup/x")), "with control groups below /sys/fs/cgroup/x", "systemd-run");
    check(Err(Missing::Controllers), "This system offers no control groups", "systemd-run");
    check(Err(Missing::Rights), "may not change its control group. To change that", "The kernel enforces");
    check(Err(Missing::Shared), "--property=Delegate=yes polity serve", "The kernel enforces");
}

#[test]
fn the_advice_fits_the_cause() {
    let refused = Err("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted");
    let check = |facts: Facts, program, wanted: &str| {
        let (_, text) = of(program, refused, Ok(7), &facts);
        assert!(text.contains(wanted), "{wanted} is missing in: {text}");
    };
    let bubblewrap = Some("/usr/bin/bwrap");
    check(
        Facts { install: Some("sudo apt install bubblewrap"), ..Facts::default() },
        None,
        "sudo apt install bubblewrap",
    );
    let ubuntu = Facts { apparmor_restricts: Some(1), ..Facts::default() };
    check(ubuntu.clone(), bubblewrap, "profile bwrap /usr/bin/bwrap flags=(unconfined) {\n  userns,\n}");
    check(ubuntu, bubblewrap, "bwrap-userns-restrict");
    check(
        Facts { userns_clone: Some(0), ..Facts::default() },
        bubblewrap,
        "kernel.unprivileged_userns_clone=1",
    );
    check(Facts { most_namespaces: Some(0), ..Facts::default() }, bubblewrap, "user.max_user_namespaces");
    check(Facts { container: Some("Docker"), ..Facts::default() }, bubblewrap, "systempaths=unconfined");
    check(Facts { container: Some("Podman"), ..Facts::default() }, bubblewrap, "unmask=ALL");
    check(Facts { container: Some("Kubernetes"), ..Facts::default() }, bubblewrap, "procMount");
    check(Facts::default(), bubblewrap, "RTM_NEWADDR");
}

#[test]
fn a_kernel_or_container_that_lacks_something_is_named() {
    let check = |bubblewrap, walls, container, wanted: &[&str]| {
        let facts = Facts { container, ..Facts::default() };
        let (_, text) = of(Some("/usr/bin/bwrap"), bubblewrap, walls, &facts);
        for wanted in wanted {
            assert!(text.contains(wanted), "{wanted} is missing in: {text}");
        }
    };
    let refused = Err("refused");
    check(refused, Ok(2), None, &["version 2", "Use Linux 6.2 or newer", "tools.sandbox.allowNone"]);
    check(refused, Ok(0), None, &["has no Landlock", "lsm=landlock"]);
    check(refused, Err("seccomp: no"), Some("Docker"), &["seccomp: no", "let the container use seccomp"]);
    check(refused, Ok(3), None, &["\"partial\"", "Use Linux 6.12 or newer"]);
    check(Ok(OwnProc::Absent), Ok(7), Some("Docker"), &["/proc", "systempaths=unconfined"]);
    check(Ok(OwnProc::Absent), Ok(7), Some("Podman"), &["/proc", "unmask=ALL"]);
    check(Ok(OwnProc::Absent), Ok(7), None, &["cover parts of /proc"]);
    check(Ok(OwnProc::Mounted), Ok(7), None, &["resource limits of each process", "sums"]);
}

#[test]
fn a_machine_that_has_everything_gets_no_advice() {
    let (machine, _) = of(Some("/usr/bin/bwrap"), Ok(OwnProc::Mounted), Ok(7), &Facts::default());
    assert!(machine.findings.iter().all(|finding| finding.advice.is_none()), "{:?}", machine.findings);
}

#[test]
fn releases_are_read() {
    assert_eq!(kernel("6.8.0-31-generic"), (6, 8));
    assert_eq!(kernel("6.18.44-fc-v669"), (6, 18));
    assert_eq!(kernel("odd"), (0, 0));
    assert_eq!(install("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"), Some("sudo apt install bubblewrap"));
    assert_eq!(install("ID=unknown\n"), None);
}
