//! `polity shutdown`: asks the daemon to end, and waits until it has ended.

use super::At;
use crate::failure::Failure;
use crate::output::{Elapsed, complain, print, print_json};
use crate::places::{self, NOTE};
use clap::Args;
use polity_client::FindError;
use polity_disk::{Holder, Links, holder, read_text};
use polity_view::Leaving;
use serde::Deserialize;
use std::path::Path;
use std::time::Duration;

/// `polity shutdown`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    at: At,
    /// Print, as one JSON object, the daemon that has ended.
    #[arg(long)]
    json: bool,
}

/// Polling interval while waiting until the daemon has ended.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// Maximum size of `daemon.json`, in bytes.
const MAX_NOTE: u64 = 64 * 1024;

/// The part of `daemon.json` that this command reads. The process id distinguishes a daemon from its successor.
#[derive(Deserialize)]
struct Note {
    pid: u32,
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let data = places::data_path(arguments.at.data.clone())?;
    let client = arguments.at.client()?;
    let url = client.url().map_err(|error| match error {
        polity_client::Error::Find(FindError::NotServing(_)) => Failure::NothingServes(data.clone()),
        error => error.into(),
    })?;
    let leaving = client.shutdown().await?;
    complain(&format!("{url}: the daemon lets the work in progress finish"));
    let waiting = (!arguments.json).then(|| Elapsed::begin("waiting for the end of the daemon"));
    while !has_ended(&data, leaving)? {
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    drop(waiting);
    if arguments.json {
        print_json(&leaving)?;
    } else {
        print(&format!("the daemon has ended (process {})", leaving.pid))?;
    }
    Ok(0)
}

/// Returns whether a daemon has ended. A daemon holds the lock of its data directory until its process ends. If a new
/// daemon has started after that, the new daemon holds the lock, and its `daemon.json` has another process id.
fn has_ended(data: &Path, leaving: Leaving) -> Result<bool, Failure> {
    let held = holder(data).map_err(|source| Failure::Data { path: data.to_owned(), source })?;
    let note = || read_text(&data.join(NOTE), Links::Refused, MAX_NOTE).ok();
    let pid = || serde_json::from_str::<Note>(&note()?).ok().map(|note| note.pid);
    Ok(held == Holder::Nobody || pid().is_some_and(|pid| pid != leaving.pid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_disk::Lock;

    #[test]
    fn a_daemon_has_ended_once_nobody_or_another_daemon_holds_the_lock() {
        let data = tempfile::tempdir().unwrap();
        let check = |expect| assert_eq!(has_ended(data.path(), Leaving { pid: 7 }).unwrap(), expect);
        let lock = Lock::take(data.path()).unwrap();
        std::fs::write(data.path().join(NOTE), r#"{"url": "http://127.0.0.1:1", "pid": 7}"#).unwrap();
        check(false);
        // A daemon that ends removes `daemon.json` first. Its lock is released later, when the process ends.
        std::fs::remove_file(data.path().join(NOTE)).unwrap();
        check(false);
        std::fs::write(data.path().join(NOTE), r#"{"url": "http://127.0.0.1:1", "pid": 8}"#).unwrap();
        check(true);
        std::fs::remove_file(data.path().join(NOTE)).unwrap();
        drop(lock);
        check(true);
    }
}
