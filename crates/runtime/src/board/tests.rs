use super::glimpses::{Seen, look};
use super::*;
use polity_llm::{Endpoint, Listener, Piece, Ticket};
use polity_society::id::AgentId;
use polity_view::{AgentState, EventFilter, NextAttempt};
use proptest::prelude::*;
use std::num::NonZeroUsize;

fn conversation(agent: &str, task: &str) -> Conversation {
    Conversation { agent: AgentId::new(agent), task: TaskId::new(task) }
}

fn answer(board: &Board) -> Arc<Answer> {
    let limits = Limits::of(&Endpoint::new("http://host", "m"), NextAttempt::Retry, None);
    Arc::new(Answer::new(board.number(), ServiceId::new("local"), 1, limits))
}

fn failed() -> Failed {
    Failed { service: ServiceId::new("local"), attempt: 1, of: 4, why: "busy".to_owned(), at: 0 }
}

/// Puts an agent into the queue of a gate.
fn queued(gate: &Arc<Gate>, failed: Option<Failed>) -> (Ticket, Moment) {
    let ticket = gate.join();
    let (gate, number) = (Arc::clone(gate), ticket.number());
    (ticket, Moment::Queued(Queued { service: ServiceId::new("local"), gate, ticket: number, failed }))
}

fn doing(board: &Board, conversation: &Conversation) -> Option<Doing> {
    let moments = board.moments(Some(&conversation.task), 0);
    moments.in_task(&conversation.agent, &conversation.task).cloned()
}

#[test]
fn a_moment_is_there_until_it_ends_or_another_replaces_it() {
    let (board, root) = (Board::default(), conversation("root", "t-1"));
    let running = board.show(&root, Moment::Running(vec!["bash".to_owned(), "fetch".to_owned()]));
    running.ended("bash");
    running.ended("fetch");
    let Some(Doing::Running { tools, .. }) = doing(&board, &root) else { panic!() };
    assert_eq!(tools, ["fetch"]);
    let thinking = board.show(&root, Moment::Thinking(answer(&board)));
    // On the board, `thinking` has replaced `running`. So dropping `running` must not remove `thinking`.
    drop(running);
    assert_eq!(doing(&board, &root).map(|doing| doing.state()), Some(AgentState::Thinking));
    drop(thinking);
    assert_eq!(doing(&board, &root), None);
}

#[tokio::test(start_paused = true)]
async fn a_pause_after_a_failure_is_told_while_the_gate_is_closed() {
    let (board, gate) = (Board::default(), Arc::new(Gate::new(NonZeroUsize::new(1))));
    let (one, other) = (conversation("one", "t-1"), conversation("other", "t-1"));
    gate.pause(Duration::from_secs(9));
    let (_first, moment) = queued(&gate, Some(failed()));
    let _one = board.show(&one, moment);
    let (_second, moment) = queued(&gate, None);
    let _other = board.show(&other, moment);
    let Some(Doing::Retrying { attempt: 1, of: 4, until: 9_000, .. }) = doing(&board, &one) else { panic!() };
    let Some(Doing::Queued { place: Some(2), closed_until: Some(9_000), .. }) = doing(&board, &other) else {
        panic!()
    };
    tokio::time::advance(Duration::from_secs(9)).await;
    let Some(Doing::Queued { place: Some(1), closed_until: None, .. }) = doing(&board, &one) else {
        panic!()
    };
}

#[test]
fn root_is_shown_at_what_matters_most() {
    let board = Board::default();
    let (one, other) = (conversation("root", "t-1"), conversation("root", "t-2"));
    let _retrying = board.show(&one, Moment::Retrying { failed: failed(), until: 5 });
    let _thinking = board.show(&other, Moment::Thinking(answer(&board)));
    let state = |task: Option<&str>| {
        let moments = board.moments(task.map(TaskId::new).as_ref(), 0);
        moments.of(&AgentId::root()).first().map(Doing::state)
    };
    assert_eq!(state(None), Some(AgentState::Thinking));
    assert_eq!(state(Some("t-1")), Some(AgentState::Retrying));
    assert_eq!(state(Some("t-3")), None);
}

#[test]
fn a_reader_sees_each_change_once() {
    let (board, root) = (Board::default(), conversation("root", "t-1"));
    let (all, mut seen) = (EventFilter::default(), HashMap::<Conversation, Seen>::new());
    let mut look = |filter: &EventFilter| look(&board.entries(), filter, &mut seen, now());
    assert_eq!(look(&all), []);
    let answer = answer(&board);
    let thinking = board.show(&root, Moment::Thinking(Arc::clone(&answer)));
    assert_eq!(look(&EventFilter { agent: Some(AgentId::new("other")), ..all.clone() }), []);
    assert_eq!(look(&EventFilter { task: Some(TaskId::new("t-2")), ..all.clone() }), []);
    let glimpses = look(&all);
    assert_eq!(glimpses.len(), 1);
    assert!(glimpses[0].doing.is_some() && glimpses[0].said.is_none());
    assert_eq!(look(&all), []);
    for (piece, expect) in [("abc", "abc"), ("d", "d")] {
        answer.hear(Piece::Text(piece));
        let said = look(&all).pop().and_then(|glimpse| glimpse.said).unwrap();
        assert_eq!((said.answer, said.text.as_str()), (answer.number, expect));
    }
    drop(thinking);
    let glimpses = look(&all);
    assert_eq!(
        glimpses,
        [polity_view::Glimpse {
            agent: root.agent.clone(),
            task: root.task.clone(),
            doing: None,
            said: None
        }]
    );
    assert_eq!(look(&all), []);
}

/// What a conversation does at the gate.
#[derive(Clone, Copy, Debug)]
enum Step {
    Join,
    Enter,
    Leave,
}

proptest! {
    /// The conversations do random things at the gate. Each conversation always has at most one entry on the board. The
    /// gate's limit bounds how many conversations think at the same time. The conversations in the queue have the
    /// places 1, 2, 3 and so on.
    #[test]
    fn no_more_agents_think_than_there_are_places(
        places in 1_usize..4,
        steps in prop::collection::vec(
            (0_usize..8, prop::sample::select(vec![Step::Join, Step::Enter, Step::Leave])),
            0..60,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _entered = runtime.enter();
        let board = Board::default();
        let gate = Arc::new(Gate::new(NonZeroUsize::new(places)));
        let agents: Vec<Conversation> = (0..8).map(|agent| conversation(&format!("a-{agent}"), "t")).collect();
        let mut tickets: Vec<Option<(Ticket, Shown<'_>)>> = (0..8).map(|_| None).collect();
        let mut passes: Vec<Option<(polity_llm::Pass, Shown<'_>)>> = (0..8).map(|_| None).collect();
        let patience = polity_llm::Patience { longest_pause: Duration::MAX, while_open: polity_llm::WhileOpen::Wait };
        for (agent, step) in steps {
            match step {
                Step::Join if tickets[agent].is_none() && passes[agent].is_none() => {
                    let (ticket, moment) = queued(&gate, None);
                    tickets[agent] = Some((ticket, board.show(&agents[agent], moment)));
                }
                Step::Enter if gate.status().in_flight < places as u64 => {
                    if let Some((ticket, shown)) = tickets[agent].take() {
                        let pass = runtime.block_on(ticket.enter(patience)).unwrap();
                        let thinking = board.show(&agents[agent], Moment::Thinking(answer(&board)));
                        drop(shown);
                        passes[agent] = Some((pass, thinking));
                    }
                }
                Step::Leave => (tickets[agent], passes[agent]) = (None, None),
                Step::Join | Step::Enter => {}
            }
            let all: Vec<Doing> = agents.iter().filter_map(|agent| doing(&board, agent)).collect();
            let thinking = all.iter().filter(|doing| doing.state() == AgentState::Thinking).count();
            prop_assert!(thinking <= places);
            prop_assert_eq!(thinking, passes.iter().flatten().count());
            let mut queue: Vec<u64> = all
                .iter()
                .filter_map(|doing| if let Doing::Queued { place, .. } = doing { *place } else { None })
                .collect();
            queue.sort_unstable();
            prop_assert_eq!(queue, (1..=tickets.iter().flatten().count() as u64).collect::<Vec<_>>());
        }
    }
}
