//! Views of a society as plain data: events, and the JSON types that the API sends and clients read.
//!
//! This crate must not know the database, the runtime, HTTP or the command line. The crate contains only data types
//! and functions that describe them in words: the store fills the types, the API writes them as JSON, and clients read
//! the same types back.
//!
//! In JSON, names are in camelCase, absent values are left out, and times are milliseconds since 1970.

// Circle: `event` contains `sentence`, and `sentence` describes an `Event` in words.
mod event;
mod in_full;

mod agent;
mod approval;
mod artifact;
mod command;
mod freed;
mod message;
mod search;
mod sent;
// Circle: `doing` contains `words`, and `words` describes a `Doing`.
mod doing;
mod now;
mod server;
mod service;
mod steering;
mod task;
mod uses;
// Circle: `why` contains `sentence`, and `sentence` describes a `Fact` in words.
mod why;
mod workspace;

pub use agent::{
    AgentDetail, AgentFilter, AgentPage, AgentView, ContactView, HoldView, RightView, RolePatch, RoleView,
};
pub use approval::{
    ApprovalAnswer, ApprovalFilter, ApprovalPage, ApprovalState, ApprovalView, PermissionView,
};
pub use doing::{About, AgentState, Awaited, Doing, Glimpse, MAX_AWAITED, Said, Silence, elapsed};
pub use event::{
    Because, Entry, Event, EventKind, NextAttempt, Outcome, Routing, Shown, Span, SummarySource, Tone,
    WhyDescribed,
};
pub use in_full::in_full;

pub use artifact::{ArtifactFilter, ArtifactPage, ArtifactView};
pub use command::{CommandFilter, CommandView};
pub use freed::{AmountView, FreedView, FreeingFilter};
pub use message::{
    ConversationView, EntryView, MessageFilter, MessagePage, MessageView, Order, RequestPreview,
};
pub use now::{CardView, Cause, Deed, LastView, NowFilter, NowView, Remedy, Stuck, StuckView, Trouble};
pub use search::{SearchFilter, SearchHit, SearchKind, SearchPage, SnippetPiece};
pub use sent::{SentOutcome, SentRequest};
pub use server::{ServerCondition, ServerView};
pub use service::{
    Circuit, ConfigProblem, ConfigView, PriceView, RefusedMedia, ServiceState, ServiceView, Severity,
};
pub use steering::{
    DataFacts, EventFilter, EventPage, Forked, Leaving, NewFork, Posted, Problem, Steered, Warning,
    WarningCode,
};
pub use task::{
    AgentUsage, ServiceUsage, TaskFilter, TaskPage, TaskState, TaskUsage, TaskView, UsageFilter, UsageSum,
    UsageView,
};
pub use uses::{ArtifactUses, Attached, ShownTo};

pub use why::{Fact, ResumeScope, Why, WhyFilter, WhyRemedy};
pub use workspace::{
    ChangesFilter, ChangesView, CommitView, EditView, EntryKind, FileChangeView, FileDiffView, RecordingView,
    WorkspaceContent, WorkspaceEntry, WorkspaceFilter, WorkspaceView,
};

/// Rows per page if the request sets no limit.
pub const DEFAULT_PAGE: u32 = 100;

/// The maximum number of rows per page.
pub const MAX_PAGE: u32 = 1_000;

/// Returns the rows per page for the limit of a request.
pub fn page(limit: Option<u32>) -> u32 {
    limit.unwrap_or(DEFAULT_PAGE).clamp(1, MAX_PAGE)
}

#[cfg(test)]
mod names;
