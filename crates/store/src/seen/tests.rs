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
