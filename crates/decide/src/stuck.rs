//! Decides what the page Now shows: which agents work or wait, what is stuck, and what the person can do about it.

use polity_society::id::{AgentId, MessageId, RoleId, ServiceId, TaskId, TurnId};
use polity_store::Conversation;
use polity_store::view::doing::Moments;
use polity_store::view::now::{Open, OpenRequest};
use polity_view::{
    Awaited, Cause, Circuit, Doing, Remedy, ResumeScope, ServiceState, Stuck, TaskState, Trouble,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Milliseconds without any activity after which a request to an agent counts as stuck. Until then, the agent may be
/// between two steps of its turn.
pub const QUIET_MS: i64 = 60_000;
/// Maximum number of names in each list that the description of a stuck thing contains.
pub const MAX_NAMED: usize = 5;

/// Whether a process runs the society that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// This process runs the society.
    Here,
    /// No process runs the society, so no agent does anything.
    Nowhere,
}

/// The facts from which the functions of this file decide.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// Milliseconds since 1970.
    pub now: i64,
    pub runs: Runs,
    pub open: &'a Open,
    pub moments: &'a Moments,
    /// All services of the configuration.
    pub services: &'a [(ServiceId, ServiceState)],
    /// The tasks of [`unfinished`] that have the outcome `Answered`.
    pub answered: &'a HashSet<TaskId>,
}

/// An agent that gets a card on the page Now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Active {
    /// The conversation in which the agent was active most recently. The card shows the task that belongs to the state
    /// of the agent, which may be another one.
    pub who: Conversation,
    /// The time of the agent's newest activity, in all of its tasks.
    pub at: i64,
    pub stance: Stance,
}

/// Whether an agent with a card works or waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stance {
    /// The agent has work in some task, and can go on with it.
    Works,
    /// The agent can do nothing until others or the person have answered.
    Waits,
}

/// Something that is stuck. The caller adds the remedies and the quoted texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub since: i64,
    /// The task to which the stuck thing belongs; `None` for a service, which belongs to no task.
    pub task: Option<TaskId>,
    pub stuck: Stuck,
}

/// A role, and the services that it could use instead of its current service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub role: RoleId,
    pub name: String,
    pub services: Vec<ServiceId>,
}

/// A turn of root, and the services with which it could begin again in a new task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again {
    pub turn: TurnId,
    pub services: Vec<ServiceId>,
}

/// The services that agents could use instead of their current services.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// The roles of agents; root has no role.
    pub roles: HashMap<AgentId, Choice>,
    /// The newest turn of root in each task.
    pub turns: HashMap<TaskId, Again>,
}

impl Found {
    /// Returns a key that is unique among all things that are stuck at the same moment.
    pub fn key(&self) -> String {
        let task = self.task.as_ref().map_or("", TaskId::as_str);
        match &self.stuck {
            Stuck::Question { message, .. } => format!("question {message}"),
            Stuck::Approval { approval, .. } => format!("approval {approval}"),
            Stuck::Request { message, .. } => format!("request {message}"),
            Stuck::Parked { agent, .. } => format!("parked {agent} {task}"),
            Stuck::Paused { agent } => format!("paused {agent}"),
            Stuck::Service { service, .. } => format!("service {service}"),
            Stuck::Answered { .. } => format!("answered {task}"),
        }
    }

    /// Returns the message whose text is quoted to the person.
    pub fn quoted(&self) -> Option<&MessageId> {
        match &self.stuck {
            Stuck::Question { message, .. } | Stuck::Request { message, .. } => Some(message),
            Stuck::Approval { .. }
            | Stuck::Parked { .. }
            | Stuck::Paused { .. }
            | Stuck::Service { .. }
            | Stuck::Answered { .. } => None,
        }
    }

    /// A remedy may suggest another service for the roles of some agents. Returns these agents.
    pub fn cured(&self) -> Vec<AgentId> {
        match &self.stuck {
            Stuck::Parked { agent, .. } => vec![agent.clone()],
            Stuck::Service { agents, .. } => agents.clone(),
            Stuck::Request { to, cause: Cause::Quiet, .. } => vec![to.clone()],
            Stuck::Request { .. }
            | Stuck::Question { .. }
            | Stuck::Approval { .. }
            | Stuck::Paused { .. }
            | Stuck::Answered { .. } => Vec::new(),
        }
    }

    /// A remedy may suggest that a turn of root begins again with another service. Returns the task of this turn.
    pub fn begins_again(&self, moments: &Moments) -> Option<TaskId> {
        let root = self.cured().into_iter().find(AgentId::is_root)?;
        match &self.stuck {
            Stuck::Service { service, .. } => task_at(service, &root, moments).cloned(),
            Stuck::Parked { .. }
            | Stuck::Paused { .. }
            | Stuck::Request { .. }
            | Stuck::Question { .. }
            | Stuck::Approval { .. }
            | Stuck::Answered { .. } => self.task.clone(),
        }
    }
}

/// Returns the idle tasks in which root still has an open request to another agent.
pub fn unfinished(open: &Open) -> Vec<TaskId> {
    let tasks: BTreeSet<&TaskId> =
        open.requests.iter().filter(|request| is_left_over(request)).map(|request| &request.task).collect();
    tasks.into_iter().cloned().collect()
}

fn is_left_over(request: &OpenRequest) -> bool {
    request.task_state == TaskState::Idle && request.from.is_root() && !request.to.is_user()
}

/// Returns the agents that work or wait for somebody, each with the time of its newest activity. The agent with the
/// newest activity comes first. A paused agent does nothing, and neither does an agent that is parked in some task and
/// cannot go on in another. Such agents are left out here, and [`found`] reports them as stuck.
pub fn active(scene: &Scene<'_>) -> Vec<Active> {
    let Scene { open, moments, .. } = scene;
    let held: HashSet<&Conversation> = open.holds.iter().map(|hold| &hold.who).collect();
    let asking: HashSet<&Conversation> = open.approvals.iter().map(|asked| &asked.who).collect();
    let parked: HashSet<&AgentId> = held.iter().map(|who| &who.agent).collect();
    let goes_on = |who: &&Conversation| !held.contains(*who) && !asking.contains(*who);
    let works: HashSet<&AgentId> = open.work.keys().filter(goes_on).map(|who| &who.agent).collect();
    let worked = open.work.iter().map(|(who, since)| (who.clone(), *since));
    let asked = open.approvals.iter().map(|asked| (asked.who.clone(), asked.since));
    let waiting = open.requests.iter().map(|request| (request.sender(), request.since));
    let mut newest: HashMap<AgentId, Active> = HashMap::new();
    for (who, since) in worked.chain(asked).chain(waiting) {
        let stance = if works.contains(&who.agent) { Stance::Works } else { Stance::Waits };
        let does_nothing = open.paused.contains_key(&who.agent)
            || (stance == Stance::Waits && parked.contains(&who.agent))
            || held.contains(&who);
        if who.agent.is_user() || does_nothing {
            continue;
        }
        let at = open.newest.get(&who).copied().unwrap_or(since).max(since);
        let known =
            newest.entry(who.agent.clone()).or_insert_with(|| Active { who: who.clone(), at, stance });
        if at > known.at {
            *known = Active { who, at, stance };
        }
    }
    for active in newest.values_mut() {
        let moments = moments.of(&active.who.agent).iter().filter_map(Doing::since);
        active.at = moments.fold(active.at, i64::max);
    }
    let mut newest: Vec<Active> = newest.into_values().collect();
    newest.sort_by(|a, b| (Reverse(a.at), &a.who).cmp(&(Reverse(b.at), &b.who)));
    newest
}

/// Returns everything that is stuck, and every service that is in trouble, oldest first.
pub fn found(scene: &Scene<'_>) -> Vec<Found> {
    let mut found = questions(scene);
    found.extend(parked(scene));
    let requests = requests(scene);
    found.extend(paused(scene, &requests));
    found.extend(requests);
    found.extend(left_over(scene));
    found.extend(services(scene));
    found.sort_by_cached_key(|found| (found.since, found.key()));
    found
}

fn questions(scene: &Scene<'_>) -> Vec<Found> {
    let asked = scene.open.requests.iter().filter(|request| request.to.is_user() && !request.is_delayed);
    let questions = asked.map(|request| Found {
        since: request.since,
        task: Some(request.task.clone()),
        stuck: Stuck::Question {
            agent: request.from.clone(),
            message: request.id.clone(),
            text: String::new(),
        },
    });
    let approvals = scene.open.approvals.iter().map(|asked| Found {
        since: asked.since,
        task: Some(asked.who.task.clone()),
        stuck: Stuck::Approval {
            agent: asked.who.agent.clone(),
            approval: asked.approval.clone(),
            tool: asked.tool.clone(),
            expires_at: asked.expires_at,
        },
    });
    questions.chain(approvals).collect()
}

fn parked(scene: &Scene<'_>) -> Vec<Found> {
    let mut askers: HashMap<Conversation, BTreeSet<&AgentId>> = HashMap::new();
    for request in &scene.open.requests {
        askers.entry(request.receiver()).or_default().insert(&request.from);
    }
    let found = scene.open.holds.iter().map(|hold| Found {
        since: hold.since,
        task: Some(hold.who.task.clone()),
        stuck: Stuck::Parked {
            agent: hold.who.agent.clone(),
            reason: hold.reason.clone(),
            asked_by: askers.get(&hold.who).into_iter().flatten().take(MAX_NAMED).copied().cloned().collect(),
        },
    });
    found.collect()
}

/// Returns the paused agents that hold something up, and that no stuck request names. A paused root holds up everything:
/// no task can begin, and root's remedy also resumes all other agents.
fn paused(scene: &Scene<'_>, requests: &[Found]) -> Vec<Found> {
    let Open { paused, work, holds, .. } = scene.open;
    let is_named = |agent: &AgentId| {
        let mut stuck = requests.iter().map(|found| &found.stuck);
        stuck.any(|stuck| matches!(stuck, Stuck::Request { to, cause: Cause::Paused, .. } if to == agent))
    };
    let root = AgentId::root();
    let held_up: Vec<(&AgentId, Option<&TaskId>)> = if paused.contains_key(&root) {
        vec![(&root, None)]
    } else {
        let held: HashSet<&Conversation> = holds.iter().map(|hold| &hold.who).collect();
        let goes_on = |who: &&Conversation| !held.contains(*who);
        // An agent may have work in several tasks. The first one stands for all of them.
        let mut first: BTreeMap<&AgentId, &TaskId> = BTreeMap::new();
        for who in work.keys().filter(goes_on) {
            let task = first.entry(&who.agent).or_insert(&who.task);
            *task = (*task).min(&who.task);
        }
        first.into_iter().map(|(agent, task)| (agent, Some(task))).collect()
    };
    let found = held_up.into_iter().filter(|(agent, _)| !is_named(agent)).filter_map(|(agent, task)| {
        let since = *paused.get(agent)?;
        Some(Found { since, task: task.cloned(), stuck: Stuck::Paused { agent: agent.clone() } })
    });
    found.collect()
}

/// Returns the open requests that are stuck: nobody works on the request, or its receiver has been quiet for too long.
/// Requests to the person, delayed requests and requests of idle tasks are never stuck. If the receiver is parked, asks
/// the person or waits for another agent, [`found`] returns the cause of the delay instead of the request. A request is
/// not stuck either if its receiver waits for a command or for its own delayed message.
fn requests(scene: &Scene<'_>) -> Vec<Found> {
    let open = scene.open;
    let held: HashSet<&Conversation> = open.holds.iter().map(|hold| &hold.who).collect();
    let asking: HashSet<&Conversation> = open.approvals.iter().map(|asked| &asked.who).collect();
    let waiting: HashSet<Conversation> = open.requests.iter().map(OpenRequest::sender).collect();
    let cause = |request: &OpenRequest| {
        let receiver = request.receiver();
        if request.to.is_user()
            || request.is_delayed
            || request.task_state == TaskState::Idle
            || held.contains(&receiver)
        {
            return None;
        }
        if open.paused.contains_key(&request.to) {
            return Some(Cause::Paused);
        }
        if asking.contains(&receiver) || scene.moments.in_task(&request.to, &request.task).is_some() {
            return None;
        }
        let cause = match open.work.get(&receiver) {
            // Somebody has begun to work on the request, but no process runs the society now. The next process
            // continues this work, so the request is not stuck.
            Some(_) if scene.runs == Runs::Nowhere => return None,
            Some(_) => Cause::Quiet,
            None if waiting.contains(&receiver) || open.timed.contains(&receiver) => return None,
            // A request of the person to root is not stuck: if root has nothing to do, the task is declared idle.
            None if request.from.is_user() => return None,
            None => Cause::Idle,
        };
        let work = open.work.get(&receiver).copied();
        let newest =
            open.newest.get(&receiver).copied().max(work).unwrap_or(request.since).max(request.since);
        (scene.now.saturating_sub(newest) >= QUIET_MS).then_some(cause)
    };
    let found = open.requests.iter().filter_map(|request| {
        let cause = cause(request)?;
        let stuck = Stuck::Request {
            message: request.id.clone(),
            from: request.from.clone(),
            to: request.to.clone(),
            text: String::new(),
            cause,
        };
        Some(Found { since: request.since, task: Some(request.task.clone()), stuck })
    });
    found.collect()
}

fn left_over(scene: &Scene<'_>) -> Vec<Found> {
    let mut tasks: BTreeMap<&TaskId, Vec<Awaited>> = BTreeMap::new();
    for request in scene.open.requests.iter().filter(|request| is_left_over(request)) {
        if scene.answered.contains(&request.task) {
            tasks.entry(&request.task).or_default().push(Awaited {
                agent: request.to.clone(),
                request: request.id.clone(),
                task: request.task.clone(),
                since: request.since,
            });
        }
    }
    let found = tasks.into_iter().map(|(task, mut requests)| {
        requests.truncate(MAX_NAMED);
        let since = requests.first().map_or(scene.now, |oldest| oldest.since);
        Found { since, task: Some(task.clone()), stuck: Stuck::Answered { requests } }
    });
    found.collect()
}

fn services(scene: &Scene<'_>) -> Vec<Found> {
    let mut users: HashMap<&ServiceId, BTreeSet<&AgentId>> = HashMap::new();
    let mut silent: HashMap<&ServiceId, (i64, i64)> = HashMap::new();
    for (agent, doing) in scene.moments.all() {
        let Some(service) = doing.service() else { continue };
        users.entry(service).or_default().insert(agent);
        if let Doing::Thinking { silence: Some(silence), .. } = doing {
            let known = silent.entry(service).or_insert((silence.since, silence.until));
            *known = (known.0.min(silence.since), known.1.max(silence.until));
        }
    }
    let in_trouble = |(service, state): &(ServiceId, ServiceState)| {
        let pause = state.paused_for_ms.map(|left| scene.now.saturating_add(left.cast_signed()));
        let (trouble, since, until) = if let Some(since) = state.failing_since {
            (Trouble::Failing, since, pause)
        } else if let Some((since, until)) = silent.get(service) {
            (Trouble::Silent, *since, Some(*until))
        } else if state.circuit != Circuit::Closed {
            (Trouble::Failing, scene.now, pause)
        } else if pause.is_some() {
            (Trouble::Paused, scene.now, pause)
        } else {
            return None;
        };
        let agents = users.get(service).into_iter().flatten().take(MAX_NAMED).copied().cloned().collect();
        let stuck = Stuck::Service {
            service: service.clone(),
            trouble,
            circuit: state.circuit,
            until,
            reason: state.last_error.clone(),
            agents,
        };
        Some(Found { since, task: None, stuck })
    };
    scene.services.iter().filter_map(in_trouble).collect()
}

/// Returns what the person can do about something that is stuck, the best remedy first. [`Found::cured`] returns
/// agents, and `choices` contains their roles. [`Found::begins_again`] returns a task, and `choices` contains the
/// newest turn of root in this task.
pub fn remedies(found: &Found, choices: &Choices, moments: &Moments) -> Vec<Remedy> {
    let Some(task) = found.task.clone() else {
        return match &found.stuck {
            Stuck::Paused { agent } => of_paused(agent, None),
            _ => of_service(found, choices, moments),
        };
    };
    match &found.stuck {
        Stuck::Question { agent, .. } => {
            vec![Remedy::Write { to: agent.clone(), task: task.clone() }, stop(agent, task)]
        }
        Stuck::Approval { agent, approval, .. } => {
            vec![Remedy::Decide { approval: approval.clone() }, stop(agent, task)]
        }
        Stuck::Parked { agent, .. } => {
            let mut remedies = vec![Remedy::Resume { agent: agent.clone(), scope: ResumeScope::Agent }];
            remedies.extend(another_service(agent, choices, Some(agent.clone())));
            remedies.extend(run_again(found, choices, moments));
            remedies.push(stop(agent, task));
            remedies
        }
        Stuck::Request { to, cause: Cause::Paused, .. } => {
            vec![Remedy::Resume { agent: to.clone(), scope: ResumeScope::Subtree }, stop(to, task)]
        }
        Stuck::Request { to, cause: Cause::Idle | Cause::Quiet, .. } => {
            let mut remedies = vec![Remedy::Write { to: to.clone(), task: task.clone() }];
            remedies.extend(another_service(to, choices, None));
            remedies.extend(run_again(found, choices, moments));
            remedies.push(stop(to, task));
            remedies
        }
        Stuck::Answered { .. } => {
            vec![Remedy::Write { to: AgentId::root(), task: task.clone() }, Remedy::StopTask { task }]
        }
        Stuck::Paused { agent } => of_paused(agent, Some(task)),
        Stuck::Service { .. } => of_service(found, choices, moments),
    }
}

fn of_paused(agent: &AgentId, task: Option<TaskId>) -> Vec<Remedy> {
    let resume = Remedy::Resume { agent: agent.clone(), scope: ResumeScope::Subtree };
    let stop = task.map(|task| stop(agent, task));
    [resume].into_iter().chain(stop).collect()
}

fn of_service(found: &Found, choices: &Choices, moments: &Moments) -> Vec<Remedy> {
    let Stuck::Service { service, trouble, agents, .. } = &found.stuck else { return Vec::new() };
    let mut remedies: Vec<Remedy> = Vec::new();
    for remedy in agents.iter().filter_map(|agent| another_service(agent, choices, None)) {
        if !remedies.contains(&remedy) {
            remedies.push(remedy);
        }
    }
    remedies.extend(run_again(found, choices, moments));
    // The request to a silent server has not failed yet. Nobody pauses.
    if *trouble != Trouble::Silent {
        remedies.push(Remedy::TryAgain { service: service.clone() });
    }
    remedies.push(Remedy::CheckService { service: service.clone() });
    let stops =
        agents.iter().filter_map(|agent| Some(stop(agent, task_at(service, agent, moments)?.clone())));
    remedies.extend(stops);
    remedies
}

/// Returns the task in which an agent calls a service now or next.
fn task_at<'m>(service: &ServiceId, agent: &AgentId, moments: &'m Moments) -> Option<&'m TaskId> {
    moments.of(agent).iter().find(|moment| moment.service() == Some(service))?.task()
}

/// Returns the remedy that stops an agent. Root works for all tasks, so the remedy does not stop root itself, but only
/// this task.
fn stop(agent: &AgentId, task: TaskId) -> Remedy {
    if agent.is_root() { Remedy::StopTask { task } } else { Remedy::StopAgent { agent: agent.clone() } }
}

fn another_service(agent: &AgentId, choices: &Choices, resume: Option<AgentId>) -> Option<Remedy> {
    let Choice { role, name, services } = choices.roles.get(agent)?;
    let services: Vec<ServiceId> = services.iter().take(MAX_NAMED).cloned().collect();
    (!services.is_empty()).then(|| Remedy::Service {
        role: role.clone(),
        name: name.clone(),
        services,
        resume,
    })
}

/// Returns the remedy that begins a turn of root again with another service. Root has no role, so a new task is the
/// only way to give it another service.
fn run_again(found: &Found, choices: &Choices, moments: &Moments) -> Option<Remedy> {
    let task = found.begins_again(moments)?;
    let Again { turn, services } = choices.turns.get(&task)?;
    let services: Vec<ServiceId> = services.iter().take(MAX_NAMED).cloned().collect();
    (!services.is_empty()).then(|| Remedy::RunAgain { task, turn: turn.number(), services })
}

#[cfg(test)]
mod tests;
