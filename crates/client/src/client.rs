//! What can be asked of a daemon: a call for each route.

use crate::error::Error;
use crate::in_process::InProcess;
use crate::transport::{Asked, Patience, Transport};
use bytes::Bytes;
use http_body::Body;
use polity_runtime::view::{
    AgentDetail, AgentFilter, AgentPage, AgentView, ArtifactFilter, ArtifactPage, ArtifactView, ConfigView,
    ContactView, ConversationView, EventFilter, EventPage, MessageFilter, MessagePage, MessageView, Posted,
    RequestPreview, RoleView, ServiceView, Steered, TaskFilter, TaskPage, TaskView, UsageFilter, UsageView,
};
use polity_society::id::{AgentId, MessageId, RoleId, ServiceId, TaskId};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::convert::Infallible;
use std::path::Path;
use tower::Service;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Asks whatever daemon serves a data directory when it is asked: one that was restarted is found again. Or it asks
/// routes in this process.
#[derive(Clone)]
pub struct Client {
    pub(crate) transport: Transport,
}

/// A message of the person, as it is sent.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Letter {
    /// Whom it is for.
    pub to: AgentId,
    /// What it says.
    pub text: String,
    /// References of artifacts that go with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<String>,
    /// The task that it continues; a new one where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The service that root uses for a new task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceId>,
    /// By which the daemon knows it again, however often it is sent.
    #[serde(skip)]
    pub key: IdempotencyKey,
}

/// A key that no other message has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Makes one.
    pub fn mint() -> Self {
        Self(format!("{:032x}", fastrand::u128(..)))
    }
}

/// Which agents a step concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The agent alone.
    Agent,
    /// It and all below it.
    Subtree,
}

/// What is done to agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// What they do is ended.
    Stop,
    /// They do nothing until they are resumed.
    Pause,
    /// They go on.
    Resume,
}

impl Step {
    fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }
}

/// On which side of an event a page lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The events after it, the oldest of them first.
    After(i64),
    /// The last events before it.
    Before(i64),
}

/// How much of a request is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// Long base64 is replaced by its length.
    Measured,
    /// Everything is there.
    Whole,
}

impl Client {
    /// A client for whatever daemon serves a data directory. Nobody is asked yet.
    pub fn new(data: &Path) -> Result<Self, Error> {
        Ok(Self { transport: Transport::to_daemon(data)? })
    }

    /// A client for routes in this process.
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

    /// The same, but it waits for the next daemon where one has gone.
    #[must_use]
    pub fn waiting(&self) -> Self {
        let mut transport = self.transport.clone();
        transport.patience = Patience::UntilBack;
        Self { transport }
    }

    /// The same, with answers that may take as long as they like.
    pub fn unhurried(&self) -> Result<Self, Error> {
        Ok(Self { transport: self.transport.unhurried()? })
    }

    /// Whether a daemon is there and lets this client in.
    pub async fn ready(&self) -> Result<(), Error> {
        self.config().await.map(|_| ())
    }

    /// Where the daemon is now.
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

    /// Sends a message of the person; however often it is tried, the society has it once.
    pub async fn send(&self, letter: &Letter) -> Result<Posted, Error> {
        let mut asked = Asked::new(Method::POST, &["api", "messages"]);
        let unwritable = |reason: String| Error::Setup(reason);
        let key = HeaderValue::from_str(&letter.key.0).map_err(|error| unwritable(error.to_string()))?;
        asked.headers.insert(IDEMPOTENCY_KEY, key);
        asked.headers.insert(CONTENT_TYPE, JSON);
        asked.body = Some(serde_json::to_vec(letter).map_err(|error| unwritable(error.to_string()))?);
        self.transport.ask(&asked).await.map_err(|error| match error {
            Error::Lost { url, reason } => Error::MayBeTaken { url, reason },
            other => other,
        })
    }

    /// A page of messages.
    pub async fn messages(&self, filter: &MessageFilter) -> Result<MessagePage, Error> {
        self.get(&["api", "messages"], filter).await
    }

    /// A message.
    pub async fn message(&self, id: &MessageId) -> Result<MessageView, Error> {
        self.get(&["api", "messages", id.as_str()], &()).await
    }

    /// Notes that the person has been shown a message.
    pub async fn mark_shown(&self, id: &MessageId) -> Result<(), Error> {
        let _: Value = self.post(&["api", "messages", id.as_str(), "shown"]).await?;
        Ok(())
    }

    /// A page of tasks, the newest first.
    pub async fn tasks(&self, filter: &TaskFilter) -> Result<TaskPage, Error> {
        self.get(&["api", "tasks"], filter).await
    }

    /// A task.
    pub async fn task(&self, id: &TaskId) -> Result<TaskView, Error> {
        self.get(&["api", "tasks", id.as_str()], &()).await
    }

    /// A page of agents.
    pub async fn agents(&self, filter: &AgentFilter) -> Result<AgentPage, Error> {
        self.get(&["api", "agents"], filter).await
    }

    /// All agents that are meant, page by page, and the event as of which the first page was read: what has happened
    /// since is told by the events after it.
    pub async fn all_agents(&self, filter: &AgentFilter) -> Result<(Vec<AgentView>, i64), Error> {
        let mut filter = AgentFilter { limit: Some(polity_runtime::view::MAX_PAGE), ..filter.clone() };
        let first = self.agents(&filter).await?;
        let (mut agents, as_of, mut next) = (first.agents, first.as_of, first.next);
        while next.is_some() {
            filter.after = next;
            let page = self.agents(&filter).await?;
            agents.extend(page.agents);
            next = page.next;
        }
        Ok((agents, as_of))
    }

    /// An agent.
    pub async fn agent(&self, id: &AgentId) -> Result<AgentDetail, Error> {
        self.get(&["api", "agents", id.as_str()], &()).await
    }

    /// What an agent has heard and said in a task, as it is stored.
    pub async fn conversation(
        &self,
        id: &AgentId,
        task: Option<&TaskId>,
        before: Option<i64>,
    ) -> Result<ConversationView, Error> {
        let filter = serde_json::json!({"task": task, "before": before});
        self.get(&["api", "agents", id.as_str(), "conversation"], &filter).await
    }

    /// What an agent's model would be sent now.
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

    /// Whom an agent can write to.
    pub async fn contacts(&self, id: &AgentId) -> Result<Vec<ContactView>, Error> {
        self.get(&["api", "agents", id.as_str(), "contacts"], &()).await
    }

    /// Has an agent, or it and all below it, stop, pause or go on.
    pub async fn steer(&self, id: &AgentId, step: Step, scope: Scope) -> Result<Steered, Error> {
        let scope = match scope {
            Scope::Agent => "agent",
            Scope::Subtree => "subtree",
        };
        let path = ["api", "agents", id.as_str(), step.as_str()];
        self.transport
            .ask(&Asked::new(Method::POST, &path).query(vec![("scope".to_owned(), scope.to_owned())]))
            .await
    }

    /// Ends a task.
    pub async fn stop_task(&self, id: &TaskId) -> Result<Steered, Error> {
        self.transport.ask(&Asked::new(Method::POST, &["api", "tasks", id.as_str(), "stop"])).await
    }

    /// A role.
    pub async fn role(&self, id: &RoleId) -> Result<RoleView, Error> {
        self.get(&["api", "roles", id.as_str()], &()).await
    }

    /// A page of artifacts, the newest first.
    pub async fn artifacts(&self, filter: &ArtifactFilter) -> Result<ArtifactPage, Error> {
        self.get(&["api", "artifacts"], filter).await
    }

    /// An artifact.
    pub async fn artifact(&self, id: &str) -> Result<ArtifactView, Error> {
        self.get(&["api", "artifacts", id], &()).await
    }

    /// All services.
    pub async fn services(&self) -> Result<Vec<ServiceView>, Error> {
        self.get(&["api", "services"], &()).await
    }

    /// A service.
    pub async fn service(&self, id: &ServiceId) -> Result<ServiceView, Error> {
        self.get(&["api", "services", id.as_str()], &()).await
    }

    /// The configuration that is in force.
    pub async fn config(&self) -> Result<ConfigView, Error> {
        self.get(&["api", "config"], &()).await
    }

    /// Has the daemon read its configuration now.
    pub async fn reload(&self) -> Result<ConfigView, Error> {
        self.post(&["api", "config", "reload"]).await
    }

    /// What was spent.
    pub async fn usage(&self, filter: &UsageFilter) -> Result<UsageView, Error> {
        self.get(&["api", "usage"], filter).await
    }

    /// A page of events.
    pub async fn events(&self, side: Side, limit: u32, filter: &EventFilter) -> Result<EventPage, Error> {
        let mut query = event_query(filter);
        query.push(match side {
            Side::After(seq) => ("after".to_owned(), seq.to_string()),
            Side::Before(seq) => ("before".to_owned(), seq.to_string()),
        });
        query.push(("limit".to_owned(), limit.to_string()));
        self.transport.ask(&Asked::new(Method::GET, &["api", "events"]).query(query)).await
    }

    /// An address that opens the live view once, within a minute, without a token.
    pub async fn session(&self) -> Result<String, Error> {
        #[derive(Deserialize)]
        struct Session {
            url: String,
        }
        let session: Session = self.post(&["api", "session"]).await?;
        Ok(session.url)
    }
}

/// What an event filter is in a query.
pub(crate) fn event_query(filter: &EventFilter) -> Vec<(String, String)> {
    let EventFilter { task, agent, kinds } = filter;
    let task = task.iter().map(|task| ("task".to_owned(), task.to_string()));
    let agent = agent.iter().map(|agent| ("agent".to_owned(), agent.to_string()));
    let kinds = (!kinds.is_empty()).then(|| ("kind".to_owned(), kinds.join(",")));
    task.chain(agent).chain(kinds).collect()
}

/// What a filter is in a query: its fields, but for those that are not there.
fn query(filter: &impl Serialize) -> Vec<(String, String)> {
    // A filter is an object of plain values; anything else asks for nothing.
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
    use polity_runtime::view::{AgentState, Order};

    #[track_caller]
    fn check(filter: &impl Serialize, expect: &str) {
        let query: Vec<String> =
            query(filter).iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(query.join("&"), expect);
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
