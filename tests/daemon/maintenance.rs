//! The commands that check, back up and clean a data directory. Each command first checks whether the data are damaged.
//! If they are, the command reports this, and changes and copies nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use polity_tests::{Answer, Output, Polity, ScriptedServer};
use serde_json::json;

use crate::support::database::Database;
use crate::support::files::{files_below, write};
use crate::support::{home, last_asked, run, start};

const PATIENCE: Duration = Duration::from_secs(60);
const PAGE: usize = 4096;

fn answering() -> (ScriptedServer, Polity) {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let polity = home(&server, &json!({}));
    (server, polity)
}

/// Checks that a command was refused with a single line on the standard error. Returns this line without the program's
/// name.
#[track_caller]
fn complaint(ended: Output) -> String {
    let ended = ended.expect_code(2);
    assert_eq!(ended.stdout, "");
    let [line] = &ended.stderr.lines().collect::<Vec<_>>()[..] else {
        panic!("expected one line:\n{}", ended.stderr)
    };
    line.strip_prefix("polity: ").expect("the name of the program").to_owned()
}

#[track_caller]
fn assert_contains(text: &str, expected: &[&str]) {
    for expected in expected {
        assert!(text.contains(expected), "{expected:?} is not in: {text}");
    }
}

/// Runs `polity db check` on a data directory of the home. Fails if the check finds damage; returns the report.
#[track_caller]
fn assert_good(polity: &Polity, data: &str) -> String {
    let ended = polity.run(&["db", "check", "--data", data]).expect_code(0);
    assert_eq!(ended.stderr, "");
    assert_contains(&ended.stdout, &[&format!("{data}: good; rows: ")]);
    ended.stdout
}

/// Runs `polity db check` on the home's data directory. Fails if the check finds no damage; returns the standard
/// error.
#[track_caller]
fn assert_damaged(polity: &Polity) -> String {
    let ended = polity.run(&["db", "check", "--data", "data"]).expect_code(2);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    assert_contains(&ended.stdout, &["data: damaged; problems: "]);
    ended.stderr
}

/// Runs `polity gc` on the home's data directory, and returns its standard output.
#[track_caller]
fn gc(polity: &Polity, arguments: &[&str]) -> String {
    let ended = polity.run(&[&["gc", "--data", "data"], arguments].concat()).expect_code(0);
    assert_eq!(ended.stderr, "");
    ended.stdout
}

/// Runs `polity gc` beside a daemon on the home's data directory, and returns its standard output.
#[track_caller]
fn gc_by_daemon(polity: &Polity, arguments: &[&str]) -> String {
    let ended = polity.run(&[&["gc", "--data", "data"], arguments].concat()).expect_code(0);
    assert_eq!(ended.stderr, "polity: the daemon that runs on data does this\n");
    ended.stdout
}

/// Returns the paths of all stored blobs.
fn blobs(data: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for shard in std::fs::read_dir(data.join("artifacts")).expect("the artifacts") {
        let shard = shard.expect("a directory");
        if shard.file_name() == "trash" {
            continue;
        }
        let files = std::fs::read_dir(shard.path()).expect("a directory");
        found.extend(files.map(|file| file.expect("a file").path()));
    }
    found
}

/// Returns the path of the blob with these bytes.
#[track_caller]
fn blob_of(data: &Path, bytes: &[u8]) -> PathBuf {
    let found = blobs(data).into_iter().find(|path| std::fs::read(path).expect("bytes") == bytes);
    found.expect("stored bytes")
}

fn damage_database(data: &Path, damage: impl FnOnce(&mut Vec<u8>)) {
    let path = data.join("polity.db");
    let mut bytes = std::fs::read(&path).expect("a database");
    damage(&mut bytes);
    std::fs::write(&path, bytes).expect("a database");
}

#[test]
fn a_byte_flipped_in_the_structure_of_the_database_is_refused_before_anything_is_begun() {
    let (server, polity) = answering();
    run(&polity, &["what?"]).expect_code(0);
    let data = polity.data_dir();
    let whole = std::fs::read(data.join("polity.db")).expect("a database");
    let pages = whole.len() / PAGE;
    // The first byte of a B-tree page is its type. Damage this byte in the second page of the file, and then in the
    // first B-tree page in the second half of the file.
    let is_tree = |page: &usize| [2, 5, 10, 13].contains(&whole[page * PAGE]);
    assert!(is_tree(&1));
    let later = (pages / 2..pages).find(is_tree).expect("a page of a tree");
    let way_out = [
        "polity.db is damaged: ",
        "`polity db check --data data`",
        "restore a backup",
        "another data directory",
    ];
    // SQLite may create or remove an empty log beside the database, so ignore the log and its index.
    let is_log = |path: &PathBuf| ["polity.db-wal", "polity.db-shm"].iter().any(|name| path.ends_with(name));
    let files = || files_below(&data).into_iter().filter(|path| !is_log(path)).collect::<BTreeSet<_>>();
    for page in [1, later] {
        let mut damaged = whole.clone();
        damaged[page * PAGE] ^= 0xff;
        std::fs::write(data.join("polity.db"), &damaged).expect("a database");
        let before = files();
        for arguments in [&["what?"][..], &["--resume"]] {
            assert_contains(&complaint(run(&polity, arguments)), &way_out);
            assert_eq!(files(), before, "page {page}");
        }
        assert_contains(&complaint(polity.run(&["gc", "--data", "data"])), &way_out);
        assert_contains(&assert_damaged(&polity), &["polity: polity.db: "]);
        let after = std::fs::read(data.join("polity.db")).expect("a database");
        assert!(after == damaged, "the refusals changed the database, whose page {page} is damaged");
    }
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_byte_flipped_in_a_row_is_found() {
    let (_server, polity) = answering();
    run(&polity, &["what?"]).expect_code(0);
    damage_database(&polity.data_dir(), |bytes| {
        let body = br#"{"text":"what?"}"#;
        let at = bytes.windows(body.len()).position(|window| window == body).expect("a message");
        bytes[at] = b'<';
    });
    let told = assert_damaged(&polity);
    assert_contains(&told, &["polity: polity.db: damaged row in table messages: m000000001: "]);
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn a_truncated_database_is_refused() {
    let (server, polity) = answering();
    run(&polity, &["what?"]).expect_code(0);
    for keep in [PAGE * 7, PAGE * 3 + 100, 50] {
        damage_database(&polity.data_dir(), |bytes| bytes.truncate(keep));
        assert_contains(
            &complaint(run(&polity, &["what?"])),
            &["polity.db is damaged: ", "`polity db check --data data`"],
        );
        assert_contains(&assert_damaged(&polity), &["polity: polity.db: "]);
        let backup = polity.run(&["db", "backup", "copy", "--data", "data"]);
        assert_contains(&complaint(backup), &["polity.db is damaged: "]);
    }
    assert!(!polity.home().join("copy").exists());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_backup_of_a_running_daemon_is_a_data_directory_that_resumes() {
    let answers = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&answers);
    let server = ScriptedServer::start(move |_| match switch.load(Ordering::SeqCst) {
        true => Answer::say("at last"),
        false => Answer::hang(),
    });
    let polity = home(&server, &json!({}));
    let attached = write(&polity, "notes.txt", b"the notes");
    let running = start(&polity, &["what?", "--attach", &attached]);
    server.wait_until(PATIENCE, |requests| requests.len() == 1);
    assert_good(&polity, "data");
    let made = polity.run(&["db", "backup", "copy", "--data", "data"]).expect_code(0);
    assert_eq!(made.stderr, "");
    assert_contains(&made.stdout, &["copy: database: ", "artifacts: 1 file, 9 bytes"]);
    let names: BTreeSet<String> = std::fs::read_dir(polity.home().join("copy"))
        .expect("the backup")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names, ["artifacts", "polity.db"].map(str::to_owned).into());
    assert!(!leftovers(&polity), "there are leftovers of an unfinished backup");
    running.kill9();

    // Remove the original, to check that the backup is enough to restore the society.
    std::fs::remove_dir_all(polity.data_dir()).expect("the data");
    let copied = Command::new("cp").args(["-r", "copy", "restored"]).current_dir(polity.home()).status();
    assert!(copied.expect("cp").success());
    assert_good(&polity, "restored");
    answers.store(true, Ordering::SeqCst);
    let resumed = polity.run(&["run", "--resume", "--data", "restored"]).expect_code(0);
    assert_eq!(resumed.stdout, "at last\n");
    assert!(last_asked(&server).text_contains("what?"));
    assert_eq!(
        std::fs::read(blob_of(&polity.home().join("restored"), b"the notes")).expect("bytes"),
        b"the notes"
    );
    assert_good(&polity, "restored");
}

fn leftovers(polity: &Polity) -> bool {
    let mut entries = std::fs::read_dir(polity.home()).expect("the home");
    entries.any(|entry| entry.expect("an entry").file_name().to_string_lossy().contains("unfinished"))
}

#[test]
fn a_backup_replaces_nothing_and_tells_what_it_cannot_hold() {
    let (_server, polity) = answering();
    let attached = write(&polity, "notes.txt", b"the notes");
    run(&polity, &["what?", "--attach", &attached]).expect_code(0);
    std::fs::create_dir(polity.home().join("empty")).expect("a directory");
    for taken in ["notes.txt", "empty", "data"] {
        let told = complaint(polity.run(&["db", "backup", taken, "--data", "data"]));
        assert_contains(&told, &[taken, "is there already"]);
    }
    assert_eq!(std::fs::read(&attached).expect("the file"), b"the notes");
    let told = complaint(polity.run(&["db", "backup", "nowhere/copy", "--data", "data"]));
    assert_contains(&told, &["cannot write nowhere/copy: "]);

    std::fs::remove_file(blob_of(&polity.data_dir(), b"the notes")).expect("stored bytes");
    let made = polity.run(&["db", "backup", "copy", "--data", "data"]).expect_code(2);
    assert_contains(&made.stderr, &["is missing (artifact:"]);
    assert_contains(&made.stdout, &["damaged and not in it: 1"]);
    assert!(!leftovers(&polity));
    polity.run(&["run", "go on", "--data", "copy"]).expect_code(0);
}

#[test]
fn a_missing_and_a_changed_blob_are_found() {
    let (_server, polity) = answering();
    let first = write(&polity, "first.txt", b"the first");
    let second = write(&polity, "second.txt", b"the second");
    run(&polity, &["what?", "--attach", &first, "--attach", &second]).expect_code(0);
    assert_contains(&assert_good(&polity, "data"), &["artifacts: 2 files, 19 bytes"]);
    std::fs::write(blob_of(&polity.data_dir(), b"the first"), b"The first").expect("stored bytes");
    std::fs::remove_file(blob_of(&polity.data_dir(), b"the second")).expect("stored bytes");
    let told = assert_damaged(&polity);
    let mut lines: Vec<&str> = told.lines().collect();
    lines.sort_by_key(|line| line.contains("is missing"));
    let [changed, missing] = lines[..] else { panic!("expected two lines:\n{told}") };
    assert_contains(
        changed,
        &["polity: artifacts: blob ", "is damaged: its bytes now hash to ", "(artifact:"],
    );
    assert_contains(missing, &["polity: artifacts: blob ", "is missing (artifact:"]);
}

#[test]
fn a_check_needs_to_write_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let (_server, polity) = answering();
    run(&polity, &["what?"]).expect_code(0);
    let allow = |directory, file| {
        let set = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode));
        set(&polity.data_dir().join("polity.db"), file).expect("permissions of the file");
        set(&polity.data_dir(), directory).expect("permissions of the directory");
    };
    allow(0o500, 0o400);
    assert_good(&polity, "data");
    allow(0o700, 0o600);
    run(&polity, &["once more"]).expect_code(0);
}

#[test]
fn what_nobody_needs_is_freed_and_what_is_needed_stays() {
    let (_server, polity) = answering();
    let needed = write(&polity, "needed.txt", b"needed");
    let forgotten = write(&polity, "forgotten.txt", b"forgotten");
    run(&polity, &["what?", "--attach", &needed, "--attach", &forgotten]).expect_code(0);
    let mut database = Database::write(&polity.data_dir());
    database.execute(
        "DELETE FROM artifact_grants WHERE artifact IN (SELECT id FROM artifacts WHERE filename = 'forgotten.txt')",
    );
    database.execute("DELETE FROM artifacts WHERE filename = 'forgotten.txt'");
    drop(database);
    let all = blobs(&polity.data_dir());
    let orphan = blob_of(&polity.data_dir(), b"forgotten");
    assert_contains(&assert_good(&polity, "data"), &["not needed: 1 file, 9 bytes (`polity gc --data data`"]);

    let told = gc(&polity, &["--dry-run"]);
    assert_contains(
        &told,
        &["would be removed: artifacts: 0; stored: 1 file, 9 bytes; events: 0", "nothing was removed"],
    );
    assert_eq!(blobs(&polity.data_dir()), all);

    assert_contains(
        &gc(&polity, &[]),
        &["removed: artifacts: 0; stored: 1 file, 9 bytes; events: 0; database: "],
    );
    assert_eq!(blobs(&polity.data_dir()), all.into_iter().filter(|blob| *blob != orphan).collect());
    assert_contains(&gc(&polity, &[]), &["stored: 0 files, 0 bytes"]);
    assert_good(&polity, "data");
    run(&polity, &["once more"]).expect_code(0);
}

#[test]
fn artifacts_of_tasks_that_are_long_over_go_only_when_asked_for_and_unless_they_are_named() {
    let (_server, polity) = answering();
    for name in ["gone.txt", "named.txt", "asked.txt"] {
        let attached = write(&polity, name, name.as_bytes());
        run(&polity, &["old", "--attach", &attached]).expect_code(0);
    }
    let mut database = Database::write(&polity.data_dir());
    for table in ["tasks", "turns", "messages", "records", "artifacts"] {
        let sixty_days: &'static str = match table {
            "tasks" => "UPDATE tasks SET created_at = created_at - 60 * 86400000",
            "turns" => "UPDATE turns SET created_at = created_at - 60 * 86400000",
            "messages" => "UPDATE messages SET created_at = created_at - 60 * 86400000",
            "records" => "UPDATE records SET created_at = created_at - 60 * 86400000",
            _ => "UPDATE artifacts SET created_at = created_at - 60 * 86400000",
        };
        database.execute(sixty_days);
    }
    // In one of the tasks, an agent still waits for an answer from the user.
    database.execute(
        "UPDATE messages SET expects = 'answer' WHERE receiver = 'user'
         AND task = (SELECT task FROM artifacts WHERE filename = 'asked.txt')",
    );
    let [[named]] = &database.texts::<1>("SELECT id FROM artifacts WHERE filename = 'named.txt'")[..] else {
        panic!("expected one artifact")
    };
    let messages = database.number("SELECT count(*) FROM messages");
    let prompt = format!("look at artifact:{named} again");
    drop(database);
    run(&polity, &[&prompt]).expect_code(0);
    let all = blobs(&polity.data_dir());
    let gone = blob_of(&polity.data_dir(), b"gone.txt");

    assert_contains(&gc(&polity, &[]), &["artifacts: 0; stored: 0 files"]);
    assert_contains(&gc(&polity, &["--older-than", "90d"]), &["artifacts: 0; stored: 0 files"]);
    let expected = "artifacts: 1; stored: 1 file, 8 bytes";
    assert_contains(&gc(&polity, &["--older-than", "30d", "--dry-run"]), &[expected]);
    assert_eq!(blobs(&polity.data_dir()), all);
    assert_contains(&gc(&polity, &["--older-than", "30d"]), &[expected]);
    assert_eq!(blobs(&polity.data_dir()), all.into_iter().filter(|blob| *blob != gone).collect());
    assert_good(&polity, "data");
    let mut database = Database::read(&polity.data_dir());
    assert_eq!(
        database.texts::<1>("SELECT filename FROM artifacts ORDER BY 1"),
        [["asked.txt"], ["named.txt"]]
    );
    assert_eq!(
        database.number("SELECT count(*) FROM messages"),
        messages + 2,
        "`polity gc` must not remove messages"
    );
}

#[test]
fn events_are_bounded_by_the_settings_and_history_is_not() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let polity = home(&server, &json!({"retention": {"maxEvents": 1}}));
    run(&polity, &["what?"]).expect_code(0);
    let count = |query: &'static str| Database::read(&polity.data_dir()).number(query);
    const EVENTS: &str = "SELECT count(*) FROM events";
    const HISTORY: &str = "SELECT (SELECT count(*) FROM messages) + (SELECT count(*) FROM records)";
    let (events, history) = (count(EVENTS), count(HISTORY));
    assert!(events > 1);
    let expected = format!("events: {}", events - 1);
    assert_contains(&gc(&polity, &["--dry-run"]), &[&expected]);
    assert_eq!(count(EVENTS), events);
    assert_contains(&gc(&polity, &[]), &[&expected]);
    assert_eq!((count(EVENTS), count(HISTORY)), (1, history));
    assert_eq!(run(&polity, &["what else?"]).expect_code(0).stdout, "42\n");
}

#[test]
fn nothing_is_freed_while_a_society_lives_there() {
    let server = ScriptedServer::start(|_| Answer::hang());
    let polity = home(&server, &json!({}));
    let running = start(&polity, &["wait"]);
    server.wait_until(PATIENCE, |requests| requests.len() == 1);
    for arguments in [&["gc", "--data", "data"][..], &["gc", "--dry-run", "--data", "data"]] {
        assert_contains(&complaint(polity.run(arguments)), &["another polity is using", "data"]);
    }
    drop(running);
}

#[test]
fn a_daemon_frees_what_nobody_needs_and_works_on() {
    let (_server, polity) = answering();
    let forgotten = write(&polity, "forgotten.txt", b"forgotten");
    run(&polity, &["what?", "--attach", &forgotten]).expect_code(0);
    let mut database = Database::write(&polity.data_dir());
    database.execute("DELETE FROM artifact_grants");
    database.execute("DELETE FROM artifacts WHERE filename = 'forgotten.txt'");
    drop(database);
    let orphan = blob_of(&polity.data_dir(), b"forgotten");
    let daemon = polity.spawn(&["serve", "--data", "data", "--listen", "127.0.0.1:0"]);
    daemon.stderr_line("ready");
    let fresh = write(&polity, "fresh.txt", b"fresh");
    polity.run(&["artifact", "put", &fresh, "--data", "data"]).expect_code(0);
    assert_contains(
        &gc_by_daemon(&polity, &["--dry-run"]),
        &["would be removed: artifacts: 0; stored: 1 file, 9 bytes"],
    );
    assert!(blobs(&polity.data_dir()).contains(&orphan));
    let told = gc_by_daemon(&polity, &[]);
    assert_contains(&told, &["removed: artifacts: 0; stored: 1 file, 9 bytes", "are kept for 7 days in"]);
    assert!(!blobs(&polity.data_dir()).contains(&orphan));
    assert_contains(
        &gc_by_daemon(&polity, &["--empty-trash"]),
        &["stored: 0 files", "trash: 1 file, 9 bytes"],
    );
    let answer = polity.run(&["send", "--wait", "still there?", "--data", "data"]).expect_code(0);
    assert_eq!(answer.stdout, "42\n");
    drop(daemon);
    assert_good(&polity, "data");
}

#[test]
fn nothing_is_freed_while_somebody_looks_and_nobody_looks_while_something_is_freed() {
    let (_server, polity) = answering();
    run(&polity, &["what?"]).expect_code(0);
    let open = || std::fs::File::create(polity.data_dir().join("care.lock")).expect("a lock");
    let check = ["db", "check", "--data", "data"];
    let backup = ["db", "backup", "copy", "--data", "data"];
    let busy = ["another polity is checking, backing up or cleaning", "data"];
    let looking = open();
    looking.lock_shared().expect("the lock");
    assert_contains(&complaint(polity.run(&["gc", "--data", "data"])), &busy);
    polity.run(&check).expect_code(0);
    polity.run(&backup).expect_code(0);
    drop(looking);
    let cleaning = open();
    cleaning.lock().expect("the lock");
    for arguments in [&check[..], &backup, &["gc", "--data", "data"]] {
        assert_contains(&complaint(polity.run(arguments)), &busy);
    }
    drop(cleaning);
    gc(&polity, &[]);
}

#[test]
fn a_directory_without_a_society_is_told_and_not_made() {
    let (_server, polity) = answering();
    for arguments in [
        &["db", "check", "--data", "nowhere"][..],
        &["db", "backup", "copy", "--data", "nowhere"],
        &["gc", "--data", "nowhere"],
        &["db", "check", "--data", "config"],
    ] {
        let told = complaint(polity.run(arguments));
        assert_contains(&told, &["there is no society in ", "--data"]);
    }
    assert!(!polity.home().join("nowhere").exists() && !polity.home().join("copy").exists());
    polity.run(&["gc", "--older-than", "30", "--data", "data"]).expect_code(2);
    polity.run(&["db"]).expect_code(2);
}

#[test]
fn a_newer_database_is_not_looked_at() {
    let (_server, polity) = answering();
    run(&polity, &["what?"]).expect_code(0);
    Database::write(&polity.data_dir()).execute(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9999, 'of a later time', 1, x'00', 0)",
    );
    assert_contains(&complaint(polity.run(&["db", "check", "--data", "data"])), &["newer polity", "9999"]);
}
