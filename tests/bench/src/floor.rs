//! The floor: the least code that does the same durable work as polity. It has no rules, no tools and no API. For each
//! turn, it commits the message, reads the conversation, sends a request, reads the answer from the stream, and commits
//! the answer. The fixed part of the request is the same as in the requests of polity.
//!
//! The floor is the same binary as the bench, but runs in a process of its own. So the processor time and the memory of
//! the floor can be measured without those of the bench.

mod asker;
mod fixed;
mod order;
mod store;
pub(crate) mod work;

pub(crate) use fixed::Fixed;
pub(crate) use order::{Order, Report, Work};

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::process::memory;
use store::Store;
use work::Floor;

/// The hidden subcommand with which the binary of the bench runs as a floor.
pub(crate) const SUBCOMMAND: &str = "floor";

/// Carries out an order in this process.
pub(crate) fn carry_out(order: Order) -> Result<Report> {
    let store = Store::open(&order.directory)?;
    let process = std::process::id();
    let parts = match order.work {
        Work::Start => {
            writeln!(std::io::stdout(), "ready")?;
            std::io::stdin().read_to_end(&mut Vec::new())?;
            Vec::new()
        }
        work => Floor { store, model: order.model, fixed: order.fixed }.play(&work)?,
    };
    Ok(Report { parts, peak: memory(process, "VmHWM")? })
}

/// Runs the hidden subcommand: reads an order from the standard input, and prints the report.
pub(crate) fn run() -> Result<()> {
    let mut order = String::new();
    BufReader::new(std::io::stdin()).read_line(&mut order)?;
    let report = carry_out(serde_json::from_str(&order)?)?;
    writeln!(std::io::stdout(), "{}", serde_json::to_string(&report)?)?;
    Ok(())
}

/// A floor process that does [`Work::Start`]. Dropping this value kills the process.
pub(crate) struct Started {
    child: Child,
    /// Time from the start of the process to the line `ready`.
    pub(crate) ready_after: Duration,
}

impl Started {
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Ignore errors: the process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(order: &Order) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(SUBCOMMAND).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().context("failed to start the floor")?;
    let stdin = child.stdin.as_mut().context("no standard input")?;
    writeln!(stdin, "{}", serde_json::to_string(order)?)?;
    Ok(child)
}

/// Starts a process on an empty directory and waits until it is ready.
pub(crate) fn start(directory: &Path) -> Result<Started> {
    let order = Order {
        work: Work::Start,
        directory: directory.to_owned(),
        model: String::new(),
        fixed: Fixed::default(),
    };
    let begun = Instant::now();
    let mut child = spawn(&order)?;
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().context("no standard output")?).read_line(&mut line)?;
    Ok(Started { child, ready_after: begun.elapsed() })
}

/// Starts a floor process on an empty directory, waits until it has done the work, and returns its report.
pub(crate) fn measure(work: Work, model: &str, fixed: Fixed) -> Result<Report> {
    let directory = TempDir::with_prefix("polity-bench-floor-")?;
    let order = Order { work, directory: directory.path().to_owned(), model: model.to_owned(), fixed };
    let output = spawn(&order)?.wait_with_output()?;
    if !output.status.success() {
        bail!("the floor ended with {}", output.status);
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
