//! Asks the user on a terminal whether agents may make calls, one question after another.

use super::{all, in_words, taken};
use crate::failure::Failure;
use crate::output::complain;
use crate::remote::words::now;
use polity_client::Client;
use polity_society::approval::Answer;
use polity_society::id::{ApprovalId, TaskId};
use polity_view::{ApprovalAnswer, ApprovalState, ApprovalView};
use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal, Write};
use tokio::sync::mpsc;

const HINT: &str = "y yes | t yes, until the end of the task | a always | n no; after n you may write why, for example: n use a branch";

/// The dialogue on a terminal in which the user answers questions about calls.
pub(crate) struct Terminal<'a> {
    client: &'a Client,
    tasks: &'a [TaskId],
    /// The question that was printed and is not answered yet.
    asked: Option<ApprovalView>,
    lines: Option<mpsc::Receiver<String>>,
    /// The questions that were answered here.
    answered: BTreeSet<ApprovalId>,
}

/// Whether the user can answer questions while the program runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answerable {
    Yes,
    No,
}

impl Answerable {
    /// Returns `Yes` if standard input and standard error are a terminal.
    pub(crate) fn now() -> Self {
        if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() { Self::Yes } else { Self::No }
    }
}

impl<'a> Terminal<'a> {
    pub(crate) fn new(client: &'a Client, tasks: &'a [TaskId]) -> Self {
        Self { client, tasks, asked: None, lines: None, answered: BTreeSet::new() }
    }

    /// Prints the oldest open question of all tasks, unless it has been printed. Returns whether a question is open.
    pub(crate) async fn look(&mut self) -> Result<bool, Failure> {
        let mut open = Vec::new();
        for task in self.tasks {
            open.extend(all(self.client, Some(task.clone()), Some(ApprovalState::Open)).await?);
        }
        let Some(first) = open.into_iter().min_by_key(|approval| approval.id.number()) else {
            self.asked = None;
            return Ok(false);
        };
        if self.asked.as_ref().is_none_or(|asked| asked.id != first.id) {
            show(&in_words(&first, now()));
            self.prompt();
            self.asked = Some(first);
        }
        Ok(true)
    }

    /// Waits for a line of the user. Waits for ever if no question was printed, or if the input has ended.
    pub(crate) async fn line(&mut self) -> String {
        let line = match (&self.asked, &mut self.lines) {
            (Some(_), Some(lines)) => lines.recv().await,
            _ => None,
        };
        match line {
            Some(line) => line,
            None => std::future::pending().await,
        }
    }

    /// Handles a line as the answer to the question that was printed last, and sends the answer to the daemon.
    pub(crate) async fn take(&mut self, line: &str) -> Result<(), Failure> {
        let Some(asked) = self.asked.take() else { return Ok(()) };
        let Some(answer) = parse(line) else {
            self.asked = Some(asked);
            self.prompt();
            return Ok(());
        };
        match self.client.answer(&asked.id, &answer).await {
            Ok(approval) => {
                complain(&taken(&approval));
                self.answered.insert(approval.id);
            }
            // The daemon refuses the answer if the user has already answered in another program, or if the question has
            // expired.
            Err(polity_client::Error::Refused(problem)) => complain(&problem.detail),
            Err(error) => return Err(error.into()),
        }
        self.look().await.map(drop)
    }

    /// Returns whether the user has answered a question here. The answer was confirmed then, so the event about it
    /// brings nothing new.
    pub(crate) fn has_confirmed(&self, approval: &ApprovalId) -> bool {
        self.answered.contains(approval)
    }

    fn prompt(&mut self) {
        self.lines.get_or_insert_with(read_lines);
        show(HINT);
    }
}

/// Prints on standard error. Ignores an error, because the user can also answer in another program.
fn show(text: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Reads lines from standard input in a thread, so that the program can end while the thread waits.
fn read_lines() -> mpsc::Receiver<String> {
    let (tell, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if tell.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Reads an answer. Returns `None` if the line is not an answer.
pub(super) fn parse(line: &str) -> Option<ApprovalAnswer> {
    let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    let answer = match word.to_lowercase().as_str() {
        "y" | "yes" => Answer::Yes,
        "t" | "task" => Answer::Task,
        "a" | "always" => Answer::Always,
        "n" | "no" => Answer::No,
        _ => return None,
    };
    let reason = (answer == Answer::No).then(|| rest.trim().to_owned()).filter(|reason| !reason.is_empty());
    Some(ApprovalAnswer { answer, reason })
}

/// Returns whether a line is an answer of this dialogue and nothing else. This dialogue ignores the text after `y`, but
/// elsewhere such a line may be a message.
pub(crate) fn is_answer(line: &str) -> bool {
    let is_one_word = !line.trim().contains(char::is_whitespace);
    parse(line).is_some_and(|answer| is_one_word || answer.reason.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_begins_like_an_answer_is_none() {
        for line in ["y", " Always\n", "no", "n use a branch"] {
            assert!(is_answer(line), "{line:?}");
        }
        for line in ["", "yes please", "a cat sits here", "no, use a branch", "maybe"] {
            assert!(!is_answer(line), "{line:?}");
        }
    }

    #[test]
    fn answers_of_the_user() {
        let check = |line: &str, expect: Option<(Answer, Option<&str>)>| {
            let expect =
                expect.map(|(answer, reason)| ApprovalAnswer { answer, reason: reason.map(str::to_owned) });
            assert_eq!(parse(line), expect, "{line:?}");
        };
        check("y", Some((Answer::Yes, None)));
        check(" YES \n", Some((Answer::Yes, None)));
        check("t", Some((Answer::Task, None)));
        check("always", Some((Answer::Always, None)));
        check("n", Some((Answer::No, None)));
        check("n  use a branch ", Some((Answer::No, Some("use a branch"))));
        // Only a refusal can have a reason, so the text after `y` is ignored.
        check("y please", Some((Answer::Yes, None)));
        // Any other line is no answer. In particular, an empty line does not allow the call.
        for line in ["", " ", "maybe", "yn", "ja"] {
            check(line, None);
        }
    }
}
