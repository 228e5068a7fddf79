//! Questions that ask the person whether an agent may make a call, and the permissions that the person gave.

use polity_society::approval::Answer;
use polity_society::id::{AgentId, ApprovalId, PermissionId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// The state of a question.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    VariantArray,
    IntoStaticStr,
    EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ApprovalState {
    /// Nobody has answered yet.
    Open,
    /// The person allowed the call.
    Allowed,
    /// The person refused the call.
    Denied,
    /// Nobody answered in time, so the call is refused.
    Expired,
    /// The turn that asked has ended, so nobody needs the answer any more.
    Dropped,
}

impl ApprovalState {
    /// Returns the name in JSON and in the database.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A question to the person: may an agent make this call?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalView {
    /// The id of the question.
    pub id: ApprovalId,
    /// The task of the turn that asks.
    pub task: TaskId,
    /// The agent that wants to make the call.
    pub agent: AgentId,
    /// The name of the agent's role.
    pub role: String,
    /// The name of the tool.
    pub tool: String,
    /// All arguments of the call.
    pub arguments: Value,
    /// What the call would change, such as a diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Why the person is asked.
    pub why: String,
    /// How content from outside reached the agent: one line for each step, the source first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub way: Vec<String>,
    /// The state of the question.
    pub state: ApprovalState,
    /// The answer of the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The reason that the person gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the question was asked.
    pub asked_at: i64,
    /// When the question expires. If nobody has answered by then, the call is refused.
    pub expires_at: i64,
    /// When the question was answered or dropped, or when it expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<i64>,
}

/// A filter for questions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ApprovalFilter {
    /// Only questions of this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Only questions in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ApprovalState>,
    /// Only questions that are older than the question with this number. To get the next page, pass the value of `next`
    /// from the previous page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub after: Option<i64>,
    /// Largest number of questions to return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A page of questions, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalPage {
    /// The questions.
    pub approvals: Vec<ApprovalView>,
    /// The value of `after` for the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalAnswer {
    /// The answer.
    pub answer: Answer,
    /// The reason for the answer. If the answer is no, polity tells the agent this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A permission that the person gave for more than one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionView {
    /// The id of the permission.
    pub id: PermissionId,
    /// The task in which the permission applies. Absent if the permission applies in every task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The tool that may be called.
    pub tool: String,
    /// The role whose agents may call the tool.
    pub role: String,
    /// Which calls are permitted, in words.
    pub calls: String,
    /// When the permission was given.
    pub created_at: i64,
}
