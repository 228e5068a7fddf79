//! Explains why a request to a model contained a description of an artifact instead of the artifact.

use super::{MOST, run_again};
use polity_society::agent::Standing;
use polity_society::id::{AgentId, RoleId, ServiceId};
use polity_view::{Because, Fact, SentRequest, Shown, Why, WhyRemedy};

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
