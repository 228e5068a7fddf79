//! Remembers which contents of files the agents have seen.
//!
//! An agent must not overwrite changes that it has not seen. For each agent and each file, [`Views`] stores the hash of
//! the content that the agent last viewed or wrote. [`may_change`], which is pure, compares hashes to decide whether a
//! change is allowed. Each task has an append-only file for its hashes, so the hashes survive a restart.
//!
//! The methods block, so async code must call them in `spawn_blocking`.

mod rule;
mod stored;

pub use rule::{Change, Unknown, may_change};
pub use stored::ViewsError;

use crate::call::Caller;
use crate::views::stored::{Key, Stored};
use polity_files::{ContentHash, WorkspacePath};
use polity_society::id::TaskId;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The file names of stored views end with this text.
const SUFFIX: &str = ".views.jsonl";

/// The record of what agents have seen: for each agent and each file, the hash of the content that the agent last
/// viewed or wrote.
#[derive(Debug)]
pub struct Views {
    directory: PathBuf,
    tasks: Mutex<HashMap<TaskId, Arc<Mutex<Stored>>>>,
}

impl Views {
    /// Stores the views in this directory. Makes the directory when the first view is stored.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), tasks: Mutex::default() }
    }

    /// Returns the hash of the content that the caller last viewed or wrote at the path.
    pub fn seen(&self, caller: &Caller, path: &WorkspacePath) -> Result<Option<ContentHash>, ViewsError> {
        let task = self.task(&caller.task);
        let mut task = locked(&task);
        task.load()?;
        Ok(task.get(&Key::new(caller, path)))
    }

    /// Notes the hash of the content that the caller has just viewed or written.
    ///
    /// The caller has already viewed or written the file, so this method returns no error. If the hash cannot be
    /// written to disk, a warning is logged, and the hash is only kept in memory. Then the caller may have to view the
    /// file again after a restart.
    pub fn note(&self, caller: &Caller, path: &WorkspacePath, content: ContentHash) {
        let task = self.task(&caller.task);
        let mut task = locked(&task);
        let stored = task.load().and_then(|()| task.append(Key::new(caller, path), content));
        if let Err(error) = stored {
            tracing::warn!(task = %caller.task, %error, cause = %error.source, "a view was not stored");
        }
    }

    /// Returns the tasks that have a file of views.
    pub fn tasks(&self) -> Vec<TaskId> {
        let Ok(files) = std::fs::read_dir(&self.directory) else { return Vec::new() };
        let task = |name: String| {
            Some(TaskId::new(name.strip_suffix(SUFFIX)?)).filter(|task| file_name(task) == name)
        };
        files.flatten().filter_map(|file| task(file.file_name().into_string().ok()?)).collect()
    }

    /// Removes all views of a task that has ended.
    pub fn forget(&self, task: &TaskId) -> Result<(), ViewsError> {
        let stored = locked(&self.tasks).remove(task).unwrap_or_else(|| self.new_task(task));
        locked(&stored).remove()
    }

    fn task(&self, task: &TaskId) -> Arc<Mutex<Stored>> {
        locked(&self.tasks).entry(task.clone()).or_insert_with(|| self.new_task(task)).clone()
    }

    fn new_task(&self, task: &TaskId) -> Arc<Mutex<Stored>> {
        Arc::new(Mutex::new(Stored::new(self.directory.join(file_name(task)))))
    }
}

/// Returns the name of the file that stores the views of a task. Letters, digits, `-` and `_` stay as they are. Every
/// other character becomes `%` and its code in hexadecimal.
fn file_name(task: &TaskId) -> String {
    let mut name = String::new();
    for character in task.as_str().chars() {
        if character.is_ascii_alphanumeric() || matches!(character, '-' | '_') {
            name.push(character);
        } else {
            name.push_str(&format!("%{:x}", u32::from(character)));
        }
    }
    name + SUFFIX
}

/// Locks a value. A panic cannot leave the value half changed. So the value can still be used after a thread has
/// panicked while it held the lock.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
