//! Decides which directories a command may read and which it may change.

use crate::call::Access;
use polity_sandbox::Settings;
use polity_sandbox::{Excerpt, Guarded, Plan, Together};
use polity_society::id::TaskId;
use polity_workspaces::Opened;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The directories and files that matter for a command in addition to its workspace.
pub(super) struct Directories<'a> {
    pub(super) home: PathBuf,
    pub(super) temporary: PathBuf,
    /// The file that the output is written to.
    pub(super) output: PathBuf,
    /// Directories of polity that commands cannot see.
    pub(super) hidden: &'a [PathBuf],
}

/// Makes the plan by which the sandbox runs a command of a task. `opened` is the workspace of the agent, and `guarded`
/// are the protected paths in it.
pub(super) fn plan(
    command: String,
    task: &TaskId,
    opened: Opened,
    guarded: polity_files::Guarded,
    settings: Settings,
    own: Directories<'_>,
) -> Plan {
    let Opened { directory, access, git } = opened;
    let Settings { network, read, limits, task_limits, .. } = settings;
    let (inside, outside): (Vec<PathBuf>, Vec<PathBuf>) =
        git.into_iter().flat_map(|git| git.read_only).partition(|path| path.starts_with(&directory));
    let within = inside.iter().filter_map(|path| path.strip_prefix(&directory).ok().map(Path::to_owned));
    let polity_files::Guarded { paths, directories, names } = guarded;
    let paths = paths.into_iter().chain(within).collect();
    Plan {
        command,
        guarded: Guarded { paths, directories, names },
        workspace: directory,
        access: match access {
            Access::Write => polity_sandbox::Access::ReadWrite,
            Access::Read => polity_sandbox::Access::ReadOnly,
        },
        readable: read,
        repository: outside,
        hidden: own.hidden.to_vec(),
        home: own.home,
        temporary: own.temporary,
        network,
        environment: std::env::vars().collect::<BTreeMap<_, _>>(),
        limits,
        together: Some(Together {
            name: task.to_string(),
            memory_bytes: task_limits.memory_bytes,
            processes: task_limits.processes,
        }),
        output: own.output,
        excerpt: Excerpt::default(),
    }
}
