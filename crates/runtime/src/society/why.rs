//! Explains an event, a task, an agent, an artifact, a message or a question about a call: reads the facts about it, and
//! passes them to `polity_decide::why`, which builds the explanation.

use super::{Society, now, services};
use crate::handles::Handles;
use polity_decide::why::{
    self, Able, Candidate, Denied, Denier, Ended, Help, Known, Lasts, MOST_TOLD, OpenRequest, OpenTask,
    Parked, Party, Refusal,
};
use polity_registry::{Service, Snapshot};
use polity_routing::{FileTypes, Routable, Route, route};
use polity_society::agent::Standing;
use polity_society::content::Artifact;
use polity_society::id::{AgentId, ApprovalId, ArtifactId, CallId, MessageId, RoleId, ServiceId, TaskId};
use polity_society::message::{Expects, MessageState};
use polity_society::role::Role;
use polity_society::rules::Denial;
use polity_society::tool_group::ToolGroup;
use polity_store::record::{Content, Record, ToolResult};
use polity_store::view::doing::Moments;
use polity_store::view::events::Side;
use polity_store::view::{self as readings};
use polity_store::{
    Connection, Conversation, Error, agents, approvals, artifacts, contacts, events, messages, records,
    roles, sent, tasks,
};
use polity_view::{
    AgentFilter, AgentState, AgentView, Doing, Entry, Event, EventFilter, EventKind, Fact, MAX_PAGE,
    MessageView, Outcome, Routing, SentRequest, Shown, TaskState, TaskView, Why, WhyFilter,
};
use std::collections::{HashMap, HashSet};

/// How many events of an agent are read to find the reason of a failure.
const LOOK_BACK: u32 = 50;

/// The result of [`Society::why`].
#[derive(Clone, Debug, PartialEq)]
pub enum Explained {
    /// The explanation.
    Why(Why),
    /// The thing exists, but there is nothing to explain about it.
    Plain,
    /// There is no such thing.
    Unknown,
}

impl Explained {
    fn of(why: Option<Why>) -> Self {
        why.map_or(Self::Plain, Self::Why)
    }
}

impl Society {
    /// Explains a thing: an event by its number, or a task, an agent, a message, a question about a call or an artifact by
    /// its id.
    pub async fn why(&self, id: &str, filter: &WhyFilter) -> Result<Explained, Error> {
        let snapshot = self.handles.registry.current();
        let moments = self.handles.board.moments(None, polity_store::now().as_millis());
        let states = services::states(&self.handles, &snapshot);
        let bad = now::bad(&states, &moments);
        let mut moment = self.handles.store.moment().await?;
        let asked = Asking {
            connection: &mut moment,
            handles: &self.handles,
            snapshot: &snapshot,
            moments: &moments,
            bad: &bad,
            filter,
        };
        asked.answer(id).await
    }
}

/// One call of [`Society::why`] in progress.
struct Asking<'a> {
    connection: &'a mut Connection,
    handles: &'a Handles,
    snapshot: &'a Snapshot,
    /// What the agents are doing now.
    moments: &'a Moments,
    /// The services that fail, pause or are silent.
    bad: &'a HashSet<&'a ServiceId>,
    filter: &'a WhyFilter,
}

impl Asking<'_> {
    /// Explains a thing. If the explanation names a failed request to a model, adds a remedy: to run the turn of this
    /// request again.
    async fn answer(mut self, id: &str) -> Result<Explained, Error> {
        let mut explained = match self.about(id).await? {
            Explained::Why(why) => why,
            other => return Ok(other),
        };
        if let Some(number) = why::failed_request(&explained)
            && let Some(sent) = sent::get(self.connection, number).await?
        {
            let candidates = self.candidates(&sent).await?;
            let service = why::another_service(&explained, &candidates);
            explained.remedies.push(why::run_again(&sent, service));
        }
        Ok(Explained::Why(explained))
    }

    /// Returns the services with which the turn of a request could run again: those that meet the requirements of the
    /// agent's role and are not in trouble.
    async fn candidates(&mut self, sent: &SentRequest) -> Result<Vec<Candidate>, Error> {
        let agent = agents::get(self.connection, &sent.agent).await?;
        let role: Vec<RoleId> = agent.and_then(|agent| agent.role).into_iter().collect();
        let known = roles::several(self.connection, &role).await?;
        let required = known.into_iter().next().map(|role| role.required_capabilities).unwrap_or_default();
        let shown: Vec<ArtifactId> = sent.shown.iter().map(|shown| shown.artifact.clone()).collect();
        let content = artifacts::get_many(self.connection, &shown).await?;
        let lacks = |service: &Service| {
            let described = content.iter().filter(|stored| !takes(service, &stored.artifact)).count();
            described + usize::from(!service.tools_allowed())
        };
        let services = self.snapshot.catalogue.services().iter();
        let fitting =
            services.filter(|service| !self.bad.contains(&service.id) && service.lacks(&required).is_empty());
        let candidate = |service: &std::sync::Arc<Service>| Candidate {
            service: service.id.clone(),
            lacks: lacks(service),
        };
        Ok(fitting.map(candidate).collect())
    }

    async fn about(&mut self, id: &str) -> Result<Explained, Error> {
        if let Ok(number) = id.parse() {
            let found = events::get(self.connection, number).await?;
            let Some(entry) = found else { return Ok(Explained::Unknown) };
            return Ok(Explained::of(self.event(&entry).await?));
        }
        let task = TaskId::new(id);
        if tasks::exists(self.connection, &task).await? {
            return Ok(Explained::of(self.task(&task).await?));
        }
        if agents::exists(self.connection, id).await? {
            return Ok(Explained::of(self.agent(&AgentId::new(id)).await?));
        }
        let message = MessageId::new(id);
        if message.sequence().is_some() {
            let texts = &self.snapshot.prompts.texts;
            let ids = std::slice::from_ref(&message);
            let found = readings::messages::by_id(self.connection, texts, ids).await?;
            let Some(message) = found.get(&message) else { return Ok(Explained::Unknown) };
            return Ok(Explained::of(self.message(message).await?));
        }
        if let Some(approval) = approvals::get(self.connection, &ApprovalId::new(id)).await? {
            let stops = self.stops(&approval.asker.task).await?;
            return Ok(Explained::Why(why::asked(&approval, &stops)));
        }
        let artifact = ArtifactId::new(id.strip_prefix("artifact:").unwrap_or(id));
        let explained = Explained::of(self.artifact(&artifact).await?);
        let is_stored = artifacts::get(self.connection, &artifact).await?.is_some();
        // The request that described an artifact outlives the artifact.
        Ok(if explained == Explained::Plain && !is_stored { Explained::Unknown } else { explained })
    }

    async fn event(&mut self, entry: &Entry) -> Result<Option<Why>, Error> {
        match &entry.event {
            Event::TaskIdle { task, outcome } => self.end_of_task(task, *outcome, entry.seq).await,
            Event::AgentParked { task, agent, reason, .. } => {
                let newest = self.newest(Some(agent), Some(task), EventKind::AgentParked).await?;
                let holds = readings::agents::holds(self.connection, agent).await?;
                let is_parked = holds.iter().any(|hold| hold.task == *task);
                let is_newest = newest.is_some_and(|newest| newest.seq == entry.seq);
                let lasts = if is_parked && is_newest { Lasts::Still } else { Lasts::NoLonger };
                // The events up to the parking, and the parking itself.
                self.parked(agent, task, reason, lasts, entry.seq.saturating_add(1)).await.map(Some)
            }
            Event::AgentPaused { agent } => {
                let lasts = self.pause_lasts(agent).await?;
                Ok(Some(why::paused(agent, lasts)))
            }
            Event::ModelAnswered { content, sent: Some(number), .. } => {
                let Some(sent) = sent::get(self.connection, *number).await? else { return Ok(None) };
                let described = content.iter().find(|shown| shown.routing == Routing::Described);
                match described {
                    Some(shown) => self.described(&sent, shown).await.map(Some),
                    None => Ok(None),
                }
            }
            event => {
                let before = match event.agent() {
                    Some(agent) => self.before(agent, event.task(), entry.seq).await?,
                    None => Vec::new(),
                };
                let refusal = match event {
                    Event::ToolCalled { task, agent, call: Some(call), error: Some(code), .. } => {
                        let caller = Conversation { agent: agent.clone(), task: task.clone() };
                        self.refusal(&caller, call, code).await?
                    }
                    _ => Refusal::default(),
                };
                Ok(why::event(event, &before, refusal))
            }
        }
    }

    /// Returns the last events of an agent before the event `number`, oldest first. Only events that can explain a
    /// failure are returned.
    async fn before(
        &mut self,
        agent: &AgentId,
        task: Option<&TaskId>,
        number: i64,
    ) -> Result<Vec<Entry>, Error> {
        let kinds = [
            EventKind::ModelFailed,
            EventKind::ModelAnswered,
            EventKind::ServiceSkipped,
            EventKind::TurnEnded,
            EventKind::AgentParked,
            EventKind::AgentStopped,
        ];
        self.last_events(agent, task, number, &kinds, LOOK_BACK).await
    }

    /// Returns the newest event of a kind.
    async fn newest(
        &mut self,
        agent: Option<&AgentId>,
        task: Option<&TaskId>,
        kind: EventKind,
    ) -> Result<Option<Entry>, Error> {
        let kinds = vec![kind.as_str().to_owned()];
        let filter = EventFilter { task: task.cloned(), agent: agent.cloned(), kinds };
        let page = readings::events::list(self.connection, Side::Before(i64::MAX), &filter, 1).await?;
        Ok(page.events.into_iter().next())
    }

    /// Returns whether an agent that was paused is still paused.
    async fn pause_lasts(&mut self, agent: &AgentId) -> Result<Lasts, Error> {
        let view =
            readings::agents::get(self.connection, &self.snapshot.catalogue, self.moments, agent).await?;
        let is_paused = view.is_some_and(|view| view.state == AgentState::Paused);
        Ok(if is_paused { Lasts::Still } else { Lasts::NoLonger })
    }

    /// Returns the last events of these kinds of an agent before the event `number`, oldest first.
    async fn last_events(
        &mut self,
        agent: &AgentId,
        task: Option<&TaskId>,
        number: i64,
        kinds: &[EventKind],
        most: u32,
    ) -> Result<Vec<Entry>, Error> {
        let filter = EventFilter {
            task: task.cloned(),
            agent: Some(agent.clone()),
            kinds: kinds.iter().map(|kind| kind.as_str().to_owned()).collect(),
        };
        let page = readings::events::list(self.connection, Side::Before(number), &filter, most).await?;
        Ok(page.events)
    }

    /// Explains why an agent was parked before the event `number`.
    async fn parked(
        &mut self,
        agent: &AgentId,
        task: &TaskId,
        reason: &str,
        lasts: Lasts,
        number: i64,
    ) -> Result<Why, Error> {
        let limit = self.snapshot.settings.limits.max_failed_turns;
        let most = u32::try_from(limit).unwrap_or(MAX_PAGE).clamp(LOOK_BACK, MAX_PAGE);
        let kinds = [EventKind::TurnEnded, EventKind::AgentParked, EventKind::AgentStopped];
        let turns = self.last_events(agent, Some(task), number, &kinds, most).await?;
        let before = self.before(agent, Some(task), number).await?;
        Ok(why::parked(&Parked { agent, task, reason, lasts, limit, turns: &turns, before: &before }))
    }

    /// Reads the refusal of a call, and why the same call would be refused now. `code` is the code of the refusal.
    async fn refusal(&mut self, caller: &Conversation, call: &CallId, code: &str) -> Result<Refusal, Error> {
        let result = records::result_of(self.connection, caller, call).await?;
        let Some(Record::ToolFinished { result, .. }) = result else { return Ok(Refusal::default()) };
        let (ToolResult::Json(told) | ToolResult::Outside { content: Content::Json(told), .. }) = result
        else {
            return Ok(Refusal::default());
        };
        let text = told["message"].as_str().map(str::to_owned);
        let mut refusal = Refusal { text, ..Refusal::default() };
        let row = agents::get(self.connection, &caller.agent).await?;
        if row.is_none_or(|row| row.standing == Standing::Ended) {
            return Ok(refusal);
        }
        match code {
            "tool_not_permitted" => {
                // If a rule of the policy denied the call, the result names no groups.
                let groups: Vec<ToolGroup> =
                    serde_json::from_value(told["groups"].clone()).unwrap_or_default();
                refusal.denied = self.denied(&caller.agent, &groups).await?;
            }
            "unknown_contact" => {
                if let Some(meant) = told["to"].as_str() {
                    refusal.stranger = self.stranger(caller, meant.trim()).await?;
                }
            }
            _ => {}
        }
        Ok(refusal)
    }

    /// Returns what denies these groups of tools to an agent.
    async fn denied(&mut self, caller: &AgentId, groups: &[ToolGroup]) -> Result<Vec<Denied>, Error> {
        let chain = agents::chain(self.connection, caller).await?;
        let rights = self.snapshot.settings.rights(&chain);
        let mut found: Vec<(Option<AgentId>, Vec<ToolGroup>)> = Vec::new();
        for group in groups {
            for denial in rights.denials(group) {
                let by = match denial {
                    Denial::Settings => None,
                    Denial::Role { agent, .. } => Some(agent),
                };
                match found.iter_mut().find(|(known, _)| *known == by) {
                    Some((_, denied)) => denied.push(group.clone()),
                    None => found.push((by, vec![group.clone()])),
                }
            }
        }
        let mut denied = Vec::new();
        let mut roles = HashSet::new();
        for (by, groups) in found {
            let by = match by {
                None => Denier::Settings,
                Some(agent) => {
                    let Some(role) = self.role_of(&agent).await? else { continue };
                    // Several agents of the chain may have the same role.
                    if !roles.insert(role.id.clone()) {
                        continue;
                    }
                    Denier::Role { role: role.id, agent, names: role.tool_groups }
                }
            };
            denied.push(Denied { by, groups });
        }
        Ok(denied)
    }

    async fn role_of(&mut self, agent: &AgentId) -> Result<Option<Role>, Error> {
        let row = agents::get(self.connection, agent).await?;
        match row.and_then(|row| row.role) {
            Some(role) => roles::get(self.connection, &role).await,
            None => Ok(None),
        }
    }

    /// Returns the agent that the caller named but does not know. `meant` is the id of an agent of the task, or a name
    /// that only one of these agents has. Root belongs to no task, but works in each.
    async fn stranger(&mut self, caller: &Conversation, meant: &str) -> Result<Option<AgentId>, Error> {
        let filter =
            AgentFilter { task: Some(caller.task.clone()), limit: Some(MAX_PAGE), ..AgentFilter::default() };
        let (agents, _) =
            readings::agents::list(self.connection, &self.snapshot.catalogue, &Moments::default(), &filter)
                .await?;
        let is_meant = |agent: &&AgentView| {
            let is_named = agent.role == meant || agent.name.as_deref() == Some(meant);
            let is_of_task = agent.id.is_root() || agent.task.as_ref() == Some(&caller.task);
            is_of_task && agent.state != AgentState::Ended && (is_named || agent.id.as_str() == meant)
        };
        let fitting: Vec<&AgentView> = agents.iter().filter(is_meant).collect();
        let [found] = fitting[..] else { return Ok(None) };
        let is_known = contacts::knows(self.connection, &caller.agent, &found.id).await?;
        Ok((found.id != caller.agent && !is_known).then(|| found.id.clone()))
    }

    async fn task(&mut self, task: &TaskId) -> Result<Option<Why>, Error> {
        let Some(view) = readings::tasks::get(self.connection, task).await? else { return Ok(None) };
        // A task in which an agent waits for the person goes on after the answer.
        let goes_on = view.state == TaskState::Open || view.outcome == Some(Outcome::AwaitsUser);
        let unanswered = if goes_on {
            messages::open_in(self.connection, task).await?
        } else {
            messages::unanswered(self.connection, task).await?
        };
        let open: Vec<OpenRequest> = unanswered
            .into_iter()
            .map(|request| OpenRequest {
                message: request.id,
                from: request.from,
                to: request.to,
                since: request.since,
            })
            .collect();
        if goes_on {
            return self.open_task(&view, &open).await.map(Some);
        }
        // The outcome of a forgotten task is not known any more.
        let Some(outcome) = view.outcome else { return Ok(None) };
        let parked = polity_store::holds::of_task(self.connection, task).await?;
        let of_root = self.before(&AgentId::root(), Some(task), i64::MAX).await?;
        let stops = self.stops(task).await?;
        let ended = Ended {
            task,
            outcome,
            stopped_by: view.stopped_by.as_deref(),
            open: &open,
            parked: &parked,
            of_root: &of_root,
            stops: &stops,
        };
        Ok(Some(why::task(&ended, tasks::STOPPED_BY_USER)))
    }

    /// Explains the end of a task that the event `number` reports. If the task has gone on since then, the facts of
    /// today do not explain this end, and nothing needs to be done about it.
    async fn end_of_task(
        &mut self,
        task: &TaskId,
        outcome: Outcome,
        number: i64,
    ) -> Result<Option<Why>, Error> {
        let view = readings::tasks::get(self.connection, task).await?;
        let newest = self.newest(None, Some(task), EventKind::TaskIdle).await?;
        if newest.is_none_or(|newest| newest.seq == number)
            && view.is_none_or(|view| view.outcome == Some(outcome))
        {
            return self.task(task).await;
        }
        let of_root = self.before(&AgentId::root(), Some(task), number).await?;
        let ended =
            Ended { task, outcome, stopped_by: None, open: &[], parked: &[], of_root: &of_root, stops: &[] };
        let Why { chain, .. } = why::task(&ended, tasks::STOPPED_BY_USER);
        Ok(Some(Why { chain, remedies: Vec::new() }))
    }

    async fn open_task(&mut self, task: &TaskView, open: &[OpenRequest]) -> Result<Why, Error> {
        let moments = self.handles.board.moments(Some(&task.id), polity_store::now().as_millis());
        let filter =
            AgentFilter { task: Some(task.id.clone()), limit: Some(MAX_PAGE), ..AgentFilter::default() };
        let (found, _) =
            readings::agents::list(self.connection, &self.snapshot.catalogue, &moments, &filter).await?;
        let mut agents = Vec::new();
        let mut parties = HashMap::new();
        for agent in found.into_iter().filter(|agent| !agent.id.is_user()) {
            let has_work = !matches!(agent.doing, Doing::Idle | Doing::Ended { .. });
            let before = match agent.state.is_at_work() && agents.len() < MOST_TOLD {
                true => self.before(&agent.id, Some(&task.id), i64::MAX).await?,
                false => Vec::new(),
            };
            if has_work {
                agents.push(agent.id.clone());
            }
            parties.insert(agent.id, Party { doing: agent.doing, before });
        }
        let facts = OpenTask { task: &task.id, since: task.created_at, agents: &agents, open };
        Ok(why::open_task(&facts, &parties))
    }

    /// Reads what these agents do, in one task or in all tasks, and what the agents do for which they wait.
    async fn parties(
        &mut self,
        first: &[AgentId],
        task: Option<&TaskId>,
    ) -> Result<HashMap<AgentId, Party>, Error> {
        let in_task =
            task.map(|task| self.handles.board.moments(Some(task), polity_store::now().as_millis()));
        let moments = in_task.as_ref().unwrap_or(self.moments);
        let mut parties = HashMap::new();
        let mut next = first.to_vec();
        while !next.is_empty() && parties.len() < MOST_TOLD {
            let catalogue = &self.snapshot.catalogue;
            let found = readings::agents::several(self.connection, catalogue, moments, &next, task).await?;
            next.clear();
            for agent in found {
                let before = match agent.state.is_at_work() {
                    true => self.before(&agent.id, agent.doing.task(), i64::MAX).await?,
                    false => Vec::new(),
                };
                next.extend(why::followed(&agent.doing).iter().map(|request| request.agent.clone()));
                parties.insert(agent.id, Party { doing: agent.doing, before });
            }
            next.retain(|agent| !agent.is_user() && !parties.contains_key(agent));
        }
        Ok(parties)
    }

    async fn agent(&mut self, agent: &AgentId) -> Result<Option<Why>, Error> {
        let Some(view) =
            readings::agents::get(self.connection, &self.snapshot.catalogue, self.moments, agent).await?
        else {
            return Ok(None);
        };
        let mut stopped = None;
        // An agent that is parked in one task may work in another, so its state need not be `parked`.
        let holds = readings::agents::holds(self.connection, agent).await?;
        match (view.state, holds.first()) {
            (AgentState::Paused, _) => return Ok(Some(why::paused(agent, Lasts::Still))),
            (AgentState::Ended, _) => {
                let ended = self.newest(Some(agent), None, EventKind::AgentEnded).await?;
                return Ok(ended.and_then(|ended| match ended.event {
                    Event::AgentEnded { reason, .. } => Some(why::agent_ended(agent, &reason)),
                    _ => None,
                }));
            }
            (_, Some(hold)) => {
                let (task, reason) = (&hold.task, &hold.reason);
                return self.parked(agent, task, reason, Lasts::Still, i64::MAX).await.map(Some);
            }
            (AgentState::Waiting | AgentState::Asking, None) => {}
            (state, None) => {
                let before = self.before(agent, view.doing.task(), i64::MAX).await?;
                let failing = match state.is_at_work() {
                    true => why::struggling(&before),
                    false => why::failure(&before),
                };
                if let Some(failing) = failing {
                    return Ok(Some(failing));
                }
                stopped = why::stopped(&before);
            }
        }
        // Root takes part in all tasks, and any other agent in one. An agent may wait for root in its own task.
        let parties = self.parties(std::slice::from_ref(agent), view.task.as_ref()).await?;
        Ok(why::agent(agent, &parties).or(stopped))
    }

    async fn message(&mut self, message: &MessageView) -> Result<Option<Why>, Error> {
        let (id, from, to) = (message.id.clone(), message.from.clone(), message.to.clone());
        let since = message.created_at;
        let chain = match message.state {
            MessageState::Bounced => return self.came_back(message).await.map(Some),
            MessageState::Unanswered | MessageState::Failed => {
                vec![Fact::Unanswered { message: id, from, to: to.clone(), since: Some(since) }]
            }
            // The receiver has not got the message yet.
            MessageState::Delayed => return Ok(None),
            _ if message.expects == Expects::Answer && message.answered_by.is_none() => {
                let parties = self.parties(std::slice::from_ref(&to), Some(&message.task)).await?;
                let open = OpenRequest { message: id, from, to, since };
                return Ok(Some(why::request(&open, &message.task, &parties)));
            }
            _ => return Ok(None),
        };
        let mut why = Why { chain, remedies: Vec::new() };
        if !to.is_user() {
            let kinds = [
                EventKind::ModelFailed,
                EventKind::ModelAnswered,
                EventKind::ServiceSkipped,
                EventKind::TurnEnded,
                EventKind::AgentStopped,
            ];
            let events = self.last_events(&to, Some(&message.task), i64::MAX, &kinds, MAX_PAGE).await?;
            if let Some(failing) = why::failed_since(&events, since) {
                why.chain.extend(failing.chain);
                why.remedies.extend(failing.remedies);
            }
        }
        Ok(Some(why))
    }

    /// Explains why a message came back: its receiver has ended, or the person stopped the work on the message.
    async fn came_back(&mut self, message: &MessageView) -> Result<Why, Error> {
        let MessageView { id, from, to, task, created_at, .. } = message;
        let row = agents::get(self.connection, to).await?;
        let has_ended = row.is_none_or(|row| row.standing == Standing::Ended);
        let stops = self.stops(task).await?;
        let is_of_receiver = |entry: &Entry| entry.at >= *created_at && entry.event.agent() == Some(to);
        // An agent that was stopped first and ended later has had no message left that could come back.
        if has_ended && !stops.iter().any(is_of_receiver) {
            let chain = vec![Fact::Bounced { message: id.clone(), to: to.clone() }];
            return Ok(Why { chain, remedies: Vec::new() });
        }
        // Root stands for all of its task. If another agent was stopped, root may go on.
        let stopped_by = if to.is_root() { tasks::stopped_by(self.connection, task).await? } else { None };
        let all_of_it = stopped_by.is_some_and(|by| by == tasks::STOPPED_BY_USER).then_some(task);
        let request =
            OpenRequest { message: id.clone(), from: from.clone(), to: to.clone(), since: *created_at };
        Ok(why::withdrawn(&request, task, all_of_it, &stops))
    }

    /// Returns the last events that the person stopped agents in a task, oldest first.
    async fn stops(&mut self, task: &TaskId) -> Result<Vec<Entry>, Error> {
        let kinds = vec![EventKind::AgentStopped.as_str().to_owned()];
        let filter = EventFilter { task: Some(task.clone()), agent: None, kinds };
        let page = readings::events::list(self.connection, Side::Before(i64::MAX), &filter, MAX_PAGE).await?;
        Ok(page.events)
    }

    async fn artifact(&mut self, artifact: &ArtifactId) -> Result<Option<Why>, Error> {
        let sent = match self.filter.sent {
            Some(number) => sent::get(self.connection, number).await?,
            None => sent::describing(self.connection, self.filter.agent.as_ref(), artifact).await?,
        };
        let Some(sent) = sent else { return Ok(None) };
        let described = |shown: &&Shown| shown.artifact == *artifact && shown.routing == Routing::Described;
        match sent.shown.iter().find(described) {
            Some(shown) => self.described(&sent, shown).await.map(Some),
            None => Ok(None),
        }
    }

    async fn described(&mut self, sent: &SentRequest, shown: &Shown) -> Result<Why, Error> {
        let stored = artifacts::get(self.connection, &shown.artifact).await?.map(|stored| stored.artifact);
        let filename = stored.as_ref().and_then(|artifact| artifact.filename.clone());
        let mut help = Help::default();
        if let Some(row) = agents::get(self.connection, &sent.agent).await? {
            (help.role, help.standing) = (row.role, Some(row.standing));
        }
        let Some(artifact) = stored else { return Ok(why::described(sent, shown, filename, &help)) };
        let services = self.snapshot.catalogue.services().iter();
        let others = services.filter(|service| service.id != sent.service && takes(service, &artifact));
        help.services = others.map(|service| service.id.clone()).collect::<Vec<ServiceId>>();
        let known = contacts::of(self.connection, &sent.agent, &sent.task).await?;
        let filter =
            AgentFilter { task: Some(sent.task.clone()), limit: Some(MAX_PAGE), ..AgentFilter::default() };
        let (agents, _) =
            readings::agents::list(self.connection, &self.snapshot.catalogue, &Moments::default(), &filter)
                .await?;
        for agent in agents {
            let Some(service) = agent.service.filter(|service| help.services.contains(service)) else {
                continue;
            };
            let is_known = known.iter().any(|contact| contact.agent.id == agent.id);
            let known = if is_known { Known::Yes } else { Known::No };
            if agent.state != AgentState::Ended && agent.id != sent.agent {
                help.able.push(Able { agent: agent.id, service, known });
            }
        }
        Ok(why::described(sent, shown, filename, &help))
    }
}

/// Returns whether a request to this service would show an artifact, and not only describe it.
fn takes(service: &Service, artifact: &Artifact) -> bool {
    let file_types = FileTypes::new(&service.file_types);
    let route = route(&Routable::of(artifact), &service.capabilities, &file_types);
    !matches!(route, Route::Describe(_))
}
