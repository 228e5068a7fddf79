//! Passes a failure point and then says so. The test `release` builds it without debug assertions.

#![expect(clippy::print_stdout, reason = "the test reads it")]

fn main() {
    polity_points::point!("passing::passed");
    println!("passed");
}
