//! A program that passes a failure point and then prints a line. The test `release` builds it twice: with debug
//! assertions, and without.

#![expect(clippy::print_stdout, reason = "the test reads it")]

fn main() {
    polity_points::point!("passing::passed");
    println!("passed");
}
