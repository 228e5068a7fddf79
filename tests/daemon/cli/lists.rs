//! The commands that list tasks, agents, messages and so on, as text and as JSON.

use polity_tests::{Answer, Polity, ScriptedServer};
use serde_json::{Value, json};

use super::{ask, look_at_picture, refused, rehearsing, rows, served, told};
use crate::support::files::{PICTURE, files_below, write};

fn column<'r>(rows: &'r [Value], name: &str) -> Vec<&'r Value> {
    rows.iter().map(|row| &row[name]).collect()
}

/// Returns the time of day in a time zone that is this many hours ahead of UTC.
fn time_of_day(milliseconds: i64, hours: i64) -> String {
    let seconds = milliseconds / 1000 + hours * 3600;
    format!("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

#[test]
fn times_are_shown_in_the_local_time_zone() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let (mut polity, _daemon) = served(&server);
    told(&polity, &["send", "--wait", "what?"]);
    let created = rows(&polity, &["tasks"])[0]["createdAt"].as_i64().expect("a time");
    for (zone, hours) in [("UTC0", 0), ("<+05>-5", 5)] {
        polity.set_env("TZ", zone);
        let words = told(&polity, &["tasks"]);
        assert!(words.contains(&format!(" {} ", time_of_day(created, hours))), "{zone}: {words}");
    }
}

#[test]
fn a_society_that_looked_at_a_picture() {
    let (polity, _daemon) = rehearsing();
    let answer = look_at_picture(&polity);
    assert!(answer.contains("480 × 270"), "{answer}");

    let tasks = rows(&polity, &["tasks"]);
    let [task] = &tasks[..] else { panic!("expected one task: {tasks:?}") };
    assert_eq!((&task["title"], &task["outcome"]), (&json!("What is in it?"), &json!("answered")));
    let task = task["id"].as_str().expect("an id");
    let words = told(&polity, &["tasks"]);
    assert!(
        words.contains(task) && words.contains("answered") && words.contains("What is in it?"),
        "{words}"
    );
    assert!(rows(&polity, &["tasks", "--state", "open"]).is_empty());

    let agents = rows(&polity, &["agents", "--all"]);
    assert!(agents.len() >= 4, "expected the user, root, a lead and a reader: {agents:?}");
    for arguments in [&["agents", "--all"][..], &["agents", "--ended"], &["agents", "--task", task]] {
        let tree = told(&polity, arguments);
        assert!(tree.starts_with("root ") && tree.contains("└─ "), "{tree}");
        assert_eq!(tree.lines().count(), agents.len() - 1, "only the user is left out: {tree}");
    }
    // The task is finished, and so are all agents except root. In JSON, the list does not depend on that.
    let tree = told(&polity, &["agents"]);
    let lines: Vec<&str> = tree.lines().collect();
    let finished = format!("{} finished agents are not shown; --all lists them", agents.len() - 2);
    assert!(lines.len() == 2 && lines[0].starts_with("root ") && lines[1] == finished, "{tree}");
    // Who asks for a state gets all agents in it.
    let is_idle = |agent: &&Value| agent["state"] == "idle" && agent["id"] != "user";
    let idle = told(&polity, &["agents", "--state", "idle"]);
    assert_eq!(idle.lines().count(), agents.iter().filter(is_idle).count(), "{idle}");
    let there = agents.iter().filter(|agent| agent["state"] != "ended").count();
    assert_eq!(rows(&polity, &["agents"]).len(), there);
    let reading = rows(&polity, &["agents", "--capability", "vision", "--all"]);
    let [reader] = &reading[..] else { panic!("expected one agent with vision: {reading:?}") };
    let reader = reader["id"].as_str().expect("an id");

    let detail = rows(&polity, &["agent", reader]);
    assert_eq!((&detail[0]["id"], &detail[0]["tasks"]), (&json!(reader), &json!([task])));
    let words = told(&polity, &["agent", reader]);
    assert!(words.contains("brief") && words.contains("contacts") && words.contains("vision"), "{words}");
    let heard = told(&polity, &["agent", reader, "--conversation"]);
    assert!(heard.contains("task_assignment") && heard.contains("replied"), "{heard}");
    // Standard output contains the request alone, so that other programs can parse it.
    let request = told(&polity, &["agent", reader, "--request"]);
    let parsed = serde_json::from_str::<Value>(&request);
    assert!(parsed.is_ok_and(|parsed| parsed["messages"].is_array()), "{request}");

    let messages = rows(&polity, &["messages", "--task", task]);
    let numbers: Vec<&str> = column(&messages, "id").into_iter().filter_map(Value::as_str).collect();
    assert!(numbers.is_sorted() && numbers.len() >= 4, "{numbers:?}");
    let words = told(&polity, &["messages", "--from", "user"]);
    assert!(
        words.contains("user → root") && words.contains("What is in it?") && words.contains("picture.png")
    );
    assert_eq!(rows(&polity, &["messages", "--limit", "2"]).len(), 2);
    assert_eq!(rows(&polity, &["messages", "--unshown"]), [] as [Value; 0], "a message counts as not shown");
    let one = told(&polity, &["messages", numbers[0]]);
    assert!(one.contains(numbers[0]), "{one}");

    let artifacts = rows(&polity, &["artifacts"]);
    assert!(column(&artifacts, "filename").contains(&&json!("picture.png")), "{artifacts:?}");
    assert_eq!(rows(&polity, &["artifacts", "--kind", "image"]).len(), 1);
    assert!(told(&polity, &["artifacts"]).contains("picture.png"));

    let services = rows(&polity, &["services"]);
    assert_eq!(column(&services, "id"), [&json!("rehearsal-text"), &json!("rehearsal-multimodal")]);
    assert!(told(&polity, &["services", "rehearsal-text"]).contains("default"));

    let usage = rows(&polity, &["usage"]);
    assert!(usage[0]["total"]["calls"].as_u64() > Some(5), "{usage:?}");
    assert!(told(&polity, &["usage", "--agent", reader]).starts_with("in all: "));

    let events = rows(&polity, &["events", "--after", "0"]);
    let numbers: Vec<i64> = events.iter().filter_map(|event| event["seq"].as_i64()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next) && numbers.len() > 20, "{numbers:?}");
    let newest = rows(&polity, &["events", "--limit", "5"]);
    assert_eq!(newest, events[events.len() - 5..]);
    let accepted = rows(&polity, &["events", "--after", "0", "--kind", "message_accepted"]);
    assert!(accepted.iter().all(|event| event["event"] == "message_accepted") && accepted.len() >= 4);
    assert_eq!(told(&polity, &["events", "--after", "0"]).lines().count(), events.len());

    let nothing = ask(&polity, &["messages", "--type", "status_report", "--from", "user"]).expect_code(0);
    assert_eq!((&*nothing.stdout, &*nothing.stderr), ("", "polity: there are no such messages\n"));
}

/// Returns the titles of the tasks that `polity tasks` prints, and the line below them.
#[track_caller]
fn titles_and_rest(polity: &Polity, arguments: &[&str]) -> (Vec<String>, String) {
    let words = told(polity, &[&["tasks"], arguments].concat());
    let (tasks, rest): (Vec<&str>, Vec<&str>) = words.lines().partition(|line| line.starts_with("t-"));
    let title = |line: &&str| line.rsplit("  ").next().unwrap_or_default().to_owned();
    (tasks.iter().map(title).collect(), rest.concat())
}

#[test]
fn active_tasks_come_first_and_finished_tasks_are_folded() {
    let server = ScriptedServer::start(|asked| match asked.last_user_text().contains("no answer") {
        true => Answer::hang(),
        false => Answer::say("42"),
    });
    let (polity, _daemon) = served(&server);
    told(&polity, &["send", "--wait", "the first question"]);
    told(&polity, &["send", "no answer comes"]);
    told(&polity, &["send", "--wait", "the third question"]);
    let check = |arguments: &[&str], titles: &[&str], rest: &str| {
        let expect: (Vec<String>, String) =
            (titles.iter().map(|title| (*title).to_owned()).collect(), rest.to_owned());
        assert_eq!(titles_and_rest(&polity, arguments), expect, "{arguments:?}");
    };
    let (first, open, third) = ("the first question", "no answer comes", "the third question");
    check(&[], &[open], "2 finished tasks are not shown; --all lists them");
    check(&["--all"], &[open, first, third], "");
    check(&["--state", "idle"], &[first, third], "");
    // The open task is listed and the finished tasks are not, although one of them is newer.
    check(&["--limit", "1"], &[open], "1 finished task is not shown; --all lists it");
    // In JSON, the list is complete, and in the order in which the tasks began.
    assert_eq!(column(&rows(&polity, &["tasks"]), "title"), [first, open, third]);
    assert_eq!(column(&rows(&polity, &["tasks", "--limit", "1"]), "title"), [third]);
}

#[test]
fn everything_is_found_by_its_words() {
    let (polity, daemon) = rehearsing();
    look_at_picture(&polity);
    let text = write(&polity, "plan.md", "# 计划\n明天去柏林看天气".as_bytes());
    told(&polity, &["artifact", "put", &text]);
    let found = rows(&polity, &["search", "what", "IT"]);
    let task = &found.iter().find(|hit| hit["kind"] == "task").expect("the task")["id"];
    assert_eq!(*task, rows(&polity, &["tasks"])[0]["id"]);
    // The first word consists of two Chinese characters in the content of the artifact, without spaces around them. The
    // second word is the name of the artifact.
    for word in ["柏林", "plan.md"] {
        let found = rows(&polity, &["search", word]);
        assert_eq!(column(&found, "name"), [&json!("plan.md")], "{word}");
        assert!(
            found[0]["snippet"]
                .as_array()
                .is_some_and(|all| all.contains(&json!({"text": word, "hit": true})))
        );
    }
    // 480 is the width of the picture. Messages contain this number, but briefs do not. A search for agents looks into
    // their briefs. So it finds no agent for 480. But it finds an agent for `what`, because the lead's brief quotes the
    // prompt.
    let sized = rows(&polity, &["search", "--kind", "message", "480"]);
    let agents = rows(&polity, &["search", "--kind", "agent", "480"]);
    assert!(!sized.is_empty() && agents.is_empty(), "{sized:?} {agents:?}");
    assert!(!rows(&polity, &["search", "--kind", "agent", "what"]).is_empty());
    let task = task.as_str().expect("an id");
    assert!(rows(&polity, &["search", "--task", task, "柏林"]).is_empty());
    assert!(told(&polity, &["search", "--task", task, "what", "it"]).contains("What"));
    assert_eq!(rows(&polity, &["search", "--limit", "2", "i"]).len(), 2);
    refused(&polity, &["search", "--task", "task-none", "it"]);
    // A search sees only the first 16 KiB of a text artifact, and an empty answer says so.
    let long = write(&polity, "seasons.txt", format!("frühling {}herbst", "x ".repeat(8_192)).as_bytes());
    told(&polity, &["artifact", "put", &long]);
    assert_eq!(column(&rows(&polity, &["search", "frühling"]), "name"), [&json!("seasons.txt")]);
    let long = "天\"*".repeat(3_333);
    for hostile in ["NEAR(", "\"", "* AND -x", "--kind", "text:it", &long, "herbst"] {
        // The command searches for every argument after `--`, so the option `--data` stands before the `--`.
        let nothing = polity.run(&["search", "--data", "data", "--", hostile]).expect_code(0);
        assert_eq!(
            (&*nothing.stdout, &*nothing.stderr),
            (
                "",
                "polity: nothing was found; a search sees only the first 20,000 characters of a text, and the first \
                 16 KiB of a text artifact\n"
            ),
            "{hostile:.20}"
        );
    }
    // Without a daemon, the search finds the same.
    let with = rows(&polity, &["search", "it"]);
    drop(daemon);
    assert_eq!(rows(&polity, &["search", "it"]), with);
}

#[test]
fn artifacts_go_in_and_come_out_byte_for_byte() {
    let (polity, _daemon) = rehearsing();
    let bytes: Vec<u8> =
        (0..300_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0]).collect();
    let path = write(&polity, "noise.bin", &bytes);
    let stored = rows(&polity, &["artifact", "put", &path]);
    let reference = stored[0]["reference"].as_str().expect("a reference");
    assert_eq!((&stored[0]["filename"], &stored[0]["size"]), (&json!("noise.bin"), &json!(300_000)));
    let fetched = ask(&polity, &["artifact", "get", reference, "-o", "copy.bin"]).expect_code(0);
    assert_eq!(fetched.stdout, "");
    assert_eq!(std::fs::read(polity.home().join("copy.bin")).expect("the copy"), bytes);
    let nowhere = refused(&polity, &["artifact", "get", reference, "-o", "none/copy.bin"]);
    assert!(nowhere.contains("cannot write none/copy.bin"), "{nowhere}");
    let text = write(&polity, "words.txt", "three 三 words".as_bytes());
    let stored = rows(&polity, &["artifact", "put", &text]);
    let reference = stored[0]["reference"].as_str().expect("a reference");
    assert_eq!(told(&polity, &["artifact", "get", reference]), "three 三 words");
    // An artifact that is already stored can be attached to a message.
    let answer = told(&polity, &["send", "--wait", "Read it", "--attach", reference]);
    assert!(answer.contains("words.txt"), "{answer}");
}

#[test]
fn a_task_as_one_file() {
    let (polity, _daemon) = rehearsing();
    look_at_picture(&polity);
    let markdown = told(&polity, &["export"]);
    for part in
        ["# What is in it?", "## Agents", "### user → root", "480 × 270", "## Artifacts", "picture.png"]
    {
        assert!(markdown.contains(part), "{part:?} is not in {markdown}");
    }
    let done = ask(&polity, &["export", "--format", "json", "-o", "task.json", "--with-artifacts", "files"]);
    assert_eq!(done.expect_code(0).stdout, "");
    let json: Value =
        serde_json::from_slice(&std::fs::read(polity.home().join("task.json")).expect("a file"))
            .expect("JSON");
    assert_eq!(json["task"]["title"], "What is in it?");
    let conversations = json["conversations"].as_array().expect("conversations");
    assert!(conversations.len() >= 3 && conversations.iter().all(|one| one["entries"][0].is_object()));
    let files = files_below(&polity.home().join("files"));
    assert_eq!(files.len(), json["artifacts"].as_array().map_or(0, Vec::len));
    assert!(files.iter().any(|file| std::fs::read(file).is_ok_and(|bytes| bytes == PICTURE)));
}

#[test]
fn the_live_view_opens_by_an_address() {
    let (polity, daemon) = rehearsing();
    let url = told(&polity, &["view"]);
    let ready = daemon.stderr_line("ready");
    let base = ready.rsplit(' ').next().expect("an address");
    assert!(url.starts_with(&format!("{base}/login?ticket=")), "{url} at {base}");
}
