//! `docs/seeds/agent-communication.requirements.md` lists criteria. For every criterion, the table of
//! `docs/protocol.md` must name tests that exist.

use std::collections::BTreeMap;
use std::path::Path;

const SEED: &str = include_str!("../../../docs/seeds/agent-communication.requirements.md");
const PAGE: &str = include_str!("../../../docs/protocol.md");

/// Returns the numbers of all criteria in the requirements document, such as `3.7`.
fn criteria() -> Vec<String> {
    let mut requirement = "";
    let mut found = Vec::new();
    for line in SEED.lines() {
        if let Some(heading) = line.strip_prefix("### Requirement ") {
            requirement = heading.split(':').next().unwrap_or_default();
        } else if let Some((number, _)) = line.split_once(". ")
            && !requirement.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            found.push(format!("{requirement}.{number}"));
        }
    }
    found
}

/// Returns the tests that the table names for each criterion: their files and functions.
fn table() -> BTreeMap<String, Vec<(String, String)>> {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let of_criteria =
        rows.filter(|(first, _)| first.starts_with(|character: char| character.is_ascii_digit()));
    of_criteria
        .map(|(criterion, tests)| {
            let criterion = criterion.split(' ').next().unwrap_or_default().to_owned();
            let named = tests.split('`').filter_map(|name| name.split_once("::"));
            (criterion, named.map(|(file, function)| (file.to_owned(), function.to_owned())).collect())
        })
        .collect()
}

/// Returns the source of a file that the table names.
#[track_caller]
fn source(file: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = if file.contains('/') {
        root.join("crates").join(file)
    } else {
        root.join("tests/daemon/protocol").join(file)
    };
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns whether a comment contains exactly the number of this criterion. For example, a comment with `3.10` does not
/// contain the number 3.1.
fn names(comment: &str, criterion: &str) -> bool {
    let is_number = |character: char| character.is_ascii_digit() || character == '.';
    let numbers = comment.split(|character: char| !is_number(character));
    numbers.map(|number| number.trim_end_matches('.')).any(|number| number == criterion)
}

#[test]
fn every_criterion_of_the_seed_has_a_test_that_names_it() {
    let (criteria, table) = (criteria(), table());
    assert_eq!(criteria.len(), 59, "{criteria:?}");
    for criterion in &criteria {
        let tests = table.get(criterion).unwrap_or_else(|| panic!("{criterion} is not in the table"));
        let mut is_named = false;
        for (file, function) in tests {
            let source = source(file);
            let (before, _) = source
                .split_once(&format!("fn {function}("))
                .unwrap_or_else(|| panic!("{criterion}: there is no {function} in {file}"));
            let comment = before.rsplit("\n\n").next().unwrap_or_default();
            is_named |= names(comment, criterion);
        }
        assert!(is_named, "no comment of a test for {criterion} contains that number");
    }
    let strange: Vec<&String> = table.keys().filter(|criterion| !criteria.contains(criterion)).collect();
    assert!(strange.is_empty(), "{strange:?}");
}
