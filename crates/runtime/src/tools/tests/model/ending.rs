//! The reference model, part three: closing texts, the end of turns, and what agents at rest still owe.

use super::rows::{Handed, Key, Message, Note, NoticeContents, Output, Row, Turn};
use super::society::{DraftPayload, Society};
use polity_society::id::{AgentId, ArtifactId, MessageId};
use polity_society::message::{Expects, Finality, MessageState, MessageType};
use polity_society::rules::{Answering, LastWord, Subject};
use polity_store::Conversation;
use std::collections::{BTreeMap, BTreeSet};

/// Why the reference model checks an agent at rest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    TurnEnded,
    WaitEnded,
}

impl Society {
    fn settle(&mut self, turn: &Turn, state: MessageState) {
        let taken =
            |message: &Message| message.turn == Some(turn.id) && message.state == MessageState::InTurn;
        for message in self.mail(taken) {
            self.change(&message.id, |message| message.state = state);
        }
    }

    /// Closes a turn. If the turn has answered requests, their askers have waited for its end. Returns the
    /// conversations of these askers.
    pub(super) fn close_turn(&mut self, turn: &Turn, state: &str) -> Vec<Conversation> {
        let answered = self.mail(|message| message.answered_in == Some(turn.id));
        for request in &answered {
            self.change(&request.id, |request| request.answered_in = None);
        }
        self.put(Turn { state: state.to_owned(), ..turn.clone() });
        let asker = |request: Message| Conversation { agent: request.sender, task: request.task };
        answered.into_iter().map(asker).collect()
    }

    /// Ends a turn. The closing text of the turn is sent to the giver (the sender of the request that the turn works
    /// on), or held for later, or dropped.
    pub(super) fn end_turn(&mut self, turn: &Turn, text: Option<&DraftPayload>) {
        let of = Conversation { agent: turn.agent.clone(), task: turn.task.clone() };
        let refused = text.and_then(|letter| self.say(turn, &of, letter));
        self.settle(turn, MessageState::Done);
        let released = self.close_turn(turn, "done");
        if let Some((giver, request)) = refused {
            self.fail_request(&request);
            self.tell(&of.task, &giver, "receiver_failed", Some(request), NoticeContents::default());
        }
        self.look(&of, Cause::TurnEnded);
        self.look_at_those_who_waited(released);
    }

    fn fail_request(&mut self, id: &MessageId) {
        let request = &self.rows.messages[id];
        let was_heard = matches!(request.state, MessageState::InTurn | MessageState::Done);
        if request.answered_by.is_none() && was_heard {
            self.change(id, |request| request.state = MessageState::Failed);
        }
    }

    /// Sends or holds a closing text. If the door refuses the text, a request stays without an answer. In this case,
    /// returns the sender of the request, and the request.
    fn say(&mut self, turn: &Turn, of: &Conversation, letter: &DraftPayload) -> Option<(AgentId, MessageId)> {
        let last_word = self.last_word(turn);
        let works_on = turn.works_on.as_ref().map(|id| self.rows.messages[id].clone());
        let open: Vec<Message> = self.open_requests(of).into_iter().cloned().collect();
        let giver = match works_on.as_ref().or(open.first()) {
            Some(request) => request.sender.clone(),
            None if last_word == LastWord::Yes => AgentId::user(),
            None => return None,
        };
        let answers: Vec<MessageId> =
            open.into_iter().filter(|request| request.sender == giver).map(|request| request.id).collect();
        let works_on = works_on.map(|request| request.id);
        let concerned: Vec<MessageId> = answers.iter().chain(&works_on).cloned().collect();
        let mut waits = self.waits(of);
        waits.extend(self.unheard(of));
        let mut waits = waits.iter().map(|request| match request {
            Some(request) => concerned.contains(request),
            None => !giver.is_user(),
        });
        let more_comes = waits.any(|waits| waits) && last_word == LastWord::UnlessWaiting;

        let said_to = if answers.is_empty() { works_on.as_slice() } else { &answers };
        if let Some(earlier) = self.said_before(of, &giver, said_to, &letter.words) {
            self.happened.push("text repeated");
            if !more_comes && (!answers.is_empty() || earlier.finality == Finality::Interim) {
                self.happened.push("repeated text is the answer");
                self.make_final(&earlier.id, &answers);
                self.drop_notes(of, &answers);
            }
            return None;
        }
        let request = works_on.clone().or_else(|| answers.first().cloned());
        if let (true, false, Some(request)) = (more_comes, giver.is_user(), &request) {
            self.hold(of, request, &answers, &letter.words);
            return None;
        }
        self.drop_notes(of, &concerned);
        let subject = match (&works_on, answers.is_empty()) {
            (_, false) => Subject::Open(answers),
            (Some(request), true) => {
                self.happened.push("supplement");
                Subject::Settled(request.clone())
            }
            (None, true) => Subject::Nothing,
        };
        let sent = self.send(of, giver.as_str(), letter, &Answering::Closing(subject), None, last_word);
        match (sent, request) {
            (Err(_), Some(request)) => Some((giver, request)),
            _ => None,
        }
    }

    /// Returns the newest message with this text that answers all of these requests or is about all of them.
    fn said_before(
        &self,
        by: &Conversation,
        to: &AgentId,
        requests: &[MessageId],
        text: &str,
    ) -> Option<Message> {
        let is_same = |message: &&Message| {
            let between = message.sender == by.agent && message.receiver == *to && message.task == by.task;
            let is_for =
                |id: &MessageId| message.in_reply_to.contains(id) || message.about.as_ref() == Some(id);
            let words = message.words.as_deref().map(str::trim);
            between && words == Some(text.trim()) && !requests.is_empty() && requests.iter().all(is_for)
        };
        self.rows.messages.values().rev().find(is_same).cloned()
    }

    /// Makes an earlier message final, and records it as the answer to these requests.
    fn make_final(&mut self, id: &MessageId, answers: &[MessageId]) {
        self.change(id, |message| message.finality = Finality::Final);
        self.answer(answers, id);
    }

    fn hold(&mut self, of: &Conversation, request: &MessageId, answers: &[MessageId], text: &str) {
        self.happened.push("text held");
        self.notes += 1;
        self.put(Note {
            seq: self.notes,
            agent: of.agent.clone(),
            task: of.task.clone(),
            request: request.clone(),
            answers: if answers.is_empty() { vec![request.clone()] } else { answers.to_vec() },
            text: text.to_owned(),
        });
    }

    fn asker_of(&self, note: &Note) -> AgentId {
        self.rows.messages[&note.request].sender.clone()
    }

    fn notes_of(&self, of: &Conversation) -> impl Iterator<Item = &Note> {
        let notes = self.rows.notes.values();
        notes.filter(move |note| note.agent == of.agent && note.task == of.task)
    }

    /// Returns the texts that are held for these requests.
    fn texts_for(&self, of: &Conversation, requests: &[MessageId]) -> Vec<String> {
        let notes = self.notes_of(of).filter(|note| requests.contains(&note.request));
        notes.map(|note| note.text.clone()).collect()
    }

    fn drop_notes(&mut self, of: &Conversation, requests: &[MessageId]) {
        let notes = self.notes_of(of).filter(|note| requests.contains(&note.request));
        for seq in notes.map(|note| note.seq).collect::<Vec<_>>() {
            self.remove(Key::Note(seq));
        }
    }

    /// Fails a turn: its messages fail, and the parent and the askers are told.
    pub(super) fn fail_turn(&mut self, turn: &Turn) {
        let of = Conversation { agent: turn.agent.clone(), task: turn.task.clone() };
        let asked: Vec<(MessageId, AgentId)> = self
            .open_requests(&of)
            .into_iter()
            .map(|asked| (asked.id.clone(), asked.sender.clone()))
            .collect();
        self.settle(turn, MessageState::Failed);
        let released = self.close_turn(turn, "failed");
        let parent = self.rows.agents[&turn.agent].parent.clone().unwrap_or_else(AgentId::user);
        let of_parent = asked.iter().find(|(_, asker)| *asker == parent).map(|(request, _)| request.clone());
        self.tell(&turn.task, &parent, "agent_failed", of_parent, NoticeContents::default());
        let mut told = BTreeSet::from([parent, turn.agent.clone()]);
        for (request, asker) in asked.into_iter().filter(|(_, asker)| !asker.is_user()) {
            self.fail_request(&request);
            if told.insert(asker.clone()) {
                self.tell(&turn.task, &asker, "receiver_failed", Some(request), NoticeContents::default());
            }
        }
        // The failed agent cannot deliver the artifacts and texts that it has made so far, so the system delivers
        // them.
        let stored = self.outputs(&of).into_iter().map(|output| output.asker);
        let held: Vec<AgentId> = self.notes_of(&of).map(|note| self.asker_of(note)).collect();
        let askers: BTreeSet<AgentId> = stored.chain(held).filter(|asker| !asker.is_user()).collect();
        for asker in askers {
            let owed = self.owed(&of);
            self.give_up(&of, &asker, &owed);
        }
        self.look_at_those_who_waited(released);
    }

    /// Checks the agents that waited for an ended turn, because they may now have something to deliver. Checks them
    /// in reverse order, because the runtime uses this order.
    pub(super) fn look_at_those_who_waited(&mut self, waited: Vec<Conversation>) {
        for of in waited.into_iter().rev().filter(|of| !of.agent.is_user()) {
            self.look(&of, Cause::WaitEnded);
        }
    }

    /// Returns the requests that an agent has read in ended turns and not answered.
    fn owed(&self, by: &Conversation) -> Vec<Message> {
        self.mail(|request| {
            let is_to = request.receiver == by.agent && request.task == by.task;
            let is_open = request.expects == Expects::Answer && request.answered_by.is_none();
            is_to && is_open && request.state == MessageState::Done
        })
    }

    /// Makes sure that an agent at rest leaves no asker without an answer or a notice.
    fn look(&mut self, of: &Conversation, cause: Cause) {
        let has_mail = self.rows.messages.values().any(|message| Self::is_waiting_for(message, of));
        if has_mail || self.open_turn(of).is_some() || !self.is_live(&of.agent) {
            return;
        }
        loop {
            let (waits, owed) = (self.waits(of), self.owed(of));
            if cause == Cause::WaitEnded && (self.deliver_held(of, &owed) || self.settle_interim(of)) {
                continue;
            }
            if !waits.is_empty() {
                return;
            }
            // A held text belongs to a request. If this request was answered before, the text is sent at once, and the
            // agent gets no reminder.
            let is_settled = |note: &&Note| !owed.iter().any(|owed| owed.id == note.request);
            let settled = self.notes_of(of).find(is_settled).cloned();
            if let Some(note) = settled {
                self.deliver(of, &note, &owed);
                continue;
            }
            // Skip answers that the agent owes to the person: the nudge asks for these answers.
            let mut left: BTreeMap<MessageId, AgentId> = BTreeMap::new();
            left.extend(owed.iter().map(|request| (request.id.clone(), request.sender.clone())));
            left.extend(self.outputs(of).into_iter().map(|output| (output.request, output.asker)));
            left.retain(|_, asker| !asker.is_user());
            let Some(asker) = left.values().next().cloned() else { return };
            left.retain(|_, of| *of == asker);
            let is_new = left.keys().any(|id| self.rows.messages[id].reminded == 0);
            if is_new && self.is_live(&asker) {
                return self.remind(of, &asker, &owed);
            }
            self.give_up(of, &asker, &owed);
        }
    }

    /// Returns what an agent owes an asker, in three parts: the open requests, all requests that the notice names,
    /// and the contents of the notice.
    fn left_for(
        &self,
        of: &Conversation,
        asker: &AgentId,
        owed: &[Message],
    ) -> (Vec<MessageId>, Vec<MessageId>, NoticeContents) {
        let open = owed.iter().filter(|request| request.sender == *asker);
        let open: Vec<MessageId> = open.map(|request| request.id.clone()).collect();
        let outputs: Vec<Output> =
            self.outputs(of).into_iter().filter(|output| output.asker == *asker).collect();
        let stored = outputs.iter().map(|output| output.request.clone());
        let written = self.notes_of(of).filter(|note| self.asker_of(note) == *asker);
        let written: Vec<MessageId> = written.map(|note| note.request.clone()).collect();
        let concerned: BTreeSet<MessageId> = open.iter().cloned().chain(stored).chain(written).collect();
        let concerned: Vec<MessageId> = concerned.into_iter().collect();
        let made = self.stored.iter().filter(|id| outputs.iter().any(|output| output.artifact == **id));
        let handed = |id: &str| Handed { id: id.to_owned() };
        let told = NoticeContents {
            requests: open.iter().map(|id| handed(id.as_str())).collect(),
            notes: self.texts_for(of, &concerned),
            artifacts: made.map(|id| handed(id.as_str())).collect(),
        };
        (open, concerned, told)
    }

    fn remind(&mut self, of: &Conversation, asker: &AgentId, owed: &[Message]) {
        self.happened.push("reminder");
        let (open, concerned, told) = self.left_for(of, asker, owed);
        for request in &concerned {
            self.change(request, |request| request.reminded = 1);
        }
        let about = open.into_iter().chain(concerned).next();
        self.tell(&of.task, &of.agent, "reminder", about, told);
    }

    /// Tells an asker that no answer will come, and gives the asker everything that was made for it.
    fn give_up(&mut self, of: &Conversation, asker: &AgentId, owed: &[Message]) {
        let (open, concerned, told) = self.left_for(of, asker, owed);
        for request in &open {
            self.happened.push("given up");
            self.change(request, |request| request.state = MessageState::Unanswered);
        }
        for artifact in &told.artifacts {
            self.grant(asker, &ArtifactId::new(&artifact.id));
        }
        self.drop_notes(of, &concerned);
        for output in self.outputs(of).into_iter().filter(|output| output.asker == *asker) {
            self.happened.push("artifact handed over");
            self.remove(Row::from(output).key());
        }
        let about = concerned.into_iter().next();
        if open.is_empty() {
            let told = NoticeContents { requests: Vec::new(), ..told };
            self.tell(&of.task, asker, "leftover", about, told);
        } else {
            self.tell(&of.task, asker, "unanswered", about, told);
        }
    }

    /// Delivers a held text if the agent no longer waits on behalf of the requests of this text. Returns whether a
    /// text was delivered.
    fn deliver_held(&mut self, of: &Conversation, owed: &[Message]) -> bool {
        let waits = self.waits(of);
        let is_free = |note: &&Note| {
            let mut concerned = note.answers.iter().chain([&note.request]);
            !waits.contains(&None) && !concerned.any(|id| waits.contains(&Some(id.clone())))
        };
        let Some(note) = self.notes_of(of).find(is_free).cloned() else { return false };
        self.deliver(of, &note, owed);
        true
    }

    /// Sends the texts that are held for the requests of a note. Leaves out texts that the asker has already got.
    fn deliver(&mut self, of: &Conversation, note: &Note, owed: &[Message]) {
        let (request, asker) = (&note.request, self.asker_of(note));
        let of_asker = owed.iter().filter(|owed| owed.sender == asker).map(|owed| owed.id.clone());
        let open: Vec<MessageId> = of_asker.filter(|id| note.answers.contains(id)).collect();
        let said_to = if open.is_empty() { std::slice::from_ref(request) } else { &open };
        let concerned: Vec<MessageId> = open.iter().chain([request]).cloned().collect();
        let mut repeated = None;
        let mut fresh: Vec<String> = Vec::new();
        for text in self.texts_for(of, &concerned) {
            match self.said_before(of, &asker, said_to, &text) {
                Some(earlier) => repeated = Some(earlier.id),
                None if fresh.iter().all(|other| other.trim() != text.trim()) => fresh.push(text),
                None => {}
            }
        }
        self.drop_notes(of, &concerned);
        if fresh.is_empty() {
            self.happened.push("held text was said");
            if let (Some(earlier), false) = (repeated, open.is_empty()) {
                self.make_final(&earlier, &open);
            }
            return;
        }
        let letter = DraftPayload::plain(fresh.join("\n\n"));
        let subject =
            if open.is_empty() { Subject::Settled(request.clone()) } else { Subject::Open(open.clone()) };
        self.happened.push(if open.is_empty() { "held supplement delivered" } else { "held text delivered" });
        let answering = Answering::Closing(subject);
        let sent = self.send(of, asker.as_str(), &letter, &answering, None, LastWord::UnlessWaiting);
        if sent.is_err() {
            for request in &open {
                self.fail_request(request);
            }
            self.tell(&of.task, &asker, "receiver_failed", Some(request.clone()), NoticeContents::default());
        }
    }

    /// Makes the last interim message to the person final if the agent no longer waits on behalf of the requests of
    /// this message. Returns whether the function made a message final.
    fn settle_interim(&mut self, of: &Conversation) -> bool {
        let is_said = |message: &&Message| {
            let to_person =
                message.receiver.is_user() && message.sender == of.agent && message.task == of.task;
            let says = message.expects == Expects::Nothing && message.kind != Some(MessageType::StatusReport);
            to_person && says
        };
        let Some(last) = self.rows.messages.values().rev().find(is_said).cloned() else { return false };
        let open = self.open_requests(of).into_iter().map(|request| request.id.clone());
        let answers: Vec<MessageId> = open.filter(|id| last.in_reply_to.contains(id)).collect();
        let waits = self.waits(of);
        let is_awaited = last.in_reply_to.iter().any(|id| waits.contains(&Some(id.clone())));
        if last.finality == Finality::Final || is_awaited {
            return false;
        }
        self.happened.push("interim text settled");
        self.make_final(&last.id, &answers);
        true
    }
}
