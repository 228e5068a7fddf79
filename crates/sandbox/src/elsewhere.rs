//! Replaces the sandbox on systems other than Linux: this module reports that there is no sandbox, and runs no
//! command.

use std::convert::Infallible;
use std::ffi::OsString;
use std::process::ExitCode;

use tokio_util::sync::CancellationToken;

use crate::ended::{Ended, Error, Usage};
use crate::machine::{Finding, Level, Machine, OwnProc};
use crate::output::Output;
use crate::plan::{Enter, Plan};

/// Returns a machine with the sandbox level `none`.
pub async fn probe(_enter: &Enter) -> Machine {
    Machine {
        level: Level::None,
        bubblewrap: None,
        proc: OwnProc::Absent,
        landlock: 0,
        delegated: None,
        kernel: (0, 0),
        findings: vec![Finding::with_advice(
            "This system has no sandboxes, so agents get no commands.",
            "Run polity on Linux, for example in a virtual machine.",
        )],
    }
}

/// Returns a failure: on these systems, no part of a sandbox is ever started.
pub fn enter(_arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::from(64)
}

/// A running command. No value of this type exists on these systems.
#[derive(Debug)]
pub struct Running(Infallible);

/// A view of a running command. No value of this type exists on these systems.
#[derive(Debug, Clone)]
pub struct Viewer(Infallible);

impl Viewer {
    /// Returns the output so far.
    pub fn output(&self) -> Output {
        match self.0 {}
    }

    /// Returns the number of bytes of the output so far.
    pub fn output_bytes(&self) -> u64 {
        match self.0 {}
    }

    /// Returns what the command uses.
    pub fn usage(&self) -> Usage {
        match self.0 {}
    }

    /// Waits until the usage of the command changes.
    pub async fn usage_changed(&mut self) {
        match self.0 {}
    }
}

impl Running {
    /// Returns a view of what the command prints and uses.
    pub fn viewer(&self) -> Viewer {
        match self.0 {}
    }

    /// Returns the output so far.
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

/// Refuses to run a command.
pub async fn spawn(
    _plan: Plan,
    _machine: &Machine,
    _enter: &Enter,
    _cancel: &CancellationToken,
    _sink: impl FnMut(&[u8]) + Send + 'static,
) -> Result<Running, Error> {
    Err(Error::NotLinux)
}

/// Refuses to run a command.
pub async fn run(
    _plan: Plan,
    _machine: &Machine,
    _enter: &Enter,
    _cancel: &CancellationToken,
    _sink: impl FnMut(&[u8]) + Send + 'static,
) -> Result<Ended, Error> {
    Err(Error::NotLinux)
}
