//! Finds the control group that the system has delegated to the daemon.

use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::files::{DAEMON, lists_controllers, processes};
use crate::tree;

/// Why the daemon cannot use control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The system has no control groups of version 2, or they do not limit memory and processes here.
    Controllers,
    /// The daemon may not change its control group.
    Rights,
    /// Other programs are in the control group of the daemon.
    Shared,
}

/// Returns the control group that the system has delegated to this process. Changes nothing.
pub(crate) fn find() -> Result<PathBuf, Missing> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let own = directory(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"));
    let delegated = base(own.ok_or(Missing::Controllers)?);
    if !lists_controllers(&delegated.join("cgroup.controllers")) {
        return Err(Missing::Controllers);
    }
    let may_write = |path: &Path| rustix::fs::access(path, Access::WRITE_OK).is_ok();
    let files = ["cgroup.procs", "cgroup.subtree_control"];
    if !may_write(&delegated) || !files.iter().all(|name| may_write(&delegated.join(name))) {
        return Err(Missing::Rights);
    }
    let this = rustix::process::getpid();
    let mut ours = tree::descendants(this, usize::MAX);
    ours.push(this.as_raw_nonzero().get());
    let all = processes(&delegated).map_err(|_| Missing::Rights)?;
    if all.iter().all(|process| ours.contains(process)) { Ok(delegated) } else { Err(Missing::Shared) }
}

/// Returns the directory of a process's control group, given the texts of `/proc/self/cgroup` and
/// `/proc/self/mountinfo`.
fn directory(groups: &str, mounts: &str) -> Option<PathBuf> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        // The fields are described in proc(5). The type of the file system comes after the separator.
        let (fields, rest) = line.split_once(" - ")?;
        let mut fields = fields.split(' ').skip(3);
        let (root, mounted_at) = (fields.next()?, fields.next()?);
        let inner = Path::new(group).strip_prefix(root).ok()?;
        // The kernel writes an unusual character in a path as an escape sequence, such as `\040` for a space. Ignore
        // such a path, because no system mounts control groups there.
        let is_plain = !mounted_at.contains('\\') && !group.contains("..");
        (rest.split(' ').next() == Some("cgroup2") && is_plain).then(|| Path::new(mounted_at).join(inner))
    })
}

/// Returns the delegated control group, given the control group of the daemon. They differ after the daemon has moved
/// itself.
fn base(own: PathBuf) -> PathBuf {
    match own.parent() {
        Some(parent) if own.ends_with(DAEMON) => parent.to_owned(),
        _ => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "24 1 0:22 / /proc rw,relatime shared:5 - proc proc rw\n\
        30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_directory_of_the_own_control_group_is_found() {
        let check = |groups: &str, mounts: &str, expected: Option<&str>| {
            assert_eq!(directory(groups, mounts), expected.map(PathBuf::from), "{groups}");
        };
        check("0::/user.slice/a.scope\n", MOUNTS, Some("/sys/fs/cgroup/user.slice/a.scope"));
        check("4:memory:/x\n0::/\n", MOUNTS, Some("/sys/fs/cgroup/"));
        check("4:memory:/x\n", MOUNTS, None);
        check("0::/a\n", "24 1 0:22 / /proc rw - proc proc rw\n", None);
        // A container may mount only its own part of the tree.
        let part = "30 24 0:26 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        check("0::/docker/1/inner\n", part, Some("/sys/fs/cgroup/inner"));
        check("0::/other\n", part, None);
        // The control group is outside the namespace of this process.
        check("0::/../other\n", MOUNTS, None);
    }

    #[test]
    fn a_daemon_that_has_moved_itself_keeps_its_delegated_control_group() {
        assert_eq!(base(PathBuf::from("/sys/fs/cgroup/a/polity-daemon")), Path::new("/sys/fs/cgroup/a"));
        assert_eq!(base(PathBuf::from("/sys/fs/cgroup/a")), Path::new("/sys/fs/cgroup/a"));
    }
}
