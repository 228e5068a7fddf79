//! A file that is added to the page or taken away from it has the crate built anew.

fn main() {
    println!("cargo:rerun-if-changed=web");
}
