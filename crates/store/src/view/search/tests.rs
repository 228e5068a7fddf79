use super::*;
use crate::testing::Scratch;
use crate::{Tx, artifacts, maintenance};
use polity_view::SearchKind::{Agent, Artifact, Message, Task};
use std::time::{Duration, Instant};

/// A society that has two tasks, an agent, an artifact, and messages in Chinese and English.
async fn society() -> Scratch {
    let scratch = Scratch::new().await;
    scratch.add_task("t-2").await;
    scratch
        .execute(
            r#"INSERT INTO roles (id, task, creator, name, prompt, service, required_capabilities, tool_groups, created_at)
                VALUES ('r-1', 't-1', 'root', '天文学家', '', 'one', '[]', '[]', 1000);
            INSERT INTO agents (id, task, parent, role, name, brief, depth, created_at)
                VALUES ('astronomer-1', 't-1', 'root', 'r-1', 'Mara', '{"objective":"Watch the 北斗七星 tonight","constraints":[],"inputs":"","outputs":"","completion_criteria":""}', 1, 1000);
            INSERT INTO artifacts (id, task, owner, blob, kind, mime_type, filename, label, size, meta, created_at, words)
                VALUES ('artifact23', 't-1', 'astronomer-1', 'b1', 'text', 'text/plain', '观测记录.md', 'notes', 1, '{}', 1000,
                    'The sky was clear over Tromsø'), ('artifact24', '', 'user', 'b2', 'image', 'image/png',
                    'weather.png', NULL, 1, '{}', 1000, '')"#,
        )
        .await;
    for (task, from, to, text) in [
        ("t-1", "user", "root", "明天柏林的天气怎么样？"),
        ("t-1", "root", "user", "明天有雨，记得带伞"),
        ("t-1", "user", "root", "And the weather in Tromsø?"),
        ("t-2", "user", "root", r#"Say "NEAR(x, y)" OR nothing* - <b>bold</b>"#),
        ("t-2", "root", "user", "Weather is not my task"),
    ] {
        say(&scratch, task, from, to, text).await;
    }
    scratch
}

async fn say(
    scratch: &Scratch,
    task: &'static str,
    from: &'static str,
    to: &'static str,
    text: impl Into<String>,
) {
    let text: String = text.into();
    scratch.write(move |tx| Box::pin(async move { insert(tx, task, from, to, &text).await })).await;
}

async fn insert(tx: &mut Tx, task: &str, from: &str, to: &str, text: &str) -> Result<(), Error> {
    let id = crate::messages::next_id(tx).await?;
    let insert = "INSERT INTO messages (seq, id, task, sender, sender_role, receiver, type, body, attachments, expects,
        finality, state, created_at) VALUES (?1, ?2, ?3, ?4, ?4, ?5, 'general', ?6, '[]', 'nothing', 'final', 'done', 1000)";
    let query =
        polity_sql::query(insert).bind(id.sequence()).bind(id.as_str()).bind(task).bind(from).bind(to);
    query.bind(serde_json::json!({ "text": text }).to_string()).execute(&mut tx.connection).await?;
    Ok(())
}

fn about(q: &str) -> SearchFilter {
    SearchFilter { q: q.to_owned(), ..SearchFilter::default() }
}

async fn found(scratch: &Scratch, filter: SearchFilter) -> Vec<(SearchKind, String)> {
    let mut reader = scratch.store.reader().await.unwrap();
    let (hits, next) = list(&mut reader, &filter).await.unwrap();
    assert_eq!(next, None);
    hits.into_iter().map(|hit| (hit.kind, hit.id)).collect()
}

async fn check(scratch: &Scratch, filter: SearchFilter, expect: &[(SearchKind, &str)]) {
    let expect: Vec<(SearchKind, String)> =
        expect.iter().map(|(kind, id)| (*kind, (*id).to_owned())).collect();
    assert_eq!(found(scratch, filter.clone()).await, expect, "{filter:?}");
}

#[tokio::test]
async fn everything_is_found_in_chinese_and_in_english() {
    let scratch = society().await;
    let first = "m000000001";
    check(&scratch, about("柏林的天气"), &[(Task, "t-1")]).await;
    // Words of one or two characters, also at the end of a text.
    check(&scratch, about("天气"), &[(Task, "t-1")]).await;
    check(&scratch, about("伞"), &[(Message, "m000000002")]).await;
    check(&scratch, about("带伞"), &[(Message, "m000000002")]).await;
    check(&scratch, about("雪"), &[]).await;
    check(
        &scratch,
        about("WEATHER"),
        &[(Message, "m000000005"), (Message, "m000000003"), (Artifact, "artifact24")],
    )
    .await;
    check(&scratch, about("weather tromsø"), &[(Message, "m000000003")]).await;
    check(&scratch, about("is my"), &[(Message, "m000000005")]).await;
    // A search finds an agent by its name, role, objective and id.
    for q in ["mara", "天文学家", "北斗", "七星 watch", "astronomer-1"] {
        check(&scratch, about(q), &[(Agent, "astronomer-1")]).await;
    }
    // A search finds an artifact by its file name, label, content and id.
    for q in ["观测记录", "notes", "sky clear", "artifact23"] {
        check(&scratch, about(q), &[(Artifact, "artifact23")]).await;
    }
    check(&scratch, SearchFilter { kind: Some(Message), ..about("天气") }, &[(Message, first)]).await;
    check(&scratch, SearchFilter { kind: Some(Agent), ..about("天气") }, &[]).await;
    let task = |id: &str| Some(TaskId::new(id));
    check(&scratch, SearchFilter { task: task("t-2"), ..about("weather") }, &[(Message, "m000000005")]).await;
    check(&scratch, SearchFilter { task: task("no"), ..about("weather") }, &[]).await;
}

#[tokio::test]
async fn a_hostile_search_is_plain_words() {
    let scratch = society().await;
    check(&scratch, about(r#""NEAR(x, y)" OR"#), &[(Task, "t-2")]).await;
    check(&scratch, about("nothing*"), &[(Task, "t-2")]).await;
    check(&scratch, about("<b>BOLD"), &[(Task, "t-2")]).await;
    for q in [
        "",
        "  ",
        "\0",
        "\"",
        "\"\"\"",
        "'",
        "*",
        "text:weather",
        "NEAR(",
        "{}",
        "a AND",
        "NOT x",
        "^w",
        "%",
        "_",
        "😀",
    ] {
        let _ = found(&scratch, about(q)).await;
    }
    let long = ["x".repeat(10_000), "\"".repeat(10_000), "缺 ".repeat(5_000), "a*b\"c ".repeat(1_600)];
    for q in long {
        check(&scratch, about(&q), &[]).await;
    }
}

#[tokio::test]
async fn a_snippet_shows_where_the_words_are_and_who_said_them() {
    let scratch = society().await;
    let mut reader = scratch.store.reader().await.unwrap();
    let (hits, _) = list(&mut reader, &about("记得")).await.unwrap();
    let [hit] = &hits[..] else { panic!("{hits:?}") };
    let pieces: Vec<(&str, bool)> =
        hit.snippet.iter().map(|piece| (piece.text.as_str(), piece.hit)).collect();
    assert_eq!(pieces, [("明天有雨，", false), ("记得", true), ("带伞", false)]);
    assert_eq!((hit.from.as_deref(), hit.to.as_ref().map(AgentId::as_str)), (Some("root"), Some("user")));
    assert!(!hit.over);
    let (hits, _) = list(&mut reader, &about("观测")).await.unwrap();
    assert_eq!(
        (hits[0].name.as_deref(), hits[0].from.as_deref()),
        (Some("观测记录.md"), Some("astronomer-1"))
    );
    scratch.execute("UPDATE agents SET ended_at = 2000 WHERE id = 'astronomer-1'").await;
    assert!(list(&mut reader, &about("mara")).await.unwrap().0[0].over);
}

#[tokio::test]
async fn pages_have_each_hit_once_newest_first() {
    let scratch = society().await;
    for number in 0..450 {
        say(&scratch, "t-1", "root", "user", format!("报告 report {number:03}")).await;
    }
    let mut reader = scratch.store.reader().await.unwrap();
    // The index finds `report` by its groups, and `报告` by the groups that begin with it. `r` is too frequent, so the
    // search reads all texts without the index.
    for q in ["report", "报告", "r"] {
        let filter = SearchFilter { limit: Some(100), kind: Some(Message), ..about(q) };
        let (mut ids, mut after) = (Vec::new(), None);
        loop {
            let (hits, next) = list(&mut reader, &SearchFilter { after, ..filter.clone() }).await.unwrap();
            assert!(hits.len() <= 100);
            ids.extend(hits.into_iter().map(|hit| hit.id).filter(|id| id.as_str() > "m000000005"));
            after = next;
            if after.is_none() {
                break;
            }
        }
        let mut expect: Vec<String> = (6..456).map(|number| format!("m{number:09}")).collect();
        expect.reverse();
        assert_eq!(ids, expect, "{q}");
    }
}

#[tokio::test]
async fn what_is_removed_or_moved_is_not_found_where_it_was() {
    let scratch = society().await;
    scratch.execute("UPDATE artifacts SET task = 't-2' WHERE id = 'artifact24'").await;
    let task = SearchFilter { task: Some(TaskId::new("t-2")), ..about("weather.png") };
    check(&scratch, task, &[(Artifact, "artifact24")]).await;
    scratch.execute("UPDATE tasks SET state = 'idle'; UPDATE messages SET created_at = 1").await;
    scratch.add_task("t-3").await;
    // Nothing fits into one byte, so all tasks except the newest are forgotten.
    assert_eq!(maintenance::keep_within(&scratch.store, 1).await.unwrap(), 2);
    for q in ["天气", "weather", "weather.png", "NEAR(x", "观测记录"] {
        check(&scratch, about(q), &[]).await;
    }
    check(&scratch, about("mara"), &[(Agent, "astronomer-1")]).await;
    let left = "SELECT CAST(count(*) AS TEXT) FROM findable UNION ALL SELECT CAST(count(*) AS TEXT) FROM found_docsize";
    assert_eq!(scratch.query(left).await, ["1", "1"]);
    let checked = maintenance::check(scratch.directory.path()).await.unwrap();
    assert_eq!(checked.damage, []);
}

#[tokio::test]
async fn an_artifact_from_before_the_search_is_found_once_it_is_read() {
    let scratch = society().await;
    scratch.execute("UPDATE artifacts SET words = NULL WHERE id = 'artifact23'").await;
    check(&scratch, about("tromsø"), &[(Message, "m000000003")]).await;
    let mut reader = scratch.store.reader().await.unwrap();
    let unread = artifacts::unread(&mut reader, 10).await.unwrap();
    assert_eq!(unread.len(), 1);
    let id = unread[0].0.clone();
    scratch
        .write(move |tx| {
            Box::pin(async move { Ok(artifacts::note_words(&mut tx.connection, &id, "in Tromsø").await?) })
        })
        .await;
    check(&scratch, about("tromsø"), &[(Message, "m000000003"), (Artifact, "artifact23")]).await;
    assert_eq!(artifacts::unread(&mut reader, 10).await.unwrap(), []);
}

#[tokio::test]
async fn only_the_beginning_of_a_long_text_is_indexed() {
    let scratch = society().await;
    say(&scratch, "t-1", "root", "user", format!("{} 末尾的字", "long ".repeat(10_000))).await;
    check(&scratch, about("末尾的字"), &[]).await;
    check(&scratch, about("long long"), &[(Message, "m000000006")]).await;
}

#[tokio::test]
async fn a_damaged_row_is_still_written_and_does_not_stop_a_search() {
    let scratch = society().await;
    scratch
        .execute("UPDATE messages SET body = '{' WHERE seq = 2; UPDATE agents SET brief = '{' WHERE id = 'astronomer-1'")
        .await;
    check(&scratch, about("带伞"), &[]).await;
    check(&scratch, about("mara"), &[(Agent, "astronomer-1")]).await;
}

/// Prints how long polity takes to store a message with and without the search index, and how long a search takes. Run
/// this test with `--ignored --nocapture`, in a release build.
#[tokio::test]
#[ignore = "measures and checks nothing: run it by hand in a release build"]
async fn cost_of_the_index() {
    let scratch = Scratch::new().await;
    let mut took = Vec::new();
    for triggers in ["kept", "dropped"] {
        if triggers == "dropped" {
            scratch.execute("DROP TRIGGER find_message").await;
        }
        let begun = Instant::now();
        for number in 0..2_000 {
            let text =
                format!("第{number}份报告：明天柏林有雨，气温{number}度。 The report of round {number}. ")
                    .repeat(5);
            say(&scratch, "t-1", "root", "user", text).await;
        }
        took.push(begun.elapsed() / 2_000);
    }
    let begun = Instant::now();
    let mut reader = scratch.store.reader().await.unwrap();
    let hits = list(&mut reader, &about("柏林")).await.unwrap().0.len();
    println!(
        "a message: {:?} with the index, {:?} without; a search: {hits} in {:?}",
        took[0],
        took[1],
        begun.elapsed()
    );
    assert!(took[0] < Duration::from_secs(1));
}
