//! The system message of a request: what changes least comes first, so that a server's prompt cache holds.

use polity_registry::{Prompts, Service};
use polity_society::agent::Standing;
use polity_society::brief::TaskBrief;
use polity_society::contact::KnownParty;
use polity_society::content::Capability;
use polity_society::id::AgentId;
use polity_society::present::{brief_lines, defuse, role_name};
use polity_society::text::TextKey;

/// What the system message says.
pub(crate) struct SystemFacts<'a> {
    /// The prompts in force.
    pub(crate) prompts: &'a Prompts,
    /// Who is asked.
    pub(crate) agent: &'a AgentId,
    /// Who hired it.
    pub(crate) parent: Option<&'a AgentId>,
    /// The name of its role.
    pub(crate) role_name: &'a str,
    /// What its role says; root has none.
    pub(crate) role_prompt: Option<&'a str>,
    /// Its brief; root has none.
    pub(crate) brief: Option<&'a TaskBrief>,
    /// The service that answers.
    pub(crate) service: &'a Service,
    /// Its registry.
    pub(crate) contacts: &'a [KnownParty],
}

/// Puts the system message together (contract section 8).
pub(crate) fn system_message(facts: &SystemFacts<'_>) -> String {
    let prompts = facts.prompts;
    let texts = &prompts.texts;
    let role_name = role_name(facts.agent, facts.role_name, texts);
    let role = match facts.role_prompt {
        None => prompts.root.trim().to_owned(),
        Some(role_prompt) => {
            let filled = prompts.role.fill(&[("role_name", role_name), ("role_prompt", role_prompt)]);
            filled.trim().to_owned()
        }
    };
    let mut sections = vec![prompts.base.trim().to_owned(), tool_rules(facts), role];
    if let Some(brief) = facts.brief {
        let lines = brief_lines(brief, texts).join("\n");
        sections.push(format!("{}\n{lines}", texts.get(TextKey::BriefHeading)));
    }
    sections.push(runtime_facts(facts, role_name));
    let heading = texts.get(TextKey::SystemContactsHeading);
    let contacts: Vec<String> = facts.contacts.iter().map(|contact| contact_line(contact, prompts)).collect();
    sections.push(format!("{heading}\n{}", contacts.join("\n")));
    sections.join("\n\n")
}

/// Windows below this many tokens have no room for examples of tool calls.
const SMALL_WINDOW: u64 = 12_000;

fn tool_rules(facts: &SystemFacts<'_>) -> String {
    let texts = &facts.prompts.texts;
    let rules = facts.prompts.tool_rules.trim();
    if !facts.service.tools_allowed() {
        return texts.get(TextKey::SystemNoTools).to_owned();
    }
    if facts.service.context_window.is_none_or(|window| window >= SMALL_WINDOW) {
        return rules.to_owned();
    }
    let mark = texts.get(TextKey::SystemExampleMark);
    rules.lines().filter(|line| !line.starts_with(mark)).collect::<Vec<_>>().join("\n")
}

fn runtime_facts(facts: &SystemFacts<'_>, role_name: &str) -> String {
    let service = facts.service;
    let lines = [
        facts.prompts.texts.get(TextKey::SystemRuntimeHeading).to_owned(),
        format!("agentId={}", facts.agent),
        format!("parentAgentId={}", facts.parent.map_or("user", AgentId::as_str)),
        format!("roleName={role_name}"),
        format!("serviceId={}", service.id),
        format!("capabilities.input={}", names(&service.capabilities.input)),
        format!("capabilities.output={}", names(&service.capabilities.output)),
    ];
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
        // Cannot fail: the structure has text keys only.
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
