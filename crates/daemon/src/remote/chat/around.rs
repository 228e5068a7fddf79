//! Handles the input and the events while an interactive chat waits for the daemon.

use super::line::{Line, parse};
use super::lines::{Lines, Typed};
use super::printer::Printer;
use crate::failure::Failure;
use crate::output::foot::columns;
use crate::output::{Page, print, print_on};
use crate::remote::conversation::is_for_person;
use crate::remote::live::Live;
use crate::remote::words::now;
use polity_client::{Follow, Followed};
use polity_society::id::TaskId;
use polity_view::{Event, Outcome};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Maximum time for which a user who wants to leave waits for an operation in progress, such as sending a message.
const LAST_OPERATION: Duration = Duration::from_secs(1);

/// Prints a text to the user.
pub(super) fn say(printer: &Mutex<Printer>, text: &str) -> Result<(), Failure> {
    // If another thread panicked while it held the lock, the printer is still usable.
    match &mut *printer.lock().unwrap_or_else(PoisonError::into_inner) {
        Printer::Plain => print(text),
        Printer::Beside(printer) => printer.print(text),
    }
}

/// Prints a text that was formatted for a terminal or a pipe (`page`).
pub(super) fn tell(printer: &Mutex<Printer>, text: &str, page: Page) -> Result<(), Failure> {
    match &mut *printer.lock().unwrap_or_else(PoisonError::into_inner) {
        Printer::Plain => print_on(page, text),
        Printer::Beside(printer) => printer.print_formatted(text),
    }
}

/// When the chat checks for messages that the user has not been shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Now,
    WhenSomethingHappens,
}

/// Whether the user stays in the chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stays {
    Yes,
    No,
}

/// The result of waiting for an operation while the user may type.
pub(super) enum Heard<T> {
    /// The operation has ended with this result.
    Done(T),
    /// The user wants to leave, and the operation takes too long. It was dropped.
    TooLong,
    /// The user sends no more lines, or the daemon no more events. So the chat must end too.
    Leave,
}

/// The input and the events, which must be handled even while the chat waits for the daemon.
pub(super) struct Around {
    pub(super) lines: Lines,
    pub(super) follow: Follow,
    /// The daemon is gone, or it refuses.
    pub(super) is_lost: bool,
    pub(super) printer: Arc<Mutex<Printer>>,
    /// Lines that the user typed while the chat waited for the daemon; they are handled next.
    pub(super) held: VecDeque<String>,
    pub(super) look: Look,
    /// Tasks that have ended without an answer. The chat has not told the user yet why.
    pub(super) unanswered: BTreeSet<TaskId>,
    /// What the agents are doing.
    pub(super) live: Live,
    /// The moment at which the user asked to leave; absent if the user has not, or stays after a warning.
    pub(super) leaves_since: Option<Instant>,
}

impl Around {
    /// Waits until an operation ends; the operation itself may wait for a stopped daemon to come back. During the wait,
    /// this function collects the lines that the user types, and tells the user if the daemon stops. If the user wants
    /// to leave, the operation gets a moment to end.
    pub(super) async fn beside<T>(&mut self, work: impl Future<Output = T>) -> Result<Heard<T>, Failure> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(Heard::Done(done)),
                () = after(self.leaves_since) => return Ok(Heard::TooLong),
                typed = self.lines.next() => if self.hear(typed) == Stays::No {
                    return Ok(Heard::Leave);
                },
                followed = self.follow.next() => if self.notice(followed)? == Stays::No {
                    return Ok(Heard::Leave);
                },
            }
        }
    }

    /// Draws, above the input line, what the agents are doing. Replaces the lines that were drawn last.
    pub(super) fn draw(&self) -> Result<(), Failure> {
        match &mut *self.printer.lock().unwrap_or_else(PoisonError::into_inner) {
            Printer::Plain => Ok(()),
            Printer::Beside(printer) => printer.print_foot(&self.live.lines(&[], columns(), now())),
        }
    }

    /// Queues a line for later. `/quit` comes before all lines in the queue.
    pub(super) fn hear(&mut self, typed: Option<Typed>) -> Stays {
        match typed {
            Some(Typed::Line(line)) if parse(&line) != Line::Quit => self.held.push_back(line),
            Some(Typed::Line(_) | Typed::End) => self.leaves_since = Some(Instant::now()),
            None => return Stays::No,
        }
        Stays::Yes
    }

    /// Handles an item of the event stream.
    pub(super) fn notice(&mut self, followed: Option<Followed>) -> Result<Stays, Failure> {
        match followed {
            Some(Followed::Entry(entry)) => {
                if is_for_person(&entry.event) {
                    self.look = Look::Now;
                }
                if let Event::TaskIdle { task, outcome: Outcome::Unanswered } = &entry.event {
                    self.unanswered.insert(task.clone());
                }
            }
            Some(Followed::Glimpse(glimpse)) => {
                self.live.see(*glimpse);
                self.draw()?;
            }
            Some(Followed::Connected) => {
                self.is_lost = false;
                self.live.forget();
            }
            Some(Followed::Lost(loss)) => {
                self.is_lost = true;
                self.live.forget();
                self.draw()?;
                say(&self.printer, &format!("polity: {} (/quit leaves)", loss.words()))?;
            }
            Some(Followed::Failed(error)) => return Err(error.into()),
            None => return Ok(Stays::No),
        }
        Ok(Stays::Yes)
    }
}

/// Waits until an operation has had enough time since the user asked to leave. Waits for ever if the user has not.
async fn after(leaves_since: Option<Instant>) {
    match leaves_since {
        Some(since) => tokio::time::sleep_until(since + LAST_OPERATION).await,
        None => std::future::pending().await,
    }
}
