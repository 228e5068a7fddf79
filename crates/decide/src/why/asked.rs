//! Explains a question to the person: may an agent make a call?

use super::stopped::stop_when;
use polity_store::Conversation;
use polity_store::approvals::Approval;
use polity_view::{ApprovalState, Entry, Fact, Why, WhyRemedy};

/// Longest beginning of the arguments of the call, in characters.
const ARGUMENTS_CHARS: usize = 200;

/// Explains a question: why the person is asked, or how the question ended. `stops` contains the events that the person
/// stopped the agent in the task of the question.
pub fn asked(approval: &Approval, stops: &[Entry]) -> Why {
    let Approval {
        id, asker: Conversation { agent, task }, asked, state, note, asked_at, answered_at, ..
    } = approval;
    let at = answered_at.map(|at| at.as_millis());
    let question = Fact::CallAsked {
        approval: id.clone(),
        agent: agent.clone(),
        task: task.clone(),
        tool: asked.tool.clone(),
        arguments: beginning(&asked.arguments.to_string()),
        state: *state,
        since: asked_at.as_millis(),
        at,
        reason: note.clone(),
    };
    let mut why = Why { chain: vec![question], remedies: Vec::new() };
    match state {
        ApprovalState::Open => {
            why.chain.push(Fact::Said { text: asked.why.clone() });
            if !asked.way.is_empty() {
                why.chain.push(Fact::Said { text: asked.way.join(" → ") });
            }
            why.remedies.push(WhyRemedy::Decide { approval: id.clone() });
        }
        ApprovalState::Dropped => {
            why.chain.extend(at.and_then(|at| stop_when(stops, agent, task, at)));
        }
        ApprovalState::Allowed | ApprovalState::Denied | ApprovalState::Expired => {}
    }
    why
}

fn beginning(text: &str) -> String {
    match text.char_indices().nth(ARGUMENTS_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_society::id::{AgentId, ApprovalId, CallId, TaskId, TurnId};
    use polity_society::time::Timestamp;
    use polity_store::approvals::{NewApproval, Scope};
    use polity_view::Event;
    use serde_json::json;

    fn approval(state: ApprovalState, note: Option<&str>) -> Approval {
        let asker = Conversation { agent: AgentId::new("mara"), task: TaskId::new("t-1") };
        let asked = NewApproval {
            turn: TurnId::new(7),
            call: CallId::new("call-1"),
            tool: "http_request".to_owned(),
            role: "reader".to_owned(),
            arguments: json!({"url": "https://polity.example/"}),
            preview: None,
            remembered: json!({}),
            why: "the web request can change something".to_owned(),
            scope: Scope::Call,
            way: Vec::new(),
            expires_at: Timestamp::from_millis(90_000),
        };
        Approval {
            id: ApprovalId::from_number(3),
            asker,
            asked,
            state,
            answer: None,
            note: note.map(str::to_owned),
            asked_at: Timestamp::from_millis(10_000),
            answered_at: (state != ApprovalState::Open).then(|| Timestamp::from_millis(70_000)),
        }
    }

    fn words(approval: &Approval, stops: &[Entry]) -> String {
        let why = asked(approval, stops);
        let facts = why.chain.iter().map(|fact| fact.sentence(100_000));
        let remedies = why.remedies.iter().flat_map(|remedy| remedy.sentences(""));
        facts.chain(remedies).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_question_is_explained_while_it_is_open_and_by_how_it_ended() {
        insta::assert_snapshot!(words(&approval(ApprovalState::Open, None), &[]), @r#"
        mara asked 1 min 30 s ago whether it may call http_request {"url":"https://polity.example/"} in t-1
        the web request can change something
        allow the call: polity approve q3
        refuse the call: polity deny q3
        "#);
        let mut of_stranger = approval(ApprovalState::Open, None);
        of_stranger.asked.way = vec!["https://polity.example/".to_owned(), "mara".to_owned()];
        let told = words(&of_stranger, &[]);
        assert!(told.contains("\nhttps://polity.example/ → mara\nallow the call"), "{told}");
        let ended = |state, note| words(&approval(state, note), &[]);
        insta::assert_snapshot!(ended(ApprovalState::Allowed, None), @r#"you allowed mara to call http_request {"url":"https://polity.example/"} in t-1, 30 s ago"#);
        insta::assert_snapshot!(ended(ApprovalState::Denied, Some("not there")), @r#"you did not allow mara to call http_request {"url":"https://polity.example/"} in t-1, 30 s ago: not there"#);
        insta::assert_snapshot!(ended(ApprovalState::Expired, None), @r#"nobody answered in time whether mara may call http_request {"url":"https://polity.example/"} in t-1"#);
        let dropped = approval(ApprovalState::Dropped, None);
        insta::assert_snapshot!(words(&dropped, &[]), @r#"the turn of mara that wanted to call http_request {"url":"https://polity.example/"} in t-1 ended before you answered"#);
        let stopped = Event::AgentStopped { task: TaskId::new("t-1"), agent: AgentId::new("mara") };
        let stop = |at| Entry { seq: 1, at, event: stopped.clone() };
        assert_eq!(words(&dropped, &[stop(60_000)]), words(&dropped, &[]), "the agent was stopped before");
        let told = words(&dropped, &[stop(60_000), stop(70_000)]);
        assert!(told.ends_with("\nyou stopped the work of mara in t-1, 30 s ago"), "{told}");
    }

    #[test]
    fn long_arguments_are_cut() {
        assert_eq!(beginning(&"图".repeat(ARGUMENTS_CHARS)), "图".repeat(ARGUMENTS_CHARS));
        assert_eq!(beginning(&"图".repeat(500)), format!("{}…", "图".repeat(ARGUMENTS_CHARS)));
    }
}
