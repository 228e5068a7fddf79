//! Builds the view of what happens in the society now. This file reads the facts and fills in the texts.
//! `polity_decide::stuck` decides from the facts which agents the view contains, and what in the society is stuck.

use super::{Society, services};
use crate::handles::Handles;
use polity_decide::stuck::{self, Active, Again, Choice, Choices, Found, MAX_NAMED, Runs, Scene, Stance};
use polity_registry::Snapshot;
use polity_society::id::{AgentId, MessageId, RoleId, ServiceId, TaskId};
use polity_store::record::Record;
use polity_store::view as readings;
use polity_store::view::doing::Moments;
use polity_store::view::now::RootTurn;
use polity_store::{Connection, Conversation, Error, events, roles, tasks};
use polity_view::{
    AgentView, CardView, Circuit, Deed, Doing, LastView, MessageView, NowFilter, NowView, Outcome,
    ServiceState, Stuck, StuckView, page,
};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Longest quotation of a text, in characters.
const QUOTED_CHARS: usize = 300;

impl Society {
    /// Returns what happens in the society now: the agents at work, and what is stuck.
    pub async fn now(&self, filter: &NowFilter) -> Result<NowView, Error> {
        let runs = if self.ended.is_cancelled() { Runs::Nowhere } else { Runs::Here };
        now(&self.handles, runs, filter).await
    }
}

async fn now(handles: &Handles, runs: Runs, filter: &NowFilter) -> Result<NowView, Error> {
    let snapshot = handles.registry.current();
    let at = polity_store::now().as_millis();
    let moments = handles.board.moments(None, at);
    let states = services::states(handles, &snapshot);
    let mut moment = handles.store.moment().await?;
    let open = readings::now::open(&mut moment).await?;
    let answered = answered(&mut moment, &stuck::unfinished(&open)).await?;
    let scene =
        Scene { now: at, runs, open: &open, moments: &moments, services: &states, answered: &answered };
    let limit = page(filter.limit) as usize;
    let (mut active, mut found) = (stuck::active(&scene), stuck::found(&scene));
    let (working_total, stuck_total) = (active.len() as u64, found.len() as u64);
    let at_work_total = active.iter().filter(|active| active.stance == Stance::Works).count() as u64;
    active.truncate(limit);
    found.truncate(limit);

    let facts = Facts::read(&mut moment, &snapshot, &moments, &active, &found).await?;
    let bad = bad(&states, &moments);
    let choices = Choices {
        roles: choices(&mut moment, &snapshot, &bad, &facts.agents, &found).await?,
        turns: turns(&mut moment, &snapshot, &bad, &moments, &found).await?,
    };
    let working = active.iter().filter_map(|active| facts.card(active)).collect();
    let stuck = found.into_iter().map(|found| facts.stuck(found, &choices, &moments)).collect();
    let as_of = events::newest(&mut moment).await?;
    let running = runs == Runs::Here;
    Ok(NowView { at, as_of, running, working, working_total, at_work_total, stuck, stuck_total })
}

/// Returns the tasks of `idle` whose outcome is [`Outcome::Answered`].
async fn answered(connection: &mut Connection, idle: &[TaskId]) -> Result<HashSet<TaskId>, Error> {
    let standings = tasks::standings(connection, idle).await?;
    let answered = standings.into_iter().filter(|(_, standing)| standing.outcome() == Outcome::Answered);
    Ok(answered.map(|(task, _)| task).collect())
}

/// The rows that contain the texts for the view: the texts of cards, and of stuck things.
struct Facts {
    agents: HashMap<AgentId, AgentView>,
    objectives: HashMap<AgentId, String>,
    titles: HashMap<TaskId, String>,
    last: HashMap<AgentId, (i64, Record)>,
    messages: HashMap<MessageId, MessageView>,
}

impl Facts {
    /// Reads the rows. The number of SQL statements does not grow with the number of rows.
    async fn read(
        connection: &mut Connection,
        snapshot: &Snapshot,
        moments: &Moments,
        active: &[Active],
        found: &[Found],
    ) -> Result<Self, Error> {
        let working = active.iter().map(|active| active.who.agent.clone());
        let ids: BTreeSet<AgentId> = working.chain(found.iter().flat_map(Found::cured)).collect();
        let ids: Vec<AgentId> = ids.into_iter().collect();
        let agents = readings::agents::several(connection, &snapshot.catalogue, moments, &ids, None).await?;
        let agents: HashMap<AgentId, AgentView> =
            agents.into_iter().map(|agent| (agent.id.clone(), agent)).collect();
        let conversations: Vec<Conversation> = active.iter().map(|active| shown(active, &agents)).collect();
        let last = readings::now::last(connection, &conversations).await?;
        let heard = last.values().filter_map(|(_, record)| match record {
            Record::Heard { message } => Some(message.clone()),
            _ => None,
        });
        let quoted: Vec<MessageId> = heard.chain(found.iter().filter_map(Found::quoted).cloned()).collect();
        let in_tasks = conversations.iter().map(|conversation| conversation.task.clone());
        let in_tasks: BTreeSet<TaskId> =
            in_tasks.chain(found.iter().filter_map(|found| found.task.clone())).collect();
        let in_tasks: Vec<TaskId> = in_tasks.into_iter().collect();
        Ok(Self {
            agents,
            objectives: readings::now::objectives(connection, &ids).await?,
            titles: readings::tasks::titles(connection, &in_tasks).await?,
            last,
            messages: readings::messages::by_id(connection, &snapshot.prompts.texts, &quoted).await?,
        })
    }

    fn card(&self, active: &Active) -> Option<CardView> {
        let Conversation { agent, task } = shown(active, &self.agents);
        let objective = self.objectives.get(&agent).or_else(|| self.titles.get(&task));
        let last = self.last.get(&agent).map(|(at, record)| self.last(*at, record));
        let mut agent = self.agents.get(&agent)?.clone();
        if let Doing::Waiting { requests, .. } = &mut agent.doing {
            requests.retain(|request| request.task == task);
        }
        Some(CardView {
            objective: objective.map(|text| beginning(text)),
            active_in: task,
            active_at: active.at,
            last,
            agent,
        })
    }

    fn last(&self, at: i64, record: &Record) -> LastView {
        let plain =
            |did, text: &str| LastView { at, did, text: beginning(text), from: None, tools: Vec::new() };
        match record {
            Record::Heard { message } => {
                let message = self.messages.get(message);
                let from = message.map(|message| message.from.clone());
                LastView { from, ..plain(Deed::Heard, message.map_or("", |message| &message.text)) }
            }
            Record::Replied(replied) => {
                // The card shows the last line of the text, because models usually write there what they do next.
                let text = replied.text.as_deref().unwrap_or_default().trim();
                let tools: Vec<String> =
                    replied.calls.iter().map(|call| call.name.clone()).take(MAX_NAMED).collect();
                let did = if tools.is_empty() { Deed::Said } else { Deed::Called };
                LastView { tools, ..plain(did, text.lines().next_back().unwrap_or_default()) }
            }
            Record::Failed { reason } | Record::Stopped { reason } => plain(Deed::Failed, reason),
            Record::Noticed { .. }
            | Record::ToolStarted { .. }
            | Record::Asked { .. }
            | Record::Judged { .. }
            | Record::ToolFinished { .. }
            | Record::Compacted { .. }
            | Record::Status { .. } => plain(Deed::Said, ""),
        }
    }

    fn stuck(&self, mut found: Found, choices: &Choices, moments: &Moments) -> StuckView {
        let remedies = stuck::remedies(&found, choices, moments);
        let key = found.key();
        let quoted = found.quoted().and_then(|message| self.messages.get(message));
        let quoted = quoted.map(|message| beginning(&message.text)).unwrap_or_default();
        if let Stuck::Question { text, .. } | Stuck::Request { text, .. } = &mut found.stuck {
            *text = quoted;
        }
        let title = found.task.as_ref().and_then(|task| self.titles.get(task)).cloned();
        StuckView { key, since: found.since, stuck: found.stuck, task: found.task, title, remedies }
    }
}

/// Returns the conversation that the card of an agent shows. It belongs to the agent's state, so that a card never shows
/// what an agent does in one task together with the objective of another.
fn shown(active: &Active, agents: &HashMap<AgentId, AgentView>) -> Conversation {
    let state = agents.get(&active.who.agent).and_then(|agent| agent.doing.task());
    Conversation { task: state.unwrap_or(&active.who.task).clone(), agent: active.who.agent.clone() }
}

/// Some agents may work again if their role uses another service. Returns, for each of these agents, the role and the
/// services that the role could use instead.
async fn choices(
    connection: &mut Connection,
    snapshot: &Snapshot,
    bad: &HashSet<&ServiceId>,
    agents: &HashMap<AgentId, AgentView>,
    found: &[Found],
) -> Result<HashMap<AgentId, Choice>, Error> {
    let cured: BTreeSet<AgentId> = found.iter().flat_map(Found::cured).collect();
    let role_of = |agent: &AgentId| agents.get(agent)?.role_id.clone();
    let ids: BTreeSet<RoleId> = cured.iter().filter_map(role_of).collect();
    let ids: Vec<RoleId> = ids.into_iter().collect();
    let known = roles::several(connection, &ids).await?;
    let choice = |agent: AgentId| {
        let id = role_of(&agent)?;
        let role = known.iter().find(|role| role.id == id)?;
        let services = snapshot.catalogue.services().iter().filter(|service| {
            service.id != role.service
                && !bad.contains(&service.id)
                && service.lacks(&role.required_capabilities).is_empty()
        });
        let services = services.map(|service| service.id.clone()).collect();
        Some((agent, Choice { role: id, name: role.name.to_string(), services }))
    };
    Ok(cured.into_iter().filter_map(choice).collect())
}

fn is_in_trouble(state: &ServiceState) -> bool {
    state.circuit != Circuit::Closed || state.paused_for_ms.is_some() || state.failing_since.is_some()
}

/// Returns the services that fail, pause or are silent. No remedy suggests such a service.
pub(super) fn bad<'s>(
    states: &'s [(ServiceId, ServiceState)],
    moments: &'s Moments,
) -> HashSet<&'s ServiceId> {
    let failing = states.iter().filter(|(_, state)| is_in_trouble(state)).map(|(service, _)| service);
    let silent = moments.all().filter_map(|(_, doing)| match doing {
        Doing::Thinking { service, silence: Some(_), .. } => Some(service),
        _ => None,
    });
    failing.chain(silent).collect()
}

/// In some tasks, root may go on if its newest turn begins again with another service. Returns, for each of these
/// tasks, this turn and the services that root could use instead.
async fn turns(
    connection: &mut Connection,
    snapshot: &Snapshot,
    bad: &HashSet<&ServiceId>,
    moments: &Moments,
    found: &[Found],
) -> Result<HashMap<TaskId, Again>, Error> {
    let tasks: BTreeSet<TaskId> = found.iter().filter_map(|found| found.begins_again(moments)).collect();
    if tasks.is_empty() {
        return Ok(HashMap::new());
    }
    let tasks: Vec<TaskId> = tasks.into_iter().collect();
    let known = readings::now::root_turns(connection, &tasks).await?;
    let catalogue = &snapshot.catalogue;
    let again = |(task, RootTurn { turn, service }): (TaskId, RootTurn)| {
        let used = &catalogue.service_for(service.as_ref()).id;
        let others =
            catalogue.services().iter().filter(|other| other.id != *used && !bad.contains(&other.id));
        (task, Again { turn, services: others.map(|other| other.id.clone()).collect() })
    };
    Ok(known.into_iter().map(again).collect())
}

/// Returns the beginning of a text, as one line.
fn beginning(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(QUOTED_CHARS) {
        None => words,
        Some((end, _)) => format!("{}…", words[..end].trim_end()),
    }
}
