//! Writes the arguments of bubblewrap, the program that makes the namespaces of a command and mounts the files that
//! the command may see.

use std::ffi::OsString;
use std::path::Path;

use crate::hidden::Kind;
use crate::machine::OwnProc;
use crate::plan::Network;
use crate::view::Mount;

/// The user and group of the command inside the sandbox. Outside, the command has the user of the daemon.
///
/// The user inside is not 0, even if the daemon is root. Programs treat root differently (`tar` restores owners,
/// `npm` changes users), and the kernel gives a process with user 0 its capabilities back when the process executes a
/// file.
pub(crate) const USER: u32 = 1000;

/// Maximum size of `/dev/shm` in bytes. The kernel keeps the files of this directory in memory.
const SHARED_MEMORY: u64 = 256 << 20;

/// Returns the arguments of bubblewrap up to and including `--`.
pub(crate) fn arguments(
    mounts: &[Mount],
    proc: OwnProc,
    network: &Network,
    directory: &Path,
) -> Vec<OsString> {
    let mut list = List(Vec::new());
    // `--unshare-user` is needed because bubblewrap makes no user namespace by itself if it runs as root.
    list.words(&[
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
    ]);
    match network {
        Network::None | Network::Domains(_) => list.words(&["--unshare-net"]),
        Network::Full => {}
    }
    let user = USER.to_string();
    list.words(&["--uid", &user, "--gid", &user, "--hostname", "sandbox"]);
    // If bubblewrap runs as root, it keeps all capabilities unless `--cap-drop` is given.
    list.words(&["--cap-drop", "ALL", "--die-with-parent", "--new-session"]);
    // `/proc` is mounted read-only, because the files in `/proc/sys` belong to the host's root. If the daemon is
    // root, the command could otherwise write the name of a program into `/proc/sys/kernel/core_pattern`, and the
    // kernel would run this program as root outside the sandbox.
    match proc {
        OwnProc::Mounted => list.words(&["--proc", "/proc", "--remount-ro", "/proc"]),
        OwnProc::Absent => list.words(&["--dir", "/proc"]),
    }
    let shared_memory = SHARED_MEMORY.to_string();
    list.words(&["--dev", "/dev", "--size", &shared_memory, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]);
    for mount in mounts {
        match mount {
            Mount::Link { at, to } => list.paths("--symlink", &[to, at]),
            Mount::Read { from, at } => list.paths("--ro-bind", &[from, at]),
            Mount::Write { from, at } => list.paths("--bind", &[from, at]),
            Mount::Cover { at, kind: Kind::Directory } => list.paths("--tmpfs", &[at]),
            Mount::Cover { at, kind: Kind::File } => list.paths("--ro-bind", &[Path::new("/dev/null"), at]),
        }
    }
    // A cover is an empty directory over a path that the command must not see. Before bubblewrap mounts something
    // inside a cover, it creates the mount point in the cover. So covers become read-only here, after all mounts.
    for mount in mounts {
        if let Mount::Cover { at, kind: Kind::Directory } = mount {
            list.paths("--remount-ro", &[at]);
        }
    }
    list.words(&["--remount-ro", "/"]);
    list.paths("--chdir", &[directory]);
    list.words(&["--"]);
    list.0
}

struct List(Vec<OsString>);

impl List {
    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn paths(&mut self, option: &str, paths: &[&Path]) {
        self.0.push(option.into());
        self.0.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
    }
}

#[cfg(test)]
mod tests;
