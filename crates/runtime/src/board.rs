//! The board shows what each conversation is doing at this moment: waiting at a gate, calling a model, pausing after a
//! failure, or running tools. The drivers write to the board, and only views read it. The board is only in memory. It
//! need not be stored: the society works without it, and after a restart no entry would be true any more.

mod answer;
mod glimpses;

pub(crate) use answer::{Answer, Limits};
pub use glimpses::Glimpses;

use polity_llm::{Gate, TicketNumber};
use polity_society::id::{ServiceId, TaskId};
use polity_store::Conversation;
use polity_store::view::doing::Moments;
use polity_view::Doing;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What each conversation is doing now (its *moment*). A conversation that does nothing has no entry.
#[derive(Debug, Default)]
pub(crate) struct Board {
    entries: Mutex<HashMap<Conversation, Entry>>,
    /// The number that the next entry or answer gets.
    next: AtomicU64,
}

/// What one conversation is doing, and since when.
#[derive(Debug)]
struct Entry {
    /// The number of the [`Shown`] that belongs to this entry. When that `Shown` is dropped, the entry is removed.
    number: u64,
    since: i64,
    moment: Moment,
}

/// What a conversation is doing.
#[derive(Clone, Debug)]
pub(crate) enum Moment {
    /// The conversation builds its request, or waits until it may call a service.
    Queued(Queued),
    /// A server has received the conversation's request, and the answer of the server is not complete yet.
    Thinking(Arc<Answer>),
    /// The conversation pauses before it calls the service again.
    Retrying { failed: Failed, until: i64 },
    /// The conversation runs these tools. When a tool has ended, its name is removed from the list.
    Running(Vec<String>),
}

/// A conversation that waits until it may call a service.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub(crate) service: ServiceId,
    pub(crate) gate: Arc<Gate>,
    pub(crate) ticket: TicketNumber,
    /// The last failed attempt of the call, if the service asked for a pause after this attempt. While the gate is
    /// closed, the conversation waits for the end of this pause.
    pub(crate) failed: Option<Failed>,
}

/// A failed attempt of a model call. The call will make another attempt.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    pub(crate) service: ServiceId,
    pub(crate) attempt: u32,
    /// The maximum number of attempts of the call.
    pub(crate) of: u32,
    pub(crate) why: String,
    pub(crate) at: i64,
}

/// A guard that keeps a conversation's moment on the board. When the guard is dropped, the moment is removed, unless a
/// later moment of the conversation has already replaced it.
#[must_use = "the moment is on the board only as long as this value lives"]
pub(crate) struct Shown<'a> {
    board: &'a Board,
    conversation: &'a Conversation,
    number: u64,
}

/// Returns the time now, in milliseconds since 1970.
pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Returns the time that is `duration` after `now`, in milliseconds since 1970.
pub(crate) fn after(now: i64, duration: Duration) -> i64 {
    now.saturating_add(milliseconds(duration))
}

impl Board {
    /// Puts a conversation's moment on the board. The moment replaces the conversation's earlier moment.
    pub(crate) fn show<'a>(&'a self, conversation: &'a Conversation, moment: Moment) -> Shown<'a> {
        let number = self.number();
        let entry = Entry { number, since: now(), moment };
        self.entries().insert(conversation.clone(), entry);
        Shown { board: self, conversation, number }
    }

    /// Returns a number that no other entry or answer has.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns what the agents are doing at the time `now`, in `task` or in all tasks.
    pub(crate) fn moments(&self, task: Option<&TaskId>, now: i64) -> Moments {
        let entries = self.entries();
        let meant = entries.iter().filter(|(who, _)| task.is_none_or(|task| *task == who.task));
        meant.map(|(who, entry)| (who.agent.clone(), entry.doing(&who.task, now))).collect()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Conversation, Entry>> {
        // If another thread panicked while it held the lock, each entry is still complete, so the lock can be used.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn doing(&self, task: &TaskId, now: i64) -> Doing {
        let (task, since) = (task.clone(), self.since);
        match &self.moment {
            Moment::Queued(Queued { service, gate, ticket, failed }) => {
                let outlook = gate.outlook(*ticket);
                let closed_until =
                    outlook.and_then(|outlook| outlook.closed_for).map(|left| after(now, left));
                if let (Some(failed), Some(until)) = (failed, closed_until) {
                    return retrying(task, failed, until);
                }
                let place = outlook.map(|outlook| outlook.place);
                Doing::Queued { task, service: service.clone(), place, since, closed_until }
            }
            Moment::Thinking(answer) => answer.doing(task, now),
            Moment::Retrying { failed, until } => retrying(task, failed, *until),
            Moment::Running(tools) => Doing::Running { task, tools: tools.clone(), since },
        }
    }
}

fn retrying(task: TaskId, failed: &Failed, until: i64) -> Doing {
    Doing::Retrying {
        task,
        service: failed.service.clone(),
        attempt: failed.attempt,
        of: failed.of,
        why: failed.why.clone(),
        since: failed.at,
        until,
    }
}

impl Shown<'_> {
    /// Removes a tool that has ended from the running tools of the conversation.
    pub(crate) fn ended(&self, tool: &str) {
        let mut entries = self.board.entries();
        let Some(entry) = entries.get_mut(self.conversation).filter(|entry| entry.number == self.number)
        else {
            return;
        };
        let Moment::Running(tools) = &mut entry.moment else { return };
        // The last tool stays in the list until the moment ends, so that a view never shows an empty list of tools.
        if let Some(index) = tools.iter().position(|running| running == tool).filter(|_| tools.len() > 1) {
            tools.remove(index);
        }
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        let mut entries = self.board.entries();
        if entries.get(self.conversation).is_some_and(|entry| entry.number == self.number) {
            entries.remove(self.conversation);
        }
    }
}

#[cfg(test)]
mod tests;
