//! Sets up the sandbox of a command in the tests of this crate. Outside of tests, the binary `polity` does this.

use std::process::ExitCode;

fn main() -> ExitCode {
    polity_sandbox::enter(std::env::args_os().skip(1))
}
