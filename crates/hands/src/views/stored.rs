//! Stores the views of one task in a file. A view is the hash of the content that an agent last saw in a workspace
//! file. Each line is one view in JSON. If an agent sees the same content of a workspace file again, no further line is
//! written.

use crate::call::Caller;
use polity_files::{ContentHash, WorkspacePath};
use polity_society::id::AgentId;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

/// The file with the views of a task cannot be read, written or removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} the file {file}, which says what agents have viewed")]
pub struct ViewsError {
    /// The verb for the message: `read`, `write` or `remove`.
    pub operation: &'static str,
    /// The file with the views of the task.
    pub file: PathBuf,
    /// The error of the operating system.
    pub source: io::Error,
}

/// Identifies a view: the agent that saw a file, and the file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Key {
    agent: AgentId,
    /// If the file is in the worktree of an agent, this is that agent. `None` if the file is in the workspace that the
    /// agents of the task share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    worktree: Option<AgentId>,
    path: String,
}

impl Key {
    pub(super) fn new(caller: &Caller, path: &WorkspacePath) -> Self {
        Self { agent: caller.agent.clone(), worktree: caller.place.worktree.clone(), path: path.to_string() }
    }
}

/// A line of the stored file.
#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    key: Key,
    hash: ContentHash,
}

/// Whether the stored file was read, and how it ends.
#[derive(Debug, PartialEq, Eq)]
enum State {
    NotRead,
    /// The file ends with a complete line, or is empty.
    Whole,
    /// The last line is incomplete, so the next line must begin with a line break.
    CutOff,
}

/// The views of one task, read from the file when they are first needed.
#[derive(Debug)]
pub(super) struct Stored {
    file: PathBuf,
    state: State,
    views: HashMap<Key, ContentHash>,
}

impl Stored {
    pub(super) fn new(file: PathBuf) -> Self {
        Self { file, state: State::NotRead, views: HashMap::new() }
    }

    /// Reads the file, unless it was read before.
    pub(super) fn load(&mut self) -> Result<(), ViewsError> {
        if self.state != State::NotRead {
            return Ok(());
        }
        let content = match fs::read(&self.file) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(self.error("read", error)),
        };
        for line in content.split(|byte| *byte == b'\n') {
            // Skips a line that a crash has cut off or that is damaged.
            if let Ok(Line { key, hash }) = serde_json::from_slice(line) {
                self.views.insert(key, hash);
            }
        }
        let is_whole = content.last().is_none_or(|byte| *byte == b'\n');
        self.state = if is_whole { State::Whole } else { State::CutOff };
        Ok(())
    }

    pub(super) fn get(&self, key: &Key) -> Option<ContentHash> {
        self.views.get(key).copied()
    }

    /// Notes a view. If the previous view with the same key has another hash, or if there is none, also appends the
    /// view to the file.
    pub(super) fn append(&mut self, key: Key, hash: ContentHash) -> Result<(), ViewsError> {
        if self.views.insert(key.clone(), hash) == Some(hash) {
            return Ok(());
        }
        let written = self.write(&Line { key, hash });
        // After a failed write, the file may end with a part of the line.
        self.state = if written.is_ok() { State::Whole } else { State::CutOff };
        written.map_err(|error| self.error("write", error))
    }

    fn write(&self, line: &Line) -> io::Result<()> {
        if let Some(directory) = self.file.parent() {
            fs::create_dir_all(directory)?;
        }
        let mut text = if self.state == State::CutOff { "\n".to_owned() } else { String::new() };
        text.push_str(&serde_json::to_string(line)?);
        text.push('\n');
        OpenOptions::new().append(true).create(true).open(&self.file)?.write_all(text.as_bytes())
    }

    pub(super) fn remove(&mut self) -> Result<(), ViewsError> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.error("remove", error)),
            Ok(()) | Err(_) => {
                self.views.clear();
                self.state = State::Whole;
                Ok(())
            }
        }
    }

    fn error(&self, operation: &'static str, source: io::Error) -> ViewsError {
        ViewsError { operation, file: self.file.clone(), source }
    }
}
