//! Tasks as the user sees them: prints the messages for the user, marks them as shown, and reports how a task ends.

mod known_failure;
mod questions;

use super::approvals::terminal::{Answerable, Terminal};
use super::live::Live;
use super::words::now;
use crate::failure::{self, Failure};
use crate::output::foot::columns;
use crate::output::{Foot, Form, Page, complain, one_line, outcome_in_words, print_json, print_on};
use crate::suggested::repeating;
pub(crate) use known_failure::Resumable;
use known_failure::tell_known_failure;
use polity_client::{Client, Followed, Side};
use polity_society::id::{AgentId, MessageId, TaskId};
use polity_society::message::{Finality, MessageState, Sender};
use polity_view::{
    Entry, Event, EventFilter, EventKind, MAX_PAGE, MessageFilter, MessageView, Order, Outcome, TaskState,
    TaskView,
};
use questions::OpenQuestions;
pub(crate) use questions::asking_tasks;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Maximum interval between two redraws of the foot. The foot shows elapsed times, so it changes even if no event
/// arrives.
const SECOND: Duration = Duration::from_secs(1);
/// Maximum length of the title of a task above a message, in characters.
const TITLE_CHARS: usize = 60;
/// What the user is told about a task that the user has stopped.
pub(crate) const STOPPED: &str = "you stopped the task, and there is no answer";

/// Formats a message to the user as text. If `title` is given, it stands above the message as the title of the task.
/// The user expects messages from the system and from root, so only other senders are named.
pub(crate) fn in_words(message: &MessageView, title: Option<&str>, page: Page) -> String {
    let mut words =
        title.map_or_else(String::new, |title| page.plain(&format!("[task: {title}]\n")).into_owned());
    let is_from_root = message.from == AgentId::root().as_str();
    if !is_from_root && !matches!(Sender::from_name(&message.from), Sender::System) {
        words.push_str(&page.plain(&format!("[{} {}]\n", message.from_role, message.from)));
    }
    if message.finality == Finality::Interim {
        words.push_str("… ");
    }
    words.push_str(&page.written(&message.text));
    for artifact in &message.attachments {
        words.push_str("\n+ ");
        match &artifact.filename {
            Some(filename) => words.push_str(&page.plain(&format!("{filename} ({})", artifact.reference))),
            None => words.push_str(&artifact.reference),
        }
    }
    words
}

/// Fetches the messages that the user has not been shown, oldest first. If a task is given, fetches only its messages.
pub(crate) async fn unshown(client: &Client, task: Option<&TaskId>) -> Result<Vec<MessageView>, Failure> {
    let mut filter = MessageFilter {
        task: task.cloned(),
        to: Some(AgentId::user()),
        unshown: true,
        order: Order::Oldest,
        limit: Some(MAX_PAGE),
        ..MessageFilter::default()
    };
    let mut all = Vec::new();
    loop {
        let page = client.messages(&filter).await?;
        all.extend(page.messages);
        if page.next.is_none() {
            return Ok(all);
        }
        filter.after = page.next;
    }
}

/// The printing of the messages that the user gets in some tasks. Each message is printed once, and then marked as
/// shown.
pub(crate) struct Telling<'a> {
    client: &'a Client,
    /// The tasks whose messages are printed. The outcome of the last task becomes the exit code.
    tasks: &'a [TaskId],
    form: Form,
    /// Messages that were already printed as JSON, either from the event stream or from events stored before the stream
    /// began.
    told: BTreeSet<MessageId>,
    /// Messages that were printed as text.
    printed: BTreeSet<MessageId>,
    /// Whether a message of the last task was printed as text.
    has_printed: bool,
    /// The titles of the tasks, if there are several.
    titles: BTreeMap<TaskId, String>,
    /// The dialogue that asks the user about calls, if there is a terminal.
    terminal: Option<Terminal<'a>>,
    /// The message that the user waits for an answer to; absent if all messages of the tasks are printed.
    awaited: Option<Awaited>,
}

/// A message of the user to an agent other than root. As text, only messages that may answer it are printed.
pub(crate) struct Awaited {
    pub(crate) agent: AgentId,
    pub(crate) letter: MessageId,
}

impl Awaited {
    /// Returns whether a message to the user may answer the awaited message. A later message of the agent may, even if
    /// it does not say what it answers. So may notices of polity: they say why there is no answer.
    fn may_be_answered_by(&self, message: &MessageView) -> bool {
        let is_later = message.id.sequence() > self.letter.sequence();
        let is_from =
            message.from == self.agent.as_str() || matches!(Sender::from_name(&message.from), Sender::System);
        let answers_others = !message.in_reply_to.is_empty() && !message.in_reply_to.contains(&self.letter);
        message.in_reply_to.contains(&self.letter) || (is_later && is_from && !answers_others)
    }
}

impl<'a> Telling<'a> {
    pub(crate) fn new(client: &'a Client, tasks: &'a [TaskId], form: Form) -> Self {
        Self {
            client,
            tasks,
            form,
            told: BTreeSet::new(),
            printed: BTreeSet::new(),
            has_printed: false,
            titles: BTreeMap::new(),
            terminal: None,
            awaited: None,
        }
    }

    /// Makes this value ask the user on the terminal whether agents may make calls. It asks only if the user can answer
    /// on the terminal and the output is text.
    pub(crate) fn asking(self, answerable: Answerable) -> Self {
        let asks = answerable == Answerable::Yes && self.form == Form::Text;
        let terminal = asks.then(|| Terminal::new(self.client, self.tasks));
        Self { terminal, ..self }
    }

    /// If a message is awaited, this value prints only messages that may answer it. In JSON form, it prints all.
    pub(crate) fn awaiting(self, awaited: Option<Awaited>) -> Self {
        Self { awaited, ..self }
    }

    /// Sets the titles of the tasks. Each message is then printed below the title of its task.
    pub(crate) fn with_titles(self, titles: BTreeMap<TaskId, String>) -> Self {
        Self { titles, ..self }
    }

    /// Prints the messages that the user has not been shown, and marks them as shown. In JSON form, this function
    /// prints the events of these messages up to the event number `until`; the event stream prints the later events.
    pub(crate) async fn show_unshown(&mut self, until: i64) -> Result<(), Failure> {
        let mut messages: Vec<MessageView> = Vec::new();
        let mut events: Vec<(MessageId, Entry)> = Vec::new();
        for task in self.tasks {
            let of_task = unshown(self.client, Some(task)).await?;
            if self.form == Form::Json {
                let missing = untold(&of_task, &self.told);
                events.extend(accepted(self.client, task, missing, until).await?);
            }
            messages.extend(of_task);
        }
        if let (Form::Text, Some(awaited)) = (self.form, &self.awaited) {
            messages.retain(|message| awaited.may_be_answered_by(message));
        }
        // The messages of all tasks are printed in one order, that of their acceptance.
        messages.sort_by_key(|message| message.id.sequence());
        events.sort_by_key(|(_, entry)| entry.seq);
        for (message, entry) in events {
            print_json(&entry)?;
            self.told.insert(message);
        }
        for message in messages {
            polity_points::point!("output::before_shown");
            if self.form == Form::Text {
                self.print(&message)?;
            }
            polity_points::point!("output::shown");
            if self.form == Form::Text || self.told.contains(&message.id) {
                self.mark_shown(&message.id).await?;
            }
        }
        Ok(())
    }

    /// Prints a message as text.
    fn print(&mut self, message: &MessageView) -> Result<(), Failure> {
        let title = self.titles.get(&message.task).map(|title| one_line(title, TITLE_CHARS));
        let page = Page::now();
        print_on(page, &in_words(message, title.as_deref(), page))?;
        self.printed.insert(message.id.clone());
        self.has_printed |= self.tasks.last() == Some(&message.task);
        Ok(())
    }

    /// Prints the message to the user that an event reports, if another command has marked it as shown before this one
    /// could print it. For example, a chat may follow the same task. The user waits for the message here, too.
    async fn show_marked(&mut self, event: &Event) -> Result<(), Failure> {
        let Event::MessageAccepted { task, message, to, .. } = event else { return Ok(()) };
        let is_ours = to.is_user() && self.tasks.contains(task);
        if self.form == Form::Json || !is_ours || self.printed.contains(message) {
            return Ok(());
        }
        let message = self.client.message(message).await?;
        let is_awaited = self.awaited.as_ref().is_none_or(|awaited| awaited.may_be_answered_by(&message));
        if message.state == MessageState::Done && is_awaited {
            self.print(&message)?;
        }
        Ok(())
    }

    /// Handles new messages to the user. In text form, prints them and marks them as shown. In JSON form, the event
    /// stream prints the messages. This function then only marks the messages that are already printed, so that no
    /// message is marked too early.
    async fn show_new(&mut self) -> Result<(), Failure> {
        if self.form == Form::Text {
            return self.show_unshown(i64::MAX).await;
        }
        for task in self.tasks {
            for message in unshown(self.client, Some(task)).await? {
                if self.told.contains(&message.id) {
                    self.mark_shown(&message.id).await?;
                }
            }
        }
        Ok(())
    }

    /// Marks a message as shown, after it was printed. If the process crashes between printing and marking, the next
    /// start prints the message again, which is better than never.
    async fn mark_shown(&self, id: &MessageId) -> Result<(), Failure> {
        self.client.mark_shown(id).await?;
        polity_points::point!("output::noted");
        Ok(())
    }

    /// Prints the events that were stored after this event number, and the messages that they report, as
    /// [`Self::show_marked`] does.
    pub(crate) async fn catch_up(
        &mut self,
        mut seen: i64,
        filter: &EventFilter,
        mut show_event: impl FnMut(&Entry) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        loop {
            let page = self.client.events(Side::After(seen), MAX_PAGE, filter).await?;
            for entry in &page.events {
                if self.is_new(&entry.event) {
                    show_event(entry)?;
                }
                self.show_marked(&entry.event).await?;
            }
            if page.events.is_empty() {
                return Ok(());
            }
            seen = page.next.max(page.events.last().map_or(seen, |entry| entry.seq));
        }
    }

    /// Returns whether an event has not been printed yet. [`Self::show_unshown`] also prints events that report an
    /// accepted message. So this function remembers the messages of these events, and only these. The terminal confirms
    /// the answers that it takes.
    fn is_new(&mut self, event: &Event) -> bool {
        match event {
            Event::MessageAccepted { message, .. } => self.told.insert(message.clone()),
            Event::ApprovalEnded { approval, .. } => {
                self.terminal.as_ref().is_none_or(|terminal| !terminal.has_confirmed(approval))
            }
            _ => true,
        }
    }

    /// Returns the outcome of the last task, if nothing is left to do in any of the tasks.
    pub(crate) async fn outcome(&self) -> Result<Option<Outcome>, Failure> {
        let mut last = None;
        for task in self.tasks {
            last = outcome(self.client, task).await?;
            if last.is_none() {
                break;
            }
        }
        Ok(last)
    }

    /// Prints what happens after the event number `since` until nothing is left to do. `filter` selects the events.
    pub(crate) async fn follow(
        &mut self,
        since: i64,
        filter: EventFilter,
        mut show_event: impl FnMut(&Entry) -> Result<(), Failure>,
    ) -> Result<Outcome, Failure> {
        let mut foot = if self.form == Form::Text { Foot::on_terminal() } else { None };
        let mut follow = match foot {
            Some(_) => self.client.follow_live(since, filter.clone()),
            None => self.client.follow(since, filter.clone()),
        };
        let mut live = Live::default();
        let mut asks = self.look_for_questions().await?;
        loop {
            let followed = tokio::select! {
                followed = follow.next() => followed,
                () = tokio::time::sleep(SECOND), if foot.is_some() => {
                    self.draw(&mut foot, &live, asks);
                    continue;
                }
                line = typed(&mut self.terminal) => {
                    if let Some(terminal) = &mut self.terminal {
                        terminal.take(&line).await?;
                    }
                    continue;
                }
            };
            let Some(followed) = followed else { break };
            if let (Some(foot), false) = (&mut foot, matches!(followed, Followed::Glimpse(_))) {
                foot.clear();
            }
            match followed {
                Followed::Entry(entry) => {
                    if self.is_new(&entry.event) {
                        show_event(&entry)?;
                    }
                    match &entry.event {
                        // This message was sent with a delay. The delay is over, so the message is printed now. The
                        // message was accepted earlier, perhaps before the stream began.
                        Event::MessageDue { .. } => self.show_unshown(entry.seq).await?,
                        event if is_for_person(event) => self.show_new().await?,
                        _ => {}
                    }
                    self.show_marked(&entry.event).await?;
                    if let Event::ApprovalRequested { .. }
                    | Event::ApprovalEnded { .. }
                    | Event::TaskIdle { .. } = &entry.event
                    {
                        asks = self.look_for_questions().await?;
                    }
                    if matches!(entry.event, Event::TaskIdle { .. })
                        && asks == Asks::Nothing
                        && let Some(outcome) = self.outcome().await?
                    {
                        // All tasks have ended, but one of them may have ended only after this event. The stream has
                        // not brought the events after this event yet, so fetch them from the daemon.
                        self.catch_up(entry.seq, &filter, &mut show_event).await?;
                        return Ok(outcome);
                    }
                }
                Followed::Glimpse(glimpse) => {
                    live.see(*glimpse);
                    self.draw(&mut foot, &live, asks);
                }
                Followed::Connected => {
                    self.client.is_back();
                    live.forget();
                }
                Followed::Lost(loss) => {
                    // Nobody knows what the agents do until the daemon is back.
                    live.forget();
                    self.client.is_lost(loss);
                }
                Followed::Failed(error) => return Err(error.into()),
            }
        }
        Err(Failure::Defect("the event stream ended".to_owned()))
    }

    /// Draws, below the other output, what the agents are doing. Draws nothing while a question is open, because the
    /// user types the answer at the same place.
    fn draw(&self, foot: &mut Option<Foot>, live: &Live, asks: Asks) {
        let Some(foot) = foot else { return };
        match asks {
            Asks::AboutCall => foot.clear(),
            Asks::Nothing => foot.draw(&live.lines(self.tasks, columns(), now())),
        }
    }

    /// Returns whether there is an open question about a call and the user can answer it on the terminal.
    pub(crate) async fn has_questions(&mut self) -> Result<bool, Failure> {
        Ok(self.look_for_questions().await? == Asks::AboutCall)
    }

    /// Prints the oldest open question about a call, if the user can answer it on a terminal.
    async fn look_for_questions(&mut self) -> Result<Asks, Failure> {
        let Some(terminal) = &mut self.terminal else { return Ok(Asks::Nothing) };
        Ok(if terminal.look().await? { Asks::AboutCall } else { Asks::Nothing })
    }

    /// Prints the open questions of all tasks, and how the last task ended; returns the exit code. `resumable` says
    /// whether `polity run --resume` would let root try again in the last task.
    pub(crate) async fn tell_outcome(
        &mut self,
        outcome: Outcome,
        resumable: Resumable,
    ) -> Result<u8, Failure> {
        // A message may have arrived between the last check for messages and the check for the outcome, so check for
        // messages again.
        self.show_unshown(i64::MAX).await?;
        let Some((last, others)) = self.tasks.split_last() else { return Ok(failure::exit_code(outcome)) };
        if self.form == Form::Json {
            return tell_outcome(self.client, last, outcome, self.form).await;
        }
        self.tell_questions(others, last, outcome).await?;
        if outcome == Outcome::NoModel && !self.has_printed {
            tell_known_failure(self.client, last, resumable).await;
            return Ok(failure::exit_code(outcome));
        }
        let code = tell_outcome(self.client, last, outcome, self.form).await?;
        if (outcome, resumable) == (Outcome::NoModel, Resumable::Yes) {
            complain(&repeating("`polity run --resume` tries again"));
        }
        Ok(code)
    }

    /// Prints the open questions of the other tasks, each below the title of its task. If the last task asks too, the
    /// title of the last task follows, because [`tell_outcome`] prints the questions of that task next.
    async fn tell_questions(
        &self,
        others: &[TaskId],
        last: &TaskId,
        outcome: Outcome,
    ) -> Result<(), Failure> {
        let mut asked = false;
        for task in others {
            let open = OpenQuestions::of(self.client, task).await?;
            if !open.is_empty() {
                asked = true;
                complain(&titled(&self.client.task(task).await?.title));
                open.tell(self.client);
            }
        }
        if asked && outcome == Outcome::AwaitsUser {
            complain(&titled(&self.client.task(last).await?.title));
        }
        Ok(())
    }
}

/// Whether the terminal shows an open question about a call of an agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    AboutCall,
    Nothing,
}

/// Waits for a line of the user. Waits for ever if there is no terminal.
async fn typed(terminal: &mut Option<Terminal<'_>>) -> String {
    match terminal {
        Some(terminal) => terminal.line().await,
        None => std::future::pending().await,
    }
}

/// Returns the ids of the messages that were not printed.
fn untold(messages: &[MessageView], told: &BTreeSet<MessageId>) -> BTreeSet<MessageId> {
    messages.iter().map(|message| &message.id).filter(|id| !told.contains(*id)).cloned().collect()
}

/// Fetches the `message_accepted` events of the given messages up to the event number `until`, oldest first. Events
/// that were removed because of the limits of `retention` in app.json are missing.
async fn accepted(
    client: &Client,
    task: &TaskId,
    mut missing: BTreeSet<MessageId>,
    until: i64,
) -> Result<Vec<(MessageId, Entry)>, Failure> {
    let kinds = vec![EventKind::MessageAccepted.as_str().to_owned()];
    let filter = EventFilter { task: Some(task.clone()), kinds, ..EventFilter::default() };
    let mut found = Vec::new();
    let mut before = until.saturating_add(1);
    while !missing.is_empty() {
        let page = client.events(Side::Before(before), MAX_PAGE, &filter).await?;
        let Some(first) = page.events.first() else { break };
        before = first.seq;
        found.extend(page.events.into_iter().rev().filter_map(|entry| {
            let Event::MessageAccepted { message, .. } = &entry.event else { return None };
            missing.take(message).map(|message| (message, entry))
        }));
    }
    found.reverse();
    Ok(found)
}

/// Returns whether an event may bring the user a new message or a new question.
pub(crate) fn is_for_person(event: &Event) -> bool {
    match event {
        Event::MessageAccepted { to, .. } => to.is_user(),
        Event::MessageDue { .. } | Event::TaskIdle { .. } | Event::ApprovalRequested { .. } => true,
        _ => false,
    }
}

/// Returns the outcome of a task, if nothing is left to do in it.
pub(crate) async fn outcome(client: &Client, task: &TaskId) -> Result<Option<Outcome>, Failure> {
    let view = client.task(task).await?;
    Ok(match view.state {
        TaskState::Open => None,
        TaskState::Idle => view.outcome,
    })
}

/// Prints how a task ended; returns the exit code.
pub(crate) async fn tell_outcome(
    client: &Client,
    task: &TaskId,
    outcome: Outcome,
    form: Form,
) -> Result<u8, Failure> {
    let code = failure::exit_code(outcome);
    match form {
        Form::Json => print_json(&serde_json::json!({
            "event": "finished", "task": task, "outcome": outcome, "exitCode": code
        }))?,
        Form::Text if outcome == Outcome::AwaitsUser => OpenQuestions::of(client, task).await?.tell(client),
        Form::Text => {
            let stopped_by = match outcome {
                Outcome::Unanswered => client.task(task).await?.stopped_by,
                _ => None,
            };
            if is_by_user(stopped_by.as_deref()) {
                complain(STOPPED);
            } else if let Some(words) = outcome_in_words(outcome) {
                complain(words);
            }
        }
    }
    Ok(code)
}

/// Returns whether the user has stopped a task, and the task has no answer.
pub(crate) fn was_stopped(task: &TaskView) -> bool {
    task.outcome == Some(Outcome::Unanswered) && is_by_user(task.stopped_by.as_deref())
}

fn is_by_user(stopped_by: Option<&str>) -> bool {
    stopped_by == Some(AgentId::user().as_str())
}

/// Formats the title of a task as a line of its own, above texts of this task.
fn titled(title: &str) -> String {
    format!("[task: {}]", one_line(title, TITLE_CHARS))
}

#[cfg(test)]
mod tests {
    use super::super::examples::messages;
    use super::*;
    use crate::output::terminal::harmless;
    use axum::http::Uri;
    use axum::routing::get;
    use axum::{Json, Router};
    use polity_view::EventPage;
    use std::future::ready;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Returns the event that reports a message.
    fn reported(message: &MessageView) -> Event {
        Event::MessageAccepted {
            task: message.task.clone(),
            message: message.id.clone(),
            from: message.from.clone(),
            to: message.to.clone(),
            message_type: message.message_type.clone(),
            text: message.text.clone(),
            attachments: Vec::new(),
            in_reply_to: Vec::new(),
            finality: Finality::Final,
        }
    }

    #[tokio::test]
    async fn a_message_that_a_chat_has_shown_is_printed_once_and_only_if_it_may_be_the_answer() {
        // An answer of another agent to another message.
        let shown = messages()[2].clone();
        let (event, tasks) = (reported(&shown), [shown.task.clone()]);
        let id = shown.id.clone();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let message = move || {
            count.fetch_add(1, Ordering::Relaxed);
            ready(Json(shown.clone()))
        };
        let routes = Router::new().route("/api/messages/{id}", get(message));
        let client = Client::in_process(routes).unwrap();

        let awaited = Awaited { agent: AgentId::new("ida"), letter: MessageId::from_sequence(3) };
        let mut waiting = Telling::new(&client, &tasks, Form::Text).awaiting(Some(awaited));
        waiting.show_marked(&event).await.unwrap();
        assert!(waiting.printed.is_empty());

        asked.store(0, Ordering::Relaxed);
        let mut telling = Telling::new(&client, &tasks, Form::Text);
        telling.show_marked(&event).await.unwrap();
        telling.show_marked(&event).await.unwrap();
        assert_eq!(telling.printed, BTreeSet::from([id]));
        assert_eq!(asked.load(Ordering::Relaxed), 1, "the message is printed twice");
    }

    /// All tasks have ended before the event stream begins, and a chat has shown the answer.
    #[tokio::test]
    async fn who_catches_up_gets_an_answer_although_a_chat_has_shown_it() {
        let answer = MessageView { state: MessageState::Done, ..messages()[1].clone() };
        let (id, task) = (answer.id.clone(), answer.task.clone());
        let entry = Entry { seq: 1, at: 0, event: reported(&answer) };
        let events = move |uri: Uri| {
            let is_first = uri.query().is_some_and(|query| query.contains("after=0"));
            let events = if is_first { vec![entry.clone()] } else { Vec::new() };
            ready(Json(EventPage { events, next: 1, oldest: None }))
        };
        let routes = Router::new()
            .route("/api/events", get(events))
            .route(&format!("/api/messages/{id}"), get(move || ready(Json(answer.clone()))));
        let client = Client::in_process(routes).unwrap();
        for (tasks, expect) in [(vec![task], BTreeSet::from([id])), (Vec::new(), BTreeSet::new())] {
            let mut telling = Telling::new(&client, &tasks, Form::Text);
            telling.catch_up(0, &EventFilter::default(), |_| Ok(())).await.unwrap();
            assert_eq!(telling.printed, expect);
        }
    }

    #[test]
    fn what_was_told_is_not_told_again() {
        let messages = messages();
        let ids: BTreeSet<MessageId> = messages.iter().map(|message| message.id.clone()).collect();
        assert_eq!(untold(&messages, &BTreeSet::new()), ids);
        let told = BTreeSet::from([messages[1].id.clone()]);
        let left = untold(&messages, &told);
        assert!(!left.contains(&messages[1].id));
        assert_eq!(left.len(), ids.len() - 1);
        assert!(untold(&messages, &ids).is_empty());
    }

    #[test]
    fn only_answers_to_the_awaited_message_count() {
        let awaited = Awaited { agent: AgentId::new("reader-7k2f"), letter: MessageId::from_sequence(5) };
        let check = |number: i64, from: &str, in_reply_to: &[i64], expect: bool| {
            let message = MessageView {
                id: MessageId::from_sequence(number),
                from: from.to_owned(),
                in_reply_to: in_reply_to.iter().map(|number| MessageId::from_sequence(*number)).collect(),
                ..messages()[2].clone()
            };
            assert_eq!(awaited.may_be_answered_by(&message), expect, "{number} {from} {in_reply_to:?}");
        };
        check(6, "reader-7k2f", &[5], true);
        check(6, "reader-7k2f", &[], true);
        check(6, "reader-7k2f", &[2, 5], true);
        check(6, "reader-7k2f", &[2], false);
        check(4, "reader-7k2f", &[], false);
        check(6, "root", &[], false);
        check(6, "root", &[5], true);
        check(6, "system", &[], true);
        check(4, "system", &[], false);
    }

    #[test]
    fn messages_to_the_person() {
        let titles = [Some("what?"), None, None, None];
        let words: Vec<String> = messages()
            .iter()
            .zip(titles)
            .map(|(message, title)| in_words(message, title, Page::Pipe))
            .collect();
        // The text for a pipe contains control characters. `harmless` makes them visible in the snapshot.
        insta::assert_snapshot!(harmless(&words.join("\n---\n")), @r#"
[task: what?]
[user user]
看看这张图片
+ picture.png (artifact:mmpqmm6wc2)
---
… one moment
---
[阅读者 reader-7k2f]
red <U+001B>[31m<U+0007> and
more
---
A model failed.
"#);
    }
}
