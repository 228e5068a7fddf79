//! A workspace for tests, and functions that call the file tools in it.

use crate::call::{
    Access, Arguments, Attempt, Caller, Consent, Content, Hosts, Invocation, Output, Place, Progress, Root,
};
use crate::files::{Bounds, Files, SearchFiles, StrReplaceEditor};
use crate::places::Places;
use crate::tool::{AfterCrash, Tool};
use crate::views::Views;
use futures::future::{BoxFuture, FutureExt};
use polity_files::Workspace;
use polity_society::id::{AgentId, TaskId};
use polity_society::refusal::Refusal;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A directory that is the workspace of every caller.
struct Fixed {
    directory: PathBuf,
    access: Access,
}

impl Places for Fixed {
    fn open<'a>(&'a self, _: &'a Caller) -> BoxFuture<'a, Result<Arc<Workspace>, Refusal>> {
        async { Ok(Arc::new(Workspace::open(&self.directory, self.access).unwrap())) }.boxed()
    }
}

/// A temporary directory with a workspace, and the tools that work in it.
pub(crate) struct Bench {
    pub(crate) base: TempDir,
    pub(crate) bounds: Bounds,
    pub(crate) runtime: tokio::runtime::Runtime,
}

pub(crate) fn caller(agent: &str) -> Caller {
    Caller {
        agent: AgentId::new(agent),
        task: TaskId::new("t1"),
        role: "Engineer".to_owned(),
        place: Place { root: Root::Made, worktree: None },
    }
}

pub(crate) fn object(value: Value) -> Arguments {
    let Value::Object(object) = value else { panic!("{value}") };
    object
}

impl Bench {
    pub(crate) fn new() -> Self {
        let base = TempDir::new().unwrap();
        std::fs::create_dir(base.path().join("ws")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Self { base, bounds: Bounds::default(), runtime }
    }

    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.base.path().join("ws").join(path)
    }

    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let file = self.file(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }

    pub(crate) fn content(&self, path: &str) -> Option<Vec<u8>> {
        std::fs::read(self.file(path)).ok()
    }

    /// Returns a new editor. Like an editor after a restart, it reads from disk which contents the agents have seen.
    pub(crate) fn editor(&self, access: Access) -> StrReplaceEditor {
        let views = Arc::new(Views::new(self.base.path().join("views")));
        StrReplaceEditor::new(Files::new(self.places(access), views, self.bounds))
    }

    fn places(&self, access: Access) -> Arc<dyn Places> {
        Arc::new(Fixed { directory: self.base.path().join("ws"), access })
    }

    fn invocation(&self, agent: &str, arguments: Value) -> Invocation {
        Invocation {
            caller: caller(agent),
            arguments: object(arguments),
            idempotency_key: "key".to_owned(),
            evidence: Value::Null,
            attempt: Attempt::First,
            cancel: CancellationToken::new(),
            progress: Progress::none(),
            hosts: Hosts::any(),
            consent: Consent::NotNeeded,
        }
    }

    pub(crate) fn prepare(&self, tool: &dyn Tool, agent: &str, arguments: Value) -> Result<Value, Refusal> {
        self.runtime.block_on(tool.prepare(&self.invocation(agent, arguments)))
    }

    pub(crate) fn run(
        &self,
        tool: &dyn Tool,
        agent: &str,
        arguments: Value,
        evidence: Value,
        attempt: Attempt,
    ) -> Result<Output, Refusal> {
        if attempt == Attempt::AfterCrash {
            assert_ne!(tool.after_crash(&object(arguments.clone())), AfterCrash::Never);
        }
        let invocation = Invocation { evidence, attempt, ..self.invocation(agent, arguments) };
        self.runtime.block_on(tool.run(invocation))
    }

    /// Calls the editor in the two steps of the runtime: `prepare`, then `run`.
    pub(crate) fn edit(&self, agent: &str, arguments: Value) -> Result<Output, Refusal> {
        self.edit_in(Access::Write, agent, arguments)
    }

    pub(crate) fn edit_in(&self, access: Access, agent: &str, arguments: Value) -> Result<Output, Refusal> {
        let editor = self.editor(access);
        let evidence = self.prepare(&editor, agent, arguments.clone())?;
        self.run(&editor, agent, arguments, evidence, Attempt::First)
    }

    pub(crate) fn preview(&self, arguments: Value) -> Result<Option<crate::files::Preview>, Refusal> {
        self.runtime.block_on(self.editor(Access::Write).diff(&caller("a1"), &object(arguments)))
    }

    pub(crate) fn search(&self, arguments: Value) -> Result<Output, Refusal> {
        self.search_until(CancellationToken::new(), arguments)
    }

    pub(crate) fn search_until(
        &self,
        cancel: CancellationToken,
        arguments: Value,
    ) -> Result<Output, Refusal> {
        let tool = SearchFiles::new(self.places(Access::Read), self.bounds);
        self.runtime.block_on(tool.run(Invocation { cancel, ..self.invocation("a1", arguments) }))
    }
}

/// Returns the origin and the text of a result.
pub(crate) fn text(output: &Output) -> (&str, &str) {
    match &output.content {
        Content::Text { origin, text } => (origin, text),
        Content::Json(json) => panic!("{json}"),
    }
}

pub(crate) fn json_of(output: &Output) -> &Value {
    match &output.content {
        Content::Json(json) => json,
        Content::Text { origin, text } => panic!("{origin}: {text}"),
    }
}
