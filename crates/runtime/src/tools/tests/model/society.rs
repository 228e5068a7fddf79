//! The reference model, part one: agents, roles, contacts and artifacts. It implements the contract with plain maps,
//! and shares no logic with the rules that it tests.

use super::rows::{Agent, Artifact, Contact, Grant, Key, Message, Output, Role, Row, Rows};
use polity_society::contact::Source;
use polity_society::id::{AgentId, ArtifactId, MessageId, RoleId};
use polity_society::message::MessageType;
use polity_society::rules::{Answering, LastWord};
use polity_store::Conversation;
use std::collections::BTreeSet;

pub(super) const MAX_AGENTS: usize = 8;
pub(super) const MAX_DEPTH: u64 = 3;
pub(super) const MAX_CHILDREN: usize = 4;
pub(super) const MAX_QUEUE: usize = 5;

/// The code of a refusal.
pub(super) type Code = &'static str;

/// The parts of a payload that the rules read.
#[derive(PartialEq, Clone, Debug)]
pub(super) struct DraftPayload {
    pub(super) kind: MessageType,
    pub(super) attachments: Vec<ArtifactId>,
    /// Every artifact that the payload names, whether it is attached or not.
    pub(super) named: BTreeSet<ArtifactId>,
    pub(super) target: Option<String>,
    /// The requests that the message names in `request_id`.
    pub(super) requests: Vec<MessageId>,
    pub(super) words: String,
    pub(super) is_long: bool,
}

impl DraftPayload {
    /// Creates a payload that is only a text.
    pub(super) fn plain(words: String) -> Self {
        Self {
            kind: MessageType::General,
            attachments: Vec::new(),
            named: ArtifactId::all_in(&words).into_iter().collect(),
            target: None,
            requests: Vec::new(),
            words,
            is_long: false,
        }
    }
}

/// The agent that an actor wants to hire.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub(super) role: String,
    pub(super) brief_is_whole: bool,
    pub(super) collaborators: Vec<String>,
    pub(super) named: BTreeSet<ArtifactId>,
    /// The name that the actor gives; `Err` if the name is invalid.
    pub(super) name: Option<Result<String, ()>>,
}

/// The state that the society should have.
#[derive(Debug)]
pub(super) struct Society {
    pub(super) rows: Rows,
    /// The rows that the current operation has written.
    pub(super) touched: BTreeSet<Key>,
    /// All parties, in the order in which they were hired.
    pub(super) everybody: Vec<AgentId>,
    /// All roles, in the order in which they were created.
    pub(super) all_roles: Vec<RoleId>,
    /// The current time, in milliseconds since 1970.
    pub(super) now: i64,
    pub(super) turns: i64,
    pub(super) accepted: i64,
    pub(super) notes: i64,
    /// The payloads that agents sent to the person with `send_message`, each with its turn and message.
    pub(super) told_person: Vec<(i64, DraftPayload, MessageId)>,
    /// All artifacts, in the order in which they were stored.
    pub(super) stored: Vec<ArtifactId>,
    /// Additional outcomes of the current operation.
    pub(super) happened: Vec<&'static str>,
}

impl Society {
    /// Creates a society in which nothing has happened yet. Only root and the person exist, and they know each other.
    pub(super) fn new(now: i64) -> Self {
        let (user, root) = (AgentId::user(), AgentId::root());
        let mut rows = Rows::default();
        for (id, other) in [(&root, &user), (&user, &root)] {
            let agent = Agent {
                id: id.clone(),
                task: None,
                parent: None,
                role: None,
                name: None,
                depth: 0,
                hired_in: None,
                ended_at: None,
            };
            rows.put(agent.into());
            let contact = Contact {
                owner: id.clone(),
                agent: other.clone(),
                source: Source::System,
                introduced_by: None,
                since: 0,
            };
            rows.put(contact.into());
        }
        Self {
            rows,
            touched: BTreeSet::new(),
            everybody: vec![root, user],
            all_roles: Vec::new(),
            now,
            turns: 0,
            accepted: 0,
            notes: 0,
            told_person: Vec::new(),
            stored: Vec::new(),
            happened: Vec::new(),
        }
    }

    pub(super) fn put(&mut self, row: impl Into<Row>) {
        let row = row.into();
        self.touched.insert(row.key());
        self.rows.put(row);
    }

    pub(super) fn remove(&mut self, key: Key) {
        self.rows.remove(&key);
        self.touched.insert(key);
    }

    pub(super) fn change(&mut self, id: &MessageId, change: impl FnOnce(&mut Message)) {
        let mut message = self.rows.messages[id].clone();
        change(&mut message);
        self.put(message);
    }

    pub(super) fn is_live(&self, id: &AgentId) -> bool {
        self.rows.agents.get(id).is_some_and(|agent| agent.ended_at.is_none())
    }

    /// Returns the name of an agent's role; root and the person have their ids as names.
    pub(super) fn role_name(&self, id: &AgentId) -> String {
        let role = self.rows.agents[id].role.as_ref();
        role.map_or_else(|| id.to_string(), |role| self.rows.roles[role].name.clone())
    }

    /// Returns the contacts that an agent has in a task.
    pub(super) fn contacts(&self, owner: &Conversation) -> Vec<&Contact> {
        let from = (owner.agent.clone(), AgentId::new(""));
        let entries = self.rows.contacts.range(from..).take_while(|((of, _), _)| *of == owner.agent);
        let is_seen = |contact: &&Contact| {
            let task = &self.rows.agents[&contact.agent].task;
            task.is_none() || *task == Some(owner.task.clone())
        };
        entries.map(|(_, contact)| contact).filter(is_seen).collect()
    }

    /// Returns the contact with this id, or the only contact whose role has this name.
    pub(super) fn contact(&self, owner: &Conversation, meant: &str) -> Result<Option<AgentId>, Code> {
        let contacts: Vec<&AgentId> =
            self.contacts(owner).into_iter().map(|contact| &contact.agent).collect();
        if let Some(id) = contacts.iter().find(|id| id.as_str() == meant) {
            return Ok(Some((*id).clone()));
        }
        let of_role: Vec<_> = contacts.into_iter().filter(|id| self.role_name(id) == meant).collect();
        if of_role.len() > 1 { Err("ambiguous_name") } else { Ok(of_role.first().map(|id| (*id).clone())) }
    }

    /// Returns the contact that an id or a role name means. If the agent wrote its own id, returns the agent itself.
    pub(super) fn contact_or_self(&self, owner: &Conversation, meant: &str) -> Result<AgentId, Code> {
        let itself = (owner.agent.as_str() == meant).then(|| owner.agent.clone());
        self.contact(owner, meant)?.or(itself).ok_or("unknown_contact")
    }

    fn is_above(&self, above: &AgentId, below: &AgentId) -> bool {
        let mut at = self.rows.agents[below].parent.as_ref();
        while let Some(parent) = at {
            if parent == above {
                return true;
            }
            at = self.rows.agents[parent].parent.as_ref();
        }
        false
    }

    /// Returns all descendants of an agent in a task, in the order in which they were hired.
    pub(super) fn descendants(&self, of: &Conversation) -> Vec<AgentId> {
        let task = Some(&of.task);
        let is_below =
            |id: &&AgentId| self.rows.agents[*id].task.as_ref() == task && self.is_above(&of.agent, id);
        self.everybody.iter().filter(is_below).cloned().collect()
    }

    pub(super) fn may_open(&self, agent: &AgentId, artifact: &ArtifactId) -> bool {
        self.rows.artifact_grants.contains_key(&(agent.clone(), artifact.clone()))
    }

    pub(super) fn openable(&self, agent: &AgentId) -> Vec<&ArtifactId> {
        let from = (agent.clone(), ArtifactId::new(""));
        let grants = self.rows.artifact_grants.range(from..).take_while(|((of, _), _)| of == agent);
        grants.map(|((_, artifact), _)| artifact).collect()
    }

    pub(super) fn grant(&mut self, agent: &AgentId, artifact: &ArtifactId) {
        self.put(Grant { agent: agent.clone(), artifact: artifact.clone() });
    }

    /// Adds a contact. An existing contact stays unchanged.
    pub(super) fn introduce(
        &mut self,
        owner: &AgentId,
        agent: &AgentId,
        source: Source,
        by: Option<&AgentId>,
    ) {
        if self.rows.contacts.contains_key(&(owner.clone(), agent.clone())) {
            return;
        }
        self.put(Contact {
            owner: owner.clone(),
            agent: agent.clone(),
            source,
            introduced_by: by.cloned(),
            since: self.now,
        });
    }

    pub(super) fn role_of(&self, by: &Conversation, name: &str) -> Option<&Role> {
        let mut roles = self.rows.roles.values();
        roles.find(|role| role.creator == by.agent && role.task == by.task && role.name == name)
    }

    pub(super) fn create_role(&mut self, by: &Conversation, name: &str, id: RoleId) {
        let (task, creator) = (by.task.clone(), by.agent.clone());
        self.all_roles.push(id.clone());
        self.put(Role { id, task, creator, name: name.to_owned() });
    }

    /// Returns the role with this id or name, if the agent may hire into it.
    /// The agent or one of its descendants must have created the role.
    pub(super) fn usable_role(&self, by: &Conversation, meant: &str) -> Result<Option<&Role>, Code> {
        let may_use = |role: &&Role| {
            role.task == by.task && (role.creator == by.agent || self.is_above(&by.agent, &role.creator))
        };
        let usable: Vec<&Role> = self.rows.roles.values().filter(may_use).collect();
        if let Some(role) = usable.iter().find(|role| role.id.as_str() == meant) {
            return Ok(Some(role));
        }
        let named: Vec<&Role> = usable.into_iter().filter(|role| role.name == meant).collect();
        let own = named.iter().find(|role| role.creator == by.agent).copied();
        if own.is_none() && named.len() > 1 {
            return Err("ambiguous_name");
        }
        Ok(own.or(named.first().copied()))
    }

    pub(super) fn hire(&mut self, by: &Conversation, wish: &Wish, id: &AgentId) -> Result<RoleId, Code> {
        if !wish.brief_is_whole {
            return Err("invalid_task_brief");
        }
        let name = wish.name.clone().transpose().map_err(|()| "invalid_arguments")?;
        let role = self.usable_role(by, &wish.role)?.ok_or("not_child_role")?.id.clone();
        let depth = self.rows.agents[&by.agent].depth + 1;
        let in_task = |agent: &&Agent| agent.task.as_ref() == Some(&by.task) && agent.ended_at.is_none();
        let agents: Vec<&Agent> = self.rows.agents.values().filter(in_task).collect();
        let children = agents.iter().filter(|agent| agent.parent.as_ref() == Some(&by.agent)).count();
        if depth > MAX_DEPTH || children >= MAX_CHILDREN || agents.len() >= MAX_AGENTS {
            return Err("limit_reached");
        }
        let known = wish.collaborators.iter().map(|meant| self.contact(by, meant)?.ok_or("unknown_contact"));
        let known = known.collect::<Result<Vec<_>, _>>()?;
        self.put(Agent {
            id: id.clone(),
            task: Some(by.task.clone()),
            parent: Some(by.agent.clone()),
            role: Some(role.clone()),
            name,
            depth,
            hired_in: self.open_turn(by).map(|turn| turn.id),
            ended_at: None,
        });
        self.everybody.push(id.clone());
        self.introduce(id, &by.agent, Source::Parent, None);
        self.introduce(&by.agent, id, Source::Child, None);
        for collaborator in known {
            self.introduce(id, &collaborator, Source::Preset, Some(&by.agent));
        }
        self.pass_on(by, &wish.named, id);
        Ok(role)
    }

    /// Hires an agent and sends it a message. If the message is refused, nobody is hired.
    pub(super) fn hire_and_write(
        &mut self,
        by: &Conversation,
        wish: &Wish,
        letter: Result<&DraftPayload, Code>,
        id: &AgentId,
    ) -> Result<(RoleId, MessageId), Code> {
        if !wish.brief_is_whole {
            return Err("invalid_task_brief");
        }
        let letter = letter?;
        let role = self.hire(by, wish, id)?;
        match self.send(by, id.as_str(), letter, &Answering::AsWritten, None, LastWord::UnlessWaiting) {
            Ok(sent) => Ok((role, sent.id)),
            Err(code) => {
                for key in std::mem::take(&mut self.touched) {
                    self.rows.remove(&key);
                }
                self.everybody.pop();
                Err(code)
            }
        }
    }

    /// Lets the agent `to` open the named artifacts that the agent `by` may open.
    pub(super) fn pass_on(&mut self, by: &Conversation, named: &BTreeSet<ArtifactId>, to: &AgentId) {
        for artifact in named {
            if self.may_open(&by.agent, artifact) {
                self.grant(to, artifact);
            }
        }
    }

    pub(super) fn put_artifact(&mut self, by: &Conversation, id: &ArtifactId) {
        self.stored.push(id.clone());
        self.put(Artifact { id: id.clone(), task: by.task.clone(), owner: by.agent.clone() });
        if let Some(request) = self.worked_on(by) {
            let (agent, task, artifact) = (by.agent.clone(), by.task.clone(), id.clone());
            self.put(Output { agent, task, request: request.id, asker: request.sender, artifact });
        }
        self.grant(&by.agent, id);
        for other in self.everybody.clone() {
            if self.is_above(&other, &by.agent) {
                self.grant(&other, id);
            }
        }
    }

    /// Ends a descendant of the caller, and all agents below this descendant. `meant` names the descendant. Returns the
    /// id of the descendant, and how many agents have ended.
    pub(super) fn terminate(&mut self, by: &Conversation, meant: &str) -> Result<(AgentId, usize), Code> {
        let below = self.descendants(by);
        let mut of_role = below.iter().filter(|id| self.is_live(id) && self.role_name(id) == meant);
        let target = match below.iter().find(|id| id.as_str() == meant) {
            Some(target) => target.clone(),
            None => match (of_role.next(), of_role.next()) {
                (Some(only), None) => only.clone(),
                (None, _) => return Err("not_descendant"),
                (Some(_), Some(_)) => return Err("ambiguous_name"),
            },
        };
        if !self.is_live(&target) {
            return Err("agent_terminated");
        }
        let mut ended: Vec<AgentId> = below;
        ended.retain(|id| self.is_live(id) && (*id == target || self.is_above(&target, id)));
        ended.sort_by_key(|id| self.rows.agents[id].depth);
        let mut released = Vec::new();
        for id in &ended {
            let agent = Agent { ended_at: Some(self.now), ..self.rows.agents[id].clone() };
            self.put(agent);
            let open = self.rows.turns.values().find(|turn| turn.agent == *id && turn.state == "open");
            if let Some(turn) = open.cloned() {
                released.extend(self.close_turn(&turn, "stopped"));
            }
            self.drop_questions(id);
        }
        for id in &ended {
            self.return_mail(id);
            self.close_requests(id, &by.agent);
        }
        self.look_at_those_who_waited(released);
        Ok((target, ended.len()))
    }
}
