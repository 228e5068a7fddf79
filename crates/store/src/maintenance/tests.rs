use super::database::{BATCH, Checked, copy, count_expired, for_a_look, maintain, open_to_read, quick_check};
use super::*;
use crate::testing::Scratch;
use polity_sql::{Access, Options};

const DAY: i64 = 24 * 60 * 60 * 1000;

/// Creates a database in which `root` has stored one artifact that other agents may open.
async fn with_artifact() -> Scratch {
    let scratch = Scratch::new().await;
    scratch
        .execute(
            "INSERT INTO artifacts (id, task, owner, blob, kind, mime_type, size, meta, created_at)
                VALUES ('a-1', 't-1', 'root', 'b1', 'text', 'text/plain', 1, '{}', 1000);
            INSERT INTO artifact_grants (agent, artifact) VALUES ('root', 'a-1'), ('user', 'a-1')",
        )
        .await;
    scratch
}

#[tokio::test]
async fn every_table_is_looked_at() {
    let scratch = Scratch::new().await;
    let mut looked_at = check::table_names();
    looked_at.sort_unstable();
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
        AND name <> '_sqlx_migrations' AND substr(name, 1, 5) <> 'found' ORDER BY name";
    assert_eq!(looked_at, scratch.query(tables).await);
}

#[tokio::test]
async fn an_older_schema_is_known_as_one() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("polity.db");
    let mut connection = Options::new(&file, Access::Create).connect().unwrap();
    assert_eq!(check::schema(&mut connection).await.unwrap(), check::Schema::Older);
    connection.close().unwrap();
    Store::open(&file, Durability::Full).await.unwrap().0.close().await;
    let mut connection = open_to_read(&file).await.unwrap();
    assert_eq!(check::schema(&mut connection).await.unwrap(), check::Schema::Known);
}

/// Overwrites the head of a page in the middle of a database file.
fn damage(file: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let page = bytes.len() / 4096 / 2 * 4096;
    bytes[page..page + 16].fill(0xff);
    std::fs::write(file, bytes).unwrap();
}

#[tokio::test]
async fn a_damaged_database_is_refused_at_start_and_a_look_ends_in_time() {
    let scratch = Scratch::new().await;
    let file = scratch.directory.path().join("polity.db");
    scratch
        .execute(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 20000)
            INSERT INTO events (kind, body, created_at) SELECT 'x', printf('%200d', n), 0 FROM n",
        )
        .await;
    scratch.store.close().await;
    damage(&file);
    let refused = Store::open(&file, Durability::Full).await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("is damaged: ") && refused.contains("`polity db check`"), "{refused}");
    assert_eq!(refused.lines().count(), 1, "{refused}");

    let mut connection = open_to_read(&file).await.unwrap();
    quick_check(&mut connection, &file, for_a_look()).await.unwrap_err();
    // The check stops long before the damaged page.
    assert_eq!(quick_check(&mut connection, &file, || false).await.unwrap(), Checked::Partly);
    // An interrupted check does not stop later checks on the same connection: this one finds the damage.
    quick_check(&mut connection, &file, for_a_look()).await.unwrap_err();

    // `check_structure` reads the whole database, unless `go_on` returns false.
    check_structure(&file, || true).await.unwrap_err();
    check_structure(&file, || false).await.unwrap();
}

#[tokio::test]
async fn a_look_names_the_file_and_the_way_out_whichever_tree_is_damaged() {
    let scratch = Scratch::new().await;
    let file = scratch.directory.path().join(DATABASE);
    let roots = "SELECT CAST(rootpage AS TEXT) FROM sqlite_schema WHERE rootpage > 0 ORDER BY rootpage";
    let roots: Vec<usize> = scratch.query(roots).await.iter().map(|page| page.parse().unwrap()).collect();
    // Page 2 is the table of the migrations, and page 3 is its index, from which the schema is read.
    assert_eq!(roots[..2], [2, 3]);
    scratch.store.close().await;
    glance(scratch.directory.path()).await.unwrap();
    let whole = std::fs::read(&file).unwrap();
    for root in roots {
        let mut damaged = whole.clone();
        // The first byte of a page is the type of its tree.
        damaged[(root - 1) * 4096] ^= 0xff;
        std::fs::write(&file, damaged).unwrap();
        let told = glance(scratch.directory.path()).await.unwrap_err().to_string();
        for words in ["polity.db is damaged: ", "`polity db check`", "restore a backup"] {
            assert!(told.contains(words), "page {root}: {told}");
        }
    }
}

/// The table of the records is so large that the check at start ends in it. Only a later statement finds the damage: the
/// newest event is read at every start, and the last migration removes the index.
#[tokio::test]
async fn damage_that_the_check_at_start_does_not_reach_is_told_with_the_file_and_the_way_out() {
    let scratch = Scratch::new().await;
    let file = scratch.directory.path().join(DATABASE);
    let records = "INSERT INTO turns (id, agent, task, began_by, state, created_at)
            VALUES (1, 'root', 't-1', 'm', 'done', 1);
        WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100000)
        INSERT INTO records (agent, task, turn, body, created_at) SELECT 'root', 't-1', 1, '{}', 0 FROM n";
    scratch.execute(records).await;
    let root = async |name: &str| -> usize {
        let roots = format!("SELECT CAST(rootpage AS TEXT) FROM sqlite_schema WHERE name = '{name}'");
        scratch.query(&roots).await[0].parse().unwrap()
    };
    let (events, index) = (root("events").await, root("messages_asked").await);
    scratch.store.close().await;
    let flip = |page: usize| {
        let mut bytes = std::fs::read(&file).unwrap();
        // The first byte of a page is the type of its tree.
        bytes[(page - 1) * 4096] ^= 0xff;
        std::fs::write(&file, bytes).unwrap();
    };
    let is_told = |error: Error| {
        let told = error.to_string();
        for words in ["polity.db is damaged: ", "`polity db check`", "restore a backup"] {
            assert!(told.contains(words), "{told}");
        }
    };
    flip(events);
    is_told(Store::open_to_read(&file).await.map(drop).unwrap_err());
    is_told(Store::open(&file, Durability::Full).await.map(drop).unwrap_err());
    // This makes the page of the events whole again.
    flip(events);
    let mut connection = Options::new(&file, Access::Write).connect().unwrap();
    let forget = "DELETE FROM _sqlx_migrations WHERE version >= 17";
    polity_sql::query(forget).execute(&mut connection).await.unwrap();
    connection.close().unwrap();
    flip(index);
    is_told(Store::open(&file, Durability::Full).await.map(drop).unwrap_err());
}

/// Copies a database that may still be open, with its log.
fn copy_with_log(scratch: &Scratch) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["polity.db", "polity.db-wal"] {
        let from = scratch.directory.path().join(name);
        if from.exists() {
            std::fs::copy(from, copy.path().join(name)).unwrap();
        }
    }
    copy
}

/// Copies a database that may still be open, with its log, and opens the copy. Returns whether the store asks the
/// caller to check the copy while using it.
async fn is_to_be_checked(scratch: &Scratch) -> bool {
    let copy = copy_with_log(scratch);
    let (store, signals) = Store::open(&copy.path().join("polity.db"), Durability::Full).await.unwrap();
    store.close().await;
    signals.to_check
}

#[tokio::test]
async fn a_large_database_is_checked_while_it_is_used_if_nobody_closed_it() {
    let scratch = Scratch::new().await;
    assert!(!is_to_be_checked(&scratch).await);
    let events = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100000)
        INSERT INTO events (kind, body, created_at) SELECT 'x', '{}', 0 FROM n";
    scratch.execute(events).await;
    assert!(is_to_be_checked(&scratch).await);
    scratch.store.close().await;
    assert!(!is_to_be_checked(&scratch).await);
}

/// Creates a scratch database with events, each given by its age in days and its task. `t-1` is open, `t-2` is idle,
/// and `t-3` has a message that the person has not been shown.
async fn with_events(events: &[(i64, Option<&'static str>)]) -> Scratch {
    let scratch = Scratch::new().await;
    scratch.add_task("t-2").await;
    scratch.add_task("t-3").await;
    scratch.execute("DELETE FROM events; UPDATE tasks SET state = 'idle' WHERE id <> 't-1'").await;
    scratch
        .execute(
            "INSERT INTO messages (id, task, sender, sender_role, receiver, type, body, attachments, expects, finality,
            state, created_at) VALUES ('m000000001', 't-3', 'root', 'root', 'user', 'general', '{}', '[]', 'nothing',
            'final', 'queued', 0)",
        )
        .await;
    for &(age, task) in events {
        scratch
            .write(move |tx| {
                Box::pin(async move {
                    let insert =
                        "INSERT INTO events (task, kind, body, created_at) VALUES (?1, 'x', '{}', ?2)";
                    let at = tx.now.as_millis() - age * DAY;
                    polity_sql::query(insert).bind(task).bind(at).execute(&mut tx.connection).await?;
                    Ok(())
                })
            })
            .await;
    }
    scratch
}

#[tokio::test]
async fn events_that_have_had_their_time_go_and_those_that_are_needed_stay() {
    let check = async |days: Option<u32>,
                       most: Option<u32>,
                       events: &[(i64, Option<&'static str>)],
                       left: &[&str]| {
        let scratch = with_events(events).await;
        let retention = Retention { events_days: days, max_events: most, max_database_bytes: None };
        let now = clock::now();
        let counted =
            count_expired(&mut scratch.store.reader().await.unwrap(), &retention, now).await.unwrap();
        let removed = remove_expired(&scratch.store, retention, clock::now()).await.unwrap();
        let found = scratch.query("SELECT CAST(seq AS TEXT) FROM events ORDER BY seq").await;
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
    // The newest event stays, even if it is very old.
    check(Some(1), Some(1), &[(50, idle), (40, idle)], &["2"]).await;
    check(Some(1), Some(1), &[], &[]).await;
    // The old events of `t-1` and `t-3` stay, because a client may still want to see them.
    check(Some(1), Some(1), &[(50, Some("t-1")), (50, Some("t-3")), (50, idle), (0, idle)], &["1", "2", "4"])
        .await;
}

#[tokio::test]
async fn more_events_than_one_transaction_removes_go_all_the_same() {
    let scratch = Scratch::new().await;
    scratch
        .execute(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 12000)
            INSERT INTO events (kind, body, created_at) SELECT 'x', '{}', 0 FROM n",
        )
        .await;
    let retention = Retention { events_days: None, max_events: Some(1), max_database_bytes: None };
    let first =
        scratch.write(move |tx| Box::pin(async move { maintain(tx, &retention, tx.now).await })).await;
    assert_eq!(first, u64::from(BATCH));
    let others = remove_expired(&scratch.store, retention, clock::now()).await.unwrap();
    assert_eq!(scratch.query("SELECT CAST(count(*) AS TEXT) FROM events").await, ["1"]);
    assert!(first + others >= 11_999);
}

/// Runs statements in a new database, and returns its unneeded artifacts. The task `t-2` has long been idle; the ids of
/// its artifacts begin with `old-`.
async fn unneeded(statements: &'static str) -> Vec<String> {
    let scratch = Scratch::new().await;
    scratch.add_task("t-2").await;
    scratch
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
    scratch.execute(statements).await;
    let found = unneeded::find(&mut scratch.store.reader().await.unwrap(), Timestamp::from_millis(2000))
        .await
        .unwrap();
    found.iter().map(|id| id.as_str().to_owned()).collect()
}

#[tokio::test]
async fn artifacts_of_tasks_that_are_long_over_are_unneeded_unless_something_else_names_them() {
    let check = async |statements: &'static str, expect: &[&str]| {
        assert_eq!(unneeded(statements).await, expect, "{statements}");
    };
    let both = &["old-1", "old-2"];
    check("", both).await;
    // All artifacts are still needed if the task has not ended, or if something has happened in the task recently.
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
    // If something outside the task names `old-1`, only `old-2` is unneeded.
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
    check("INSERT INTO inherited (task, artifact) VALUES ('t-1', 'old-2')", &["old-1"]).await;
    check("INSERT INTO inherited (task, artifact) VALUES ('t-2', 'new-1')", both).await;
}

#[tokio::test]
async fn what_is_removed_is_gone_with_its_grants_and_nothing_else() {
    let scratch = with_artifact().await;
    let stored: BTreeSet<ArtifactId> =
        scratch.query("SELECT id FROM artifacts").await.into_iter().map(ArtifactId::new).collect();
    assert_eq!(stored.len(), 1);
    scratch.write(move |tx| Box::pin(async move { unneeded::remove(tx, &stored).await })).await;
    for table in ["artifacts", "artifact_grants"] {
        let left = scratch.query(&format!("SELECT CAST(count(*) AS TEXT) FROM {table}")).await;
        assert_eq!(left, ["0"], "{table}");
    }
    assert!(!scratch.query("SELECT id FROM tasks").await.is_empty(), "nothing else goes");
}

#[tokio::test]
async fn a_copy_holds_what_was_committed_and_belongs_to_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = with_artifact().await;
    let from = scratch.directory.path().join("polity.db");
    let to = scratch.directory.path().join("copy.db");
    let mut connection = open_to_read(&from).await.unwrap();
    copy(&mut connection, &from, &to).await.unwrap();
    assert_eq!(std::fs::metadata(&to).unwrap().permissions().mode() & 0o077, 0);
    let (store, _signals) = Store::open(&to, Durability::Full).await.unwrap();
    let count = "SELECT (SELECT count(*) FROM messages) || ' ' || (SELECT count(*) FROM events)";
    let copied: String =
        polity_sql::query_scalar(count).fetch_one(&mut store.reader().await.unwrap()).await.unwrap();
    assert_eq!(scratch.query(count).await, [copied]);
    // A second copy does not replace the first.
    assert!(copy(&mut connection, &from, &to).await.is_err());
}

/// Creates a database whose newest changes are only in its log.
async fn with_log() -> Scratch {
    let scratch = Scratch::new().await;
    scratch
        .execute(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 200)
            INSERT INTO events (kind, body, created_at) SELECT 'x', printf('%2000d', n), unixepoch() * 1000 FROM n",
        )
        .await;
    scratch
}

#[tokio::test]
async fn the_size_of_a_database_in_use_includes_its_log() {
    let scratch = with_log().await;
    let data = scratch.directory.path();
    let file_alone = std::fs::metadata(data.join(DATABASE)).unwrap().len();
    let retention = Retention { events_days: None, max_events: None, max_database_bytes: None };
    let unwanted = Unwanted { idle_for: None, retention, trash: Trash::Kept };
    let blobs = BlobStore::as_it_is(data.join(ARTIFACTS));
    let freed = free_beside(&scratch.store, &blobs, data, &unwanted, Mode::Count).await.unwrap();
    assert!(freed.database_before > file_alone, "{freed:?}");
    assert!(freed.database_after > file_alone, "{freed:?}");
}

/// Nobody has closed the database. The cleaning moves the newest changes into the file.
#[tokio::test]
async fn the_size_of_the_database_includes_its_log() {
    let scratch = with_log().await;
    let copy = copy_with_log(&scratch);
    let file_alone = std::fs::metadata(copy.path().join(DATABASE)).unwrap().len();
    let link = copy.path().join("link.db");
    std::os::unix::fs::symlink(copy.path().join(DATABASE), &link).unwrap();
    assert!(size_with_log(&link) > file_alone, "the log stands beside the file, not beside the link");
    let retention = Retention { events_days: None, max_events: None, max_database_bytes: None };
    let unwanted = Unwanted { idle_for: None, retention, trash: Trash::Kept };
    let freed = free(copy.path(), &unwanted, Mode::Remove).await.unwrap();
    assert!(freed.database_after > file_alone, "the log was empty: {freed:?}");
    assert!(freed.database_after <= freed.database_before, "{freed:?}");
}
