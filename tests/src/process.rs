//! Runs the binary as a user would, in a temporary home directory.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::Value;
use tempfile::TempDir;

/// Maximum time for a process to end, or to write an expected line, before the test fails.
const PATIENCE: Duration = Duration::from_secs(120);
/// Polling interval while waiting for a process to end.
const GLANCE: Duration = Duration::from_millis(5);
/// Maximum wait until the output of an ended process closes. It can stay open, because other programs that the process
/// has started may still hold it.
const LAST_WORDS: Duration = Duration::from_secs(30);
/// When a process on a terminal has ended, [`Running::on_terminal`] writes these bytes to the terminal. No program
/// writes these bytes.
const MARK: &[u8] = b"\0the process has ended\0";

/// A home for one daemon: a temporary directory with `config/` and `data/`. All commands of this home run in this
/// directory.
///
/// The commands see only these environment variables: `PATH`, the variables that [`Polity::set_env`] adds, and `HOME`,
/// `XDG_*` and `TMPDIR`, which point into the directory.
pub struct Polity {
    home: TempDir,
    environment: Vec<(String, String)>,
}

/// The exit code and the output of an ended process.
#[derive(Clone, Debug)]
pub struct Output {
    /// The exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    /// Everything that the process wrote to standard output.
    pub stdout: String,
    /// Everything that the process wrote to standard error.
    pub stderr: String,
}

impl Output {
    /// Returns the output if the process ended with the exit code `code`.
    ///
    /// # Panics
    /// If the process ended in another way. The message contains everything that the process wrote.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        let Self { code: ended, stdout, stderr } = &self;
        assert!(*ended == Some(code), "ended with {ended:?}, not {code}\n{stdout}\n--- stderr ---\n{stderr}");
        self
    }
}

impl Polity {
    /// Creates a home with this `config/llmservices.json` and this `config/app.json`.
    pub fn new(llmservices: &Value, app: &Value) -> Self {
        let home = TempDir::with_prefix("polity-").expect("a temporary directory");
        for directory in ["config", "data", "tmp"] {
            std::fs::create_dir(home.path().join(directory)).expect("a directory");
        }
        let polity = Self { home, environment: Vec::new() };
        polity.write_config("llmservices.json", &llmservices.to_string());
        polity.write_config("app.json", &app.to_string());
        polity
    }

    /// Returns the directory in which commands run.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Returns the path of `config/` in the home.
    pub fn config_dir(&self) -> PathBuf {
        self.home().join("config")
    }

    /// Returns the path of `data/` in the home.
    pub fn data_dir(&self) -> PathBuf {
        self.home().join("data")
    }

    /// Writes a file below `config/`; an existing file is overwritten in place.
    pub fn write_config(&self, name: &str, text: &str) {
        std::fs::write(self.config_dir().join(name), text).expect("a configuration file");
    }

    /// Adds a variable to the environment of all later commands.
    pub fn set_env(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Runs a command to its end.
    ///
    /// # Panics
    /// If the command has not ended after two minutes. The message contains its output.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.spawn(arguments).wait()
    }

    /// Starts a command.
    pub fn spawn(&self, arguments: &[&str]) -> Running {
        Running::start(self.command(arguments))
    }

    /// Starts a command that reads `input` from its standard input.
    pub fn spawn_reading(&self, arguments: &[&str], input: &str) -> Running {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(input.as_bytes()).and_then(|()| file.rewind()).expect("a file that can be written");
        Running::start_between(self.command(arguments), file.into(), Stdio::piped())
    }

    /// Starts a command whose standard output goes to `stdout`, so that [`Output`] does not contain it.
    pub fn spawn_into(&self, arguments: &[&str], stdout: impl Into<Stdio>) -> Running {
        Running::start_into(self.command(arguments), stdout.into())
    }

    /// Starts a command on a terminal of its own. Its standard output is what the terminal shows, with `\r\n` at the
    /// end of each line.
    pub fn spawn_on_terminal(&self, arguments: &[&str]) -> Running {
        self.spawn_at(terminal(), Stdio::null(), arguments)
    }

    /// Starts a command on a terminal of its own that has this number of columns.
    pub fn spawn_on_terminal_of(&self, columns: u16, arguments: &[&str]) -> Running {
        self.spawn_at(terminal_of(50, columns), Stdio::null(), arguments)
    }

    /// Starts a command on a terminal of its own with a keyboard. If the test writes text to the returned file, the
    /// command reads this text from the terminal, as if a user had typed it.
    pub fn spawn_with_keyboard(&self, arguments: &[&str]) -> (Running, std::fs::File) {
        let (screen, terminal) = terminal();
        let keyboard = screen.try_clone().expect("a second handle");
        let stdin = terminal.try_clone().expect("a second handle");
        (self.spawn_at((screen, terminal), stdin.into(), arguments), keyboard)
    }

    /// Does the same as [`Polity::spawn_with_keyboard`] on a terminal of this width.
    pub fn spawn_with_keyboard_at(&self, columns: u16, arguments: &[&str]) -> (Running, std::fs::File) {
        let (screen, terminal) = terminal_of(24, columns);
        let keyboard = screen.try_clone().expect("a second handle");
        let stdin = terminal.try_clone().expect("a second handle");
        (self.spawn_at((screen, terminal), stdin.into(), arguments), keyboard)
    }

    /// Does the same as [`Polity::spawn_with_keyboard_at`], but the command has a session of its own. As in a shell,
    /// the terminal controls this session. So Ctrl-C becomes a signal, except while the command reads it as a key.
    pub fn spawn_in_session_at(&self, columns: u16, arguments: &[&str]) -> (Running, std::fs::File) {
        let (screen, terminal) = terminal_of(24, columns);
        let keyboard = screen.try_clone().expect("a second handle");
        let stdin = terminal.try_clone().expect("a second handle");
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(binary()).args(arguments);
        (self.start_at((screen, terminal), stdin.into(), command), keyboard)
    }

    /// Starts a bash script in a session of its own. The terminal of this session is the standard input and output of
    /// the script. `$POLITY` is the path of the binary.
    pub fn script_on_terminal(&self, script: &str) -> Running {
        let (screen, terminal) = terminal();
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait", "bash", "-c", script]);
        let mut command = self.at_home(command);
        command.env("POLITY", binary()).env("TERM", "xterm-256color");
        command.stdin(terminal.try_clone().expect("a second handle"));
        command.stdout(terminal.try_clone().expect("a second handle"));
        command.stderr(terminal.try_clone().expect("a second handle"));
        let child = command.spawn().expect("a process");
        drop(command);
        Running::on_terminal(child, screen, terminal)
    }

    fn spawn_at(
        &self,
        terminal: (std::fs::File, std::fs::File),
        stdin: Stdio,
        arguments: &[&str],
    ) -> Running {
        let mut command = Command::new(binary());
        command.args(arguments);
        self.start_at(terminal, stdin, command)
    }

    fn start_at(
        &self,
        (screen, terminal): (std::fs::File, std::fs::File),
        stdin: Stdio,
        command: Command,
    ) -> Running {
        let mut command = self.at_home(command);
        if self.environment.iter().all(|(name, _)| name != "TERM") {
            command.env("TERM", "xterm-256color");
        }
        command.stdin(stdin);
        command.stdout(terminal.try_clone().expect("a second handle"));
        command.stderr(terminal.try_clone().expect("a second handle"));
        let child = command.spawn().expect("a process");
        // Drop `command`, because it holds copies of the program's side of the terminal. As long as these copies exist,
        // reading would not end with the process.
        drop(command);
        Running::on_terminal(child, screen, terminal)
    }

    /// Starts a command with `variables` added to the environment of the home.
    ///
    /// `POLITY_FAILURE_POINT=<name>@<hit>` makes the process die at a failure point.
    /// `POLITY_FAILURE_POINT_LOG=<file>` makes it list the points that it passes.
    pub fn spawn_with_points(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Running {
        let mut command = Command::new(binary());
        command.args(arguments);
        let mut command = self.at_home(command);
        command.envs(variables.iter().copied());
        Running::start(command)
    }

    /// Starts a bash script in which `$POLITY` is the path of the binary.
    pub fn script(&self, script: &str) -> Running {
        let mut command = Command::new("bash");
        command.args(["-c", script]);
        let mut command = self.at_home(command);
        command.env("POLITY", binary());
        Running::start(command)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments);
        self.at_home(command)
    }

    fn at_home(&self, mut command: Command) -> Command {
        let home = self.home();
        command.current_dir(home).env_clear().env("HOME", home).env("TMPDIR", home.join("tmp"));
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        for (name, directory) in [
            ("XDG_CONFIG_HOME", ".config"),
            ("XDG_DATA_HOME", ".local/share"),
            ("XDG_STATE_HOME", ".local/state"),
            ("XDG_CACHE_HOME", ".cache"),
            ("XDG_RUNTIME_DIR", "tmp"),
        ] {
            command.env(name, home.join(directory));
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// Opens a terminal. Returns the side from which the test reads what the terminal shows, and the side of the program.
fn terminal() -> (File, File) {
    let flags = rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY;
    let screen = rustix::pty::openpt(flags).expect("a terminal");
    rustix::pty::grantpt(&screen).and_then(|()| rustix::pty::unlockpt(&screen)).expect("a usable terminal");
    let name = rustix::pty::ptsname(&screen, Vec::new()).expect("the name of the terminal");
    let name = OsStr::from_bytes(name.to_bytes());
    let program = File::options().read(true).write(true).open(name).expect("the other side of the terminal");
    (File::from(screen), program)
}

/// Does the same as [`terminal`], and gives the terminal this size.
fn terminal_of(rows: u16, columns: u16) -> (File, File) {
    let (screen, program) = terminal();
    let size = rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&program, size).expect("a terminal of this size");
    (screen, program)
}

/// A started process. Dropping this value kills the process.
pub struct Running {
    child: Child,
    stdout: Arc<Written>,
    stderr: Arc<Written>,
}

impl Running {
    fn start(command: Command) -> Self {
        Self::start_into(command, Stdio::piped())
    }

    fn start_into(command: Command, stdout: Stdio) -> Self {
        Self::start_between(command, Stdio::null(), stdout)
    }

    fn start_between(mut command: Command, stdin: Stdio, stdout: Stdio) -> Self {
        command.stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let stdout = child.stdout.take().map_or_else(Written::nothing, Written::collect);
        let stderr = Written::collect(child.stderr.take().expect("a piped standard error"));
        Self { child, stdout, stderr }
    }

    /// Collects what a terminal shows. Keeps the program's side of the terminal open until all output of the process
    /// has arrived. Otherwise, the terminal would close when its process ends, and Linux sometimes drops the last
    /// output then.
    fn on_terminal(child: Child, screen: File, mut terminal: File) -> Self {
        let stdout = Written::collect(screen);
        let collected = Arc::clone(&stdout);
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        std::thread::spawn(move || {
            // Ignore an error: the test itself has already waited for the end of the process.
            let _ = waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            // The terminal keeps the order of what is written. So this mark arrives after everything else.
            if terminal.write_all(MARK).is_ok() {
                collected.remove(MARK);
            }
        });
        Self { child, stdout, stderr: Written::nothing() }
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns how many complete lines the process has written to its standard output.
    pub fn stdout_line_count(&self) -> usize {
        self.stdout.lock().bytes.iter().filter(|&&byte| byte == b'\n').count()
    }

    /// Returns whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child process").is_some()
    }

    /// Kills the process with SIGKILL and waits until it is gone.
    pub fn kill9(mut self) -> Output {
        self.child.kill().expect("a process that can be killed");
        let status = self.child.wait().expect("a process that ends");
        self.output(status)
    }

    /// Suspends the process with SIGSTOP.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Resumes a suspended process with SIGCONT.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends SIGINT.
    pub fn interrupt(&self) {
        self.signal("INT");
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("sh").arg("-c").arg(format!("kill -{name} {}", self.id())).status();
        assert!(sent.expect("a shell").success(), "SIG{name} cannot be sent: the process has ended already");
    }

    /// Waits for the end of the process.
    ///
    /// # Panics
    /// If the process has not ended after two minutes. The message contains its output.
    #[track_caller]
    pub fn wait(self) -> Output {
        self.wait_within(PATIENCE)
    }

    /// Waits at most `patience` for the end of the process.
    ///
    /// # Panics
    /// If the process has not ended by then. The message contains its output.
    #[track_caller]
    pub fn wait_within(mut self, patience: Duration) -> Output {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child process") {
                return self.output(status);
            }
            if Instant::now() >= deadline {
                let Output { stdout, stderr, .. } = self.kill9();
                panic!(
                    "the process hangs: it has not ended after {patience:?}\n{stdout}\n--- stderr ---\n{stderr}"
                );
            }
            std::thread::sleep(GLANCE);
        }
    }

    /// Waits for a complete line with `text` on the standard output, and returns the line without its line break.
    ///
    /// # Panics
    /// If the process ends before it writes such a line, or does not write it within two minutes. The message contains
    /// the output of the process.
    #[track_caller]
    pub fn stdout_line(&self, text: &str) -> String {
        self.line(&self.stdout, text)
    }

    /// Does the same as [`Running::stdout_line`], but for the standard error.
    #[track_caller]
    pub fn stderr_line(&self, text: &str) -> String {
        self.line(&self.stderr, text)
    }

    /// Waits until the standard output contains `text`, perhaps in a line that is not complete.
    ///
    /// # Panics
    /// If the process ends, or two minutes pass, before that. The message contains the output of the process.
    #[track_caller]
    pub fn stdout_wait(&self, text: &str) {
        self.stdout_wait_times(text, 1);
    }

    /// Does the same as [`Running::stdout_wait`], but waits until `text` has occurred `times` times.
    #[track_caller]
    pub fn stdout_wait_times(&self, text: &str, times: usize) {
        Self::wait_times(&self.stdout, text, times);
    }

    /// Does the same as [`Running::stdout_wait_times`], but for the standard error.
    #[track_caller]
    pub fn stderr_wait_times(&self, text: &str, times: usize) {
        Self::wait_times(&self.stderr, text, times);
    }

    #[track_caller]
    fn wait_times(written: &Written, text: &str, times: usize) {
        let contains = |so_far: &SoFar| String::from_utf8_lossy(&so_far.bytes).matches(text).count() >= times;
        written.wait(PATIENCE, |so_far| so_far.closed || contains(so_far));
        assert!(contains(&written.lock()), "the process did not write {text:?}\n{}", written.text());
    }

    /// Waits until `holds` accepts everything that the process has written to its standard output. `what` describes
    /// what the caller waits for.
    ///
    /// # Panics
    /// If the process ends, or two minutes pass, before that. The message contains the output of the process.
    #[track_caller]
    pub fn stdout_until(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let accepts = |written: &SoFar| holds(&String::from_utf8_lossy(&written.bytes));
        self.stdout.wait(PATIENCE, |so_far| so_far.closed || accepts(so_far));
        assert!(accepts(&self.stdout.lock()), "this has not happened: {what}\n{}", self.stdout.text());
    }

    #[track_caller]
    fn line(&self, written: &Written, text: &str) -> String {
        written.wait(PATIENCE, |so_far| so_far.closed || so_far.line(text).is_some());
        let Some(line) = written.lock().line(text) else {
            let (stdout, stderr) = (self.stdout.text(), self.stderr.text());
            panic!("the process wrote no line with {text:?}\n{stdout}\n--- stderr ---\n{stderr}");
        };
        line
    }

    fn output(&self, status: ExitStatus) -> Output {
        self.stdout.wait(LAST_WORDS, |so_far| so_far.closed);
        self.stderr.wait(LAST_WORDS, |so_far| so_far.closed);
        Output { code: status.code(), stdout: self.stdout.text(), stderr: self.stderr.text() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // An error means that the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The bytes that a process has written to a pipe.
#[derive(Default)]
struct Written {
    so_far: Mutex<SoFar>,
    changed: Condvar,
}

#[derive(Default)]
struct SoFar {
    bytes: Vec<u8>,
    closed: bool,
}

impl SoFar {
    fn line(&self, text: &str) -> Option<String> {
        let written = String::from_utf8_lossy(&self.bytes);
        let mut lines = written.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        lines.find(|line| line.contains(text)).map(str::to_owned)
    }
}

impl Written {
    fn nothing() -> Arc<Self> {
        let nothing = SoFar { bytes: Vec::new(), closed: true };
        Arc::new(Self { so_far: Mutex::new(nothing), changed: Condvar::new() })
    }

    fn collect(mut pipe: impl Read + Send + 'static) -> Arc<Self> {
        let written = Arc::new(Self::default());
        let collected = Arc::clone(&written);
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            loop {
                let read = pipe.read(&mut buffer).unwrap_or(0);
                let mut so_far = collected.lock();
                so_far.bytes.extend_from_slice(&buffer[..read]);
                so_far.closed = read == 0;
                collected.changed.notify_all();
                if so_far.closed {
                    return;
                }
            }
        });
        written
    }

    fn lock(&self) -> MutexGuard<'_, SoFar> {
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, within: Duration, condition: impl Fn(&SoFar) -> bool) {
        // Ignore a timeout: the caller then looks at the bytes that have arrived.
        drop(self.changed.wait_timeout_while(self.lock(), within, |so_far| !condition(so_far)));
    }

    /// Waits until these bytes have been written, and removes them.
    fn remove(&self, these: &[u8]) {
        let find = |so_far: &SoFar| so_far.bytes.windows(these.len()).rposition(|bytes| bytes == these);
        self.wait(LAST_WORDS, |so_far| so_far.closed || find(so_far).is_some());
        let mut so_far = self.lock();
        if let Some(at) = find(&so_far) {
            so_far.bytes.drain(at..at + these.len());
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.lock().bytes).into_owned()
    }
}

/// Returns the path of the binary. The first call builds the binary. The build uses the profile and the target
/// directory of the tests.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| built().join(format!("polity{}", std::env::consts::EXE_SUFFIX)))
}

/// Returns the path of the library of `tests/layer`, which is built together with the binary.
pub(crate) fn layer() -> &'static Path {
    static LAYER: OnceLock<PathBuf> = OnceLock::new();
    LAYER.get_or_init(|| built().join("libpolity_layer.so"))
}

/// Returns `<target>/<profile>` for a test at `<target>/<profile>/deps/<test>`.
fn profile_dir(test: &Path) -> &Path {
    test.ancestors()
        .skip(1)
        .find(|ancestor| ancestor.file_name().is_some_and(|name| name == "deps"))
        .and_then(Path::parent)
        .expect("a test that cargo has built")
}

/// Returns whether this is a variable with which cargo describes the package of the running test.
fn is_of_package(variable: &OsStr) -> bool {
    let described =
        ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE"];
    variable.to_str().is_some_and(|name| described.iter().any(|prefix| name.starts_with(prefix)))
}

/// Builds the programs of the workspace, and returns the directory that contains them.
///
/// This function builds the whole workspace with its tests, as `cargo test --workspace` does. If it built fewer
/// packages, cargo would choose other features for the dependencies, and would have to build the dependencies again.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let test = std::env::current_exe().expect("the path of this test");
        let profile_dir = profile_dir(&test);
        let directory =
            profile_dir.file_name().and_then(|name| name.to_str()).expect("a profile's directory");
        let target = profile_dir.parent().expect("a target directory");
        // The profile `dev` is the only one whose directory has another name: `debug`.
        let profile = if directory == "debug" { "dev" } else { directory };
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
        let mut command = Command::new(cargo);
        // Remove the variables in which cargo describes the package of the running test. The build scripts of some
        // dependencies depend on these variables. If the variables were set, cargo would build these dependencies
        // again, and once more in the next build outside of a test.
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_package(name)) {
            command.env_remove(name);
        }
        let built = command
            .args(["build", "--quiet", "--workspace", "--lib", "--bins", "--tests", "--profile", profile])
            .arg("--target-dir")
            .arg(target)
            .arg("--manifest-path")
            .arg(manifest)
            .output()
            .expect("cargo");
        assert!(
            built.status.success(),
            "the workspace does not build:\n{}",
            String::from_utf8_lossy(&built.stderr)
        );
        profile_dir.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use serde_json::json;

    use super::*;

    fn polity() -> Polity {
        Polity::new(&json!({"services": []}), &json!({"language": "zh"}))
    }

    fn shell(polity: &Polity, script: &str) -> Running {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Running::start(polity.at_home(command))
    }

    fn message(failed: Box<dyn std::any::Any + Send>) -> String {
        *failed.downcast::<String>().expect("a message")
    }

    #[test]
    fn a_home_has_its_configuration_and_room_for_data() {
        let polity = polity();
        let ended = shell(&polity, "cat config/llmservices.json config/app.json; ls -A data").wait();
        assert_eq!(ended.expect_code(0).stdout, r#"{"services":[]}{"language":"zh"}"#);
    }

    #[test]
    fn the_environment_is_clean_and_at_home() {
        let mut polity = polity();
        polity.set_env("KEY", "value");
        let stdout = shell(&polity, "env").wait().expect_code(0).stdout;
        let home = polity.home().to_str().expect("text");
        // The shell itself sets PWD, SHLVL, OLDPWD and `_`, so leave these variables out.
        let ours = |line: &&str| {
            !["PATH=", "PWD=", "SHLVL=", "OLDPWD=", "_="].iter().any(|own| line.starts_with(own))
        };
        let mut lines: Vec<String> =
            stdout.lines().filter(ours).map(|line| line.replace(home, "~")).collect();
        lines.sort();
        assert_eq!(
            lines,
            [
                "HOME=~",
                "KEY=value",
                "TMPDIR=~/tmp",
                "XDG_CACHE_HOME=~/.cache",
                "XDG_CONFIG_HOME=~/.config",
                "XDG_DATA_HOME=~/.local/share",
                "XDG_RUNTIME_DIR=~/tmp",
                "XDG_STATE_HOME=~/.local/state",
            ]
        );
    }

    #[test]
    fn output_and_code_are_kept_apart() {
        let ended = shell(&polity(), "echo out; echo err >&2; exit 3").wait().expect_code(3);
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("out\n", "err\n"));
    }

    #[test]
    fn output_that_goes_elsewhere_is_not_kept() {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2"]);
        let ended = Running::start_into(polity().at_home(command), writer.into()).wait().expect_code(0);
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", "err\n"));
        assert_eq!(std::io::read_to_string(reader).expect("text"), "out\n");
    }

    #[test]
    fn what_a_process_writes_last_is_all_that_a_terminal_shows() {
        let polity = polity();
        for _ in 0..20 {
            let mut command = Command::new("sh");
            command.args(["-c", "printf first; printf last; exit 3"]);
            let ended = polity.start_at(terminal_of(24, 80), Stdio::null(), command).wait().expect_code(3);
            assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("firstlast", ""));
        }
    }

    #[test]
    fn much_output_does_not_block_the_process() {
        let ended = shell(&polity(), "head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2").wait();
        assert_eq!((ended.stdout.len(), ended.stderr.len()), (1_000_000, 1_000_000));
    }

    #[test]
    fn another_code_than_expected_shows_what_was_written() {
        let ended = shell(&polity(), "echo why >&2; exit 1").wait();
        let failed = catch_unwind(|| ended.expect_code(0)).expect_err("another code");
        assert!(message(failed).contains("why"));
    }

    #[test]
    fn a_hanging_process_is_killed_and_shown() {
        let running = shell(&polity(), "echo stuck here >&2; exec sleep 600");
        running.stderr_line("stuck");
        let failed =
            catch_unwind(std::panic::AssertUnwindSafe(|| running.wait_within(Duration::from_millis(10))));
        let message = message(failed.expect_err("it hangs"));
        assert!(message.contains("hangs") && message.contains("stuck here"), "{message}");
    }

    #[test]
    fn a_killed_process_has_no_code_and_cannot_object() {
        let running = shell(&polity(), "trap '' TERM INT; echo ready; exec sleep 600");
        assert_eq!(running.stdout_line("rea"), "ready");
        let ended = running.kill9();
        assert_eq!((ended.code, ended.stdout.as_str()), (None, "ready\n"));
    }

    /// Makes sure that child processes do not ignore interrupts. The children would ignore them if this test is a
    /// background job of a shell, because a shell makes its background jobs ignore interrupts. A script that ignores
    /// interrupts from its start cannot trap them. This function makes this process handle interrupts. So interrupts
    /// have their default effect in its children.
    fn handle_interrupts() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        let _entered = runtime.enter();
        // Tokio keeps the handler for the rest of the process.
        let _ = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()).expect("a handler");
    }

    #[test]
    fn signals_arrive() {
        handle_interrupts();
        let script = "trap 'exit 7' TERM; trap 'exit 8' INT; echo ready; while :; do sleep 0.01; done";
        let polity = polity();
        for (send, code) in [(Running::terminate as fn(&Running), 7), (Running::interrupt, 8)] {
            let running = shell(&polity, script);
            running.stdout_line("ready");
            send(&running);
            running.wait().expect_code(code);
        }
    }

    #[test]
    fn a_line_that_never_comes_is_missed_when_the_process_ends() {
        let running = shell(&polity(), "echo some; echo err >&2; printf half");
        let failed = catch_unwind(std::panic::AssertUnwindSafe(|| running.stdout_line("half")));
        let message = message(failed.expect_err("no such line"));
        assert!(message.contains("some") && message.contains("err"), "{message}");
    }

    #[test]
    fn the_profile_is_known_from_the_test() {
        let check = |test: &str, expect: &str| assert_eq!(profile_dir(Path::new(test)), Path::new(expect));
        check("/t/debug/deps/daemon-1f", "/t/debug");
        check("/t/release/deps/daemon-1f", "/t/release");
        check(
            "/deps/t/x86_64-unknown-linux-gnu/debug/deps/daemon-1f",
            "/deps/t/x86_64-unknown-linux-gnu/debug",
        );
    }
}
