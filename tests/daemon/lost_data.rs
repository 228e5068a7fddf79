//! Files of a data directory that are lost, removed or replaced. The daemon must detect this, and must not
//! acknowledge a message that it cannot keep.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polity_tests::{Answer, Layer, Order, Polity, Running, ScriptedServer};
use serde_json::json;

use crate::support::database::Database;
use crate::support::files::{files_below, write};
use crate::support::{home, run};

const PATIENCE: Duration = Duration::from_secs(60);

fn answering() -> (ScriptedServer, Polity) {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let polity = home(&server, &json!({}));
    (server, polity)
}

fn artifacts(polity: &Polity) -> BTreeSet<PathBuf> {
    files_below(&polity.data_dir().join("artifacts")).into_iter().collect()
}

/// Starts a daemon, and returns it with its address and token.
#[track_caller]
fn serve(polity: &Polity) -> (Running, String, String) {
    let running = polity.spawn(&["serve", "--data", "data", "--listen", "127.0.0.1:0"]);
    let ready = running.stderr_line("ready: http://");
    let address = ready.split_once("http://").expect("an address").1.trim().to_owned();
    let token = fs::read_to_string(polity.data_dir().join("token")).expect("a token").trim().to_owned();
    (running, address, token)
}

/// Sends a message of the person, and returns the status of the answer.
fn post(address: &str, token: &str, text: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    let (body, mut answer) = (json!({"text": text}).to_string(), String::new());
    write!(
        stream,
        "POST /api/messages HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )?;
    stream.read_to_string(&mut answer)?;
    answer.split(' ').nth(1).map(str::to_owned).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo runs").success());
}

#[test]
fn a_lost_database_beside_artifacts_is_never_taken_for_a_new_society() {
    let (server, polity) = answering();
    let attached = write(&polity, "precious.txt", b"precious");
    run(&polity, &["keep this", "--attach", &attached]).expect_code(0);
    let (data, all) = (polity.data_dir(), artifacts(&polity));
    let (database, saved) = (data.join("polity.db"), polity.home().join("saved.db"));
    fs::rename(&database, &saved).expect("moved");
    let check = |is_there: bool| {
        for arguments in [
            &["run", "hello"][..],
            &["serve", "--listen", "127.0.0.1:0"],
            &["db", "check"],
            &["db", "backup", "copy"],
            &["gc"],
            &["gc", "--older-than", "0d", "--empty-trash"],
            &["tasks"],
        ] {
            let ended = polity.run(&[arguments, &["--data", "data"]].concat()).expect_code(2);
            let told = "its database polity.db is missing or empty";
            assert!(ended.stderr.contains(told), "{arguments:?}: {}", ended.stderr);
            assert!(ended.stderr.contains("restore a backup"), "{}", ended.stderr);
        }
        let report = polity.run(&["doctor", "--offline", "--data", "data"]).expect_code(1);
        assert!(report.stdout.contains("polity.db is missing or empty"), "{}", report.stdout);
        assert!(report.stdout.contains("restore a backup"), "{}", report.stdout);
        assert_eq!(database.exists(), is_there);
        assert_eq!(artifacts(&polity), all);
    };
    check(false);
    fs::write(&database, "").expect("an empty file");
    check(true);
    assert_eq!(server.request_count(), 1, "something was begun");
    fs::rename(&saved, &database).expect("moved back");
    run(&polity, &["once more"]).expect_code(0);
    polity.run(&["db", "check", "--data", "data"]).expect_code(0);
}

#[test]
fn what_gc_removes_stays_in_the_trash_for_a_week_and_can_be_copied_back() {
    let (_server, polity) = answering();
    let attached = write(&polity, "precious.txt", b"precious");
    run(&polity, &["keep this", "--attach", &attached]).expect_code(0);
    let (trash, before) = (polity.data_dir().join("artifacts/trash"), artifacts(&polity));
    // Simulate a mistake that deletes the rows of all artifacts.
    let mut database = Database::write(&polity.data_dir());
    database.execute("DELETE FROM artifact_grants");
    database.execute("DELETE FROM artifacts");
    drop(database);
    let gc = |arguments: &[&str]| {
        polity.run(&[&["gc", "--data", "data"], arguments].concat()).expect_code(0).stdout
    };
    let told = gc(&[]);
    assert!(told.contains("stored: 1 file, 8 bytes") && told.contains("kept for 7 days in "), "{told}");
    let batches = || -> Vec<PathBuf> {
        fs::read_dir(&trash).expect("the trash").map(|batch| batch.expect("a batch").path()).collect()
    };
    let [batch] = &batches()[..] else { panic!("expected one batch: {:?}", batches()) };
    assert!(gc(&[]).contains("from the trash: 0 files"));
    // This command restores files from the trash, as docs/operations.md says.
    let copy = format!("cp -r '{}/.' '{}'", batch.display(), polity.data_dir().join("artifacts").display());
    assert!(Command::new("sh").args(["-c", &copy]).status().expect("a shell").success());
    assert!(before.is_subset(&artifacts(&polity)));

    // A batch is a directory in the trash, and its name is a time in milliseconds since 1970. With the name 1000, the
    // batch is so old that it has expired.
    fs::rename(batch, trash.join("1000")).expect("renamed");
    assert!(gc(&["--dry-run"]).contains("from the trash: 1 file, 8 bytes"));
    let told = gc(&[]);
    assert!(told.contains("from the trash: 1 file, 8 bytes"), "{told}");
    assert!(!trash.join("1000").exists());
    let [batch] = &batches()[..] else {
        panic!("what was copied back is unneeded, so it is in the trash again: {:?}", batches())
    };

    // A batch of six days ago stays, and a copy of it that seems to be eight days old goes.
    let days_ago = |days: u64| {
        let then = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
        trash.join(then.duration_since(UNIX_EPOCH).expect("a time after 1970").as_millis().to_string())
    };
    let (younger, older) = (days_ago(6), days_ago(8));
    fs::rename(batch, &younger).expect("renamed");
    let copied = Command::new("cp").arg("-r").arg(&younger).arg(&older).status();
    assert!(copied.expect("cp runs").success());
    let told = gc(&[]);
    assert!(told.contains("from the trash: 1 file, 8 bytes"), "{told}");
    assert_eq!(batches(), [younger]);
    assert!(gc(&["--empty-trash"]).contains("from the trash: 1 file, 8 bytes"));
    assert_eq!(batches().len(), 0);
}

/// Calls `lose`, which removes or replaces a part of the data directory while a daemon serves. After that, the daemon
/// must accept no message, and must end by itself.
#[track_caller]
fn check_lost_under_a_daemon(lose: impl FnOnce(&Path)) {
    let (server, polity) = answering();
    let (running, address, token) = serve(&polity);
    assert_eq!(post(&address, &token, "before").expect("an answer"), "201");
    server.wait_until(PATIENCE, |requests| !requests.is_empty());
    lose(&polity.data_dir());
    // It is also right if the connection fails, because the daemon has then already ended and accepts no message.
    if let Ok(status) = post(&address, &token, "after") {
        assert_eq!(status, "503", "a message was acknowledged into nothing");
    }
    let ended = running.wait().expect_code(2);
    assert!(ended.stderr.contains("was removed or replaced while polity was using it"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}

#[test]
fn nothing_is_acknowledged_after_the_data_directory_is_gone() {
    check_lost_under_a_daemon(|data| fs::remove_dir_all(data).expect("removed"));
    check_lost_under_a_daemon(|data| fs::rename(data, data.with_extension("old")).expect("moved away"));
    check_lost_under_a_daemon(|data| {
        fs::rename(data, data.with_extension("old")).expect("moved away");
        let copied = Command::new("cp").arg("-r").arg(data.with_extension("old")).arg(data).status();
        assert!(copied.expect("cp runs").success());
    });
    check_lost_under_a_daemon(|data| fs::remove_file(data.join("polity.db")).expect("removed"));
    check_lost_under_a_daemon(|data| fs::remove_file(data.join("polity.db-wal")).expect("removed"));
}

#[test]
fn an_idle_daemon_notices_that_its_data_directory_is_gone() {
    let (_server, polity) = answering();
    let (running, ..) = serve(&polity);
    fs::remove_dir_all(polity.data_dir()).expect("removed");
    let ended = running.wait().expect_code(2);
    assert!(ended.stderr.contains("was removed or replaced"), "{}", ended.stderr);
    assert!(!polity.data_dir().exists(), "nothing is created anew");
}

#[test]
fn a_second_daemon_is_refused_although_the_files_of_the_first_are_removed() {
    let (_server, polity) = answering();
    let (running, ..) = serve(&polity);
    for name in ["polity.lock", "daemon.json", "token"] {
        fs::remove_file(polity.data_dir().join(name)).expect("removed");
        for arguments in [&["serve", "--listen", "127.0.0.1:0"][..], &["gc"]] {
            let ended = polity.run(&[arguments, &["--data", "data"]].concat());
            // In the first round, only the lock file is gone. `gc` still finds the daemon by `daemon.json`, and asks
            // the daemon to remove the data that nobody needs. So `gc` succeeds.
            if arguments == ["gc"] && name == "polity.lock" {
                let by_daemon = ended.expect_code(0);
                assert!(by_daemon.stderr.contains("the daemon that runs on data does this"));
                continue;
            }
            let refused = ended.expect_code(2);
            assert!(refused.stderr.contains("another polity is using"), "{name}: {}", refused.stderr);
        }
    }
    running.terminate();
    running.wait().expect_code(0);
    run(&polity, &["hello"]).expect_code(0);
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "needs Linux with glibc")]
fn a_data_directory_that_cannot_be_locked_itself_is_noted_in_the_log() {
    /// The error number of a network file system without locks.
    const NO_LOCKS: i64 = 37;
    const WARNING: &str = "cannot lock the data directory itself";
    let (_server, mut polity) = answering();
    polity.set_env("POLITY_LOG", "warn");
    let layer = Layer::below(&mut polity);
    layer.order(Order::Lock, NO_LOCKS);
    let (running, ..) = serve(&polity);
    running.stderr_line(WARNING);
    // The lock on the lock file still keeps a second daemon out.
    let second = polity.run(&["serve", "--listen", "127.0.0.1:0", "--data", "data"]).expect_code(2);
    assert!(second.stderr.contains("another polity is using"), "{}", second.stderr);
    running.terminate();
    running.wait().expect_code(0);
    layer.order(Order::Lock, 0);
    let ended = run(&polity, &["hello"]).expect_code(0);
    assert!(!ended.stderr.contains(WARNING), "{}", ended.stderr);
}

#[test]
fn a_configuration_that_is_a_pipe_or_has_no_end_is_refused_at_once() {
    let (_server, polity) = answering();
    let path = polity.config_dir().join("app.json");
    let refused = || {
        let ended = polity.run(&["config", "check", "config"]).expect_code(2);
        assert!(
            ended.stderr.contains("app.json: cannot be read: it is not a regular file"),
            "{}",
            ended.stderr
        );
        fs::remove_file(&path).expect("removed");
    };
    fs::remove_file(&path).expect("removed");
    pipe(&path);
    refused();
    symlink("/dev/zero", &path).expect("a link");
    refused();
}

#[test]
fn a_configuration_that_was_a_pipe_for_a_while_is_reloaded_again() {
    let (_server, polity) = answering();
    let (running, ..) = serve(&polity);
    let (path, new) = (polity.config_dir().join("app.json"), polity.home().join("new.json"));
    let reload = || polity.run(&["config", "reload", "--data", "data"]);
    pipe(&new);
    fs::rename(&new, &path).expect("replaced");
    let told = reload().expect_code(2);
    assert!(told.stderr.contains("is not a regular file"), "{}", told.stderr);
    fs::write(&new, r#"{"discover": false, "limits": {"maxDepth": 3}}"#).expect("written");
    fs::rename(&new, &path).expect("replaced");
    reload().expect_code(0);
    running.terminate();
    running.wait().expect_code(0);
}

#[test]
fn a_token_that_is_a_link_or_a_pipe_is_refused_at_once() {
    let (_server, polity) = answering();
    run(&polity, &["hello"]).expect_code(0);
    let (token, mine) = (polity.data_dir().join("token"), polity.home().join("mine"));
    let refused = |why: &str| {
        let ended = polity.run(&["serve", "--data", "data", "--listen", "127.0.0.1:0"]).expect_code(2);
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
        fs::remove_file(&token).expect("removed");
    };
    fs::write(&mine, "x".repeat(40)).expect("written");
    symlink(&mine, &token).expect("a link");
    refused("it is a symbolic link");
    pipe(&token);
    refused("it is not a regular file");
    assert_eq!(fs::read_to_string(&mine).expect("a file"), "x".repeat(40));
}
