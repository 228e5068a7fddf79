//! The lines that the user types: messages to root, and commands that begin with `/`.

use polity_society::approval::Answer;
use polity_society::id::{ApprovalId, TaskId};
use polity_view::ApprovalAnswer;
use std::path::PathBuf;

/// An input line of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Empty,
    /// A message to root.
    Say(String),
    /// Attach a file to the next message.
    Attach(PathBuf),
    /// List the tasks.
    Tasks,
    /// Show the messages of the current task.
    History,
    /// Answer the question whether an agent may make a call.
    Answer(ApprovalId, ApprovalAnswer),
    /// Begin a new task with the next message.
    New,
    /// Continue with this task.
    Task(TaskId),
    /// List the commands.
    Help,
    /// Leave the chat.
    Quit,
    /// An unknown command.
    Unknown(String),
}

/// Reads a line of the user.
pub(super) fn parse(line: &str) -> Line {
    let line = line.trim();
    if line.is_empty() {
        return Line::Empty;
    }
    let Some(command) = line.strip_prefix('/') else { return Line::Say(line.to_owned()) };
    if command.starts_with('/') {
        return Line::Say(command.to_owned());
    }
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = rest.trim();
    match (name, rest) {
        ("attach", file) if !file.is_empty() => Line::Attach(PathBuf::from(file)),
        ("task", task) if !task.is_empty() => Line::Task(TaskId::new(task)),
        ("tasks", "") => Line::Tasks,
        ("history", "") => Line::History,
        ("approve", rest) => approval(rest).unwrap_or_else(|| Line::Unknown(line.to_owned())),
        ("deny", rest) => denial(rest).unwrap_or_else(|| Line::Unknown(line.to_owned())),
        ("new", "") => Line::New,
        ("help", "") => Line::Help,
        ("quit" | "exit", "") => Line::Quit,
        _ => Line::Unknown(line.to_owned()),
    }
}

/// Parses the arguments of `/approve`: the id of a question and perhaps a scope, which is `task` or `always`.
fn approval(rest: &str) -> Option<Line> {
    let (id, scope) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let answer = match scope.trim() {
        "" => Answer::Yes,
        "task" => Answer::Task,
        "always" => Answer::Always,
        _ => return None,
    };
    let id = Some(ApprovalId::new(id)).filter(|id| id.number().is_some())?;
    Some(Line::Answer(id, ApprovalAnswer { answer, reason: None }))
}

/// Parses the arguments of `/deny`: the id of a question and perhaps a reason.
fn denial(rest: &str) -> Option<Line> {
    let (id, reason) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let id = Some(ApprovalId::new(id)).filter(|id| id.number().is_some())?;
    let reason = Some(reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    Some(Line::Answer(id, ApprovalAnswer { answer: Answer::No, reason }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_person() {
        let check = |line: &str, expect: Line| assert_eq!(parse(line), expect, "{line:?}");
        check(" \t", Line::Empty);
        check(" hello there ", Line::Say("hello there".to_owned()));
        check("//etc/passwd", Line::Say("/etc/passwd".to_owned()));
        check("/attach my file.png", Line::Attach("my file.png".into()));
        check("/attach", Line::Unknown("/attach".to_owned()));
        let answered = |id: &str, answer: Answer, reason: Option<&str>| {
            let answer = ApprovalAnswer { answer, reason: reason.map(str::to_owned) };
            Line::Answer(ApprovalId::new(id), answer)
        };
        check("/approve q3", answered("q3", Answer::Yes, None));
        check("/approve q3 always", answered("q3", Answer::Always, None));
        check("/approve q3 task", answered("q3", Answer::Task, None));
        check("/deny q3", answered("q3", Answer::No, None));
        check("/deny q3 not today", answered("q3", Answer::No, Some("not today")));
        for line in ["/approve", "/approve it", "/approve q3 perhaps", "/deny"] {
            check(line, Line::Unknown(line.to_owned()));
        }
        check("/task task-4x2k", Line::Task(TaskId::new("task-4x2k")));
        check("/tasks", Line::Tasks);
        check("/tasks now", Line::Unknown("/tasks now".to_owned()));
        check("/history", Line::History);
        check("/new", Line::New);
        check("/help", Line::Help);
        check("/quit", Line::Quit);
        check("/sing", Line::Unknown("/sing".to_owned()));
    }
}
