use super::*;
use crate::call::{Place, Root};
use polity_society::id::AgentId;
use proptest::prelude::*;
use std::fs;
use tempfile::TempDir;

fn caller(agent: &str, worktree: Option<&str>) -> Caller {
    let place = Place { root: Root::Made, worktree: worktree.map(AgentId::new) };
    Caller { agent: AgentId::new(agent), task: TaskId::new("t1"), role: "Engineer".to_owned(), place }
}

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text, &[]).unwrap()
}

fn hash(text: &str) -> ContentHash {
    ContentHash::of(text.as_bytes())
}

fn seen(views: &Views, caller: &Caller, of: &str) -> Option<ContentHash> {
    views.seen(caller, &path(of)).unwrap()
}

#[test]
fn whoever_has_not_seen_a_file_as_it_is_must_look_first() {
    use Change::{Create, Insert, Replace};
    let (old, now) = (Some(hash("old")), Some(hash("now")));
    let check = |seen, now, allowed: &[Change]| {
        for change in [Create, Replace, Insert] {
            assert_eq!(
                may_change(change, seen, now).is_ok(),
                allowed.contains(&change),
                "{change:?} {seen:?} {now:?}"
            );
        }
    };
    // The file does not exist.
    check(None, None, &[Create, Replace, Insert]);
    check(old, None, &[Create, Replace, Insert]);
    // The agent has never viewed the file.
    check(None, now, &[Replace]);
    // The agent has viewed the current content.
    check(now, now, &[Create, Replace, Insert]);
    // The file has changed since the agent viewed it.
    check(old, now, &[]);
}

#[test]
fn each_agent_has_its_own_view_of_each_file_in_each_worktree() {
    let directory = TempDir::new().unwrap();
    let views = Views::new(directory.path());
    let (one, other, own) = (caller("a1", None), caller("a2", None), caller("a1", Some("a1")));
    views.note(&one, &path("f"), hash("x"));
    assert_eq!(seen(&views, &one, "f"), Some(hash("x")));
    for (who, of) in [(&other, "f"), (&own, "f"), (&one, "g")] {
        assert_eq!(seen(&views, who, of), None, "{who:?} {of}");
    }
    let elsewhere = Caller { task: TaskId::new("t2"), ..one };
    assert_eq!(seen(&views, &elsewhere, "f"), None);
}

#[test]
fn a_damaged_line_says_nothing_and_damages_no_other() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("t1.views.jsonl");
    let one = caller("a1", None);
    let views = Views::new(directory.path());
    views.note(&one, &path("f"), hash("1"));
    views.note(&one, &path("g"), hash("2"));
    let whole = fs::read(&file).unwrap();
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    // A crash may cut off the last line after any byte.
    for end in first..=whole.len() {
        fs::write(&file, &whole[..end]).unwrap();
        let views = Views::new(directory.path());
        assert_eq!(seen(&views, &one, "f"), Some(hash("1")), "{end}");
        // A line can still be read if nothing but its line break is missing.
        assert_eq!(seen(&views, &one, "g").is_some(), end >= whole.len() - 1, "{end}");
        views.note(&one, &path("h"), hash("3"));
        let views = Views::new(directory.path());
        assert_eq!(seen(&views, &one, "f"), Some(hash("1")), "{end}");
        assert_eq!(seen(&views, &one, "h"), Some(hash("3")), "{end}");
    }
    fs::write(&file, b"\xff\xfe\n{}\n[]\n\n{\"agent\":1}\n").unwrap();
    assert_eq!(seen(&Views::new(directory.path()), &one, "f"), None);
}

#[test]
fn the_same_view_is_stored_once() {
    let directory = TempDir::new().unwrap();
    let views = Views::new(directory.path());
    for content in ["x", "x", "y", "y", "x"] {
        views.note(&caller("a1", None), &path("f"), hash(content));
    }
    let stored = fs::read_to_string(directory.path().join("t1.views.jsonl")).unwrap();
    assert_eq!(stored.lines().count(), 3);
}

#[test]
fn a_task_that_has_ended_is_forgotten() {
    let directory = TempDir::new().unwrap();
    let views = Views::new(directory.path().join("made/later"));
    let one = caller("a1", None);
    views.forget(&one.task).unwrap();
    views.note(&one, &path("f"), hash("x"));
    views.forget(&one.task).unwrap();
    assert_eq!(seen(&views, &one, "f"), None);
    assert_eq!(fs::read_dir(directory.path().join("made/later")).unwrap().count(), 0);
}

#[test]
fn a_view_that_cannot_be_stored_still_holds() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("file"), "").unwrap();
    let views = Views::new(directory.path().join("file/below"));
    let one = caller("a1", None);
    assert!(views.seen(&one, &path("f")).is_err());
    let views = Views::new(directory.path().join("d"));
    views.note(&one, &path("f"), hash("x"));
    fs::remove_dir_all(directory.path().join("d")).unwrap();
    fs::write(directory.path().join("d"), "").unwrap();
    views.note(&one, &path("g"), hash("y"));
    assert_eq!(seen(&views, &one, "g"), Some(hash("y")));
}

#[test]
fn the_file_of_a_task_is_in_the_directory() {
    assert_eq!(file_name(&TaskId::new("../a/b.c")), "%2e%2e%2fa%2fb%2ec.views.jsonl");
}

proptest! {
    #[test]
    fn a_restart_forgets_nothing(
        notes in proptest::collection::vec((0..3_usize, "[a-c]{1,2}\n?", 0..4_u8, any::<bool>()), 0..40),
    ) {
        let directory = TempDir::new().unwrap();
        let agents = [caller("a1", None), caller("a2", None), caller("a2", Some("a1"))];
        let mut views = Views::new(directory.path());
        let mut expect = HashMap::new();
        for (who, file, content, restart) in notes {
            views.note(&agents[who], &path(&file), ContentHash::of(&[content]));
            expect.insert((who, file), ContentHash::of(&[content]));
            if restart {
                views = Views::new(directory.path());
            }
        }
        for ((who, file), hash) in expect {
            prop_assert_eq!(seen(&views, &agents[who], &file), Some(hash));
        }
    }
}
