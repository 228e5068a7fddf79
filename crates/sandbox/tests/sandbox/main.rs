//! Runs real commands at the levels that this machine reaches.

#![cfg(target_os = "linux")]

mod bench;

mod basics;

mod hostile;
