//! The files of a control group, through which a program reads and changes it.

use std::io;
use std::path::Path;

/// The control group of the daemon and the supervisors.
pub(super) const DAEMON: &str = "polity-daemon";

/// The parts of the kernel that enforce the limits.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// Lets the children of a control group have limits on memory and processes.
pub(super) fn enable(group: &Path) -> io::Result<()> {
    std::fs::write(group.join("cgroup.subtree_control"), "+memory +pids")
}

/// Returns whether the children of a control group can have limits on memory and processes.
pub(super) fn enabled(group: &Path) -> bool {
    lists_controllers(&group.join("cgroup.subtree_control"))
}

/// Returns whether a file such as `cgroup.controllers` names all [`CONTROLLERS`].
pub(super) fn lists_controllers(file: &Path) -> bool {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    CONTROLLERS.iter().all(|needed| text.split_whitespace().any(|name| name == *needed))
}

/// Returns the processes that are directly in a control group.
pub(super) fn processes(group: &Path) -> io::Result<Vec<i32>> {
    let text = std::fs::read_to_string(group.join("cgroup.procs"))?;
    Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
}

/// Makes a control group, unless it exists.
pub(super) fn make(group: &Path) -> io::Result<()> {
    match std::fs::create_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_found_by_their_whole_names() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("cgroup.controllers");
        assert!(!lists_controllers(&file), "without the file");
        for (text, expected) in
            [("cpu memory pids\n", true), ("memory\n", false), ("hugetlb memory.x pids\n", false)]
        {
            std::fs::write(&file, text).unwrap();
            assert_eq!(lists_controllers(&file), expected, "{text}");
        }
    }
}
