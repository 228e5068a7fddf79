//! `polity view`: opens the live view in a browser.

use super::At;
use crate::failure::Failure;
use crate::output::{complain, print};
use clap::Args;
use std::process::Stdio;

/// `polity view`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    at: At,
    /// Also open the address in a browser.
    #[arg(long)]
    open: bool,
}

/// Programs that open an address in a browser; the first that works is used.
const OPENERS: [&str; 2] = ["xdg-open", "open"];

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let url = arguments.at.client()?.session().await?;
    print(&url)?;
    if !arguments.open {
        return Ok(0);
    }
    for opener in OPENERS {
        let mut command = tokio::process::Command::new(opener);
        command.arg(&url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if command.status().await.is_ok_and(|status| status.success()) {
            return Ok(0);
        }
    }
    complain("no browser could be opened; open the address above within a minute, it works once");
    Ok(0)
}
