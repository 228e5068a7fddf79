//! Reads a request to the model into a [`Scene`]: who the agent is, which contacts it has, and what happened so far.

use crate::inbound::{Inbound, Sender};
use crate::texts::{self, captures};
use crate::words::Words;
use polity_llm::{Arguments, Message, Request};
use polity_society::id::AgentId;
use polity_society::text::{Language, TextKey, Texts};
use polity_society::workspace::Access;
use serde_json::{Map, Value};

/// Everything that an agent can know from one request.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    /// The language of the system's texts in the request.
    pub(crate) language: Language,
    /// The agent's own id.
    pub(crate) me: Option<AgentId>,
    /// The agent that hired this agent, or the user.
    pub(crate) parent: Option<AgentId>,
    /// The contacts to which the agent can write.
    pub(crate) contacts: Vec<Contact<'a>>,
    /// The agent may work in a directory of the user. This is the agent's access to that directory. `None` if the task
    /// has no such directory.
    pub(crate) workspace: Option<Access>,
    /// The names of the tools that the agent can call.
    tools: Vec<&'a str>,
    /// What happened so far, in order.
    pub(crate) steps: Vec<PastEvent<'a>>,
}

/// A contact, from a line of the list of contacts.
#[derive(Debug)]
pub(crate) struct Contact<'a> {
    pub(crate) id: AgentId,
    input: &'a str,
}

impl Contact<'_> {
    /// Whether the contact's model has this input capability.
    pub(crate) fn takes(&self, capability: &str) -> bool {
        self.input
            .split(|character: char| character == ',' || character.is_whitespace())
            .any(|name| name == capability)
    }
}

/// One event in the conversation of the agent, as the request tells it.
#[derive(Debug)]
pub(crate) enum PastEvent<'a> {
    /// The agent got a message.
    Heard(Inbound<'a>),
    /// The agent called a tool.
    Called(Called<'a>),
    /// The agent ended a turn with a closing text.
    Said,
}

/// A tool call, with its result.
#[derive(Debug)]
pub(crate) struct Called<'a> {
    call_id: &'a str,
    pub(crate) tool: &'a str,
    arguments: Option<&'a Map<String, Value>>,
    result: Option<Value>,
}

/// The outcome of a call.
#[derive(Debug)]
pub(crate) enum CallOutcome<'a> {
    /// The call succeeded, with this result.
    Done(&'a Value),
    /// The society refused the call, with a code and advice.
    Refused { error: &'a str, message: &'a str },
    /// The history contains no result of the call.
    Missing,
}

impl Called<'_> {
    /// Returns the outcome of the call.
    pub(crate) fn outcome(&self) -> CallOutcome<'_> {
        let Some(result) = &self.result else {
            return CallOutcome::Missing;
        };
        let nobody_reached = || result.get("messageIds").and_then(Value::as_array).is_none_or(Vec::is_empty);
        let refusal = match result.get("error") {
            Some(_) => Some(result),
            None => result.pointer("/refused/0").filter(|_| nobody_reached()),
        };
        let Some(refusal) = refusal else {
            return CallOutcome::Done(result);
        };
        let text = |key: &str| refusal.get(key).and_then(Value::as_str).unwrap_or_default();
        CallOutcome::Refused { error: text("error"), message: text("message") }
    }

    /// Returns the text in a field of the result, if the call succeeded.
    pub(crate) fn gave(&self, field: &str) -> Option<&str> {
        match self.outcome() {
            CallOutcome::Done(result) => result.get(field).and_then(Value::as_str),
            CallOutcome::Refused { .. } | CallOutcome::Missing => None,
        }
    }

    /// Returns the text of an argument. `names` is the path to the argument through nested objects.
    pub(crate) fn argument(&self, names: &[&str]) -> Option<&str> {
        let (first, others) = names.split_first()?;
        let value = self.arguments?.get(*first)?;
        others.iter().try_fold(value, |value, name| value.get(name))?.as_str()
    }
}

impl<'a> Scene<'a> {
    pub(crate) fn read(request: &'a Request) -> Self {
        let system = request.messages.iter().find_map(|message| match message {
            Message::System(text) => Some(text.as_str()),
            Message::User(_) | Message::Assistant { .. } | Message::Tool { .. } => None,
        });
        let lines: Vec<&str> = system.unwrap_or_default().lines().collect();
        let (language, runtime) = runtime_section(&lines);
        let texts = texts::of(language);
        let agent = |name: &str| {
            runtime.iter().find_map(|line| line.strip_prefix(name)).map(str::trim).map(AgentId::new)
        };
        Self {
            language,
            me: agent("agentId="),
            parent: agent("parentAgentId="),
            workspace: runtime.iter().find_map(|line| read_workspace(line)),
            tools: request.tools.iter().map(|tool| tool.name.as_str()).collect(),
            contacts: runtime.iter().filter_map(|line| read_contact(line, texts)).collect(),
            steps: read_steps(&request.messages, texts),
        }
    }

    pub(crate) fn offers(&self, tool: &str) -> bool {
        self.tools.contains(&tool)
    }

    /// Returns the messages that the agent heard, each with its index in `steps`.
    pub(crate) fn heard(&self) -> impl Iterator<Item = (usize, &Inbound<'a>)> {
        self.steps.iter().enumerate().filter_map(|(at, step)| match step {
            PastEvent::Heard(inbound) => Some((at, inbound)),
            PastEvent::Called(_) | PastEvent::Said => None,
        })
    }

    /// Returns the messages from an agent after the index `after` in `steps`.
    pub(crate) fn heard_from(&self, agent: &AgentId, after: usize) -> impl Iterator<Item = &Inbound<'a>> {
        let is_from =
            move |inbound: &Inbound<'_>| matches!(&inbound.sender, Sender::Agent(id) if id == agent);
        self.heard().filter(move |(at, inbound)| *at > after && is_from(inbound)).map(|(_, inbound)| inbound)
    }

    /// Returns the calls of one tool, each with its index in `steps`.
    pub(crate) fn calls(&self, tool: &str) -> impl Iterator<Item = (usize, &Called<'a>)> {
        self.steps.iter().enumerate().filter_map(move |(at, step)| match step {
            PastEvent::Called(called) if called.tool == tool => Some((at, called)),
            PastEvent::Called(_) | PastEvent::Heard(_) | PastEvent::Said => None,
        })
    }

    /// Returns the built-in model's texts in the language of the request.
    pub(crate) fn words(&self) -> &'static Words {
        Words::of(self.language)
    }

    /// Returns the steps after the agent's last closing text.
    pub(crate) fn unsaid(&self) -> &[PastEvent<'a>] {
        let after_said =
            self.steps.iter().rposition(|step| matches!(step, PastEvent::Said)).map_or(0, |at| at + 1);
        self.steps.get(after_said..).unwrap_or_default()
    }
}

/// Finds the heading of the runtime facts. Returns its language, and the lines from the heading to the end. The last
/// line that looks like this heading counts: prompts and briefs come earlier and may contain the same line.
fn runtime_section<'l, 'a>(lines: &'l [&'a str]) -> (Language, &'l [&'a str]) {
    for (at, line) in lines.iter().enumerate().rev() {
        for &language in Language::ALL {
            if captures(texts::of(language), TextKey::SystemRuntimeHeading, line).is_some() {
                return (language, lines.get(at..).unwrap_or_default());
            }
        }
    }
    let is_chinese = |character: char| matches!(character, '\u{3400}'..='\u{9fff}');
    let chinese = lines.iter().any(|line| line.contains(is_chinese));
    (if chinese { Language::Zh } else { Language::En }, lines)
}

fn read_workspace(line: &str) -> Option<Access> {
    let fact = line.strip_prefix("workspace=")?;
    Access::ALL.into_iter().find(|access| access.fact() == fact.trim())
}

fn read_contact<'a>(line: &'a str, texts: &Texts) -> Option<Contact<'a>> {
    if line.ends_with(texts.get(TextKey::SystemContactEnded)) {
        return None;
    }
    match captures(texts, TextKey::SystemContact, line)?.as_slice() {
        [id, _, input, _] => Some(Contact { id: AgentId::new(*id), input }),
        _ => None,
    }
}

fn read_steps<'a>(messages: &'a [Message], texts: &Texts) -> Vec<PastEvent<'a>> {
    let mut steps = Vec::new();
    for message in messages {
        match message {
            Message::System(_) => {}
            Message::User(parts) => match (Inbound::with_header(parts, texts), steps.last_mut()) {
                (Some(inbound), _) => steps.push(PastEvent::Heard(inbound)),
                (None, Some(PastEvent::Heard(before))) => before.read_parts(parts, texts),
                (None, _) => steps.push(PastEvent::Heard(Inbound::without_header(parts, texts))),
            },
            Message::Assistant { tool_calls, .. } if tool_calls.is_empty() => steps.push(PastEvent::Said),
            Message::Assistant { tool_calls, .. } => steps.extend(tool_calls.iter().map(|call| {
                let arguments = match &call.arguments {
                    Arguments::Object(arguments) => Some(arguments),
                    Arguments::Malformed(_) => None,
                };
                PastEvent::Called(Called { call_id: &call.id, tool: &call.name, arguments, result: None })
            })),
            Message::Tool { call_id, content, .. } => {
                let open = steps.iter_mut().find_map(|step| match step {
                    PastEvent::Called(called) if called.result.is_none() && called.call_id == call_id => {
                        Some(called)
                    }
                    PastEvent::Called(_) | PastEvent::Heard(_) | PastEvent::Said => None,
                });
                if let Some(called) = open {
                    called.result = Some(
                        serde_json::from_str(content).unwrap_or_else(|_| Value::String(content.clone())),
                    );
                }
            }
        }
    }
    steps
}
