//! A bench for one command: a workspace, and around it directories with secrets that the tests recognize (canaries).
//! Also a `Heart`: a task that measures how long the async runtime stands still while commands run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use polity_sandbox::{
    Access, Ended, Enter, Error, Excerpt, Guarded, Level, Limits, Machine, Network, Plan, Running, probe,
    run, spawn,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The secret that no command may ever print.
pub(crate) const CANARY: &str = "canary-7f3a91c2-do-not-read";

/// The first version of Landlock that the level `partial` can use.
const LANDLOCK_LEAST: u32 = 3;

/// Maximum waiting time of a test. A test reaches this time only if something hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The guarded files of the workspace, with their content.
const GUARDED: [(&str, &str); 6] = [
    ("ws/.git/config", "[core]\n\tbare = false\n"),
    ("ws/.git/hooks/pre-commit", "#!/bin/sh\nexit 0\n"),
    ("ws/.vscode/settings.json", "{}\n"),
    ("ws/sub/.git/config", "[core]\n\tbare = false\n"),
    ("ws/sub/.git/hooks/pre-commit", "#!/bin/sh\nexit 0\n"),
    ("ws/packages/a/.vscode/settings.json", "{}\n"),
];

/// Guarded paths that do not exist. No command may make them.
const MISSING: [&str; 18] = [
    "ws/.git/config.worktree",
    "ws/.git/commondir",
    "ws/.idea",
    "ws/.mcp.json",
    "ws/.envrc",
    "ws/.husky",
    "ws/.gvimrc",
    "ws/.dir-locals.el",
    "ws/.hg/hgrc",
    "ws/.claude/settings.json",
    "ws/.gemini/settings.json",
    "ws/sub/.git/commondir",
    "ws/sub/.envrc",
    "ws/packages/.git/config",
    "ws/packages/.git/hooks",
    "ws/packages/a/.git",
    "ws/packages/a/.envrc",
    "ws/packages/a/.idea",
];

/// Maximum time for which the async runtime may stand still while a hostile command runs. Other tests use the same
/// processors, so the limit is far above the pauses of a normal daemon. But it is far below the pauses that an attack
/// would cause.
pub(crate) const PAUSE: Duration = Duration::from_secs(10);

/// Returns limits that a harmful command soon reaches.
pub(crate) fn small() -> Limits {
    Limits {
        timeout_ms: 20_000,
        memory_bytes: 200 << 20,
        processes: 300,
        output_bytes: 1 << 20,
        disk_bytes: 64 << 20,
        files: 1_000,
    }
}

pub(crate) struct Bench {
    root: TempDir,
    pub(crate) machine: Machine,
    pub(crate) plan: Plan,
    /// A number that no other bench has. Commands use it in `sleep`, so that the test can find their processes.
    pub(crate) mark: String,
}

/// Returns how to start this crate's own program with `enter`.
pub(crate) fn entrance() -> Enter {
    Enter { program: PathBuf::from(env!("CARGO_BIN_EXE_polity-sandbox-enter")), first_arguments: Vec::new() }
}

impl Bench {
    /// Makes a bench at this level. Returns `None` if the machine does not reach the level.
    pub(crate) async fn at(level: Level) -> Option<Self> {
        let machine = probe(&entrance()).await;
        // The level `partial` needs Landlock. A machine can reach the level `full` without Landlock.
        let is_missing = level == Level::Partial && machine.landlock < LANDLOCK_LEAST;
        if machine.level < level || is_missing {
            let findings = &machine.findings;
            tell(&format!(
                "the sandbox is not tested at the level {level}: this machine has {}: {findings:?}",
                machine.level
            ));
            return None;
        }
        tell(&format!("the sandbox is tested at the level {level}"));
        let root = TempDir::new().unwrap();
        let path = |name: &str| root.path().canonicalize().unwrap().join(name);
        for directory in [
            "data/home",
            "data/tmp",
            "data/out",
            "data/workspaces/other",
            "config",
            "person/.ssh",
            "ws/.git/hooks",
            "ws/.vscode",
            "ws/sub/.git/hooks",
            "ws/packages/a/.vscode",
        ] {
            std::fs::create_dir_all(path(directory)).unwrap();
        }
        for file in [
            "data/token",
            "data/polity.db",
            "data/workspaces/other/secret",
            "config/app.json",
            "person/.ssh/id_ed25519",
            "person/notes",
        ] {
            std::fs::write(path(file), CANARY).unwrap();
        }
        for (file, text) in GUARDED {
            std::fs::write(path(file), text).unwrap();
        }
        std::fs::write(path("ws/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(path("ws/sub/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(path("ws/hello.txt"), "hello\n").unwrap();
        let environment = BTreeMap::from(
            [
                ("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"),
                ("LANG", "C.UTF-8"),
                ("OPENAI_API_KEY", CANARY),
                ("SSH_AUTH_SOCK", CANARY),
                ("LD_PRELOAD", CANARY),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let mut environment = environment;
        environment.insert("HOME".to_owned(), path("person").to_string_lossy().into_owned());
        let plan = Plan {
            command: String::new(),
            workspace: path("ws"),
            access: Access::ReadWrite,
            guarded: guarded_in(&path("ws")),
            readable: Vec::new(),
            repository: Vec::new(),
            hidden: vec![path("data"), path("config")],
            home: path("data/home"),
            temporary: path("data/tmp"),
            network: Network::None,
            environment,
            limits: Limits { timeout_ms: 60_000, ..Limits::default() },
            together: None,
            output: path("data/out/output"),
            excerpt: Excerpt::default(),
        };
        static BENCHES: AtomicU64 = AtomicU64::new(0);
        let mark = format!("99{}{:04}", std::process::id(), BENCHES.fetch_add(1, Ordering::Relaxed));
        Some(Self { root, machine: machine.at_most(level), plan, mark })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    pub(crate) async fn try_run(&self, command: &str) -> Result<Ended, Error> {
        let plan = Plan { command: self.with_paths(command), ..self.plan.clone() };
        let (entrance, cancel) = (entrance(), CancellationToken::new());
        let run = run(plan, &self.machine, &entrance, &cancel, |_| {});
        tokio::time::timeout(PATIENCE, run).await.expect("the command must end")
    }

    pub(crate) async fn run(&self, command: &str) -> Ended {
        match self.try_run(command).await {
            Ok(ended) => ended,
            Err(error) => panic!("{command}: {error}"),
        }
    }

    pub(crate) async fn spawn(&self, command: &str, cancel: &CancellationToken) -> Running {
        let plan = Plan { command: self.with_paths(command), ..self.plan.clone() };
        spawn(plan, &self.machine, &entrance(), cancel, |_| {}).await.unwrap()
    }

    /// Replaces placeholders in a command, such as `@DATA`, by the paths of the bench and the number of this process.
    fn with_paths(&self, command: &str) -> String {
        command
            .replace("@DATA", &self.path("data").to_string_lossy())
            .replace("@CONFIG", &self.path("config").to_string_lossy())
            .replace("@PERSON", &self.path("person").to_string_lossy())
            .replace("@WS", &self.path("ws").to_string_lossy())
            .replace("@MARK", &self.mark)
            .replace("@PID", &std::process::id().to_string())
    }

    /// Checks that no secret was changed, and that guarded files are unchanged.
    pub(crate) fn check_canaries(&self, name: &str) {
        for file in [
            "data/token",
            "data/polity.db",
            "data/workspaces/other/secret",
            "config/app.json",
            "person/.ssh/id_ed25519",
            "person/notes",
        ] {
            assert_eq!(
                std::fs::read_to_string(self.path(file)).unwrap(),
                CANARY,
                "{name}: {file} was changed"
            );
        }
        let mode = |file: &str| {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::metadata(self.path(file)).unwrap().permissions().mode() & 0o7777
        };
        assert_eq!(mode("person/notes"), mode("data/token"), "{name}: a mode was changed");
        assert_eq!(mode("person"), mode("config"), "{name}: a mode was changed");
        assert_eq!(mode("person/notes") & 0o7133, 0, "{name}: a mode was changed");
        for (file, text) in GUARDED {
            assert_eq!(std::fs::read_to_string(self.path(file)).unwrap(), text, "{name}: {file} was changed");
        }
        for directory in ["ws/.git/hooks", "ws/sub/.git/hooks", "ws/packages/a/.vscode"] {
            let files: Vec<_> = std::fs::read_dir(self.path(directory)).unwrap().collect();
            assert_eq!(files.len(), 1, "{name}: a file was added to {directory}");
        }
        for missing in MISSING {
            assert!(self.path(missing).symlink_metadata().is_err(), "{name}: {missing} was made");
        }
    }
}

/// Returns what a command must not change in a workspace.
pub(crate) fn guarded_in(workspace: &Path) -> Guarded {
    let polity_files::Guarded { paths, directories, names } = polity_files::guarded(workspace).unwrap();
    Guarded { paths, directories, names }
}

/// Writes a line to standard error, once. A person sees the line even if the tests pass: cargo hides only what tests
/// print with macros.
pub(crate) fn tell(line: &str) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if TOLD.lock().unwrap().insert(line.to_owned()) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// Returns the whole output of a command as text.
pub(crate) fn text(ended: &Ended) -> String {
    String::from_utf8_lossy(&std::fs::read(&ended.output.file).unwrap()).into_owned()
}

/// Returns the processes of this machine whose command line contains a text.
pub(crate) fn processes_with(text: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(text))
        .collect()
}

/// A task that wakes regularly in the async runtime, and records its longest pause.
pub(crate) struct Heart {
    longest: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<()>,
}

impl Heart {
    pub(crate) fn start() -> Self {
        let longest = Arc::new(AtomicU64::new(0));
        let shared = Arc::clone(&longest);
        let task = tokio::spawn(async move {
            let mut last = Instant::now();
            loop {
                tokio::time::sleep(Duration::from_millis(10)).await;
                let pause = u64::try_from(last.elapsed().as_millis()).unwrap();
                shared.fetch_max(pause, Ordering::Relaxed);
                last = Instant::now();
            }
        });
        Self { longest, task }
    }

    pub(crate) fn longest_pause(&self) -> Duration {
        Duration::from_millis(self.longest.load(Ordering::Relaxed))
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns whether something exists at a path of the host, even a symbolic link that leads nowhere.
pub(crate) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
