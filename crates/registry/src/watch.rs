//! Watches the files of a registry, so that a change is seen even while nobody asks a model.
//!
//! Directories are watched, not files: tools replace files by renaming others over them, by swapping the symbolic links
//! that they are reached through, or by deleting and writing them anew. What exactly happened does not matter, because
//! every sign leads to the same [`Registry::refresh`], which compares what the files say.

use crate::registry::Registry;
use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::mpsc;

/// The files cannot be watched. They are still compared before each model call.
#[derive(Debug, thiserror::Error)]
#[error("failed to watch {path}")]
pub struct WatchError {
    /// What cannot be watched.
    pub path: PathBuf,
    /// Why.
    pub source: notify::Error,
}

/// Keeps a registry up to date until it is dropped.
#[derive(Debug)]
pub struct Watch {
    _watcher: Arc<Mutex<RecommendedWatcher>>,
}

impl Watch {
    /// Begins to watch.
    ///
    /// # Errors
    ///
    /// Fails where the system has no watches left, or the directory is gone.
    pub fn start(registry: &Arc<Registry>) -> Result<Self, WatchError> {
        // One sign is as good as many: what was seen is compared, whatever it was.
        let (signs, seen) = mpsc::channel(1);
        let on_event = move |event: notify::Result<notify::Event>| {
            if is_sign(&event) {
                // A full channel holds a sign already.
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

/// Whether something may have changed. That somebody has read a file is no sign: it is what looking at one looks like, so
/// that every look would lead to the next.
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
        // What was missed may have been a change.
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
        // Where links lead, and which prompts count, may be other directories now.
        let now = directories(&registry);
        let mut watcher = watcher.lock().unwrap_or_else(PoisonError::into_inner);
        for gone in watched.difference(&now) {
            // A directory that is gone is not watched any more by itself.
            let _ = watcher.unwatch(gone);
        }
        for new in now.difference(&watched) {
            if let Err(error) = watcher.watch(new, RecursiveMode::NonRecursive) {
                tracing::warn!(directory = %new.display(), %error, "cannot watch for changes of the configuration");
            }
        }
        watched = now;
    }
}

/// The directories in which a change can be seen: that of the files, those that links lead to, and the one above, in
/// which the directory itself may be replaced.
fn directories(registry: &Registry) -> BTreeSet<PathBuf> {
    let config_dir = registry.config_dir();
    let mut paths = vec![
        config_dir.to_owned(),
        config_dir.join(crate::settings::FILE),
        config_dir.join(crate::services::FILE),
    ];
    if let Some(prompts) = &registry.current().settings.prompts {
        let prompts = config_dir.join(prompts);
        paths.extend([prompts.join("zh"), prompts.join("en"), prompts]);
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

    /// Watches what this process itself reads, as a look at the files does.
    #[test]
    fn what_reading_looks_like_on_this_system_is_no_sign() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("app.json");
        std::fs::write(&file, "{}").unwrap();
        let (seen, events) = std::sync::mpsc::channel();
        let on_event = move |event| {
            // Nobody listens any more once the test is over.
            let _ = seen.send(is_sign(&event));
        };
        let mut watcher = notify::recommended_watcher(on_event).unwrap();
        watcher.watch(directory.path(), RecursiveMode::NonRecursive).unwrap();
        for _ in 0..10 {
            std::fs::read(&file).unwrap();
        }
        std::fs::write(directory.path().join("new.json"), "{}").unwrap();
        // In order: whatever came before the first sign came of reading.
        assert!(events.iter().any(|is_sign| is_sign), "writing is seen");
        drop(watcher);
        let signs = events.iter().filter(|is_sign| *is_sign).count();
        assert!(signs < 10, "{signs}: reading is a sign");
    }
}
