//! Waits for the answer of an exchange, and tells what happens meanwhile. What is waited for is read from the society's
//! rows, so it makes no difference whether somebody waits from the start or comes back later.

use crate::answer::Form;
use crate::exchange::Sent;
use crate::problem::Problem;
use axum::http::StatusCode;
use polity_runtime::view::{EventFilter, MessageFilter, MessageView, TaskState};
use polity_runtime::{Entry, Event, Outcome, Society};
use polity_society::id::{AgentId, MessageId};
use polity_society::message::Finality;
use std::collections::VecDeque;
use tokio::sync::watch;

/// How many events are read at once.
const PAGE: u32 = 500;

/// Tokens that a request has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Tokens of the requests to models.
    pub(crate) prompt: u64,
    /// Tokens of their answers.
    pub(crate) completion: u64,
}

/// What happens while somebody waits.
#[derive(Debug)]
pub(crate) enum Update {
    /// Something that can be told meanwhile.
    Progress(Told),
    /// The answer, which ends the waiting.
    Answer(Box<MessageView>),
    /// There is none, which ends it too.
    Failed(Problem),
}

/// Something that can be told before the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// What happened.
    Happened(String),
    /// What was said to the person on the way.
    Said(MessageId, String),
}

impl Told {
    /// The words.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Happened(text) | Self::Said(_, text) => text,
        }
    }
}

/// Somebody who waits.
pub(crate) struct Follower<'a> {
    society: &'a Society,
    sent: &'a Sent,
    newest: watch::Receiver<i64>,
    filter: EventFilter,
    /// The last event that was seen.
    seen: i64,
    told: VecDeque<Told>,
    usage: Usage,
    /// The answer, once it is known which it is.
    answer: Option<MessageId>,
    form: Form,
}

impl<'a> Follower<'a> {
    /// Begins where the message of the exchange was accepted.
    pub(crate) async fn begin(society: &'a Society, sent: &'a Sent, form: Form) -> Result<Self, Problem> {
        let newest = society.newest_event();
        let accepted = society.exchanges().event_of(&sent.message, &sent.task).await.map_err(of_store)?;
        // The events of an old exchange may have been removed.
        let seen = accepted.unwrap_or(0);
        let filter = EventFilter { task: Some(sent.task.clone()), ..EventFilter::default() };
        let (told, usage, answer) = (VecDeque::new(), Usage::default(), sent.answer.clone());
        Ok(Self { society, sent, newest, filter, seen, told, usage, answer, form })
    }

    /// What was spent since the message was accepted, up to what was seen.
    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }

    /// What happens next. To be dropped at any time; after an answer or a failure nothing comes.
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
            // In this order: what ends a task is there before the task is idle.
            let task = self.society.task(&self.sent.task).await.map_err(of_store)?;
            self.answer = self.find().await?;
            if self.answer.is_some() {
                continue;
            }
            match task {
                None => {
                    let gone = Problem::refused(StatusCode::NOT_FOUND, "unknown_task", "the task has gone");
                    return Ok(Update::Failed(gone));
                }
                Some(task) if task.state == TaskState::Idle => {
                    // What has been asked for longest is asked again.
                    self.answer = self.questions().await?.into_iter().next();
                    if self.answer.is_none() {
                        return Ok(Update::Failed(self.failure(task.outcome).await?));
                    }
                    continue;
                }
                Some(_) => self.refuse_where_paused().await?,
            }
            if self.newest.changed().await.is_err() {
                return Err(Problem::of_store(&polity_runtime::Error::Closed));
            }
        }
    }

    /// Reads the events up to one.
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
            // What was said to the person on the way.
            Event::MessageAccepted { message, to, text, finality: Finality::Interim, .. } if to.is_user() => {
                self.told.push_back(Told::Said(message.clone(), text.clone()));
            }
            event => self.told.extend(event.line().map(Told::Happened)),
        }
    }

    /// The message that is the answer, if there is one: the last word of whoever was asked, once the turn has ended in
    /// which it was said, or what somebody has asked the person since.
    /// Who asks and then closes its turn with a word about that has asked first.
    async fn find(&self) -> Result<Option<MessageId>, Problem> {
        let answer = self.society.exchanges().answer_of(&self.sent.key).await.map_err(of_store)?;
        let questions = self.questions().await?;
        let question = questions.into_iter().find(|question| *question > self.sent.message);
        let first = [answer, question.clone()].into_iter().flatten().min();
        if self.form == Form::Free || first.is_none() || first == question {
            return Ok(first);
        }
        // Only what answers the request itself was compared with the schema. A word after it says no more.
        let request = self.society.message(&self.sent.awaits).await.map_err(of_store)?;
        let answer = request.and_then(|request| request.answered_by);
        Ok(answer.filter(|answer| *answer > self.sent.message).or(first))
    }

    /// Nothing comes from an agent that is paused, and nobody would see why. The message stays where it is.
    async fn refuse_where_paused(&self) -> Result<(), Problem> {
        let paused = self.society.exchanges().paused(&self.sent.key).await.map_err(of_store)?;
        let Some(agent) = paused else { return Ok(()) };
        let message = format!(
            "{agent} is paused, and the message waits (task {}); POST /api/agents/{agent}/resume lets it go \
             on, and the same request then finds its answer",
            self.sent.task
        );
        Err(Problem::refused(StatusCode::SERVICE_UNAVAILABLE, "agent_paused", message))
    }

    /// What agents have asked the person in the task and not been told, oldest first.
    async fn questions(&self) -> Result<Vec<MessageId>, Problem> {
        let questions = self.society.questions(&self.sent.task).await.map_err(of_store)?;
        Ok(questions.into_iter().map(|question| question.message.id).collect())
    }

    /// Tells what happened up to the answer, and then the answer.
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
                let message = "the answer was removed to make room";
                Ok(Update::Failed(Problem::refused(StatusCode::NOT_FOUND, "task_forgotten", message)))
            }
        }
    }

    /// Why there is no answer where nothing is left to do; with what the system has told the person of it.
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
            Some(Outcome::NoModel) => (StatusCode::BAD_GATEWAY, "no_model", "no model could be reached"),
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

fn of_store(error: polity_runtime::Error) -> Problem {
    Problem::of_store(&error)
}
