use super::*;
use crate::store::{Conversation, Durability, Store};
use crate::testing::World;
use polity_society::id::{AgentId, ArtifactId, TaskId};
use serde_json::json;
use std::collections::BTreeSet;

const DAY: i64 = 24 * 60 * 60 * 1000;

impl World {
    /// Runs statements as if nobody had looked at what they do.
    pub(in crate::store) async fn execute(&self, statements: &'static str) {
        self.write(move |tx| {
            Box::pin(async move {
                sqlx::raw_sql(statements).execute(&mut tx.connection).await?;
                Ok(())
            })
        })
        .await;
    }

    async fn problems(&self) -> Vec<String> {
        let mut connection = open_to_read(&self.directory.path().join("polity.db")).await.unwrap();
        check::begin(&mut connection).await.unwrap();
        let mut problems = check::structure(&mut connection).await;
        check::rows(&mut connection, &mut problems).await;
        problems
    }
}

/// A world in which somebody was hired, something was said and something was stored.
async fn busy() -> World {
    let world = World::new().await;
    let reader = world.hire("root", "reader", json!({})).await;
    let said = world.say("root", &reader, json!("读")).await;
    assert_eq!(crate::testing::code(&said), "ok", "{said}");
    world.begin_turn(&reader).await;
    let stored = world.call(&reader, "put_artifact", json!({"type": "note", "content": "报告"})).await;
    assert_eq!(crate::testing::code(&stored), "ok", "{stored}");
    world
}

#[tokio::test]
async fn every_table_is_looked_at() {
    let world = World::new().await;
    let mut looked_at = check::table_names();
    looked_at.sort_unstable();
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
        AND name <> '_sqlx_migrations' ORDER BY name";
    assert_eq!(looked_at, world.query(tables).await);
}

#[tokio::test]
async fn what_a_society_writes_is_good() {
    let world = busy().await;
    let mut connection = open_to_read(&world.directory.path().join("polity.db")).await.unwrap();
    assert_eq!(check::schema(&mut connection).await.unwrap(), check::Schema::Known);
    assert_eq!(check::structure(&mut connection).await, [""; 0]);
    let mut problems = Vec::new();
    let count = check::rows(&mut connection, &mut problems).await;
    assert_eq!((problems, count > 10), (Vec::new(), true), "{count} rows");
}

#[tokio::test]
async fn every_damaged_row_is_named() {
    let check = async |damage: &'static str, expect: &str| {
        let world = busy().await;
        world.execute(damage).await;
        let problems = world.problems().await;
        assert_eq!(problems.len(), 1, "{damage}: {problems:?}");
        assert!(problems[0].starts_with(expect), "{damage}: {problems:?}");
    };
    check("UPDATE messages SET body = '{'", "damaged row in table messages: m000000001: ").await;
    check("UPDATE messages SET type = 'telegram'", "damaged row in table messages: m000000001: unknown type")
        .await;
    check("UPDATE messages SET attachments = '[3]'", "damaged row in table messages: m000000001: ").await;
    check("UPDATE records SET body = '{\"record\": \"sung\"}'", "damaged row in table records: 1: ").await;
    check("UPDATE events SET body = '{}' WHERE seq = 1", "damaged row in table events: 1: ").await;
    check("UPDATE roles SET tool_groups = 'all'", "damaged row in table roles: role-").await;
    check("UPDATE agents SET depth = -1 WHERE id = 'root'", "damaged row in table agents: root: ").await;
    check("UPDATE artifacts SET kind = 'sculpture'", "damaged row in table artifacts: ").await;
    check(
        "UPDATE tasks SET service = CAST(x'ff' AS TEXT)",
        "damaged row in table tasks: t-1: service is no text",
    )
    .await;
}

#[tokio::test]
async fn a_row_that_names_one_that_is_not_there_is_told() {
    let world = busy().await;
    let file = world.directory.path().join("polity.db");
    world.store.close().await;
    let options = SqliteConnectOptions::new().filename(&file).foreign_keys(false);
    let mut connection = options.connect().await.unwrap();
    sqlx::query("UPDATE roles SET task = 't-9'").execute(&mut connection).await.unwrap();
    let problems = check::structure(&mut connection).await;
    assert_eq!(problems, ["row 1 of table roles names a row of table tasks that is not there"]);
}

#[tokio::test]
async fn an_older_schema_is_known_as_one() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("polity.db");
    let mut connection =
        SqliteConnectOptions::new().filename(&file).create_if_missing(true).connect().await.unwrap();
    assert_eq!(check::schema(&mut connection).await.unwrap(), check::Schema::Older);
    connection.close().await.unwrap();
    Store::open(&file, Durability::Full).await.unwrap().0.close().await;
    let mut connection = open_to_read(&file).await.unwrap();
    assert_eq!(check::schema(&mut connection).await.unwrap(), check::Schema::Known);
}

/// Overwrites the head of a page in the middle of a database.
fn damage(file: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let page = bytes.len() / 4096 / 2 * 4096;
    bytes[page..page + 16].fill(0xff);
    std::fs::write(file, bytes).unwrap();
}

#[tokio::test]
async fn a_damaged_database_is_refused_at_start_and_a_look_ends_in_time() {
    let world = World::new().await;
    let file = world.directory.path().join("polity.db");
    world
        .execute(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000)
            INSERT INTO events (kind, body, created_at) SELECT 'x', printf('%200d', n), 0 FROM n",
        )
        .await;
    world.store.close().await;
    damage(&file);
    let refused = Store::open(&file, Durability::Full).await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("is damaged: ") && refused.contains("`polity db check`"), "{refused}");
    assert_eq!(refused.lines().count(), 1, "{refused}");

    let mut connection = open_to_read(&file).await.unwrap();
    quick_check(&mut connection, &file).await.unwrap_err();
    // No time at all: it is cut off long before the damaged page.
    quick_check_until(&mut connection, &file, Instant::now()).await.unwrap();
    // Without a trace.
    quick_check(&mut connection, &file).await.unwrap_err();
}

/// A world whose events are of these ages in days and of these tasks; `t-1` is open, `t-2` idle, and in `t-3` the
/// person has not been shown a message.
async fn with_events(events: &[(i64, Option<&'static str>)]) -> World {
    let world = World::new().await;
    world.add_task("t-2").await;
    world.add_task("t-3").await;
    world.execute("DELETE FROM events; UPDATE tasks SET state = 'idle' WHERE id <> 't-1'").await;
    world
        .execute(
            "INSERT INTO messages (id, task, sender, sender_role, receiver, type, body, attachments, expects, finality,
            state, created_at) VALUES ('m000000001', 't-3', 'root', 'root', 'user', 'general', '{}', '[]', 'nothing',
            'final', 'queued', 0)",
        )
        .await;
    for &(age, task) in events {
        world
            .write(move |tx| {
                Box::pin(async move {
                    let insert =
                        "INSERT INTO events (task, kind, body, created_at) VALUES (?1, 'x', '{}', ?2)";
                    let at = tx.now - age * DAY;
                    sqlx::query(insert).bind(task).bind(at).execute(&mut tx.connection).await?;
                    Ok(())
                })
            })
            .await;
    }
    world
}

#[tokio::test]
async fn events_that_have_had_their_time_go_and_those_that_are_needed_stay() {
    let check = async |days: Option<u32>,
                       most: Option<u32>,
                       events: &[(i64, Option<&'static str>)],
                       left: &[&str]| {
        let world = with_events(events).await;
        let retention = Retention { events_days: days, max_events: most, max_database_bytes: None };
        let now = crate::clock::now();
        let counted = count_expired(&mut world.store.reader().await.unwrap(), &retention, now).await.unwrap();
        let removed =
            crate::maintenance::remove_expired(&world.store, retention, crate::clock::now()).await.unwrap();
        let found = world.query("SELECT CAST(seq AS TEXT) FROM events ORDER BY seq").await;
        assert_eq!(found, left, "{days:?} {most:?} {events:?}");
        assert_eq!((counted, removed), (removed, (events.len() - left.len()) as u64));
    };
    let idle = Some("t-2");
    let ages = [(40, idle), (31, None), (29, idle), (1, None), (0, idle)];
    check(None, None, &ages, &["1", "2", "3", "4", "5"]).await;
    check(Some(30), None, &ages, &["3", "4", "5"]).await;
    check(Some(100), None, &ages, &["1", "2", "3", "4", "5"]).await;
    check(None, Some(2), &ages, &["4", "5"]).await;
    check(None, Some(9), &ages, &["1", "2", "3", "4", "5"]).await;
    check(Some(30), Some(2), &ages, &["4", "5"]).await;
    check(Some(30), Some(4), &ages, &["3", "4", "5"]).await;
    // The newest stays, however old it is.
    check(Some(1), Some(1), &[(50, idle), (40, idle)], &["2"]).await;
    check(Some(1), Some(1), &[], &[]).await;
    // Somebody may still want to see them.
    check(Some(1), Some(1), &[(50, Some("t-1")), (50, Some("t-3")), (50, idle), (0, idle)], &["1", "2", "4"])
        .await;
}

#[tokio::test]
async fn more_events_than_one_transaction_removes_go_all_the_same() {
    let world = World::new().await;
    world
        .execute(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 12000)
            INSERT INTO events (kind, body, created_at) SELECT 'x', '{}', 0 FROM n",
        )
        .await;
    let retention = Retention { events_days: None, max_events: Some(1), max_database_bytes: None };
    let first = world.write(move |tx| Box::pin(async move { maintain(tx, &retention, tx.now).await })).await;
    assert_eq!(first, u64::from(BATCH));
    let others =
        crate::maintenance::remove_expired(&world.store, retention, crate::clock::now()).await.unwrap();
    assert_eq!(world.query("SELECT CAST(count(*) AS TEXT) FROM events").await, ["1"]);
    assert!(first + others >= 11_999);
}

/// What is found in a world where `old-<n>` is an artifact of `t-2`, which has been idle for long, after statements.
async fn unneeded(statements: &'static str) -> Vec<String> {
    let world = World::new().await;
    world.add_task("t-2").await;
    world
        .execute(
            "UPDATE tasks SET state = 'idle', created_at = 1000 WHERE id = 't-2';
            INSERT INTO agents (id, task, parent, depth, created_at)
                VALUES ('old', 't-2', 'root', 1, 1000), ('new', 't-1', 'root', 1, 1000);
            INSERT INTO turns (agent, task, began_by, state, created_at) VALUES ('old', 't-2', 'm', 'done', 1000);
            INSERT INTO records (agent, task, turn, body, created_at)
                VALUES ('old', 't-2', 1, '{\"text\": \"artifact:old-1\"}', 1000);
            INSERT INTO artifacts (id, task, owner, blob, kind, mime_type, size, meta, created_at) VALUES
                ('old-1', 't-2', 'old', 'b1', 'text', 'text/plain', 1, '{}', 1000),
                ('old-2', 't-2', 'user', 'b2', 'text', 'text/plain', 1, '{}', 1000),
                ('new-1', 't-1', 'new', 'b1', 'text', 'text/plain', 1, '{}', 1000);
            INSERT INTO artifact_grants (agent, artifact) VALUES
                ('old', 'old-1'), ('root', 'old-1'), ('root', 'old-2'), ('user', 'old-2'), ('new', 'new-1');
            INSERT INTO messages (id, task, sender, sender_role, receiver, type, body, attachments, expects, finality,
                state, created_at) VALUES
                ('m000000001', 't-2', 'user', 'user', 'root', 'general', '{}', '[\"old-2\"]', 'answer', 'final',
                'done', 1000),
                ('m000000002', 't-1', 'user', 'user', 'root', 'general', '{}', '[\"new-1\"]', 'answer', 'final',
                'done', 1000);",
        )
        .await;
    world.execute(statements).await;
    let found = unneeded::find(&mut world.store.reader().await.unwrap(), 2000).await.unwrap();
    found.iter().map(|id| id.as_str().to_owned()).collect()
}

#[tokio::test]
async fn artifacts_of_tasks_that_are_long_over_are_unneeded_unless_something_else_names_them() {
    let check = async |statements: &'static str, expect: &[&str]| {
        assert_eq!(unneeded(statements).await, expect, "{statements}");
    };
    let both = &["old-1", "old-2"];
    check("", both).await;
    // The task is not over, or not for long.
    check("UPDATE tasks SET state = 'open'", &[]).await;
    check("UPDATE tasks SET created_at = 2000", &[]).await;
    check("UPDATE turns SET created_at = 2000", &[]).await;
    check("UPDATE turns SET state = 'open'", &[]).await;
    check("UPDATE records SET created_at = 2000", &[]).await;
    check("UPDATE artifacts SET created_at = 2000 WHERE id = 'old-1'", &[]).await;
    check("UPDATE messages SET created_at = 2000 WHERE task = 't-2'", &[]).await;
    check("UPDATE messages SET state = 'queued' WHERE task = 't-2'", &[]).await;
    check("UPDATE messages SET receiver = 'user', sender = 'root' WHERE task = 't-2'", &[]).await;
    check("INSERT INTO holds (agent, task, reason, created_at) VALUES ('old', 't-2', '', 1000)", &[]).await;
    // Something else names one of them.
    check("UPDATE messages SET body = '{\"text\": \"see artifact:old-1\"}' WHERE task = 't-1'", &["old-2"])
        .await;
    check("UPDATE messages SET introduction = '{\"reason\": \"old-1\"}' WHERE task = 't-1'", &["old-2"])
        .await;
    check("UPDATE messages SET attachments = '[\"old-2\"]' WHERE task = 't-1'", &["old-1"]).await;
    check(
        "INSERT INTO turns (agent, task, began_by, state, created_at) VALUES ('new', 't-1', 'm', 'done', 1000);
        INSERT INTO records (agent, task, turn, body, created_at) VALUES ('new', 't-1', 2, '{\"a\": \"old-2\"}', 1000)",
        &["old-1"],
    )
    .await;
    check("UPDATE agents SET brief = '{\"inputs\": \"artifact:old-1\"}' WHERE id = 'new'", &["old-2"]).await;
    check(
        "INSERT INTO roles (id, task, creator, name, prompt, service, required_capabilities, tool_groups, created_at)
        VALUES ('r', 't-1', 'root', 'r', 'Use artifact:old-1', 's', '[]', '[]', 1000)",
        &["old-2"],
    )
    .await;
    check("UPDATE artifacts SET label = 'after old-1' WHERE id = 'new-1'", &["old-2"]).await;
    check("INSERT INTO artifact_grants (agent, artifact) VALUES ('new', 'old-1')", &["old-2"]).await;
}

#[tokio::test]
async fn what_is_removed_is_gone_with_its_grants_and_nothing_else() {
    let world = busy().await;
    let stored: BTreeSet<ArtifactId> =
        world.query("SELECT id FROM artifacts").await.into_iter().map(ArtifactId::new).collect();
    assert_eq!(stored.len(), 1);
    let before = world.dump().await;
    world.write(move |tx| Box::pin(async move { unneeded::remove(tx, &stored).await })).await;
    let after = world.dump().await;
    let changed: Vec<&str> =
        before.keys().filter(|table| before[*table] != after[*table]).map(String::as_str).collect();
    assert_eq!(changed, ["artifact_grants", "artifacts", "outputs"]);
    assert_eq!(world.problems().await, [""; 0]);
}

#[tokio::test]
async fn a_copy_holds_what_was_committed_and_belongs_to_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = busy().await;
    let from = world.directory.path().join("polity.db");
    let to = world.directory.path().join("copy.db");
    let mut connection = open_to_read(&from).await.unwrap();
    copy(&mut connection, &from, &to).await.unwrap();
    assert_eq!(std::fs::metadata(&to).unwrap().permissions().mode() & 0o077, 0);
    let (store, _signals) = Store::open(&to, Durability::Full).await.unwrap();
    let count = "SELECT (SELECT count(*) FROM messages) || ' ' || (SELECT count(*) FROM events)";
    let copied: String =
        sqlx::query_scalar(count).fetch_one(&mut *store.reader().await.unwrap()).await.unwrap();
    assert_eq!(world.query(count).await, [copied]);
    // A second copy does not replace the first.
    assert!(copy(&mut connection, &from, &to).await.is_err());
}

/// A world with four tasks of a conversation each, of which `t-1` is open and the newest is `t-4`.
async fn with_conversations() -> World {
    let world = World::new().await;
    world.say("user", "root", json!("t-1")).await;
    for task in ["t-2", "t-3", "t-4"] {
        world.add_task(task).await;
        let in_task = |agent: &str| Conversation { agent: AgentId::new(agent), task: TaskId::new(task) };
        let prompt = json!({"to": "root", "payload": "x".repeat(100_000)});
        world.call_in(in_task("user"), "send_message", prompt).await;
        let file = json!({"type": "note", "content": format!("a note of {task}")});
        let stored = world.call_in(in_task("root"), "put_artifact", file).await;
        if task == "t-2" {
            // Named by the task that is open, so it is needed.
            world
                .say("user", "root", json!({"text": format!("see {}", stored["ref"].as_str().unwrap())}))
                .await;
        }
    }
    world.execute("UPDATE tasks SET state = 'idle' WHERE id <> 't-1'").await;
    world.execute("UPDATE messages SET state = 'done' WHERE task <> 't-1'").await;
    world
}

#[tokio::test]
async fn what_was_said_in_the_oldest_tasks_that_are_over_goes_where_the_database_is_too_large() {
    let world = with_conversations().await;
    let all = forget::used(&mut world.store.reader().await.unwrap()).await.unwrap();
    let within = async |most| crate::maintenance::keep_within(&world.store, most).await.unwrap();
    assert_eq!(within(all).await, 0);
    assert_eq!(within(all - 50_000).await, 1);
    let talked = "SELECT DISTINCT task FROM messages ORDER BY task";
    assert_eq!(world.query(talked).await, ["t-1", "t-3", "t-4"]);
    // Neither what is open nor the newest ever goes, however small the bound is.
    assert_eq!(within(1).await, 1);
    assert_eq!(within(1).await, 0);
    assert_eq!(world.query(talked).await, ["t-1", "t-4"]);
    // Numbers are never given twice, not even where the newest messages went.
    world.execute("DELETE FROM messages WHERE task = 't-4'").await;
    world.say("user", "root", json!("one more")).await;
    assert_eq!(world.query("SELECT id FROM messages ORDER BY seq DESC LIMIT 1").await, ["m000000006"]);
    let told = "SELECT task FROM events WHERE kind = 'task_forgotten' ORDER BY seq";
    assert_eq!(world.query(told).await, ["t-2", "t-3"]);
    assert_eq!(world.query("SELECT task FROM artifacts ORDER BY task").await, ["t-2", "t-4"]);
    assert!(forget::used(&mut world.store.reader().await.unwrap()).await.unwrap() < all - 150_000);
}
