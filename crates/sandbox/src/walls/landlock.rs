//! Landlock, the part of the kernel that restricts which paths a process can open.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, PathFd,
    RestrictionStatus, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus,
    Scope,
};
use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::machine::Level;
use crate::plan::Access;
use crate::view::{Places, readable};

/// The version of the Landlock interface whose rights polity uses. On newer kernels, polity uses the same rights.
const NEWEST: ABI = ABI::V7;

/// A path and everything beneath it, and what a command may do there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rule {
    pub(crate) path: PathBuf,
    pub(crate) right: Right,
}

/// What a command may do with a path and everything beneath it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Right {
    /// Read and execute.
    Read,
    /// Read, execute and change.
    Write,
    /// Read and write devices.
    Device,
}

/// Devices that a command may open at the sandbox level `partial`. Terminals are not in the list, because they belong
/// to the host.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Decides which paths a command can open. The command cannot open any path for which there is no rule.
pub(crate) fn rules(places: &Places, host: &Host, level: Level) -> Vec<Rule> {
    let rule = |path: &Path, right| Rule { path: path.to_owned(), right };
    let workspace = match places.access {
        Access::ReadWrite => Right::Write,
        Access::ReadOnly => Right::Read,
    };
    let mut list = vec![rule(&places.workspace, workspace), rule(&places.home, Right::Write)];
    match level {
        Level::None => return Vec::new(),
        Level::Full => {
            // The mounts already decide which paths exist. Landlock is a second protection: the command can read every
            // path, but it can change a path only if a rule gives it the right `Write` or `Device`.
            list.push(rule(Path::new("/"), Right::Read));
            list.push(rule(Path::new("/tmp"), Right::Write));
            list.push(rule(Path::new("/dev/shm"), Right::Write));
            list.push(rule(Path::new("/dev"), Right::Device));
        }
        Level::Partial => {
            list.push(rule(&places.temporary, Right::Write));
            list.push(rule(&places.program, Right::Read));
            // Symbolic links such as `/bin` need no rule: they lead into directories that have a rule.
            let readable = readable(places, host)
                .into_iter()
                .filter(|path| !host.links.iter().any(|(at, _)| at == path));
            list.extend(readable.map(|path| Rule { path, right: Right::Read }));
            list.extend(["/etc/passwd", "/etc/group"].map(|path| rule(Path::new(path), Right::Read)));
            list.extend(DEVICES.map(|path| rule(Path::new(path), Right::Device)));
        }
    }
    list
}

/// Restricts this thread and all processes that it starts. Returns the version of the kernel's Landlock interface; 0
/// means that nothing was restricted.
pub(crate) fn restrict(rules: &[Rule]) -> Result<u32, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    for rule in rules {
        // A path that does not exist needs no rule.
        let Ok(handle) = PathFd::new(&rule.path) else { continue };
        let directory = rule.path.is_dir();
        ruleset = ruleset.add_rule(PathBeneath::new(handle, access(rule.right, directory)))?;
    }
    let RestrictionStatus { ruleset, landlock, .. } = ruleset.restrict_self()?;
    Ok(match (ruleset, landlock) {
        (RulesetStatus::NotEnforced, _) => 0,
        (_, LandlockStatus::Available { effective_abi, kernel_abi }) => {
            kernel_abi.unwrap_or(effective_abi as i32).unsigned_abs()
        }
        (_, LandlockStatus::NotEnabled | LandlockStatus::NotImplemented) => 0,
    })
}

fn access(right: Right, directory: bool) -> BitFlags<AccessFs> {
    let all = match right {
        Right::Read => AccessFs::from_read(NEWEST),
        // Making a device node needs a capability that no command has. Landlock refuses it as well.
        Right::Write => {
            AccessFs::from_all(NEWEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
        }
        Right::Device => {
            AccessFs::ReadFile
                | AccessFs::ReadDir
                | AccessFs::WriteFile
                | AccessFs::IoctlDev
                | AccessFs::Truncate
        }
    };
    if directory { all } else { all & AccessFs::from_file(NEWEST) }
}

#[cfg(test)]
mod tests;
