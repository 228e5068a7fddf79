//! Makes cargo rebuild the crate when a file of the live view is added or removed.

fn main() {
    println!("cargo:rerun-if-changed=web");
}
