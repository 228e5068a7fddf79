//! A layer between a process and the machine. Loaded with `LD_PRELOAD`, it intercepts the calls of the C library with
//! which a daemon writes files and reads the clock. For tests only, on Linux with glibc.
//!
//! It does two things, each only if an environment variable asks for it:
//!
//! - `POLITY_LAYER_JOURNAL` names a file. There the layer records, in order, every change below `POLITY_LAYER_ROOT` and
//!   all data that the process sends out ([`journal`]). A test can rebuild from it what a power cut would leave.
//! - `POLITY_LAYER_CONTROL` names a file of numbers that specify which calls fail and by how much the clocks are wrong
//!   ([`control`]). The layer maps it into memory, so a number that a test writes takes effect at the next call.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod control;
mod hooks;
mod journal;
mod real;
