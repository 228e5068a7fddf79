use super::*;
use serde_json::{Map, Value, json};

fn parse(tool: &str, arguments: Value) -> Parsed {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    let call = ToolCall {
        id: "call_1".to_owned(),
        name: tool.to_owned(),
        arguments: Arguments::Object(arguments),
        extra: Map::new(),
    };
    Call::parse(&call, None)
}

/// Returns the code of a refusal, and its faults as text.
fn faults(tool: &str, arguments: Value) -> (&'static str, String) {
    let Err(refusal) = parse(tool, arguments).call else { return ("ok", String::new()) };
    let code = refusal.code();
    let (Refusal::InvalidArguments(faults)
    | Refusal::InvalidMessage(faults)
    | Refusal::InvalidTaskBrief(faults)) = refusal
    else {
        panic!("{code}");
    };
    (code, faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}

#[track_caller]
fn check(tool: &str, arguments: Value, code: &str, expect: &str) {
    assert_eq!(faults(tool, arguments), (code, expect.to_owned()));
}

fn brief() -> Value {
    crate::testing::brief()
}

#[test]
fn all_faults_of_a_call_are_said_at_once_each_with_its_path() {
    let invalid = "invalid_arguments";
    check(
        "create_role",
        json!({"requiredCapabilities": 7}),
        invalid,
        "name: missing; rolePrompt: missing; requiredCapabilities: must be an array",
    );
    check(
        "create_role",
        json!({"name": 5, "rolePrompt": " ", "toolGroups": ["context", "x", 3], "interface_spec": {"services": 1}}),
        invalid,
        "name: must be a string; rolePrompt: empty; interface_spec.services: must be a string, an array or an object; \
         interface_spec.input_format: missing; interface_spec.output_format: missing; interface_spec.examples: missing; \
         toolGroups[1]: must be one of: organization, messages, artifacts, context, files, command, web, mcp:<server>; toolGroups[2]: must be one of: organization, messages, artifacts, context, files, command, web, mcp:<server>",
    );
    check("send_message", json!({}), invalid, "to: missing; payload: missing");
    check(
        "send_message",
        json!({"to": ["a", 7], "payload": "x", "delayMs": "soon"}),
        invalid,
        "to[1]: must be a string; delayMs: must be a whole number, 0 or more",
    );
    check(
        "send_message",
        json!({"to": [], "payload": "x", "delayMs": -1}),
        invalid,
        "to: empty; delayMs: must be a whole number, 0 or more",
    );
    check("send_message", json!({"to": 7, "payload": "x"}), invalid, "to: must be an id, or an array of ids");
    check(
        "put_artifact",
        json!({"meta": 7, "encoding": "rot13", "content": null}),
        invalid,
        "type: missing; content: missing; meta: must be an object; encoding: must be one of: utf-8, base64, utf8, text",
    );
    check(
        "get_artifact",
        json!({"ref": 1, "offset": 1.5, "limit": true}),
        invalid,
        "ref: must be a string; offset: must be a whole number, 0 or more; limit: must be a whole number, 0 or more",
    );
    check(
        "find_capable_agents",
        json!({"capability": " ", "direction": "up"}),
        invalid,
        "capability: empty; direction: must be one of: input, output, both",
    );
    check(
        "compress_context",
        json!({"summary": " \n", "keepRecentCount": []}),
        invalid,
        "summary: empty; keepRecentCount: must be a whole number, 0 or more",
    );
    check(
        "terminate_agent",
        json!({"agentId": null, "reason": 7}),
        invalid,
        "agentId: missing; reason: must be a string",
    );
    check("find_role_by_name", json!({}), invalid, "name: missing");
}

#[test]
fn faults_of_briefs_and_messages_are_among_them() {
    // If all faults are in the brief, or all are in the argument `payload`, the paths do not begin with the name of the
    // argument.
    check(
        "spawn_agent",
        json!({"roleId": "r", "taskBrief": {"objective": "o", "inputs": 7}}),
        "invalid_task_brief",
        "constraints: missing; inputs: must be a string, an array or an object; outputs: missing; completion_criteria: missing",
    );
    check(
        "spawn_agent",
        json!({"roleId": "r", "taskBrief": "do it"}),
        "invalid_task_brief",
        "taskBrief: must be an object",
    );
    check(
        "send_message",
        json!({"to": "a", "payload": {"message_type": "introduction_request"}}),
        "invalid_message",
        "reason: missing; required_capability: missing",
    );
    check("send_message", json!({"to": "a", "payload": " "}), "invalid_message", "payload: empty");
    check(
        "send_message",
        json!({"to": "a", "payload": {"message_type": "introduction_request", "reason": 7, "required_capability": ["vision"]}}),
        "invalid_message",
        "reason: must be a string; required_capability: must be a string",
    );
    // If the call also has other faults, every path begins with the name of the argument.
    check(
        "spawn_agent",
        json!({"taskBrief": {"objective": "o", "constraints": [], "inputs": "i", "outputs": "p"}, "name": "<"}),
        "invalid_task_brief",
        "roleId: missing; taskBrief.completion_criteria: missing; \
         name: must be one line of at most 64 characters without control, bidirectional or bracket characters 【】[]<>",
    );
    check(
        "spawn_agent_with_task",
        json!({"roleId": "r", "initialMessage": {"text": ""}, "taskBrief": [1]}),
        "invalid_task_brief",
        "taskBrief: must be an object; initialMessage.text: empty",
    );
    check(
        "spawn_agent_with_task",
        json!({"roleId": "r", "initialMessage": 7, "taskBrief": brief()}),
        "invalid_message",
        "initialMessage: must be an object or a string",
    );
    check(
        "spawn_agent_with_task",
        json!({"roleId": "r"}),
        "invalid_task_brief",
        "taskBrief.objective: missing; taskBrief.constraints: missing; taskBrief.inputs: missing; \
         taskBrief.outputs: missing; taskBrief.completion_criteria: missing; initialMessage: missing",
    );
    check(
        "send_message",
        json!({"payload": {"text": "x", "attachments": ["../x"]}}),
        "invalid_message",
        "to: missing; payload.attachments[0]: must be a reference such as artifact:k3v9x2ma",
    );
}

/// If a call hires an agent and sends it an assignment, the assignment gets a copy of the brief. The refusal reports
/// faults of the brief once, not again for the copy.
#[test]
fn a_brief_that_is_lent_has_its_faults_said_once() {
    let call = |brief: Value| json!({"roleId": "r", "taskBrief": brief, "initialMessage": {"message_type": "task_assignment"}});
    check("spawn_agent_with_task", call(brief()), "ok", "");
    let mut lacking = brief();
    lacking["outputs"] = json!("");
    check("spawn_agent_with_task", call(lacking), "invalid_task_brief", "outputs: empty");
    let missing = "objective: missing; constraints: missing; inputs: missing; outputs: missing; completion_criteria: missing";
    check("spawn_agent_with_task", call(Value::Null), "invalid_task_brief", missing);
    let Ok(Call::SpawnAgentWithTask(read)) = parse("spawn_agent_with_task", call(brief())).call else {
        panic!("read")
    };
    assert_eq!(read.initial_message.0.fields["taskBrief"], brief());
}

#[test]
fn null_stands_for_what_is_not_there() {
    let absent = json!({"name": "a", "rolePrompt": "x", "interface_spec": null, "serviceId": null, "requiredCapabilities": null, "toolGroups": null, "extra": null});
    let parsed = parse("create_role", absent);
    assert_eq!(parsed.ignored, [""; 0]);
    let Ok(Call::CreateRole(role)) = parsed.call else { panic!("read") };
    assert!(role.interface_spec.is_none() && role.service_id.is_none() && role.tool_groups.is_empty());
    check("spawn_agent", json!({"roleId": "r", "taskBrief": brief(), "name": null}), "ok", "");
    check("send_message", json!({"to": "a", "payload": "x", "delayMs": null}), "ok", "");
    check("put_artifact", json!({"type": "t", "content": "x", "meta": null, "encoding": null}), "ok", "");
    check("get_artifact", json!({"ref": "x", "offset": null, "limit": null}), "ok", "");
    check("compress_context", json!({"summary": "x", "keepRecentCount": null}), "ok", "");
    check("find_capable_agents", json!({"capability": "vision", "direction": null}), "ok", "");
}

#[test]
fn names_in_another_style_are_understood_by_every_tool() {
    for name in NAMES {
        let known = arguments_of(name).unwrap();
        let snake = |name: &str| -> String {
            name.chars()
                .flat_map(|letter| {
                    let line = letter.is_uppercase().then_some('_');
                    line.into_iter().chain(letter.to_lowercase())
                })
                .collect()
        };
        let styles: [fn(&str) -> String; 3] = [snake, str::to_uppercase, |name| name.replace('_', "-")];
        for style in styles {
            // Each argument gets the value 7. Most arguments do not accept it, but none may be reported as missing.
            let written: Map<String, Value> = known.iter().map(|name| (style(name), json!(7))).collect();
            let parsed = parse(name, Value::Object(written));
            assert_eq!(parsed.ignored, [""; 0], "{name}");
            if let Err(refusal) = parsed.call {
                assert!(!format!("{refusal:?}").contains("Missing"), "{name}: {refusal:?}");
            }
        }
    }
    let call = json!({"role_id": "r", "task_brief": brief(), "initial_message": "x", "Name": "a"});
    let Ok(Call::SpawnAgentWithTask(read)) = parse("spawn_agent_with_task", call).call else {
        panic!("read")
    };
    assert_eq!(
        (read.role_id.as_deref(), read.name.map(|name| name.to_string())),
        (Some("r"), Some("a".to_owned()))
    );
    let call = json!({"name": "a", "role_prompt": "x", "required_capabilities": ["vision"], "tool_groups": ["Context"], "service_id": "s"});
    let Ok(Call::CreateRole(read)) = parse("create_role", call).call else { panic!("read") };
    assert_eq!(
        (read.required_capabilities, read.tool_groups),
        (vec!["vision".to_owned()], vec![ToolGroup::Context])
    );
    assert_eq!(read.service_id, Some(ServiceId::new("s")));
}

#[test]
fn objects_lists_and_numbers_in_a_string_are_understood() {
    let spec = json!({"services": "s", "input_format": "i", "output_format": "o", "examples": "e"});
    let call = json!({"name": "a", "rolePrompt": "x", "interface_spec": spec.to_string(), "requiredCapabilities": "[\"vision\"]", "toolGroups": ""});
    let Ok(Call::CreateRole(read)) = parse("create_role", call).call else { panic!("read") };
    assert_eq!((json!(read.interface_spec), read.required_capabilities), (spec, vec!["vision".to_owned()]));
    let call = json!({"roleId": "r", "taskBrief": brief().to_string()});
    let Ok(Call::SpawnAgent(read)) = parse("spawn_agent", call).call else { panic!("read") };
    assert_eq!(json!(read.task_brief.0), brief());
    let payload = json!({"text": "x", "attachments": ["artifact:a"]}).to_string();
    let call = json!({"to": "[\"a\", \" b \"]", "payload": payload, "delayMs": "60000"});
    let Ok(Call::SendMessage(read)) = parse("send_message", call).call else { panic!("read") };
    assert_eq!((read.to.0, read.delay_ms), (vec!["a".to_owned(), "b".to_owned()], Some(60_000)));
    assert_eq!((read.payload.words(), read.payload.attachments.len()), (Some("x"), 1));
    let call = json!({"type": "t", "content": "x", "meta": "{\"filename\": \"a\"}", "encoding": "Base64"});
    let Ok(Call::PutArtifact(read)) = parse("put_artifact", call).call else { panic!("read") };
    assert!(read.meta.unwrap().0.contains_key("filename") && read.encoding == Some(Encoding::Base64));
    let call = json!({"ref": "x", "offset": "10", "limit": 5.0});
    let Ok(Call::GetArtifact(read)) = parse("get_artifact", call).call else { panic!("read") };
    assert_eq!((read.offset, read.limit), (Some(10), Some(5)));
}

#[test]
fn attachments_beside_a_message_are_its_own() {
    let attached = |tool: &str, call: Value| -> Vec<String> {
        let parsed = parse(tool, call);
        assert_eq!(parsed.ignored, [""; 0]);
        let payload = match parsed.call {
            Ok(Call::SendMessage(read)) => read.payload,
            Ok(Call::SpawnAgentWithTask(read)) => read.initial_message.0,
            _ => panic!("a message"),
        };
        payload.attachments.iter().map(|id| id.to_string()).collect()
    };
    let beside = json!(["artifact:b", "artifact:a"]);
    let both =
        json!({"to": "x", "payload": {"text": "x", "attachments": ["artifact:a"]}, "attachments": beside});
    assert_eq!(attached("send_message", both), ["a", "b"]);
    assert_eq!(
        attached("send_message", json!({"to": "x", "payload": "see", "attachments": "artifact:a"})),
        ["a"]
    );
    assert_eq!(
        attached("send_message", json!({"to": "x", "payload": "", "Attachments": "[\"artifact:a\"]"})),
        ["a"]
    );
    assert_eq!(attached("send_message", json!({"to": "x", "payload": "see", "attachments": null})), [""; 0]);
    let hired = json!({"roleId": "r", "taskBrief": brief(), "initialMessage": "see", "attachments": beside});
    assert_eq!(attached("spawn_agent_with_task", hired), ["b", "a"]);
    check(
        "send_message",
        json!({"to": "x", "payload": "see", "attachments": [7]}),
        "invalid_message",
        "attachments[0]: must be a reference such as artifact:k3v9x2ma",
    );
}

#[test]
fn what_is_not_understood_is_named() {
    let ignored = |tool: &str, call: Value| parse(tool, call).ignored;
    let target = json!({"message_type": "introduction_response", "target_agent": {"id": "a", "role": "king"}, "usage_hint": "x", "from": "b"});
    assert_eq!(
        ignored("send_message", json!({"from": "b", "to": "x", "payload": target, "cc": "y", "none": null})),
        ["from", "payload.target_agent.role", "cc"]
    );
    let mut with_role = brief();
    with_role["collaborators"] = json!([{"agentId": "a", "role": "king"}]);
    with_role["context"] = json!("kept");
    assert_eq!(
        ignored(
            "spawn_agent",
            json!({"roleId": "r", "taskBrief": with_role, "attachments": [], "initialMessage": "x"})
        ),
        ["taskBrief.collaborators[0].role", "attachments", "initialMessage"]
    );
    let assigned = json!({"message_type": "task_assignment", "taskBrief": with_role});
    assert_eq!(
        ignored(
            "spawn_agent_with_task",
            json!({"roleId": "r", "taskBrief": brief(), "initialMessage": assigned, "urgent": 1})
        ),
        ["initialMessage.taskBrief.collaborators[0].role", "urgent"]
    );
    let spec =
        json!({"services": "s", "input_format": "i", "output_format": "o", "examples": "e", "price": 3});
    assert_eq!(
        ignored("create_role", json!({"name": "a", "rolePrompt": "x", "interface_spec": spec, "color": 1})),
        ["interface_spec.price", "color"]
    );
    // If two names mean the same argument, the call uses the argument with the exact name and ignores the other.
    assert_eq!(ignored("find_role_by_name", json!({"name": "a", "NAME": "b"})), ["NAME"]);
    for tool in NAMES {
        let named = ignored(tool, json!({"something": 1, "else": null}));
        assert_eq!(named, ["something"], "{tool}");
    }
    let bytes = "QUJD".repeat(100);
    assert!(!ignored("list_contacts", json!({ bytes.clone(): 1 }))[0].contains(&bytes));
}
