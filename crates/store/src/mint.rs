//! Creates new ids, which are short and easy for a model to repeat.

use crate::{Error, agents, roles};
use polity_society::id::{AgentId, ArtifactId, RoleId, TaskId, readable};
use polity_society::name::Name;
use polity_sql::Connection;

/// Letters and digits, without characters that look alike, such as `0` and `o`, or `1` and `l`.
const ALPHABET: &[u8] = b"23456789abcdefghjkmnpqrstvwxyz";

fn random(length: usize) -> String {
    let pick = |_| fastrand::choice(ALPHABET).map_or('x', |&byte| char::from(byte));
    (0..length).map(pick).collect()
}

/// Returns an id for a new task.
pub fn task() -> TaskId {
    TaskId::new(format!("t-{}", random(8)))
}

/// Returns an id for a new artifact. A collision is very unlikely; if one happens, the database refuses the new row.
pub fn artifact() -> ArtifactId {
    ArtifactId::new(random(10))
}

/// Returns an unused id for a new agent, derived from its name or role.
pub async fn agent(connection: &mut Connection, name: &Name) -> Result<AgentId, Error> {
    loop {
        let id = readable(name.as_str(), "agent", &random(4));
        if !agents::exists(connection, &id).await? {
            return Ok(AgentId::new(id));
        }
    }
}

/// Returns an unused id that begins with `readable`, the readable part of another agent's id.
pub async fn agent_like(connection: &mut Connection, readable: &str) -> Result<AgentId, Error> {
    loop {
        let id = format!("{readable}-{}", random(4));
        if !agents::exists(connection, &id).await? {
            return Ok(AgentId::new(id));
        }
    }
}

/// Returns an unused id for a new role.
pub async fn role(connection: &mut Connection) -> Result<RoleId, Error> {
    loop {
        let id = format!("role-{}", random(4));
        if !roles::exists(connection, &id).await? {
            return Ok(RoleId::new(id));
        }
    }
}
