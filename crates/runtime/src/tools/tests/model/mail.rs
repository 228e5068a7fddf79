//! The reference model, part two: messages, requests and their answers, and the beginning of turns.

use super::rows::{Message, NoticeContents, Output, Row, Turn};
use super::society::{Code, DraftPayload, MAX_QUEUE, Society};
use polity_society::contact::Source;
use polity_society::id::{AgentId, ArtifactId, MessageId, TaskId};
use polity_society::message::{Expects, Finality, MessageState, MessageType};
use polity_society::rules::{Answering, LastWord, Subject};
use polity_store::Conversation;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A message that was accepted.
pub(super) struct Sent {
    pub(super) id: MessageId,
    /// The ids in the message's `request_id` that belong to no open request.
    pub(super) ignored: Vec<MessageId>,
}

/// How a message relates to requests.
#[derive(Default)]
struct Relation {
    in_reply_to: Vec<MessageId>,
    about: Option<MessageId>,
    on_behalf_of: Option<MessageId>,
    asks: bool,
    ignored: Vec<MessageId>,
}

impl Society {
    /// Returns the messages that fulfil a condition, oldest first.
    pub(super) fn mail(&self, holds: impl Fn(&Message) -> bool) -> Vec<Message> {
        self.rows.messages.values().filter(|message| holds(message)).cloned().collect()
    }

    pub(super) fn is_waiting_for(message: &Message, reader: &Conversation) -> bool {
        message.receiver == reader.agent
            && message.task == reader.task
            && message.state == MessageState::Queued
    }

    /// Returns the requests that a party has read and not answered, oldest first.
    pub(super) fn open_requests(&self, to: &Conversation) -> Vec<&Message> {
        let is_open =
            |message: &&Message| message.receiver == to.agent && message.task == to.task && message.is_open();
        self.rows.messages.values().filter(is_open).collect()
    }

    /// Returns the requests on whose behalf an agent waits. An agent waits for the answers of other agents, and for
    /// delayed notes that it sent to itself. The result contains `None` if the agent waits for something that belongs
    /// to no request.
    pub(super) fn waits(&self, by: &Conversation) -> BTreeSet<Option<MessageId>> {
        let own = |message: &&Message| message.sender == by.agent && message.task == by.task;
        let mut waits = BTreeSet::new();
        for message in self.rows.messages.values().filter(own) {
            if message.receiver == by.agent {
                // The message is a delayed note from the agent to itself, and its time has not come yet.
                if message.state == MessageState::Delayed {
                    waits.insert(message.about.clone());
                }
            } else if message.is_awaited() || message.answered_in.is_some() {
                waits.insert(message.on_behalf_of.clone());
            }
        }
        waits
    }

    /// Reads the answers, reports and notices in the mailbox of an agent. Such a message can be about a request A that
    /// the agent made on behalf of a request B. Returns all requests B. If there is no request A or no request B for a
    /// message, the result contains `None`.
    pub(super) fn unheard(&self, by: &Conversation) -> BTreeSet<Option<MessageId>> {
        let is_news = |message: &&Message| {
            let tells = !message.in_reply_to.is_empty() || message.about.is_some() || message.is_of_system();
            Self::is_waiting_for(message, by) && tells
        };
        let on_behalf_of = |news: &Message| {
            let subject = news.in_reply_to.first().or(news.about.as_ref())?;
            let request = &self.rows.messages[subject];
            if request.sender == by.agent { request.on_behalf_of.clone() } else { None }
        };
        self.rows.messages.values().filter(is_news).map(on_behalf_of).collect()
    }

    /// Returns the request in `among` that an id means: the request with this id, or else the oldest request that was
    /// made on behalf of the request with this id.
    fn meant<'m>(&self, among: &[&'m Message], id: &MessageId) -> Option<&'m Message> {
        let itself = among.iter().find(|request| request.id == *id);
        itself.or_else(|| among.iter().find(|request| self.is_on_behalf_of(request, id))).copied()
    }

    fn is_on_behalf_of(&self, request: &Message, id: &MessageId) -> bool {
        let mut at = request.on_behalf_of.as_ref();
        while let Some(above) = at {
            if above == id {
                return true;
            }
            at = self.rows.messages[above].on_behalf_of.as_ref();
        }
        false
    }

    /// Returns the request that an agent works on in its open turn: the request that began the turn, or else the oldest
    /// open request.
    pub(super) fn worked_on(&self, by: &Conversation) -> Option<Message> {
        let turn = self.open_turn(by)?;
        let began_with = turn.works_on.as_ref().map(|id| &self.rows.messages[id]);
        began_with.or_else(|| self.open_requests(by).into_iter().next()).cloned()
    }

    fn accept(&mut self, message: Message) -> MessageId {
        self.accepted += 1;
        let id = MessageId::from_sequence(self.accepted);
        self.put(Message { id: id.clone(), ..message });
        id
    }

    fn draft(&self, task: &TaskId, from: &AgentId, to: &AgentId) -> Message {
        let sender = Conversation { agent: from.clone(), task: task.clone() };
        Message {
            id: MessageId::new(""),
            task: task.clone(),
            sender: from.clone(),
            receiver: to.clone(),
            kind: None,
            notice: None,
            attachments: Vec::new(),
            words: None,
            told: NoticeContents::default(),
            in_reply_to: Vec::new(),
            about: None,
            on_behalf_of: None,
            expects: Expects::Nothing,
            finality: Finality::Final,
            met: None,
            met_through: None,
            introduced: None,
            due_at: None,
            state: MessageState::Queued,
            answered_by: None,
            answered_in: None,
            reminded: 0,
            sent_in: self.open_turn(&sender).map(|turn| turn.id),
            turn: None,
        }
    }

    /// Sends a notice of the system to a party, unless the party has ended.
    pub(super) fn tell(
        &mut self,
        task: &TaskId,
        to: &AgentId,
        notice: &str,
        about: Option<MessageId>,
        told: NoticeContents,
    ) {
        if self.is_live(to) {
            let draft = self.draft(task, &AgentId::new(Message::SYSTEM), to);
            self.accept(Message { notice: Some(notice.to_owned()), about, told, ..draft });
        }
    }

    pub(super) fn send(
        &mut self,
        by: &Conversation,
        to: &str,
        letter: &DraftPayload,
        answering: &Answering,
        due_at: Option<i64>,
        last_word: LastWord,
    ) -> Result<Sent, Code> {
        let receiver = self.contact_or_self(by, to)?;
        if !self.is_live(&receiver) {
            return Err("agent_terminated");
        }
        if letter.is_long {
            return Err("limit_reached");
        }
        if !letter.attachments.iter().all(|artifact| self.may_open(&by.agent, artifact)) {
            return Err("artifact_not_found");
        }
        let mailbox = Conversation { agent: receiver.clone(), task: by.task.clone() };
        if self.mail(|message| Self::is_waiting_for(message, &mailbox)).len() >= MAX_QUEUE {
            return Err("mailbox_full");
        }
        let target = match (&letter.target, letter.kind) {
            (Some(target), MessageType::IntroductionResponse) => Some(self.contact_or_self(by, target)?),
            _ => None,
        };
        match &target {
            Some(target) if *target == receiver => return Err("invalid_message"),
            Some(target) if !self.is_live(target) => return Err("agent_terminated"),
            _ => {}
        }

        let mut draft = self.draft(&by.task, &by.agent, &receiver);
        let works_on = self.open_turn(by).and_then(|turn| turn.works_on.clone());
        let Relation { in_reply_to, about, on_behalf_of, asks, ignored } = match answering {
            Answering::AsWritten if receiver == by.agent => {
                Relation { about: works_on.clone(), ..Relation::default() }
            }
            Answering::AsWritten => self.as_written(by, &receiver, letter),
            Answering::Closing(Subject::Open(requests)) => {
                Relation { in_reply_to: requests.clone(), ..Relation::default() }
            }
            Answering::Closing(Subject::Settled(request)) => Relation {
                in_reply_to: vec![request.clone()],
                about: Some(request.clone()),
                ..Relation::default()
            },
            Answering::Closing(Subject::Nothing) => Relation::default(),
        };
        let mut waits = self.waits(by);
        if matches!(answering, Answering::Closing(_)) {
            waits.extend(self.unheard(by));
        }
        let concerns =
            |request: &MessageId| in_reply_to.contains(request) || works_on.as_ref() == Some(request);
        let more_comes = waits.iter().flatten().any(concerns) || letter.kind == MessageType::StatusReport;
        if asks {
            draft.expects = Expects::Answer;
        } else if receiver.is_user() && more_comes && last_word == LastWord::UnlessWaiting {
            draft.finality = Finality::Interim;
        }
        (draft.in_reply_to, draft.about, draft.on_behalf_of) = (in_reply_to, about, on_behalf_of);
        draft.words = Some(letter.words.clone());
        let key = |owner: &AgentId, agent: &AgentId| (owner.clone(), agent.clone());
        let is_new = receiver != by.agent && !self.rows.contacts.contains_key(&key(&receiver, &by.agent));
        if is_new {
            let entry = &self.rows.contacts[&key(&by.agent, &receiver)];
            (draft.met, draft.met_through) = (Some(entry.source), entry.introduced_by.clone());
        }
        draft.kind = Some(letter.kind);
        draft.attachments.clone_from(&letter.attachments);
        draft.introduced.clone_from(&target);
        draft.due_at = due_at.filter(|due_at| *due_at > self.now);
        if draft.due_at.is_some() {
            draft.state = MessageState::Delayed;
        }

        if let Some(target) = target.filter(|target| *target != by.agent) {
            self.introduce(&receiver, &target, Source::Introduction, Some(&by.agent));
        }
        if is_new {
            self.introduce(&receiver, &by.agent, Source::FirstMessage, None);
        }
        self.pass_on(by, &letter.named, &receiver);
        self.note_as_named(by, &letter.named, &receiver);
        let answers = draft.finality == Finality::Final && !draft.is_supplement();
        let requests = draft.in_reply_to.clone();
        let id = self.accept(draft);
        if answers {
            self.answer(&requests, &id);
            if requests.len() > 1 {
                self.happened.push("several answered at once");
            }
            if !letter.requests.iter().all(|named| requests.contains(named) || ignored.contains(named)) {
                self.happened.push("answer found along the chain");
            }
        }
        Ok(Sent { id, ignored })
    }

    /// Determines how a message relates to the requests that its sender has read.
    fn as_written(&self, by: &Conversation, receiver: &AgentId, letter: &DraftPayload) -> Relation {
        let open = self.open_requests(by);
        let of_receiver: Vec<&Message> =
            open.iter().filter(|request| request.sender == *receiver).copied().collect();
        let asks = match letter.kind {
            MessageType::TaskAssignment
            | MessageType::IntroductionRequest
            | MessageType::CollaborationRequest => true,
            MessageType::General => of_receiver.is_empty(),
            _ => false,
        };
        let among = if asks { &open } else { &of_receiver };
        let (mut named, mut ignored) = (Vec::new(), Vec::new());
        for id in &letter.requests {
            match self.meant(among, id) {
                Some(request) => named.push(request.id.clone()),
                None => ignored.push(id.clone()),
            }
        }
        if asks {
            let works_on = self.open_turn(by).and_then(|turn| turn.works_on.clone());
            let on_behalf_of = named.into_iter().next().or(works_on);
            return Relation { on_behalf_of, asks, ignored, ..Relation::default() };
        }
        if named.is_empty() {
            named.extend(of_receiver.first().map(|oldest| oldest.id.clone()));
        }
        named.sort();
        named.dedup();
        if letter.kind == MessageType::StatusReport {
            return Relation { about: named.into_iter().next(), ignored, ..Relation::default() };
        }
        Relation { in_reply_to: named, ignored, ..Relation::default() }
    }

    /// Records the answer to these requests. A request keeps its first answer. The asker waits until the turn that
    /// gave this answer has ended.
    pub(super) fn answer(&mut self, requests: &[MessageId], answer: &MessageId) {
        for id in requests {
            let request = &self.rows.messages[id];
            let by = Conversation { agent: request.receiver.clone(), task: request.task.clone() };
            let turn = self.open_turn(&by).map(|turn| turn.id);
            if request.answered_by.is_none() {
                self.change(id, |request| {
                    (request.answered_by, request.answered_in) = (Some(answer.clone()), turn);
                });
            }
        }
    }

    /// Records artifacts as delivered. An artifact for an asker is delivered when the agent has named the artifact to
    /// this asker.
    fn note_as_named(&mut self, by: &Conversation, named: &BTreeSet<ArtifactId>, to: &AgentId) {
        let openable = |artifact: &&ArtifactId| self.may_open(&by.agent, artifact);
        let named: BTreeSet<&ArtifactId> = named.iter().filter(openable).collect();
        let outputs = self.outputs(by).into_iter();
        let delivered: Vec<Output> =
            outputs.filter(|output| output.asker == *to && named.contains(&output.artifact)).collect();
        for output in delivered {
            self.remove(Row::from(output).key());
        }
    }

    /// Returns the artifacts that an agent stored for askers, but has not yet named to these askers.
    pub(super) fn outputs(&self, of: &Conversation) -> Vec<Output> {
        let is_its = |output: &&Output| output.agent == of.agent && output.task == of.task;
        self.rows.outputs.values().filter(is_its).cloned().collect()
    }

    /// Sends a message to several receivers. Each receiver has its own result, and no receiver gets the message
    /// twice.
    pub(super) fn send_to_each(
        &mut self,
        by: &Conversation,
        to: &[String],
        letter: Result<&DraftPayload, Code>,
        due_at: Option<i64>,
        last_word: LastWord,
    ) -> Result<Value, Code> {
        let letter = letter?;
        if to.is_empty() {
            return Err("invalid_arguments");
        }
        let mut receivers = BTreeSet::new();
        let (mut sent, mut refused, mut ignored) = (Vec::new(), Vec::new(), Vec::new());
        // Sending a message does not change the contacts of the sender. So a name means the same party during the
        // whole loop.
        for meant in to {
            let known = self.contact(by, meant).ok().flatten();
            let receiver = known.map_or_else(|| meant.clone(), |id| id.to_string());
            let known_is_person = receiver == AgentId::user().as_str();
            if !receivers.insert(receiver) {
                continue;
            }
            let to_person = known_is_person.then(|| self.open_turn(by).map(|turn| turn.id)).flatten();
            let told = |(turn, said, _): &&(i64, DraftPayload, MessageId)| {
                Some(*turn) == to_person && said == letter
            };
            if let Some((_, _, earlier)) = self.told_person.iter().find(told) {
                sent.push(json!({"to": meant, "id": earlier, "alreadySent": true}));
                self.happened.push("the person told the same again");
                continue;
            }
            match self.send(by, meant, letter, &Answering::AsWritten, due_at, last_word) {
                Ok(message) => {
                    if let Some(turn) = to_person {
                        self.told_person.push((turn, letter.clone(), message.id.clone()));
                    }
                    sent.push(json!({"to": meant, "id": message.id}));
                    ignored.extend(message.ignored);
                }
                Err(code) => refused.push((meant, code)),
            }
        }
        if let (Some((_, code)), true) = (refused.first(), sent.is_empty()) {
            return Err(code);
        }
        let mut said = json!({"messageIds": sent});
        if !refused.is_empty() {
            let refused = refused.into_iter().map(|(to, code)| json!({"to": to, "error": code}));
            said["refused"] = refused.collect();
        }
        if !ignored.is_empty() {
            self.happened.push("request_id ignored");
            said["ignored"] = ignored.iter().map(|id| json!(format!("payload.request_id: {id}"))).collect();
        }
        Ok(said)
    }

    /// Moves delayed messages into the mailboxes if their time has come.
    pub(super) fn deliver_due(&mut self) {
        let now = self.now;
        for message in self.mail(|message| message.state == MessageState::Delayed) {
            if message.due_at.is_some_and(|due_at| due_at <= now) {
                self.change(&message.id, |message| message.state = MessageState::Queued);
            }
        }
    }

    /// Marks a message to the person as shown.
    pub(super) fn show(&mut self, id: &MessageId) {
        self.change(id, |message| message.state = MessageState::Done);
    }

    pub(super) fn open_turn(&self, of: &Conversation) -> Option<&Turn> {
        let is_its = |turn: &&Turn| turn.agent == of.agent && turn.task == of.task && turn.state == "open";
        self.rows.turns.values().find(is_its)
    }

    pub(super) fn open_turns(&self) -> Vec<&Turn> {
        self.rows.turns.values().filter(|turn| turn.state == "open").collect()
    }

    pub(super) fn begin_turn(&mut self, of: &Conversation, by: &MessageId) {
        self.turns += 1;
        let (agent, task) = (of.agent.clone(), of.task.clone());
        let works_on = self.subject(&self.rows.messages[by]);
        let turn =
            Turn { id: self.turns, agent, task, began_by: by.clone(), works_on, state: "open".to_owned() };
        self.put(turn);
        self.take(by, self.turns);
    }

    /// Returns the request that a turn works on if this message begins the turn. There are three cases. The message is
    /// a request: the turn works on the message itself. The message reminds its receiver of a request that the receiver
    /// has not answered: the turn works on that request. The message is news about a request A that its receiver made
    /// on behalf of a request B: the turn works on B.
    fn subject(&self, message: &Message) -> Option<MessageId> {
        if message.expects == Expects::Answer {
            return Some(message.id.clone());
        }
        let subjects: BTreeSet<&MessageId> = message.in_reply_to.iter().chain(&message.about).collect();
        subjects.into_iter().find_map(|id| {
            let request = &self.rows.messages[id];
            if request.receiver == message.receiver { Some(id.clone()) } else { request.on_behalf_of.clone() }
        })
    }

    pub(super) fn take(&mut self, id: &MessageId, turn: i64) {
        self.change(id, |message| (message.state, message.turn) = (MessageState::InTurn, Some(turn)));
    }

    /// Returns whether the texts that a turn sends to the person are final even if the agent still waits for other
    /// agents. The result is yes if the turn began with a nudge: a notice to root that the person has heard nothing
    /// final.
    pub(super) fn last_word(&self, turn: &Turn) -> LastWord {
        let nudged = self.rows.messages[&turn.began_by].notice.as_deref() == Some("nudge");
        if nudged { LastWord::Yes } else { LastWord::UnlessWaiting }
    }

    pub(super) fn return_mail(&mut self, of: &AgentId) {
        for message in self.mail(|message| {
            let is_unread =
                matches!(message.state, MessageState::Delayed | MessageState::Queued | MessageState::InTurn);
            message.receiver == *of && is_unread
        }) {
            self.change(&message.id, |message| message.state = MessageState::Bounced);
            let about = (message.expects == Expects::Answer).then_some(message.id);
            self.tell(&message.task, &message.sender, "bounced", about, NoticeContents::default());
        }
    }

    /// Drops the questions of an ended agent to the person.
    pub(super) fn drop_questions(&mut self, of: &AgentId) {
        let questions =
            self.mail(|message| message.sender == *of && message.receiver.is_user() && message.is_awaited());
        for question in questions {
            self.change(&question.id, |question| question.state = MessageState::Failed);
        }
    }

    pub(super) fn close_requests(&mut self, of: &AgentId, by: &AgentId) {
        for message in self.mail(|message| {
            message.receiver == *of && message.is_awaited() && message.state == MessageState::Done
        }) {
            self.change(&message.id, |message| message.state = MessageState::Failed);
            if message.sender != *by {
                self.tell(
                    &message.task,
                    &message.sender,
                    "terminated",
                    Some(message.id),
                    NoticeContents::default(),
                );
            }
        }
    }
}
