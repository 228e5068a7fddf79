//! Tests of `put_artifact` with `path` and `get_artifact` with `saveTo`.

use super::approvals::{answer, questions};
use super::*;
use polity_files::ContentHash;
use polity_hands::call::{Access, Place, Root, Source};
use polity_hands::views::Views;
use polity_society::approval::Answer;
use polity_view::ApprovalFilter;
use polity_workspaces::Workspaces;
use std::path::PathBuf;

/// Returns `tools` together with the outside tools of a society that has workspaces.
pub(super) fn with_workspaces(world: &World, tools: Vec<FakeTool>) -> Hands {
    let workspaces = world.directory.path().join("workspaces");
    let views = Arc::new(Views::new(&workspaces));
    hands(tools).in_workspaces(Arc::new(Workspaces::new(workspaces))).with_views(views)
}

/// Makes the workspace of the task. Returns the path of a file in it.
pub(super) async fn file(world: &World, name: &str) -> PathBuf {
    let workspaces = Workspaces::new(world.directory.path().join("workspaces"));
    let place = Place { root: Root::Made, worktree: None };
    let opened = workspaces.directory(&world.task, &place, &CancellationToken::new()).await.unwrap();
    opened.directory.join(name)
}

pub(super) async fn drive(
    world: &World,
    agent: &str,
    says: Vec<Say>,
    tools: Vec<FakeTool>,
) -> Arc<ScriptedModel> {
    let script = ScriptedModel::in_order(says);
    let handles = world.handles(script.clone(), with_workspaces(world, tools));
    run(&handles, &world.of(agent), &CancellationToken::new()).await.unwrap();
    assert!(script.is_finished(), "the script has answers left");
    script
}

/// Returns the results of an agent's calls, as JSON. Panics if a result shows an artifact.
pub(super) async fn results_of(world: &World, agent: &str) -> Vec<Value> {
    let mut reader = world.store.reader().await.unwrap();
    let texts = &world.snapshot.prompts.texts;
    let history = records::history(&mut reader, &world.of(agent), texts).await.unwrap();
    let results = history.records.into_iter().filter_map(|(_, record)| match record {
        Record::ToolFinished { result: ToolResult::Json(value), .. } => Some(value),
        Record::ToolFinished { result: ToolResult::Outside { content, artifacts, .. }, .. } => {
            assert_eq!(artifacts, [], "an artifact is shown beside a result");
            match content {
                Content::Json(value) => Some(value),
                Content::Text { text, .. } => Some(Value::String(text)),
            }
        }
        _ => None,
    });
    results.collect()
}

fn put(path: &str) -> Say {
    Say::Call("put_artifact", json!({"type": "report", "path": path}))
}

fn save(reference: &Value, path: &str) -> Say {
    Say::Call("get_artifact", json!({"ref": reference, "saveTo": path}))
}

/// Stores a note of root. Returns its reference.
async fn note(world: &World, content: &str) -> Value {
    world.call("root", "put_artifact", json!({"type": "note", "content": content})).await["ref"].clone()
}

#[tokio::test]
async fn files_count_with_the_other_artifacts_of_their_task() {
    let world = World::with(&json!({"maxArtifactBytesPerTask": 10})).await;
    for (name, content) in [("six", "123456"), ("five", "12345"), ("four", "1234")] {
        std::fs::write(file(&world, name).await, content).unwrap();
    }
    world.say("user", "root", json!("copy")).await;
    drive(&world, "root", vec![put("six"), put("five"), put("four"), Say::Text("stored")], Vec::new()).await;
    let told = results_of(&world, "root").await;
    assert_eq!((told[0]["size"].clone(), told[2]["size"].clone()), (json!(6), json!(4)));
    assert_eq!(told[1]["limit"], "maxArtifactBytesPerTask");
    assert_eq!(world.query("SELECT COUNT(*) || '' FROM artifacts").await, ["2"]);
}

#[tokio::test]
async fn a_file_becomes_an_artifact_and_an_artifact_a_file() {
    let world = World::new().await;
    let bytes: Vec<u8> = (0..=255).cycle().take(3000).collect();
    std::fs::write(file(&world, "plot.bin").await, &bytes).unwrap();
    // The helper has mail, so the task does not end with root's turn, and polity does not yet forget what root has made.
    world.say("user", "root", json!("copy")).await;
    world.begin_turn("root").await;
    let helper = world.hire("root", "helper", json!({})).await;
    world.say("root", &helper, json!("help")).await;
    let meta = json!({"type": "plot", "path": "./plot.bin", "meta": {"mimeType": "application/x-plot"}});
    // A model may fill in every argument, some of them with empty values. An empty argument has no effect: here, the
    // call has `content`, and its empty `path` is ignored.
    let content = json!({"type": "note", "path": "", "content": "a note", "encoding": null});
    let says = vec![Say::Calls(vec![("put_artifact", meta), ("put_artifact", content)]), Say::Text("stored")];
    let script = drive(&world, "root", says, Vec::new()).await;
    let told = results_of(&world, "root").await;
    let shown = |name: &str| told[0][name].clone();
    assert_eq!(
        (shown("type"), shown("filename"), shown("size")),
        (json!("plot"), json!("plot.bin"), json!(3000))
    );
    assert_eq!(shown("mimeType"), "application/x-plot");
    assert_eq!(told[1]["type"], "note");
    assert_eq!(world.query("SELECT COUNT(*) || '' FROM artifacts").await, ["2"]);
    // Both artifacts were made for a request, so the asker will be told about both.
    assert_eq!(world.query("SELECT COUNT(*) || '' FROM outputs").await, ["2"]);

    let tools = script.requests()[0].tools.clone();
    let tool = |name: &str| tools.iter().find(|tool| tool.name == name).unwrap().parameters.clone();
    assert_eq!(tool("put_artifact")["required"], json!(["type"]));
    assert!(tool("put_artifact")["properties"].get("path").is_some());
    assert!(tool("get_artifact")["properties"].get("saveTo").is_some());

    world.say("user", "root", json!("back")).await;
    let says = vec![
        save(&told[0]["ref"], "out/copy.bin"),
        save(&told[1]["ref"], "out/copy.bin"),
        Say::Text("saved"),
    ];
    drive(&world, "root", says, Vec::new()).await;
    let told = results_of(&world, "root").await;
    assert_eq!((&told[2]["savedTo"], &told[2]["bytes"]), (&json!("out/copy.bin"), &json!(3000)));
    // The agent itself wrote this file before, so it may replace the file.
    assert_eq!(told[3]["savedTo"], "out/copy.bin");
    assert_eq!(std::fs::read(file(&world, "out/copy.bin").await).unwrap(), b"a note");
}

#[tokio::test]
async fn whoever_may_not_use_files_is_not_offered_the_copies_and_refused() {
    let world = World::new().await;
    std::fs::write(file(&world, "f").await, "secret").unwrap();
    world.say("user", "root", json!("go")).await;
    world.begin_turn("root").await;
    let clerk = world.hire("root", "clerk", json!({"toolGroups": ["artifacts"]})).await;
    world.say("root", &clerk, json!("copy")).await;
    let own = world.call(&clerk, "put_artifact", json!({"type": "note", "content": "x"})).await;
    let script =
        drive(&world, &clerk, vec![put("f"), save(&own["ref"], "g"), Say::Text("I may not")], Vec::new())
            .await;
    for tool in &script.requests()[0].tools {
        let shown = tool.parameters.to_string();
        assert!(!shown.contains("\"path\"") && !shown.contains("\"saveTo\""), "{shown}");
    }
    for told in results_of(&world, &clerk).await {
        assert_eq!((code(&told), &told["groups"]), ("tool_not_permitted", &json!(["files"])), "{told}");
    }
    assert_eq!(world.query("SELECT COUNT(*) || '' FROM artifacts").await, ["1"]);
    assert!(!file(&world, "g").await.exists());
}

#[tokio::test]
async fn what_cannot_be_copied_is_refused_and_changes_nothing() {
    let world = World::with(&json!({"maxArtifactBytes": 10})).await;
    std::fs::write(file(&world, "large").await, "12345678901").unwrap();
    std::fs::write(file(&world, "there").await, "of somebody else").unwrap();
    let small = note(&world, "small").await;
    let check = async |say: Say, expect: &str| {
        world.say("user", "root", json!("copy")).await;
        drive(&world, "root", vec![say.clone(), Say::Text("no")], Vec::new()).await;
        let told = results_of(&world, "root").await.pop().unwrap();
        assert_eq!(code(&told), expect, "{say:?}: {told}");
    };
    check(put("large"), "limit_reached").await;
    check(put("missing"), "invalid_arguments").await;
    check(put("."), "invalid_arguments").await;
    check(put("../../../polity.db"), "workspace_refused").await;
    check(Say::Call("put_artifact", json!({"path": "there"})), "invalid_arguments").await;
    check(save(&json!("artifact:none"), "f"), "artifact_not_found").await;
    check(save(&small, "there"), "file_changed").await;
    check(save(&small, ".git/config"), "workspace_refused").await;
    check(save(&small, "../f"), "workspace_refused").await;
    check(Say::Call("get_artifact", json!({"ref": small, "saveTo": "f", "offset": 3})), "invalid_arguments")
        .await;
    assert_eq!(world.query("SELECT COUNT(*) || '' FROM artifacts").await, ["1"]);
    assert_eq!(std::fs::read(file(&world, "there").await).unwrap(), b"of somebody else");
    assert!(!file(&world, "f").await.exists());
}

/// Tests copying in a directory of the person that agents may only read. Its files count as content from outside,
/// because strangers may have written them.
#[tokio::test]
async fn a_read_only_workspace_is_only_read_and_its_source_is_seen() {
    let world = World::new().await;
    let project = world.directory.path().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("AGENTS.md"), "obey").unwrap();
    let (task, root) =
        (world.task.clone(), Root::Person { directory: project.clone(), access: Access::Read });
    world.write(move |tx| Box::pin(async move { tasks::set_workspace(tx, &task, &root).await })).await;
    let note = note(&world, "x").await;
    world.say("user", "root", json!("copy")).await;
    drive(&world, "root", vec![put("AGENTS.md"), save(&note, "f"), Say::Text("done")], Vec::new()).await;
    let told = results_of(&world, "root").await;
    assert_eq!((code(&told[0]), code(&told[1])), ("ok", "workspace_refused"), "{told:?}");
    assert!(!project.join("f").exists());
    let artifact = told[0]["ref"].as_str().unwrap();
    let seen = world.query("SELECT holder || ' ' || source FROM seen ORDER BY holder").await;
    assert_eq!(seen[..2], ["agent:root files".to_owned(), format!("{artifact} files")]);
}

/// A reader fetches a file from the web. An agent that opens or copies this file counts as having seen the web, and
/// so does an agent that works with the copy.
#[tokio::test]
async fn the_source_of_an_artifact_goes_with_it_into_the_workspace() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    world.begin_turn("root").await;
    let reader = world.hire("root", "reader", json!({})).await;
    world.say("root", &reader, json!("read")).await;
    let picture = polity_hands::call::File {
        bytes: b"\x89PNG\r\n\x1a\n".to_vec().into(),
        declared_mime: None,
        filename: None,
    };
    let page = Output::json(json!({})).with_file(picture).from_source(Source::Web);
    let fetch = FakeTool::returns("fetch", Ok(page));
    drive(&world, &reader, vec![Say::Call("fetch", json!({})), Say::Fail], vec![fetch]).await;
    let artifact = world.query("SELECT id FROM artifacts").await.remove(0);
    let holders = async || world.query("SELECT holder FROM seen WHERE source = 'web' ORDER BY holder").await;
    assert_eq!(holders().await, [format!("agent:{reader}"), format!("artifact:{artifact}")]);
    // Root is the parent of the reader, so root may open the artifact. Root has got no message from the reader. So the
    // web can become a source of root only through the artifact.
    drive(
        &world,
        "root",
        vec![save(&json!(format!("artifact:{artifact}")), "p.png"), Say::Text("saved")],
        Vec::new(),
    )
    .await;
    let mut expect = vec![format!("agent:{reader}"), "agent:root".to_owned(), format!("artifact:{artifact}")];
    expect.push("workspace".to_owned());
    expect.sort();
    assert_eq!(holders().await, expect);
}

#[tokio::test]
async fn rules_about_files_hold_for_copies_and_the_person_sees_the_change() {
    let rules = json!([{"role": "clerk", "group": "files", "write": true, "decide": "deny"},
        {"group": "files", "write": true, "decide": "ask"}]);
    let world = World::with_app(&json!({"tools": {"policy": rules}})).await;
    std::fs::write(file(&world, "f").await, "text").unwrap();
    world.say("user", "root", json!("go")).await;
    world.begin_turn("root").await;
    let clerk = world.hire("root", "clerk", json!({})).await;
    world.say("root", &clerk, json!("copy")).await;
    let own = world.call(&clerk, "put_artifact", json!({"type": "note", "content": "x"})).await;
    drive(
        &world,
        &clerk,
        vec![put("f"), save(&own["ref"], "g"), Say::Text("I may not"), Say::Text("I stored one")],
        Vec::new(),
    )
    .await;
    let told = results_of(&world, &clerk).await;
    assert_eq!((code(&told[0]), code(&told[1])), ("ok", "tool_not_permitted"), "{told:?}");

    drive(&world, "root", vec![save(&own["ref"], "g")], Vec::new()).await;
    let mut reader = world.store.reader().await.unwrap();
    let (asked, _) = polity_store::approvals::list(&mut reader, &ApprovalFilter::default()).await.unwrap();
    drop(reader);
    assert_eq!(asked.len(), 1);
    let preview = asked[0].asked.preview.clone().unwrap();
    assert!(preview.contains("+++ b/g") && preview.contains("\n+x"), "{preview}");
    assert!(!file(&world, "g").await.exists());
    crate::approvals::answer(&world.store, asked[0].id.clone(), Answer::Yes, None).await.unwrap();
    drive(&world, "root", vec![Say::Text("saved")], Vec::new()).await;
    assert_eq!(std::fs::read(file(&world, "g").await).unwrap(), b"x");
}

/// The diff of a change shows the lines beside the change, and one of these lines contains a picture.
#[tokio::test]
async fn a_picture_beside_a_change_is_neither_recorded_nor_shown_to_the_person() {
    let rules = json!([{"group": "files", "write": true, "decide": "ask"}]);
    let world = World::with_app(&json!({"tools": {"policy": rules}})).await;
    let bytes: Vec<u8> = b"\x89PNG\r\n\x1a\n".iter().copied().chain(0..=255).collect();
    let base64 = base64::engine::general_purpose::STANDARD.encode(&bytes);
    let page =
        |title: &str| format!("<h1>{title}</h1>\n<img src=\"data:image/png;base64,{base64}\">\n<p>end</p>\n");
    let pages = [note(&world, &page("one")).await, note(&world, &page("two")).await];
    world.say("user", "root", json!("save them")).await;
    for saved in &pages {
        drive(&world, "root", vec![save(saved, "page.html")], Vec::new()).await;
        let mut reader = world.store.reader().await.unwrap();
        let (asked, _) =
            polity_store::approvals::list(&mut reader, &ApprovalFilter::default()).await.unwrap();
        drop(reader);
        let preview = asked[0].asked.preview.clone().unwrap();
        assert!(preview.contains("<img src=\"…\">"), "{preview}");
        crate::approvals::answer(&world.store, asked[0].id.clone(), Answer::Yes, None).await.unwrap();
    }
    drive(&world, "root", vec![Say::Text("saved")], Vec::new()).await;
    assert_eq!(std::fs::read_to_string(file(&world, "page.html").await).unwrap(), page("two"));
    let records = world.query("SELECT body FROM records").await.join("\n");
    assert!(records.contains("-<h1>one</h1>\\n+<h1>two</h1>"), "{records}");
    let events = world.query("SELECT body FROM events").await.join("\n");
    let everything = format!("{records}{events}{:?}", world.dump().await);
    assert_eq!(polity_decide::inline::forms::run_left(&everything, &bytes), None);
}

/// Records that root has called a tool and that the call has started. Then the process dies.
async fn die_during(world: &World, tool: &str, arguments: Value, evidence: Value) {
    world.say("user", "root", json!("copy")).await;
    let (turn, owner) = (world.begin_turn("root").await, world.of("root"));
    let Value::Object(arguments) = arguments else { panic!("{arguments}") };
    let arguments = Arguments::Object(arguments);
    let call = ToolCall { id: "a".to_owned(), name: tool.to_owned(), arguments, extra: Map::new() };
    world
        .write(move |tx| {
            Box::pin(async move {
                let replied = Replied { calls: vec![call], ..Replied::default() };
                records::append(tx, &owner, turn, &Record::Replied(replied)).await?;
                let started = Record::ToolStarted { call: CallId::new("a"), evidence };
                records::append(tx, &owner, turn, &started).await
            })
        })
        .await;
}

#[tokio::test]
async fn a_file_that_changed_during_a_crash_is_stored_once_as_it_is() {
    let world = World::new().await;
    std::fs::write(file(&world, "f").await, "before").unwrap();
    die_during(&world, "put_artifact", json!({"type": "note", "path": "f"}), Value::Null).await;
    std::fs::write(file(&world, "f").await, "after").unwrap();
    drive(&world, "root", vec![Say::Text("stored")], Vec::new()).await;
    let blobs = world.query("SELECT blob FROM artifacts").await;
    assert_eq!(blobs.len(), 1);
    let hash = polity_artifacts::BlobHash::new(blobs[0].as_str());
    assert_eq!(world.blobs.read(&hash).await.unwrap(), "after");
}

#[tokio::test]
async fn a_copy_that_a_crash_interrupted_is_written_once_and_overwrites_nobody() {
    // For each case: the content of the file when the process starts again, the expected code of the result, and the
    // final content of the file.
    for (found, expect, left) in [
        (None, "ok", "copied"),
        (Some("copied"), "ok", "copied"),
        (Some("of somebody"), "file_changed", "of somebody"),
    ] {
        let world = World::new().await;
        let reference = note(&world, "copied").await;
        let evidence = json!({"before": null, "after": ContentHash::of(b"copied")});
        die_during(&world, "get_artifact", json!({"ref": reference, "saveTo": "f"}), evidence).await;
        let path = file(&world, "f").await;
        if let Some(found) = found {
            std::fs::write(&path, found).unwrap();
        }
        drive(&world, "root", vec![Say::Text("done")], Vec::new()).await;
        let told = results_of(&world, "root").await;
        assert_eq!(code(&told[0]), expect, "{found:?}: {told:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), left, "{found:?}");
        if expect == "ok" {
            // The agent has written the file, so it may replace the file.
            let next = note(&world, "next").await;
            world.say("user", "root", json!("again")).await;
            drive(&world, "root", vec![save(&next, "f"), Say::Text("done")], Vec::new()).await;
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "next", "{found:?}");
        }
    }
}

#[tokio::test]
async fn no_worktree_is_made_for_a_call_that_is_refused() {
    let policy = json!([{"role": "denied", "tool": "fetch_page", "decide": "deny"}]);
    let world = World::with_app(&json!({"tools": {"policy": policy}})).await;
    world.say("user", "root", json!("go")).await;
    world.begin_turn("root").await;
    for (name, groups, is_made) in [
        ("clerk", json!(["artifacts"]), false),
        ("denied", json!(["web"]), false),
        ("reader", json!(["web"]), true),
    ] {
        let role = json!({"name": name, "rolePrompt": "…", "toolGroups": groups});
        let role = world.call("root", "create_role", role).await;
        let wish = json!({"roleId": role["id"], "taskBrief": crate::testing::brief(), "workspace": "own"});
        let hired = world.call("root", "spawn_agent", wish).await;
        let agent = hired["id"].as_str().unwrap();
        world.say("root", agent, json!("read")).await;
        let fetch = FakeTool::returns("fetch_page", Ok(Output::json(json!({}))));
        let says = vec![Say::Call("fetch_page", json!({})), Say::Text("done")];
        drive(&world, agent, says, vec![fetch]).await;
        let told = results_of(&world, agent).await;
        if is_made && code(&told[0]) == "workspace_refused" {
            println!("this test needs git 2.38 or newer, which this machine lacks");
            return;
        }
        assert_eq!(code(&told[0]), if is_made { "ok" } else { "tool_not_permitted" }, "{told:?}");
        let worktree = world.directory.path().join("workspaces").join(world.task.as_str()).join(agent);
        assert_eq!(worktree.exists(), is_made);
    }
}

/// The check whether a worktree can be made also makes the workspace of the task.
#[tokio::test]
async fn no_workspace_is_made_before_a_hire_with_a_worktree_is_allowed() {
    let policy = json!([
        {"role": "denied", "tool": "spawn_agent", "decide": "deny"},
        {"role": "asking", "tool": "spawn_agent", "decide": "ask"},
    ]);
    for (name, groups, refused) in [
        ("clerk", json!(["artifacts"]), true),
        ("denied", json!(["organization", "files"]), true),
        ("asking", json!(["organization", "files"]), false),
        ("lead", json!(["organization", "files"]), false),
    ] {
        let world = World::with_app(&json!({"tools": {"policy": policy}})).await;
        world.say("user", "root", json!("go")).await;
        world.begin_turn("root").await;
        let agent = world.hire("root", name, json!({"toolGroups": groups})).await;
        let role = world.call(&agent, "create_role", json!({"name": "helper", "rolePrompt": "…"})).await;
        let role = role.get("id").cloned().unwrap_or_else(|| json!("none"));
        world.say("root", &agent, json!("hire")).await;
        let wish = json!({"roleId": role, "taskBrief": crate::testing::brief(), "workspace": "own"});
        let says = [Say::Call("spawn_agent", wish), Say::Text("done")];
        let handles =
            world.handles(ScriptedModel::by_role(&[(name, &says[..])]), with_workspaces(&world, Vec::new()));
        let workspace = world.directory.path().join("workspaces").join(world.task.as_str());
        run(&handles, &world.of(&agent), &CancellationToken::new()).await.unwrap();
        if name == "asking" {
            assert!(!workspace.exists(), "before the person has answered");
            answer(&world, &questions(&world).await[0].id, Answer::Yes, None).await;
            run(&handles, &world.of(&agent), &CancellationToken::new()).await.unwrap();
        }
        let told = results_of(&world, &agent).await;
        if code(&told[0]) == "workspace_refused" {
            println!("this test needs git 2.38 or newer, which this machine lacks");
            return;
        }
        assert_eq!(code(&told[0]) == "tool_not_permitted", refused, "{name}: {told:?}");
        assert_eq!(workspace.exists(), !refused, "{name}");
    }
}
