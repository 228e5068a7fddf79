//! The last question of the dialogue that `polity` without arguments leads: does the person want to chat, open the live
//! view, or leave? Chat and live view need a daemon. If none is running, this process starts one, and ends it when the
//! person leaves.

use super::{Person, tell};
use crate::cli::{Arguments, Command};
use crate::failure::Failure;
use crate::output::{Elapsed, complain};
use crate::places;
use crate::remote;
use crate::remote::chat::Leaving;
use crate::remote::unfinished::{NOTHING_LOST, unfinished};
use clap::Parser;
use polity_client::Client;
use polity_society::text::{TextKey, Texts};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Child;

/// Polling interval while waiting for the daemon to become ready.
const GLANCE: Duration = Duration::from_millis(50);

/// Asks the person how to go on, runs the chosen command, and returns the exit code.
pub(super) async fn offer(person: &mut Person, texts: &Texts) -> Result<u8, Failure> {
    let words = match person.answers(texts.get(TextKey::FirstNext)).await?.as_deref() {
        Some("1") => ["polity", "chat"].as_slice(),
        Some("2") => &["polity", "view", "--open"],
        Some(_) | None => return Ok(0),
    };
    let Ok(Arguments { command }) = Arguments::try_parse_from(words) else {
        return Err(Failure::Defect("the command line of polity is not its own".to_owned()));
    };
    let client = Client::new(&places::data_path(None)?)?;
    let starting = Elapsed::begin(texts.get(TextKey::FirstStarting));
    let daemon = daemon(person, &client).await?;
    drop(starting);
    let ended = match command {
        Command::Chat(arguments) => {
            let leaving = if daemon.is_some() { Leaving::WithWarning } else { Leaving::AtOnce };
            remote::chat::run(arguments, leaving).await
        }
        Command::View(arguments) => {
            let shown = match remote::view::run(arguments).await {
                Ok(code) if daemon.is_some() => tell(texts.get(TextKey::FirstViewed)).map(|()| code),
                shown => shown,
            };
            if shown.is_ok() && daemon.is_some() {
                person.interrupts().await;
                if let Some(words) = unfinished(&client).await {
                    complain(&format!("{words}\n{NOTHING_LOST}"));
                }
            }
            shown
        }
        _ => Ok(0),
    };
    if let Some(daemon) = daemon {
        let _ending = Elapsed::begin(texts.get(TextKey::FirstEnding));
        end(daemon).await;
    }
    ended
}

/// Starts a daemon and waits until it is ready. Returns nothing if a daemon is running already.
async fn daemon(person: &mut Person, client: &Client) -> Result<Option<Child>, Failure> {
    if client.ready().await.is_ok() {
        return Ok(None);
    }
    let program = std::env::current_exe().map_err(|error| Failure::Defect(error.to_string()))?;
    let mut command = tokio::process::Command::new(program);
    command.args(["serve", "--listen", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::null());
    // Ctrl-C in the chat sends a signal to all processes of the chat's process group. The daemon must not get this
    // signal, so the daemon has a process group of its own.
    command.process_group(0).stderr(Stdio::null());
    let mut child =
        command.spawn().map_err(|error| Failure::Defect(format!("cannot start a daemon: {error}")))?;
    loop {
        if client.ready().await.is_ok() {
            return Ok(Some(child));
        }
        tokio::select! {
            ended = child.wait() => {
                let how = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
                return Err(Failure::Defect(format!("the daemon ended at once ({how}); `polity serve` says why")));
            }
            () = tokio::time::sleep(GLANCE) => {}
            () = person.interrupts() => {
                end(child).await;
                return Err(Failure::Left);
            }
        }
    }
}

/// Ends a daemon, and waits until its process has ended. The daemon first lets the work in progress finish.
async fn end(mut child: Child) {
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(id) = id {
        // An error means that the daemon has ended already.
        let _ = kill_process(id, Signal::TERM);
    }
    let _ = child.wait().await;
}
