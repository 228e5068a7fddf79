//! polity as the subject: a daemon in a directory of its own, whose only service is the scripted model.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::json;
use tempfile::TempDir;

use crate::http::Connection;

/// A daemon. Dropping this value kills it.
pub(crate) struct Subject {
    child: Child,
    /// The directory in which the daemon runs; removed with this value.
    _home: TempDir,
    /// Time from the start of the process to the line `ready`.
    pub(crate) ready_after: Duration,
    address: String,
    headers: String,
}

/// The part of a daemon's answer to a prompt that the bench needs.
#[derive(Deserialize)]
struct Posted {
    task: String,
}

impl Subject {
    /// Starts a daemon on an empty directory.
    pub(crate) fn start(polity: &Path, model: &str) -> Result<Self> {
        let home = TempDir::with_prefix("polity-bench-")?;
        let config = home.path().join("config");
        std::fs::create_dir(&config)?;
        let service = json!({
            "id": "bench", "baseURL": format!("http://{model}/v1"), "model": "bench",
            "capabilities": {"input": ["text"], "output": ["text", "tool_calling"]},
        });
        std::fs::write(config.join("llmservices.json"), json!({"services": [service]}).to_string())?;
        // Raise or remove the limits that the scenarios would otherwise reach.
        let limits = json!({
            "maxModelCallsPerTask": null, "maxTokensPerTask": null, "maxAgentsPerTask": 10_000, "maxChildren": 10_000,
        });
        std::fs::write(
            config.join("app.json"),
            json!({"discover": false, "language": "en", "limits": limits}).to_string(),
        )?;
        let mut command = Command::new(polity);
        command.args(["serve", "--config", "config", "--data", "data", "--listen", "127.0.0.1:0"]);
        command.current_dir(home.path()).env_clear().env("HOME", home.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let begun = Instant::now();
        let mut child = command.spawn().with_context(|| format!("failed to start {}", polity.display()))?;
        let mut stderr = BufReader::new(child.stderr.take().context("no standard error")?);
        let (mut line, mut said) = (String::new(), String::new());
        let (ready_after, address) = loop {
            line.clear();
            if stderr.read_line(&mut line)? == 0 {
                bail!("polity ended before it was ready: {said}");
            }
            if let Some((_, address)) = line.split_once("ready: http://") {
                break (begun.elapsed(), address.trim().trim_end_matches('/').to_owned());
            }
            said.push_str(&line);
        };
        // Read everything that the daemon prints from now on. Otherwise the pipe would fill up and block the daemon.
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                use std::io::Write as _;
                let _ = writeln!(std::io::stderr(), "polity: {line}");
            }
        });
        let token = std::fs::read_to_string(home.path().join("data/token"))?;
        let headers = format!("authorization: Bearer {}\r\ncontent-type: application/json\r\n", token.trim());
        Ok(Self { child, _home: home, ready_after, address, headers })
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn connect(&self) -> Result<Client> {
        Ok(Client { connection: Connection::open(&self.address)?, headers: self.headers.clone() })
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // Ignore errors: the process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection to a daemon.
pub(crate) struct Client {
    pub(crate) connection: Connection,
    pub(crate) headers: String,
}

impl Client {
    /// Posts a prompt to root, and returns the id of its task. Without `task`, the prompt begins a new task.
    pub(crate) fn post(&mut self, text: &str, task: Option<&str>) -> Result<String> {
        let mut message = json!({"text": text});
        if let Some(task) = task {
            message["task"] = json!(task);
        }
        let body = message.to_string();
        let answer = self.connection.send("POST /api/messages", &self.headers, body.as_bytes())?;
        let (status, body) = answer.read()?;
        if status != 201 {
            bail!("polity answered {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(serde_json::from_slice::<Posted>(&body)?.task)
    }
}
