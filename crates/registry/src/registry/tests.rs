use super::*;
use crate::sources::{KeyPresence, Origin};
use polity_society::id::ServiceId;
use polity_society::text::TextKey;
use std::fs;
use tempfile::TempDir;

const TWO: &str = r#"{"services": [{"id": "a", "baseURL": "http://a.example", "model": "m"},
                                  {"id": "b", "baseURL": "http://b.example", "model": "m"}]}"#;

/// Returns a discovery that fails the test if the registry calls it.
fn unasked() -> Discovery {
    Box::new(|| panic!("the discovery must not be called"))
}

/// Returns a discovery that finds no model server.
fn nothing_there() -> Discovery {
    Box::new(|| Box::pin(async { Vec::new() }))
}

/// Returns a discovery that finds a server, and fails the test if the registry calls it twice.
fn finds_ollama_once() -> Discovery {
    let asked = std::sync::atomic::AtomicBool::new(false);
    Box::new(move || {
        assert!(!asked.swap(true, std::sync::atomic::Ordering::SeqCst), "the discovery was called twice");
        let endpoint = polity_llm::Endpoint::new("http://127.0.0.1:11434/v1", "m");
        let service = crate::services::Service::new(polity_society::id::ServiceId::new("local"), endpoint);
        let first = crate::services::Service { context_window: Some(4_096), ..service };
        let found = Discovered { server_name: "Ollama".to_owned(), first, others: Vec::new() };
        Box::pin(async { vec![found] })
    })
}

fn no_environment() -> Environment {
    Environment { openai_api_key: KeyPresence::Unset, openai_base_url: None, openai_model: None }
}

fn directory(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        write(&dir, name, text);
    }
    dir
}

fn write(dir: &TempDir, name: &str, text: &str) {
    let path = dir.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

async fn loaded(dir: &TempDir) -> Registry {
    let (registry, problems) = Registry::load(dir.path(), no_environment(), unasked()).await.unwrap();
    assert_eq!(problems, []);
    registry
}

fn unchanged(reloaded: &Reloaded) -> &Snapshot {
    match reloaded {
        Reloaded::Unchanged(snapshot) => snapshot,
        Reloaded::Changed(snapshot) => panic!("revision {}", snapshot.revision),
    }
}

fn changed(reloaded: &Reloaded) -> &Snapshot {
    match reloaded {
        Reloaded::Changed(snapshot) => snapshot,
        Reloaded::Unchanged(snapshot) => panic!("{:?}", snapshot.problems),
    }
}

fn problems(snapshot: &Snapshot) -> Vec<String> {
    snapshot.problems.iter().map(Problem::to_string).collect()
}

#[tokio::test]
async fn an_empty_directory_rehearses_unless_a_server_is_found() {
    let dir = directory(&[]);
    let (registry, _) = Registry::load(dir.path(), no_environment(), nothing_there()).await.unwrap();
    assert_eq!(registry.current().catalogue.origin(), &Origin::Rehearsal);
    let (registry, _) = Registry::load(dir.path(), no_environment(), finds_ollama_once()).await.unwrap();
    assert_eq!(registry.current().catalogue.origin(), &Origin::Discovered(vec!["Ollama".to_owned()]));

    write(&dir, "app.json", r#"{"discover": false}"#);
    let registry = loaded(&dir).await;
    assert_eq!(registry.current().catalogue.origin(), &Origin::Rehearsal);
}

#[tokio::test]
async fn the_written_defaults_load_without_a_problem() {
    let dir = directory(&[]);
    files::write_defaults(dir.path()).unwrap();
    let (registry, problems) = Registry::load(dir.path(), no_environment(), nothing_there()).await.unwrap();
    assert_eq!(problems, []);
    assert_eq!(*registry.current().settings, Settings::default());
}

#[tokio::test]
async fn a_first_load_tells_all_problems_of_all_files() {
    let dir = directory(&[("app.json", "{"), ("llmservices.json", r#"{"services": [{"id": "a"}]}"#)]);
    let error = Registry::load(dir.path(), no_environment(), unasked()).await.unwrap_err();
    let lines: Vec<_> = error.problems.iter().map(Problem::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    app.json:1:2: Unterminated object (after `{`); the file is not used
    llmservices.json: /services/0/baseURL: missing; the service "a" is left out
    llmservices.json: /services/0/model: missing; the service "a" is left out
    llmservices.json: /services: none of the services is valid; the file is not used
    "#);
    assert!(error.to_string().contains("/services/0/baseURL"));
}

#[tokio::test]
async fn a_change_is_one_new_revision_and_no_change_is_none() {
    let dir = directory(&[("app.json", "{}"), ("llmservices.json", TWO)]);
    let registry = loaded(&dir).await;
    let first = registry.current();
    assert_eq!((first.revision, first.catalogue.revision()), (1, 1));
    assert_eq!(unchanged(&registry.reload().await).revision, 1);

    write(&dir, "app.json", r#"{"defaultService": "b"}"#);
    let second = registry.reload().await;
    let second = changed(&second);
    assert_eq!((second.revision, second.catalogue.revision()), (2, 2));
    assert_eq!(second.catalogue.default_service().id, ServiceId::new("b"));

    write(&dir, "app.json", r#"{"defaultService": "b", "language": "en"}"#);
    let third = registry.reload().await;
    let third = changed(&third);
    assert_eq!((third.revision, third.catalogue.revision()), (3, 2));
    assert_ne!(third.prompts.base, first.prompts.base);

    write(
        &dir,
        "llmservices.json",
        r#"{"services": [{"id": "c", "baseURL": "http://c.example", "model": "m"}]}"#,
    );
    let fourth = registry.reload().await;
    let fourth = changed(&fourth);
    assert_eq!((fourth.revision, fourth.catalogue.revision()), (4, 4));
    assert_eq!(fourth.catalogue.default_service().id, ServiceId::new("c"));
    assert_eq!(fourth.problems.len(), 1);
    // The first snapshot itself does not change.
    assert_eq!(first.catalogue.services().len(), 2);
}

#[tokio::test]
async fn what_cannot_be_taken_changes_nothing() {
    let app = r#"{"limits": {"maxDepth": 3}}"#;
    let dir = directory(&[("app.json", app), ("llmservices.json", TWO)]);
    let registry = loaded(&dir).await;
    for broken in ["", "{", "[]", r#"{"services": 1}"#, r#"{"services": [{"id": "z"}]}"#] {
        write(&dir, "llmservices.json", broken);
        let reloaded = registry.reload().await;
        let snapshot = unchanged(&reloaded);
        assert_eq!((snapshot.revision, snapshot.catalogue.services().len()), (1, 2));
        assert!(!snapshot.problems.is_empty());
        assert_eq!(registry.current().problems, snapshot.problems);
    }
    write(&dir, "llmservices.json", TWO);
    write(&dir, "app.json", r#"{"limits": {"maxDepth": 4}"#);
    let reloaded = registry.reload().await;
    assert_eq!(unchanged(&reloaded).settings.limits.max_depth, 3);
    assert_eq!(
        problems(unchanged(&reloaded)),
        ["app.json:1:27: Unterminated object (after `{\"limits\": {\"maxDepth\": …}`); the file is not used"]
    );
    write(&dir, "app.json", app);
    assert_eq!(problems(unchanged(&registry.reload().await)), [""; 0]);
}

#[tokio::test]
async fn a_file_that_is_gone_for_a_moment_changes_nothing() {
    let dir = directory(&[("app.json", r#"{"defaultService": "b"}"#), ("llmservices.json", TWO)]);
    let registry = loaded(&dir).await;
    fs::remove_file(dir.path().join("app.json")).unwrap();
    fs::remove_file(dir.path().join("llmservices.json")).unwrap();
    let reloaded = registry.reload().await;
    assert_eq!(unchanged(&reloaded).catalogue.origin(), &Origin::File);
    insta::assert_snapshot!(problems(unchanged(&reloaded)).join("\n"), @r"
    app.json: the file is gone; its last content stays in force until the next start
    llmservices.json: the file is gone; its last content stays in force until the next start
    ");
}

#[tokio::test]
async fn an_emptied_list_brings_the_next_source_in() {
    let dir = directory(&[("llmservices.json", TWO)]);
    let (registry, _) = Registry::load(dir.path(), no_environment(), finds_ollama_once()).await.unwrap();
    write(&dir, "llmservices.json", r#"{"services": []}"#);
    let reloaded = registry.reload().await;
    assert_eq!(changed(&reloaded).catalogue.origin(), &Origin::Discovered(vec!["Ollama".to_owned()]));
    // A reload keeps the server that was found, and does not search again.
    unchanged(&registry.reload().await);
    write(&dir, "app.json", r#"{"discover": false}"#);
    let reloaded = registry.reload().await;
    assert_eq!(changed(&reloaded).catalogue.origin(), &Origin::Rehearsal);
}

#[tokio::test]
async fn prompts_are_replaced_file_by_file() {
    let texts = "message.from_user = \"<user>\"";
    let dir = directory(&[
        ("app.json", r#"{"language": "en", "prompts": "mine", "discover": false}"#),
        ("mine/en/base.txt", "Be brief."),
        ("mine/en/texts.toml", texts),
        ("mine/zh/base.txt", "简短。"),
    ]);
    let registry = loaded(&dir).await;
    let first = registry.current();
    assert_eq!(first.prompts.base, "Be brief.");
    assert_eq!(first.prompts.texts.get(TextKey::MessageFromUser), "<user>");

    write(&dir, "mine/en/texts.toml", "message.from_user = ");
    write(&dir, "mine/en/base.txt", "");
    let reloaded = registry.reload().await;
    let snapshot = unchanged(&reloaded);
    assert_eq!(snapshot.prompts.base, "Be brief.");
    assert_eq!(snapshot.prompts.texts.get(TextKey::MessageFromUser), "<user>");
    assert_eq!(snapshot.problems.len(), 2);

    write(&dir, "mine/en/texts.toml", "message.from_user = \"<you>\"");
    fs::remove_file(dir.path().join("mine/en/base.txt")).unwrap();
    let reloaded = registry.reload().await;
    let snapshot = changed(&reloaded);
    assert_eq!(snapshot.prompts.texts.get(TextKey::MessageFromUser), "<you>");
    assert_ne!(snapshot.prompts.base, "Be brief.");

    write(&dir, "app.json", r#"{"language": "en", "discover": false}"#);
    let reloaded = registry.reload().await;
    assert_ne!(changed(&reloaded).prompts.texts.get(TextKey::MessageFromUser), "<you>");

    write(&dir, "app.json", r#"{"prompts": "nowhere", "discover": false}"#);
    let reloaded = registry.reload().await;
    assert_eq!(
        problems(changed(&reloaded)),
        ["app.json: /prompts: is not a directory; the built-in prompts are used"]
    );
}

#[tokio::test]
async fn no_secret_is_ever_shown() {
    let secret = "sk-1234567890";
    let text = TWO.replace("\"model\": \"m\"", &format!("\"model\": \"m\", \"apiKey\": \"{secret}\""));
    let dir = directory(&[("llmservices.json", &text)]);
    let registry = loaded(&dir).await;
    let before = format!("{registry:?} {:?}", registry.current());
    write(&dir, "llmservices.json", &text.replace("http://b", "b"));
    let after = format!("{:?}", registry.reload().await);
    write(&dir, "llmservices.json", &format!("{text}{secret}"));
    let broken = format!("{:?}", registry.reload().await);
    assert!(![before, after, broken].iter().any(|shown| shown.contains(secret)));
}

/// Receives the next report, and checks that no further report is waiting.
fn only(reports: &mut broadcast::Receiver<Report>) -> Report {
    let report = reports.try_recv().unwrap();
    assert!(reports.try_recv().is_err());
    report
}

#[tokio::test]
async fn a_report_says_whether_the_change_was_taken() {
    let three = TWO.replace("]}", r#", {"id": "c", "baseURL": "http://c.example", "model": "m"}]}"#);
    let with_a_bad_one = three.replace("]}", r#", {"id": "d"}]}"#);
    let with_an_odd_field = three.replace("\"id\": \"c\"", "\"id\": \"c\", \"colour\": 1");
    let dir = directory(&[("app.json", "{}"), ("llmservices.json", TWO)]);
    let registry = loaded(&dir).await;
    let mut reports = registry.reports();
    let mut check = async |file: &str,
                           text: Option<&str>,
                           expect: ReloadOutcome,
                           differences: &[&str],
                           problems: usize| {
        match text {
            Some(text) => write(&dir, file, text),
            None => fs::remove_file(dir.path().join(file)).unwrap(),
        }
        let revision = registry.reload().await;
        let report = only(&mut reports);
        assert_eq!((report.outcome, report.problems.len()), (expect, problems), "{report:?}");
        assert_eq!(report.differences, differences);
        let (Reloaded::Changed(snapshot) | Reloaded::Unchanged(snapshot)) = revision;
        assert_eq!((report.revision, &report.problems), (snapshot.revision, &snapshot.problems));
    };
    let services = "llmservices.json";
    check(services, Some(&three), ReloadOutcome::Taken, &["service c added"], 0).await;
    check(services, Some("{"), ReloadOutcome::Kept, &[], 1).await;
    // The previous step has left a problem in another file. The registry accepts this change in spite of it.
    check(
        "app.json",
        Some(r#"{"language": "en"}"#),
        ReloadOutcome::Taken,
        &["language: zh → en", "prompts changed"],
        1,
    )
    .await;
    check("app.json", Some(r#"{"language": "en", "colour": 1}"#), ReloadOutcome::Unchanged, &[], 2).await;
    check("app.json", Some(r#"{"language": "en", "synchronous": 1}"#), ReloadOutcome::Kept, &[], 2).await;
    check("app.json", Some(r#"{"language": "en"}"#), ReloadOutcome::Unchanged, &[], 1).await;
    check(services, Some(&three), ReloadOutcome::Unchanged, &[], 0).await;
    check(services, Some(&with_a_bad_one), ReloadOutcome::Kept, &[], 2).await;
    check(services, Some(&three), ReloadOutcome::Unchanged, &[], 0).await;
    check(
        services,
        Some(&with_an_odd_field),
        ReloadOutcome::Taken,
        &["service c: unknown fields changed"],
        1,
    )
    .await;
    check(services, None, ReloadOutcome::Kept, &[], 1).await;
    check(services, Some(TWO), ReloadOutcome::Taken, &["service c removed"], 0).await;
    // The valid part of a change takes effect, and the problems name the invalid part.
    check(services, Some(&with_a_bad_one), ReloadOutcome::Taken, &["service c added"], 2).await;
}

#[tokio::test]
async fn comments_are_no_new_revision_and_nothing_to_report() {
    let dir = directory(&[("app.json", "{}"), ("llmservices.json", TWO)]);
    let registry = loaded(&dir).await;
    let mut reports = registry.reports();
    write(&dir, "llmservices.json", &format!("// mine\n{TWO}"));
    write(&dir, "app.json", "{ /* mine */ }");
    let reloaded = registry.reload().await;
    assert_eq!(unchanged(&reloaded).revision, 1);
    assert!(reports.try_recv().is_err());
}

#[tokio::test]
async fn variables_are_looked_up_for_the_services_in_force() {
    let text = TWO.replace("\"id\": \"b\"", "\"id\": \"b\", \"apiKey\": \"${B_KEY}\"");
    let dir = directory(&[("llmservices.json", &text)]);
    let registry = loaded(&dir).await;
    let unset = |_: &str| None;
    let expect = "llmservices.json: /services/1/apiKey: the environment variable B_KEY is not set; \
                  calls to the service \"b\" fail until it is";
    // A file that cannot be used does not replace the services in force.
    for text in [&*text, "{"] {
        write(&dir, "llmservices.json", text);
        registry.reload().await;
        let problems = registry.unset_variables(unset).await;
        assert_eq!(problems.iter().map(Problem::to_string).collect::<Vec<_>>(), [expect]);
    }
    let set = |name: &str| (name == "B_KEY").then(|| "sk-1".to_owned());
    assert_eq!(registry.unset_variables(set).await, []);
    write(&dir, "llmservices.json", TWO);
    registry.reload().await;
    assert_eq!(registry.unset_variables(unset).await, []);
}
