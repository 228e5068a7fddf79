//! Watches the files of a registry, so that a change is noticed even if no model is called.
//!
//! This module watches directories instead of files, because tools replace files: they rename a new file to the name of
//! the old file, change a symbolic link, or delete a file and write it again. The exact kind of event does not matter:
//! each sign of a change leads to the same [`Registry::refresh`], which compares the content of the files.

use crate::registry::Registry;
use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use polity_society::text::Language;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::mpsc;

/// The files cannot be watched. The registry still compares the files before each model call.
#[derive(Debug, thiserror::Error)]
#[error("failed to watch {path}")]
pub struct WatchError {
    /// The directory that cannot be watched.
    pub path: PathBuf,
    /// The error of the file watcher.
    pub source: notify::Error,
}

/// Keeps a registry up to date for as long as this value lives.
#[derive(Debug)]
pub struct Watch {
    _watcher: Arc<Mutex<RecommendedWatcher>>,
}

impl Watch {
    /// Starts to watch the directories of the files.
    ///
    /// # Errors
    ///
    /// Fails if the operating system has no watches left, or if a directory no longer exists.
    pub fn start(registry: &Arc<Registry>) -> Result<Self, WatchError> {
        // One signal in the channel is enough, because a refresh compares all files, not only the changed one.
        let (signs, seen) = mpsc::channel(1);
        let on_event = move |event: notify::Result<notify::Event>| {
            if is_sign(&event) {
                // If the channel is full, a signal is waiting already.
                let _ = signs.try_send(());
            }
        };
        let config_dir = registry.config_dir().to_owned();
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| WatchError { path, source }
        };
        let mut watcher = notify::recommended_watcher(on_event).map_err(failed(&config_dir))?;
        let directories = directories(registry);
        for directory in &directories {
            watcher.watch(directory, RecursiveMode::NonRecursive).map_err(failed(directory))?;
        }
        let watcher = Arc::new(Mutex::new(watcher));
        tokio::spawn(follow(Arc::downgrade(registry), Arc::downgrade(&watcher), seen, directories));
        Ok(Self { _watcher: watcher })
    }
}

/// Returns whether an event means that a file may have changed.
/// Reading a file does not count. Otherwise each refresh, which reads the files, would cause the next refresh.
fn is_sign(event: &notify::Result<notify::Event>) -> bool {
    match event {
        Ok(event) => match event.kind {
            EventKind::Access(AccessKind::Close(mode)) => mode != AccessMode::Read,
            EventKind::Access(_) => false,
            EventKind::Any
            | EventKind::Create(_)
            | EventKind::Modify(_)
            | EventKind::Remove(_)
            | EventKind::Other => true,
        },
        // After an error, events may be lost, and a lost event may have been a change. So an error counts as a sign of
        // a change.
        Err(_) => true,
    }
}

async fn follow(
    registry: Weak<Registry>,
    watcher: Weak<Mutex<RecommendedWatcher>>,
    mut seen: mpsc::Receiver<()>,
    mut watched: BTreeSet<PathBuf>,
) {
    while seen.recv().await.is_some() {
        let (Some(registry), Some(watcher)) = (registry.upgrade(), watcher.upgrade()) else { return };
        registry.refresh().await;
        // After a change, symbolic links or the setting `prompts` may lead to other directories.
        let now = directories(&registry);
        let mut watcher = watcher.lock().unwrap_or_else(PoisonError::into_inner);
        for gone in watched.difference(&now) {
            // Ignore an error. If the directory was deleted, the system has already removed the watch itself.
            let _ = watcher.unwatch(gone);
        }
        for new in now.difference(&watched) {
            if let Err(error) = watcher.watch(new, RecursiveMode::NonRecursive) {
                tracing::warn!(directory = %new.display(), %error, "failed to watch a directory for configuration changes");
            }
        }
        watched = now;
    }
}

/// Returns the directories to watch: those that contain the files, and those to which symbolic links lead.
/// Also returns the parent of each directory, because a directory itself may be replaced.
fn directories(registry: &Registry) -> BTreeSet<PathBuf> {
    let config_dir = registry.config_dir();
    let mut paths = vec![
        config_dir.to_owned(),
        config_dir.join(crate::settings::FILE),
        config_dir.join(crate::services::FILE),
    ];
    if let Some(prompts) = &registry.current().settings.prompts {
        let prompts = config_dir.join(prompts);
        paths.extend(Language::ALL.iter().map(|language| prompts.join(language.as_str())));
        paths.push(prompts);
    }
    let mut directories = BTreeSet::new();
    for path in paths {
        let Ok(real) = path.canonicalize() else { continue };
        for directory in [path.as_path(), real.as_path()] {
            let inner = if directory.is_dir() { Some(directory) } else { None };
            let above = directory.parent().filter(|above| !above.as_os_str().is_empty());
            directories.extend(inner.into_iter().chain(above).map(Path::to_owned));
        }
    }
    directories
}

#[cfg(test)]
mod tests {
    use super::*;
    use notify::Event;
    use notify::event::{CreateKind, ModifyKind, RemoveKind};

    #[test]
    fn reading_is_no_sign_of_a_change() {
        let check =
            |kind: EventKind, expect: bool| assert_eq!(is_sign(&Ok(Event::new(kind))), expect, "{kind:?}");
        check(EventKind::Access(AccessKind::Open(AccessMode::Any)), false);
        check(EventKind::Access(AccessKind::Read), false);
        check(EventKind::Access(AccessKind::Close(AccessMode::Read)), false);
        check(EventKind::Access(AccessKind::Close(AccessMode::Write)), true);
        check(EventKind::Create(CreateKind::File), true);
        check(EventKind::Modify(ModifyKind::Any), true);
        check(EventKind::Remove(RemoveKind::Any), true);
        check(EventKind::Any, true);
        assert!(is_sign(&Err(notify::Error::generic("the queue has overflowed"))));
    }

    /// Checks that reading a file is no sign of a change. The test reads the file in the process that watches it, as a
    /// refresh does.
    #[test]
    fn what_reading_looks_like_on_this_system_is_no_sign() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("app.json");
        std::fs::write(&file, "{}").unwrap();
        let (seen, events) = std::sync::mpsc::channel();
        let mut watcher = notify::recommended_watcher(move |event| {
            let _ = seen.send(is_sign(&event));
        })
        .unwrap();
        watcher.watch(directory.path(), RecursiveMode::NonRecursive).unwrap();
        for _ in 0..10 {
            std::fs::read(&file).unwrap();
        }
        std::fs::write(directory.path().join("new.json"), "{}").unwrap();
        // Events arrive in order. So before the event of the new file come the events that reading has caused.
        assert!(events.iter().any(|is_sign| is_sign), "a new file is a sign");
        drop(watcher);
        let signs = events.iter().filter(|is_sign| *is_sign).count();
        assert!(signs < 10, "{signs} signs: reading counts as a sign");
    }
}
