//! polity
fn main() {}
