//! Checks a whole database: its structure, and whether the daemon can read every row.

use super::database::findings;
use crate::{
    Error, MIGRATIONS, agents, approvals, artifacts, damaged, events, exchanges, messages, records, roles,
    seen, sent,
};
use polity_artifacts::BlobHash;
use polity_society::id::ArtifactId;
use polity_sql::{Connection, Row, Value};
use std::collections::{BTreeMap, HashMap};

const BEGIN: &str = "BEGIN";
const INTEGRITY: &str = "PRAGMA integrity_check";
const FOREIGN_KEYS: &str = "PRAGMA foreign_key_check";
const HAS_SCHEMA: &str = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = '_sqlx_migrations')";
const SCHEMA: &str = "SELECT coalesce(max(version), 0) FROM _sqlx_migrations";
const COLUMNS: &str = "SELECT name, type, \"notnull\" OR pk > 0 AS needed FROM pragma_table_info(?1)";
const BLOBS: &str = "SELECT id, blob FROM artifacts ORDER BY id";

/// The statements of this file, except the statements in [`TABLES`]; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[BEGIN, INTEGRITY, FOREIGN_KEYS, HAS_SCHEMA, SCHEMA, COLUMNS, BLOBS];

/// A table, and how the daemon reads its rows.
struct Table {
    name: &'static str,
    rows: &'static str,
    read: fn(&Row) -> Result<(), Error>,
}

const TABLES: &[Table] = &[
    Table { name: "tasks", rows: "SELECT * FROM tasks", read: |_| Ok(()) },
    Table { name: "roles", rows: "SELECT * FROM roles", read: |row| roles::read(row).map(drop) },
    Table {
        name: "agents",
        // `agents::read` also expects three columns of the agent's role, which are NULL here. The entry for the table
        // `roles` checks the roles themselves.
        rows: "SELECT *, NULL AS role_name, NULL AS interface_spec, NULL AS service FROM agents",
        read: |row| agents::read(row).map(drop),
    },
    Table { name: "contacts", rows: "SELECT * FROM contacts", read: |_| Ok(()) },
    Table { name: "messages", rows: "SELECT * FROM messages", read: |row| messages::read(row).map(drop) },
    Table { name: "turns", rows: "SELECT * FROM turns", read: |_| Ok(()) },
    Table { name: "records", rows: "SELECT * FROM records", read: |row| records::read(row).map(drop) },
    Table { name: "artifacts", rows: "SELECT * FROM artifacts", read: artifact },
    Table { name: "artifact_grants", rows: "SELECT * FROM artifact_grants", read: |_| Ok(()) },
    Table { name: "inherited", rows: "SELECT * FROM inherited", read: |_| Ok(()) },
    Table { name: "model_calls", rows: "SELECT * FROM model_calls", read: |_| Ok(()) },
    Table { name: "spent", rows: "SELECT * FROM spent", read: |_| Ok(()) },
    Table { name: "spent_in_tasks", rows: "SELECT * FROM spent_in_tasks", read: |_| Ok(()) },
    Table { name: "spent_by_agents", rows: "SELECT * FROM spent_by_agents", read: |_| Ok(()) },
    Table { name: "served", rows: "SELECT * FROM served", read: |_| Ok(()) },
    Table { name: "notes", rows: "SELECT * FROM notes", read: |_| Ok(()) },
    Table { name: "outputs", rows: "SELECT * FROM outputs", read: |_| Ok(()) },
    Table { name: "events", rows: "SELECT * FROM events", read: |row| events::read(row).map(drop) },
    Table { name: "releases", rows: "SELECT * FROM releases", read: |_| Ok(()) },
    Table { name: "posts", rows: "SELECT * FROM posts", read: |_| Ok(()) },
    Table { name: "holds", rows: "SELECT * FROM holds", read: |_| Ok(()) },
    Table { name: "approvals", rows: "SELECT * FROM approvals", read: |row| approvals::read(row).map(drop) },
    Table {
        name: "permissions",
        rows: "SELECT * FROM permissions",
        read: |row| approvals::read_permission(row).map(drop),
    },
    Table { name: "commands", rows: "SELECT * FROM commands", read: |_| Ok(()) },
    Table { name: "seen", rows: "SELECT * FROM seen", read: |row| seen::check(row) },
    // The full text index of this table is the table `found`. It has no entry here, because the statement `INTEGRITY`
    // checks it together with the structure of the file.
    Table { name: "findable", rows: "SELECT * FROM findable", read: |_| Ok(()) },
    Table { name: "sent", rows: "SELECT * FROM sent", read: |row| sent::read(row).map(drop) },
    Table { name: "sent_texts", rows: "SELECT * FROM sent_texts", read: |_| Ok(()) },
    Table { name: "exchanges", rows: "SELECT * FROM exchanges", read: |row| exchanges::read(row).map(drop) },
];

fn artifact(row: &Row) -> Result<(), Error> {
    let stored = artifacts::read(row)?;
    match stored.damage {
        Some(damage) => Err(damaged("artifacts", stored.artifact.id.as_str(), damage)),
        None => Ok(()),
    }
}

/// How the schema of a database compares with the schema that this program creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schema {
    /// The same schema.
    Known,
    /// An older schema, or no schema yet. The next start creates the current schema.
    Older,
    Newer {
        /// The newest migration in the file.
        found: i64,
        /// The newest migration that this program knows.
        known: i64,
    },
}

/// Begins a transaction, so that all later reads see the same state of the database.
pub(crate) async fn begin(connection: &mut Connection) -> Result<(), Error> {
    polity_sql::query(BEGIN).execute(connection).await?;
    Ok(())
}

/// Returns the damage in the structure of the file, and all references to rows that do not exist.
pub(crate) async fn structure(connection: &mut Connection) -> Vec<String> {
    let mut problems = Vec::new();
    match polity_sql::query_scalar(INTEGRITY).fetch_all::<String>(&mut *connection).await {
        Ok(verdicts) => problems.extend(verdicts.iter().flat_map(|text| findings(text)).map(str::to_owned)),
        Err(error) => problems.push(format!("the structure cannot be read: {error}")),
    }
    match polity_sql::query(FOREIGN_KEYS).fetch_all(connection).await {
        Ok(rows) => problems.extend(rows.iter().map(stray)),
        Err(error) => problems.push(format!("the foreign keys cannot be checked: {error}")),
    }
    problems
}

/// Describes a row whose reference names a missing row.
fn stray(row: &Row) -> String {
    let text = |column: &str| row.try_get::<String, _>(column).unwrap_or_default();
    let which = match row.try_get::<Option<i64>, _>("rowid") {
        Ok(Some(number)) => format!("row {number}"),
        // SQLite reports no row number for tables without row ids.
        Ok(None) | Err(_) => "a row".to_owned(),
    };
    format!(
        "{which} of table {} refers to a row of table {} that does not exist",
        text("table"),
        text("parent")
    )
}

/// Returns whether a database has the table that lists its migrations.
pub(crate) async fn has_schema(connection: &mut Connection) -> Result<bool, Error> {
    Ok(polity_sql::query_scalar(HAS_SCHEMA).fetch_one(connection).await?)
}

/// Compares the schema of a database with the schema that this program creates.
pub(crate) async fn schema(connection: &mut Connection) -> Result<Schema, Error> {
    let known = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default();
    let found = if has_schema(connection).await? {
        polity_sql::query_scalar(SCHEMA).fetch_one(connection).await?
    } else {
        0
    };
    Ok(match found.cmp(&known) {
        std::cmp::Ordering::Less => Schema::Older,
        std::cmp::Ordering::Equal => Schema::Known,
        std::cmp::Ordering::Greater => Schema::Newer { found, known },
    })
}

/// Reads every row of every table. Adds the damage to `problems`, and returns the number of rows.
/// The schema must be the schema that this program creates.
pub(crate) async fn rows(connection: &mut Connection, problems: &mut Vec<String>) -> u64 {
    let mut count = 0;
    for table in TABLES {
        if let Err(error) = rows_of(connection, table, &mut count, problems).await {
            problems.push(format!("table {} cannot be read to its end: {error}", table.name));
        }
    }
    count
}

async fn rows_of(
    connection: &mut Connection,
    table: &Table,
    count: &mut u64,
    problems: &mut Vec<String>,
) -> Result<(), polity_sql::Error> {
    let mut columns = HashMap::new();
    for row in polity_sql::query(COLUMNS).bind(table.name).fetch_all(&mut *connection).await? {
        let column = Column { declared: row.try_get("type")?, needed: row.try_get("needed")? };
        columns.insert(row.try_get::<String, _>("name")?, column);
    }
    let look = |row: &Row| {
        *count += 1;
        // `read` assumes that each value has the type of its column, so check the types first.
        let read = well_typed(row, &columns)
            .map_err(|what| damaged(table.name, &id(row), what))
            .and_then(|()| (table.read)(row));
        problems.extend(read.err().map(|error| error.to_string()));
        Ok(())
    };
    polity_sql::query(table.rows).for_each(connection, look).await
}

/// The declaration of a column in the schema.
struct Column {
    declared: String,
    needed: bool,
}

/// Checks that each value has the type of its column, and that each text is valid UTF-8.
fn well_typed(row: &Row, columns: &HashMap<String, Column>) -> Result<(), String> {
    for (name, value) in row.columns() {
        let Some(column) = columns.get(name) else { continue };
        if *value == Value::Null {
            if column.needed {
                return Err(format!("{name} is missing"));
            }
            continue;
        }
        let found = value.type_name();
        if found != column.declared {
            return Err(format!("{name} is of type {found}, not {}", column.declared));
        }
        value.check_text().map_err(|error| format!("{name} is not text: {error}"))?;
    }
    Ok(())
}

/// Returns the value of the first column, which identifies the row.
fn id(row: &Row) -> String {
    let number = row.try_get::<i64, _>(0).map(|number| number.to_string());
    row.try_get::<String, _>(0).or(number).unwrap_or_else(|_| "a row without an id".to_owned())
}

/// Returns the blobs that artifacts need, each with the artifacts that need it.
pub(crate) async fn blobs(connection: &mut Connection) -> Result<BTreeMap<BlobHash, Vec<ArtifactId>>, Error> {
    let mut needed: BTreeMap<BlobHash, Vec<ArtifactId>> = BTreeMap::new();
    for row in polity_sql::query(BLOBS).fetch_all(connection).await? {
        let id = ArtifactId::new(row.try_get::<String, _>("id")?);
        needed.entry(BlobHash::new(row.try_get::<String, _>("blob")?)).or_default().push(id);
    }
    Ok(needed)
}

/// Returns the names of the tables that a check reads.
#[cfg(test)]
pub(super) fn table_names() -> Vec<&'static str> {
    TABLES.iter().map(|table| table.name).collect()
}
