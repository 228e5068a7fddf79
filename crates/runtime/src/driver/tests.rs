mod approvals;
mod copying;
mod hiring;
mod interrupted;
mod outside;
mod settling;

use super::*;
use crate::testing::model::{Say, ScriptedModel};
use crate::testing::tool::{FakeTool, hands};
use crate::testing::{World, code};
use base64::Engine as _;
use futures::FutureExt;
use polity_hands::call::{Attempt, Invocation, Output};
use polity_hands::table::Hands;
use polity_hands::tool::AfterCrash;
use polity_llm::{Arguments, Message as Wire, ToolCall};
use polity_society::id::{AgentId, CallId, CommandId};
use polity_society::message::{Finality, Payload};
use polity_society::present::{FirstWords, present};
use polity_society::refusal::Refusal;
use polity_society::rules::{Answering, Draft, LastWord};
use polity_store::keep;
use polity_store::record::{Content, Replied, ToolResult};
use polity_store::tasks;
use serde_json::{Map, Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// Drives root until root has nothing left to do.
async fn drive_root(world: &World, says: Vec<Say>, tools: Vec<FakeTool>) -> Arc<ScriptedModel> {
    let script = ScriptedModel::in_order(says);
    run(&world.handles(script.clone(), hands(tools)), &world.of("root"), &CancellationToken::new())
        .await
        .unwrap();
    assert!(script.is_finished(), "the script has answers left");
    script
}

async fn results(world: &World) -> Vec<Value> {
    results_in(world, &world.of("root")).await
}

/// Returns those results in a conversation that are JSON. They are in the order of the records.
async fn results_in(world: &World, conversation: &Conversation) -> Vec<Value> {
    let mut reader = world.store.reader().await.unwrap();
    let texts = &world.snapshot.prompts.texts;
    let history = records::history(&mut reader, conversation, texts).await.unwrap();
    let results = history.records.into_iter().filter_map(|(_, record)| match record {
        Record::ToolFinished { result, .. } => match result {
            ToolResult::Json(value) | ToolResult::Outside { content: Content::Json(value), .. } => {
                Some(value)
            }
            ToolResult::Outside { .. } | ToolResult::Artifact { .. } => None,
        },
        _ => None,
    });
    results.collect()
}

/// Changes all roles, so that their agents have only the tool group `artifacts`.
async fn narrow_roles(world: &World) {
    world
        .write(|tx| {
            Box::pin(async move {
                let narrow = "UPDATE roles SET tool_groups = '[\"artifacts\"]'";
                polity_sql::query(narrow).execute(&mut tx.connection).await?;
                Ok(())
            })
        })
        .await;
}

#[tokio::test]
async fn bytes_that_a_model_writes_are_never_written_down() {
    let world = World::new().await;
    let bytes: Vec<u8> = (0..200u8).map(|byte| byte.wrapping_mul(37) ^ 0xa5).collect();
    let encoded = base64::engine::general_purpose::STANDARD.encode(&bytes);
    world.say("user", "root", json!("store it")).await;
    let put = json!({"type": "blob", "content": encoded, "encoding": "base64"});
    let script =
        drive_root(&world, vec![Say::Call("put_artifact", put), Say::Text("stored")], Vec::new()).await;

    let everything = [
        world.query("SELECT body FROM records").await.join("\n"),
        world.query("SELECT body FROM events").await.join("\n"),
        format!("{:?}", world.dump().await),
        format!("{:?}", script.requests()),
    ];
    for place in &everything {
        for start in 0..encoded.len() - 64 {
            assert!(!place.contains(&encoded[start..start + 64]));
        }
    }
    let stored = &results(&world).await[0];
    let reference = stored["ref"].as_str().unwrap();
    assert!(everything[3].contains(reference), "the call in the history names the artifact");
    let blob = world.query("SELECT blob FROM artifacts").await;
    let hash = polity_artifacts::BlobHash::new(blob[0].as_str());
    assert_eq!(world.blobs.read(&hash).await.unwrap(), bytes);
}

#[tokio::test]
async fn a_turn_that_is_given_up_leaves_no_call_unanswered() {
    let world = World::new().await;
    world.say("user", "root", json!("do it")).await;
    let turn = world.begin_turn("root").await;
    let owner = world.of("root");
    let call = |id: &str| ToolCall {
        id: id.to_owned(),
        name: "pay".to_owned(),
        arguments: Arguments::Object(Map::new()),
        extra: Map::new(),
    };
    let replied = Replied { calls: vec![call("a"), call("b")], ..Replied::default() };
    world
        .write(move |tx| {
            Box::pin(async move {
                records::append(tx, &owner, turn, &Record::Replied(replied)).await?;
                records::append(
                    tx,
                    &owner,
                    turn,
                    &Record::ToolStarted { call: CallId::new("a"), evidence: Value::Null },
                )
                .await
            })
        })
        .await;
    let handles = world.handles(ScriptedModel::in_order(Vec::new()), Hands::none());
    abandon(&handles, &world.of("root"), "a defect".to_owned()).await.unwrap();
    assert_eq!(world.query("SELECT state FROM turns").await, ["failed"]);
    let said: Vec<Value> = results(&world).await.iter().map(|result| result["error"].clone()).collect();
    assert_eq!(said, ["outcome_unknown", "tool_failed"]);
    world.say("user", "root", json!("again")).await;
    drive_root(&world, vec![Say::Text("done")], Vec::new()).await;
}

#[tokio::test]
async fn the_turn_with_which_root_answers_everything_ends_the_task_in_its_transaction() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    // No supervisor runs in this world.
    drive_root(&world, vec![Say::Text("done")], Vec::new()).await;
    assert_eq!(world.query("SELECT state FROM tasks").await, ["idle"]);
    let told =
        "SELECT kind || coalesce(' ' || (body ->> 'outcome'), '') FROM events ORDER BY seq DESC LIMIT 2";
    assert_eq!(world.query(told).await, ["task_idle answered", "turn_ended"]);
    // The next message of the person opens the task again.
    world.say("user", "root", json!("again")).await;
    assert_eq!(world.query("SELECT state FROM tasks").await, ["open"]);
    drive_root(&world, vec![Say::Text("once more")], Vec::new()).await;
    assert_eq!(world.query("SELECT state FROM tasks").await, ["idle"]);
}

#[tokio::test]
async fn a_turn_leaves_a_task_open_in_which_something_may_be_left() {
    let world = World::new().await;
    let reader = world.hire("root", "reader", json!({})).await;
    world.say("user", "root", json!("go")).await;
    // The reader has unread mail, and nobody waits for an answer to it.
    world.say("root", &reader, json!({"message_type": "status_report", "text": "root has begun"})).await;
    drive_root(&world, vec![Say::Text("done")], Vec::new()).await;
    assert_eq!(world.query("SELECT state FROM tasks").await, ["open"]);
    // The reader does the last work of the task. Only root's turns end a task.
    let model = ScriptedModel::in_order(vec![Say::Text("noted")]);
    let handles = world.handles(model, Hands::none());
    run(&handles, &world.of(&reader), &CancellationToken::new()).await.unwrap();
    assert_eq!(world.query("SELECT DISTINCT state FROM turns").await, ["done"]);
    assert_eq!(world.query("SELECT state FROM tasks").await, ["open"]);
    assert_eq!(world.query("SELECT kind FROM events WHERE kind = 'task_idle'").await, [""; 0]);
}

#[tokio::test]
async fn the_person_is_answered_even_after_a_turn_that_failed() {
    let world = World::new().await;
    world.say("user", "root", json!("do it")).await;
    let reader = world.hire("root", "reader", json!({})).await;
    drive_root(&world, vec![Say::Fail], Vec::new()).await;
    assert_eq!(world.query("SELECT state FROM messages WHERE sender = 'user'").await, ["failed"]);
    world.say(&reader, "root", json!({"message_type": "status_report", "text": "found it"})).await;
    drive_root(&world, vec![Say::Text("here it is")], Vec::new()).await;
    let mail = world.mail("user").await;
    let answer = mail.last().unwrap();
    assert_eq!(answer.in_reply_to, [world.mail("root").await[0].id.clone()]);
    assert_eq!((answer.expects, answer.finality), (Expects::Nothing, Finality::Final));
    let mut connection = world.store.reader().await.unwrap();
    let standing = tasks::standing(&mut connection, &world.task).await.unwrap().unwrap();
    assert!(!standing.unanswered && !standing.asks_user, "{standing:?}");
}

#[tokio::test]
async fn a_question_that_comes_meanwhile_keeps_its_own_answer() {
    let world = World::new().await;
    let reader = world.hire("root", "reader", json!({})).await;
    world.say(&reader, "root", json!({"message_type": "status_report", "text": "found it"})).await;
    let (store, snapshot, user) = (world.store.clone(), Arc::clone(&world.snapshot), world.of("user"));
    let first = AtomicBool::new(true);
    let script = ScriptedModel::function(move |_| {
        let (store, snapshot, user) = (store.clone(), Arc::clone(&snapshot), user.clone());
        let is_first = first.swap(false, Ordering::SeqCst);
        Box::pin(async move {
            if !is_first {
                return Say::Text("three");
            }
            let write = store.write(move |tx| {
                Box::pin(async move {
                    let draft = Draft {
                        to: "root".to_owned(),
                        payload: Payload::text("what time is it?"),
                        answering: Answering::AsWritten,
                        due_at: None,
                    };
                    keep(crate::door::send(tx, &snapshot, &user, draft, LastWord::UnlessWaiting).await)
                })
            });
            write.await.unwrap().unwrap();
            Say::Text("so far")
        })
    });
    let handles = world.handles(script.clone(), Hands::none());
    run(&handles, &world.of("root"), &CancellationToken::new()).await.unwrap();
    assert_eq!(script.asked(), 2);
    let said: Vec<String> = world.query("SELECT body FROM messages WHERE receiver = 'user'").await;
    assert_eq!(said, [r#"{"text":"three"}"#]);
    assert_eq!(world.query("SELECT count(*) || '' FROM turns WHERE state = 'done'").await, ["2"]);
}

#[tokio::test]
async fn what_comes_meanwhile_is_taken_into_the_turn_once() {
    let world = World::new().await;
    world.say("user", "root", json!("one")).await;
    let turn = world.begin_turn("root").await;
    world.say("user", "root", json!("two")).await;
    let script = drive_root(&world, vec![Say::Text("both")], Vec::new()).await;
    let heard = format!("{:?}", script.requests()[0].messages);
    assert_eq!((heard.matches("one").count(), heard.matches("two").count()), (1, 1), "{heard}");
    let states = world.query("SELECT state || turn FROM messages WHERE receiver = 'root'").await;
    assert_eq!(states, [format!("done{turn}"), format!("done{turn}")]);
}

/// A tool that never returns from its first run.
fn stuck_once(after_crash: AfterCrash) -> (FakeTool, Arc<Mutex<Vec<Invocation>>>, Arc<Notify>) {
    let reached = Arc::new(Notify::new());
    let runs: Arc<Mutex<Vec<Invocation>>> = Arc::default();
    let (seen, at) = (Arc::clone(&runs), Arc::clone(&reached));
    let tool = FakeTool::new("pay", move |invocation| {
        let mut seen = seen.lock().unwrap();
        let first = seen.is_empty();
        seen.push(invocation);
        let at = Arc::clone(&at);
        async move {
            if first {
                at.notify_one();
                std::future::pending::<()>().await;
            }
            Ok(Output::json(json!({"paid": 1})))
        }
        .boxed()
    });
    (FakeTool { after_crash, evidence: json!({"before": 7}), ..tool }, runs, reached)
}

async fn interrupted(after_crash: AfterCrash) -> (Vec<Value>, Vec<Invocation>) {
    let world = World::new().await;
    let (tool, runs, reached) = stuck_once(after_crash);
    world.say("user", "root", json!("pay")).await;
    let script = ScriptedModel::in_order(vec![Say::Call("pay", json!({}))]);
    let handles = world.handles(script, hands(vec![tool.clone()]));
    let (root, never) = (world.of("root"), CancellationToken::new());
    tokio::select! {
        ended = run(&handles, &root, &never) => panic!("the tool never ends: {ended:?}"),
        () = reached.notified() => {}
    }
    drive_root(&world, vec![Say::Text("paid, or not")], vec![tool]).await;
    let runs = std::mem::take(&mut *runs.lock().unwrap());
    (results(&world).await, runs)
}

#[tokio::test]
async fn what_was_interrupted_outside_is_not_run_again() {
    let (results, runs) = interrupted(AfterCrash::Never).await;
    assert_eq!(runs.len(), 1);
    assert!(runs[0].cancel.is_cancelled(), "the tool learns that nobody waits");
    assert_eq!(results.iter().map(|result| result["error"].clone()).collect::<Vec<_>>(), ["outcome_unknown"]);
}

#[tokio::test]
async fn what_may_be_repeated_is_run_again_with_the_same_key() {
    for after_crash in [AfterCrash::Repeat, AfterCrash::Verify] {
        let (results, runs) = interrupted(after_crash).await;
        assert_eq!(runs.len(), 2);
        assert_eq!(runs[0].idempotency_key, runs[1].idempotency_key);
        assert_eq!(
            runs.iter().map(|run| run.attempt).collect::<Vec<_>>(),
            [Attempt::First, Attempt::AfterCrash]
        );
        assert!(runs.iter().all(|run| run.evidence == json!({"before": 7})), "{runs:?}");
        assert_eq!(results, [json!({"paid": 1})]);
    }
}

#[tokio::test]
async fn a_child_without_a_message_is_pointed_out_once() {
    let world = World::new().await;
    world.say("user", "root", json!("hire")).await;
    let hire = json!({"roleId": "reader", "taskBrief": crate::testing::brief()});
    let says = vec![
        Say::Call("create_role", json!({"name": "reader", "rolePrompt": "read"})),
        Say::Call("spawn_agent", hire),
        Say::Text("first"),
        Say::Text("second"),
    ];
    drive_root(&world, says, Vec::new()).await;
    let notices = world.query("SELECT body FROM records WHERE body LIKE '%unwritten_children%'").await;
    assert_eq!(notices.len(), 1);
    assert_eq!(
        world.query("SELECT body FROM messages WHERE receiver = 'user'").await,
        [r#"{"text":"second"}"#]
    );
}

#[tokio::test]
async fn a_result_that_is_too_long_becomes_an_artifact() {
    let world = World::with(&json!({"toolResultChars": 400})).await;
    world.say("user", "root", json!("look")).await;
    let long = "\"quoted\" line\n".repeat(100);
    let answer = json!({"page": long});
    let expected = answer.to_string();
    let tool = FakeTool::returns("fetch", Ok(Output::json(answer)));
    drive_root(&world, vec![Say::Call("fetch", json!({})), Say::Text("done")], vec![tool]).await;
    let result = &results(&world).await[0];
    assert!(result.to_string().chars().count() <= 400, "{result}");
    assert!(expected.starts_with(result["beginning"].as_str().unwrap()));
    let read = json!({"ref": result["ref"]});
    assert_eq!(world.call("root", "get_artifact", read).await["error"], Value::Null);
    let blob = world.query("SELECT blob FROM artifacts").await;
    let hash = polity_artifacts::BlobHash::new(blob[0].as_str());
    assert_eq!(world.blobs.read(&hash).await.unwrap(), expected.as_bytes());
}

#[tokio::test]
async fn a_result_of_a_society_tool_that_is_too_long_becomes_an_artifact() {
    let world = World::with(&json!({"toolResultChars": 400})).await;
    for number in 0..10 {
        world.hire("root", &format!("reader {number}"), json!({})).await;
    }
    world.say("user", "root", json!("look")).await;
    drive_root(&world, vec![Say::Call("list_contacts", json!({})), Say::Text("done")], Vec::new()).await;
    let result = &results(&world).await[0];
    assert!(result.to_string().chars().count() <= 400, "{result}");
    let read = world.call("root", "get_artifact", json!({"ref": result["ref"]})).await;
    assert_eq!(read["opened"], result["ref"]);
    let blob = world.query("SELECT blob FROM artifacts").await;
    let whole = world.blobs.read(&polity_artifacts::BlobHash::new(blob[0].as_str())).await.unwrap();
    let whole: Value = serde_json::from_slice(&whole).unwrap();
    assert_eq!(whole["contacts"].as_array().map(Vec::len), Some(11), "the person and ten readers");
}

#[tokio::test]
async fn what_is_sent_after_a_reminder_is_final_even_while_others_are_awaited() {
    let world = World::new().await;
    world.say("user", "root", json!("do it")).await;
    let reader: &'static str = world.hire("root", "reader", json!({})).await.leak();
    let ask = json!({"to": reader, "payload": "read"});
    drive_root(&world, vec![Say::Call("send_message", ask), Say::Text("waiting")], Vec::new()).await;
    let (task, snapshot) = (world.task.clone(), Arc::clone(&world.snapshot));
    world
        .write(move |tx| {
            Box::pin(async move {
                let nudge = polity_society::notice::Notice::Nudge;
                polity_store::apply::tell(tx, &snapshot, &task, &AgentId::root(), nudge, None).await
            })
        })
        .await;
    let send = json!({"to": "user", "payload": "this is all"});
    drive_root(&world, vec![Say::Call("send_message", send), Say::Text("done")], Vec::new()).await;
    let finality: Vec<Finality> = world.mail("user").await.iter().map(|message| message.finality).collect();
    assert_eq!(finality, [Finality::Interim, Finality::Final, Finality::Final]);
    let mut connection = world.store.reader().await.unwrap();
    let standing = tasks::standing(&mut connection, &world.task).await.unwrap().unwrap();
    assert!(!standing.unanswered, "{standing:?}");
}

#[tokio::test]
async fn a_call_that_is_refused_leaves_no_bytes_behind() {
    let world = World::with(&json!({"maxArtifactBytes": 100})).await;
    let encoded = base64::engine::general_purpose::STANDARD.encode([7; 300]);
    world.say("user", "root", json!("store it")).await;
    let put = json!({"type": "blob", "content": encoded, "encoding": "base64"});
    let script =
        drive_root(&world, vec![Say::Call("put_artifact", put), Say::Text("too large")], Vec::new()).await;
    let refused = &results(&world).await[0];
    assert_eq!((&refused["error"], &refused["limit"]), (&json!("limit_reached"), &json!("maxArtifactBytes")));
    let everything =
        world.query("SELECT body FROM records UNION ALL SELECT body FROM events").await.join("\n")
            + &format!("{:?}{:?}", world.dump().await, script.requests());
    assert!(!everything.contains(&encoded[..64]));
}

#[tokio::test]
async fn bytes_that_are_said_reach_the_giver_as_an_artifact() {
    let world = World::new().await;
    world.say("user", "root", json!("draw")).await;
    let drawn: &'static str = Box::leak(
        format!(
            "here: data:image/png;base64,{}",
            base64::engine::general_purpose::STANDARD
                .encode([b"\x89PNG\r\n\x1a\n".as_slice(), &[1; 92]].concat())
        )
        .into_boxed_str(),
    );
    drive_root(&world, vec![Say::Text(drawn)], Vec::new()).await;
    let said = &world.query("SELECT body FROM messages WHERE receiver = 'user'").await[0];
    let id = polity_society::id::ArtifactId::all_in(said).remove(0);
    assert_eq!(said, &json!({"text": format!("here: {}", id.reference())}).to_string());
    let opened = world.call("user", "get_artifact", json!({"ref": id.reference()})).await;
    assert_eq!(opened["opened"], json!(id.reference()));
}

/// Returns a batch of calls, and the error code of each result. Many of the calls are refused, each for a different
/// reason. Some refusals are decided before the call runs.
fn batch_with_refusals() -> (Vec<(&'static str, Value)>, Vec<Value>) {
    let png = [b"\x89PNG\r\n\x1a\n".as_slice(), &[1; 192]].concat();
    let base64 = base64::engine::general_purpose::STANDARD.encode(png);
    let (calls, codes): (Vec<_>, Vec<_>) = [
        (("list_contacts", json!({})), Value::Null),
        (
            ("put_artifact", json!({"type": "a", "content": base64, "encoding": "base64"})),
            json!("limit_reached"),
        ),
        (("put_artifact", json!({"type": "a", "content": "words"})), Value::Null),
        (("put_artifact", json!({"type": "a", "content": base64})), json!("limit_reached")),
        (("no_such_tool", json!({})), json!("unknown_tool")),
        (("put_artifact", json!({"content": base64})), json!("invalid_arguments")),
        (("get_artifact", json!({"ref": "artifact:nobody"})), json!("artifact_not_found")),
        (
            ("put_artifact", json!({"type": "a", "content": "?", "encoding": "base64"})),
            json!("invalid_arguments"),
        ),
        (("list_artifacts", json!({})), Value::Null),
    ]
    .into_iter()
    .unzip();
    (calls, codes)
}

/// Returns the ids of all calls, and the ids of the calls that have results, each in the order of the records.
async fn order_of_calls(world: &World) -> (Vec<String>, Vec<String>) {
    let mut reader = world.store.reader().await.unwrap();
    let history =
        records::history(&mut reader, &world.of("root"), &world.snapshot.prompts.texts).await.unwrap();
    let (mut called, mut answered) = (Vec::new(), Vec::new());
    for (_, record) in history.records {
        match record {
            Record::Replied(replied) => called.extend(replied.calls.into_iter().map(|call| call.id)),
            Record::ToolFinished { call, .. } => answered.push(call.to_string()),
            _ => {}
        }
    }
    (called, answered)
}

/// docs/contract.md, section 8: results are written in the order of the calls.
#[tokio::test]
async fn results_are_written_in_the_order_of_the_calls_whatever_is_refused() {
    let world = World::with(&json!({"maxArtifactBytes": 100})).await;
    world.say("user", "root", json!("do it")).await;
    let (calls, codes) = batch_with_refusals();
    drive_root(&world, vec![Say::Calls(calls), Say::Text("done")], Vec::new()).await;
    let (called, answered) = order_of_calls(&world).await;
    assert_eq!(answered, called);
    let said: Vec<Value> = results(&world).await.iter().map(|result| result["error"].clone()).collect();
    assert_eq!(said, codes);
}

/// A call is refused because of its content. The record of the call does not contain this content, so after a restart,
/// the content cannot be checked again. The refusal must survive the restart all the same.
#[tokio::test]
async fn a_refusal_that_waits_for_a_tool_before_it_survives_a_new_start() {
    let world = World::with(&json!({"maxArtifactBytes": 100})).await;
    world.say("user", "root", json!("do it")).await;
    let (tool, _, reached) = stuck_once(AfterCrash::Repeat);
    let (mut calls, mut codes) = batch_with_refusals();
    calls.insert(0, ("pay", json!({})));
    codes.insert(0, Value::Null);
    let handles = world.handles(ScriptedModel::in_order(vec![Say::Calls(calls)]), hands(vec![tool.clone()]));
    let (root, never) = (world.of("root"), CancellationToken::new());
    tokio::select! {
        ended = run(&handles, &root, &never) => panic!("the tool never ends: {ended:?}"),
        () = reached.notified() => {}
    }
    assert_eq!(order_of_calls(&world).await.1, Vec::<String>::new());
    drive_root(&world, vec![Say::Text("done")], vec![tool]).await;
    let (called, answered) = order_of_calls(&world).await;
    assert_eq!(answered, called);
    let said: Vec<Value> = results(&world).await.iter().map(|result| result["error"].clone()).collect();
    assert_eq!(said, codes);
}

/// The result of an outside tool is searched for bytes in the same way as an answer of a model.
#[tokio::test]
async fn bytes_in_the_result_of_an_outside_tool_become_an_artifact() {
    let world = World::new().await;
    world.say("user", "root", json!("look")).await;
    let bytes = [b"\x89PNG\r\n\x1a\n".as_slice(), &(0..=255).collect::<Vec<u8>>()].concat();
    let base64 = base64::engine::general_purpose::STANDARD.encode(&bytes);
    let failed = |reason: String| Refusal::ToolFailed { tool: "fail".to_owned(), reason };
    let shown = json!({"content": [{"type": "image", "data": base64, "mimeType": "image/png"}]});
    let printed = json!({"stdout": format!("```\n{base64}\n```"), "rest": base64[100..200]});
    let tools = vec![
        FakeTool::returns("show", Ok(Output::json(shown))),
        FakeTool::returns("print", Ok(Output::json(printed))),
        FakeTool::returns("fail", Err(failed(format!("no: {base64}")))),
    ];
    let calls = ["show", "print", "fail"].map(|name| (name, json!({})));
    let script = drive_root(&world, vec![Say::Calls(calls.into()), Say::Text("done")], tools).await;
    let everything = format!("{:?}{:?}", world.dump().await, script.requests());
    assert_eq!(polity_decide::inline::forms::run_left(&everything, &bytes), None);
    let results = results(&world).await;
    let image = results[0]["content"][0]["data"].as_str().unwrap();
    assert_eq!(world.call("root", "get_artifact", json!({"ref": image})).await["opened"], image);
    assert_eq!(results[2]["error"], "tool_failed");
    for blob in world.query("SELECT blob FROM artifacts").await {
        assert_eq!(world.blobs.read(&polity_artifacts::BlobHash::new(blob)).await.unwrap(), bytes);
    }
}

/// A piece from the middle of a file lacks the first bytes of the file, which show its format. But the piece can be
/// compared with the files that the agent may open.
#[tokio::test]
async fn a_piece_of_what_the_agent_may_open_is_left_out_of_what_it_says() {
    let world = World::new().await;
    world.say("user", "root", json!("look")).await;
    let bytes = [b"\x89PNG\r\n\x1a\n".as_slice(), &(0..=255).collect::<Vec<u8>>()].concat();
    let base64 = base64::engine::general_purpose::STANDARD.encode(&bytes);
    let put = json!({"type": "picture", "content": base64, "encoding": "base64"});
    let piece: &'static str = Box::leak(format!("it ends with {}", &base64[150..]).into_boxed_str());
    let other: &'static str = Box::leak(format!("it is {}", "0aB3".repeat(20)).into_boxed_str());
    drive_root(&world, vec![Say::Call("put_artifact", put), Say::Text(piece)], Vec::new()).await;
    world.say("user", "root", json!("again")).await;
    drive_root(&world, vec![Say::Text(other)], Vec::new()).await;
    let said = world.query("SELECT body FROM messages WHERE receiver = 'user'").await;
    assert_eq!(said, [json!({"text": "it ends with …"}).to_string(), json!({"text": other}).to_string()]);
}

/// Returns a world in which root has sent a request to an agent, the reader. Also returns the id of the reader.
async fn asked_reader(limits: &Value) -> (World, String) {
    let world = World::with(limits).await;
    world.say("user", "root", json!("go")).await;
    world.begin_turn("root").await;
    let reader = world.hire("root", "reader", json!({})).await;
    world.say("root", &reader, json!("read")).await;
    (world, reader)
}

async fn drive_agent(world: &World, agent: &str, says: Vec<Say>) {
    let script = ScriptedModel::in_order(says);
    run(&world.handles(script.clone(), Hands::none()), &world.of(agent), &CancellationToken::new())
        .await
        .unwrap();
}

#[tokio::test]
async fn an_answer_that_is_too_long_for_a_message_is_answered_by_its_beginning_and_a_reference() {
    let (world, reader) = asked_reader(&json!({"maxMessageChars": 400})).await;
    let long: &'static str = Box::leak("\"page\"\n".repeat(200).into_boxed_str());
    drive_agent(&world, &reader, vec![Say::Text(long)]).await;
    let mail = world.mail("root").await;
    let answer = mail.last().unwrap();
    assert_eq!(answer.in_reply_to.len(), 1);
    let polity_society::message::Body::Payload(payload) = &answer.body else { panic!("{answer:?}") };
    assert!(payload.words().unwrap().starts_with("\"page\"\n"));
    let id = polity_society::id::ArtifactId::all_in(payload.words().unwrap()).remove(0);
    let opened = world.call("root", "get_artifact", json!({"ref": id.reference()})).await;
    assert_eq!(opened["opened"], json!(id.reference()));
    let blob = world.query("SELECT blob FROM artifacts").await;
    let hash = polity_artifacts::BlobHash::new(blob[0].as_str());
    assert_eq!(world.blobs.read(&hash).await.unwrap(), long.as_bytes());
}

/// Checks that root was told that its request has failed, and that root no longer waits for the answer.
async fn check_the_asker_is_told(world: &World) {
    let mail = world.mail("root").await;
    let request = world.query("SELECT id || state FROM messages WHERE sender = 'root'").await;
    let told = mail.iter().filter_map(|message| match &message.body {
        polity_society::message::Body::Notice(polity_society::notice::Notice::ReceiverFailed {
            message,
            ..
        }) => Some(format!("{message}failed")),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), request);
    let mut reader = world.store.reader().await.unwrap();
    assert_eq!(messages::pending(&mut reader, &world.of("root")).await.unwrap(), []);
}

#[tokio::test]
async fn an_answer_that_no_message_can_hold_fails_and_the_asker_is_told() {
    let (world, reader) = asked_reader(&json!({"maxMessageChars": 20})).await;
    drive_agent(&world, &reader, vec![Say::Text("much longer than any message may be")]).await;
    check_the_asker_is_told(&world).await;
}

#[tokio::test]
async fn an_answer_to_a_full_mailbox_fails_and_the_asker_is_told() {
    let (world, reader) = asked_reader(&json!({"maxQueue": 1})).await;
    world.say("user", "root", json!("and another thing")).await;
    drive_agent(&world, &reader, vec![Say::Text("done")]).await;
    check_the_asker_is_told(&world).await;
}

#[tokio::test]
async fn a_parked_agent_does_nothing_until_it_is_released() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    let handles = world.handles(ScriptedModel::in_order(Vec::new()), Hands::none());
    park(&handles, &world.of("root"), "a defect".to_owned()).await.unwrap();
    drive_root(&world, Vec::new(), Vec::new()).await;
    let released =
        world.write(|tx| Box::pin(async move { holds::release(tx, &AgentId::root(), None).await })).await;
    assert_eq!(released, [world.of("root")]);
    drive_root(&world, vec![Say::Text("done")], Vec::new()).await;
}

/// If the person stops the work of an agent between the last failure and the moment at which the agent would be parked,
/// the agent has nothing to do any more.
#[tokio::test]
async fn an_agent_without_work_is_not_parked() {
    let world = World::new().await;
    let handles = world.handles(ScriptedModel::in_order(Vec::new()), Hands::none());
    for is_paused in [false, true] {
        if is_paused {
            world
                .write(|tx| {
                    Box::pin(async move { polity_store::agents::pause(tx, &[AgentId::root()]).await })
                })
                .await;
        }
        park(&handles, &world.of("root"), "a defect".to_owned()).await.unwrap();
        assert_eq!(world.query("SELECT agent FROM holds").await, [""; 0], "{is_paused}");
        assert_eq!(world.query("SELECT id FROM messages").await, [""; 0], "{is_paused}");
    }
}

#[tokio::test]
async fn a_failed_turn_fails_what_was_asked_before_it_too() {
    let (world, reader) = asked_reader(&json!({})).await;
    let writer = world.hire(&reader, "writer", json!({})).await;
    world.say(&reader, &writer, json!("which page?")).await;
    drive_agent(&world, &reader, vec![Say::Text("waiting for the writer")]).await;
    world.begin_turn(&writer).await;
    world.say(&writer, &reader, json!("page one")).await;
    drive_agent(&world, &reader, vec![Say::Fail]).await;
    assert_eq!(world.query("SELECT state FROM messages WHERE sender = 'root'").await, ["failed"]);
    let mut connection = world.store.reader().await.unwrap();
    assert_eq!(messages::pending(&mut connection, &world.of("root")).await.unwrap(), []);
    let told = world
        .query("SELECT receiver || ' ' || (body ->> 'notice') FROM messages WHERE sender = 'system' ORDER BY seq")
        .await;
    // The reader waits for nobody, because the agent `writer` has answered it. The closing text that the reader had
    // written for root was held, and is now handed over as a `leftover` notice.
    assert_eq!(told, ["root agent_failed", "root leftover"]);
}

/// Returns the lines of the newest message to a party, as the party's model reads them.
async fn newest_lines(world: &World, party: &str) -> Vec<String> {
    let mail = world.mail(party).await;
    let shown = present(mail.last().unwrap(), &FirstWords::new(), &world.snapshot.prompts.texts);
    shown.opening.lines().map(str::to_owned).collect()
}

/// Returns the call with which the reader stores its report.
fn store_report() -> Say {
    let put = json!({"type": "report", "content": "three pages", "meta": {"filename": "report.md"}});
    Say::Call("put_artifact", put)
}

/// Returns the report of the reader as notices name it.
async fn report(world: &World) -> String {
    format!("artifact:{} (report.md)", world.query("SELECT id FROM artifacts").await[0])
}

/// The reader asks another agent, and its text is held meanwhile. Then the reader says nothing more, not even after the
/// reminder. A model knows only the words of a notice, so the words must contain everything.
#[tokio::test]
async fn a_reminder_and_the_notice_after_it_show_the_request_the_held_text_and_the_artifacts() {
    let (world, reader) = asked_reader(&json!({})).await;
    let writer = world.hire(&reader, "writer", json!({})).await;
    world.say(&reader, &writer, json!("which page?")).await;
    drive_agent(&world, &reader, vec![store_report(), Say::Text("waiting for the writer")]).await;
    drive_agent(&world, &writer, vec![Say::Text("page one")]).await;
    drive_agent(&world, &reader, vec![Say::Text(""), Say::Text("")]).await;

    let request = world.query("SELECT id FROM messages WHERE sender = 'root'").await.remove(0);
    let (asked, stored) = (format!("{request}“read”"), report(&world).await);
    let reminder = newest_lines(&world, &reader).await;
    assert_eq!((reminder.len(), reminder[0].as_str()), (4, "【系统消息】"), "{reminder:#?}");
    for (line, shows) in reminder[1..].iter().zip([asked.as_str(), "waiting for the writer", &stored]) {
        assert!(line.contains("root") && line.contains(shows), "{shows}: {reminder:#?}");
    }
    let told = newest_lines(&world, "root").await;
    assert_eq!((told.len(), told[0].as_str()), (5, "【系统消息】"), "{told:#?}");
    assert!(told[1].contains(&reader) && told[1].contains(&asked), "{told:#?}");
    assert_eq!(told[3], "waiting for the writer");
    assert!(told[4].contains(&stored), "{told:#?}");
    assert_eq!(world.query("SELECT state FROM messages WHERE sender = 'root'").await, ["unanswered"]);
}

#[tokio::test]
async fn an_artifact_that_an_answer_does_not_name_is_shown_to_its_asker_in_the_end() {
    let (world, reader) = asked_reader(&json!({})).await;
    drive_agent(&world, &reader, vec![store_report(), Say::Text("done"), Say::Text("")]).await;
    let stored = report(&world).await;
    let reminder = newest_lines(&world, &reader).await;
    assert!(reminder.len() == 2 && reminder[1].contains(&stored), "{reminder:#?}");
    let told = newest_lines(&world, "root").await;
    assert!(told.len() == 3 && told[1].contains(&reader) && told[2].contains(&stored), "{told:#?}");
}

/// Notes that an agent has started a command in the background, for the first request that the agent got.
async fn start_command(world: &World, agent: &str) {
    let (owner, request) = (world.of(agent), world.mail(agent).await[0].id.clone());
    world
        .write(move |tx| {
            Box::pin(async move {
                let command = CommandId::new("cmd-1");
                polity_store::commands::started(tx, &owner, &command, Some(&request)).await
            })
        })
        .await;
}

#[tokio::test]
async fn whoever_runs_a_command_in_the_background_waits_for_its_end() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    start_command(&world, "root").await;
    drive_root(&world, vec![Say::Text("it runs")], Vec::new()).await;
    assert_eq!(world.query("SELECT finality FROM messages WHERE receiver = 'user'").await, ["interim"]);

    let (world, reader) = asked_reader(&json!({})).await;
    start_command(&world, &reader).await;
    drive_agent(&world, &reader, vec![Say::Text("it runs")]).await;
    let said = format!("SELECT body FROM messages WHERE sender = '{reader}'");
    assert_eq!(world.query(&said).await, [""; 0], "the text is held while the command runs");
    let owner = world.of(&reader);
    let end = world.write(move |tx| {
        Box::pin(
            async move { polity_store::commands::ended(tx, &owner, &CommandId::new("cmd-1"), None).await },
        )
    });
    assert!(end.await, "the command was running");
    world.say("root", &reader, json!({"message_type": "status_report", "text": "it has ended"})).await;
    drive_agent(&world, &reader, vec![Say::Text("it has worked")]).await;
    assert_eq!(world.query(&said).await, [json!({"text": "it has worked"}).to_string()]);
}

/// Counts the long messages that a request to the model shows for the first time. Returns this number for each request.
async fn new_in_each(world: &World, says: Vec<Say>) -> Vec<usize> {
    let script = drive_root(world, says, Vec::new()).await;
    let asked = script.requests();
    let shown = asked.iter().map(|request| {
        let is_older = |message: &Wire| matches!(message, Wire::Assistant { .. } | Wire::Tool { .. });
        let new = request.messages.iter().rev().take_while(|message| !is_older(message));
        new.filter(|message| format!("{message:?}").contains("xxxx")).count()
    });
    shown.collect()
}

#[tokio::test]
async fn what_is_more_than_one_request_may_show_waits_for_the_next_call_or_turn() {
    let long = || json!("x".repeat(40_000));
    let answers: [(fn() -> Say, i64); 2] =
        [(|| Say::Call("list_contacts", json!({})), 1), (|| Say::Text("so far"), 2)];
    for (first, turns) in answers {
        let world = World::new().await;
        for _ in 0..5 {
            world.say("user", "root", long()).await;
        }
        assert_eq!(new_in_each(&world, vec![first(), Say::Text("read")]).await, [3, 2]);
        assert_eq!(world.query("SELECT count(*) || '' FROM turns").await, [turns.to_string()]);
        assert_eq!(
            world.query("SELECT count(*) || '' FROM messages WHERE state = 'done' AND sender = 'user'").await,
            ["5"]
        );
    }
}

#[tokio::test]
async fn what_was_taken_in_before_a_new_start_counts() {
    let world = World::new().await;
    for _ in 0..3 {
        world.say("user", "root", json!("x".repeat(40_000))).await;
    }
    world.begin_turn("root").await;
    world.say("user", "root", json!("x".repeat(40_000))).await;
    let says = vec![Say::Call("list_contacts", json!({})), Say::Text("read")];
    assert_eq!(new_in_each(&world, says).await, [3, 1]);
}

#[tokio::test]
async fn a_message_that_is_too_large_comes_alone() {
    let world = World::new().await;
    for _ in 0..2 {
        world.say("user", "root", json!("x".repeat(150_000))).await;
    }
    let says = vec![Say::Call("list_contacts", json!({})), Say::Text("read")];
    assert_eq!(new_in_each(&world, says).await, [1, 1]);
}
