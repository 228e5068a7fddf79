//! Stands between a process and the machine: loaded with `LD_PRELOAD`, it takes the calls of the C library by which a
//! daemon writes files and tells the time. For tests only, on Linux with glibc.
//!
//! It does two things, each where the environment asks for it:
//!
//! - `POLITY_LAYER_JOURNAL` names a file that gets a record of every change below `POLITY_LAYER_ROOT`, in order, and of
//!   all that was said to others meanwhile ([`journal`]). What a power cut leaves can be made from it.
//! - `POLITY_LAYER_CONTROL` names a file of numbers that says which calls fail and by how much the clocks are wrong
//!   ([`control`]). It is shared memory: what a test writes there counts at the next call.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod control;
mod hooks;
mod journal;
mod real;
