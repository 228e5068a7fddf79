//! Checks what must hold after every operation. The checks use the rows of the database, not the reference model.

use super::observed::{Change, Changes};
use super::rows::{Contact, Key, Message, Row, Rows, Turn};
use polity_society::contact::Source;
use polity_society::id::{AgentId, ArtifactId, MessageId, TaskId};
use polity_society::message::{Expects, Finality, MessageState, MessageType};

/// The rows after an operation, and the changes that the operation made.
pub(super) struct OperationEffect<'a> {
    pub(super) after: &'a Rows,
    pub(super) changes: &'a Changes,
}

/// Returns the violated invariants, in words.
pub(super) fn violations(step: &OperationEffect<'_>) -> Vec<String> {
    let mut violations = Vec::new();
    for change in &step.changes.rows {
        let mut must = |holds: bool, what: &str| {
            if !holds {
                violations.push(format!("{what}: {:?} -> {:?}", change.before, change.after));
            }
        };
        match (&change.before, &change.after) {
            (None, Some(Row::Contact(entry))) => {
                must(step.is_justified(entry), "a contact comes from one of the defined sources");
            }
            (Some(Row::Contact(_)), _) => must(false, "contacts are never changed or removed"),
            (None, Some(Row::Message(message))) => {
                must(step.was_reachable(message), "the receiver was a contact of the sender at that moment");
                must(step.live_before(&message.receiver), "no message goes to an agent that has ended");
                must(
                    step.reply_fits(message),
                    "an answer names open requests of its receiver to its sender, or supplements a settled one",
                );
                must(step.says_something_new(message), "no agent is reminded twice of the same requests");
                must(step.attachments_open(message), "a sender may open what it attaches");
                must(
                    !message.is_of_system()
                        || (message.expects == Expects::Nothing && message.in_reply_to.is_empty()),
                    "the system asks for nothing and answers nothing",
                );
            }
            (Some(Row::Message(before)), Some(Row::Message(after))) => {
                must(
                    before.answered_by.is_none() || before.answered_by == after.answered_by,
                    "a request is answered at most once",
                );
                must(is_the_same(before, after), "an accepted message keeps its content");
                must(step.may_be_given_up(before, after), "a request is given up only after a reminder");
                must(
                    may_follow(before.state, after.state) || step.is_dropped_question(after),
                    "the state of a message only moves forward",
                );
                must(before.turn.is_none() || before.turn == after.turn, "a message enters only one turn");
            }
            (Some(Row::Grant(_)), _) => must(false, "a grant is never changed or removed"),
            (None, Some(Row::Grant(grant))) => {
                let is_its_own = step.after.artifacts.get(&grant.artifact).is_some_and(|artifact| {
                    artifact.owner == grant.agent || is_above(step.after, &grant.agent, &artifact.owner)
                });
                must(
                    is_its_own
                        || step.was_handed_on(grant.agent.clone(), grant.artifact.as_str())
                        || step.was_left_over(&grant.agent, &grant.artifact),
                    "an artifact opens only for its owner, its ancestors, agents that were given it, and its asker",
                );
            }
            (None, Some(Row::Agent(_) | Row::Role(_) | Row::Artifact(_) | Row::Turn(_))) => {}
            (Some(Row::Agent(before)), Some(Row::Agent(after))) => must(
                before.ended_at.is_none() && after.ended_at.is_some() && before.parent == after.parent,
                "an agent changes only by ending, once",
            ),
            (Some(Row::Turn(before)), Some(Row::Turn(_))) => {
                must(before.state == "open", "an ended turn does not change");
            }
            (None, Some(Row::Note(note))) => must(
                step.is_asked(&note.request, &note.agent, &note.task).is_some(),
                "a text is held only for a request to its writer",
            ),
            (None, Some(Row::Output(output))) => {
                let asker = step.is_asked(&output.request, &output.agent, &output.task);
                let owner = step.after.artifacts.get(&output.artifact).map(|artifact| &artifact.owner);
                must(
                    asker == Some(&output.asker) && owner == Some(&output.agent),
                    "an artifact is made only for a request to its owner",
                );
            }
            (Some(Row::Note(note)), None) => {
                must(
                    step.was_said(&note.agent, &note.request),
                    "a held text is removed only when its asker is told something",
                );
            }
            (Some(Row::Output(_)), None) => {}
            _ => must(false, "nothing else changes"),
        }
    }
    violations.extend(of_the_ended(step.after, step.changes));
    violations.extend(of_answers(step.after, step.changes));
    violations.extend(of_turns(step.after, step.changes));
    violations
}

impl OperationEffect<'_> {
    fn before(&self, key: &Key) -> Option<Row> {
        let changed = self.changes.rows.iter().find(|change| change.key == *key);
        changed.map_or_else(|| self.after.get(key), |change| change.before.clone())
    }

    fn knew(&self, owner: &AgentId, agent: &AgentId) -> bool {
        self.before(&Key::Contact((owner.clone(), agent.clone()))).is_some()
    }

    fn live_before(&self, id: &AgentId) -> bool {
        match self.before(&Key::Agent(id.clone())) {
            Some(Row::Agent(agent)) => agent.ended_at.is_none(),
            // This operation has hired the agent, so only the rows after the operation contain the agent.
            _ => self.after.agents.get(id).is_some_and(|agent| agent.ended_at.is_none()),
        }
    }

    fn hired_now(&self, child: &AgentId) -> bool {
        self.after.agents.contains_key(child) && self.before(&Key::Agent(child.clone())).is_none()
    }

    fn new_messages(&self) -> impl Iterator<Item = &Message> {
        self.changes.rows.iter().filter_map(|change| match (&change.before, &change.after) {
            (None, Some(Row::Message(message))) => Some(&**message),
            _ => None,
        })
    }

    /// Whether the sender may write to the receiver: the receiver is a contact of the sender, the sender itself, or
    /// an agent that the sender has just hired.
    fn was_reachable(&self, message: &Message) -> bool {
        let (from, to) = (&message.sender, &message.receiver);
        let has_hired = || {
            let child = &self.after.agents.get(to);
            self.hired_now(to) && child.is_some_and(|child| child.parent.as_ref() == Some(from))
        };
        message.is_of_system() || from == to || self.knew(from, to) || has_hired()
    }

    fn is_justified(&self, entry: &Contact) -> bool {
        let (owner, agent) = (&entry.owner, &entry.agent);
        let is_child = |child: &AgentId, parent: &AgentId| {
            let child_row = self.after.agents.get(child);
            self.hired_now(child) && child_row.is_some_and(|row| row.parent.as_ref() == Some(parent))
        };
        let of_same_task = match (&self.after.agents[owner].task, &self.after.agents[agent].task) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        let is_defined = match (entry.source, &entry.introduced_by) {
            (Source::Parent, None) => is_child(owner, agent),
            (Source::Child, None) => is_child(agent, owner),
            (Source::Preset, Some(parent)) => is_child(owner, parent) && self.knew(parent, agent),
            (Source::Introduction, Some(by)) => {
                let knows_owner = self.knew(by, owner) || is_child(owner, by);
                let was_said = self.new_messages().any(|message| {
                    message.kind == Some(MessageType::IntroductionResponse)
                        && (&message.sender, &message.receiver) == (by, owner)
                        && message.introduced.as_ref() == Some(agent)
                });
                knows_owner && self.knew(by, agent) && was_said
            }
            (Source::FirstMessage, None) => self.new_messages().any(|message| {
                (&message.sender, &message.receiver) == (agent, owner) && message.met.is_some()
            }),
            // In this test, the person writes only to root, so a first message of the person adds no contact.
            _ => false,
        };
        owner != agent && of_same_task && is_defined
    }

    /// Whether the requests that a message answers fit the message. The receiver of the message must have sent each
    /// request to the sender of the message, and each request must have been open before this operation. A supplement
    /// (an addition to an earlier answer) must instead name one request that was not open any more.
    fn reply_fits(&self, message: &Message) -> bool {
        message.in_reply_to.iter().all(|id| {
            let Some(Row::Message(request)) = self.before(&Key::Message(id.clone())) else { return false };
            let between = (&request.sender, &request.receiver) == (&message.receiver, &message.sender);
            let fits = request.is_open() != message.is_supplement();
            let of_task = request.task == message.task && request.expects == Expects::Answer;
            between && of_task && fits && message.expects == Expects::Nothing
        })
    }

    /// Whether a reminder names at least one request of which the receiver was not reminded before.
    fn says_something_new(&self, message: &Message) -> bool {
        let is_marked_now = |change: &Change| match (&change.before, &change.after) {
            (Some(Row::Message(before)), Some(Row::Message(after))) => {
                (before.reminded, after.reminded) == (0, 1) && after.receiver == message.receiver
            }
            _ => false,
        };
        message.notice.as_deref() != Some("reminder") || self.changes.rows.iter().any(is_marked_now)
    }

    /// Checks that a request is given up only if its receiver was reminded of the request, or if its asker has ended.
    fn may_be_given_up(&self, before: &Message, after: &Message) -> bool {
        let is_given_up = before.state != after.state && after.state == MessageState::Unanswered;
        let was_left = before.reminded == 1 || !self.is_live(&after.sender);
        !is_given_up || (after.answered_by.is_none() && was_left)
    }

    /// Whether the message is a question to the person that was dropped because its asker has ended. The person may not
    /// have seen the question yet.
    fn is_dropped_question(&self, after: &Message) -> bool {
        let is_question = after.receiver.is_user() && after.expects == Expects::Answer;
        is_question && after.state == MessageState::Failed && !self.is_live(&after.sender)
    }

    fn is_live(&self, id: &AgentId) -> bool {
        self.after.agents.get(id).is_some_and(|agent| agent.ended_at.is_none())
    }

    /// Returns the sender of a request; `None` if the request was not made to this agent in this task.
    fn is_asked(&self, request: &MessageId, of: &AgentId, task: &TaskId) -> Option<&AgentId> {
        let request = self.after.messages.get(request)?;
        let is_its = request.receiver == *of && request.task == *task && request.expects == Expects::Answer;
        is_its.then_some(&request.sender)
    }

    /// Whether this operation told the asker of a request something: it answered a request of this asker, or it sent
    /// the asker a message from the agent `by` or from the system. Also true if the asker has ended.
    fn was_said(&self, by: &AgentId, request: &MessageId) -> bool {
        let Some(request) = self.after.messages.get(request) else { return false };
        let is_told = |message: &Message| {
            let from = &message.sender == by || message.is_of_system();
            from && message.receiver == request.sender && message.task == request.task
        };
        let has_answer = |change: &Change| match (&change.before, &change.after) {
            (Some(Row::Message(before)), Some(Row::Message(after))) => {
                before.answered_by.is_none() && after.answered_by.is_some() && after.sender == request.sender
            }
            _ => false,
        };
        !self.is_live(&request.sender)
            || self.new_messages().any(is_told)
            || self.changes.rows.iter().any(has_answer)
    }

    /// Whether the system handed an artifact over to an asker. The system does this if the agent that made the artifact
    /// for the asker never named it to the asker. The system must have told the asker, unless the asker has ended.
    fn was_left_over(&self, asker: &AgentId, artifact: &ArtifactId) -> bool {
        let given_up = self.changes.rows.iter().any(|change| match (&change.before, &change.after) {
            (Some(Row::Output(output)), None) => output.asker == *asker && output.artifact == *artifact,
            _ => false,
        });
        let is_told = |message: &Message| {
            let names = message.told.artifacts.iter().any(|handed| handed.id == artifact.as_str());
            message.is_of_system() && message.receiver == *asker && names
        };
        given_up && (!self.is_live(asker) || self.new_messages().any(is_told))
    }

    fn attachments_open(&self, message: &Message) -> bool {
        message.attachments.iter().all(|artifact| {
            let held = self.before(&Key::Grant((message.sender.clone(), artifact.clone()))).is_some();
            let given =
                self.after.artifact_grants.contains_key(&(message.receiver.clone(), artifact.clone()));
            held && given
        })
    }

    /// Whether the agent got the artifact from a party that could already open it: this operation sent the agent a
    /// message from this party, or this party has just hired the agent.
    fn was_handed_on(&self, agent: AgentId, artifact: &str) -> bool {
        let could_open = |giver: &AgentId| {
            let artifact = polity_society::id::ArtifactId::new(artifact);
            self.before(&Key::Grant((giver.clone(), artifact))).is_some()
        };
        let from_parent =
            self.hired_now(&agent) && self.after.agents[&agent].parent.as_ref().is_some_and(could_open);
        from_parent
            || self.new_messages().any(|message| message.receiver == agent && could_open(&message.sender))
    }
}

fn is_above(rows: &Rows, above: &AgentId, below: &AgentId) -> bool {
    let mut at = rows.agents.get(below).and_then(|agent| agent.parent.as_ref());
    while let Some(parent) = at {
        if parent == above {
            return true;
        }
        at = rows.agents.get(parent).and_then(|agent| agent.parent.as_ref());
    }
    false
}

fn is_the_same(before: &Message, after: &Message) -> bool {
    let as_it_was = Message {
        state: before.state,
        answered_by: before.answered_by.clone(),
        answered_in: before.answered_in,
        reminded: before.reminded,
        finality: before.finality,
        turn: before.turn,
        ..after.clone()
    };
    // Finality and the count of reminders change in one direction only: an interim message may become final, and a
    // reminded request stays reminded.
    let goes_on = before.finality == Finality::Interim || after.finality == Finality::Final;
    as_it_was == *before && goes_on && before.reminded <= after.reminded
}

fn may_follow(before: MessageState, after: MessageState) -> bool {
    use MessageState::{Bounced, Delayed, Done, Failed, InTurn, Queued, Unanswered};
    match (before, after) {
        (Delayed, Queued) | (Queued | Delayed | InTurn, Bounced) | (Queued, InTurn | Done) => true,
        // One operation ends a turn and carries out the consequences, so a message can pass through several states in
        // one operation.
        (InTurn, Done | Failed | Unanswered) | (Done, Failed | Unanswered) => true,
        (before, after) => before == after,
    }
}

/// Checks that nothing is left for an ended agent to do: it has no queued message, no open request and no open turn.
fn of_the_ended(rows: &Rows, changes: &Changes) -> Vec<String> {
    let ended = changes.rows.iter().filter_map(|change| match &change.after {
        Some(Row::Agent(agent)) if agent.ended_at.is_some() => Some(&agent.id),
        Some(Row::Message(message)) => Some(&message.receiver),
        _ => None,
    });
    let ended: std::collections::BTreeSet<&AgentId> =
        ended.filter(|id| rows.agents.get(*id).is_some_and(|agent| agent.ended_at.is_some())).collect();
    if ended.is_empty() {
        return Vec::new();
    }
    let waiting = rows.messages.values().filter(|message| {
        let waits =
            matches!(message.state, MessageState::Delayed | MessageState::Queued | MessageState::InTurn);
        ended.contains(&message.receiver) && (waits || message.is_awaited())
    });
    let open = rows.turns.values().filter(|turn| turn.state == "open" && ended.contains(&turn.agent));
    let mut violations: Vec<String> =
        waiting.map(|message| format!("nothing waits for an ended agent: {message:?}")).collect();
    violations.extend(open.map(|turn| format!("an ended agent has no open turn: {turn:?}")));
    violations
}

/// Checks that an answered request names its answer, that the answer names the request, and that no interim message
/// is an answer.
fn of_answers(rows: &Rows, changes: &Changes) -> Vec<String> {
    let mut violations = Vec::new();
    for change in &changes.rows {
        let Some(Row::Message(message)) = &change.after else { continue };
        if let Some(answer) = &message.answered_by {
            // If a report has the same text as the later closing text, the report becomes the answer. A report does
            // not name the request in `in_reply_to`, but in `about`.
            let names_it = rows.messages.get(answer).is_some_and(|answer| {
                let between = (&answer.sender, &answer.receiver) == (&message.receiver, &message.sender);
                let names =
                    answer.in_reply_to.contains(&message.id) || answer.about.as_ref() == Some(&message.id);
                between && names && answer.finality == Finality::Final
            });
            if !names_it || message.expects != Expects::Answer {
                violations.push(format!("an answer names its request: {message:?}"));
            }
        }
        let answers = message.finality == Finality::Final && !message.is_supplement();
        for request in message.in_reply_to.iter().filter(|_| answers) {
            let answered = rows.messages.get(request).is_some_and(|request| request.answered_by.is_some());
            if !answered {
                violations.push(format!("a final answer leaves no request open: {message:?}"));
            }
        }
    }
    violations
}

/// Checks two things. If an asker still waits although its request is answered, the turn that gave the answer is still
/// open. If a turn ended well, its agent still waits, or has mail, or all its askers have got an answer or a notice.
fn of_turns(rows: &Rows, changes: &Changes) -> Vec<String> {
    let mut violations = Vec::new();
    let ended = |change: &Change| matches!(&change.after, Some(Row::Turn(turn)) if turn.state != "open");
    let answered =
        |change: &Change| matches!(&change.after, Some(Row::Message(m)) if m.answered_in.is_some());
    if !changes.rows.iter().any(|change| ended(change) || answered(change)) {
        return violations;
    }
    for request in rows.messages.values() {
        let Some(turn) = request.answered_in else { continue };
        let is_its = |turn: &Turn| turn.state == "open" && turn.agent == request.receiver;
        if request.answered_by.is_none() || !rows.turns.get(&turn).is_some_and(is_its) {
            violations.push(format!("nobody waits for an ended turn: {request:?}"));
        }
    }
    for change in &changes.rows {
        let Some(Row::Turn(turn)) = &change.after else { continue };
        if turn.state != "done" {
            continue;
        }
        let of_agent =
            |message: &&Message, agent: &AgentId| *agent == turn.agent && message.task == turn.task;
        let goes_on = rows.messages.values().any(|message| {
            let has_mail = of_agent(&message, &message.receiver) && message.state == MessageState::Queued;
            let is_later = message.receiver == message.sender && message.state == MessageState::Delayed;
            let waits = message.is_awaited() || message.answered_in.is_some() || is_later;
            has_mail || (of_agent(&message, &message.sender) && waits)
        });
        let owes = rows.messages.values().any(|message| {
            let is_owed = message.is_awaited() && message.state == MessageState::Done;
            of_agent(&message, &message.receiver) && is_owed && !message.sender.is_user()
        });
        let has_made = rows
            .outputs
            .values()
            .any(|output| output.agent == turn.agent && output.task == turn.task && !output.asker.is_user());
        if !goes_on && (owes || has_made) {
            violations.push(format!("an agent at rest owes nothing: {turn:?}"));
        }
    }
    violations
}
