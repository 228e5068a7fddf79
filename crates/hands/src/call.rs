//! A call of a tool: what goes in, and what comes out.

use bytes::Bytes;
use polity_society::id::CommandId;
pub use polity_society::policy::Source;
pub use polity_society::workspace::{Access, Caller, Place, Root};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The arguments of a call, as the model wrote them.
pub type Arguments = Map<String, Value>;

/// Whether a call runs for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The call was not started before.
    First,
    /// The call was started before the process died. It may have happened.
    AfterCrash,
}

/// The input of one run.
#[derive(Clone)]
pub struct Invocation {
    /// Who calls, and where it works.
    pub caller: Caller,
    /// The arguments of the call, as the model wrote them.
    pub arguments: Arguments,
    /// The same key for each run of the same call, so that the other side can recognise a repetition.
    pub idempotency_key: String,
    /// What [`crate::tool::Tool::prepare`] returned for this call.
    pub evidence: Value,
    /// Whether the call runs for the first time.
    pub attempt: Attempt,
    /// Cancelled when nobody waits for the result any more. The tool then ends what it started.
    pub cancel: CancellationToken,
    /// Takes short reports on how the call is going.
    pub progress: Progress,
    /// Decides to which hosts redirects may lead a web request of this call.
    pub hosts: Hosts,
}

impl fmt::Debug for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { caller, arguments, idempotency_key, attempt, .. } = self;
        f.debug_struct("Invocation")
            .field("caller", caller)
            .field("arguments", arguments)
            .field("idempotency_key", idempotency_key)
            .field("attempt", attempt)
            .finish_non_exhaustive()
    }
}

/// Takes short reports on how a call is going. The receiver drops reports that come too fast.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(&str) + Send + Sync>);

impl Progress {
    /// Makes a sink from a function. The function must not block.
    pub fn new(report: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }

    /// Makes a sink that drops all reports.
    pub fn none() -> Self {
        Self::new(|_| {})
    }

    /// Reports in a few words what the call does at the moment, or what it has just printed.
    pub fn report(&self, what: &str) {
        (self.0)(what);
    }
}

/// Decides to which hosts a web request may go.
#[derive(Clone)]
pub struct Hosts(Arc<dyn Fn(&str) -> Result<(), String> + Send + Sync>);

impl Hosts {
    /// Makes a rule from a function. The error says why the request may not go to the host.
    pub fn new(check: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Makes a rule that permits every host.
    pub fn any() -> Self {
        Self::new(|_| Ok(()))
    }

    /// Returns why a request may not go to a host, as an error.
    pub fn check(&self, host: &str) -> Result<(), String> {
        (self.0)(host)
    }
}

/// The content of a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A text from outside. The model reads it as quoted content of this origin, such as a path or an address.
    Text {
        /// What the text is, in a few words on one line.
        origin: String,
        /// The text.
        text: String,
    },
    /// JSON, which the model reads unchanged.
    Json(Value),
}

/// A file in a result. The runtime stores it as an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The content.
    pub bytes: Bytes,
    /// The MIME type that its origin claims, if it claims one.
    pub declared_mime: Option<String>,
    /// The name of the file, if it has one.
    pub filename: Option<String>,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The text or JSON of the result.
    pub content: Content,
    /// The files of the result, such as images. A model that can read them sees them beside the content.
    pub files: Vec<File>,
    /// Where the content comes from, if it does not come from the society itself.
    pub source: Option<Source>,
    /// The command that goes on in the background. Its end is reported to the agent.
    pub goes_on: Option<CommandId>,
}

impl Output {
    /// Makes a result that consists of JSON.
    pub fn json(value: Value) -> Self {
        Self { content: Content::Json(value), files: Vec::new(), source: None, goes_on: None }
    }

    /// Makes a result that consists of a text from outside.
    pub fn text(origin: impl Into<String>, text: impl Into<String>) -> Self {
        let content = Content::Text { origin: origin.into(), text: text.into() };
        Self { content, files: Vec::new(), source: None, goes_on: None }
    }

    /// Adds a file.
    pub fn with_file(mut self, file: File) -> Self {
        self.files.push(file);
        self
    }

    /// Names a command that goes on in the background.
    pub fn going_on(mut self, command: CommandId) -> Self {
        self.goes_on = Some(command);
        self
    }

    /// Names the source of the content.
    pub fn from_source(mut self, source: Source) -> Self {
        self.source = Some(source);
        self
    }
}
