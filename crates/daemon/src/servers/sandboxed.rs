//! Starts the processes of MCP servers. The configuration decides whether a process runs in a sandbox like the commands
//! of agents.
//!
//! A sandboxed process has no open files except its standard streams. So its messages go through three named pipes in
//! its own temporary directory. The shell in the sandbox first reads one line from the first pipe. This line contains
//! the command line and the environment of the server. Every process of the user can read the script of the shell, but
//! not the line from the pipe, so arguments and keys stay secret.

use futures::future::{BoxFuture, FutureExt};
use polity_hands::command::SettingsSource;
use polity_sandbox::{
    Access, Ended, Enter, Error, Excerpt, Guarded, How, Level, Limits, Machine, Plan, Settings,
};
use polity_servers::{Launcher, Plain, Process, Sandbox, Started, Tree};
use polity_society::tool_group::ServerName;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::io;
use std::path::{Path, PathBuf};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::{OpenOptions, Receiver, Sender};
use tokio::sync::{OnceCell, watch};
use tokio_util::sync::CancellationToken;

/// The script that the shell in the sandbox runs: it connects the standard streams to the pipes, reads one line, and
/// executes this line.
const BECOME: &str =
    r#"exec <"$TMPDIR/in" >"$TMPDIR/out" 2>"$TMPDIR/err" && IFS= read -r become && eval "$become""#;

/// The time limit of a server's sandbox: a hundred years. A sandbox must have a limit, but a server must run as long as
/// the daemon.
const TIMEOUT_MS: u64 = 100 * 365 * 24 * 60 * 60 * 1_000;

/// Everything that is needed to start the processes of servers.
pub(crate) struct Launchers {
    /// The program that sets up the sandbox; `None` if its path is unknown.
    pub(crate) enter: Option<Enter>,
    /// The directory that contains the home directories of servers.
    pub(crate) directory: PathBuf,
    /// Directories of polity that no server in a sandbox may see.
    pub(crate) hidden: Vec<PathBuf>,
    /// The source of the sandbox settings that are in force, such as network access.
    pub(crate) settings: SettingsSource,
    pub(crate) machine: OnceCell<Machine>,
}

impl Launcher for Launchers {
    fn launch<'a>(
        &'a self,
        server: &'a ServerName,
        process: &'a Process,
    ) -> BoxFuture<'a, io::Result<Started>> {
        match process.sandbox {
            Sandbox::Off => Plain.launch(server, process),
            Sandbox::On => self.start(server, process).boxed(),
        }
    }
}

impl Launchers {
    async fn start(&self, server: &ServerName, process: &Process) -> io::Result<Started> {
        let enter = self.enter.as_ref().ok_or_else(|| io::Error::other("the path of polity is unknown"))?;
        let machine = self.machine.get_or_init(|| polity_sandbox::probe(enter)).await;
        if machine.level == Level::None {
            return Err(io::Error::other("this machine has no sandbox (polity doctor tells how to get one)"));
        }
        let line = line(process)?;
        let own = self.directory.join(server.as_str());
        let (home, temporary) = (own.join("home"), own.join("tmp"));
        // Remove the files of an earlier process of this server, so that they do not take the place of the pipes.
        if let Err(error) = tokio::fs::remove_dir_all(&temporary).await
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error);
        }
        for directory in [&home, &temporary] {
            tokio::fs::create_dir_all(directory).await?;
        }
        let mut pipes = Pipes::make(&temporary)?;
        let plan = plan(process, (self.settings)(), &own, self.hidden.clone());
        let cancel = CancellationToken::new();
        let running = polity_sandbox::spawn(plan, machine, enter, &cancel, |_| {}).await;
        let running = running.map_err(|error| io::Error::other(error.to_string()))?;
        let (tell, ended) = watch::channel(None);
        let writers = pipes.writers;
        tokio::spawn(async move {
            let how = in_words(running.ended().await);
            // Close the daemon's own writing ends of the output pipes, so that readers see the end of the server's
            // output.
            drop(writers);
            tell.send_replace(Some(how));
        });
        let tree = Box::new(Boxed { ended, cancel });
        pipes.stdin.write_all(line.as_bytes()).await?;
        let (stdin, stdout, stderr) = (Box::new(pipes.stdin), Box::new(pipes.stdout), Box::new(pipes.stderr));
        Ok(Started { stdin, stdout, stderr, tree })
    }
}

/// Plans the sandbox of a server. If the configuration names no working directory, the server works in its home
/// directory.
fn plan(process: &Process, settings: Settings, own: &Path, hidden: Vec<PathBuf>) -> Plan {
    let Settings { network, read, limits, .. } = settings;
    let home = own.join("home");
    Plan {
        command: BECOME.to_owned(),
        workspace: process.cwd.clone().unwrap_or_else(|| home.clone()),
        access: Access::ReadWrite,
        guarded: Guarded::default(),
        readable: read,
        repository: Vec::new(),
        hidden,
        home,
        temporary: own.join("tmp"),
        network,
        environment: std::env::vars().collect(),
        limits: Limits { timeout_ms: TIMEOUT_MS, ..limits },
        together: None,
        output: own.join("output"),
        excerpt: Excerpt::default(),
    }
}

/// Returns the line with which the shell replaces itself by the server (see [`BECOME`]).
fn line(process: &Process) -> io::Result<String> {
    let mut line = String::new();
    for (name, value) in &process.env {
        line.push_str(&format!("export {name}={}; ", quoted(value.expose())));
    }
    line.push_str("exec ");
    line.push_str(&quoted(&process.command));
    for argument in &process.args {
        line.push(' ');
        line.push_str(&quoted(argument));
    }
    if line.contains(['\n', '\0']) {
        let what = "a server in a sandbox cannot get values with line breaks or zero bytes";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    line.push('\n');
    Ok(line)
}

/// Quotes a text for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The daemon's ends of the pipes of a server.
struct Pipes {
    stdin: Sender,
    stdout: Receiver,
    stderr: Receiver,
    /// Writing ends of the two output pipes, which the daemon keeps until the server has ended. Without them, the
    /// daemon would read end-of-file before the server opens these pipes.
    writers: [Sender; 2],
}

impl Pipes {
    fn make(directory: &Path) -> io::Result<Self> {
        let pipe = |name: &str| {
            let path = directory.join(name);
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
            Ok::<_, io::Error>(path)
        };
        let (input, output, error) = (pipe("in")?, pipe("out")?, pipe("err")?);
        let (stdout, stderr) =
            (OpenOptions::new().open_receiver(&output)?, OpenOptions::new().open_receiver(&error)?);
        let writers = [OpenOptions::new().open_sender(&output)?, OpenOptions::new().open_sender(&error)?];
        // The daemon only writes into this pipe. But opening a pipe only for writing fails if no process has opened it
        // for reading yet. So open it for both.
        let stdin = OpenOptions::new().read_write(true).open_sender(&input)?;
        Ok(Self { stdin, stdout, stderr, writers })
    }
}

/// The processes of one server in a sandbox.
struct Boxed {
    ended: watch::Receiver<Option<String>>,
    cancel: CancellationToken,
}

impl Tree for Boxed {
    fn ended(&mut self) -> BoxFuture<'_, String> {
        async {
            let ended = self.ended.wait_for(Option::is_some).await;
            ended.ok().and_then(|how| how.clone()).unwrap_or_else(|| "ended".to_owned())
        }
        .boxed()
    }

    fn kill(&mut self) {
        self.cancel.cancel();
    }
}

impl Drop for Boxed {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

fn in_words(ended: Result<Ended, Error>) -> String {
    let why = match ended.map(|ended| ended.how) {
        Ok(How::Exited(code)) => return format!("exited with code {code}"),
        Err(error) => return format!("was not started: {error}"),
        Ok(How::Cancelled) => return "was ended".to_owned(),
        Ok(How::TimedOut) => "it ran too long",
        Ok(How::OutOfMemory | How::TogetherOutOfMemory) => "it used too much memory",
        Ok(How::TooManyProcesses) => "it had too many processes",
        Ok(How::TooMuchOutput) => "it wrote too much",
        Ok(How::TooMuchDisk) => "it used too much disk",
        Ok(How::Lost) => "its supervisor died",
    };
    format!("was ended by the sandbox: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_servers::Secret;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::process::Command;

    fn process(command: &str, args: Vec<String>, value: &str) -> Process {
        let env = BTreeMap::from([("KEY".to_owned(), Secret::new(value))]);
        Process { command: command.to_owned(), args, env, cwd: None, sandbox: Sandbox::On }
    }

    #[test]
    fn a_line_break_is_refused() {
        assert!(line(&process("a", Vec::new(), "two\nlines")).is_err());
        assert_eq!(
            line(&process("a", vec!["b c".to_owned()], "k")).unwrap(),
            "export KEY='k'; exec 'a' 'b c'\n"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn the_shell_reads_every_text_as_it_was(argument in "[ -~é文]{0,20}", value in "[ -~é文]{0,20}") {
            let script = r#"printf '%s|%s' "$1" "$KEY""#;
            let args = vec!["-c".to_owned(), script.to_owned(), "sh".to_owned(), argument.clone()];
            let line = line(&process("/bin/sh", args, &value)).unwrap();
            let output = Command::new("/bin/sh").arg("-c").arg(line).output().unwrap();
            prop_assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{argument}|{value}"));
        }
    }
}
