//! The program that the tests of this crate use as the binary that contains `enter`.

use std::process::ExitCode;

fn main() -> ExitCode {
    polity_sandbox::enter(std::env::args_os().skip(1))
}
