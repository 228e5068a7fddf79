//! Sets up the sandbox of a command in the tests of this crate, as the binary `polity` does outside of tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    polity_sandbox::enter(std::env::args_os().skip(1))
}
