//! What the society says where it says no: a stable code, the details, and advice for the model.

use crate::contact::KnownParty;
use crate::problem::FieldProblem;
use crate::role::Role;
use crate::text::{TextKey, Texts};
use serde::Serialize;
use serde_json::{Value, json};

/// A contact as a refusal names it; of a role its id and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContactLine {
    /// Its id.
    pub id: String,
    /// Its role.
    pub role: String,
}

impl From<&KnownParty> for ContactLine {
    fn from(contact: &KnownParty) -> Self {
        Self { id: contact.party.id.to_string(), role: contact.party.role_name.clone() }
    }
}

impl From<&Role> for ContactLine {
    fn from(role: &Role) -> Self {
        Self { id: role.id.to_string(), role: role.name.to_string() }
    }
}

/// A refusal. Nothing has changed when one is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The one who is meant is not among the asker's contacts. Says nothing about whether there is such an agent.
    UnknownContact {
        /// Who was meant.
        meant: String,
        /// Whom the asker does know, the likeliest first.
        contacts: Vec<ContactLine>,
    },
    /// A name fits more than one of those that the asker may name.
    AmbiguousName {
        /// The name.
        meant: String,
        /// Those whom it fits.
        candidates: Vec<ContactLine>,
    },
    /// The brief lacks something.
    InvalidTaskBrief(Vec<FieldProblem>),
    /// The payload does not fit its type.
    InvalidMessage(Vec<FieldProblem>),
    /// The answer does not fit the schema that was asked for. The next one is sent as it is.
    ResultDoesNotFit {
        /// What is wrong with it.
        errors: Vec<String>,
    },
    /// The arguments of a tool are not what it takes.
    InvalidArguments(Vec<FieldProblem>),
    /// There is no such tool.
    UnknownTool {
        /// What was called.
        tool: String,
        /// What there is, the likeliest first.
        tools: Vec<String>,
    },
    /// The role was not made by the asker or one of its descendants.
    NotChildRole {
        /// What was asked for.
        role: String,
    },
    /// The agent is not one of the asker's descendants.
    NotDescendant {
        /// What was asked for.
        agent: String,
    },
    /// No such artifact, or none that the asker may open.
    ArtifactNotFound {
        /// The reference as it was given.
        reference: String,
    },
    /// The one who is meant has ended.
    AgentTerminated {
        /// Who was meant.
        agent: String,
    },
    /// A limit of `app.json` stands in the way.
    LimitReached {
        /// Its name there.
        limit: &'static str,
        /// Its value.
        value: u64,
    },
    /// The receiver's mailbox is full.
    MailboxFull {
        /// The receiver.
        agent: String,
        /// How many messages it holds.
        limit: u64,
    },
    /// A tool that reaches outside was interrupted, and cannot be tried again without harm.
    OutcomeUnknown {
        /// The tool.
        tool: String,
    },
    /// A tool that reaches outside failed.
    ToolFailed {
        /// The tool.
        tool: String,
        /// What it says.
        reason: String,
    },
}

impl Refusal {
    /// The refusal of a call to a tool that there is not; those that there are, the likeliest first.
    pub fn unknown_tool(tool: &str, tools: &[&str]) -> Self {
        let mut tools = tools.to_vec();
        let likeness = |name: &str| strsim::jaro_winkler(name, tool);
        tools.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
        Self::UnknownTool { tool: tool.to_owned(), tools: tools.into_iter().map(str::to_owned).collect() }
    }

    /// The code in JSON.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownContact { .. } => "unknown_contact",
            Self::AmbiguousName { .. } => "ambiguous_name",
            Self::InvalidTaskBrief(_) => "invalid_task_brief",
            Self::InvalidMessage(_) => "invalid_message",
            Self::ResultDoesNotFit { .. } => "result_does_not_fit",
            Self::InvalidArguments(_) => "invalid_arguments",
            Self::UnknownTool { .. } => "unknown_tool",
            Self::NotChildRole { .. } => "not_child_role",
            Self::NotDescendant { .. } => "not_descendant",
            Self::ArtifactNotFound { .. } => "artifact_not_found",
            Self::AgentTerminated { .. } => "agent_terminated",
            Self::LimitReached { .. } => "limit_reached",
            Self::MailboxFull { .. } => "mailbox_full",
            Self::OutcomeUnknown { .. } => "outcome_unknown",
            Self::ToolFailed { .. } => "tool_failed",
        }
    }

    /// Advice for the one who was refused.
    pub fn message(&self, texts: &Texts) -> String {
        match self {
            Self::UnknownContact { meant, .. } => {
                texts.fill(TextKey::RefusalUnknownContact, &[("id", meant)])
            }
            Self::AmbiguousName { meant, .. } => {
                texts.fill(TextKey::RefusalAmbiguousName, &[("name", meant)])
            }
            Self::InvalidTaskBrief(_) => texts.get(TextKey::RefusalInvalidTaskBrief).to_owned(),
            Self::InvalidMessage(_) => texts.get(TextKey::RefusalInvalidMessage).to_owned(),
            Self::ResultDoesNotFit { .. } => texts.get(TextKey::RefusalResultDoesNotFit).to_owned(),
            Self::InvalidArguments(_) => texts.get(TextKey::RefusalInvalidArguments).to_owned(),
            Self::UnknownTool { tool, .. } => texts.fill(TextKey::RefusalUnknownTool, &[("tool", tool)]),
            Self::NotChildRole { role } => texts.fill(TextKey::RefusalNotChildRole, &[("id", role)]),
            Self::NotDescendant { agent } => texts.fill(TextKey::RefusalNotDescendant, &[("id", agent)]),
            Self::ArtifactNotFound { .. } => texts.get(TextKey::RefusalArtifactNotFound).to_owned(),
            Self::AgentTerminated { agent } => texts.fill(TextKey::RefusalAgentTerminated, &[("id", agent)]),
            Self::LimitReached { limit, value } => {
                texts.fill(TextKey::RefusalLimitReached, &[("limit", limit), ("value", &value.to_string())])
            }
            Self::MailboxFull { agent, limit } => {
                texts.fill(TextKey::RefusalMailboxFull, &[("id", agent), ("limit", &limit.to_string())])
            }
            Self::OutcomeUnknown { tool } => texts.fill(TextKey::RefusalOutcomeUnknown, &[("tool", tool)]),
            Self::ToolFailed { tool, reason } => {
                texts.fill(TextKey::RefusalToolFailed, &[("tool", tool), ("reason", reason)])
            }
        }
    }

    /// What belongs to the code, where anything does: the details of [`Refusal::to_json`].
    pub fn details(&self, texts: &Texts) -> Option<Value> {
        let Value::Object(mut object) = self.to_json(texts) else { return None };
        object.remove("error");
        object.remove("message");
        object.remove("details").or_else(|| (!object.is_empty()).then_some(Value::Object(object)))
    }

    /// The refusal as a tool result: `error`, `message` and what belongs to the code.
    pub fn to_json(&self, texts: &Texts) -> Value {
        let mut object = json!({"error": self.code()});
        match self {
            Self::UnknownContact { meant, contacts } => {
                object["to"] = json!(meant);
                object["contacts"] = json!(contacts);
            }
            Self::AmbiguousName { meant, candidates } => {
                object["name"] = json!(meant);
                object["candidates"] = json!(candidates);
            }
            Self::InvalidTaskBrief(details)
            | Self::InvalidMessage(details)
            | Self::InvalidArguments(details) => {
                object["details"] = json!(details);
            }
            Self::ResultDoesNotFit { errors } => object["details"] = json!(errors),
            Self::UnknownTool { tool, tools } => {
                object["tool"] = json!(tool);
                object["tools"] = json!(tools);
            }
            Self::NotChildRole { role } => object["roleId"] = json!(role),
            Self::NotDescendant { agent } => object["agentId"] = json!(agent),
            Self::ArtifactNotFound { reference } => object["ref"] = json!(reference),
            Self::AgentTerminated { agent } => object["agentId"] = json!(agent),
            Self::LimitReached { limit, value } => {
                object["limit"] = json!(limit);
                object["value"] = json!(value);
            }
            Self::MailboxFull { agent, limit } => {
                object["agentId"] = json!(agent);
                object["limit"] = json!(limit);
            }
            Self::OutcomeUnknown { tool } | Self::ToolFailed { tool, .. } => object["tool"] = json!(tool),
        }
        object["message"] = json!(self.message(texts));
        object
    }
}
