//! Kills every process of a command, faster than the command can make new ones.

use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};
use serde::{Deserialize, Serialize};

use super::tree;
use crate::machine::{Level, Machine};
use crate::walls::LANDLOCK_SCOPES;

/// Time for killing everything. Only a process that the kernel cannot interrupt takes longer.
const KILLING: Duration = Duration::from_secs(20);

/// Time after which processes that the leash should have killed at once are also killed one by one.
const AT_ONCE: Duration = Duration::from_millis(500);

/// The means to reach all processes of a command at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Leash {
    /// A process namespace: the kernel kills all its processes when the first process dies.
    Namespace,
    /// A Landlock domain that also contains the supervisor. No signal can leave it. A signal to "all processes"
    /// therefore reaches all processes of the command and no others.
    Domain,
    /// No leash. Processes are stopped and killed one by one.
    None,
}

impl Leash {
    /// The best leash that a machine has.
    pub(crate) fn of(machine: &Machine) -> Self {
        match machine.level {
            Level::Full => Self::Namespace,
            Level::Partial | Level::None if machine.landlock >= LANDLOCK_SCOPES => Self::Domain,
            Level::Partial | Level::None => Self::None,
        }
    }

    /// Processes beneath the supervisor that are not the command's: bubblewrap outside and inside.
    pub(super) fn own_processes(self) -> u64 {
        match self {
            Self::Namespace => 2,
            Self::Domain | Self::None => 0,
        }
    }

    /// Puts the supervisor on the leash, before it starts the command. Returns the leash that takes effect.
    pub(super) fn put_on(self) -> Self {
        match self {
            Self::Namespace | Self::None => self,
            Self::Domain if enter_domain().is_ok() && is_confined() => self,
            Self::Domain => Self::None,
        }
    }

    /// Kills every descendant of the supervisor, and waits until it has no child. Returns how many processes are left.
    ///
    /// A process whose parent dies becomes a child of the supervisor, so none is overlooked in the end.
    pub(super) fn kill_all(self, child: Pid) -> u64 {
        let begin = Instant::now();
        loop {
            match self {
                // bubblewrap's first process inside is a child of the one outside.
                Self::Namespace => {
                    for process in tree::children(child.as_raw_nonzero().get()) {
                        kill(process, Signal::KILL);
                    }
                    kill(child.as_raw_nonzero().get(), Signal::KILL);
                }
                // Checked each time: outside a domain, this signal would reach every process of the user.
                Self::Domain if is_confined() => {
                    let _ = rustix::process::kill_process_group(Pid::INIT, Signal::KILL);
                }
                Self::Domain | Self::None => {}
            }
            if self == Self::None || begin.elapsed() > AT_ONCE {
                one_by_one();
            }
            if !has_children() {
                return 0;
            }
            if begin.elapsed() > KILLING {
                return tree::descendants(rustix::process::getpid(), usize::MAX).len() as u64;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Makes a Landlock domain that only confines signals.
fn enter_domain() -> Result<(), ::landlock::RulesetError> {
    use ::landlock::{CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, Scope};
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::Signal)?
        .create()?
        .restrict_self()
        .map(drop)
}

/// Whether signals of this process stay in its domain. If so, it cannot signal its own parent, which has the same user.
fn is_confined() -> bool {
    let parent = rustix::process::getppid();
    parent.is_some_and(|parent| rustix::process::test_kill_process(parent) == Err(Errno::PERM))
        && rustix::process::test_kill_process(Pid::INIT) == Err(Errno::PERM)
}

/// Stops all descendants, then kills them.
fn one_by_one() {
    let found = tree::descendants(rustix::process::getpid(), usize::MAX);
    for signal in [Signal::STOP, Signal::KILL] {
        for process in &found {
            kill(*process, signal);
        }
    }
}

fn kill(process: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(process).filter(|pid| *pid != Pid::INIT) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Collects children that have ended. Returns whether any child is left.
fn has_children() -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}
