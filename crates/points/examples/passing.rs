//! Passes a failure point and then prints a line. The test `release` builds this program with and without debug
//! assertions.

#![expect(clippy::print_stdout, reason = "the test reads it")]

fn main() {
    polity_points::point!("passing::passed");
    println!("passed");
}
