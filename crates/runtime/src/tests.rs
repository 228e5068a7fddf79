//! Tests of the database after a society has worked in it.

use crate::testing::{World, code};
use polity_decide::history::History;
use polity_society::id::{AgentId, TaskId};
use polity_sql::{Access, Options};
use polity_store::maintenance::{check, keep_within};
use polity_store::record::{Keeps, Record};
use polity_store::{Conversation, records};
use serde_json::json;

impl World {
    /// Runs SQL directly.
    async fn execute(&self, statements: &'static str) {
        self.write(move |tx| {
            Box::pin(async move {
                polity_sql::raw_sql(statements).execute(&mut tx.connection).await?;
                Ok(())
            })
        })
        .await;
    }

    /// Returns the damage that `polity db check` finds in this world.
    async fn damage(&self) -> Vec<String> {
        let checked = check(self.directory.path()).await.unwrap();
        checked.damage.into_iter().map(|damage| damage.what).collect()
    }

    /// Returns how many bytes of the database file are in use.
    async fn used(&self) -> u64 {
        let used = "SELECT CAST((page_count - freelist_count) * page_size AS TEXT)
            FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
        self.query(used).await[0].parse().unwrap()
    }
}

/// Creates a world in which an agent was hired, a message was sent and an artifact was stored.
async fn busy() -> World {
    let world = World::new().await;
    let reader = world.hire("root", "reader", json!({})).await;
    let said = world.say("root", &reader, json!("读")).await;
    assert_eq!(code(&said), "ok", "{said}");
    world.begin_turn(&reader).await;
    let stored = world.call(&reader, "put_artifact", json!({"type": "note", "content": "报告"})).await;
    assert_eq!(code(&stored), "ok", "{stored}");
    world
}

#[tokio::test]
async fn what_a_society_writes_is_good() {
    let checked = check(busy().await.directory.path()).await.unwrap();
    assert_eq!(checked.damage, []);
    assert!(
        matches!(checked.rows, polity_store::maintenance::Rows::Read(count) if count > 10),
        "{checked:?}"
    );
}

#[tokio::test]
async fn every_damaged_row_is_named() {
    let check = async |damage: &'static str, expect: &str| {
        let world = busy().await;
        world.execute(damage).await;
        let problems = world.damage().await;
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
        "damaged row in table tasks: t-1: service is not text",
    )
    .await;
}

#[tokio::test]
async fn a_row_that_names_one_that_is_not_there_is_told() {
    let world = busy().await;
    let file = world.directory.path().join("polity.db");
    world.store.close().await;
    let mut connection = Options::new(&file, Access::Write).connect().unwrap();
    polity_sql::query("PRAGMA foreign_keys = OFF").execute(&mut connection).await.unwrap();
    polity_sql::query("UPDATE roles SET task = 't-9'").execute(&mut connection).await.unwrap();
    drop(connection);
    let problems = world.damage().await;
    assert_eq!(problems, ["row 1 of table roles refers to a row of table tasks that does not exist"]);
}

/// Creates a world with four tasks. Each task has one conversation. `t-1` is open, and `t-4` is the newest task.
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
            // The open task names the artifact, so the artifact is still needed.
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
    let all = world.used().await;
    let within = async |most| keep_within(&world.store, most).await.unwrap();
    assert_eq!(within(all).await, 0);
    assert_eq!(within(all - 50_000).await, 1);
    let talked = "SELECT DISTINCT task FROM messages ORDER BY task";
    assert_eq!(world.query(talked).await, ["t-1", "t-3", "t-4"]);
    // Open tasks and the newest task are never forgotten, even if the size limit of the database is one byte.
    assert_eq!(within(1).await, 1);
    assert_eq!(within(1).await, 0);
    assert_eq!(world.query(talked).await, ["t-1", "t-4"]);
    // The numbers of messages are never reused, even if the newest messages were removed.
    world.execute("DELETE FROM messages WHERE task = 't-4'").await;
    world.say("user", "root", json!("one more")).await;
    assert_eq!(world.query("SELECT id FROM messages ORDER BY seq DESC LIMIT 1").await, ["m000000006"]);
    let told = "SELECT task FROM events WHERE kind = 'task_forgotten' ORDER BY seq";
    assert_eq!(world.query(told).await, ["t-2", "t-3"]);
    assert_eq!(world.query("SELECT task FROM artifacts ORDER BY task").await, ["t-2", "t-4"]);
    assert!(world.used().await < all - 150_000);
}

#[tokio::test]
async fn no_more_open_requests_are_read_in_spite_of_a_summary_than_fill_a_window() {
    let world = World::new().await;
    world.say("user", "root", json!("what?")).await;
    let turn = world.begin_turn("root").await;
    let root = world.of("root");
    world
        .write(move |tx| {
            Box::pin(async move {
                let more = "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)";
                let copies = "INSERT INTO messages (seq, id, task, sender, sender_role, receiver, type, body, attachments,
                    expects, finality, state, turn, created_at) SELECT i, printf('m%09d', i), task, sender, sender_role,
                    receiver, type, body, attachments, expects, finality, state, turn, created_at FROM n, messages WHERE seq = 1";
                let heard = "INSERT INTO records (agent, task, turn, message, body, created_at)
                    SELECT agent, r.task, r.turn, m.id, json_set(r.body, '$.message', m.id), r.created_at
                    FROM messages m, records r WHERE m.seq > 1 AND r.message = 'm000000001' ORDER BY m.seq";
                for statement in [format!("{more} {copies}"), heard.to_owned()] {
                    polity_sql::query(polity_sql::Sql::built(statement)).execute(&mut tx.connection).await?;
                }
                let summary = "they ask the same again and again".to_owned();
                let record = Record::Compacted { summary, keep_recent: 1, keeps: Keeps::Newest };
                records::append(tx, &root, turn, &record).await
            })
        })
        .await;
    let mut reader = world.store.reader().await.unwrap();
    let texts = &world.snapshot.prompts.texts;
    let history = History::from(records::history(&mut reader, &world.of("root"), texts).await.unwrap());
    let told: Vec<&str> = history
        .told()
        .pinned
        .into_iter()
        .filter_map(|record| match record {
            Record::Heard { message } => Some(message.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!((told.len(), told[0], told[999]), (1_000, "m000000001", "m000001000"));
}
