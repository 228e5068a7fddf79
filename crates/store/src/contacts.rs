//! Table `contacts`: which parties an agent may write to, and how the agent came to know them.

use super::agents::{self, AgentRow};
use super::{Error, Tx};
use polity_society::contact::{Contact, Source};
use polity_society::id::{AgentId, TaskId};
use polity_society::time::Timestamp;
use polity_sql::Connection;

const INSERT: &str =
    "INSERT INTO contacts (owner, agent, source, introduced_by, since, task)
    VALUES (?1, ?2, ?3, ?4, ?5, coalesce((SELECT task FROM agents WHERE id = ?2), '')) ON CONFLICT DO NOTHING";
/// The contacts of an agent in a task. Agents of other tasks are left out, because an agent may write only to agents
/// of its own task. The cost does not grow with the contacts in other tasks, of which root has many.
const OF: &str = "SELECT a.id, a.task, a.parent, a.role, a.name, a.brief, a.depth, a.ended_at,
    r.name AS role_name, r.interface_spec,
    coalesce(r.service, (SELECT service FROM tasks WHERE id = ?2)) AS service, c.source, c.introduced_by, c.since
    FROM contacts c INDEXED BY contacts_of_task JOIN agents a ON a.id = c.agent LEFT JOIN roles r ON r.id = a.role
    WHERE c.owner = ?1 AND c.task IN ('', ?2) AND (a.task IS NULL OR a.task = ?2) ORDER BY c.since, c.agent";
const KNOWS: &str = "SELECT EXISTS (SELECT 1 FROM contacts WHERE owner = ?1 AND agent = ?2)";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT, OF, KNOWS];

/// A contact, with the row of the agent that it names.
#[derive(Clone, Debug)]
pub struct ContactRow {
    pub agent: AgentRow,
    pub source: Source,
    pub introduced_by: Option<AgentId>,
    pub since: Timestamp,
}

/// Stores a contact, and returns whether it is new.
pub async fn insert(tx: &mut Tx, contact: &Contact) -> Result<bool, Error> {
    let done = polity_sql::query(INSERT)
        .bind(contact.owner.as_str())
        .bind(contact.agent.as_str())
        .bind(contact.source.as_str())
        .bind(contact.introduced_by.as_ref().map(AgentId::as_str))
        .bind(tx.now.as_millis())
        .execute(&mut tx.connection)
        .await?;
    polity_points::point!("contacts::inserted");
    Ok(done.rows_affected() == 1)
}

/// Returns the contacts of an agent in a task, oldest first.
pub async fn of(
    connection: &mut Connection,
    owner: &AgentId,
    task: &TaskId,
) -> Result<Vec<ContactRow>, Error> {
    let rows = polity_sql::query(OF).bind(owner.as_str()).bind(task.as_str()).fetch_all(connection).await?;
    rows.iter()
        .map(|row| {
            Ok(ContactRow {
                agent: agents::read(row)?,
                source: Source::from_name(&row.get::<String, _>("source")),
                introduced_by: row.get::<Option<String>, _>("introduced_by").map(AgentId::new),
                since: Timestamp::from_millis(row.get("since")),
            })
        })
        .collect()
}

pub async fn knows(connection: &mut Connection, owner: &AgentId, agent: &AgentId) -> Result<bool, Error> {
    Ok(polity_sql::query_scalar(KNOWS)
        .bind(owner.as_str())
        .bind(agent.as_str())
        .fetch_one(connection)
        .await?)
}
