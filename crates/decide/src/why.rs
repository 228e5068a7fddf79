//! Explains why something happened in the society: builds a chain of facts, and decides what the person can do.

mod at_work;

pub use at_work::{MOST_TOLD, OpenTask, Party, agent, followed, open_task, request};

use polity_society::agent::Standing;
use polity_society::id::{AgentId, MessageId, RoleId, ServiceId, TaskId};
use polity_society::tool_group::ToolGroup;
use polity_view::{Because, Entry, Event, Fact, NextAttempt, Outcome, SentRequest, Shown, Why, WhyRemedy};

/// An explanation has several lists: remedies of one kind, failed attempts, open requests, and parked agents. This is
/// the maximum length of each list.
const MOST: usize = 3;
/// Maximum number of failed turns that the explanation of a parked agent lists.
const MOST_TURNS: usize = 10;
/// The name of the limit in `app.json` that parks an agent.
const MAX_FAILED_TURNS: &str = "maxFailedTurns";

/// The model of an agent does not take some content. These facts show how the agent could get help now.
#[derive(Clone, Debug, Default)]
pub struct Help {
    /// The role of the agent; root has none.
    pub role: Option<RoleId>,
    /// Whether the agent is active or has ended; `None` if the database has no row of the agent any more.
    pub standing: Option<Standing>,
    /// The services that take the content now, other than the agent's service.
    pub services: Vec<ServiceId>,
    /// The other agents of the task that have not ended and that use one of `services`.
    pub able: Vec<Able>,
}

/// An agent whose model takes the content.
#[derive(Clone, Debug)]
pub struct Able {
    pub agent: AgentId,
    pub service: ServiceId,
    /// Whether this agent is a contact of the agent that needs help.
    pub known: Known,
}

/// Whether an agent is a contact of another agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    Yes,
    No,
}

/// Explains why a request to a model contained a description of an artifact instead of the artifact.
pub fn described(sent: &SentRequest, shown: &Shown, filename: Option<String>, help: &Help) -> Why {
    let (artifact, agent) = (shown.artifact.clone(), sent.agent.clone());
    let (service, revision) = (sent.service.clone(), sent.revision);
    let mut chain = vec![Fact::Described { artifact, filename, agent: agent.clone(), sent: sent.number }];
    let Some(why) = &shown.why else { return Why { chain, remedies: Vec::new() } };
    let because = why.because.clone();
    chain.push(match &because {
        Because::MissingCapability { .. } => {
            Fact::ServiceTakes { service, revision, takes: why.takes.clone() }
        }
        _ => Fact::NotShown { because: because.clone(), service, revision },
    });
    if !another_service_helps(&because) {
        return Why { chain, remedies: Vec::new() };
    }
    if why.services.is_empty() {
        chain.push(Fact::NobodyCan);
    } else {
        chain.push(Fact::OthersCan { services: why.services.clone() });
        chain.push(match why.contacts.is_empty() {
            true => Fact::NoContactOn { agent: agent.clone(), services: why.services.clone() },
            false => Fact::HasContacts { agent: agent.clone(), contacts: why.contacts.clone() },
        });
    }
    Why { chain, remedies: remedies(sent, &because, help) }
}

/// Returns whether the content could perhaps be shown to a model of another service.
fn another_service_helps(because: &Because) -> bool {
    match because {
        Because::MissingCapability { .. }
        | Because::FileTypeNotTaken
        | Because::Refused
        | Because::TooLarge { .. }
        | Because::CannotFit { .. } => true,
        Because::TooManyPixels { .. }
        | Because::NotConvertible
        | Because::Damaged
        | Because::EarlierAttachment { .. }
        | Because::TogetherTooLarge { .. }
        | Because::Unreadable => false,
    }
}

fn remedies(sent: &SentRequest, because: &Because, help: &Help) -> Vec<WhyRemedy> {
    if help.services.is_empty() {
        return match because {
            Because::MissingCapability { capability } => {
                vec![WhyRemedy::Declare { capability: capability.clone() }]
            }
            _ => vec![WhyRemedy::CheckService { service: sent.service.clone() }],
        };
    }
    // A turn can run again even if its agent has ended since then: in the fork, the agent is as it was when the turn
    // began.
    let again = help.services.first().map(|service| run_again(sent, Some(service.clone())));
    match help.standing {
        Some(Standing::Active) => {}
        Some(Standing::Ended) => return again.into_iter().collect(),
        None => return Vec::new(),
    }
    let (agent, task) = (&sent.agent, &sent.task);
    let strangers = help.able.iter().filter(|able| able.known == Known::No && able.agent != *agent);
    let mut remedies: Vec<WhyRemedy> = strangers
        .take(MOST)
        .map(|able| WhyRemedy::Introduce {
            agent: able.agent.clone(),
            service: Some(able.service.clone()),
            to: agent.clone(),
            task: task.clone(),
        })
        .collect();
    if help.able.iter().any(|able| able.known == Known::Yes) {
        remedies.push(WhyRemedy::Write { agent: agent.clone(), task: task.clone() });
    }
    if let Some(role) = &help.role {
        let services = help.services.iter().take(MOST).cloned();
        remedies.extend(services.map(|service| WhyRemedy::UseService {
            role: role.clone(),
            agent: agent.clone(),
            service,
        }));
    }
    if help.able.is_empty()
        && let Some(service) = help.services.first()
    {
        let (agent, task, service) = (agent.clone(), task.clone(), service.clone());
        remedies.push(WhyRemedy::Hire { agent, task, service });
    }
    remedies.extend(again);
    remedies
}

/// Returns the remedy that runs the turn of a request again.
pub fn run_again(sent: &SentRequest, service: Option<ServiceId>) -> WhyRemedy {
    WhyRemedy::RunAgain { agent: sent.agent.clone(), task: sent.task.clone(), turn: sent.turn, service }
}

/// A service with which the turn of a failed request could run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub service: ServiceId,
    /// How many things the model of this service would miss: tools, and artifacts of the request that it does not take.
    pub lacks: usize,
}

/// Returns the service with which the turn of a failed request should run again: the one that misses the least, and
/// none that this explanation names as failed. Returns `None` if there is no such service.
pub fn another_service(why: &Why, candidates: &[Candidate]) -> Option<ServiceId> {
    let has_failed = |service: &ServiceId| {
        why.chain.iter().any(|fact| match fact {
            Fact::AttemptFailed { service: failed, .. } | Fact::ServiceSkipped { service: failed, .. } => {
                failed == service
            }
            _ => false,
        })
    };
    let others = candidates.iter().filter(|candidate| !has_failed(&candidate.service));
    others.min_by_key(|candidate| candidate.lacks).map(|candidate| candidate.service.clone())
}

/// Returns the number of the request of the last failed attempt in an explanation.
pub fn failed_request(why: &Why) -> Option<i64> {
    why.chain.iter().rev().find_map(|fact| match fact {
        Fact::AttemptFailed { sent, .. } => *sent,
        _ => None,
    })
}

/// The facts about a refused call. The text tells what was true at the time of the call; the other facts are true now.
#[derive(Clone, Debug, Default)]
pub struct Refusal {
    /// The text with which the society refused the call.
    pub text: Option<String>,
    /// What denies the caller groups of tools that the call needed.
    pub denied: Vec<Denied>,
    /// The agent of the task that the call named and the caller does not know.
    pub stranger: Option<AgentId>,
}

/// Something that denies an agent groups of tools.
#[derive(Clone, Debug)]
pub struct Denied {
    pub by: Denier,
    /// The groups that it denies.
    pub groups: Vec<ToolGroup>,
}

/// What denies an agent groups of tools.
#[derive(Clone, Debug)]
pub enum Denier {
    /// The settings do not give the groups to root.
    Settings,
    /// A role that restricts the agent does not name the groups.
    Role {
        role: RoleId,
        /// The agent that has the role.
        agent: AgentId,
        /// The groups that the role names.
        names: Vec<ToolGroup>,
    },
}

impl Refusal {
    /// Returns what the person can do so that the same call is not refused again.
    fn remedies(&self, caller: &AgentId, task: &TaskId) -> Vec<WhyRemedy> {
        let allow = |denied: &Denied| match &denied.by {
            Denier::Settings => WhyRemedy::AllowRoot { groups: denied.groups.clone() },
            Denier::Role { role, agent, names } => WhyRemedy::AllowGroups {
                role: role.clone(),
                agent: agent.clone(),
                groups: denied.groups.clone(),
                tool_groups: names.iter().chain(&denied.groups).cloned().collect(),
            },
        };
        let mut remedies: Vec<WhyRemedy> = self.denied.iter().take(MOST).map(allow).collect();
        if !remedies.is_empty() {
            // The model of the caller was told that it has no right to the tool. Nothing else tells it otherwise.
            remedies.push(WhyRemedy::Write { agent: caller.clone(), task: task.clone() });
        }
        remedies.extend(self.stranger.clone().map(|agent| WhyRemedy::Introduce {
            agent,
            service: None,
            to: caller.clone(),
            task: task.clone(),
        }));
        remedies
    }
}

/// Explains an event: a failed attempt, a skipped service, a failed turn, a paused agent, a reached limit, a refused
/// call or a message that came back to its sender. Returns `None` for every other event: it needs no explanation, or
/// another function explains it. `before` contains the earlier events of the agent, oldest first. If the event is a
/// refused call, `refusal` contains the facts about the refusal.
pub fn event(event: &Event, before: &[Entry], refusal: Refusal) -> Option<Why> {
    match event {
        Event::ModelFailed { .. } | Event::ServiceSkipped { .. } => Some(attempts(&[event])),
        Event::ToolCalled { task, agent, tool, call, error: Some(code), .. } => {
            let remedies = refusal.remedies(agent, task);
            let (agent, tool, code, call) = (agent.clone(), tool.clone(), code.clone(), call.clone());
            let mut chain = vec![Fact::CallRefused { agent, tool, code, call }];
            chain.extend(refusal.text.map(|text| Fact::Said { text }));
            Some(Why { chain, remedies })
        }
        Event::TurnEnded { agent, failure: Some(reason), .. } => {
            let failed = Fact::TurnFailed { agent: agent.clone(), reason: reason.clone(), at: None };
            Some(because_of_attempts(failed, before))
        }
        Event::AgentPaused { agent } => Some(paused(agent)),
        Event::LimitReached { limit, value, .. } => Some(limited(limit.clone(), Some(value.clone()))),
        Event::MessageBounced { message, to } => {
            let bounced = Fact::Bounced { message: message.clone(), to: to.clone() };
            Some(Why { chain: vec![bounced], remedies: Vec::new() })
        }
        _ => None,
    }
}

/// The facts about a parked agent.
#[derive(Clone, Debug)]
pub struct Parked<'a> {
    pub agent: &'a AgentId,
    /// The task in which the agent is parked.
    pub task: &'a TaskId,
    /// The failure for which the agent was parked.
    pub reason: &'a str,
    /// The number of failed turns in a row for which an agent is parked now.
    pub limit: u64,
    /// The events that tell how the turns of the agent ended, when it was parked and when it was stopped, oldest first.
    pub turns: &'a [Entry],
    /// The events that explain a failed turn, oldest first.
    pub before: &'a [Entry],
}

/// Explains why an agent is parked: by the limit, by each turn that failed, and by the attempts of the last call.
pub fn parked(parked: &Parked<'_>) -> Why {
    let Parked { agent, task, reason, limit, turns, before } = parked;
    let reason = (*reason).to_owned();
    let mut chain = vec![Fact::Parked { agent: (*agent).clone(), task: (*task).clone(), reason }];
    let failed = failed_turns(turns);
    // An agent can also be parked for another reason, for example if its turn cannot be read.
    if failed.len() as u64 >= *limit {
        chain.push(Fact::FailedTurns {
            agent: (*agent).clone(),
            count: failed.len() as u64,
            limit: MAX_FAILED_TURNS.to_owned(),
            value: *limit,
        });
    }
    let first = failed.len().saturating_sub(MOST_TURNS);
    chain.extend(failed.into_iter().skip(first).map(|(at, reason)| Fact::TurnFailed {
        agent: (*agent).clone(),
        reason: reason.to_owned(),
        at: Some(at),
    }));
    let Why { chain: failures, mut remedies } = attempts(&last_attempts(before));
    chain.extend(failures);
    remedies.insert(0, WhyRemedy::Resume { agent: (*agent).clone() });
    Why { chain, remedies }
}

/// Returns the turns that failed in a row before the agent was parked, oldest first: when and why each failed. A turn
/// that ended well, a stop and an earlier parking end the row.
fn failed_turns(turns: &[Entry]) -> Vec<(i64, &str)> {
    let mut found = Vec::new();
    for entry in turns.iter().rev() {
        match &entry.event {
            Event::TurnEnded { failure: Some(reason), .. } => found.push((entry.at, reason.as_str())),
            Event::TurnEnded { failure: None, .. } | Event::AgentStopped { .. } => break,
            Event::AgentParked { .. } if !found.is_empty() => break,
            _ => {}
        }
    }
    found.reverse();
    found
}

/// Explains why an agent is paused.
pub fn paused(agent: &AgentId) -> Why {
    let chain = vec![Fact::Paused { agent: agent.clone() }];
    Why { chain, remedies: vec![WhyRemedy::Resume { agent: agent.clone() }] }
}

/// Explains why an agent pauses between attempts or is slow. The explanation lists the failed attempts of the agent's
/// last call to its model. Returns `None` if no attempt failed, or if the model has answered since. `events` contains
/// the events of the agent, oldest first.
pub fn struggling(events: &[Entry]) -> Option<Why> {
    let attempts_now = last_attempts(events);
    (!attempts_now.is_empty()).then(|| attempts(&attempts_now))
}

/// A request of a task that nobody has answered.
#[derive(Clone, Debug)]
pub struct OpenRequest {
    pub message: MessageId,
    pub from: String,
    pub to: AgentId,
    pub since: i64,
}

impl OpenRequest {
    fn fact(self) -> Fact {
        let Self { message, from, to, since } = self;
        Fact::Unanswered { message, from, to, since: Some(since) }
    }
}

/// The facts about a task that has ended.
#[derive(Clone, Debug)]
pub struct Ended<'a> {
    pub task: &'a TaskId,
    pub outcome: Outcome,
    /// The limit that stopped the task, or `user` if the person stopped it.
    pub stopped_by: Option<&'a str>,
    /// The requests that nobody has answered, oldest first.
    pub open: &'a [OpenRequest],
    /// The agents that are parked in the task, each with the reason.
    pub parked: &'a [(AgentId, String)],
    /// The events of root in the task, oldest first.
    pub of_root: &'a [Entry],
}

/// Explains the outcome of a task that has ended.
pub fn task(ended: &Ended<'_>, stopped_by_user: &str) -> Why {
    let task = ended.task;
    let mut chain = vec![Fact::TaskEnded { task: task.clone(), outcome: ended.outcome }];
    let mut remedies = Vec::new();
    match ended.outcome {
        Outcome::Answered | Outcome::AwaitsUser => {}
        Outcome::Unanswered | Outcome::NoModel | Outcome::Limited => {
            remedies.push(WhyRemedy::Write { agent: AgentId::root(), task: task.clone() });
        }
    }
    match ended.stopped_by {
        Some(by) if by == stopped_by_user => chain.push(Fact::StoppedByUser { task: task.clone() }),
        Some(limit) => {
            let Why { chain: limits, remedies: raise } = limited(limit.to_owned(), None);
            chain.extend(limits);
            remedies.splice(0..0, raise);
        }
        None => {}
    }
    for request in ended.open.iter().take(MOST) {
        if request.to.is_user() {
            let (agent, message) = (AgentId::new(request.from.clone()), request.message.clone());
            remedies.insert(0, WhyRemedy::Answer { message, agent, task: task.clone() });
        }
        chain.push(request.clone().fact());
    }
    for (agent, reason) in ended.parked.iter().take(MOST) {
        let (task, reason) = (task.clone(), reason.clone());
        chain.push(Fact::Parked { agent: agent.clone(), task, reason });
        remedies.insert(0, WhyRemedy::Resume { agent: agent.clone() });
    }
    let of_root = ended.of_root.iter().map(|entry| &entry.event);
    if let Some(Event::TurnEnded { agent, failure: Some(reason), .. }) =
        of_root.rev().find(|event| matches!(event, Event::TurnEnded { .. }))
    {
        let failed = Fact::TurnFailed { agent: agent.clone(), reason: reason.clone(), at: None };
        let why = because_of_attempts(failed, ended.of_root);
        chain.extend(why.chain);
        remedies.extend(why.remedies);
    }
    Why { chain, remedies }
}

fn limited(limit: String, value: Option<serde_json::Number>) -> Why {
    let remedies = vec![WhyRemedy::RaiseLimit { limit: limit.clone() }];
    Why { chain: vec![Fact::LimitReached { limit, value }], remedies }
}

fn because_of_attempts(first: Fact, before: &[Entry]) -> Why {
    let Why { mut chain, remedies } = attempts(&last_attempts(before));
    chain.insert(0, first);
    Why { chain, remedies }
}

/// Returns the failed attempts of the last call to a model, and the services that the call skipped, oldest first. If
/// the call got an answer in the end, returns nothing. `events` contains the events of one agent, oldest first.
fn last_attempts(events: &[Entry]) -> Vec<&Event> {
    let mut found = Vec::new();
    for Entry { event, .. } in events.iter().rev() {
        match event {
            Event::ModelFailed { attempt, .. } => {
                found.push(event);
                if *attempt <= 1 {
                    break;
                }
            }
            Event::ServiceSkipped { .. } => found.push(event),
            Event::ModelAnswered { .. } => break,
            _ => {}
        }
    }
    found.reverse();
    found
}

/// Explains failed attempts and skipped services. Explains only the last [`MOST`] of them.
fn attempts(failed: &[&Event]) -> Why {
    let mut why = Why::default();
    let first = failed.len().saturating_sub(MOST);
    for event in failed.iter().skip(first) {
        match event {
            Event::ModelFailed { agent, service, attempt, kind, status, reason, next, sent, .. } => {
                why.chain.push(Fact::AttemptFailed {
                    agent: agent.clone(),
                    service: service.clone(),
                    attempt: *attempt,
                    kind: *kind,
                    status: *status,
                    reason: reason.clone(),
                    sent: *sent,
                });
                why.chain.push(Fact::Then { next: *next });
                let check = WhyRemedy::CheckService { service: service.clone() };
                if *next != NextAttempt::DescribeMedia && !why.remedies.contains(&check) {
                    why.remedies.push(check);
                }
            }
            Event::ServiceSkipped { service, fallback, reason, .. } => {
                let (service, fallback) = (service.clone(), fallback.clone());
                why.chain.push(Fact::ServiceSkipped { service, fallback, reason: reason.clone() });
            }
            _ => {}
        }
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_llm::FailureKind;
    use polity_society::content::Capability;
    use polity_society::id::ArtifactId;
    use polity_view::{Routing, SentOutcome, WhyDescribed};

    fn sent(because: Because, services: &[&str], contacts: &[&str]) -> SentRequest {
        SentRequest {
            number: 7,
            agent: AgentId::new("mara"),
            task: TaskId::new("t-1"),
            turn: 3,
            service: ServiceId::new("writer"),
            model: "m".to_owned(),
            revision: 2,
            outcome: SentOutcome::Answered,
            record: None,
            at: 0,
            shown: vec![Shown {
                artifact: ArtifactId::new("pic"),
                routing: Routing::Described,
                why: Some(WhyDescribed {
                    because,
                    takes: vec![Capability::TEXT],
                    services: services.iter().map(|id| ServiceId::new(*id)).collect(),
                    contacts: contacts.iter().map(|id| AgentId::new(*id)).collect(),
                }),
            }],
            body: None,
        }
    }

    fn help(services: &[&str], able: &[(&str, Known)]) -> Help {
        Help {
            role: Some(RoleId::new("role-1")),
            standing: Some(Standing::Active),
            services: services.iter().map(|id| ServiceId::new(*id)).collect(),
            able: able
                .iter()
                .map(|(agent, known)| Able {
                    agent: AgentId::new(*agent),
                    service: ServiceId::new("eyes"),
                    known: *known,
                })
                .collect(),
        }
    }

    fn words(why: &Why) -> String {
        let facts = why.chain.iter().map(|fact| fact.sentence(100_000));
        facts
            .chain(why.remedies.iter().map(|remedy| format!("- {}", remedy.sentence(""))))
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn explained(because: Because, services: &[&str], contacts: &[&str], help: &Help) -> String {
        let sent = sent(because, services, contacts);
        words(&described(&sent, &sent.shown[0], Some("picture.png".to_owned()), help))
    }

    fn blind() -> Because {
        Because::MissingCapability { capability: Capability::VISION }
    }

    #[test]
    fn a_description_names_the_service_who_can_and_whom_to_introduce() {
        let help = help(&["eyes"], &[("seer", Known::No)]);
        insta::assert_snapshot!(explained(blind(), &["eyes"], &[], &help), @r"
        picture.png (artifact:pic) was described to mara in request 7
        service writer (revision 2) takes text only
        eyes can take it
        mara had no contact on eyes
        - introduce seer, which is on eyes, to mara (in the live view)
        - give the role of mara the service eyes (in the live view)
        - run turn 3 of mara again with eyes: polity fork t-1 --turn 3 --service eyes
        ");
    }

    #[test]
    fn an_agent_that_has_ended_can_still_run_its_turn_again() {
        let help = Help { standing: Some(Standing::Ended), ..help(&["eyes"], &[("seer", Known::No)]) };
        let sent = sent(blind(), &["eyes"], &[]);
        let offered = described(&sent, &sent.shown[0], None, &help).remedies;
        assert_eq!(offered, [run_again(&sent, Some(ServiceId::new("eyes")))]);
        let forgotten = Help { standing: None, ..help };
        assert!(described(&sent, &sent.shown[0], None, &forgotten).remedies.is_empty());
    }

    #[test]
    fn a_description_although_a_contact_could_see() {
        let help = help(&["eyes"], &[("seer", Known::Yes)]);
        insta::assert_snapshot!(explained(blind(), &["eyes"], &["seer"], &help), @r"
        picture.png (artifact:pic) was described to mara in request 7
        service writer (revision 2) takes text only
        eyes can take it
        mara could have sent it to seer
        - write again: polity send --to mara --task t-1 …
        - give the role of mara the service eyes (in the live view)
        - run turn 3 of mara again with eyes: polity fork t-1 --turn 3 --service eyes
        ");
    }

    #[test]
    fn nobody_can_see() {
        insta::assert_snapshot!(explained(blind(), &[], &[], &help(&[], &[])), @r"
        picture.png (artifact:pic) was described to mara in request 7
        service writer (revision 2) takes text only
        no other service can take it
        - add a service that takes vision to llmservices.json
        ");
    }

    #[test]
    fn what_no_service_can_mend_offers_none() {
        let help = help(&["eyes"], &[("seer", Known::No)]);
        insta::assert_snapshot!(explained(Because::EarlierAttachment { limit: 5 }, &["eyes"], &[], &help), @r"
        picture.png (artifact:pic) was described to mara in request 7
        it belongs to an earlier message, and newer media fill the 5 bytes of a request to service writer (revision 2)
        ");
    }

    /// Returns the events with the times 1 s, 2 s, 3 s and so on.
    fn entries(events: impl IntoIterator<Item = Event>) -> Vec<Entry> {
        (1..).zip(events).map(|(seq, event)| Entry { seq, at: seq * 1_000, event }).collect()
    }

    fn failed(attempt: u32, next: NextAttempt) -> Event {
        Event::ModelFailed {
            task: TaskId::new("t-1"),
            agent: AgentId::new("mara"),
            service: ServiceId::new("writer"),
            attempt,
            kind: FailureKind::Passing,
            status: Some(500),
            reason: "out of memory".to_owned(),
            next,
            suspects: Vec::new(),
            sent: Some(i64::from(attempt)),
        }
    }

    #[test]
    fn a_parked_agent_is_explained_by_its_last_call() {
        let (agent, task) = (AgentId::new("mara"), TaskId::new("t-1"));
        let before = entries([
            failed(1, NextAttempt::GiveUp),
            failed(1, NextAttempt::Retry),
            failed(2, NextAttempt::GiveUp),
        ]);
        let ended = |failure: Option<&str>| Event::TurnEnded {
            task: task.clone(),
            agent: agent.clone(),
            failure: failure.map(str::to_owned),
        };
        let halted = || Event::AgentParked {
            task: task.clone(),
            agent: agent.clone(),
            reason: "server error".to_owned(),
        };
        let turns = entries([
            ended(Some("long ago")),
            halted(),
            ended(Some("no key")),
            ended(Some("server error")),
            halted(),
        ]);
        let facts = Parked {
            agent: &agent,
            task: &task,
            reason: "server error",
            limit: 2,
            turns: &turns,
            before: &before,
        };
        let explained = parked(&facts);
        assert_eq!(failed_request(&explained), Some(2));
        insta::assert_snapshot!(words(&explained), @r"
        mara is parked in t-1: server error
        mara failed in 2 turns in a row, and limits.maxFailedTurns in app.json is 2
        a turn of mara failed 1 min 37 s ago: no key
        a turn of mara failed 1 min 36 s ago: server error
        attempt 1 of mara at writer failed (request 1): server error, HTTP 500: out of memory
        the call tried again
        attempt 2 of mara at writer failed (request 2): server error, HTTP 500: out of memory
        the call made no further attempt
        - go on: polity resume mara --alone
        - check writer: polity doctor, and its entry in llmservices.json
        ");
        // A turn that ended well, or a stop, ends the row. Then the agent was parked for another reason.
        let stopped = Event::AgentStopped { task: task.clone(), agent: agent.clone() };
        for between in [ended(None), stopped] {
            let turns = entries([ended(Some("no key")), between, ended(Some("server error")), halted()]);
            assert_eq!(failed_turns(&turns), [(3_000, "server error")]);
            let why = parked(&Parked { turns: &turns, ..facts.clone() });
            assert!(!why.chain.iter().any(|fact| matches!(fact, Fact::FailedTurns { .. })), "{why:?}");
        }
    }

    fn refused(refusal: Refusal) -> String {
        let call = Event::ToolCalled {
            task: TaskId::new("t-1"),
            agent: AgentId::new("mara"),
            tool: "bash".to_owned(),
            call: None,
            error: Some("refused".to_owned()),
            duration_ms: None,
            head: None,
        };
        words(&event(&call, &[], refusal).unwrap())
    }

    #[test]
    fn a_refused_call_names_everything_that_denies_the_caller_its_tools() {
        let role = |role: &str, agent: &str, names: &[ToolGroup]| Denier::Role {
            role: RoleId::new(role),
            agent: AgentId::new(agent),
            names: names.to_vec(),
        };
        let (files, command) = (ToolGroup::Files, ToolGroup::Command);
        let denied = vec![
            Denied { by: Denier::Settings, groups: vec![command.clone()] },
            Denied {
                by: role("role-1", "mara", &[ToolGroup::Web]),
                groups: vec![files.clone(), command.clone()],
            },
            Denied { by: role("role-2", "theo", &[files]), groups: vec![command] },
        ];
        let text = Some("not permitted".to_owned());
        let refusal = Refusal { text, denied, stranger: None };
        let remedies = refusal.remedies(&AgentId::new("mara"), &TaskId::new("t-1"));
        let WhyRemedy::AllowGroups { tool_groups, .. } = &remedies[1] else { panic!("{remedies:?}") };
        assert_eq!(*tool_groups, [ToolGroup::Web, ToolGroup::Files, ToolGroup::Command]);
        insta::assert_snapshot!(refused(refusal), @r"
        mara was refused bash: refused
        not permitted
        - add command to tools.root in app.json
        - give the role of mara the tools of files, command (in the live view)
        - give the role of theo the tools of command (in the live view)
        - write again: polity send --to mara --task t-1 …
        ");
    }

    #[test]
    fn a_caller_is_introduced_to_the_agent_that_it_does_not_know() {
        let refusal = Refusal { stranger: Some(AgentId::new("theo")), ..Refusal::default() };
        insta::assert_snapshot!(refused(refusal), @r"
        mara was refused bash: refused
        - introduce theo to mara (in the live view)
        ");
        assert_eq!(refused(Refusal::default()), "mara was refused bash: refused");
    }

    #[test]
    fn a_failed_turn_runs_again_with_the_service_that_misses_the_least_and_has_not_failed() {
        let explained = event(&failed(2, NextAttempt::GiveUp), &[], Refusal::default()).unwrap();
        let candidate = |id: &str, lacks| Candidate { service: ServiceId::new(id), lacks };
        let check = |candidates: &[Candidate], expect: Option<&str>| {
            assert_eq!(another_service(&explained, candidates), expect.map(ServiceId::new));
        };
        check(&[], None);
        // The explanation says that an attempt at `writer` has failed.
        check(&[candidate("writer", 0)], None);
        check(&[candidate("writer", 0), candidate("blind", 1), candidate("eyes", 0)], Some("eyes"));
        check(&[candidate("first", 1), candidate("second", 1)], Some("first"));
    }

    #[test]
    fn a_task_without_an_answer_tells_who_is_silent() {
        let task_id = TaskId::new("t-1");
        let open = [OpenRequest {
            message: MessageId::from_sequence(4),
            from: "root".to_owned(),
            to: AgentId::new("mara"),
            since: 98_000,
        }];
        let parked = [(AgentId::new("mara"), "server error".to_owned())];
        let ended = Ended {
            task: &task_id,
            outcome: Outcome::Unanswered,
            stopped_by: None,
            open: &open,
            parked: &parked,
            of_root: &[],
        };
        insta::assert_snapshot!(words(&task(&ended, "user")), @r"
        nothing is left to do in t-1: it ended without an answer
        mara has not answered m000000004 of root, sent 2 s ago
        mara is parked in t-1: server error
        - go on: polity resume mara --alone
        - write again: polity send --to root --task t-1 …
        ");
        let answered = Ended { outcome: Outcome::Answered, open: &[], parked: &[], ..ended.clone() };
        assert_eq!(words(&task(&answered, "user")), "nothing is left to do in t-1: it ended with an answer");
        let limited = Ended {
            outcome: Outcome::Limited,
            stopped_by: Some("maxTokensPerTask"),
            open: &[],
            parked: &[],
            ..ended
        };
        insta::assert_snapshot!(words(&task(&limited, "user")), @r"
        nothing is left to do in t-1: it ended without an answer, because a limit stopped it
        limits.maxTokensPerTask was reached
        - raise limits.maxTokensPerTask in app.json, and write to root again
        - write again: polity send --to root --task t-1 …
        ");
    }
}
