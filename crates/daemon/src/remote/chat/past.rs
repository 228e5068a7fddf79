//! The messages from before the chat: the last ones, shown when the chat begins, and the lines that the user can recall.

use crate::failure::Failure;
use crate::output::wrap::wrapped;
use crate::output::{Page, one_line};
use crate::remote::advice::answering;
use crate::remote::conversation::{STOPPED, in_words, was_stopped};
use crate::suggested::repeating;
use polity_client::Client;
use polity_society::id::{AgentId, MessageId, TaskId};
use polity_society::message::MessageState;
use polity_view::{
    MAX_PAGE, MessageFilter, MessageView, NowFilter, NowView, Order, Stuck, TaskFilter, TaskView,
};

/// Number of earlier messages that a chat shows when it begins, and number of questions of other tasks.
const LAST: usize = 6;
/// Maximum number of lines of each of these messages.
const LINES: usize = 12;
/// Maximum length of a quoted question and of the title of its task, in characters.
const QUESTION_CHARS: usize = 60;
/// Number of lines from earlier chats that the user can recall with the arrow keys.
const WRITTEN: u32 = 100;
/// What follows the name of a task that the user has stopped before.
pub(super) const STOPPED_BEFORE: &str = "; you stopped that task, and there is no answer";

/// Fetches the lines that the user wrote to root, oldest first.
pub(super) async fn written(client: &Client) -> Result<Vec<String>, Failure> {
    let filter = MessageFilter {
        from: Some(AgentId::user().as_str().to_owned()),
        to: Some(AgentId::root()),
        order: Order::Newest,
        limit: Some(WRITTEN),
        ..MessageFilter::default()
    };
    let said = client.messages(&filter).await?.messages;
    Ok(said.into_iter().rev().map(|message| message.text).filter(|text| !text.is_empty()).collect())
}

/// Formats the last messages of the task, so that the user sees where the conversation was left. If the user named no
/// task, these are the messages of the newest task, which is returned as well; the last returned text then tells how to
/// continue this task. Messages that the user has not been shown are left out, because the chat shows them in full.
pub(super) async fn last_lines(
    client: &Client,
    task: Option<&TaskId>,
    page: Page,
) -> Result<(Vec<String>, Option<TaskId>), Failure> {
    let of = match task {
        Some(task) => Some(client.task(task).await?),
        None => {
            let filter = TaskFilter { limit: Some(1), ..TaskFilter::default() };
            client.tasks(&filter).await?.tasks.into_iter().next()
        }
    };
    let Some(of) = of else { return Ok((Vec::new(), None)) };
    let newest = if task.is_none() { Some(&of) } else { None };
    let filter = MessageFilter {
        task: Some(of.id.clone()),
        with: Some(AgentId::user()),
        order: Order::Newest,
        limit: Some(MAX_PAGE),
        ..MessageFilter::default()
    };
    let found = client.messages(&filter).await?;
    let mut said = found.messages;
    said.retain(|message| !(message.to.is_user() && message.state == MessageState::Queued));
    said.reverse();
    let mut last = last_in_words(&said, found.next.as_ref(), newest, page);
    if newest.is_none() && was_stopped(&of) {
        last.push(format!("polity: {STOPPED}"));
    }
    Ok((last, newest.map(|task| task.id.clone())))
}

/// Fetches the open questions to the user in all tasks but one, and formats a line for each. `shown` is the task whose
/// questions the chat shows itself.
pub(super) async fn other_questions(client: &Client, shown: Option<&TaskId>) -> Result<Vec<String>, Failure> {
    let now = client.now(&NowFilter { limit: Some(MAX_PAGE) }).await?;
    Ok(other_questions_in_words(&now, shown))
}

fn other_questions_in_words(now: &NowView, shown: Option<&TaskId>) -> Vec<String> {
    let others = now.stuck.iter().filter_map(|thing| {
        let task = thing.task.as_ref().filter(|task| Some(*task) != shown)?;
        let title = one_line(thing.title.as_deref().unwrap_or(task.as_str()), QUESTION_CHARS);
        match &thing.stuck {
            Stuck::Question { agent, text, .. } => {
                let text = one_line(text, QUESTION_CHARS);
                // The lines of a chat go to root.
                let how = if agent.is_root() {
                    format!("/task {task} continues that task")
                } else {
                    let command = answering(agent, task);
                    format!("answer with: {}", repeating(&command))
                };
                Some(format!("polity: [task: {title}] {agent} asks you: {text}; {how}"))
            }
            Stuck::Approval { agent, approval, tool, .. } => Some(format!(
                "polity: [task: {title}] {agent} asks whether it may call {tool}; /task {task} shows the call, /approve \
                 {approval} or /deny {approval} answers"
            )),
            Stuck::Request { .. }
            | Stuck::Parked { .. }
            | Stuck::Paused { .. }
            | Stuck::Service { .. }
            | Stuck::Answered { .. } => None,
        }
    });
    let mut lines: Vec<String> = others.collect();
    if let Some(more) = lines.len().checked_sub(LAST).filter(|more| *more > 0) {
        lines.truncate(LAST);
        let plural = if more == 1 { "" } else { "s" };
        let how = repeating("polity status");
        lines.push(format!("polity: {more} more question{plural} to you; {how} lists them"));
    }
    lines
}

/// Formats the last of these messages, which are in order, the oldest first. `before` is absent if there are no older
/// messages. `newest` is the task of the messages, if the user has not named it.
fn last_in_words(
    said: &[MessageView],
    before: Option<&MessageId>,
    newest: Option<&TaskView>,
    page: Page,
) -> Vec<String> {
    if said.is_empty() {
        return Vec::new();
    }
    let earlier = said.len().saturating_sub(LAST);
    let mut words = Vec::new();
    if earlier > 0 || before.is_some() {
        let more = if before.is_some() { "more than " } else { "" };
        let plural = if earlier == 1 && before.is_none() { " is" } else { "s are" };
        let how = newest.map_or_else(
            || "/history shows them".to_owned(),
            |task| format!("/task {} and then /history show them", task.id),
        );
        words.push(format!("polity: {more}{earlier} earlier message{plural} not shown; {how}"));
    }
    words.extend(said[earlier..].iter().map(|message| in_brief(message, page)));
    words.extend(newest.map(|task| {
        let stopped = if was_stopped(task) { STOPPED_BEFORE } else { "" };
        format!("polity: these were the last messages{stopped}; /task {} continues that task", task.id)
    }));
    words
}

/// Formats the beginning of a message.
fn in_brief(message: &MessageView, page: Page) -> String {
    let words = one_in_words(message, page);
    let (words, reset) = match page {
        // Only the messages of agents are broken into lines already.
        Page::Terminal { columns } if is_own(message) => (wrapped(&words, columns), String::new()),
        Page::Terminal { .. } => (words, anstyle::Reset.to_string()),
        Page::Pipe => (words, String::new()),
    };
    let lines: Vec<&str> = words.lines().collect();
    match lines.get(LINES..).map_or(0, <[&str]>::len) {
        0 => words,
        1 => format!("{}{reset}\n… 1 more line", lines[..LINES].join("\n")),
        left => format!("{}{reset}\n… {left} more lines", lines[..LINES].join("\n")),
    }
}

fn is_own(message: &MessageView) -> bool {
    message.from == AgentId::user().as_str()
}

fn one_in_words(message: &MessageView, page: Page) -> String {
    if !is_own(message) {
        return in_words(message, None, page);
    }
    let artifacts = message.attachments.iter().map(|artifact| format!("\n+ {}", artifact.reference));
    format!("> {}{}", page.plain(&message.text), artifacts.collect::<String>())
}

/// Formats messages between the user and the agents.
pub(super) fn history_in_words(said: &[MessageView], page: Page) -> String {
    said.iter().map(|message| one_in_words(message, page)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::examples::{messages, tasks};
    use axum::routing::get;
    use axum::{Json, Router};
    use polity_society::id::ApprovalId;
    use polity_view::{MessagePage, Outcome, StuckView, TaskPage, TaskState};
    use std::future::ready;

    #[test]
    fn questions_of_other_tasks_are_announced() {
        let question = |agent: &str| Stuck::Question {
            agent: AgentId::new(agent),
            message: MessageId::from_sequence(7),
            text: "May or June?".to_owned(),
        };
        let approval = || Stuck::Approval {
            agent: AgentId::root(),
            approval: ApprovalId::from_number(4),
            tool: "bash".to_owned(),
            expires_at: 0,
        };
        let thing = |task: &str, stuck| StuckView {
            key: String::new(),
            since: 0,
            stuck,
            task: Some(TaskId::new(task)),
            title: Some(format!("the prompt of {task}")),
            remedies: Vec::new(),
        };
        let words = |stuck: Vec<StuckView>, shown: Option<&str>| {
            let stuck_total = stuck.len() as u64;
            let now = NowView {
                at: 0,
                as_of: 0,
                running: true,
                working: Vec::new(),
                working_total: 0,
                at_work_total: 0,
                stuck,
                stuck_total,
            };
            other_questions_in_words(&now, shown.map(TaskId::new).as_ref())
        };
        let all = || {
            vec![
                thing("t-1", question("root")),
                thing("t-2", approval()),
                thing("t-3", question("ida")),
                thing("t-4", question("root")),
            ]
        };
        insta::assert_snapshot!(words(all(), Some("t-4")).join("\n"), @r#"
        polity: [task: the prompt of t-1] root asks you: May or June?; /task t-1 continues that task
        polity: [task: the prompt of t-2] root asks whether it may call bash; /task t-2 shows the call, /approve q4 or /deny q4 answers
        polity: [task: the prompt of t-3] ida asks you: May or June?; answer with: polity send --to ida --task t-3 "…"
        "#);
        assert_eq!(words(vec![thing("t-1", approval())], Some("t-1")), [] as [String; 0]);
        let many = words((0..LAST + 2).map(|_| thing("t-1", approval())).collect(), None);
        assert_eq!(many.len(), LAST + 1);
        assert_eq!(many[LAST], "polity: 2 more questions to you; polity status lists them");
    }

    #[tokio::test]
    async fn a_chat_of_a_stopped_task_begins_with_the_stop() {
        let stopped = TaskView {
            state: TaskState::Idle,
            outcome: Some(Outcome::Unanswered),
            stopped_by: Some("user".to_owned()),
            ..tasks()[3].clone()
        };
        let page = MessagePage { messages: vec![messages()[0].clone()], next: None };
        let (task, tasks) = (stopped.clone(), TaskPage { tasks: vec![stopped.clone()], next: None });
        let routes = Router::new()
            .route("/api/tasks", get(move || ready(Json(tasks.clone()))))
            .route("/api/tasks/{id}", get(move || ready(Json(task.clone()))))
            .route("/api/messages", get(move || ready(Json(page.clone()))));
        let client = Client::in_process(routes).unwrap();
        let last = async |task: Option<&TaskId>| {
            let (mut lines, newest) = last_lines(&client, task, Page::Pipe).await.unwrap();
            (lines.pop(), newest)
        };
        let told = Some("polity: you stopped the task, and there is no answer".to_owned());
        assert_eq!(last(Some(&stopped.id)).await, (told, None));
        // The offer to continue the newest task names the stop itself.
        let (told, newest) = last(None).await;
        assert_eq!(newest, Some(stopped.id));
        assert!(told.as_ref().is_some_and(|told| told.ends_with(" continues that task")), "{told:?}");
    }

    #[test]
    fn only_the_last_messages_are_shown_and_of_each_its_beginning() {
        let [own, .., answer, _] = &messages()[..] else { panic!("too few messages") };
        let own = |number: usize| MessageView {
            text: format!("question {number}"),
            attachments: Vec::new(),
            ..own.clone()
        };
        let said: Vec<MessageView> = (1..=8).map(own).collect();
        let task = tasks().pop().unwrap();
        insta::assert_snapshot!(last_in_words(&said, None, None, Page::Pipe).join("\n"), @r"
        polity: 2 earlier messages are not shown; /history shows them
        > question 3
        > question 4
        > question 5
        > question 6
        > question 7
        > question 8
        ");
        let named = |said: &[MessageView], before| last_in_words(said, before, Some(&task), Page::Pipe);
        let first = MessageId::from_sequence(1);
        let words = named(&said, Some(&first));
        assert_eq!(
            words.first().map(String::as_str),
            Some(
                "polity: more than 2 earlier messages are not shown; /task task-4x2k and then /history show them"
            )
        );
        assert_eq!(
            words.last().map(String::as_str),
            Some("polity: these were the last messages; /task task-4x2k continues that task")
        );
        assert_eq!(
            named(&said[1..], None)[0],
            "polity: 1 earlier message is not shown; /task task-4x2k and then /history show them"
        );
        assert_eq!(named(&said[2..], None)[0], "> question 3");
        assert_eq!(named(&[], None), [] as [String; 0]);
        let stopped = TaskView {
            state: TaskState::Idle,
            outcome: Some(Outcome::Unanswered),
            stopped_by: Some("user".to_owned()),
            ..task.clone()
        };
        assert_eq!(
            last_in_words(&said, None, Some(&stopped), Page::Pipe).last().map(String::as_str),
            Some(
                "polity: these were the last messages; you stopped that task, and there is no answer; /task task-4x2k \
                 continues that task"
            )
        );

        let lines = |count: usize| (1..=count).map(|line| format!("line {line}\n")).collect::<String>();
        let of = |count: usize| MessageView { text: lines(count), ..answer.clone() };
        let shown = |count: usize| in_brief(&of(count), Page::Pipe);
        assert!(!shown(LINES - 1).contains("more line"), "{}", shown(LINES - 1));
        // The name of the agent is a line of its own.
        assert!(shown(LINES).ends_with("\nline 11\n… 1 more line"), "{}", shown(LINES));
        assert!(shown(100).ends_with("\nline 11\n… 89 more lines"), "{}", shown(100));
        // A long message of the user has no line breaks of its own.
        let long = MessageView { text: "wonderful ".repeat(100), ..own(1) };
        let words = in_brief(&long, Page::Terminal { columns: 40 });
        assert_eq!(words.lines().count(), LINES + 1, "{words}");
    }
}
