//! The crate on systems without sandboxes: it reports that there are none.

use std::convert::Infallible;
use std::ffi::OsString;
use std::process::ExitCode;

use tokio_util::sync::CancellationToken;

use crate::ended::{Ended, Error, Usage};
use crate::machine::{Finding, Level, Machine, OwnProc};
use crate::output::Output;
use crate::plan::{Enter, Plan};

/// Finds the level `none`.
pub async fn probe(_enter: &Enter) -> Machine {
    Machine {
        level: Level::None,
        bubblewrap: None,
        proc: OwnProc::Absent,
        landlock: 0,
        kernel: (0, 0),
        findings: vec![Finding::with_advice(
            "This system has no sandboxes, so agents get no commands.",
            "Run polity on Linux, for example in a virtual machine.",
        )],
    }
}

/// Refuses, because nobody starts this part here.
pub fn enter(_arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::from(64)
}

/// A running command. On these systems there never is one.
#[derive(Debug)]
pub struct Running(Infallible);

/// A view of a running command. On these systems there never is one.
#[derive(Debug, Clone)]
pub struct Viewer(Infallible);

impl Viewer {
    /// The output so far.
    pub fn output(&self) -> Output {
        match self.0 {}
    }

    /// What the command uses.
    pub fn usage(&self) -> Usage {
        match self.0 {}
    }

    /// Waits until the command uses more or less than before.
    pub async fn usage_changed(&mut self) {
        match self.0 {}
    }
}

impl Running {
    /// Shows what the command prints and uses.
    pub fn viewer(&self) -> Viewer {
        match self.0 {}
    }

    /// The output so far.
    pub fn output(&self) -> Output {
        match self.0 {}
    }

    /// Ends the command.
    pub fn stop(&self) {
        match self.0 {}
    }

    /// Waits for the end of the command.
    pub async fn ended(self) -> Result<Ended, Error> {
        match self.0 {}
    }
}

/// Refuses.
pub async fn spawn(
    _plan: Plan,
    _machine: &Machine,
    _enter: &Enter,
    _cancel: &CancellationToken,
    _sink: impl FnMut(&[u8]) + Send + 'static,
) -> Result<Running, Error> {
    Err(Error::NotLinux)
}

/// Refuses.
pub async fn run(
    _plan: Plan,
    _machine: &Machine,
    _enter: &Enter,
    _cancel: &CancellationToken,
    _sink: impl FnMut(&[u8]) + Send + 'static,
) -> Result<Ended, Error> {
    Err(Error::NotLinux)
}
