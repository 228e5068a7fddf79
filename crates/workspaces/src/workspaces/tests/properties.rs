//! Properties of merging and committing, tested with random edits.

use super::{World, task};
use crate::git::Input;
use crate::workspaces::Locked;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::fmt::Write as _;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

/// What an edit does with one line. `Insert` keeps the line and adds a new line after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edit {
    Keep,
    Delete,
    Change,
    Insert,
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![
        6 => Just(Edit::Keep),
        1 => Just(Edit::Delete),
        1 => Just(Edit::Change),
        1 => Just(Edit::Insert),
    ];
    proptest::collection::vec(edit, 12)
}

/// Returns the text after the edits, and the lines that the edits wrote. Each of these lines contains `side`, so the
/// two sides of a merge write different lines.
fn edited(edits: &[Edit], side: &str) -> (String, Vec<String>) {
    let (mut text, mut own) = (String::new(), Vec::new());
    for (number, edit) in edits.iter().enumerate() {
        let line = match edit {
            Edit::Delete => continue,
            Edit::Keep => format!("{number}\n"),
            Edit::Change => format!("{number} by {side}\n"),
            Edit::Insert => format!("{number}\n{number} new by {side}\n"),
        };
        text += &line;
        own.extend(line.lines().filter(|line| line.contains(side)).map(str::to_owned));
    }
    (text, own)
}

fn commit(stream: &mut String, name: &str, parent: Option<&str>, text: &str) {
    let parent = parent.map_or(String::new(), |parent| format!("from refs/heads/{parent}\n"));
    let length = text.len();
    // Writing to a string cannot fail.
    let _ = write!(
        stream,
        "commit refs/heads/{name}\ncommitter P <p@x> 0 +0000\ndata 0\n{parent}M 100644 inline f\ndata {length}\n{text}\n"
    );
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

async fn locked(world: &World) -> Locked<'_> {
    world.open(&world.shared("root")).await;
    world.all.lock(&task(), &CancellationToken::new()).await.unwrap()
}

fn runner() -> TestRunner {
    let config = Config { cases: 256, source_file: Some(file!()), ..Config::default() };
    TestRunner::new(config)
}

#[test]
fn overlapping_edits_lose_no_hunk() {
    let runtime = runtime();
    let Some(world) = runtime.block_on(World::made()) else { return };
    let locked = runtime.block_on(locked(&world));
    let repository = runtime.block_on(locked.repository()).unwrap();
    let (clean, count) = (Cell::new(0), Cell::new(0));
    let result = runner().run(&(edits(), edits()), |(ours, theirs)| {
        count.set(count.get() + 1);
        let number = count.get();
        let name = |side: &str| format!("{side}-{number}");
        let (our_text, our_lines) = edited(&ours, "ours");
        let (their_text, their_lines) = edited(&theirs, "theirs");
        let mut stream = String::from("feature done\n");
        commit(&mut stream, &name("base"), None, &edited(&[Edit::Keep; 12], "").0);
        commit(&mut stream, &name("ours"), Some(&name("base")), &our_text);
        commit(&mut stream, &name("theirs"), Some(&name("base")), &their_text);
        stream += "done\n";
        let conflicts = runtime.block_on(async {
            repository.import(Input::Bytes(stream.into_bytes())).await.unwrap();
            let merged = repository.merge_trees(&name("ours"), &name("theirs")).await.unwrap();
            let tree = repository.tree(&merged.tree).await.unwrap();
            let leaf = tree.into_values().next().unwrap();
            let text = repository.contents(&[&leaf.object]).await.unwrap().remove(0);
            (locked.describe(&repository, &merged).await.unwrap(), String::from_utf8(text).unwrap())
        });
        let (conflicts, text) = conflicts;
        let is_in_hunk = |line: &String| {
            let hunks = conflicts.iter().flat_map(|conflict| &conflict.hunks);
            hunks
                .into_iter()
                .any(|hunk| format!("{}\n{}", hunk.ours, hunk.theirs).lines().any(|found| found == line))
        };
        for line in our_lines.iter().chain(&their_lines) {
            let is_merged = text.lines().any(|found| found == line);
            prop_assert!(is_merged || is_in_hunk(line), "{line} is lost: {text:?} {conflicts:?}");
            if conflicts.is_empty() {
                prop_assert!(is_merged);
            }
        }
        if conflicts.is_empty() {
            clean.set(clean.get() + 1);
            prop_assert!(!text.contains("<<<<<<<"));
        } else {
            prop_assert!(conflicts.iter().all(|conflict| !conflict.hunks.is_empty()), "{conflicts:?}");
        }
        Ok(())
    });
    result.unwrap();
    let clean = clean.get();
    assert!(clean > 10 && clean < 250, "{clean} of 256 merges were clean: the edits are no good");
}

#[test]
fn a_stream_that_is_cut_off_commits_nothing() {
    let runtime = runtime();
    let Some(world) = runtime.block_on(World::made()) else { return };
    let locked = runtime.block_on(locked(&world));
    let repository = runtime.block_on(locked.repository()).unwrap();
    let mut stream = String::from("feature done\n");
    commit(&mut stream, "cut", None, "some text\n");
    let whole = stream.clone() + "done\n";
    runtime.block_on(async {
        // The prefix that ends with `done` is already a complete input, because the line break after `done` may be
        // missing. The loop ends before this prefix.
        for end in 0..stream.len() + "done".len() {
            let cut = Input::Bytes(whole.as_bytes()[..end].to_vec());
            assert!(repository.import(cut).await.is_err(), "{end}");
            assert_eq!(repository.tip("refs/heads/cut").await.unwrap(), None, "{end}");
        }
        repository.import(Input::Bytes(whole.into_bytes())).await.unwrap();
        assert!(repository.tip("refs/heads/cut").await.unwrap().is_some());
    });
}
