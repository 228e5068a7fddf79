//! The list of all failure points in the source.

use std::collections::BTreeSet;
use std::path::Path;

/// All failure points: named places in the code at which a test can kill the process. They are grouped by file. The
/// crash matrix finds out which scenarios pass which points.
pub(super) const POINTS: &[&str] = &[
    // Points in `crates/artifacts/src/blobs.rs`.
    "blobs::swept",
    "blobs::begun",
    "blobs::half_written",
    "blobs::written",
    "blobs::before_rename",
    "blobs::renamed",
    "blobs::stored",
    // Points in `crates/artifacts/src/shards.rs`.
    "blobs::shard_made",
    // Points in `crates/artifacts/src/trash.rs`.
    "trash::before_discard",
    "trash::discarded",
    "trash::batch_removed",
    // Points in `crates/artifacts/src/index.rs`.
    "artifacts::inserted",
    "artifacts::granted",
    "artifacts::adopted",
    // Points in `crates/store/src/lib.rs`.
    "store::created",
    "store::looked_at",
    "store::migrated",
    "store::before_close",
    "store::closed",
    // Points in `crates/store/src/writer.rs`.
    "writer::before_begin",
    "writer::job_done",
    "writer::before_commit",
    "writer::committed",
    "writer::answered",
    "writer::rung",
    // Points in `crates/store/src/approvals.rs`.
    "approvals::inserted",
    "approvals::ended",
    "approvals::dropped",
    "approvals::permitted",
    "approvals::permission_removed",
    // Points in `crates/store/src/commands.rs`.
    "commands::started",
    "commands::ended",
    "commands::stopped",
    // Points in `crates/store/src/seen.rs`.
    "seen::read",
    "seen::passed",
    "seen::heard",
    // Points in `crates/store/src/`: one for each statement that writes.
    "agents::inserted",
    "agents::ended",
    "agents::paused",
    "agents::unpaused",
    "contacts::inserted",
    "events::appended",
    "exchanges::inserted",
    "exchanges::sent",
    "exchanges::answered",
    "exchanges::failed",
    "holds::inserted",
    "holds::released",
    "holds::failures_forgotten",
    "messages::inserted",
    "messages::taken",
    "messages::all_taken",
    "messages::settled",
    "messages::answered",
    "messages::failed",
    "messages::released",
    "messages::given_up",
    "messages::reminded",
    "messages::interim_settled",
    "notes::held",
    "notes::dropped",
    "notes::made",
    "notes::named",
    "notes::forgotten",
    "notes::all_forgotten",
    "messages::delivered",
    "messages::bounced",
    "messages::requests_closed",
    "messages::shown",
    "posts::inserted",
    "records::appended",
    "roles::inserted",
    "roles::updated",
    "tasks::inserted",
    "tasks::reopened",
    "tasks::set_idle",
    "tasks::nudged",
    "tasks::stopped",
    "tasks::woken",
    "tasks::worked",
    "work::dropped",
    "work::delayed_dropped",
    "work::withdrawn",
    "work::questions_dropped",
    "turns::begun",
    "turns::ended",
    "sent::inserted",
    "usage::inserted",
    // Points in `crates/runtime/src/society.rs`.
    "society::opened",
    "society::attachments_stored",
    "society::prompted",
    // Points in `crates/runtime/src/rest.rs`.
    "rest::delivered",
    "rest::settled",
    "rest::reminded",
    "rest::given_up",
    // Points in `crates/runtime/src/supervisor.rs`.
    "supervisor::left_work_read",
    "supervisor::left_work_woken",
    "supervisor::left_work_taken_up",
    "supervisor::before_settle",
    "supervisor::deadlock_told",
    "supervisor::due",
    // Points in `crates/runtime/src/ask.rs`.
    "ask::before_attempt",
    "ask::after_attempt",
    "ask::failure_noted",
    // Points in `crates/runtime/src/driver.rs` and `driver/`.
    "driver::taken_up",
    "driver::replayed",
    "driver::took_in",
    "driver::before_model",
    "driver::answered",
    "driver::bytes_taken_out",
    "driver::before_write",
    "driver::written",
    "driver::abandoned",
    "advance::tool_done",
    "bytes::on_disk",
    "closing::said",
    "closing::finished",
    "closing::failed",
    "closing::whole_kept",
    "compaction::before_summary",
    "compaction::summed_up",
    "compaction::written",
    "outside::started",
    "outside::ran",
    "outside::settled",
    // Points in `crates/store/src/maintenance.rs` and its modules.
    "retention::removed",
    "retention::forgotten",
    "forget::removed",
    "gc::grants_removed",
    "gc::artifacts_removed",
    "gc::rows_removed",
    "gc::before_shrink",
    "gc::shrunk",
    "backup::database_copied",
    "backup::before_blob",
    "backup::filled",
    "backup::before_rename",
    "backup::renamed",
    // Points in `run.rs`, `serve.rs` and `output.rs` of `crates/daemon/src/`.
    "run::begun",
    "run::idle",
    "run::stopped",
    "serve::stopped",
    "output::before_shown",
    "output::shown",
    "output::noted",
];

/// The points that a process passes when it resumes the work of an earlier process.
pub(super) const RECOVERY: &[&str] = &[
    "store::created",
    "store::looked_at",
    "store::migrated",
    "blobs::swept",
    "society::opened",
    "run::begun",
    "supervisor::left_work_read",
    "supervisor::left_work_woken",
    "supervisor::left_work_taken_up",
    "driver::taken_up",
    "driver::replayed",
];

/// Points that no scenario reaches, each with the reason.
pub(super) const UNREACHED: &[(&str, &str)] = &[
    (
        "approvals::ended",
        "nobody answers the question of the scenario: see `an_answer_counts_once_wherever_the_daemon_dies`",
    ),
    ("approvals::permitted", "the same as for approvals::ended"),
    ("approvals::permission_removed", "the same as for approvals::ended"),
    (
        "approvals::dropped",
        "a turn with an open question ends only if somebody steers: the same as for agents::paused",
    ),
    (
        "commands::started",
        "not every machine can run commands: see `after_kill_9_an_agent_is_told_once_that_its_command_was_interrupted`",
    ),
    ("commands::ended", "the same as for commands::started"),
    (
        "agents::paused",
        "the scenarios have no daemon that could pause or stop: see `the_state_stays_whole_however_it_is_steered`; each is one transaction",
    ),
    (
        "exchanges::inserted",
        "no command of the scenarios uses the OpenAI endpoint; an exchange sends its message with a key, so only once",
    ),
    ("exchanges::sent", "the same as for exchanges::inserted"),
    ("exchanges::answered", "the same as for exchanges::inserted"),
    ("exchanges::failed", "the same as for exchanges::inserted"),
    (
        "roles::updated",
        "no command of the scenarios changes a role; the change is one statement with its event",
    ),
    (
        "serve::stopped",
        "no scenario uses `polity serve`: see `a_daemon_that_nobody_could_find_ends_as_it_always_does`",
    ),
    (
        "tasks::reopened",
        "the person of the scenarios writes only to new tasks; the change is in the transaction of the message",
    ),
    ("work::dropped", "the same as for agents::paused"),
    ("work::delayed_dropped", "the same as for agents::paused"),
    ("work::withdrawn", "the same as for agents::paused"),
    ("notes::all_forgotten", "the same as for agents::paused"),
    ("holds::failures_forgotten", "the same as for agents::paused"),
];

/// Collects the name in every `point!("…")` below a directory.
fn in_source(directory: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).expect("a directory of the source") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            in_source(&path, found);
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("source");
        let names = text.split("polity_points::point!(\"").skip(1).filter_map(|rest| rest.split('"').next());
        found.extend(names.map(str::to_owned));
    }
}

#[test]
fn every_failure_point_is_listed_and_stands_in_one_place() {
    let mut found = Vec::new();
    for entry in
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates")).expect("the crates")
    {
        in_source(&entry.expect("an entry").path().join("src"), &mut found);
    }
    found.sort_unstable();
    let mut listed: Vec<&str> = POINTS.to_vec();
    listed.sort_unstable();
    assert_eq!(found, listed);
    let unique: BTreeSet<&String> = found.iter().collect();
    assert_eq!(unique.len(), found.len(), "a name is used in two places: {found:?}");
    assert!(UNREACHED.iter().all(|(name, _)| POINTS.contains(name)));
    assert!(RECOVERY.iter().all(|name| POINTS.contains(name)));
}
