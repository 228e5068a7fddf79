//! The scripted models of the societies that are played.

use crate::testing::model::{Say, ScriptedModel, tool_call};
use polity_llm::{Message, Part, Reply, Request, ToolCall, Usage};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// The number of answers after which a model calls no more tools. From then on, it only ends its turns.
const ANSWERS: usize = 9;

/// The deeds of models, for example `hired` or `report`, and how often each deed occurred.
#[derive(Debug, Default)]
pub(super) struct Deeds(BTreeMap<&'static str, u64>);

/// The names of all deeds. Each of them must occur.
const DEEDS: &[&str] = &[
    "text",
    "silence",
    "repeated",
    "received",
    "report",
    "result by message",
    "follow-up",
    "question",
    "artifact",
    "hired",
    "ended",
    "asked for an introduction",
    "introduced",
    "passed on",
    "note to oneself",
    "crash",
    "reminded",
    "unanswered",
    "nudged",
];

impl Deeds {
    pub(super) fn add(&mut self, other: &Self) {
        for (deed, number) in &other.0 {
            *self.0.entry(deed).or_default() += number;
        }
    }

    fn count(&mut self, deed: &'static str) {
        *self.0.entry(deed).or_default() += 1;
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        DEEDS.iter().map(|deed| (*deed, self.0.get(deed).copied().unwrap_or_default()))
    }
}

/// The models of one society. An agent's number is part of its role name; root has the number 0.
pub(super) struct Script {
    seed: u64,
    /// The children of each agent, by number.
    children: Vec<Vec<usize>>,
    /// One entry for each crash that is still to come: the number of calls after which the process crashes, counted
    /// from the previous crash. The last entry belongs to the next crash.
    lives: Mutex<Vec<u64>>,
    calls: AtomicU64,
    crash: Notify,
    deeds: Mutex<Deeds>,
}

impl Script {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let agents = random.usize(3..=8);
        let mut children = vec![Vec::new(); agents];
        for agent in 1..agents {
            // Most agents get the agent that was made just before them as their parent. This makes long chains, in
            // which an answer has to pass through many agents.
            let parent = if random.u8(0..3) == 0 { random.usize(0..agent) } else { agent - 1 };
            children[parent].push(agent);
        }
        let crashes = if random.bool() { random.usize(0..4) } else { 0 };
        let lives = (0..crashes).map(|_| random.u64(1..15)).collect();
        Self {
            seed,
            children,
            lives: Mutex::new(lives),
            calls: AtomicU64::new(0),
            crash: Notify::new(),
            deeds: Mutex::new(Deeds::default()),
        }
    }

    /// Waits until the process crashes.
    pub(super) async fn crashed(&self) {
        self.crash.notified().await;
    }

    pub(super) fn deeds(&self) -> Deeds {
        std::mem::take(&mut *self.deeds.lock().unwrap())
    }

    fn count(&self, deed: &'static str) {
        self.deeds.lock().unwrap().count(deed);
    }

    /// Counts a call. Returns whether the process crashes instead of getting the answer to this call.
    fn dies(&self) -> bool {
        let mut lives = self.lives.lock().unwrap();
        let calls = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let dies = lives.last().is_some_and(|last| calls >= *last);
        if dies {
            lives.pop();
            self.calls.store(0, Ordering::SeqCst);
        }
        dies
    }
}

/// Returns the model that follows a script.
pub(super) fn model(script: Arc<Script>) -> Arc<ScriptedModel> {
    ScriptedModel::function(move |request| {
        let script = Arc::clone(&script);
        Box::pin(async move {
            if script.dies() {
                script.count("crash");
                script.crash.notify_one();
                return Say::Hang;
            }
            // Lets other tasks run, so that the order of agents varies.
            tokio::task::yield_now().await;
            Say::Reply(script.answer(&Sight::of(request)))
        })
    })
}

/// What a model sees in a request.
struct Sight<'a> {
    request: &'a Request,
    agent: usize,
    parent: String,
    contacts: Vec<(String, String)>,
    tokens: BTreeSet<String>,
    answers: usize,
}

fn texts(message: &Message) -> Vec<&str> {
    match message {
        Message::System(_) => Vec::new(),
        Message::User(parts) => parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect(),
        Message::Assistant { text, .. } => text.iter().map(String::as_str).collect(),
        Message::Tool { content, .. } => vec![content],
    }
}

/// Returns the tokens in a text. Each token represents a piece of work. A token consists of `tok`, the number of an
/// agent, `z`, and another number.
pub(super) fn tokens(text: &str) -> BTreeSet<String> {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric());
    words.filter(|word| word.starts_with("tok") && word.contains('z')).map(str::to_owned).collect()
}

impl<'a> Sight<'a> {
    fn of(request: &'a Request) -> Self {
        let system = match request.messages.first() {
            Some(Message::System(text)) => text.as_str(),
            _ => "",
        };
        let value = |name: &str| {
            let line = system.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            line.unwrap_or_default().trim().to_owned()
        };
        let contacts = system.lines().filter_map(|line| {
            let mut fields = line.strip_prefix("- ")?.split('｜');
            Some((fields.next()?.to_owned(), fields.next()?.to_owned()))
        });
        let all = request.messages.iter().flat_map(texts);
        Self {
            request,
            agent: value("roleName").strip_prefix('R').and_then(|number| number.parse().ok()).unwrap_or(0),
            parent: value("parentAgentId"),
            contacts: contacts.collect(),
            tokens: all.flat_map(tokens).collect(),
            answers: request
                .messages
                .iter()
                .filter(|message| matches!(message, Message::Assistant { .. }))
                .count(),
        }
    }

    /// Returns the messages that came since the model last answered.
    fn news(&self) -> String {
        let news = self.request.messages.iter().rev();
        let news = news.take_while(|message| !matches!(message, Message::Assistant { .. }));
        news.flat_map(texts).collect::<Vec<_>>().join("\n")
    }

    fn said(&self, needle: &str) -> bool {
        let calls = self.request.messages.iter().filter_map(|message| match message {
            Message::Assistant { tool_calls, .. } => Some(tool_calls),
            _ => None,
        });
        calls.flatten().any(|call| call.name == needle)
    }

    fn last_text(&self) -> Option<String> {
        self.request.messages.iter().rev().find_map(|message| match message {
            Message::Assistant { text: Some(text), .. } => Some(text.clone()),
            _ => None,
        })
    }

    /// Returns the request ids in a text.
    fn request_ids(text: &str) -> Vec<String> {
        let ids = text.split("request_id: ").skip(1);
        ids.map(|rest| rest.chars().take_while(char::is_ascii_alphanumeric).collect()).collect()
    }
}

fn send(to: &str, payload: Value) -> ToolCall {
    tool_call("send_message", json!({"to": to, "payload": payload}))
}

impl Script {
    fn answer(&self, sight: &Sight<'_>) -> Reply {
        let place = (sight.agent as u64) << 32 | sight.request.messages.len() as u64;
        let mut random = fastrand::Rng::with_seed(self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ place);
        let news = sight.news();
        self.note_news(&news);
        let calls = if sight.answers < ANSWERS && !sight.request.tools.is_empty() {
            self.act(sight, &news, &mut random)
        } else {
            Vec::new()
        };
        let text = if calls.is_empty() { self.close(sight, &mut random) } else { None };
        Reply {
            text,
            tool_calls: calls,
            finish_reason: "stop".to_owned(),
            usage: Usage::default(),
            model: None,
            extra: Map::new(),
        }
    }

    fn note_news(&self, news: &str) {
        for (mark, deed) in
            [("在等你答复", "reminded"), ("没有答复你的请求", "unanswered"), ("所有工作都已停", "nudged")]
        {
            if news.contains(mark) {
                self.count(deed);
            }
        }
    }

    /// Returns a text with all tokens that the model knows, and in most cases a new token.
    fn words(sight: &Sight<'_>, random: &mut fastrand::Rng) -> String {
        let mut tokens = sight.tokens.clone();
        if random.u8(0..10) < 7 {
            tokens.insert(format!("tok{}z{}", sight.agent, sight.request.messages.len()));
        }
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        format!("so far: {}", tokens.join(" "))
    }

    /// Returns the text that ends the turn: a new text, the last text again, or no text.
    fn close(&self, sight: &Sight<'_>, random: &mut fastrand::Rng) -> Option<String> {
        match random.u8(0..20) {
            0..3 => {
                self.count("silence");
                None
            }
            3..6 if sight.last_text().is_some() => {
                self.count("repeated");
                sight.last_text()
            }
            _ => {
                self.count("text");
                Some(Self::words(sight, random))
            }
        }
    }

    /// Returns the calls that the model makes before it ends its turn; none if it ends the turn now.
    fn act(&self, sight: &Sight<'_>, news: &str, random: &mut fastrand::Rng) -> Vec<ToolCall> {
        let mut calls = Vec::new();
        if news.contains("introduction_request") && random.u8(0..4) > 0 {
            calls.extend(self.introduce(sight, news, random));
        }
        let hires = !sight.said("spawn_agent_with_task") && random.u8(0..8) > 0;
        // The model first says that it has received the task, then it works.
        if sight.answers == 0 && random.u8(0..4) == 0 {
            calls.push(self.acknowledge(sight, random));
        }
        if hires {
            for child in &self.children[sight.agent] {
                calls.extend(self.hire(sight, *child, random));
            }
        }
        if calls.is_empty() && random.u8(0..3) == 0 {
            calls.extend(self.something_else(sight, random));
        }
        calls
    }

    fn acknowledge(&self, sight: &Sight<'_>, random: &mut fastrand::Rng) -> ToolCall {
        let to = if sight.agent == 0 { "user" } else { &sight.parent };
        if random.bool() {
            self.count("received");
            return send(to, json!({"text": format!("received {}", sight.agent)}));
        }
        self.count("report");
        send(to, json!({"message_type": "status_report", "text": Self::words(sight, random)}))
    }

    fn hire(&self, sight: &Sight<'_>, child: usize, random: &mut fastrand::Rng) -> Vec<ToolCall> {
        self.count("hired");
        let role = format!("R{child}");
        let brief = json!({"objective": "work", "constraints": [], "inputs": "none", "outputs": "text", "completion_criteria": "done"});
        let work = Self::words(sight, random);
        let mut calls = vec![
            tool_call("create_role", json!({"name": role, "rolePrompt": "work"})),
            tool_call(
                "spawn_agent_with_task",
                json!({"roleId": role, "taskBrief": brief, "initialMessage": {"text": work}}),
            ),
        ];
        if random.u8(0..4) == 0 {
            self.count("follow-up");
            calls.push(send(&role, json!({"text": format!("and one thing more, {child}")})));
        }
        calls
    }

    fn introduce(&self, sight: &Sight<'_>, news: &str, random: &mut fastrand::Rng) -> Option<ToolCall> {
        let id = Sight::request_ids(news).pop()?;
        let asker = sight.contacts.iter().find(|(contact, _)| news.contains(&format!("（{contact}）")))?;
        let known: Vec<_> = sight.contacts.iter().filter(|(id, _)| *id != asker.0 && id != "user").collect();
        if sight.agent != 0 && random.bool() {
            self.count("passed on");
            let ask = json!({"message_type": "introduction_request", "reason": "asked", "required_capability": "vision", "request_id": id});
            return Some(send(&sight.parent, ask));
        }
        self.count("introduced");
        let target = random.choice(known).map(|(id, _)| json!({"id": id}));
        let mut answer = json!({"message_type": "introduction_response", "target_agent": target, "usage_hint": "ask", "reason": "none"});
        if random.bool() {
            answer["request_id"] = json!(id);
        }
        Some(send(&asker.0, answer))
    }

    fn something_else(&self, sight: &Sight<'_>, random: &mut fastrand::Rng) -> Option<ToolCall> {
        let others: Vec<&String> =
            sight.contacts.iter().map(|(id, _)| id).filter(|id| *id != "user").collect();
        let other = random.choice(others);
        let words = Self::words(sight, random);
        let told = |deed, payload: Value| {
            let other = other?;
            self.count(deed);
            Some(send(other, payload))
        };
        match random.u8(0..10) {
            0..3 => {
                self.count("artifact");
                Some(tool_call(
                    "put_artifact",
                    json!({"type": "result", "content": format!("file of {}", sight.agent)}),
                ))
            }
            3 => told("question", json!({"message_type": "collaboration_request", "text": words})),
            4 => told("follow-up", json!({"text": words})),
            5 => told("result by message", json!({"message_type": "collaboration_response", "text": words})),
            6 => told("report", json!({"message_type": "status_report", "text": words})),
            7 => told(
                "asked for an introduction",
                json!({"message_type": "introduction_request", "reason": "need", "required_capability": "vision"}),
            ),
            8 => {
                self.count("note to oneself");
                let own = if sight.agent == 0 { "root".to_owned() } else { format!("R{}", sight.agent) };
                let me = self.own_id(sight).unwrap_or(own);
                Some(tool_call("send_message", json!({"to": me, "payload": {"text": "later"}, "delayMs": 1})))
            }
            _ => {
                let mut children = sight.contacts.iter().filter(|(_, role)| {
                    self.children[sight.agent].iter().any(|child| *role == format!("R{child}"))
                });
                let child = children.next().filter(|_| random.u8(0..3) == 0)?;
                self.count("ended");
                Some(tool_call("terminate_agent", json!({"agentId": child.0})))
            }
        }
    }

    fn own_id(&self, sight: &Sight<'_>) -> Option<String> {
        let Some(Message::System(system)) = sight.request.messages.first() else { return None };
        system.lines().find_map(|line| line.strip_prefix("agentId=")).map(|id| id.trim().to_owned())
    }
}
