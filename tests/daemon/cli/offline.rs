//! Runs the commands that only read on a data directory without a daemon. They must print the same as with a daemon,
//! and must change no file.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use polity_tests::{Answer, Layer, Order, Output, Polity, Running, ScriptedServer};
use serde_json::{Value, json};

use super::{ask, refused, rows, serve, told};
use crate::support::database::Database;
use crate::support::files::{PICTURE, files_below, write};
use crate::support::hiring::Gate;
use crate::support::{app, home, run, start};

const PATIENCE: Duration = Duration::from_secs(60);
const READ_ONLY: i64 = 30;

/// Returns a home in which a finished `polity run` has shown a picture to the built-in models.
#[track_caller]
fn looked_at_picture() -> Polity {
    let polity = Polity::new(&json!({"services": []}), &app(&json!({"language": "en"})));
    let path = write(&polity, "picture.png", PICTURE);
    let answered = run(&polity, &["What is in it?", "--attach", &path]).expect_code(0);
    assert!(answered.stdout.contains("480 × 270"), "{}", answered.stdout);
    polity
}

/// Returns a home in which `polity run` is at work. Its model has received a request, and answers only when the test
/// opens the gate.
#[track_caller]
fn at_work() -> (ScriptedServer, Polity, Running, Gate) {
    let gate = Gate::default();
    let closed = gate.clone();
    let server = ScriptedServer::start(move |_| {
        closed.pass();
        Answer::say("42")
    });
    let polity = home(&server, &json!({}));
    let running = start(&polity, &["how much?"]);
    server.wait_until(PATIENCE, |requests| requests.len() == 1);
    (server, polity, running, gate)
}

/// Returns all files below a directory, each with its length and a hash of its bytes.
///
/// Leaves out two files, because SQLite may create them even if it only reads. The first is the `-shm` file, which is
/// shared memory of the processes that use the database. The second is the `-wal` file, if it is empty.
fn contents(directory: &Path) -> BTreeMap<PathBuf, (usize, u64)> {
    let files = files_below(directory).into_iter();
    let named = files.map(|path| (path.clone(), std::fs::read(path).expect("a file")));
    named
        .filter(|(path, bytes)| {
            let is = |end: &str| path.to_string_lossy().ends_with(end);
            !(is("polity.db-shm") || is("polity.db-wal") && bytes.is_empty())
        })
        .map(|(path, bytes)| {
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            (path, (bytes.len(), hasher.finish()))
        })
        .collect()
}

fn log_bytes(polity: &Polity) -> u64 {
    std::fs::metadata(polity.data_dir().join("polity.db-wal")).map_or(0, |log| log.len())
}

fn first<'r>(rows: &'r [Value], name: &str) -> &'r str {
    rows[0][name].as_str().expect("a text")
}

/// Returns every command that only reads, with ids from the home's data directory.
#[track_caller]
fn readings(polity: &Polity) -> Vec<Vec<String>> {
    let (tasks, messages) = (rows(polity, &["tasks"]), rows(polity, &["messages"]));
    let (artifacts, services) = (rows(polity, &["artifacts"]), rows(polity, &["services"]));
    let agents = rows(polity, &["agents", "--all", "--capability", "vision"]);
    let lists = [
        &["tasks"][..],
        &["agents"],
        &["agents", "--all"],
        &["agent", "root"],
        &["agent", first(&agents, "id")],
        &["agent", first(&agents, "id"), "--conversation"],
        &["agent", first(&agents, "id"), "--request"],
        &["agent", "root", "--sent", "1"],
        &["why", first(&artifacts, "reference"), "--agent", "root"],
        &["messages"],
        &["messages", "--task", first(&tasks, "id"), "--limit", "2"],
        &["messages", first(&messages, "id")],
        &["search", "what", "IN"],
        &["artifacts"],
        &["artifacts", "--kind", "image"],
        &["services"],
        &["services", first(&services, "id")],
        &["usage"],
        &["usage", "--agent", "root"],
        &["events"],
        &["events", "--after", "0"],
    ];
    let others = [
        &["artifact", "get", first(&artifacts, "reference")][..],
        &["export"],
        &["export", first(&tasks, "id"), "--format", "json"],
        // Commands that ask for something that does not exist.
        &["agent", "nobody-1234"],
        &["messages", "m999999999"],
        &["artifact", "get", "artifact:none"],
        &["export", "task-none"],
        &["tasks", "--state", "open"],
    ];
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let plain = lists.iter().chain(&others).map(|words| owned(words));
    let as_json = lists.iter().map(|words| owned(&[words, &["--json"][..]].concat()));
    plain.chain(as_json).collect()
}

/// Runs the commands, and returns their output and exit codes.
#[track_caller]
fn printed(polity: &Polity, readings: &[Vec<String>]) -> Vec<(Vec<String>, Option<i32>, String, String)> {
    let printed = readings.iter().map(|words| {
        let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        let Output { code, stdout, stderr } = ask(polity, &arguments);
        (words.clone(), code, stdout, stderr)
    });
    printed.collect()
}

#[test]
fn what_is_read_is_the_same_with_a_daemon_and_without() {
    let polity = looked_at_picture();
    let before = contents(&polity.data_dir());
    let readings = readings(&polity);
    let without = printed(&polity, &readings);
    for (words, code, stdout, stderr) in &without[..21] {
        assert_eq!((code, stdout.is_empty()), (&Some(0), false), "{words:?}");
        let shows = words.iter().find(|word| ["--request", "--sent"].contains(&word.as_str()));
        if let Some(option) = shows {
            // Standard output contains only the request. The facts about the request are on standard error.
            assert!(serde_json::from_str::<Value>(stdout).is_ok(), "{stdout}");
            let form = if option == "--sent" { "as described" } else { "as image_url" };
            assert!(stderr.contains(form), "{stderr}");
        } else {
            assert_eq!(stderr, "", "{words:?}");
        }
    }
    assert_eq!(contents(&polity.data_dir()), before, "reading has changed something");
    let daemon = serve(&polity);
    let with = printed(&polity, &readings);
    daemon.terminate();
    daemon.wait().expect_code(0);
    assert_eq!(printed(&polity, &readings), without, "the output differs after the daemon has ended");
    for ((words, code, stdout, stderr), with) in without.into_iter().zip(with) {
        // Without a daemon, the command that starts one stands above advice that needs one.
        let stdout = stdout.replace("  → first start a daemon: polity serve --data data\n", "");
        assert_eq!((words, code, stdout, stderr), with);
    }
}

#[test]
fn artifacts_come_out_byte_for_byte_and_are_looked_at_before() {
    let polity = looked_at_picture();
    let before = contents(&polity.data_dir());
    let pictures = rows(&polity, &["artifacts", "--kind", "image"]);
    let reference = first(&pictures, "reference");
    let fetched = ask(&polity, &["artifact", "get", reference, "-o", "copy.png"]).expect_code(0);
    assert_eq!(fetched.stdout, "");
    assert_eq!(std::fs::read(polity.home().join("copy.png")).expect("the copy"), PICTURE);
    ask(&polity, &["export", "-o", "task.md", "--with-artifacts", "files"]).expect_code(0);
    let written = files_below(&polity.home().join("files"));
    assert!(
        written.iter().any(|file| std::fs::read(file).is_ok_and(|bytes| bytes == PICTURE)),
        "{written:?}"
    );
    assert_eq!(contents(&polity.data_dir()), before);

    let stored = files_below(&polity.data_dir().join("artifacts"));
    let blob = stored.iter().find(|file| std::fs::read(file).is_ok_and(|bytes| bytes == PICTURE));
    std::fs::write(blob.expect("the stored picture"), &PICTURE[1..]).expect("a file");
    let damaged = ask(&polity, &["artifact", "get", reference, "-o", "damaged.png"]).expect_code(1);
    assert!(damaged.stderr.contains("is damaged"), "{}", damaged.stderr);
    assert!(!polity.home().join("damaged.png").exists());
}

#[test]
fn what_a_killed_run_has_left_is_read_as_it_is() {
    let (_server, polity, running, gate) = at_work();
    running.kill9();
    gate.open();
    assert!(log_bytes(&polity) > 0, "the write-ahead log is empty");
    let before = contents(&polity.data_dir());
    let check = || {
        let words = told(&polity, &["messages", "--from", "user"]);
        assert!(words.contains("user → root") && words.contains("how much?"), "{words}");
        let open = rows(&polity, &["tasks", "--state", "open"]);
        assert_eq!(open.len(), 1, "the task is not open any more: {open:?}");
        assert!(told(&polity, &["export"]).starts_with("# how much?"));
        assert_eq!(contents(&polity.data_dir()), before, "reading has changed a file");
    };
    check();
    // If a data directory was copied, or after a power cut, the log of the database exists but the `-shm` file does
    // not. The commands must also work then.
    std::fs::remove_file(polity.data_dir().join("polity.db-shm")).expect("a file");
    check();
}

#[test]
fn a_run_that_is_at_work_is_read_beside_and_goes_on() {
    let (server, polity, running, gate) = at_work();
    for _ in 0..3 {
        assert!(told(&polity, &["messages"]).contains("how much?"));
        assert_eq!(rows(&polity, &["tasks", "--state", "open"]).len(), 1);
        assert!(told(&polity, &["agents"]).contains("root"));
    }
    gate.open();
    assert_eq!(running.wait().expect_code(0).stdout, "42\n");
    assert_eq!(server.request_count(), 1);
    assert!(told(&polity, &["messages", "--to", "user"]).contains("42"));
}

/// Commands that only read, and whose arguments contain no id.
const READING: &[&[&str]] = &[
    &["tasks"],
    &["agents"],
    &["agent", "root"],
    &["messages"],
    &["artifacts"],
    &["artifact", "get", "artifact:abc"],
    &["services"],
    &["usage"],
    &["events"],
    &["export"],
];

#[test]
fn where_nothing_was_run_that_is_said_and_nothing_is_made() {
    let polity = Polity::new(&json!({"services": []}), &app(&json!({})));
    std::fs::remove_dir_all(polity.config_dir()).expect("a directory");
    for data in ["nowhere", "data"] {
        for command in READING {
            let ended = polity.run(&[command, &["--data", data][..]].concat()).expect_code(2);
            let expect = format!(
                "polity: there is no society in {data}: nothing was run there yet; give a prompt first: \
                 polity run --data {data} \"…\", or choose another data directory with --data\n"
            );
            assert_eq!((ended.stdout.as_str(), ended.stderr), ("", expect), "{command:?}");
        }
    }
    let own = polity.run(&["messages"]).expect_code(2);
    assert!(own.stderr.contains(".local/share/polity: nothing was run there yet"), "{}", own.stderr);
    assert_eq!(files_below(polity.home()), [] as [PathBuf; 0]);
    assert!(!polity.home().join("nowhere").exists() && !polity.home().join(".config").exists());
}

#[test]
fn reading_makes_no_configuration() {
    let polity = looked_at_picture();
    std::fs::rename(polity.config_dir(), polity.home().join("elsewhere")).expect("a directory");
    assert!(told(&polity, &["messages"]).contains("What is in it?"));
    assert!(!polity.home().join(".config").exists() && !polity.config_dir().exists());
    let service = json!({"services": [{"id": "other", "baseURL": "rehearsal:", "model": "rehearsal-text"}]});
    std::fs::write(polity.home().join("elsewhere/llmservices.json"), service.to_string()).expect("a file");
    assert_eq!(first(&rows(&polity, &["services", "--config", "elsewhere"]), "id"), "other");
    let nowhere = refused(&polity, &["services", "--config", "none"]);
    assert!(nowhere.contains("there is no directory none"), "{nowhere}");
}

#[test]
fn other_schemas_and_damage_are_told() {
    let polity = looked_at_picture();
    let file = polity.data_dir().join("polity.db");
    let check = |says: &[&str]| {
        let before = std::fs::read(&file).expect("the database");
        for command in READING {
            let told = refused(&polity, command);
            for says in says {
                assert!(told.contains(says), "{says} is not in {told}");
            }
        }
        assert!(std::fs::read(&file).expect("the database") == before, "{says:?}");
    };
    let change = |statement| Database::write(&polity.data_dir()).execute(statement);
    change("UPDATE _sqlx_migrations SET version = version + 9000 WHERE version = 1");
    check(&["data/polity.db was written by a newer polity (schema 9001"]);
    change("DELETE FROM _sqlx_migrations WHERE version > 2");
    check(&["data/polity.db has an older schema", "polity serve --data data, or polity run --data data"]);
    change("PRAGMA wal_checkpoint(TRUNCATE)");
    let mut bytes = std::fs::read(&file).expect("the database");
    bytes[..16].fill(0x7f);
    std::fs::write(&file, bytes).expect("a file");
    check(&["the database data/polity.db is damaged", "polity db check --data data", "restore a backup"]);
    std::fs::write(&file, "").expect("a file");
    check(&["polity.db is missing or empty", "restore a backup"]);
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "needs Linux with glibc")]
fn a_data_directory_that_may_not_be_written_to_is_read() {
    let forbid = |layer: &Layer, error| {
        layer.order(Order::Write, error);
        layer.order(Order::Change, error);
    };
    let mut polity = looked_at_picture();
    let layer = Layer::below(&mut polity);
    forbid(&layer, READ_ONLY);
    assert!(told(&polity, &["messages"]).contains("What is in it?"));
    assert!(told(&polity, &["export"]).contains("480 × 270"));
    assert!(!polity.data_dir().join("polity.db-shm").exists(), "a file was created in a read-only directory");

    let (_server, mut polity, running, gate) = at_work();
    running.kill9();
    gate.open();
    let layer = Layer::below(&mut polity);
    forbid(&layer, READ_ONLY);
    assert!(
        told(&polity, &["messages"]).contains("how much?"),
        "the message in the write-ahead log is not shown"
    );
    forbid(&layer, 0);
    assert!(told(&polity, &["messages"]).contains("how much?"));
}

#[test]
fn a_log_that_cannot_be_read_is_not_passed_over() {
    let (_server, polity, running, gate) = at_work();
    running.kill9();
    gate.open();
    let shared = polity.data_dir().join("polity.db-shm");
    std::fs::remove_file(&shared).expect("a file");
    // Put a link in the place of the file. SQLite does not follow links, so it cannot create the file. A read-only
    // directory would have the same effect.
    std::os::unix::fs::symlink("nowhere", &shared).expect("a link");
    let missing = refused(&polity, &["messages"]);
    assert!(missing.contains("make the data directory writable"), "{missing}");
    std::fs::remove_file(&shared).expect("the link");
    assert!(told(&polity, &["messages"]).contains("how much?"));
}

#[test]
fn a_configuration_that_cannot_be_used_is_told() {
    let polity = looked_at_picture();
    polity.write_config("app.json", "{");
    let told = refused(&polity, &["messages"]);
    assert!(told.contains("app.json"), "{told}");
}

#[test]
fn what_a_daemon_prints_when_it_comes_back_goes_on_from_there() {
    let (_server, polity, running, gate) = at_work();
    running.kill9();
    let before = told(&polity, &["events", "--after", "0"]);
    gate.open();
    let daemon = serve(&polity);
    told(&polity, &["run", "--resume"]);
    let after = told(&polity, &["events", "--after", "0"]);
    assert!(after.starts_with(&before) && after.len() > before.len(), "{before}\n---\n{after}");
    daemon.kill9();
    assert!(told(&polity, &["events", "--after", "0"]).starts_with(&after));
}
