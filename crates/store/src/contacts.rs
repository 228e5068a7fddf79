//! Table `contacts`: which parties an agent may write to, and how the agent came to know them.

use super::agents::{self, AgentRow};
use super::{Error, Tx};
use polity_society::contact::{Contact, Source};
use polity_society::id::{AgentId, TaskId};
use polity_society::time::Timestamp;
use polity_sql::{Connection, Json};
use std::collections::HashSet;

/// Without `WHERE true`, SQLite reads `ON` as a part of the FROM clause.
const INSERT: &str = "INSERT INTO contacts (owner, agent, source, introduced_by, since, task)
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, ?2,
        coalesce((SELECT task FROM agents WHERE id = value ->> 1), '')
    FROM json_each(?1) WHERE true ORDER BY key ON CONFLICT DO NOTHING RETURNING owner, agent";
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

/// Stores contacts with one statement, and returns the new ones among them, in their order.
pub async fn insert(tx: &mut Tx, mut contacts: Vec<Contact>) -> Result<Vec<Contact>, Error> {
    let row = |contact: &Contact| {
        let introduced_by = contact.introduced_by.as_ref().map(AgentId::to_string);
        (contact.owner.to_string(), contact.agent.to_string(), contact.source.as_str(), introduced_by)
    };
    let rows: Vec<_> = contacts.iter().map(row).collect();
    let query = polity_sql::query(INSERT).bind(Json(&rows)).bind(tx.now.as_millis());
    let inserted = query.fetch_all(&mut tx.connection).await?;
    polity_points::point!("contacts::inserted");
    let mut inserted: HashSet<(String, String)> =
        inserted.iter().map(|row| (row.get("owner"), row.get("agent"))).collect();
    // If a contact comes twice, only the first one is new.
    contacts.retain(|contact| inserted.remove(&(contact.owner.to_string(), contact.agent.to_string())));
    Ok(contacts)
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
