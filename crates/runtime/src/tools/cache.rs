//! Keeps tools in the form in which requests contain them. Nearly every request contains the same tools as an earlier
//! request, and building the tools would take longer than building the rest of a request.

use lru::LruCache;
use polity_hands::tool::Tool as OutsideTool;
use polity_llm::Tool;
use polity_society::tool_group::ToolGroup;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum number of lists that the cache keeps. The least recently used list is removed first. Agents with the same
/// rights share a list.
const LISTS: usize = 64;

/// The lists of tools that were built lately.
pub(crate) struct ToolCache(Mutex<LruCache<CacheKey, Vec<Tool>>>);

impl Default for ToolCache {
    fn default() -> Self {
        Self(Mutex::new(LruCache::unbounded()))
    }
}

/// Everything that a list of tools is built from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CacheKey {
    /// The revision of the configuration, because the configuration contains the descriptions of the tools.
    pub(super) revision: u64,
    pub(super) tools: ToolList,
}

/// The tools of a list, and what their schemas depend on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ToolList {
    Society(SocietyTools),
    /// Outside tools, each with the arguments that the agent may not use.
    Outside(Vec<(ByAddress, Vec<&'static str>)>),
}

/// Tools of the society, and what their schemas depend on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SocietyTools {
    pub(super) names: Vec<&'static str>,
    /// The names of the tools that have an argument for the path of a file.
    pub(super) copying: Vec<&'static str>,
    pub(super) workspace: Workspace,
    /// The groups that the agent may give to a role.
    pub(super) may_give: Vec<ToolGroup>,
}

/// Whether the schemas of the hiring tools have the argument that gives the new agent its own worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Workspace {
    Hidden,
    Shown,
}

/// An outside tool, compared by its address. So it equals only itself, even if another tool has the same name. The key
/// keeps the tool in memory, so that no later tool can get the same address.
#[derive(Clone)]
pub(super) struct ByAddress(pub(super) Arc<dyn OutsideTool>);

impl ByAddress {
    fn address(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>().addr()
    }
}

impl PartialEq for ByAddress {
    fn eq(&self, other: &Self) -> bool {
        // Tools without fields may share an address, so the names are compared, too.
        self.address() == other.address() && self.0.name() == other.0.name()
    }
}

impl Eq for ByAddress {}

impl Hash for ByAddress {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}

impl std::fmt::Debug for ByAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}

impl ToolCache {
    /// Returns the tools for this key. Calls `build` if the cache does not have them.
    pub(super) fn get(&self, key: CacheKey, build: impl FnOnce(&ToolList) -> Vec<Tool>) -> Vec<Tool> {
        if let Some(tools) = self.lists().get(&key) {
            return tools.clone();
        }
        // `build` runs without the lock, so two callers may build the same list at the same time. That does no harm.
        let tools = build(&key.tools);
        let mut lists = self.lists();
        lists.put(key, tools.clone());
        while lists.len() > LISTS {
            lists.pop_lru();
        }
        tools
    }

    fn lists(&self) -> MutexGuard<'_, LruCache<CacheKey, Vec<Tool>>> {
        // Nothing that can panic runs while the lock is held, so the lock is never poisoned.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(revision: u64) -> CacheKey {
        let tools = SocietyTools {
            names: Vec::new(),
            copying: Vec::new(),
            workspace: Workspace::Hidden,
            may_give: Vec::new(),
        };
        CacheKey { revision, tools: ToolList::Society(tools) }
    }

    #[test]
    fn a_list_is_built_once_and_again_for_a_new_configuration() {
        let cache = ToolCache::default();
        let build = |_: &ToolList| vec![Tool::new("a", "", json!({}))];
        let unexpected = |_: &ToolList| -> Vec<Tool> { panic!("the cache has the list") };
        let first = cache.get(key(1), build);
        let again = cache.get(key(1), unexpected);
        assert!(std::ptr::eq(&raw const *first[0], &raw const *again[0]));
        let changed = cache.get(key(2), build);
        assert!(!std::ptr::eq(&raw const *first[0], &raw const *changed[0]));
    }

    #[test]
    fn the_least_recently_used_list_is_removed() {
        let cache = ToolCache::default();
        for revision in 0..1_000 {
            cache.get(key(revision), |_| Vec::new());
        }
        assert_eq!(cache.lists().len(), LISTS);
        cache.get(key(999), |_| panic!("the cache has the newest list"));
    }
}
