//! The reference model, second part: messages, requests and their answers, turns.

use super::rows::{Message, Turn};
use super::society::{Code, Letter, MAX_QUEUE, Society};
use crate::store::Conversation;
use polity_society::contact::Source;
use polity_society::id::{AgentId, MessageId, TaskId};
use polity_society::message::{Expects, Finality, MessageState, MessageType};
use polity_society::rules::{Answering, LastWord};
use serde_json::{Value, json};
use std::collections::BTreeSet;

impl Society {
    /// The messages of which something holds, oldest first.
    pub(super) fn mail(&self, holds: impl Fn(&Message) -> bool) -> Vec<Message> {
        self.rows.messages.values().filter(|message| holds(message)).cloned().collect()
    }

    pub(super) fn is_waiting_for(message: &Message, reader: &Conversation) -> bool {
        message.receiver == reader.agent
            && message.task == reader.task
            && message.state == MessageState::Queued
    }

    /// What somebody was asked, has read and not answered, oldest first.
    pub(super) fn open_requests(&self, to: &Conversation) -> Vec<&Message> {
        let is_open =
            |message: &&Message| message.receiver == to.agent && message.task == to.task && message.is_open();
        self.rows.messages.values().filter(is_open).collect()
    }

    /// Whom somebody waits for.
    fn awaited(&self, by: &Conversation) -> BTreeSet<&AgentId> {
        let asked = |message: &&Message| {
            message.sender == by.agent && message.task == by.task && message.is_awaited()
        };
        let awaited = self.rows.messages.values().filter(asked).map(|message| &message.receiver);
        let mut awaited: BTreeSet<&AgentId> = awaited.filter(|id| **id != by.agent).collect();
        // A note to oneself that is not due yet is waited for as well.
        awaited.extend(
            self.rows
                .messages
                .values()
                .filter(|note| {
                    let is_own = note.sender == by.agent && note.receiver == by.agent && note.task == by.task;
                    is_own && note.state == MessageState::Delayed
                })
                .map(|note| &note.receiver),
        );
        awaited
    }

    /// Whose answers, or notices, somebody has not read yet.
    fn unheard(&self, by: &Conversation) -> BTreeSet<&AgentId> {
        let is_news = |message: &&Message| {
            Self::is_waiting_for(message, by) && (message.in_reply_to.is_some() || message.is_of_system())
        };
        self.rows.messages.values().filter(is_news).map(|message| &message.sender).collect()
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
            in_reply_to: None,
            expects: Expects::Nothing,
            finality: Finality::Final,
            met: None,
            met_through: None,
            introduced: None,
            due_at: None,
            state: MessageState::Queued,
            answered_by: None,
            sent_in: self.open_turn(&sender).map(|turn| turn.id),
            turn: None,
        }
    }

    /// The system says something to those who can still hear it.
    pub(super) fn tell(&mut self, task: &TaskId, to: &AgentId, notice: &str) {
        if self.is_live(to) {
            let draft = self.draft(task, &AgentId::new(Message::SYSTEM), to);
            self.accept(Message { notice: Some(notice.to_owned()), ..draft });
        }
    }

    pub(super) fn send(
        &mut self,
        by: &Conversation,
        to: &str,
        letter: &Letter,
        answering: &Answering,
        due_at: Option<i64>,
        last_word: LastWord,
    ) -> Result<MessageId, Code> {
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
        let open = self.open_requests(by);
        let open = open.into_iter().filter(|request| request.sender == receiver).map(|request| &request.id);
        draft.in_reply_to = match (answering, letter.kind) {
            (Answering::This(request), _) => Some(request.clone()),
            (Answering::Nothing, _) => None,
            (
                Answering::Oldest,
                MessageType::TaskAssignment
                | MessageType::IntroductionRequest
                | MessageType::CollaborationRequest,
            ) => None,
            (Answering::Oldest, _) => {
                let open: Vec<&MessageId> = open.collect();
                let itself = open.iter().find(|id| Some(**id) == letter.request.as_ref());
                let passes_on = |id: &&&MessageId| {
                    letter.request.is_some() && self.passed_on.get(**id) == letter.request.as_ref()
                };
                let meant = itself.or_else(|| open.iter().find(passes_on)).or(open.first());
                meant.map(|id| (*id).clone())
            }
        };
        let asks = match letter.kind {
            MessageType::TaskAssignment
            | MessageType::IntroductionRequest
            | MessageType::CollaborationRequest => true,
            MessageType::General => draft.in_reply_to.is_none() && !matches!(answering, Answering::Nothing),
            _ => false,
        };
        let asks = asks && receiver != by.agent;
        let mut awaited = self.awaited(by);
        if matches!(answering, Answering::This(_)) {
            awaited.extend(self.unheard(by));
        }
        let waits = awaited.iter().any(|id| **id != receiver) && last_word == LastWord::UnlessWaiting;
        if asks {
            draft.expects = Expects::Answer;
        } else if receiver.is_user() && waits {
            draft.finality = Finality::Interim;
        }
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
        let (request, finality) = (draft.in_reply_to.clone(), draft.finality);
        let id = self.accept(draft);
        if let Some(passed_on) = &letter.request {
            self.passed_on.insert(id.clone(), passed_on.clone());
        }
        if let Some(request) = request.filter(|_| finality == Finality::Final) {
            self.change(&request, |request| request.answered_by = Some(id.clone()));
        }
        Ok(id)
    }

    /// Sends to several: each has its own answer, and nobody gets it twice.
    pub(super) fn send_to_each(
        &mut self,
        by: &Conversation,
        to: &[String],
        letter: Result<&Letter, Code>,
        due_at: Option<i64>,
        last_word: LastWord,
    ) -> Result<Value, Code> {
        let letter = letter?;
        if to.is_empty() {
            return Err("invalid_arguments");
        }
        let mut receivers = BTreeSet::new();
        let (mut sent, mut refused) = (Vec::new(), Vec::new());
        // An introduction can tell nobody of more contacts of the sender's own, so who is meant does not change.
        for meant in to {
            let receiver = self.contact(by, meant).map_or_else(|| meant.clone(), |id| id.to_string());
            if !receivers.insert(receiver) {
                continue;
            }
            match self.send(by, meant, letter, &Answering::Oldest, due_at, last_word) {
                Ok(id) => sent.push(json!({"to": meant, "id": id})),
                Err(code) => refused.push((meant, code)),
            }
        }
        match refused.first() {
            Some((_, code)) if sent.is_empty() => Err(code),
            None => Ok(json!({"messageIds": sent})),
            Some(_) => {
                let refused = refused.into_iter().map(|(to, code)| json!({"to": to, "error": code}));
                Ok(json!({"messageIds": sent, "refused": refused.collect::<Value>()}))
            }
        }
    }

    /// What is due comes into the mailboxes.
    pub(super) fn deliver_due(&mut self) {
        let now = self.now;
        for message in self.mail(|message| message.state == MessageState::Delayed) {
            if message.due_at.is_some_and(|due_at| due_at <= now) {
                self.change(&message.id, |message| message.state = MessageState::Queued);
            }
        }
    }

    /// The person is shown a message.
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
        self.put(Turn { id: self.turns, agent, task, began_by: by.clone(), state: "open".to_owned() });
        self.take(by, self.turns);
    }

    pub(super) fn take(&mut self, id: &MessageId, turn: i64) {
        self.change(id, |message| (message.state, message.turn) = (MessageState::InTurn, Some(turn)));
    }

    /// Whether what a turn says is the last word: where the system reminded its agent that the person has heard nothing.
    pub(super) fn last_word(&self, turn: &Turn) -> LastWord {
        let nudged = self.rows.messages[&turn.began_by].notice.as_deref() == Some("nudge");
        if nudged { LastWord::Yes } else { LastWord::UnlessWaiting }
    }

    fn settle(&mut self, turn: &Turn, state: MessageState) {
        for message in
            self.mail(|message| message.turn == Some(turn.id) && message.state == MessageState::InTurn)
        {
            self.change(&message.id, |message| message.state = state);
        }
    }

    /// Ends a turn; its text goes to the giver, or stays where it is.
    pub(super) fn end_turn(&mut self, turn: &Turn, text: Option<&Letter>) {
        let of = Conversation { agent: turn.agent.clone(), task: turn.task.clone() };
        let mut undelivered = None;
        if let (Some(letter), Some((giver, request))) = (text, text.and_then(|_| self.giver(turn))) {
            let answering = request.clone().map_or(Answering::Nothing, Answering::This);
            let sent = self.send(&of, giver.as_str(), letter, &answering, None, self.last_word(turn));
            undelivered = sent.is_err().then(|| (giver, request.unwrap_or_else(|| turn.began_by.clone())));
        }
        self.settle(turn, MessageState::Done);
        self.put(Turn { state: "done".to_owned(), ..turn.clone() });
        if let Some((giver, request)) = undelivered {
            let message = &self.rows.messages[&request];
            if message.answered_by.is_none()
                && matches!(message.state, MessageState::InTurn | MessageState::Done)
            {
                self.change(&request, |message| message.state = MessageState::Failed);
            }
            self.tell(&of.task, &giver, "receiver_failed");
        }
    }

    /// To whom a closing text goes, and which request it answers; nobody where it stays a note.
    fn giver(&self, turn: &Turn) -> Option<(AgentId, Option<MessageId>)> {
        let of = Conversation { agent: turn.agent.clone(), task: turn.task.clone() };
        let open = self.open_requests(&of);
        let was_told = |id: &AgentId| {
            self.rows
                .messages
                .values()
                .any(|message| message.sent_in == Some(turn.id) && message.receiver == *id)
        };
        let user = AgentId::user();
        if self.last_word(turn) == LastWord::Yes {
            let request =
                open.iter().find(|request| request.sender == user).map(|request| request.id.clone());
            return (!was_told(&user)).then_some((user, request));
        }
        let began_by = &self.rows.messages[&turn.began_by];
        let request = if began_by.expects == Expects::Answer {
            open.into_iter().find(|request| request.id == began_by.id)?
        } else {
            open.into_iter().next()?
        };
        let giver = &request.sender;
        let mut waits_for = self.awaited(&of);
        waits_for.extend(self.unheard(&of));
        waits_for.remove(giver);
        if was_told(giver) || (!giver.is_user() && !waits_for.is_empty()) {
            return None;
        }
        Some((giver.clone(), Some(request.id.clone())))
    }

    /// A turn cannot go on: its messages have failed, the parent is told, and those who wrote.
    pub(super) fn fail_turn(&mut self, turn: &Turn) {
        let of = Conversation { agent: turn.agent.clone(), task: turn.task.clone() };
        let asked: Vec<(MessageId, AgentId)> = self
            .open_requests(&of)
            .into_iter()
            .map(|asked| (asked.id.clone(), asked.sender.clone()))
            .collect();
        self.settle(turn, MessageState::Failed);
        self.put(Turn { state: "failed".to_owned(), ..turn.clone() });
        let parent = self.rows.agents[&turn.agent].parent.clone().unwrap_or_else(AgentId::user);
        self.tell(&turn.task, &parent, "agent_failed");
        for (request, sender) in asked.into_iter().filter(|(_, sender)| !sender.is_user()) {
            if self.rows.messages[&request].state != MessageState::Failed {
                self.change(&request, |request| request.state = MessageState::Failed);
            }
            if sender != parent && sender != turn.agent {
                self.tell(&turn.task, &sender, "receiver_failed");
            }
        }
    }

    pub(super) fn return_mail(&mut self, of: &AgentId) {
        for message in self.mail(|message| {
            let is_unread =
                matches!(message.state, MessageState::Delayed | MessageState::Queued | MessageState::InTurn);
            message.receiver == *of && is_unread
        }) {
            self.change(&message.id, |message| message.state = MessageState::Bounced);
            self.tell(&message.task, &message.sender, "bounced");
        }
    }

    pub(super) fn close_requests(&mut self, of: &AgentId, by: &AgentId) {
        for message in self.mail(|message| {
            message.receiver == *of && message.is_awaited() && message.state == MessageState::Done
        }) {
            self.change(&message.id, |message| message.state = MessageState::Failed);
            if message.sender != *by {
                self.tell(&message.task, &message.sender, "terminated");
            }
        }
    }
}
