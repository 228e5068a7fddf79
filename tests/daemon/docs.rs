//! Every source file, every test and every picture that the documentation names has to exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the Markdown files that describe the code. Leaves out the copies of external documents (`contract.md`,
/// `hands.md`, `seeds/`), which name no files of this repository.
fn pages() -> Vec<PathBuf> {
    let root = repository();
    let mut pages =
        vec![root.join("README.md"), root.join("CONTRIBUTING.md"), root.join("examples/README.md")];
    for directory in ["docs", "docs/decisions"] {
        let entries = fs::read_dir(root.join(directory)).expect("the documentation");
        let files = entries.map(|entry| entry.expect("an entry").path());
        pages.extend(files.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    pages.retain(|page| !page.ends_with("contract.md") && !page.ends_with("hands.md"));
    pages
}

/// Returns the paths of Rust files that a page names between backticks. A name without a directory is left out.
fn named(page: &str) -> Vec<&str> {
    let is_path = |text: &&str| {
        text.ends_with(".rs")
            && text.contains('/')
            && text.chars().all(|character| character.is_ascii_alphanumeric() || "_-./".contains(character))
    };
    page.split('`').skip(1).step_by(2).filter(is_path).collect()
}

#[test]
fn every_source_file_that_a_page_names_is_there() {
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        for path in named(&text) {
            count += 1;
            // A path on a page is relative to the repository or to the directory `crates/`. The path
            // `runtime/src/door.rs` is relative to `crates/`.
            let places = [repository().join(path), repository().join("crates").join(path)];
            assert!(places.iter().any(|place| place.is_file()), "{} names {path}", page.display());
        }
    }
    assert!(count > 30, "the pages were not read");
}

/// Collects the names of all functions in the Rust files below a directory.
fn functions(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).expect("a directory of the source") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("source");
            let names = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
            found.extend(names.map(str::to_owned));
        }
    }
}

#[test]
fn every_test_that_the_guarantees_name_is_there() {
    let mut found = BTreeSet::new();
    functions(&repository().join("crates"), &mut found);
    functions(&repository().join("tests"), &mut found);
    let page = fs::read_to_string(repository().join("docs/semantics.md")).expect("the guarantees");
    // The names of tests are sentences; nothing else on the page has so many words.
    let is_test = |text: &&str| {
        text.matches('_').count() >= 3 && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let named: Vec<&str> = page.split('`').skip(1).step_by(2).filter(is_test).collect();
    assert!(named.len() > 100, "the page was not read");
    let missing: Vec<&&str> = named.iter().filter(|name| !found.contains(**name)).collect();
    assert!(missing.is_empty(), "these tests do not exist: {missing:?}");
}

/// Returns the paths of the pictures that a page shows. They are relative to the directory of the page.
fn pictures(page: &str) -> impl Iterator<Item = &str> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| target.ends_with(".png") && !target.contains("://"))
}

/// Returns the width of a PNG file in pixels. The number stands after the signature, and the length and the name of the
/// first chunk.
fn width_of(picture: &Path) -> u32 {
    let bytes = fs::read(picture).expect("a picture");
    u32::from_be_bytes(bytes[16..20].try_into().expect("four bytes"))
}

#[test]
fn every_picture_that_a_page_shows_is_there() {
    let mut shown = BTreeSet::new();
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        let directory = page.parent().expect("a directory");
        for path in pictures(&text) {
            let picture = fs::canonicalize(directory.join(path));
            shown.insert(picture.unwrap_or_else(|error| panic!("{} shows {path}: {error}", page.display())));
        }
    }
    // The pages show each of these views on a wide screen, on a phone and in the dark.
    let directory = fs::canonicalize(repository().join("docs/pictures")).expect("the pictures");
    for view in ["now", "task", "why", "artifact"] {
        for (end, width) in [("", 1280), ("-phone", 390), ("-dark", 1280)] {
            let picture = directory.join(format!("{view}{end}.png"));
            assert!(shown.contains(&picture), "no page shows {}", picture.display());
            assert_eq!(width_of(&picture), width, "{}", picture.display());
        }
    }
}
