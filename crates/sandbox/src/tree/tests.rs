use proptest::prelude::*;

use super::{below, parent, private_of, threads_of};

#[test]
fn the_parent_is_read_whatever_the_name_contains() {
    assert_eq!(parent("42 (bash) S 7 42 42 0 -1"), Some(7));
    assert_eq!(parent("42 (a) R 1 (b c)) S 7 42"), Some(7));
    assert_eq!(parent("42 (bash"), None);
}

#[test]
fn memory_is_private_and_swapped_memory() {
    let text =
        "Name:\tRssAnon: 5\nVmRSS:\t  900 kB\nRssAnon:\t     10 kB\nRssFile:\t 20 kB\nVmSwap:\t   2 kB\n";
    assert_eq!(private_of(text), 12 * 1024);
    assert_eq!(private_of("RssAnon:\tmany kB\n"), 0);
}

#[test]
fn threads_are_read() {
    assert_eq!(threads_of("0.20 0.18 0.12 1/80 11206\n"), Some(80));
    assert_eq!(threads_of(""), None);
}

proptest! {
    /// `below` returns each descendant once and no other process, even if the table of parents has a circle.
    #[test]
    fn descendants_are_found(parents in prop::collection::btree_map(1_i32..60, 0_i32..60, 0..60)) {
        let root = 7;
        let found = below(root, &parents);
        for process in 1..60 {
            let mut ancestor = process;
            let mut is_below = false;
            for _ in 0..60 {
                match parents.get(&ancestor) {
                    Some(next) if *next == root => { is_below = true; break; }
                    Some(next) => ancestor = *next,
                    None => break,
                }
            }
            prop_assert_eq!(found.contains(&process), is_below && process != root, "{}", process);
        }
    }
}

#[test]
fn own_children_are_found() {
    let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let own = rustix::process::getpid();
    let number = i32::try_from(child.id()).unwrap();
    let found = super::descendants(own, usize::MAX);
    let other = below(own.as_raw_nonzero().get(), &super::all_parents());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(found.contains(&number) && other.contains(&number), "{found:?} {other:?}");
}
