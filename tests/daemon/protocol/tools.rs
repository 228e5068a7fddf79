//! Valid and invalid tool calls.

use polity_tests::{Answer, Call, Conversation, ScriptedServer};
use serde_json::json;

use crate::support::{home, home_with, last_asked, run};

/// Starts a server whose model makes this call once and then says `done`.
fn once(call: Call) -> ScriptedServer {
    ScriptedServer::start(move |asked| match asked.tool_results().is_empty() {
        true => Answer::calls(vec![call.clone()]),
        false => Answer::say("done"),
    })
}

#[track_caller]
fn called(call: Call) -> Conversation {
    let server = once(call);
    let ended = run(&home(&server, &json!({})), &["try"]).expect_code(0);
    assert_eq!(ended.stdout, "done\n");
    last_asked(&server)
}

#[test]
fn a_tool_that_does_not_exist_is_refused_with_those_that_do() {
    let asked = called(Call::new("buy_island", json!({})));
    let refused = asked.tool_results().remove(0);
    assert_eq!(refused.error(), Some("unknown_tool"));
    let tools = refused.value["tools"].as_array().expect("names");
    for offered in asked.offered_tools() {
        assert!(tools.contains(&json!(offered)), "{offered}");
    }
}

#[test]
fn all_tools_of_an_agent_are_offered() {
    let asked = called(Call::new("list_contacts", json!({})));
    let mut offered = asked.offered_tools();
    offered.sort_unstable();
    // A machine without a sandbox offers no tools for commands, so add these tools here.
    if !offered.contains(&"bash") {
        offered.extend(["bash", "bash_output", "bash_stop"]);
        offered.sort_unstable();
    }
    assert_eq!(
        offered,
        [
            "bash",
            "bash_output",
            "bash_stop",
            "compress_context",
            "create_role",
            "fetch_page",
            "find_capable_agents",
            "find_role_by_name",
            "get_artifact",
            "get_org_structure",
            "http_request",
            "list_artifacts",
            "list_contacts",
            "merge_workspace",
            "put_artifact",
            "search_files",
            "send_message",
            "spawn_agent",
            "spawn_agent_with_task",
            "str_replace_editor",
            "terminate_agent",
        ]
    );
}

#[test]
fn arguments_that_are_no_json_are_quoted_back() {
    let garbage = "{\"to\": \"user\", \"payload\": oops";
    let asked = called(Call { tool: "send_message".to_owned(), arguments: garbage.to_owned() });
    let refused = asked.tool_results().remove(0);
    assert_eq!(refused.error(), Some("invalid_arguments"));
    assert!(refused.text.contains("oops"), "{}", refused.text);
    assert!(refused.arguments.is_object(), "the history must contain a JSON object");
}

/// The refusal of a call names every wrong argument.
/// Tests criterion 1.4 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn every_wrong_argument_is_named() {
    let asked = called(Call::new("spawn_agent", json!({"roleId": "none", "taskBrief": {"objective": " "}})));
    let refused = asked.tool_results().remove(0);
    assert_eq!(refused.error(), Some("invalid_task_brief"), "{}", refused.text);
    let details = refused.value["details"].as_array().expect("details");
    let mut fields: Vec<&str> = details.iter().filter_map(|detail| detail["field"].as_str()).collect();
    fields.sort_unstable();
    assert_eq!(fields, ["completion_criteria", "constraints", "inputs", "objective", "outputs"]);
}

#[test]
fn every_fault_of_a_call_is_named_with_its_path() {
    let arguments = json!({"toolGroups": 7, "interface_spec": {"services": "x", "input_format": "x", "output_format": "x"}});
    let asked = called(Call::new("create_role", arguments));
    let refused = asked.tool_results().remove(0);
    assert_eq!(refused.error(), Some("invalid_arguments"), "{}", refused.text);
    let details = refused.value["details"].as_array().expect("details");
    let fields: Vec<&str> = details.iter().filter_map(|detail| detail["field"].as_str()).collect();
    assert_eq!(fields, ["name", "rolePrompt", "interface_spec.examples", "toolGroups"]);
}

#[test]
fn what_a_tool_does_not_know_is_named_in_its_result() {
    let server = ScriptedServer::start(|asked| {
        let stored = asked.results_of("put_artifact");
        match (stored.first(), asked.has_called("get_artifact")) {
            (None, _) => {
                Answer::call("put_artifact", json!({"type": "note", "content": "all of it", "colour": "red"}))
            }
            (Some(stored), false) => {
                Answer::call("get_artifact", json!({"ref": stored.value["ref"], "page": 2}))
            }
            (Some(_), true) => Answer::say("done"),
        }
    });
    run(&home(&server, &json!({})), &["try"]).expect_code(0);
    let asked = last_asked(&server);
    let stored = asked.results_of("put_artifact").remove(0);
    assert_eq!(stored.value["ignored"], json!(["colour"]), "{}", stored.text);
    let opened = asked.results_of("get_artifact").remove(0);
    assert_eq!(
        (&opened.value["ignored"], &opened.value["content"]),
        (&json!(["page"]), &json!("all of it")),
        "{}",
        opened.text
    );
}

/// Returns a model's answer that gives two calls the same id.
fn doubled() -> serde_json::Value {
    let call =
        |tool: &str| json!({"id": "same", "type": "function", "function": {"name": tool, "arguments": "{}"}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call("list_contacts"), call("list_artifacts")]});
    json!({
        "id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
    })
}

#[test]
fn ids_that_a_model_uses_twice_are_made_unique() {
    let server = ScriptedServer::start(|asked| match asked.tool_results().len() {
        results if results >= 4 => Answer::say("done"),
        _ => Answer::raw("application/json", doubled().to_string()),
    });
    run(&home_with(&server, &["text"]), &["try"]).expect_code(0);
    let asked = last_asked(&server);
    let mut ids = asked.call_ids();
    assert_eq!(ids.len(), 4);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 4, "{ids:?}");
    let tools: Vec<String> = asked.tool_results().into_iter().map(|result| result.tool).collect();
    assert_eq!(tools, ["list_contacts", "list_artifacts", "list_contacts", "list_artifacts"]);
}

#[test]
fn too_many_rounds_end_in_a_summary() {
    let server = ScriptedServer::start(|asked| match asked.body()["tool_choice"] == "none" {
        true => Answer::say("what I have"),
        false => Answer::call("list_contacts", json!({})),
    });
    let polity = home(&server, &json!({"limits": {"maxToolRounds": 3}}));
    let ended = run(&polity, &["try"]).expect_code(0);
    assert_eq!(ended.stdout, "what I have\n");
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    let last = last_asked(&server);
    assert!(last.last_user_text().contains("已达上限（3 次）"));
    assert!(
        !last.offered_tools().is_empty(),
        "the request must offer the tools, so that the history stays valid"
    );
}

#[test]
fn a_model_without_tools_is_offered_none() {
    let server = ScriptedServer::start(|_| Answer::say("words"));
    let polity = home(&server, &json!({}));
    let service = json!({
        "id": "mute", "baseURL": server.base_url(), "model": "m",
        "capabilities": {"input": ["text"], "output": ["text"]},
    });
    polity.write_config("llmservices.json", &json!({"services": [service]}).to_string());
    run(&polity, &["try"]).expect_code(0);
    let asked = last_asked(&server);
    assert!(asked.offered_tools().is_empty());
    assert!(asked.body()["tools"].is_null() && asked.body()["tool_choice"].is_null());
}
