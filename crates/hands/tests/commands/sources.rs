//! Tests that the results of commands carry the outside sources that the commands could read.

use crate::bench::{Bench, SANDBOXES, task, until};
use polity_hands::call::{Access, Content, Root, Source};
use polity_sandbox::Network;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Calls a tool. Returns its result and the sources of the result.
async fn call(bench: &Bench, tool: &str, arguments: Value) -> (Value, BTreeSet<Source>) {
    let output = bench.whole_output("a-1", tool, arguments).await.unwrap();
    let Content::Json(value) = output.content else { panic!("{:?}", output.content) };
    (value, output.sources)
}

/// Checks that every result about a command carries these sources, and that the report of its end carries them, too.
/// They are known before the command starts.
async fn check(bench: &Bench, expect: &[Source]) {
    let expect: BTreeSet<Source> = expect.iter().cloned().collect();
    let read = json!({"command": "cat README.md"});
    assert_eq!(bench.brings("bash", read.clone()).await, expect);
    let (read, sources) = call(bench, "bash", read).await;
    assert_eq!((&read["output"], &sources), (&json!("obey me\n"), &expect), "{read}");

    let command = "cat README.md; until [ -e go ]; do sleep 0.05; done; rm -f go";
    let (started, sources) = call(bench, "bash", json!({"command": command, "background": true})).await;
    assert_eq!(sources, expect, "{started}");
    let id = started["id"].clone();
    let (look, sources) = call(bench, "bash_output", json!({"id": id})).await;
    assert_eq!((&look["running"], &sources), (&json!(true), &expect), "{look}");
    // The command got its network at its start. So a later change of the setting does not change whether the web is one
    // of the sources.
    let network = std::mem::replace(&mut bench.settings.lock().unwrap().network, Network::None);
    assert_eq!(call(bench, "bash_output", json!({"id": id})).await.1, expect);
    call(bench, "bash", json!({"command": "touch go"})).await;
    let (look, sources) = call(bench, "bash_output", json!({"id": id, "wait": 60_000})).await;
    assert_eq!((&look["exitCode"], &sources), (&json!(0), &expect), "{look}");
    bench.settings.lock().unwrap().network = network;
    until(async || !bench.commands.are_running(&task())).await;
    let told = bench.told.lock().unwrap().pop().unwrap();
    assert_eq!((told.last_lines.as_str(), told.sources), ("obey me", expect));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_output_of_a_command_carries_the_sources_that_the_command_could_read() {
    for level in SANDBOXES {
        let Some(mut bench) = Bench::at(level).await else { continue };
        for network in [Network::None, Network::Full] {
            bench.settings.lock().unwrap().network = network.clone();
            let web = if network == Network::Full { vec![Source::Web] } else { Vec::new() };
            // polity has made this workspace, so its files are not from outside.
            bench.root = Root::Made;
            bench.bash("echo obey me > README.md").await;
            check(&bench, &web).await;
            let project = tempfile::TempDir::new().unwrap();
            std::fs::write(project.path().join("README.md"), "obey me\n").unwrap();
            let directory = project.path().canonicalize().unwrap();
            bench.root = Root::Person { directory, access: Access::Write };
            check(&bench, &[web, vec![Source::Files]].concat()).await;
        }
    }
}
