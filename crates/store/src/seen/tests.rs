use super::*;
use crate::maintenance::{forget, unneeded};
use crate::messages;
use crate::testing::{Scratch, conversation};
use polity_society::id::ServiceId;
use polity_society::notice::Notice;
use polity_society::rules;

/// The agent `ann-1` has seen the web, and root hears this notice. Returns the agents from which root has got content of
/// the web.
async fn heard_from(notice: Notice) -> Vec<String> {
    let scratch = Scratch::new().await;
    scratch
        .write(move |tx| {
            Box::pin(async move {
                let ann = conversation("ann-1");
                read(tx, &ann, &Source::Web, "fetch_page").await?;
                let id = messages::next_id(tx).await?;
                let message = rules::notice(id.clone(), ann.task, AgentId::root(), notice, None);
                messages::insert(tx, &message).await?;
                heard(tx, &id).await
            })
        })
        .await;
    scratch.query("SELECT way ->> '$.from' FROM seen WHERE holder = 'agent:root'").await
}

#[tokio::test]
async fn a_notice_passes_on_the_sources_of_the_agent_whose_words_it_contains() {
    let (ann, ben) = (|| AgentId::new("ann-1"), || AgentId::new("ben-2"));
    let (reason, role, notes) = (|| "pay".to_owned(), || "reader".to_owned(), || vec!["pay".to_owned()]);
    let message = || MessageId::from_sequence(7);
    let (requests, artifacts) = (Vec::new, Vec::new);
    for notice in [
        Notice::Unanswered { agent: ann(), requests: requests(), notes: notes(), artifacts: artifacts() },
        Notice::Leftover { agent: ann(), notes: notes(), artifacts: artifacts() },
        Notice::ReceiverFailed { agent: ann(), message: message(), reason: reason() },
        Notice::AgentFailed {
            agent: ann(),
            role: role(),
            service: ServiceId::new("words"),
            reason: reason(),
        },
        Notice::Parked { agent: ann(), role: role(), reason: reason() },
        Notice::Terminated { agent: ben(), by: Some(ann()), reason: reason() },
    ] {
        assert_eq!(heard_from(notice.clone()).await, ["ann-1"], "{notice:?}");
    }
    for notice in [
        Notice::Bounced { to: ann(), message: message() },
        Notice::Stopped { agent: ann(), message: message() },
        Notice::PairLimit { agent: ann(), limit: 3 },
        Notice::Terminated { agent: ann(), by: Some(ben()), reason: reason() },
    ] {
        assert_eq!(heard_from(notice.clone()).await, [""; 0], "{notice:?}");
    }
}

/// Creates the tasks `t-1` and `t-2`. The agent `ann-1` has seen the web in `t-1`, and has stored the artifact `a1`
/// there.
async fn with_artifact() -> Scratch {
    let scratch = Scratch::new().await;
    scratch.add_task("t-2").await;
    scratch
        .execute(
            "INSERT INTO artifacts (id, task, owner, blob, kind, mime_type, size, meta, created_at)
                VALUES ('a1', 't-1', 'ann-1', 'b1', 'image', 'image/png', 1, '{}', 1)",
        )
        .await;
    scratch
        .write(|tx| {
            Box::pin(async move {
                let ann = conversation("ann-1");
                read(tx, &ann, &Source::Web, "fetch_page").await?;
                let (agent, artifact) =
                    (Holder::Agent(ann.agent.clone()), Holder::Artifact(ArtifactId::new("a1")));
                pass(tx, &ann.task, &agent, &artifact, &Step::Agent { agent: ann.agent }).await
            })
        })
        .await;
    scratch
}

/// The agent `ben-2` opens the artifact `a1` in the task `t-2`. Returns the holders on the way of the web to `ben-2`.
async fn open(scratch: &Scratch) -> Vec<String> {
    let ben = Conversation { agent: AgentId::new("ben-2"), task: TaskId::new("t-2") };
    let opener = ben.clone();
    scratch
        .write(move |tx| {
            Box::pin(async move {
                let artifact = ArtifactId::new("a1");
                let (from, step) = (Holder::Artifact(artifact.clone()), Step::Artifact { artifact });
                pass(tx, &opener.task, &from, &Holder::Agent(opener.agent), &step).await
            })
        })
        .await;
    let way = way(&mut scratch.store.reader().await.unwrap(), &ben, &Source::Web).await.unwrap();
    way.iter().map(|passed| passed.holder.to_string()).collect()
}

const HOLDERS: &str = "SELECT task || ' ' || holder FROM seen ORDER BY task, holder";

/// In the task `t-2`, the agent `ben-2` opens `a1`, and root gets a message with it.
#[tokio::test]
async fn an_artifact_passes_on_its_sources_in_another_task() {
    let scratch = with_artifact().await;
    assert_eq!(open(&scratch).await, ["agent:ann-1", "artifact:a1", "agent:ben-2"]);
    scratch
        .write(|tx| {
            Box::pin(async move {
                let id = messages::next_id(tx).await?;
                let task = TaskId::new("t-2");
                let message = rules::notice(id.clone(), task, AgentId::root(), Notice::Nudge, None);
                messages::insert(tx, &message).await?;
                let attach = "UPDATE messages SET attachments = '[\"a1\"]'";
                polity_sql::query(attach).execute(&mut tx.connection).await?;
                heard(tx, &id).await
            })
        })
        .await;
    assert_eq!(
        scratch.query(HOLDERS).await,
        ["t-1 agent:ann-1", "t-1 artifact:a1", "t-2 agent:ben-2", "t-2 agent:root"]
    );
}

/// The task `t-2` is a fork of `t-1` and has inherited `a1`. So `a1` stays when `t-1` is forgotten.
#[tokio::test]
async fn an_artifact_keeps_its_sources_until_it_is_removed() {
    let scratch = with_artifact().await;
    scratch
        .execute(
            "UPDATE tasks SET state = 'idle' WHERE id = 't-1';
            INSERT INTO inherited (task, artifact) VALUES ('t-2', 'a1')",
        )
        .await;
    let oldest = forget::oldest(&mut scratch.store.reader().await.unwrap(), 0).await.unwrap().unwrap();
    assert!(scratch.write(move |tx| Box::pin(async move { forget::forget(tx, oldest).await })).await);
    assert_eq!(open(&scratch).await, ["artifact:a1", "agent:ben-2"]);
    assert_eq!(scratch.query(HOLDERS).await, ["t-1 artifact:a1", "t-2 agent:ben-2"]);

    // The fork has a copy of the row.
    scratch
        .execute(
            "INSERT INTO seen (task, holder, source, way, since)
                SELECT 't-2', holder, source, way, since FROM seen WHERE task = 't-1'",
        )
        .await;
    let removed = BTreeSet::from([ArtifactId::new("a1")]);
    scratch.write(move |tx| Box::pin(async move { unneeded::remove(tx, &removed).await })).await;
    assert_eq!(scratch.query(HOLDERS).await, ["t-2 agent:ben-2"]);
}
