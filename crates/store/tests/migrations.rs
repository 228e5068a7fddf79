//! Tests that opening a database with any earlier schema migrates the schema and keeps all rows.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

use polity_artifacts::{BlobHash, BlobStore};
use polity_society::id::{ArtifactId, MessageId, TaskId};
use polity_society::message::Body;
use polity_sql::{Access, Connection, Options, Sql};
use polity_store::maintenance::{ARTIFACTS, DATABASE, Rows, check};
use polity_store::{Durability, Store, artifacts, messages, tasks};
use sqlx::migrate::Migrator;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use std::path::Path;

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

const BYTES: &[u8] = b"the picture";

/// What a society of the first schema has written: a task with a worker, a question and its answer, a turn with its
/// records, an artifact, a model call and an event.
const ROWS: &str = r#"
    INSERT INTO tasks (id, state, nudged, created_at) VALUES ('t-1', 'idle', 1, 1000);
    INSERT INTO roles (id, task, creator, name, prompt, service, required_capabilities, tool_groups, created_at)
        VALUES ('r-1', 't-1', 'root', 'reader', 'Read.', 'one', '["text"]', '["messages"]', 1000);
    INSERT INTO agents (id, task, parent, role, name, depth, created_at)
        VALUES ('reader-1', 't-1', 'root', 'r-1', 'Ada', 1, 1000);
    INSERT INTO contacts (owner, agent, source, since) VALUES ('root', 'reader-1', 'child', 1000);
    INSERT INTO turns (id, agent, task, began_by, state, created_at) VALUES (7, 'root', 't-1', 'm000000001', 'done', 1000);
    INSERT INTO messages (seq, id, task, sender, sender_role, receiver, type, body, attachments, expects, finality,
            state, answered_by, turn, created_at)
        VALUES (1, 'm000000001', 't-1', 'user', 'user', 'root', 'general', '{"text":"who is 在 it?"}', '["a1"]', 'answer',
            'final', 'done', 'm000000002', 7, 1000);
    INSERT INTO messages (seq, id, task, sender, sender_role, receiver, type, body, attachments, in_reply_to, expects,
            finality, state, sent_in, created_at)
        VALUES (2, 'm000000002', 't-1', 'root', 'root', 'user', 'general', '{"text":"Ada"}', '[]', 'REPLY', 'nothing',
            'final', 'done', 7, 1001);
    INSERT INTO records (agent, task, turn, message, body, created_at)
        VALUES ('root', 't-1', 7, 'm000000001', '{"record":"heard","message":"m000000001"}', 1000);
    INSERT INTO artifacts (id, task, owner, blob, kind, mime_type, filename, size, meta, created_at)
        VALUES ('a1', 't-1', 'user', 'BLOB', 'text', 'text/plain', 'picture.txt', 11, '{}', 1000);
    INSERT INTO artifact_grants (agent, artifact) VALUES ('user', 'a1'), ('root', 'a1');
    INSERT INTO model_calls (task, agent, turn, service, model, revision, attempts, prompt_tokens, completion_tokens,
            usage_source, created_at)
        VALUES ('t-1', 'root', 7, 'one', 'one-model', 1, 1, 10, 5, 'reported', 1000);
    INSERT INTO events (task, kind, body, created_at) VALUES ('t-1', 'task_started', '{"event":"task_started","task":"t-1"}', 1000);
"#;

/// Creates a data directory with the schema of the first `count` migrations.
async fn of_schema(data: &Path, count: usize) {
    let blobs = BlobStore::open(data.join(ARTIFACTS)).await.unwrap();
    let blob = blobs.put(BYTES.to_vec().into()).await.unwrap();
    assert_eq!(blob.hash, BlobHash::of(BYTES));
    let options = SqliteConnectOptions::new().filename(data.join(DATABASE)).create_if_missing(true);
    let mut connection = options.connect().await.unwrap();
    let first = MIGRATIONS.iter().take(count).cloned().collect::<Vec<_>>();
    Migrator::with_migrations(first).run(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let mut connection = Options::new(&data.join(DATABASE), Access::Write).connect().unwrap();
    // Migration 8 has turned this column into a list.
    let reply = if count < 8 { "m000000001" } else { r#"["m000000001"]"# };
    let rows = ROWS.replace("BLOB", blob.hash.as_str()).replace("REPLY", reply);
    polity_sql::raw_sql(Sql::built(rows)).execute(&mut connection).await.unwrap();
    connection.close().unwrap();
}

async fn texts(connection: &mut Connection, query: &'static str) -> Vec<String> {
    polity_sql::query_scalar(query).fetch_all(connection).await.unwrap()
}

#[tokio::test]
async fn a_database_of_every_earlier_schema_is_brought_up_to_date_and_loses_nothing() {
    let all = MIGRATIONS.iter().count();
    assert!(all > 9, "the migrations were not found");
    for count in 1..=all {
        let data = tempfile::tempdir().unwrap();
        of_schema(data.path(), count).await;
        let (store, _signals) = Store::open(&data.path().join(DATABASE), Durability::Full).await.unwrap();
        let mut reader = store.reader().await.unwrap();

        let task = TaskId::new("t-1");
        assert!(tasks::standing(&mut reader, &task).await.unwrap().is_some(), "schema {count}");
        assert_eq!(tasks::latest(&mut reader).await.unwrap(), Some(task));
        for (id, text) in [("m000000001", "who is 在 it?"), ("m000000002", "Ada")] {
            let message = messages::get(&mut reader, &MessageId::new(id)).await.unwrap().unwrap();
            let Body::Payload(payload) = message.body else { panic!("{id} of schema {count} is no payload") };
            assert_eq!(payload.fields["text"], text);
        }
        let stored = artifacts::get(&mut reader, &ArtifactId::new("a1")).await.unwrap().unwrap();
        assert_eq!((stored.artifact.filename.as_deref(), stored.damage), (Some("picture.txt"), None));
        let contacts = "SELECT agent FROM contacts WHERE owner = 'root' ORDER BY agent";
        assert_eq!(texts(&mut reader, contacts).await, ["reader-1", "user"]);
        let answered = "SELECT answered_by FROM messages WHERE id = 'm000000001'";
        assert_eq!(texts(&mut reader, answered).await, ["m000000002"]);
        let spent = "SELECT agent || ' ' || (prompt_tokens + completion_tokens) FROM model_calls";
        assert_eq!(texts(&mut reader, spent).await, ["root 15"]);
        // The next message does not get the number of an old message.
        let newest = "SELECT CAST(seq AS TEXT) FROM sqlite_sequence WHERE name = 'messages'";
        assert_eq!(texts(&mut reader, newest).await, ["2"]);
        drop(reader);
        store.close().await;

        let checked = check(data.path()).await.unwrap();
        assert_eq!(checked.damage, [], "schema {count}");
        assert!(matches!(checked.rows, Rows::Read(rows) if rows >= 14), "{:?}", checked.rows);
        let blobs = BlobStore::as_it_is(data.path().join(ARTIFACTS));
        assert_eq!(blobs.read(&stored.blob).await.unwrap(), BYTES);
    }
}
