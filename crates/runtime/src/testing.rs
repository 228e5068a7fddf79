//! The world in which tests of this crate run: a real database and files in a temporary directory, a configuration, and
//! a task. Tool calls run as the driver runs them. The models of these tests are in [`model`].

pub(crate) mod model;
pub(crate) mod tool;

use crate::handles::{Gates, Handles};
use crate::tools::{self, Context, Copying, Incoming};
use futures::future::BoxFuture;
use polity_artifacts::{BlobStore, prepare};
use polity_hands::table::Hands;
use polity_llm::{Arguments, ChatModel, ToolCall};
use polity_registry::{Environment, Registry, Snapshot};
use polity_society::id::{AgentId, MessageId, TaskId, TurnId};
use polity_society::message::Message;
use polity_society::rules;
use polity_sql::{Connection, Sql};
use polity_store::record::ToolResult;
use polity_store::view::events;
use polity_store::{Conversation, Durability, Error, Signals, Store, Tx, messages, records, tasks, turns};
use polity_view::Entry;
use polity_view::EventFilter;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tempfile::TempDir;

/// Three services: the default service accepts only text, `eyes` also accepts images, and `all` accepts files of all
/// kinds.
const SERVICES: &str = r#"{"services": [
    {"id": "words", "baseURL": "http://127.0.0.1:9/v1", "model": "words-1"},
    {"id": "eyes", "baseURL": "http://127.0.0.1:9/v1", "model": "eyes-1",
     "capabilities": {"input": ["text", "vision"], "output": ["text", "tool_calling"]}},
    {"id": "all", "baseURL": "http://127.0.0.1:9/v1", "model": "all-1",
     "capabilities": {"input": ["text", "vision", "audio", "video", "file"], "output": ["text", "tool_calling"]}}
]}"#;

/// The file of the settings.
const APP: &str = "app.json";

/// A society without drivers.
pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) blobs: BlobStore,
    pub(crate) registry: Arc<Registry>,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) task: TaskId,
    pub(crate) signals: Signals,
    pub(crate) directory: TempDir,
    /// The directory of the configuration files.
    config: TempDir,
}

/// Returns the configuration for an `app.json`.
pub(crate) async fn snapshot(app: &Value) -> Arc<Snapshot> {
    registry(app).await.0.current()
}

/// Returns the registry for an `app.json`, for tests that start a whole society.
pub(crate) async fn app_registry(app: &Value) -> Registry {
    registry(app).await.0
}

/// Creates an empty database that tests can copy. The database exists until the returned directory is dropped.
pub(crate) async fn template() -> (std::path::PathBuf, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("polity.db");
    let (store, _signals) = Store::open(&file, Durability::Normal).await.unwrap();
    store.close().await;
    (file, directory)
}

/// Returns the registry for an `app.json`, and the directory of its files.
async fn registry(app: &Value) -> (Registry, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(APP), app.to_string()).unwrap();
    std::fs::write(directory.path().join("llmservices.json"), SERVICES).unwrap();
    let environment = Environment::look_up(|_| None);
    let (registry, problems) =
        Registry::load(directory.path(), environment, Box::new(|| Box::pin(async { Vec::new() })))
            .await
            .unwrap();
    assert_eq!(problems, []);
    (registry, directory)
}

/// Returns a complete task brief.
pub(crate) fn brief() -> Value {
    json!({"objective": "读图", "constraints": [], "inputs": "附件", "outputs": "文字", "completion_criteria": "写完"})
}

/// Returns the code of a refusal, or `ok`.
pub(crate) fn code(result: &Value) -> &str {
    result.get("error").and_then(Value::as_str).unwrap_or("ok")
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(&json!({})).await
    }

    /// Creates a world with these limits and an empty task.
    pub(crate) async fn with(limits: &Value) -> Self {
        Self::with_app(&json!({"limits": limits})).await
    }

    /// Creates a world with this `app.json` and an empty task.
    pub(crate) async fn with_app(app: &Value) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("polity.db");
        let (store, signals) = Store::open(&file, Durability::Normal).await.unwrap();
        let blobs = BlobStore::open(directory.path().join("artifacts")).await.unwrap();
        let (registry, config) = registry(app).await;
        let world = Self {
            store,
            blobs,
            snapshot: registry.current(),
            registry: Arc::new(registry),
            task: TaskId::new("t-1"),
            signals,
            directory,
            config,
        };
        world.add_task("t-1").await;
        world
    }

    /// Replaces `app.json`, as the person may do while agents work.
    pub(crate) async fn configure(&mut self, app: &Value) {
        std::fs::write(self.config.path().join(APP), app.to_string()).unwrap();
        self.registry.reload().await;
        self.snapshot = self.registry.current();
        assert_eq!(self.snapshot.problems, []);
    }

    pub(crate) async fn add_task(&self, id: &str) {
        let id = TaskId::new(id);
        self.write(move |tx| Box::pin(async move { tasks::insert(tx, &id, None).await })).await;
    }

    pub(crate) async fn write<T, F>(&self, job: F) -> T
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, Error>> + Send + 'static,
    {
        self.store.write(job).await.unwrap()
    }

    /// Waits until the writer has sent all signals of the earlier jobs. The writer answers a job, then sends its
    /// signals, and only then begins the next job. So this function gives the writer an empty job, and waits for the
    /// answer.
    pub(crate) async fn settle_signals(&self) {
        self.write(|_| Box::pin(async { Ok(()) })).await;
    }

    /// Creates the handles with which the agents of this world use this model and these outside tools.
    pub(crate) fn handles(&self, model: Arc<dyn ChatModel>, hands: Hands) -> Arc<Handles> {
        let copying = Copying::new(&hands, &self.store, &self.blobs, &self.registry);
        Arc::new(Handles {
            store: self.store.clone(),
            blobs: self.blobs.clone(),
            registry: Arc::clone(&self.registry),
            model,
            gates: Gates::default(),
            board: Arc::default(),
            budgets: crate::budget::Budgets::default(),
            draining: tokio_util::sync::CancellationToken::new(),
            trusts: crate::trust::Trusts::default(),
            kept: crate::kept::Kept::default(),
            tool_cache: crate::tools::ToolCache::default(),
            extractor: None,
            hands,
            copying,
            private: Vec::new(),
        })
    }

    pub(crate) fn of(&self, agent: &str) -> Conversation {
        Conversation { agent: AgentId::new(agent), task: self.task.clone() }
    }

    /// Makes an agent call a tool in the task of this world, and returns the result.
    pub(crate) async fn call(&self, agent: &str, tool: &str, arguments: Value) -> Value {
        self.call_in(self.of(agent), tool, arguments).await
    }

    pub(crate) async fn call_in(&self, caller: Conversation, tool: &str, arguments: Value) -> Value {
        let done = self.done(caller, tool, arguments).await;
        match done.result {
            ToolResult::Json(value) => {
                assert_eq!(done.refused, value.get("error").and_then(Value::as_str));
                value
            }
            ToolResult::Artifact { artifact, ignored, .. } if ignored.is_empty() => {
                json!({"opened": artifact.reference()})
            }
            ToolResult::Outside { .. } => panic!("no society tool acts outside"),
            ToolResult::Artifact { artifact, ignored, .. } => {
                json!({"opened": artifact.reference(), "ignored": ignored})
            }
        }
    }

    /// Makes an agent call a tool. Returns all that the tool returns to the driver.
    pub(crate) async fn done(&self, caller: Conversation, tool: &str, arguments: Value) -> tools::Done {
        let arguments = match arguments {
            Value::Object(object) => Arguments::Object(object),
            other => Arguments::Malformed(other.to_string()),
        };
        let call = ToolCall {
            id: "call_1".to_owned(),
            name: tool.to_owned(),
            arguments,
            extra: serde_json::Map::new(),
        };
        let mut prepared = HashMap::new();
        match tools::incoming(&call, &self.snapshot.settings.limits) {
            Some(Ok(Incoming::Text(artifact) | Incoming::Bytes(artifact))) => {
                let stored = prepare(&self.blobs, artifact, polity_store::mint::artifact(), 1).await;
                prepared.insert(call.id.clone(), Ok(stored.unwrap()));
            }
            Some(Err(refusal)) => {
                prepared.insert(call.id.clone(), Err(refusal));
            }
            Some(Ok(Incoming::Reference)) | None => {}
        }
        let snapshot = Arc::clone(&self.snapshot);
        let run = self.write(move |tx| {
            Box::pin(async move {
                let context = Context {
                    caller: &caller,
                    last_word: polity_society::rules::LastWord::UnlessWaiting,
                    misfit: polity_decide::result::Misfit::Refused,
                    snapshot: &snapshot,
                    no_worktree: None,
                    prepared: &prepared,
                };
                tools::run(tx, &context, &call).await
            })
        });
        run.await
    }

    /// Makes an agent create a role and hire a new agent into this role. Returns the id of the new agent.
    pub(crate) async fn hire(&self, parent: &str, role: &str, extra: Value) -> String {
        let mut wish = json!({"name": role, "rolePrompt": "…"});
        wish.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let role = self.call(parent, "create_role", wish).await;
        let arguments = json!({"roleId": role["id"], "taskBrief": brief()});
        let hired = self.call(parent, "spawn_agent", arguments).await;
        hired["id"].as_str().unwrap_or_else(|| panic!("{hired}")).to_owned()
    }

    pub(crate) async fn say(&self, from: &str, to: &str, payload: Value) -> Value {
        self.call(from, "send_message", json!({"to": to, "payload": payload})).await
    }

    /// Returns all messages that were ever sent to a party, oldest first.
    pub(crate) async fn mail(&self, to: &str) -> Vec<Message> {
        let mut reader = self.store.reader().await.unwrap();
        let ids =
            strings(&mut reader, &format!("SELECT id FROM messages WHERE receiver = '{to}' ORDER BY seq"))
                .await;
        let mut mail = Vec::new();
        for id in ids {
            mail.extend(messages::get(&mut reader, &MessageId::new(id)).await.unwrap());
        }
        mail
    }

    /// Makes an agent read its mail: begins a turn, and takes the queued messages into this turn. The turn stays
    /// open.
    pub(crate) async fn begin_turn(&self, agent: &str) -> TurnId {
        let conversation = self.of(agent);
        self.write(move |tx| {
            Box::pin(async move {
                let first = messages::next_for_turn(&mut tx.connection, &conversation).await?;
                let first = first.expect("there is mail");
                let subjects = messages::requests(&mut tx.connection, rules::subjects(&first)).await?;
                let works_on = rules::works_on(&first, &subjects);
                let open = turns::begin(tx, &conversation, &first.id, works_on).await?;
                for message in messages::take_through(tx, &conversation, open.id, i64::MAX).await? {
                    let record = polity_store::record::Record::Heard { message };
                    records::append(tx, &conversation, open.id, &record).await?;
                }
                Ok(open.id)
            })
        })
        .await
    }

    /// Returns the first column of a query's rows as texts.
    pub(crate) async fn query(&self, sql: &str) -> Vec<String> {
        strings(&mut self.store.reader().await.unwrap(), sql).await
    }

    /// Returns all rows of all tables, except the tables `events`, `records` and `found…` (the search index), and the
    /// tables of the database itself.
    pub(crate) async fn dump(&self) -> BTreeMap<String, Vec<String>> {
        let mut dump = BTreeMap::new();
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
            AND name NOT IN ('events', 'records', '_sqlx_migrations')
            AND name NOT LIKE 'found%'";
        for table in self.query(tables).await {
            let columns =
                self.query(&format!("SELECT name FROM pragma_table_info('{table}')")).await.join(", ");
            let rows = format!("SELECT json_array({columns}) FROM {table} ORDER BY 1");
            dump.insert(table, self.query(&rows).await);
        }
        dump
    }
}

async fn strings(connection: &mut Connection, sql: &str) -> Vec<String> {
    let rows = polity_sql::query(Sql::built(sql.to_owned())).fetch_all(connection).await.unwrap();
    rows.iter().map(|row| row.try_get::<Option<String>, _>(0).unwrap().unwrap_or_default()).collect()
}

/// Returns all events after a number.
pub(crate) async fn events_after(connection: &mut Connection, seq: i64) -> Vec<Entry> {
    let everything = EventFilter::default();
    events::list(connection, events::Side::After(seq), &everything, 10_000).await.unwrap().events
}
