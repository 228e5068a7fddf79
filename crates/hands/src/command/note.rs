//! Notes on disk about background commands, so that the end of each command is reported even if polity dies.
//!
//! Polity writes a note before the command starts. At first, the note is *open* and has no end. When the command ends,
//! polity adds the end to the note. When the notice for the agent is recorded, polity *closes* the note: it moves the
//! file of the note to the directory of the task. At its start, polity may find an open note without an end. Then
//! polity ended or died while the command was running, and the command counts as interrupted.

use super::excerpt::last_lines;
use super::live::Owner;
use crate::call::Source;
use polity_files::durable;
use polity_sandbox::{Excerpt, Output};
use polity_society::command::CommandEnd;
use polity_society::id::{AgentId, CommandId, TaskId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// The directory of the open notes. It is beside the directories of the tasks, which are named after the ids of the
/// tasks. No task id begins with a dot, so no task has this directory.
const OPEN: &str = ".open";

/// The directory of a task's background commands: closed notes and output.
const BACKGROUND: &str = "background";

/// What polity remembers about a background command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) id: CommandId,
    pub(super) agent: AgentId,
    pub(super) task: TaskId,
    pub(super) command: String,
    /// The idempotency key of the call that started the command. Notes of earlier versions have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) call: String,
    /// The outside sources from which the output may come.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) sources: BTreeSet<Source>,
    /// How the command ended. Absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) over: Option<Over>,
}

/// How a background command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Over {
    pub(super) end: CommandEnd,
    /// How long the command ran. `None` if nobody knows: polity ended or died while the command was running, or `end`
    /// is [`CommandEnd::Failed`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) duration_ms: Option<u64>,
    /// Number of output bytes that the agent saw while the command was running.
    pub(super) seen: u64,
    pub(super) last_lines: String,
    pub(super) restored: Vec<PathBuf>,
}

impl Note {
    pub(super) fn owner(&self) -> Owner {
        Owner { agent: self.agent.clone(), task: self.task.clone() }
    }
}

/// The notes of a data directory. The methods block.
#[derive(Clone, Debug)]
pub(super) struct Notes {
    state: PathBuf,
}

impl Notes {
    /// `state` is the directory that holds the data of all commands. The directory `state` need not exist yet.
    pub(super) fn new(state: PathBuf) -> Self {
        Self { state }
    }

    /// Returns the file that receives the output of a background command.
    pub(super) fn output(&self, task: &TaskId, id: &CommandId) -> PathBuf {
        self.of_task(task).join(format!("{id}.txt"))
    }

    fn of_task(&self, task: &TaskId) -> PathBuf {
        self.state.join(task.as_str()).join(BACKGROUND)
    }

    fn open_directory(&self) -> PathBuf {
        self.state.join(OPEN)
    }

    fn open_file(&self, id: &CommandId) -> PathBuf {
        self.open_directory().join(format!("{id}.json"))
    }

    fn closed_file(&self, task: &TaskId, id: &CommandId) -> PathBuf {
        self.of_task(task).join(format!("{id}.json"))
    }

    /// Writes the note of a command that is open. Replaces an earlier note of this command.
    pub(super) fn write(&self, note: &Note) -> io::Result<()> {
        fs::create_dir_all(self.open_directory())?;
        fs::create_dir_all(self.of_task(&note.task))?;
        durable::replace(&self.open_file(&note.id), &serde_json::to_vec(note)?)
    }

    /// Moves a note from the open notes to the directory of its task. Call this when the notice for the agent is
    /// recorded.
    pub(super) fn close(&self, note: &Note) -> io::Result<()> {
        fs::create_dir_all(self.of_task(&note.task))?;
        durable::replace(&self.closed_file(&note.task, &note.id), &serde_json::to_vec(note)?)?;
        self.remove(&note.id)
    }

    /// Removes an open note, if it exists.
    pub(super) fn remove(&self, id: &CommandId) -> io::Result<()> {
        match fs::remove_file(self.open_file(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Reads the open note of a command, if it exists.
    pub(super) fn open_note(&self, id: &CommandId) -> io::Result<Option<Note>> {
        read(&self.open_file(id))
    }

    /// Reads the note of a command, whether closed or open.
    pub(super) fn find(&self, task: &TaskId, id: &CommandId) -> io::Result<Option<Note>> {
        Ok(match read(&self.closed_file(task, id))? {
            Some(note) => Some(note),
            None => self.open_note(id)?,
        })
    }

    /// Reads all open notes. Skips damaged notes.
    pub(super) fn open(&self) -> io::Result<Vec<Note>> {
        let entries = match fs::read_dir(self.open_directory()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut notes = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match read(&path) {
                Ok(note) => notes.extend(note),
                Err(error) => {
                    tracing::error!(path = %path.display(), %error, "a note about a command is damaged");
                }
            }
        }
        notes.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(notes)
    }

    /// Polity ended or died while the command of this open note was running. Adds an end to the note, which says that
    /// the command was interrupted.
    pub(super) fn interrupt(&self, mut note: Note) -> io::Result<Note> {
        let output = self.kept(&note.task, &note.id)?;
        let over = Over {
            end: CommandEnd::Interrupted,
            duration_ms: None,
            seen: 0,
            last_lines: last_lines(&output),
            restored: Vec::new(),
        };
        note.over = Some(over);
        self.write(&note)?;
        Ok(note)
    }

    /// Reads the beginning and the end of a command's output from the output file.
    pub(super) fn kept(&self, task: &TaskId, id: &CommandId) -> io::Result<Output> {
        let path = self.output(task, id);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Output::default()),
            Err(error) => return Err(error),
        };
        let total_bytes = file.metadata()?.len();
        let (first_most, last_most) = {
            let Excerpt { first, last } = Excerpt::default();
            (first as u64, last as u64)
        };
        let mut first = Vec::new();
        (&mut file).take(first_most).read_to_end(&mut first)?;
        let rest = total_bytes.saturating_sub(first.len() as u64).min(last_most);
        file.seek(SeekFrom::Start(total_bytes - rest))?;
        let mut last = Vec::new();
        file.take(rest).read_to_end(&mut last)?;
        Ok(Output { first, last, total_bytes, file: path })
    }

    /// Removes all files of the commands of a task: homes, temporary files, notes and output.
    pub(super) fn forget(&self, task: &TaskId) -> io::Result<()> {
        match fs::remove_dir_all(self.state.join(task.as_str())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

fn read(path: &Path) -> io::Result<Option<Note>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
