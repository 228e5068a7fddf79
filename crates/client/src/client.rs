//! The calls of the client: one for each route of the daemon.

use crate::error::{Error, Loss};
use crate::form::Form;
use crate::in_process::InProcess;
use crate::transport::{Absence, Asked, Patience, Transport};
use bytes::Bytes;
use http_body::Body;
use polity_society::id::{AgentId, ApprovalId, MessageId, PermissionId, RoleId, ServiceId, TaskId};
use polity_view::{
    AgentDetail, AgentFilter, AgentPage, ApprovalAnswer, ApprovalFilter, ApprovalPage, ApprovalView,
    ArtifactFilter, ArtifactPage, ArtifactView, CommandFilter, CommandView, ConfigView, ContactView,
    ConversationView, EventFilter, EventPage, Forked, FreedView, FreeingFilter, Leaving, MessageFilter,
    MessagePage, MessageView, NewFork, NowFilter, NowView, PermissionView, Posted, RequestPreview, RoleView,
    SearchFilter, SearchPage, SentRequest, ServerView, ServiceView, Steered, TaskFilter, TaskPage, TaskView,
    UsageFilter, UsageView, Why, WhyFilter,
};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use strum::IntoStaticStr;
use tower::Service;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Maximum number of characters of a search query. Percent-encoded, this many characters still fit into the longest
/// address that the daemon accepts (64 KiB).
const QUERY_CHARACTERS: usize = 5_000;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A client of the API. A client made by [`Client::new`] looks up the daemon of its data directory at each call, so
/// that it also finds a restarted daemon. A client made by [`Client::in_process`] calls routes in this process.
#[derive(Clone)]
pub struct Client {
    pub(crate) transport: Transport,
}

/// A message from the person, in the form in which the API takes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewMessage {
    /// The agent that receives the message.
    pub to: AgentId,
    /// The text of the message, in full.
    pub text: String,
    /// References of the artifacts attached to the message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<String>,
    /// The task that the message continues; `None` starts a new task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The service that root uses for a new task; `None` means the default service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceId>,
    /// The directory in which the agents of a new task work; `None` means a directory that polity makes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The key by which the daemon recognizes a repetition of the same message.
    #[serde(skip)]
    pub key: IdempotencyKey,
}

/// A random key, unique to one message or to one fork of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Creates a random key of 128 bits.
    pub fn mint() -> Self {
        Self(format!("{:032x}", fastrand::u128(..)))
    }
}

/// The agents that a [`SteerAction`] applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Scope {
    /// Only the agent itself.
    Agent,
    /// The agent and all its descendants.
    Subtree,
}

/// An action that the person takes on agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum SteerAction {
    /// Ends the work of the agents.
    Stop,
    /// Halts the agents until they are resumed.
    Pause,
    /// Lets paused or parked agents work again.
    Resume,
}

/// Which page of events to fetch: the events after a given event, or the events before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The events after the event with this number, oldest first.
    After(i64),
    /// The last events before the event with this number.
    Before(i64),
}

/// How media appear in the preview of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// Long base64 texts are replaced by their lengths.
    Measured,
    /// All base64 texts are complete.
    Whole,
}

impl Client {
    /// Creates a client for the daemon of a data directory. Sends no request.
    pub fn new(data: &Path) -> Result<Self, Error> {
        Ok(Self { transport: Transport::to_daemon(data)? })
    }

    /// Creates a client that calls routes in this process.
    pub fn in_process<S, B>(routes: S) -> Result<Self, Error>
    where
        S: Service<http::Request<reqwest::Body>, Response = http::Response<B>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        Ok(Self { transport: Transport::in_process(InProcess::new(routes))? })
    }

    /// Returns a copy of this client. If the daemon is gone, the copy waits until another daemon starts.
    #[must_use]
    pub fn waiting(&self) -> Self {
        let mut transport = self.transport.clone();
        transport.patience = Patience::UntilBack;
        Self { transport }
    }

    /// Returns a copy as [`Client::waiting`] does. The copy calls `tell` with a sentence for the person when it begins
    /// to wait.
    #[must_use]
    pub fn waiting_aloud(&self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let mut waiting = self.waiting();
        let tell = move |loss: Loss| tell(&format!("{} (Ctrl-C quits)", loss.words()));
        waiting.transport.absence = Some(Absence::new(tell));
        waiting
    }

    /// Notes that a stream of events has broken. A client from [`Client::waiting_aloud`] tells the person, unless it
    /// has done so since the last [`Client::is_back`].
    pub fn is_lost(&self, loss: Loss) {
        self.transport.absence.iter().for_each(|absence| absence.begins(loss));
    }

    /// Notes that a stream of events is connected again.
    pub fn is_back(&self) {
        self.transport.absence.iter().for_each(Absence::ends);
    }

    /// Returns a copy of this client that waits for answers without a time limit.
    pub fn unhurried(&self) -> Result<Self, Error> {
        Ok(Self { transport: self.transport.unhurried()? })
    }

    /// Checks that a daemon is running and accepts this client's token.
    pub async fn ready(&self) -> Result<(), Error> {
        self.config().await.map(|_| ())
    }

    /// Returns the current address of the daemon.
    pub fn url(&self) -> Result<String, Error> {
        Ok(self.transport.door()?.url.to_string())
    }

    async fn get<T: for<'de> Deserialize<'de>>(
        &self,
        path: &[&str],
        filter: &impl Serialize,
    ) -> Result<T, Error> {
        self.transport.ask(&Asked::new(Method::GET, path).query(query(filter))).await
    }

    async fn post<T: for<'de> Deserialize<'de>>(&self, path: &[&str]) -> Result<T, Error> {
        self.transport.ask(&Asked::new(Method::POST, path)).await
    }

    /// Sends a message from the person. The key of the message makes sure that retries do not deliver the message
    /// twice.
    pub async fn send(&self, message: &NewMessage) -> Result<Posted, Error> {
        let body = serde_json::to_vec(message).map_err(|error| Error::Setup(error.to_string()))?;
        self.post_message(message, JSON, body).await
    }

    /// Sends a message together with files, which become artifacts of the person. The daemon stores either the message
    /// and all files, or nothing. Retries do not store them twice. The client reads the files into memory.
    pub async fn send_with_files(&self, message: &NewMessage, files: &[PathBuf]) -> Result<Posted, Error> {
        let mut form = Form::new();
        form.text("to", message.to.as_str());
        form.text("text", &message.text);
        message.attachments.iter().for_each(|reference| form.text("attachments", reference));
        message.task.iter().for_each(|task| form.text("task", task.as_str()));
        message.workspace.iter().for_each(|workspace| form.text("workspace", workspace));
        message.service.iter().for_each(|service| form.text("service", service.as_str()));
        for path in files {
            let failed = |source| Error::File { path: path.clone(), source };
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            form.file("attachment", &name, &tokio::fs::read(path).await.map_err(failed)?);
        }
        let content_type = HeaderValue::from_str(&form.content_type());
        let content_type = content_type.map_err(|error| Error::Setup(error.to_string()))?;
        self.post_message(message, content_type, form.finish()).await
    }

    async fn post_message(
        &self,
        message: &NewMessage,
        content_type: HeaderValue,
        body: Vec<u8>,
    ) -> Result<Posted, Error> {
        let mut asked = Asked::new(Method::POST, &["api", "messages"]);
        let key = HeaderValue::from_str(&message.key.0).map_err(|error| Error::Setup(error.to_string()))?;
        asked.headers.insert(IDEMPOTENCY_KEY, key);
        asked.headers.insert(CONTENT_TYPE, content_type);
        asked.body = Some(body);
        self.transport.ask(&asked).await.map_err(|error| match error {
            Error::Lost { url, reason } => Error::MayBeTaken { url, reason },
            other => other,
        })
    }

    /// Fetches a page of messages.
    pub async fn messages(&self, filter: &MessageFilter) -> Result<MessagePage, Error> {
        self.get(&["api", "messages"], filter).await
    }

    /// Frees space in the data directory of the daemon. This may take long.
    pub async fn free(&self, wanted: &FreeingFilter) -> Result<FreedView, Error> {
        let asked = Asked::new(Method::POST, &["api", "gc"]).query(query(wanted));
        self.unhurried()?.transport.ask(&asked).await
    }

    /// Fetches everything that the current configuration declares, except secrets.
    pub async fn config_in_force(&self) -> Result<Value, Error> {
        self.get(&["api", "config", "in-force"], &()).await
    }

    /// Searches prompts, messages, agents and artifacts. If the query is too long for an address, this call cuts it.
    /// The daemon would ignore the remaining characters anyway.
    pub async fn search(&self, filter: &SearchFilter) -> Result<SearchPage, Error> {
        let q = filter.q.chars().take(QUERY_CHARACTERS).collect();
        self.get(&["api", "search"], &SearchFilter { q, ..filter.clone() }).await
    }

    /// Fetches one message with its text.
    pub async fn message(&self, id: &MessageId) -> Result<MessageView, Error> {
        self.get(&["api", "messages", id.as_str()], &()).await
    }

    /// Records that the person has seen a message.
    pub async fn mark_shown(&self, id: &MessageId) -> Result<(), Error> {
        let _: Value = self.post(&["api", "messages", id.as_str(), "shown"]).await?;
        Ok(())
    }

    /// Fetches the agents that are at work now, and what is stuck.
    pub async fn now(&self, filter: &NowFilter) -> Result<NowView, Error> {
        self.get(&["api", "now"], filter).await
    }

    /// Returns whether the client calls routes in this process instead of a daemon.
    pub fn is_in_process(&self) -> bool {
        self.transport.is_in_process()
    }

    /// Fetches a page of tasks, newest first.
    pub async fn tasks(&self, filter: &TaskFilter) -> Result<TaskPage, Error> {
        self.get(&["api", "tasks"], filter).await
    }

    /// Fetches one task.
    pub async fn task(&self, id: &TaskId) -> Result<TaskView, Error> {
        self.get(&["api", "tasks", id.as_str()], &()).await
    }

    /// Fetches a page of agents.
    pub async fn agents(&self, filter: &AgentFilter) -> Result<AgentPage, Error> {
        self.get(&["api", "agents"], filter).await
    }

    /// Fetches all agents that match the filter, page by page, and returns them as one page. Its `as_of` is the number of
    /// the event that was the newest event when the first page was read. The events after this number report later
    /// changes of the agents.
    pub async fn all_agents(&self, filter: &AgentFilter) -> Result<AgentPage, Error> {
        let mut filter = AgentFilter { limit: Some(polity_view::MAX_PAGE), ..filter.clone() };
        let mut all = self.agents(&filter).await?;
        while all.next.is_some() {
            filter.after = all.next;
            let page = self.agents(&filter).await?;
            all.agents.extend(page.agents);
            all.next = page.next;
        }
        Ok(all)
    }

    /// Fetches one agent in detail.
    pub async fn agent(&self, id: &AgentId) -> Result<AgentDetail, Error> {
        self.get(&["api", "agents", id.as_str()], &()).await
    }

    /// Fetches an agent's stored history in a task.
    pub async fn conversation(
        &self,
        id: &AgentId,
        task: Option<&TaskId>,
        before: Option<i64>,
    ) -> Result<ConversationView, Error> {
        let filter = serde_json::json!({"task": task, "before": before});
        self.get(&["api", "agents", id.as_str(), "conversation"], &filter).await
    }

    /// Fetches a preview of the request that would go to an agent's model now.
    pub async fn request(
        &self,
        id: &AgentId,
        task: Option<&TaskId>,
        media: Media,
    ) -> Result<RequestPreview, Error> {
        let full = (media == Media::Whole).then_some(true);
        let filter = serde_json::json!({"task": task, "full": full});
        self.get(&["api", "agents", id.as_str(), "request"], &filter).await
    }

    /// Fetches a request exactly as it was sent to a model.
    pub async fn sent(&self, number: i64) -> Result<SentRequest, Error> {
        self.get(&["api", "sent", &number.to_string()], &()).await
    }

    /// Fetches the explanation of an event, an artifact, an agent or a task.
    pub async fn why(&self, id: &str, filter: &WhyFilter) -> Result<Why, Error> {
        self.get(&["api", "why", id], filter).await
    }

    /// Fetches the contacts of an agent.
    pub async fn contacts(&self, id: &AgentId) -> Result<Vec<ContactView>, Error> {
        self.get(&["api", "agents", id.as_str(), "contacts"], &()).await
    }

    /// Fetches the running commands of agents.
    pub async fn commands(&self, filter: &CommandFilter) -> Result<Vec<CommandView>, Error> {
        self.get(&["api", "commands"], filter).await
    }

    /// Stops, pauses or resumes one agent, or an agent and all its descendants.
    pub async fn steer(&self, id: &AgentId, step: SteerAction, scope: Scope) -> Result<Steered, Error> {
        let (step, scope): (&str, &str) = (step.into(), scope.into());
        let path = ["api", "agents", id.as_str(), step];
        self.transport
            .ask(&Asked::new(Method::POST, &path).query(vec![("scope".to_owned(), scope.to_owned())]))
            .await
    }

    /// Forks a task. The key makes sure that a retry does not fork the task twice.
    pub async fn fork(&self, id: &TaskId, fork: &NewFork, key: &IdempotencyKey) -> Result<Forked, Error> {
        let path = ["api", "tasks", id.as_str(), "fork"];
        let mut asked = Asked::new(Method::POST, &path);
        let key = HeaderValue::from_str(&key.0).map_err(|error| Error::Setup(error.to_string()))?;
        asked.headers.insert(IDEMPOTENCY_KEY, key);
        asked.headers.insert(CONTENT_TYPE, JSON);
        asked.body = Some(serde_json::to_vec(fork).map_err(|error| Error::Setup(error.to_string()))?);
        self.transport.ask(&asked).await.map_err(|error| match error {
            Error::Lost { url, reason } => Error::MayBeTaken { url, reason },
            other => other,
        })
    }

    /// Asks the daemon to end. The daemon answers before it has ended.
    pub async fn shutdown(&self) -> Result<Leaving, Error> {
        self.post(&["api", "shutdown"]).await
    }

    /// Stops a task.
    pub async fn stop_task(&self, id: &TaskId) -> Result<Steered, Error> {
        self.transport.ask(&Asked::new(Method::POST, &["api", "tasks", id.as_str(), "stop"])).await
    }

    /// Lets root try again, if no model could be used in a task. The answer names root if it does.
    pub async fn try_task(&self, id: &TaskId) -> Result<Steered, Error> {
        self.transport.ask(&Asked::new(Method::POST, &["api", "tasks", id.as_str(), "try"])).await
    }

    /// Fetches a page of questions, newest first. Each question asks whether an agent may make a call.
    pub async fn approvals(&self, filter: &ApprovalFilter) -> Result<ApprovalPage, Error> {
        self.get(&["api", "approvals"], filter).await
    }

    /// Fetches one question.
    pub async fn approval(&self, id: &ApprovalId) -> Result<ApprovalView, Error> {
        self.get(&["api", "approvals", id.as_str()], &()).await
    }

    /// Answers a question.
    pub async fn answer(&self, id: &ApprovalId, answer: &ApprovalAnswer) -> Result<ApprovalView, Error> {
        let body = serde_json::to_vec(answer).map_err(|error| Error::Setup(error.to_string()))?;
        let path = ["api", "approvals", id.as_str()];
        let mut asked = Asked::new(Method::POST, &path);
        asked.headers.insert(CONTENT_TYPE, JSON);
        asked.body = Some(body);
        self.transport.ask(&asked).await
    }

    /// Fetches the permissions: what the person has allowed for more than one call.
    pub async fn permissions(&self) -> Result<Vec<PermissionView>, Error> {
        self.get(&["api", "permissions"], &()).await
    }

    /// Removes a permission.
    pub async fn remove_permission(&self, id: &PermissionId) -> Result<(), Error> {
        let path = ["api", "permissions", id.as_str()];
        let _: Value = self.transport.ask(&Asked::new(Method::DELETE, &path)).await?;
        Ok(())
    }

    /// Fetches one role.
    pub async fn role(&self, id: &RoleId) -> Result<RoleView, Error> {
        self.get(&["api", "roles", id.as_str()], &()).await
    }

    /// Fetches a page of artifacts, newest first.
    pub async fn artifacts(&self, filter: &ArtifactFilter) -> Result<ArtifactPage, Error> {
        self.get(&["api", "artifacts"], filter).await
    }

    /// Fetches the description of one artifact, without its bytes.
    pub async fn artifact(&self, id: &str) -> Result<ArtifactView, Error> {
        self.get(&["api", "artifacts", id], &()).await
    }

    /// Fetches all services.
    pub async fn services(&self) -> Result<Vec<ServiceView>, Error> {
        self.get(&["api", "services"], &()).await
    }

    /// Fetches one service.
    pub async fn service(&self, id: &ServiceId) -> Result<ServiceView, Error> {
        self.get(&["api", "services", id.as_str()], &()).await
    }

    /// Ends all pauses of a service, also those that it asked for, so that the next call is sent at once.
    pub async fn try_service(&self, id: &ServiceId) -> Result<ServiceView, Error> {
        self.post(&["api", "services", id.as_str(), "try"]).await
    }

    /// Fetches all MCP servers.
    pub async fn servers(&self) -> Result<Vec<ServerView>, Error> {
        self.get(&["api", "servers"], &()).await
    }

    /// Fetches the configuration that is in force.
    pub async fn config(&self) -> Result<ConfigView, Error> {
        self.get(&["api", "config"], &()).await
    }

    /// Makes the daemon reload its configuration now.
    pub async fn reload(&self) -> Result<ConfigView, Error> {
        self.post(&["api", "config", "reload"]).await
    }

    /// Fetches the token usage.
    pub async fn usage(&self, filter: &UsageFilter) -> Result<UsageView, Error> {
        self.get(&["api", "usage"], filter).await
    }

    /// Fetches a page of events.
    pub async fn events(&self, side: Side, limit: u32, filter: &EventFilter) -> Result<EventPage, Error> {
        let mut query = event_query(filter);
        query.push(match side {
            Side::After(seq) => ("after".to_owned(), seq.to_string()),
            Side::Before(seq) => ("before".to_owned(), seq.to_string()),
        });
        query.push(("limit".to_owned(), limit.to_string()));
        self.transport.ask(&Asked::new(Method::GET, &["api", "events"]).query(query)).await
    }

    /// Requests an address that opens the live view in a browser without a token. The address works only once, and only
    /// within a minute.
    pub async fn session(&self) -> Result<String, Error> {
        #[derive(Deserialize)]
        struct Session {
            url: String,
        }
        let session: Session = self.post(&["api", "session"]).await?;
        Ok(session.url)
    }
}

/// Turns an event filter into query parameters.
pub(crate) fn event_query(filter: &EventFilter) -> Vec<(String, String)> {
    let EventFilter { task, agent, kinds } = filter;
    let task = task.iter().map(|task| ("task".to_owned(), task.to_string()));
    let agent = agent.iter().map(|agent| ("agent".to_owned(), agent.to_string()));
    let kinds = (!kinds.is_empty()).then(|| ("kind".to_owned(), kinds.join(",")));
    task.chain(agent).chain(kinds).collect()
}

/// Turns a filter into query parameters: one parameter for each field that has a value.
fn query(filter: &impl Serialize) -> Vec<(String, String)> {
    // A filter serializes as an object of plain values. `()`, for a route without a filter, serializes as `null` and
    // adds no parameters.
    let Ok(Value::Object(fields)) = serde_json::to_value(filter) else { return Vec::new() };
    let plain = fields.into_iter().filter_map(|(name, value)| match value {
        Value::String(text) => Some((name, text)),
        Value::Number(number) => Some((name, number.to_string())),
        Value::Bool(flag) => Some((name, flag.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    });
    plain.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_view::{AgentState, Order};
    use std::time::Duration;

    #[track_caller]
    fn check(filter: &impl Serialize, expect: &str) {
        let query: Vec<String> =
            query(filter).iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(query.join("&"), expect);
    }

    #[tokio::test]
    async fn a_request_that_waits_for_a_daemon_tells_the_person_once() {
        let data = tempfile::tempdir().unwrap();
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let client = Client::new(data.path()).unwrap();
        let client = client.waiting_aloud(move |words| tell.send(words.to_owned()).unwrap());
        let filter = TaskFilter::default();
        let [mut one, mut other] = [client.tasks(&filter), client.tasks(&filter)].map(Box::pin);
        let words = tokio::select! {
            words = tokio::time::timeout(Duration::from_secs(60), told.recv()) => words.expect("it says nothing"),
            _ = &mut one => panic!("no daemon is there"),
            _ = &mut other => panic!("no daemon is there"),
        };
        assert_eq!(words.unwrap(), "the daemon has gone; waiting until it is back (Ctrl-C quits)");
        client.is_lost(Loss::Gone);
        assert!(told.try_recv().is_err(), "the person knows it");
        client.is_back();
        client.is_lost(Loss::Unreadable);
        let again = "the events cannot be read at the moment; trying again (Ctrl-C quits)";
        assert_eq!(told.try_recv().as_deref(), Ok(again));
    }

    #[test]
    fn filters_in_queries() {
        check(&(), "");
        check(&AgentFilter::default(), "");
        let agents = AgentFilter {
            state: Some(AgentState::Parked),
            include_ended: true,
            limit: Some(5),
            ..AgentFilter::default()
        };
        check(&agents, "state=parked&ended=true&limit=5");
        let named = AgentFilter { ids: vec![AgentId::root(), AgentId::user()], ..AgentFilter::default() };
        check(&named, "ids=root,user");
        let messages = MessageFilter {
            with: Some(AgentId::root()),
            message_type: Some("general".to_owned()),
            unshown: true,
            order: Order::Newest,
            ..MessageFilter::default()
        };
        check(&messages, "with=root&type=general&unshown=true&order=newest");
        check(&serde_json::json!({"task": null, "before": 7}), "before=7");
    }

    #[test]
    fn no_two_keys_are_the_same() {
        let keys: std::collections::BTreeSet<String> = (0..1000).map(|_| IdempotencyKey::mint().0).collect();
        assert_eq!(keys.len(), 1000);
        assert!(keys.iter().all(|key| key.len() == 32));
    }
}
