//! Connects to an MCP server, lists its tools, and calls the tools that are given on the command line.
//!
//! ```text
//! try_server [--timeout MS] [--call TOOL ARGUMENTS EXPECTED]... --url URL
//! try_server [--timeout MS] [--call TOOL ARGUMENTS EXPECTED]... COMMAND [ARGUMENT]...
//! ```
//!
//! A call fails if its result does not contain `EXPECTED`. A result is shown as JSON, with the kinds of its files. With
//! `--kill` instead of `--call`, the processes of the server are killed when the call reports its first progress.

use polity_hands::call::{
    Attempt, Caller, Consent, Content, Hosts, Invocation, Output, Place, Progress, Root,
};
use polity_hands::table::Toolbox;
use polity_servers::{Bounds, Config, Http, Launch, Plain, Process, Sandbox, Servers, Standing};
use polity_society::id::{AgentId, TaskId};
use polity_society::tool_group::ServerName;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

type Failure = Box<dyn Error>;

/// What happens to the server during a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Lives,
    /// The server is killed when the call reports its first progress.
    Dies,
}

struct Call {
    fate: Fate,
    tool: String,
    arguments: Value,
    expected: String,
}

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let (calls, config) = read(std::env::args().skip(1))?;
        let servers = Servers::new(Arc::new(Plain), Bounds::default());
        let tried = try_out(&servers, calls, config).await;
        servers.shut_down().await;
        tried
    })
}

fn read(mut arguments: impl Iterator<Item = String>) -> Result<(Vec<Call>, Config), Failure> {
    let mut calls = Vec::new();
    let mut timeout = Duration::from_secs(60);
    loop {
        let mut next = || arguments.next().ok_or("an argument is missing");
        match next()?.as_str() {
            "--timeout" => timeout = Duration::from_millis(next()?.parse()?),
            option @ ("--call" | "--kill") => {
                let fate = if option == "--kill" { Fate::Dies } else { Fate::Lives };
                let (tool, arguments, expected) = (next()?, next()?, next()?);
                calls.push(Call { fate, tool, arguments: serde_json::from_str(&arguments)?, expected });
            }
            "--url" => {
                let http = Http { url: next()?.parse()?, headers: BTreeMap::new() };
                return Ok((calls, Config { launch: Launch::Http(http), timeout }));
            }
            command => {
                let args = arguments.collect();
                let process = Process {
                    command: command.to_owned(),
                    args,
                    env: BTreeMap::new(),
                    cwd: None,
                    sandbox: Sandbox::Off,
                };
                return Ok((calls, Config { launch: Launch::Process(process), timeout }));
            }
        }
    }
}

async fn try_out(servers: &Servers, calls: Vec<Call>, config: Config) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    let name = ServerName::new("tried").ok_or("not a name")?;
    servers.set(BTreeMap::from([(name, config)]));
    let standing = loop {
        match servers.state().pop().map(|state| state.standing) {
            None | Some(Standing::Starting) => tokio::time::sleep(Duration::from_millis(20)).await,
            Some(standing) => break standing,
        }
    };
    let tools = servers.tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
    writeln!(out, "  {standing:?}: {}", names.join(", "))?;
    if !matches!(standing, Standing::Connected { .. }) {
        return Err("not connected".into());
    }
    for Call { fate, tool, arguments, expected } in calls {
        let full = format!("tried__{tool}");
        let found = tools.iter().find(|tool| tool.name() == full).ok_or_else(|| format!("no tool {tool}"))?;
        let output = found.run(invocation(arguments, fate)).await;
        let shown = match &output {
            Ok(output) => shown(output),
            Err(refusal) => format!("{refusal:?}"),
        };
        let head: String = shown.chars().take(160).collect();
        writeln!(out, "  {tool}: {head}")?;
        if !shown.contains(&expected) {
            return Err(format!("{tool}: {expected:?} is not in {shown}").into());
        }
    }
    Ok(())
}

fn shown(output: &Output) -> String {
    let content = match &output.content {
        Content::Text { text, .. } => json!(text),
        Content::Json(value) => value.clone(),
    };
    let files: Vec<String> = output
        .files
        .iter()
        .map(|file| format!("{} ({} bytes)", file.declared_mime.as_deref().unwrap_or("?"), file.bytes.len()))
        .collect();
    format!("{content} {}", files.join(", "))
}

/// Kills all processes that this program has started.
fn kill_children() {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    for child in children.collect::<String>().split_whitespace() {
        // If the process has ended already, there is nothing to kill.
        let _ = std::process::Command::new("kill").args(["-9", child]).status();
    }
}

fn invocation(arguments: Value, fate: Fate) -> Invocation {
    Invocation {
        caller: Caller {
            agent: AgentId::new("agent_1"),
            task: TaskId::new("task_1"),
            role: "Tester".to_owned(),
            place: Place { root: Root::Made, worktree: None },
        },
        arguments: arguments.as_object().cloned().unwrap_or_default(),
        idempotency_key: "1".to_owned(),
        evidence: Value::Null,
        attempt: Attempt::First,
        cancel: CancellationToken::new(),
        progress: match fate {
            Fate::Lives => Progress::none(),
            Fate::Dies => Progress::new(|_| kill_children()),
        },
        hosts: Hosts::any(),
        consent: Consent::NotNeeded,
    }
}
