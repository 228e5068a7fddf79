//! Tests of every route on a society with a history: the person asked about a picture, and root hired agents.

use crate::scripted;
use crate::support::{Daemon, File, asked};
use axum::body::Body;
use axum::http::header;
use serde_json::{Value, json};

const PICTURE: &[u8] = include_bytes!("../../../../examples/picture.png");

/// Starts a society and asks it about a picture.
async fn busy() -> (Daemon, Value) {
    let daemon = Daemon::start().await;
    let picture =
        File { field: "attachment", filename: "picture.png", content_type: "image/png", bytes: PICTURE };
    let posted = daemon.post_form("/api/messages", &[("text", "What is in this?")], &[picture]).await;
    assert_eq!(posted.status, 201, "{:?}", posted.body);
    daemon.idle().await;
    let posted = posted.json();
    (daemon, posted)
}

/// Returns a hired agent, in the form of `GET /api/agents`.
async fn hired(daemon: &Daemon) -> Value {
    let page = daemon.get("/api/agents?limit=1000").await.ok();
    let agents = page["agents"].as_array().unwrap().clone();
    agents.into_iter().find(|agent| agent.get("roleId").is_some()).unwrap()
}

/// Starts a society in which root asks the person before it creates a file. Calls the routes for questions,
/// permissions and files of workspaces.
async fn busy_with_files() -> Daemon {
    let daemon =
        scripted::asking(vec![scripted::create("notes.md", "one\n"), scripted::create("b.md", "two\n")])
            .await;
    let task = daemon.post_prompt("Write notes.").await;
    let first = scripted::open_approval(&daemon).await;
    daemon.get(&format!("/api/approvals/{first}")).await.ok();
    scripted::answer(&daemon, &first, &json!({"answer": "always"})).await.ok();
    daemon.idle().await;
    let permissions = daemon.get("/api/permissions").await.ok();
    let permission = permissions[0]["id"].as_str().unwrap();
    daemon.call("DELETE", &format!("/api/permissions/{permission}")).await;
    let files = daemon.get(&format!("/api/tasks/{task}/workspace")).await.ok();
    assert_eq!(files["content"]["entries"][0]["name"], "b.md");
    daemon.get(&format!("/api/tasks/{task}/changes")).await.ok();
    daemon
}

#[tokio::test]
async fn every_route_is_good_for_something() {
    let (daemon, posted) = busy().await;
    let task = posted["task"].as_str().unwrap();
    assert_eq!((&posted["to"], &posted["duplicate"]), (&json!("root"), &json!(false)));

    let tasks = daemon.get("/api/tasks?state=idle").await.ok();
    assert_eq!(tasks["tasks"][0]["id"], task);
    assert_eq!(tasks["tasks"][0]["title"], "What is in this?");
    assert_eq!(daemon.get(&format!("/api/tasks/{task}")).await.ok()["outcome"], "answered");

    let now = daemon.get("/api/now?limit=5").await.ok();
    assert_eq!((&now["running"], &now["stuck"]), (&json!(true), &json!([])));
    assert!(now["asOf"].as_i64().unwrap() > 0);

    let reader = hired(&daemon).await;
    let (agent, role) = (reader["id"].as_str().unwrap(), reader["roleId"].as_str().unwrap());
    let seeing = daemon.get("/api/agents?capability=vision&direction=input").await.ok();
    assert_eq!(seeing["agents"].as_array().unwrap().len(), 1);
    assert!(seeing["asOf"].as_i64().unwrap() > 0);
    let named = daemon.get("/api/agents?ids=user,nobody,root").await.ok();
    let named: Vec<&Value> = named["agents"].as_array().unwrap().iter().map(|agent| &agent["id"]).collect();
    assert_eq!(named, ["user", "root"]);
    assert_eq!(daemon.get(&format!("/api/agents/{agent}")).await.ok()["task"], task);
    let contacts = daemon.get("/api/agents/root/contacts").await.ok();
    assert!(contacts.as_array().unwrap().iter().any(|contact| contact["agent"] == "user"));
    let said = daemon.get(&format!("/api/agents/root/conversation?task={task}&limit=2")).await.ok();
    assert_eq!(said["entries"].as_array().unwrap().len(), 2);
    let before = said["next"].as_i64().unwrap();
    let earlier =
        daemon.get(&format!("/api/agents/root/conversation?task={task}&before={before}")).await.ok();
    assert!(
        earlier["entries"].as_array().unwrap().iter().all(|entry| entry["seq"].as_i64().unwrap() < before)
    );
    let preview = daemon.get(&format!("/api/agents/root/request?task={task}")).await.ok();
    assert!(preview["request"]["messages"].as_array().is_some_and(|messages| messages.len() > 1));
    assert!(daemon.get(&format!("/api/agents/{agent}/request?full=true")).await.ok()["request"].is_object());

    let replied = said["entries"].as_array().unwrap().iter().chain(earlier["entries"].as_array().unwrap());
    let sent = replied.filter_map(|entry| entry["sent"].as_i64()).next().unwrap();
    let sent = daemon.get(&format!("/api/sent/{sent}")).await.ok();
    assert_eq!((&sent["agent"], &sent["outcome"]), (&json!("root"), &json!("answered")));
    assert!(sent["body"].as_str().unwrap().starts_with("{\"model\":"), "{sent}");

    let pictures = daemon.get(&format!("/api/artifacts?task={task}&kind=image")).await.ok();
    let picture = pictures["artifacts"][0]["id"].as_str().unwrap();
    let why = daemon.get(&format!("/api/why/{picture}?agent=root")).await.ok();
    assert_eq!(why["chain"][0]["fact"], "described", "{why}");

    let tried = daemon.call("POST", &format!("/api/tasks/{task}/try")).await.ok();
    assert_eq!(tried["agents"], json!([]), "a model was used in it");
    let stopped = daemon.call("POST", &format!("/api/tasks/{task}/stop")).await.ok();
    assert_eq!(stopped["agents"], json!([]), "no agent works in it any more");
    let messages = daemon.get(&format!("/api/messages?task={task}&to=user&order=newest")).await.ok();
    let answer = &messages["messages"][0];
    assert_eq!((&answer["from"], &answer["finality"]), (&json!("root"), &json!("final")));
    let answer = answer["id"].as_str().unwrap();
    assert_eq!(daemon.get(&format!("/api/messages/{answer}")).await.ok()["id"], answer);
    let unshown =
        async || daemon.get("/api/messages?unshown=true").await.ok()["messages"].as_array().unwrap().len();
    let left = unshown().await;
    let shown = daemon.call("POST", &format!("/api/messages/{answer}/shown")).await;
    assert_eq!((shown.status.as_u16(), shown.body.len()), (204, 0));
    assert_eq!(unshown().await, left - 1);

    assert_eq!(daemon.get(&format!("/api/roles/{role}")).await.ok()["id"], role);
    let patch = json!({"prompt": "Look twice."});
    let patched = daemon.send_json("PATCH", &format!("/api/roles/{role}"), &patch).await.ok();
    assert_eq!(patched["prompt"], "Look twice.");

    for (step, expect) in [("pause", json!([agent])), ("resume", json!([agent])), ("stop", json!([]))] {
        let path = format!("/api/agents/{agent}/{step}?scope=agent");
        assert_eq!(daemon.call("POST", &path).await.ok()["agents"], expect, "{step}");
    }

    let found = daemon.get(&format!("/api/search?q=WHAT%20is&kind=task&task={task}&limit=5")).await.ok();
    assert_eq!(found["hits"][0]["id"], task);
    let snippet = found["hits"][0]["snippet"].as_array().unwrap();
    assert_eq!(snippet[..2], [json!({"text": "What", "hit": true}), json!({"text": " "})]);
    let artifacts = daemon.get(&format!("/api/artifacts?task={task}&kind=image")).await.ok();
    let picture = artifacts["artifacts"][0]["id"].as_str().unwrap();
    assert_eq!(daemon.get(&format!("/api/artifacts/{picture}")).await.ok()["mimeType"], "image/png");
    let content = daemon.get(&format!("/api/artifacts/{picture}/content")).await;
    assert_eq!(&content.body[..], PICTURE);
    let uses = daemon.get(&format!("/api/artifacts/{picture}/uses")).await.ok();
    assert_eq!(uses["messages"].as_array().unwrap().last().unwrap()["from"], "user");
    let ways: Vec<_> = uses["shown"].as_array().unwrap().iter().map(|shown| &shown["routing"]).collect();
    assert!(ways.contains(&&json!("described")) && ways.contains(&&json!("image_url")), "{ways:?}");
    let html = daemon.upload("/api/artifacts?filename=a.html", "text/html", b"<b>a</b>").await.json();
    let page = daemon.get(&format!("/api/artifacts/{}/page", html["id"].as_str().unwrap())).await;
    assert_eq!(page.text(), "<b>a</b>");
    let stored = daemon.upload("/api/artifacts?filename=a.txt", "text/plain", b"hello").await;
    assert_eq!(stored.status, 201);

    let services = daemon.get("/api/services").await.ok();
    let service = services[0]["id"].as_str().unwrap();
    assert!(
        daemon.get(&format!("/api/services/{service}")).await.ok()["usage"]["calls"].as_u64().unwrap() > 0
    );
    let tried = daemon.call("POST", &format!("/api/services/{service}/try")).await.ok();
    assert_eq!(tried["id"], services[0]["id"]);
    assert_eq!(daemon.get("/api/servers").await.ok(), json!([]));
    assert_eq!(daemon.get(&format!("/api/commands?agent=root&task={task}")).await.ok(), json!([]));
    let config = daemon.get("/api/config").await.ok();
    let freed = daemon.call("POST", "/api/gc?dryRun=true").await.ok();
    assert_eq!(freed["stored"]["files"], 0, "what was stored lately stays: {freed}");
    assert_eq!(daemon.get("/api/config/in-force").await.ok()["revision"], config["revision"]);
    assert_eq!(daemon.call("POST", "/api/config/reload").await.ok()["revision"], config["revision"]);
    assert!(
        daemon.get(&format!("/api/usage?task={task}")).await.ok()["total"]["calls"].as_u64().unwrap() > 0
    );
    assert!(!daemon.get("/api/events?kind=task_idle").await.ok()["events"].as_array().unwrap().is_empty());
    let figures = daemon.get("/metrics").await;
    assert!(figures.text().contains("\npolity_tasks{state=\"idle\"} 1\n"), "{}", figures.text());
    // Usage is deleted with its tasks, so these metrics can decrease and must be gauges.
    assert!(figures.text().contains("# TYPE polity_model_calls gauge\n"));
    assert!(figures.text().contains("polity_model_calls{service=\"rehearsal-text\""));
    assert_eq!(daemon.get("/api/openapi.json").await.ok(), *crate::support::DESCRIPTION);
    assert_eq!(daemon.get("/healthz").await.status, 200);
    assert_eq!(daemon.get("/readyz").await.status, 200);

    let fork = json!({"turn": earlier["entries"][0]["turn"], "text": "What is it?"});
    let forked = daemon.send_json("POST", &format!("/api/tasks/{task}/fork"), &fork).await;
    assert_eq!((forked.status.as_u16(), &forked.json()["from"]), (201, &json!(task)));
    daemon.idle().await;

    let session = daemon.call("POST", "/api/session").await.ok();
    let ticket = session["url"].as_str().unwrap().split_once("/login").unwrap().1.to_owned();
    assert_eq!(daemon.get(&format!("/login{ticket}")).await.status, 303);
    let form = asked("POST", "/login").header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let form = form.body(Body::from(format!("token={}", crate::support::TOKEN))).unwrap();
    assert_eq!(daemon.send(form).await.status, 303);
    let leaving = daemon.call("POST", "/api/shutdown").await;
    assert_eq!((leaving.status.as_u16(), &leaving.json()["pid"]), (202, &json!(std::process::id())));
    assert!(daemon.ending.asked.is_cancelled());
    let other = busy_with_files().await;
    daemon.assert_all_succeeded(&other);
    other.stop().await;
    daemon.stop().await;
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let daemon = Daemon::start().await;
    for path in [
        "/api/tasks/nothing",
        "/api/agents/nobody",
        "/api/agents/nobody/contacts",
        "/api/sent/999",
        "/api/sent/nothing",
        "/api/why/nothing",
        "/api/agents/nobody/conversation",
        "/api/agents/root/conversation?task=nothing",
        "/api/agents/nobody/request",
        "/api/agents/root/request?task=nothing",
        "/api/messages/m000000099",
        "/api/messages/nothing",
        "/api/artifacts/nothing1",
        "/api/artifacts/nothing1/content",
        "/api/artifacts/nothing1/page",
        "/api/artifacts/nothing1/uses",
        "/api/services/nothing",
        "/api/roles/nothing",
        "/api/approvals/nothing",
        "/api/tasks/nothing/workspace",
        "/api/tasks/nothing/changes",
    ] {
        daemon.get(path).await.assert_problem(404, "not_found");
    }
    for path in [
        "/api/agents/nobody/stop",
        "/api/tasks/t-nothing/stop",
        "/api/tasks/t-nothing/try",
        "/api/agents/nobody/pause?scope=agent",
        "/api/agents/nobody/resume",
        "/api/messages/m000000099/shown",
    ] {
        daemon.call("POST", path).await.assert_problem(404, "not_found");
    }
    daemon.send_json("PATCH", "/api/roles/nothing", &json!({})).await.assert_problem(404, "not_found");
    daemon.stop().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let daemon = Daemon::start().await;
    for path in [
        "/api/tasks?state=asleep",
        "/api/tasks?limit=0",
        "/api/tasks?limit=1001",
        "/api/tasks?stat=open",
        "/api/agents?state=asleep",
        "/api/agents?direction=up",
        "/api/agents?ended=perhaps",
        "/api/agents?limit=-1",
        "/api/agents?ids=",
        "/api/agents?ids=root,,user",
        "/api/agents?ids=root,%20user",
        "/api/agents?ids=root%0a",
        "/api/agents/root/conversation?before=soon",
        "/api/agents/root/request?full=much",
        "/api/messages?order=random",
        "/api/messages?after=yesterday",
        "/api/messages?before=m",
        "/api/messages?unshown=1&unshown=1",
        "/api/artifacts?kind=spoon",
        "/api/usage?user=me",
        "/api/commands?command=ls",
        "/api/events?after=1&before=2",
        "/api/events?live=true",
    ] {
        daemon.get(path).await.assert_problem(400, "invalid_arguments");
    }
    daemon.call("POST", "/api/agents/root/stop?scope=world").await.assert_problem(400, "invalid_arguments");
    daemon.call("POST", "/api/agents/user/stop").await.assert_problem(422, "invalid_arguments");
    daemon.stop().await;
}

#[tokio::test]
async fn a_message_is_taken_once() {
    let daemon = Daemon::start().await;
    let post = async |text: &str, key: &str| {
        let body = Body::from(json!({"text": text}).to_string());
        let request = asked("POST", "/api/messages").header(header::CONTENT_TYPE, "application/json");
        daemon.send(request.header("Idempotency-Key", key).body(body).unwrap()).await
    };
    let first = post("hello", "k1").await;
    assert_eq!(first.status, 201);
    let again = post("hello", "k1").await;
    assert_eq!((again.status.as_u16(), again.json()["duplicate"].clone()), (200, json!(true)));
    assert_eq!(again.json()["id"], first.json()["id"]);
    post("something else", "k1").await.assert_problem(409, "key_reused");
    assert_ne!(post("hello", "k2").await.json()["id"], first.json()["id"]);
    post("hello", "").await.assert_problem(400, "invalid_arguments");
    post("hello", &"k".repeat(256)).await.assert_problem(400, "invalid_arguments");
    daemon.idle().await;
    daemon.stop().await;
}

#[tokio::test]
async fn what_the_person_writes_has_to_say_something_to_somebody() {
    let (daemon, posted) = busy().await;
    let check = async |body: Value, status: u16, code: &str| {
        daemon.send_json("POST", "/api/messages", &body).await.assert_problem(status, code);
    };
    check(json!({"text": "a", "payload": {"text": "b"}}), 422, "invalid_arguments").await;
    check(json!({"text": 1}), 422, "invalid_arguments").await;
    check(json!({"words": "a"}), 422, "invalid_arguments").await;
    check(json!({"text": ""}), 422, "invalid_message").await;
    check(json!({"payload": {}}), 422, "invalid_message").await;
    check(json!({"text": "a", "to": "nobody"}), 422, "unknown_contact").await;
    check(json!({"text": "a", "to": "user"}), 422, "invalid_arguments").await;
    check(json!({"text": "a", "task": "nothing"}), 404, "not_found").await;
    check(json!({"text": "a", "service": "nothing"}), 422, "invalid_arguments").await;
    check(json!({"text": "a", "attachments": ["artifact:nothing1"]}), 422, "artifact_not_found").await;
    check(json!({"text": "a", "attachments": ["../../etc/passwd"]}), 422, "artifact_not_found").await;
    let long = "x".repeat(200_001);
    check(json!({"text": long}), 409, "limit_reached").await;

    let request = asked("POST", "/api/messages").header(header::CONTENT_TYPE, "application/json");
    let request = request.body(Body::from("{")).unwrap();
    daemon.send(request).await.assert_problem(400, "invalid_arguments");
    let plain = daemon.upload("/api/messages", "text/plain", b"hello").await;
    plain.assert_problem(415, "unsupported_media_type");
    let huge = vec![b' '; 2_000_000];
    daemon.upload("/api/messages", "application/json", &huge).await.assert_problem(413, "body_too_large");

    // A message to a hired agent continues the agent's task. A message that names a task continues that task.
    let agent = hired(&daemon).await["id"].as_str().unwrap().to_owned();
    let to_agent = daemon.send_json("POST", "/api/messages", &json!({"to": agent, "text": "And you?"})).await;
    assert_eq!((to_agent.status.as_u16(), to_agent.json()["task"].clone()), (201, posted["task"].clone()));
    let on = json!({"text": "And then?", "task": posted["task"]});
    assert_eq!(daemon.send_json("POST", "/api/messages", &on).await.json()["task"], posted["task"]);
    daemon.idle().await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_stored_artifact_goes_with_a_message() {
    let daemon = Daemon::start().await;
    let stored = daemon.upload("/api/artifacts?filename=notes.md", "text/markdown", b"# Notes").await.ok();
    let body = json!({"text": "Read this.", "attachments": [stored["reference"]]});
    let posted = daemon.send_json("POST", "/api/messages", &body).await.ok();
    let message = daemon.get(&format!("/api/messages/{}", posted["id"].as_str().unwrap())).await.ok();
    assert_eq!(message["attachments"][0]["id"], stored["id"]);
    daemon.idle().await;
    daemon.stop().await;
}

#[tokio::test]
async fn roles_change_by_what_can_be_read() {
    let (daemon, _) = busy().await;
    let role = hired(&daemon).await["roleId"].as_str().unwrap().to_owned();
    let path = format!("/api/roles/{role}");
    for patch in [json!({"name": "x"}), json!({"prompt": 1}), json!({"serviceId": "nothing"})] {
        let answer = daemon.send_json("PATCH", &path, &patch).await;
        answer.assert_problem(422, "invalid_arguments");
    }
    let request = asked("PATCH", &path).body(Body::from("{}")).unwrap();
    daemon.send(request).await.assert_problem(415, "unsupported_media_type");
    daemon.stop().await;
}
