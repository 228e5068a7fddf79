//! Plays a sequence on the database and on the reference model, and compares the two after each operation.

use super::choice::{self, Callers, TASKS};
use super::invariants::{self, OperationEffect};
use super::observed::{Changes, Observed, read_all};
use super::operation::{Flaw, Operation, Payload};
use super::rows::{Key, Message, NoticeContents, Rows};
use super::society::{Code, DraftPayload, Society};
use crate::driver::closing;
use crate::handles::Handles;
use crate::testing::code;
use crate::tools::{self, Context};
use polity_artifacts::Prepared;
use polity_decide::result::Misfit;
use polity_llm::{Arguments, ToolCall};
use polity_registry::Snapshot;
use polity_society::id::{AgentId, ArtifactId, RoleId, ServiceId, TaskId};
use polity_society::message::{MessageState, MessageType};
use polity_society::notice::Notice;
use polity_society::rules::{self, LastWord};
use polity_society::time::Timestamp;
use polity_store::record::ToolResult;
use polity_store::{Conversation, Error, Tx, apply, messages, turns};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Whether a trace of the sequence is recorded for people to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tracing {
    On,
    Off,
}

/// How often each operation had each outcome: `ok` or the code of a refusal.
pub(super) type Outcomes = BTreeMap<(&'static str, String), u32>;

/// An operation can have further outcomes besides `ok` or a refusal. They are counted under this name instead of the
/// name of the operation.
pub(super) const BY_THE_WAY: &str = "by the way";

/// A society during the play of a sequence: the state that the reference model expects, and the state of the
/// database.
pub(super) struct Play {
    society: Society,
    observed: Observed,
    snapshot: Arc<Snapshot>,
    handles: Arc<Handles>,
    /// An artifact whose bytes are on disk. Each stored artifact is a copy of it with another id.
    artifact: Prepared,
    artifacts: u32,
    tracing: Tracing,
    pub(super) trace: Vec<String>,
    /// How often each outcome has occurred.
    pub(super) outcomes: Outcomes,
}

/// The real result of one operation, and the expected result.
struct Played {
    verb: &'static str,
    what: String,
    said: Value,
    expected: Value,
}

impl Played {
    fn silent(verb: &'static str, what: impl Into<String>) -> Self {
        Self { verb, what: what.into(), said: Value::Null, expected: Value::Null }
    }

    /// Builds the result of an operation that is skipped, because no agent or request fits it.
    fn nothing(verb: &'static str) -> Self {
        Self::silent(verb, format!("nobody can {verb}"))
    }
}

impl Play {
    pub(super) fn new(
        snapshot: Arc<Snapshot>,
        handles: Arc<Handles>,
        artifact: Prepared,
        tracing: Tracing,
    ) -> Self {
        Self {
            society: Society::new(1_000),
            observed: Observed::default(),
            snapshot,
            handles,
            artifact,
            artifacts: 0,
            tracing,
            trace: Vec::new(),
            outcomes: Outcomes::new(),
        }
    }

    /// Plays operations within one transaction of a database that was just opened. The error is the first violation.
    pub(super) async fn play(&mut self, tx: &mut Tx, operations: &[Operation]) -> Result<(), String> {
        let failed = |error: Error| polity_view::in_full(&error);
        self.observed = Observed::begin(tx).await.map_err(failed)?;
        self.compare_all("after opening the database")?;
        for operation in operations {
            self.society.touched.clear();
            self.society.now += 1;
            tx.now = Timestamp::from_millis(self.society.now);
            let played = self.perform(tx, operation).await.map_err(failed)?;
            let changes = self.observed.look(tx).await.map_err(failed)?;
            self.check(&played, &changes)?;
        }
        // Compare all rows, in case the list of changes has missed a change.
        self.observed.rows = read_all(&mut tx.connection).await.map_err(failed)?;
        self.compare_all("at the end")
    }

    fn compare_all(&self, when: &str) -> Result<(), String> {
        let (is, should_be) = (&self.observed.rows, &self.society.rows);
        if is == should_be {
            return Ok(());
        }
        let keys: BTreeSet<Key> = is.keys().into_iter().chain(should_be.keys()).collect();
        Err(format!("{when}: {}", differences(is, should_be, keys.iter()).join("\n")))
    }

    fn check(&mut self, played: &Played, changes: &Changes) -> Result<(), String> {
        let outcome = code(&played.said);
        *self.outcomes.entry((played.verb, outcome.to_owned())).or_default() += 1;
        for happened in self.society.happened.drain(..) {
            *self.outcomes.entry((BY_THE_WAY, happened.to_owned())).or_default() += 1;
        }
        if self.tracing == Tracing::On {
            self.trace.push(format!("{} -> {}", played.what, played.said));
        }
        let mut violations = Vec::new();
        if played.said != played.expected {
            violations.push(format!("the expected result is {}", played.expected));
        }
        if outcome != "ok" && !changes.is_empty() {
            violations.push(format!("a refusal has changed something: {changes:?}"));
        }
        let changed = changes.rows.iter().map(|change| &change.key);
        let touched: BTreeSet<&Key> = changed.chain(&self.society.touched).collect();
        violations.extend(differences(&self.observed.rows, &self.society.rows, touched));
        violations.extend(invariants::violations(&OperationEffect { after: &self.observed.rows, changes }));
        if violations.is_empty() { Ok(()) } else { Err(violations.join("\n")) }
    }

    async fn perform(&mut self, tx: &mut Tx, operation: &Operation) -> Result<Played, Error> {
        let agent = |by| choice::actor(&self.society, by, Callers::Agents);
        match operation {
            Operation::CreateRole { by, name, flaw } => {
                let (by, name) = (agent(*by), choice::role_name(*name));
                let prompt = if *flaw == Flaw::None { "…" } else { " " };
                let said =
                    self.call(tx, &by, "create_role", json!({"name": name, "rolePrompt": prompt})).await?;
                let is_valid = *flaw == Flaw::None && !name.contains('【');
                let existing = self.society.role_of(&by, name).map(|role| role.id.clone());
                let expected = match existing {
                    _ if !is_valid => refused("invalid_arguments"),
                    Some(id) => json!({"id": id, "name": name, "existing": true}),
                    None => {
                        let id = RoleId::new(text(&said.json, "id"));
                        self.society.create_role(&by, name, id.clone());
                        json!({"id": id, "name": name})
                    }
                };
                Ok(said.against(expected, &["id", "name", "existing"]))
            }
            Operation::FindRole { by, role } => {
                let by = agent(*by);
                let name = choice::role(&self.society, &by, *role);
                let said = self.call(tx, &by, "find_role_by_name", json!({"name": name})).await?;
                let role = self.society.usable_role(&by, &name);
                let expected = role.map_or_else(refused, |role| {
                    role.map_or(Value::Null, |role| json!({"id": role.id, "name": role.name}))
                });
                Ok(said.against(expected, &["id", "name"]))
            }
            Operation::Spawn { by, hire } => {
                let by = agent(*by);
                let (brief, wish) = choice::hire(&self.society, &by, hire);
                let arguments = json!({"roleId": wish.role, "taskBrief": brief, "name": hire.name});
                let said = self.call(tx, &by, "spawn_agent", arguments).await?;
                let id = AgentId::new(text(&said.json, "id"));
                let role = self.society.hire(&by, &wish, &id);
                let expected = role.map_or_else(refused, |role| json!({"id": id, "roleId": role}));
                Ok(said.against(expected, &["id", "roleId"]))
            }
            Operation::SpawnWithTask { by, hire, message } => {
                let by = agent(*by);
                let (brief, wish) = choice::hire(&self.society, &by, hire);
                let (message, letter) = choice::payload(&self.society, &by, message, Some(&wish));
                let arguments = json!({"roleId": wish.role, "taskBrief": brief, "initialMessage": message, "name": hire.name});
                let said = self.call(tx, &by, "spawn_agent_with_task", arguments).await?;
                let id = AgentId::new(text(&said.json, "id"));
                let hired =
                    self.society.hire_and_write(&by, &wish, letter.as_ref().map_err(|code| *code), &id);
                let expected = hired.map_or_else(
                    refused,
                    |(role, message)| json!({"id": id, "roleId": role, "messageId": message}),
                );
                Ok(said.against(expected, &["id", "roleId", "messageId"]))
            }
            Operation::Send { by, to, payload, delay } => {
                let by = choice::actor(&self.society, *by, Callers::AgentsAndThePerson);
                let to: Vec<String> = to.iter().map(|whom| choice::whom(&self.society, &by, *whom)).collect();
                // Nobody can assign a task to the person, so an assignment to the person counts as an ordinary
                // message, even without a brief.
                let to_person = !to.is_empty() && to.iter().all(|to| to == AgentId::user().as_str());
                let lacks_brief =
                    payload.kind == MessageType::TaskAssignment && payload.flaw == Flaw::Incomplete;
                let (written, letter) = if to_person && lacks_brief {
                    let meant = Payload { kind: MessageType::General, flaw: Flaw::None, ..payload.clone() };
                    let (mut written, letter) = choice::payload(&self.society, &by, &meant, None);
                    written["message_type"] = json!(MessageType::TaskAssignment);
                    (written, letter)
                } else {
                    choice::payload(&self.society, &by, payload, None)
                };
                let arguments = json!({"to": to, "payload": written, "delayMs": delay});
                let said = self.call(tx, &by, "send_message", arguments).await?;
                let due_at = delay.map(|delay| self.society.now.saturating_add_unsigned(delay));
                let turn = self.society.open_turn(&by);
                let last_word = turn.map_or(LastWord::UnlessWaiting, |turn| self.society.last_word(turn));
                let letter = letter.as_ref().map_err(|code| *code);
                let sent = self.society.send_to_each(&by, &to, letter, due_at, last_word);
                Ok(said.against(sent.unwrap_or_else(refused), &["messageIds", "refused", "ignored"]))
            }
            Operation::Terminate { by, whom } => {
                let by = agent(*by);
                let whom = choice::whom(&self.society, &by, *whom);
                let said = self.call(tx, &by, "terminate_agent", json!({"agentId": whom})).await?;
                let ended = self.society.terminate(&by, &whom);
                let expected = ended.map_or_else(refused, |(id, ended)| json!({"id": id, "ended": ended}));
                Ok(said.against(expected, &["id", "ended"]))
            }
            Operation::PutArtifact { by } => {
                let by = agent(*by);
                self.artifacts += 1;
                let said =
                    self.call(tx, &by, "put_artifact", json!({"type": "note", "content": "一"})).await?;
                let id = ArtifactId::new(format!("x{}", self.artifacts));
                self.society.put_artifact(&by, &id);
                Ok(said.against(json!({"ref": id.reference()}), &["ref"]))
            }
            Operation::PutReference { by, which } => {
                let by = agent(*by);
                let id = choice::which(&self.society, &by.agent, *which);
                let arguments = json!({"type": "note", "content": id.reference()});
                let said = self.call(tx, &by, "put_artifact", arguments).await?;
                let expected = self.opened(&by, &id, "ref");
                Ok(said.against(expected, &["ref"]))
            }
            Operation::GetArtifact { by, which } => {
                let by = agent(*by);
                let id = choice::which(&self.society, &by.agent, *which);
                let said = self.call(tx, &by, "get_artifact", json!({"ref": id.reference()})).await?;
                let expected = self.opened(&by, &id, "opened");
                Ok(said.against(expected, &["opened"]))
            }
            Operation::ListArtifacts { by } => {
                let by = agent(*by);
                let said = self.call(tx, &by, "list_artifacts", json!({})).await?;
                let openable = self.society.openable(&by.agent).into_iter();
                let of_task = openable.filter(|id| self.society.rows.artifacts[*id].task == by.task);
                let expected: BTreeSet<String> = of_task.map(ArtifactId::reference).collect();
                Ok(said.listing("artifacts", "ref", &expected))
            }
            Operation::ListContacts { by } => {
                let by = agent(*by);
                let said = self.call(tx, &by, "list_contacts", json!({})).await?;
                let contacts = self.society.contacts(&by);
                let expected = contacts.iter().map(|contact| contact.agent.to_string()).collect();
                Ok(said.listing("contacts", "id", &expected))
            }
            Operation::BeginTurn { .. }
            | Operation::TakeMail { .. }
            | Operation::EndTurn { .. }
            | Operation::FailTurn { .. } => self.turn(tx, operation).await,
            Operation::Overtake { request } => self.overtake(tx, *request).await,
            Operation::Show => {
                let waiting = self
                    .society
                    .mail(|message| message.receiver.is_user() && message.state == MessageState::Queued);
                let Some(message) = waiting.first() else { return Ok(Played::nothing("show")) };
                messages::mark_shown(tx, &message.id).await?;
                self.society.show(&message.id);
                Ok(Played::silent("show", format!("show {}", message.id)))
            }
            Operation::Wait { milliseconds } => {
                self.society.now += milliseconds;
                tx.now = Timestamp::from_millis(self.society.now);
                messages::deliver_due(tx).await?;
                self.society.deliver_due();
                Ok(Played::silent("wait", format!("wait {milliseconds} ms")))
            }
            Operation::Nudge { task } => {
                let task = TaskId::new(TASKS[usize::from(*task)]);
                let root = Conversation { agent: AgentId::root(), task: task.clone() };
                let mut open = self.society.open_requests(&root).into_iter();
                let about = open.find(|request| request.sender.is_user()).map(|request| request.id.clone());
                apply::tell(tx, &self.snapshot, &task, &root.agent, Notice::Nudge, about.clone()).await?;
                self.society.tell(&task, &root.agent, "nudge", about, NoticeContents::default());
                Ok(Played::silent("nudge", format!("nudge root in {task}")))
            }
            // The database is closed and opened between two calls of `play`.
            Operation::Restart => Ok(Played::silent("restart", "restart")),
        }
    }

    async fn turn(&mut self, tx: &mut Tx, operation: &Operation) -> Result<Played, Error> {
        let society = &self.society;
        let can_begin = |of: &Conversation| {
            let waits = |message| Society::is_waiting_for(message, of);
            society.open_turn(of).is_none() && society.rows.messages.values().any(waits)
        };
        let is_open = |of: &Conversation| society.open_turn(of).is_some();
        let (verb, of) = match operation {
            Operation::BeginTurn { mailbox } => {
                ("begin_turn", choice::pick_conversation(society, *mailbox, can_begin))
            }
            Operation::TakeMail { turn } => ("take_mail", choice::pick_conversation(society, *turn, is_open)),
            Operation::EndTurn { turn, .. } => {
                ("end_turn", choice::pick_conversation(society, *turn, is_open))
            }
            Operation::FailTurn { turn } => ("fail_turn", choice::pick_conversation(society, *turn, is_open)),
            _ => unreachable!("this is not about turns: {operation:?}"),
        };
        let Some(of) = of else { return Ok(Played::nothing(verb)) };
        let (said, expected) = match operation {
            Operation::BeginTurn { .. } => self.begin_turn(tx, &of).await?,
            Operation::TakeMail { .. } => self.take_mail(tx, &of).await?,
            Operation::EndTurn { text, .. } => {
                let letter = choice::closing_text(&self.society, &of, *text);
                self.end_turn(tx, &of, letter.as_ref()).await?;
                (Value::Null, Value::Null)
            }
            _ => {
                let turn = self.society.open_turn(&of).cloned().unwrap();
                let open = turns::open(&mut tx.connection, &of).await?.unwrap();
                let service = ServiceId::new("words");
                closing::fail(tx, &self.snapshot, &of, &open, &service, "x").await?;
                self.society.fail_turn(&turn);
                (Value::Null, Value::Null)
            }
        };
        let what = match operation {
            Operation::EndTurn { text, .. } => format!("{} {verb} in {}, saying {text:?}", of.agent, of.task),
            _ => format!("{} {verb} in {}", of.agent, of.task),
        };
        Ok(Played { verb, what, said, expected })
    }

    /// An agent answers in the middle of its turn, and the asker reads the answer at once.
    async fn overtake(&mut self, tx: &mut Tx, number: u8) -> Result<Played, Error> {
        let Some((by, request, asker)) = choice::overtaking(&self.society, number) else {
            return Ok(Played::nothing("overtake"));
        };
        let words = "先答";
        let arguments = json!({"to": asker.agent, "payload": {"text": words, "request_id": request}});
        let said = self.call(tx, &by, "send_message", arguments).await?;
        let letter = DraftPayload { requests: vec![request], ..DraftPayload::plain(words.to_owned()) };
        let turn = self.society.open_turn(&by).unwrap();
        let last_word = self.society.last_word(turn);
        let to = [asker.agent.to_string()];
        let sent = self.society.send_to_each(&by, &to, Ok(&letter), None, last_word);
        let played = said.against(sent.unwrap_or_else(refused), &["messageIds", "refused", "ignored"]);
        let mut said = vec![played.said];
        let mut expected = vec![played.expected];
        if self.society.rows.messages.values().any(|message| Society::is_waiting_for(message, &asker)) {
            for (is, should_be) in [self.begin_turn(tx, &asker).await?, self.take_mail(tx, &asker).await?] {
                said.push(is);
                expected.push(should_be);
            }
            self.end_turn(tx, &asker, None).await?;
        }
        let what = format!("{}, which {} reads at once", played.what, asker.agent);
        Ok(Played { verb: "overtake", what, said: json!(said), expected: json!(expected) })
    }

    /// Begins a turn as the driver does. Returns the real result and the expected result.
    async fn begin_turn(&mut self, tx: &mut Tx, of: &Conversation) -> Result<(Value, Value), Error> {
        let society = &mut self.society;
        let expected = society.mail(|message| Society::is_waiting_for(message, of))[0].id.clone();
        let first = messages::next_for_turn(&mut tx.connection, of).await?.unwrap();
        let subjects = messages::requests(&mut tx.connection, rules::subjects(&first)).await?;
        let open = turns::begin(tx, of, &first.id, rules::works_on(&first, &subjects)).await?;
        messages::take(tx, &first.id, open.id).await?;
        society.begin_turn(of, &expected);
        let said = json!({"message": first.id, "turn": open.id.number()});
        Ok((said, json!({"message": expected, "turn": society.turns})))
    }

    async fn take_mail(&mut self, tx: &mut Tx, of: &Conversation) -> Result<(Value, Value), Error> {
        let turn = self.society.open_turn(of).unwrap().id;
        let open = turns::open(&mut tx.connection, of).await?.unwrap();
        let taken = messages::take_through(tx, of, open.id, i64::MAX).await?;
        let waiting = self.society.mail(|message| Society::is_waiting_for(message, of));
        for message in &waiting {
            self.society.take(&message.id, turn);
        }
        let waiting: Vec<_> = waiting.into_iter().map(|message| message.id).collect();
        Ok((json!(taken), json!(waiting)))
    }

    async fn end_turn(
        &mut self,
        tx: &mut Tx,
        of: &Conversation,
        letter: Option<&DraftPayload>,
    ) -> Result<(), Error> {
        let turn = self.society.open_turn(of).cloned().unwrap();
        let open = turns::open(&mut tx.connection, of).await?.unwrap();
        let is_heard =
            |message: &Message| message.turn == Some(turn.id) && message.state == MessageState::InTurn;
        let heard = self.society.mail(is_heard).len() as u64;
        let text = letter.map(|letter| letter.words.as_str());
        let last = closing::LastText { text, heard, misfit: Misfit::Refused };
        closing::finish(tx, &self.handles, &self.snapshot, of, &open, last).await?;
        self.society.end_turn(&turn, letter);
        Ok(())
    }

    fn opened(&self, by: &Conversation, id: &ArtifactId, field: &str) -> Value {
        if self.society.may_open(&by.agent, id) {
            json!({field: id.reference()})
        } else {
            refused("artifact_not_found")
        }
    }

    /// Calls a tool as the driver does.
    async fn call(
        &self,
        tx: &mut Tx,
        caller: &Conversation,
        tool: &'static str,
        arguments: Value,
    ) -> Result<ToolAnswer, Error> {
        let what = match self.tracing {
            Tracing::On => format!("{} {tool} in {} {arguments}", caller.agent, caller.task),
            Tracing::Off => format!("{} {tool}", caller.agent),
        };
        let Value::Object(arguments) = arguments else { unreachable!("tools take objects") };
        let call = ToolCall {
            id: "call_1".to_owned(),
            name: tool.to_owned(),
            arguments: Arguments::Object(arguments),
            extra: Map::new(),
        };
        let mut prepared = HashMap::new();
        if let Some(Ok(tools::Incoming::Text(_))) = tools::incoming(&call, &self.snapshot.settings.limits) {
            let mut stored = self.artifact.clone();
            stored.artifact.id = ArtifactId::new(format!("x{}", self.artifacts));
            prepared.insert(call.id.clone(), Ok(stored));
        }
        let mut last_word = LastWord::UnlessWaiting;
        if self.society.open_turn(caller).is_some() {
            let open = turns::open(&mut tx.connection, caller).await?.unwrap();
            last_word = closing::last_word(&open);
        }
        let context = Context {
            caller,
            last_word,
            misfit: Misfit::Refused,
            snapshot: &self.snapshot,
            no_worktree: None,
            prepared: &prepared,
        };
        let json = match tools::run(tx, &context, &call).await?.result {
            ToolResult::Json(value) => value,
            ToolResult::Outside { .. } => panic!("no society tool acts outside"),
            ToolResult::Artifact { artifact, .. } => json!({"opened": artifact.reference()}),
        };
        Ok(ToolAnswer { tool, what, json })
    }
}

/// The result of a tool call.
struct ToolAnswer {
    tool: &'static str,
    what: String,
    json: Value,
}

impl ToolAnswer {
    /// Compares these fields of the result with the expected fields. For a refusal, only the code is compared.
    fn against(mut self, expected: Value, fields: &[&str]) -> Played {
        if let Value::Object(said) = &mut self.json {
            if said.contains_key("error") {
                said.retain(|field, _| field == "error");
            }
            said.retain(|field, _| field == "error" || fields.contains(&field.as_str()));
            if let Some(Value::Array(refused)) = said.get_mut("refused") {
                for refused in refused.iter_mut().filter_map(Value::as_object_mut) {
                    refused.retain(|field, _| field == "to" || field == "error");
                }
            }
        }
        Played { verb: self.tool, what: self.what, said: self.json, expected }
    }

    /// Compares one field of all items of a list with the expected values. The order does not matter.
    fn listing(self, list: &str, field: &str, expected: &BTreeSet<String>) -> Played {
        let items = self.json[list].as_array().unwrap();
        let said: BTreeSet<&str> = items.iter().map(|item| item[field].as_str().unwrap()).collect();
        let said = json!({"listed": said, "number": items.len()});
        Played {
            verb: self.tool,
            what: self.what,
            said,
            expected: json!({"listed": expected, "number": expected.len()}),
        }
    }
}

fn refused(code: Code) -> Value {
    json!({"error": code})
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or("nothing-0")
}

fn differences<'a>(is: &Rows, should_be: &Rows, keys: impl IntoIterator<Item = &'a Key>) -> Vec<String> {
    let mut differences = Vec::new();
    for key in keys {
        let (is, should_be) = (is.get(key), should_be.get(key));
        if is != should_be {
            differences
                .push(format!("the rows are not what was expected\n      is {is:?}\n  not {should_be:?}"));
        }
    }
    differences
}
