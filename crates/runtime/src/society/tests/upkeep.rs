use super::super::upkeep::{check_structure, clear_workspaces, finish_merges};
use super::*;
use polity_files::{ContentHash, WorkspacePath};
use polity_hands::call::{Place, Root};
use polity_hands::views::Views;
use polity_society::id::TurnId;
use polity_workspaces::Workspaces;
use std::collections::HashSet;

#[tokio::test]
async fn damage_that_is_found_while_a_society_works_ends_it() {
    let world = World::new().await;
    let file = world.directory.path().join("polity.db");
    let (tell, broken) = watch::channel(None);
    check_structure(file.clone(), tell.clone(), CancellationToken::new()).await;
    assert_eq!(*broken.borrow(), None);

    let damaged = world.directory.path().join("damaged.db");
    std::fs::write(&damaged, [0xff; 8_192]).unwrap();
    check_structure(damaged.clone(), tell, CancellationToken::new()).await;
    let reason = broken.borrow().clone().unwrap();
    assert!(reason.contains(&format!("the database {} is damaged", damaged.display())), "{reason}");
}

/// Two tasks with two agents each. Every agent has a worktree. `idle-1` has done nothing in its worktree; `busy-2`
/// has committed a file in its worktree.
struct Left {
    world: World,
    handles: Arc<Handles>,
    directory: tempfile::TempDir,
}

const TASKS: [&str; 2] = ["t-2", "t-3"];

/// Creates the two tasks. If git is missing or too old, prints a note about it and returns `None`.
async fn left() -> Option<Left> {
    let world = World::new().await;
    let directory = tempfile::tempdir().unwrap();
    let workspaces = Arc::new(Workspaces::new(directory.path().to_owned()));
    let views = Arc::new(Views::new(directory.path()));
    for task in TASKS {
        world.add_task(task).await;
        let caller = |agent: &str, worktree: Option<&str>| Caller {
            agent: AgentId::new(agent),
            task: TaskId::new(task),
            role: String::new(),
            place: Place { root: Root::Made, worktree: worktree.map(AgentId::new) },
        };
        let (root, cancel) = (caller("root", None), CancellationToken::new());
        for agent in ["idle-1", "busy-2"] {
            if let Err(refusal) = workspaces.hire(&root, &AgentId::new(agent), &cancel).await {
                println!("this test needs git 2.38 or newer: {refusal:?}");
                return None;
            }
        }
        let busy = caller("busy-2", Some("busy-2"));
        std::fs::write(directory.path().join(task).join("busy-2/made"), "work").unwrap();
        let nobody_writes = || std::future::ready(Ok(HashSet::new())).boxed();
        workspaces.settle(&busy, TurnId::new(1), &nobody_writes, &cancel).await.unwrap();
        views.note(&busy, &WorkspacePath::parse("made", &[]).unwrap(), ContentHash::of(b"work"));
    }
    let hands = Hands::none().in_workspaces(workspaces).with_views(views);
    let handles = world.handles(ScriptedModel::always(Say::Hang), hands);
    Some(Left { world, handles, directory })
}

impl Left {
    /// Returns which parts of a task exist on disk: its worktrees, its shared workspace, and the file that records
    /// what its agents have seen of files.
    fn on_disk(&self, task: &str) -> Vec<&'static str> {
        let names = ["idle-1", "busy-2", "main", "git"];
        let is_there = |path: String| self.directory.path().join(path).exists();
        let mut there: Vec<&str> =
            names.into_iter().filter(|name| is_there(format!("{task}/{name}"))).collect();
        there.extend(is_there(format!("{task}.views.jsonl")).then_some("views"));
        there
    }

    async fn clear(&self) {
        clear_workspaces(&self.handles, &CancellationToken::new()).await.unwrap();
    }
}

#[tokio::test]
async fn of_a_forgotten_task_stays_what_somebody_may_still_want() {
    let Some(left) = left().await else { return };
    let all = ["idle-1", "busy-2", "main", "git", "views"];
    let forget = "UPDATE tasks SET forgotten_at = 1 WHERE id = 't-2'";
    sql(&left.world, forget.to_owned()).await;
    // The task is not idle, so none of its files are removed.
    left.clear().await;
    assert_eq!((left.on_disk("t-2"), left.on_disk("t-3")), (all.to_vec(), all.to_vec()));
    sql(&left.world, "UPDATE tasks SET state = 'idle'".to_owned()).await;
    for _ in 0..2 {
        left.clear().await;
        assert_eq!(left.on_disk("t-2"), ["busy-2", "main", "git"]);
        assert_eq!(left.on_disk("t-3"), all);
    }
    let made = left.directory.path().join("t-2/busy-2/made");
    assert_eq!(std::fs::read_to_string(made).unwrap(), "work");
}

#[tokio::test]
async fn without_workspaces_there_is_nothing_to_do() {
    let world = World::new().await;
    let handles = world.handles(ScriptedModel::always(Say::Hang), Hands::none());
    clear_workspaces(&handles, &CancellationToken::new()).await.unwrap();
    finish_merges(handles, CancellationToken::new()).await;
}
