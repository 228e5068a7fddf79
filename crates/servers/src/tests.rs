//! Tests with simulated servers: over pipes in this process, as real processes, and over HTTP.

mod calls;
mod changes;
mod faults;
mod http;
mod process;
mod world;
