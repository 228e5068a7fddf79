//! Table `turns`: which message began a turn, and how the turn ended.

use super::holds::held;
use super::{Conversation, Error, Tx, approvals, messages};
use polity_society::id::{AgentId, MessageId, TaskId, TurnId};
use polity_society::rules::Prompting;
use polity_sql::{Connection, Row};
use strum::{IntoStaticStr, VariantArray};

/// The kind of the notice that began a turn; NULL if a message of another type began the turn, or if the notice is
/// damaged.
macro_rules! notice {
    () => {
        "(SELECT CASE WHEN json_valid(body) THEN body ->> 'notice' END FROM messages
        WHERE messages.id = began_by AND type = 'notice') AS notice"
    };
}

const INSERT: &str = concat!(
    "INSERT INTO turns (agent, task, began_by, works_on, state, created_at) VALUES (?1, ?2, ?3, ?4, 'open', ?5)
    RETURNING id, began_by, works_on, ",
    notice!()
);
const OPEN: &str = concat!(
    "SELECT id, began_by, works_on, ",
    notice!(),
    " FROM turns WHERE agent = ?1 AND task = ?2 AND state = 'open'"
);
const TO_DO: &str = concat!(
    "SELECT o.id, o.began_by, o.works_on, ",
    notice!(),
    ", ",
    held!(),
    " AS held,
    EXISTS (SELECT 1 FROM messages INDEXED BY messages_waiting
        WHERE receiver = ?1 AND task = ?2 AND state = 'queued') AS mail
    FROM (SELECT 1) LEFT JOIN turns o ON o.agent = ?1 AND o.task = ?2 AND o.state = 'open'"
);
const ALL_OPEN: &str = "SELECT agent, task FROM turns WHERE state = 'open'";
const END: &str = "UPDATE turns SET state = ?2 WHERE id = ?1 AND state = 'open'";
const OPEN_OF: &str = "SELECT id FROM turns WHERE agent = ?1 AND state = 'open'";

/// Counts the turns that failed in a row. If the conversation was parked and then released, the turns before the
/// release do not count.
const FAILURES: &str = "SELECT count(*) FROM turns WHERE agent = ?1 AND task = ?2 AND state = 'failed'
    AND id > coalesce((SELECT max(id) FROM turns WHERE agent = ?1 AND task = ?2 AND state IN ('done', 'stopped')), 0)
    AND id > coalesce((SELECT turn FROM releases WHERE agent = ?1 AND task = ?2), 0)";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT, OPEN, TO_DO, ALL_OPEN, END, OPEN_OF, FAILURES];

/// A turn that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTurn {
    pub id: TurnId,
    pub began_by: MessageId,
    /// The request that the turn works on.
    pub works_on: Option<MessageId>,
    /// How the turn began.
    pub prompting: Prompting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Ended {
    Done,
    Failed,
    Stopped,
}

pub async fn begin(
    tx: &mut Tx,
    conversation: &Conversation,
    message: &MessageId,
    works_on: Option<MessageId>,
) -> Result<OpenTurn, Error> {
    let query = polity_sql::query(INSERT)
        .bind(conversation.agent.as_str())
        .bind(conversation.task.as_str())
        .bind(message.as_str())
        .bind(works_on.as_ref().map(MessageId::as_str))
        .bind(tx.now.as_millis());
    let open = read(&query.fetch_one(&mut tx.connection).await?);
    polity_points::point!("turns::begun");
    Ok(open)
}

pub async fn open(
    connection: &mut Connection,
    conversation: &Conversation,
) -> Result<Option<OpenTurn>, Error> {
    let query = polity_sql::query(OPEN).bind(conversation.agent.as_str()).bind(conversation.task.as_str());
    let row = query.fetch_optional(connection).await?;
    Ok(row.as_ref().map(read))
}

/// What a conversation has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToDo {
    /// The conversation is parked, or its agent is paused.
    Held,
    /// The conversation goes on with its open turn.
    Turn(OpenTurn),
    /// A message waits for a turn.
    Mail,
    Nothing,
}

/// Returns what a conversation has to do.
pub async fn to_do(connection: &mut Connection, conversation: &Conversation) -> Result<ToDo, Error> {
    let row = read_to_do(connection, conversation).await?;
    Ok(match open_in(&row) {
        _ if row.get("held") => ToDo::Held,
        Some(turn) => ToDo::Turn(turn),
        None if row.get("mail") => ToDo::Mail,
        None => ToDo::Nothing,
    })
}

/// Returns whether a conversation has an open turn or queued mail, even if it may not go on.
pub async fn has_work(connection: &mut Connection, conversation: &Conversation) -> Result<bool, Error> {
    let row = read_to_do(connection, conversation).await?;
    Ok(open_in(&row).is_some() || row.get("mail"))
}

/// Whether a conversation may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayGoOn {
    Yes,
    /// The conversation is parked, or its agent is paused.
    Held,
}

/// Returns the open turn of a conversation, and whether the conversation may go on.
pub async fn open_and_held(
    connection: &mut Connection,
    conversation: &Conversation,
) -> Result<(Option<OpenTurn>, MayGoOn), Error> {
    let row = read_to_do(connection, conversation).await?;
    Ok((open_in(&row), if row.get("held") { MayGoOn::Held } else { MayGoOn::Yes }))
}

async fn read_to_do(connection: &mut Connection, conversation: &Conversation) -> Result<Row, Error> {
    let query = polity_sql::query(TO_DO).bind(conversation.agent.as_str()).bind(conversation.task.as_str());
    Ok(query.fetch_one(connection).await?)
}

fn open_in(row: &Row) -> Option<OpenTurn> {
    row.get::<Option<i64>, _>("id").map(|_| read(row))
}

fn read(row: &Row) -> OpenTurn {
    OpenTurn {
        id: TurnId::new(row.get("id")),
        began_by: MessageId::new(row.get::<String, _>("began_by")),
        works_on: row.get::<Option<String>, _>("works_on").map(MessageId::new),
        prompting: match row.get::<Option<&str>, _>("notice") {
            Some("nudge") => Prompting::Nudge,
            Some("deadlock") => Prompting::Deadlock,
            _ => Prompting::Ordinary,
        },
    }
}

/// Returns the conversations that have an open turn.
pub async fn all_open(connection: &mut Connection) -> Result<Vec<Conversation>, Error> {
    let rows = polity_sql::query(ALL_OPEN).fetch_all(connection).await?;
    let read = |row: &polity_sql::Row| Conversation {
        agent: AgentId::new(row.get::<String, _>("agent")),
        task: TaskId::new(row.get::<String, _>("task")),
    };
    Ok(rows.iter().map(read).collect())
}

pub async fn end(tx: &mut Tx, turn: TurnId, ended: Ended) -> Result<(), Error> {
    let state: &str = ended.into();
    let hit = polity_sql::query(END)
        .bind(turn.number())
        .bind(state)
        .execute(&mut tx.connection)
        .await?
        .rows_affected();
    polity_points::point!("turns::ended");
    if hit != 1 {
        return Err(Error::WrongRows { what: "ending a turn", expected: 1, hit });
    }
    approvals::drop_of_turn(tx, turn).await?;
    // The released agents waited for an answer from this turn. Before the transaction ends, the module `rest` of the
    // runtime checks whether they now have texts to deliver.
    let released = messages::release(tx, turn).await?;
    tx.released.extend(released);
    Ok(())
}

/// Returns the open turn of an agent. Callers must not pass root, which can have an open turn in each task.
pub async fn open_of(connection: &mut Connection, agent: &AgentId) -> Result<Option<TurnId>, Error> {
    let id = polity_sql::query_scalar(OPEN_OF).bind(agent.as_str()).fetch_optional(connection).await?;
    Ok(id.map(TurnId::new))
}

/// Returns how many turns of a conversation have failed in a row.
pub async fn failures(connection: &mut Connection, conversation: &Conversation) -> Result<u64, Error> {
    let query = polity_sql::query_scalar(FAILURES).bind(conversation.agent.as_str());
    let failures: i64 = query.bind(conversation.task.as_str()).fetch_one(connection).await?;
    Ok(failures.unsigned_abs())
}
