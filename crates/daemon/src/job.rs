//! Whether this process may use its terminal. A command with `&` runs as a job in the background of the shell. The
//! system stops a background job that reads from the terminal or changes the terminal's mode.

/// Returns whether this process is in the foreground of the terminal that is its standard output. Returns true if this
/// terminal does not control the process, because such a terminal never stops the process.
pub(crate) fn is_in_foreground() -> bool {
    match rustix::termios::tcgetpgrp(rustix::stdio::stdout()) {
        Ok(group) => group == rustix::process::getpgrp(),
        Err(_) => true,
    }
}
