//! Finds out what a model meant with its reply. Small models write calls and thoughts into their text, and call tools
//! by wrong names. These functions are pure.

use crate::inline;
use polity_llm::spoken::{self, Offered, Spoken};
use polity_llm::{Arguments, Reply, Tool, ToolCall};
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use polity_store::record::Taken;
use serde_json::{Map, Value};

/// The tool name that is recorded for an unreadable call without a tool name.
const NO_NAME: &str = "unreadable_call";

/// The refusal of an unreadable call quotes at most this many characters of the text that the model wrote.
const QUOTED: usize = 300;

/// Fields of an answer in which servers put the thoughts of a model.
const THOUGHTS: [&str; 3] = ["reasoning_content", "reasoning", "thinking"];

/// Wrong names that models use for tools of the society, each with the right name of the tool.
const ALIASES: &[(&str, &str)] = &[
    ("hire_agent", "spawn_agent_with_task"),
    ("hire", "spawn_agent_with_task"),
    ("create_agent", "spawn_agent_with_task"),
    ("spawn", "spawn_agent_with_task"),
    ("delegate", "spawn_agent_with_task"),
    ("delegate_task", "spawn_agent_with_task"),
    ("assign_task", "spawn_agent_with_task"),
    ("new_agent", "spawn_agent_with_task"),
    ("make_role", "create_role"),
    ("add_role", "create_role"),
    ("find_role", "find_role_by_name"),
    ("get_role", "find_role_by_name"),
    ("ask", "send_message"),
    ("ask_agent", "send_message"),
    ("ask_user", "send_message"),
    ("message", "send_message"),
    ("message_agent", "send_message"),
    ("send", "send_message"),
    ("reply", "send_message"),
    ("respond", "send_message"),
    ("contacts", "list_contacts"),
    ("get_contacts", "list_contacts"),
    ("list_agents", "list_contacts"),
    ("find_agents", "find_capable_agents"),
    ("find_agent", "find_capable_agents"),
    ("save_artifact", "put_artifact"),
    ("store_artifact", "put_artifact"),
    ("create_artifact", "put_artifact"),
    ("write_artifact", "put_artifact"),
    ("read_artifact", "get_artifact"),
    ("open_artifact", "get_artifact"),
    ("fetch_artifact", "get_artifact"),
    ("artifacts", "list_artifacts"),
    ("get_artifacts", "list_artifacts"),
    ("fire_agent", "terminate_agent"),
    ("end_agent", "terminate_agent"),
    ("stop_agent", "terminate_agent"),
    ("kill_agent", "terminate_agent"),
    ("summarize_context", "compress_context"),
    ("compress", "compress_context"),
];

/// A reply in the form that the model meant.
#[derive(Debug)]
pub struct Understood {
    /// The reply: its text contains no thoughts, and its calls have the real names of their tools.
    pub reply: Reply,
    /// Whether polity read the text as plain text, as calls, or as a call that cannot be read.
    pub taken: Taken,
    /// For each call, the wrong tool name that the model used; `None` if the name was right.
    pub called_as: Vec<Option<String>>,
    /// If the model wrote a call as text and this text cannot be read, this is the refusal of the call. The reply then
    /// has only this call.
    pub refusal: Option<Refusal>,
}

/// Finds out what a reply means. `tools` are the tools that the request offered.
pub fn understood(mut reply: Reply, tools: &[Tool]) -> Understood {
    let mut has_thoughts = THOUGHTS.iter().any(|field| is_text(reply.extra.get(*field)));
    if let Some(text) = reply.text.take() {
        let (thoughts, said) = spoken::without_thoughts(&text);
        has_thoughts |= thoughts.is_some();
        // A text without thoughts is not changed. Even blanks at its ends stay.
        let said = if thoughts.is_some() { said } else { text };
        reply.text = Some(said).filter(|said| !said.trim().is_empty());
    }
    let (mut taken, mut refusal) = (Taken::Text, None);
    if let Some(text) = reply.text.as_deref().filter(|_| reply.tool_calls.is_empty()) {
        match read(text, tools) {
            Spoken::Text if spoken::has_remains(text) => taken = Taken::FailedCall,
            Spoken::Text => {}
            Spoken::Calls(calls) => {
                let call = |call: spoken::SpokenCall| named(call.name, call.arguments);
                reply.tool_calls = calls.into_iter().map(call).collect();
                reply.text = None;
                taken = Taken::Calls;
            }
            Spoken::Broken { tool, problem } => {
                let quoted: String = text.chars().take(QUOTED).collect();
                let problem = Fault::Rule(format!("{problem} You wrote: {quoted}"));
                refusal = Some(Refusal::InvalidArguments(vec![FieldProblem::new("arguments", problem)]));
                reply.tool_calls = vec![named(tool.unwrap_or_else(|| NO_NAME.to_owned()), Map::new())];
                reply.text = None;
                taken = Taken::BrokenCall;
            }
        }
    }
    if has_thoughts && reply.text.is_none() && reply.tool_calls.is_empty() {
        taken = Taken::Thoughts;
    }
    let understand = |call: &mut ToolCall| {
        let meant = meant(&call.name, tools)?;
        Some(inline::leave_out(&std::mem::replace(&mut call.name, meant)))
    };
    let called_as = reply.tool_calls.iter_mut().map(understand).collect();
    Understood { reply, taken, called_as, refusal }
}

fn is_text(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty())
}

fn named(name: String, arguments: Map<String, Value>) -> ToolCall {
    ToolCall { id: String::new(), name, arguments: Arguments::Object(arguments), extra: Map::new() }
}

fn read(text: &str, tools: &[Tool]) -> Spoken {
    let parameters = |tool: &Tool| -> Vec<String> {
        let properties = tool.parameters.get("properties").and_then(Value::as_object);
        properties.map(|properties| properties.keys().cloned().collect()).unwrap_or_default()
    };
    let parameters: Vec<Vec<String>> = tools.iter().map(parameters).collect();
    let names: Vec<Vec<&str>> =
        parameters.iter().map(|names| names.iter().map(String::as_str).collect()).collect();
    let offered: Vec<Offered<'_>> =
        tools.iter().zip(&names).map(|(tool, parameters)| Offered { name: &tool.name, parameters }).collect();
    spoken::read(text, &offered)
}

/// Returns the tool that a wrong name means. The name may be in another style, have a prefix, or be in [`ALIASES`].
/// Returns `None` if the name is right, or if it means no tool.
fn meant(name: &str, tools: &[Tool]) -> Option<String> {
    if tools.iter().any(|tool| tool.name == name) {
        return None;
    }
    let bare = name.rsplit(['.', ':', '/']).next().unwrap_or(name);
    let plain = |name: &str| name.replace(['_', '-', ' '], "").to_lowercase();
    let wanted = plain(bare);
    let alias = ALIASES.iter().find(|(alias, _)| plain(alias) == wanted).map(|(_, tool)| *tool);
    let is_meant = |tool: &&Tool| plain(&tool.name) == wanted || Some(tool.name.as_str()) == alias;
    tools.iter().find(is_meant).map(|tool| tool.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::NAMES;
    use serde_json::json;

    fn tools() -> Vec<Tool> {
        let tool = |name: &str, parameters: Value| {
            Tool::new(name, "", json!({"type": "object", "properties": parameters}))
        };
        vec![
            tool("send_message", json!({"to": {}, "payload": {}})),
            tool("list_contacts", json!({})),
            tool("spawn_agent_with_task", json!({"role": {}, "taskBrief": {}})),
        ]
    }

    fn said(text: &str) -> Understood {
        understood(Reply { text: Some(text.to_owned()), ..Reply::default() }, &tools())
    }

    #[test]
    fn a_call_that_is_written_as_text_is_a_call() {
        let read = said(
            "<think>whom?</think><tool_call>{\"name\": \"send_message\", \"arguments\": {\"to\": \"a\"}}</tool_call>",
        );
        assert_eq!((read.taken, read.reply.text), (Taken::Calls, None));
        assert_eq!(read.reply.tool_calls[0].name, "send_message");
        assert!(read.refusal.is_none());
    }

    #[test]
    fn a_call_that_cannot_be_read_is_refused_with_what_is_wrong() {
        let read = said("<tool_call>{\"name\": \"send_message\", \"arguments\": {\"to\": \"a");
        assert_eq!((read.taken, read.reply.text), (Taken::BrokenCall, None));
        assert_eq!(read.reply.tool_calls[0].name, "send_message");
        let Some(Refusal::InvalidArguments(problems)) = read.refusal else { panic!("a refusal") };
        assert!(problems[0].problem.to_string().contains("You wrote: <tool_call>"), "{problems:?}");
    }

    #[test]
    fn thoughts_are_no_part_of_an_answer() {
        assert_eq!(said("<think>hm</think>\n\nParis.").reply.text.as_deref(), Some("Paris."));
        assert_eq!(said("<think>hm").reply.text, None);
        assert_eq!(said("  Paris. \n").reply.text.as_deref(), Some("  Paris. \n"));
    }

    #[test]
    fn thoughts_and_failed_calls_are_known_as_such() {
        assert_eq!(said("<think>hm</think>").taken, Taken::Thoughts);
        assert_eq!(said("<think>hm</think> Paris.").taken, Taken::Text);
        assert_eq!(said("  ").taken, Taken::Text);
        let extra = Map::from_iter([("reasoning_content".to_owned(), json!("hm"))]);
        let only = understood(Reply { extra, ..Reply::default() }, &tools());
        assert_eq!(only.taken, Taken::Thoughts);
        let failed = said("{\"name\": \"fly\", \"arguments\": {}}");
        assert_eq!(failed.taken, Taken::FailedCall);
        assert!(failed.reply.text.is_some(), "the history keeps what the model wrote");
        // A call does not count as an answer, even if the request offered no tools.
        let text = "<tool_call>{\"name\": \"send_message\"}</tool_call>".to_owned();
        assert_eq!(understood(Reply { text: Some(text), ..Reply::default() }, &[]).taken, Taken::FailedCall);
    }

    #[test]
    fn tools_are_known_by_other_names() {
        let check = |name: &str, expect: &str| {
            let call = ToolCall {
                id: "1".to_owned(),
                name: name.to_owned(),
                arguments: Arguments::Object(Map::new()),
                extra: Map::new(),
            };
            let read = understood(Reply { tool_calls: vec![call], ..Reply::default() }, &tools());
            assert_eq!(read.reply.tool_calls[0].name, expect);
            assert_eq!(
                read.called_as,
                [(name != expect).then(|| name.to_owned())],
                "the model's own name for the tool is kept"
            );
        };
        check("hire_agent", "spawn_agent_with_task");
        check("functions.sendMessage", "send_message");
        check("List-Contacts", "list_contacts");
        check("delegate", "spawn_agent_with_task");
        check("fly", "fly");
        // `put_file` means no tool. `save_artifact` means `put_artifact`, but the request of this test does not offer
        // this tool. So both names stay as they are.
        check("put_file", "put_file");
        check("save_artifact", "save_artifact");
    }

    /// Every alias means exactly one tool, and the tool exists.
    #[test]
    fn aliases_are_of_tools_that_there_are() {
        for (index, (alias, tool)) in ALIASES.iter().enumerate() {
            assert!(NAMES.contains(tool), "{tool}");
            assert!(!NAMES.contains(alias), "{alias}");
            assert!(ALIASES[..index].iter().all(|(other, _)| other != alias), "{alias}");
        }
    }
}
