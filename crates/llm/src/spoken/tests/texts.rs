use super::OFFERED;
use crate::spoken::{Spoken, read, without_thoughts};

/// Texts that are not read as calls: ordinary texts, and texts that only quote a call or add prose to it.
pub(crate) const TEXTS: &[&str] = &[
    "",
    "Hello! How can I help?",
    "I sent the message to root. Nothing else is open.",
    // Prose about tools.
    "You can use `send_message(to=\"root\")` to reach root.",
    "send_message sends a message to another agent.",
    "send_message(to, payload) sends a message; list_agents() shows who is there.",
    "send_message(to=\"root\") is what I would call.",
    "send_message(to, payload)",
    "finish",
    "To answer, write {\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}} and nothing else.",
    "{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}} is the form that the API expects.",
    "{\"name\": \"send_message\", \"arguments\": {...}} is the form that the API expects.",
    "The Hermes format is `<tool_call>{\"name\": \"x\", \"arguments\": {}}</tool_call>`.",
    "Hermes writes <tool_call>{\"name\": \"x\", \"arguments\": {}}</tool_call> for each call.",
    "Hermes puts a call between <tool_call> and </tool_call>",
    "<tool_call> is the tag that Hermes uses.",
    "The model ended with <|im_end|>",
    "Mistral's token is [TOOL_CALLS], as in [TOOL_CALLS] [{\"name\": …}], and a list follows it.",
    "Example:\n\n```xml\n<tool_call>\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}\n</tool_call>\n```",
    "Use `<function=name>{…}</function>` for Llama.",
    "print is a function of Python. default_api is a module.",
    // Prose before a form that may also be ordinary text.
    "Sure, I'll call the tool:\n```json\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}\n```",
    "Here is the call: send_message(to=\"root\")",
    "Sure:\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}",
    "I do this:\n<send_message><to>root</to></send_message>",
    // A call, and then prose.
    "```json\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}\n```\nThis call asks root.",
    "<tool_call>{\"name\": \"send_message\", \"arguments\": {\"to\": \"root\"}}</tool_call>\nI have asked root.",
    "<tool_call>{\"name\": \"send_message\", \"arguments\": {}}</tool_call>\n<tool_response>{\"ok\": true}</tool_response>",
    "{\"name\": \"list_agents\", \"arguments\": {}}\nThen I call:\n<tool_call>{\"name\": \"list_agents\"}</tool_call>",
    "Action: send_message\nAction Input: {\"to\": \"root\"}\nObservation: done\nFinal Answer: I asked.",
    "Thought: I know it.\nFinal Answer: 42",
    "Action: send_message to root\nOwner: Bob",
    "Action: Bob writes the report.",
    // JSON answers.
    "{\"name\": \"Ada\", \"arguments\": [\"for\", \"against\"]}",
    "{\"name\": \"main\", \"parameters\": {\"argc\": \"int\"}}",
    "{\"name\": \"send_message\", \"description\": \"Sends a message\", \"parameters\": {\"type\": \"object\"}}",
    "{\"tool\": \"send_message\", \"input\": {\"to\": \"root\"}, \"result\": \"sent\", \"duration_ms\": 12}",
    "[{\"name\": \"send_message\", \"calls\": 3}, {\"name\": \"finish\", \"calls\": 1}]",
    "[{\"name\": \"list_agents\", \"arguments\": {}}, {\"name\": \"unknown\", \"arguments\": {}}]",
    "{\"name\": \"finish\", \"content\": \"The last step.\"}",
    "[{\"name\": \"send_message\"}, {\"name\": \"finish\"}]",
    "[{\"id\": 1, \"name\": \"list_agents\"}]",
    "[{\"name\": \"finish\", \"parameters\": {\"type\": \"object\", \"properties\": {\"status\": {}}}}]",
    "{\"name\": \"finish\", \"parameters\": [\"status\", \"summary\"]}",
    "The process:\n<invoke name=\"Ask\" partnerLink=\"root\"/>",
    "The interface:\n<function name=\"f\"><param name=\"x\">int</param></function>",
    "{\"section\": {\"lines\": 3, \"words\": 40}}",
    "{\"finish\": \"tomorrow\"}",
    "{\"to\": \"root\"}",
    "{\"query\": \"rust\"}",
    "{\"status\": \"ok\", \"count\": 2}",
    "{\"doc\": \"<tool_call>{\\\"name\\\": \\\"send_message\\\"}</tool_call>\"}",
    "[1, 2, 3]",
    "[]",
    "{}",
    "null",
    "42",
    "\"send_message\"",
    "{\"unfinished\": [1, 2",
    "```json\n{\n  \"name\": \"polity\",\n  \"version\": \"1.0.0\",\n  \"scripts\": {\"run\": \"cargo run\"}\n}\n```",
    // Code and documents.
    "In `config.json` the timeout is wrong:\n\n```json\n{\"timeout\": 5, \"name\": \"send_message\"}\n```\n\nSet it to 30.",
    "<!DOCTYPE html>\n<html><head><title>Hi</title></head><body><section><title>x</title></section></body></html>",
    "<section><p>Text</p></section>",
    "<section>\n  <h1>Agents</h1>\n</section>",
    "<tools>\n  <tool id=\"1\">Hammer</tool>\n</tools>",
    "<invoice name=\"x\"><line>1</line></invoice>",
    "<svg xmlns=\"http://www.w3.org/2000/svg\"><rect/></svg>",
    "import os\n\ndef send_message(to):\n    print(to)\n\nsend_message(to=\"root\")",
    "```python\nimport os\n\nfor path in os.listdir():\n    print(path)\n```",
    "```python\nresult = send_message(to=\"root\")\nprint(result)\n```",
    "print(\"hello\")",
    "print(sum([1, 2, 3]))",
    "run(command=\"ls\")\nfor line in out:\n    finish(line)",
    "```rust\nfinish(status)\n```",
    "```sh\nrun --fast\n```",
    "# Report\n\n- [x] send_message works\n- [ ] list_agents\n\n| name | arguments |\n|---|---|\n| finish | none |",
    "[send_message](https://example.org/send_message) is documented there.",
    "[1] Smith, J. (2020). Tools.",
    "> <think> marks are removed.\n\nThat is all.",
    "The mark `</think>` ends the thoughts.",
    "Write </think> to end the thoughts, and then the answer.",
    "```\n</think>\n```",
    "a < b && c > d; [x] = y",
    "commentary to=functions is a header of Harmony.",
    "to=functions.send_message is the recipient.",
    "<|channel|>final<|message|>Hello",
    "search results: { }",
    "Name: send_message\nArguments: {\"to\": \"root\"}",
];

#[test]
fn ordinary_texts_stay() {
    for text in TEXTS {
        assert_eq!(read(text, &OFFERED), Spoken::Text, "{text}");
    }
}

#[test]
fn ordinary_texts_have_no_thoughts() {
    for text in TEXTS.iter().filter(|text| !text.starts_with("<|channel|>")) {
        assert_eq!(without_thoughts(text), (None, (*text).to_owned()), "{text}");
    }
}

/// A call that is quoted in prose is text. This applies to calls of every form.
#[test]
fn a_call_before_or_in_prose_is_text() {
    for (family, text, _) in super::calls::CALLS {
        let (_, call) = without_thoughts(text);
        for prose in
            [format!("{call}\n\nThat was the call."), format!("I could write:\n\n{call}\n\nBut I do not.")]
        {
            assert_eq!(read(&prose, &OFFERED), Spoken::Text, "{family}: {prose}");
        }
    }
}
