//! Refusals: the answers to actions that are not allowed or not possible. A refusal has a stable code, details, and
//! advice for the model.

use crate::id::AgentId;
use crate::problem::FieldProblem;
use crate::role::Role;
use crate::text::{TextKey, Texts};
use crate::tool_group::{ServerName, ToolGroup};
use serde::Serialize;
use serde_json::{Value, json};

/// A contact or a role that a refusal lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContactLine {
    /// The id of the contact or the role.
    pub id: String,
    /// The name of the contact's role, or of the role itself.
    pub role: String,
}

impl From<&Role> for ContactLine {
    fn from(role: &Role) -> Self {
        Self { id: role.id.to_string(), role: role.name.to_string() }
    }
}

/// Why an action is refused. A refused action changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The caller has no such contact. The refusal does not reveal whether there is such an agent.
    UnknownContact {
        /// The id or name that the caller gave.
        meant: String,
        /// The contacts of the caller. Those that are most similar to `meant` come first.
        contacts: Vec<ContactLine>,
    },
    /// A name fits several of the contacts, roles or agents that the caller may name.
    AmbiguousName {
        /// The name that the caller gave.
        meant: String,
        /// The contacts, roles or agents that the name fits.
        candidates: Vec<ContactLine>,
    },
    /// The task brief has faults.
    InvalidTaskBrief(Vec<FieldProblem>),
    /// The payload of a message lacks something that its message type needs.
    InvalidMessage(Vec<FieldProblem>),
    /// The answer does not fit the JSON Schema that the request contains.
    /// The agent's next answer is sent even if it does not fit.
    ResultDoesNotFit {
        /// What is wrong with the answer.
        errors: Vec<String>,
    },
    /// The arguments of a tool call have faults.
    InvalidArguments(Vec<FieldProblem>),
    /// The called tool does not exist.
    UnknownTool {
        /// The name that was called.
        tool: String,
        /// The names of the tools that exist. Those that are most similar to `tool` come first.
        tools: Vec<String>,
    },
    /// The caller may not use the tool, or the caller lacks groups of tools that it wants to give to a role.
    ToolNotPermitted {
        /// The name of the tool that was called.
        tool: String,
        /// The groups that the caller lacks.
        groups: Vec<ToolGroup>,
        /// The groups that the caller has.
        allowed: Vec<ToolGroup>,
    },
    /// The rules of `app.json` deny the call.
    DeniedByPolicy {
        /// The name of the tool that was called.
        tool: String,
        /// The index of the rule in the list `tools.policy`.
        rule: usize,
    },
    /// The person refused the call.
    ApprovalDenied {
        /// The name of the tool that was called.
        tool: String,
        /// The reason that the person gave, if any.
        reason: Option<String>,
    },
    /// The person did not answer the question about the call in time.
    ApprovalExpired {
        /// The name of the tool that was called.
        tool: String,
    },
    /// Neither the caller nor one of its descendants has made the role.
    NotChildRole {
        /// The id or name that the caller gave.
        role: String,
    },
    /// The agent is not a descendant of the caller.
    NotDescendant {
        /// The id or role name that the caller gave.
        agent: String,
    },
    /// The artifact does not exist, or the caller may not open it.
    ArtifactNotFound {
        /// The reference as the caller wrote it.
        reference: String,
    },
    /// The agent that the caller named has ended.
    AgentTerminated {
        /// The id of the ended agent.
        agent: String,
    },
    /// The action would exceed a limit of `app.json`.
    LimitReached {
        /// The name of the limit in `app.json`.
        limit: &'static str,
        /// The value of the limit.
        value: u64,
    },
    /// The receiver's mailbox is full.
    MailboxFull {
        /// The id of the receiver.
        agent: String,
        /// Maximum number of messages in the mailbox.
        limit: u64,
    },
    /// A crash interrupted a tool with outside effects. The tool may have had its effect, so the system does not run
    /// it again.
    OutcomeUnknown {
        /// The name of the tool.
        tool: String,
    },
    /// Somebody else changed a file of the workspace since the agent last viewed it.
    FileChanged {
        /// The path of the file in the workspace.
        path: String,
    },
    /// The agent wants to change a file that it has never viewed. This refusal has the same code as
    /// [`Self::FileChanged`], because in both cases the agent must first view the file.
    FileNotViewed {
        /// The path of the file in the workspace.
        path: String,
    },
    /// The workspace does not allow what the caller wants: it is read-only, or a worktree cannot be made in it.
    WorkspaceRefused {
        /// The reason, in words.
        reason: String,
    },
    /// Two worktrees changed the same lines. Nothing was merged.
    MergeConflict {
        /// The agent whose worktree could not be merged.
        agent: AgentId,
        /// The files in which the worktrees conflict, each with the conflicting parts, as JSON.
        conflicts: Value,
    },
    /// The worktree of an agent no longer has the files that the person was shown before the person allowed the merge.
    /// Nothing was merged.
    WorkChanged {
        /// The agent that works in the worktree.
        agent: AgentId,
    },
    /// A tool with outside effects failed.
    ToolFailed {
        /// The name of the tool.
        tool: String,
        /// Why the tool failed, in words.
        reason: String,
    },
    /// An MCP server failed, or it reports that the call failed.
    ServerFailed {
        /// The name of the server, which is also the source of `reason`.
        server: ServerName,
        /// Why the call failed. If the server gave a reason, its words.
        reason: String,
    },
}

impl Refusal {
    /// Returns the refusal of a call to a tool that does not exist.
    /// The refusal lists the existing tools, the tool with the most similar name first.
    pub fn unknown_tool(tool: &str, tools: &[&str]) -> Self {
        let mut tools = tools.to_vec();
        let likeness = |name: &str| strsim::jaro_winkler(name, tool);
        tools.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
        Self::UnknownTool { tool: tool.to_owned(), tools: tools.into_iter().map(str::to_owned).collect() }
    }

    /// Returns the code that JSON contains, such as `unknown_contact`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownContact { .. } => "unknown_contact",
            Self::AmbiguousName { .. } => "ambiguous_name",
            Self::InvalidTaskBrief(_) => "invalid_task_brief",
            Self::InvalidMessage(_) => "invalid_message",
            Self::ResultDoesNotFit { .. } => "result_does_not_fit",
            Self::InvalidArguments(_) => "invalid_arguments",
            Self::UnknownTool { .. } => "unknown_tool",
            Self::ToolNotPermitted { .. } | Self::DeniedByPolicy { .. } => "tool_not_permitted",
            Self::ApprovalDenied { .. } => "approval_denied",
            Self::ApprovalExpired { .. } => "approval_expired",
            Self::NotChildRole { .. } => "not_child_role",
            Self::NotDescendant { .. } => "not_descendant",
            Self::ArtifactNotFound { .. } => "artifact_not_found",
            Self::AgentTerminated { .. } => "agent_terminated",
            Self::LimitReached { .. } => "limit_reached",
            Self::MailboxFull { .. } => "mailbox_full",
            Self::OutcomeUnknown { .. } => "outcome_unknown",
            Self::FileChanged { .. } | Self::FileNotViewed { .. } => "file_changed",
            Self::WorkspaceRefused { .. } => "workspace_refused",
            Self::MergeConflict { .. } => "merge_conflict",
            Self::WorkChanged { .. } => "work_changed",
            Self::ToolFailed { .. } => "tool_failed",
            Self::ServerFailed { .. } => "mcp_failed",
        }
    }

    /// Returns advice for the caller.
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
            Self::ToolNotPermitted { tool, groups, .. } => {
                let groups = groups.iter().map(ToolGroup::name).collect::<Vec<_>>().join(", ");
                texts.fill(TextKey::RefusalToolNotPermitted, &[("tool", tool), ("groups", &groups)])
            }
            Self::DeniedByPolicy { tool, .. } => {
                texts.fill(TextKey::RefusalDeniedByPolicy, &[("tool", tool)])
            }
            Self::ApprovalDenied { tool, reason: None } => {
                texts.fill(TextKey::RefusalApprovalDenied, &[("tool", tool)])
            }
            Self::ApprovalDenied { tool, reason: Some(reason) } => {
                texts.fill(TextKey::RefusalApprovalDeniedBecause, &[("tool", tool), ("reason", reason)])
            }
            Self::ApprovalExpired { tool } => texts.fill(TextKey::RefusalApprovalExpired, &[("tool", tool)]),
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
            Self::FileChanged { path } => texts.fill(TextKey::RefusalFileChanged, &[("path", path)]),
            Self::FileNotViewed { path } => texts.fill(TextKey::RefusalFileNotViewed, &[("path", path)]),
            Self::WorkspaceRefused { reason } => {
                texts.fill(TextKey::RefusalWorkspaceRefused, &[("reason", reason)])
            }
            Self::MergeConflict { agent, .. } => {
                texts.fill(TextKey::RefusalMergeConflict, &[("id", agent.as_str())])
            }
            Self::WorkChanged { agent } => texts.fill(TextKey::RefusalWorkChanged, &[("id", agent.as_str())]),
            Self::ToolFailed { tool, reason } => {
                texts.fill(TextKey::RefusalToolFailed, &[("tool", tool), ("reason", reason)])
            }
            Self::ServerFailed { server, reason } => {
                texts.fill(TextKey::RefusalMcpFailed, &[("server", server.as_str()), ("reason", reason)])
            }
        }
    }

    /// Returns the fields of [`Refusal::to_json`] except `error` and `message`; `None` if there are no further
    /// fields.
    pub fn details(&self, texts: &Texts) -> Option<Value> {
        let Value::Object(mut object) = self.to_json(texts) else { return None };
        object.remove("error");
        object.remove("message");
        object.remove("details").or_else(|| (!object.is_empty()).then_some(Value::Object(object)))
    }

    /// Returns the refusal as a tool result: `error`, `message` and the details.
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
            Self::ToolNotPermitted { tool, groups, allowed } => {
                object["tool"] = json!(tool);
                object["groups"] = json!(groups);
                object["allowed"] = json!(allowed);
            }
            Self::DeniedByPolicy { tool, rule } => {
                object["tool"] = json!(tool);
                object["rule"] = json!(format!("tools.policy[{rule}]"));
            }
            Self::ApprovalDenied { tool, reason } => {
                object["tool"] = json!(tool);
                object["reason"] = json!(reason);
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
            Self::FileChanged { path } | Self::FileNotViewed { path } => object["path"] = json!(path),
            Self::WorkspaceRefused { .. } => {}
            Self::MergeConflict { agent, conflicts } => {
                object["agentId"] = json!(agent);
                object["conflicts"] = conflicts.clone();
            }
            Self::WorkChanged { agent } => object["agentId"] = json!(agent),
            Self::ApprovalExpired { tool }
            | Self::OutcomeUnknown { tool }
            | Self::ToolFailed { tool, .. } => {
                object["tool"] = json!(tool);
            }
            Self::ServerFailed { server, .. } => object["server"] = json!(server.as_str()),
        }
        object["message"] = json!(self.message(texts));
        object
    }
}
