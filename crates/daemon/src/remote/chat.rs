//! `polity chat`: a conversation with root. Prints the messages for the user as they arrive. The lines that the user
//! types go to root. They all belong to one task until the user begins a new task.

mod around;
mod leaving;
mod line;
mod lines;
mod past;
mod printer;
mod questions;

use super::approvals::terminal::is_answer;
use super::conversation::{STOPPED, in_words, is_for_person, outcome, tell_outcome, unshown, was_stopped};
use super::events::newest_event;
use super::live::Live;
use super::send::{paused, stored};
use super::words::now;
use super::{At, approvals, tasks, unfinished};
use crate::failure::Failure;
use crate::output::foot::can_move;
use crate::output::wrap::wrapped;
use crate::output::{Form, Page, complain, one_line};
use crate::signals::Interruption;
use crate::suggested::repeating;
use crate::values::workspace;
use around::{Around, Heard, Look, Stays, say, tell};
use clap::Args;
use leaving::goes_on;
use line::{Line, parse};
use lines::{Lines, Typed};
use past::{STOPPED_BEFORE, history_in_words, last_lines, other_questions, written};
use polity_client::{Client, Follow, Followed, IdempotencyKey, NewMessage};
use polity_society::id::{AgentId, ApprovalId, MessageId, TaskId};
use polity_view::{
    ApprovalState, ApprovalView, EventFilter, MAX_PAGE, MessageFilter, MessageView, Order, TaskFilter,
    TaskView,
};
use printer::{Printer, Shown};
use questions::{gets_it_later, instead_of_sending};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// `polity chat`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    at: At,
    /// The task that the conversation continues [default: a new one].
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// The directory in which the agents of new tasks work on files and run commands; `:ro` at the end of its path
    /// makes the directory read-only [default: a new directory for each task].
    #[arg(long, value_name = "DIR", value_parser = workspace)]
    workspace: Option<String>,
}

/// What happens when the user wants to leave an interactive chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// The chat says what the daemon goes on with, and ends.
    AtOnce,
    /// The society ends with the chat. If work is unfinished, the chat says so, and the user leaves by asking again.
    WithWarning,
    /// The user has been warned, and has said nothing to root since then. The chat ends at once.
    AfterWarning,
}

/// Maximum length of a quoted line of the user, in characters.
const DROPPED_CHARS: usize = 60;
/// Maximum length of the title of a task above a message, in characters.
const TITLE_CHARS: usize = 60;
/// Maximum interval between two redraws of the lines about the agents. These lines show elapsed times, so they change
/// even if no event arrives.
const SECOND: Duration = Duration::from_secs(1);

/// What `/history` shows before a task is chosen.
const NO_TASK: &str =
    "no task is chosen, so your next message begins one; /task ID chooses one, /tasks lists them";

const HELP: &str = "every line is a message to root, except these commands:\n  \
    /attach FILE  attaches a file, or an artifact: reference, to your next message\n  \
    /new          begins a new task with your next message\n  \
    /task ID      continues another task\n  \
    /tasks        lists the tasks\n  \
    /approve ID   allows the call that an agent asks about; /approve ID task and /approve ID always allow such calls\n  \
    /deny ID WHY  refuses it; the agent is told why\n  \
    /history      shows the messages between you and the agents in this task\n  \
    /quit         leaves the chat; a daemon that was already running goes on\n\
    to send root a line that begins with /, begin it with //; Alt+Enter begins a new line of the same message; Ctrl-C \
    empties the line, and leaves the chat if the line is empty";

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments, leaving: Leaving) -> Result<u8, Failure> {
    let client = arguments.at.client()?;
    let newest = newest_event(&client).await?;
    let (task, workspace) = (arguments.task.map(TaskId::new), arguments.workspace);
    if let Some(task) = &task {
        client.task(task).await?;
    }
    if let Some(words) = paused(&client, &AgentId::root()).await? {
        complain(&words);
    }
    let interactive = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let follow = if interactive && can_move() {
        client.follow_live(newest, EventFilter::default())
    } else {
        client.follow(newest, EventFilter::default())
    };
    // A person at a terminal sees the connection in the foot of the chat.
    let client = if interactive { client.waiting() } else { client.waiting_aloud(complain) };
    let mut interruption = Interruption::listen()
        .map_err(|error| Failure::Defect(format!("cannot listen for signals: {error}")))?;
    if interactive {
        // Remember the terminal mode before the line editor changes it. Dropping `mode` restores the mode, even
        // after an error.
        let mut mode = lines::Mode::note();
        // Until the line editor begins to read keys, Ctrl-C is a signal.
        let told = client.waiting_aloud(complain);
        let (before, past) = tokio::select! {
            read = fetch_past(&told, task.as_ref()) => read?,
            () = interruption.happened() => return Err(Failure::Left),
        };
        let (lines, printer) = lines::typed(&before)?;
        mode.forget_unless_edited(&printer);
        let printer = Arc::new(Mutex::new(printer));
        let mut chat = Chat::new(client, task, workspace, Arc::clone(&printer), leaving);
        let mut around = Around {
            lines,
            follow,
            is_lost: false,
            printer,
            held: VecDeque::new(),
            look: Look::Now,
            unanswered: BTreeSet::new(),
            live: Live::default(),
            leaves_since: None,
        };
        return tokio::select! {
            code = chat.begin(&mut around, past) => code,
            () = interruption.happened() => Err(Failure::Left),
        };
    }
    let mut chat = Chat::new(client, task, workspace, Arc::new(Mutex::new(Printer::Plain)), leaving);
    tokio::select! {
        code = chat.read_out(lines::piped(), follow) => code,
        () = interruption.happened() => Err(Failure::Left),
    }
}

/// What the chat shows when it begins.
struct Past {
    /// The last messages of the task.
    last: Vec<String>,
    /// The newest task, if the user named no task.
    newest: Option<TaskId>,
    /// The open questions of other tasks.
    others: Vec<String>,
}

/// Fetches the lines that the user wrote in earlier chats, and what the chat shows when it begins.
async fn fetch_past(client: &Client, task: Option<&TaskId>) -> Result<(Vec<String>, Past), Failure> {
    let before = written(client).await?;
    let (last, newest) = last_lines(client, task, Page::now()).await?;
    let others = other_questions(client, task.or(newest.as_ref())).await?;
    Ok((before, Past { last, newest, others }))
}

struct Chat {
    client: Client,
    task: Option<TaskId>,
    /// The tasks whose messages and questions the chat shows: the tasks in which the user has written here or that the
    /// user has chosen, and the task that was the newest when the chat began. The other tasks belong to other clients.
    followed: BTreeSet<TaskId>,
    /// The directory in which the agents of new tasks work.
    workspace: Option<String>,
    attached: Vec<String>,
    /// The message that is being sent. If the user interrupts this and stays, the chat sends it again with the same key,
    /// because the daemon may have accepted it.
    sending: Option<NewMessage>,
    /// The questions about calls that were printed already. Each question is printed only once.
    asked: BTreeSet<ApprovalId>,
    /// The questions of root for which the chat has said that root gets messages only after the answer.
    holding: BTreeSet<ApprovalId>,
    /// The messages that the printer has got, but that are not marked as shown yet. If the user interrupts this, the
    /// next attempt does not print them again.
    handed: BTreeMap<MessageId, Shown>,
    printer: Arc<Mutex<Printer>>,
    leaving: Leaving,
}

/// Whether a message is printed below the title of its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heading {
    None,
    Title,
}

/// Formats the title of a task that the user has not chosen, as a line of its own above a message.
fn heading(task: &TaskView, page: Page) -> String {
    let title = one_line(&task.title, TITLE_CHARS);
    let words = format!("[task: {title}; /task {} continues it]", task.id);
    match page {
        Page::Terminal { columns } => wrapped(&page.plain(&words), columns),
        Page::Pipe => words,
    }
}

/// An operation that took too long when the user wanted to leave.
#[derive(Clone, Copy, Debug)]
enum Dropped<'a> {
    /// The sending of a message. If the user stays, it is sent again.
    Message(&'a str),
    /// What another line of the user asked for.
    Line(&'a str),
}

/// Returns what the chat says before the society ends with unfinished work; nothing if no work is unfinished. `work`
/// says what is unfinished.
fn warning(work: Option<&str>, dropped: Option<Dropped<'_>>) -> Option<String> {
    let mut lines = Vec::new();
    match dropped {
        Some(Dropped::Message(text)) => {
            let text = one_line(text, DROPPED_CHARS);
            lines.push(format!("polity: perhaps not sent: {text}"));
            lines.push("polity: if you stay, the chat sends it again, and root gets it once".to_owned());
        }
        Some(Dropped::Line(line)) => {
            let line = one_line(line, DROPPED_CHARS);
            lines.push(format!("polity: interrupted, so perhaps this has not happened: {line}"));
        }
        None => {}
    }
    if let Some(words) = work {
        lines.push(format!("polity: {words}"));
        lines.push(format!("polity: {}", unfinished::NOTHING_LOST));
    }
    if lines.is_empty() {
        return None;
    }
    lines.push("polity: /quit once more leaves now".to_owned());
    Some(lines.join("\n"))
}

/// What an interactive chat does next.
enum Work {
    /// Sends a message again, because the user has interrupted its sending.
    SendAgain,
    /// Executes a line of the user.
    Line(String),
}

/// What the chat does after a line of the user.
enum Next {
    /// A message was sent to root. A piped chat now waits for the answer.
    Said,
    /// Take the next line.
    Line,
    /// Leave the chat.
    Leave,
}

impl Chat {
    fn new(
        client: Client,
        task: Option<TaskId>,
        workspace: Option<String>,
        printer: Arc<Mutex<Printer>>,
        leaving: Leaving,
    ) -> Self {
        Self {
            client,
            followed: task.iter().cloned().collect(),
            task,
            workspace,
            attached: Vec::new(),
            sending: None,
            asked: BTreeSet::new(),
            holding: BTreeSet::new(),
            handed: BTreeMap::new(),
            printer,
            leaving,
        }
    }

    fn print(&self, text: &str) -> Result<(), Failure> {
        say(&self.printer, text)
    }

    /// Shows the past, and then runs an interactive chat.
    async fn begin(&mut self, around: &mut Around, past: Past) -> Result<u8, Failure> {
        let Past { mut last, newest, others } = past;
        let how_to_continue = newest.as_ref().and_then(|_| last.pop());
        for words in last {
            tell(&self.printer, &words, Page::now())?;
        }
        self.followed.extend(newest.clone());
        while let Some(newest) = &newest {
            match around.beside(self.show_unshown_in(newest.clone(), Heading::None)).await? {
                Heard::Done(shown) => {
                    shown?;
                    break;
                }
                Heard::TooLong => {
                    if self.stays(around, None).await? == Stays::No {
                        return Ok(0);
                    }
                }
                Heard::Leave => return Ok(0),
            }
        }
        if let Some(words) = how_to_continue {
            tell(&self.printer, &words, Page::now())?;
        }
        for words in others {
            self.print(&words)?;
        }
        self.print("/help lists the commands")?;
        self.converse(around).await
    }

    /// Runs an interactive chat: handles lines and prints messages as they come.
    async fn converse(&mut self, around: &mut Around) -> Result<u8, Failure> {
        loop {
            if around.leaves_since.is_some() {
                if self.stays(around, None).await? == Stays::No {
                    return Ok(0);
                }
            } else if around.look == Look::Now {
                around.look = Look::WhenSomethingHappens;
                let unanswered = std::mem::take(&mut around.unanswered);
                match around.beside(self.show_news(&unanswered)).await? {
                    Heard::Done(shown) => shown?,
                    // The next round asks whether the user stays. If so, all this is shown then.
                    Heard::TooLong => {
                        around.look = Look::Now;
                        around.unanswered.extend(unanswered);
                    }
                    Heard::Leave => return Ok(0),
                }
            } else if let Some(work) = self.next_work(around) {
                match around.beside(self.carry_out(&work)).await? {
                    Heard::Done(Ok(Next::Leave)) | Heard::Leave => return Ok(0),
                    Heard::Done(Ok(Next::Said | Next::Line)) => {}
                    Heard::TooLong => {
                        let sending = self.sending.as_ref().map(|letter| letter.text.clone());
                        let dropped = match (&sending, &work) {
                            (Some(text), _) => Some(Dropped::Message(text)),
                            (None, Work::Line(line)) => Some(Dropped::Line(line)),
                            (None, Work::SendAgain) => None,
                        };
                        if self.stays(around, dropped).await? == Stays::No {
                            return Ok(0);
                        }
                    }
                    // If one line fails, the chat goes on, unless standard output is closed.
                    Heard::Done(Err(Failure::OutputClosed)) => return Err(Failure::OutputClosed),
                    Heard::Done(Err(failure)) => {
                        self.print(&format!("polity: {}", repeating(&failure.to_string())))?;
                    }
                }
            } else {
                let stays = tokio::select! {
                    typed = around.lines.next() => around.hear(typed),
                    followed = around.follow.next() => around.notice(followed)?,
                    () = tokio::time::sleep(SECOND) => {
                        around.draw()?;
                        Stays::Yes
                    }
                };
                if stays == Stays::No {
                    return Ok(0);
                }
            }
        }
    }

    /// Returns what to do next, if the user has typed a line or has interrupted the sending of a message.
    fn next_work(&self, around: &mut Around) -> Option<Work> {
        match self.sending {
            Some(_) => Some(Work::SendAgain),
            None => around.held.pop_front().map(Work::Line),
        }
    }

    async fn carry_out(&mut self, work: &Work) -> Result<Next, Failure> {
        match work {
            Work::SendAgain => {
                self.send().await?;
                Ok(Next::Said)
            }
            Work::Line(line) => self.take(line).await,
        }
    }

    /// Decides whether the user, who wants to leave, stays once more: if the society would end with unfinished work, the
    /// chat says so first.
    async fn stays(&mut self, around: &mut Around, dropped: Option<Dropped<'_>>) -> Result<Stays, Failure> {
        around.leaves_since = None;
        match self.leaving {
            Leaving::AtOnce => {
                // A daemon that does not answer tells nothing now, either.
                if dropped.is_none()
                    && !around.is_lost
                    && let Some(words) = self.work_of_the_daemon().await
                {
                    self.print(&repeating(&words))?;
                }
                return Ok(Stays::No);
            }
            Leaving::AfterWarning => return Ok(Stays::No),
            Leaving::WithWarning => {}
        }
        let work = unfinished::unfinished(&self.client).await;
        let Some(warning) = warning(work.as_deref(), dropped) else { return Ok(Stays::No) };
        self.print(&warning)?;
        self.leaving = Leaving::AfterWarning;
        around.lines.go_on();
        Ok(Stays::Yes)
    }

    /// Says what is unfinished in the followed tasks. Returns nothing if nothing is, or if the daemon does not tell.
    async fn work_of_the_daemon(&self) -> Option<String> {
        let read = async {
            let mut tasks = Vec::new();
            for task in &self.followed {
                // If a task was forgotten meanwhile, the other tasks are still named.
                if let Ok(view) = self.client.task(task).await {
                    tasks.push(view);
                }
            }
            goes_on(&tasks)
        };
        tokio::time::timeout(unfinished::PATIENCE, read).await.ok().flatten()
    }

    /// Runs a chat whose lines come from a pipe: sends each line after the previous one was answered. Returns the exit
    /// code of the last task.
    async fn read_out(&mut self, mut lines: Lines, mut follow: Follow) -> Result<u8, Failure> {
        let mut code = 0;
        while let Some(Typed::Line(line)) = lines.next().await {
            match self.take(&line).await? {
                Next::Said => code = self.wait(&mut follow).await?,
                Next::Line => {}
                Next::Leave => break,
            }
        }
        Ok(code)
    }

    /// Prints messages until nothing is left to do in the task; returns the exit code of the task.
    async fn wait(&mut self, follow: &mut Follow) -> Result<u8, Failure> {
        let Some(task) = self.task.clone() else { return Ok(0) };
        while let Some(followed) = follow.next().await {
            match followed {
                Followed::Entry(entry) => {
                    if is_for_person(&entry.event) {
                        self.show_unshown().await?;
                    }
                    if entry.event.task() == Some(&task)
                        && let polity_view::Event::TaskIdle { .. } = entry.event
                        && let Some(outcome) = outcome(&self.client, &task).await?
                    {
                        return tell_outcome(&self.client, &task, outcome, Form::Text).await;
                    }
                }
                Followed::Glimpse(_) => {}
                Followed::Connected => self.client.is_back(),
                Followed::Lost(loss) => self.client.is_lost(loss),
                Followed::Failed(error) => return Err(error.into()),
            }
        }
        Err(Failure::Defect("the event stream ended".to_owned()))
    }

    /// Executes one line of the user.
    async fn take(&mut self, line: &str) -> Result<Next, Failure> {
        match parse(line) {
            Line::Empty => {}
            Line::Say(text) => {
                if is_answer(&text)
                    && let Some(words) = instead_of_sending(&text, &self.open_questions().await?)
                {
                    self.print(&words)?;
                    return Ok(Next::Line);
                }
                self.say(text).await?;
                self.tell_what_holds_root().await?;
                return Ok(Next::Said);
            }
            Line::Attach(file) => {
                let reference = stored(&self.client, &file).await?;
                let words = format!("{reference} will be attached to your next message");
                self.attached.push(reference);
                self.print(&words)?;
            }
            Line::Tasks => {
                let filter = TaskFilter { limit: Some(20), ..TaskFilter::default() };
                let mut found = self.client.tasks(&filter).await?.tasks;
                found.reverse();
                let words = tasks::words(&found);
                self.print(&anstream::adapter::strip_str(&words).to_string())?;
            }
            Line::History => match self.task.clone() {
                Some(task) => {
                    let page = Page::now();
                    let words = self.history(task, page).await?;
                    tell(&self.printer, &words, page)?;
                }
                None => self.print(NO_TASK)?,
            },
            Line::Answer(id, answer) => {
                let approval = self.client.answer(&id, &answer).await?;
                self.print(&approvals::taken(&approval))?;
            }
            Line::New => {
                self.task = None;
                self.print("a new task begins with your next message")?;
            }
            Line::Task(task) => {
                let view = self.client.task(&task).await?;
                let stopped = if was_stopped(&view) { STOPPED_BEFORE } else { "" };
                let words = format!("{task}: {}{stopped}", view.title);
                self.choose(task);
                self.print(&words)?;
                self.show_unshown().await?;
            }
            Line::Help => self.print(HELP)?,
            Line::Quit => return Ok(Next::Leave),
            Line::Unknown(line) => {
                self.print(&format!("polity: there is no {line}; /help lists the commands"))?
            }
        }
        Ok(Next::Line)
    }

    async fn say(&mut self, text: String) -> Result<(), Failure> {
        if self.leaving == Leaving::AfterWarning {
            self.leaving = Leaving::WithWarning;
        }
        let letter = NewMessage {
            to: AgentId::root(),
            text,
            attachments: self.attached.clone(),
            task: self.task.clone(),
            service: None,
            // Only a message that begins a task may name a workspace.
            workspace: self.workspace.clone().filter(|_| self.task.is_none()),
            key: IdempotencyKey::mint(),
        };
        self.sending = Some(letter);
        self.send().await
    }

    /// Fetches the open questions among those that the chat has printed, oldest first.
    async fn open_questions(&self) -> Result<Vec<ApprovalView>, Failure> {
        let mut open = Vec::new();
        if self.asked.is_empty() {
            return Ok(open);
        }
        for task in &self.followed {
            open.extend(approvals::all(&self.client, Some(task.clone()), Some(ApprovalState::Open)).await?);
        }
        open.retain(|approval| self.asked.contains(&approval.id));
        open.sort_by_key(|approval| approval.id.number());
        Ok(open)
    }

    /// Says that root gets the message that was just sent only after the answer to a question. Says it once for each
    /// question.
    async fn tell_what_holds_root(&mut self) -> Result<(), Failure> {
        for approval in self.open_questions().await? {
            let holds = approval.agent.is_root() && self.task.as_ref() == Some(&approval.task);
            if holds && self.holding.insert(approval.id.clone()) {
                self.print(&gets_it_later(&approval.id))?;
            }
        }
        Ok(())
    }

    /// Sends the message that is being sent, perhaps once more.
    async fn send(&mut self) -> Result<(), Failure> {
        let Some(letter) = self.sending.clone() else { return Ok(()) };
        let posted = self.client.send(&letter).await;
        self.sending = None;
        let posted = posted?;
        self.attached.clear();
        for warning in &posted.warnings {
            self.print(&format!("warning: {}", repeating(&warning.text)))?;
        }
        self.choose(posted.task);
        Ok(())
    }

    /// Makes the next message continue this task.
    fn choose(&mut self, task: TaskId) {
        self.followed.insert(task.clone());
        self.task = Some(task);
    }

    /// Prints the messages that the user has not been shown, and says which of these tasks without an answer the user has
    /// stopped.
    async fn show_news(&mut self, unanswered: &BTreeSet<TaskId>) -> Result<(), Failure> {
        self.show_unshown().await?;
        for task in unanswered.intersection(&self.followed) {
            let view = self.client.task(task).await?;
            if was_stopped(&view) && self.task.as_ref() == Some(task) {
                self.print(&format!("polity: {STOPPED}"))?;
            } else if was_stopped(&view) {
                let title = one_line(&view.title, TITLE_CHARS);
                self.print(&format!("polity: [task: {title}] {STOPPED}"))?;
            }
        }
        Ok(())
    }

    /// Prints the messages that the user has not been shown in the followed tasks, as [`Self::show_unshown_in`] does.
    async fn show_unshown(&mut self) -> Result<(), Failure> {
        for task in self.followed.clone() {
            let heading = if self.task.as_ref() == Some(&task) { Heading::None } else { Heading::Title };
            self.show_unshown_in(task, heading).await?;
        }
        Ok(())
    }

    /// Prints the messages of a task that the user has not been shown. Also prints new questions about whether agents may
    /// make calls.
    async fn show_unshown_in(&mut self, task: TaskId, heading: Heading) -> Result<(), Failure> {
        let messages = unshown(&self.client, Some(&task)).await?;
        let titled = match heading {
            Heading::Title if !messages.is_empty() => Some(self.client.task(&task).await?),
            Heading::Title | Heading::None => None,
        };
        for message in messages {
            self.show(&message, titled.as_ref()).await?;
            self.client.mark_shown(&message.id).await?;
            self.handed.remove(&message.id);
        }
        for approval in approvals::all(&self.client, Some(task), Some(ApprovalState::Open)).await? {
            if self.asked.insert(approval.id.clone()) {
                let words = anstream::adapter::strip_str(&approvals::in_words(&approval, now())).to_string();
                self.print(&format!("{words}\n  /approve {0} or /deny {0}", approval.id))?;
            }
        }
        Ok(())
    }

    /// Prints a message, and waits until it is on the terminal. Until then, the message must not be marked as shown:
    /// nobody would see it if the chat ended. If `titled` is given, the title of this task stands above the message.
    async fn show(&mut self, message: &MessageView, titled: Option<&TaskView>) -> Result<(), Failure> {
        let shown = match self.handed.entry(message.id.clone()) {
            Entry::Occupied(handed) => handed.into_mut(),
            Entry::Vacant(new) => {
                let page = Page::now();
                let mut words = in_words(message, None, page);
                if let Some(task) = titled {
                    words = format!("{}\n{words}", heading(task, page));
                }
                let mut printer = self.printer.lock().unwrap_or_else(PoisonError::into_inner);
                new.insert(printer.show(&words, page)?)
            }
        };
        shown.happened().await
    }

    /// Fetches and formats the messages between the user and the agents in a task, oldest first.
    async fn history(&self, task: TaskId, page: Page) -> Result<String, Failure> {
        let filter = MessageFilter {
            task: Some(task),
            with: Some(AgentId::user()),
            order: Order::Newest,
            limit: Some(MAX_PAGE),
            ..MessageFilter::default()
        };
        let mut said = self.client.messages(&filter).await?.messages;
        said.reverse();
        Ok(history_in_words(&said, page))
    }
}

#[cfg(test)]
mod tests;
