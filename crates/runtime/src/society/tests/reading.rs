use super::*;
use crate::board::{Failed, Moment};
use polity_society::content::{Capability, Direction, Kind};
use polity_society::id::CommandId;
use polity_society::message::MessageState;
use polity_store::Conversation;
use polity_view::{
    AgentFilter, AgentState, AgentView, ArtifactFilter, CommandView, Doing, EventFilter, MessageFilter,
    Order, TaskFilter, UsageFilter,
};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;

/// A random agent.
#[derive(Clone, Debug)]
struct Seed {
    /// 0 means root. Higher numbers mean agents that were drawn before this agent.
    parent: usize,
    role: usize,
    second_task: bool,
    ended: bool,
    paused: bool,
    parked: bool,
    turning: bool,
    calls: u64,
}

/// A random message. In `from` and `to`, 0 is the person, 1 is root, and the numbers from 2 are the agents. `from` has
/// one more number, after that of the last agent: it is the system.
#[derive(Clone, Debug)]
struct Mail {
    from: usize,
    to: usize,
    asks: bool,
    state: &'static str,
    answered: bool,
}

const STATES: [&str; 7] = ["delayed", "queued", "in_turn", "done", "unanswered", "failed", "bounced"];
/// The service of each role. The last service does not exist any more.
const SERVICES: [&str; 3] = ["words", "eyes", "gone"];

fn seed() -> impl Strategy<Value = Seed> {
    let flag = || prop::bool::weighted(0.25);
    (any::<prop::sample::Index>(), 0..3_usize, any::<bool>(), flag(), flag(), flag(), flag(), 0..3_u64)
        .prop_map(|(parent, role, second_task, ended, paused, parked, turning, calls)| Seed {
            parent: parent.index(1000),
            role,
            second_task,
            ended,
            paused,
            parked,
            turning,
            calls,
        })
}

fn mail() -> impl Strategy<Value = Mail> {
    let state = prop::sample::select(&STATES[..]);
    (0..1000_usize, 0..1000_usize, any::<bool>(), state, prop::bool::weighted(0.3))
        .prop_map(|(from, to, asks, state, answered)| Mail { from, to, asks, state, answered })
}

/// All random agents and messages. Each message is listed with the ids of its sender and its receiver.
#[derive(Debug)]
struct Drawn {
    seeds: Vec<Seed>,
    mail: Vec<(String, String, Mail)>,
}

fn name(index: usize) -> String {
    format!("agent-{index:03}")
}

fn task_of(seed: &Seed) -> &'static str {
    if seed.second_task { "t-2" } else { "t-1" }
}

fn of_mail(mail: &Mail) -> &'static str {
    if mail.from.is_multiple_of(3) { "t-2" } else { "t-1" }
}

/// Returns what the test puts on the board for an agent. Two of three agents get something, even if they have no work.
fn moment_of(id: &str) -> Option<Moment> {
    let index: usize = id.strip_prefix("agent-")?.parse().unwrap();
    match index % 3 {
        0 => Some(Moment::Running(vec!["bash".to_owned()])),
        1 => {
            let (service, why) = (ServiceId::new("unknown"), "busy".to_owned());
            Some(Moment::Retrying { failed: Failed { service, attempt: 1, of: 3, why, at: 1 }, until: 2 })
        }
        _ => None,
    }
}

/// Checks that `doing` fits the state of an agent. Then returns the agent without these details.
fn without_details(agent: AgentView) -> AgentView {
    assert_eq!(agent.doing.state(), agent.state, "{agent:?}");
    AgentView { doing: Doing::Idle, ..agent }
}

impl Drawn {
    async fn write(world: &World, seeds: Vec<Seed>, mail: Vec<Mail>) -> Self {
        world.add_task("t-2").await;
        let mut rows = Vec::new();
        for (role, service) in SERVICES.iter().enumerate() {
            rows.push(format!(
                "INSERT INTO roles (id, task, creator, name, prompt, service, required_capabilities, tool_groups, created_at)
                 VALUES ('role-{role}', 't-1', 'root', 'role {role}', '…', '{service}', '[]', '[]', 1)"
            ));
        }
        for (index, seed) in seeds.iter().enumerate() {
            let parent = match seed.parent % (index + 1) {
                0 => "root".to_owned(),
                above => name(above - 1),
            };
            let when = |is: bool| if is { "7" } else { "NULL" };
            let (id, task) = (name(index), task_of(seed));
            rows.push(format!(
                "INSERT INTO agents (id, task, parent, role, depth, ended_at, paused_at, created_at)
                 VALUES ('{id}', '{task}', '{parent}', 'role-{}', 1, {}, {}, {index})",
                seed.role,
                when(seed.ended),
                when(seed.paused)
            ));
            if seed.parked {
                rows.push(format!("INSERT INTO holds VALUES ('{id}', '{task}', 'it failed', 1)"));
            }
            if seed.turning {
                rows.push(format!(
                    "INSERT INTO turns (agent, task, began_by, state, created_at) VALUES ('{id}', '{task}', 'm', 'open', 1)"
                ));
            }
            for _ in 0..seed.calls {
                rows.push(format!(
                    "INSERT INTO model_calls (task, agent, turn, service, model, revision, attempts, prompt_tokens,
                     completion_tokens, usage_source, created_at)
                     VALUES ('{task}', '{id}', 1, 'words', 'words-1', 1, 1, 10, 1, 'reported', 1)"
                ));
            }
        }
        let party = |at: usize| match at {
            0 => "user".to_owned(),
            1 => "root".to_owned(),
            at => name(at - 2),
        };
        let parties = seeds.len() + 2;
        let mut named = Vec::new();
        for (index, mail) in mail.into_iter().enumerate() {
            let (seq, to) = (index + 1, party(mail.to % parties));
            let from = mail.from % (parties + 1);
            let from = if from == parties { "system".to_owned() } else { party(from) };
            let (kind, body) = if from == "system" {
                ("notice", json!({"notice": "turn_failed", "reason": "x"}))
            } else {
                ("general", json!({"text": format!("message {seq}"), "extra": seq}))
            };
            rows.push(format!(
                "INSERT INTO messages (seq, id, task, sender, sender_role, receiver, type, body, attachments, expects,
                 finality, state, answered_by, created_at)
                 VALUES ({seq}, 'm{seq:09}', '{}', '{from}', 'r', '{to}', '{kind}', '{body}', '[]', '{}', 'final', '{}', {}, {seq})",
                of_mail(&mail),
                if mail.asks { "answer" } else { "nothing" },
                mail.state,
                if mail.answered { "'m000000001'" } else { "NULL" },
            ));
            named.push((from, to, mail));
        }
        world
            .write(move |tx| {
                Box::pin(async move {
                    for row in rows {
                        polity_sql::query(polity_sql::Sql::built(row)).execute(&mut tx.connection).await?;
                    }
                    Ok(())
                })
            })
            .await;
        Self { seeds, mail: named }
    }

    fn seed(&self, id: &str) -> Option<&Seed> {
        id.strip_prefix("agent-").map(|index| &self.seeds[index.parse::<usize>().unwrap()])
    }

    fn waits_for(&self, id: &str, task: Option<&str>) -> BTreeSet<String> {
        let open = |mail: &Mail| {
            mail.asks && !mail.answered && ["delayed", "queued", "in_turn", "done"].contains(&mail.state)
        };
        let meant = |mail: &Mail| task.is_none_or(|task| of_mail(mail) == task);
        let sent =
            self.mail.iter().filter(|(from, to, mail)| from == id && to != id && open(mail) && meant(mail));
        sent.map(|(_, to, _)| to.clone()).collect()
    }

    fn unread(&self, id: &str, task: Option<&str>) -> u64 {
        let meant = |mail: &Mail| task.is_none_or(|task| of_mail(mail) == task);
        self.mail.iter().filter(|(_, to, mail)| to == id && mail.state == "queued" && meant(mail)).count()
            as u64
    }

    /// Computes the state of an agent from the definitions of the states. If a task is given, only that task is
    /// considered.
    fn state(&self, id: &str, seed: Option<&Seed>, task: Option<&str>) -> AgentState {
        let is = |what: fn(&Seed) -> bool| seed.is_some_and(what);
        let own = seed.map(task_of);
        let works_in = |one: &str| {
            let has_work = (is(|seed| seed.turning) && own == Some(one)) || self.unread(id, Some(one)) > 0;
            let is_held = is(|seed| seed.parked) && own == Some(one);
            task.is_none_or(|task| task == one) && has_work && !is_held && id != "user"
        };
        if is(|seed| seed.ended) {
            AgentState::Ended
        } else if is(|seed| seed.paused) {
            AgentState::Paused
        } else if works_in("t-1") || works_in("t-2") {
            // The moment of an agent is in its own task.
            match moment_of(id).filter(|_| own.is_some_and(works_in)) {
                Some(Moment::Running(_)) => AgentState::Running,
                Some(_) => AgentState::Retrying,
                None => AgentState::Ready,
            }
        } else if is(|seed| seed.parked) {
            AgentState::Parked
        } else if self.waits_for(id, task).contains("user") {
            AgentState::Asking
        } else if !self.waits_for(id, task).is_empty() {
            AgentState::Waiting
        } else {
            AgentState::Idle
        }
    }
}

/// Reads all pages of agents, with `limit` agents on each page.
async fn all_agents(society: &Society, filter: &AgentFilter, limit: u32) -> Vec<polity_view::AgentView> {
    let mut all = Vec::new();
    let mut after = None;
    loop {
        let page = AgentFilter { after, limit: Some(limit), ..filter.clone() };
        let page = society.agents(&page).await.unwrap();
        assert!(page.agents.len() <= limit as usize);
        all.extend(page.agents);
        match page.next {
            Some(next) => after = Some(next),
            None => return all,
        }
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap().block_on(work)
}

fn agent_filter() -> impl Strategy<Value = AgentFilter> {
    let option = prop::option::weighted::<prop::sample::Select<&'static str>>;
    (
        option(0.3, prop::sample::select(vec!["t-1", "t-2", "t-9"])),
        prop::option::weighted(0.3, prop::sample::select(AgentState::ALL.to_vec())),
        option(0.3, prop::sample::select(vec!["role-0", "role 1", "root", "nobody"])),
        option(0.3, prop::sample::select(vec!["text", "vision", "tool_calling", "smell"])),
        prop::option::of(prop::sample::select(vec![Direction::Input, Direction::Output, Direction::Both])),
        any::<bool>(),
        option(0.3, prop::sample::select(vec!["root", "agent-001,nobody,root", "agent-000,agent-002"])),
    )
        .prop_map(|(task, state, role, capability, direction, include_ended, ids)| AgentFilter {
            ids: ids.into_iter().flat_map(|ids| ids.split(',')).map(AgentId::new).collect(),
            task: task.map(TaskId::new),
            state,
            role: role.map(str::to_owned),
            capability: capability.and_then(Capability::new),
            direction,
            include_ended,
            ..AgentFilter::default()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Filters give the same result as a simple search over all agents. All pages together contain every agent. The
    /// states of agents fit the definitions of these states.
    #[test]
    fn agents_are_what_their_rows_say(
        seeds in prop::collection::vec(seed(), 0..12),
        mail in prop::collection::vec(mail(), 0..30),
        filters in prop::collection::vec(agent_filter(), 6),
        limit in 1..5_u32,
    ) {
        run(async {
            let world = World::new().await;
            let drawn = Drawn::write(&world, seeds, mail).await;
            let (society, _) = society(&world);
            let board = &society.handles.board;
            let conversations: Vec<Conversation> = drawn
                .seeds
                .iter()
                .enumerate()
                .map(|(index, seed)| Conversation { agent: AgentId::new(name(index)), task: TaskId::new(task_of(seed)) })
                .collect();
            let moments = conversations.iter().filter_map(|one| Some(board.show(one, moment_of(one.agent.as_str())?)));
            let _shown: Vec<_> = moments.collect();
            let everything = AgentFilter { include_ended: true, ..AgentFilter::default() };
            let all = all_agents(&society, &everything, 1000).await;
            assert_eq!(all.len(), drawn.seeds.len() + 2);
            for agent in &all {
                let id = agent.id.as_str();
                let seed = drawn.seed(id);
                assert_eq!(agent.state, drawn.state(id, seed, None), "{agent:?}");
                assert_eq!(agent.waiting, drawn.unread(id, None), "{agent:?}");
                let awaited: BTreeSet<String> = agent.waits_for.iter().map(ToString::to_string).collect();
                assert_eq!(awaited, drawn.waits_for(id, None), "{agent:?}");
                assert_eq!(agent.usage.calls, seed.map_or(0, |seed| seed.calls));
                assert_eq!(agent.usage.prompt_tokens, 10 * agent.usage.calls);
                let service = seed.map_or("words", |seed| SERVICES[seed.role]);
                let service = if service == "gone" { "words" } else { service };
                assert_eq!(agent.service.as_ref().map(ServiceId::as_str), (id != "user").then_some(service));
                let one = society.agent(&agent.id).await.unwrap().unwrap();
                assert_eq!(&one.agent, agent);
            }
            let counts = society.agent_states().await.unwrap();
            let live = AgentState::ALL.iter().filter(|state| **state != AgentState::Ended);
            let expected: Vec<_> = live
                .map(|state| {
                    let of_state = |agent: &&AgentView| agent.state == *state && !agent.id.is_user();
                    (*state, all.iter().filter(of_state).count() as u64)
                })
                .collect();
            assert_eq!(counts, expected);
            let at_work = all.iter().filter(|agent| {
                let live = agent.ended_at.is_none() && !agent.id.is_user();
                live && (agent.id.is_root() || agent.state != AgentState::Idle)
            });
            let not_idle = society.agents_not_idle().await.unwrap();
            assert_eq!(not_idle.iter().collect::<Vec<_>>(), at_work.collect::<Vec<_>>());
            for filter in filters {
                let direction = filter.direction.unwrap_or(Direction::Input);
                let task = filter.task.as_ref().map(TaskId::as_str);
                let expected: Vec<_> = all
                    .iter()
                    .cloned()
                    .map(|mut agent| {
                        let id = agent.id.as_str();
                        agent.state = drawn.state(id, drawn.seed(id), task);
                        agent.waiting = drawn.unread(id, task);
                        agent.waits_for = drawn.waits_for(id, task).into_iter().map(AgentId::new).collect();
                        agent.doing = Doing::Idle;
                        agent
                    })
                    .filter(|agent| {
                        let is_there = filter.include_ended || agent.state != AgentState::Ended;
                        filter.state.map_or(is_there, |state| agent.state == state)
                            && (filter.ids.is_empty() || filter.ids.contains(&agent.id))
                            && filter.task.as_ref().is_none_or(|task| agent.task.as_ref().is_none_or(|own| own == task))
                            && filter.role.as_ref().is_none_or(|role| {
                                agent.role == *role || agent.role_id.as_ref().is_some_and(|id| id.as_str() == role)
                            })
                            && filter.capability.as_ref().is_none_or(|capability| {
                                agent.capabilities.as_ref().is_some_and(|has| has.has(capability, direction))
                            })
                    })
                    .collect();
                let found = all_agents(&society, &filter, limit).await.into_iter().map(without_details);
                assert_eq!(found.collect::<Vec<_>>(), expected, "{filter:?}");
            }
            let mut counted = 0;
            for state in AgentState::ALL {
                let filter = AgentFilter { state: Some(*state), ..AgentFilter::default() };
                counted += all_agents(&society, &filter, limit).await.len();
            }
            assert_eq!(counted, all.len(), "each agent is in exactly one state");
        });
    }

    #[test]
    fn messages_are_filtered_as_if_all_were_looked_at(
        seeds in prop::collection::vec(seed(), 0..4),
        mail in prop::collection::vec(mail(), 0..40),
        filters in prop::collection::vec(message_filter(), 8),
        limit in 1..7_u32,
    ) {
        run(async {
            let world = World::new().await;
            Drawn::write(&world, seeds, mail).await;
            let (society, _) = society(&world);
            let all = MessageFilter { limit: Some(1000), ..MessageFilter::default() };
            let all = society.messages(&all).await.unwrap().messages;
            for filter in filters {
                let mut expected: Vec<_> = all
                    .iter()
                    .filter(|message| {
                        let is = |id: &AgentId| message.from == id.as_str() || message.to == *id;
                        filter.task.as_ref().is_none_or(|task| message.task == *task)
                            && filter.from.as_ref().is_none_or(|from| message.from == *from)
                            && filter.to.as_ref().is_none_or(|to| message.to == *to)
                            && filter.with.as_ref().is_none_or(is)
                            && filter.state.is_none_or(|state| message.state == state)
                            && filter.message_type.as_ref().is_none_or(|kind| message.message_type == *kind)
                            && filter.after.as_ref().is_none_or(|after| message.id > *after)
                            && filter.before.as_ref().is_none_or(|before| message.id < *before)
                    })
                    .cloned()
                    .collect();
                if filter.order == Order::Newest {
                    expected.reverse();
                }
                let mut joined = Vec::new();
                let mut page = MessageFilter { limit: Some(limit), ..filter.clone() };
                loop {
                    let read = society.messages(&page).await.unwrap();
                    assert!(read.messages.len() <= limit as usize);
                    joined.extend(read.messages);
                    let Some(next) = read.next else { break };
                    match filter.order {
                        Order::Oldest => page.after = Some(next),
                        Order::Newest => page.before = Some(next),
                    }
                }
                assert_eq!(joined, expected, "{filter:?}");
            }
        });
    }
}

fn message_filter() -> impl Strategy<Value = MessageFilter> {
    let who =
        || prop::option::weighted(0.3, prop::sample::select(vec!["user", "root", "agent-000", "system"]));
    let id = || prop::option::weighted(0.2, (0..45_i64).prop_map(MessageId::from_sequence));
    (
        prop::option::weighted(0.3, prop::sample::select(vec!["t-1", "t-2"])),
        who(),
        who(),
        who(),
        prop::option::weighted(0.3, prop::sample::select(MessageState::ALL.to_vec())),
        prop::option::weighted(0.3, prop::sample::select(vec!["general", "notice", "status_report"])),
        id(),
        id(),
        any::<bool>(),
    )
        .prop_map(|(task, from, to, with, state, message_type, after, before, newest)| MessageFilter {
            task: task.map(TaskId::new),
            from: from.map(str::to_owned),
            to: to.map(AgentId::new),
            with: with.map(AgentId::new),
            state,
            message_type: message_type.map(str::to_owned),
            after,
            before,
            order: if newest { Order::Newest } else { Order::Oldest },
            ..MessageFilter::default()
        })
}

#[tokio::test]
async fn finished_agents_are_left_out_and_counted() {
    let world = World::new().await;
    let seed = |second_task, ended, paused| Seed {
        parent: 0,
        role: 0,
        second_task,
        ended,
        paused,
        parked: false,
        turning: false,
        calls: 0,
    };
    // Of the agents that do nothing, only the first has an open task. The last is paused.
    let seeds = [
        seed(false, false, false),
        seed(true, false, false),
        seed(false, true, false),
        seed(true, false, true),
    ];
    Drawn::write(&world, seeds.to_vec(), Vec::new()).await;
    world
        .write(|tx| {
            Box::pin(async move {
                let over = "UPDATE tasks SET state = 'idle' WHERE id = 't-2'";
                polity_sql::query(over).execute(&mut tx.connection).await?;
                Ok(())
            })
        })
        .await;
    let (society, _) = society(&world);
    let check = async |filter: AgentFilter, agents: &[&str], left_out: Option<u64>| {
        let page = society.agents(&filter).await.unwrap();
        let hired = page.agents.iter().filter(|agent| agent.parent == Some(AgentId::root()));
        assert_eq!(hired.map(|agent| agent.id.as_str()).collect::<Vec<_>>(), agents, "{filter:?}");
        assert_eq!(page.left_out, left_out, "{filter:?}");
        page.next
    };
    let unfinished = || AgentFilter { unfinished: true, ..AgentFilter::default() };
    check(unfinished(), &["agent-000", "agent-003"], Some(2)).await;
    let role = |name: &str| AgentFilter { role: Some(name.to_owned()), ..unfinished() };
    check(role("role 0"), &["agent-000", "agent-003"], Some(2)).await;
    check(role("role 1"), &[], Some(0)).await;
    let next = check(AgentFilter { limit: Some(3), ..unfinished() }, &["agent-000"], Some(2)).await;
    assert!(next.is_some());
    check(AgentFilter { after: next, ..unfinished() }, &["agent-003"], None).await;
    check(AgentFilter::default(), &["agent-000", "agent-001", "agent-003"], None).await;
}

#[tokio::test]
async fn a_message_tells_its_words_apart_from_the_rest() {
    let world = World::new().await;
    let (society, _) = society(&world);
    let sent = world.say("user", "root", json!({"text": "go", "priority": "high"})).await;
    let id = MessageId::new(sent["messageIds"][0]["id"].as_str().unwrap());
    let message = society.message(&id).await.unwrap().unwrap();
    assert_eq!(message.text, "go");
    assert_eq!(json!(message.payload), json!({"priority": "high"}));
    assert_eq!((message.from.as_str(), message.message_type.as_str()), ("user", "general"));
    assert!(society.message(&MessageId::new("m999999999")).await.unwrap().is_none());
}

#[tokio::test]
async fn a_conversation_is_read_backwards_part_by_part() {
    let world = World::new().await;
    let (society, _) = society(&world);
    for number in 0..5 {
        world.say("user", "root", json!(format!("message {number}"))).await;
    }
    let turn = world.begin_turn("root").await;
    let root = AgentId::root();
    let whole = society.conversation(&root, None, None, None).await.unwrap().unwrap();
    assert_eq!((whole.task.as_str(), whole.entries.len(), whole.next), ("t-1", 5, None));
    assert!(
        whole.entries.iter().all(|entry| entry.turn == turn.number() && entry.record["record"] == "heard")
    );
    assert_eq!(whole.entries[4].record["message"]["text"], "message 4");
    let mut joined = Vec::new();
    let mut before = None;
    loop {
        let part = society.conversation(&root, Some(&world.task), before, Some(2)).await.unwrap().unwrap();
        joined.splice(0..0, part.entries);
        before = part.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(joined, whole.entries);
    assert!(society.conversation(&root, Some(&TaskId::new("t-9")), None, None).await.unwrap().is_none());
    assert!(society.conversation(&AgentId::new("nobody"), None, None, None).await.unwrap().is_none());
}

#[tokio::test]
async fn an_agent_is_shown_with_its_brief_its_contacts_and_where_it_is_parked() {
    let world = World::new().await;
    let (society, _) = society(&world);
    let reader = world.hire("root", "reader", json!({"requiredCapabilities": ["vision"]})).await;
    let writer = world.hire("root", "writer", json!({})).await;
    sql(&world, format!("INSERT INTO holds VALUES ('{reader}', 't-1', 'it failed', 1)")).await;
    world.call("root", "terminate_agent", json!({"agentId": writer})).await;
    let shown = society.agent(&AgentId::new(&*reader)).await.unwrap().unwrap();
    assert_eq!(shown.agent.state, AgentState::Parked);
    assert_eq!(shown.brief.as_ref().map(|brief| brief.objective.as_str()), Some("读图"));
    assert_eq!(shown.required_capabilities, Some(vec!["vision".to_owned()]));
    assert_eq!(shown.holds.iter().map(|hold| hold.reason.as_str()).collect::<Vec<_>>(), ["it failed"]);
    assert_eq!(shown.contacts.iter().map(|contact| contact.agent.as_str()).collect::<Vec<_>>(), ["root"]);
    let root = society.agent(&AgentId::root()).await.unwrap().unwrap();
    assert_eq!(root.children, [AgentId::new(&*reader), AgentId::new(&*writer)]);
    let contacts: Vec<(&str, &str)> = root
        .contacts
        .iter()
        .map(|contact| {
            (
                contact.agent.as_str(),
                if contact.standing == polity_society::agent::Standing::Ended { "ended" } else { "active" },
            )
        })
        .collect();
    assert_eq!(contacts, [("user", "active"), (reader.as_str(), "active"), (writer.as_str(), "ended")]);
    assert_eq!(society.contacts(&AgentId::root()).await.unwrap(), Some(root.contacts));
    assert!(society.contacts(&AgentId::new("nobody")).await.unwrap().is_none());
    assert!(society.agent(&AgentId::new("nobody")).await.unwrap().is_none());
}

/// Clients read a page of two agents to see root without its details.
#[tokio::test]
async fn a_list_of_agents_begins_with_the_person_and_root() {
    let world = World::new().await;
    let (society, _) = society(&world);
    world.hire("root", "reader", json!({})).await;
    let filter = AgentFilter { limit: Some(2), ..AgentFilter::default() };
    let agents = society.agents(&filter).await.unwrap().agents;
    assert_eq!(agents.iter().map(|agent| agent.id.as_str()).collect::<Vec<_>>(), ["user", "root"]);
}

#[tokio::test]
async fn of_a_long_list_only_the_newest_part_is_shown() {
    let world = World::new().await;
    let (society, _) = society(&world);
    let root = async || society.agent(&AgentId::root()).await.unwrap().unwrap();
    let few = root().await;
    assert_eq!((few.more_contacts, few.more_tasks, few.more_children), (false, false, false));
    let numbers = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1001)";
    for rows in [
        "agents (id, task, parent, depth, created_at) SELECT printf('a-%04d', n), 't-1', 'root', 1, n FROM n",
        "contacts (owner, agent, source, since, task)
            SELECT 'root', printf('a-%04d', n), 'child', n, 't-1' FROM n",
        "tasks (id, state, created_at) SELECT printf('t-%04d', n), 'idle', n FROM n",
        "turns (agent, task, began_by, state, created_at)
            SELECT 'root', printf('t-%04d', n), 'm', 'done', n FROM n",
    ] {
        sql(&world, format!("{numbers} INSERT INTO {rows}")).await;
    }
    let many = root().await;
    assert_eq!((many.more_contacts, many.more_tasks, many.more_children), (true, true, true));
    let contacts: Vec<&str> = many.contacts.iter().map(|contact| contact.agent.as_str()).collect();
    let children: Vec<&str> = many.children.iter().map(AgentId::as_str).collect();
    for agents in [contacts, children] {
        assert_eq!((agents.len(), agents[0], agents[999]), (1000, "a-0002", "a-1001"));
    }
    let tasks: Vec<&str> = many.tasks.iter().map(TaskId::as_str).collect();
    assert_eq!((tasks.len(), tasks[0], tasks[999]), (1000, "t-1001", "t-0002"));
}

/// To find the tasks of an agent, its newest 2,001 turns are read.
#[tokio::test]
async fn an_agent_has_more_tasks_only_if_an_older_turn_is_in_another_task() {
    let world = World::new().await;
    world.add_task("t-2").await;
    let (society, _) = society(&world);
    let check = async |task: &str, turns: u32, expect: &[&str], more: bool| {
        let numbers =
            format!("WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {turns})");
        let rows = format!(
            "turns (agent, task, began_by, state, created_at) SELECT 'root', '{task}', 'm', 'done', n FROM n"
        );
        sql(&world, format!("{numbers} INSERT INTO {rows}")).await;
        let root = society.agent(&AgentId::root()).await.unwrap().unwrap();
        let tasks: Vec<&str> = root.tasks.iter().map(TaskId::as_str).collect();
        assert_eq!((&*tasks, root.more_tasks), (expect, more));
    };
    check("t-2", 1, &["t-2"], false).await;
    check("t-1", 2_000, &["t-1", "t-2"], false).await;
    check("t-1", 1, &["t-1"], true).await;
}

#[tokio::test]
async fn root_is_shown_as_it_is_in_the_task_that_is_meant() {
    let world = World::new().await;
    world.add_task("t-2").await;
    let (society, _) = society(&world);
    world.say("user", "root", json!("go")).await;
    world.begin_turn("root").await;
    sql(&world, "INSERT INTO holds VALUES ('root', 't-1', 'it failed', 1)".to_owned()).await;
    sql(
        &world,
        "INSERT INTO model_calls (task, agent, turn, service, model, revision, attempts, prompt_tokens,
         completion_tokens, usage_source, created_at)
         VALUES ('t-1', 'root', 1, 'words', 'm', 1, 1, 10, 1, 'reported', 1)"
            .to_owned(),
    )
    .await;
    let root = async |task: Option<&str>| {
        let filter = AgentFilter { task: task.map(TaskId::new), ..AgentFilter::default() };
        let page = society.agents(&filter).await.unwrap();
        let root = page.agents.into_iter().find(|agent| agent.id == AgentId::root()).unwrap();
        (root.state, root.usage.calls)
    };
    assert_eq!(root(None).await, (AgentState::Parked, 1));
    assert_eq!(root(Some("t-1")).await, (AgentState::Parked, 1));
    assert_eq!(root(Some("t-2")).await, (AgentState::Idle, 0));
    sql(&world, "DELETE FROM holds".to_owned()).await;
    assert_eq!(root(Some("t-1")).await, (AgentState::Ready, 1));
    assert_eq!(root(Some("t-2")).await, (AgentState::Idle, 0));
}

#[tokio::test]
async fn pages_of_events_joined_are_the_whole_in_both_directions() {
    let world = World::new().await;
    let (society, _) = society(&world);
    let reader = world.hire("root", "reader", json!({})).await;
    world.say("root", &reader, json!("one")).await;
    world.say("user", "root", json!("two")).await;
    world.call("root", "terminate_agent", json!({"agentId": reader})).await;
    let reader = AgentId::new(reader);
    let everything = EventFilter::default();
    let all = society.events_after(0, 1000, &everything).await.unwrap();
    let filters = [
        everything,
        EventFilter { task: Some(world.task.clone()), ..EventFilter::default() },
        EventFilter { task: Some(TaskId::new("t-9")), ..EventFilter::default() },
        EventFilter { agent: Some(reader.clone()), ..EventFilter::default() },
        EventFilter { agent: Some(AgentId::root()), ..EventFilter::default() },
        EventFilter {
            kinds: vec!["message_accepted".to_owned(), "agent_ended".to_owned()],
            ..EventFilter::default()
        },
    ];
    for filter in filters {
        let expected: Vec<_> = all
            .events
            .iter()
            .filter(|entry| {
                let value = json!(entry);
                let agent = entry.event.agent();
                let of_task = |task: &TaskId| {
                    entry.event.task() == Some(task)
                        || entry.event.task().is_none() && *task == world.task && agent == Some(&reader)
                };
                filter.task.as_ref().is_none_or(of_task)
                    && filter
                        .agent
                        .as_ref()
                        .is_none_or(|id| agent == Some(id) || value["from"] == id.as_str())
                    && (filter.kinds.is_empty() || filter.kinds.iter().any(|kind| value["event"] == **kind))
            })
            .cloned()
            .collect();
        let (mut forwards, mut after) = (Vec::new(), 0);
        while after < all.next {
            let page = society.events_after(after, 2, &filter).await.unwrap();
            assert!(page.next > after);
            after = page.next;
            forwards.extend(page.events);
        }
        assert_eq!(forwards, expected, "{filter:?}");
        let (mut backwards, mut before) = (Vec::new(), i64::MAX);
        loop {
            let page = society.events_before(before, 2, &filter).await.unwrap();
            backwards.splice(0..0, page.events);
            if page.next == page.oldest.unwrap_or(0) || page.next == before {
                break;
            }
            before = page.next;
        }
        assert_eq!(backwards, expected, "{filter:?}");
    }
}

#[tokio::test]
async fn a_damaged_event_is_passed_over_and_stops_nobody() {
    let world = World::new().await;
    let (society, _) = society(&world);
    for _ in 0..6 {
        world.store.note(polity_view::Event::TaskStarted { task: world.task.clone() }).await.unwrap();
    }
    let all = society.events_after(0, 1000, &EventFilter::default()).await.unwrap();
    let seqs: Vec<i64> = all.events.iter().map(|entry| entry.seq).collect();
    assert_eq!(seqs.len(), 6);
    // Damage both events of the second page, and the last event.
    sql(&world, format!("UPDATE events SET body = '{{' WHERE seq IN ({}, {})", seqs[2], seqs[3])).await;
    sql(&world, format!("UPDATE events SET body = CAST(x'ff' AS TEXT) WHERE seq = {}", seqs[5])).await;
    let after = async |seq: i64| {
        let page = society.events_after(seq, 2, &EventFilter::default()).await.unwrap();
        (page.events.iter().map(|entry| entry.seq).collect::<Vec<_>>(), page.next)
    };
    assert_eq!(after(0).await, (vec![seqs[0], seqs[1]], seqs[1]));
    assert_eq!(after(seqs[1]).await, (vec![seqs[4]], seqs[5]));
    assert_eq!(after(seqs[4]).await, (vec![], seqs[5]));
    let before = society.events_before(seqs[4], 2, &EventFilter::default()).await.unwrap();
    assert_eq!(before.events.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [seqs[0], seqs[1]]);
}

#[tokio::test]
async fn a_damaged_row_is_shown_as_damaged_among_those_that_are_not() {
    let world = World::new().await;
    let (society, _) = society(&world);
    let reader = world.hire("root", "reader", json!({})).await;
    let writer = world.hire("root", "writer", json!({})).await;
    for text in ["one", "two", "three", "four"] {
        world.say("user", "root", json!(text)).await;
    }
    world.begin_turn("root").await;
    sql(&world, "UPDATE messages SET body = '{' WHERE seq = 2".to_owned()).await;
    sql(&world, "UPDATE messages SET body = CAST(x'ff' AS TEXT), attachments = '?' WHERE seq = 3".to_owned())
        .await;
    sql(&world, "UPDATE records SET body = 'no' WHERE message = 'm000000004'".to_owned()).await;
    sql(&world, format!("UPDATE agents SET brief = '{{' WHERE id = '{reader}'")).await;
    let page = society.messages(&MessageFilter::default()).await.unwrap();
    check_shape(&page);
    let told: Vec<bool> = page.messages.iter().map(|message| message.damage.is_some()).collect();
    assert_eq!(told, [false, true, true, false]);
    assert!(page.messages[1].text.starts_with("damaged row in table messages: m000000002: "));
    assert!(page.messages[2].text.starts_with("damaged row in table messages: m000000003: "));
    assert_eq!((page.messages[1].from.as_str(), page.messages[1].to.as_str()), ("user", "root"));
    let root = AgentId::root();
    let conversation = society.conversation(&root, None, None, None).await.unwrap().unwrap();
    check_shape(&conversation);
    let records: Vec<_> = conversation.entries.iter().map(|entry| &entry.record).collect();
    assert_eq!(
        records.iter().map(|record| record["record"].clone()).collect::<Vec<_>>(),
        ["heard", "heard", "heard", "damaged"]
    );
    assert_eq!(records[1]["message"]["damage"], json!(page.messages[1].damage));
    assert!(records[3]["reason"].as_str().unwrap().starts_with("damaged row in table records: "));
    assert_eq!(records[3]["message"]["text"], "four");
    let contacts = society.contacts(&root).await.unwrap().unwrap();
    check_shape(&contacts);
    let damaged = contacts.iter().filter(|contact| contact.damage.is_some());
    assert_eq!(
        damaged.map(|contact| (contact.agent.as_str(), contact.role.as_str())).collect::<Vec<_>>(),
        [(reader.as_str(), "reader")]
    );
    assert!(contacts.iter().any(|contact| contact.agent.as_str() == writer && contact.damage.is_none()));
}

#[tokio::test]
async fn an_artifact_whose_row_is_damaged_says_so() {
    let world = World::new().await;
    let (society, _) = society(&world);
    let file = || NewArtifact { bytes: "notes".into(), ..NewArtifact::default() };
    let sound = society.put_artifact(file(), None).await.unwrap();
    let damaged = society.put_artifact(file(), None).await.unwrap();
    sql(&world, format!("UPDATE artifacts SET kind = 'smell' WHERE id = '{}'", damaged.id)).await;
    let page = society.artifacts(&ArtifactFilter::default()).await.unwrap();
    check_shape(&page);
    let told: Vec<_> =
        page.artifacts.iter().map(|artifact| (&artifact.id, artifact.damage.as_deref())).collect();
    assert_eq!(told, [(&damaged.id, Some("kind is \"smell\"")), (&sound.id, None)]);
}

#[tokio::test]
async fn pages_have_no_more_text_than_can_be_held() {
    let world = World::new().await;
    let (society, _) = society(&world);
    for number in 0..5 {
        world.say("user", "root", json!(format!("message {number}"))).await;
    }
    world.begin_turn("root").await;
    sql(&world, "UPDATE messages SET body = json_object('text', printf('%.*c', 3000000, 'x'))".to_owned())
        .await;
    let mut filter = MessageFilter::default();
    let mut sizes = Vec::new();
    loop {
        let page = society.messages(&filter).await.unwrap();
        sizes.push(page.messages.len());
        filter.after = page.next;
        if filter.after.is_none() {
            break;
        }
    }
    assert_eq!(sizes, [2, 2, 1]);
    let part = society.conversation(&AgentId::root(), None, None, None).await.unwrap().unwrap();
    assert_eq!(part.entries.len(), 2);
    let rest = society.conversation(&AgentId::root(), None, part.next, None).await.unwrap().unwrap();
    assert_eq!((rest.entries.len(), rest.next.is_some()), (2, true));
    assert!(rest.entries[1].seq < part.entries[0].seq);
}

#[tokio::test]
async fn tasks_and_artifacts_come_in_pages_the_newest_first() {
    let world = World::new().await;
    let (society, _) = society(&world);
    for number in 0..5 {
        let text = format!("\n  prompt {number}\nmore");
        let attachments =
            vec![Attachment::New(NewArtifact { bytes: text.clone().into(), ..NewArtifact::default() })];
        society.write(UserMessage { attachments, ..UserMessage::text("root", text) }).await.unwrap();
    }
    let mut titles = Vec::new();
    let mut filter = TaskFilter { limit: Some(2), ..TaskFilter::default() };
    loop {
        let page = society.tasks(&filter).await.unwrap();
        titles.extend(page.tasks.into_iter().map(|task| task.title));
        filter.after = page.next;
        if filter.after.is_none() {
            break;
        }
    }
    assert_eq!(titles, ["prompt 4", "prompt 3", "prompt 2", "prompt 1", "prompt 0", ""]);
    let mut sizes = 0;
    let mut filter = ArtifactFilter { limit: Some(3), kind: Some(Kind::Text), ..ArtifactFilter::default() };
    loop {
        let page = society.artifacts(&filter).await.unwrap();
        sizes += page.artifacts.len();
        filter.after = page.next;
        if filter.after.is_none() {
            break;
        }
    }
    assert_eq!(sizes, 5);
    let none = ArtifactFilter { owner: Some(AgentId::root()), ..ArtifactFilter::default() };
    assert_eq!(society.artifacts(&none).await.unwrap().artifacts, []);
}

#[tokio::test]
async fn an_idle_task_tells_how_it_stands() {
    let world = World::new().await;
    let (society, _) = society(&world);
    assert_eq!(society.task(&world.task).await.unwrap().unwrap().outcome, None);
    sql(&world, "UPDATE tasks SET state = 'idle', stopped_by = 'maxTokensPerTask'".to_owned()).await;
    let task = society.task(&world.task).await.unwrap().unwrap();
    assert_eq!(task.outcome, society.outcome(&world.task).await.unwrap());
    assert_eq!(task.outcome, Some(Outcome::Limited));
    assert!(society.task(&TaskId::new("t-9")).await.unwrap().is_none());
}

#[tokio::test]
async fn usage_adds_up_whichever_way_it_is_looked_at() {
    let world = World::new().await;
    world.add_task("t-2").await;
    let (society, _) = society(&world);
    for (task, agent, service, prompt, cost) in [
        ("t-1", "root", "words", 10, "0.5"),
        ("t-1", "a-1", "eyes", 20, "NULL"),
        ("t-2", "root", "words", 30, "0.25"),
    ] {
        sql(
            &world,
            format!(
            "INSERT INTO model_calls (task, agent, turn, service, model, revision, attempts, prompt_tokens,
             completion_tokens, usage_source, cost, created_at)
             VALUES ('{task}', '{agent}', 1, '{service}', 'm', 1, 1, {prompt}, 1, 'reported', {cost}, 1)"
        ),
        )
        .await;
    }
    let all = society.usage(&UsageFilter::default()).await.unwrap();
    assert_eq!((all.total.calls, all.total.prompt_tokens, all.total.cost), (3, 60, Some(0.75)));
    for calls in [
        all.by_task.iter().map(|one| one.usage.calls).sum::<u64>(),
        all.by_agent.iter().map(|one| one.usage.calls).sum(),
        all.by_service.iter().map(|one| one.usage.calls).sum(),
    ] {
        assert_eq!(calls, 3);
    }
    let root = UsageFilter { agent: Some(AgentId::root()), ..UsageFilter::default() };
    assert_eq!(society.usage(&root).await.unwrap().total.prompt_tokens, 40);
    let both = UsageFilter { task: Some(TaskId::new("t-2")), ..root };
    assert_eq!(society.usage(&both).await.unwrap().total.prompt_tokens, 30);
}

#[tokio::test]
async fn a_thousand_agents_are_one_page() {
    let world = World::new().await;
    let seeds = (0..998)
        .map(|index| Seed {
            parent: index,
            role: index % 3,
            second_task: false,
            ended: false,
            paused: false,
            parked: false,
            turning: index % 2 == 0,
            calls: 1,
        })
        .collect();
    Drawn::write(&world, seeds, Vec::new()).await;
    let (society, _) = society(&world);
    let page = AgentFilter { limit: Some(1000), ..AgentFilter::default() };
    let page = society.agents(&page).await.unwrap();
    assert_eq!((page.agents.len(), page.next), (1000, None));
}

/// Clients are generated from the schema, so everything that clients read must fit its schema.
#[tokio::test]
async fn everything_that_is_shown_fits_its_schema() {
    let world = World::new().await;
    let (society, _) = society(&world);
    let file =
        NewArtifact { bytes: "notes".into(), filename: Some("n.txt".to_owned()), ..NewArtifact::default() };
    let post = UserMessage {
        attachments: vec![Attachment::New(file)],
        payload: json!({"text": "go", "priority": 1}),
        task: Some(world.task.clone()),
        ..UserMessage::text("root", "")
    };
    let posted = society.write(post).await.unwrap();
    check_shape(&posted);
    world.begin_turn("root").await;
    let spec =
        json!({"services": ["read"], "input_format": "a file", "output_format": "text", "examples": "…"});
    let wish = json!({"serviceId": "eyes", "interface_spec": spec, "toolGroups": ["artifacts"]});
    let reader = world.hire("root", "reader", wish).await;
    world.say("root", &reader, json!("look")).await;
    world.say("root", "user", json!({"message_type": "collaboration_request", "text": "which?"})).await;
    sql(&world, format!("INSERT INTO holds VALUES ('{reader}', 't-1', 'it failed', 1)")).await;
    sql(
        &world,
        "INSERT INTO model_calls (task, agent, turn, service, model, revision, attempts, prompt_tokens,
         completion_tokens, usage_source, cost, created_at)
         VALUES ('t-1', 'root', 1, 'words', 'm', 1, 1, 10, 1, 'reported', 0.5, 1)"
            .to_owned(),
    )
    .await;
    let (root, reader) = (AgentId::root(), AgentId::new(reader));
    check_shape(&society.tasks(&TaskFilter::default()).await.unwrap());
    check_shape(&society.agents(&AgentFilter::default()).await.unwrap());
    for agent in [&root, &reader] {
        let shown = society.agent(agent).await.unwrap().unwrap();
        if let Some(role) = &shown.agent.role_id {
            check_shape(&society.role(role).await.unwrap().unwrap());
        }
        check_shape(&shown);
        check_shape(&society.conversation(agent, None, None, None).await.unwrap().unwrap());
        check_shape(&society.preview(agent, None, crate::Bytes::Counted).await.unwrap().unwrap());
    }
    check_shape(&society.messages(&MessageFilter::default()).await.unwrap());
    check_shape(&society.artifacts(&ArtifactFilter::default()).await.unwrap());
    check_shape(&society.events_after(0, 1000, &EventFilter::default()).await.unwrap());
    check_shape(&society.usage(&UsageFilter::default()).await.unwrap());
    check_shape(&society.services().await.unwrap());
    check_shape(&society.config());
    check_shape(&society.data_facts().await.unwrap());
    check_shape(&CommandView {
        task: TaskId::new("t-1"),
        agent: AgentId::root(),
        id: Some(CommandId::new("cmd-00000000")),
        command: "ls".to_owned(),
        since: 1,
        output: "a.md".to_owned(),
        output_bytes: 5,
        memory_bytes: 1,
        processes: 1,
        disk_bytes: 0,
    });
}

#[tokio::test]
async fn a_group_that_is_denied_names_the_setting_or_the_role_that_denies_it() {
    let granted = json!(["organization", "artifacts", "files", "command"]);
    let world = World::with_app(&json!({"tools": {"root": granted}})).await;
    let wish = json!({"toolGroups": ["organization", "artifacts", "files"]});
    let chief = world.hire("root", "chief", wish).await;
    let clerk = world.hire(&chief, "clerk", json!({"toolGroups": ["artifacts"]})).await;
    let helper = world.hire(&chief, "helper", json!({})).await;
    let [chief, clerk, helper] = [&chief, &clerk, &helper].map(String::as_str);
    let (society, _) = society(&world);
    let check = async |agent: &str, group: &str, expect: (bool, &str, &str)| {
        let detail = society.agent(&AgentId::new(agent)).await.unwrap().unwrap();
        let right = detail.rights.into_iter().find(|right| right.group.to_string() == group).unwrap();
        let by = right.denied_by.map(|agent| agent.to_string()).unwrap_or_default();
        let found = (right.allowed, by, right.denied_in.unwrap_or_default());
        assert_eq!((found.0, found.1.as_str(), found.2.as_str()), expect, "{group} of {agent}");
    };
    check("root", "web", (false, "", "tools.root")).await;
    check("root", "command", (true, "", "")).await;
    check(chief, "command", (false, chief, "chief")).await;
    check(clerk, "artifacts", (true, "", "")).await;
    check(clerk, "files", (false, clerk, "clerk")).await;
    // The role of the helper names no groups, so the helper lacks only what its creator `chief` lacks. The reason that
    // its view names is the role of the creator, or the setting that also limits the creator.
    check(helper, "command", (false, chief, "chief")).await;
    check(helper, "files", (true, "", "")).await;
    check(helper, "web", (false, "", "tools.root")).await;
}

/// For each group of tools that an agent has, the person sees which setting or whose role gives it.
#[tokio::test]
async fn an_agent_shows_where_each_of_its_rights_comes_from() {
    let world = World::with_app(&json!({"tools": {"root": ["organization", "artifacts", "files"]}})).await;
    let lead = world.hire("root", "lead", json!({"toolGroups": ["organization", "artifacts"]})).await;
    let worker = world.hire(&lead, "worker", json!({"toolGroups": ["artifacts"]})).await;
    let helper = world.hire(&lead, "helper", json!({})).await;
    let [lead, worker, helper] = [&lead, &worker, &helper].map(String::as_str);
    let (society, _) = society(&world);
    let check = async |agent: &str, group: &str, expect: Option<(Option<&str>, &str)>| {
        let rights = society.agent(&AgentId::new(agent)).await.unwrap().unwrap().rights;
        let right = rights.into_iter().find(|right| right.group.to_string() == group).unwrap();
        assert_eq!(right.allowed, expect.is_some(), "{right:?}");
        let by = right.granted_by.as_ref().map(AgentId::as_str);
        assert_eq!(right.granted_in.as_deref().map(|place| (by, place)), expect, "{group} of {agent}");
        assert_eq!(right.root_grant.as_deref(), expect.map(|_| group), "{right:?}");
    };
    check("root", "artifacts", Some((None, "tools.root"))).await;
    check("root", "web", None).await;
    check(lead, "artifacts", Some((Some(lead), "lead"))).await;
    check(lead, "files", None).await;
    check(worker, "artifacts", Some((Some(worker), "worker"))).await;
    check(worker, "organization", None).await;
    // The role of the helper names no groups, so the right comes from the role above it.
    check(helper, "organization", Some((Some(lead), "lead"))).await;
}

/// For each group of tools that an agent lacks, the person sees which setting or whose role forbids it.
#[tokio::test]
async fn an_agent_shows_where_each_missing_right_comes_from() {
    let root = ["organization", "artifacts", "context", "files", "web"];
    let world = World::with_app(&json!({"tools": {"root": root}})).await;
    let lead =
        world.hire("root", "lead", json!({"toolGroups": ["organization", "artifacts", "files"]})).await;
    let worker = world.hire(&lead, "worker", json!({"toolGroups": ["artifacts"]})).await;
    let helper = world.hire(&lead, "helper", json!({})).await;
    let (society, _) = society(&world);
    let check = async |agent: &str, expect: &[(&str, Option<&str>, Option<&str>)]| {
        let rights = society.agent(&AgentId::new(agent)).await.unwrap().unwrap().rights;
        let shown: Vec<(String, Option<String>, Option<String>)> = rights
            .into_iter()
            .map(|right| {
                assert_eq!(right.allowed, right.denied_in.is_none(), "{right:?}");
                (right.group.to_string(), right.denied_by.map(|agent| agent.to_string()), right.denied_in)
            })
            .collect();
        let owned = |text: &Option<&str>| text.map(str::to_owned);
        let expect: Vec<_> =
            expect.iter().map(|(group, by, place)| ((*group).to_owned(), owned(by), owned(place))).collect();
        assert_eq!(shown, expect, "{agent}");
    };
    let (lead, settings) = (Some(lead.as_str()), Some("tools.root"));
    check(
        helper.as_str(),
        &[
            ("organization", None, None),
            ("artifacts", None, None),
            ("context", lead, Some("lead")),
            ("files", None, None),
            ("command", None, settings),
            ("web", lead, Some("lead")),
        ],
    )
    .await;
    let own = Some(worker.as_str());
    check(
        worker.as_str(),
        &[
            ("organization", own, Some("worker")),
            ("artifacts", None, None),
            ("context", own, Some("worker")),
            ("files", own, Some("worker")),
            ("command", None, settings),
            ("web", own, Some("worker")),
        ],
    )
    .await;
}
