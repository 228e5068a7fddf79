use super::*;
use crate::messages::requests;
use crate::testing::{Scratch, conversation, events_after};
use polity_society::contact::{Contact, Source};
use polity_society::id::{AgentId, TaskId};
use polity_society::message::{Expects, Finality, MessageState};
use polity_society::time::Timestamp;
use polity_sql::Sql;
use polity_view::{ApprovalFilter, ApprovalState, TaskState};
use std::collections::{BTreeMap, HashSet};
use strum::VariantArray;

/// The statements of all tables.
const STATEMENTS: &[&[&str]] = &[
    agents::STATEMENTS,
    approvals::STATEMENTS,
    artifacts::STATEMENTS,
    commands::STATEMENTS,
    contacts::STATEMENTS,
    events::STATEMENTS,
    exchanges::STATEMENTS,
    fork::STATEMENTS,
    holds::STATEMENTS,
    database::STATEMENTS,
    maintenance::check::STATEMENTS,
    maintenance::forget::STATEMENTS,
    maintenance::unneeded::STATEMENTS,
    messages::STATEMENTS,
    messages::between::STATEMENTS,
    messages::requests::STATEMENTS,
    notes::STATEMENTS,
    posts::STATEMENTS,
    readers::STATEMENTS,
    records::STATEMENTS,
    roles::STATEMENTS,
    seen::STATEMENTS,
    sent::STATEMENTS,
    tasks::STATEMENTS,
    turns::STATEMENTS,
    usage::STATEMENTS,
    view::agents::STATEMENTS,
    view::conversation::STATEMENTS,
    view::doing::STATEMENTS,
    view::edits::STATEMENTS,
    view::events::STATEMENTS,
    view::facts::STATEMENTS,
    view::messages::STATEMENTS,
    view::search::STATEMENTS,
    view::now::STATEMENTS,
    view::tasks::STATEMENTS,
    view::usage::STATEMENTS,
    view::uses::STATEMENTS,
    work::STATEMENTS,
];

fn connect(file: &Path) -> Connection {
    Options::new(file, Access::Write).connect().unwrap()
}

#[tokio::test]
async fn every_statement_fits_the_schema() {
    let scratch = Scratch::new().await;
    let mut connection = connect(&scratch.directory.path().join("polity.db"));
    for statement in STATEMENTS.iter().copied().flatten() {
        let explained = polity_sql::query(Sql::built(format!("EXPLAIN {statement}")));
        let prepared = explained.fetch_all(&mut connection).await;
        assert!(prepared.is_ok(), "{statement}: {prepared:?}");
    }
}

/// Migrations contain the names of enum variants as text. This test finds a variant that was renamed or added in the
/// code without a new migration.
#[tokio::test]
async fn the_schema_admits_the_names_of_each_closed_set_and_no_others() {
    let scratch = Scratch::new().await;
    let mut reader = scratch.store.reader().await.unwrap();
    let mut check = async |table: &str, column: &str, mut expect: Vec<&str>| {
        let schema = polity_sql::query_scalar("SELECT sql FROM sqlite_schema WHERE name = ?1").bind(table);
        let schema: String = schema.fetch_one(&mut reader).await.unwrap();
        let (_, list) = schema.split_once(&format!("CHECK ({column} IN (")).expect(column);
        let (list, _) = list.split_once(')').unwrap();
        let mut names: Vec<&str> = list.split(", ").map(|name| name.trim_matches('\'')).collect();
        names.sort_unstable();
        expect.sort_unstable();
        assert_eq!(names, expect, "{table}.{column}");
    };
    check("tasks", "state", names::<TaskState>()).await;
    check("turns", "state", [names::<turns::Ended>(), vec!["open"]].concat()).await;
    check("approvals", "state", names::<ApprovalState>()).await;
    check("approvals", "scope", names::<approvals::Scope>()).await;
    check("sent", "outcome", names::<polity_view::SentOutcome>()).await;
    check("exchanges", "state", names::<exchanges::State>()).await;
    check("messages", "expects", names::<Expects>()).await;
    check("messages", "finality", names::<Finality>()).await;
    // The column `answered_by` shows whether a message was answered, so the column `state` never contains `answered`.
    let states = names::<MessageState>().into_iter().filter(|name| *name != MessageState::Answered.as_str());
    check("messages", "state", states.collect()).await;
}

fn names<T: VariantArray + Copy + Into<&'static str>>() -> Vec<&'static str> {
    T::VARIANTS.iter().map(|member| (*member).into()).collect()
}

/// Returns SQLite's plan for a statement.
async fn plan(scratch: &Scratch, statement: &str) -> String {
    let mut reader = scratch.store.reader().await.unwrap();
    let explained = polity_sql::Sql::built(format!("EXPLAIN QUERY PLAN {statement}"));
    let rows = polity_sql::query(explained).fetch_all(&mut reader).await.unwrap();
    let steps = rows.iter().map(|row| row.get::<String, _>("detail"));
    steps.collect::<Vec<_>>().join("; ")
}

/// A query for waiting messages reads only waiting messages, not all messages that an agent has received.
#[tokio::test]
async fn what_waits_is_found_without_looking_at_all_that_was_ever_sent() {
    let scratch = Scratch::new().await;
    let about = |all: &'static [&'static str], word: &'static str| {
        all.iter().copied().filter(move |statement| statement.contains(word))
    };
    let unshown = about(messages::STATEMENTS, "receiver = 'user' AND state = 'queued' ORDER BY");
    let expired = about(database::STATEMENTS, "receiver = 'user' AND state = 'queued'");
    let closed = about(messages::requests::STATEMENTS, "AND state = 'done' RETURNING *");
    let waiting: Vec<&str> = unshown.chain(expired).collect();
    let closed: Vec<&str> = closed.collect();
    assert_eq!((waiting.len(), closed.len()), (3, 1));
    for (statements, index) in [(waiting, "messages_waiting"), (closed, "messages_unanswered")] {
        for statement in statements {
            let plan = plan(&scratch, statement).await;
            assert!(plan.contains(index), "{statement}: {plan}");
            assert!(!plan.contains("messages_to"), "{statement}: {plan}");
        }
    }
}

/// SQLite uses an index with a condition only for statements that have the same condition, word for word.
#[tokio::test]
async fn the_indexes_of_requests_have_the_conditions_of_the_statements() {
    let scratch = Scratch::new().await;
    let check = async |index: &str, condition: &str| {
        let created = scratch.query(&format!("SELECT sql FROM sqlite_schema WHERE name = '{index}'")).await;
        assert!(created[0].ends_with(&format!("AND {condition}")), "{created:?}");
    };
    check("messages_asked", requests::answerable!()).await;
    check("messages_open", requests::answerable!()).await;
    check("messages_open_requests", requests::answerable_or_failed!()).await;
    check("messages_unanswered", requests::was_read!()).await;
}

/// Tables and indexes that a statement may read as a whole. Their rows are what goes on now, requests without an answer,
/// permissions, or totals.
const FEW_ROWS: &[&str] = &[
    "agents_paused",
    "approvals_expiring",
    "approvals_of_agent",
    "approvals_waiting",
    "artifacts_unread",
    "commands_running",
    "holds_of_task",
    "messages_asked",
    "messages_delayed",
    "messages_open",
    "messages_waiting",
    "permissions",
    "served",
    "spent",
    "sqlite_sequence",
    "turns_open",
    "turns_open_of",
];
/// Some requests never get an answer. They would stay for ever in an index of requests without an answer, and the
/// statements that read the whole index would read more and more of them.
#[tokio::test]
async fn requests_that_have_failed_are_in_no_index_that_is_read_as_a_whole() {
    let scratch = Scratch::new().await;
    // polity does not read the last index as a whole. But for a row of root, it reads root's requests of all tasks there.
    let read_as_a_whole = FEW_ROWS.iter().filter(|name| name.starts_with("messages_"));
    for index in read_as_a_whole.chain(&["messages_open_requests"]) {
        let created = scratch.query(&format!("SELECT sql FROM sqlite_schema WHERE name = '{index}'")).await;
        assert!(created[0].contains(" state "), "{created:?}");
    }
}

/// The beginnings of statements whose plans name whole tables although no whole table is read.
const HARMLESS: &[&str] = &[
    // The plan has the checks of references to this agent. SQLite makes them only after a reference was broken.
    "INSERT INTO agents ",
    // Callers add conditions.
    "SELECT a.rowid AS place",
    // SQLite stops after a page: `what_was_spent_in_all_tasks_is_not_added_up_again`.
    "SELECT agent, calls, prompt_tokens AS prompt, completion_tokens AS completion, CASE WHEN priced > 0 THEN cost END AS cost FROM spent_by_agents ORDER BY",
    // The page Now shows all parked conversations.
    "SELECT agent, task, reason, created_at AS since FROM holds",
    // SQLite stops after one row.
    "SELECT id FROM tasks ORDER BY rowid DESC LIMIT 1",
    // Callers add conditions.
    "SELECT seq, octet_length(body)",
    "SELECT t.rowid AS place",
    // SQLite stops after a page, as above.
    "SELECT task, calls, prompt_tokens AS prompt, completion_tokens AS completion, CASE WHEN priced > 0 THEN cost END AS cost FROM spent_in_tasks ORDER BY",
];

/// No statement of a turn, a message, a tool or a view reads all rows of a table that grows with the history.
#[tokio::test]
async fn no_statement_reads_the_whole_history() {
    let scratch = Scratch::new().await;
    // Upkeep and the copy of a task are rare. The counts of `facts` need all rows.
    let rare = [
        fork::STATEMENTS,
        database::STATEMENTS,
        maintenance::check::STATEMENTS,
        maintenance::forget::STATEMENTS,
        maintenance::unneeded::STATEMENTS,
        view::facts::STATEMENTS,
    ];
    let common = STATEMENTS.iter().filter(|list| !rare.contains(list)).copied().flatten();
    let mut harmless = Vec::new();
    for statement in common.filter(|statement| !readers::STATEMENTS.contains(statement)) {
        let plan = plan(&scratch, statement).await;
        let whole = plan.split("; ").filter_map(|step| step.strip_prefix("SCAN ")).filter(|scanned| {
            // Names of subqueries begin with `(`, or are the names that the statement gives to them.
            let mut words = scanned.split(' ');
            let (name, index) = (words.next().unwrap_or_default(), words.next_back().unwrap_or_default());
            let is_subquery = name.starts_with('(')
                || statement.contains(&format!("WITH RECURSIVE {name} ("))
                || statement.contains(&format!(") {name}\n"));
            let is_other = *scanned == "CONSTANT ROW" || scanned.contains("VIRTUAL TABLE");
            !is_subquery && !is_other && !FEW_ROWS.contains(&name) && !FEW_ROWS.contains(&index)
        });
        let whole: Vec<&str> = whole.collect();
        match HARMLESS.iter().find(|beginning| statement.starts_with(**beginning)) {
            Some(beginning) => harmless.push(*beginning),
            None => assert!(whole.is_empty(), "{statement} reads all of {whole:?}"),
        }
    }
    harmless.sort_unstable();
    assert_eq!(harmless, HARMLESS, "each of these statements exists once");
}

/// Upkeep is rare, but agents cannot write while it removes sources.
#[tokio::test]
async fn sources_are_removed_without_reading_those_of_all_tasks() {
    let scratch = Scratch::new().await;
    let upkeep = maintenance::forget::STATEMENTS.iter().chain(maintenance::unneeded::STATEMENTS);
    let removing: Vec<&str> =
        upkeep.copied().filter(|statement| statement.starts_with("DELETE FROM seen")).collect();
    assert_eq!(removing.len(), 2);
    for statement in removing {
        let plan = plan(&scratch, statement).await;
        assert!(plan.contains("SEARCH seen USING PRIMARY KEY (task=?)"), "{statement}: {plan}");
    }
}

#[tokio::test]
async fn a_path_is_being_written_from_the_start_of_a_call_to_the_end_of_its_turn() {
    let scratch = Scratch::new().await;
    scratch.add_task("t-2").await;
    scratch
        .execute(
            "INSERT INTO agents (id, task, parent, depth, created_at) VALUES ('ann-1', 't-1', 'root', 1, 1);
            INSERT INTO turns (id, agent, task, began_by, state, created_at) VALUES (1, 'root', 't-1', 'm', 'done', 1),
                (2, 'root', 't-1', 'm', 'open', 1), (3, 'ann-1', 't-1', 'm', 'open', 1), (4, 'root', 't-2', 'm', 'open', 1);
            INSERT INTO records (agent, task, turn, body, created_at)
                SELECT t.agent, t.task, t.id, json_object('record', 'tool_started', 'call', 'a', 'evidence', json(n.value)), 1
                FROM turns t CROSS JOIN
                json_each(json_array(json_object('path', 'f' || t.id), json_object('path', 'g'), NULL)) n;
            UPDATE turns SET state = 'stopped' WHERE id = 2",
        )
        .await;
    let mut reader = scratch.store.reader().await.unwrap();
    let mut check = async |task: &str, expect: &[(&str, [&str; 2])]| {
        let expect =
            expect.iter().map(|(agent, paths)| (AgentId::new(*agent), paths.map(str::to_owned).into()));
        let expect: BTreeMap<AgentId, HashSet<String>> = expect.collect();
        let writing = records::writing(&mut reader, &TaskId::new(task)).await.unwrap();
        assert_eq!(writing, expect, "{task}");
    };
    check("t-1", &[("ann-1", ["f3", "g"])]).await;
    check("t-2", &[("root", ["f4", "g"])]).await;
}

#[tokio::test]
async fn open_questions_are_found_without_those_that_have_ended() {
    let scratch = Scratch::new().await;
    let (open, denied) = (Some(ApprovalState::Open), Some(ApprovalState::Denied));
    let task = Some(TaskId::new("t-1"));
    let all = ApprovalFilter::default;
    for (filter, index) in [
        (ApprovalFilter { state: open, ..all() }, "approvals_expiring"),
        (ApprovalFilter { state: open, task: task.clone(), ..all() }, "approvals_of_task (task=?)"),
        (ApprovalFilter { state: denied, task, ..all() }, "approvals_of_task (task=?)"),
    ] {
        let plan = plan(&scratch, approvals::matching(&filter, 10).sql()).await;
        assert!(plan.contains(index), "{filter:?}: {plan}");
    }
}

/// The tests above check only the statements in the lists `STATEMENTS`, so the list of each file must be complete.
#[test]
fn every_statement_is_in_the_list_of_its_file() {
    let check = |file: &str, text: &str, listed: &[&str]| {
        let declared =
            text.lines().filter(|line| line.starts_with("const ") && line.contains(": &str =")).count();
        assert_eq!(declared, listed.len(), "{file}");
    };
    check("agents", include_str!("agents.rs"), agents::STATEMENTS);
    check("approvals", include_str!("approvals.rs"), approvals::STATEMENTS);
    check("commands", include_str!("commands.rs"), commands::STATEMENTS);
    check("contacts", include_str!("contacts.rs"), contacts::STATEMENTS);
    check("events", include_str!("events.rs"), events::STATEMENTS);
    check("exchanges", include_str!("exchanges.rs"), exchanges::STATEMENTS);
    check("fork", include_str!("fork.rs"), fork::STATEMENTS);
    check("holds", include_str!("holds.rs"), holds::STATEMENTS);
    check("maintenance/database", include_str!("maintenance/database.rs"), database::STATEMENTS);
    check("check", include_str!("maintenance/check.rs"), maintenance::check::STATEMENTS);
    check("forget", include_str!("maintenance/forget.rs"), maintenance::forget::STATEMENTS);
    check("unneeded", include_str!("maintenance/unneeded.rs"), maintenance::unneeded::STATEMENTS);
    check("messages", include_str!("messages.rs"), messages::STATEMENTS);
    check("messages/between", include_str!("messages/between.rs"), messages::between::STATEMENTS);
    check("messages/requests", include_str!("messages/requests.rs"), messages::requests::STATEMENTS);
    check("notes", include_str!("notes.rs"), notes::STATEMENTS);
    check("posts", include_str!("posts.rs"), posts::STATEMENTS);
    check("records", include_str!("records.rs"), records::STATEMENTS);
    check("roles", include_str!("roles.rs"), roles::STATEMENTS);
    check("seen", include_str!("seen.rs"), seen::STATEMENTS);
    check("sent", include_str!("sent.rs"), sent::STATEMENTS);
    check("tasks", include_str!("tasks.rs"), tasks::STATEMENTS);
    check("turns", include_str!("turns.rs"), turns::STATEMENTS);
    check("usage", include_str!("usage.rs"), usage::STATEMENTS);
    check("work", include_str!("work.rs"), work::STATEMENTS);
    // The files that are checked below build statements from parts, and the parts are not in the lists.
    let parts = |text: &str, parts: &[&str]| {
        let kept =
            text.lines().filter(|line| !parts.iter().any(|part| line.starts_with(&format!("const {part}:"))));
        kept.collect::<Vec<_>>().join("\n")
    };
    check("view/agents", include_str!("view/agents.rs"), view::agents::STATEMENTS);
    check("view/doing", include_str!("view/doing.rs"), view::doing::STATEMENTS);
    check("view/events", include_str!("view/events.rs"), view::events::STATEMENTS);
    check("view/facts", include_str!("view/facts.rs"), view::facts::STATEMENTS);
    check("view/conversation", include_str!("view/conversation.rs"), view::conversation::STATEMENTS);
    let messages = parts(include_str!("view/messages.rs"), &["SHOWN_STATE"]);
    check("view/messages", &messages, view::messages::STATEMENTS);
    check("view/search", include_str!("view/search.rs"), view::search::STATEMENTS);
    check("view/now", include_str!("view/now.rs"), view::now::STATEMENTS);
    check("view/tasks", include_str!("view/tasks.rs"), view::tasks::STATEMENTS);
    check("view/usage", include_str!("view/usage.rs"), view::usage::STATEMENTS);
    check("view/uses", include_str!("view/uses.rs"), view::uses::STATEMENTS);
}

fn bell(task: &str) -> Bell {
    Bell::Mailbox(Conversation { agent: AgentId::root(), task: TaskId::new(task) })
}

/// Begins a task, and rings a bell for it.
async fn begin(store: &Store, id: &str) -> Result<(), Error> {
    let id = id.to_owned();
    let write = store.write(move |tx| {
        Box::pin(async move {
            tasks::insert(tx, &TaskId::new(id.as_str()), None).await?;
            tx.ring(bell(&id));
            Ok(())
        })
    });
    write.await
}

async fn task_ids(store: &Store) -> Vec<String> {
    let mut reader = store.reader().await.unwrap();
    let mut ids: Vec<String> =
        tasks::open(&mut reader).await.unwrap().iter().map(|task| task.as_str().to_owned()).collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn an_answer_means_that_everybody_can_read_what_was_written() {
    let scratch = Scratch::new().await;
    let writes = (0..300).map(|number| {
        let store = scratch.store.clone();
        async move {
            let id = format!("t-w{number}");
            begin(&store, &id).await.unwrap();
            let mut reader = store.reader().await.unwrap();
            assert!(tasks::standing(&mut reader, &TaskId::new(id)).await.unwrap().is_some());
        }
    });
    futures::future::join_all(writes).await;
    assert_eq!(task_ids(&scratch.store).await.len(), 301);
}

#[tokio::test]
async fn a_job_that_fails_or_panics_leaves_nothing_and_takes_nobody_with_it() {
    let mut scratch = Scratch::new().await;
    let store = scratch.store.clone();
    let failing = store.write::<(), _>(|tx| {
        Box::pin(async move {
            tasks::insert(tx, &TaskId::new("t-failed"), None).await?;
            tx.ring(bell("t-failed"));
            Err(Error::Closed)
        })
    });
    let panicking = store.write::<(), _>(|tx| {
        Box::pin(async move {
            tasks::insert(tx, &TaskId::new("t-panicked"), None).await?;
            tx.ring(bell("t-panicked"));
            panic!("a defect")
        })
    });
    // All four jobs wait while the writer is held, so they share one transaction.
    let held = hold(&store).await;
    let all = futures::future::join4(begin(&store, "t-first"), failing, panicking, begin(&store, "t-last"));
    let mut all = std::pin::pin!(all);
    assert!(futures::poll!(all.as_mut()).is_pending(), "all four wait for the writer");
    held.send(()).unwrap();
    let (first, failed, panicked, last) = all.await;
    assert!(first.is_ok() && last.is_ok());
    assert!(matches!(failed, Err(Error::Closed)), "{failed:?}");
    assert!(matches!(panicked, Err(Error::Panicked)), "{panicked:?}");
    assert_eq!(task_ids(&store).await, ["t-1", "t-first", "t-last"]);
    begin(&store, "t-after").await.unwrap();
    // The undone jobs ring no bell. The bells ring in the order of the jobs, so such a bell would come before the bell
    // of `t-last`.
    for task in ["t-first", "t-last", "t-after"] {
        assert_eq!(scratch.signals.bells.recv().await, Some(bell(task)));
    }
}

/// The error that a caller of the store gets.
#[derive(Debug)]
enum Refused {
    ByTheRules,
    Store(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

#[tokio::test]
async fn a_refused_job_keeps_what_it_wrote_and_a_broken_one_does_not() {
    let scratch = Scratch::new().await;
    let begin = async |task: &'static str, stopped: Stopped<Refused>| {
        let write = scratch.store.write_unless_refused(move |tx| {
            Box::pin(async move {
                tasks::insert(tx, &TaskId::new(task), None).await?;
                Err::<(), _>(stopped)
            })
        });
        write.await.unwrap_err()
    };
    let refused = begin("t-refused", Stopped::Refused(Refused::ByTheRules)).await;
    assert!(matches!(refused, Refused::ByTheRules), "{refused:?}");
    let broken = begin("t-broken", Stopped::Broken(Error::Closed)).await;
    assert!(matches!(broken, Refused::Store(Error::Closed)), "{broken:?}");
    assert_eq!(task_ids(&scratch.store).await, ["t-1", "t-refused"]);
}

#[tokio::test]
async fn a_refusal_can_undo_its_job_alone_and_beside_others() {
    let scratch = Scratch::new().await;
    let store = scratch.store.clone();
    let begin_and_stop = async |task: &'static str, stopped: Stopped<Refused>| {
        let write = store.write_or_undo(move |tx| {
            Box::pin(async move {
                tasks::insert(tx, &TaskId::new(task), None).await?;
                events::append(tx, &started(task)).await?;
                Err::<(), _>(stopped)
            })
        });
        write.await.unwrap_err()
    };
    let refused = begin_and_stop("t-refused", Stopped::Refused(Refused::ByTheRules)).await;
    assert!(matches!(refused, Refused::ByTheRules), "{refused:?}");
    let held = hold(&store).await;
    let refused = begin_and_stop("t-refused", Stopped::Refused(Refused::ByTheRules));
    let broken = begin_and_stop("t-broken", Stopped::Broken(Error::Closed));
    let mut all = std::pin::pin!(futures::future::join3(refused, begin(&store, "t-2"), broken));
    assert!(futures::poll!(all.as_mut()).is_pending(), "all three wait for the writer");
    held.send(()).unwrap();
    let (refused, begun, broken) = all.await;
    assert!(matches!(refused, Refused::ByTheRules), "{refused:?}");
    assert!(begun.is_ok(), "{begun:?}");
    assert!(matches!(broken, Refused::Store(Error::Closed)), "{broken:?}");
    assert_eq!(task_ids(&store).await, ["t-1", "t-2"]);
    assert_eq!(events_after(&mut store.reader().await.unwrap(), 0).await, []);
}

/// Makes the writer wait in a job. The caller ends the wait with the returned sender. The jobs that are queued during
/// the wait share one transaction.
async fn hold(store: &Store) -> tokio::sync::oneshot::Sender<()> {
    let (reached, at_work) = tokio::sync::oneshot::channel();
    let (go, gone) = tokio::sync::oneshot::channel::<()>();
    let store = store.clone();
    tokio::spawn(async move {
        let held = store.write(move |_| {
            Box::pin(async move {
                let _ = reached.send(());
                let _ = gone.await;
                Ok(())
            })
        });
        held.await
    });
    at_work.await.unwrap();
    go
}

#[tokio::test]
async fn a_transaction_that_breaks_tells_every_caller_and_the_next_one_is_whole() {
    let scratch = Scratch::new().await;
    let store = scratch.store.clone();
    // This job itself ends the transaction of the writer, so the savepoint of the job no longer exists.
    let breaking = store.write::<(), _>(|tx| {
        Box::pin(async move {
            polity_sql::query("ROLLBACK").execute(&mut tx.connection).await?;
            Ok(())
        })
    });
    let held = hold(&store).await;
    let all = futures::future::join3(begin(&store, "t-first"), breaking, begin(&store, "t-last"));
    let mut all = std::pin::pin!(all);
    assert!(futures::poll!(all.as_mut()).is_pending(), "all three wait for the writer");
    held.send(()).unwrap();
    let (first, broken, last) = all.await;
    for told in [first, broken, last] {
        assert!(matches!(told, Err(Error::Commit(_))), "{told:?}");
    }
    begin(&store, "t-after").await.unwrap();
    assert_eq!(task_ids(&store).await, ["t-1", "t-after"]);
}

#[tokio::test]
async fn bells_ring_after_the_commit_and_only_then() {
    let mut scratch = Scratch::new().await;
    let store = scratch.store.clone();
    let (reached, at_work) = tokio::sync::oneshot::channel();
    let (go, gone) = tokio::sync::oneshot::channel::<()>();
    let write = tokio::spawn(async move {
        let write = store.write(move |tx| {
            Box::pin(async move {
                tasks::insert(tx, &TaskId::new("t-2"), None).await?;
                tx.ring(bell("t-2"));
                tx.ring(bell("t-2"));
                let _ = reached.send(());
                let _ = gone.await;
                Ok(())
            })
        });
        write.await
    });
    at_work.await.unwrap();
    assert!(scratch.signals.bells.try_recv().is_err(), "nothing is committed yet");
    assert_eq!(task_ids(&scratch.store).await, ["t-1"]);
    go.send(()).unwrap();
    assert_eq!(scratch.signals.bells.recv().await, Some(bell("t-2")));
    assert_eq!(task_ids(&scratch.store).await, ["t-1", "t-2"]);
    write.await.unwrap().unwrap();
    // When the writer has answered a second job, it has sent all signals of the first job.
    begin(&scratch.store, "t-3").await.unwrap();
    assert_eq!(scratch.signals.bells.recv().await, Some(bell("t-3")), "the same bell rings once");
}

#[tokio::test]
async fn the_newest_event_is_told_after_its_commit_and_not_where_it_was_undone() {
    let mut scratch = Scratch::new().await;
    let before = *scratch.signals.events.borrow();
    let event = |task: &str| Event::TaskStarted { task: TaskId::new(task) };
    scratch.store.note(event("t-1")).await.unwrap();
    let told = *scratch.signals.events.wait_for(|newest| *newest > before).await.unwrap();
    let undone = event("t-2");
    let failed = scratch.store.write::<(), _>(move |tx| {
        Box::pin(async move {
            events::append(tx, &undone).await?;
            Err(Error::Closed)
        })
    });
    assert!(failed.await.is_err());
    assert_eq!(*scratch.signals.events.borrow(), told);
    let mut reader = scratch.store.reader().await.unwrap();
    let entries = events_after(&mut reader, before).await;
    assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [told]);
}

fn started(task: &str) -> Event {
    Event::TaskStarted { task: TaskId::new(task) }
}

#[tokio::test]
async fn the_events_of_a_job_are_one_statement_in_order_and_without_an_undone_part() {
    let mut scratch = Scratch::new().await;
    let before = *scratch.signals.events.borrow();
    let ran = scratch.store.statements();
    let write = scratch.store.write(|tx| {
        Box::pin(async move {
            events::append(tx, &started("t-1")).await?;
            let part = tx.savepoint("part").await?;
            events::append(tx, &started("t-undone")).await?;
            tx.undo(&part).await?;
            events::append(tx, &started("t-2")).await?;
            tx.release(part).await?;
            events::append(tx, &started("\"quoted\" 名")).await?;
            Ok(())
        })
    });
    write.await.unwrap();
    // The transaction itself takes two statements, the savepoint three.
    assert_eq!(scratch.store.statements() - ran, 6);
    let mut reader = scratch.store.reader().await.unwrap();
    let entries = events_after(&mut reader, before).await;
    let found: Vec<(i64, Event)> = entries.into_iter().map(|entry| (entry.seq, entry.event)).collect();
    let expect = ["t-1", "t-2", "\"quoted\" 名"].map(started);
    assert_eq!(found, (before + 1..).zip(expect).collect::<Vec<_>>());
    assert_eq!(*scratch.signals.events.wait_for(|newest| *newest > before).await.unwrap(), before + 3);
}

#[tokio::test]
async fn a_job_finds_the_events_of_jobs_in_the_same_transaction_but_none_of_a_failed_job() {
    let scratch = Scratch::new().await;
    let store = scratch.store.clone();
    let failing = store.write::<(), _>(|tx| {
        Box::pin(async move {
            events::append(tx, &started("t-failed")).await?;
            Err(Error::Closed)
        })
    });
    let reading = store.write(|tx| Box::pin(async move { Ok(events_after(&mut tx.connection, 0).await) }));
    let held = hold(&store).await;
    let mut all = std::pin::pin!(futures::future::join3(store.note(started("t-first")), failing, reading));
    assert!(futures::poll!(all.as_mut()).is_pending(), "all three wait for the writer");
    held.send(()).unwrap();
    let (_, failed, read) = all.await;
    assert!(matches!(failed, Err(Error::Closed)), "{failed:?}");
    let found: Vec<Event> = read.unwrap().into_iter().map(|entry| entry.event).collect();
    assert_eq!(found, [started("t-first")]);
}

#[tokio::test]
async fn contacts_are_one_statement_and_only_new_ones_are_told() {
    let scratch = Scratch::new().await;
    scratch
        .execute(
            "INSERT INTO agents (id, task, parent, depth, created_at) VALUES ('ann-1', 't-1', 'root', 1, 1);
            INSERT INTO agents (id, task, parent, depth, created_at) VALUES ('ben-2', 't-1', 'root', 1, 1)",
        )
        .await;
    let contact = |owner: &str, agent: &str, introduced_by: Option<&str>| Contact {
        owner: AgentId::new(owner),
        agent: AgentId::new(agent),
        source: if introduced_by.is_some() { Source::Preset } else { Source::Child },
        introduced_by: introduced_by.map(AgentId::new),
    };
    let new = contact("ann-1", "ben-2", Some("root"));
    let all = vec![
        contact("root", "user", None),
        contact("root", "ann-1", None),
        new.clone(),
        Contact { source: Source::Child, ..new.clone() },
    ];
    let ran = scratch.store.statements();
    let told = scratch.write(move |tx| Box::pin(async move { contacts::insert(tx, all).await })).await;
    assert_eq!(told, [contact("root", "ann-1", None), new]);
    // The transaction itself takes two statements.
    assert_eq!(scratch.store.statements() - ran, 3);
    let stored =
        "SELECT owner || ' ' || agent || ' ' || source || ' ' || coalesce(introduced_by, '-') || ' ' || task
        FROM contacts WHERE since > 0 ORDER BY owner, agent";
    assert_eq!(scratch.query(stored).await, ["ann-1 ben-2 preset root t-1", "root ann-1 child - t-1"]);
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_undo_its_job() {
    let scratch = Scratch::new().await;
    let held = hold(&scratch.store).await;
    let abandoned = begin(&scratch.store, "t-2");
    let polled = futures::FutureExt::now_or_never(abandoned);
    assert!(polled.is_none(), "it cannot have been committed yet");
    held.send(()).unwrap();
    begin(&scratch.store, "t-3").await.unwrap();
    assert_eq!(task_ids(&scratch.store).await, ["t-1", "t-2", "t-3"]);
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let scratch = Scratch::new().await;
    let file = scratch.directory.path().join("polity.db");
    scratch.store.close().await;
    let mut connection = connect(&file);
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
        VALUES (9999, 'later', TRUE, x'00', 0)";
    polity_sql::query(newer).execute(&mut connection).await.unwrap();
    connection.close().unwrap();
    let refused = Store::open(&file, Durability::Full).await.map(drop);
    assert!(matches!(refused, Err(Error::Newer { found: 9999, .. })), "{refused:?}");
}

#[tokio::test]
async fn closing_leaves_one_file_with_everything_in_it() {
    let scratch = Scratch::new().await;
    let file = scratch.directory.path().join("polity.db");
    begin(&scratch.store, "t-2").await.unwrap();
    scratch.store.close().await;
    assert!(!scratch.directory.path().join("polity.db-wal").exists(), "the log was not merged into the file");
    assert!(matches!(begin(&scratch.store, "t-3").await, Err(Error::Closed)));
    let (store, _signals) = Store::open(&file, Durability::Full).await.unwrap();
    assert_eq!(task_ids(&store).await, ["t-1", "t-2"]);
}

#[tokio::test]
async fn a_damaged_row_is_named() {
    let scratch = Scratch::new().await;
    let damage = scratch.store.write(|tx| {
        Box::pin(async move {
            let damage = "UPDATE agents SET brief = '{' WHERE id = 'root'";
            polity_sql::query(damage).execute(&mut tx.connection).await?;
            Ok(())
        })
    });
    damage.await.unwrap();
    let mut reader = scratch.store.reader().await.unwrap();
    let error = agents::get(&mut reader, &AgentId::root()).await.unwrap_err();
    assert!(error.to_string().starts_with("damaged row in table agents: root: "), "{error}");
}

#[tokio::test]
async fn what_the_disk_is_to_blame_for_may_pass_and_nothing_else() {
    let scratch = Scratch::new().await;
    let fails = |sql: &'static str| {
        let store = scratch.store.clone();
        async move {
            let write = store.write::<(), _>(move |tx| {
                Box::pin(async move {
                    polity_sql::query(sql).execute(&mut tx.connection).await?;
                    Ok(())
                })
            });
            write.await.unwrap_err()
        }
    };
    assert!(!fails("INSERT INTO tasks (id, state, created_at) VALUES ('t-1', 'open', 0)").await.may_pass());
    assert!(!fails("SELECT json_extract('no JSON', '$.a')").await.may_pass());
    assert!(!fails("SELECT nothing FROM nowhere").await.may_pass());
    // A read-only connection fails with the same code as a disk that has become read-only.
    let mut reader = scratch.store.reader().await.unwrap();
    let read_only = polity_sql::query("DELETE FROM tasks").execute(&mut reader).await.unwrap_err();
    assert!(Error::from(read_only).may_pass());
}

#[tokio::test]
async fn a_delay_begins_anew_where_the_clock_was_set_back_and_ends_once() {
    let scratch = Scratch::new().await;
    scratch
        .execute(
            "INSERT INTO messages (id, task, sender, sender_role, receiver, type, body, attachments, expects, finality,
            due_at, state, created_at) VALUES
            ('m000000001', 't-1', 'root', 'root', 'root', 'general', '{}', '[]', 'nothing', 'final', 1000, 'delayed', 0),
            ('m000000002', 't-1', 'root', 'root', 'root', 'general', '{}', '[]', 'nothing', 'final', 9000, 'delayed', 4000),
            ('m000000003', 't-1', 'root', 'root', 'root', 'general', '{}', '[]', 'nothing', 'final', 9000, 'delayed', 100)",
        )
        .await;
    let at = async |now: i64| {
        let delivered = scratch
            .write(move |tx| {
                Box::pin(async move {
                    tx.now = Timestamp::from_millis(now);
                    Ok(messages::deliver_due(tx).await?.len())
                })
            })
            .await;
        let left = "SELECT id || ' ' || due_at FROM messages WHERE state = 'delayed' ORDER BY seq";
        (delivered, scratch.query(left).await.join(", "))
    };
    // The second message was accepted at 4000. Now the clock shows 500, so the delay of 5000 begins again.
    assert_eq!(at(500).await, (0, "m000000001 1000, m000000002 5500, m000000003 9000".to_owned()));
    assert_eq!(at(1000).await, (1, "m000000002 5500, m000000003 9000".to_owned()));
    assert_eq!(at(5500).await, (1, "m000000003 9000".to_owned()));
    assert_eq!(at(i64::MAX).await, (1, String::new()));
    assert_eq!(at(i64::MAX).await, (0, String::new()));
}

#[tokio::test]
async fn what_is_in_context_is_told_by_numbers_and_not_by_times() {
    let scratch = Scratch::new().await;
    let check = async |statements: &'static str, expect: Option<u64>| {
        scratch.execute(statements).await;
        let found =
            usage::in_context(&mut scratch.store.reader().await.unwrap(), &conversation("root")).await;
        assert_eq!(found.unwrap(), expect, "{statements}");
    };
    check(
        "INSERT INTO turns (agent, task, began_by, state, created_at) VALUES ('root', 't-1', 'm', 'open', 0)",
        None,
    )
    .await;
    let replied = "INSERT INTO model_calls (task, agent, turn, service, model, revision, attempts, prompt_tokens,
            completion_tokens, usage_source, created_at) VALUES ('t-1', 'root', 1, 's', 'm', 1, 1, 70, 7, 'reported', 9000);
        INSERT INTO records (agent, task, turn, body, created_at) VALUES
            ('root', 't-1', 1, '{\"record\":\"replied\",\"text\":\"a\"}', 9000)";
    check(replied, Some(77)).await;
    check(
        "INSERT INTO records (agent, task, turn, body, created_at) VALUES
            ('root', 't-1', 1, '{\"record\":\"compacted\",\"summary\":\"a\"}', 9000)",
        None,
    )
    .await;
    // The clock was set back: the times of these rows are before the time of the summary.
    check(
        "INSERT INTO model_calls (task, agent, turn, service, model, revision, attempts, prompt_tokens,
            completion_tokens, usage_source, created_at) VALUES ('t-1', 'root', 1, 's', 'm', 1, 1, 50, 5, 'reported', 10);
        INSERT INTO records (agent, task, turn, body, created_at) VALUES
            ('root', 't-1', 1, '{\"record\":\"replied\",\"text\":\"b\"}', 10)",
        Some(55),
    )
    .await;
}

/// The triggers of the schema keep the totals of the tables `spent`, `spent_in_tasks`, `spent_by_agents` and `served`.
#[tokio::test]
async fn the_totals_are_those_of_the_rows_whatever_happens_to_the_rows() {
    let scratch = Scratch::new().await;
    let check = async |statements: &'static str, spent: &[&str], served: &[&str]| {
        scratch.execute(statements).await;
        let totals =
            "SELECT concat_ws(' ', service, share, calls, prompt_tokens, completion_tokens, priced, cost)
            FROM spent ORDER BY service, share";
        assert_eq!(scratch.query(totals).await, spent, "{statements}");
        let sums =
            "SELECT concat_ws(' ', service, share, count(*), sum(prompt_tokens), sum(completion_tokens),
            count(cost), total(cost))
            FROM (SELECT *, CASE agent WHEN 'root' THEN 'root' ELSE 'others' END AS share FROM model_calls)
            GROUP BY service, share ORDER BY service, share";
        assert_eq!(scratch.query(sums).await, spent, "{statements}");
        for (table, of) in [("spent_in_tasks", "task"), ("spent_by_agents", "agent")] {
            let totals = format!(
                "SELECT concat_ws(' ', {of}, calls, prompt_tokens, completion_tokens, priced, cost) FROM {table} ORDER BY {of}"
            );
            let sums = format!(
                "SELECT concat_ws(' ', {of}, count(*), sum(prompt_tokens), sum(completion_tokens), count(cost), total(cost))
                FROM model_calls GROUP BY {of} ORDER BY {of}"
            );
            assert_eq!(scratch.query(&totals).await, scratch.query(&sums).await, "{statements}");
        }
        let totals = "SELECT service || ' ' || agents FROM served WHERE agents <> 0 ORDER BY service";
        assert_eq!(scratch.query(totals).await, served, "{statements}");
    };
    check(
        "INSERT INTO model_calls (task, agent, turn, service, model, revision, attempts, prompt_tokens,
            completion_tokens, usage_source, cost, created_at) VALUES
            ('t-1', 'root', 1, 'one', 'm', 1, 1, 10, 1, 'reported', 0.5, 1),
            ('t-1', 'root', 1, 'two', 'm', 1, 1, 20, 2, 'reported', NULL, 1),
            ('t-2', 'root', 2, 'one', 'm', 1, 1, 30, 3, 'reported', NULL, 1),
            ('t-1', 'a-1', 3, 'one', 'm', 1, 1, 40, 4, 'reported', 0.25, 1),
            ('t-2', 'a-2', 4, 'one', 'm', 1, 1, 50, 5, 'reported', 0.25, 1)",
        &["one others 2 90 9 2 0.5", "one root 2 40 4 1 0.5", "two root 1 20 2 0 0.0"],
        &[],
    )
    .await;
    check(
        "DELETE FROM model_calls WHERE task = 't-1'",
        &["one others 1 50 5 1 0.25", "one root 1 30 3 0 0.0"],
        &[],
    )
    .await;
    check(
        "DELETE FROM model_calls;
        INSERT INTO roles (id, task, creator, name, prompt, service, required_capabilities, tool_groups, created_at)
            VALUES ('r-1', 't-1', 'root', 'a', 'p', 'one', '[]', '[]', 1),
            ('r-2', 't-1', 'root', 'b', 'p', 'two', '[]', '[]', 1);
        INSERT INTO agents (id, task, parent, role, depth, created_at) VALUES ('a-1', 't-1', 'root', 'r-1', 1, 1),
            ('a-2', 't-1', 'root', 'r-1', 1, 1), ('a-3', 't-1', 'root', 'r-2', 1, 1)",
        &[],
        &["one 2", "two 1"],
    )
    .await;
    check("UPDATE agents SET ended_at = 5 WHERE id = 'a-1'", &[], &["one 1", "two 1"]).await;
    check("UPDATE agents SET paused_at = 5 WHERE id = 'a-2'", &[], &["one 1", "two 1"]).await;
    check("UPDATE roles SET prompt = 'q', service = 'two' WHERE id = 'r-1'", &[], &["two 2"]).await;
    check("DELETE FROM agents WHERE id = 'a-3'", &[], &["two 1"]).await;
}

/// Statements that show a society read the totals, not the calls of all tasks.
#[tokio::test]
async fn what_was_spent_in_all_tasks_is_not_added_up_again() {
    let scratch = Scratch::new().await;
    for statement in view::usage::STATEMENTS {
        let plan = plan(&scratch, statement).await;
        assert!(plan.contains(" spent") && !plan.contains("model_calls"), "{statement}: {plan}");
        // The index has the largest sums first. So SQLite sorts nothing, and reads no more rows than the page has.
        if statement.contains("FROM spent_") {
            assert!(!plan.contains("TEMP B-TREE"), "{statement}: {plan}");
        }
    }
}
