//! Artifacts.

use polity_society::content::Kind;
use polity_society::id::{AgentId, ArtifactId, TaskId};
use polity_society::mime::MimeType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactView {
    /// The id of the artifact.
    pub id: ArtifactId,
    /// The reference that messages use: `artifact:` and the id.
    pub reference: String,
    /// The kind of content.
    pub kind: Kind,
    /// The MIME type of the bytes.
    pub mime_type: MimeType,
    /// The name of the file that the artifact came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// The label that the owner gave to the artifact.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The size in bytes.
    pub size: u64,
    /// The task that the artifact belongs to. Absent as long as the person has not sent the artifact to an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The party that stored the artifact.
    pub owner: AgentId,
    /// The time at which the artifact was stored.
    pub created_at: i64,
    /// Further facts from the agent that stored the artifact. If the bytes contradict the declared MIME type, polity
    /// adds the field `contradiction`.
    pub meta: Map<String, Value>,
    /// A description of the damage, if the artifact's row in the database is damaged. The other fields then contain
    /// only what could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// A filter for artifacts. Lists begin with the newest artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ArtifactFilter {
    /// Only artifacts of this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Only artifacts that this party has stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<AgentId>,
    /// Only artifacts of this kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// The beginning of the page: the value of `next` from the previous page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
    /// The most artifacts to return; 100 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A page of artifacts, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactPage {
    /// The artifacts.
    pub artifacts: Vec<ArtifactView>,
    /// The beginning of the next page, if more artifacts may follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
}
