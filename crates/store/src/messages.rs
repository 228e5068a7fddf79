//! Table `messages`: all messages, read or unread.

pub(crate) mod between;
pub(crate) mod requests;
mod row;

pub use between::{
    Streak, first_between, last_told_user, said_before, sent_to_person, settle_interim, streak, was_told,
};
pub use requests::{
    RequestsOf, Unanswered, answer, close_requests, fail, give_up, mark_reminded, open_in, open_requests,
    owed, pending, questions, release, requests, requests_of, unanswered, waits,
};
pub(crate) use row::{read, state};

use super::holds::held;
use super::{Conversation, Error, Tx, damaged};
use polity_society::id::{AgentId, MessageId, TaskId, TurnId};
use polity_society::message::{Body, Message, MessageState, NOTICE};
use polity_society::time::Timestamp;
use polity_sql::Connection;
use polity_sql::Json;
use row::mailbox;
use std::collections::BTreeSet;

/// The number for the next message. The next number exceeds even the numbers of removed messages, so that no number
/// is given twice.
macro_rules! next {
    () => {
        "max(coalesce((SELECT max(seq) FROM messages), 0),
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'messages'), 0)) + 1"
    };
}
/// Counts the queued messages of a mailbox. Their number is at most the span from their lowest to their highest `seq`.
/// If this span is below the limit ?3, the result is the span. Otherwise, SQLite counts the rows.
macro_rules! queued {
    () => {
        "SELECT CASE WHEN span < ?3 THEN span ELSE (SELECT count(*) FROM messages INDEXED BY messages_waiting
        WHERE receiver = ?1 AND task = ?2 AND state = 'queued') END
    FROM (SELECT (SELECT max(seq) FROM messages INDEXED BY messages_waiting
            WHERE receiver = ?1 AND task = ?2 AND state = 'queued')
        - (SELECT min(seq) FROM messages INDEXED BY messages_waiting
            WHERE receiver = ?1 AND task = ?2 AND state = 'queued') + 1 AS span)"
    };
}

const NEXT: &str = concat!("SELECT ", next!());
const INSERT: &str =
    "INSERT INTO messages (seq, id, task, sender, sender_role, receiver, type, body, attachments,
    in_reply_to, about, on_behalf_of, expects, finality, introduction, introduced, due_at, state, created_at, sent_in)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
    (SELECT id FROM turns WHERE agent = ?4 AND task = ?3 AND state = 'open'))";
const GET: &str = "SELECT * FROM messages WHERE id = ?1";
// A statement names its index if SQLite would otherwise scan all old messages of an agent.
const NEXT_FOR_TURN: &str = concat!(
    "SELECT * FROM messages INDEXED BY messages_waiting
    WHERE receiver = ?1 AND task = ?2 AND state = 'queued' AND NOT ",
    held!(),
    " ORDER BY seq LIMIT 1"
);
const ANY_QUEUED: &str = "SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_waiting
    WHERE receiver = ?1 AND task = ?2 AND state = 'queued')";
const QUEUED: &str = queued!();
/// Facts about a message from ?4 to the mailbox: whether the receiver knows the sender, how many messages wait (as in
/// [`QUEUED`]), the number that the message will get, and whether a message of the person changes the state of the task.
const ARRIVAL: &str = concat!(
    "SELECT EXISTS (SELECT 1 FROM contacts WHERE owner = ?1 AND agent = ?4) AS known, (",
    queued!(),
    ") AS queued, ",
    next!(),
    " AS next, NOT EXISTS (SELECT 1 FROM tasks WHERE id = ?2 AND state = 'open' AND nudged = 0 AND stopped_by IS NULL)
        AS reopens"
);
const TAKE: &str = "UPDATE messages SET state = 'in_turn', turn = ?2 WHERE id = ?1 AND state = 'queued'";
/// The sizes of two groups of messages, each oldest first. The first group has at most ?4 messages that the turn ?3 has
/// taken in but not yet shown to its model. The second group has at most ?5 queued messages.
const MAIL: &str = "WITH counted (seq, unseen) AS (
        SELECT * FROM (SELECT m.seq, 1 FROM records r INDEXED BY records_of_turn CROSS JOIN messages m ON m.id = r.message
            WHERE r.turn = ?3 ORDER BY r.seq DESC LIMIT ?4)
        UNION ALL SELECT * FROM (SELECT seq, 0 FROM messages INDEXED BY messages_waiting
            WHERE receiver = ?1 AND task = ?2 AND state = 'queued' ORDER BY seq LIMIT ?5))
    SELECT m.seq, c.unseen, length(m.body) AS characters, octet_length(m.body) AS bytes,
    (SELECT coalesce(sum(CASE WHEN a.kind IN ('text', 'document') THEN min((a.size + 2) / 3, ?6) ELSE 1000 END), 0)
        FROM json_each(CASE WHEN json_valid(m.attachments) THEN m.attachments ELSE '[]' END) e
        JOIN artifacts a ON a.id = e.value) AS attached
    FROM counted c CROSS JOIN messages m ON m.seq = c.seq ORDER BY c.unseen DESC, m.seq";
const TAKE_THROUGH: &str = "UPDATE messages INDEXED BY messages_waiting SET state = 'in_turn', turn = ?3
    WHERE receiver = ?1 AND task = ?2 AND state = 'queued' AND seq <= ?4 RETURNING seq, id";
const SETTLE: &str = "UPDATE messages SET state = ?2 WHERE turn = ?1 AND state = 'in_turn'";
const BUSY: &str = "SELECT agent FROM turns WHERE task = ?1 AND state = 'open'
    UNION SELECT receiver FROM messages INDEXED BY messages_unread
    WHERE task = ?1 AND state IN ('queued', 'delayed')";
/// Restarts the delay of each message whose time of acceptance is later than ?1 (now). The clock was set back after the
/// message was accepted, so nobody knows how much of the delay has passed.
const REDATE: &str = "UPDATE messages SET due_at = ?1 + (due_at - created_at), created_at = ?1
    WHERE state = 'delayed' AND created_at > ?1";
const DUE: &str = "UPDATE messages SET state = 'queued' WHERE state = 'delayed' AND due_at <= ?1
    RETURNING receiver, task";
const NEXT_DUE: &str = "SELECT min(due_at) FROM messages WHERE state = 'delayed'";
const WAITING: &str =
    "SELECT DISTINCT receiver, task FROM messages WHERE state = 'queued' AND receiver <> 'user'";
const UNREAD_OF: &str =
    "SELECT * FROM messages WHERE receiver = ?1 AND state IN ('queued', 'delayed', 'in_turn')
    ORDER BY seq";
const BOUNCE: &str = "UPDATE messages SET state = 'bounced'
    WHERE receiver = ?1 AND state IN ('queued', 'delayed', 'in_turn')";
const UNSHOWN: &str = "SELECT * FROM messages INDEXED BY messages_waiting
    WHERE receiver = 'user' AND state = 'queued' ORDER BY seq";
const SHOWN: &str =
    "UPDATE messages SET state = 'done' WHERE id = ?1 AND receiver = 'user' AND state = 'queued'";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[
    NEXT,
    INSERT,
    GET,
    NEXT_FOR_TURN,
    ANY_QUEUED,
    QUEUED,
    ARRIVAL,
    TAKE,
    MAIL,
    TAKE_THROUGH,
    SETTLE,
    BUSY,
    REDATE,
    DUE,
    NEXT_DUE,
    WAITING,
    UNREAD_OF,
    BOUNCE,
    UNSHOWN,
    SHOWN,
];

/// Returns the id for the next accepted message. The caller needs a write transaction, so that nobody else gets the
/// same id.
pub async fn next_id(tx: &mut Tx) -> Result<MessageId, Error> {
    let sequence: i64 = polity_sql::query_scalar(NEXT).fetch_one(&mut tx.connection).await?;
    Ok(MessageId::from_sequence(sequence))
}

pub async fn insert(tx: &mut Tx, message: &Message) -> Result<(), Error> {
    let sequence =
        message.id.sequence().ok_or_else(|| damaged("messages", message.id.as_str(), "not an id"))?;
    let (message_type, body, attachments) = match &message.body {
        Body::Payload(payload) => (
            payload.message_type.as_str(),
            serde_json::to_string(&payload.fields),
            payload.attachments.as_slice(),
        ),
        Body::Notice(notice) => (NOTICE, serde_json::to_string(notice), [].as_slice()),
    };
    let body = body.map_err(|error| damaged("messages", message.id.as_str(), error))?;
    // If the due time has passed, the message is not delayed.
    let due_at = message.due_at.filter(|due_at| *due_at > tx.now);
    polity_sql::query(INSERT)
        .bind(sequence)
        .bind(message.id.as_str())
        .bind(message.task.as_str())
        .bind(message.from.as_str())
        .bind(&message.from_role)
        .bind(message.to.as_str())
        .bind(message_type)
        .bind(body)
        .bind(Json(attachments))
        .bind((!message.in_reply_to.is_empty()).then_some(Json(&message.in_reply_to)))
        .bind(message.about.as_ref().map(MessageId::as_str))
        .bind(message.on_behalf_of.as_ref().map(MessageId::as_str))
        .bind(message.expects.as_str())
        .bind(message.finality.as_str())
        .bind(message.introduction.as_ref().map(Json))
        .bind(message.introduced.as_ref().map(Json))
        .bind(due_at.map(Timestamp::as_millis))
        .bind(if due_at.is_some() { MessageState::Delayed } else { MessageState::Queued }.as_str())
        .bind(tx.now.as_millis())
        .execute(&mut tx.connection)
        .await?;
    polity_points::point!("messages::inserted");
    Ok(())
}

pub async fn get(connection: &mut Connection, id: &MessageId) -> Result<Option<Message>, Error> {
    let row = polity_sql::query(GET).bind(id.as_str()).fetch_optional(connection).await?;
    row.as_ref().map(read).transpose()
}

/// Returns a message and its state. Fails if the message does not exist.
pub async fn with_state(
    connection: &mut Connection,
    id: &MessageId,
) -> Result<(Message, MessageState), Error> {
    let row = polity_sql::query(GET).bind(id.as_str()).fetch_optional(connection).await?;
    let row = row.ok_or_else(|| damaged("messages", id.as_str(), "it is missing"))?;
    Ok((read(&row)?, state(&row)))
}

/// Returns the message with which the next turn of a conversation begins: the oldest queued message of its mailbox.
/// Returns nothing while the conversation is parked or its agent is paused, because no turn may begin then.
pub async fn next_for_turn(
    connection: &mut Connection,
    mailbox: &Conversation,
) -> Result<Option<Message>, Error> {
    let query = polity_sql::query(NEXT_FOR_TURN).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    query.fetch_optional(connection).await?.as_ref().map(read).transpose()
}

pub async fn any_queued(connection: &mut Connection, mailbox: &Conversation) -> Result<bool, Error> {
    let query = polity_sql::query_scalar(ANY_QUEUED).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    Ok(query.fetch_one(connection).await?)
}

/// Counts the queued messages of a mailbox. The result is exact if it is `limit` or more. A result below `limit` is
/// only an upper bound: the real number may be smaller.
pub async fn queued(connection: &mut Connection, mailbox: &Conversation, limit: u64) -> Result<u64, Error> {
    let query = polity_sql::query_scalar(QUEUED).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    let query = query.bind(i64::try_from(limit).unwrap_or(i64::MAX));
    Ok(query.fetch_one(connection).await.map(i64::unsigned_abs)?)
}

/// Facts about a message that is about to be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Whether the sender is a contact of the receiver.
    pub known: bool,
    /// How many messages are queued, counted as [`queued`] counts them.
    pub queued: u64,
    /// The id that the message gets. The caller needs a write transaction, as for [`next_id`].
    pub id: MessageId,
    /// Whether [`reopen`](super::tasks::reopen) would change the task: the task is idle or was stopped, or root has got a
    /// nudge in it.
    pub reopens: bool,
}

/// Returns facts about a message that is about to be accepted. `limit` is the limit of the mailbox.
pub async fn arrival(
    tx: &mut Tx,
    sender: &AgentId,
    mailbox: &Conversation,
    limit: u64,
) -> Result<Arrival, Error> {
    let query = polity_sql::query(ARRIVAL).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    let query = query.bind(i64::try_from(limit).unwrap_or(i64::MAX)).bind(sender.as_str());
    let row = query.fetch_one(&mut tx.connection).await?;
    Ok(Arrival {
        known: row.get("known"),
        queued: row.get::<Option<i64>, _>("queued").unwrap_or_default().unsigned_abs(),
        id: MessageId::from_sequence(row.get("next")),
        reopens: row.get("reopens"),
    })
}

/// Moves one queued message into a turn.
pub async fn take(tx: &mut Tx, id: &MessageId, turn: TurnId) -> Result<(), Error> {
    let done =
        polity_sql::query(TAKE).bind(id.as_str()).bind(turn.number()).execute(&mut tx.connection).await?;
    polity_points::point!("messages::taken");
    let hit = done.rows_affected();
    if hit != 1 {
        return Err(Error::WrongRows { what: "taking a message into a turn", expected: 1, hit });
    }
    Ok(())
}

/// The size of a message, computed from rows of the database without reading any blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The number of characters in the message body.
    pub characters: u64,
    /// The number of bytes in the message body.
    pub bytes: u64,
    /// The estimated number of tokens of all attachments.
    pub attached: u64,
}

/// Messages that the model has not seen yet. The next request of a turn could show them to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// Messages that the turn has taken in since it last asked its model.
    pub unseen: Vec<Size>,
    /// Queued messages with their numbers, oldest first.
    pub waiting: Vec<(i64, Size)>,
}

/// Reads the sizes of the messages that a turn could show next.
///
/// `unseen` is the number of messages that the turn has taken in since it last asked its model. `at_most` bounds the
/// queued messages in the result. An attached text counts as at most `inline_text_chars`.
pub async fn mail(
    connection: &mut Connection,
    mailbox: &Conversation,
    turn: TurnId,
    unseen: u64,
    at_most: usize,
    inline_text_chars: u64,
) -> Result<Mail, Error> {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let query =
        polity_sql::query(MAIL).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str()).bind(turn.number());
    let query = query.bind(number(unseen)).bind(number(at_most as u64)).bind(number(inline_text_chars));
    let mut mail = Mail { unseen: Vec::new(), waiting: Vec::new() };
    for row in query.fetch_all(connection).await? {
        let count = |column: &str| row.get::<i64, _>(column).unsigned_abs();
        let size =
            Size { characters: count("characters"), bytes: count("bytes"), attached: count("attached") };
        if row.get("unseen") { mail.unseen.push(size) } else { mail.waiting.push((row.get("seq"), size)) }
    }
    Ok(mail)
}

/// Moves the queued messages of a mailbox into a turn, up to the message with number `last`. Returns their ids, oldest
/// first.
pub async fn take_through(
    tx: &mut Tx,
    mailbox: &Conversation,
    turn: TurnId,
    last: i64,
) -> Result<Vec<MessageId>, Error> {
    let query = polity_sql::query(TAKE_THROUGH).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    let query = query.bind(turn.number()).bind(last);
    let rows = query.fetch_all(&mut tx.connection).await?;
    polity_points::point!("messages::all_taken");
    let mut taken: Vec<(i64, String)> = rows.iter().map(|row| (row.get("seq"), row.get("id"))).collect();
    taken.sort_unstable();
    Ok(taken.into_iter().map(|(_, id)| MessageId::new(id)).collect())
}

/// The final state of the messages that a turn has taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The turn has worked on its messages.
    Done,
    Failed,
}

/// Sets the final state of the messages of a turn, and returns how many there were.
pub async fn settle(tx: &mut Tx, turn: TurnId, settled: Settled) -> Result<u64, Error> {
    let state = match settled {
        Settled::Done => MessageState::Done,
        Settled::Failed => MessageState::Failed,
    };
    let done = polity_sql::query(SETTLE)
        .bind(turn.number())
        .bind(state.as_str())
        .execute(&mut tx.connection)
        .await?;
    polity_points::point!("messages::settled");
    Ok(done.rows_affected())
}

/// Moves the delayed messages that are due into the mailboxes of their receivers, and returns these mailboxes. If the
/// clock was set back, restarts the delays.
pub async fn deliver_due(tx: &mut Tx) -> Result<Vec<Conversation>, Error> {
    polity_sql::query(REDATE).bind(tx.now.as_millis()).execute(&mut tx.connection).await?;
    let rows = polity_sql::query(DUE).bind(tx.now.as_millis()).fetch_all(&mut tx.connection).await?;
    polity_points::point!("messages::delivered");
    Ok(rows.iter().map(mailbox).collect())
}

/// Returns when the next delayed message is due.
pub async fn next_due(connection: &mut Connection) -> Result<Option<Timestamp>, Error> {
    let due: Option<i64> = polity_sql::query_scalar(NEXT_DUE).fetch_one(connection).await?;
    Ok(due.map(Timestamp::from_millis))
}

/// Returns the mailboxes of agents that contain queued messages.
pub async fn waiting(connection: &mut Connection) -> Result<Vec<Conversation>, Error> {
    let rows = polity_sql::query(WAITING).fetch_all(connection).await?;
    Ok(rows.iter().map(mailbox).collect())
}

/// Bounces every message that an ended agent has not finished working on, and returns these messages.
pub async fn bounce_all(tx: &mut Tx, agent: &AgentId) -> Result<Vec<Message>, Error> {
    let rows = polity_sql::query(UNREAD_OF).bind(agent.as_str()).fetch_all(&mut tx.connection).await?;
    let unread = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    polity_sql::query(BOUNCE).bind(agent.as_str()).execute(&mut tx.connection).await?;
    polity_points::point!("messages::bounced");
    Ok(unread)
}

/// Returns the agents that have work in a task: an open turn, or a queued or delayed message.
pub async fn busy(connection: &mut Connection, task: &TaskId) -> Result<BTreeSet<AgentId>, Error> {
    let rows: Vec<String> = polity_sql::query_scalar(BUSY).bind(task.as_str()).fetch_all(connection).await?;
    Ok(rows.into_iter().map(AgentId::new).collect())
}

/// Returns the messages that the person has not been shown yet, oldest first.
pub async fn unshown(connection: &mut Connection) -> Result<Vec<Message>, Error> {
    let rows = polity_sql::query(UNSHOWN).fetch_all(connection).await?;
    rows.iter().map(read).collect()
}

/// Notes that the person has been shown a message.
pub async fn mark_shown(tx: &mut Tx, id: &MessageId) -> Result<(), Error> {
    polity_sql::query(SHOWN).bind(id.as_str()).execute(&mut tx.connection).await?;
    polity_points::point!("messages::shown");
    Ok(())
}
