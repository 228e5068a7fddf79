//! Reads the messages between two parties.

use super::row::read;
use crate::{Conversation, Error, Tx, damaged};
use polity_society::id::{AgentId, MessageId, TaskId, TurnId};
use polity_society::message::{Body, Payload, RESULT, SCHEMA_ERRORS};
use polity_society::notice::Notice;
use polity_society::rules::{Earlier, Provisional, subjects};
use polity_sql::Connection;

const SETTLE_INTERIM: &str = "UPDATE messages SET finality = 'final' WHERE id = ?1 AND finality = 'interim'";
/// The messages from one party to another after the message with number ?4, newest first.
const TOLD_SINCE: &str = "SELECT * FROM messages INDEXED BY messages_between
    WHERE task = ?3 AND sender = ?1 AND receiver = ?2 AND seq > ?4 ORDER BY seq DESC LIMIT 1000";
const FIRST_BETWEEN: &str = "SELECT id FROM messages INDEXED BY messages_between
    WHERE task = ?3 AND sender = ?1 AND receiver = ?2 ORDER BY seq LIMIT 1";
const SENT_TO_PERSON: &str = "SELECT * FROM messages INDEXED BY messages_between
    WHERE task = ?2 AND sender = ?1 AND receiver = 'user' AND sent_in = ?3 ORDER BY seq DESC";
const PROVISIONAL: &str = "SELECT * FROM messages INDEXED BY messages_between
    WHERE task = ?2 AND sender = ?1 AND receiver = 'user' AND expects = 'nothing' AND type <> 'status_report'
    ORDER BY seq DESC LIMIT 1";
/// The number of the newest message from one agent to another.
const NEWEST_BETWEEN: &str = "SELECT seq FROM messages INDEXED BY messages_between
    WHERE task = ?3 AND sender = ?1 AND receiver = ?2 ORDER BY seq DESC LIMIT 1";
/// The newest message between the first agent of a pair and a third party. `SENT_ELSEWHERE` finds the newest message
/// that the first agent sent to a third party. `HEARD_ELSEWHERE` finds the newest message that it received from one.
/// Notices of the system do not count.
const SENT_ELSEWHERE: &str = "SELECT max(seq) FROM messages INDEXED BY messages_between
    WHERE task = ?3 AND sender = ?1 AND receiver NOT IN (?1, ?2)";
const HEARD_ELSEWHERE: &str = "SELECT max(seq) FROM messages INDEXED BY messages_heard
    WHERE task = ?3 AND receiver = ?1 AND sender NOT IN (?1, ?2, 'system')";
/// The time when an agent last stored an artifact or hired an agent. Such work ends a series of messages between two
/// agents. Times after ?3 (now) are ignored: they were written before the clock was set back. With such a time, every
/// new message would seem older than the work.
const OTHER_WORK: &str =
    "SELECT max(coalesce((SELECT max(created_at) FROM artifacts WHERE owner = ?1 AND task = ?2 AND created_at <= ?3), 0),
    coalesce((SELECT max(created_at) FROM agents WHERE parent = ?1 AND task = ?2 AND created_at <= ?3), 0))";
/// The senders of the messages between two agents, newest first. The statement reads at most as many messages as its
/// `LIMIT`. This is enough, because the setting `maxPairExchanges` bounds such a series of messages, and any sensible
/// value of the setting is below the `LIMIT`.
const BETWEEN: &str = "SELECT sender FROM (
    SELECT seq, sender FROM messages INDEXED BY messages_between
    WHERE task = ?3 AND sender = ?1 AND receiver = ?2 AND seq > ?4 AND created_at >= ?5
    UNION SELECT seq, sender FROM messages INDEXED BY messages_between
    WHERE task = ?3 AND sender = ?2 AND receiver = ?1 AND seq > ?4 AND created_at >= ?5)
    ORDER BY seq DESC LIMIT 10000";
const TOLD: &str = "SELECT EXISTS (SELECT 1 FROM messages
    WHERE receiver = ?1 AND task = ?2 AND sender = 'system' AND seq > ?3 AND body = ?4)";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[
    SETTLE_INTERIM,
    TOLD_SINCE,
    FIRST_BETWEEN,
    SENT_TO_PERSON,
    PROVISIONAL,
    NEWEST_BETWEEN,
    SENT_ELSEWHERE,
    HEARD_ELSEWHERE,
    OTHER_WORK,
    BETWEEN,
    TOLD,
];

/// Marks an interim message to the person as final, because no further message will follow.
pub async fn settle_interim(tx: &mut Tx, id: &MessageId) -> Result<(), Error> {
    polity_sql::query(SETTLE_INTERIM).bind(id.as_str()).execute(&mut tx.connection).await?;
    polity_points::point!("messages::interim_settled");
    Ok(())
}

/// Returns the newest message with this text that answers, or is about, all of these requests.
pub async fn said_before(
    connection: &mut Connection,
    sender: &Conversation,
    to: &AgentId,
    requests: &[MessageId],
    text: &str,
) -> Result<Option<Earlier>, Error> {
    let Some(first) = requests.iter().filter_map(MessageId::sequence).min() else { return Ok(None) };
    let query = polity_sql::query(TOLD_SINCE).bind(sender.agent.as_str()).bind(to.as_str());
    let rows = query.bind(sender.task.as_str()).bind(first).fetch_all(connection).await?;
    for row in &rows {
        let message = read(row)?;
        let concerns = requests.iter().all(|request| subjects(&message).any(|subject| subject == request));
        let Body::Payload(payload) = &message.body else { continue };
        if concerns && payload.words().is_some_and(|words| words.trim() == text.trim()) {
            return Ok(Some(Earlier { id: message.id, finality: message.finality }));
        }
    }
    Ok(None)
}

/// Returns the id of the first message from one agent to another in a task.
pub async fn first_between(
    connection: &mut Connection,
    from: &AgentId,
    to: &Conversation,
) -> Result<Option<MessageId>, Error> {
    let query = polity_sql::query_scalar(FIRST_BETWEEN).bind(from.as_str()).bind(to.agent.as_str());
    let id: Option<String> = query.bind(to.task.as_str()).fetch_optional(connection).await?;
    Ok(id.map(MessageId::new))
}

/// Looks for a message from an agent to the person, sent in this turn with exactly this payload, and returns its id.
pub async fn sent_to_person(
    connection: &mut Connection,
    sender: &Conversation,
    turn: TurnId,
    payload: &Payload,
) -> Result<Option<MessageId>, Error> {
    let query = polity_sql::query(SENT_TO_PERSON)
        .bind(sender.agent.as_str())
        .bind(sender.task.as_str())
        .bind(turn.number());
    for row in &query.fetch_all(connection).await? {
        let message = read(row)?;
        let Body::Payload(mut said) = message.body else { continue };
        // The system added these fields; the agent did not send them.
        said.fields.shift_remove(RESULT);
        said.fields.shift_remove(SCHEMA_ERRORS);
        if said == *payload {
            return Ok(Some(message.id));
        }
    }
    Ok(None)
}

/// Returns the newest message from an agent to the person in a task. Questions and status reports do not count.
pub async fn last_told_user(
    connection: &mut Connection,
    sender: &Conversation,
) -> Result<Option<Provisional>, Error> {
    let query = polity_sql::query(PROVISIONAL).bind(sender.agent.as_str()).bind(sender.task.as_str());
    let message = query.fetch_optional(connection).await?.as_ref().map(read).transpose()?;
    Ok(message.map(|message| Provisional {
        message: message.id,
        finality: message.finality,
        requests: message.in_reply_to,
    }))
}

/// A series of messages between two agents. Neither agent did anything else during the series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Streak {
    /// All messages of the series have numbers above this value.
    pub after: i64,
    /// The number of exchanges. Several messages in a row in the same direction are one exchange.
    pub exchanges: u64,
}

/// Counts the exchanges between two agents since the last other work of either agent. Other work means that the agent
/// wrote to another party, heard from another party, stored an artifact or hired an agent. The next message goes from
/// `sender` to `receiver`. If the newest message went in this direction, too, the next message belongs to the same
/// exchange, and the count is 0.
pub async fn streak(
    connection: &mut Connection,
    task: &TaskId,
    sender: &AgentId,
    receiver: &AgentId,
) -> Result<Streak, Error> {
    let there = newest(connection, NEWEST_BETWEEN, [sender, receiver], task).await?;
    let back = newest(connection, NEWEST_BETWEEN, [receiver, sender], task).await?;
    if sender != receiver && there >= back {
        return Ok(Streak::default());
    }
    let (mut after, mut since) = (0, 0);
    for pair in [[sender, receiver], [receiver, sender]] {
        for statement in [SENT_ELSEWHERE, HEARD_ELSEWHERE] {
            after = after.max(newest(connection, statement, pair, task).await?);
        }
        let query = polity_sql::query_scalar(OTHER_WORK).bind(pair[0].as_str()).bind(task.as_str());
        let newest: i64 = query.bind(crate::clock::now().as_millis()).fetch_one(&mut *connection).await?;
        since = since.max(newest);
    }
    let query =
        polity_sql::query_scalar(BETWEEN).bind(sender.as_str()).bind(receiver.as_str()).bind(task.as_str());
    let senders: Vec<String> = query.bind(after).bind(since).fetch_all(connection).await?;
    let exchanges = if sender == receiver {
        senders.len()
    } else {
        let turns = senders.windows(2).filter(|pair| pair[0] != pair[1]).count();
        turns + usize::from(!senders.is_empty())
    };
    Ok(Streak { after, exchanges: exchanges as u64 })
}

/// Returns the number of the newest message that a statement finds for a pair of agents, or 0 if there is none.
async fn newest(
    connection: &mut Connection,
    statement: &'static str,
    pair: [&AgentId; 2],
    task: &TaskId,
) -> Result<i64, Error> {
    let query = polity_sql::query_scalar(statement).bind(pair[0].as_str()).bind(pair[1].as_str());
    let found: Option<Option<i64>> = query.bind(task.as_str()).fetch_optional(connection).await?;
    Ok(found.flatten().unwrap_or(0))
}

/// Returns whether the system has sent exactly this notice to an agent after the message with the number `since`.
pub async fn was_told(
    connection: &mut Connection,
    task: &TaskId,
    to: &AgentId,
    since: i64,
    notice: &Notice,
) -> Result<bool, Error> {
    let body = serde_json::to_string(notice).map_err(|error| damaged("messages", "new", error))?;
    let query = polity_sql::query_scalar(TOLD).bind(to.as_str()).bind(task.as_str()).bind(since).bind(body);
    Ok(query.fetch_one(connection).await?)
}
