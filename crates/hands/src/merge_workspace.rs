//! The tool `merge_workspace`: brings the work of a descendant into the workspace of the caller. A descendant is an
//! agent that the caller hired, directly or through other agents.

use crate::arguments::{self, Argued};
use crate::call::{Arguments, Caller, Consent, Invocation, Output};
use crate::tool::{AfterCrash, Effect, Reach, Shown, Tool};
use futures::future::{BoxFuture, FutureExt};
use polity_society::defuse::json_line;
use polity_society::id::AgentId;
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use polity_workspaces::{FileDiff, Unmerged, Wanted, Workspaces};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The name of the tool.
pub const MERGE_WORKSPACE: &str = "merge_workspace";

/// Maximum number of changed files that the answer or a preview lists.
const NAMED_FILES: usize = 100;

/// Maximum number of bytes of the diffs that the person sees before a merge.
const PREVIEW_BYTES: usize = 64 << 10;

/// Returns whether an agent is a descendant of the caller. The runtime provides this function, because this crate does
/// not know which agent hired which.
pub type IsDescendant = Arc<dyn Fn(&Caller, &AgentId) -> BoxFuture<'static, bool> + Send + Sync>;

/// The tool that merges the branch of a descendant into the workspace of the caller.
pub struct MergeWorkspace {
    workspaces: Arc<Workspaces>,
    is_descendant: IsDescendant,
}

impl MergeWorkspace {
    /// `is_descendant` decides whose work a caller may merge.
    pub fn new(workspaces: Arc<Workspaces>, is_descendant: IsDescendant) -> Self {
        Self { workspaces, is_descendant }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct MergeArguments {
    agent_id: String,
}

impl Argued for MergeArguments {
    const NAMES: &'static [&'static str] = &["agentId"];
}

impl Tool for MergeWorkspace {
    fn name(&self) -> &str {
        MERGE_WORKSPACE
    }

    fn group(&self) -> ToolGroup {
        ToolGroup::Files
    }

    fn parameters(&self) -> Value {
        arguments::schema_of::<MergeArguments>()
    }

    fn reach(&self, _arguments: &Arguments) -> Reach {
        Reach::ChangesWorkspace
    }

    fn always(&self) -> Option<Effect> {
        Some(Effect::Changes)
    }

    fn after_crash(&self, _arguments: &Arguments) -> AfterCrash {
        // Repeating does no harm. The repeated call first finishes the merge that the crash interrupted. Then it merges
        // the commits that are not merged yet, and no others.
        AfterCrash::Repeat
    }

    fn preview<'a>(&'a self, invocation: &'a Invocation) -> BoxFuture<'a, Option<Shown>> {
        async move {
            let MergeArguments { agent_id } = arguments::read(&invocation.arguments).ok()?;
            let agent = AgentId::new(agent_id);
            if !(self.is_descendant)(&invocation.caller, &agent).await {
                return None;
            }
            let found = self.workspaces.unmerged(&invocation.caller, &agent, &invocation.cancel).await;
            let Unmerged { files, tree } = found.ok().flatten()?;
            Some(Shown { text: in_one_text(&files), state: json!(tree) })
        }
        .boxed()
    }

    fn run<'a>(&'a self, invocation: Invocation) -> BoxFuture<'a, Result<Output, Refusal>> {
        async move {
            let MergeArguments { agent_id } = arguments::read(&invocation.arguments)?;
            let agent = AgentId::new(agent_id);
            if !(self.is_descendant)(&invocation.caller, &agent).await {
                return Err(Refusal::NotDescendant { agent: agent.to_string() });
            }
            // The descendant may have worked on while the question was open.
            let wanted = match &invocation.consent {
                Consent::NotNeeded => Wanted::Present,
                Consent::Given { shown } => Wanted::Shown(shown.as_str()),
            };
            let merged =
                self.workspaces.merge(&invocation.caller, &agent, wanted, &invocation.cancel).await?;
            let named = &merged.files[..merged.files.len().min(NAMED_FILES)];
            let mut answer = json!({"commits": merged.commits, "files": named});
            if named.len() < merged.files.len() {
                answer["more"] = json!(merged.files.len() - named.len());
            }
            if !merged.left.is_empty() {
                answer["left"] = json!(merged.left);
            }
            Ok(Output::json(answer))
        }
        .boxed()
    }
}

/// Joins the diffs of files. If they are too long together, leaves some out, and names their files at the end.
fn in_one_text(files: &[FileDiff]) -> String {
    let mut text = String::new();
    let mut left_out = Vec::new();
    for FileDiff { path, patch, .. } in files {
        if text.len().saturating_add(patch.len()) <= PREVIEW_BYTES {
            text.push_str(patch);
        } else {
            left_out.push(path);
        }
    }
    for path in left_out.iter().take(NAMED_FILES) {
        text.push_str(&format!("… {}\n", json_line(path)));
    }
    if left_out.len() > NAMED_FILES {
        text.push_str(&format!("… {} more files\n", left_out.len() - NAMED_FILES));
    }
    text
}

#[cfg(test)]
mod tests;
