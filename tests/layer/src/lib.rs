//! A library that tests load into a process with `LD_PRELOAD`. It intercepts the calls of the C library with which a
//! daemon writes files and reads the clock. For tests only, on Linux with glibc.
//!
//! The library does two things. An environment variable turns each of them on:
//!
//! - `POLITY_LAYER_JOURNAL` names a file. The library records in it, in order, every change below `POLITY_LAYER_ROOT`
//!   and all data that the process sends out ([`journal`]). From this file, a test can rebuild the files that a
//!   power cut would leave on the disk.
//! - `POLITY_LAYER_CONTROL` names a file of numbers that specify which calls fail and by how much the clocks are
//!   wrong ([`control`]). The library maps the file into memory, so a number that a test writes takes effect at the
//!   next call.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod control;
mod hooks;
mod journal;
mod real;
