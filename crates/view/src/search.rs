//! Search in the tasks, agents, messages and artifacts of a society.

use polity_society::id::{AgentId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// What a search can find.
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
pub enum SearchKind {
    /// A task. The search looks at the prompt that began the task.
    Task,
    /// An agent. The search looks at its id, name, role and brief.
    Agent,
    /// A message.
    Message,
    /// An artifact. The search looks at its id, name and label, and at the beginning of its text if it is a text.
    Artifact,
}

impl SearchKind {
    /// All kinds.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the name in JSON and in the database.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What to search for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SearchFilter {
    /// The words, separated by spaces. A text is found if it contains all of them; no character has a special meaning.
    /// Only the first 12 words count, and of each word the first 100 characters.
    pub q: String,
    /// Only this kind of thing. Messages include the prompts that began tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<SearchKind>,
    /// Only what belongs to this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The beginning of the page: the value of `next` from the previous page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
    /// The most hits to return; 100 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Something that a search has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchHit {
    /// What was found.
    pub kind: SearchKind,
    /// The id of the task, agent, message or artifact.
    pub id: String,
    /// The task that it belongs to. Absent for an artifact that the person has not sent yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The name of an agent (or of its role), or the file name or label of an artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The sender of a message, or the party that stored an artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The receiver of a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<AgentId>,
    /// A part of the text, in pieces: the part around the first of the searched words.
    pub snippet: Vec<SnippetPiece>,
    /// When it was created.
    pub created_at: i64,
    /// Whether the agent has ended, or nothing is left to do in the task.
    pub over: bool,
}

/// A piece of a snippet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnippetPiece {
    /// Plain text.
    pub text: String,
    /// Whether the piece is one of the words that were searched for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hit: bool,
}

/// A page of hits, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchPage {
    /// The hits.
    pub hits: Vec<SearchHit>,
    /// The beginning of the next page, if more hits may follow. Even a page without hits may have a next page, because
    /// a search reads a bounded number of texts for each page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
}
