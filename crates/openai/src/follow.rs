//! Waits for the answer of an exchange, and reports the progress until then. All state comes from the database. So a
//! client that disconnects and asks again later gets the same answer as a client that stayed connected.

use crate::answer::Form;
use crate::exchange::Sent;
use crate::problem::Problem;
use axum::http::StatusCode;
use polity_runtime::Society;
use polity_society::id::{AgentId, MessageId};
use polity_society::message::Finality;
use polity_view::{Entry, Event, Outcome};
use polity_view::{EventFilter, MessageFilter, MessageView, TaskState};
use std::collections::VecDeque;
use tokio::sync::watch;

/// Maximum number of events that one read of the database returns.
const PAGE: u32 = 500;

/// The tokens that the society has spent on a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Tokens sent to models.
    pub(crate) prompt: u64,
    /// Tokens that models have generated.
    pub(crate) completion: u64,
}

/// An update for a client that waits.
#[derive(Debug)]
pub(crate) enum Update {
    /// Progress before the answer.
    Progress(Progress),
    /// The answer, which ends the waiting.
    Answer(Box<MessageView>),
    /// There will be no answer. This also ends the waiting.
    Failed(Problem),
}

/// Progress that a client can show before the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// A line that describes an event of the task.
    Happened(String),
    /// An interim message to the person: its id and its text.
    Said(MessageId, String),
}

impl Progress {
    /// Returns the text to show.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Happened(text) | Self::Said(_, text) => text,
        }
    }
}

/// The wait for one answer.
pub(crate) struct Follower<'a> {
    society: &'a Society,
    sent: &'a Sent,
    newest: watch::Receiver<i64>,
    filter: EventFilter,
    /// The number of the last event that was read.
    seen: i64,
    told: VecDeque<Progress>,
    usage: Usage,
    /// The message that is the answer, once it is known.
    answer: Option<MessageId>,
    form: Form,
}

impl<'a> Follower<'a> {
    /// Creates a follower. It will read the events since the society accepted the message of the exchange.
    pub(crate) async fn begin(society: &'a Society, sent: &'a Sent, form: Form) -> Result<Self, Problem> {
        let newest = society.newest_event();
        let accepted = society.exchanges().event_of(&sent.message, &sent.task).await.map_err(of_store)?;
        // The event of an old exchange may have been deleted. In this case, read all remaining events of the task.
        let seen = accepted.unwrap_or(0);
        let filter = EventFilter { task: Some(sent.task.clone()), ..EventFilter::default() };
        let (told, usage, answer) = (VecDeque::new(), Usage::default(), sent.answer.clone());
        Ok(Self { society, sent, newest, filter, seen, told, usage, answer, form })
    }

    /// Returns the tokens spent since the message was accepted, up to the last event read.
    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }

    /// Waits for the next update. Callers may drop the future at any time, and must not call this again after an answer
    /// or a failure.
    pub(crate) async fn next(&mut self) -> Result<Update, Problem> {
        loop {
            if let Some(line) = self.told.pop_front() {
                return Ok(Update::Progress(line));
            }
            self.newest.mark_unchanged();
            if let Some(answer) = self.answer.clone() {
                return self.answered(&answer).await;
            }
            self.read(i64::MAX).await?;
            if !self.told.is_empty() {
                continue;
            }
            // Read the task before the answer. If the task is idle at this moment, its answer has already been written,
            // so the next line finds the answer.
            let task = self.society.task(&self.sent.task).await.map_err(of_store)?;
            self.answer = self.find().await?;
            if self.answer.is_some() {
                continue;
            }
            match task {
                None => {
                    let gone =
                        Problem::refused(StatusCode::NOT_FOUND, "unknown_task", "the task no longer exists");
                    return Ok(Update::Failed(gone));
                }
                Some(task) if task.state == TaskState::Idle => {
                    // The task may wait until the person answers a question. The client then gets the oldest unanswered
                    // question again.
                    self.answer = self.questions().await?.into_iter().next();
                    if self.answer.is_none() {
                        return Ok(Update::Failed(self.failure(task.outcome).await?));
                    }
                    continue;
                }
                Some(_) => self.refuse_where_paused().await?,
            }
            if self.newest.changed().await.is_err() {
                return Err(Problem::of_store(&polity_store::Error::Closed));
            }
        }
    }

    /// Reads the events up to the event with this number.
    async fn read(&mut self, last: i64) -> Result<(), Problem> {
        loop {
            let page = self.society.events_after(self.seen, PAGE, &self.filter).await.map_err(of_store)?;
            for entry in page.events.iter().filter(|entry| entry.seq <= last) {
                self.take(entry);
            }
            let end = page.events.len() < PAGE as usize || page.next >= last;
            self.seen = page.next.min(last).max(self.seen);
            if end {
                return Ok(());
            }
        }
    }

    fn take(&mut self, entry: &Entry) {
        match &entry.event {
            Event::ModelAnswered { usage, .. } => {
                self.usage.prompt += usage.prompt_tokens;
                self.usage.completion += usage.completion_tokens;
            }
            // An interim message to the person.
            Event::MessageAccepted { message, to, text, finality: Finality::Interim, .. } if to.is_user() => {
                self.told.push_back(Progress::Said(message.clone(), text.clone()));
            }
            event => self.told.extend(event.line().map(Progress::Happened)),
        }
    }

    /// Finds the message that is the answer. Returns `None` if there is no answer yet. There are two candidates. One is
    /// the agent's last message to the person; it counts only after the turn that sent it has ended. The other is a
    /// question that an agent asked the person after the request. If both exist, the earlier message is the answer: an
    /// agent that asks a question often ends its turn with a remark about the question.
    async fn find(&self) -> Result<Option<MessageId>, Problem> {
        let answer = self.society.exchanges().answer_of(&self.sent.key).await.map_err(of_store)?;
        let questions = self.questions().await?;
        let question = questions.into_iter().find(|question| *question > self.sent.message);
        let first = [answer, question.clone()].into_iter().flatten().min();
        if self.form == Form::Free || first.is_none() || first == question {
            return Ok(first);
        }
        // The client wants an answer that fits a schema. Only one message was checked against the schema: the message
        // that answers the request itself. So it takes precedence over a later remark.
        let request = self.society.message(&self.sent.awaits).await.map_err(of_store)?;
        let answer = request.and_then(|request| request.answered_by);
        Ok(answer.filter(|answer| *answer > self.sent.message).or(first))
    }

    /// Fails if the agent that must answer is paused. Otherwise the client would wait without knowing why. After this
    /// failure, the message stays in the agent's mailbox.
    async fn refuse_where_paused(&self) -> Result<(), Problem> {
        let paused = self.society.exchanges().paused(&self.sent.key).await.map_err(of_store)?;
        let Some(agent) = paused else { return Ok(()) };
        let message = format!(
            "{agent} is paused, and the message waits (task {}); POST /api/agents/{agent}/resume resumes it, \
             and the same request then finds its answer",
            self.sent.task
        );
        Err(Problem::refused(StatusCode::SERVICE_UNAVAILABLE, "agent_paused", message))
    }

    /// Returns the unanswered questions to the person in the task, oldest first.
    async fn questions(&self) -> Result<Vec<MessageId>, Problem> {
        let questions = self.society.questions(&self.sent.task).await.map_err(of_store)?;
        Ok(questions.into_iter().map(|question| question.message.id).collect())
    }

    /// Returns the next line of progress before the answer, or the answer if no line is left.
    async fn answered(&mut self, answer: &MessageId) -> Result<Update, Problem> {
        let told = self.society.exchanges().event_of(answer, &self.sent.task).await.map_err(of_store)?;
        if let Some(told) = told {
            self.read(told).await?;
        }
        if let Some(line) = self.told.pop_front() {
            return Ok(Update::Progress(line));
        }
        match self.society.message(answer).await.map_err(of_store)? {
            Some(message) => Ok(Update::Answer(Box::new(message))),
            None => {
                let message = "the answer was deleted to free disk space";
                Ok(Update::Failed(Problem::refused(StatusCode::NOT_FOUND, "task_forgotten", message)))
            }
        }
    }

    /// Explains why a task ended without an answer, and adds the notices that the system sent to the person.
    async fn failure(&self, outcome: Option<Outcome>) -> Result<Problem, Problem> {
        let filter = MessageFilter {
            task: Some(self.sent.task.clone()),
            from: Some("system".to_owned()),
            to: Some(AgentId::user()),
            after: Some(self.sent.message.clone()),
            ..MessageFilter::default()
        };
        let notices = self.society.messages(&filter).await.map_err(of_store)?.messages;
        let notices: Vec<String> = notices.into_iter().map(|notice| notice.text).collect();
        let (status, code, what) = match outcome {
            Some(Outcome::NoModel) => (StatusCode::BAD_GATEWAY, "no_model", "no model could be used"),
            Some(Outcome::Limited) => {
                (StatusCode::TOO_MANY_REQUESTS, "limit_reached", "a limit of app.json stopped the task")
            }
            Some(Outcome::Answered | Outcome::AwaitsUser | Outcome::Unanswered) | None => {
                (StatusCode::BAD_GATEWAY, "unanswered", "nothing is left to do, and there is no answer")
            }
        };
        let message = [&[format!("{what} (task {})", self.sent.task)][..], &notices].concat().join("; ");
        Ok(Problem::refused(status, code, message))
    }
}

fn of_store(error: polity_store::Error) -> Problem {
    Problem::of_store(&error)
}
