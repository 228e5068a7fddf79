//! Builds the system message of a request. The parts that change least come first, so that a server can cache them.

use super::Taker;
use crate::guidance::Guidance;
use polity_registry::{Prompts, Service};
use polity_society::agent::Standing;
use polity_society::brief::TaskBrief;
use polity_society::contact::KnownParty;
use polity_society::content::Capability;
use polity_society::defuse::defuse;
use polity_society::id::AgentId;
use polity_society::present::{brief_lines, role_name};
use polity_society::text::TextKey;
use polity_society::workspace::Access;

/// The facts from which the system message is built.
pub struct SystemFacts<'a> {
    pub prompts: &'a Prompts,
    /// The agent whose model gets the message.
    pub agent: &'a AgentId,
    /// The agent that hired this agent; `None` for root.
    pub parent: Option<&'a AgentId>,
    pub role_name: &'a str,
    /// The prompt of the agent's role; root has none.
    pub role_prompt: Option<&'a str>,
    /// The task brief of the agent; root has none.
    pub brief: Option<&'a TaskBrief>,
    /// The service that gets the request.
    pub service: &'a Service,
    /// All contacts of the agent.
    pub contacts: &'a [KnownParty],
    /// All services, if the agent may create agents; otherwise empty.
    pub services: &'a [Taker],
    /// The access that the agent has to the directory in which it works; `None` if this directory does not belong to
    /// the person.
    pub workspace: Option<Access>,
    /// How much of the rules and tools the request contains.
    pub guidance: Guidance,
}

/// Builds the system message (contract section 8).
pub fn system_message(facts: &SystemFacts<'_>) -> String {
    let prompts = facts.prompts;
    let texts = &prompts.texts;
    let role_name = role_name(facts.agent, facts.role_name, texts);
    let mut sections = rules(facts);
    sections.extend(role(facts, role_name));
    if let Some(brief) = facts.brief {
        let lines = brief_lines(brief, texts).join("\n");
        sections.push(format!("{}\n{lines}", texts.get(TextKey::BriefHeading)));
    }
    if !facts.services.is_empty() {
        let services = facts.services.iter().map(|service| service_line(service, prompts));
        let heading = texts.get(TextKey::SystemServicesHeading).to_owned();
        sections.push(std::iter::once(heading).chain(services).collect::<Vec<_>>().join("\n"));
    }
    sections.push(runtime_facts(facts, role_name));
    let heading = texts.get(TextKey::SystemContactsHeading);
    let contacts: Vec<String> = facts.contacts.iter().map(|contact| contact_line(contact, prompts)).collect();
    sections.push(format!("{heading}\n{}", contacts.join("\n")));
    sections.join("\n\n")
}

/// Returns the first sections, which every agent gets. They say how to work. If the service allows tools, they also
/// contain the rules of the tools.
fn rules(facts: &SystemFacts<'_>) -> Vec<String> {
    let prompts = facts.prompts;
    if !facts.service.tools_allowed() {
        let no_tools = prompts.texts.get(TextKey::SystemNoTools);
        return vec![prompts.base.trim().to_owned(), no_tools.to_owned()];
    }
    if facts.guidance.is_short() {
        return vec![prompts.small.trim().to_owned()];
    }
    vec![prompts.base.trim().to_owned(), prompts.tool_rules.trim().to_owned()]
}

/// Returns the sections about an agent's role.
fn role(facts: &SystemFacts<'_>, role_name: &str) -> Vec<String> {
    let prompts = facts.prompts;
    let Some(role_prompt) = facts.role_prompt else {
        let root = if facts.guidance.is_short() { &prompts.root_small } else { &prompts.root };
        return vec![root.trim().to_owned()];
    };
    let filled = prompts.role.fill(&[("role_name", role_name), ("role_prompt", role_prompt)]);
    let mut role = vec![filled.trim().to_owned()];
    // An agent that may not create agents gets no `services`, and needs no advice on hiring.
    if !facts.services.is_empty() && facts.service.tools_allowed() {
        role.push(prompts.hiring.trim().to_owned());
    }
    role
}

fn service_line(service: &Taker, prompts: &Prompts) -> String {
    let values = [("id", service.id.as_str()), ("input", &names(&service.capabilities.input))];
    prompts.texts.fill(TextKey::SystemService, &values)
}

fn runtime_facts(facts: &SystemFacts<'_>, role_name: &str) -> String {
    let service = facts.service;
    let mut lines = vec![
        facts.prompts.texts.get(TextKey::SystemRuntimeHeading).to_owned(),
        format!("agentId={}", facts.agent),
        format!("parentAgentId={}", facts.parent.map_or("user", AgentId::as_str)),
        format!("roleName={role_name}"),
        format!("serviceId={}", service.id),
        format!("capabilities.input={}", names(&service.capabilities.input)),
        format!("capabilities.output={}", names(&service.capabilities.output)),
    ];
    lines.extend(facts.workspace.map(|access| format!("workspace={}", access.fact())));
    lines.join("\n")
}

fn contact_line(contact: &KnownParty, prompts: &Prompts) -> String {
    let texts = &prompts.texts;
    let party = &contact.party;
    let role = role_name(&party.id, &party.role_name, texts);
    let (input, output) = if party.id.is_user() {
        (String::from("-"), String::from("-"))
    } else {
        (names(&party.capabilities.input), names(&party.capabilities.output))
    };
    let values = [("id", party.id.as_str()), ("role", role), ("input", &input), ("output", &output)];
    let mut line = texts.fill(TextKey::SystemContact, &values);
    if party.standing == Standing::Ended {
        line.push_str(texts.get(TextKey::SystemContactEnded));
    }
    if let Some(spec) = &party.interface_spec {
        // Cannot fail: all keys in an interface spec are texts.
        let spec = serde_json::to_string(spec).unwrap_or_default();
        line.push('\n');
        line.push_str(&texts.fill(TextKey::SystemContactInterface, &[("spec", &defuse(&spec, texts))]));
    }
    line
}

fn names(capabilities: &[Capability]) -> String {
    let names: Vec<&str> = capabilities.iter().map(Capability::as_str).collect();
    names.join(",")
}
