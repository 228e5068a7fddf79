//! `polity approvals`, `polity approve` and `polity deny`: the user answers whether an agent may make a call.

pub(crate) mod terminal;

use super::words::now;
use super::{At, Shape, Source, named_task};
use crate::failure::Failure;
use crate::output::table::{BAD, Cell, DIM, HELD, NAME, PLAIN, block, painted, table};
use crate::output::width::width;
use crate::output::{complain, print, print_json};
use anstyle::Style;
use clap::Args;
use polity_client::Client;
use polity_society::approval::Answer;
use polity_society::id::{ApprovalId, PermissionId, TaskId};
use polity_view::{
    ApprovalAnswer, ApprovalFilter, ApprovalState, ApprovalView, MAX_PAGE, PermissionView, elapsed,
};
use serde_json::Value;

/// If a question shows what the call would change, it leaves out the arguments that are longer than this, in
/// characters.
const SHORT_CHARS: usize = 200;

/// `polity approvals`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// List the questions that have ended, too.
    #[arg(long, conflicts_with = "permissions")]
    all: bool,
    /// Only questions of this task.
    #[arg(long, value_name = "TASK", conflicts_with = "permissions")]
    task: Option<String>,
    /// List what you have allowed for more than one call, instead of questions.
    #[arg(long)]
    permissions: bool,
    /// Remove a permission, so that you are asked about such calls again; needs a daemon.
    #[arg(long, value_name = "ID", conflicts_with_all = ["all", "task", "permissions"])]
    remove: Option<String>,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    shape: Shape,
}

/// `polity approve`
#[derive(Debug, Args)]
pub(crate) struct ApproveArguments {
    /// The id of the question, such as q3.
    #[arg(value_name = "ID")]
    id: String,
    /// Allow such calls until the end of the task.
    #[arg(long, conflicts_with = "always")]
    task: bool,
    /// Always allow such calls.
    #[arg(long)]
    always: bool,
    #[command(flatten)]
    at: At,
    /// Print the question with its answer as one JSON object.
    #[arg(long)]
    json: bool,
}

/// `polity deny`
#[derive(Debug, Args)]
pub(crate) struct DenyArguments {
    /// The id of the question, such as q3.
    #[arg(value_name = "ID")]
    id: String,
    /// The reason for the refusal; the agent gets this text.
    #[arg(value_name = "REASON")]
    reason: Option<String>,
    #[command(flatten)]
    at: At,
    /// Print the question with its answer as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Lists questions or permissions, or removes a permission; returns the exit code.
pub(crate) async fn list(arguments: Arguments) -> Result<u8, Failure> {
    if let Some(id) = arguments.remove {
        arguments.source.daemon()?.remove_permission(&PermissionId::new(id.as_str())).await?;
        print(&format!("removed: {id}"))?;
        return Ok(0);
    }
    let client = arguments.source.client().await?;
    if arguments.permissions {
        let permissions = client.permissions().await?;
        arguments.shape.list(&permissions, "there are no permissions", |permissions| {
            permissions_in_words(permissions, width())
        })?;
        return Ok(0);
    }
    let state = (!arguments.all).then_some(ApprovalState::Open);
    let task = named_task(&client, arguments.task).await?;
    let approvals = all(&client, task, state).await?;
    arguments.shape.list(&approvals, "no agent asks whether it may make a call", |approvals| {
        let now = now();
        approvals.iter().map(|approval| in_words(approval, now)).collect::<Vec<_>>().join("\n")
    })?;
    Ok(0)
}

/// Allows a call; returns the exit code.
pub(crate) async fn approve(arguments: ApproveArguments) -> Result<u8, Failure> {
    let answer = match (arguments.task, arguments.always) {
        (true, _) => Answer::Task,
        (_, true) => Answer::Always,
        (false, false) => Answer::Yes,
    };
    let answer = ApprovalAnswer { answer, reason: None };
    give(&arguments.at, arguments.id, answer, arguments.json).await
}

/// Refuses a call; returns the exit code.
pub(crate) async fn deny(arguments: DenyArguments) -> Result<u8, Failure> {
    let answer = ApprovalAnswer { answer: Answer::No, reason: arguments.reason };
    give(&arguments.at, arguments.id, answer, arguments.json).await
}

async fn give(at: &At, id: String, answer: ApprovalAnswer, json: bool) -> Result<u8, Failure> {
    let approval = at.client()?.answer(&ApprovalId::new(id), &answer).await?;
    if json {
        print_json(&approval)?;
    } else {
        complain(&taken(&approval));
    }
    Ok(0)
}

/// Returns the line with which polity confirms the answer that the user has given.
pub(super) fn taken(approval: &ApprovalView) -> String {
    let may = if approval.state == ApprovalState::Allowed { "may" } else { "may not" };
    let long = match approval.answer {
        Some(Answer::Always) => ", and always may make such a call",
        Some(Answer::Task) => ", and may make such calls until the end of the task",
        Some(Answer::Yes | Answer::No) | None => "",
    };
    format!("{} {may} call {}{long}", approval.agent, approval.tool)
}

/// Fetches the questions in this state, oldest first.
pub(super) async fn all(
    client: &Client,
    task: Option<TaskId>,
    state: Option<ApprovalState>,
) -> Result<Vec<ApprovalView>, Failure> {
    let mut filter = ApprovalFilter { task, state, limit: Some(MAX_PAGE), after: None };
    let mut all = Vec::new();
    loop {
        let page = client.approvals(&filter).await?;
        all.extend(page.approvals);
        filter.after = page.next;
        if filter.after.is_none() {
            all.reverse();
            return Ok(all);
        }
    }
}

/// Formats a question with everything that a person needs to answer it. `now` is in milliseconds since 1970.
pub(super) fn in_words(approval: &ApprovalView, now: i64) -> String {
    let mut lines = vec![format!(
        "{} {} {}",
        painted(NAME, approval.id.as_str()),
        painted(state_style(approval.state), state_in_words(approval.state)),
        painted(PLAIN, &format!("{} ({}) wants to call {}", approval.agent, approval.role, approval.tool)),
    )];
    let asked =
        elapsed(approval.asked_at, now).map_or_else(|| "now".to_owned(), |long| format!("{long} ago"));
    lines.push(format!("  {}", painted(DIM, &format!("in task {}, asked {asked}", approval.task))));
    for (name, value) in arguments_of(approval) {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if approval.preview.is_some() && text.chars().count() > SHORT_CHARS {
            continue;
        }
        lines.push(block("  ", &format!("{name}: {text}")));
    }
    if let Some(preview) = &approval.preview {
        lines.push(block("  ", preview));
    }
    lines.push(format!("  {}", painted(DIM, &approval.why)));
    if !approval.way.is_empty() {
        lines.push(format!("  {}", painted(DIM, &approval.way.join(" → "))));
    }
    if let Some(reason) = &approval.reason {
        lines.push(format!("  {}", painted(PLAIN, reason)));
    }
    lines.join("\n")
}

fn arguments_of(approval: &ApprovalView) -> Vec<(&str, &Value)> {
    match &approval.arguments {
        Value::Object(arguments) => arguments.iter().map(|(name, value)| (name.as_str(), value)).collect(),
        other => vec![("arguments", other)],
    }
}

fn state_in_words(state: ApprovalState) -> &'static str {
    match state {
        ApprovalState::Open => "waits for your answer:",
        ApprovalState::Allowed => "allowed:",
        ApprovalState::Denied => "denied:",
        ApprovalState::Expired => "expired:",
        ApprovalState::Dropped => "no longer needed:",
    }
}

fn state_style(state: ApprovalState) -> Style {
    match state {
        ApprovalState::Open => HELD,
        ApprovalState::Denied | ApprovalState::Expired => BAD,
        ApprovalState::Allowed | ApprovalState::Dropped => DIM,
    }
}

fn permissions_in_words(permissions: &[PermissionView], columns: Option<usize>) -> String {
    let rows: Vec<Vec<Cell>> = permissions.iter().map(permission_row).collect();
    table(&rows, columns)
}

fn permission_row(permission: &PermissionView) -> Vec<Cell> {
    let scope = permission.task.as_ref().map_or_else(|| "always".to_owned(), |task| format!("in {task}"));
    vec![
        Cell::new(NAME, permission.id.as_str()),
        Cell::new(PLAIN, &permission.role),
        Cell::new(PLAIN, &permission.calls),
        Cell::new(DIM, &scope),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::examples::{NOW, approvals};
    use super::*;
    use crate::output::table::without_styles;

    #[test]
    fn questions_in_words() {
        let words: Vec<String> = approvals().iter().map(|approval| in_words(approval, NOW)).collect();
        insta::assert_snapshot!(without_styles(&words.join("\n")));
    }

    #[test]
    fn answers_in_words() {
        let words: Vec<String> = approvals().iter().map(taken).collect();
        insta::assert_snapshot!(words.join("\n"));
    }

    #[test]
    fn permissions_are_listed_with_their_scope() {
        let permission = |task: Option<&str>| PermissionView {
            id: PermissionId::from_number(1),
            task: task.map(TaskId::new),
            tool: "bash".to_owned(),
            role: "coder".to_owned(),
            calls: "bash: git push".to_owned(),
            created_at: 0,
        };
        let permissions = [permission(None), permission(Some("t-abc"))];
        insta::assert_snapshot!(without_styles(&permissions_in_words(&permissions, None)));
    }
}
