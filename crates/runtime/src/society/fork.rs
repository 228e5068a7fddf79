//! Forks a task: the new task begins as a copy of the original task up to a turn, and begins this turn again.

use super::Society;
use super::writing::{MAX_KEY_BYTES, WriteError, check_service};
use polity_artifacts::BlobHash;
use polity_decide::fork::{self, Change, Fitting, Kept, Names, Refused};
use polity_decide::inline;
use polity_society::id::{AgentId, MessageId, RoleId, ServiceId, TaskId};
use polity_society::written::is_blank;
use polity_store::apply::excerpt;
use polity_store::fork::{self as rows, Next, Rows};
use polity_store::mint;
use polity_store::posts::{self, KeyedMessage};
use polity_store::{Error, Stopped, Tx, events, messages};
use polity_view::{Event, Forked};
use polity_workspaces::Cut;
use serde_json::json;
use std::collections::{BTreeSet, HashMap};

/// Maximum number of turns that the error about a turn that does not fit names.
const MOST_TURNS: usize = 10;

/// A fork that the person wants: which turn of which task runs again, and with which changes.
#[derive(Clone, Debug)]
pub struct Fork {
    /// The original task, which is copied.
    pub task: TaskId,
    /// The turn that the copy begins again.
    pub turn: i64,
    /// The service that the agent of this turn uses in the copy; `None` to keep its service.
    pub service: Option<ServiceId>,
    /// The new text of the message that began this turn; `None` to keep the text. Only a message of the person (a
    /// prompt or an answer to a question) can get a new text.
    pub text: Option<String>,
    /// The idempotency key. Under the same key, the same fork is made only once.
    pub key: Option<String>,
}

impl Society {
    /// Begins a new task. The new task is a copy of another task up to a turn, and it begins this turn again. The other
    /// task stays unchanged. When this function returns, the new task is stored durably.
    pub async fn fork(&self, fork: Fork) -> Result<Forked, WriteError> {
        let snapshot = self.handles.registry.current();
        if fork.key.as_ref().is_some_and(|key| key.is_empty() || key.len() > MAX_KEY_BYTES) {
            return Err(WriteError::invalid("key", "must have 1 to 255 bytes"));
        }
        if fork.text.as_deref().is_some_and(is_blank) {
            return Err(WriteError::invalid("text", "must not be empty"));
        }
        if fork.text.as_ref().is_some_and(|text| inline::holds_bytes(&json!(text))) {
            return Err(WriteError::invalid(
                "text",
                "must not contain a file as base64 or hexadecimal digits",
            ));
        }
        if let Some(service) = &fork.service {
            check_service(service, &snapshot)?;
        }
        let task = mint::task();
        let files = self.begin_workspace(&fork, &task).await?;
        let new = task.clone();
        let forked = self.handles.store.write_unless_refused(move |tx| Box::pin(write(tx, fork, new))).await;
        let needed = match &forked {
            Ok(forked) => forked.task == task,
            // Nobody knows whether the rows were written. Keep the files, because the new task needs them if its rows
            // were written.
            Err(WriteError::Store(_)) => true,
            Err(_) => false,
        };
        if files == Files::Copied && !needed {
            self.discard_workspace(&task).await;
        }
        forked
    }

    /// If polity made the workspace of the original task, gives the new task its files, as they stood when the turn
    /// began. This must happen before the rows of the new task are written, because its agents begin to work as soon as
    /// the rows are written. If the process dies in between, the files stay, and nobody uses them.
    async fn begin_workspace(&self, fork: &Fork, task: &TaskId) -> Result<Files, Error> {
        let Some(workspaces) = self.handles.hands.workspaces() else { return Ok(Files::Nothing) };
        let mut moment = self.handles.store.moment().await?;
        if let Some(key) = &fork.key
            && posts::get(&mut moment, key).await?.is_some()
        {
            return Ok(Files::Nothing);
        }
        let Some(original) = rows::read(&mut moment, &fork.task).await? else { return Ok(Files::Nothing) };
        drop(moment);
        let again = original.turns.iter().find(|row| row.id == fork.turn).map(|row| row.created_at);
        let (Some(at), Ok(kept)) = (again, fork::kept(original, fork.turn, &Change::default())) else {
            return Ok(Files::Nothing);
        };
        let Kept { rows, .. } = kept;
        if rows.task.workspace.is_some() {
            return Ok(Files::Nothing);
        }
        let ended = rows.turns.iter().filter(|row| row.state != "open").map(|row| row.id).collect();
        let cut = Cut { ended, at };
        match workspaces.fork(task, &fork.task, &cut, &self.stop).await {
            Ok(Some(_)) => Ok(Files::Copied),
            Ok(None) => Ok(Files::Nothing),
            Err(refusal) => {
                tracing::warn!(%task, from = %fork.task, ?refusal, "failed to copy the files of a task for its fork");
                self.discard_workspace(task).await;
                Ok(Files::Nothing)
            }
        }
    }

    async fn discard_workspace(&self, task: &TaskId) {
        if let Some(workspaces) = self.handles.hands.workspaces()
            && let Err(refusal) = workspaces.discard(task, &self.stop).await
        {
            tracing::warn!(%task, ?refusal, "failed to remove the files of a fork that was not begun");
        }
    }
}

/// Whether a fork has got files of the original task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Files {
    Copied,
    Nothing,
}

async fn write(tx: &mut Tx, fork: Fork, task: TaskId) -> Result<Forked, Stopped<WriteError>> {
    let refuse = |error| Err(Stopped::Refused(error));
    let content = content(&fork);
    if let Some(key) = &fork.key
        && let Some(before) = posts::get(&mut tx.connection, key).await?
    {
        if before.content != content {
            return refuse(WriteError::KeyReused);
        }
        let (message, _) = messages::with_state(&mut tx.connection, &before.message).await?;
        return Ok(Forked {
            task: message.task,
            agent: message.to,
            message: message.id,
            from: fork.task,
            turn: fork.turn,
            duplicate: true,
        });
    }
    let Some(original) = rows::read(&mut tx.connection, &fork.task).await? else {
        return refuse(WriteError::NoTask(fork.task));
    };
    let change = Change { service: fork.service.map(|service| service.as_str().to_owned()), text: fork.text };
    let kept = match fork::kept(original, fork.turn, &change) {
        Ok(kept) => kept,
        Err(Refused::NoTurn { fitting }) => {
            let rule = format!("must be a turn of the task{}", listed(&fitting));
            return refuse(WriteError::invalid("turn", &rule));
        }
        Err(Refused::NotYours { fitting }) => {
            let rule = format!("is possible only for a turn that your message began{}", listed(&fitting));
            return refuse(WriteError::invalid("text", &rule));
        }
    };
    let names = names(tx, &kept.rows, &fork.task, &task).await?;
    let id = |old: &str| names.ids.get(old).map_or_else(|| old.to_owned(), Clone::clone);
    let (agent, message) = (AgentId::new(id(&kept.agent)), MessageId::new(id(&kept.message)));
    let copy = fork::renamed(kept.rows, &names);
    rows::write(tx, &task, &copy).await?;
    tell(tx, &task, &fork.task, fork.turn, &copy).await?;
    if let Some(key) = &fork.key {
        let keyed = KeyedMessage { content, message: message.clone() };
        posts::insert(tx, key, &keyed, &task).await?;
    }
    Ok(Forked { task, agent, message, from: fork.task, turn: fork.turn, duplicate: false })
}

/// Lists turns for the end of a sentence, such as `: 12 (root), 11 (mara-7k2f) and 3 more`.
fn listed(fitting: &[Fitting]) -> String {
    let named: Vec<String> =
        fitting.iter().take(MOST_TURNS).map(|Fitting { turn, agent }| format!("{turn} ({agent})")).collect();
    match fitting.len() - named.len() {
        _ if named.is_empty() => ", but there is none".to_owned(),
        0 => format!(": {}", named.join(", ")),
        more => format!(": {} and {more} more", named.join(", ")),
    }
}

/// Returns a hash of a fork. Two forks with the same hash count as the same fork.
fn content(fork: &Fork) -> String {
    let Fork { task, turn, service, text, key: _ } = fork;
    let all = json!({"fork": task, "turn": turn, "service": service, "text": text});
    BlobHash::of(all.to_string().as_bytes()).as_str().to_owned()
}

/// Chooses new ids for the rows of the copy.
async fn names(tx: &mut Tx, rows: &Rows, old: &TaskId, new: &TaskId) -> Result<Names, Error> {
    let Next { message, turn, approval } = rows::next(&mut tx.connection).await?;
    let mut names = Names::default();
    let mut taken = BTreeSet::new();
    names.ids.insert(old.as_str().to_owned(), new.as_str().to_owned());
    for row in &rows.agents {
        // The new id keeps the readable beginning of the old id: the part before the last `-`.
        let readable = row.id.rsplit_once('-').map_or(row.id.as_str(), |(readable, _)| readable);
        let id = loop {
            let id = mint::agent_like(&mut tx.connection, readable).await?;
            if taken.insert(id.as_str().to_owned()) {
                break id;
            }
        };
        names.ids.insert(row.id.clone(), id.as_str().to_owned());
    }
    for row in &rows.roles {
        let id = loop {
            let id = mint::role(&mut tx.connection).await?;
            if taken.insert(id.as_str().to_owned()) {
                break id;
            }
        };
        names.ids.insert(row.id.clone(), id.as_str().to_owned());
    }
    for (row, number) in rows.messages.iter().zip(message..) {
        names.ids.insert(row.id.clone(), MessageId::from_sequence(number).as_str().to_owned());
        names.messages.insert(row.seq, number);
    }
    names.turns = rows.turns.iter().map(|row| row.id).zip(turn..).collect::<HashMap<_, _>>();
    names.approvals = rows.approvals.iter().map(|row| row.seq).zip(approval..).collect();
    Ok(names)
}

/// Writes the events about the fork: one about the new task, one about the fork, and one about each active agent.
async fn tell(tx: &mut Tx, task: &TaskId, from: &TaskId, turn: i64, copy: &Rows) -> Result<(), Error> {
    events::append(tx, &Event::TaskStarted { task: task.clone() }).await?;
    events::append(tx, &Event::TaskForked { task: task.clone(), from: from.clone(), turn }).await?;
    for row in copy.agents.iter().filter(|row| row.ended_at.is_none()) {
        let brief: serde_json::Value =
            row.brief.as_deref().and_then(|brief| serde_json::from_str(brief).ok()).unwrap_or_default();
        let event = Event::AgentCreated {
            task: task.clone(),
            agent: AgentId::new(row.id.clone()),
            parent: AgentId::new(row.parent.clone().unwrap_or_default()),
            role: RoleId::new(row.role.clone().unwrap_or_default()),
            objective: excerpt(brief["objective"].as_str().unwrap_or_default()),
        };
        events::append(tx, &event).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turns_that_fit_are_listed_in_short() {
        let turns = |count: i64| -> Vec<Fitting> {
            (0..count).map(|number| Fitting { turn: count - number, agent: "root".to_owned() }).collect()
        };
        assert_eq!(listed(&[]), ", but there is none");
        assert_eq!(listed(&turns(2)), ": 2 (root), 1 (root)");
        assert!(listed(&turns(12)).ends_with(", 3 (root) and 2 more"), "{}", listed(&turns(12)));
    }
}
