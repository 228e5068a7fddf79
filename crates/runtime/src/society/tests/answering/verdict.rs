//! Checks the rows of a society at the end of a play. To find the request that a turn works on, the check uses only the
//! messages. It does not use the request that the rules have stored for the turn, because the rules could be wrong.

use super::script::tokens;
use polity_sql::Connection;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

struct Message {
    id: String,
    sender: String,
    receiver: String,
    body: String,
    /// The requests that the message answers or supplements.
    replies_to: Vec<String>,
    /// The request that the message is about. An answer that has such a request is an addition to an earlier answer.
    about: Option<String>,
    expects_answer: bool,
    is_final: bool,
    is_report: bool,
    /// The type of the message is `general`, as it is for closing texts.
    is_general: bool,
    state: String,
    answered_by: Option<String>,
    sent_in: Option<i64>,
    /// The turn in which the receiver read the message.
    read_in: Option<i64>,
    /// The requests that the message names in `request_id`.
    named: Vec<String>,
    /// Whether the message only reminds its receiver of an answer that the receiver owes.
    is_reminder: bool,
    /// Whether the message tells its receiver that requests which the receiver made stay without an answer.
    is_unanswered: bool,
    /// If the message tells its receiver that a request which the receiver made has failed, the id of that request.
    failed: Option<String>,
    /// If the message is a notice to a parent that its child has failed, the id of the child.
    failed_child: Option<String>,
    words: Option<String>,
}

impl Message {
    /// Returns the request that the message answers, or else the request that it is about.
    fn subject(&self) -> Option<&String> {
        self.replies_to.first().or(self.about.as_ref())
    }
}

struct Turn {
    agent: String,
    began_by: String,
    state: String,
    text: Option<String>,
    /// The tool calls of the turn, as JSON.
    calls: String,
    stored: Vec<String>,
}

struct Society {
    /// The messages by id. The order of ids is the order of acceptance.
    messages: BTreeMap<String, Message>,
    turns: BTreeMap<i64, Turn>,
    ended: BTreeSet<String>,
}

async fn rows(connection: &mut Connection, sql: &'static str) -> Vec<polity_sql::Row> {
    polity_sql::query(sql).fetch_all(connection).await.unwrap()
}

async fn read(connection: &mut Connection) -> Society {
    let mut messages = BTreeMap::new();
    for row in rows(connection, "SELECT * FROM messages").await {
        let text = |column: &str| row.get::<String, _>(column);
        let optional = |column: &str| row.get::<Option<String>, _>(column);
        let body: Value = serde_json::from_str(&text("body")).unwrap();
        let answered: Vec<String> =
            optional("in_reply_to").map_or_else(Vec::new, |ids| serde_json::from_str(&ids).unwrap());
        let named = match &body["request_id"] {
            Value::Array(ids) => ids.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Value::String(id) => vec![id.clone()],
            _ => Vec::new(),
        };
        let message = Message {
            id: text("id"),
            sender: text("sender"),
            receiver: text("receiver"),
            replies_to: answered,
            about: optional("about"),
            expects_answer: text("expects") == "answer",
            is_final: text("finality") == "final",
            is_report: text("type") == "status_report",
            is_general: text("type") == "general",
            state: text("state"),
            answered_by: optional("answered_by"),
            sent_in: row.get("sent_in"),
            read_in: row.get("turn"),
            named,
            is_unanswered: body["notice"] == "unanswered",
            is_reminder: body["notice"] == "nudge" || body["notice"] == "reminder",
            failed: (body["notice"] == "receiver_failed")
                .then(|| body["message"].as_str().unwrap().to_owned()),
            failed_child: (body["notice"] == "agent_failed")
                .then(|| body["agent"].as_str().unwrap().to_owned()),
            words: body["text"].as_str().map(str::to_owned),
            body: format!("{body} {}", text("attachments")),
        };
        messages.insert(text("id"), message);
    }
    let mut turns = BTreeMap::new();
    for row in rows(connection, "SELECT * FROM turns").await {
        let turn = Turn {
            agent: row.get("agent"),
            began_by: row.get("began_by"),
            state: row.get("state"),
            text: None,
            calls: String::new(),
            stored: Vec::new(),
        };
        turns.insert(row.get::<i64, _>("id"), turn);
    }
    for row in rows(connection, "SELECT turn, body FROM records ORDER BY seq").await {
        let record: Value = serde_json::from_str(row.get("body")).unwrap();
        let turn = turns.get_mut(&row.get("turn")).unwrap();
        if record["record"] == "replied" && record["calls"].as_array().is_none_or(Vec::is_empty) {
            turn.text = record["text"].as_str().map(str::to_owned).or(turn.text.take());
        } else {
            turn.calls.push_str(&record["calls"].to_string());
        }
        if let Some(reference) = record["result"]["json"]["ref"].as_str() {
            turn.stored.push(reference.strip_prefix("artifact:").unwrap().to_owned());
        }
    }
    let ended = rows(connection, "SELECT id FROM agents WHERE ended_at IS NOT NULL").await;
    Society { messages, turns, ended: ended.iter().map(|row| row.get("id")).collect() }
}

impl Society {
    /// Returns the request that a turn works on.
    fn works_on(&self, turn: &Turn) -> Option<&String> {
        self.leads_to(self.messages.get(&turn.began_by)?)
    }

    /// Returns the request that a turn works on if this message begins the turn.
    fn leads_to(&self, message: &Message) -> Option<&String> {
        if message.expects_answer {
            return self.messages.get_key_value(&message.id).map(|(id, _)| id);
        }
        let (id, subject) = self.messages.get_key_value(message.subject()?)?;
        if subject.receiver == message.receiver { Some(id) } else { self.asked_for(subject) }
    }

    /// Returns whether a request was already over when a message was accepted, because it was answered or had failed.
    fn was_over(&self, request: &str, message: &str) -> bool {
        let asked = &self.messages[request];
        let answered = asked.answered_by.as_deref().is_some_and(|answer| answer < message);
        let mut earlier = self.messages.values().take_while(|earlier| earlier.id.as_str() < message);
        // If a child fails, its parent gets one notice for all requests from the parent that have failed with the
        // child.
        let of_child = |notice: &Message| {
            notice.failed_child.as_ref() == Some(&asked.receiver) && notice.receiver == asked.sender
        };
        let has_failed = |notice: &Message| {
            notice.failed.as_deref() == Some(request) || asked.state == "failed" && of_child(notice)
        };
        // If several requests fail, the asker may get one notice for all of them. So a request is also over if two
        // things are true: the turn that read it has failed, and its receiver sends the message in a later turn. By
        // then, the receiver cannot pass the request on.
        let receiver_knows = |turn: i64| {
            let later = &self.messages[message];
            self.turns[&turn].state == "failed"
                && later.sender == asked.receiver
                && later.sent_in > Some(turn)
        };
        answered || earlier.any(has_failed) || asked.read_in.is_some_and(receiver_knows)
    }

    /// Returns whether the answer to a request could still get an addition when a later message was accepted. This is
    /// possible until the turn that sent the answer ends. The rows do not tell when a turn ended. But two kinds of
    /// messages show that it has ended: the closing text of the turn, and any message from a later turn of the same
    /// agent.
    fn may_be_supplemented(&self, request: &Message, later: &str) -> bool {
        let answer = request.answered_by.as_ref().and_then(|answer| self.messages.get(answer));
        let Some((answer, sent_in)) = answer.and_then(|answer| Some((answer, answer.sent_in?))) else {
            return false;
        };
        let is_last = |message: &Message| {
            self.messages.values().all(|other| other.sent_in != Some(sent_in) || other.id <= message.id)
        };
        let ended_it = |message: &Message| {
            // A model can also send the words of its closing text with a tool, before the turn ends.
            let is_closing = message.sent_in == Some(sent_in)
                && message.is_general
                && self.turns[&sent_in].text == message.words
                && is_last(message);
            message.sender == answer.sender && (is_closing || message.sent_in > Some(sent_in))
        };
        let mut earlier = self.messages.values().take_while(|message| message.id.as_str() < later);
        !earlier.any(ended_it)
    }

    /// Returns the request on whose behalf `request` was made.
    fn asked_for(&self, request: &Message) -> Option<&String> {
        let mut named = request.named.iter().filter_map(|id| self.messages.get_key_value(id));
        // An agent cannot pass on a request that is over. If the agent names such a request, the new request counts as
        // made on behalf of the request that the agent's turn works on.
        let passed_on = named.find(|(id, _)| !self.was_over(id, &request.id));
        match passed_on {
            Some((id, message)) if message.receiver == request.sender => Some(id),
            // The named request went to another agent, and was passed on until it reached the sender of `request`. So
            // find the request with which it reached this sender: that one names the same request.
            Some((id, _)) => {
                let mut of_sender =
                    self.messages.iter().filter(|(_, message)| message.receiver == request.sender);
                of_sender.find(|(_, message)| message.named.contains(id)).map(|(id, _)| id)
            }
            None => self.works_on(self.turns.get(&request.sent_in?)?),
        }
    }

    /// Returns the texts of all messages to a party.
    fn heard_by(&self, party: &str) -> String {
        let heard = self.messages.values().filter(|message| message.receiver == party);
        heard.map(|message| message.body.as_str()).collect::<Vec<_>>().join("\n")
    }

    fn is_there(&self, party: &str) -> bool {
        !self.ended.contains(party)
    }
}

/// Checks a society at the end of its play, and returns all violations.
pub(super) async fn violations(connection: &mut Connection) -> Vec<String> {
    let society = read(connection).await;
    let mut violations = Vec::new();
    for (id, turn) in &society.turns {
        if turn.state == "open" {
            violations.push(format!("turn {id} of {} is open", turn.agent));
        }
        let Some(request) = society.works_on(turn).and_then(|id| society.messages.get(id)) else { continue };
        let asker = &request.sender;
        if turn.state != "done" || !society.is_there(&turn.agent) || !society.is_there(asker) {
            continue;
        }
        let heard = society.heard_by(asker);
        let known = tokens(&heard);
        let lost: Vec<String> =
            turn.text.iter().flat_map(|text| tokens(text)).filter(|token| !known.contains(token)).collect();
        if !lost.is_empty() {
            violations.push(format!("turn {id}: {asker} never got {lost:?} of {}", turn.agent));
        }
        // If the person has an answer, nobody tells the person about other artifacts. `polity artifacts` lists them.
        if asker == "user" {
            continue;
        }
        for artifact in turn.stored.iter().filter(|artifact| !heard.contains(artifact.as_str())) {
            violations.push(format!("turn {id}: {asker} never heard of {artifact} of {}", turn.agent));
        }
    }
    violations.extend(of_waits(&society));
    violations.extend(of_closing_texts(&society));
    violations.extend(of_interim_texts(&society));
    violations.extend(of_the_person(&society));
    let left = "SELECT agent || ' still holds a text for ' || request AS what FROM notes
        UNION ALL SELECT agent || ' never named ' || artifact || ' to ' || asker FROM outputs
        UNION ALL SELECT 'an ended turn holds ' || id FROM messages WHERE answered_in IS NOT NULL";
    for row in rows(connection, left).await {
        let what: String = row.get("what");
        if what.split(' ').all(|word| society.is_there(word)) {
            violations.push(what);
        }
    }
    if !violations.is_empty() {
        violations.push(story(connection).await);
    }
    violations
}

/// Returns all messages and turns, one per line, to find the cause of a violation.
async fn story(connection: &mut Connection) -> String {
    let messages = "SELECT format('%s %s → %s %s %s reply %s about %s for %s in %s turn %s %s by %s: %.90s', id, sender, receiver,
            type, iif(expects = 'answer', '?', finality), in_reply_to, about, on_behalf_of, sent_in, turn, state, answered_by,
            coalesce(body ->> 'text', body)) AS line FROM messages ORDER BY seq";
    let turns = "SELECT format('turn %s of %s began with %s works on %s: %s', id, agent, began_by, works_on, state) AS line
        FROM turns ORDER BY id";
    let mut lines = Vec::new();
    for sql in [messages, turns] {
        lines.extend(rows(connection, sql).await.iter().map(|row| row.get::<String, _>("line")));
    }
    lines.join("\n")
}

/// Checks that at the end no agent waits for an answer of another agent.
fn of_waits(society: &Society) -> Vec<String> {
    let waits = society.messages.iter().filter(|(_, message)| {
        let is_open = matches!(message.state.as_str(), "delayed" | "queued" | "in_turn" | "done");
        let among_agents = message.sender != "user" && message.receiver != "user";
        message.expects_answer
            && message.answered_by.is_none()
            && is_open
            && among_agents
            && society.is_there(&message.receiver)
    });
    let waits = waits.map(|(id, message)| {
        format!("{} waits for {}: {id} is {}", message.sender, message.receiver, message.state)
    });
    waits.collect()
}

/// Checks that a closing text leaves no request open. It must answer each request that its receiver sent to its writer
/// and that the writer has read, unless an earlier message has answered the request.
fn of_closing_texts(society: &Society) -> Vec<String> {
    let mut violations = Vec::new();
    for (id, text) in &society.messages {
        let Some(turn) = text.sent_in.and_then(|turn| society.turns.get(&turn)) else { continue };
        // If a tool call of the turn has already sent the text, the text does not count as a closing text.
        let said = turn.text.as_ref().filter(|said| !turn.calls.contains(said.as_str()));
        let ends_turn = said.is_some() && said == text.words.as_ref() && turn.state == "done";
        if !ends_turn || text.replies_to.is_empty() || text.about.is_some() {
            continue;
        }
        let left_open = society.messages.iter().filter(|(request, asked)| {
            let between = asked.sender == text.receiver && asked.receiver == text.sender;
            let was_read = asked.read_in <= text.sent_in && asked.read_in.is_some() && asked.state == "done";
            let earlier = asked.answered_by.as_ref().is_some_and(|answer| answer < id);
            let answered = text.replies_to.contains(request) || earlier;
            asked.expects_answer && between && was_read && !answered
        });
        let left_open: Vec<&String> = left_open.map(|(request, _)| request).collect();
        if !left_open.is_empty() {
            violations.push(format!("{id} of {} leaves {left_open:?} open", text.sender));
        }
    }
    violations
}

/// Checks the closing texts of root to the person that count as interim. Root must have a reason for such a text: it
/// waits for something that it needs for the answer, or it has not yet read a message that belongs to the same request.
fn of_interim_texts(society: &Society) -> Vec<String> {
    let mut violations = Vec::new();
    for (id, text) in &society.messages {
        let Some(turn) = text.sent_in.and_then(|turn| society.turns.get(&turn)) else { continue };
        let is_closing = turn.text.is_some() && turn.text == text.words && turn.state == "done";
        let to_person = text.sender == "root" && text.receiver == "user";
        if !to_person || !is_closing || text.is_final || text.is_report {
            continue;
        }
        let mut prompts: BTreeSet<&String> = text.replies_to.iter().chain(&text.about).collect();
        prompts.extend(society.works_on(turn));
        let waits = society.messages.values().any(|message| {
            let is_unread = message.read_in.is_none_or(|turn| Some(turn) > text.sent_in);
            let of = if message.receiver == "root" && is_unread && !message.is_reminder {
                // When root sent its text, the message was in the mailbox, or had not arrived yet. For example, its
                // writer held it back.
                society.leads_to(message)
            } else if message.sender == "root"
                && message.id < *id
                && message.expects_answer
                && message.receiver != "root"
                && (!society.was_over(&message.id, id) || society.may_be_supplemented(message, id))
            {
                society.asked_for(message)
            } else {
                None
            };
            of.is_some_and(|of| prompts.contains(of))
        });
        if !waits {
            violations.push(format!("{id} of root is interim, but root waits for nothing: {prompts:?}"));
        }
    }
    violations
}

/// Checks that the person sees no text of root twice, and that root's last final text to the person contains
/// everything that root's last closing text contains.
fn of_the_person(society: &Society) -> Vec<String> {
    let mut violations = Vec::new();
    let told =
        society.messages.values().filter(|message| message.sender == "root" && message.receiver == "user");
    let mut seen = BTreeSet::new();
    for words in told.clone().filter_map(|message| message.words.as_deref()) {
        if !seen.insert(words.trim()) {
            violations.push(format!("the person sees twice: {words}"));
        }
    }
    let of_root = society.turns.values().filter(|turn| turn.agent == "root" && turn.state == "done");
    let for_user = of_root.filter(|turn| {
        let request = society.works_on(turn).and_then(|id| society.messages.get(id));
        request.is_some_and(|request| request.sender == "user")
    });
    let Some(last) = for_user.filter_map(|turn| turn.text.as_deref()).next_back() else { return violations };
    let answered = |request: &Message, answer: &Message| request.answered_by.as_ref() == Some(&answer.id);
    // A report of root counts as an answer only if a request names it as its answer. This happens if the closing text
    // of root repeats the text of the report.
    let is_answer = |message: &&Message| {
        let is_report =
            message.is_report && !society.messages.values().any(|request| answered(request, message));
        message.is_final && !is_report && !message.expects_answer
    };
    let mut answers = told.filter(is_answer);
    let answer = answers.next_back().and_then(|message| message.words.as_deref());
    // If root fails before it sends its final text, the person is told that the prompt has no answer. The interim texts
    // that the person has already got remain.
    let is_failure = |message: &Message| message.receiver == "user" && message.is_unanswered;
    if answer.is_none() && society.messages.values().any(is_failure) {
        return violations;
    }
    let answer = answer.unwrap_or_default();
    let missing: Vec<String> = tokens(last).difference(&tokens(answer)).cloned().collect();
    if !missing.is_empty() {
        violations.push(format!("the last final text lacks {missing:?}: {answer}"));
    }
    violations
}
