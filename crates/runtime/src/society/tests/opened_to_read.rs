use super::*;
use crate::testing::tool::shipped_hands;
use bytes::Bytes;
use polity_view::{AgentFilter, MessageFilter, TaskFilter};
use serde_json::json;

/// Opens the society of a world read-only, while the world's own society is open too.
async fn opened(world: &World) -> (Result<Society, Error>, Arc<ScriptedModel>) {
    let model = ScriptedModel::always(Say::Hang);
    let parts = Parts {
        registry: Arc::clone(&world.registry),
        model: model.clone(),
        hands: polity_hands::table::Hands::none(),
        extractor: None,
    };
    (Society::open_to_read(world.directory.path(), parts).await, model)
}

#[tokio::test]
async fn what_is_written_is_read_by_whoever_only_reads() {
    let world = World::new().await;
    let (running, _) = society(&world);
    let reader = world.hire("root", "reader", json!({})).await;
    let (society, model) = opened(&world).await;
    let society = society.unwrap();
    // The read-only society can also read a later write, even while the write is only in the log (WAL).
    world.say("root", &reader, json!("读")).await;
    let messages = MessageFilter::default();
    assert_eq!(society.messages(&messages).await.unwrap(), running.messages(&messages).await.unwrap());
    assert_eq!(society.messages(&messages).await.unwrap().messages.len(), 1);
    let agents = AgentFilter::default();
    assert_eq!(society.agents(&agents).await.unwrap(), running.agents(&agents).await.unwrap());
    let tasks = TaskFilter::default();
    assert_eq!(society.tasks(&tasks).await.unwrap(), running.tasks(&tasks).await.unwrap());
    assert_eq!(society.services().await.unwrap(), running.services().await.unwrap());
    // No agent works: queued messages stay queued.
    assert_eq!(society.open_tasks().await.unwrap(), std::slice::from_ref(&world.task));
    assert_eq!(model.asked(), 0);
    society.drain().await;
    society.stop().await;
    assert!(world.store.check_writable().is_ok(), "the other society can still write");
}

/// The program that sets up a sandbox is missing here. So a running society would offer no commands, and the preview
/// must not offer them either.
#[tokio::test]
async fn a_preview_finds_out_whether_commands_run_here() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    let parts = Parts {
        registry: Arc::clone(&world.registry),
        model: ScriptedModel::always(Say::Hang),
        hands: shipped_hands(),
        extractor: None,
    };
    let society = Society::open_to_read(world.directory.path(), parts).await.unwrap();
    let shown = society.preview(&AgentId::root(), None, crate::ask::Bytes::Counted).await.unwrap().unwrap();
    let tools = shown.request["tools"].as_array().unwrap();
    let offers = |name: &str| tools.iter().any(|tool| tool["function"]["name"] == name);
    assert!(offers("str_replace_editor") && !offers("bash"), "{tools:?}");
}

#[tokio::test]
async fn whoever_only_reads_writes_nothing() {
    let world = World::new().await;
    let (society, _) = opened(&world).await;
    let society = society.unwrap();
    let before = world.dump().await;
    let artifact = || NewArtifact {
        bytes: Bytes::from_static(b"report"),
        declared_mime: None,
        filename: None,
        label: None,
        meta: serde_json::Map::new(),
    };
    let prompt = Prompt { text: "what?".to_owned(), attachments: vec![artifact()], service: None };
    assert!(matches!(society.prompt(prompt).await, Err(PromptError::Store(Error::ReadOnly))));
    let stored = society.put_artifact(artifact(), None).await;
    assert!(matches!(stored, Err(WriteError::Store(Error::ReadOnly))));
    let mut post = UserMessage::text("root", "what?");
    post.attachments.push(Attachment::New(artifact()));
    assert!(matches!(society.write(post).await, Err(WriteError::Store(Error::ReadOnly))));
    let root = || Target::Subtree(AgentId::root());
    assert!(matches!(society.pause(root()).await, Err(SteerError::Store(Error::ReadOnly))));
    assert!(matches!(society.resume(root()).await, Err(SteerError::Store(Error::ReadOnly))));
    assert!(matches!(society.stop_work(root()).await, Err(SteerError::Store(Error::ReadOnly))));
    let shown = society.mark_shown(MessageId::new("m000000001")).await;
    assert!(matches!(shown, Err(Error::ReadOnly)));
    assert!(society.trouble().await.is_some_and(|trouble| trouble.contains("polity serve")));
    assert_eq!(world.dump().await, before);
    assert_eq!(world.blobs.list().await.unwrap(), [], "no blob without a row");
}

#[tokio::test]
async fn a_database_that_would_have_to_be_brought_up_to_date_is_not_read() {
    let world = World::new().await;
    sql(&world, "DELETE FROM _sqlx_migrations WHERE version > 1".to_owned()).await;
    assert!(matches!(opened(&world).await.0, Err(Error::Older { .. })));
    sql(&world, "UPDATE _sqlx_migrations SET version = 9999".to_owned()).await;
    assert!(matches!(opened(&world).await.0, Err(Error::Newer { found: 9999, .. })));
}

#[tokio::test]
async fn where_nothing_is_nothing_is_made() {
    let world = World::new().await;
    let directory = tempfile::tempdir().unwrap();
    let parts = Parts {
        registry: Arc::clone(&world.registry),
        model: ScriptedModel::always(Say::Hang),
        hands: polity_hands::table::Hands::none(),
        extractor: None,
    };
    let opened = Society::open_to_read(directory.path(), parts).await;
    assert!(matches!(opened, Err(Error::Open { .. })));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
