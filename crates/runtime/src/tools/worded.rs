//! Keeps tools in the form in which requests contain them, because nearly every request contains the same tools as an
//! earlier one. Wording a tool takes longer than building the rest of a request.

use lru::LruCache;
use polity_hands::tool::Tool as OutsideTool;
use polity_llm::Tool;
use polity_society::tool_group::ToolGroup;
use std::hash::{Hash, Hasher};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum number of lists that are kept; the least recently used one goes first. Agents with the same rights
/// share their lists.
const LISTS: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// The tools that were worded lately.
pub(crate) struct Worded(Mutex<LruCache<Wording, Vec<Tool>>>);

impl Default for Worded {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(LISTS)))
    }
}

/// Everything that decides how a list of tools is worded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Wording {
    /// The revision of the configuration, which contains the words and the settings.
    pub(super) revision: u64,
    pub(super) tools: Listed,
}

/// The tools of a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Listed {
    Society {
        names: Vec<&'static str>,
        /// The tools that get an argument that names a file.
        copying: Vec<&'static str>,
        /// Whether an agent can be hired with its own worktree.
        workspace: Workspace,
        /// The groups that the agent may give to a role.
        may_give: Vec<ToolGroup>,
    },
    /// Outside tools, each with the arguments that the agent may not use.
    Outside(Vec<(Same, Vec<&'static str>)>),
}

/// Whether the agent works in a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Workspace {
    Hidden,
    Shown,
}

/// An outside tool, which equals only itself. While this value exists, no other tool gets the same address.
#[derive(Clone)]
pub(super) struct Same(pub(super) Arc<dyn OutsideTool>);

impl Same {
    fn address(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>().addr()
    }
}

impl PartialEq for Same {
    fn eq(&self, other: &Self) -> bool {
        self.address() == other.address() && self.0.name() == other.0.name()
    }
}

impl Eq for Same {}

impl Hash for Same {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}

impl std::fmt::Debug for Same {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}

impl Worded {
    /// Returns the tools of this wording. Calls `word` unless these tools are kept.
    pub(super) fn get(&self, wording: Wording, word: impl FnOnce(&Listed) -> Vec<Tool>) -> Vec<Tool> {
        if let Some(kept) = self.lists().get(&wording) {
            return kept.clone();
        }
        // The lock is free meanwhile. Two callers may word the same tools; the lists are equal.
        let tools = word(&wording.tools);
        self.lists().put(wording, tools.clone());
        tools
    }

    fn lists(&self) -> std::sync::MutexGuard<'_, LruCache<Wording, Vec<Tool>>> {
        // Nothing that can panic runs while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wording(revision: u64, names: Vec<&'static str>, workspace: Workspace) -> Wording {
        let tools = Listed::Society { names, copying: Vec::new(), workspace, may_give: Vec::new() };
        Wording { revision, tools }
    }

    #[test]
    fn equal_wordings_share_their_tools_and_others_do_not() {
        let worded = Worded::default();
        let word = |_: &Listed| vec![Tool::new("a", "", json!({}))];
        let unexpected = |_: &Listed| -> Vec<Tool> { panic!("the tools are kept") };
        let first = worded.get(wording(1, vec!["a"], Workspace::Hidden), word);
        let again = worded.get(wording(1, vec!["a"], Workspace::Hidden), unexpected);
        assert!(std::ptr::eq(&raw const *first[0], &raw const *again[0]));
        for other in [
            wording(2, vec!["a"], Workspace::Hidden),
            wording(1, vec!["a", "b"], Workspace::Hidden),
            wording(1, vec!["a"], Workspace::Shown),
        ] {
            let other = worded.get(other, word);
            assert!(!std::ptr::eq(&raw const *first[0], &raw const *other[0]));
        }
    }
}
