//! A minimal society: just enough of a runtime to carry a play from the prompt to the final answer.

use bytes::Bytes;
use polity_llm::{Arguments, AudioFormat, Message, Part, Request, Tool, ToolCall, ToolChoice};
use polity_rehearsal::{BuiltIn, answer};
use polity_society::text::{Language, TextKey, Texts};
use polity_society::workspace::Access;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The name of a tool, and a result. To make something go wrong in a play, the tool returns this result instead of its
/// real result.
pub(crate) type Override = (&'static str, Value);

/// The agents of a play, with their artifacts, roles and messages.
pub(crate) struct Society {
    texts: Texts,
    agents: BTreeMap<String, Agent>,
    artifacts: BTreeMap<String, Artifact>,
    roles: Vec<(String, BuiltIn)>,
    queue: VecDeque<(String, Vec<Part>)>,
    /// Pairs of agents: the first waits for an answer from the second.
    open: BTreeSet<(String, String)>,
    overrides: Vec<Override>,
    /// Pairs of an agent and one of its contacts. The parent of an agent is not listed here.
    knows: BTreeSet<(String, String)>,
    toolless: Option<&'static str>,
    /// The tools that every request offers.
    tools: Vec<&'static str>,
    /// The directory of the person, with the files in it.
    workspace: Option<(Access, BTreeMap<String, String>)>,
    /// All calls and closing texts, in order.
    pub(crate) transcript: String,
    /// All closing texts, in order.
    pub(crate) sayings: Vec<String>,
}

struct Agent {
    role: String,
    parent: String,
    model: BuiltIn,
    brief: String,
    history: Vec<Message>,
}

struct Artifact {
    name: &'static str,
    mime_type: &'static str,
    data: Bytes,
}

const TOOLS: [&str; 8] = [
    "create_role",
    "spawn_agent_with_task",
    "send_message",
    "find_capable_agents",
    "put_artifact",
    "str_replace_editor",
    "search_files",
    "bash",
];

impl Society {
    pub(crate) fn new(language: Language) -> Self {
        let file = match language {
            Language::Zh => include_str!("../../../../prompts/zh/texts.toml"),
            Language::En => include_str!("../../../../prompts/en/texts.toml"),
        };
        let tables: BTreeMap<String, BTreeMap<String, Value>> =
            toml::from_str(file).expect("the shipped texts parse");
        let mut named = BTreeMap::new();
        for (table, texts) in tables {
            for (key, text) in texts {
                named.insert(format!("{table}.{key}"), text.as_str().unwrap_or_default().to_owned());
            }
        }
        let texts = Texts::build(named, BTreeMap::new(), None).0;
        let root = Agent {
            role: texts.get(TextKey::SystemRootRole).to_owned(),
            parent: "user".to_owned(),
            model: BuiltIn::Text,
            brief: String::new(),
            history: Vec::new(),
        };
        Self {
            texts,
            agents: BTreeMap::from([("root".to_owned(), root)]),
            artifacts: BTreeMap::new(),
            roles: Vec::new(),
            queue: VecDeque::new(),
            open: BTreeSet::new(),
            overrides: Vec::new(),
            knows: BTreeSet::new(),
            toolless: None,
            tools: TOOLS.to_vec(),
            workspace: None,
            transcript: String::new(),
            sayings: Vec::new(),
        }
    }

    pub(crate) fn with(mut self, id: &str, name: &'static str, mime_type: &'static str, data: &[u8]) -> Self {
        let artifact = Artifact { name, mime_type, data: Bytes::copy_from_slice(data) };
        self.artifacts.insert(format!("artifact:{id}"), artifact);
        self
    }

    /// Gives the agents a directory of the user to work in. The directory contains these files.
    pub(crate) fn in_workspace(mut self, access: Access, files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        self.workspace = Some((access, files));
        self
    }

    /// Returns the files of the workspace.
    pub(crate) fn files(&self) -> BTreeMap<String, String> {
        self.workspace.as_ref().expect("a workspace").1.clone()
    }

    pub(crate) fn answering(mut self, tool: &'static str, result: Value) -> Self {
        self.overrides.push((tool, result));
        self
    }

    /// Forbids an agent to call tools.
    pub(crate) fn without_tools(mut self, id: &'static str) -> Self {
        self.toolless = Some(id);
        self
    }

    /// Offers no tool that runs commands, as on a machine without a sandbox.
    pub(crate) fn without_commands(mut self) -> Self {
        self.tools.retain(|tool| *tool != "bash");
        self
    }

    /// Gives root a contact that can read pictures.
    pub(crate) fn with_viewer(mut self) -> Self {
        let viewer = Agent {
            role: "viewer".to_owned(),
            parent: "agent-2".to_owned(),
            model: BuiltIn::Multimodal,
            brief: String::new(),
            history: Vec::new(),
        };
        self.agents.insert("viewer-1".to_owned(), viewer);
        self.knows.insert(("root".to_owned(), "viewer-1".to_owned()));
        self
    }

    /// Sends a prompt of the person with all artifacts attached, and lets the agents work until all are done.
    pub(crate) fn prompt(mut self, prompt: &str) -> Self {
        let attachments: Vec<String> = self.artifacts.keys().cloned().collect();
        let header = self.texts.get(TextKey::MessageFromUser).to_owned();
        self.deliver("root", "user", header, prompt, Vec::new(), &attachments);
        self.work();
        self
    }

    /// Sends a notice of the system to root, and lets the agents work until all are done.
    pub(crate) fn notice(mut self, key: TextKey) -> Self {
        let text = format!("{}\n{}", self.texts.get(TextKey::MessageFromSystem), self.texts.get(key));
        self.queue.push_back(("root".to_owned(), vec![Part::Text(text)]));
        self.work();
        self
    }

    fn work(&mut self) {
        while let Some((to, parts)) = self.queue.pop_front() {
            self.agent(&to).history.push(Message::User(parts));
            self.turn(&to);
        }
    }

    fn turn(&mut self, id: &str) {
        for round in 0.. {
            assert!(round < 10, "{id} goes on for ever:\n{}", self.transcript);
            let request = self.request(id);
            let model = self.agents[id].model.name();
            let reply = answer(&request, model);
            assert_eq!(reply, answer(&request, model), "the same conversation is answered in the same way");
            if let Some(text) = reply.text {
                assert!(reply.tool_calls.is_empty());
                self.agent(id).history.push(Message::Assistant {
                    text: Some(text.clone()),
                    tool_calls: Vec::new(),
                    extra: Default::default(),
                });
                self.said(id, &text);
                return;
            }
            assert!(!reply.tool_calls.is_empty());
            self.act(id, reply.tool_calls);
        }
    }

    fn act(&mut self, id: &str, mut calls: Vec<ToolCall>) {
        let at = self.agent(id).history.len();
        let mut results = Vec::new();
        for (index, call) in calls.iter_mut().enumerate() {
            call.id = format!("call-{at}-{index}");
            let Arguments::Object(arguments) = &call.arguments else { panic!("arguments are an object") };
            let arguments = Value::Object(arguments.clone());
            let shown = serde_json::to_string_pretty(&arguments).expect("arguments are JSON");
            self.transcript.push_str(&format!("{id} calls {} {shown}\n", call.name));
            let content = match self.result(id, &call.name, &arguments) {
                Value::String(quoted) => quoted,
                result => result.to_string(),
            };
            results.push(Message::Tool { call_id: call.id.clone(), content, media: Vec::new() });
        }
        let history = &mut self.agent(id).history;
        history.push(Message::Assistant { text: None, tool_calls: calls, extra: Default::default() });
        history.extend(results);
    }

    fn result(&mut self, id: &str, tool: &str, arguments: &Value) -> Value {
        if let Some((_, result)) = self.overrides.iter().find(|(name, _)| *name == tool) {
            return result.clone();
        }
        let text =
            |pointer: &str| arguments.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        match tool {
            "create_role" => {
                let needs = arguments["requiredCapabilities"].as_array();
                let multimodal = needs.is_some_and(|needs| !needs.is_empty());
                let model = if multimodal { BuiltIn::Multimodal } else { BuiltIn::Text };
                self.roles.push((text("/name"), model));
                let role = format!("role-{}", self.roles.len());
                json!({"id": role, "name": text("/name"), "serviceId": model.name()})
            }
            "spawn_agent_with_task" => {
                let index: usize =
                    text("/roleId").trim_start_matches("role-").parse().expect("a role id with a number");
                let (role, model) = self.roles[index - 1].clone();
                let child = format!("agent-{}", self.agents.len());
                let brief = arguments["taskBrief"].clone();
                let agent = Agent {
                    role: role.clone(),
                    parent: id.to_owned(),
                    model,
                    brief: brief.to_string(),
                    history: Vec::new(),
                };
                self.agents.insert(child.clone(), agent);
                self.open.insert((id.to_owned(), child.clone()));
                self.knows.insert((id.to_owned(), child.clone()));
                self.send(id, &child, &arguments["initialMessage"]);
                json!({"id": child, "roleId": text("/roleId"), "roleName": role, "messageId": "m1"})
            }
            "send_message" => {
                let to = text("/to");
                let target = text("/payload/target_agent/id");
                if !target.is_empty() {
                    self.knows.insert((to.clone(), target));
                }
                if text("/payload/message_type").ends_with("_request") {
                    self.open.insert((id.to_owned(), to.clone()));
                } else {
                    self.open.remove(&(to.clone(), id.to_owned()));
                }
                self.send(id, &to, &arguments["payload"]);
                json!({"messageIds": [{"to": to, "id": "m2"}]})
            }
            "find_capable_agents" => json!({"agents": [], "others_exist": false}),
            "put_artifact" => json!({"ref": "artifact:report1"}),
            "str_replace_editor" => self.edited(&text("/command"), &text("/path"), &text("/file_text")),
            "search_files" => {
                let paths: Vec<String> = self.files().into_keys().collect();
                self.quoted(&format!("search for *: {} files", paths.len()), &paths)
            }
            "bash" => self.ran(&text("/command")),
            other => panic!("unknown tool {other}"),
        }
    }

    fn quoted(&self, origin: &str, lines: &[String]) -> Value {
        let heading = self.texts.fill(TextKey::ToolQuoted, &[("origin", origin)]);
        json!(format!("{heading}\n{}\n", lines.join("\n")))
    }

    fn edited(&mut self, command: &str, path: &str, text: &str) -> Value {
        let files = self.files();
        match (command, files.get(path)) {
            ("view", _) if path == "." => {
                // The listing does not show the report of an earlier run. In a real society, this happens if a long
                // listing is cut off at its end.
                let shown: Vec<String> =
                    files.into_keys().filter(|path| !path.starts_with("polity-report")).collect();
                self.quoted("./", &shown)
            }
            ("view", Some(text)) => {
                let numbered = |(at, line)| format!("{:>6}\t{line}", at + 1);
                let lines: Vec<String> = text.lines().enumerate().map(numbered).collect();
                self.quoted(path, &lines)
            }
            ("create", None) => {
                let (_, files) = self.workspace.as_mut().expect("a workspace");
                files.insert(path.to_owned(), text.to_owned());
                json!({"path": path, "done": "created", "lines": text.lines().count()})
            }
            ("create", Some(_)) => json!({"error": "file_changed", "message": "view it again"}),
            other => panic!("unexpected: {other:?}"),
        }
    }

    /// Returns the result of a command that counts the lines of a file.
    fn ran(&self, command: &str) -> Value {
        let path = command.strip_prefix("wc -l ").expect("a command that counts lines");
        let lines = self.files()[path].lines().count();
        json!({"exitCode": 0, "output": format!("{lines} {path}\n"), "durationMs": 5})
    }

    fn send(&mut self, from: &str, to: &str, payload: &Value) {
        let role = self.agents[from].role.clone();
        let header = self.texts.fill(TextKey::MessageFromAgent, &[("role", &role), ("id", from)]);
        let mut fields = Vec::new();
        if let Some(objective) = payload.pointer("/taskBrief/objective").and_then(Value::as_str) {
            fields.push(self.texts.fill(TextKey::BriefObjective, &[("value", objective)]));
        }
        for name in ["target_agent", "reason", "required_capability"] {
            match payload.get(name) {
                Some(Value::String(value)) => fields.push(format!("{name}: {value}")),
                Some(value) => fields.push(format!("{name}: {value}")),
                None => {}
            }
        }
        let references = payload["attachments"].as_array().cloned().unwrap_or_default();
        let attachments: Vec<String> =
            references.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let text = payload["text"].as_str().unwrap_or_default().to_owned();
        let kind = payload["message_type"].as_str().unwrap_or("general");
        let kind = match kind.ends_with("_response") {
            true => self.texts.get(TextKey::MessageKindInformation).to_owned(),
            false => self.texts.fill(TextKey::MessageKindRequest, &[("kind", kind), ("id", "m000000007")]),
        };
        self.deliver(to, from, format!("{header}\n{kind}"), &text, fields, &attachments);
    }

    fn deliver(
        &mut self,
        to: &str,
        from: &str,
        header: String,
        text: &str,
        fields: Vec<String>,
        attachments: &[String],
    ) {
        let mark = self.texts.get(TextKey::MessageQuoteMark);
        let defused = text.lines().map(|line| match line.starts_with(['【', '［']) {
            true => format!("{mark}{line}"),
            false => line.to_owned(),
        });
        let opening: Vec<String> = [header].into_iter().chain(defused).chain(fields).collect();
        let mut parts = vec![Part::Text(opening.join("\n"))];
        for reference in attachments {
            self.attach(&mut parts, reference, self.agents[to].model);
        }
        parts.push(Part::Text(self.texts.fill(TextKey::MessageReplyHint, &[("id", from)])));
        self.queue.push_back((to.to_owned(), parts));
    }

    fn attach(&self, parts: &mut Vec<Part>, reference: &str, model: BuiltIn) {
        let Artifact { name, mime_type, data } = &self.artifacts[reference];
        let text = |key: TextKey, values: &[(&str, &str)]| self.texts.fill(key, values);
        let label = text(TextKey::AttachmentLabel, &[("filename", name), ("reference", reference)]);
        if mime_type.starts_with("text/") {
            let content = String::from_utf8(data.to_vec()).expect("the file is UTF-8");
            parts.push(Part::Text(format!("{label}\n{content}")));
            return;
        }
        if model == BuiltIn::Text || mime_type.starts_with("video/") {
            parts.push(Part::Text(
                [
                    text(TextKey::AttachmentHeading, &[]),
                    text(TextKey::AttachmentFilename, &[("filename", name)]),
                    text(TextKey::AttachmentReference, &[("reference", reference)]),
                    text(TextKey::AttachmentMimeType, &[("mime_type", mime_type)]),
                    String::new(),
                    text(TextKey::AttachmentUnsupported, &[]),
                ]
                .join("\n"),
            ));
            return;
        }
        parts.push(Part::Text(label));
        let (data, mime_type) = (data.clone().into(), (*mime_type).to_owned());
        parts.push(match mime_type.split('/').next() {
            Some("image") => Part::Image { mime_type, data },
            Some("audio") => Part::Audio { format: AudioFormat::Wav, data },
            _ => Part::File { filename: (*name).to_owned(), mime_type, data },
        });
    }

    fn said(&mut self, id: &str, text: &str) {
        self.sayings.push(text.to_owned());
        let giver = self.agents[id].parent.clone();
        let waits = self.open.iter().any(|(who, _)| who == id);
        let kind = match (giver.as_str(), waits) {
            ("user", true) => "tells the user meanwhile",
            ("user", false) => "tells the user",
            (_, true) => "notes",
            (_, false) => "answers",
        };
        self.transcript.push_str(&format!("{id} {kind}:\n{text}\n"));
        if giver == "user" || waits {
            return;
        }
        self.open.remove(&(giver.clone(), id.to_owned()));
        self.send(id, &giver, &json!({"text": text}));
    }

    fn agent(&mut self, id: &str) -> &mut Agent {
        self.agents.get_mut(id).expect("the agent exists")
    }

    fn request(&self, id: &str) -> Request {
        let agent = &self.agents[id];
        let contact = |contact: &str, input: &str| {
            let values = [("id", contact), ("role", "r"), ("input", input), ("output", "text")];
            self.texts.fill(TextKey::SystemContact, &values)
        };
        let known = self.knows.iter().filter(|(owner, _)| owner == id).map(|(_, known)| {
            let input = self.agents[known].model.capabilities().input;
            contact(known, &input.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        });
        let mut system = vec![
            agent.brief.clone(),
            self.texts.get(TextKey::SystemRuntimeHeading).to_owned(),
            format!("agentId={id}\nparentAgentId={}\nroleName={}", agent.parent, agent.role),
            self.texts.get(TextKey::SystemContactsHeading).to_owned(),
            contact(&agent.parent, "text"),
        ];
        system.extend(known);
        if let Some((access, _)) = &self.workspace {
            system.insert(3, format!("workspace={}", access.fact()));
        }
        let mut messages = vec![Message::System(system.join("\n"))];
        messages.extend(agent.history.iter().cloned());
        let tool = |name: &str| Tool::new(name, "", json!({}));
        let tool_choice = if self.toolless == Some(id) { ToolChoice::None } else { ToolChoice::Auto };
        Request { messages, tools: self.tools.iter().copied().map(tool).collect(), tool_choice }
    }
}
