//! Finds and ends requests: which requests are open, which have an answer, and who waits for whom.

use super::row::read;
use crate::{Conversation, Error, Tx};
use polity_society::id::{AgentId, MessageId, TaskId, TurnId};
use polity_society::message::Message;
use polity_society::rules::{OpenRequest, Owed, Pending, Reminded, RequestRow, Wait};
use polity_sql::Connection;
use polity_sql::Json;
use polity_sql::Row;
use std::collections::BTreeSet;

/// The states of a request that somebody may still answer. This is the condition of the indexes `messages_asked` and
/// `messages_open`. SQLite uses an index only if a statement has the condition of the index word for word, so a
/// statement that is about fewer states has this condition and its own.
macro_rules! answerable {
    () => {
        "state IN ('delayed', 'queued', 'in_turn', 'done')"
    };
}
pub(crate) use answerable;
/// The condition of the index `messages_open_requests`: as [`answerable!`], but a request of the person stays open when
/// the turn that read it has failed.
macro_rules! answerable_or_failed {
    () => {
        concat!("(", $crate::messages::requests::answerable!(), " OR state = 'failed' AND sender = 'user')")
    };
}
pub(crate) use answerable_or_failed;
/// The states of a request that its receiver has read. This is the condition of the index `messages_unanswered`.
macro_rules! was_read {
    () => {
        "state IN ('in_turn', 'done')"
    };
}
pub(crate) use was_read;
/// The open requests to a party in a task. A request to an agent counts once the agent has read it, because the agent
/// can answer it only then. A request to the person counts even while it is queued, because nobody knows what a person
/// has read. A request from the person stays open even if the turn that read it failed.
macro_rules! open_to {
    () => {
        concat!(
            "messages INDEXED BY messages_open_requests
    WHERE receiver = ?1 AND task = ?2 AND expects = 'answer' AND answered_by IS NULL
    AND ",
            answerable_or_failed!(),
            "
    AND (",
            was_read!(),
            " OR state = 'failed' AND sender = 'user' OR state = 'queued' AND receiver = 'user')"
        )
    };
}
/// Whether a message is an open question to the person. If its sender is stopped, the message becomes `failed`.
macro_rules! open_question {
    () => {
        concat!(
            "receiver = 'user' AND expects = 'answer' AND answered_by IS NULL
    AND ",
            $crate::messages::requests::answerable!()
        )
    };
}
pub(crate) use open_question;
/// Whether the sender of the message m waits for an answer from another party.
macro_rules! awaited {
    () => {
        concat!(
            "m.expects = 'answer' AND m.answered_by IS NULL AND m.receiver <> m.sender
    AND m.",
            $crate::messages::requests::answerable!()
        )
    };
}
pub(crate) use awaited;
/// Finds what the agent ?1 still waits for, and returns the request R on behalf of which it waits. The agent can answer
/// R only after the wait. The agent waits for one of four things: the answer to a request that it sent on behalf of R,
/// the end of a turn that has answered such a request, a delayed message that it sent to itself, or the end of a
/// background command.
macro_rules! pending {
    () => {
        concat!(
            "SELECT on_behalf_of AS request FROM messages INDEXED BY messages_asked
    WHERE sender = ?1 AND task = ?2 AND expects = 'answer' AND answered_by IS NULL AND receiver <> ?1
    AND ",
            answerable!(),
            "
    UNION SELECT on_behalf_of FROM messages INDEXED BY messages_still_awaited
    WHERE sender = ?1 AND task = ?2 AND answered_in IS NOT NULL
    UNION SELECT about FROM messages INDEXED BY messages_delayed
    WHERE state = 'delayed' AND sender = ?1 AND receiver = ?1 AND task = ?2
    UNION SELECT request FROM commands INDEXED BY commands_running
    WHERE agent = ?1 AND task = ?2 AND state = 'running'"
        )
    };
}
/// Finds the answers, reports and notices that are queued for the agent ?1, and follows each of them to a request R:
/// the queued message is about a request Q that the agent sent, and the agent sent Q on behalf of R. The result is R,
/// or NULL for a queued message that leads to no R.
macro_rules! unheard {
    () => {
        "SELECT DISTINCT (SELECT asked.on_behalf_of FROM messages asked
        WHERE asked.id = coalesce(news.in_reply_to ->> 0, news.about) AND asked.sender = news.receiver) AS request
    FROM messages news INDEXED BY messages_unheard
    WHERE news.receiver = ?1 AND news.task = ?2 AND news.state = 'queued'
    AND (news.in_reply_to IS NOT NULL OR news.about IS NOT NULL OR news.sender = 'system')"
    };
}

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
const FAIL: &str = "UPDATE messages SET state = 'failed'
    WHERE id = ?1 AND answered_by IS NULL AND state IN ('in_turn', 'done')";
const OPEN_TO: &str = concat!("SELECT id, sender, on_behalf_of FROM ", open_to!(), " ORDER BY seq");
const REQUESTS: &str = "SELECT id, sender, receiver, on_behalf_of FROM messages
    WHERE id IN (SELECT value FROM json_each(?1)) ORDER BY seq";
const CHAIN: &str = "WITH RECURSIVE chain (id, depth) AS (
        SELECT on_behalf_of, 1 FROM messages WHERE id = ?1
        UNION ALL SELECT m.on_behalf_of, chain.depth + 1 FROM messages m JOIN chain ON m.id = chain.id WHERE chain.depth < 100)
    SELECT id FROM chain WHERE id IS NOT NULL ORDER BY depth";
const PENDING: &str = pending!();
/// Finds all requests that a message of an agent can depend on: the request that the agent's turn works on (`part` 0),
/// the open requests to the agent (`part` 1), the requests that [`PENDING`] finds (`part` 2), and the requests that
/// [`unheard!`] finds (`part` 3). If the agent has texts that are not delivered yet, the result has one more row
/// (`part` 4).
const REQUESTS_OF: &str = concat!(
    "SELECT 0 AS part, 0 AS seq, works_on AS id, NULL AS sender, NULL AS on_behalf_of FROM turns
        WHERE agent = ?1 AND task = ?2 AND state = 'open'
    UNION ALL SELECT 1, seq, id, sender, on_behalf_of FROM ",
    open_to!(),
    "
    UNION ALL SELECT 2, 0, NULL, NULL, request FROM (",
    pending!(),
    ")
    UNION ALL SELECT 3, 0, NULL, NULL, request FROM (",
    unheard!(),
    ")
    UNION ALL SELECT 4, 0, NULL, NULL, NULL WHERE EXISTS (SELECT 1 FROM notes WHERE agent = ?1 AND task = ?2)
    ORDER BY part, seq"
);
/// A request that an open turn has read is not owed yet.
const OWED: &str = concat!(
    "SELECT id, sender, reminded FROM messages INDEXED BY messages_unanswered
    WHERE receiver = ?1 AND task = ?2 AND expects = 'answer' AND answered_by IS NULL
    AND ",
    was_read!(),
    " AND state = 'done' ORDER BY seq"
);
const WAITS: &str = concat!(
    "SELECT m.sender, m.receiver, m.id FROM messages m INDEXED BY messages_open
    JOIN agents a ON a.id = m.receiver
    WHERE m.task = ?1 AND a.ended_at IS NULL AND m.sender <> 'user' AND ",
    awaited!()
);
const CLOSE_REQUESTS: &str = concat!(
    "UPDATE messages INDEXED BY messages_unanswered SET state = 'failed'
    WHERE receiver = ?1 AND expects = 'answer' AND answered_by IS NULL AND ",
    was_read!(),
    "
    AND state = 'done' RETURNING *"
);
const QUESTIONS: &str = concat!(
    "SELECT * FROM messages INDEXED BY messages_open_requests WHERE task = ?1 AND ",
    open_question!(),
    " ORDER BY seq"
);
/// The unanswered requests of a task, in every state except `bounced`.
const UNANSWERED: &str = "SELECT id, sender, receiver, created_at FROM messages INDEXED BY messages_of_task
    WHERE task = ?1 AND expects = 'answer' AND answered_by IS NULL AND state <> 'bounced' ORDER BY seq LIMIT ?2";
/// A request from an agent whose turn has failed is not open: the agent was told, and waits no longer.
const OPEN_IN: &str = "SELECT id, sender, receiver, created_at FROM messages INDEXED BY messages_of_task
    WHERE task = ?1 AND expects = 'answer' AND answered_by IS NULL
        AND (state IN ('queued', 'in_turn', 'done') OR state = 'failed' AND sender = 'user') ORDER BY seq LIMIT ?2";
/// The most requests that [`unanswered`] and [`open_in`] return.
const MOST_UNANSWERED: i64 = 100;

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[
    ANSWER,
    RELEASE,
    GIVE_UP,
    MARK_REMINDED,
    FAIL,
    OPEN_TO,
    REQUESTS,
    CHAIN,
    PENDING,
    REQUESTS_OF,
    OWED,
    WAITS,
    CLOSE_REQUESTS,
    QUESTIONS,
    UNANSWERED,
    OPEN_IN,
];

/// Notes the answer of a request. Only the first answer is stored.
pub async fn answer(tx: &mut Tx, request: &MessageId, answer: &MessageId) -> Result<(), Error> {
    polity_sql::query(ANSWER)
        .bind(request.as_str())
        .bind(answer.as_str())
        .execute(&mut tx.connection)
        .await?;
    polity_points::point!("messages::answered");
    Ok(())
}

/// Notes that nobody will answer a message that was read: the message gets the state `failed`.
pub async fn fail(tx: &mut Tx, id: &MessageId) -> Result<(), Error> {
    polity_sql::query(FAIL).bind(id.as_str()).execute(&mut tx.connection).await?;
    polity_points::point!("messages::failed");
    Ok(())
}

/// Notes that a turn has ended: the askers whose requests were answered in this turn stop waiting. Returns the
/// conversations of these askers.
pub async fn release(tx: &mut Tx, turn: TurnId) -> Result<Vec<Conversation>, Error> {
    let rows = polity_sql::query(RELEASE).bind(turn.number()).fetch_all(&mut tx.connection).await?;
    polity_points::point!("messages::released");
    let read = |row: &Row| Conversation {
        agent: AgentId::new(row.get::<String, _>("sender")),
        task: TaskId::new(row.get::<String, _>("task")),
    };
    Ok(rows.iter().map(read).collect())
}

/// Notes that a request will stay unanswered: the request gets the state `unanswered`.
pub async fn give_up(tx: &mut Tx, id: &MessageId) -> Result<(), Error> {
    polity_sql::query(GIVE_UP).bind(id.as_str()).execute(&mut tx.connection).await?;
    polity_points::point!("messages::given_up");
    Ok(())
}

/// Notes that the receiver of these requests was reminded of them.
pub async fn mark_reminded(tx: &mut Tx, ids: &BTreeSet<MessageId>) -> Result<(), Error> {
    polity_sql::query(MARK_REMINDED).bind(Json(ids)).execute(&mut tx.connection).await?;
    polity_points::point!("messages::reminded");
    Ok(())
}

/// Returns the open requests that an agent has read in a task, oldest first.
pub async fn open_requests(
    connection: &mut Connection,
    mailbox: &Conversation,
) -> Result<Vec<OpenRequest>, Error> {
    let query = polity_sql::query(OPEN_TO).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    let rows = query.fetch_all(&mut *connection).await?;
    let mut requests = Vec::with_capacity(rows.len());
    for row in &rows {
        requests.push(open_request(connection, row).await?);
    }
    Ok(requests)
}

async fn open_request(connection: &mut Connection, row: &Row) -> Result<OpenRequest, Error> {
    let id: String = row.get("id");
    let chain: Vec<String> = match row.get::<Option<&str>, _>("on_behalf_of") {
        Some(_) => polity_sql::query_scalar(CHAIN).bind(&id).fetch_all(&mut *connection).await?,
        None => Vec::new(),
    };
    Ok(OpenRequest {
        id: MessageId::new(id),
        from: AgentId::new(row.get::<String, _>("sender")),
        chain: chain.into_iter().map(MessageId::new).collect(),
    })
}

/// The requests that a message of an agent can depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestsOf {
    /// The request that the agent's open turn works on.
    pub works_on: Option<MessageId>,
    /// The open requests that the agent has read, oldest first.
    pub open: Vec<OpenRequest>,
    /// The requests that the agent cannot answer yet, because the agent itself waits for something.
    pub pending: Vec<Pending>,
    /// The requests R to which the answers, reports and notices in the agent's mailbox lead: such a queued message is
    /// about a request Q that the agent sent, and the agent sent Q on behalf of R.
    pub unheard: Vec<Pending>,
    /// Whether the agent has held texts: texts that are not delivered yet.
    pub holds_texts: bool,
}

/// Returns the requests that a message of an agent can depend on, with one statement.
pub async fn requests_of(connection: &mut Connection, of: &Conversation) -> Result<RequestsOf, Error> {
    let query = polity_sql::query(REQUESTS_OF).bind(of.agent.as_str()).bind(of.task.as_str());
    let mut found = RequestsOf::default();
    for row in query.fetch_all(&mut *connection).await? {
        let request = |column: &str| row.get::<Option<String>, _>(column).map(MessageId::new);
        match row.get::<i64, _>("part") {
            0 => found.works_on = request("id"),
            1 => found.open.push(open_request(connection, &row).await?),
            2 => found.pending.push(Pending { on_behalf_of: request("on_behalf_of") }),
            3 => found.unheard.push(Pending { on_behalf_of: request("on_behalf_of") }),
            _ => found.holds_texts = true,
        }
    }
    Ok(found)
}

/// Returns the requests with these ids, oldest first.
pub async fn requests<'i>(
    connection: &mut Connection,
    ids: impl Iterator<Item = &'i MessageId>,
) -> Result<Vec<RequestRow>, Error> {
    let ids: Vec<&MessageId> = ids.collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows = polity_sql::query(REQUESTS).bind(Json(ids)).fetch_all(connection).await?;
    let read = |row: &Row| RequestRow {
        id: MessageId::new(row.get::<String, _>("id")),
        from: AgentId::new(row.get::<String, _>("sender")),
        to: AgentId::new(row.get::<String, _>("receiver")),
        on_behalf_of: row.get::<Option<String>, _>("on_behalf_of").map(MessageId::new),
    };
    Ok(rows.iter().map(read).collect())
}

/// Returns the requests that an agent cannot answer yet, because the agent itself waits for something, such as the
/// answer of another agent.
pub async fn pending(connection: &mut Connection, asker: &Conversation) -> Result<Vec<Pending>, Error> {
    waits_of(connection, PENDING, asker).await
}

async fn waits_of(
    connection: &mut Connection,
    statement: &'static str,
    of: &Conversation,
) -> Result<Vec<Pending>, Error> {
    let query = polity_sql::query_scalar(statement).bind(of.agent.as_str()).bind(of.task.as_str());
    let requests: Vec<Option<String>> = query.fetch_all(connection).await?;
    Ok(requests.into_iter().map(|request| Pending { on_behalf_of: request.map(MessageId::new) }).collect())
}

/// Returns the requests that an agent has read in ended turns but not answered, oldest first.
pub async fn owed(connection: &mut Connection, mailbox: &Conversation) -> Result<Vec<Owed>, Error> {
    let query = polity_sql::query(OWED).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    let rows = query.fetch_all(connection).await?;
    let read = |row: &Row| Owed {
        request: MessageId::new(row.get::<String, _>("id")),
        asker: AgentId::new(row.get::<String, _>("sender")),
        reminded: if row.get("reminded") { Reminded::Yes } else { Reminded::No },
    };
    Ok(rows.iter().map(read).collect())
}

/// Closes the requests that an ended agent has read but not answered, and returns them, oldest first.
pub async fn close_requests(tx: &mut Tx, agent: &AgentId) -> Result<Vec<Message>, Error> {
    let rows = polity_sql::query(CLOSE_REQUESTS).bind(agent.as_str()).fetch_all(&mut tx.connection).await?;
    polity_points::point!("messages::requests_closed");
    let mut closed = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    closed.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(closed)
}

/// Returns who waits for whom in a task. The person never counts as waiting.
pub async fn waits(connection: &mut Connection, task: &TaskId) -> Result<Vec<Wait>, Error> {
    let rows = polity_sql::query(WAITS).bind(task.as_str()).fetch_all(connection).await?;
    let read = |row: &Row| Wait {
        waits: AgentId::new(row.get::<String, _>("sender")),
        awaited: AgentId::new(row.get::<String, _>("receiver")),
        request: MessageId::new(row.get::<String, _>("id")),
    };
    Ok(rows.iter().map(read).collect())
}

/// A request that nobody has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unanswered {
    pub id: MessageId,
    pub from: String,
    pub to: AgentId,
    pub since: i64,
}

/// Returns the oldest unanswered requests of a task. Bounced requests do not count. A request whose turn has failed
/// counts.
pub async fn unanswered(connection: &mut Connection, task: &TaskId) -> Result<Vec<Unanswered>, Error> {
    without_answer(connection, UNANSWERED, task).await
}

/// Returns the oldest requests of a task whose answer somebody still awaits. Requests that are not due yet do not count.
pub async fn open_in(connection: &mut Connection, task: &TaskId) -> Result<Vec<Unanswered>, Error> {
    without_answer(connection, OPEN_IN, task).await
}

async fn without_answer(
    connection: &mut Connection,
    statement: &'static str,
    task: &TaskId,
) -> Result<Vec<Unanswered>, Error> {
    let query = polity_sql::query(statement).bind(task.as_str()).bind(MOST_UNANSWERED);
    let read = |row: &Row| Unanswered {
        id: MessageId::new(row.get::<String, _>("id")),
        from: row.get("sender"),
        to: AgentId::new(row.get::<String, _>("receiver")),
        since: row.get("created_at"),
    };
    Ok(query.fetch_all(connection).await?.iter().map(read).collect())
}

/// Returns the unanswered questions of agents to the person in a task.
pub async fn questions(connection: &mut Connection, task: &TaskId) -> Result<Vec<Message>, Error> {
    let rows = polity_sql::query(QUESTIONS).bind(task.as_str()).fetch_all(connection).await?;
    rows.iter().map(read).collect()
}
