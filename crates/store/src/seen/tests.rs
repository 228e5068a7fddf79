use super::*;
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

/// The artifact `a1` belongs to the task `t-1`. In the task `t-2`, the agent `ben-2` opens it, and root gets a message
/// with it.
#[tokio::test]
async fn an_artifact_passes_on_its_sources_in_another_task() {
    let scratch = Scratch::new().await;
    scratch.add_task("t-2").await;
    scratch
        .execute(
            "INSERT INTO artifacts (id, task, owner, blob, kind, mime_type, size, meta, created_at)
                VALUES ('a1', 't-1', 'ann-1', 'b1', 'image', 'image/png', 1, '{}', 1)",
        )
        .await;
    let ben = Conversation { agent: AgentId::new("ben-2"), task: TaskId::new("t-2") };
    let opener = ben.clone();
    scratch
        .write(move |tx| {
            Box::pin(async move {
                let ann = conversation("ann-1");
                read(tx, &ann, &Source::Web, "fetch_page").await?;
                let (agent, artifact) =
                    (Holder::Agent(ann.agent.clone()), Holder::Artifact(ArtifactId::new("a1")));
                pass(tx, &ann.task, &agent, &artifact, &Step::Agent { agent: ann.agent }).await?;
                let step = Step::Artifact { artifact: ArtifactId::new("a1") };
                pass(tx, &opener.task, &artifact, &Holder::Agent(opener.agent), &step).await?;
                let id = messages::next_id(tx).await?;
                let message = rules::notice(id.clone(), opener.task, AgentId::root(), Notice::Nudge, None);
                messages::insert(tx, &message).await?;
                let attach = "UPDATE messages SET attachments = '[\"a1\"]'";
                polity_sql::query(attach).execute(&mut tx.connection).await?;
                heard(tx, &id).await
            })
        })
        .await;
    assert_eq!(
        scratch.query("SELECT task || ' ' || holder FROM seen ORDER BY task, holder").await,
        ["t-1 agent:ann-1", "t-1 artifact:a1", "t-2 agent:ben-2", "t-2 agent:root"]
    );
    let mut reader = scratch.store.reader().await.unwrap();
    let way = way(&mut reader, &ben, &Source::Web).await.unwrap();
    let holders: Vec<String> = way.iter().map(|passed| passed.holder.to_string()).collect();
    assert_eq!(holders, ["agent:ann-1", "artifact:a1", "agent:ben-2"]);
}
