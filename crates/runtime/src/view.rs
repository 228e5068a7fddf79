//! What others see of a society, as data: the shapes that the API sends and that clients read.
//!
//! Names in JSON are in camelCase, what is not there is left out, and times are milliseconds since 1970.

mod agent;
mod artifact;
mod message;
mod service;
mod steering;
mod task;

pub use agent::{
    AgentDetail, AgentFilter, AgentPage, AgentState, AgentView, ContactView, HoldView, RolePatch, RoleView,
};
pub use artifact::{ArtifactFilter, ArtifactPage, ArtifactView};
pub use message::{
    ConversationView, EntryView, MessageFilter, MessagePage, MessageView, Order, RequestPreview,
};
pub use service::{
    Circuit, ConfigProblem, ConfigView, PriceView, RefusedMedia, ServiceState, ServiceView, Severity,
};
pub use steering::{DataFacts, EventFilter, EventPage, Posted, Problem, Steered};
pub use task::{
    AgentUsage, ServiceUsage, TaskFilter, TaskPage, TaskState, TaskUsage, TaskView, UsageFilter, UsageSum,
    UsageView,
};

/// How many rows a page has where nothing else is asked for.
pub const DEFAULT_PAGE: u32 = 100;

/// The most rows that a page has.
pub const MAX_PAGE: u32 = 1_000;

/// How many rows a page has that was asked for with this limit.
pub(crate) fn page(limit: Option<u32>) -> u32 {
    limit.unwrap_or(DEFAULT_PAGE).clamp(1, MAX_PAGE)
}
