//! Follows the event stream of a daemon, and wakes the thread that waits for the next event of a task. One stream
//! serves all clients, so that the daemon spends little processor time on events for the bench.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde::Deserialize;

use crate::subject::Subject;

/// Maximum wait for one event.
const PATIENCE: Duration = Duration::from_secs(300);

/// The kind of event that the bench waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// Final messages to the person.
    Answer,
    /// Events that report a task as idle: nothing is left to do in it.
    Idle,
}

/// The tasks by their ids. A task is here if an event of it has arrived or if a thread has waited for one.
#[derive(Default)]
struct Tasks(Mutex<HashMap<String, Task>>);

#[derive(Default)]
struct Task {
    /// Number of events that have arrived and that no thread has taken yet.
    heard: usize,
    waiting: Option<Thread>,
}

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Task>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The events of a daemon.
pub(crate) struct Answers(Arc<Tasks>);

#[derive(Deserialize)]
struct Event<'e> {
    task: String,
    to: Option<&'e str>,
    finality: Option<&'e str>,
}

impl Answers {
    /// Begins to follow the events of one kind.
    pub(crate) fn follow(subject: &Subject, awaited: Awaited) -> Result<Self> {
        let tasks: Arc<Tasks> = Arc::default();
        let mut client = subject.connect()?;
        let headers = format!("{}accept: text/event-stream\r\n", client.headers);
        let kind = match awaited {
            Awaited::Answer => "message_accepted",
            Awaited::Idle => "task_idle",
        };
        let heard = Arc::clone(&tasks);
        std::thread::spawn(move || -> Result<()> {
            let line = format!("GET /api/events?kind={kind}");
            let mut stream = client.connection.send(&line, &headers, b"")?;
            let mut pending = Vec::new();
            // The stream ends when the daemon is killed. At that time, no thread waits for events any more.
            while stream.piece(&mut pending)? {
                while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                    if let Some(data) = pending[..end].strip_prefix(b"data: ") {
                        note(&heard, data, awaited)?;
                    }
                    pending.drain(..=end);
                }
            }
            Ok(())
        });
        Ok(Self(tasks))
    }

    /// Waits for the next event of a task.
    pub(crate) fn wait(&self, task: &str) -> Result<()> {
        let begun = Instant::now();
        loop {
            {
                let mut tasks = self.0.lock();
                let slot = tasks.entry(task.to_owned()).or_default();
                if slot.heard > 0 {
                    slot.heard -= 1;
                    slot.waiting = None;
                    return Ok(());
                }
                slot.waiting = Some(std::thread::current());
            }
            std::thread::park_timeout(PATIENCE);
            if begun.elapsed() >= PATIENCE {
                bail!("nothing was heard of {task} for {} s", PATIENCE.as_secs());
            }
        }
    }
}

fn note(tasks: &Tasks, data: &[u8], awaited: Awaited) -> Result<()> {
    let event: Event<'_> = serde_json::from_slice(data)?;
    let is_answer = event.to == Some("user") && event.finality == Some("final");
    if awaited == Awaited::Answer && !is_answer {
        return Ok(());
    }
    let mut tasks = tasks.lock();
    let slot = tasks.entry(event.task).or_default();
    slot.heard += 1;
    if let Some(thread) = &slot.waiting {
        thread.unpark();
    }
    Ok(())
}
