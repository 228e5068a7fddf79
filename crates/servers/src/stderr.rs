//! Copies the standard error of servers to the log.

use crate::bounds::Bounds;
use crate::config::Launch;
use crate::text::on_one_line;
use polity_society::tool_group::ServerName;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::task::TaskTracker;

/// Maximum number of lines to log for one run of a server. Further lines are read, but not logged.
const LOGGED_LINES: usize = 1_000;

/// The last line that a server has written to standard error.
#[derive(Clone, Default)]
pub(crate) struct LastLine {
    line: Arc<Mutex<String>>,
    /// The Tokio tasks that read standard error.
    readers: TaskTracker,
}

impl LastLine {
    /// Reads standard error in a Tokio task of its own.
    pub(crate) fn read_from(
        &self,
        stderr: impl AsyncRead + Send + Unpin + 'static,
        server: ServerName,
        launch: Launch,
        bounds: Bounds,
    ) {
        self.readers.spawn(drain(stderr, server, launch, bounds, self.clone()));
    }

    /// Waits until standard error has been read to its end, and then returns the last line. If a process that outlives
    /// the server keeps standard error open, returns the last line so far after `patience`.
    pub(crate) async fn at_end(&self, patience: Duration) -> String {
        self.readers.close();
        let _ = tokio::time::timeout(patience, self.readers.wait()).await;
        self.get()
    }

    fn get(&self) -> String {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, line: String) {
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = line;
    }
}

/// Reads standard error to its end. Keeps only one line of limited length in memory.
async fn drain(
    mut stderr: impl AsyncRead + Unpin,
    server: ServerName,
    launch: Launch,
    bounds: Bounds,
    last: LastLine,
) {
    let mut logged = 0;
    let most = bounds.line_chars.saturating_mul(4);
    let mut log = |line: &[u8]| {
        let text = String::from_utf8_lossy(line);
        // Hide secrets before the line is cut again: the beginning of a secret would not be recognized.
        let hidden =
            if line.len() == most { launch.hide_secrets_in_cut(&text) } else { launch.hide_secrets(&text) };
        let line = on_one_line(&hidden, bounds.line_chars);
        if line.is_empty() {
            return;
        }
        if logged < LOGGED_LINES {
            tracing::debug!(%server, line, "standard error of an MCP server");
        }
        logged += 1;
        last.set(line);
    };
    let mut line = Vec::new();
    let mut buffer = [0; 8192];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        for piece in buffer[..read].split_inclusive(|byte| *byte == b'\n') {
            let room = most.saturating_sub(line.len());
            line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                log(&line);
                line.clear();
            }
        }
    }
    log(&line);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Process, Sandbox, Secret};
    use std::collections::BTreeMap;

    fn launch(secrets: &[(&str, &str)]) -> Launch {
        let env = secrets.iter().map(|(name, value)| ((*name).to_owned(), Secret::new(*value)));
        Launch::Process(Process {
            command: String::new(),
            args: Vec::new(),
            env: env.collect::<BTreeMap<_, _>>(),
            cwd: None,
            sandbox: Sandbox::Off,
        })
    }

    #[tokio::test]
    async fn a_line_is_cut_only_after_its_secrets_are_hidden() {
        let last = LastLine::default();
        let bounds = Bounds { line_chars: 20, ..Bounds::default() };
        let written = b"the key is abcdefghijklmnop\n";
        let server = ServerName::new("s").unwrap();
        drain(written.as_slice(), server, launch(&[("KEY", "abcdefghijklmnop")]), bounds, last.clone()).await;
        assert_eq!(last.get(), "the key is [secret]");
    }

    /// Only the first 80 bytes of a line are kept here. The white space then becomes shorter, so the end of these bytes
    /// would be shown.
    #[tokio::test]
    async fn the_beginning_of_a_secret_at_the_cut_is_not_shown() {
        let last = LastLine::default();
        let bounds = Bounds { line_chars: 20, ..Bounds::default() };
        let written = format!("key:{}abcdefghijklmnop\n", " ".repeat(70));
        let server = ServerName::new("s").unwrap();
        drain(written.as_bytes(), server, launch(&[("KEY", "abcdefghijklmnop")]), bounds, last.clone()).await;
        assert_eq!(last.get(), "key:");
    }

    /// `drain` reads all of standard error, however long it is, and keeps a single short line.
    #[tokio::test]
    async fn standard_error_is_drained_and_bounded() {
        let last = LastLine::default();
        let mut written = vec![b'a'; 3 << 20];
        written.extend("\nline".repeat(5_000).bytes());
        written.extend([b'\n'; 100]);
        written.extend(vec![0xFF; 1 << 20]);
        let server = ServerName::new("s").unwrap();
        let bounds = Bounds { line_chars: 10, ..Bounds::default() };
        drain(written.as_slice(), server, launch(&[]), bounds, last.clone()).await;
        assert_eq!(last.get(), format!("{}…", "\u{fffd}".repeat(10)));
    }
}
