//! Table `messages`: the mailboxes of all parties, and all messages that the parties received before.

use super::{Conversation, Error, Tx, damaged};
use polity_society::id::{AgentId, ArtifactId, MessageId, TaskId, TurnId};
use polity_society::message::{
    Body, Expects, Finality, Message, MessageState, MessageType, NOTICE, Payload, RESULT, SCHEMA_ERRORS,
    Sender,
};
use polity_society::notice::Notice;
use polity_society::rules::{
    Earlier, OpenRequest, Owed, Pending, Provisional, Reminded, RequestRow, Wait, subjects,
};
use polity_society::time::Timestamp;
use sqlx::sqlite::SqliteRow;
use sqlx::types::Json;
use sqlx::{Row, SqliteConnection};
use std::collections::BTreeSet;

/// The number for the next message. The next number exceeds even the numbers of removed messages, so that no number
/// is given twice.
const NEXT: &str = "SELECT max(coalesce((SELECT max(seq) FROM messages), 0),
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'messages'), 0)) + 1";
const INSERT: &str =
    "INSERT INTO messages (seq, id, task, sender, sender_role, receiver, type, body, attachments,
    in_reply_to, about, on_behalf_of, expects, finality, introduction, introduced, due_at, state, created_at, sent_in)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19,
    (SELECT id FROM turns WHERE agent = ?4 AND task = ?3 AND state = 'open'))";
const GET: &str = "SELECT * FROM messages WHERE id = ?1";
// A statement names its index if SQLite would otherwise scan the whole past of an agent.
const FIRST_QUEUED: &str = "SELECT * FROM messages INDEXED BY messages_waiting
    WHERE receiver = ?1 AND task = ?2 AND state = 'queued' ORDER BY seq LIMIT 1";
const ANY_QUEUED: &str = "SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_waiting
    WHERE receiver = ?1 AND task = ?2 AND state = 'queued')";
/// Counts the queued messages of a mailbox. The span from the lowest to the highest number is an upper bound. SQLite
/// counts the rows only if this span reaches the limit ?3.
const QUEUED: &str =
    "SELECT CASE WHEN span < ?3 THEN span ELSE (SELECT count(*) FROM messages INDEXED BY messages_waiting
        WHERE receiver = ?1 AND task = ?2 AND state = 'queued') END
    FROM (SELECT (SELECT max(seq) FROM messages INDEXED BY messages_waiting
            WHERE receiver = ?1 AND task = ?2 AND state = 'queued')
        - (SELECT min(seq) FROM messages INDEXED BY messages_waiting
            WHERE receiver = ?1 AND task = ?2 AND state = 'queued') + 1 AS span)";
const TAKE: &str = "UPDATE messages SET state = 'in_turn', turn = ?2 WHERE id = ?1 AND state = 'queued'";
/// The sizes of two groups of messages, each oldest first: at most ?4 messages that the turn has taken in but its model
/// has not seen, then at most ?5 queued messages.
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
/// Marks a request as answered. If the answering agent has an open turn, `answered_in` is this turn, and the asker
/// keeps waiting until this turn has ended.
const ANSWER: &str = "UPDATE messages SET answered_by = ?2, answered_in = (SELECT turns.id FROM turns
        WHERE turns.agent = messages.receiver AND turns.task = messages.task AND turns.state = 'open')
    WHERE id = ?1 AND answered_by IS NULL";
const RELEASE: &str =
    "UPDATE messages INDEXED BY messages_answered_in SET answered_in = NULL WHERE answered_in = ?1
    RETURNING sender, task";
const GIVE_UP: &str = "UPDATE messages SET state = 'unanswered'
    WHERE id = ?1 AND answered_by IS NULL AND state IN ('in_turn', 'done', 'failed')";
const MARK_REMINDED: &str = "UPDATE messages SET reminded = 1 WHERE id IN (SELECT value FROM json_each(?1))";
const SETTLE_INTERIM: &str = "UPDATE messages SET finality = 'final' WHERE id = ?1 AND finality = 'interim'";
const FAIL: &str = "UPDATE messages SET state = 'failed'
    WHERE id = ?1 AND answered_by IS NULL AND state IN ('in_turn', 'done')";
/// The open requests to a party in a task. An agent can answer only what it has read.
/// For the person, queued requests count too, because nobody knows what a person has read.
/// A request of the person stays open even if the turn that read it failed.
const OPEN_TO: &str = "SELECT id, sender, on_behalf_of FROM messages INDEXED BY messages_open_requests
    WHERE receiver = ?1 AND task = ?2 AND expects = 'answer' AND answered_by IS NULL
    AND (state IN ('in_turn', 'done') OR state = 'failed' AND sender = 'user' OR state = 'queued' AND receiver = 'user')
    ORDER BY seq";
const REQUESTS: &str = "SELECT id, sender, receiver, on_behalf_of FROM messages
    WHERE id IN (SELECT value FROM json_each(?1)) ORDER BY seq";
const CHAIN: &str = "WITH RECURSIVE chain (id, depth) AS (
        SELECT on_behalf_of, 1 FROM messages WHERE id = ?1
        UNION ALL SELECT m.on_behalf_of, chain.depth + 1 FROM messages m JOIN chain ON m.id = chain.id WHERE chain.depth < 100)
    SELECT id FROM chain WHERE id IS NOT NULL ORDER BY depth";
/// The requests on whose behalf an agent waits for something. An agent waits for answers to its open requests, for
/// the end of turns that have answered its requests, for delayed messages that it sent to itself, and for its
/// background commands.
const PENDING: &str = "SELECT on_behalf_of AS request FROM messages INDEXED BY messages_asked
    WHERE sender = ?1 AND task = ?2 AND expects = 'answer' AND answered_by IS NULL AND receiver <> ?1
    AND state IN ('delayed', 'queued', 'in_turn', 'done')
    UNION SELECT on_behalf_of FROM messages INDEXED BY messages_still_awaited
    WHERE sender = ?1 AND task = ?2 AND answered_in IS NOT NULL
    UNION SELECT about FROM messages INDEXED BY messages_delayed
    WHERE state = 'delayed' AND sender = ?1 AND receiver = ?1 AND task = ?2
    UNION SELECT request FROM commands INDEXED BY commands_running
    WHERE agent = ?1 AND task = ?2 AND state = 'running'";
/// For each answer, report or notice queued for an agent: the request on whose behalf the agent had asked for it.
const UNHEARD: &str = "SELECT DISTINCT (SELECT asked.on_behalf_of FROM messages asked
        WHERE asked.id = coalesce(news.in_reply_to ->> 0, news.about) AND asked.sender = news.receiver) AS request
    FROM messages news INDEXED BY messages_unheard
    WHERE news.receiver = ?1 AND news.task = ?2 AND news.state = 'queued'
    AND (news.in_reply_to IS NOT NULL OR news.about IS NOT NULL OR news.sender = 'system')";
/// The messages from one party to another after the message with number ?4, newest first.
const TOLD_SINCE: &str = "SELECT * FROM messages INDEXED BY messages_between
    WHERE task = ?3 AND sender = ?1 AND receiver = ?2 AND seq > ?4 ORDER BY seq DESC LIMIT 1000";
const FIRST_BETWEEN: &str = "SELECT id FROM messages INDEXED BY messages_between
    WHERE task = ?3 AND sender = ?1 AND receiver = ?2 ORDER BY seq LIMIT 1";
const SENT_TO_PERSON: &str = "SELECT * FROM messages INDEXED BY messages_between
    WHERE task = ?2 AND sender = ?1 AND receiver = 'user' AND sent_in = ?3 ORDER BY seq DESC";
const OWED: &str = "SELECT id, sender, reminded FROM messages INDEXED BY messages_unanswered
    WHERE receiver = ?1 AND task = ?2 AND expects = 'answer' AND answered_by IS NULL
    AND state IN ('in_turn', 'done') AND state = 'done' ORDER BY seq";
const PROVISIONAL: &str = "SELECT * FROM messages INDEXED BY messages_between
    WHERE task = ?2 AND sender = ?1 AND receiver = 'user' AND expects = 'nothing' AND type <> 'status_report'
    ORDER BY seq DESC LIMIT 1";
/// The number of the newest message from one agent to another.
const NEWEST_BETWEEN: &str = "SELECT seq FROM messages INDEXED BY messages_between
    WHERE task = ?3 AND sender = ?1 AND receiver = ?2 ORDER BY seq DESC LIMIT 1";
/// The newest message between the first agent of a pair and any party other than the second agent.
/// One statement finds sent messages, the other finds received messages. Notices of the system do not count.
const SENT_ELSEWHERE: &str = "SELECT max(seq) FROM messages INDEXED BY messages_between
    WHERE task = ?3 AND sender = ?1 AND receiver NOT IN (?1, ?2)";
const HEARD_ELSEWHERE: &str = "SELECT max(seq) FROM messages INDEXED BY messages_heard
    WHERE task = ?3 AND receiver = ?1 AND sender NOT IN (?1, ?2, 'system')";
/// The time when an agent last stored an artifact or hired an agent, which also counts as work. Times after ?3 (now)
/// are ignored: they were written before the clock was set back, and no new message would seem later than this work.
const OTHER_WORK: &str =
    "SELECT max(coalesce((SELECT max(created_at) FROM artifacts WHERE owner = ?1 AND task = ?2 AND created_at <= ?3), 0),
    coalesce((SELECT max(created_at) FROM agents WHERE parent = ?1 AND task = ?2 AND created_at <= ?3), 0))";
/// The senders of the messages between two agents, newest first. Any sensible `maxPairExchanges` is below this `LIMIT`.
const BETWEEN: &str = "SELECT sender FROM (
    SELECT seq, sender FROM messages INDEXED BY messages_between
    WHERE task = ?3 AND sender = ?1 AND receiver = ?2 AND seq > ?4 AND created_at >= ?5
    UNION SELECT seq, sender FROM messages INDEXED BY messages_between
    WHERE task = ?3 AND sender = ?2 AND receiver = ?1 AND seq > ?4 AND created_at >= ?5)
    ORDER BY seq DESC LIMIT 10000";
const TOLD: &str = "SELECT EXISTS (SELECT 1 FROM messages
    WHERE receiver = ?1 AND task = ?2 AND sender = 'system' AND seq > ?3 AND body = ?4)";
const WAITS: &str = "SELECT m.sender, m.receiver, m.id FROM messages m INDEXED BY messages_open
    JOIN agents a ON a.id = m.receiver
    WHERE m.task = ?1 AND m.expects = 'answer' AND m.answered_by IS NULL AND a.ended_at IS NULL
    AND m.state IN ('delayed', 'queued', 'in_turn', 'done') AND m.receiver <> m.sender AND m.sender <> 'user'";
const BUSY: &str = "SELECT agent FROM turns WHERE task = ?1 AND state = 'open'
    UNION SELECT receiver FROM messages INDEXED BY messages_unread
    WHERE task = ?1 AND state IN ('queued', 'delayed')";
/// Restarts the delay of each message that was accepted later than ?1 (now): the clock was set back, so nobody knows
/// how much of the delay has passed.
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
const CLOSE_REQUESTS: &str = "UPDATE messages INDEXED BY messages_open_requests SET state = 'failed'
    WHERE receiver = ?1 AND expects = 'answer' AND answered_by IS NULL AND state = 'done' RETURNING *";
const UNSHOWN: &str = "SELECT * FROM messages INDEXED BY messages_waiting
    WHERE receiver = 'user' AND state = 'queued' ORDER BY seq";
const SHOWN: &str =
    "UPDATE messages SET state = 'done' WHERE id = ?1 AND receiver = 'user' AND state = 'queued'";
const QUESTIONS: &str = "SELECT * FROM messages INDEXED BY messages_open_requests WHERE task = ?1 AND receiver = 'user' AND expects = 'answer'
    AND answered_by IS NULL AND state <> 'failed' ORDER BY seq";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    NEXT,
    INSERT,
    GET,
    FIRST_QUEUED,
    ANY_QUEUED,
    QUEUED,
    TAKE,
    MAIL,
    TAKE_THROUGH,
    SETTLE,
    ANSWER,
    RELEASE,
    GIVE_UP,
    MARK_REMINDED,
    SETTLE_INTERIM,
    FAIL,
    OPEN_TO,
    REQUESTS,
    CHAIN,
    PENDING,
    UNHEARD,
    TOLD_SINCE,
    FIRST_BETWEEN,
    SENT_TO_PERSON,
    OWED,
    PROVISIONAL,
    NEWEST_BETWEEN,
    SENT_ELSEWHERE,
    HEARD_ELSEWHERE,
    OTHER_WORK,
    BETWEEN,
    TOLD,
    WAITS,
    BUSY,
    REDATE,
    DUE,
    NEXT_DUE,
    WAITING,
    UNREAD_OF,
    BOUNCE,
    CLOSE_REQUESTS,
    UNSHOWN,
    SHOWN,
    QUESTIONS,
];

/// Returns the id for the next accepted message. The caller needs a write transaction, so that nobody else gets the
/// same id.
pub async fn next_id(tx: &mut Tx) -> Result<MessageId, Error> {
    let sequence: i64 = sqlx::query_scalar(NEXT).fetch_one(&mut tx.connection).await?;
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
    sqlx::query(INSERT)
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

pub async fn get(connection: &mut SqliteConnection, id: &MessageId) -> Result<Option<Message>, Error> {
    let row = sqlx::query(GET).bind(id.as_str()).fetch_optional(connection).await?;
    row.as_ref().map(read).transpose()
}

/// Returns a message that must exist, and its state.
pub async fn with_state(
    connection: &mut SqliteConnection,
    id: &MessageId,
) -> Result<(Message, MessageState), Error> {
    let row = sqlx::query(GET).bind(id.as_str()).fetch_optional(connection).await?;
    let row = row.ok_or_else(|| damaged("messages", id.as_str(), "it is missing"))?;
    Ok((read(&row)?, state(&row)))
}

/// Returns the state of the message in a row. The column `answered_by` shows whether the message was answered;
/// the column `state` contains all other states.
pub(crate) fn state(row: &SqliteRow) -> MessageState {
    if row.get::<Option<String>, _>("answered_by").is_some() {
        return MessageState::Answered;
    }
    let name: String = row.get("state");
    // The schema allows no other names.
    name.parse().unwrap_or(MessageState::Done)
}

/// Returns the oldest queued message of a mailbox.
pub async fn first_queued(
    connection: &mut SqliteConnection,
    mailbox: &Conversation,
) -> Result<Option<Message>, Error> {
    let query = sqlx::query(FIRST_QUEUED).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    query.fetch_optional(connection).await?.as_ref().map(read).transpose()
}

pub async fn any_queued(connection: &mut SqliteConnection, mailbox: &Conversation) -> Result<bool, Error> {
    let query = sqlx::query_scalar(ANY_QUEUED).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    Ok(query.fetch_one(connection).await?)
}

/// Counts the queued messages of a mailbox. A result below `limit` is an upper bound; a result of at least `limit` is
/// exact.
pub async fn queued(
    connection: &mut SqliteConnection,
    mailbox: &Conversation,
    limit: u64,
) -> Result<u64, Error> {
    let query = sqlx::query_scalar(QUEUED).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    let query = query.bind(i64::try_from(limit).unwrap_or(i64::MAX));
    Ok(query.fetch_one(connection).await.map(i64::unsigned_abs)?)
}

/// Moves one queued message into a turn.
pub async fn take(tx: &mut Tx, id: &MessageId, turn: TurnId) -> Result<(), Error> {
    let done = sqlx::query(TAKE).bind(id.as_str()).bind(turn.number()).execute(&mut tx.connection).await?;
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

/// The messages that the next request of a turn could show to the model for the first time.
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
    connection: &mut SqliteConnection,
    mailbox: &Conversation,
    turn: TurnId,
    unseen: u64,
    at_most: usize,
    inline_text_chars: u64,
) -> Result<Mail, Error> {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let query =
        sqlx::query(MAIL).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str()).bind(turn.number());
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
    let query = sqlx::query(TAKE_THROUGH).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    let query = query.bind(turn.number()).bind(last);
    let rows = query.fetch_all(&mut tx.connection).await?;
    polity_points::point!("messages::all_taken");
    let mut taken: Vec<(i64, String)> = rows.iter().map(|row| (row.get("seq"), row.get("id"))).collect();
    taken.sort_unstable();
    Ok(taken.into_iter().map(|(_, id)| MessageId::new(id)).collect())
}

/// The state in which the messages of a turn end.
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
    let done =
        sqlx::query(SETTLE).bind(turn.number()).bind(state.as_str()).execute(&mut tx.connection).await?;
    polity_points::point!("messages::settled");
    Ok(done.rows_affected())
}

/// Notes the answer of a request. Only the first answer is stored.
pub async fn answer(tx: &mut Tx, request: &MessageId, answer: &MessageId) -> Result<(), Error> {
    sqlx::query(ANSWER).bind(request.as_str()).bind(answer.as_str()).execute(&mut tx.connection).await?;
    polity_points::point!("messages::answered");
    Ok(())
}

/// Notes that nobody will answer a message that was read.
pub async fn fail(tx: &mut Tx, id: &MessageId) -> Result<(), Error> {
    sqlx::query(FAIL).bind(id.as_str()).execute(&mut tx.connection).await?;
    polity_points::point!("messages::failed");
    Ok(())
}

/// Notes that a turn has ended: the askers whose requests were answered in it stop waiting. Returns the conversations
/// of these askers.
pub async fn release(tx: &mut Tx, turn: TurnId) -> Result<Vec<Conversation>, Error> {
    let rows = sqlx::query(RELEASE).bind(turn.number()).fetch_all(&mut tx.connection).await?;
    polity_points::point!("messages::released");
    let read = |row: &SqliteRow| Conversation {
        agent: AgentId::new(row.get::<String, _>("sender")),
        task: TaskId::new(row.get::<String, _>("task")),
    };
    Ok(rows.iter().map(read).collect())
}

/// Notes that a request will stay unanswered.
pub async fn give_up(tx: &mut Tx, id: &MessageId) -> Result<(), Error> {
    sqlx::query(GIVE_UP).bind(id.as_str()).execute(&mut tx.connection).await?;
    polity_points::point!("messages::given_up");
    Ok(())
}

/// Notes that the receiver of these requests was reminded of them.
pub async fn mark_reminded(tx: &mut Tx, ids: &BTreeSet<MessageId>) -> Result<(), Error> {
    sqlx::query(MARK_REMINDED).bind(Json(ids)).execute(&mut tx.connection).await?;
    polity_points::point!("messages::reminded");
    Ok(())
}

/// Notes that an interim message to the person turned out to be the last word.
pub async fn settle_interim(tx: &mut Tx, id: &MessageId) -> Result<(), Error> {
    sqlx::query(SETTLE_INTERIM).bind(id.as_str()).execute(&mut tx.connection).await?;
    polity_points::point!("messages::interim_settled");
    Ok(())
}

/// Returns the open requests that an agent has read in a task, oldest first.
pub async fn open_requests(
    connection: &mut SqliteConnection,
    mailbox: &Conversation,
) -> Result<Vec<OpenRequest>, Error> {
    let query = sqlx::query(OPEN_TO).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    let rows = query.fetch_all(&mut *connection).await?;
    let mut requests = Vec::with_capacity(rows.len());
    for row in &rows {
        let id: String = row.get("id");
        let chain: Vec<String> = match row.get::<Option<String>, _>("on_behalf_of") {
            Some(_) => sqlx::query_scalar(CHAIN).bind(&id).fetch_all(&mut *connection).await?,
            None => Vec::new(),
        };
        requests.push(OpenRequest {
            id: MessageId::new(id),
            from: AgentId::new(row.get::<String, _>("sender")),
            chain: chain.into_iter().map(MessageId::new).collect(),
        });
    }
    Ok(requests)
}

/// Returns the requests with these ids, oldest first.
pub async fn requests<'i>(
    connection: &mut SqliteConnection,
    ids: impl Iterator<Item = &'i MessageId>,
) -> Result<Vec<RequestRow>, Error> {
    let ids: Vec<&MessageId> = ids.collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows = sqlx::query(REQUESTS).bind(Json(ids)).fetch_all(connection).await?;
    let read = |row: &SqliteRow| RequestRow {
        id: MessageId::new(row.get::<String, _>("id")),
        from: AgentId::new(row.get::<String, _>("sender")),
        to: AgentId::new(row.get::<String, _>("receiver")),
        on_behalf_of: row.get::<Option<String>, _>("on_behalf_of").map(MessageId::new),
    };
    Ok(rows.iter().map(read).collect())
}

/// Returns the requests on whose behalf an agent waits for something in a task.
pub async fn pending(connection: &mut SqliteConnection, asker: &Conversation) -> Result<Vec<Pending>, Error> {
    waits_of(connection, PENDING, asker).await
}

/// Looks at the queued answers, reports and notices of a mailbox, which the agent does not know yet. Returns the
/// requests on whose behalf the agent had asked for them.
pub async fn unheard(
    connection: &mut SqliteConnection,
    mailbox: &Conversation,
) -> Result<Vec<Pending>, Error> {
    waits_of(connection, UNHEARD, mailbox).await
}

async fn waits_of(
    connection: &mut SqliteConnection,
    statement: &'static str,
    of: &Conversation,
) -> Result<Vec<Pending>, Error> {
    let query = sqlx::query_scalar(statement).bind(of.agent.as_str()).bind(of.task.as_str());
    let requests: Vec<Option<String>> = query.fetch_all(connection).await?;
    Ok(requests.into_iter().map(|request| Pending { on_behalf_of: request.map(MessageId::new) }).collect())
}

/// Returns the newest message with this text that answers, or is about, all of these requests.
pub async fn said_before(
    connection: &mut SqliteConnection,
    sender: &Conversation,
    to: &AgentId,
    requests: &[MessageId],
    text: &str,
) -> Result<Option<Earlier>, Error> {
    let Some(first) = requests.iter().filter_map(MessageId::sequence).min() else { return Ok(None) };
    let query = sqlx::query(TOLD_SINCE).bind(sender.agent.as_str()).bind(to.as_str());
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
    connection: &mut SqliteConnection,
    from: &AgentId,
    to: &Conversation,
) -> Result<Option<MessageId>, Error> {
    let query = sqlx::query_scalar(FIRST_BETWEEN).bind(from.as_str()).bind(to.agent.as_str());
    let id: Option<String> = query.bind(to.task.as_str()).fetch_optional(connection).await?;
    Ok(id.map(MessageId::new))
}

/// Looks for a message from an agent to the person, sent in this turn with exactly this payload, and returns its id.
pub async fn sent_to_person(
    connection: &mut SqliteConnection,
    sender: &Conversation,
    turn: TurnId,
    payload: &Payload,
) -> Result<Option<MessageId>, Error> {
    let query = sqlx::query(SENT_TO_PERSON)
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

/// Returns the requests that an agent has read in ended turns but not answered, oldest first.
pub async fn owed(connection: &mut SqliteConnection, mailbox: &Conversation) -> Result<Vec<Owed>, Error> {
    let query = sqlx::query(OWED).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    let rows = query.fetch_all(connection).await?;
    let read = |row: &SqliteRow| Owed {
        request: MessageId::new(row.get::<String, _>("id")),
        asker: AgentId::new(row.get::<String, _>("sender")),
        reminded: if row.get("reminded") { Reminded::Yes } else { Reminded::No },
    };
    Ok(rows.iter().map(read).collect())
}

/// Returns the newest message from an agent to the person in a task. Questions and status reports do not count.
pub async fn last_told_user(
    connection: &mut SqliteConnection,
    sender: &Conversation,
) -> Result<Option<Provisional>, Error> {
    let query = sqlx::query(PROVISIONAL).bind(sender.agent.as_str()).bind(sender.task.as_str());
    let message = query.fetch_optional(connection).await?.as_ref().map(read).transpose()?;
    Ok(message.map(|message| Provisional {
        message: message.id,
        finality: message.finality,
        requests: message.in_reply_to,
    }))
}

/// Moves due messages into their mailboxes, and returns these mailboxes. Restarts delays if the clock was set back.
pub async fn deliver_due(tx: &mut Tx) -> Result<Vec<Conversation>, Error> {
    sqlx::query(REDATE).bind(tx.now.as_millis()).execute(&mut tx.connection).await?;
    let rows = sqlx::query(DUE).bind(tx.now.as_millis()).fetch_all(&mut tx.connection).await?;
    polity_points::point!("messages::delivered");
    Ok(rows.iter().map(mailbox).collect())
}

/// Returns when the next delayed message is due.
pub async fn next_due(connection: &mut SqliteConnection) -> Result<Option<Timestamp>, Error> {
    let due: Option<i64> = sqlx::query_scalar(NEXT_DUE).fetch_one(connection).await?;
    Ok(due.map(Timestamp::from_millis))
}

/// Returns the mailboxes of agents that contain queued messages.
pub async fn waiting(connection: &mut SqliteConnection) -> Result<Vec<Conversation>, Error> {
    let rows = sqlx::query(WAITING).fetch_all(connection).await?;
    Ok(rows.iter().map(mailbox).collect())
}

/// Bounces every message that an ended agent has not finished working on, and returns these messages.
pub async fn bounce_all(tx: &mut Tx, agent: &AgentId) -> Result<Vec<Message>, Error> {
    let rows = sqlx::query(UNREAD_OF).bind(agent.as_str()).fetch_all(&mut tx.connection).await?;
    let unread = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    sqlx::query(BOUNCE).bind(agent.as_str()).execute(&mut tx.connection).await?;
    polity_points::point!("messages::bounced");
    Ok(unread)
}

/// Closes the requests that an ended agent has read but not answered, and returns them, oldest first.
pub async fn close_requests(tx: &mut Tx, agent: &AgentId) -> Result<Vec<Message>, Error> {
    let rows = sqlx::query(CLOSE_REQUESTS).bind(agent.as_str()).fetch_all(&mut tx.connection).await?;
    polity_points::point!("messages::requests_closed");
    let mut closed = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    closed.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(closed)
}

/// A series of messages between two agents. Neither agent did anything else during the series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Streak {
    /// All messages of the series have a higher number than this.
    pub after: i64,
    /// The number of exchanges. Several messages in a row in the same direction are one exchange.
    pub exchanges: u64,
}

/// Counts the exchanges between two agents since one of them last wrote to or heard from another party, stored an
/// artifact or hired an agent. The result is empty if the newest message went from `sender` to `receiver`, because the
/// next message then belongs to the same exchange.
pub async fn streak(
    connection: &mut SqliteConnection,
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
        let query = sqlx::query_scalar(OTHER_WORK).bind(pair[0].as_str()).bind(task.as_str());
        let newest: i64 = query.bind(crate::clock::now().as_millis()).fetch_one(&mut *connection).await?;
        since = since.max(newest);
    }
    let query = sqlx::query_scalar(BETWEEN).bind(sender.as_str()).bind(receiver.as_str()).bind(task.as_str());
    let senders: Vec<String> = query.bind(after).bind(since).fetch_all(connection).await?;
    let exchanges = if sender == receiver {
        senders.len()
    } else {
        let turns = senders.windows(2).filter(|pair| pair[0] != pair[1]).count();
        turns + usize::from(!senders.is_empty())
    };
    Ok(Streak { after, exchanges: exchanges as u64 })
}

/// Returns the number of the newest message that a statement finds for a pair, or 0 if there is none.
async fn newest(
    connection: &mut SqliteConnection,
    statement: &'static str,
    pair: [&AgentId; 2],
    task: &TaskId,
) -> Result<i64, Error> {
    let query = sqlx::query_scalar(statement).bind(pair[0].as_str()).bind(pair[1].as_str());
    let found: Option<Option<i64>> = query.bind(task.as_str()).fetch_optional(connection).await?;
    Ok(found.flatten().unwrap_or(0))
}

/// Returns whether the system has sent exactly this notice to an agent after the message with the number `since`.
pub async fn was_told(
    connection: &mut SqliteConnection,
    task: &TaskId,
    to: &AgentId,
    since: i64,
    notice: &Notice,
) -> Result<bool, Error> {
    let body = serde_json::to_string(notice).map_err(|error| damaged("messages", "new", error))?;
    let query = sqlx::query_scalar(TOLD).bind(to.as_str()).bind(task.as_str()).bind(since).bind(body);
    Ok(query.fetch_one(connection).await?)
}

/// Returns who waits for whom in a task. The person never counts as waiting.
pub async fn waits(connection: &mut SqliteConnection, task: &TaskId) -> Result<Vec<Wait>, Error> {
    let rows = sqlx::query(WAITS).bind(task.as_str()).fetch_all(connection).await?;
    let read = |row: &SqliteRow| Wait {
        waits: AgentId::new(row.get::<String, _>("sender")),
        awaited: AgentId::new(row.get::<String, _>("receiver")),
        request: MessageId::new(row.get::<String, _>("id")),
    };
    Ok(rows.iter().map(read).collect())
}

/// Returns the agents that have work in a task: an open turn, or a queued or delayed message.
pub async fn busy(connection: &mut SqliteConnection, task: &TaskId) -> Result<BTreeSet<AgentId>, Error> {
    let rows: Vec<String> = sqlx::query_scalar(BUSY).bind(task.as_str()).fetch_all(connection).await?;
    Ok(rows.into_iter().map(AgentId::new).collect())
}

/// Returns the messages that the person has not been shown yet, oldest first.
pub async fn unshown(connection: &mut SqliteConnection) -> Result<Vec<Message>, Error> {
    let rows = sqlx::query(UNSHOWN).fetch_all(connection).await?;
    rows.iter().map(read).collect()
}

/// Notes that the person has been shown a message.
pub async fn mark_shown(tx: &mut Tx, id: &MessageId) -> Result<(), Error> {
    sqlx::query(SHOWN).bind(id.as_str()).execute(&mut tx.connection).await?;
    polity_points::point!("messages::shown");
    Ok(())
}

/// Returns the unanswered questions of agents to the person in a task.
pub async fn questions(connection: &mut SqliteConnection, task: &TaskId) -> Result<Vec<Message>, Error> {
    let rows = sqlx::query(QUESTIONS).bind(task.as_str()).fetch_all(connection).await?;
    rows.iter().map(read).collect()
}

fn mailbox(row: &SqliteRow) -> Conversation {
    Conversation {
        agent: AgentId::new(row.get::<String, _>("receiver")),
        task: TaskId::new(row.get::<String, _>("task")),
    }
}

pub(crate) fn read(row: &SqliteRow) -> Result<Message, Error> {
    let id: String = row.get("id");
    let text = |column: &str| row.get::<String, _>(column);
    let optional = |column: &str| row.get::<Option<String>, _>(column);
    let bad = |error: serde_json::Error| damaged("messages", &id, error);
    let message_type = text("type");
    let body = if message_type == NOTICE {
        Body::Notice(serde_json::from_str(&text("body")).map_err(bad)?)
    } else {
        Body::Payload(Payload {
            message_type: MessageType::from_name(&message_type)
                .ok_or_else(|| damaged("messages", &id, format!("unknown type {message_type}")))?,
            attachments: serde_json::from_str::<Vec<ArtifactId>>(&text("attachments")).map_err(bad)?,
            fields: serde_json::from_str(&text("body")).map_err(bad)?,
        })
    };
    Ok(Message {
        task: TaskId::new(text("task")),
        from: Sender::from_name(&text("sender")),
        from_role: text("sender_role"),
        to: AgentId::new(text("receiver")),
        body,
        in_reply_to: optional("in_reply_to")
            .map_or(Ok(Vec::new()), |text| serde_json::from_str(&text))
            .map_err(bad)?,
        about: optional("about").map(MessageId::new),
        on_behalf_of: optional("on_behalf_of").map(MessageId::new),
        expects: text("expects").parse().unwrap_or(Expects::Nothing),
        finality: text("finality").parse().unwrap_or(Finality::Final),
        introduction: optional("introduction")
            .map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(bad)?,
        introduced: optional("introduced")
            .map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(bad)?,
        due_at: row.get::<Option<i64>, _>("due_at").map(Timestamp::from_millis),
        id: MessageId::new(id),
    })
}
