//! What the bench tells a floor process to do, and what it hears back.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::fixed::Fixed;
use crate::process::Used;

/// What a floor process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Work {
    /// Opens the database, says `ready`, and waits until its input ends.
    Start,
    /// Many clients play turns at the same time. The clients together play `warm_up` turns, which are not measured, and
    /// then `turns` turns, which are measured. Each turn has a conversation of its own.
    Turns { clients: usize, warm_up: usize, turns: usize },
    /// Plays turns in one conversation. The conversation has several parts, and each part is measured on its own.
    /// `parts` contains the number of turns of each part.
    History { parts: Vec<usize> },
    /// Root hires as many agents as the model wants. Each hired agent makes one request.
    Hire,
    /// `agents` agents pass a token from one to the next. They stop when the model answers without a tool call.
    Ring { agents: usize },
}

/// What a floor process needs to know before it begins its work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) work: Work,
    pub(crate) directory: PathBuf,
    /// The address of the model server.
    pub(crate) model: String,
    pub(crate) fixed: Fixed,
}

/// What a floor process reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// One item for each measured part of the work.
    pub(crate) parts: Vec<Used>,
    /// Peak of the resident memory, in MB.
    pub(crate) peak: f64,
}
