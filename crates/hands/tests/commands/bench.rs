//! A data directory with the tools of the group `command`, and settings that a test can change.

use polity_hands::call::{
    Attempt, Caller, Consent, Content, Hosts, Invocation, Output, Place, Progress, Root, Source,
};
use polity_hands::command::{CommandEnded, CommandTools, Commands, Told};
use polity_hands::tool::{Reach, Tool, Toolbox};
use polity_sandbox::{Enter, Level, Limits, Machine, Settings, probe};
use polity_society::id::{AgentId, TaskId};
use polity_society::refusal::Refusal;
use polity_workspaces::Workspaces;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

/// Maximum waiting time of a test. A test waits this long only if something hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The levels that have a sandbox.
pub(crate) const SANDBOXES: [Level; 2] = [Level::Partial, Level::Full];

pub(crate) struct Bench {
    _home: Option<TempDir>,
    pub(crate) commands: Arc<Commands>,
    pub(crate) settings: Arc<Mutex<Settings>>,
    /// The workspace of all agents.
    pub(crate) root: Root,
    /// The ends of commands that the listener has got.
    pub(crate) told: Arc<Mutex<Vec<CommandEnded>>>,
    /// The value that the listener returns.
    pub(crate) answer: Arc<Mutex<Told>>,
    tools: CommandTools,
    calls: AtomicU64,
}

fn enter() -> Enter {
    Enter { program: PathBuf::from(env!("CARGO_BIN_EXE_polity-hands-enter")), first_arguments: Vec::new() }
}

async fn machine() -> &'static Machine {
    static MACHINE: OnceCell<Machine> = OnceCell::const_new();
    let enter = enter();
    MACHINE.get_or_init(|| async move { probe(&enter).await }).await
}

impl Bench {
    /// Makes a bench at a level. Returns `None` if the machine does not reach the level.
    pub(crate) async fn at(level: Level) -> Option<Self> {
        let home = TempDir::new().unwrap();
        let bench = Self::in_directory(home.path(), level).await?;
        Some(Self { _home: Some(home), ..bench })
    }

    /// Makes a bench in a data directory that outlives the bench.
    pub(crate) async fn in_directory(data: &Path, level: Level) -> Option<Self> {
        let machine = machine().await;
        if machine.level < level {
            tell(&format!(
                "commands at the level {level} are not tested: this machine has {}",
                machine.level
            ));
            return None;
        }
        tell(&format!("commands at the level {level} are tested"));
        let limits = Limits { timeout_ms: 60_000, ..Limits::default() };
        let settings = Arc::new(Mutex::new(Settings { limits, ..Settings::default() }));
        let source = Arc::clone(&settings);
        let data = data.canonicalize().unwrap();
        let commands = Commands::new(
            Arc::new(Workspaces::new(data.join("workspaces"))),
            enter(),
            data.join("commands"),
            vec![data.clone()],
            Arc::new(move || source.lock().unwrap().clone()),
        );
        let commands = Arc::new(commands.on(machine.at_most(level)));
        let (told, answer) = (Arc::<Mutex<Vec<_>>>::default(), Arc::new(Mutex::new(Told::Recorded)));
        let (heard, answers) = (Arc::clone(&told), Arc::clone(&answer));
        commands.listen(Arc::new(move |ended| {
            heard.lock().unwrap().push(ended);
            let answer = *answers.lock().unwrap();
            Box::pin(async move { answer })
        }));
        let tools = CommandTools::new(Arc::clone(&commands));
        let (root, calls) = (Root::Made, AtomicU64::new(0));
        Some(Self { _home: None, commands, settings, root, told, answer, tools, calls })
    }

    pub(crate) fn tools(&self) -> Vec<String> {
        self.tools.tools().iter().map(|tool| tool.name().to_owned()).collect()
    }

    /// Calls a tool, and returns everything that the tool returns to the runtime.
    pub(crate) async fn whole_output(
        &self,
        agent: &str,
        tool: &str,
        arguments: Value,
    ) -> Result<Output, Refusal> {
        self.try_run(self.root.clone(), agent, tool, arguments).await
    }

    /// Calls a tool as an agent that works in this directory. Returns the result with its files.
    pub(crate) async fn try_run(
        &self,
        root: Root,
        agent: &str,
        tool: &str,
        arguments: Value,
    ) -> Result<Output, Refusal> {
        let invocation = self.invocation(root, agent, arguments);
        tokio::time::timeout(PATIENCE, self.tool(tool).run(invocation)).await.expect("the call must end")
    }

    /// Returns what a tool prepares for a call. The runtime records it before the call runs.
    pub(crate) async fn prepare(&self, tool: &str, arguments: Value) -> Result<Value, Refusal> {
        let invocation = self.invocation(self.root.clone(), "a-1", arguments);
        self.tool(tool).prepare(&invocation).await
    }

    /// Returns the sources from which a call can bring content into the workspace.
    pub(crate) async fn brings(&self, tool: &str, arguments: Value) -> BTreeSet<Source> {
        let invocation = self.invocation(self.root.clone(), "a-1", arguments);
        self.tool(tool).brings(&invocation).await
    }

    /// Returns the command that the policy judges.
    pub(crate) fn judged(&self, arguments: &Value) -> String {
        match self.tool("bash").reach(arguments.as_object().unwrap()) {
            Reach::Command { command, .. } => command,
            other => panic!("{other:?}"),
        }
    }

    fn tool(&self, name: &str) -> Arc<dyn Tool> {
        self.tools.tools().into_iter().find(|tool| tool.name() == name).unwrap()
    }

    fn invocation(&self, root: Root, agent: &str, arguments: Value) -> Invocation {
        let Value::Object(arguments) = arguments else { panic!("{arguments}") };
        let caller = Caller {
            agent: AgentId::new(agent),
            task: task(),
            role: "r".to_owned(),
            place: Place { root, worktree: None },
        };
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        Invocation {
            caller,
            arguments,
            idempotency_key: format!("{}-{number}", std::process::id()),
            evidence: Value::Null,
            attempt: Attempt::First,
            cancel: CancellationToken::new(),
            progress: Progress::none(),
            hosts: Hosts::any(),
            consent: Consent::NotNeeded,
        }
    }

    pub(crate) async fn try_call_as(
        &self,
        agent: &str,
        tool: &str,
        arguments: Value,
    ) -> Result<Value, Refusal> {
        let output = self.whole_output(agent, tool, arguments).await?;
        let Content::Json(value) = output.content else { panic!("{output:?}") };
        Ok(value)
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        match self.try_call_as("a-1", tool, arguments.clone()).await {
            Ok(value) => value,
            Err(refusal) => panic!("{tool} {arguments}: {refusal:?}"),
        }
    }

    pub(crate) async fn bash(&self, command: &str) -> Value {
        self.call("bash", json!({"command": command})).await
    }

    /// Starts a command in the background, and returns its id.
    pub(crate) async fn start(&self, command: &str) -> String {
        let begun = self.call("bash", json!({"command": command, "background": true})).await;
        begun["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn output(&self, id: &str) -> Value {
        self.call("bash_output", json!({"id": id})).await
    }

    /// Waits until a background command has printed `text`.
    pub(crate) async fn printed(&self, id: &str, text: &str) {
        let mut all = String::new();
        until(async || {
            all.push_str(self.output(id).await["output"].as_str().unwrap());
            all.contains(text)
        })
        .await;
    }

    /// Waits until the listener was called `count` times.
    pub(crate) async fn ends(&self, count: usize) -> Vec<CommandEnded> {
        until(async || self.told.lock().unwrap().len() >= count).await;
        self.told.lock().unwrap().clone()
    }
}

/// Writes a line to standard error. If the same line comes again, it is not written again. A person sees the line even
/// if the tests pass, because cargo hides only what tests print with macros.
fn tell(line: &str) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if TOLD.lock().unwrap().insert(line.to_owned()) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// Returns the task to which all calls belong.
pub(crate) fn task() -> TaskId {
    TaskId::new("t-1")
}

/// Returns a number of seconds for `sleep`. No other test uses the same number, so a test can find its process by this
/// number.
pub(crate) fn mark() -> String {
    static MARKS: AtomicU64 = AtomicU64::new(0);
    format!("77{}{:03}", std::process::id(), MARKS.fetch_add(1, Ordering::Relaxed))
}

pub(crate) async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < PATIENCE, "it does not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the command lines of all processes of this machine whose command line contains `text`.
pub(crate) fn processes_with(text: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(text))
        .collect()
}
