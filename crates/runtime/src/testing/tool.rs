//! Tools that act outside, for the tests.

use futures::future::{BoxFuture, FutureExt};
use polity_decide::found::SEARCH_TOOLS;
use polity_hands::call::{Arguments, Invocation, Output, Source};
use polity_hands::shipped::shipped;
use polity_hands::table::Hands;
use polity_hands::tool::{AfterCrash, Effect, Needs, Reach, Shown, Tool, Words};
use polity_sandbox::{Enter, Settings};
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

type Run = dyn Fn(Invocation) -> BoxFuture<'static, Result<Output, Refusal>> + Send + Sync;

/// A tool that calls a function of the test.
#[derive(Clone)]
pub(crate) struct FakeTool {
    pub(crate) name: &'static str,
    pub(crate) group: ToolGroup,
    pub(crate) reach: Reach,
    pub(crate) after_crash: AfterCrash,
    pub(crate) evidence: Value,
    pub(crate) needs: Vec<Needs>,
    /// The sources from which every call can bring content into the workspace.
    pub(crate) brings: BTreeSet<Source>,
    /// What the person sees of every call.
    pub(crate) shows: Option<Shown>,
    /// Counts for how many calls the tool has prepared something.
    pub(crate) prepares: Arc<AtomicUsize>,
    pub(crate) run: Arc<Run>,
}

impl FakeTool {
    /// Makes a tool of the group `web` that changes something. Its calls may be repeated after a crash.
    pub(crate) fn new(
        name: &'static str,
        run: impl Fn(Invocation) -> BoxFuture<'static, Result<Output, Refusal>> + Send + Sync + 'static,
    ) -> Self {
        let evidence = Value::Null;
        let (group, reach) = (ToolGroup::Web, Reach::Other(Effect::Changes));
        let (after_crash, needs, run) = (AfterCrash::Repeat, Vec::new(), Arc::new(run));
        let (brings, shows, prepares) = (BTreeSet::new(), None, Arc::default());
        Self { name, group, reach, after_crash, evidence, needs, brings, shows, prepares, run }
    }

    /// Makes a tool that returns the same result for every call.
    pub(crate) fn returns(name: &'static str, result: Result<Output, Refusal>) -> Self {
        Self::new(name, move |_| {
            let result = result.clone();
            async move { result }.boxed()
        })
    }
}

impl Tool for FakeTool {
    fn name(&self) -> &str {
        self.name
    }

    fn group(&self) -> ToolGroup {
        self.group.clone()
    }

    fn parameters(&self) -> Value {
        let properties =
            self.needs.iter().map(|needs| (needs.argument.to_owned(), json!({"type": "string"})));
        json!({"type": "object", "properties": properties.collect::<serde_json::Map<_, _>>()})
    }

    fn needs(&self) -> &[Needs] {
        &self.needs
    }

    fn words(&self) -> Words {
        Words::Own("…".to_owned())
    }

    fn reach(&self, _: &Arguments) -> Reach {
        self.reach.clone()
    }

    fn always(&self) -> Option<Effect> {
        Some(self.reach.effect())
    }

    fn after_crash(&self, _: &Arguments) -> AfterCrash {
        self.after_crash
    }

    fn prepare<'a>(&'a self, _: &'a Invocation) -> BoxFuture<'a, Result<Value, Refusal>> {
        self.prepares.fetch_add(1, Ordering::SeqCst);
        async { Ok(self.evidence.clone()) }.boxed()
    }

    fn brings<'a>(&'a self, _: &'a Invocation) -> BoxFuture<'a, BTreeSet<Source>> {
        async { self.brings.clone() }.boxed()
    }

    fn preview<'a>(&'a self, _: &'a Invocation) -> BoxFuture<'a, Option<Shown>> {
        async { self.shows.clone() }.boxed()
    }

    fn run<'a>(&'a self, invocation: Invocation) -> BoxFuture<'a, Result<Output, Refusal>> {
        (self.run)(invocation)
    }
}

/// Returns the tools that polity ships, for tests that do not run them.
pub(crate) fn shipped_hands() -> Hands {
    let enter = Enter { program: PathBuf::from("/nowhere"), first_arguments: Vec::new() };
    // The tool for web search exists only if a search provider is configured.
    let search = polity_web::Search::Tavily { key: polity_web::SearchKey::new("k") };
    let web = polity_web::Settings { search: Some(search), ..polity_web::Settings::default() };
    let nowhere = Path::new("/nowhere");
    shipped(nowhere, nowhere, enter, Arc::new(Settings::default), Arc::new(move || web.clone()))
}

/// The names of all tools that act outside and that polity ships. The table of shipped tools lacks the two tools that
/// need the store, so they are added here.
pub(crate) fn shipped_names() -> Vec<String> {
    let shipped = shipped_hands().tools();
    let names = shipped.iter().map(|tool| tool.name().to_owned());
    names.chain(["merge_workspace".to_owned(), SEARCH_TOOLS.to_owned()]).collect()
}

/// Returns a table of these tools.
pub(crate) fn hands(tools: Vec<FakeTool>) -> Hands {
    tools.into_iter().fold(Hands::none(), |hands, tool| hands.with(Arc::new(tool)))
}
