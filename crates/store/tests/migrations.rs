//! Tests that opening a database with any earlier schema migrates the schema and keeps all rows.
//!
//! The directory `kept` has one database of each schema, written down as SQL statements. A kept database has the
//! tables, the rows and the recorded checksums of its time, and never changes. If somebody changes a migration that was
//! applied to a kept database, polity refuses this database. In the same way, polity would refuse all old databases of
//! people.
//!
//! A script made the databases of the schemas 1 to 13 with Python's `sqlite3` and the SQLite of this workspace. Like
//! sqlx, it ran each migration in a transaction, and recorded the SHA-384 of the migration's text. After each
//! migration, the script wrote rows into the new tables and columns, as polity writes them. Then it wrote the database
//! down as [`dump`] does. So each database also has the rows of all earlier databases.
//!
//! After you have added a migration, make the database of the new schema with this command:
//!
//! ```text
//! cargo test --package polity-store --test migrations -- --ignored
//! ```
//!
//! Then insert rows for the new tables and columns into the new file by hand, and add queries for them to [`ROWS`].

#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

use polity_artifacts::{BlobHash, BlobStore};
use polity_society::id::{ArtifactId, MessageId, TaskId};
use polity_society::message::Body;
use polity_sql::{Access, Connection, Options, Sql};
use polity_store::maintenance::{ARTIFACTS, DATABASE, Rows, check};
use polity_store::view::search;
use polity_store::{Durability, Store, artifacts, messages, tasks};
use polity_view::SearchFilter;
use sqlx::migrate::Migrator;
use std::path::{Path, PathBuf};

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

const BYTES: &[u8] = b"the picture";

/// Queries for the rows of the kept databases. The first part of each item is the number of a schema: the databases of
/// this schema and of all later ones have the rows. The second part is the query, and the third is what the query finds
/// after the migration to the current schema.
const ROWS: &[(usize, &str, &[&str])] = &[
    (1, "SELECT agent FROM contacts WHERE owner = 'root' ORDER BY agent", &["reader-1", "user"]),
    (
        1,
        "SELECT name || ': ' || (brief ->> 'objective') FROM agents WHERE id = 'reader-1'",
        &["Ada: Find the heron"],
    ),
    (1, "SELECT answered_by FROM messages WHERE id = 'm000000001'", &["m000000002"]),
    (1, "SELECT in_reply_to FROM messages WHERE id = 'm000000002'", &[r#"["m000000001"]"#]),
    // The next message does not get the number of an old message, even if the old message was removed.
    (1, "SELECT CAST(seq AS TEXT) FROM sqlite_sequence WHERE name = 'messages'", &["9"]),
    (1, "SELECT body ->> 'record' FROM records ORDER BY seq", &["heard", "replied"]),
    (1, "SELECT agent || ' ' || (prompt_tokens + completion_tokens) FROM model_calls", &["root 15"]),
    (2, "SELECT agent || ': ' || reason FROM holds", &["reader-1: the server is down"]),
    (3, "SELECT CAST(cost AS TEXT) FROM model_calls", &["0.25"]),
    (3, "SELECT id || ' ' || worked_ms FROM tasks ORDER BY id", &["t-0 0", "t-1 1500"]),
    (3, "SELECT id FROM tasks WHERE forgotten_at IS NOT NULL", &["t-0"]),
    (3, "SELECT id FROM agents WHERE paused_at IS NOT NULL", &["reader-1"]),
    (3, "SELECT agent || ' ' || turn FROM releases", &["root 7"]),
    (5, "SELECT key || ' ' || message FROM posts", &["key-1 m000000001"]),
    (6, "SELECT key || ' ' || state || ' ' || answer FROM exchanges", &["exchange-1 answered m000000002"]),
    (8, "SELECT on_behalf_of FROM messages WHERE id = 'm000000003' AND reminded = 1", &["m000000001"]),
    (8, "SELECT about FROM messages WHERE id = 'm000000004'", &["m000000003"]),
    (8, "SELECT works_on FROM turns WHERE id = 8", &["m000000003"]),
    (8, "SELECT request || ': ' || text FROM notes", &["m000000003: It is a heron."]),
    (8, "SELECT agent || ' ' || artifact FROM outputs", &["reader-1 a1"]),
    (9, "SELECT workspace ->> 'directory' FROM tasks WHERE id = 't-1'", &["/home/ada/birds"]),
    (9, "SELECT id FROM agents WHERE own_worktree = 1", &["reader-1"]),
    (10, "SELECT agent || ' ' || state FROM approvals ORDER BY seq", &["reader-1 open", "root denied"]),
    (
        10,
        "SELECT coalesce(task, 'always') || ' ' || tool FROM permissions ORDER BY seq",
        &["t-1 run_command", "always fetch_url"],
    ),
    (10, "SELECT id || ' ' || state FROM commands", &["c-1 ended"]),
    (
        10,
        "SELECT holder || ' ' || source FROM seen ORDER BY holder",
        &["agent:reader-1 web", "artifact:a1 web"],
    ),
    (11, "SELECT outcome || ' ' || texts FROM sent", &["answered [1,2]"]),
    (11, "SELECT text FROM sent_texts ORDER BY seq", &[r#"{"model":"one-model","#, r#""messages":[]}"#]),
    (12, "SELECT words FROM artifacts", &["the picture"]),
    (12, "SELECT answered_by FROM messages WHERE answered_in = 8", &["m000000005"]),
    (
        1,
        "SELECT owner || ' ' || agent || ' ' || task FROM contacts ORDER BY owner, agent",
        &["reader-1 root ", "root reader-1 t-1", "root user ", "user root "],
    ),
    (14, "SELECT task || ' ' || artifact FROM inherited", &["t-1 a1"]),
    (
        3,
        "SELECT concat_ws(' ', service, model, share, calls, prompt_tokens, completion_tokens, priced, cost) FROM spent",
        &["one one-model root 1 10 5 1 0.25"],
    ),
    (1, "SELECT service || ' ' || agents FROM served", &["one 1"]),
    (
        3,
        "SELECT concat_ws(' ', task, calls, prompt_tokens, completion_tokens, priced, cost) FROM spent_in_tasks",
        &["t-1 1 10 5 1 0.25"],
    ),
    (
        3,
        "SELECT concat_ws(' ', agent, calls, prompt_tokens, completion_tokens, priced, cost) FROM spent_by_agents",
        &["root 1 10 5 1 0.25"],
    ),
];

/// The statements that create the tables. A virtual table creates its shadow tables itself.
const TABLES: &str = "SELECT sql || ';' FROM sqlite_schema
    WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'
        AND name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow') ORDER BY rowid";
/// The tables with rows of their own. The last of these tables is `sqlite_sequence`, which has the numbers of the rows
/// in the other tables.
const FILLED: &str = "SELECT name FROM sqlite_schema
    WHERE type = 'table' AND name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'virtual')
    ORDER BY name = 'sqlite_sequence', rowid";
/// The tables into which SQLite itself writes rows.
const FILLED_BY_SQLITE: &str =
    "SELECT name FROM pragma_table_list WHERE type = 'shadow' OR name = 'sqlite_sequence'";
/// The statements that create indexes and triggers. They come after the statements that insert rows, so that no trigger
/// acts on these rows.
const REST: &str = "SELECT sql || ';' FROM sqlite_schema
    WHERE type IN ('index', 'trigger') AND sql IS NOT NULL ORDER BY rowid";

/// Returns the file of the kept database with this schema.
fn kept(schema: usize) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/kept/{schema:04}.sql"))
}

/// Returns the newest schema.
fn newest() -> usize {
    MIGRATIONS.iter().count()
}

/// Creates a data directory with a database that was written down as SQL statements.
async fn create(data: &Path, statements: String) -> Connection {
    let blobs = BlobStore::open(data.join(ARTIFACTS)).await.unwrap();
    let blob = blobs.put(BYTES.to_vec().into()).await.unwrap();
    assert_eq!(blob.hash, BlobHash::of(BYTES));
    let mut connection = Options::new(&data.join(DATABASE), Access::Create).connect().unwrap();
    polity_sql::raw_sql(Sql::built(statements)).execute(&mut connection).await.unwrap();
    connection
}

/// Creates a data directory with the kept database of a schema.
async fn of_schema(data: &Path, schema: usize) -> Connection {
    create(data, std::fs::read_to_string(kept(schema)).unwrap()).await
}

async fn texts(connection: &mut Connection, query: impl Into<Sql>) -> Vec<String> {
    polity_sql::query_scalar(query).fetch_all(connection).await.unwrap()
}

/// Writes a database down as SQL statements.
async fn dump(connection: &mut Connection) -> String {
    // A table may come before a table that it refers to, so turn off the check of references.
    let mut lines = vec!["PRAGMA foreign_keys = OFF;".to_owned(), "BEGIN;".to_owned()];
    lines.extend(texts(connection, TABLES).await);
    let filled_by_sqlite = texts(connection, FILLED_BY_SQLITE).await;
    for table in texts(connection, FILLED).await {
        if filled_by_sqlite.contains(&table) {
            lines.push(format!("DELETE FROM {table};"));
        }
        let columns = Sql::built(format!("SELECT name FROM pragma_table_info('{table}')"));
        let columns = texts(connection, columns).await;
        let values: Vec<String> = columns.iter().map(|column| format!("quote({column})")).collect();
        let rows = format!(
            "SELECT 'INSERT INTO {table} ({}) VALUES (' || {} || ');' FROM {table}",
            columns.join(", "),
            values.join(" || ', ' || ")
        );
        lines.extend(texts(connection, Sql::built(rows)).await);
    }
    lines.extend(texts(connection, REST).await);
    lines.push("COMMIT;\n".to_owned());
    lines.join("\n")
}

#[tokio::test]
async fn a_database_of_every_earlier_schema_is_brought_up_to_date_and_loses_nothing() {
    assert!(newest() > 9, "the migrations were not found");
    let schema_of = "SELECT name || ': ' || coalesce(sql, '') FROM sqlite_schema ORDER BY name";
    let empty = tempfile::tempdir().unwrap();
    let (new, _signals) = Store::open(&empty.path().join(DATABASE), Durability::Full).await.unwrap();
    let schema_of_new = texts(&mut new.reader().await.unwrap(), schema_of).await;
    new.close().await;

    for schema in 1..=newest() {
        let data = tempfile::tempdir().unwrap();
        of_schema(data.path(), schema).await.close().unwrap();
        let opened = Store::open(&data.path().join(DATABASE), Durability::Full).await;
        let (store, _signals) = opened.unwrap_or_else(|error| panic!("schema {schema}: {error:?}"));
        let mut reader = store.reader().await.unwrap();
        assert_eq!(texts(&mut reader, schema_of).await, schema_of_new, "schema {schema}");

        let task = TaskId::new("t-1");
        assert!(tasks::standing(&mut reader, &task).await.unwrap().is_some(), "schema {schema}");
        assert_eq!(tasks::latest(&mut reader).await.unwrap(), Some(task));
        for (id, text) in [("m000000001", "who is 在 it?"), ("m000000002", "Ada")] {
            let message = messages::get(&mut reader, &MessageId::new(id)).await.unwrap().unwrap();
            let Body::Payload(payload) = message.body else {
                panic!("{id} of schema {schema} is no payload")
            };
            assert_eq!(payload.fields["text"], text);
        }
        let stored = artifacts::get(&mut reader, &ArtifactId::new("a1")).await.unwrap().unwrap();
        assert_eq!((stored.artifact.filename.as_deref(), stored.damage), (Some("picture.txt"), None));
        for (since, query, found) in ROWS {
            if *since <= schema {
                assert_eq!(texts(&mut reader, *query).await, *found, "schema {schema}: {query}");
            }
        }
        let words = SearchFilter { q: "find the heron".to_owned(), ..SearchFilter::default() };
        let (hits, _) = search::list(&mut reader, &words).await.unwrap();
        assert_eq!(hits.iter().map(|hit| hit.id.as_str()).collect::<Vec<_>>(), ["reader-1"]);
        drop(reader);
        store.close().await;

        let checked = check(data.path()).await.unwrap();
        assert_eq!(checked.damage, [], "schema {schema}");
        assert!(matches!(checked.rows, Rows::Read(rows) if rows >= 20), "{:?}", checked.rows);
        let blobs = BlobStore::as_it_is(data.path().join(ARTIFACTS));
        assert_eq!(blobs.read(&stored.blob).await.unwrap(), BYTES);
    }
}

/// This test finds a change of the newest migration. The test above would not find it, because opening a database of
/// the newest schema does not compare checksums. Polity would refuse the database only when a further migration exists.
#[tokio::test]
async fn no_migration_has_changed_since_it_was_applied() {
    for schema in 1..=newest() {
        let data = tempfile::tempdir().unwrap();
        let mut connection = of_schema(data.path(), schema).await;
        let recorded = "SELECT version || ' ' || hex(checksum) FROM _sqlx_migrations ORDER BY version";
        let recorded = texts(&mut connection, recorded).await;
        assert_eq!(recorded.len(), schema);
        for (migration, recorded) in MIGRATIONS.iter().zip(recorded) {
            let checksum: String = migration.checksum.iter().map(|byte| format!("{byte:02X}")).collect();
            assert_eq!(
                format!("{} {checksum}", migration.version),
                recorded,
                "the text of this migration has changed: polity would refuse every database to which the old text \
                 was applied (this one has schema {schema}). Undo the change, and add a new migration instead"
            );
        }
    }
}

#[tokio::test]
async fn every_schema_has_a_kept_database_with_a_row_in_every_table() {
    let missing: Vec<PathBuf> = (1..=newest()).map(kept).filter(|file| !file.exists()).collect();
    assert_eq!(missing, Vec::<PathBuf>::new(), "the first lines of {} say how to make them", file!());
    let data = tempfile::tempdir().unwrap();
    let mut connection = of_schema(data.path(), newest()).await;
    for table in texts(&mut connection, FILLED).await {
        let row = Sql::built(format!("SELECT 'a row' FROM {table} LIMIT 1"));
        assert_eq!(texts(&mut connection, row).await, ["a row"], "{table}");
    }
}

#[tokio::test]
async fn a_database_that_is_written_down_has_all_rows_when_it_is_created_again() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let written = dump(&mut of_schema(old.path(), newest()).await).await;
    let mut created = create(new.path(), written.clone()).await;
    for (_, query, found) in ROWS {
        assert_eq!(texts(&mut created, *query).await, *found, "{query}");
    }
    assert_eq!(dump(&mut created).await, written);
}

#[tokio::test]
#[ignore = "writes the database of a new schema into `kept`: run it by hand after adding a migration"]
async fn keep_a_database_of_the_newest_schema() {
    assert!(!kept(newest()).exists(), "the newest schema has a kept database, which never changes");
    let data = tempfile::tempdir().unwrap();
    of_schema(data.path(), newest() - 1).await.close().unwrap();
    let file = data.path().join(DATABASE);
    let (store, _signals) = Store::open(&file, Durability::Full).await.unwrap();
    store.close().await;
    let mut connection = Options::new(&file, Access::Write).connect().unwrap();
    std::fs::write(kept(newest()), dump(&mut connection).await).unwrap();
}
