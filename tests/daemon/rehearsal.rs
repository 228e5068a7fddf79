//! If no model is configured, the built-in models answer. What they say about attachments is true. Each line has a
//! mark. It shows that the line does not come from a real model.

use std::fs;
use std::io::Cursor;
use std::path::PathBuf;

use polity_tests::{Output, Polity};
use serde_json::{Value, json};

use crate::support::files::{PICTURE, files_below, write};
use crate::support::{app, events, json_lines, run, sandbox_level};

const CHINESE: &str = "［演练］";
const ENGLISH: &str = "[rehearsal] ";

fn polity(language: &str) -> Polity {
    Polity::new(&json!({"services": []}), &app(&json!({"language": language})))
}

/// Checks that every line for the user carries the mark; returns the text.
#[track_caller]
fn marked(ended: Output, mark: &str) -> String {
    let stdout = ended.expect_code(0).stdout;
    assert!(!stdout.trim().is_empty(), "there is no answer");
    for line in stdout.lines() {
        let said = line.strip_prefix("… ").unwrap_or(line);
        assert!(said.starts_with(mark), "this line has no mark: {line}");
    }
    stdout
}

/// Returns a PNG of this size.
fn picture(width: u32, height: u32) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    image::RgbImage::new(width, height).write_to(&mut file, image::ImageFormat::Png).expect("a picture");
    file.into_inner()
}

#[track_caller]
fn check_picture(language: &str, mark: &str, width: u32, height: u32) {
    let polity = polity(language);
    let path = write(&polity, "picture.png", &picture(width, height));
    let answer = marked(run(&polity, &["What is in the picture?", "--attach", &path]), mark);
    let size = format!("{width} × {height}");
    let fact = |line: &str| line.contains("picture.png") && line.contains(&size) && line.contains("PNG");
    assert_eq!(answer.lines().filter(|line| fact(line)).count(), 1, "{answer}");
}

#[test]
fn the_real_size_of_a_picture_is_told_in_chinese() {
    check_picture("zh", CHINESE, 480, 270);
    check_picture("zh", CHINESE, 1234, 77);
}

#[test]
fn the_real_size_of_a_picture_is_told_in_english() {
    check_picture("en", ENGLISH, 480, 270);
    check_picture("en", ENGLISH, 77, 1234);
}

#[test]
fn a_text_file_is_counted() {
    for (language, mark) in [("zh", CHINESE), ("en", ENGLISH)] {
        let polity = polity(language);
        let path = write(&polity, "notes.md", b"# Notes\n\nthree more words\n");
        let answer = marked(run(&polity, &["Read this", "--attach", &path]), mark);
        let fact = |line: &str| line.contains("notes.md") && line.contains('5') && line.contains("# Notes");
        assert!(answer.lines().any(fact), "{answer}");
    }
}

#[test]
fn a_prompt_alone_is_answered() {
    for (language, mark) in [("zh", CHINESE), ("en", ENGLISH)] {
        marked(run(&polity(language), &["How are you today?"]), mark);
    }
}

#[test]
fn that_no_model_is_configured_is_said_on_standard_error() {
    let ended = run(&polity("en"), &["hello"]).expect_code(0);
    assert!(ended.stderr.contains("rehearsal"), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}

#[test]
fn all_that_agents_write_is_marked() {
    let polity = polity("zh");
    let path = write(&polity, "picture.png", PICTURE);
    let ended = run(&polity, &["看看这张图", "--attach", &path, "--json"]).expect_code(0);
    let lines = json_lines(&ended.stdout);
    let said: Vec<&Value> = events(&lines, "message_accepted")
        .into_iter()
        .filter(|message| message["from"] != "user" && message["type"] != "introduction_response")
        .collect();
    assert!(said.len() >= 4, "a lead must be hired and must find a reader");
    for message in said {
        for line in message["text"].as_str().expect("text").lines() {
            let line = line.rsplit_once(": ").map_or(line, |(_, value)| value);
            assert!(line.contains(CHINESE) || line.len() < 16, "a line has no mark: {message}");
        }
    }
    for stored in files_below(&polity.data_dir().join("artifacts")) {
        let bytes = std::fs::read(stored).expect("an artifact");
        if bytes != PICTURE {
            let report = String::from_utf8(bytes).expect("a report");
            let unmarked = |line: &&str| !line.trim().is_empty() && !line.contains(CHINESE);
            assert_eq!(report.lines().find(unmarked), None, "{report}");
        }
    }
}

#[test]
fn several_files_are_each_told_of() {
    let polity = polity("zh");
    let picture = write(&polity, "one.png", PICTURE);
    let text = write(&polity, "two.txt", b"words");
    let answer = marked(run(&polity, &["看看", "--attach", &picture, "--attach", &text]), CHINESE);
    assert!(answer.contains("one.png") && answer.contains("two.txt"), "{answer}");
    assert!(answer.contains("480 × 270"), "{answer}");
}

#[test]
fn tasks_follow_each_other_in_one_society() {
    let polity = polity("zh");
    let first = write(&polity, "first.png", PICTURE);
    let second = write(&polity, "second.png", &picture(31, 13));
    marked(run(&polity, &["看第一张", "--attach", &first]), CHINESE);
    let answer = marked(run(&polity, &["看第二张", "--attach", &second]), CHINESE);
    assert!(answer.contains("31 × 13") && !answer.contains("480 × 270"), "{answer}");
    assert!(!answer.contains("first.png"), "{answer}");
}

/// Checks that a text tells what the command of the lead printed. Without a full sandbox, polity would ask the user about
/// the command, so the lead must run none.
#[track_caller]
fn check_command(polity: &Polity, told: &str) {
    let level = sandbox_level(polity);
    let line = told.lines().find(|line| line.contains("`wc -l README.md`"));
    assert_eq!(line.is_some(), level == "full", "{told}");
    assert!(line.is_none_or(|line| line.ends_with("3 README.md")), "{told}");
}

/// Creates a project of the user in the home. The project also contains a directory `config`, but this directory does
/// not contain a configuration of polity.
fn project(polity: &Polity) -> PathBuf {
    let directory = polity.home().join("project");
    fs::create_dir_all(directory.join("config")).expect("a directory");
    for (path, text) in [("README.md", "# Sums\n\nAdds two numbers.\n"), ("add.sh", "echo $(($1 + $2))\n")] {
        fs::write(directory.join(path), text).expect("a file");
    }
    fs::write(directory.join("config/app.json"), "this is not JSON").expect("a file");
    directory
}

#[test]
fn a_workspace_is_surveyed_and_the_report_is_written_in_it() {
    for (language, mark) in [("zh", CHINESE), ("en", ENGLISH)] {
        let polity = polity(language);
        let project = project(&polity);
        fs::write(project.join("polity-report.md"), "mine").expect("a file");
        let answer = marked(run(&polity, &["What is here?", "--workspace", "project"]), mark);
        assert!(answer.contains("polity-report-2.md") && answer.contains("# Sums"), "{answer}");
        assert!(answer.contains(".md 2"), "the search counts the files: {answer}");
        let report = fs::read_to_string(project.join("polity-report-2.md")).expect("the report");
        assert!(report.contains("What is here?") && report.contains("README.md"), "{report}");
        for told in [&answer, &report] {
            check_command(&polity, told);
        }
        let unmarked = |line: &&str| !line.trim().is_empty() && !line.contains(mark.trim_end());
        assert_eq!(report.lines().find(unmarked), None, "{report}");
        assert_eq!(fs::read_to_string(project.join("polity-report.md")).expect("a file"), "mine");
        assert_eq!(files_below(&project).len(), 5, "nothing else is written");
    }
}

#[test]
fn nothing_is_written_in_a_read_only_workspace() {
    for (language, mark, told) in [("zh", CHINESE, "只读"), ("en", ENGLISH, "read-only")] {
        let polity = polity(language);
        let project = project(&polity);
        let answer = marked(run(&polity, &["What is here?", "--workspace", "project:ro"]), mark);
        assert!(answer.contains(told) && answer.contains("# Sums"), "{answer}");
        assert!(answer.contains("artifact:"), "the report is an artifact: {answer}");
        check_command(&polity, &answer);
        assert_eq!(files_below(&project).len(), 3, "nothing is written");
    }
}

#[test]
fn without_a_workspace_no_tool_touches_a_file() {
    let polity = polity("en");
    let ended = run(&polity, &["What is here?", "--json"]).expect_code(0);
    let lines = json_lines(&ended.stdout);
    assert_eq!(events(&lines, "tool_started").len(), 0, "{}", ended.stdout);
    assert!(!polity.data_dir().join("workspaces").exists(), "a workspace was made");
}
