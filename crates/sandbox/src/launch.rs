//! Turns a plan into a launch, which describes to the supervisor what to start. This module looks up the paths of the
//! plan on the host; `view` and `walls` then decide without IO.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::ended::{Error, LONGEST_COMMAND};
use crate::environment::{self, Directories, environment};
use crate::hidden::{Hidden, Kind};
use crate::host::Host;
use crate::limits::{Limits, threads};
use crate::machine::{Level, Machine};
use crate::message::{Guard, Inside, Launch, Place, ProcessLimits, WayOut};
use crate::parts::INSIDE;
use crate::plan::{Access, Enter, Network, Plan};
use crate::supervise::leash::Leash;
use crate::view::{self, Names, Places};
use crate::{bubblewrap, forward, groups, walls};

/// The first kernel version that counts a user's processes in each user namespace separately.
const COUNTS_PER_NAMESPACE: (u32, u32) = (5, 14);

/// The temporary files of one command, in the directory of its output file. These files are removed when the command
/// has ended.
pub(crate) struct Scratch {
    passwd: PathBuf,
    group: PathBuf,
    /// The path of the proxy's socket. The socket exists only if the plan has a list of domains.
    pub(crate) proxy: PathBuf,
}

impl Scratch {
    /// Makes the temporary files in the directory of the output file.
    pub(crate) async fn new(output: &Path) -> Result<Self, Error> {
        let beside = |ending: &str| {
            let mut name = output.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        let scratch = Self { passwd: beside(".passwd"), group: beside(".group"), proxy: beside(".proxy") };
        // A daemon that was killed may have left a socket at this path.
        let _ = tokio::fs::remove_file(&scratch.proxy).await;
        let user = bubblewrap::USER;
        let passwd = format!(
            "root:x:0:0:root:/root:/bin/sh\nagent:x:{user}:{user}:agent:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
        );
        let group = format!("root:x:0:\nagent:x:{user}:\nnogroup:x:65534:\n");
        for (path, text) in [(&scratch.passwd, passwd), (&scratch.group, group)] {
            tokio::fs::write(path, text)
                .await
                .map_err(|source| Error::Path { path: path.clone(), source })?;
        }
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for path in [&self.passwd, &self.group, &self.proxy] {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Turns a plan into what the supervisor needs. Fails if the plan asks for something that cannot be granted.
pub(crate) async fn launch(
    plan: &Plan,
    machine: &Machine,
    enter: &Enter,
    scratch: &Scratch,
) -> Result<Launch, Error> {
    if plan.command.len() > LONGEST_COMMAND {
        return Err(Error::CommandTooLong(plan.command.len()));
    }
    if plan.command.contains('\0') {
        return Err(Error::ZeroByte);
    }
    let level = machine.level;
    if matches!(plan.network, Network::Domains(_)) && level != Level::Full {
        return Err(Error::DomainsNeedFull);
    }
    let (plan, enter, machine) = (plan.clone(), enter.clone(), machine.clone());
    let proxy = matches!(plan.network, Network::Domains(_)).then(|| scratch.proxy.clone());
    let names = Names { passwd: scratch.passwd.clone(), group: scratch.group.clone() };
    tokio::task::spawn_blocking(move || decide(&plan, &machine, &enter, names, proxy))
        .await
        .map_err(|error| Error::Sandbox { reason: error.to_string() })?
}

fn decide(
    plan: &Plan,
    machine: &Machine,
    enter: &Enter,
    names: Names,
    proxy: Option<PathBuf>,
) -> Result<Launch, Error> {
    let level = machine.level;
    let (places, unpinned) = look_up(plan, enter, names, level)?;
    let places = Places { proxy, ..places };
    view::check(&places, level)?;
    let host = Host::look(|name| plan.environment.get(name).map(PathBuf::from));
    let host = if level == Level::Partial { host.without(&places.hidden) } else { host };
    let temporary = if level == Level::Full { Path::new("/tmp") } else { &places.temporary };
    let visible = view::readable(&places, &host);
    let directories = Directories { home: &places.home, temporary, visible: &visible };
    let mut environment: BTreeMap<String, String> = environment(&plan.environment, &directories);
    let way_out = if places.proxy.is_some() { WayOut::Proxy } else { WayOut::None };
    if way_out == WayOut::Proxy {
        environment.extend(environment::proxy(forward::PORT));
    }

    let inside_arguments = enter.first_arguments.iter().cloned().chain([INSIDE.to_owned()]);
    let (program, arguments) = match (level, &machine.bubblewrap) {
        (Level::Full, Some(bubblewrap)) => {
            let mounts = view::mounts(&places, &host);
            let options = bubblewrap::arguments(&mounts, machine.proc, &plan.network, &places.workspace);
            let options = options.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
            let arguments = options
                .into_iter()
                .chain([view::PROGRAM_INSIDE.to_owned()])
                .chain(inside_arguments)
                .collect();
            (bubblewrap.clone(), arguments)
        }
        (Level::Full | Level::Partial | Level::None, _) => {
            (enter.program.clone(), inside_arguments.collect())
        }
    };
    let place = machine.delegated.as_ref().and_then(|delegated| match groups::prepare(delegated) {
        Ok(()) => Some(Place { delegated: delegated.clone(), together: plan.together.clone() }),
        Err(error) => {
            tracing::warn!(%error, "the control group cannot be used, so samples alone limit the command");
            None
        }
    });
    let guard = match plan.access {
        Access::ReadWrite => Some(Guard {
            workspace: places.workspace.clone(),
            paths: unpinned,
            directories: plan.guarded.directories.clone(),
            names: plan.guarded.names.clone(),
        }),
        Access::ReadOnly => None,
    };
    let inside = Inside {
        level,
        command: plan.command.clone(),
        directory: places.workspace.clone(),
        limits: process_limits(&plan.limits, machine),
        landlock: walls::landlock::rules(&places, &host, level),
        wall: walls::wall(machine, &plan.network),
        way_out,
    };
    let growing = vec![places.workspace, places.home, places.temporary];
    Ok(Launch {
        program,
        arguments,
        environment,
        limits: plan.limits.clone(),
        growing,
        place,
        leash: Leash::of(machine),
        guard,
        inside,
    })
}

fn text(text: OsString) -> Result<String, Error> {
    text.into_string().map_err(|text| Error::NotText(PathBuf::from(text)))
}

/// Returns the limits that the kernel enforces on each process. They stop a single process that would use too much
/// between two samples of the supervisor.
fn process_limits(limits: &Limits, machine: &Machine) -> ProcessLimits {
    let counts = machine.level == Level::Full && machine.kernel >= COUNTS_PER_NAMESPACE;
    ProcessLimits {
        memory_bytes: limits.memory_bytes,
        file_bytes: limits.disk_bytes,
        processes: counts.then(|| threads(limits.processes)),
    }
}

/// Resolves the paths of a plan. Also returns the guarded paths that cannot be mounted read-only.
fn look_up(plan: &Plan, enter: &Enter, names: Names, level: Level) -> Result<(Places, Vec<PathBuf>), Error> {
    let canonical =
        |path: &Path| path.canonicalize().map_err(|source| Error::Path { path: path.to_owned(), source });
    let workspace = canonical(&plan.workspace)?;
    let home = canonical(&plan.home)?;
    let temporary = canonical(&plan.temporary)?;
    let program = canonical(&enter.program)?;
    for path in [&workspace, &home, &temporary, &program] {
        if path.to_str().is_none() {
            return Err(Error::NotText(path.clone()));
        }
    }
    let hidden = plan
        .hidden
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .map(|path| Hidden { kind: if path.is_dir() { Kind::Directory } else { Kind::File }, path })
        .collect();
    let existing =
        |paths: &[PathBuf]| paths.iter().filter_map(|path| path.canonicalize().ok()).collect::<Vec<_>>();
    let (readable, repository) = (existing(&plan.readable), existing(&plan.repository));
    let mut pinned = Vec::new();
    let mut unpinned = Vec::new();
    for path in &plan.guarded.paths {
        let whole = workspace.join(path);
        // If a part of the path is a symbolic link, a read-only mount of its target does not help: the command could
        // replace the link.
        match whole.canonicalize() {
            Ok(canonical) if canonical == whole && level == Level::Full => pinned.push(whole),
            Ok(_) | Err(_) => unpinned.push(path.clone()),
        }
    }
    let places = Places {
        access: plan.access,
        workspace,
        home,
        temporary,
        readable,
        repository,
        hidden,
        pinned,
        program,
        names: Some(names),
        proxy: None,
    };
    Ok((places, unpinned))
}
