//! Decides what a command sees of the file system, from a resolved plan and facts about the host, without any IO.
//!
//! If the plan does not grant a path, no list of this module contains the path, so the path does not exist inside the
//! sandbox. A hidden path is one that no command may see, such as the data directory, and is never granted. If a
//! granted directory contains a hidden path, the sandbox level `full` covers the path with an empty directory or file,
//! and the level `partial` refuses the plan.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::hidden::{Hidden, Kind};

use crate::host::Host;
use crate::machine::Level;
use crate::plan::Access;

/// The path that the program with `enter` has inside the sandbox, at the sandbox level `full`.
pub(crate) const PROGRAM_INSIDE: &str = "/run/polity/enter";

/// The path of the proxy's socket inside the sandbox.
pub(crate) const PROXY_INSIDE: &str = "/run/polity/proxy";

/// The paths of a plan in canonical form, without paths that do not exist on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) workspace: PathBuf,
    pub(crate) access: Access,
    pub(crate) home: PathBuf,
    pub(crate) temporary: PathBuf,
    /// Paths outside the workspace that the plan lets the command read, if they exist.
    pub(crate) readable: Vec<PathBuf>,
    /// Paths of the repository that exist.
    pub(crate) repository: Vec<PathBuf>,
    /// Hidden paths that exist.
    pub(crate) hidden: Vec<Hidden>,
    /// The absolute paths of the guarded paths that can be mounted read-only. Such a path exists, and no part of it is
    /// a symbolic link.
    pub(crate) pinned: Vec<PathBuf>,
    /// The program that contains `enter`.
    pub(crate) program: PathBuf,
    /// The files that are mounted as `/etc/passwd` and `/etc/group`.
    pub(crate) names: Option<Names>,
    /// The socket of the proxy on the host.
    pub(crate) proxy: Option<PathBuf>,
}

/// Files with the names of users and groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) passwd: PathBuf,
    pub(crate) group: PathBuf,
}

/// One step of filling the sandbox's root directory. The root directory is empty at first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mount {
    /// A symbolic link.
    Link { at: PathBuf, to: PathBuf },
    /// A path of the host that the command can only read.
    Read { from: PathBuf, at: PathBuf },
    /// A path of the host that the command can change.
    Write { from: PathBuf, at: PathBuf },
    /// An empty directory or file that covers a hidden path.
    Cover { at: PathBuf, kind: Kind },
}

impl Mount {
    /// Returns the path inside the sandbox.
    pub(crate) fn at(&self) -> &Path {
        match self {
            Self::Link { at, .. }
            | Self::Read { at, .. }
            | Self::Write { at, .. }
            | Self::Cover { at, .. } => at,
        }
    }
}

/// Why a plan cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A directory that the plan grants is inside a hidden directory.
    #[error("{} is inside the hidden directory {}; choose another directory", .path.display(), .hidden.display())]
    Hidden {
        /// The directory of the plan.
        path: PathBuf,
        /// The hidden path.
        hidden: PathBuf,
    },
    /// A directory that the plan grants contains a hidden path, and this machine cannot cover the hidden path.
    #[error(
        "{} contains {}, which commands must not see, and only the sandbox level \"full\" can hide it; choose a directory that does not contain it, or raise the level (polity doctor)",
        .path.display(),
        .hidden.display()
    )]
    CannotCover {
        /// The directory of the plan.
        path: PathBuf,
        /// The hidden path.
        hidden: PathBuf,
    },
    /// The plan grants a directory such as `/proc`, which cannot be granted as a whole.
    #[error("{} cannot be given to commands as a whole; name the directories in it that they need", .0.display())]
    TooWide(PathBuf),
}

/// Directories that cannot be granted, because they belong to the kernel or to the sandbox itself.
const NEVER: [&str; 5] = ["/", "/proc", "/sys", "/dev", "/run"];

/// Checks the paths of a plan. Paths that pass the check can be mounted, or allowed by Landlock, without showing a
/// hidden path.
pub(crate) fn check(places: &Places, level: Level) -> Result<(), Refused> {
    let own = [&places.workspace, &places.home, &places.temporary];
    let own: Vec<&PathBuf> = own.into_iter().chain(&places.repository).collect();
    for path in own.iter().copied().chain(&places.readable) {
        let beneath = ["/proc", "/sys", "/dev"].iter().any(|never| path.starts_with(never));
        if beneath || NEVER.iter().any(|never| path == Path::new(never)) {
            return Err(Refused::TooWide(path.clone()));
        }
        for Hidden { path: hidden, .. } in &places.hidden {
            // The workspace of a task, its home and its repository may be inside the data directory, which is hidden.
            // But none of them may be the data directory itself.
            let is_own = own.contains(&path) && path != hidden;
            if path.starts_with(hidden) && !is_own {
                return Err(Refused::Hidden { path: path.clone(), hidden: hidden.clone() });
            }
            if hidden.starts_with(path) && level < Level::Full && level > Level::None {
                return Err(Refused::CannotCover { path: path.clone(), hidden: hidden.clone() });
            }
        }
    }
    Ok(())
}

/// Returns the mounts of the sandbox level `full`, outer directories before inner ones.
pub(crate) fn mounts(places: &Places, host: &Host) -> Vec<Mount> {
    let read = |path: &PathBuf| Mount::Read { from: path.clone(), at: path.clone() };
    let write = |path: &PathBuf| Mount::Write { from: path.clone(), at: path.clone() };
    let mut list: Vec<Mount> = Vec::new();
    list.extend(host.links.iter().map(|(at, to)| Mount::Link { at: at.clone(), to: to.clone() }));
    let is_hidden = |path: &PathBuf| places.hidden.iter().any(|hidden| path.starts_with(&hidden.path));
    list.extend(host.system.iter().filter(|path| !is_hidden(path)).map(read));
    list.extend(host.toolchains.iter().filter(|path| is_open(path, places)).map(read));
    list.extend(places.readable.iter().map(read));
    list.push(Mount::Write { from: places.temporary.clone(), at: PathBuf::from("/tmp") });
    list.push(Mount::Link { at: PathBuf::from("/var/tmp"), to: PathBuf::from("/tmp") });
    list.extend(
        places.hidden.iter().map(|hidden| Mount::Cover { at: hidden.path.clone(), kind: hidden.kind }),
    );
    list.extend(places.repository.iter().map(read));
    list.push(write(&places.home));
    list.push(match places.access {
        Access::ReadWrite => write(&places.workspace),
        Access::ReadOnly => read(&places.workspace),
    });
    if let Some(names) = &places.names {
        list.push(Mount::Read { from: names.passwd.clone(), at: PathBuf::from("/etc/passwd") });
        list.push(Mount::Read { from: names.group.clone(), at: PathBuf::from("/etc/group") });
    }
    list.push(Mount::Read { from: places.program.clone(), at: PathBuf::from(PROGRAM_INSIDE) });
    if let Some(proxy) = &places.proxy {
        list.push(Mount::Read { from: proxy.clone(), at: PathBuf::from(PROXY_INSIDE) });
    }
    if places.access == Access::ReadWrite {
        list.extend(pins(places));
    }
    // The sort is stable. So of two mounts at the same path, the mount that was added later stays later, and takes
    // effect.
    list.sort_by_key(|mount| mount.at().components().count());
    // Make covers only over paths that the command could see. For a cover over any other path, bubblewrap would create
    // the path, and so reveal that it exists.
    let visible: Vec<PathBuf> = list
        .iter()
        .filter(|mount| matches!(mount, Mount::Read { .. } | Mount::Write { .. }))
        .map(|mount| mount.at().to_owned())
        .collect();
    list.retain(|mount| match mount {
        Mount::Cover { at, .. } => visible.iter().any(|path| at.starts_with(path)),
        Mount::Link { .. } | Mount::Read { .. } | Mount::Write { .. } => true,
    });
    list
}

/// Returns the mounts that protect guarded paths from changes.
///
/// A read-only mount on `.git/config` alone is not enough: the command could rename `.git` together with the mount,
/// and make a new `.git`. So each directory between the workspace and the path is mounted on itself, because a mount
/// point cannot be renamed or removed.
///
/// A path inside another guarded path needs no mount of its own. If it got one, the directories between the two paths
/// would be mounted too, and a command could change them.
fn pins(places: &Places) -> Vec<Mount> {
    let all: BTreeSet<&Path> = places.pinned.iter().map(PathBuf::as_path).collect();
    let is_outermost = |path: &&Path| !path.ancestors().skip(1).any(|above| all.contains(above));
    let outermost: Vec<&Path> = all.iter().copied().filter(is_outermost).collect();
    let mut list: Vec<Mount> = Vec::new();
    for path in &outermost {
        let between = path.ancestors().skip(1).take_while(|parent| *parent != places.workspace);
        for parent in between.filter(|parent| parent.starts_with(&places.workspace)) {
            let mount = Mount::Write { from: parent.to_owned(), at: parent.to_owned() };
            if !list.contains(&mount) {
                list.push(mount);
            }
        }
    }
    list.extend(outermost.into_iter().map(|path| Mount::Read { from: path.to_owned(), at: path.to_owned() }));
    list
}

/// Returns whether a toolchain can be shown: it is not in a hidden directory, and contains no hidden path.
fn is_open(path: &Path, places: &Places) -> bool {
    !places.hidden.iter().any(|hidden| path.starts_with(&hidden.path) || hidden.path.starts_with(path))
}

/// Returns the directories that a command can read. The environment uses them to choose `PATH` and other variables.
pub(crate) fn readable(places: &Places, host: &Host) -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = host.links.iter().map(|(at, _)| at.clone()).collect();
    list.extend(host.system.iter().cloned());
    list.extend(host.toolchains.iter().filter(|path| is_open(path, places)).cloned());
    list.extend(places.readable.iter().chain(&places.repository).cloned());
    list
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
