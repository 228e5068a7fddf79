//! What holds after each operation, whoever did what. It is looked for in what the database holds, not in what the
//! reference model says.

use super::observed::Changes;
use super::rows::{Contact, Key, Message, Row, Rows};
use polity_society::contact::Source;
use polity_society::id::AgentId;
use polity_society::message::{Expects, Finality, MessageState, MessageType};

/// The rows before and after an operation.
pub(super) struct Step<'a> {
    pub(super) after: &'a Rows,
    pub(super) changes: &'a Changes,
}

/// What does not hold, in words.
pub(super) fn violations(step: &Step<'_>) -> Vec<String> {
    let mut violations = Vec::new();
    for change in &step.changes.rows {
        let mut must = |holds: bool, what: &str| {
            if !holds {
                violations.push(format!("{what}: {:?} -> {:?}", change.before, change.after));
            }
        };
        match (&change.before, &change.after) {
            (None, Some(Row::Contact(entry))) => {
                must(step.is_justified(entry), "a contact is made in one of the defined ways");
            }
            (Some(Row::Contact(_)), _) => must(false, "registries only grow"),
            (None, Some(Row::Message(message))) => {
                must(step.was_reachable(message), "whom one writes to is in one's registry at that moment");
                must(step.live_before(&message.receiver), "nobody who has ended gets a message");
                must(
                    step.reply_fits(message),
                    "an answer is to an open request of its receiver to its sender",
                );
                must(step.attachments_open(message), "what is attached opens for its sender");
                must(
                    !message.is_of_system()
                        || (message.expects == Expects::Nothing && message.in_reply_to.is_none()),
                    "the system asks for nothing and answers nothing",
                );
            }
            (Some(Row::Message(before)), Some(Row::Message(after))) => {
                must(
                    before.answered_by.is_none() || before.answered_by == after.answered_by,
                    "a request is answered at most once",
                );
                must(is_the_same(before, after), "a message stays what it was when it was accepted");
                must(may_follow(before.state, after.state), "a message goes its way in one direction");
                must(before.turn.is_none() || before.turn == after.turn, "a message is taken into one turn");
            }
            (Some(Row::Grant(_)), _) => must(false, "what opens for somebody opens for ever"),
            (None, Some(Row::Grant(grant))) => {
                let is_its_own = step.after.artifacts.get(&grant.artifact).is_some_and(|artifact| {
                    artifact.owner == grant.agent || is_above(step.after, &grant.agent, &artifact.owner)
                });
                must(
                    is_its_own || step.was_handed_on(grant.agent.clone(), grant.artifact.as_str()),
                    "an artifact opens for its owner, those above, and those who were given it",
                );
            }
            (None, Some(Row::Agent(_) | Row::Role(_) | Row::Artifact(_) | Row::Turn(_))) => {}
            (Some(Row::Agent(before)), Some(Row::Agent(after))) => must(
                before.ended_at.is_none() && after.ended_at.is_some() && before.parent == after.parent,
                "an agent changes by ending, once",
            ),
            (Some(Row::Turn(before)), Some(Row::Turn(_))) => {
                must(before.state == "open", "a turn that has ended stays so");
            }
            _ => must(false, "nothing else changes"),
        }
    }
    violations.extend(of_the_ended(step.after, step.changes));
    violations.extend(of_answers(step.after, step.changes));
    violations
}

impl Step<'_> {
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
            // It came with this operation.
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

    /// One reaches one's contacts, oneself, and whom one has just hired.
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
            // The person writes to root alone.
            _ => false,
        };
        owner != agent && of_same_task && is_defined
    }

    /// The request that an answer names was put by its receiver to its sender, was read, and had no answer.
    fn reply_fits(&self, message: &Message) -> bool {
        let Some(request) = &message.in_reply_to else { return true };
        let Some(Row::Message(request)) = self.before(&Key::Message(request.clone())) else { return false };
        let between = (&request.sender, &request.receiver) == (&message.receiver, &message.sender);
        between && request.task == message.task && request.is_open() && message.expects == Expects::Nothing
    }

    fn attachments_open(&self, message: &Message) -> bool {
        message.attachments.iter().all(|artifact| {
            let held = self.before(&Key::Grant((message.sender.clone(), artifact.clone()))).is_some();
            let given =
                self.after.artifact_grants.contains_key(&(message.receiver.clone(), artifact.clone()));
            held && given
        })
    }

    /// Whether somebody who could open it has written to the agent, or hired it, just now.
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
        turn: before.turn,
        ..after.clone()
    };
    as_it_was == *before
}

fn may_follow(before: MessageState, after: MessageState) -> bool {
    use MessageState::{Bounced, Delayed, Done, Failed, InTurn, Queued};
    match (before, after) {
        (Delayed, Queued) | (Queued | Delayed | InTurn, Bounced) | (Queued, InTurn | Done) => true,
        (InTurn, Done | Failed) | (Done, Failed) => true,
        (before, after) => before == after,
    }
}

/// Nothing waits for those who have ended: no mail, no request, no turn.
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
        waiting.map(|message| format!("nothing waits for who has ended: {message:?}")).collect();
    violations.extend(open.map(|turn| format!("nobody who has ended is in a turn: {turn:?}")));
    violations
}

/// A request that is answered names its answer, and the answer names the request; what is provisional answers nothing.
fn of_answers(rows: &Rows, changes: &Changes) -> Vec<String> {
    let mut violations = Vec::new();
    for change in &changes.rows {
        let Some(Row::Message(message)) = &change.after else { continue };
        if let Some(answer) = &message.answered_by {
            let names_it = rows
                .messages
                .get(answer)
                .is_some_and(|answer| answer.in_reply_to.as_ref() == Some(&message.id));
            if !names_it || message.expects != Expects::Answer {
                violations.push(format!("what answers a request names it: {message:?}"));
            }
        }
        if let Some(request) = &message.in_reply_to {
            let answered = rows.messages.get(request).and_then(|request| request.answered_by.as_ref());
            if (answered == Some(&message.id)) != (message.finality == Finality::Final) {
                violations.push(format!("a final answer, and no other, answers its request: {message:?}"));
            }
        }
    }
    violations
}
