//! Decides what a copy of a task contains: the rows up to the beginning of a turn, in the state that they had then,
//! under new ids.

mod rename;

#[cfg(test)]
mod tests;

pub use rename::{Names, renamed};

use polity_society::workspace::{Access, Root};
use polity_store::fork::{MessageRow, Rows};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};

/// How the copy differs from the original task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The new service of the agent whose turn begins again in the copy.
    pub service: Option<String>,
    /// The new text of the person's message with which that turn begins.
    pub text: Option<String>,
}

/// Why a task cannot be copied at a turn. `fitting` are the turns at which it can be copied with the same change, newest
/// first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The task has no such turn.
    NoTurn { fitting: Vec<Fitting> },
    /// The turn did not begin with a message of the person, so its text cannot be replaced.
    NotYours { fitting: Vec<Fitting> },
}

/// A turn at which a task can be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fitting {
    pub turn: i64,
    /// The agent whose turn it is.
    pub agent: String,
}

/// The rows of a task as they stood when a turn began, and the agent and the message with which the copy continues.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    pub rows: Rows,
    /// The agent whose turn begins again in the copy.
    pub agent: String,
    /// The message with which the turn begins. In the copy, this message is queued again.
    pub message: String,
}

const ROOT: &str = "root";
const USER: &str = "user";
/// The parties that belong to all tasks. The copy uses the same parties, so their ids stay.
const PARTIES: [&str; 2] = [ROOT, USER];

/// Selects the rows of a task as they stood when a turn began.
///
/// Records, turns and messages are numbered in the order in which they were written. All other rows have times. A row
/// with a time is kept if its time is before the beginning of the turn, or in the same millisecond. There is one
/// exception: an agent is dropped if its row says that the agent was hired in this turn or in a later turn.
///
/// In the copy, a directory of the person is read-only. Otherwise the copy and the original would change the same
/// files.
pub fn kept(rows: Rows, turn: i64, change: &Change) -> Result<Kept, Refused> {
    let Some(again) = rows.turns.iter().find(|row| row.id == turn).cloned() else {
        return Err(Refused::NoTurn { fitting: fitting(&rows, change) });
    };
    let Some(cut) = rows.records.iter().filter(|row| row.turn == turn).map(|row| row.seq).min() else {
        return Err(Refused::NoTurn { fitting: fitting(&rows, change) });
    };
    let Some(begins) = rows.messages.iter().find(|row| row.id == again.began_by).cloned() else {
        return Err(Refused::NoTurn { fitting: fitting(&rows, change) });
    };
    if change.text.is_some() && begins.sender != USER {
        return Err(Refused::NotYours { fitting: fitting(&rows, change) });
    }
    let (now, first) = (again.created_at, begins.seq);
    let Rows {
        mut task,
        roles,
        agents,
        contacts,
        turns,
        messages,
        records,
        grants,
        inherited,
        approvals,
        permissions,
        seen,
        notes,
        outputs,
    } = rows;

    task.workspace = task.workspace.map(read_only);

    // The cut is the first record of the turn that begins again. The copy contains the records before the cut. A turn
    // ends in the transaction that writes its last record. So a turn whose last record comes after the cut was still
    // open at the cut.
    let last: HashMap<i64, i64> = records.iter().map(|row| (row.turn, row.seq)).collect();
    let mut turns: Vec<_> = turns.into_iter().filter(|row| row.id < turn).collect();
    for row in &mut turns {
        if last.get(&row.id).is_some_and(|last| *last > cut) {
            row.state = "open".to_owned();
        }
    }
    let records: Vec<_> = records.into_iter().filter(|row| row.seq < cut).collect();
    let states: HashMap<i64, String> = turns.iter().map(|row| (row.id, row.state.clone())).collect();

    let agents: Vec<_> = agents
        .into_iter()
        .filter(|row| row.created_at <= now && row.hired_in.is_none_or(|hired_in| hired_in < turn))
        .map(|mut row| {
            row.ended_at = row.ended_at.filter(|ended| *ended < now);
            row
        })
        .collect();
    let here: BTreeSet<String> =
        agents.iter().map(|row| row.id.clone()).chain(PARTIES.map(str::to_owned)).collect();
    let used: BTreeSet<String> = agents.iter().filter_map(|row| row.role.clone()).collect();
    let roles = roles
        .into_iter()
        .filter(|row| used.contains(&row.id) || row.created_at <= now && here.contains(&row.creator))
        .collect();
    let contacts = contacts
        .into_iter()
        .filter(|row| row.since <= now && here.contains(&row.owner) && here.contains(&row.agent))
        .collect();

    // Only messages that existed when the turn began are kept. A message that was sent in this turn or in a later turn
    // did not exist yet.
    let mut messages: Vec<_> = messages
        .into_iter()
        .filter(|row| row.seq <= first || row.created_at <= now && row.sent_in.is_none_or(|sent| sent < turn))
        .filter(|row| here.contains(&row.receiver))
        .collect();
    let there: BTreeSet<String> = messages.iter().map(|row| row.id.clone()).collect();
    let heard: HashMap<String, i64> =
        records.iter().filter_map(|row| Some((row.message.clone()?, row.turn))).collect();
    for message in &mut messages {
        as_it_stood(message, &there, &heard, &states, now);
    }
    if let (Some(text), Some(message)) =
        (&change.text, messages.iter_mut().find(|row| row.id == again.began_by))
    {
        message.body = json!({"text": text}).to_string();
    }

    let judged = judged(records.iter().map(|row| (row.turn, row.body.as_str())));
    let approvals = approvals
        .into_iter()
        .filter(|row| row.asked_at <= now && states.contains_key(&row.turn))
        .map(|mut row| {
            if states.get(&row.turn).is_some_and(|state| state == "open")
                && !judged.contains(&(row.turn, row.call.clone()))
            {
                row.state = "open".to_owned();
                (row.answer, row.note, row.answered_at) = (None, None, None);
            }
            row
        })
        .collect();
    let grants = grants.into_iter().filter(|row| row.stored_at <= now && here.contains(&row.agent)).collect();
    let inherited = inherited.into_iter().filter(|row| row.stored_at <= now).collect();
    let permissions = permissions.into_iter().filter(|row| row.created_at <= now).collect();
    let seen = seen
        .into_iter()
        .filter(|row| {
            row.since <= now && row.holder.strip_prefix("agent:").is_none_or(|agent| here.contains(agent))
        })
        .collect();
    // As soon as a held text is delivered or replaced, no row contains it any more. If this happened after the turn
    // began, the copy does not contain the text either. But the agent that wrote the text still has it in its history.
    // The same holds for an artifact that an agent stored for a request: no row contains it after the agent has named
    // it to the asker.
    let notes = notes
        .into_iter()
        .filter(|row| row.created_at <= now && here.contains(&row.agent) && there.contains(&row.request))
        .collect();
    let outputs = outputs
        .into_iter()
        .filter(|row| row.stored_at <= now && here.contains(&row.agent) && there.contains(&row.request))
        .collect();

    let mut rows = Rows {
        task,
        roles,
        agents,
        contacts,
        turns,
        messages,
        records,
        grants,
        inherited,
        approvals,
        permissions,
        seen,
        notes,
        outputs,
    };
    if let Some(service) = &change.service {
        give_service(&mut rows, &again.agent, service);
    }
    Ok(Kept { rows, agent: again.agent, message: again.began_by })
}

/// Returns the turns at which a task can be copied with a change, newest first.
fn fitting(rows: &Rows, change: &Change) -> Vec<Fitting> {
    let recorded: BTreeSet<i64> = rows.records.iter().map(|row| row.turn).collect();
    let senders: HashMap<&str, &str> =
        rows.messages.iter().map(|row| (row.id.as_str(), row.sender.as_str())).collect();
    let fits = |sender: &str| change.text.is_none() || sender == USER;
    // The turns are sorted by their numbers.
    let newest_first = rows.turns.iter().rev().filter(|row| recorded.contains(&row.id));
    newest_first
        .filter(|row| senders.get(row.began_by.as_str()).is_some_and(|sender| fits(sender)))
        .map(|row| Fitting { turn: row.id, agent: row.agent.clone() })
        .collect()
}

/// Makes the workspace of a task read-only if it is a directory of the person. `workspace` is JSON.
fn read_only(workspace: String) -> String {
    match serde_json::from_str(&workspace) {
        Ok(Root::Person { directory, access: Access::Write }) => {
            let root = Root::Person { directory, access: Access::Read };
            serde_json::to_string(&root).unwrap_or(workspace)
        }
        Ok(Root::Person { access: Access::Read, .. } | Root::Made) | Err(_) => workspace,
    }
}

/// Returns the tool calls that the person has allowed or refused: for each call, the turn and the id of the call.
fn judged<'a>(records: impl Iterator<Item = (i64, &'a str)>) -> BTreeSet<(i64, String)> {
    let read = |(turn, body): (i64, &str)| {
        let record: Value = serde_json::from_str(body).ok()?;
        let is_judged = record.get("record").and_then(Value::as_str) == Some("judged");
        is_judged.then(|| Some((turn, record.get("call")?.as_str()?.to_owned())))?
    };
    records.filter_map(read).collect()
}

/// Gives a message the state that it had when the turn began.
fn as_it_stood(
    message: &mut MessageRow,
    there: &BTreeSet<String>,
    heard: &HashMap<String, i64>,
    turns: &HashMap<i64, String>,
    now: i64,
) {
    message.answered_by = message.answered_by.take().filter(|answer| there.contains(answer));
    message.answered_in =
        message.answered_in.filter(|turn| turns.get(turn).is_some_and(|state| state == "open"));
    message.sent_in = message.sent_in.filter(|turn| turns.contains_key(turn));
    if message.answered_by.is_none() {
        message.reminded = 0;
    }
    if message.receiver == USER {
        // The person has already seen this message in the original task.
        message.state = "done".to_owned();
        return;
    }
    let Some(turn) = heard.get(&message.id) else {
        message.turn = None;
        let is_delayed = message.due_at.is_some_and(|due| due > now);
        if message.state != "bounced" {
            message.state = if is_delayed { "delayed" } else { "queued" }.to_owned();
        }
        return;
    };
    message.turn = Some(*turn);
    message.state = match turns.get(turn).map(String::as_str) {
        Some("open") => "in_turn",
        Some("failed" | "stopped") => "failed",
        _ if message.state == "unanswered" => "unanswered",
        _ => "done",
    }
    .to_owned();
}

/// Gives an agent another service. The row of the task contains the service of root. The row of a role contains the
/// service of the agents of this role.
fn give_service(rows: &mut Rows, agent: &str, service: &str) {
    if agent == ROOT {
        rows.task.service = Some(service.to_owned());
        return;
    }
    let role = rows.agents.iter().find(|row| row.id == agent).and_then(|row| row.role.clone());
    if let Some(role) = rows.roles.iter_mut().find(|row| Some(&row.id) == role.as_ref()) {
        role.service = service.to_owned();
    }
}
