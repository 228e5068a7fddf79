use super::{Case, check};
use crate::spoken::{Spoken, read};

const HI: &str = r#"[["send_message", {"to": "root", "payload": {"text": "hi"}}]]"#;
const TO: &str = r#"[["send_message", {"to": "root"}]]"#;
const TWO: &str = r#"[["send_message", {"to": "root"}], ["list_agents", {}]]"#;
const LIST: &str = r#"[["list_agents", {}]]"#;

#[rustfmt::skip]
pub(crate) const CALLS: &[Case] = &[
    // Bare JSON.
    ("Qwen2.5-Coder", r#"{"name": "send_message", "arguments": {"to": "root", "payload": {"text": "hi"}}}"#, HI),
    ("Llama 3.1", r#"{"name": "send_message", "parameters": {"to": "root"}}"#, TO),
    ("Llama 3.1, typed", r#"{"type": "function", "name": "send_message", "parameters": {"to": "root"}}"#, TO),
    ("Llama 3.1, end", r#"{"name": "send_message", "parameters": {"to": "root"}}<|eom_id|>"#, TO),
    ("Llama 3.2, several", "{\"name\": \"send_message\", \"parameters\": {\"to\": \"root\"}}; {\"name\": \"list_agents\", \"parameters\": {}}", TWO),
    ("Llama, by line", "{\"name\": \"send_message\", \"parameters\": {\"to\": \"root\"}}\n{\"name\": \"list_agents\", \"parameters\": {}}<|eot_id|>", TWO),
    ("Llama 3.2, surplus bracket", r#"{"name": "send_message", "parameters": {"to": "root"}}}"#, TO),
    ("Llama 3, role", "<|start_header_id|>assistant<|end_header_id|>\n\n{\"name\": \"send_message\", \"parameters\": {\"to\": \"root\"}}", TO),
    ("Phi-4", r#"{"name": "send_message", "args": {"to": "root"}}"#, TO),
    ("function as the name", r#"{"function": "send_message", "arguments": {"to": "root"}}"#, TO),
    ("function as an object", r#"{"function": {"name": "send_message", "arguments": {"to": "root"}}}"#, TO),
    ("OpenAI, one call", r#"{"id": "call_1", "type": "function", "function": {"name": "send_message", "arguments": "{\"to\": \"root\"}"}}"#, TO),
    ("OpenAI, message", r#"{"tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "send_message", "arguments": "{\"to\": \"root\"}"}}]}"#, TO),
    ("OpenAI, whole message", r#"{"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "list_agents", "arguments": ""}}]}"#, LIST),
    ("OpenAI, old", r#"{"function_call": {"name": "send_message", "arguments": "{\"to\": \"root\"}"}}"#, TO),
    ("GPT, parallel", r#"{"tool_uses": [{"recipient_name": "functions.send_message", "parameters": {"to": "root"}}, {"recipient_name": "functions.list_agents", "parameters": {}}]}"#, TWO),
    ("GPT, one recipient", r#"{"recipient_name": "functions.send_message", "parameters": {"to": "root"}}"#, TO),
    ("GPT, parallel by name", r#"{"name": "multi_tool_use.parallel", "arguments": {"tool_uses": [{"recipient_name": "functions.list_agents", "parameters": {}}]}}"#, LIST),
    ("Anthropic block", r#"{"type": "tool_use", "id": "toolu_1", "name": "send_message", "input": {"to": "root"}}"#, TO),
    ("LangChain", r#"{"tool": "send_message", "tool_input": {"to": "root"}}"#, TO),
    ("LangChain, action", r#"{"action": "send_message", "action_input": {"to": "root"}}"#, TO),
    ("LangChain, thought", r#"{"thought": "I ask root.", "action": "send_message", "action_input": {"to": "root"}}"#, TO),
    ("Command-R, bare", r#"[{"tool_name": "send_message", "parameters": {"to": "root"}}]"#, TO),
    ("array of two", r#"[{"name": "send_message", "arguments": {"to": "root"}}, {"name": "list_agents", "arguments": {}}]"#, TWO),
    ("LangChain, one input", r#"{"action": "web_search", "action_input": "rust"}"#, r#"[["web_search", {"query": "rust"}]]"#),
    ("arguments beside the name", r#"{"tool": "send_message", "to": "root"}"#, TO),
    ("a parameter called args", r#"{"tool": "run", "command": "ls", "args": ["-l"]}"#, r#"[["run", {"command": "ls", "args": ["-l"]}]]"#),
    ("a parameter called name", r#"{"tool": "spawn", "name": "bob", "role": "tester"}"#, r#"[["spawn", {"name": "bob", "role": "tester"}]]"#),
    ("no arguments", r#"{"name": "list_agents"}"#, LIST),
    ("arguments null", r#"{"name": "list_agents", "arguments": null}"#, LIST),
    ("single key", r#"{"send_message": {"to": "root"}}"#, TO),
    ("single key, several", r#"[{"send_message": {"to": "root"}}, {"list_agents": {}}]"#, TWO),
    ("prefix", r#"{"name": "functions.send_message", "arguments": {"to": "root"}}"#, TO),
    // JSON with small errors.
    ("trailing commas", r#"{"name": "send_message", "arguments": {"to": "root",},}"#, TO),
    ("Python dict", r#"{'name': 'spawn', 'arguments': {'name': 'bob', 'role': None}}"#, r#"[["spawn", {"name": "bob", "role": null}]]"#),
    ("names without quotes", r#"{name: "send_message", arguments: {to: "root", wait: True}}"#, r#"[["send_message", {"to": "root", "wait": true}]]"#),
    ("raw line breaks", "{\"name\": \"write_file\", \"arguments\": {\"path\": \"a\", \"content\": \"one\ntwo\"}}", r#"[["write_file", {"path": "a", "content": "one\ntwo"}]]"#),
    ("comments", "{\"name\": \"send_message\", // the tool\n\"arguments\": {/* who */ \"to\": \"root\"}}", TO),
    ("missing brackets", r#"{"name": "send_message", "arguments": {"to": "root", "payload": {"text": "hi""#, HI),
    ("escapes", r#"{"name": "web_search", "arguments": {"query": "\u00fc \ud83d\ude00 \d+ it\'s"}}"#, r#"[["web_search", {"query": "ü 😀 \\d+ it's"}]]"#),
    ("a fence in a string", "{\"name\": \"write_file\", \"arguments\": {\"path\": \"a\", \"content\": \"```sh\\nls\\n```\"}}", r#"[["write_file", {"path": "a", "content": "```sh\nls\n```"}]]"#),
    // JSON in code fences.
    ("Qwen2.5-Coder, fence", "```json\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}\n```", TO),
    ("fence without language", "```\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}\n```", TO),
    ("Gemma 3, tool_call", "```tool_call\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}\n```<end_of_turn>", TO),
    ("Gemma 3, tool_code", "```tool_code\nsend_message(to=\"root\", payload={\"text\": \"hi\"})\n```", HI),
    ("Gemini, print", "```tool_code\nprint(default_api.send_message(to=\"root\"))\n```", TO),
    ("two fences", "```json\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}\n```\n\n```json\n{\"name\": \"list_agents\", \"arguments\": {}}\n```", TWO),
    ("fence, not closed", "```json\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}", TO),
    ("fence, missing bracket", "```json\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}\n```", TO),
    ("fence around a tag", "```xml\n<tool_call>\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}\n</tool_call>\n```", TO),
    // The forms in which Hermes and Qwen write calls.
    ("Hermes", "<tool_call>\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}\n</tool_call>", TO),
    ("Qwen3, thought", "<think>\nI ask root.\n</think>\n\n<tool_call>\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}\n</tool_call><|im_end|>", TO),
    ("Hermes, Python literals", "<tool_call>{'arguments': {'to': 'root'}, 'name': 'send_message'}</tool_call>", TO),
    ("Hermes, two", "<tool_call>{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}</tool_call>\n<tool_call>{\"name\": \"list_agents\", \"arguments\": {}}</tool_call>", TWO),
    ("Hermes, not closed", "<tool_call>\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}", TO),
    ("Hermes, bracket missing", "<tool_call>\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}\n</tool_call>", TO),
    ("Hermes, lead-in", "Sure, I'll call the tool:\n\n<tool_call>\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}\n</tool_call>", TO),
    ("Hermes, not offered", "<tool_call>{\"name\": \"send_mail\", \"arguments\": {\"to\": \"root\"}}</tool_call>", r#"[["send_mail", {"to": "root"}]]"#),
    ("Hermes, Python call", "<tool_call>send_message(to=\"root\")</tool_call>", TO),
    ("Qwen2.5-Coder, tools", "<tools>\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}\n</tools>", TO),
    ("Granite", "<|tool_call|>[{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}]", TO),
    ("list tag", "<tool_calls>[{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}]</tool_calls>", TO),
    ("function_call", "<function_call>{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}</function_call>", TO),
    ("Glaive", "<functioncall> {\"name\": \"send_message\", \"arguments\": '{\"to\": \"root\"}'} <|endoftext|>", TO),
    // The forms in which Mistral writes calls.
    ("Mistral 7B", r#"[TOOL_CALLS] [{"name": "send_message", "arguments": {"to": "root"}}]</s>"#, TO),
    ("Mistral, id", r#"[TOOL_CALLS][{"name": "send_message", "arguments": {"to": "root"}, "id": "abc123def"}]"#, TO),
    ("Mistral Small 3", r#"[TOOL_CALLS]send_message{"to": "root"}"#, TO),
    ("Magistral", r#"[THINK]I ask.[/THINK][TOOL_CALLS]send_message[ARGS]{"to": "root"}</s>"#, TO),
    ("Mistral, two", r#"[TOOL_CALLS]send_message[ARGS]{"to": "root"}[TOOL_CALLS]list_agents[ARGS]{}"#, TWO),
    ("Mistral, call id", r#"[TOOL_CALLS]send_message[CALL_ID]abc123def[ARGS]{"to": "root"}"#, TO),
    ("Mistral, lead-in", r#"I will ask root.[TOOL_CALLS]send_message{"to": "root"}"#, TO),
    // The forms in which Llama writes calls.
    ("Llama, python_tag", r#"<|python_tag|>{"name": "send_message", "parameters": {"to": "root"}}<|eom_id|>"#, TO),
    ("Llama, built-in", r#"<|python_tag|>web_search.call(query="rust")"#, r#"[["web_search", {"query": "rust"}]]"#),
    ("Llama, built-in not offered", r#"<|python_tag|>brave_search.call(query="rust")<|eom_id|>"#, r#"[["brave_search", {"query": "rust"}]]"#),
    ("Llama, function", r#"<function=send_message>{"to": "root"}</function>"#, TO),
    ("Llama, function, end", r#"<function=send_message>{"to": "root"}</function><|eot_id|>"#, TO),
    ("Llama, bracket left out", r#"<function=send_message{"to": "root"}</function>"#, TO),
    ("Llama, lead-in", "I'll ask root. <function=send_message>{\"to\": \"root\"}</function>", TO),
    ("Llama 4", r#"[send_message(to='root'), list_agents()]"#, TWO),
    // The Harmony format.
    ("gpt-oss", r#"<|channel|>commentary to=functions.send_message <|constrain|>json<|message|>{"to": "root"}<|call|>"#, TO),
    ("gpt-oss, thought", r#"<|channel|>analysis<|message|>I ask root.<|end|><|start|>assistant<|channel|>commentary to=functions.send_message <|constrain|>json<|message|>{"to": "root"}<|call|>"#, TO),
    ("gpt-oss, recipient first", r#"<|start|>assistant to=functions.send_message<|channel|>commentary json<|message|>{"to": "root"}<|call|>"#, TO),
    ("gpt-oss, preamble", r#"<|channel|>commentary<|message|>I ask root.<|end|><|start|>assistant<|channel|>commentary to=functions.send_message<|message|>{"to": "root"}<|call|>"#, TO),
    ("gpt-oss, tokens lost", r#"assistantcommentary to=functions.send_message json{"to": "root"}"#, TO),
    ("gpt-oss, two", r#"<|channel|>commentary to=functions.send_message<|message|>{"to": "root"}<|call|><|start|>assistant<|channel|>commentary to=functions.list_agents<|message|>{}<|call|>"#, TWO),
    // Calls in XML tags.
    ("Qwen3-Coder", "<tool_call>\n<function=send_message>\n<parameter=to>\nroot\n</parameter>\n<parameter=payload>\n{\"text\": \"hi\"}\n</parameter>\n</function>\n</tool_call>", HI),
    ("Qwen3-Coder, no outer tag", "I'll do it.\n<function=send_message>\n<parameter=to>\nroot\n</parameter>\n</function>\n</tool_call>", TO),
    ("Qwen3-Coder, values", "<tool_call><function=write_file><parameter=path>7</parameter><parameter=content>\nfn main() {\n    a < b;\n}\n</parameter></function></tool_call>", r#"[["write_file", {"path": 7, "content": "fn main() {\n    a < b;\n}"}]]"#),
    ("Qwen3-Coder, no parameters", "<tool_call>\n<function=list_agents>\n</function>\n</tool_call>", LIST),
    ("Claude, invoke", "<invoke name=\"send_message\">\n<parameter name=\"to\">root</parameter>\n</invoke>", TO),
    ("Claude, function_calls", "<function_calls>\n<invoke name=\"send_message\">\n<parameter name=\"to\">\"root\"</parameter>\n</invoke>\n<invoke name=\"list_agents\">\n</invoke>\n</function_calls>", TWO),
    ("MiniMax M2", "<minimax:tool_call>\n<invoke name=\"send_message\">\n<parameter name=\"to\">root</parameter>\n</invoke>\n</minimax:tool_call>", TO),
    ("MiniCPM", "<function name=\"send_message\"><param name=\"to\">root</param></function>", TO),
    ("DeepSeek V3.2", "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"send_message\">\n<｜DSML｜parameter name=\"to\" string=\"true\">root</｜DSML｜parameter>\n<｜DSML｜parameter name=\"wait\" string=\"false\">true</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>", r#"[["send_message", {"to": "root", "wait": true}]]"#),
    ("GLM 4.5", "<tool_call>send_message\n<arg_key>to</arg_key>\n<arg_value>root</arg_value>\n<arg_key>payload</arg_key>\n<arg_value>{\"text\": \"hi\"}</arg_value>\n</tool_call>", HI),
    ("GLM 4.5, no arguments", "<tool_call>list_agents\n</tool_call>", LIST),
    ("GLM 4.7", "<tool_call>send_message<arg_key>to</arg_key><arg_value>root</arg_value></tool_call><|observation|>", TO),
    ("GLM 4 9B", "send_message\n{\"to\": \"root\"}", TO),
    ("tag of the tool", "<send_message><to>root</to><payload>{\"text\": \"hi\"}</payload></send_message>", HI),
    ("tag of the tool, by line", "<write_file>\n<path>a.html</path>\n<content>\n<p>Hi</p>\n</content>\n</write_file>", r#"[["write_file", {"path": "a.html", "content": "<p>Hi</p>"}]]"#),
    ("tag of the tool, empty", "<list_agents/>", LIST),
    // Python syntax.
    ("Python", r#"send_message(to="root", payload={"text": "hi"})"#, HI),
    ("Python, literals", "spawn(\n    name='bob',\n    role=None,\n    model={'big': True, 'sizes': [1, 2.5,],},\n)", r#"[["spawn", {"name": "bob", "role": null, "model": {"big": true, "sizes": [1, 2.5]}}]]"#),
    ("Llama 4, list", "[send_message(to='root')]", TO),
    ("Gemini", r#"print(default_api.send_message(to="root"))"#, TO),
    ("Gemini, two lines", "print(default_api.send_message(to=\"root\"))\nprint(default_api.list_agents())", TWO),
    ("Gemini, long string", "write_file(path='a', content=\"\"\"one \"two\"\nthree\"\"\")", r#"[["write_file", {"path": "a", "content": "one \"two\"\nthree"}]]"#),
    ("one object", r#"send_message({"to": "root"})"#, TO),
    ("functions prefix", r#"functions.send_message({"to": "root"})"#, TO),
    ("only parameter", r#"web_search("rust")"#, r#"[["web_search", {"query": "rust"}]]"#),
    ("closing parenthesis missing", r#"send_message(to="root""#, TO),
    ("LFM2", "<|tool_call_start|>[send_message(to=\"root\")]<|tool_call_end|>", TO),
    // The style of ReAct.
    ("ReAct", "Thought: I should ask root.\nAction: send_message\nAction Input: {\"to\": \"root\"}", TO),
    ("ReAct, observation", "Action: send_message\nAction Input: {\"to\": \"root\"}\nObservation:", TO),
    ("ReAct, text", "Thought: Search.\nAction: web_search\nAction Input: rust daemon", r#"[["web_search", {"query": "rust daemon"}]]"#),
    ("ReAct, no input", "Action: list_agents\nAction Input: None", LIST),
    ("LangChain, blob", "Action:\n```json\n{\"action\": \"send_message\", \"action_input\": {\"to\": \"root\"}}\n```", TO),
    ("Command-R", "Action: ```json\n[\n    {\n        \"tool_name\": \"send_message\",\n        \"parameters\": {\"to\": \"root\"}\n    }\n]\n```", TO),
    ("Command R7B", "<|START_THINKING|>I ask.<|END_THINKING|><|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"send_message\", \"parameters\": {\"to\": \"root\"}}]<|END_ACTION|><|END_OF_TURN_TOKEN|>", TO),
    // The forms in which DeepSeek, Kimi, Gemma and other models write calls with special tokens.
    ("DeepSeek V3", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>send_message\n```json\n{\"to\": \"root\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>", TO),
    ("DeepSeek V3, two", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>send_message\n```json\n{\"to\": \"root\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>list_agents\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", TWO),
    ("DeepSeek V3.1", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>send_message<｜tool▁sep｜>{\"to\": \"root\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", TO),
    ("Kimi K2", "<|tool_calls_section_begin|><|tool_call_begin|>functions.send_message:0<|tool_call_argument_begin|>{\"to\": \"root\"}<|tool_call_end|><|tool_calls_section_end|>", TO),
    ("Gemma 4", "<|tool_call>call:send_message{to:<|\"|>root<|\"|>,payload:{text:<|\"|>hi<|\"|>}}<tool_call|>", HI),
    ("FunctionGemma", "<start_function_call>call:send_message{to:<escape>root<escape>}<end_function_call>", TO),
    ("LM Studio", "[TOOL_REQUEST]{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}[END_TOOL_REQUEST]", TO),
    ("Nemotron", "<TOOLCALL>[{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}]</TOOLCALL>", TO),
    ("InternLM", "I ask root.<|action_start|><|plugin|>\n{\"name\": \"send_message\", \"parameters\": {\"to\": \"root\"}}<|action_end|>", TO),
];

#[test]
fn every_form_is_read() {
    for (family, text, expected) in CALLS {
        check(family, text, expected);
    }
}

/// All tags of Claude's format have the same prefix.
#[test]
fn a_prefix_of_all_tags_is_read() {
    let prefix = "antml:";
    let text = format!(
        "I ask.\n<{prefix}function_calls>\n<{prefix}invoke name=\"send_message\">\n<{prefix}parameter \
         name=\"to\">root</{prefix}parameter>\n</{prefix}invoke>\n</{prefix}function_calls>"
    );
    check("Claude", &text, TO);
}

#[test]
fn blanks_and_line_ends_of_windows_change_nothing() {
    for (family, text, expected) in CALLS {
        check(family, &format!("\n\n  {text}  \n"), expected);
    }
    let text = "<tool_call>\r\n{\"name\": \"send_message\",\r\n \"arguments\": {\"to\": \"root\"}}\r\n</tool_call>\r\n";
    check("Hermes, Windows", text, TO);
}

#[test]
fn without_tools_everything_is_text() {
    for (family, text, _) in CALLS {
        assert_eq!(read(text, &[]), Spoken::Text, "{family}");
    }
}
