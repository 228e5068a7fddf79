//! Artifacts.

use polity_society::content::Kind;
use polity_society::id::{AgentId, ArtifactId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactView {
    /// Its id.
    pub id: ArtifactId,
    /// Its reference: `artifact:` and the id.
    pub reference: String,
    /// What the bytes are.
    pub kind: Kind,
    /// Their MIME type.
    pub mime_type: String,
    /// The name of the file that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// The label that whoever stored it gave it.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How many bytes.
    pub size: u64,
    /// The task that it belongs to; none while the person has stored it and sent it to nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Who stored it.
    pub owner: AgentId,
    /// When.
    pub created_at: i64,
    /// What else is known of it.
    pub meta: Map<String, Value>,
    /// What is wrong with its row of the database, where that is damaged: the rest is as far as it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// Which artifacts are meant. They come newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ArtifactFilter {
    /// Only those of this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Only those that this one has stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<AgentId>,
    /// Only those of this kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Where the page begins: `next` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
    /// How many at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A page of artifacts, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactPage {
    /// The artifacts.
    pub artifacts: Vec<ArtifactView>,
    /// Where the next page begins, if there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
}
