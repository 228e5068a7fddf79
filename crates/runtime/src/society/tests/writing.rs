use super::*;
use polity_llm::{Arguments, ToolCall};
use polity_society::id::{ArtifactId, CallId, RoleId};
use polity_society::message::MessageState;
use polity_society::time::Timestamp;
use polity_store::record::{Record, Replied, ToolResult};
use polity_store::records;
use polity_view::Event;
use polity_view::{ArtifactFilter, EventFilter, MessageFilter, RolePatch, TaskState};
use serde_json::{Value, json};

fn code(result: &Result<polity_view::Posted, WriteError>) -> &'static str {
    result.as_ref().err().map_or("ok", WriteError::code)
}

fn file(text: &str) -> NewArtifact {
    NewArtifact {
        bytes: text.to_owned().into(),
        filename: Some("notes.txt".to_owned()),
        ..NewArtifact::default()
    }
}

async fn events(society: &Society) -> Vec<Event> {
    let page = society.events_after(0, 1000, &EventFilter::default()).await.unwrap();
    page.events.into_iter().map(|entry| entry.event).collect()
}

#[tokio::test]
async fn what_is_written_to_root_begins_a_task_and_goes_on_with_one() {
    let world = World::new().await;
    let (society, _) = society(&world);
    let first = society.write(UserMessage::text("root", "看图")).await.unwrap();
    assert_ne!(first.task, world.task);
    assert_eq!((first.to.as_str(), first.state, first.duplicate), ("root", MessageState::Queued, false));
    sql(&world, format!("UPDATE tasks SET state = 'idle', nudged = 1 WHERE id = '{}'", first.task)).await;
    let more = UserMessage { task: Some(first.task.clone()), ..UserMessage::text("root", "more") };
    let second = society.write(more).await.unwrap();
    assert_eq!(second.task, first.task);
    let task = society.task(&first.task).await.unwrap().unwrap();
    assert_eq!((task.title.as_str(), task.state), ("看图", TaskState::Open));
    let begun = events(&society).await;
    let begun = begun.iter().filter(|event| matches!(event, Event::TaskStarted { .. })).count();
    assert_eq!(begun, 1);
    let nowhere = UserMessage { task: Some(TaskId::new("t-none")), ..UserMessage::text("root", "more") };
    assert_eq!(code(&society.write(nowhere).await), "not_found");
}

#[tokio::test]
async fn a_first_message_to_any_agent_makes_both_contacts_and_a_refused_one_nothing() {
    let world = World::new().await;
    let (society, _) = society(&world);
    let reader = world.hire("root", "reader", json!({})).await;
    let before = world.dump().await;
    assert_eq!(code(&society.write(UserMessage::text("nobody-1", "hello")).await), "unknown_contact");
    assert_eq!(code(&society.write(UserMessage::text("user", "hello")).await), "invalid_arguments");
    assert_eq!(code(&society.write(UserMessage::text(&reader, " ")).await), "invalid_message");
    let elsewhere = UserMessage { task: Some(TaskId::new("t-2")), ..UserMessage::text(&reader, "hello") };
    assert_eq!(code(&society.write(elsewhere).await), "invalid_arguments");
    let with_service =
        UserMessage { service: Some(ServiceId::new("eyes")), ..UserMessage::text(&reader, "hello") };
    assert_eq!(code(&society.write(with_service).await), "invalid_arguments");
    let missing = Attachment::Stored(ArtifactId::new("missing"));
    let missing = UserMessage { attachments: vec![missing], ..UserMessage::text(&reader, "look") };
    assert_eq!(code(&society.write(missing).await), "artifact_not_found");
    let unsent = UserMessage {
        attachments: vec![Attachment::New(file("x"))],
        ..UserMessage::text("root", "x".repeat(300_000))
    };
    assert_eq!(code(&society.write(unsent).await), "limit_reached");
    assert_eq!(world.dump().await, before);

    let posted = society.write(UserMessage::text(&reader, "hello")).await.unwrap();
    assert_eq!(posted.task, world.task);
    let contacts = world
        .query(&format!(
            "SELECT owner || ' ' || agent || ' ' || source FROM contacts
             WHERE 'user' IN (owner, agent) AND '{reader}' IN (owner, agent) ORDER BY 1"
        ))
        .await;
    let mut expected = [format!("user {reader} system"), format!("{reader} user system")];
    expected.sort();
    assert_eq!(contacts, expected);
    assert_eq!(world.mail(&reader).await.len(), 1);

    world.call("root", "terminate_agent", json!({"agentId": reader})).await;
    let refused = society.write(UserMessage::text(&reader, "hello again")).await;
    assert_eq!(code(&refused), "agent_terminated");
    let never = world.hire("root", "writer", json!({})).await;
    world.call("root", "terminate_agent", json!({"agentId": never})).await;
    let before = world.dump().await;
    assert_eq!(code(&society.write(UserMessage::text(&never, "hello")).await), "agent_terminated");
    assert_eq!(world.dump().await, before);
}

#[tokio::test]
async fn what_is_refused_tells_nobody_and_hides_nothing_that_comes_after() {
    let mut world = World::new().await;
    let (society, _) = society(&world);
    world.settle_signals().await;
    while world.signals.bells.try_recv().is_ok() {}
    let mut newest = society.newest_event();
    newest.mark_unchanged();
    let missing = Attachment::Stored(ArtifactId::new("missing"));
    // The refusal comes late: the transaction has already begun a task for the message when the door refuses the
    // message.
    let refused =
        society.write(UserMessage { attachments: vec![missing], ..UserMessage::text("root", "look") }).await;
    assert_eq!(code(&refused), "artifact_not_found");
    world.settle_signals().await;
    assert!(!newest.has_changed().unwrap());
    assert!(world.signals.bells.try_recv().is_err());
    // The events of the refused task were undone, so their numbers are used again.
    world.store.note(Event::TaskStarted { task: world.task.clone() }).await.unwrap();
    newest.changed().await.unwrap();
}

#[tokio::test]
async fn what_the_person_writes_is_text_whatever_it_looks_like() {
    let world = World::new().await;
    let (society, _) = society(&world);
    let written = json!({"text": "hello", "from": "root"}).to_string();
    society.write(UserMessage::text("root", &written)).await.unwrap();
    let heard = world.query("SELECT body ->> 'text' FROM messages WHERE sender = 'user'").await;
    assert_eq!(heard, [written]);
    // A message may consist of a file alone. A message without a file and without text is refused as empty.
    for payload in [json!(""), json!({}), json!({"text": " "})] {
        let empty = UserMessage { payload: payload.clone(), ..UserMessage::text("root", "") };
        assert_eq!(code(&society.write(empty.clone()).await), "invalid_message", "{payload}");
        let with_file = UserMessage { attachments: vec![Attachment::New(file("x"))], ..empty };
        assert_eq!(code(&society.write(with_file).await), "ok", "{payload}");
    }
}

#[tokio::test]
async fn what_the_person_writes_answers_the_oldest_question_of_that_agent() {
    let world = World::new().await;
    let (society, _) = society(&world);
    world.say("user", "root", json!("go")).await;
    world.begin_turn("root").await;
    let asked = world
        .say("root", "user", json!({"message_type": "collaboration_request", "text": "which one?"}))
        .await;
    let question = MessageId::new(asked["messageIds"][0]["id"].as_str().unwrap_or_else(|| panic!("{asked}")));
    assert_eq!(society.task(&world.task).await.unwrap().unwrap().waiting_for_user, 1);
    sql(&world, "UPDATE tasks SET state = 'idle'".to_owned()).await;
    let answer = UserMessage { task: Some(world.task.clone()), ..UserMessage::text("root", "the left one") };
    let posted = society.write(answer).await.unwrap();
    let message = society.message(&posted.id).await.unwrap().unwrap();
    assert_eq!(message.in_reply_to, std::slice::from_ref(&question));
    let question = society.message(&question).await.unwrap().unwrap();
    assert_eq!((question.state, question.answered_by), (MessageState::Answered, Some(posted.id)));
    let task = society.task(&world.task).await.unwrap().unwrap();
    assert_eq!((task.waiting_for_user, task.state), (0, TaskState::Open));
    // The person has answered the question, but the question still counts as not shown.
    let unshown = MessageFilter { unshown: true, ..MessageFilter::default() };
    assert_eq!(society.messages(&unshown).await.unwrap().messages.len(), 1);
}

#[tokio::test]
async fn what_a_limit_has_stopped_stays_stopped_until_the_limit_is_raised() {
    let world = World::with(&json!({"maxModelCallsPerTask": 2})).await;
    let (society, _) = society(&world);
    let call = "INSERT INTO model_calls (task, agent, turn, service, model, revision, attempts, prompt_tokens,
        completion_tokens, usage_source, created_at) VALUES ('t-1', 'root', 1, 'words', 'words-1', 1, 1, 5, 5, 'reported', 1)";
    sql(&world, call.to_owned()).await;
    sql(&world, "UPDATE tasks SET stopped_by = 'maxModelCallsPerTask', state = 'idle'".to_owned()).await;
    let go_on = || UserMessage { task: Some(world.task.clone()), ..UserMessage::text("root", "go on") };
    // The limit was raised, so one more call is possible.
    assert_eq!(code(&society.write(go_on()).await), "ok");
    sql(&world, call.to_owned()).await;
    sql(&world, "UPDATE tasks SET stopped_by = 'maxModelCallsPerTask', state = 'idle'".to_owned()).await;
    let before = world.dump().await;
    let refused = society.write(go_on()).await;
    assert_eq!(code(&refused), "limit_reached");
    let details = refused.unwrap_err().details();
    assert_eq!(details, Some(json!({"limit": "maxModelCallsPerTask", "value": 2})));
    assert_eq!(world.dump().await, before);
    // If the person has stopped a task, the next message of the person continues it.
    sql(&world, "UPDATE tasks SET stopped_by = 'user', state = 'idle'".to_owned()).await;
    assert_eq!(code(&society.write(go_on()).await), "ok");
}

#[tokio::test]
async fn the_same_under_the_same_key_is_the_same_message_however_often_it_comes_at_once() {
    let world = World::new().await;
    let (society, _) = society(&world);
    let post = |text: &str| UserMessage {
        key: Some("key-1".to_owned()),
        attachments: vec![Attachment::New(file("notes"))],
        ..UserMessage::text("root", text)
    };
    let all = futures::future::join_all((0..20).map(|_| society.write(post("go")))).await;
    let all: Vec<_> = all.into_iter().map(Result::unwrap).collect();
    assert_eq!(all.iter().filter(|posted| !posted.duplicate).count(), 1);
    assert!(all.iter().all(|posted| posted.id == all[0].id && posted.task == all[0].task));
    assert_eq!(world.query("SELECT count(*) || '' FROM messages").await, ["1"]);
    assert_eq!(world.query("SELECT count(*) || '' FROM artifacts").await, ["1"]);
    assert_eq!(world.query("SELECT count(*) || '' FROM tasks").await, ["2"]);
    assert_eq!(code(&society.write(post("go away")).await), "key_reused");
    let other_file = UserMessage { attachments: vec![Attachment::New(file("other"))], ..post("go") };
    assert_eq!(code(&society.write(other_file).await), "key_reused");
    let long = UserMessage { key: Some("k".repeat(MAX_KEY_BYTES + 1)), ..post("go") };
    assert_eq!(code(&society.write(long).await), "invalid_arguments");
    // The key of a refused message can be used again.
    let refused = UserMessage { key: Some("key-2".to_owned()), ..UserMessage::text("nobody", "go") };
    assert_eq!(code(&society.write(refused).await), "unknown_contact");
    let again = UserMessage { key: Some("key-2".to_owned()), ..post("go") };
    assert_eq!(code(&society.write(again).await), "ok");
}

#[tokio::test]
async fn what_was_taken_under_a_key_is_told_although_it_would_be_refused_now() {
    let mut world = World::new().await;
    let post = || UserMessage {
        key: Some("key-1".to_owned()),
        attachments: vec![Attachment::New(file(&"x".repeat(5000)))],
        service: Some(ServiceId::new("eyes")),
        ..UserMessage::text("root", "go")
    };
    let first = society(&world).0.write(post()).await.unwrap();
    let strict = World::with(&json!({"maxArtifactBytes": 4000})).await;
    world.registry = std::sync::Arc::clone(&strict.registry);
    let (society, _) = society(&world);
    let again = society.write(post()).await.unwrap();
    assert_eq!((again.duplicate, &again.id), (true, &first.id));
    let new = UserMessage { key: Some("key-2".to_owned()), ..post() };
    assert_eq!(code(&society.write(new).await), "limit_reached");
    let other = UserMessage { attachments: Vec::new(), ..post() };
    assert_eq!(code(&society.write(other).await), "key_reused");
}

#[tokio::test]
async fn the_order_of_fields_makes_no_other_message() {
    let world = World::new().await;
    let (society, _) = society(&world);
    let post = |payload: &str| UserMessage {
        key: Some("key-1".to_owned()),
        payload: serde_json::from_str(payload).unwrap(),
        ..UserMessage::text("root", "")
    };
    let first = society
        .write(post(r#"{"text": "go", "how": {"far": 1, "fast": [{"a": 1, "b": 2}]}}"#))
        .await
        .unwrap();
    let same = society
        .write(post(r#"{"how": {"fast": [{"b": 2, "a": 1}], "far": 1}, "text": "go"}"#))
        .await
        .unwrap();
    assert_eq!((same.duplicate, same.id), (true, first.id));
    let other = r#"{"how": {"fast": [{"b": 1, "a": 2}], "far": 1}, "text": "go"}"#;
    assert_eq!(code(&society.write(post(other)).await), "key_reused");
}

#[tokio::test]
async fn the_time_of_a_task_counts_as_it_runs_also_where_the_task_is_not_named() {
    let world = World::with(&json!({"maxSecondsPerTask": 5})).await;
    let (society, _) = society(&world);
    let reader = world.hire("root", "reader", json!({})).await;
    sql(&world, "UPDATE tasks SET worked_ms = 60000".to_owned()).await;
    let _at_work = society.handles.budgets.work(&world.store, &world.task).await.unwrap();
    // Make the stored time lower than the real time, which is in memory.
    sql(
        &world,
        "UPDATE tasks SET worked_ms = 0, stopped_by = 'maxSecondsPerTask', state = 'idle'".to_owned(),
    )
    .await;
    assert_eq!(code(&society.write(UserMessage::text(&reader, "go on")).await), "limit_reached");
    let named = UserMessage { task: Some(world.task.clone()), ..UserMessage::text(&reader, "go on") };
    assert_eq!(code(&society.write(named).await), "limit_reached");
}

#[tokio::test]
async fn a_key_is_forgotten_with_its_task_and_the_task_cannot_be_gone_on_with() {
    let world = World::new().await;
    let (society, _) = society(&world);
    let post = || UserMessage { key: Some("key-1".to_owned()), ..UserMessage::text("root", "go") };
    let first = society.write(post()).await.unwrap();
    world.add_task("t-newest").await;
    sql(&world, "UPDATE tasks SET state = 'idle' WHERE id <> 't-newest'".to_owned()).await;
    sql(&world, "UPDATE messages SET state = 'done'".to_owned()).await;
    assert_eq!(polity_store::maintenance::keep_within(&world.store, 1).await.unwrap(), 2);
    let again = UserMessage { task: Some(first.task.clone()), ..UserMessage::text("root", "more") };
    assert_eq!(code(&society.write(again).await), "not_found");
    let second = society.write(post()).await.unwrap();
    assert!(!second.duplicate);
    assert_ne!(second.task, first.task);
    let forgotten = society.task(&first.task).await.unwrap().unwrap();
    assert_eq!((forgotten.title.as_str(), forgotten.outcome), ("", None));
    assert!(forgotten.forgotten_at.is_some());
}

#[tokio::test]
async fn what_the_person_stores_is_sent_later_and_belongs_to_the_task_then() {
    let world = World::new().await;
    let (society, _) = society(&world);
    let stored = society.put_artifact(file("notes"), None).await.unwrap();
    assert_eq!((stored.task.as_ref(), stored.owner.as_str(), stored.size), (None, "user", 5));
    assert_eq!(society.artifact(&stored.id).await.unwrap(), Some(stored.clone()));
    let content = society.artifact_content(&stored.id).await.unwrap().unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut { content.file.file }, &mut text).unwrap();
    assert_eq!((text.as_str(), content.file.size), ("notes", 5));
    assert!(society.artifact_content(&ArtifactId::new("../x")).await.unwrap().is_none());

    let post = UserMessage {
        attachments: vec![Attachment::Stored(stored.id.clone())],
        ..UserMessage::text("root", "")
    };
    let posted = society.write(post).await.unwrap();
    let message = society.message(&posted.id).await.unwrap().unwrap();
    assert_eq!(message.attachments.iter().map(|artifact| &artifact.id).collect::<Vec<_>>(), [&stored.id]);
    let filter = ArtifactFilter { task: Some(posted.task.clone()), ..ArtifactFilter::default() };
    assert_eq!(society.artifacts(&filter).await.unwrap().artifacts.len(), 1);
    let may_open = world.query("SELECT agent FROM artifact_grants ORDER BY agent").await;
    assert_eq!(may_open, ["root", "user"]);
    let elsewhere = society.put_artifact(file("x"), Some(TaskId::new("t-none"))).await;
    assert_eq!(elsewhere.unwrap_err().code(), "not_found");
}

#[tokio::test]
async fn what_nobody_was_sent_is_removed_when_room_is_made() {
    let world = World::new().await;
    let (society, _) = society(&world);
    let stored = society.put_artifact(file("notes"), None).await.unwrap();
    let mut reader = world.store.reader().await.unwrap();
    let find = polity_store::maintenance::unneeded::find(&mut reader, Timestamp::MAX).await.unwrap();
    assert!(find.contains(&stored.id));
    let then = Timestamp::from_millis(stored.created_at);
    let find = polity_store::maintenance::unneeded::find(&mut reader, then).await.unwrap();
    assert!(!find.contains(&stored.id));
}

#[tokio::test]
async fn what_was_stored_and_never_sent_goes_after_a_day() {
    let world = World::new().await;
    let (society, _) = society(&world);
    let unsent = society.put_artifact(file("unsent"), None).await.unwrap();
    let sent = society.put_artifact(file("sent"), None).await.unwrap();
    let of_task = society.put_artifact(file("of the task"), Some(world.task.clone())).await.unwrap();
    let post = UserMessage {
        attachments: vec![Attachment::Stored(sent.id.clone())],
        ..UserMessage::text("root", "")
    };
    society.write(post).await.unwrap();
    let day = 24 * 60 * 60 * 1000;
    let remove = async |now: i64| {
        let now = Timestamp::from_millis(now);
        polity_store::maintenance::remove_unsent(&world.store, now).await.unwrap()
    };
    assert_eq!(remove(unsent.created_at + day).await, 0);
    assert_eq!(remove(unsent.created_at + day + 1000).await, 1);
    assert_eq!(society.artifact(&unsent.id).await.unwrap(), None);
    for kept in [&sent, &of_task] {
        assert!(society.artifact(&kept.id).await.unwrap().is_some());
    }
    assert_eq!(
        world
            .query("SELECT agent FROM artifact_grants WHERE artifact NOT IN (SELECT id FROM artifacts)")
            .await
            .len(),
        0
    );
}

#[tokio::test]
async fn a_role_is_changed_and_told_of_once() {
    let world = World::new().await;
    let (society, _) = society(&world);
    world.hire("root", "reader", json!({})).await;
    let id = RoleId::new(&world.query("SELECT id FROM roles").await[0]);
    let patch = RolePatch {
        prompt: Some("read well".to_owned()),
        service_id: Some(ServiceId::new("eyes")),
        ..RolePatch::default()
    };
    let role = society.patch_role(&id, patch.clone()).await.unwrap();
    assert_eq!((role.prompt.as_str(), role.service_id.as_str(), role.agents), ("read well", "eyes", 1));
    assert_eq!(society.role(&id).await.unwrap(), Some(role.clone()));
    assert_eq!(society.patch_role(&id, patch).await.unwrap(), role);
    let told: Vec<Vec<String>> = events(&society)
        .await
        .into_iter()
        .filter_map(|event| match event {
            Event::RoleChanged { fields, .. } => Some(fields),
            _ => None,
        })
        .collect();
    assert_eq!(told, [["prompt", "serviceId"]]);
    let refused = |patch: RolePatch| {
        let (society, id) = (&society, id.clone());
        async move { society.patch_role(&id, patch).await.unwrap_err().code() }
    };
    assert_eq!(
        refused(RolePatch { prompt: Some(" ".to_owned()), ..RolePatch::default() }).await,
        "invalid_arguments"
    );
    let nowhere = RolePatch { service_id: Some(ServiceId::new("none")), ..RolePatch::default() };
    assert_eq!(refused(nowhere).await, "invalid_arguments");
    let missing = society.patch_role(&RoleId::new("role-none"), RolePatch::default()).await;
    assert_eq!(missing.unwrap_err().code(), "not_found");
}

#[tokio::test]
async fn a_preview_gives_tools_as_the_next_call_would_and_tells_what_waits() {
    let world = World::with(&json!({"maxToolRounds": 2})).await;
    let (society, _) = society(&world);
    world.say("user", "root", json!("go")).await;
    let turn = world.begin_turn("root").await;
    world.say("user", "root", json!("and hurry")).await;
    let root = AgentId::root();
    let mut seen = Vec::new();
    for round in 0..3 {
        let preview = society.preview(&root, None, crate::Bytes::Counted).await.unwrap().unwrap();
        assert_eq!(preview.queued, 1);
        seen.push(preview.request["tool_choice"].clone());
        let conversation = world.of("root");
        world
            .write(move |tx| {
                Box::pin(async move {
                    let call = ToolCall {
                        id: format!("call_{round}"),
                        name: "get_org_structure".to_owned(),
                        arguments: Arguments::Object(serde_json::Map::new()),
                        extra: serde_json::Map::new(),
                    };
                    let result = ToolResult::Json(json!({}));
                    let finished = Record::ToolFinished { call: CallId::new(call.id.clone()), result };
                    let replied = Record::Replied(Replied { calls: vec![call], ..Replied::default() });
                    records::append(tx, &conversation, turn, &replied).await?;
                    records::append(tx, &conversation, turn, &finished).await
                })
            })
            .await;
    }
    // In the last round, the model must not call tools any more. In the other rounds, the request does not mention a
    // tool choice.
    assert_eq!(seen, [Value::Null, Value::Null, json!("none")]);
}

#[tokio::test]
async fn a_preview_is_the_request_that_would_be_sent_and_changes_nothing() {
    let world = World::new().await;
    let (society, model) = society(&world);
    let reader = world.hire("root", "reader", json!({"serviceId": "eyes"})).await;
    world.say("root", &reader, json!("look at the sea")).await;
    world.begin_turn(&reader).await;
    let reader = AgentId::new(reader);
    let before = world.dump().await;
    let preview = society.preview(&reader, None, crate::Bytes::Counted).await.unwrap().unwrap();
    assert_eq!((preview.service.as_str(), preview.model.as_str()), ("eyes", "eyes-1"));
    let request = &preview.request;
    assert_eq!(request["model"], "eyes-1");
    assert_eq!(request["messages"][0]["role"], "system");
    assert!(request["messages"].to_string().contains("look at the sea"), "{request}");
    assert!(request["tools"].as_array().is_some_and(|tools| !tools.is_empty()));
    assert!(preview.estimated_tokens > 0);
    assert_eq!(world.dump().await, before);
    assert_eq!(model.asked(), 0);
    // A change of the role shows in the next request.
    let id = RoleId::new(&world.query("SELECT id FROM roles").await[0]);
    let patch = RolePatch {
        prompt: Some("be brief about it".to_owned()),
        service_id: Some(ServiceId::new("words")),
        ..RolePatch::default()
    };
    society.patch_role(&id, patch).await.unwrap();
    let preview = society.preview(&reader, None, crate::Bytes::Counted).await.unwrap().unwrap();
    assert_eq!(preview.service.as_str(), "words");
    let system: &Value = &preview.request["messages"][0];
    assert!(system.to_string().contains("be brief about it"), "{system}");
    assert_eq!((preview.revision, preview.queued), (world.snapshot.catalogue.revision(), 0));
    for nobody in ["user", "nobody-1"] {
        let preview = society.preview(&AgentId::new(nobody), None, crate::Bytes::Counted).await.unwrap();
        assert!(preview.is_none());
    }
}
