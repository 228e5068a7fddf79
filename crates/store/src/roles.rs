//! Table `roles`: the roles that agents are hired into.

use super::{Error, Tx, damaged};
use polity_society::id::{AgentId, RoleId, ServiceId, TaskId};
use polity_society::name::Name;
use polity_society::role::Role;
use polity_sql::Connection;
use polity_sql::Row;

const INSERT: &str = "INSERT INTO roles (id, task, creator, name, prompt, interface_spec, service,
    required_capabilities, tool_groups, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
const UPDATE: &str =
    "UPDATE roles SET prompt = ?2, interface_spec = ?3, service = ?4, required_capabilities = ?5, tool_groups = ?6
    WHERE id = ?1";
const BY_ID: &str = "SELECT * FROM roles WHERE id = ?1";
const SEVERAL: &str = "SELECT * FROM roles WHERE id IN (SELECT value FROM json_each(?1))";
const BY_NAME: &str = "SELECT * FROM roles WHERE task = ?1 AND creator = ?2 AND name = ?3";
const EXISTS: &str = "SELECT EXISTS (SELECT 1 FROM roles WHERE id = ?1)";
/// The roles with the id or name ?3 that the agent ?1 may use. A role may be used by its creator and by the creator's
/// ancestors, so the query begins with the creator of each role and follows the parents up to root.
const USABLE: &str = "WITH RECURSIVE above (role, agent) AS (
        SELECT id, creator FROM roles WHERE task = ?2 AND (id = ?3 OR name = ?3)
        UNION SELECT above.role, agents.parent FROM above JOIN agents ON agents.id = above.agent
        WHERE agents.parent IS NOT NULL)
    SELECT roles.* FROM above JOIN roles ON roles.id = above.role WHERE above.agent = ?1 ORDER BY roles.id";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT, UPDATE, BY_ID, SEVERAL, BY_NAME, EXISTS, USABLE];

pub async fn insert(tx: &mut Tx, role: &Role) -> Result<(), Error> {
    polity_sql::query(INSERT)
        .bind(role.id.as_str())
        .bind(role.task.as_str())
        .bind(role.creator.as_str())
        .bind(role.name.as_str())
        .bind(&role.prompt)
        .bind(role.interface_spec.as_ref().map(polity_sql::Json))
        .bind(role.service.as_str())
        .bind(polity_sql::Json(&role.required_capabilities))
        .bind(polity_sql::Json(&role.tool_groups))
        .bind(tx.now.as_millis())
        .execute(&mut tx.connection)
        .await?;
    polity_points::point!("roles::inserted");
    Ok(())
}

/// Writes the columns of a role that can change.
pub async fn update(tx: &mut Tx, role: &Role) -> Result<(), Error> {
    let done = polity_sql::query(UPDATE)
        .bind(role.id.as_str())
        .bind(&role.prompt)
        .bind(role.interface_spec.as_ref().map(polity_sql::Json))
        .bind(role.service.as_str())
        .bind(polity_sql::Json(&role.required_capabilities))
        .bind(polity_sql::Json(&role.tool_groups))
        .execute(&mut tx.connection)
        .await?;
    polity_points::point!("roles::updated");
    let hit = done.rows_affected();
    if hit != 1 {
        return Err(Error::WrongRows { what: "changing a role", expected: 1, hit });
    }
    Ok(())
}

pub async fn get(connection: &mut Connection, id: &RoleId) -> Result<Option<Role>, Error> {
    let row = polity_sql::query(BY_ID).bind(id.as_str()).fetch_optional(connection).await?;
    row.as_ref().map(read).transpose()
}

/// Returns the roles with these ids. Ids without a role are skipped.
pub async fn several(connection: &mut Connection, ids: &[RoleId]) -> Result<Vec<Role>, Error> {
    let rows = polity_sql::query(SEVERAL).bind(polity_sql::Json(ids)).fetch_all(connection).await?;
    rows.iter().map(read).collect()
}

/// Returns the role with this name that an agent has created in a task.
pub async fn made_by(
    connection: &mut Connection,
    creator: &AgentId,
    task: &TaskId,
    name: &str,
) -> Result<Option<Role>, Error> {
    let query = polity_sql::query(BY_NAME).bind(task.as_str()).bind(creator.as_str()).bind(name);
    let row = query.fetch_optional(connection).await?;
    row.as_ref().map(read).transpose()
}

/// Returns the roles with this id or name into which an agent may hire other agents.
pub async fn usable(
    connection: &mut Connection,
    agent: &AgentId,
    task: &TaskId,
    meant: &str,
) -> Result<Vec<Role>, Error> {
    let query = polity_sql::query(USABLE).bind(agent.as_str()).bind(task.as_str()).bind(meant.trim());
    let rows = query.fetch_all(connection).await?;
    rows.iter().map(read).collect()
}

pub async fn exists(connection: &mut Connection, id: &str) -> Result<bool, Error> {
    Ok(polity_sql::query_scalar(EXISTS).bind(id).fetch_one(connection).await?)
}

pub(super) fn read(row: &Row) -> Result<Role, Error> {
    let id: String = row.get("id");
    let name: String = row.get("name");
    let json = |column: &str| row.get::<String, _>(column);
    Ok(Role {
        task: TaskId::new(row.get::<String, _>("task")),
        creator: AgentId::new(row.get::<String, _>("creator")),
        name: Name::parse(&name).map_err(|fault| damaged("roles", &id, fault))?,
        prompt: row.get("prompt"),
        interface_spec: row
            .get::<Option<String>, _>("interface_spec")
            .map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(|error| damaged("roles", &id, error))?,
        service: ServiceId::new(row.get::<String, _>("service")),
        required_capabilities: serde_json::from_str(&json("required_capabilities"))
            .map_err(|error| damaged("roles", &id, error))?,
        tool_groups: serde_json::from_str(&json("tool_groups"))
            .map_err(|error| damaged("roles", &id, error))?,
        id: RoleId::new(id),
    })
}
