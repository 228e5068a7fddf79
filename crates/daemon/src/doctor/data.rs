//! The check of the data directory: its permissions, the free disk space, the database, and the daemon that uses it.

use super::report::{Mended, Section};
use super::{Mode, Network, QUESTION};
use crate::output::bytes;
use polity_disk::{Holder, Links, holder, read_text};
use polity_llm::{Endpoint, FailureKind, Inquirer, Question};
use polity_probe::Finding;
use polity_store::maintenance::{self, Found};
use polity_view::in_full;
use serde_json::Value;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const TOKEN: &str = "token";
const NOTE: &str = "daemon.json";
/// Maximum size of `daemon.json`, in bytes.
const MAX_NOTE: u64 = 64 * 1024;
/// Free bytes below which the doctor warns: writes to the database will soon fail.
const LITTLE_ROOM: u64 = 1_000_000_000;
/// Free bytes below which the doctor reports a problem: writes to the database may fail already.
const NO_ROOM: u64 = 20_000_000;

/// Checks the directory, and the daemon that may be using it.
pub(super) async fn look(
    data: &Path,
    inquirer: &Inquirer,
    network: Network,
    mode: Mode,
) -> (Vec<Section>, Vec<Mended>) {
    let subject = data.display().to_string();
    let section = |findings| Section::new("data directory", subject.clone(), findings);
    match fs::metadata(data) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => {
            let finding =
                Finding::problem("not_a_directory", "is not a directory", "choose another one with --data");
            return (vec![section(vec![finding])], Vec::new());
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let finding = Finding::ok("no_data", "does not exist yet; the first run creates it");
            return (vec![section(vec![finding])], Vec::new());
        }
        Err(error) => {
            let what = format!("cannot be accessed: {error}");
            let finding = Finding::problem(
                "unreadable",
                what,
                "check its permissions, or choose another one with --data",
            );
            return (vec![section(vec![finding])], Vec::new());
        }
    }
    let mut mended = Vec::new();
    let mut findings = Vec::new();
    findings.extend(privacy(data, 0o700, mode, &mut mended));
    for name in [TOKEN, NOTE] {
        findings.extend(privacy(&data.join(name), 0o600, mode, &mut mended));
    }
    findings.push(writing(data));
    findings.extend(room(data));
    let mut sections = vec![section(findings)];
    if maintenance::found(data) != Found::Nothing {
        sections.push(Section::new(
            "database",
            data.join("polity.db").display().to_string(),
            vec![database(data).await],
        ));
    }
    sections.push(Section::new("daemon", "", vec![daemon(data, inquirer, network).await]));
    (sections, mended)
}

/// Checks that no other user may read or change a file or directory. In [`Mode::Mend`], also sets the permissions
/// `wanted` if the check fails. Returns nothing if there is no such file.
fn privacy(path: &Path, wanted: u32, mode: Mode, mended: &mut Vec<Mended>) -> Option<Finding> {
    let found = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    let shown = path.display();
    if found & 0o077 == 0 {
        return Some(Finding::ok("private", format!("only you can read {shown}")));
    }
    if mode == Mode::Mend && fs::set_permissions(path, fs::Permissions::from_mode(wanted)).is_ok() {
        mended.push(Mended {
            file: shown.to_string(),
            what: "permissions".to_owned(),
            before: Some(format!("{found:03o}")),
            after: format!("{wanted:03o}"),
        });
    }
    let by_fix = match mode {
        Mode::Look => ", or run `polity doctor --fix`",
        Mode::Mend => "",
    };
    Some(Finding::warning(
        "not_private",
        format!("others may read {shown} (its permissions are {found:03o})"),
        format!("chmod {wanted:03o} {shown}{by_fix}"),
    ))
}

/// Checks that a file can be created in the data directory.
fn writing(data: &Path) -> Finding {
    let trial = data.join(format!(".doctor-{}", std::process::id()));
    let made = File::options().write(true).create_new(true).open(&trial);
    match made.and_then(|_| fs::remove_file(&trial)) {
        Ok(()) => Finding::ok("writable", "can be written to"),
        Err(error) => Finding::problem(
            "not_writable",
            format!("cannot be written to: {error}"),
            "check its permissions and the file system, or choose another one with --data",
        ),
    }
}

fn room(data: &Path) -> Option<Finding> {
    let system = rustix::fs::statvfs(data).ok()?;
    Some(of_room(system.f_bavail.saturating_mul(system.f_frsize)))
}

fn of_room(free: u64) -> Finding {
    let what = format!("free space: {}", bytes(free));
    let advice = "free some space; `polity gc` removes data that nobody needs";
    match free {
        ..NO_ROOM => Finding::problem("no_room", what, advice),
        NO_ROOM..LITTLE_ROOM => Finding::warning("little_room", what, advice),
        LITTLE_ROOM.. => Finding::ok("room", what),
    }
}

async fn database(data: &Path) -> Finding {
    match maintenance::glance(data).await {
        Ok(()) => Finding::ok("database", "its structure is sound (`polity db check` reads everything)"),
        Err(error) => Finding::problem(
            "database",
            in_full(&error),
            "run `polity db check`; docs/operations.md says what to do about what it finds",
        ),
    }
}

/// The content of `daemon.json`, which a daemon writes into its data directory.
pub(super) struct Note {
    pub(super) url: String,
    pub(super) pid: Option<u64>,
}

/// Returns the content of `daemon.json`, if a process has locked the directory. Without a lock the file is left over
/// from a crash, so this function returns `None`.
pub(super) fn note(data: &Path) -> Option<Note> {
    let is_held = matches!(holder(data), Ok(Holder::Somebody));
    let text = is_held.then(|| read_text(&data.join(NOTE), Links::Refused, MAX_NOTE).ok()).flatten()?;
    let note: Value = serde_json::from_str(&text).ok()?;
    let url = note.get("url")?.as_str().filter(|url| url.starts_with("http"))?.to_owned();
    Some(Note { url, pid: note.get("pid").and_then(Value::as_u64) })
}

async fn daemon(data: &Path, inquirer: &Inquirer, network: Network) -> Finding {
    match holder(data) {
        Ok(Holder::Nobody) => return Finding::ok("no_daemon", "no polity is using the data directory"),
        Err(error) => {
            let what = format!("cannot tell whether a polity is using the data directory: {error}");
            return Finding::warning("lock", what, "check the permissions of polity.lock");
        }
        Ok(Holder::Somebody) => {}
    }
    let Some(Note { url, pid }) = note(data) else {
        return Finding::ok(
            "in_use",
            "a polity that is not a daemon is using the data directory, such as `polity run`",
        );
    };
    let who = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
    if network == Network::LeftAlone {
        return Finding::ok("daemon", format!("a daemon serves at {url}{who}"));
    }
    if !data.join(TOKEN).is_file() {
        let what = format!("a daemon serves at {url}{who}, but its token file is missing");
        return Finding::problem("no_token", what, "restart the daemon: it creates a new token");
    }
    if answers(inquirer, &url).await {
        return Finding::ok("daemon", format!("a daemon serves at {url}{who}, and answers"));
    }
    let what = format!("a daemon should serve at {url}{who}, but does not answer");
    Finding::problem(
        "daemon_silent",
        what,
        "look into its log; if it stays silent, end the process and start it again",
    )
}

/// Returns whether a server at this address reports that it is healthy.
pub(super) async fn answers(inquirer: &Inquirer, url: &str) -> bool {
    let asked = inquirer.ask(&Endpoint::new(url, ""), Question::OfBase("healthz"), QUESTION).await;
    match asked {
        Ok(_) => true,
        // A healthy server answers `healthz` in plain text with status 200. The inquirer expects JSON, so it reports
        // such an answer as an error.
        Err(error) => error.kind == FailureKind::NotAnAnswer && error.status == Some(200),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_probe::Severity;

    #[test]
    fn room_that_is_left() {
        let check = |free: u64, expect: Severity| assert_eq!(of_room(free).severity, expect, "{free}");
        check(0, Severity::Problem);
        check(NO_ROOM, Severity::Warning);
        check(LITTLE_ROOM - 1, Severity::Warning);
        check(LITTLE_ROOM, Severity::Ok);
        check(u64::MAX, Severity::Ok);
    }

    #[test]
    fn what_others_may_read_is_told_and_mended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(TOKEN);
        let mut mended = Vec::new();
        assert!(privacy(&path, 0o600, Mode::Mend, &mut mended).is_none());
        fs::write(&path, "t").unwrap();
        let is = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let told = privacy(&path, 0o600, Mode::Look, &mut mended).unwrap();
        assert_eq!((told.severity, is(), mended.len()), (Severity::Warning, 0o644, 0));
        privacy(&path, 0o600, Mode::Mend, &mut mended);
        assert_eq!((is(), mended.len()), (0o600, 1));
        assert_eq!(privacy(&path, 0o600, Mode::Mend, &mut mended).unwrap().severity, Severity::Ok);
        assert_eq!(mended.len(), 1);
    }

    #[test]
    fn who_has_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(NOTE), r#"{"url": "http://127.0.0.1:7", "pid": 8}"#).unwrap();
        assert!(note(dir.path()).is_none(), "a stale note");
        let _lock = polity_disk::Lock::take(dir.path()).unwrap();
        let note = note(dir.path()).unwrap();
        assert_eq!((note.url.as_str(), note.pid), ("http://127.0.0.1:7", Some(8)));
    }
}
