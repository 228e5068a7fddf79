//! The input and the output of a tool call.

use bytes::Bytes;
use polity_society::id::CommandId;
pub use polity_society::policy::Source;
pub use polity_society::workspace::{Access, Caller, Place, Root};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The arguments of a call, as the model wrote them.
pub type Arguments = Map<String, Value>;

/// Whether the call runs for the first time, or again after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// No earlier process has started the call.
    First,
    /// An earlier process started the call and then died, so the effects of the call may already exist.
    AfterCrash,
}

/// The input of one run of a call.
#[derive(Clone)]
pub struct Invocation {
    /// The agent that calls, its task, and its workspace.
    pub caller: Caller,
    /// The arguments of the call, as the model wrote them.
    pub arguments: Arguments,
    /// The same key for every run of the same call. A server that gets the key twice can detect the repeated call.
    pub idempotency_key: String,
    /// What [`crate::tool::Tool::prepare`] returned for this call. After a crash, the tool uses this value to find out
    /// whether the call has already happened.
    pub evidence: Value,
    /// Whether the call runs for the first time, or again after a crash.
    pub attempt: Attempt,
    /// The runtime cancels this token when it no longer needs the result. The tool then ends the work that it has
    /// started.
    pub cancel: CancellationToken,
    /// Receives short reports on the progress of the call.
    pub progress: Progress,
    /// Decides to which hosts the web requests of this call may go. This also applies to a request that follows a
    /// redirect.
    pub hosts: Hosts,
    /// Whether the call runs only because the person has said yes to it.
    pub consent: Consent,
}

/// Whether a call runs only because the person has said yes to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consent {
    /// The policy allows the call without a question, for example because the person always allows such calls.
    NotNeeded,
    /// The person was asked about this call and said yes to this call only.
    Given {
        /// The state that the person was shown ([`crate::tool::Shown::state`]); `Null` if there was none.
        shown: Value,
    },
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

/// The receiver of short reports on the progress of a tool call. The receiver passes each report to a function. If many
/// reports come within a short time, the function may drop some of them.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(&str) + Send + Sync>);

impl Progress {
    /// Makes a value that passes each report to the function `report`, which must not block.
    pub fn new(report: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }

    /// Makes a value that drops all reports.
    pub fn none() -> Self {
        Self::new(|_| {})
    }

    /// Reports in a few words what the call is doing, or reports the latest output of a command.
    pub fn report(&self, what: &str) {
        (self.0)(what);
    }
}

/// A function that gets the name of a host. The function returns an error with the reason if requests to this host are
/// forbidden.
type HostRule = dyn Fn(&str) -> Result<(), String> + Send + Sync;

/// The rule that decides to which hosts a web request may go.
#[derive(Clone)]
pub struct Hosts(Arc<HostRule>);

impl Hosts {
    /// Makes a rule from `check`, which gets the name of a host. If `check` returns an error, requests to this host are
    /// forbidden, and the error says why.
    pub fn new(check: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Makes a rule that permits every host.
    pub fn any() -> Self {
        Self::new(|_| Ok(()))
    }

    /// Returns an error with the reason if requests to this host are forbidden.
    pub fn check(&self, host: &str) -> Result<(), String> {
        (self.0)(host)
    }
}

/// The content of a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A text that the tool did not write itself, such as the content of a file or of a web page. The model reads the
    /// text as a quotation from `origin`.
    Text {
        /// Where the text comes from, on one line, such as a path or an address.
        origin: String,
        /// The quoted text. If the original was too long to show, this is the text that the tool has shortened.
        text: String,
    },
    /// JSON, which the model reads unchanged.
    Json(Value),
}

/// A file in a result. The runtime stores it as an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The bytes, exactly as received or read.
    pub bytes: Bytes,
    /// The MIME type that the server or the tool claims for the file; absent if neither claims one.
    pub declared_mime: Option<String>,
    /// The file name to show; absent if the file has no name.
    pub filename: Option<String>,
}

/// A file to which the JSON of a result refers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Referred {
    /// The field of the JSON in which the runtime puts the reference of the file, once the file is stored.
    pub field: &'static str,
    /// The file.
    pub file: File,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The text or JSON of the result.
    pub content: Content,
    /// Files that belong to the result, such as images. A model that can read a file gets it together with the
    /// content.
    pub files: Vec<File>,
    /// A further file, to which a field of the JSON result refers. `None` if the JSON refers to no file.
    pub referred: Option<Referred>,
    /// The sources outside the society from which the content comes, such as the web. Empty if all content comes from
    /// the society itself.
    pub sources: BTreeSet<Source>,
    /// The background command that the call started. The agent gets a notice when the command ends.
    pub goes_on: Option<CommandId>,
}

impl Output {
    /// Makes a result that consists of JSON only.
    pub fn json(value: Value) -> Self {
        Self::of(Content::Json(value))
    }

    /// Makes a result that consists only of a quoted text.
    pub fn text(origin: impl Into<String>, text: impl Into<String>) -> Self {
        Self::of(Content::Text { origin: origin.into(), text: text.into() })
    }

    fn of(content: Content) -> Self {
        Self { content, files: Vec::new(), referred: None, sources: BTreeSet::new(), goes_on: None }
    }

    /// Adds a file to the result.
    pub fn with_file(mut self, file: File) -> Self {
        self.files.push(file);
        self
    }

    /// Adds a file to which this field of the JSON result refers.
    pub fn referring_in(mut self, field: &'static str, file: File) -> Self {
        self.referred = Some(Referred { field, file });
        self
    }

    /// Sets the background command that the call started.
    pub fn going_on(mut self, command: CommandId) -> Self {
        self.goes_on = Some(command);
        self
    }

    /// Adds a source outside the society from which the content comes.
    pub fn from_source(self, source: Source) -> Self {
        self.from_sources([source])
    }

    /// Adds sources outside the society from which the content comes.
    pub fn from_sources(mut self, sources: impl IntoIterator<Item = Source>) -> Self {
        self.sources.extend(sources);
        self
    }
}
