//! Kills every process of a command, faster than the command can make new ones.

use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};
use serde::{Deserialize, Serialize};

use crate::machine::{Level, Machine};
use crate::tree;
use crate::walls::LANDLOCK_SCOPES;

/// Time limit for killing all processes. Only a process that the kernel cannot interrupt takes longer.
const KILLING: Duration = Duration::from_secs(20);

/// The time after which the supervisor stops relying on killing all processes at the same time. If some of them are
/// still alive then, the supervisor also kills them one by one.
const AT_ONCE: Duration = Duration::from_millis(500);

/// How the supervisor kills all processes of a command at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Leash {
    /// A process namespace. The kernel kills all processes of the namespace when its first process dies.
    Namespace,
    /// A Landlock domain that contains the supervisor and the command. No signal can leave the domain. So a signal of
    /// the supervisor to "all processes" reaches all processes of the command and no others.
    Domain,
    /// The machine cannot kill all processes at the same time. The supervisor first stops each process, and then kills
    /// each process.
    None,
}

impl Leash {
    /// Returns the leash to use on a machine.
    pub(crate) fn of(machine: &Machine) -> Self {
        match machine.level {
            Level::Full => Self::Namespace,
            Level::Partial | Level::None if machine.landlock >= LANDLOCK_SCOPES => Self::Domain,
            Level::Partial | Level::None => Self::None,
        }
    }

    /// Returns how many descendants of the supervisor do not belong to the command. With a process namespace, these are
    /// the two processes of bubblewrap. Otherwise there are none.
    pub(super) fn own_processes(self) -> u64 {
        match self {
            Self::Namespace => 2,
            Self::Domain | Self::None => 0,
        }
    }

    /// Enters the Landlock domain, if this leash needs one, before the supervisor starts the command. Returns the
    /// leash that takes effect.
    pub(super) fn put_on(self) -> Self {
        match self {
            Self::Namespace | Self::None => self,
            Self::Domain if enter_domain().is_ok() && is_confined() => self,
            Self::Domain => Self::None,
        }
    }

    /// Kills every descendant of the supervisor, and waits for them to end. Returns how many processes could not be
    /// killed. `kill_group` kills the control group of the command, if it has one.
    ///
    /// A process whose parent dies becomes a child of the supervisor, so no process escapes.
    pub(super) fn kill_all(self, child: Pid, kill_group: impl Fn()) -> u64 {
        let begin = Instant::now();
        loop {
            kill_group();
            match self {
                // The bubblewrap process outside the namespace has one child, the first process of the namespace. When
                // this child is killed, the kernel kills the whole namespace.
                Self::Namespace => {
                    for process in tree::children(child.as_raw_nonzero().get()) {
                        kill(process, Signal::KILL);
                    }
                    kill(child.as_raw_nonzero().get(), Signal::KILL);
                }
                // `is_confined` is checked each time, because outside a domain the signal would kill every process of
                // the user.
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

/// Puts this process into a new Landlock domain that restricts only signals.
fn enter_domain() -> Result<(), ::landlock::RulesetError> {
    use ::landlock::{CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, Scope};
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::Signal)?
        .create()?
        .restrict_self()
        .map(drop)
}

/// Returns whether the signals of this process stay in its Landlock domain. The parent process is outside the domain
/// and runs as the same user. So if the kernel refuses a signal to the parent, the domain has taken effect.
fn is_confined() -> bool {
    let parent = rustix::process::getppid();
    parent.is_some_and(|parent| rustix::process::test_kill_process(parent) == Err(Errno::PERM))
        && rustix::process::test_kill_process(Pid::INIT) == Err(Errno::PERM)
}

/// Kills all descendants. First stops all descendants, so that no descendant starts a new process while others are
/// being killed.
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
