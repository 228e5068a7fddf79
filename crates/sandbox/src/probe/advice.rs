//! Explains to the person what the probe found. The explanation depends only on the results of the probe and on facts
//! about the kernel.

use std::path::{Path, PathBuf};

use super::{Finding, LANDLOCK_LEAST, Level, Machine, OwnProc};
use crate::groups::Missing;
use crate::walls::LANDLOCK_SCOPES;

/// Version of a kernel, such as `(6, 8)`.
pub(super) type Kernel = (u32, u32);

/// Facts about the kernel and the system that explain why something does not work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) kernel: Kernel,
    /// The setting `kernel.apparmor_restrict_unprivileged_userns`, if the kernel has it. At 1, AppArmor restricts
    /// user namespaces.
    pub(super) apparmor_restricts: Option<u32>,
    /// The setting `kernel.unprivileged_userns_clone`, if the kernel has this setting. Older kernels of Debian have
    /// it.
    pub(super) userns_clone: Option<u32>,
    /// The setting `user.max_user_namespaces`.
    pub(super) most_namespaces: Option<u64>,
    /// The kind of container in which the daemon runs, if it runs in one.
    pub(super) container: Option<&'static str>,
    /// The command that installs bubblewrap on this distribution, if known.
    pub(super) install: Option<&'static str>,
}

impl Facts {
    pub(super) fn read() -> Self {
        let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse().ok();
        let exists = |path: &str| Path::new(path).exists();
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let container = if exists("/run/.containerenv") {
            Some("Podman")
        } else if exists("/.dockerenv") {
            Some("Docker")
        } else if exists("/var/run/secrets/kubernetes.io") {
            Some("Kubernetes")
        } else {
            None
        };
        Self {
            kernel: kernel(&release),
            apparmor_restricts: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
                .and_then(|value: u64| value.try_into().ok()),
            userns_clone: number("/proc/sys/kernel/unprivileged_userns_clone")
                .and_then(|value: u64| value.try_into().ok()),
            most_namespaces: number("/proc/sys/user/max_user_namespaces"),
            container,
            install: std::fs::read_to_string("/etc/os-release").ok().and_then(|text| install(&text)),
        }
    }
}

/// Reads a release such as `6.8.0-31-generic`.
fn kernel(release: &str) -> Kernel {
    let mut numbers = release.split(|byte: char| !byte.is_ascii_digit()).map_while(|part| part.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Returns the command that installs bubblewrap, given the text of `/etc/os-release`.
fn install(release: &str) -> Option<&'static str> {
    let families: String = release
        .lines()
        .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")))
        .collect::<Vec<_>>()
        .join(" ")
        .replace('"', "");
    let commands = [
        ("debian", "sudo apt install bubblewrap"),
        ("ubuntu", "sudo apt install bubblewrap"),
        ("fedora", "sudo dnf install bubblewrap"),
        ("rhel", "sudo dnf install bubblewrap"),
        ("arch", "sudo pacman -S bubblewrap"),
        ("suse", "sudo zypper install bubblewrap"),
        ("alpine", "sudo apk add bubblewrap"),
    ];
    families
        .split_whitespace()
        .find_map(|family| commands.iter().find(|(name, _)| family == *name).map(|(_, command)| *command))
}

/// Concludes which sandbox level works on this machine, and writes the findings for the person.
pub(super) fn conclude(
    program: Option<PathBuf>,
    bubblewrap: Result<OwnProc, String>,
    walls: Result<u32, String>,
    delegated: Result<PathBuf, Missing>,
    facts: &Facts,
) -> Machine {
    let mut findings = Vec::new();
    let landlock = *walls.as_ref().unwrap_or(&0);
    if let Err(reason) = &walls {
        findings.push(Finding::with_advice(
            format!("Commands cannot be walled in, because seccomp or Landlock does not work here: {reason}."),
            "If polity runs in a container, let the container use seccomp and Landlock; otherwise use a kernel that has both.",
        ));
    } else if landlock == 0 {
        findings.push(Finding::with_advice(
            "The kernel has no Landlock, or it is not switched on.",
            "Use Linux 6.2 or newer, and add \"landlock\" to the kernel parameter lsm=, as in lsm=landlock,lockdown,yama,apparmor,bpf.",
        ));
    } else if landlock < LANDLOCK_LEAST {
        findings.push(Finding::with_advice(
            format!("The kernel's Landlock has version {landlock}, which cannot stop a command from emptying files."),
            "Use Linux 6.2 or newer.",
        ));
    }
    let level = match (&bubblewrap, &walls) {
        (Ok(_), Ok(_)) => Level::Full,
        (Err(_), Ok(version)) if *version >= LANDLOCK_LEAST => Level::Partial,
        (Ok(_) | Err(_), _) => Level::None,
    };
    match (&program, &bubblewrap) {
        (None, _) => findings.push(Finding::with_advice(
            "bubblewrap (the program bwrap) is not installed, so commands get no namespaces of their own.",
            format!(
                "Install it: {}.",
                facts.install.unwrap_or("install the package bubblewrap of your distribution")
            ),
        )),
        (Some(program), Err(reason)) => findings.push(namespaces_refused(program, reason, facts)),
        (Some(_), Ok(OwnProc::Absent)) => findings.push(Finding::with_advice(
            "The sandbox cannot have a /proc of its own, so commands have none. Some programs need it.",
            match facts.container {
                Some("Podman") => "Start the container with --security-opt unmask=ALL.",
                Some("Docker") => "Start the container with --security-opt systempaths=unconfined.",
                _ => "If polity runs in a container, do not let the container cover parts of /proc.",
            },
        )),
        (Some(_), Ok(OwnProc::Mounted)) => {}
    }
    match level {
        Level::Full => {}
        Level::Partial => {
            findings.push(Finding::note(
                "At the level \"partial\", commands cannot read /proc, use /tmp or open Unix sockets; of files outside \
                 they can see that they exist and change times, and chmod works only as chmod 700 and chmod +x. \
                 Guarded files such as .git/config are put back when a command ends.",
            ));
            if landlock < LANDLOCK_SCOPES {
                findings.push(Finding::with_advice(
                    "The kernel cannot separate the signals of a command from those of other programs, so commands cannot send signals at all, not even with kill or timeout.",
                    "Use Linux 6.12 or newer, or raise the level to \"full\".",
                ));
            }
        }
        Level::None => findings.push(Finding::note(
            "There is no sandbox, so agents get no commands unless tools.sandbox.allowNone is set.",
        )),
    }
    findings.push(Finding::note(limits(&delegated)));
    let (bubblewrap, proc) = match bubblewrap {
        Ok(proc) => (program, proc),
        Err(_) => (None, OwnProc::Absent),
    };
    Machine { level, bubblewrap, proc, landlock, delegated: delegated.ok(), kernel: facts.kernel, findings }
}

/// Says how limits on memory and processes are enforced.
fn limits(delegated: &Result<PathBuf, Missing>) -> String {
    const SAMPLES: &str = "Limits on memory and processes are enforced by resource limits of each process and by sums \
        over all processes of a command and of all commands of a task, taken up to 40 times a second.";
    let why = match delegated {
        Ok(group) => {
            return format!(
                "The kernel enforces the limits on memory and processes, with control groups below {}.",
                group.display()
            );
        }
        Err(Missing::Controllers) => {
            return format!("{SAMPLES} This system offers no control groups of version 2 that could do it.");
        }
        Err(Missing::Rights) => "polity may not change its control group",
        Err(Missing::Shared) => "other programs are in the control group of polity",
    };
    format!(
        "{SAMPLES} The kernel could do it with control groups, but {why}. To change that, start polity like this: \
         systemd-run --user --scope --property=Delegate=yes polity serve"
    )
}

/// Explains why bubblewrap could not make its namespaces.
fn namespaces_refused(program: &Path, reason: &str, facts: &Facts) -> Finding {
    let text = format!("bubblewrap is installed but cannot make namespaces: {reason}.");
    let advice = if facts.apparmor_restricts.is_some_and(|value| value > 0) {
        apparmor(program)
    } else if facts.userns_clone == Some(0) {
        "Allow user namespaces: echo kernel.unprivileged_userns_clone=1 | sudo tee /etc/sysctl.d/99-userns.conf && sudo sysctl --system.".to_owned()
    } else if facts.most_namespaces == Some(0) {
        "Allow user namespaces: echo user.max_user_namespaces=15000 | sudo tee /etc/sysctl.d/99-userns.conf && sudo sysctl --system.".to_owned()
    } else {
        match facts.container {
            Some("Docker") => "Start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined, or with a seccomp profile that allows unshare, clone, mount and pivot_root.".to_owned(),
            Some("Podman") => "Start the container with --security-opt seccomp=unconfined --security-opt unmask=ALL, or with a seccomp profile that allows unshare, clone, mount and pivot_root.".to_owned(),
            Some(_) => "Give the pod a seccomp profile that allows unshare, clone, mount and pivot_root (securityContext.seccompProfile) and procMount: Unmasked.".to_owned(),
            None => "Let this user make user namespaces. In a container, its seccomp profile usually forbids it.".to_owned(),
        }
    };
    Finding::with_advice(text, advice)
}

/// Returns the advice for Ubuntu 23.10 and later, where AppArmor restricts user namespaces.
///
/// The advice begins with Ubuntu's own profile. With this profile, bubblewrap can make namespaces, but the programs
/// that bubblewrap starts get no capabilities.
fn apparmor(program: &Path) -> String {
    format!(
        "AppArmor restricts user namespaces here (kernel.apparmor_restrict_unprivileged_userns=1). \
         Give bubblewrap Ubuntu's own profile: sudo apt install apparmor-profiles && sudo install -m 0644 \
         /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && \
         sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict. \
         If that file does not exist, write this to /etc/apparmor.d/bwrap and run sudo apparmor_parser -r on it:\n\
         abi <abi/4.0>,\ninclude <tunables/global>\nprofile bwrap {} flags=(unconfined) {{\n  userns,\n}}\n\
         The last resort lifts the restriction for all programs: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0.",
        program.display()
    )
}

#[cfg(test)]
mod tests;
