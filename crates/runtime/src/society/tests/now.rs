//! What the view of the present shows of an agent with several tasks.

use super::*;
use crate::board::{Answer, Limits, Moment};
use polity_llm::Endpoint;
use polity_society::id::{AgentId, ApprovalId, ServiceId, TaskId};
use polity_store::Conversation;
use polity_view::{AgentFilter, AgentState, NextAttempt, NowFilter, NowView, Remedy};
use serde_json::json;

const SECOND_PROMPT: &str = "INSERT INTO messages (seq, id, task, sender, sender_role, receiver, type, body,
    attachments, expects, finality, state, created_at) VALUES (100, 'm000000100', 't-2', 'user', 'r', 'root', 'general',
    '{\"text\": \"count the pages\"}', '[]', 'answer', 'final', 'queued', 2)";
const APPROVAL: &str =
    "INSERT INTO approvals (task, agent, turn, call, tool, role, arguments, remembered, why, scope,
    way, state, asked_at, expires_at)
    VALUES ('t-1', 'root', 1, 'c-1', 'run_command', 'root', '{}', '{}', '{}', 'call', '[]', 'open', 3, 9)";

/// Checks that root has the only card: with this state, and with the objective of this task.
#[track_caller]
fn check_card(now: &NowView, state: AgentState, task: &str, objective: &str) {
    let [card] = &now.working[..] else { panic!("not one card: {:?}", now.working) };
    let task = TaskId::new(task);
    assert_eq!((card.agent.state, card.agent.doing.task()), (state, Some(&task)), "{card:?}");
    assert_eq!((&card.active_in, card.objective.as_deref()), (&task, Some(objective)), "{card:?}");
}

/// Checks that the question about the call is stuck, and that its first remedy is to decide about it.
#[track_caller]
fn check_question(now: &NowView) {
    let [question] = &now.stuck[..] else { panic!("not one thing is stuck: {:?}", now.stuck) };
    assert_eq!(question.task, Some(TaskId::new("t-1")));
    assert_eq!(question.remedies[0], Remedy::Decide { approval: ApprovalId::from_number(1) });
}

/// Root asks the person about a call in the task `t-1`. For the task `t-2`, a request of root is at a server.
#[tokio::test]
async fn a_question_in_one_task_does_not_hide_a_request_at_a_server_for_another() {
    let world = World::new().await;
    world.add_task("t-2").await;
    let (society, _) = society(&world);
    world.say("user", "root", json!("ask me first")).await;
    world.begin_turn("root").await;
    sql(&world, APPROVAL.to_owned()).await;
    sql(&world, SECOND_PROMPT.to_owned()).await;
    let second = Conversation { agent: AgentId::root(), task: TaskId::new("t-2") };
    let limits = Limits::of(&Endpoint::new("http://host", "m"), NextAttempt::Retry, None);
    let answer = Answer::new(1, ServiceId::new("words"), 1, limits);
    let thinking = society.handles.board.show(&second, Moment::Thinking(Arc::new(answer)));
    let now = async || society.now(&NowFilter::default()).await.unwrap();
    let count = async |state: AgentState| {
        let filter = AgentFilter { state: Some(state), ..AgentFilter::default() };
        society.agents(&filter).await.unwrap().agents.len()
    };

    let at_server = now().await;
    check_card(&at_server, AgentState::Thinking, "t-2", "count the pages");
    check_question(&at_server);
    assert_eq!((at_server.working_total, at_server.at_work_total), (1, 1));
    assert_eq!((count(AgentState::Thinking).await, count(AgentState::Asking).await), (1, 0));

    // The answer has arrived, but root's work for the task `t-2` has not ended.
    drop(thinking);
    check_card(&now().await, AgentState::Ready, "t-2", "count the pages");
    assert_eq!((count(AgentState::Ready).await, count(AgentState::Asking).await), (1, 0));

    // Now root has nothing to do but to wait for the person.
    sql(&world, "UPDATE messages SET state = 'done' WHERE task = 't-2'".to_owned()).await;
    let asks = now().await;
    check_card(&asks, AgentState::Asking, "t-1", "ask me first");
    check_question(&asks);
    assert_eq!((asks.working_total, asks.at_work_total), (1, 0));
    assert_eq!((count(AgentState::Thinking).await, count(AgentState::Asking).await), (0, 1));
}
