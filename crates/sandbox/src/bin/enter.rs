//! The program that the tests of this crate start as the supervisor and inside the sandbox. It only calls `enter`.

use std::process::ExitCode;

fn main() -> ExitCode {
    polity_sandbox::enter(std::env::args_os().skip(1))
}
